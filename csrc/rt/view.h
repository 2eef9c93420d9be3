/* rt/view.h - an array in memory at run time, and the kernels that only move or index elements. */
#ifndef CC_RT_VIEW_H
#define CC_RT_VIEW_H

#include "loop.h"

typedef struct {
    char *data;                         /* element 0; NULL with iota */
    uint8_t size;                       /* bytes of an element */
    uint8_t dtype;                      /* CcDtype */
    uint8_t ndim;
    bool iota;                          /* elements are indexes, strides count in them */
    cc_i64 origin;                      /* iota: index of element 0 */
    cc_i64 dim[RT_LOOP_DIMS];
    cc_i64 stride[RT_LOOP_DIMS];        /* bytes */
} CcView;

cc_i64 rt_view_count(const CcView *v);

/* Is it in C order without gaps? */
bool rt_view_packed(const CcView *v);

/* Strides of C order. */
void rt_view_pack(CcView *v);

/* Copy in to out, both of one shape and element size. One phase. */
typedef struct {
    CcView out, in;
    bool fill;                          /* `in` is one element for all */
} RtCopy;

bool rt_copy_plan(RtCopy *c, CcPhase *phase);

/* Running sums or products along an axis, in order, in the element's own type (rt/scan.c). */
typedef struct {
    CcView out, in;
    uint8_t axis;
    uint8_t type;                       /* CcVType */
    bool product;
} RtScan;

bool rt_scan_plan(RtScan *s, CcPhase *phase);

/* GATHER: out = base taken at `index` (i64, negative counts from the end) on an axis. SCATTER:
 * out, a copy of base already, gets `value` at those places, set or added, in C order of index; the
 * last one wins. An index out of range is CC_FAULT_INDEX, its elements are not touched. */
typedef struct {
    CcView out, base, index, value;
    uint8_t axis;
    uint8_t type;                       /* CcVType, for adding */
    bool scatter, add;
    cc_u32 *fault;
} RtIndex;

bool rt_index_plan(RtIndex *x, CcPhase *phase);

#endif
