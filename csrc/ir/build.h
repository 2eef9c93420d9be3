/* ir/build.h - checked constructors of nodes, for front ends and passes.
 *
 * Each runs inference (infer.c), so a node made here obeys its row. They return 0 and fill `st`
 * when operands do not fit (BAD_OPERANDS) or memory is short (NO_MEMORY); the graph then has no
 * new node and no new guard, though it may have new dims. An operand that is 0 gives 0 and leaves
 * `st`, so a chain of calls is checked once, at its end. Where two dims have to be equal and are
 * not known to be, an equality guard is recorded (shape.h). Fault flags are the caller's: set
 * CC_NODE_FAULT on the returned node when cc_node_faults() meets the errstate. */
#ifndef CC_BUILD_H
#define CC_BUILD_H

#include "graph.h"

/* What inference says of a node. */
typedef struct {
    CcDtype dtype;
    uint8_t ndim;
    CcDim dim[CC_MAX_NDIM];
} CcType;

/* Dtype and shape of the node that `spec` describes. spec->dtype and spec->shape are read where the
 * row leaves them to the maker (GIVEN, CAST, EXT; flag G); elsewhere they are not looked at.
 * may_guard: record missing equalities as guards; false: they are errors (verify). */
bool cc_infer(CcGraph *g, const CcSpec *spec, bool may_guard, CcType *out, CcStatus *st);

/* Infer and append. */
CcRef cc_build(CcGraph *g, const CcSpec *spec, CcStatus *st);

/* Leaves. */
CcRef cc_build_param(CcGraph *g, CcDtype dt, uint8_t ndim, const CcDim *shape, CcLayout layout,
                     CcStatus *st);
CcRef cc_build_scalar_param(CcGraph *g, CcDtype dt, uint32_t sym, CcStatus *st);
CcRef cc_build_const(CcGraph *g, CcDtype dt, uint64_t bits, CcStatus *st);
CcRef cc_build_const_f64(CcGraph *g, CcDtype dt, double value, CcStatus *st);
CcRef cc_build_const_i64(CcGraph *g, CcDtype dt, int64_t value, CcStatus *st);
/* The value of a dim in this dtype: a CONST when it is known, else SIZE and a CAST. */
CcRef cc_build_size(CcGraph *g, CcDim d, CcDtype dt, CcStatus *st);
CcRef cc_build_iota(CcGraph *g, CcRef start, CcRef step, CcDim size, CcStatus *st);
/* A 0-d value in every element of a shape: BROADCAST (there is no FULL op). */
CcRef cc_build_full(CcGraph *g, CcRef value, uint8_t ndim, const CcDim *shape, CcStatus *st);

/* Elementwise; operands have equal shapes and dtypes already. */
CcRef cc_build_unary(CcGraph *g, CcOp op, CcRef a, CcStatus *st);
CcRef cc_build_binary(CcGraph *g, CcOp op, CcRef a, CcRef b, CcStatus *st);
CcRef cc_build_where(CcGraph *g, CcRef cond, CcRef a, CcRef b, CcStatus *st);
/* a itself when it has that dtype. */
CcRef cc_build_cast(CcGraph *g, CcRef a, CcDtype dt, CcStatus *st);

/* NumPy's broadcast of two operands: inserts BROADCAST nodes so that *a and *b get equal shapes. A
 * dim that is the constant 1 is stretched; two other dims become equal (guard). */
bool cc_build_broadcast_pair(CcGraph *g, CcRef *a, CcRef *b, CcStatus *st);
/* n operands at once, in place. */
bool cc_build_broadcast_all(CcGraph *g, CcRef *ref, uint32_t n, CcStatus *st);
/* a itself when it has that shape. */
CcRef cc_build_broadcast(CcGraph *g, CcRef a, uint8_t ndim, const CcDim *shape, CcStatus *st);

/* Reductions and scans. axes: bit mask, never 0 bits above ndim. keepdims appends a RESHAPE. */
CcRef cc_build_reduce(CcGraph *g, CcOp op, CcRef a, uint64_t axes, bool keepdims, CcStatus *st);
CcRef cc_build_moment(CcGraph *g, CcOp op, CcRef a, uint64_t axes, int64_t ddof, bool keepdims,
                      CcStatus *st);
/* SCAN class, SOFTMAX, LOGSOFTMAX. */
CcRef cc_build_along(CcGraph *g, CcOp op, CcRef a, uint32_t axis, CcStatus *st);

/* Moving elements. reshape and transpose return a itself when nothing changes. */
CcRef cc_build_reshape(CcGraph *g, CcRef a, uint8_t ndim, const CcDim *shape, CcStatus *st);
CcRef cc_build_transpose(CcGraph *g, CcRef a, const uint8_t *perm, CcStatus *st);
/* Axes of the mask get size 1 back: undoes a reduction's dropping of axes. */
CcRef cc_build_expand(CcGraph *g, CcRef a, uint64_t axes, CcStatus *st);
CcRef cc_build_slice(CcGraph *g, CcRef a, const CcDim *start, const int64_t *step,
                     const CcDim *size, CcStatus *st);
CcRef cc_build_update(CcGraph *g, CcRef base, CcRef value, const CcDim *start, const int64_t *step,
                      CcStatus *st);
CcRef cc_build_flip(CcGraph *g, CcRef a, uint64_t axes, CcStatus *st);
CcRef cc_build_concat(CcGraph *g, const CcRef *part, uint32_t n, uint32_t axis, CcStatus *st);
CcRef cc_build_pad(CcGraph *g, CcRef a, CcRef value, const CcDim *lo, const CcDim *hi,
                   CcStatus *st);

/* Indexing. */
CcRef cc_build_gather(CcGraph *g, CcRef base, CcRef index, uint32_t axis, CcStatus *st);
CcRef cc_build_scatter(CcGraph *g, CcOp op, CcRef base, CcRef index, CcRef value, uint32_t axis,
                       CcStatus *st);

/* Heavy ops. */
typedef struct {
    int64_t stride[2], pad[4], dilation[2], groups;     /* in the order of the attributes */
} CcConv;

typedef struct {
    int64_t k[2], stride[2], pad[4];
} CcPool;

CcRef cc_build_matmul(CcGraph *g, CcRef a, CcRef b, bool ta, bool tb, CcStatus *st);
/* bias 0 = none */
CcRef cc_build_conv2d(CcGraph *g, CcRef x, CcRef w, CcRef bias, const CcConv *conv, CcStatus *st);
/* op MAXPOOL2D or MAXPOOL2D_ARG */
CcRef cc_build_maxpool2d(CcGraph *g, CcOp op, CcRef x, const CcPool *pool, CcStatus *st);

/* The framework's own function. */
CcRef cc_build_extern(CcGraph *g, int64_t id, const CcRef *arg, uint32_t n, CcStatus *st);
CcRef cc_build_extern_get(CcGraph *g, CcRef call, int64_t k, CcDtype dt, uint8_t ndim,
                          const CcDim *shape, CcStatus *st);

#endif
