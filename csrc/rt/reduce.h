/* rt/reduce.h - reductions of elements that lie side by side in the L1 cache.
 *
 * A float sum over n elements is NumPy's pairwise sum, bit for bit: a node of more than RT_SUM_LEAF
 * elements is the sum of two nodes, the first of rt_sum_split(n) elements; a leaf is added in eight
 * running sums, which are joined in pairs. So the error grows with the logarithm of the size, and
 * what is added to what follows from the size alone. A block is the largest node of at most
 * CC_RED_BLOCK elements; all reductions are cut into the same blocks. */
#ifndef CC_RT_REDUCE_H
#define CC_RT_REDUCE_H

#include "vprog.h"

typedef enum {
    RT_RED_SUM, RT_RED_PROD, RT_RED_MAX, RT_RED_MIN, RT_RED_ARGMAX, RT_RED_ARGMIN, RT_RED_ANY,
    RT_RED_ALL, RT_RED__COUNT
} RtRed;

/* Elements per block. A chunk of the interpreter is a block, too. */
enum { CC_RED_BLOCK = 512 };

enum { RT_SUM_LEAF = 128, RT_SUM_LANES = 8 };

static inline cc_i64
rt_sum_split(cc_i64 n)
{
    return n / 2 - n / 2 % RT_SUM_LANES;
}

/* The engine's types in memory; bool is u8 with true = not 0. */
typedef union {
    double f64;
    float f32;
    cc_i64 i64;
    cc_u64 u64;
} RtRedValue;

struct RtReduceTable {
    /* Reduce n >= 1 elements of type t at p to one: *out is 8 bytes, the element at its start.
     * ARGMAX and ARGMIN: *out is the place (i64), *best the element. ANY and ALL: t = u8. */
    void (*block)(RtRed red, CcVType t, const char *p, cc_i64 n, char *out, char *best);

    /* acc[i] = acc[i] (op) p[i] for n elements; the order of the operands is kept. Not ARG. */
    void (*fold)(RtRed red, CcVType t, char *acc, const char *p, cc_i64 n);

    /* Four of them, one after the other: p, p + stride ... */
    void (*fold4)(RtRed red, CcVType t, char *acc, const char *p, cc_i64 stride, cc_i64 n);
};

#endif
