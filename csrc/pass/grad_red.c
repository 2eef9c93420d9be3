/* pass/grad_red.c - derivative rules of reductions, scans and softmax. Conventions: grad.c. */
#include "grad.h"

#define MUL(a, b) grad_2(gr, CC_OP_MUL, a, b)
#define DIV(a, b) grad_2(gr, CC_OP_DIV, a, b)
#define SUB(a, b) grad_2(gr, CC_OP_SUB, a, b)

/* v, which lacks the reduced axes, in the shape of operand 0 of r. */
static CcRef
red_spread(Grad *gr, CcRef r, CcRef v, uint64_t axes)
{
    return v == 0 ? 0
                  : grad_spread(gr, cc_build_expand(gr->g, v, axes, gr->st), cc_arg(gr->g, r, 0));
}

static CcRef
red_sum(Grad *gr, CcRef v, uint64_t axes, bool keepdims)
{
    return v == 0 ? 0 : cc_build_reduce(gr->g, CC_OP_SUM, v, axes, keepdims, gr->st);
}

/* max(n - less, 0) in the shape of `like`, n = number of elements under the axes of r's operand */
static CcRef
red_count(Grad *gr, CcRef r, uint64_t axes, int64_t less, CcRef like)
{
    CcGraph *g = gr->g;
    CcRef x = cc_arg(g, r, 0);
    CcDim n = cc_dim_const(g, 1, gr->st), by = cc_dim_const(g, less, gr->st);
    CcDim zero = cc_dim_const(g, 0, gr->st);

    for (uint32_t i = 0; n != 0 && i < g->node[x].ndim; i++) {
        if ((axes >> i & 1) != 0) {
            n = cc_dim_make(g, CC_DIM_MUL, n, cc_shape(g, x)[i], gr->st);
        }
    }
    if (less != 0 && n != 0 && by != 0) {
        n = cc_dim_make(g, CC_DIM_SUB, n, by, gr->st);
        n = n == 0 || zero == 0 ? 0 : cc_dim_make(g, CC_DIM_MAX, n, zero, gr->st);
    }
    if (n == 0 || by == 0 || zero == 0 || like == 0) {
        return 0;
    }
    return grad_spread(gr, cc_build_size(g, n, grad_dtype(gr, r), gr->st), like);
}

/* -- Reductions --------------------------------------------------------------------------- */

bool
pass_vjp_sum(Grad *gr, CcRef r, CcRef adj)
{
    return grad_add(gr, r, 0, red_spread(gr, r, adj, (uint64_t)cc_attrs(gr->g, r)[0]));
}

bool
pass_vjp_mean(Grad *gr, CcRef r, CcRef adj)
{
    uint64_t axes = (uint64_t)cc_attrs(gr->g, r)[0];
    CcRef each = DIV(adj, red_count(gr, r, axes, 0, adj));

    return grad_add(gr, r, 0, red_spread(gr, r, each, axes));
}

/* The derivative of VAR along `adj`: adj * 2 / (n - ddof) * (x - mean(x)) */
static CcRef
var_slope(Grad *gr, CcRef r, CcRef adj)
{
    uint64_t axes = (uint64_t)cc_attrs(gr->g, r)[0];
    int64_t ddof = cc_attrs(gr->g, r)[1];
    CcRef x = cc_arg(gr->g, r, 0);
    CcRef mean = DIV(red_sum(gr, x, axes, false), red_count(gr, r, axes, 0, r));
    CcRef off = SUB(x, red_spread(gr, r, mean, axes));
    CcRef factor = DIV(grad_scale(gr, adj, 2.0), red_count(gr, r, axes, ddof, r));

    return MUL(red_spread(gr, r, factor, axes), off);
}

bool
pass_vjp_var(Grad *gr, CcRef r, CcRef adj)
{
    return grad_add(gr, r, 0, var_slope(gr, r, adj));
}

bool
pass_vjp_std(Grad *gr, CcRef r, CcRef adj)
{
    CcRef zero = grad_const(gr, 0.0, r);
    CcRef slope = DIV(adj, grad_scale(gr, r, 2.0));
    CcRef safe = grad_where(gr, grad_2(gr, CC_OP_EQ, r, zero), zero, slope);

    return safe != 0 && grad_add(gr, r, 0, var_slope(gr, r, safe));
}

/* Evenly among the elements that equal the result. */
static bool
grad_red_extreme(Grad *gr, CcRef r, CcRef adj)
{
    uint64_t axes = (uint64_t)cc_attrs(gr->g, r)[0];
    CcRef x = cc_arg(gr->g, r, 0);
    CcRef hit = grad_2(gr, CC_OP_EQ, x, red_spread(gr, r, r, axes));
    CcRef mask = hit == 0 ? 0 : cc_build_cast(gr->g, hit, grad_dtype(gr, x), gr->st);
    CcRef each = DIV(adj, red_sum(gr, mask, axes, false));

    return grad_add(gr, r, 0, MUL(red_spread(gr, r, each, axes), mask));
}

bool
pass_vjp_max(Grad *gr, CcRef r, CcRef adj)
{
    return grad_red_extreme(gr, r, adj);
}

bool
pass_vjp_min(Grad *gr, CcRef r, CcRef adj)
{
    return grad_red_extreme(gr, r, adj);
}

/* -- Products ------------------------------------------------------------------------------ */

static CcRef
flip_last(Grad *gr, CcRef v)
{
    return v == 0 ? 0
                  : cc_build_flip(gr->g, v, UINT64_C(1) << (gr->g->node[v].ndim - 1), gr->st);
}

/* Along the last axis: 1, v0, v0*v1, ...: the product of what stands before each element. */
static CcRef
products_before(Grad *gr, CcRef v)
{
    CcGraph *g = gr->g;
    CcDim size[CC_MAX_NDIM], start[CC_MAX_NDIM];
    int64_t step[CC_MAX_NDIM];
    CcDim zero = cc_dim_const(g, 0, gr->st), one = cc_dim_const(g, 1, gr->st);

    if (v == 0 || zero == 0 || one == 0) {
        return 0;
    }
    uint8_t ndim = grad_shape(gr, v, size);
    for (uint32_t i = 0; i < ndim; i++) {
        start[i] = zero;
        step[i] = 1;
    }
    size[ndim - 1] = cc_dim_make(g, CC_DIM_SUB, size[ndim - 1], one, gr->st);
    if (size[ndim - 1] == 0) {
        return 0;
    }
    CcRef all = cc_build_along(g, CC_OP_CUMPROD, v, ndim - 1u, gr->st);
    CcRef most = cc_build_slice(g, all, start, step, size, gr->st);
    size[ndim - 1] = one;
    CcRef value = cc_build_const_f64(g, grad_dtype(gr, v), 1.0, gr->st);
    CcRef part[2] = {0, most};
    part[0] = value == 0 ? 0 : cc_build_full(g, value, ndim, size, gr->st);
    return part[0] == 0 || most == 0 ? 0 : cc_build_concat(g, part, 2, ndim - 1u, gr->st);
}

/* The reduced axes moved behind the others: perm gets the order, the result is how many stay. */
static uint32_t
axes_last(uint32_t ndim, uint64_t axes, uint8_t *perm)
{
    uint32_t n = 0, kept;

    for (uint32_t i = 0; i < ndim; i++) {
        if ((axes >> i & 1) == 0) {
            perm[n++] = (uint8_t)i;
        }
    }
    kept = n;
    for (uint32_t i = 0; i < ndim; i++) {
        if ((axes >> i & 1) != 0) {
            perm[n++] = (uint8_t)i;
        }
    }
    return kept;
}

/* adj * product of all the other elements: products before times products after. */
bool
pass_vjp_prod(Grad *gr, CcRef r, CcRef adj)
{
    CcGraph *g = gr->g;
    uint64_t axes = (uint64_t)cc_attrs(g, r)[0];
    CcRef x = cc_arg(g, r, 0);
    uint8_t perm[CC_MAX_NDIM], back[CC_MAX_NDIM];
    CcDim moved_dim[CC_MAX_NDIM], flat_dim[CC_MAX_NDIM + 1];
    uint32_t ndim = g->node[x].ndim, kept = axes_last(ndim, axes, perm);

    if (axes == 0) {
        return grad_add(gr, r, 0, adj);
    }
    for (uint32_t i = 0; i < ndim; i++) {
        back[perm[i]] = (uint8_t)i;
    }
    CcRef moved = cc_build_transpose(g, x, perm, gr->st);
    if (moved == 0) {
        return false;
    }
    grad_shape(gr, moved, moved_dim);
    CcDim count = cc_dim_const(g, 1, gr->st);
    for (uint32_t i = 0; i < ndim; i++) {
        if (i < kept) {
            flat_dim[i] = moved_dim[i];
        }
        else if (count != 0) {
            count = cc_dim_make(g, CC_DIM_MUL, count, moved_dim[i], gr->st);
        }
    }
    flat_dim[kept] = count;
    if (count == 0 || cc_dim_equals(g, count, 0)) {
        return count != 0 && grad_add(gr, r, 0, grad_const(gr, 0.0, x));
    }
    CcRef flat = cc_build_reshape(g, moved, (uint8_t)(kept + 1), flat_dim, gr->st);
    CcRef after = flip_last(gr, products_before(gr, flip_last(gr, flat)));
    CcRef others = MUL(products_before(gr, flat), after);
    CcRef shaped = others == 0 ? 0
                               : cc_build_reshape(g, others, (uint8_t)ndim, moved_dim, gr->st);
    CcRef home = shaped == 0 ? 0 : cc_build_transpose(g, shaped, back, gr->st);
    return grad_add(gr, r, 0, MUL(red_spread(gr, r, adj, axes), home));
}

/* -- Scans ---------------------------------------------------------------------------------- */

/* Sum of v[i:] at i, along an axis. */
static CcRef
sum_from_here(Grad *gr, CcRef v, uint32_t axis)
{
    CcRef turned = v == 0 ? 0 : cc_build_flip(gr->g, v, UINT64_C(1) << axis, gr->st);
    CcRef sums = turned == 0 ? 0 : cc_build_along(gr->g, CC_OP_CUMSUM, turned, axis, gr->st);

    return sums == 0 ? 0 : cc_build_flip(gr->g, sums, UINT64_C(1) << axis, gr->st);
}

bool
pass_vjp_cumsum(Grad *gr, CcRef r, CcRef adj)
{
    return grad_add(gr, r, 0, sum_from_here(gr, adj, (uint32_t)cc_attrs(gr->g, r)[0]));
}

/* 0, 1, 2 ... of dim n as floats of r's dtype, as a column [n,1] or a row [1,n] or [n]. */
static CcRef
count_up(Grad *gr, CcRef r, CcDim n, bool column)
{
    CcDim dim[2], one = cc_dim_const(gr->g, 1, gr->st);
    CcRef start = cc_build_const_f64(gr->g, grad_dtype(gr, r), 0.0, gr->st);
    CcRef step = cc_build_const_f64(gr->g, grad_dtype(gr, r), 1.0, gr->st);
    CcRef flat = start == 0 || step == 0 ? 0 : cc_build_iota(gr->g, start, step, n, gr->st);

    dim[0] = column ? n : one;
    dim[1] = column ? one : n;
    return flat == 0 || one == 0 ? 0 : cc_build_reshape(gr->g, flat, 2, dim, gr->st);
}

/* x last, then [..., k, i]: product over k < j <= i of x[j], for every i >= k; 0 else. */
static CcRef
products_between(Grad *gr, CcRef x, CcRef r)
{
    CcGraph *g = gr->g;
    CcDim dim[CC_MAX_NDIM + 1];
    uint8_t ndim = grad_shape(gr, x, dim);
    CcDim n = dim[ndim - 1], one = cc_dim_const(g, 1, gr->st);

    if (ndim == CC_MAX_NDIM) {
        cc_fail(gr->st, CC_REASON_NO_GRADIENT, "%%%u: CUMPROD of %u axes", r, ndim);
        return 0;
    }
    if (one == 0) {
        return 0;
    }
    dim[ndim - 1] = one;
    dim[ndim] = n;
    CcRef wide = cc_build_reshape(g, x, (uint8_t)(ndim + 1), dim, gr->st);
    dim[ndim - 1] = n;
    wide = wide == 0 ? 0 : cc_build_broadcast(g, wide, (uint8_t)(ndim + 1), dim, gr->st);
    CcRef k = grad_spread(gr, count_up(gr, r, n, true), wide);
    CcRef i = grad_spread(gr, count_up(gr, r, n, false), wide);
    CcRef later = grad_2(gr, CC_OP_GT, i, k);
    CcRef factors = wide == 0 ? 0 : grad_where(gr, later, wide, grad_const(gr, 1.0, wide));
    CcRef runs = factors == 0 ? 0 : cc_build_along(g, CC_OP_CUMPROD, factors, ndim, gr->st);
    CcRef reached = grad_2(gr, CC_OP_GE, i, k);
    return runs == 0 ? 0 : grad_where(gr, reached, runs, grad_const(gr, 0.0, runs));
}

/* dx[k] = (product of x before k) * sum over i >= k of adj[i] * (product of x after k up to i) */
bool
pass_vjp_cumprod(Grad *gr, CcRef r, CcRef adj)
{
    CcGraph *g = gr->g;
    uint32_t axis = (uint32_t)cc_attrs(g, r)[0];
    CcRef x = cc_arg(g, r, 0);
    uint32_t ndim = g->node[x].ndim;
    uint8_t perm[CC_MAX_NDIM], back[CC_MAX_NDIM];
    CcDim dim[CC_MAX_NDIM + 1];

    axes_last(ndim, UINT64_C(1) << axis, perm);
    for (uint32_t i = 0; i < ndim; i++) {
        back[perm[i]] = (uint8_t)i;
    }
    CcRef last = cc_build_transpose(g, x, perm, gr->st);
    CcRef slope = cc_build_transpose(g, adj, perm, gr->st);
    CcRef between = last == 0 || slope == 0 ? 0 : products_between(gr, last, r);
    if (between == 0) {
        return false;
    }
    grad_shape(gr, slope, dim);
    dim[ndim] = dim[ndim - 1];
    dim[ndim - 1] = cc_dim_const(g, 1, gr->st);
    CcRef wide = dim[ndim - 1] == 0
                     ? 0
                     : cc_build_reshape(g, slope, (uint8_t)(ndim + 1), dim, gr->st);
    CcRef sums = red_sum(gr, MUL(grad_spread(gr, wide, between), between), UINT64_C(1) << ndim,
                         false);
    CcRef each = MUL(sums, products_before(gr, last));
    return each != 0 && grad_add(gr, r, 0, cc_build_transpose(g, each, back, gr->st));
}

/* -- Softmax -------------------------------------------------------------------------------- */

/* y * (adj - sum(adj * y)) */
bool
pass_vjp_softmax(Grad *gr, CcRef r, CcRef adj)
{
    uint64_t axes = UINT64_C(1) << cc_attrs(gr->g, r)[0];
    CcRef mean = grad_spread(gr, red_sum(gr, MUL(adj, r), axes, true), r);

    return grad_add(gr, r, 0, MUL(r, SUB(adj, mean)));
}

/* adj - exp(y) * sum(adj) */
bool
pass_vjp_logsoftmax(Grad *gr, CcRef r, CcRef adj)
{
    uint64_t axes = UINT64_C(1) << cc_attrs(gr->g, r)[0];
    CcRef sum = grad_spread(gr, red_sum(gr, adj, axes, true), r);

    return grad_add(gr, r, 0, SUB(adj, MUL(grad_1(gr, CC_OP_EXP, r), sum)));
}
