/* ir/infer.c - dtype and shape of one node from its operands: the rules named in op.def.
 *
 * Used by the builders (which may record equality guards) and by verify (which may not). Reads the
 * node only through a CcSpec, so it never depends on what the node claims to be. Result dims are
 * canonical. Fails with BAD_OPERANDS; the graph gets new dims and guards at most. */
#include "build.h"

#include <string.h>

typedef struct {
    CcGraph *g;
    const CcSpec *spec;
    CcStatus *st;
    CcType *out;
    bool may_guard;
} Infer;

static const CcNode *
arg_node(const Infer *in, uint32_t i)
{
    return &in->g->node[in->spec->arg[i]];
}

static CcDim
arg_dim(const Infer *in, uint32_t i, uint32_t axis)
{
    return cc_dim_canon(in->g, cc_shape(in->g, in->spec->arg[i])[axis]);
}

static bool
misfit(const Infer *in, const char *what)
{
    return cc_fail(in->st, CC_REASON_BAD_OPERANDS, "%s: %s", cc_op_info[in->spec->op].name, what);
}

/* a and b have to be equal: known, or from now on guarded. */
static bool
need_eq(const Infer *in, CcDim a, CcDim b, const char *what)
{
    if (a == 0 || b == 0) {
        return false;
    }
    if (cc_dim_same(in->g, a, b)) {
        return true;
    }
    int64_t x, y;
    bool differ = cc_dim_is_const(in->g, a, &x) && cc_dim_is_const(in->g, b, &y);
    if (!in->may_guard || differ) {
        return misfit(in, what);
    }
    return cc_graph_require_eq(in->g, a, b, in->st);
}

static CcDim
make(const Infer *in, CcDimKind kind, CcDim a, CcDim b)
{
    return a == 0 || b == 0 ? 0 : cc_dim_make(in->g, kind, a, b, in->st);
}

static CcDim
constant(const Infer *in, int64_t value)
{
    return cc_dim_const(in->g, value, in->st);
}

/* -- Dtypes ------------------------------------------------------------------ */

static bool
dtype_class_fits(CcDtypeRule rule, CcDtype dt)
{
    switch (rule) {
    case CC_DT_NUM:
        return cc_dtype_is_int(dt) || cc_dtype_is_float(dt);
    case CC_DT_FLOAT:
    case CC_DT_FBOOL:
        return cc_dtype_is_float(dt);
    case CC_DT_BITS:
        return cc_dtype_is_int(dt) || dt == CC_DTYPE_BOOL;
    case CC_DT_INT:
        return cc_dtype_is_int(dt);
    default:
        return dt != CC_DTYPE_OPAQUE && dt != CC_DTYPE_NONE;
    }
}

/* The given dtype, for the rules that leave it to the maker. */
static bool
infer_given_dtype(const Infer *in, bool opaque_too)
{
    CcDtype dt = in->spec->dtype;

    if (dt == CC_DTYPE_NONE || dt >= CC_DTYPE__COUNT || (dt == CC_DTYPE_OPAQUE && !opaque_too)) {
        return misfit(in, "no result dtype given");
    }
    in->out->dtype = dt;
    return true;
}

static bool
infer_dtype(const Infer *in)
{
    const CcSpec *spec = in->spec;
    CcDtypeRule rule = (CcDtypeRule)cc_op_info[spec->op].dtype_rule;
    uint32_t first = rule == CC_DT_COND;        /* the operand that decides */

    if (rule == CC_DT_EXT && spec->op == CC_OP_EXTERN) {
        in->out->dtype = CC_DTYPE_OPAQUE;
        return true;
    }
    if (rule == CC_DT_EXT) {
        return arg_node(in, 0)->op == CC_OP_EXTERN ? infer_given_dtype(in, true)
                                                   : misfit(in, "operand is no EXTERN node");
    }
    if (spec->narg == 0) {
        return infer_given_dtype(in, false);
    }
    CcDtype dt = (CcDtype)arg_node(in, first)->dtype;
    for (uint32_t i = 0; i < spec->narg; i++) {
        CcDtype want = dt;
        if (rule == CC_DT_COND && i == 0) {
            want = CC_DTYPE_BOOL;
        }
        if (rule == CC_DT_INDEX && i == 1) {
            want = CC_DTYPE_I64;
        }
        if (arg_node(in, i)->dtype != want) {
            return cc_fail(in->st, CC_REASON_BAD_OPERANDS, "%s: operand %u is %s, not %s",
                           cc_op_info[spec->op].name, i, cc_dtype_info[arg_node(in, i)->dtype].text,
                           cc_dtype_info[want].text);
        }
    }
    if (!dtype_class_fits(rule, dt)) {
        return cc_fail(in->st, CC_REASON_BAD_OPERANDS, "%s of %s", cc_op_info[spec->op].name,
                       cc_dtype_info[dt].text);
    }
    if (rule == CC_DT_CAST) {
        return infer_given_dtype(in, false);
    }
    in->out->dtype = rule == CC_DT_BOOL || rule == CC_DT_FBOOL ? CC_DTYPE_BOOL
                   : rule == CC_DT_ARG                        ? CC_DTYPE_I64
                                                              : dt;
    return true;
}

/* -- Shapes: simple ----------------------------------------------------------- */

static bool
shape_given(const Infer *in)
{
    for (uint32_t i = 0; i < in->spec->ndim; i++) {
        if (in->spec->shape[i] == 0 || in->spec->shape[i] >= in->g->dims.len) {
            return misfit(in, "no result shape given");
        }
        in->out->dim[i] = cc_dim_canon(in->g, in->spec->shape[i]);
    }
    in->out->ndim = in->spec->ndim;
    return true;
}

static void
shape_of_arg(const Infer *in, uint32_t i)
{
    in->out->ndim = arg_node(in, i)->ndim;
    for (uint32_t k = 0; k < in->out->ndim; k++) {
        in->out->dim[k] = arg_dim(in, i, k);
    }
}

static bool
need_same_shape(const Infer *in, uint32_t i, uint32_t j)
{
    if (arg_node(in, i)->ndim != arg_node(in, j)->ndim) {
        return misfit(in, "operands of different ndim");
    }
    for (uint32_t k = 0; k < arg_node(in, i)->ndim; k++) {
        if (!need_eq(in, arg_dim(in, i, k), arg_dim(in, j, k), "operands of different shape")) {
            return false;
        }
    }
    return true;
}

static bool
shape_ew(const Infer *in)
{
    for (uint32_t i = 1; i < in->spec->narg; i++) {
        if (!need_same_shape(in, 0, i)) {
            return false;
        }
    }
    shape_of_arg(in, 0);
    return true;
}

static bool
shape_leaf(const Infer *in)
{
    CcOp op = in->spec->op;

    if (op != CC_OP_PARAM && in->spec->ndim != 0) {
        return misfit(in, "the result is 0-d");
    }
    if (op == CC_OP_SIZE && in->out->dtype != CC_DTYPE_I64) {
        return misfit(in, "the result is i64");
    }
    if (op == CC_OP_SIZE && (in->spec->attr[0] <= 0 || in->spec->attr[0] >= in->g->dims.len)) {
        return misfit(in, "bad dim");
    }
    return shape_given(in);
}

static bool
shape_iota(const Infer *in)
{
    if (arg_node(in, 0)->ndim != 0 || arg_node(in, 1)->ndim != 0 || in->spec->ndim != 1) {
        return misfit(in, "start and step are 0-d, the result is 1-d");
    }
    return shape_given(in);
}

static bool
shape_red(const Infer *in)
{
    uint64_t axes = (uint64_t)in->spec->attr[0];
    uint32_t ndim = arg_node(in, 0)->ndim, kept = 0;
    bool arg = in->spec->op == CC_OP_ARGMAX || in->spec->op == CC_OP_ARGMIN;

    if (axes >> ndim != 0) {
        return misfit(in, "axis out of range");
    }
    if (arg && axes != (UINT64_C(1) << ndim) - 1 && (axes == 0 || (axes & (axes - 1)) != 0)) {
        return misfit(in, "one axis or all");
    }
    for (uint32_t i = 0; i < ndim; i++) {
        if ((axes >> i & 1) == 0) {
            in->out->dim[kept++] = arg_dim(in, 0, i);
        }
    }
    in->out->ndim = (uint8_t)kept;
    return true;
}

static bool
shape_scan(const Infer *in)
{
    if (in->spec->attr[0] < 0 || in->spec->attr[0] >= arg_node(in, 0)->ndim) {
        return misfit(in, "axis out of range");
    }
    shape_of_arg(in, 0);
    return true;
}

/* -- Shapes: moving ----------------------------------------------------------- */

static bool
shape_reshape(const Infer *in)
{
    CcDim have = cc_numel(in->g, in->spec->arg[0], in->st), want = constant(in, 1);

    if (!shape_given(in)) {
        return false;
    }
    for (uint32_t i = 0; i < in->out->ndim; i++) {
        want = make(in, CC_DIM_MUL, want, in->out->dim[i]);
    }
    if (!need_eq(in, have, want, "different number of elements")) {
        return false;
    }
    return shape_given(in);             /* a guard may have changed what is canonical */
}

static bool
shape_transpose(const Infer *in)
{
    uint32_t ndim = arg_node(in, 0)->ndim;
    uint64_t seen = 0;

    for (uint32_t i = 0; i < ndim; i++) {
        int64_t from = in->spec->attr[i];
        if (from < 0 || from >= ndim || (seen >> from & 1) != 0) {
            return misfit(in, "perm is no permutation");
        }
        seen |= UINT64_C(1) << from;
        in->out->dim[i] = arg_dim(in, 0, (uint32_t)from);
    }
    in->out->ndim = (uint8_t)ndim;
    return true;
}

static bool
shape_broadcast(const Infer *in)
{
    uint32_t ndim = arg_node(in, 0)->ndim;

    if (!shape_given(in)) {
        return false;
    }
    if (ndim > in->out->ndim) {
        return misfit(in, "more axes than the result");
    }
    for (uint32_t i = 0; i < ndim; i++) {
        CcDim to = in->out->dim[in->out->ndim - ndim + i];
        if (!cc_dim_equals(in->g, arg_dim(in, 0, i), 1)
            && !need_eq(in, arg_dim(in, 0, i), to, "dim cannot be stretched")) {
            return false;
        }
    }
    return shape_given(in);
}

/* Every index read exists, as far as constants tell; size is the number of elements taken. */
static bool
slice_fits(const Infer *in, uint32_t axis, CcDim size)
{
    uint32_t ndim = arg_node(in, 0)->ndim;
    int64_t start, n, count, step = in->spec->attr[ndim + axis];
    uint64_t dim = (uint64_t)in->spec->attr[axis];

    if (step == 0 || dim == 0 || dim >= in->g->dims.len) {
        return misfit(in, "bad start or step");
    }
    bool known = cc_dim_is_const(in->g, (CcDim)dim, &start);
    if (known && start < 0) {
        return misfit(in, "start before the first element");
    }
    if (!cc_dim_is_const(in->g, size, &count)) {
        return true;
    }
    if (count < 0) {
        return misfit(in, "negative size");
    }
    if (!known || count == 0 || !cc_dim_is_const(in->g, arg_dim(in, 0, axis), &n)) {
        return true;
    }
    int64_t last;
    if (__builtin_mul_overflow(count - 1, step, &last)
        || __builtin_add_overflow(last, start, &last) || start >= n || last < 0 || last >= n) {
        return misfit(in, "slice outside the array");
    }
    return true;
}

static bool
shape_slice(const Infer *in)
{
    if (in->spec->ndim != arg_node(in, 0)->ndim) {
        return misfit(in, "a slice keeps ndim");
    }
    if (!shape_given(in)) {
        return false;
    }
    for (uint32_t i = 0; i < in->out->ndim; i++) {
        if (!slice_fits(in, i, in->out->dim[i])) {
            return false;
        }
    }
    return true;
}

static bool
shape_update(const Infer *in)
{
    if (arg_node(in, 1)->ndim != arg_node(in, 0)->ndim) {
        return misfit(in, "operands of different ndim");
    }
    shape_of_arg(in, 0);
    for (uint32_t i = 0; i < in->out->ndim; i++) {
        if (!slice_fits(in, i, arg_dim(in, 1, i))) {
            return false;
        }
    }
    return true;
}

static bool
shape_concat(const Infer *in)
{
    if (in->spec->narg == 0 || in->spec->attr[0] < 0
        || in->spec->attr[0] >= arg_node(in, 0)->ndim) {
        return misfit(in, "no operand or axis out of range");
    }
    uint32_t axis = (uint32_t)in->spec->attr[0];
    CcDim sum = arg_dim(in, 0, axis);
    for (uint32_t i = 1; i < in->spec->narg; i++) {
        if (arg_node(in, i)->ndim != arg_node(in, 0)->ndim) {
            return misfit(in, "operands of different ndim");
        }
        for (uint32_t k = 0; k < arg_node(in, 0)->ndim; k++) {
            if (k != axis
                && !need_eq(in, arg_dim(in, 0, k), arg_dim(in, i, k), "dims differ off the axis")) {
                return false;
            }
        }
        sum = make(in, CC_DIM_ADD, sum, arg_dim(in, i, axis));
    }
    shape_of_arg(in, 0);
    in->out->dim[axis] = sum;
    return sum != 0;
}

static bool
shape_pad(const Infer *in)
{
    uint32_t ndim = arg_node(in, 0)->ndim;

    if (arg_node(in, 1)->ndim != 0) {
        return misfit(in, "the value is 0-d");
    }
    for (uint32_t i = 0; i < 2 * ndim; i++) {
        uint64_t dim = (uint64_t)in->spec->attr[i];
        int64_t value;
        if (dim == 0 || dim >= in->g->dims.len
            || (cc_dim_is_const(in->g, (CcDim)dim, &value) && value < 0)) {
            return misfit(in, "bad width");
        }
    }
    in->out->ndim = (uint8_t)ndim;
    for (uint32_t i = 0; i < ndim; i++) {
        CcDim d = make(in, CC_DIM_ADD, arg_dim(in, 0, i), (CcDim)in->spec->attr[i]);
        in->out->dim[i] = make(in, CC_DIM_ADD, d, (CcDim)in->spec->attr[ndim + i]);
        if (in->out->dim[i] == 0) {
            return false;
        }
    }
    return true;
}

/* -- Shapes: indexing ---------------------------------------------------------- */

static bool
shape_gather(const Infer *in)
{
    uint32_t ndim = arg_node(in, 0)->ndim, inner = arg_node(in, 1)->ndim, n = 0;

    if (in->spec->attr[0] < 0 || in->spec->attr[0] >= ndim) {
        return misfit(in, "axis out of range");
    }
    if (ndim - 1 + inner > CC_MAX_NDIM) {
        return misfit(in, "too many axes");
    }
    for (uint32_t i = 0; i < ndim; i++) {
        if (i != (uint32_t)in->spec->attr[0]) {
            in->out->dim[n++] = arg_dim(in, 0, i);
            continue;
        }
        for (uint32_t k = 0; k < inner; k++) {
            in->out->dim[n++] = arg_dim(in, 1, k);
        }
    }
    in->out->ndim = (uint8_t)n;
    return true;
}

static bool
shape_scatter(const Infer *in)
{
    if (!shape_gather(in)) {
        return false;
    }
    if (in->out->ndim != arg_node(in, 2)->ndim) {
        return misfit(in, "values do not have the shape of the places");
    }
    for (uint32_t i = 0; i < in->out->ndim; i++) {
        if (!need_eq(in, in->out->dim[i], arg_dim(in, 2, i),
                     "values do not have the shape of the places")) {
            return false;
        }
    }
    shape_of_arg(in, 0);
    return true;
}

/* -- Shapes: heavy ------------------------------------------------------------- */

static bool
shape_matmul(const Infer *in)
{
    uint32_t ndim = arg_node(in, 0)->ndim;
    bool ta = in->spec->attr[0] != 0, tb = in->spec->attr[1] != 0;

    if (((in->spec->attr[0] | in->spec->attr[1]) & ~INT64_C(1)) != 0) {
        return misfit(in, "ta and tb are 0 or 1");
    }
    if (ndim < 2 || arg_node(in, 1)->ndim != ndim) {
        return misfit(in, "operands need equal ndim of at least 2");
    }
    for (uint32_t i = 0; i + 2 < ndim; i++) {
        if (!need_eq(in, arg_dim(in, 0, i), arg_dim(in, 1, i), "batch dims differ")) {
            return false;
        }
    }
    if (!need_eq(in, arg_dim(in, 0, ndim - (ta ? 2 : 1)), arg_dim(in, 1, ndim - (tb ? 1 : 2)),
                 "inner dims differ")) {
        return false;
    }
    shape_of_arg(in, 0);
    in->out->dim[ndim - 2] = arg_dim(in, 0, ndim - (ta ? 1 : 2));
    in->out->dim[ndim - 1] = arg_dim(in, 1, ndim - (tb ? 2 : 1));
    return true;
}

/* (n + before + after - dilation*(k-1) - 1) // stride + 1 */
static CcDim
window_count(const Infer *in, CcDim n, CcDim k, int64_t pad, int64_t dilation, int64_t stride)
{
    CcDim reach = make(in, CC_DIM_MUL, make(in, CC_DIM_SUB, k, constant(in, 1)),
                       constant(in, dilation));
    CcDim room = make(in, CC_DIM_ADD, n, constant(in, pad - 1));
    CcDim steps = make(in, CC_DIM_FLOORDIV, make(in, CC_DIM_SUB, room, reach),
                       constant(in, stride));
    CcDim count = make(in, CC_DIM_ADD, steps, constant(in, 1));
    int64_t value;

    if (count != 0 && cc_dim_is_const(in->g, count, &value) && value < 0) {
        misfit(in, "window larger than the padded image");
        return 0;
    }
    return count;
}

/* Attributes stride:2 pad:4 dilation:2 groups:i are in range. */
static bool
conv_attrs_fit(const Infer *in)
{
    const int64_t *at = in->spec->attr;

    for (int i = 0; i < 9; i++) {
        if (at[i] < (i >= 2 && i < 6 ? 0 : 1) || at[i] > INT32_MAX) {
            return misfit(in, "bad stride, pad, dilation or groups");
        }
    }
    return true;
}

/* x, w, y: the dims of image, kernel and result; all must agree. y[2..3] = 0: to be filled in. */
static bool
conv_agrees(const Infer *in, const CcDim *x, const CcDim *w, CcDim *y)
{
    const int64_t *at = in->spec->attr;
    int64_t outs;

    if (!conv_attrs_fit(in)) {
        return false;
    }
    if (cc_dim_is_const(in->g, w[0], &outs) && outs % at[8] != 0) {
        return misfit(in, "groups do not divide the output channels");
    }
    if (!need_eq(in, x[1], make(in, CC_DIM_MUL, w[1], constant(in, at[8])), "channels differ")
        || !need_eq(in, x[0], y[0], "batch differs")
        || !need_eq(in, w[0], y[1], "output channels differ")) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        int64_t pad = at[2 + 2 * i] + at[3 + 2 * i];
        CcDim n = window_count(in, x[2 + i], w[2 + i], pad, at[6 + i], at[i]);
        y[2 + i] = y[2 + i] == 0 ? n : y[2 + i];
        if (!need_eq(in, n, y[2 + i], "image sizes differ")) {
            return false;
        }
    }
    return true;
}

static bool
shape_bias(const Infer *in)
{
    return arg_node(in, 2)->ndim != 1
             ? misfit(in, "the bias is 1-d")
             : need_eq(in, arg_dim(in, 2, 0), arg_dim(in, 1, 0), "one bias for each channel");
}

static bool
shape_conv2d(const Infer *in)
{
    CcDim dim[3][4] = {{0}};            /* what is known of x, w, y */
    CcOp op = in->spec->op;
    int a = op == CC_OP_CONV2D ? 0 : 2, b = op == CC_OP_CONV2D_DW ? 0 : 1;
    int result = op == CC_OP_CONV2D ? 2 : op == CC_OP_CONV2D_DX ? 0 : 1;

    if (in->spec->narg < 2 || in->spec->narg > 3) {
        return misfit(in, "wrong number of operands");
    }
    if (arg_node(in, 0)->ndim != 4 || arg_node(in, 1)->ndim != 4) {
        return misfit(in, "operands are 4-d");
    }
    if (in->spec->narg == 3 && !shape_bias(in)) {
        return false;
    }
    if (op != CC_OP_CONV2D && (in->spec->ndim != 4 || !shape_given(in))) {
        return misfit(in, "the result is 4-d, its shape given");
    }
    for (uint32_t i = 0; i < 4; i++) {
        dim[a][i] = arg_dim(in, 0, i);
        dim[b][i] = arg_dim(in, 1, i);
        if (op != CC_OP_CONV2D) {
            dim[result][i] = in->out->dim[i];
        }
    }
    if (op == CC_OP_CONV2D) {
        dim[2][0] = dim[0][0];
        dim[2][1] = dim[1][0];
    }
    if (!conv_agrees(in, dim[0], dim[1], dim[2])) {
        return false;
    }
    in->out->ndim = 4;
    for (uint32_t i = 0; i < 4; i++) {
        in->out->dim[i] = cc_dim_canon(in->g, dim[result][i]);
    }
    return true;
}

/* The windows over operand `x`: its shape, but for the two last dims of the output. */
static bool
shape_windows(const Infer *in, unsigned x)
{
    const int64_t *at = in->spec->attr;

    if (arg_node(in, x)->ndim != 4) {
        return misfit(in, "operand is 4-d");
    }
    if (!cc_dtype_is_float((CcDtype)arg_node(in, x)->dtype)) {
        return misfit(in, "operand is no float");
    }
    for (int i = 0; i < 8; i++) {
        if (at[i] < (i < 4 ? 1 : 0) || at[i] > INT32_MAX) {
            return misfit(in, "bad window, stride or pad");
        }
    }
    shape_of_arg(in, x);
    for (uint32_t i = 0; i < 2; i++) {
        if (at[4 + 2 * i] >= at[i] || at[5 + 2 * i] >= at[i]) {
            return misfit(in, "a window may lie in the padding");
        }
        in->out->dim[2 + i] = window_count(in, arg_dim(in, x, 2 + i), constant(in, at[i]),
                                           at[4 + 2 * i] + at[5 + 2 * i], 1, at[2 + i]);
        if (in->out->dim[2 + i] == 0) {
            return false;
        }
    }
    return true;
}

static bool
shape_pool_dx(const Infer *in)
{
    if (!shape_windows(in, 1)) {
        return false;
    }
    if (arg_node(in, 0)->ndim != 4) {
        return misfit(in, "operand is 4-d");
    }
    for (uint32_t i = 0; i < 4; i++) {
        if (!need_eq(in, arg_dim(in, 0, i), in->out->dim[i], "the gradient has another shape")) {
            return false;
        }
    }
    shape_of_arg(in, 1);
    return true;
}

/* -- One node ------------------------------------------------------------------ */

static bool
infer_shape(const Infer *in)
{
    switch ((CcShapeRule)cc_op_info[in->spec->op].shape_rule) {
    case CC_SH_GIVEN:
        return shape_leaf(in);
    case CC_SH_IOTA:
        return shape_iota(in);
    case CC_SH_EW:
        return shape_ew(in);
    case CC_SH_RED:
        return shape_red(in);
    case CC_SH_SCAN:
        return shape_scan(in);
    case CC_SH_RESHAPE:
        return shape_reshape(in);
    case CC_SH_TRANSPOSE:
        return shape_transpose(in);
    case CC_SH_BROADCAST:
        return shape_broadcast(in);
    case CC_SH_SLICE:
        return shape_slice(in);
    case CC_SH_UPDATE:
        return shape_update(in);
    case CC_SH_CONCAT:
        return shape_concat(in);
    case CC_SH_PAD:
        return shape_pad(in);
    case CC_SH_GATHER:
        return shape_gather(in);
    case CC_SH_SCATTER:
        return shape_scatter(in);
    case CC_SH_MATMUL:
        return shape_matmul(in);
    case CC_SH_CONV2D:
    case CC_SH_CONV2D_DX:
    case CC_SH_CONV2D_DW:
        return shape_conv2d(in);
    case CC_SH_MAXPOOL2D:
        return shape_windows(in, 0);
    case CC_SH_POOL_DX:
        return shape_pool_dx(in);
    case CC_SH_EXTERN:
        in->out->ndim = 0;
        return true;
    case CC_SH_EXTERN_GET:
        return shape_given(in);
    }
    return misfit(in, "no shape rule");
}

bool
cc_infer(CcGraph *g, const CcSpec *spec, bool may_guard, CcType *out, CcStatus *st)
{
    Infer in = {.g = g, .spec = spec, .st = st, .out = out, .may_guard = may_guard};
    uint8_t nargs = cc_op_info[spec->op].nargs;

    if (nargs != CC_ARGS_VARIABLE && spec->narg != nargs) {
        return misfit(&in, "wrong number of operands");
    }
    for (uint32_t i = 0; i < spec->narg; i++) {
        if (spec->arg[i] == 0 || spec->arg[i] >= g->len) {
            return misfit(&in, "operand is no node");
        }
    }
    if (spec->ndim > CC_MAX_NDIM) {
        return misfit(&in, "too many axes");
    }
    if (spec->nattr != cc_op_nattr(spec->op, spec->narg > 0 ? arg_node(&in, 0)->ndim : 0)) {
        return misfit(&in, "wrong number of attributes");
    }
    memset(out, 0, sizeof(*out));
    return infer_dtype(&in) && infer_shape(&in);
}
