/* base/vec.h - growable arrays: a pointer, a length and a capacity in the owner's struct.
 *
 *     typedef struct { Row *row; uint32_t nrow, capa; } Table;
 *     if (!CC_GROW(t->row, t->nrow, t->capa, 1)) ...no memory, nothing changed...
 *     t->row[t->nrow++] = row; */
#ifndef CC_VEC_H
#define CC_VEC_H

#include "mem.h"

#include <stdbool.h>
#include <stdint.h>

/* Make room for `more` entries behind `len`. */
#define CC_GROW(ptr, len, cap, more) cc_grow((void **)&(ptr), (len), &(cap), (more), sizeof(*(ptr)))

static inline bool
cc_grow(void **block, uint32_t len, uint32_t *cap, uint32_t more, size_t item)
{
    uint64_t need = (uint64_t)len + more;
    uint64_t want = *cap < 8 ? 8 : *cap;

    if (need <= *cap) {
        return true;
    }
    while (want < need) {
        want *= 2;
    }
    if (want > UINT32_MAX) {
        return false;
    }
    void *grown = cc_realloc(*block, want * item);
    if (grown == NULL) {
        return false;
    }
    *block = grown;
    *cap = (uint32_t)want;
    return true;
}

#endif
