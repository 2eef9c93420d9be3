/* pass/grad_move.c - derivative rules of moves, indexing and heavy ops. Conventions: grad.c.
 *
 * Moves are linear: each rule is the transpose of the move. */
#include "grad.h"

#include <string.h>

/* -- Moves ----------------------------------------------------------------------------------- */

static CcRef
move_zeros(Grad *gr, CcRef like)
{
    return grad_const(gr, 0.0, like);
}

bool
pass_vjp_reshape(Grad *gr, CcRef r, CcRef adj)
{
    CcDim dim[CC_MAX_NDIM];
    uint8_t ndim = grad_shape(gr, cc_arg(gr->g, r, 0), dim);

    return grad_add(gr, r, 0, cc_build_reshape(gr->g, adj, ndim, dim, gr->st));
}

bool
pass_vjp_transpose(Grad *gr, CcRef r, CcRef adj)
{
    uint8_t back[CC_MAX_NDIM];

    for (uint32_t i = 0; i < gr->g->node[r].ndim; i++) {
        back[cc_attrs(gr->g, r)[i]] = (uint8_t)i;
    }
    return grad_add(gr, r, 0, cc_build_transpose(gr->g, adj, back, gr->st));
}

/* Sum over the axes that were added or stretched. */
bool
pass_vjp_broadcast(Grad *gr, CcRef r, CcRef adj)
{
    CcGraph *g = gr->g;
    CcRef x = cc_arg(g, r, 0);
    uint32_t lead = (uint32_t)(g->node[r].ndim - g->node[x].ndim);
    uint64_t axes = (UINT64_C(1) << lead) - 1;
    CcDim dim[CC_MAX_NDIM];
    uint8_t ndim = grad_shape(gr, x, dim);

    for (uint32_t i = 0; i < ndim; i++) {
        if (!cc_dim_same(g, dim[i], cc_shape(g, r)[lead + i])) {
            axes |= UINT64_C(1) << (lead + i);
        }
    }
    CcRef sum = axes == 0 ? adj : cc_build_reduce(g, CC_OP_SUM, adj, axes, false, gr->st);
    return sum != 0 && grad_add(gr, r, 0, cc_build_reshape(g, sum, ndim, dim, gr->st));
}

/* start and step of a SLICE or UPDATE, copied out of the pool. */
static uint32_t
slice_of(const Grad *gr, CcRef r, CcDim *start, int64_t *step)
{
    uint32_t ndim = gr->g->node[cc_arg(gr->g, r, 0)].ndim;

    for (uint32_t i = 0; i < ndim; i++) {
        start[i] = (CcDim)cc_attrs(gr->g, r)[i];
        step[i] = cc_attrs(gr->g, r)[ndim + i];
    }
    return ndim;
}

bool
pass_vjp_slice(Grad *gr, CcRef r, CcRef adj)
{
    CcDim start[CC_MAX_NDIM];
    int64_t step[CC_MAX_NDIM];
    CcRef zeros = move_zeros(gr, cc_arg(gr->g, r, 0));

    slice_of(gr, r, start, step);
    return zeros != 0
        && grad_add(gr, r, 0, cc_build_update(gr->g, zeros, adj, start, step, gr->st));
}

bool
pass_vjp_update(Grad *gr, CcRef r, CcRef adj)
{
    CcRef value = cc_arg(gr->g, r, 1);
    CcDim start[CC_MAX_NDIM], size[CC_MAX_NDIM];
    int64_t step[CC_MAX_NDIM];

    slice_of(gr, r, start, step);
    grad_shape(gr, value, size);
    if (grad_wants(gr, r, 1)
        && !grad_add(gr, r, 1, cc_build_slice(gr->g, adj, start, step, size, gr->st))) {
        return false;
    }
    CcRef zeros = grad_wants(gr, r, 0) ? move_zeros(gr, value) : 0;
    return !grad_wants(gr, r, 0)
        || (zeros != 0
            && grad_add(gr, r, 0, cc_build_update(gr->g, adj, zeros, start, step, gr->st)));
}

bool
pass_vjp_concat(Grad *gr, CcRef r, CcRef adj)
{
    CcGraph *g = gr->g;
    uint32_t axis = (uint32_t)cc_attrs(g, r)[0], ndim = g->node[r].ndim;
    CcDim start[CC_MAX_NDIM], size[CC_MAX_NDIM], zero = cc_dim_const(g, 0, gr->st);
    int64_t step[CC_MAX_NDIM];

    for (uint32_t i = 0; i < ndim; i++) {
        start[i] = zero;
        step[i] = 1;
    }
    for (uint32_t k = 0; k < g->node[r].narg && zero != 0; k++) {
        grad_shape(gr, cc_arg(g, r, k), size);
        if (grad_wants(gr, r, k)
            && !grad_add(gr, r, k, cc_build_slice(g, adj, start, step, size, gr->st))) {
            return false;
        }
        start[axis] = cc_dim_make(g, CC_DIM_ADD, start[axis], size[axis], gr->st);
        if (start[axis] == 0) {
            return false;
        }
    }
    return zero != 0;
}

/* The array gets its part; the value all that is around it. */
bool
pass_vjp_pad(Grad *gr, CcRef r, CcRef adj)
{
    CcGraph *g = gr->g;
    CcRef x = cc_arg(g, r, 0);
    CcDim start[CC_MAX_NDIM], size[CC_MAX_NDIM];
    int64_t step[CC_MAX_NDIM];
    uint8_t ndim = grad_shape(gr, x, size);

    for (uint32_t i = 0; i < ndim; i++) {
        start[i] = (CcDim)cc_attrs(g, r)[i];
        step[i] = 1;
    }
    if (grad_wants(gr, r, 0)
        && !grad_add(gr, r, 0, cc_build_slice(g, adj, start, step, size, gr->st))) {
        return false;
    }
    if (!grad_wants(gr, r, 1)) {
        return true;
    }
    CcRef zeros = move_zeros(gr, x);
    CcRef frame = zeros == 0 ? 0 : cc_build_update(g, adj, zeros, start, step, gr->st);
    uint64_t axes = (UINT64_C(1) << ndim) - 1;
    return frame != 0
        && grad_add(gr, r, 1, cc_build_reduce(g, CC_OP_SUM, frame, axes, false, gr->st));
}

/* -- Indexing --------------------------------------------------------------------------------- */

bool
pass_vjp_gather(Grad *gr, CcRef r, CcRef adj)
{
    CcGraph *g = gr->g;
    uint32_t axis = (uint32_t)cc_attrs(g, r)[0];
    CcRef zeros = move_zeros(gr, cc_arg(g, r, 0));

    return zeros != 0
        && grad_add(gr, r, 0, cc_build_scatter(g, CC_OP_SCATTER_ADD, zeros, cc_arg(g, r, 1), adj,
                                               axis, gr->st));
}

bool
pass_vjp_scatter_add(Grad *gr, CcRef r, CcRef adj)
{
    uint32_t axis = (uint32_t)cc_attrs(gr->g, r)[0];

    return grad_add(gr, r, 0, adj)
        && (!grad_wants(gr, r, 2)
            || grad_add(gr, r, 2, cc_build_gather(gr->g, adj, cc_arg(gr->g, r, 1), axis, gr->st)));
}

/* -- Heavy ops ------------------------------------------------------------------------------ */

/* y = a' @ b', a' = a or its transpose: da' = adj @ b'^T, db' = a'^T @ adj, in stored order. */
bool
pass_vjp_matmul(Grad *gr, CcRef r, CcRef adj)
{
    CcGraph *g = gr->g;
    CcRef a = cc_arg(g, r, 0), b = cc_arg(g, r, 1);
    bool ta = cc_attrs(g, r)[0] != 0, tb = cc_attrs(g, r)[1] != 0;

    if (grad_wants(gr, r, 0)) {
        CcRef da = ta ? cc_build_matmul(g, b, adj, tb, true, gr->st)
                      : cc_build_matmul(g, adj, b, false, !tb, gr->st);
        if (!grad_add(gr, r, 0, da)) {
            return false;
        }
    }
    if (!grad_wants(gr, r, 1)) {
        return true;
    }
    CcRef db = tb ? cc_build_matmul(g, adj, a, true, ta, gr->st)
                  : cc_build_matmul(g, a, adj, !ta, false, gr->st);
    return grad_add(gr, r, 1, db);
}

/* One of the three convolutions over (a, b), with r's attributes; `like` gives the shape of _DX and
 * _DW. */
static CcRef
conv_like(Grad *gr, CcOp op, CcRef r, CcRef a, CcRef b, CcRef like)
{
    int64_t attr[9];
    CcDim dim[CC_MAX_NDIM];
    CcRef arg[2] = {a, b};
    CcSpec spec = {.op = op, .narg = 2, .arg = arg, .nattr = 9, .attr = attr, .shape = dim};

    memcpy(attr, cc_attrs(gr->g, r), sizeof(attr));
    spec.ndim = grad_shape(gr, like, dim);
    return cc_build(gr->g, &spec, gr->st);
}

/* y = conv(x, w), dx = conv_dx(dy, w), dw = conv_dw(dy, x) are one trilinear form seen from three
 * sides, so the derivatives of each are the other two. */
bool
pass_vjp_conv2d(Grad *gr, CcRef r, CcRef adj)
{
    CcRef x = cc_arg(gr->g, r, 0), w = cc_arg(gr->g, r, 1);

    return (!grad_wants(gr, r, 0)
            || grad_add(gr, r, 0, conv_like(gr, CC_OP_CONV2D_DX, r, adj, w, x)))
        && (!grad_wants(gr, r, 1)
            || grad_add(gr, r, 1, conv_like(gr, CC_OP_CONV2D_DW, r, adj, x, w)))
        && (gr->g->node[r].narg < 3 || !grad_wants(gr, r, 2)
            || grad_add(gr, r, 2, cc_build_reduce(gr->g, CC_OP_SUM, adj, 0xd, false, gr->st)));
}

bool
pass_vjp_conv2d_dx(Grad *gr, CcRef r, CcRef adj)
{
    CcRef dy = cc_arg(gr->g, r, 0), w = cc_arg(gr->g, r, 1);

    return (!grad_wants(gr, r, 0)
            || grad_add(gr, r, 0, conv_like(gr, CC_OP_CONV2D, r, adj, w, dy)))
        && (!grad_wants(gr, r, 1)
            || grad_add(gr, r, 1, conv_like(gr, CC_OP_CONV2D_DW, r, dy, adj, w)));
}

bool
pass_vjp_conv2d_dw(Grad *gr, CcRef r, CcRef adj)
{
    CcRef dy = cc_arg(gr->g, r, 0), x = cc_arg(gr->g, r, 1);

    return (!grad_wants(gr, r, 0)
            || grad_add(gr, r, 0, conv_like(gr, CC_OP_CONV2D, r, x, adj, dy)))
        && (!grad_wants(gr, r, 1)
            || grad_add(gr, r, 1, conv_like(gr, CC_OP_CONV2D_DX, r, dy, adj, x)));
}

/* A node of the windows of r: `op` of those operands. */
static CcRef
pool_like(Grad *gr, CcRef r, CcOp op, const CcRef *arg, uint16_t narg)
{
    int64_t attr[8];
    CcSpec spec = {.op = op, .narg = narg, .arg = arg, .nattr = 8, .attr = attr};

    memcpy(attr, cc_attrs(gr->g, r), sizeof(attr));
    return cc_build(gr->g, &spec, gr->st);
}

bool
pass_vjp_maxpool2d(Grad *gr, CcRef r, CcRef adj)
{
    CcRef arg[2] = {adj, cc_arg(gr->g, r, 0)};

    return grad_add(gr, r, 0, pool_like(gr, r, CC_OP_MAXPOOL2D_DX, arg, 2));
}

/* The element of adj at each place: all planes flat, places offset by their plane. Nothing for x:
 * the places stay where they are. */
bool
pass_vjp_maxpool2d_dx(Grad *gr, CcRef r, CcRef adj)
{
    CcGraph *g = gr->g;
    CcRef x = cc_arg(g, r, 1), place;
    CcDim dim[4], one = cc_dim_const(g, 1, gr->st);

    if (!grad_wants(gr, r, 0)) {
        return true;
    }
    place = pool_like(gr, r, CC_OP_MAXPOOL2D_ARG, &x, 1);
    if (place == 0) {
        return false;
    }

    grad_shape(gr, r, dim);
    CcDim planes = cc_dim_make(g, CC_DIM_MUL, dim[0], dim[1], gr->st);
    CcDim cells = cc_dim_make(g, CC_DIM_MUL, dim[2], dim[3], gr->st);
    CcDim all = planes == 0 || cells == 0 ? 0 : cc_dim_make(g, CC_DIM_MUL, planes, cells, gr->st);
    if (one == 0 || all == 0) {
        return false;
    }
    CcRef start = cc_build_const_i64(g, CC_DTYPE_I64, 0, gr->st);
    CcRef step = cc_build_size(g, cells, CC_DTYPE_I64, gr->st);
    CcRef first = start == 0 || step == 0 ? 0 : cc_build_iota(g, start, step, planes, gr->st);
    dim[2] = dim[3] = one;
    first = first == 0 ? 0 : cc_build_reshape(g, first, 4, dim, gr->st);
    CcRef index = grad_2(gr, CC_OP_ADD, place, grad_spread(gr, first, place));
    CcRef flat = cc_build_reshape(g, adj, 1, &all, gr->st);
    return index != 0 && flat != 0
        && grad_add(gr, r, 0, cc_build_gather(g, flat, index, 0, gr->st));
}
