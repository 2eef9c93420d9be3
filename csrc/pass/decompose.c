/* pass/decompose.c - composites become primitive ops; one function per COMP row.
 *
 * Needs dtypes and shapes. Keeps everything but the COMP nodes; their fault mark goes to every
 * piece that can raise. One forward walk; pieces are primitive, so it ends.
 *
 *   MEAN       sum(x) / n
 *   VAR        sum((x - mean(x))**2) / max(n - ddof, 0)        two passes, as NumPy
 *   STD        sqrt(VAR)
 *   SOFTMAX    e / sum(e), e = exp(x - max(x))
 *   LOGSOFTMAX (x - max(x)) - log(sum(exp(x - max(x))))
 *   GELU       x * 0.5 * (1 + erf(x * sqrt(1/2))) */
#include "../base/mem.h"
#include "../ir/build.h"
#include "pass.h"

typedef struct {
    CcGraph *g;                         /* being built */
    CcRef x;                            /* the composite's operand, already in g */
    uint64_t axes;                      /* reduced, or the softmax axis */
    int64_t ddof;
    CcStatus *st;
} Comp;

static CcDtype
comp_dtype(const Comp *c)
{
    return (CcDtype)c->g->node[c->x].dtype;
}

/* A 0-d value in the shape of `like`. */
static CcRef
comp_spread(const Comp *c, CcRef value, CcRef like)
{
    CcDim dim[CC_MAX_NDIM];

    if (value == 0 || like == 0) {
        return 0;
    }
    uint8_t ndim = c->g->node[like].ndim;
    for (uint32_t i = 0; i < ndim; i++) {
        dim[i] = cc_shape(c->g, like)[i];
    }
    return cc_build_broadcast(c->g, value, ndim, dim, c->st);
}

static CcRef
comp_const(const Comp *c, double value, CcRef like)
{
    return comp_spread(c, cc_build_const_f64(c->g, comp_dtype(c), value, c->st), like);
}

static CcRef
comp_binary(const Comp *c, CcOp op, CcRef a, CcRef b)
{
    return a == 0 || b == 0 ? 0 : cc_build_binary(c->g, op, a, b, c->st);
}

/* a reduced over the axes and stretched back to a's shape */
static CcRef
comp_reduce_back(const Comp *c, CcOp op, CcRef a)
{
    return a == 0 ? 0
                  : comp_spread(c, cc_build_reduce(c->g, op, a, c->axes, true, c->st), c->x);
}

/* max(n - less, 0) in the shape of `like`, n = number of elements that are reduced */
static CcRef
comp_count(const Comp *c, int64_t less, CcRef like)
{
    CcDim n = cc_dim_const(c->g, 1, c->st), zero = cc_dim_const(c->g, 0, c->st);

    for (uint32_t i = 0; n != 0 && i < c->g->node[c->x].ndim; i++) {
        if ((c->axes >> i & 1) != 0) {
            n = cc_dim_make(c->g, CC_DIM_MUL, n, cc_shape(c->g, c->x)[i], c->st);
        }
    }
    if (less != 0 && n != 0) {
        CcDim by = cc_dim_const(c->g, less, c->st);
        n = by == 0 ? 0 : cc_dim_make(c->g, CC_DIM_SUB, n, by, c->st);
        n = n == 0 || zero == 0 ? 0 : cc_dim_make(c->g, CC_DIM_MAX, n, zero, c->st);
    }
    return n == 0 ? 0 : comp_spread(c, cc_build_size(c->g, n, comp_dtype(c), c->st), like);
}

static CcRef
comp_mean(const Comp *c, bool keepdims)
{
    CcRef sum = cc_build_reduce(c->g, CC_OP_SUM, c->x, c->axes, keepdims, c->st);

    return comp_binary(c, CC_OP_DIV, sum, comp_count(c, 0, sum));
}

static CcRef
comp_var(const Comp *c)
{
    CcRef off = comp_binary(c, CC_OP_SUB, c->x, comp_spread(c, comp_mean(c, true), c->x));
    CcRef square = off == 0 ? 0 : cc_build_unary(c->g, CC_OP_SQUARE, off, c->st);
    CcRef sum = square == 0 ? 0
                            : cc_build_reduce(c->g, CC_OP_SUM, square, c->axes, false, c->st);

    return comp_binary(c, CC_OP_DIV, sum, comp_count(c, c->ddof, sum));
}

static CcRef
comp_softmax(const Comp *c, bool logarithm)
{
    CcRef off = comp_binary(c, CC_OP_SUB, c->x, comp_reduce_back(c, CC_OP_MAX, c->x));
    CcRef e = off == 0 ? 0 : cc_build_unary(c->g, CC_OP_EXP, off, c->st);

    if (!logarithm) {
        return comp_binary(c, CC_OP_DIV, e, comp_reduce_back(c, CC_OP_SUM, e));
    }
    CcRef sum = e == 0 ? 0 : cc_build_reduce(c->g, CC_OP_SUM, e, c->axes, true, c->st);
    CcRef log = sum == 0 ? 0 : cc_build_unary(c->g, CC_OP_LOG, sum, c->st);
    return comp_binary(c, CC_OP_SUB, off, comp_spread(c, log, c->x));
}

static CcRef
comp_gelu(const Comp *c)
{
    CcRef scaled = comp_binary(c, CC_OP_MUL, c->x, comp_const(c, 0.70710678118654752440, c->x));
    CcRef erf = scaled == 0 ? 0 : cc_build_unary(c->g, CC_OP_ERF, scaled, c->st);
    CcRef both = comp_binary(c, CC_OP_ADD, comp_const(c, 1.0, c->x), erf);
    CcRef half = comp_binary(c, CC_OP_MUL, c->x, comp_const(c, 0.5, c->x));

    return comp_binary(c, CC_OP_MUL, half, both);
}

static CcRef
decompose_node(CcGraph *dst, const CcGraph *src, CcRef r, const CcRef *map, CcStatus *st)
{
    const CcNode *nd = &src->node[r];
    const int64_t *attr = cc_attrs(src, r);
    Comp c = {.g = dst, .x = map[cc_arg(src, r, 0)], .st = st};
    CcRef first = dst->len, res;

    switch (nd->op) {
    case CC_OP_MEAN:
        c.axes = (uint64_t)attr[0];
        res = comp_mean(&c, false);
        break;
    case CC_OP_VAR:
    case CC_OP_STD:
        c.axes = (uint64_t)attr[0];
        c.ddof = attr[1];
        res = comp_var(&c);
        if (res != 0 && nd->op == CC_OP_STD) {
            res = cc_build_unary(dst, CC_OP_SQRT, res, st);
        }
        break;
    case CC_OP_SOFTMAX:
    case CC_OP_LOGSOFTMAX:
        c.axes = UINT64_C(1) << attr[0];
        res = comp_softmax(&c, nd->op == CC_OP_LOGSOFTMAX);
        break;
    case CC_OP_GELU:
        res = comp_gelu(&c);
        break;
    default:
        cc_fail(st, CC_REASON_NO_LOWERING, "%%%u: %s", r, cc_op_info[nd->op].name);
        return 0;
    }
    for (CcRef piece = first; piece < dst->len; piece++) {
        dst->node[piece].where = nd->where;
        if ((nd->flags & CC_NODE_FAULT) != 0 && cc_node_faults(dst, piece) != 0) {
            dst->node[piece].flags |= CC_NODE_FAULT;
        }
    }
    return res;
}

bool
pass_decompose(CcGraph *g, CcStatus *st)
{
    CcRef *map = cc_calloc(g->len, sizeof(*map));
    CcGraph dst;
    bool ok = false;

    cc_graph_init(&dst);
    if (map == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "decompose of %u nodes", g->len);
    }
    if (!cc_graph_rewrite_begin(&dst, g, st)) {
        goto done;
    }
    for (CcRef r = 1; r < g->len; r++) {
        map[r] = cc_info(g, r)->cls == CC_CLASS_COMP ? decompose_node(&dst, g, r, map, st)
                                                     : cc_graph_rewrite_copy(&dst, g, r, map, st);
        if (map[r] == 0) {
            goto done;
        }
    }
    ok = cc_graph_rewrite_end(g, &dst, map, st);
done:
    cc_graph_fini(&dst);
    cc_free(map);
    return ok;
}
