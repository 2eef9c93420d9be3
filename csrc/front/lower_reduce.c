/* front/lower_reduce.c - reductions and scans: functions and methods of the same names. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

typedef enum { RED_PLAIN, RED_ADDS, RED_MOMENT, RED_TRUTH, RED_ARG, RED_SCAN } RedKind;

typedef struct {
    const char *name;
    RedKind kind;
    CcOp op;
    const char *args;
} RedRow;

/* Operand and axis first; then the others, where there are any, under fixed places. */
enum { RED_A, RED_AXIS, RED_DTYPE, RED_OUT, RED_KEEP, RED_DDOF };

static const RedRow red_rows[] = {
    {"sum", RED_ADDS, CC_OP_SUM, "a axis dtype out keepdims"},
    {"prod", RED_ADDS, CC_OP_PROD, "a axis dtype out keepdims"},
    {"mean", RED_MOMENT, CC_OP_MEAN, "a axis dtype out keepdims"},
    {"var", RED_MOMENT, CC_OP_VAR, "a axis dtype out keepdims ddof"},
    {"std", RED_MOMENT, CC_OP_STD, "a axis dtype out keepdims ddof"},
    {"max", RED_PLAIN, CC_OP_MAX, "a axis out keepdims"},
    {"min", RED_PLAIN, CC_OP_MIN, "a axis out keepdims"},
    {"amax", RED_PLAIN, CC_OP_MAX, "a axis out keepdims"},
    {"amin", RED_PLAIN, CC_OP_MIN, "a axis out keepdims"},
    {"any", RED_TRUTH, CC_OP_ANY, "a axis out keepdims"},
    {"all", RED_TRUTH, CC_OP_ALL, "a axis out keepdims"},
    {"argmax", RED_ARG, CC_OP_ARGMAX, "a axis out keepdims"},
    {"argmin", RED_ARG, CC_OP_ARGMIN, "a axis out keepdims"},
    {"cumsum", RED_SCAN, CC_OP_CUMSUM, "a axis dtype out"},
    {"cumprod", RED_SCAN, CC_OP_CUMPROD, "a axis dtype out"},
};

/* -- Arguments -------------------------------------------------------------------------------- */

typedef struct {
    FrontValue a;
    uint64_t axes;                      /* as a mask */
    bool all, keep;
    int dtype;                          /* type number, -1 = not given */
    int64_t ddof;
} RedCall;

static bool
read_axes(Lower *L, TapeRef ref, RedCall *c)
{
    uint8_t ndim = L->g->node[c->a.ref].ndim;

    c->axes = 0;
    c->all = ref == TAPE_NULL || front_const(L, ref) == Py_None;
    if (c->all) {
        c->axes = ((uint64_t)1 << ndim) - 1;
        return true;
    }
    return front_axes(L, ref, ndim, &c->axes);
}

static bool
read_dtype(Lower *L, TapeRef ref, int *typenum)
{
    bool given = ref != TAPE_NULL && front_const(L, ref) != Py_None;

    *typenum = given ? front_dtype_operand(L, ref) : -1;
    return !given || *typenum >= 0 || front_no(L, "a dtype that is not known");
}

static bool
read_call(Lower *L, const RedRow *row, RedCall *c)
{
    TapeRef arg[FRONT_MAX_ARGS] = {TAPE_NULL};
    bool typed = strstr(row->args, "dtype") != NULL;
    TapeRef out, keep;

    /* `ddof` by position comes before `keepdims` */
    if (!front_args(L, row->args, arg)
            || (row->kind == RED_MOMENT && L->in->kw == 0 && L->in->n > 4)) {
        return front_no(L, "arguments that have no kernel");
    }
    c->ddof = 0;
    if (arg[RED_DDOF] != TAPE_NULL && !front_const_int(L, arg[RED_DDOF], &c->ddof)) {
        return front_no(L, "a ddof that is not known");
    }
    out = arg[typed ? RED_OUT : RED_OUT - 1];
    keep = row->kind == RED_SCAN ? TAPE_NULL : arg[typed ? RED_KEEP : RED_KEEP - 1];
    PyObject *kept = keep == TAPE_NULL ? Py_False : front_const(L, keep);
    if (arg[RED_A] == TAPE_NULL || (out != TAPE_NULL && front_const(L, out) != Py_None)
            || kept == NULL || !PyBool_Check(kept)) {
        return front_no(L, "arguments that have no kernel");
    }
    c->keep = kept == Py_True;
    if (!front_value(L, arg[RED_A], &c->a)) {
        return false;
    }
    if (c->a.form != META_ARRAY || L->g->node[c->a.ref].ndim == 0) {
        return front_no(L, "a reduction of a number");
    }
    c->dtype = -1;
    return read_axes(L, arg[RED_AXIS], c) && (!typed || read_dtype(L, arg[RED_DTYPE], &c->dtype));
}

/* -- Rules ---------------------------------------------------------------------------------------
 */

/* What NumPy adds up in: small integers widen, and so do bools. */
static CcDtype
adding_dtype(CcDtype dt)
{
    switch (cc_dtype_info[dt].cls) {
    case CC_DCLASS_FLOAT:
        return dt;
    case CC_DCLASS_UINT:
        return CC_DTYPE_U64;
    default:
        return CC_DTYPE_I64;
    }
}

static bool
pick_dtype(Lower *L, const RedRow *row, const RedCall *c, CcDtype *dt)
{
    CcDtype from = front_dtype(c->a.dtype);

    if (row->kind == RED_MOMENT) {
        *dt = cc_dtype_is_float(from) ? from : CC_DTYPE_F64;
    } else if (row->kind == RED_ARG && from == CC_DTYPE_BOOL) {
        return front_no(L, "argmax of bools, whose true bytes may differ");
    } else {
        *dt = row->kind == RED_ADDS || row->kind == RED_SCAN ? adding_dtype(from) : from;
    }
    if (c->dtype >= 0) {
        *dt = front_dtype(c->dtype);
        bool narrow = cc_dtype_is_float(from) && !cc_dtype_is_float(*dt);
        if (*dt == CC_DTYPE_NONE || *dt == CC_DTYPE_BOOL || narrow
                || (row->kind == RED_MOMENT && !cc_dtype_is_float(*dt))) {
            return front_no(L, "a reduction in a dtype without kernels");
        }
    }
    return true;
}

/* Reductions of nothing are errors or warnings: NumPy's. */
static bool
has_elements(const Lower *L, CcRef r)
{
    for (uint32_t i = 0; i < L->g->node[r].ndim; i++) {
        if (cc_dim_equals(L->g, cc_shape(L->g, r)[i], 0)) {
            return false;
        }
    }
    return true;
}

static CcRef
build_scan(Lower *L, const RedRow *row, const RedCall *c, CcRef a)
{
    uint32_t axis = 0;

    if (c->all && L->g->node[a].ndim > 1) {
        CcDim n = cc_numel(L->g, a, &L->st);
        a = n == 0 ? 0 : cc_build_reshape(L->g, a, 1, &n, &L->st);
    }
    while (!c->all && (c->axes >> axis & 1) == 0) {
        axis++;
    }
    return cc_build_along(L->g, row->op, a, axis, &L->st);
}

static bool
lower_reduction(Lower *L, const RedRow *row, FrontValue *out)
{
    RedCall c;
    CcDtype dt;
    CcRef a, r;

    if (!read_call(L, row, &c) || !pick_dtype(L, row, &c, &dt)) {
        return false;
    }
    if (!has_elements(L, c.a.ref)) {
        return front_no(L, "a reduction of nothing");
    }
    a = front_as(L, &c.a, dt);
    uint8_t order = front_copy_order(L, &c.a);
    bool one_axis = (c.axes & (c.axes - 1)) == 0;
    switch (row->kind) {
    case RED_SCAN:
        if (!c.all && !one_axis) {
            return front_no(L, "a scan along two axes");
        }
        r = build_scan(L, row, &c, a);
        break;
    case RED_ARG:
        if (!c.all && !one_axis) {
            return front_no(L, "argmax of two axes");
        }
        order = LAYOUT_C;
        r = cc_build_reduce(L->g, row->op, a, c.axes, c.keep, &L->st);
        break;
    case RED_MOMENT:
        r = cc_build_moment(L->g, row->op, a, c.axes, c.ddof, c.keep, &L->st);
        break;
    default:
        if (row->kind == RED_PLAIN && dt == CC_DTYPE_BOOL) {
            CcOp op = row->op == CC_OP_MAX ? CC_OP_ANY : CC_OP_ALL;
            r = cc_build_reduce(L->g, op, a, c.axes, c.keep, &L->st);
        } else {
            r = cc_build_reduce(L->g, row->op, a, c.axes, c.keep, &L->st);
        }
    }
    return front_give(L, r, order, true, out);
}

bool
front_lower_reduction(Lower *L, const char *name, bool *mine, FrontValue *out)
{
    for (size_t i = 0; i < sizeof(red_rows) / sizeof(*red_rows); i++) {
        if (strcmp(red_rows[i].name, name) == 0) {
            *mine = true;
            return lower_reduction(L, &red_rows[i], out);
        }
    }
    *mine = false;
    return false;
}
