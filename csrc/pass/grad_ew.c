/* pass/grad_ew.c - derivative rules of elementwise ops. Conventions: grad.c. */
#include "grad.h"

#define MUL(a, b) grad_2(gr, CC_OP_MUL, a, b)
#define DIV(a, b) grad_2(gr, CC_OP_DIV, a, b)
#define ADD(a, b) grad_2(gr, CC_OP_ADD, a, b)
#define SUB(a, b) grad_2(gr, CC_OP_SUB, a, b)
#define NEG(a) grad_1(gr, CC_OP_NEG, a)
#define CONST(v) grad_const(gr, v, r)

/* A rule of one operand x (result y): what is added to x's adjoint. */
#define RULE_1(name, formula)                                                                     \
    bool pass_vjp_##name(Grad *gr, CcRef r, CcRef adj)                                            \
    {                                                                                             \
        CcRef x = cc_arg(gr->g, r, 0), y = r;                                                     \
        (void)x, (void)y;                                                                         \
        return grad_add(gr, r, 0, formula);                                                       \
    }

/* -- Arithmetic ----------------------------------------------------------------------------- */

RULE_1(neg, NEG(adj))
RULE_1(abs, MUL(adj, grad_1(gr, CC_OP_SIGN, x)))
RULE_1(square, MUL(adj, grad_scale(gr, x, 2.0)))
RULE_1(recip, NEG(MUL(adj, MUL(y, y))))
RULE_1(sqrt, DIV(adj, grad_scale(gr, y, 2.0)))
RULE_1(cbrt, DIV(adj, grad_scale(gr, MUL(y, y), 3.0)))
RULE_1(cast, cc_build_cast(gr->g, adj, grad_dtype(gr, x), gr->st))
RULE_1(relu, grad_where(gr, grad_2(gr, CC_OP_LE, y, CONST(0.0)), CONST(0.0), adj))

bool
pass_vjp_add(Grad *gr, CcRef r, CcRef adj)
{
    return grad_add(gr, r, 0, adj) && grad_add(gr, r, 1, adj);
}

bool
pass_vjp_sub(Grad *gr, CcRef r, CcRef adj)
{
    return grad_add(gr, r, 0, adj) && (!grad_wants(gr, r, 1) || grad_add(gr, r, 1, NEG(adj)));
}

bool
pass_vjp_mul(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1);

    return (!grad_wants(gr, r, 0) || grad_add(gr, r, 0, MUL(adj, b)))
        && (!grad_wants(gr, r, 1) || grad_add(gr, r, 1, MUL(adj, a)));
}

bool
pass_vjp_div(Grad *gr, CcRef r, CcRef adj)
{
    CcRef b = cc_arg(gr->g, r, 1);

    return (!grad_wants(gr, r, 0) || grad_add(gr, r, 0, DIV(adj, b)))
        && (!grad_wants(gr, r, 1) || grad_add(gr, r, 1, NEG(MUL(adj, DIV(r, b)))));
}

static bool
grad_remainder(Grad *gr, CcRef r, CcRef adj, CcRef quotient)
{
    return grad_add(gr, r, 0, adj) && grad_add(gr, r, 1, NEG(MUL(adj, quotient)));
}

bool
pass_vjp_mod(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1);

    return grad_remainder(gr, r, adj, grad_2(gr, CC_OP_FLOORDIV, a, b));
}

bool
pass_vjp_fmod(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1);

    return grad_remainder(gr, r, adj, grad_1(gr, CC_OP_TRUNC, DIV(a, b)));
}

/* a**b: constants 1 and 2 need no POW, and no WHERE is needed where b is a constant but 0. */
static CcRef
pow_base(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1), value = b;
    CcDtype dt = grad_dtype(gr, r);

    while (gr->g->node[value].op == CC_OP_BROADCAST || gr->g->node[value].op == CC_OP_RESHAPE) {
        value = cc_arg(gr->g, value, 0);
    }
    bool known = gr->g->node[value].op == CC_OP_CONST;
    double c = known ? cc_const_f64(dt, gr->g->node[value].bits) : 0;
    if (known && c == 0) {
        return CONST(0.0);
    }
    if (known && c == 1) {
        return adj;
    }
    if (known && c == 2) {
        return MUL(adj, grad_scale(gr, a, 2.0));
    }
    CcRef less = known ? CONST(c - 1) : SUB(b, CONST(1.0));
    CcRef slope = MUL(adj, MUL(b, grad_2(gr, CC_OP_POW, a, less)));
    return known ? slope
                 : grad_where(gr, grad_2(gr, CC_OP_EQ, b, CONST(0.0)), CONST(0.0), slope);
}

bool
pass_vjp_pow(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1);

    if (grad_wants(gr, r, 0) && !grad_add(gr, r, 0, pow_base(gr, r, adj))) {
        return false;
    }
    if (!grad_wants(gr, r, 1)) {
        return true;
    }
    CcRef flat = grad_2(gr, CC_OP_LAND, grad_2(gr, CC_OP_EQ, a, CONST(0.0)),
                        grad_2(gr, CC_OP_GE, b, CONST(0.0)));
    CcRef slope = MUL(adj, MUL(r, grad_1(gr, CC_OP_LOG, a)));
    return grad_add(gr, r, 1, grad_where(gr, flat, CONST(0.0), slope));
}

/* -- Choices ------------------------------------------------------------------------------- */

/* beats: LT for MINIMUM's first operand ... the comparison under which an operand gets nothing. */
static bool
grad_extreme(Grad *gr, CcRef r, CcRef adj, CcOp loses, CcOp wins)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1);
    CcRef shared = grad_where(gr, grad_2(gr, CC_OP_EQ, a, b), grad_scale(gr, adj, 0.5), adj);
    CcRef zero = CONST(0.0);

    return grad_add(gr, r, 0, grad_where(gr, grad_2(gr, loses, a, b), zero, shared))
        && grad_add(gr, r, 1, grad_where(gr, grad_2(gr, wins, a, b), zero, shared));
}

bool
pass_vjp_maximum(Grad *gr, CcRef r, CcRef adj)
{
    return grad_extreme(gr, r, adj, CC_OP_LT, CC_OP_GT);
}

bool
pass_vjp_minimum(Grad *gr, CcRef r, CcRef adj)
{
    return grad_extreme(gr, r, adj, CC_OP_GT, CC_OP_LT);
}

static bool
grad_extreme_number(Grad *gr, CcRef r, CcRef adj, CcOp first_wins)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1), zero = CONST(0.0);
    CcRef first = grad_2(gr, CC_OP_LOR, grad_2(gr, first_wins, a, b), grad_1(gr, CC_OP_ISNAN, b));

    return grad_add(gr, r, 0, grad_where(gr, first, adj, zero))
        && grad_add(gr, r, 1, grad_where(gr, first, zero, adj));
}

bool
pass_vjp_fmax(Grad *gr, CcRef r, CcRef adj)
{
    return grad_extreme_number(gr, r, adj, CC_OP_GE);
}

bool
pass_vjp_fmin(Grad *gr, CcRef r, CcRef adj)
{
    return grad_extreme_number(gr, r, adj, CC_OP_LE);
}

bool
pass_vjp_where(Grad *gr, CcRef r, CcRef adj)
{
    CcRef cond = cc_arg(gr->g, r, 0), zero = CONST(0.0);

    return grad_add(gr, r, 1, grad_where(gr, cond, adj, zero))
        && grad_add(gr, r, 2, grad_where(gr, cond, zero, adj));
}

/* The sign of the result over the sign of the operand; the second operand gets 0. */
bool
pass_vjp_copysign(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), zero = CONST(0.0);
    CcRef ratio = MUL(grad_1(gr, CC_OP_SIGN, a), grad_1(gr, CC_OP_SIGN, r));

    return grad_add(gr, r, 0, MUL(adj, ratio)) && grad_add(gr, r, 1, zero);
}

/* -- Exponentials, logarithms ------------------------------------------------------------------ */

#define LN2 0.69314718055994530942
#define LN10 2.30258509299404568402
#define TWO_OVER_SQRT_PI 1.12837916709551257390
#define ONE_OVER_SQRT_2PI 0.39894228040143267794
#define SQRT_HALF 0.70710678118654752440

RULE_1(exp, MUL(adj, y))
RULE_1(exp2, MUL(adj, grad_scale(gr, y, LN2)))
RULE_1(expm1, MUL(adj, ADD(y, CONST(1.0))))
RULE_1(log, DIV(adj, x))
RULE_1(log2, DIV(adj, grad_scale(gr, x, LN2)))
RULE_1(log10, DIV(adj, grad_scale(gr, x, LN10)))
RULE_1(log1p, DIV(adj, ADD(x, CONST(1.0))))
RULE_1(sigmoid, MUL(MUL(adj, SUB(CONST(1.0), y)), y))
RULE_1(erf, MUL(adj, grad_scale(gr, grad_1(gr, CC_OP_EXP, NEG(MUL(x, x))), TWO_OVER_SQRT_PI)))

bool
pass_vjp_logaddexp(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1);

    return grad_add(gr, r, 0, MUL(adj, grad_1(gr, CC_OP_SIGMOID, SUB(a, b))))
        && grad_add(gr, r, 1, MUL(adj, grad_1(gr, CC_OP_SIGMOID, SUB(b, a))));
}

/* x * cdf(x): cdf + x * pdf */
bool
pass_vjp_gelu(Grad *gr, CcRef r, CcRef adj)
{
    CcRef x = cc_arg(gr->g, r, 0);
    CcRef erf = grad_1(gr, CC_OP_ERF, grad_scale(gr, x, SQRT_HALF));
    CcRef cdf = grad_scale(gr, ADD(erf, CONST(1.0)), 0.5);
    CcRef bell = grad_1(gr, CC_OP_EXP, grad_scale(gr, MUL(x, x), -0.5));
    CcRef pdf = grad_scale(gr, bell, ONE_OVER_SQRT_2PI);

    return grad_add(gr, r, 0, MUL(adj, ADD(cdf, MUL(x, pdf))));
}

/* -- Trigonometry ------------------------------------------------------------------------------ */

/* sqrt(s*x*x + c) */
static CcRef
root_of(Grad *gr, CcRef x, double s, double c)
{
    CcRef square = MUL(x, x);

    return grad_1(gr, CC_OP_SQRT, ADD(s < 0 ? NEG(square) : square, grad_const(gr, c, x)));
}

RULE_1(sin, MUL(adj, grad_1(gr, CC_OP_COS, x)))
RULE_1(cos, NEG(MUL(adj, grad_1(gr, CC_OP_SIN, x))))
RULE_1(tan, MUL(adj, ADD(MUL(y, y), CONST(1.0))))
RULE_1(asin, DIV(adj, root_of(gr, x, -1, 1)))
RULE_1(acos, NEG(DIV(adj, root_of(gr, x, -1, 1))))
RULE_1(atan, DIV(adj, ADD(MUL(x, x), CONST(1.0))))
RULE_1(sinh, MUL(adj, grad_1(gr, CC_OP_COSH, x)))
RULE_1(cosh, MUL(adj, grad_1(gr, CC_OP_SINH, x)))
RULE_1(tanh, MUL(adj, SUB(CONST(1.0), MUL(y, y))))
RULE_1(asinh, DIV(adj, root_of(gr, x, 1, 1)))
RULE_1(acosh, DIV(adj, root_of(gr, x, 1, -1)))
RULE_1(atanh, DIV(adj, SUB(CONST(1.0), MUL(x, x))))

bool
pass_vjp_atan2(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1);
    CcRef part = DIV(adj, ADD(MUL(a, a), MUL(b, b)));

    return grad_add(gr, r, 0, MUL(part, b)) && grad_add(gr, r, 1, NEG(MUL(part, a)));
}

bool
pass_vjp_hypot(Grad *gr, CcRef r, CcRef adj)
{
    CcRef a = cc_arg(gr->g, r, 0), b = cc_arg(gr->g, r, 1);

    return grad_add(gr, r, 0, MUL(adj, DIV(a, r))) && grad_add(gr, r, 1, MUL(adj, DIV(b, r)));
}
