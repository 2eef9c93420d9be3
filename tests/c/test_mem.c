/* tests/c/test_mem.c - the door to malloc, its test switch, and what grows behind it. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "t.h"

#include <string.h>

static void
test_fail_after_fires_once(void)
{
    cc_mem_fail_after(1);
    void *first = cc_calloc(4, 4);
    T_CHECK(first != NULL && !cc_mem_failed());
    T_CHECK(cc_calloc(4, 4) == NULL && cc_mem_failed());
    void *third = cc_calloc(4, 4);
    T_CHECK(third != NULL);
    cc_mem_fail_after(-1);
    T_CHECK(!cc_mem_failed());
    cc_free(first);
    cc_free(third);
}

static void
test_zero_bytes_are_an_allocation(void)
{
    void *none = cc_calloc(0, 0);
    void *zero = cc_realloc(NULL, 0);

    T_CHECK(none != NULL && zero != NULL);
    cc_free(none);
    cc_free(zero);
}

static void
test_grow_keeps_contents_when_memory_ends(void)
{
    uint32_t cap = 0, *row = NULL;

    T_CHECK(CC_GROW(row, 0u, cap, 3) && cap >= 3);
    row[0] = 7;
    uint32_t before = cap;
    cc_mem_fail_after(0);
    T_CHECK(!CC_GROW(row, cap, cap, 1));
    T_CHECK(cap == before && row[0] == 7);
    cc_mem_fail_after(-1);
    T_CHECK(CC_GROW(row, before, cap, 1) && cap > before && row[0] == 7);
    cc_free(row);
}

static void
test_buf_appends_and_remembers_a_failure(void)
{
    CcBuf b;

    cc_buf_init(&b);
    T_CHECK(strcmp(cc_buf_text(&b), "") == 0);
    cc_buf_puts(&b, "one ");
    cc_buf_printf(&b, "%d %s", 2, "three");
    T_CHECK(strcmp(cc_buf_text(&b), "one 2 three") == 0 && b.len == 11);
    cc_mem_fail_after(0);
    for (int i = 0; i < 100; i++) {
        cc_buf_puts(&b, "0123456789");
    }
    cc_mem_fail_after(-1);
    T_CHECK(b.failed);
    cc_buf_fini(&b);
    T_CHECK(!b.failed && b.len == 0);
}

int
main(void)
{
    test_fail_after_fires_once();
    test_zero_bytes_are_an_allocation();
    test_grow_keeps_contents_when_memory_ends();
    test_buf_appends_and_remembers_a_failure();
    return t_failed != 0;
}
