/* ir/build.c - checked constructors: fill a CcSpec, infer, append. */
#include "build.h"

#include <string.h>

CcRef
cc_build(CcGraph *g, const CcSpec *spec, CcStatus *st)
{
    CcSpec full = *spec;
    CcType type;
    uint32_t nguard = g->dims.nguard;

    for (uint32_t i = 0; i < spec->narg; i++) {
        if (spec->arg[i] == 0) {        /* the caller's own failed build: keep its status */
            return 0;
        }
    }
    CcRef r = 0;
    if (cc_infer(g, spec, true, &type, st)) {
        full.dtype = type.dtype;
        full.ndim = type.ndim;
        full.shape = type.dim;
        r = cc_graph_push(g, &full, st);
    }
    if (r == 0) {
        cc_graph_drop_guards(g, nguard);
    }
    return r;
}

/* The dims of a, copied out of the pool. */
static uint8_t
shape_copy(const CcGraph *g, CcRef a, CcDim *dim)
{
    for (uint32_t i = 0; i < g->node[a].ndim; i++) {
        dim[i] = cc_dim_canon(g, cc_shape(g, a)[i]);
    }
    return g->node[a].ndim;
}

/* -- Leaves -------------------------------------------------------------------- */

CcRef
cc_build_param(CcGraph *g, CcDtype dt, uint8_t ndim, const CcDim *shape, CcLayout layout,
               CcStatus *st)
{
    CcSpec spec = {.op = CC_OP_PARAM, .dtype = dt, .ndim = ndim, .shape = shape};
    CcType type;

    if (!cc_infer(g, &spec, true, &type, st)) {
        return 0;
    }
    /* the dims stay as the caller named them: they say what is bound where */
    return cc_graph_push_param(g, &spec, layout, 0, st);
}

CcRef
cc_build_scalar_param(CcGraph *g, CcDtype dt, uint32_t sym, CcStatus *st)
{
    CcSpec spec = {.op = CC_OP_PARAM, .dtype = dt};

    if (dt != CC_DTYPE_I64 && (sym != 0 || (dt != CC_DTYPE_F64 && dt != CC_DTYPE_BOOL))) {
        cc_fail(st, CC_REASON_BAD_OPERANDS, "PARAM: a Python scalar is i64, f64 or bool");
        return 0;
    }
    if (sym != 0 && cc_dim_sym(g, sym, st) == 0) {
        return 0;
    }
    return cc_graph_push_param(g, &spec, CC_LAYOUT_SCALAR, sym, st);
}

CcRef
cc_build_const(CcGraph *g, CcDtype dt, uint64_t bits, CcStatus *st)
{
    CcSpec spec = {.op = CC_OP_CONST, .dtype = dt, .bits = bits};

    return cc_build(g, &spec, st);
}

CcRef
cc_build_const_f64(CcGraph *g, CcDtype dt, double value, CcStatus *st)
{
    return cc_build_const(g, dt, cc_const_from_f64(dt, value), st);
}

CcRef
cc_build_const_i64(CcGraph *g, CcDtype dt, int64_t value, CcStatus *st)
{
    return cc_build_const(g, dt, cc_const_from_i64(dt, value), st);
}

CcRef
cc_build_size(CcGraph *g, CcDim d, CcDtype dt, CcStatus *st)
{
    int64_t value, attr[1] = {d};
    CcSpec spec = {.op = CC_OP_SIZE, .dtype = CC_DTYPE_I64, .nattr = 1, .attr = attr};

    if (d == 0) {
        return 0;
    }
    if (cc_dim_is_const(g, d, &value)) {
        return cc_build_const_i64(g, dt, value, st);
    }
    return cc_build_cast(g, cc_build(g, &spec, st), dt, st);
}

CcRef
cc_build_iota(CcGraph *g, CcRef start, CcRef step, CcDim size, CcStatus *st)
{
    CcRef arg[2] = {start, step};
    CcSpec spec = {.op = CC_OP_IOTA, .narg = 2, .arg = arg, .ndim = 1, .shape = &size};

    return cc_build(g, &spec, st);
}

CcRef
cc_build_full(CcGraph *g, CcRef value, uint8_t ndim, const CcDim *shape, CcStatus *st)
{
    return cc_build_broadcast(g, value, ndim, shape, st);
}

/* -- Elementwise --------------------------------------------------------------- */

CcRef
cc_build_unary(CcGraph *g, CcOp op, CcRef a, CcStatus *st)
{
    CcSpec spec = {.op = op, .narg = 1, .arg = &a};

    return cc_build(g, &spec, st);
}

CcRef
cc_build_binary(CcGraph *g, CcOp op, CcRef a, CcRef b, CcStatus *st)
{
    CcRef arg[2] = {a, b};
    CcSpec spec = {.op = op, .narg = 2, .arg = arg};

    return cc_build(g, &spec, st);
}

CcRef
cc_build_where(CcGraph *g, CcRef cond, CcRef a, CcRef b, CcStatus *st)
{
    CcRef arg[3] = {cond, a, b};
    CcSpec spec = {.op = CC_OP_WHERE, .narg = 3, .arg = arg};

    return cc_build(g, &spec, st);
}

CcRef
cc_build_cast(CcGraph *g, CcRef a, CcDtype dt, CcStatus *st)
{
    CcSpec spec = {.op = CC_OP_CAST, .narg = 1, .arg = &a, .dtype = dt};

    return a == 0 || g->node[a].dtype == dt ? a : cc_build(g, &spec, st);
}

CcRef
cc_build_broadcast(CcGraph *g, CcRef a, uint8_t ndim, const CcDim *shape, CcStatus *st)
{
    CcSpec spec = {.op = CC_OP_BROADCAST, .narg = 1, .arg = &a, .ndim = ndim, .shape = shape};
    bool same = a != 0 && g->node[a].ndim == ndim;

    for (uint32_t i = 0; same && i < ndim; i++) {
        same = cc_dim_same(g, cc_shape(g, a)[i], shape[i]);
    }
    return same ? a : cc_build(g, &spec, st);
}

/* The common dims of n operands; equalities that it needs are recorded. */
static bool
broadcast_dims(CcGraph *g, const CcRef *ref, uint32_t n, uint8_t ndim, CcDim *dim, CcStatus *st)
{
    for (uint32_t i = 0; i < ndim; i++) {
        dim[i] = 0;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t lead = (uint32_t)(ndim - g->node[ref[k]].ndim);
            if (i < lead) {
                continue;
            }
            CcDim d = cc_dim_canon(g, cc_shape(g, ref[k])[i - lead]);
            if (dim[i] == 0 || cc_dim_equals(g, dim[i], 1)) {
                dim[i] = d;
            }
            else if (!cc_dim_equals(g, d, 1) && !cc_graph_require_eq(g, dim[i], d, st)) {
                return false;
            }
        }
    }
    return true;
}

bool
cc_build_broadcast_all(CcGraph *g, CcRef *ref, uint32_t n, CcStatus *st)
{
    CcDim dim[CC_MAX_NDIM];
    uint32_t nguard = g->dims.nguard;
    uint8_t ndim = 0;

    for (uint32_t k = 0; k < n; k++) {
        if (ref[k] == 0) {
            return false;
        }
        ndim = g->node[ref[k]].ndim > ndim ? g->node[ref[k]].ndim : ndim;
    }
    if (!broadcast_dims(g, ref, n, ndim, dim, st)) {
        cc_graph_drop_guards(g, nguard);
        return false;
    }
    for (uint32_t k = 0; k < n; k++) {
        CcRef wide = cc_build_broadcast(g, ref[k], ndim, dim, st);
        if (wide == 0) {
            return false;
        }
        ref[k] = wide;
    }
    return true;
}

bool
cc_build_broadcast_pair(CcGraph *g, CcRef *a, CcRef *b, CcStatus *st)
{
    CcRef ref[2] = {*a, *b};

    if (!cc_build_broadcast_all(g, ref, 2, st)) {
        return false;
    }
    *a = ref[0];
    *b = ref[1];
    return true;
}

/* -- Reductions ------------------------------------------------------------------ */

static CcRef
build_reduced(CcGraph *g, const CcSpec *spec, bool keepdims, CcStatus *st)
{
    CcRef r = cc_build(g, spec, st);

    return keepdims ? cc_build_expand(g, r, (uint64_t)spec->attr[0], st) : r;
}

CcRef
cc_build_reduce(CcGraph *g, CcOp op, CcRef a, uint64_t axes, bool keepdims, CcStatus *st)
{
    int64_t attr[1] = {(int64_t)axes};
    CcSpec spec = {.op = op, .narg = 1, .arg = &a, .nattr = 1, .attr = attr};

    return build_reduced(g, &spec, keepdims, st);
}

CcRef
cc_build_moment(CcGraph *g, CcOp op, CcRef a, uint64_t axes, int64_t ddof, bool keepdims,
                CcStatus *st)
{
    int64_t attr[2] = {(int64_t)axes, ddof};
    CcSpec spec = {.op = op, .narg = 1, .arg = &a, .attr = attr,
                   .nattr = op == CC_OP_MEAN ? 1 : 2};

    return build_reduced(g, &spec, keepdims, st);
}

CcRef
cc_build_along(CcGraph *g, CcOp op, CcRef a, uint32_t axis, CcStatus *st)
{
    int64_t attr[1] = {axis};
    CcSpec spec = {.op = op, .narg = 1, .arg = &a, .nattr = 1, .attr = attr};

    return cc_build(g, &spec, st);
}

/* -- Moving ---------------------------------------------------------------------- */

CcRef
cc_build_reshape(CcGraph *g, CcRef a, uint8_t ndim, const CcDim *shape, CcStatus *st)
{
    CcSpec spec = {.op = CC_OP_RESHAPE, .narg = 1, .arg = &a, .ndim = ndim, .shape = shape};
    bool same = a != 0 && g->node[a].ndim == ndim;

    for (uint32_t i = 0; same && i < ndim; i++) {
        same = cc_dim_same(g, cc_shape(g, a)[i], shape[i]);
    }
    return same ? a : cc_build(g, &spec, st);
}

CcRef
cc_build_transpose(CcGraph *g, CcRef a, const uint8_t *perm, CcStatus *st)
{
    int64_t attr[CC_MAX_NDIM];
    bool same = true;

    if (a == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < g->node[a].ndim; i++) {
        attr[i] = perm[i];
        same = same && perm[i] == i;
    }
    CcSpec spec = {.op = CC_OP_TRANSPOSE, .narg = 1, .arg = &a, .nattr = g->node[a].ndim,
                   .attr = attr};
    return same ? a : cc_build(g, &spec, st);
}

CcRef
cc_build_expand(CcGraph *g, CcRef a, uint64_t axes, CcStatus *st)
{
    CcDim dim[CC_MAX_NDIM], one = cc_dim_const(g, 1, st);
    uint32_t ndim = 0, from = 0;

    if (a == 0 || one == 0) {
        return 0;
    }
    while (ndim < CC_MAX_NDIM && (from < g->node[a].ndim || axes >> ndim != 0)) {
        bool back = (axes >> ndim & 1) != 0;
        if (!back && from == g->node[a].ndim) {
            break;
        }
        dim[ndim++] = back ? one : cc_shape(g, a)[from++];
    }
    if (from != g->node[a].ndim || axes >> ndim != 0) {
        cc_fail(st, CC_REASON_BAD_OPERANDS, "axes 0x%llx do not fit", (unsigned long long)axes);
        return 0;
    }
    return cc_build_reshape(g, a, (uint8_t)ndim, dim, st);
}

CcRef
cc_build_slice(CcGraph *g, CcRef a, const CcDim *start, const int64_t *step, const CcDim *size,
               CcStatus *st)
{
    int64_t attr[2 * CC_MAX_NDIM];

    if (a == 0) {
        return 0;
    }
    uint8_t ndim = g->node[a].ndim;
    for (uint32_t i = 0; i < ndim; i++) {
        attr[i] = start[i];
        attr[ndim + i] = step[i];
    }
    CcSpec spec = {.op = CC_OP_SLICE, .narg = 1, .arg = &a, .nattr = (uint16_t)(2 * ndim),
                   .attr = attr, .ndim = ndim, .shape = size};
    return cc_build(g, &spec, st);
}

CcRef
cc_build_update(CcGraph *g, CcRef base, CcRef value, const CcDim *start, const int64_t *step,
                CcStatus *st)
{
    int64_t attr[2 * CC_MAX_NDIM];
    CcRef arg[2] = {base, value};

    if (base == 0) {
        return 0;
    }
    uint8_t ndim = g->node[base].ndim;
    for (uint32_t i = 0; i < ndim; i++) {
        attr[i] = start[i];
        attr[ndim + i] = step[i];
    }
    CcSpec spec = {.op = CC_OP_UPDATE, .narg = 2, .arg = arg, .nattr = (uint16_t)(2 * ndim),
                   .attr = attr};
    return cc_build(g, &spec, st);
}

CcRef
cc_build_flip(CcGraph *g, CcRef a, uint64_t axes, CcStatus *st)
{
    CcDim start[CC_MAX_NDIM], size[CC_MAX_NDIM];
    int64_t step[CC_MAX_NDIM];
    CcDim zero = cc_dim_const(g, 0, st), one = cc_dim_const(g, 1, st);

    if (a == 0 || zero == 0 || one == 0) {
        return 0;
    }
    uint8_t ndim = shape_copy(g, a, size);
    for (uint32_t i = 0; i < ndim; i++) {
        bool turn = (axes >> i & 1) != 0;
        /* max: the start of an empty axis is never read, but has to be a place */
        CcDim last = cc_dim_make(g, CC_DIM_SUB, size[i], one, st);
        start[i] = turn ? cc_dim_make(g, CC_DIM_MAX, last, zero, st) : zero;
        step[i] = turn ? -1 : 1;
        if (last == 0 || start[i] == 0) {
            return 0;
        }
    }
    return cc_build_slice(g, a, start, step, size, st);
}

CcRef
cc_build_concat(CcGraph *g, const CcRef *part, uint32_t n, uint32_t axis, CcStatus *st)
{
    int64_t attr[1] = {axis};
    CcSpec spec = {.op = CC_OP_CONCAT, .narg = (uint16_t)n, .arg = part, .nattr = 1, .attr = attr};

    if (n == 0 || n > UINT16_MAX) {
        cc_fail(st, CC_REASON_BAD_OPERANDS, "CONCAT of %u arrays", n);
        return 0;
    }
    return cc_build(g, &spec, st);
}

CcRef
cc_build_pad(CcGraph *g, CcRef a, CcRef value, const CcDim *lo, const CcDim *hi, CcStatus *st)
{
    int64_t attr[2 * CC_MAX_NDIM];
    CcRef arg[2] = {a, value};

    if (a == 0) {
        return 0;
    }
    uint8_t ndim = g->node[a].ndim;
    for (uint32_t i = 0; i < ndim; i++) {
        attr[i] = lo[i];
        attr[ndim + i] = hi[i];
    }
    CcSpec spec = {.op = CC_OP_PAD, .narg = 2, .arg = arg, .nattr = (uint16_t)(2 * ndim),
                   .attr = attr};
    return cc_build(g, &spec, st);
}

/* -- Indexing -------------------------------------------------------------------- */

CcRef
cc_build_gather(CcGraph *g, CcRef base, CcRef index, uint32_t axis, CcStatus *st)
{
    int64_t attr[1] = {axis};
    CcRef arg[2] = {base, index};
    CcSpec spec = {.op = CC_OP_GATHER, .narg = 2, .arg = arg, .nattr = 1, .attr = attr};

    return cc_build(g, &spec, st);
}

CcRef
cc_build_scatter(CcGraph *g, CcOp op, CcRef base, CcRef index, CcRef value, uint32_t axis,
                 CcStatus *st)
{
    int64_t attr[1] = {axis};
    CcRef arg[3] = {base, index, value};
    CcSpec spec = {.op = op, .narg = 3, .arg = arg, .nattr = 1, .attr = attr};

    return cc_build(g, &spec, st);
}

/* -- Heavy ops -------------------------------------------------------------------- */

CcRef
cc_build_matmul(CcGraph *g, CcRef a, CcRef b, bool ta, bool tb, CcStatus *st)
{
    int64_t attr[2] = {ta, tb};
    CcRef arg[2] = {a, b};
    CcSpec spec = {.op = CC_OP_MATMUL, .narg = 2, .arg = arg, .nattr = 2, .attr = attr};

    return cc_build(g, &spec, st);
}

CcRef
cc_build_conv2d(CcGraph *g, CcRef x, CcRef w, CcRef bias, const CcConv *conv, CcStatus *st)
{
    int64_t attr[9];
    CcRef arg[3] = {x, w, bias};
    CcSpec spec = {.op = CC_OP_CONV2D, .nattr = 9, .arg = arg, .attr = attr};

    spec.narg = bias != 0 ? 3 : 2;
    memcpy(attr, conv->stride, sizeof(conv->stride));
    memcpy(attr + 2, conv->pad, sizeof(conv->pad));
    memcpy(attr + 6, conv->dilation, sizeof(conv->dilation));
    attr[8] = conv->groups;
    return cc_build(g, &spec, st);
}

CcRef
cc_build_maxpool2d(CcGraph *g, CcOp op, CcRef x, const CcPool *pool, CcStatus *st)
{
    int64_t attr[8];
    CcSpec spec = {.op = op, .narg = 1, .arg = &x, .nattr = 8, .attr = attr};

    memcpy(attr, pool->k, sizeof(pool->k));
    memcpy(attr + 2, pool->stride, sizeof(pool->stride));
    memcpy(attr + 4, pool->pad, sizeof(pool->pad));
    return cc_build(g, &spec, st);
}

/* -- The framework ------------------------------------------------------------------ */

CcRef
cc_build_extern(CcGraph *g, int64_t id, const CcRef *arg, uint32_t n, CcStatus *st)
{
    CcSpec spec = {.op = CC_OP_EXTERN, .narg = (uint16_t)n, .arg = arg, .nattr = 1, .attr = &id};

    if (n > UINT16_MAX) {
        cc_fail(st, CC_REASON_BAD_OPERANDS, "EXTERN of %u operands", n);
        return 0;
    }
    return cc_build(g, &spec, st);
}

CcRef
cc_build_extern_get(CcGraph *g, CcRef call, int64_t k, CcDtype dt, uint8_t ndim,
                    const CcDim *shape, CcStatus *st)
{
    CcSpec spec = {.op = CC_OP_EXTERN_GET, .narg = 1, .arg = &call, .nattr = 1, .attr = &k,
                   .dtype = dt, .ndim = ndim, .shape = shape};

    return cc_build(g, &spec, st);
}
