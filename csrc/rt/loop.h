/* rt/loop.h - run a fused loop over its iteration space, whatever the layouts of its operands.
 *
 * A loop has ndim axes, the first nkeep of them kept, the rest reduced (none: elementwise).
 * Its body (compiled C or the interpreter) only sees elements that lie side by side, or single
 * elements; operands that do not lie so are copied through buffers in the L1 cache, here, for both
 * engines. Reductions are done here, too, on what the body leaves in such a buffer.
 *
 * The bits of results follow from sizes and strides: never from how the team cuts the ranges. */
#ifndef CC_RT_LOOP_H
#define CC_RT_LOOP_H

#include "reduce.h"

enum { RT_LOOP_DIMS = 16, RT_LOOP_REDS = 8 };

typedef struct {
    char *data;                         /* element 0; NULL: an iota, or a buffer for a reduction */
    cc_i64 stride[RT_LOOP_DIMS];        /* bytes; an iota's: steps of its index */
    uint8_t size;
    bool out, iota;
    uint8_t type;                       /* iota: CcVType */
    CcScalar start, step;               /* iota */
    cc_i64 origin;                      /* iota: index of element 0 */
} RtOperand;

typedef struct {
    uint8_t red;                        /* RtRed */
    uint8_t type;                       /* CcVType of the elements in memory */
    uint8_t mem;                        /* the operand that holds them */
    uint8_t size;                       /* of the result */
    char *out;
    cc_i64 stride[RT_LOOP_DIMS];        /* of the result, for the kept axes */
} RtLoopRed;

typedef struct {
    uint8_t ndim, nkeep;
    uint8_t nop, nred;
    bool no_body;                       /* nothing to compute: operands are reduced as they are */
    cc_i64 dim[RT_LOOP_DIMS];
    RtOperand op[CC_VPROG_MAX_MEM];
    RtLoopRed red[RT_LOOP_REDS];
    CcBodyFn flat, row;                 /* row: also operands of mask_row are single elements */
    cc_u64 mask_flat, mask_row;         /* what the compiled bodies take as single elements */
    const CcVProg *prog;                /* the interpreter's; NULL with compiled bodies */
    const CcScalar *scalar;
    const RtVecTable *vec;
    double cost;                        /* nanoseconds per element, about */
    cc_u32 *fault;
    char *partial;                      /* rt_loop_plan() says how many bytes */

    /* Set by rt_loop_plan(). */
    uint8_t mode;
    uint8_t lo;                         /* elementwise: first axis of the inner space */
    cc_i64 total_keep, total_red, nsuper;
    bool lanes;                         /* columns that stand for short rows: added as those */
} RtLoop;

/* Merge and order axes, choose how to run. Fills at most 2 phases, sets *nphase (0 = no work) and
 * *partial, bytes of memory to be put into l->partial. Elements of reductions over nothing are
 * written here. */
void rt_loop_plan(RtLoop *l, CcPhase *phase, uint32_t *nphase, cc_i64 *partial);

/* Copy n elements of `size` bytes from element `first` of the space dim[0..nd) on, C order. */
void rt_gather(char *out, const char *in, unsigned size, unsigned nd, const cc_i64 *dim,
               const cc_i64 *stride, cc_i64 first, cc_i64 n);
void rt_scatter(char *out, const char *in, unsigned size, unsigned nd, const cc_i64 *dim,
                const cc_i64 *stride, cc_i64 first, cc_i64 n);

#endif
