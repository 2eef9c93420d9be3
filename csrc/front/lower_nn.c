/* front/lower_nn.c - calls of ccompile.nn.functional as graph operations.
 *
 * The recorder knows these functions by identity and fixes every argument that is no array by
 * value. What they compute in plain NumPy is said in functional.py; here is the same with kernels,
 * and with the derivatives that the package defines for the whole function. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

static const char no_kernel[] = "arguments that have no kernel";

static bool
float_array(Lower *L, TapeRef ref, FrontValue *v)
{
    return ref != TAPE_NULL && front_value(L, ref, v)
        && ((v->form == META_ARRAY && cc_dtype_is_float(front_dtype(v->dtype)))
            || front_no(L, "an operand that is no array of floats"));
}

static uint8_t
ndim_of(const Lower *L, const FrontValue *v)
{
    return L->g->node[v->ref].ndim;
}

static bool
is_none(const Lower *L, TapeRef ref)
{
    return ref == TAPE_NULL || front_const(L, ref) == Py_None;
}

/* An int or a pair of ints, each at least `min`; not given: `other`. */
static bool
pair_of(Lower *L, TapeRef ref, int64_t other, int64_t min, int64_t out[2])
{
    PyObject *obj = ref == TAPE_NULL ? NULL : front_object(L, ref);
    bool one = obj != NULL && PyLong_CheckExact(obj);
    bool ok = ref == TAPE_NULL || one
        || (obj != NULL && PyTuple_CheckExact(obj) && PyTuple_GET_SIZE(obj) == 2);

    for (int i = 0; ok && i < 2; i++) {
        PyObject *item = one || obj == NULL ? obj : PyTuple_GET_ITEM(obj, i);
        out[i] = other;
        if (item != NULL) {
            ok = PyLong_CheckExact(item);
            out[i] = ok ? PyLong_AsLong(item) : 0;
        }
        ok = ok && out[i] >= min && out[i] <= INT32_MAX;
    }
    Py_XDECREF(obj);
    PyErr_Clear();
    return ok || front_no(L, no_kernel);
}

/* x + bias along one axis. */
static CcRef
add_along(Lower *L, CcRef x, TapeRef bias, uint8_t axis)
{
    FrontValue b;

    if (x == 0 || !float_array(L, bias, &b) || ndim_of(L, &b) != 1
            || L->g->node[b.ref].dtype != L->g->node[x].dtype) {
        return 0;
    }
    uint64_t others = (((uint64_t)1 << L->g->node[x].ndim) - 1) & ~((uint64_t)1 << axis);
    CcRef ref[2] = {x, cc_build_expand(L->g, b.ref, others, &L->st)};
    if (!cc_build_broadcast_all(L->g, ref, 2, &L->st)) {
        return 0;
    }
    return cc_build_binary(L->g, CC_OP_ADD, ref[0], ref[1], &L->st);
}

/* x in the shape (all but the last axis, last axis), and its own dims. */
static CcRef
as_rows(Lower *L, CcRef x, uint8_t ndim, CcDim *dim)
{
    CcDim rows[2] = {0, 0};

    for (uint8_t i = 0; i < ndim; i++) {
        dim[i] = cc_shape(L->g, x)[i];
    }
    rows[0] = dim[0];
    rows[1] = dim[ndim - 1];
    for (uint8_t i = 1; i + 1 < ndim; i++) {
        rows[0] = rows[0] == 0 ? 0 : cc_dim_make(L->g, CC_DIM_MUL, rows[0], dim[i], &L->st);
    }
    return ndim == 2 ? x : rows[0] == 0 ? 0 : cc_build_reshape(L->g, x, 2, rows, &L->st);
}

static bool
lower_linear(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue x, w;
    CcDim dim[TAPE_MAX_NDIM];

    if (!front_args(L, "input weight bias", arg) || !float_array(L, arg[0], &x)
            || !float_array(L, arg[1], &w) || x.dtype != w.dtype || ndim_of(L, &x) < 2
            || ndim_of(L, &w) != 2) {
        return front_no(L, no_kernel);
    }
    uint8_t ndim = ndim_of(L, &x);
    CcRef rows = as_rows(L, x.ref, ndim, dim);
    CcRef r = rows == 0 ? 0 : cc_build_matmul(L->g, rows, w.ref, false, true, &L->st);
    if (!is_none(L, arg[2])) {
        r = add_along(L, r, arg[2], 1);
    }
    if (r != 0 && ndim > 2) {
        dim[ndim - 1] = cc_shape(L->g, r)[1];
        r = cc_build_reshape(L->g, r, ndim, dim, &L->st);
    }
    return front_give(L, r, LAYOUT_C, true, out);
}

static bool
lower_conv2d(Lower *L, FrontValue *out)
{
    TapeRef arg[7];
    FrontValue x, w, bias;
    CcConv conv;
    int64_t pad[2], groups = 1;

    if (!front_args(L, "input weight bias stride padding dilation groups", arg)
            || !float_array(L, arg[0], &x) || !float_array(L, arg[1], &w) || x.dtype != w.dtype
            || ndim_of(L, &x) != 4 || ndim_of(L, &w) != 4 || !pair_of(L, arg[3], 1, 1, conv.stride)
            || !pair_of(L, arg[4], 0, 0, pad) || !pair_of(L, arg[5], 1, 1, conv.dilation)
            || (arg[6] != TAPE_NULL && !front_const_int(L, arg[6], &groups)) || groups < 1) {
        return front_no(L, no_kernel);
    }
    conv.pad[0] = conv.pad[1] = pad[0];
    conv.pad[2] = conv.pad[3] = pad[1];
    conv.groups = groups;
    bool biased = !is_none(L, arg[2]);
    if (biased && (!float_array(L, arg[2], &bias) || bias.dtype != x.dtype
                   || ndim_of(L, &bias) != 1)) {
        return front_no(L, no_kernel);
    }
    CcRef r = cc_build_conv2d(L->g, x.ref, w.ref, biased ? bias.ref : 0, &conv, &L->st);
    return front_give(L, r, LAYOUT_C, true, out);
}

/* The maximum of relus is the relu of the maximum, for NaN, zeros and the gradient at ties as well,
 * and the window leaves fewer elements to do it on. */
static CcRef
pool_or_relu(Lower *L, CcRef x, const CcPool *pool)
{
    bool relu = L->g->node[x].op == CC_OP_RELU;
    CcRef from = relu ? cc_arg(L->g, x, 0) : x;
    CcRef most = cc_build_maxpool2d(L->g, CC_OP_MAXPOOL2D, from, pool, &L->st);

    return relu && most != 0 ? cc_build_unary(L->g, CC_OP_RELU, most, &L->st) : most;
}

static bool
lower_max_pool2d(Lower *L, FrontValue *out)
{
    TapeRef arg[5];
    FrontValue x;
    CcPool pool;
    int64_t pad[2], dilation[2];

    if (!front_args(L, "input kernel_size stride padding dilation", arg)
            || !float_array(L, arg[0], &x) || ndim_of(L, &x) != 4
            || !pair_of(L, arg[1], 0, 1, pool.k) || !pair_of(L, arg[3], 0, 0, pad)
            || !pair_of(L, arg[4], 1, 1, dilation) || dilation[0] != 1 || dilation[1] != 1
            || 2 * pad[0] > pool.k[0] || 2 * pad[1] > pool.k[1]) {
        return front_no(L, no_kernel);
    }
    memcpy(pool.stride, pool.k, sizeof(pool.stride));
    if (!is_none(L, arg[2]) && !pair_of(L, arg[2], 1, 1, pool.stride)) {
        return false;
    }
    pool.pad[0] = pool.pad[1] = pad[0];
    pool.pad[2] = pool.pad[3] = pad[1];
    return front_give(L, pool_or_relu(L, x.ref, &pool), LAYOUT_C, true, out);
}

static bool
lower_relu(Lower *L, FrontValue *out)
{
    TapeRef arg[1];
    FrontValue x;

    if (!front_args(L, "input", arg) || !float_array(L, arg[0], &x) || ndim_of(L, &x) == 0) {
        return front_no(L, no_kernel);
    }
    CcRef r = cc_build_unary(L->g, CC_OP_RELU, x.ref, &L->st);
    return front_give(L, r, front_order(L, &x, 1), true, out);
}

static bool
lower_flatten(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue x;
    CcDim dim[TAPE_MAX_NDIM];
    int64_t first = 0, last = -1;
    uint8_t n = 0;

    if (!front_args(L, "input start_dim end_dim", arg) || !front_value(L, arg[0], &x)
            || x.form != META_ARRAY || (arg[1] != TAPE_NULL && !front_const_int(L, arg[1], &first))
            || (arg[2] != TAPE_NULL && !front_const_int(L, arg[2], &last))) {
        return front_no(L, no_kernel);
    }
    uint8_t ndim = ndim_of(L, &x);
    first += first < 0 ? ndim : 0;
    last += last < 0 ? ndim : 0;
    if (first < 0 || last >= ndim || first > last) {
        return front_no(L, no_kernel);
    }
    for (uint8_t i = 0; i < ndim; i++) {
        CcDim d = cc_shape(L->g, x.ref)[i];
        bool merged = i > first && i <= last;
        dim[merged ? n - 1 : n] =
            merged ? cc_dim_make(L->g, CC_DIM_MUL, dim[n - 1], d, &L->st) : d;
        n += !merged;
    }
    CcRef r = n > 0 && dim[first] != 0 ? cc_build_reshape(L->g, x.ref, n, dim, &L->st) : 0;
    return front_give(L, r, LAYOUT_C, false, out);
}

/* softmax and log_softmax along one axis. */
static bool
lower_along(Lower *L, CcOp op, FrontValue *out)
{
    TapeRef arg[2];
    FrontValue x;
    int64_t axis;

    if (!front_args(L, "input dim", arg) || !float_array(L, arg[0], &x)
            || !front_const_int(L, arg[1], &axis)) {
        return front_no(L, no_kernel);
    }
    axis += axis < 0 ? ndim_of(L, &x) : 0;
    if (axis < 0 || axis >= ndim_of(L, &x)) {
        return front_no(L, no_kernel);
    }
    CcRef r = cc_build_along(L->g, op, x.ref, (uint32_t)axis, &L->st);
    return front_give(L, r, front_order(L, &x, 1), true, out);
}

static bool
lower_softmax(Lower *L, FrontValue *out)
{
    return lower_along(L, CC_OP_SOFTMAX, out);
}

static bool
lower_log_softmax(Lower *L, FrontValue *out)
{
    return lower_along(L, CC_OP_LOGSOFTMAX, out);
}

/* Places of [n, target[n]] in the flattened (N, C); a class that is none becomes a place that is
 * none, so that the read faults. */
static CcRef
class_places(Lower *L, CcRef x, CcRef target)
{
    CcGraph *g = L->g;
    CcDim n = cc_shape(g, x)[0], c = cc_shape(g, x)[1];
    CcRef zero = cc_build_const_i64(g, CC_DTYPE_I64, 0, &L->st);
    CcRef rows = cc_build_iota(g, zero, cc_build_const_i64(g, CC_DTYPE_I64, 1, &L->st), n, &L->st);
    CcRef width = cc_build_full(g, cc_build_size(g, c, CC_DTYPE_I64, &L->st), 1, &n, &L->st);
    CcRef none = cc_build_const_i64(g, CC_DTYPE_I64, INT64_MAX, &L->st);
    CcRef low = cc_build_full(g, zero, 1, &n, &L->st);

    none = cc_build_full(g, none, 1, &n, &L->st);
    if (rows == 0 || width == 0 || none == 0 || low == 0) {
        return 0;
    }
    CcRef place = cc_build_binary(g, CC_OP_ADD, cc_build_binary(g, CC_OP_MUL, rows, width, &L->st),
                                  target, &L->st);
    CcRef fits = cc_build_binary(g, CC_OP_LAND, cc_build_binary(g, CC_OP_GE, target, low, &L->st),
                                 cc_build_binary(g, CC_OP_LT, target, width, &L->st), &L->st);
    return cc_build_where(g, fits, place, none, &L->st);
}

/* -log_softmax(x)[n, target[n]] */
static CcRef
class_losses(Lower *L, CcRef x, CcRef target)
{
    CcGraph *g = L->g;
    CcRef logp = cc_build_along(g, CC_OP_LOGSOFTMAX, x, 1, &L->st);
    CcRef place = class_places(L, x, target);
    CcDim all = logp == 0 ? 0 : cc_numel(g, logp, &L->st);

    if (place == 0 || all == 0) {
        return 0;
    }
    CcRef flat = cc_build_reshape(g, logp, 1, &all, &L->st);
    return cc_build_unary(g, CC_OP_NEG, cc_build_gather(g, flat, place, 0, &L->st), &L->st);
}

static bool
lower_cross_entropy(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue x, t;

    if (!front_args(L, "input target reduction", arg) || !float_array(L, arg[0], &x)
            || ndim_of(L, &x) != 2 || !front_value(L, arg[1], &t) || t.form != META_ARRAY
            || ndim_of(L, &t) != 1 || !PyTypeNum_ISINTEGER(t.dtype)) {
        return front_no(L, no_kernel);
    }
    PyObject *how = arg[2] == TAPE_NULL ? NULL : front_const(L, arg[2]);
    if (arg[2] != TAPE_NULL && (how == NULL || !PyUnicode_Check(how))) {
        return front_no(L, no_kernel);
    }
    CcRef target = front_as(L, &t, CC_DTYPE_I64);
    CcDim rows[1] = {cc_shape(L->g, x.ref)[0]};
    /* as many classes as rows: a BROADCAST between equal sizes guards that */
    target = target == 0 ? 0 : cc_build_broadcast(L->g, target, 1, rows, &L->st);
    CcRef r = target == 0 ? 0 : class_losses(L, x.ref, target);
    if (r != 0 && (how == NULL || PyUnicode_CompareWithASCIIString(how, "mean") == 0)) {
        r = cc_build_moment(L->g, CC_OP_MEAN, r, 1, 0, false, &L->st);
    } else if (r != 0 && PyUnicode_CompareWithASCIIString(how, "sum") == 0) {
        r = cc_build_reduce(L->g, CC_OP_SUM, r, 1, false, &L->st);
    } else if (r != 0 && PyUnicode_CompareWithASCIIString(how, "none") != 0) {
        r = 0;
    }
    return front_give(L, r, LAYOUT_C, true, out);
}

static const struct {
    const char *name;
    bool (*lower)(Lower *L, FrontValue *out);
} nn_rows[] = {
    {"conv2d", lower_conv2d},   {"cross_entropy", lower_cross_entropy},
    {"flatten", lower_flatten}, {"linear", lower_linear},
    {"log_softmax", lower_log_softmax}, {"max_pool2d", lower_max_pool2d},
    {"relu", lower_relu},       {"softmax", lower_softmax},
};

bool
front_lower_nn(Lower *L, const char *name, FrontValue *out)
{
    for (size_t i = 0; i < sizeof(nn_rows) / sizeof(*nn_rows); i++) {
        if (strcmp(nn_rows[i].name, name) == 0) {
            return nn_rows[i].lower(L, out);
        }
    }
    return front_no(L, "a function without a kernel");
}
