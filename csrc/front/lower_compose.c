/* front/lower_compose.c - functions that are a few operations of others: round, diff ... */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* round(a) to whole numbers */
static bool
lower_round(Lower *L, FrontValue *out)
{
    TapeRef arg[2];
    FrontValue v;
    int64_t decimals = 0;

    if (!front_args(L, "a decimals", arg) || !front_array(L, arg[0], &v)
            || (arg[1] != TAPE_NULL && !front_const_int(L, arg[1], &decimals)) || decimals != 0
            || !cc_dtype_is_float(front_dtype(v.dtype))) {
        return front_no(L, "round() without a kernel");
    }
    CcRef r = cc_build_unary(L->g, CC_OP_RINT, v.ref, &L->st);
    return front_give(L, r, front_order(L, &v, 1), true, out);
}

/* All but the first (or last) element along an axis. */
static CcRef
all_but_one(Lower *L, CcRef x, uint8_t axis, bool first)
{
    CcDim start[TAPE_MAX_NDIM], size[TAPE_MAX_NDIM];
    int64_t step[TAPE_MAX_NDIM];

    for (uint8_t i = 0; i < L->g->node[x].ndim; i++) {
        CcDim n = cc_shape(L->g, x)[i];
        start[i] = cc_dim_const(L->g, i == axis && first, &L->st);
        size[i] = i == axis ? front_dim(L, CC_DIM_SUB, n, 1) : n;
        step[i] = 1;
        if (start[i] == 0 || size[i] == 0) {
            return 0;
        }
    }
    return cc_build_slice(L->g, x, start, step, size, &L->st);
}

/* diff(a, 1, axis) */
static bool
lower_diff(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue v;
    int64_t times = 1, axis = -1;

    if (!front_args(L, "a n axis", arg) || !front_array(L, arg[0], &v)
            || (arg[1] != TAPE_NULL && !front_const_int(L, arg[1], &times)) || times != 1
            || (arg[2] != TAPE_NULL && !front_const_int(L, arg[2], &axis)) || v.dtype == NPY_BOOL) {
        return front_no(L, "diff() without a kernel");
    }
    uint8_t ndim = L->g->node[v.ref].ndim;
    axis += axis < 0 ? ndim : 0;
    if (axis < 0 || axis >= ndim || !front_need(L, cc_shape(L->g, v.ref)[axis], 2)) {
        return front_no(L, "diff() of a short axis");
    }
    CcRef r = cc_build_binary(L->g, CC_OP_SUB, all_but_one(L, v.ref, (uint8_t)axis, true),
                              all_but_one(L, v.ref, (uint8_t)axis, false), &L->st);
    return front_give(L, r, front_order(L, &v, 1), true, out);
}

/* count_nonzero(a): a Python int */
static bool
lower_count(Lower *L, FrontValue *out)
{
    TapeRef arg[1];
    FrontValue v;

    if (!front_args(L, "a", arg) || !front_array(L, arg[0], &v) || L->g->node[v.ref].ndim == 0) {
        return front_no(L, "count_nonzero() without a kernel");
    }
    uint64_t axes = ((uint64_t)1 << L->g->node[v.ref].ndim) - 1;
    CcRef r = cc_build_cast(L->g, front_as(L, &v, CC_DTYPE_BOOL), CC_DTYPE_I64, &L->st);
    r = r == 0 ? 0 : cc_build_reduce(L->g, CC_OP_SUM, r, axes, false, &L->st);
    return front_give(L, r, LAYOUT_C, true, out);
}

static const struct {
    const char *name;
    bool (*lower)(Lower *L, FrontValue *out);
} compose_rows[] = {
    {"round", lower_round}, {"around", lower_round},        {"diff", lower_diff},
    {"count_nonzero", lower_count},
};

bool
front_lower_composed(Lower *L, const char *name, bool *mine, FrontValue *out)
{
    for (size_t i = 0; i < sizeof(compose_rows) / sizeof(*compose_rows); i++) {
        if (strcmp(compose_rows[i].name, name) == 0) {
            *mine = true;
            return compose_rows[i].lower(L, out);
        }
    }
    *mine = false;
    return false;
}
