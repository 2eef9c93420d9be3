/* tests/c/random_graph.h - seeded random graphs over most ops, for fuzz tests. Every graph verifies
 * and needs no guard, so it runs for any sizes. Values stay tame enough to be finite mostly. */
#ifndef CC_RANDOM_GRAPH_H
#define CC_RANDOM_GRAPH_H

#include "ir/build.h"
#include "ref_inputs.h"

typedef struct {
    CcGraph *g;
    uint64_t *seed;
    CcStatus *st;
    CcDim n[3], one, zero;
} Random;

static inline uint32_t
random_below(Random *q, uint32_t n)
{
    return (uint32_t)(ref_random(q->seed) >> 33) % n;
}

static inline CcRef
random_node(Random *q)
{
    return 1 + random_below(q, q->g->len - 1);
}

/* Some node with the dtype and shape of `like`, possibly itself. */
static inline CcRef
random_like(Random *q, CcRef like)
{
    CcRef r = random_node(q);

    for (uint32_t k = 0; k < q->g->len; k++, r = r + 1 < q->g->len ? r + 1 : 1) {
        if (q->g->node[r].dtype == q->g->node[like].dtype && cc_same_shape(q->g, r, like)) {
            return r;
        }
    }
    return like;
}

static inline CcRef
random_const_like(Random *q, CcRef like)
{
    static const double value[] = {0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -0.0, 0.1};
    CcDim dim[CC_MAX_NDIM];
    CcDtype dt = (CcDtype)q->g->node[like].dtype;
    CcRef c = cc_build_const_f64(q->g, dt, value[random_below(q, 8)], q->st);

    for (uint32_t i = 0; i < q->g->node[like].ndim; i++) {
        dim[i] = cc_shape(q->g, like)[i];
    }
    return cc_build_full(q->g, c, q->g->node[like].ndim, dim, q->st);
}

static inline CcRef
random_ew(Random *q, CcRef a)
{
    static const CcOp unary[] = {CC_OP_NEG, CC_OP_ABS, CC_OP_SIGN, CC_OP_SQRT, CC_OP_SQUARE,
                                 CC_OP_EXP, CC_OP_TANH, CC_OP_RELU, CC_OP_FLOOR, CC_OP_ISNAN,
                                 CC_OP_LNOT, CC_OP_BNOT, CC_OP_GELU, CC_OP_SIGMOID};
    static const CcOp binary[] = {CC_OP_ADD, CC_OP_SUB, CC_OP_MUL, CC_OP_DIV, CC_OP_MAXIMUM,
                                  CC_OP_MINIMUM, CC_OP_FMAX, CC_OP_EQ, CC_OP_LT, CC_OP_GE,
                                  CC_OP_LAND, CC_OP_LOR, CC_OP_BAND, CC_OP_BXOR, CC_OP_COPYSIGN,
                                  CC_OP_FLOORDIV, CC_OP_POW};
    static const CcDtype to[] = {CC_DTYPE_F32, CC_DTYPE_F64, CC_DTYPE_I32, CC_DTYPE_I64,
                                 CC_DTYPE_BOOL, CC_DTYPE_U8};
    uint32_t pick = random_below(q, 8);
    CcDtype dt = (CcDtype)q->g->node[a].dtype;

    if (pick == 0) {                    /* float -> integer is not portable out of range */
        CcDtype want = to[random_below(q, 6)];
        return cc_dtype_is_float(dt) && cc_dtype_is_int(want) ? 0
                                                              : cc_build_cast(q->g, a, want, q->st);
    }
    if (pick < 3) {
        return cc_build_unary(q->g, unary[random_below(q, 14)], a, q->st);
    }
    if (pick == 3) {
        CcRef c = random_like(q, a), cond = cc_build_binary(q->g, CC_OP_NE, a, c, q->st);
        return cc_build_where(q->g, cond, c, a, q->st);
    }
    CcRef b = pick < 6 ? random_like(q, a) : random_const_like(q, a);
    CcOp op = binary[random_below(q, 17)];
    if (op == CC_OP_POW && !cc_dtype_is_float(dt)) {
        return 0;
    }
    return pick & 1 ? cc_build_binary(q->g, op, a, b, q->st)
                    : cc_build_binary(q->g, op, b, a, q->st);
}

static inline CcRef
random_slice(Random *q, CcRef a, bool update)
{
    CcDim start[CC_MAX_NDIM], size[CC_MAX_NDIM];
    int64_t step[CC_MAX_NDIM];

    for (uint32_t i = 0; i < q->g->node[a].ndim; i++) {
        CcDim n = cc_shape(q->g, a)[i], two = cc_dim_const(q->g, 2, q->st);
        CcDim last = cc_dim_make(q->g, CC_DIM_SUB, n, q->one, q->st);
        uint32_t how = random_below(q, 4);      /* all, every second, reversed, all */
        start[i] = how == 2 ? last : q->zero;
        step[i] = how == 1 ? 2 : how == 2 ? -1 : 1;
        CcDim half = cc_dim_make(q->g, CC_DIM_FLOORDIV,
                                 cc_dim_make(q->g, CC_DIM_ADD, n, q->one, q->st), two, q->st);
        size[i] = how == 1 ? half : n;
    }
    CcRef part = cc_build_slice(q->g, a, start, step, size, q->st);
    return update ? cc_build_update(q->g, random_like(q, a), part, start, step, q->st) : part;
}

static inline CcRef
random_move(Random *q, CcRef a)
{
    uint32_t ndim = q->g->node[a].ndim;
    uint8_t perm[CC_MAX_NDIM];
    CcDim dim[CC_MAX_NDIM + 1], flat;

    for (uint32_t i = 0; i < ndim; i++) {
        perm[i] = (uint8_t)(ndim - 1 - i);
        dim[i + 1] = cc_shape(q->g, a)[i];
    }
    switch (random_below(q, 8)) {
    case 0:
        return cc_build_transpose(q->g, a, perm, q->st);
    case 1:
        flat = cc_numel(q->g, a, q->st);
        return cc_build_reshape(q->g, a, 1, &flat, q->st);
    case 2:
        return cc_build_expand(q->g, a, 1, q->st);
    case 3:
        dim[0] = q->n[random_below(q, 3)];
        return ndim >= 3 ? 0 : cc_build_broadcast(q->g, a, (uint8_t)(ndim + 1), dim, q->st);
    case 4:
        return random_slice(q, a, false);
    case 5:
        return random_slice(q, a, true);
    case 6:
        return ndim == 0 ? 0
                         : cc_build_concat(q->g, (CcRef[2]){a, random_like(q, a)}, 2,
                                           random_below(q, ndim), q->st);
    default:
        for (uint32_t i = 0; i < ndim; i++) {
            dim[i] = random_below(q, 2) ? q->zero : q->one;
        }
        return cc_build_pad(q->g, a, cc_build_const_f64(q->g, (CcDtype)q->g->node[a].dtype, 1.0,
                                                        q->st), dim, dim, q->st);
    }
}

static inline CcRef
random_reduce(Random *q, CcRef a)
{
    static const CcOp op[] = {CC_OP_SUM, CC_OP_PROD, CC_OP_MAX, CC_OP_MIN, CC_OP_ANY, CC_OP_ALL,
                              CC_OP_ARGMAX};
    uint32_t ndim = q->g->node[a].ndim;
    uint64_t axes = random_below(q, 1u << ndim);
    bool keep = random_below(q, 2);

    switch (random_below(q, 5)) {
    case 0:
        return cc_build_moment(q->g, random_below(q, 2) ? CC_OP_VAR : CC_OP_STD, a, axes,
                               random_below(q, 2), keep, q->st);
    case 1:
        return cc_build_moment(q->g, CC_OP_MEAN, a, axes, 0, keep, q->st);
    case 2:
        return ndim == 0 ? 0
                         : cc_build_along(q->g, random_below(q, 2) ? CC_OP_SOFTMAX : CC_OP_CUMSUM,
                                          a, random_below(q, ndim), q->st);
    default:
        return cc_build_reduce(q->g, op[random_below(q, 7)], a, axes, keep, q->st);
    }
}

/* A graph of about `size` nodes with a few outputs. Failed builds are tried again: st is not
 * checked here. */
static inline void
random_graph(CcGraph *g, uint64_t *seed, uint32_t size)
{
    static const CcDtype dt[] = {CC_DTYPE_F64, CC_DTYPE_F32, CC_DTYPE_I32, CC_DTYPE_BOOL,
                                 CC_DTYPE_F64};
    CcStatus st = {0};
    Random q = {.g = g, .seed = seed, .st = &st};

    cc_graph_init(g);
    for (uint32_t k = 0; k < 3; k++) {
        q.n[k] = cc_dim_sym(g, k + 1, &st);
    }
    q.one = cc_dim_const(g, 1, &st);
    q.zero = cc_dim_const(g, 0, &st);
    for (uint32_t k = 0; k < 5; k++) {
        uint8_t ndim = (uint8_t)(k < 3 ? 2 : random_below(&q, 3));
        CcDim dim[2] = {q.n[k < 3 ? k : random_below(&q, 3)], q.n[random_below(&q, 3)]};
        cc_build_param(g, dt[k], ndim, dim, (CcLayout)random_below(&q, 3), &st);
    }
    cc_build_scalar_param(g, CC_DTYPE_F64, 0, &st);
    for (uint32_t tries = 0; g->len < size && tries < 20 * size; tries++) {
        CcRef a = random_node(&q);
        uint32_t kind = random_below(&q, 6);
        CcRef r = kind < 3 ? random_ew(&q, a)
                : kind < 5 ? random_move(&q, a)
                           : random_reduce(&q, a);
        if (r != 0 && random_below(&q, 4) == 0 && cc_node_faults(g, r) != 0) {
            g->node[r].flags |= CC_NODE_FAULT;
        }
    }
    for (uint32_t k = 0; k < 4; k++) {
        cc_graph_add_output(g, k == 0 ? g->len - 1 : random_node(&q), CC_OUT_ARRAY, NULL, &st);
    }
}

#endif
