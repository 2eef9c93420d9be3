#include "mem.h"

#include <stdatomic.h>
#include <stdlib.h>

/* The test switch; the only mutable statics of base/. */
static atomic_long fail_after = -1;
static atomic_int fired;

void
cc_mem_fail_after(long n)
{
    atomic_store(&fired, 0);
    atomic_store(&fail_after, n);
}

int
cc_mem_failed(void)
{
    return atomic_load(&fired);
}

static int
must_fail(void)
{
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) < 0) {
        return 0;
    }
    if (atomic_fetch_sub(&fail_after, 1) != 0) {
        return 0;
    }
    atomic_store(&fired, 1);
    return 1;
}

void *
cc_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : realloc(old, size ? size : 1);
}

void *
cc_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : calloc(count ? count : 1, size ? size : 1);
}

void
cc_free(void *block)
{
    free(block);
}
