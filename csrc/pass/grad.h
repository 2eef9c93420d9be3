/* pass/grad.h - what the derivative rules share: grad.c walks, grad_ew.c, grad_move.c and
 * grad_heavy.c hold the rules.
 *
 * A rule vjp_x(gr, r, adj) is called for an active node r with its adjoint (same dtype and shape)
 * and adds to the adjoints of r's operands. What it adds for operands that are not active is
 * dropped. It returns false with gr->st filled. All builders take 0 for "failed before" and
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
    bool vjp_##vjp(Grad *gr, CcRef r, CcRef adj);
#include "../ir/op.def"
#undef CC_OP

CcDtype grad_dtype(const Grad *gr, CcRef r);

/* True when operand i of r is active. */
bool grad_wants(const Grad *gr, CcRef r, uint32_t i);

/* Add `part` to the adjoint of operand i of r. */
bool grad_add(Grad *gr, CcRef r, uint32_t i, CcRef part);

/* A constant of the dtype and in the shape of `like`. */
CcRef grad_const(Grad *gr, double value, CcRef like);

/* v in the shape of `like`: NumPy's broadcast. */
CcRef grad_spread(Grad *gr, CcRef v, CcRef like);

CcRef grad_1(Grad *gr, CcOp op, CcRef a);
CcRef grad_2(Grad *gr, CcOp op, CcRef a, CcRef b);
CcRef grad_where(Grad *gr, CcRef cond, CcRef a, CcRef b);
/* a * value */
CcRef grad_scale(Grad *gr, CcRef a, double value);

/* The dims of r copied out of the pool; returns ndim. */
uint8_t grad_shape(const Grad *gr, CcRef r, CcDim *dim);

#endif
