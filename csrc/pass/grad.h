/* pass/grad.h - what the derivative rules share: grad.c walks, grad_ew.c, grad_move.c and
 * grad_heavy.c hold the rules.
 *
 * A rule pass_vjp_x(gr, r, adj) is called for an active node r with its adjoint (same dtype and
 * shape) and adds to the adjoints of r's operands. What it adds for operands that are not active
 * is dropped. It returns false with gr->st filled. All helpers take 0 for "failed before" and
 * return 0, so a formula is checked once, by grad_add(). */
#ifndef CC_PASS_GRAD_H
#define CC_PASS_GRAD_H

#include "../ir/build.h"
#include "pass.h"

typedef struct {
    CcGraph *g;
    CcStatus *st;
    CcRef *adj;                         /* per node of the original graph; 0 = none so far */
    uint8_t *active;                    /* per node of the original graph */
} Grad;

#define CC_OP(name, n, cls, flags, dtype, shape, attrs, exact, ff, fi, fixed, vjp, text)          \
    bool pass_vjp_##vjp(Grad *gr, CcRef r, CcRef adj);
#include "../ir/op.def"
#undef CC_OP

static inline CcDtype
grad_dtype(const Grad *gr, CcRef r)
{
    return (CcDtype)gr->g->node[r].dtype;
}

/* True when operand i of r is active. */
static inline bool
grad_wants(const Grad *gr, CcRef r, uint32_t i)
{
    return gr->active[cc_arg(gr->g, r, i)] != 0;
}

/* Add `part` to the adjoint of operand i of r. */
static inline bool
grad_add(Grad *gr, CcRef r, uint32_t i, CcRef part)
{
    CcRef to = cc_arg(gr->g, r, i);

    if (part == 0) {
        return false;
    }
    if (!gr->active[to]) {
        return true;
    }
    gr->adj[to] = gr->adj[to] == 0 ? part : cc_build_binary(gr->g, CC_OP_ADD, gr->adj[to], part,
                                                            gr->st);
    return gr->adj[to] != 0;
}

/* The dims of r copied out of the pool; returns ndim. */
static inline uint8_t
grad_shape(const Grad *gr, CcRef r, CcDim *dim)
{
    for (uint32_t i = 0; i < gr->g->node[r].ndim; i++) {
        dim[i] = cc_shape(gr->g, r)[i];
    }
    return gr->g->node[r].ndim;
}

/* v in the shape of `like`: NumPy's broadcast. */
static inline CcRef
grad_spread(Grad *gr, CcRef v, CcRef like)
{
    CcDim dim[CC_MAX_NDIM];

    if (v == 0 || like == 0) {
        return 0;
    }
    uint8_t ndim = grad_shape(gr, like, dim);
    return cc_build_broadcast(gr->g, v, ndim, dim, gr->st);
}

/* A constant of the dtype and in the shape of `like`. */
static inline CcRef
grad_const(Grad *gr, double value, CcRef like)
{
    if (like == 0) {
        return 0;
    }
    return grad_spread(gr, cc_build_const_f64(gr->g, grad_dtype(gr, like), value, gr->st), like);
}

static inline CcRef
grad_1(Grad *gr, CcOp op, CcRef a)
{
    return a == 0 ? 0 : cc_build_unary(gr->g, op, a, gr->st);
}

static inline CcRef
grad_2(Grad *gr, CcOp op, CcRef a, CcRef b)
{
    return a == 0 || b == 0 ? 0 : cc_build_binary(gr->g, op, a, b, gr->st);
}

static inline CcRef
grad_where(Grad *gr, CcRef cond, CcRef a, CcRef b)
{
    return cond == 0 || a == 0 || b == 0 ? 0 : cc_build_where(gr->g, cond, a, b, gr->st);
}

/* a * value */
static inline CcRef
grad_scale(Grad *gr, CcRef a, double value)
{
    return grad_2(gr, CC_OP_MUL, a, grad_const(gr, value, a));
}

#endif
