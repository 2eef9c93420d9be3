/* pass/grad.c - reverse mode: appends the nodes of the gradient of a 0-d node.
 *
 * Needs dtypes and shapes. Works on primitives and on composites (whose own rules are cheaper and
 * more accurate than those of their pieces). Changes no existing node. New nodes are
 * primitive or HEAVY, carry no fault marks and the `where` of the node they are the gradient of.
 *
 * A node is *active* when a wanted node reaches it through floats (or EXTERN results) and it is not
 * cut off by an op whose row says `zero` (comparisons, floor, sign, argmax ...: derivative 0). The
 * walk goes from the loss down and visits active nodes that have an adjoint; a row that says `none`
 * there is an error, never a silent zero.
 *
 * Conventions at ties and kinks, those of torch:
 *   MAXIMUM MINIMUM  half to each operand where they are equal; all of it to each at a NaN
 *   FMAX FMIN        all to the first operand where they are equal
 *   MAX MIN          evenly among the elements that equal the result (amax; max() over everything)
 *   MAXPOOL2D        the first maximum of the window
 *   ABS              0 at 0.   RELU: 0 at 0, passes at NaN.   COPYSIGN: 0 where the first is 0
 *   POW              0 for the base where the exponent is 0, 0 for the exponent where the base is 0
 *                    and the exponent >= 0. SQRT at 0 is inf. STD: 0 where the result is 0
 *   MOD FMOD         derivative of a - b*floor(a/b), the quotient held constant
 *   PROD             products of the others, so zeros are right. CUMPROD likewise: O(n*n) memory
 *   CAST             cast back. SCATTER_ADD, GATHER, UPDATE: places get what was read from them */
#include "grad.h"

#include "../base/mem.h"

/* -- Rules by name ------------------------------------------------------------------------ */

typedef bool (*GradRule)(Grad *gr, CcRef r, CcRef adj);

bool
pass_vjp_none(Grad *gr, CcRef r, CcRef adj)
{
    (void)adj;
    return cc_fail(gr->st, CC_REASON_NO_GRADIENT, "%%%u: %s", r, cc_info(gr->g, r)->name);
}

bool
pass_vjp_zero(Grad *gr, CcRef r, CcRef adj)
{
    (void)gr, (void)r, (void)adj;
    return true;
}

static const GradRule grad_rule[CC_OP__COUNT] = {
#define CC_OP(name, n, cls, flags, dtype, shape, attrs, exact, ff, fi, fixed, vjp, text)          \
    [CC_OP_##name] = pass_vjp_##vjp,
#include "../ir/op.def"
#undef CC_OP
};

/* -- The walk ------------------------------------------------------------------------------- */

static void
grad_mark_active(Grad *gr, CcRef last)
{
    const CcGraph *g = gr->g;

    for (CcRef r = 1; r <= last; r++) {
        const CcNode *nd = &g->node[r];
        bool carries = cc_dtype_is_float((CcDtype)nd->dtype) || nd->dtype == CC_DTYPE_OPAQUE;
        for (uint32_t i = 0; i < nd->narg && carries && grad_rule[nd->op] != pass_vjp_zero; i++) {
            gr->active[r] |= gr->active[cc_arg(g, r, i)];
        }
    }
}

static bool
grad_walk(Grad *gr, CcRef loss)
{
    CcGraph *g = gr->g;

    for (CcRef r = loss; r >= 1; r--) {
        bool inner = false;
        for (uint32_t i = 0; i < g->node[r].narg; i++) {
            inner = inner || gr->active[cc_arg(g, r, i)];
        }
        if (!inner || !gr->active[r] || gr->adj[r] == 0) {
            continue;
        }
        CcRef first = g->len;
        if (!grad_rule[g->node[r].op](gr, r, gr->adj[r])) {
            return false;
        }
        for (CcRef piece = first; piece < g->len; piece++) {
            g->node[piece].where = g->node[r].where;
        }
    }
    return true;
}

bool
pass_grad(CcGraph *g, CcRef loss, const CcRef *wrt, uint32_t nwrt, CcRef *grads_out, CcStatus *st)
{
    CcRef len = g->len;
    Grad gr = {.g = g, .st = st};
    bool ok = false;

    if (loss == 0 || loss >= len || g->node[loss].ndim != 0
        || !cc_dtype_is_float((CcDtype)g->node[loss].dtype)) {
        return cc_fail(st, CC_REASON_BAD_OPERANDS, "the loss is no 0-d float");
    }
    gr.adj = cc_calloc(len, sizeof(*gr.adj));
    gr.active = cc_calloc(len, 1);
    if (gr.adj == NULL || gr.active == NULL) {
        cc_fail(st, CC_REASON_NO_MEMORY, "gradient of %u nodes", len);
        goto done;
    }
    for (uint32_t i = 0; i < nwrt; i++) {
        if (wrt[i] == 0 || wrt[i] >= len || !cc_dtype_is_float((CcDtype)g->node[wrt[i]].dtype)) {
            cc_fail(st, CC_REASON_NO_GRADIENT, "%%%u is no float", wrt[i]);
            goto done;
        }
        gr.active[wrt[i]] = 1;
    }
    grad_mark_active(&gr, loss);
    gr.adj[loss] = cc_build_const_f64(g, (CcDtype)g->node[loss].dtype, 1.0, st);
    if (gr.adj[loss] == 0 || !grad_walk(&gr, loss)) {
        goto done;
    }
    for (uint32_t i = 0; i < nwrt; i++) {
        grads_out[i] = gr.adj[wrt[i]] != 0 ? gr.adj[wrt[i]] : grad_const(&gr, 0.0, wrt[i]);
        if (grads_out[i] == 0) {
            goto done;
        }
    }
    ok = true;
done:
    cc_free(gr.adj);
    cc_free(gr.active);
    return ok;
}
