/* base/mem.h - the one door to malloc in the pure half, so a test can close it. */
#ifndef CC_MEM_H
#define CC_MEM_H

#include <stddef.h>

void *cc_realloc(void *old, size_t size);       /* NULL = no memory, old stays valid */
void *cc_calloc(size_t count, size_t size);     /* zeroed; NULL = no memory */
void cc_free(void *block);

/* Tests: let n allocations succeed, then fail one. n < 0 switches it off. */
void cc_mem_fail_after(long n);

/* True when the switch above has fired since it was set. */
int cc_mem_failed(void);

#endif
