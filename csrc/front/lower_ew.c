/* front/lower_ew.c - elementwise rows: operators, ufuncs, where, clip, casts, truth. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* ufunc, op, and op on bools (COUNT = none); SAME operands: the identity in integers. */
typedef struct {
    const char *name;
    CcOp op, on_bool;
    bool whole;                         /* rounding: integers stay as they are */
} EwRow;

#define NO CC_OP__COUNT
static const EwRow ew_rows[] = {
    {"add", CC_OP_ADD, CC_OP_LOR, false},
    {"subtract", CC_OP_SUB, NO, false},
    {"multiply", CC_OP_MUL, CC_OP_LAND, false},
    {"divide", CC_OP_DIV, NO, false},
    {"floor_divide", CC_OP_FLOORDIV, NO, false},
    {"remainder", CC_OP_MOD, NO, false},
    {"fmod", CC_OP_FMOD, NO, false},
    {"power", CC_OP_POW, NO, false},
    {"float_power", CC_OP_POW, NO, false},
    {"maximum", CC_OP_MAXIMUM, CC_OP_LOR, false},
    {"minimum", CC_OP_MINIMUM, CC_OP_LAND, false},
    {"fmax", CC_OP_FMAX, CC_OP_LOR, false},
    {"fmin", CC_OP_FMIN, CC_OP_LAND, false},
    {"negative", CC_OP_NEG, NO, false},
    {"absolute", CC_OP_ABS, NO, false},
    {"fabs", CC_OP_ABS, NO, false},
    {"sign", CC_OP_SIGN, NO, false},
    {"sqrt", CC_OP_SQRT, NO, false},
    {"cbrt", CC_OP_CBRT, NO, false},
    {"square", CC_OP_SQUARE, NO, false},
    {"reciprocal", CC_OP_RECIP, NO, false},
    {"exp", CC_OP_EXP, NO, false},
    {"exp2", CC_OP_EXP2, NO, false},
    {"expm1", CC_OP_EXPM1, NO, false},
    {"log", CC_OP_LOG, NO, false},
    {"log2", CC_OP_LOG2, NO, false},
    {"log10", CC_OP_LOG10, NO, false},
    {"log1p", CC_OP_LOG1P, NO, false},
    {"sin", CC_OP_SIN, NO, false},
    {"cos", CC_OP_COS, NO, false},
    {"tan", CC_OP_TAN, NO, false},
    {"arcsin", CC_OP_ASIN, NO, false},
    {"arccos", CC_OP_ACOS, NO, false},
    {"arctan", CC_OP_ATAN, NO, false},
    {"sinh", CC_OP_SINH, NO, false},
    {"cosh", CC_OP_COSH, NO, false},
    {"tanh", CC_OP_TANH, NO, false},
    {"arcsinh", CC_OP_ASINH, NO, false},
    {"arccosh", CC_OP_ACOSH, NO, false},
    {"arctanh", CC_OP_ATANH, NO, false},
    {"arctan2", CC_OP_ATAN2, NO, false},
    {"hypot", CC_OP_HYPOT, NO, false},
    {"logaddexp", CC_OP_LOGADDEXP, NO, false},
    {"floor", CC_OP_FLOOR, NO, true},
    {"ceil", CC_OP_CEIL, NO, true},
    {"trunc", CC_OP_TRUNC, NO, true},
    {"rint", CC_OP_RINT, NO, false},
    {"copysign", CC_OP_COPYSIGN, NO, false},
    {"isnan", CC_OP_ISNAN, NO, false},
    {"isinf", CC_OP_ISINF, NO, false},
    {"isfinite", CC_OP_ISFINITE, NO, false},
    {"signbit", CC_OP_SIGNBIT, NO, false},
    {"equal", CC_OP_EQ, CC_OP_EQ, false},
    {"not_equal", CC_OP_NE, CC_OP_NE, false},
    {"less", CC_OP_LT, CC_OP_LT, false},
    {"less_equal", CC_OP_LE, CC_OP_LE, false},
    {"greater", CC_OP_GT, CC_OP_GT, false},
    {"greater_equal", CC_OP_GE, CC_OP_GE, false},
    {"logical_and", CC_OP_LAND, CC_OP_LAND, false},
    {"logical_or", CC_OP_LOR, CC_OP_LOR, false},
    {"logical_xor", CC_OP_LXOR, CC_OP_LXOR, false},
    {"logical_not", CC_OP_LNOT, CC_OP_LNOT, false},
    {"bitwise_and", CC_OP_BAND, CC_OP_BAND, false},
    {"bitwise_or", CC_OP_BOR, CC_OP_BOR, false},
    {"bitwise_xor", CC_OP_BXOR, CC_OP_BXOR, false},
    {"invert", CC_OP_BNOT, CC_OP_LNOT, false},
    {"left_shift", CC_OP_SHL, NO, false},
    {"right_shift", CC_OP_SHR, NO, false},
    {"positive", NO, NO, true},
};
#undef NO

static const EwRow *
ew_find(const char *name)
{
    for (size_t i = 0; i < sizeof(ew_rows) / sizeof(*ew_rows); i++) {
        if (strcmp(ew_rows[i].name, name) == 0) {
            return &ew_rows[i];
        }
    }
    return NULL;
}

/* -- Ufuncs ------------------------------------------------------------------------------------ */

static CcRef
ew_apply(Lower *L, CcOp op, CcRef *ref, uint32_t n)
{
    if (!cc_build_broadcast_all(L->g, ref, n, &L->st)) {
        return 0;
    }
    return n == 1 ? cc_build_unary(L->g, op, ref[0], &L->st)
                  : cc_build_binary(L->g, op, ref[0], ref[1], &L->st);
}

/* Operations of scalars on integers warn when they overflow, which arrays do not. */
static bool
ew_scalar_warns(const Lower *L, const FrontValue *v, uint32_t n, CcDtype dt)
{
    for (uint32_t i = 0; i < n; i++) {
        if (v[i].form == META_ARRAY) {
            return false;
        }
    }
    return L->in->sub != DO_CALL && !cc_dtype_is_float(dt) && dt != CC_DTYPE_BOOL;
}

bool
front_lower_ufunc(Lower *L, const char *name, const TapeRef *arg, uint32_t n, FrontValue *out)
{
    const EwRow *row = ew_find(name);
    FrontValue v[2] = {{0}};
    CcRef ref[2];
    CcDtype dt[3];

    if (row == NULL || n > 2) {
        return front_no(L, "a function without a kernel");
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!front_value(L, arg[i], &v[i])) {
            return false;
        }
    }
    if (!front_resolve(L, name, v, n, dt)) {
        return false;
    }
    if ((n == 2 && dt[0] != dt[1]) || ew_scalar_warns(L, v, n, dt[0])) {
        return front_no(L, "dtypes without kernels");
    }
    for (uint32_t i = 0; i < n; i++) {
        ref[i] = front_as(L, &v[i], dt[i]);
        if (ref[i] == 0) {
            return false;
        }
    }
    CcOp op = dt[0] == CC_DTYPE_BOOL ? row->on_bool : row->op;
    CcRef r;
    if (row->whole && n == 1 && (op == CC_OP__COUNT || !cc_dtype_is_float(dt[0]))) {
        r = ref[0];
    } else if (op == CC_OP__COUNT) {
        return front_no(L, "dtypes without kernels");
    } else {
        r = ew_apply(L, op, ref, n);
    }
    return front_give(L, cc_build_cast(L->g, r, dt[n], &L->st), front_order(L, v, n), true, out);
}

/* An array of one element, whatever its axes, as a value without axes; 0 = it may have more. */
static CcRef
one_element(Lower *L, const FrontValue *v)
{
    if (v->ref == 0 || front_wide_axes(L, v->ref) > 0) {
        return 0;
    }
    return cc_build_reshape(L->g, v->ref, 0, NULL, &L->st);
}

/* bool(v), or its contrary */
static bool
truth_of(Lower *L, const FrontValue *v, bool negate, FrontValue *out)
{
    CcRef r = cc_build_cast(L->g, one_element(L, v), CC_DTYPE_BOOL, &L->st);

    if (r == 0) {
        return front_no(L, "the truth of more than one element");
    }
    r = negate ? cc_build_unary(L->g, CC_OP_LNOT, r, &L->st) : r;
    return front_give(L, r, LAYOUT_C, true, out);
}

/* -- Operators -----------------------------------------------------------------------------------
 */

/* x ** number, where NumPy has short ways. */
static const char *
power_short(const Lower *L, const FrontValue *base, TapeRef exponent)
{
    PyObject *obj = front_const(L, exponent);
    CcDtype dt = front_dtype(base->dtype);

    if (base->form != META_ARRAY || obj == NULL || PyBool_Check(obj)
            || (!PyLong_CheckExact(obj) && !PyFloat_CheckExact(obj))) {
        return "power";
    }
    double e = PyFloat_AsDouble(obj);
    PyErr_Clear();
    if (e == 2.0 && (cc_dtype_is_float(dt) || (PyLong_CheckExact(obj) && dt != CC_DTYPE_BOOL))) {
        return "square";
    }
    if (!cc_dtype_is_float(dt)) {
        return "power";
    }
    return e == 1.0 ? "positive" : e == -1.0 ? "reciprocal" : e == 0.5 ? "sqrt" : "power";
}

bool
front_lower_binary(Lower *L, const TapeRef *arg, FrontValue *out)
{
    static const char *const name[13] = {
        "add", "bitwise_and", "floor_divide", "left_shift", "matmul", "multiply", "remainder",
        "bitwise_or", "power", "right_shift", "subtract", "divide", "bitwise_xor",
    };
    const char *op = name[L->in->aux % 13];
    FrontValue base;

    if (strcmp(op, "matmul") == 0) {
        return front_lower_matmul(L, arg[0], arg[1], false, out);
    }
    if (strcmp(op, "power") == 0) {
        if (!front_value(L, arg[0], &base)) {
            return false;
        }
        op = power_short(L, &base, arg[1]);
    }
    return front_lower_ufunc(L, op, arg, strcmp(op, name[L->in->aux % 13]) == 0 ? 2 : 1, out);
}

bool
front_lower_operator(Lower *L, FrontValue *out)
{
    static const char *const compare[6] = {
        "less", "less_equal", "equal", "not_equal", "greater", "greater_equal",
    };
    static const char *const unary[3] = {"negative", "positive", "invert"};
    const TapeRef *arg = L->t->opnd + L->in->arg;
    FrontValue v;

    switch ((CallKind)L->in->sub) {
    case DO_BINARY:
        return front_lower_binary(L, arg, out);
    case DO_COMPARE:
        if (!front_lower_ufunc(L, compare[L->in->aux & 7], arg, 2, out)) {
            return false;
        }
        return (L->in->aux & 16) == 0 || truth_of(L, out, false, out);
    default:
        if (L->in->aux == 3) {
            return front_value(L, arg[0], &v) && truth_of(L, &v, true, out);
        }
        return front_lower_ufunc(L, unary[L->in->aux & 3], arg, 1, out);
    }
}

/* -- Numbers
 * ----------------------------------------------------------------------------------------- */

bool
front_lower_truth(Lower *L, TapeRef a, FrontValue *out)
{
    FrontValue v;

    if (!front_value(L, a, &v)) {
        return false;
    }
    return truth_of(L, &v, false, out);
}

bool
front_lower_number(Lower *L, TapeRef a, uint8_t form, FrontValue *out)
{
    FrontValue v;

    if (!front_value(L, a, &v)) {
        return false;
    }
    CcRef r = one_element(L, &v);
    if (r == 0) {
        return front_no(L, "a number of more than one element");
    }
    CcDtype from = (CcDtype)L->g->node[r].dtype;
    /* int(x) of a float has no bounds, of u64 neither */
    if (form == META_INT && (cc_dtype_is_float(from) || from == CC_DTYPE_U64)) {
        return front_no(L, "an int of any size");
    }
    CcDtype to = form == META_INT ? CC_DTYPE_I64
               : form == META_FLOAT ? CC_DTYPE_F64 : CC_DTYPE_BOOL;
    return front_give(L, cc_build_cast(L->g, r, to, &L->st), LAYOUT_C, true, out);
}

bool
front_lower_cast(Lower *L, TapeRef a, int typenum, bool copy, FrontValue *out)
{
    FrontValue v;

    if (!front_value(L, a, &v)) {
        return false;
    }
    CcRef r = front_as(L, &v, front_dtype(typenum));
    if (r == v.ref && r != 0 && !copy) {
        return front_give(L, r, v.order, false, out);   /* the operand itself */
    }
    return r != 0 && front_give(L, r, front_copy_order(L, &v), true, out);
}

/* -- where and clip
 * --------------------------------------------------------------------------------------- */

bool
front_lower_where(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue v[3];
    CcRef ref[3];
    CcDtype dt = front_dtype(L->t->meta[L->in->dst - 1].dtype); /* follows from the operands */

    if (!front_args(L, "condition x y", arg)) {
        return false;
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (arg[i] == TAPE_NULL) {
            return front_no(L, "where() with one argument");
        }
        if (!front_value(L, arg[i], &v[i])) {
            return false;
        }
    }
    ref[0] = front_as(L, &v[0], CC_DTYPE_BOOL);
    ref[1] = front_as(L, &v[1], dt);
    ref[2] = front_as(L, &v[2], dt);
    if (!cc_build_broadcast_all(L->g, ref, 3, &L->st)) {
        return front_no(L, "shapes that do not fit");
    }
    CcRef r = cc_build_where(L->g, ref[0], ref[1], ref[2], &L->st);
    return front_give(L, r, front_order(L, v, 3), true, out);
}

static bool
absent(const Lower *L, TapeRef ref)
{
    return ref == TAPE_NULL || front_const(L, ref) == Py_None;
}

/* An array of bounds wins unless x is beyond it or a NaN: so it gives its sign to zeros. Between
 * two numbers x wins where it is equal. A bound that is NaN gives NaN in both. */
static CcRef
clip_side(Lower *L, CcRef x, CcRef bound, bool low, bool numbers)
{
    if (!cc_dtype_is_float((CcDtype)L->g->node[x].dtype)) {
        return cc_build_binary(L->g, low ? CC_OP_MAXIMUM : CC_OP_MINIMUM, x, bound, &L->st);
    }
    CcRef in = cc_build_binary(L->g, low ? (numbers ? CC_OP_GE : CC_OP_GT)
                                         : (numbers ? CC_OP_LE : CC_OP_LT), x, bound, &L->st);
    CcRef nan = cc_build_unary(L->g, CC_OP_ISNAN, x, &L->st);
    CcRef keep = cc_build_binary(L->g, CC_OP_LOR, in, nan, &L->st);
    return cc_build_where(L->g, keep, x, bound, &L->st);
}

/* min(max(x, low), high), in the dtype of all three; a missing bound is left out. */
bool
front_lower_clip(Lower *L, FrontValue *out)
{
    TapeRef arg[5];
    FrontValue v[3];
    CcRef r;
    CcDtype dt[3];

    if (!front_args(L, "a a_min a_max min max", arg) || arg[0] == TAPE_NULL
            || !front_value(L, arg[0], &v[0])) {
        return front_no(L, "arguments that have no kernel");
    }
    TapeRef low = absent(L, arg[1]) ? arg[3] : arg[1], high = absent(L, arg[2]) ? arg[4] : arg[2];
    if (v[0].form != META_ARRAY || v[0].dtype == NPY_BOOL || (absent(L, low) && absent(L, high))) {
        return front_no(L, "clip() without bounds");
    }
    uint32_t n = 1;
    bool numbers = !absent(L, low) && !absent(L, high);
    for (int side = 0; side < 2 && numbers; side++) {
        FrontValue bound;
        if (!front_value(L, side == 0 ? low : high, &bound)) {
            return false;
        }
        numbers = L->g->node[bound.ref].ndim == 0;
    }
    r = v[0].ref;
    for (int side = 0; side < 2; side++) {
        TapeRef ref = side == 0 ? low : high;
        if (absent(L, ref)) {
            continue;
        }
        if (!front_value(L, ref, &v[n])) {
            return false;
        }
        /* one dtype for all: bounds that would widen the array are NumPy's */
        FrontValue pair[2] = {v[0], v[n]};
        if (!front_resolve(L, "maximum", pair, 2, dt) || dt[2] != front_dtype(v[0].dtype)) {
            return front_no(L, "clip() that changes the dtype");
        }
        CcRef two[2] = {r, front_as(L, &v[n], dt[0])};
        if (two[1] == 0 || !cc_build_broadcast_all(L->g, two, 2, &L->st)) {
            return front_no(L, "bounds that have no kernel");
        }
        r = clip_side(L, two[0], two[1], side == 0, numbers);
        n++;
    }
    return front_give(L, r, front_order(L, v, n), true, out);
}
