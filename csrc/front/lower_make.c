/* front/lower_make.c - arrays made from numbers, and arrays put together from parts. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

enum { MAKE_MAX_PARTS = 64, MAKE_MAX_ITEMS = 32 };

static CcDtype
result_dtype(const Lower *L)
{
    return front_dtype(L->t->meta[L->in->dst - 1].dtype);
}

/* -- From numbers
 * ---------------------------------------------------------------------------------- */

/* dtype=, order= and device= as they are when nobody asks for anything but a known dtype. */
static bool
plain_options(Lower *L, TapeRef dtype, TapeRef order, TapeRef device)
{
    PyObject *text = front_const(L, order);
    bool given = dtype != TAPE_NULL && front_const(L, dtype) != Py_None;
    bool in_c = order == TAPE_NULL || (text != NULL && PyUnicode_CheckExact(text)
                                       && PyUnicode_CompareWithASCIIString(text, "C") == 0);

    if ((given && front_dtype_operand(L, dtype) < 0) || !in_c
            || (device != TAPE_NULL && front_const(L, device) != Py_None)) {
        return front_no(L, "arguments that have no kernel");
    }
    return true;
}

static bool
filled(Lower *L, CcRef value, uint8_t n, const CcDim *dim, uint8_t order, FrontValue *out)
{
    return front_give(L, cc_build_full(L->g, value, n, dim, &L->st), order, true, out);
}

/* zeros(shape), ones(shape), full(shape, value), empty(shape), in which anything may be; their dtype
 * is as recorded. */
static bool
lower_filled(Lower *L, const char *name, FrontValue *out)
{
    bool full = strcmp(name, "full") == 0;
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    TapeRef arg[5];
    CcDim dim[TAPE_MAX_NDIM];
    FrontValue v;
    CcRef value;

    const char *names = full ? "shape fill_value dtype order device" : "shape dtype order device";
    if (!front_args(L, names, arg)
            || !plain_options(L, arg[full + 1], arg[full + 2], arg[full + 3])
            || !front_shape(L, arg[0], m->ndim, m->dim, dim)) {
        return false;
    }
    if (full) {
        if (arg[1] == TAPE_NULL || !front_value(L, arg[1], &v)
                || (v.ref != 0 && L->g->node[v.ref].ndim > 0)) {
            return front_no(L, "full() of an array");
        }
        value = front_as(L, &v, result_dtype(L));
    } else {
        value = cc_build_const_i64(L->g, result_dtype(L), *name == 'o', &L->st);
    }
    return value != 0 && filled(L, value, m->ndim, dim, LAYOUT_C, out);
}

/* zeros_like(a), ones_like(a), full_like(a, value), empty_like(a) */
static bool
lower_like(Lower *L, const char *name, FrontValue *out)
{
    bool full = strcmp(name, "full_like") == 0;
    TapeRef arg[3];
    CcDim dim[TAPE_MAX_NDIM];
    FrontValue a, v;
    CcRef value;

    if (!front_args(L, full ? "a fill_value dtype" : "a dtype", arg) || arg[0] == TAPE_NULL
            || !front_value(L, arg[0], &a)) {
        return false;
    }
    if (a.form != META_ARRAY || !plain_options(L, arg[full + 1], TAPE_NULL, TAPE_NULL)) {
        return front_no(L, "arguments that have no kernel");
    }
    if (full) {
        if (arg[1] == TAPE_NULL || !front_value(L, arg[1], &v)
                || (v.ref != 0 && L->g->node[v.ref].ndim > 0)) {
            return front_no(L, "full_like() of an array");
        }
        value = front_as(L, &v, result_dtype(L));
    } else {
        value = cc_build_const_i64(L->g, result_dtype(L), *name == 'o', &L->st);
    }
    uint8_t n = L->g->node[a.ref].ndim;
    for (uint8_t i = 0; i < n; i++) {
        dim[i] = cc_shape(L->g, a.ref)[i];
    }
    return value != 0 && filled(L, value, n, dim, front_copy_order(L, &a), out);
}

/* arange in floats: from the first two elements, as NumPy fills it */
static bool
float_range(Lower *L, PyObject *from, PyObject *step, FrontValue *out)
{
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    CcDtype dt = result_dtype(L);
    double first = from == NULL ? 0 : PyFloat_AsDouble(from);
    double by = step == NULL ? 1 : PyFloat_AsDouble(step);

    if (PyErr_Occurred() || (dt == CC_DTYPE_F32 && m->dim[0] > 1 << 24)) {
        PyErr_Clear();
        return front_no(L, "a range that is not known");
    }
    double delta = dt == CC_DTYPE_F32 ? (double)((float)(first + by) - (float)first)
                                      : (first + by) - first;
    CcRef r = cc_build_iota(L->g, cc_build_const_f64(L->g, dt, first, &L->st),
                            cc_build_const_f64(L->g, dt, delta, &L->st),
                            cc_dim_const(L->g, m->dim[0], &L->st), &L->st);
    return front_give(L, r, LAYOUT_C, true, out);
}

/* arange of one size, or of constants; the dtype is as recorded */
static bool
lower_arange(Lower *L, FrontValue *out)
{
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    CcDtype dt = result_dtype(L);
    TapeRef arg[4];
    int64_t from = 0, to = 0, step = 1;
    CcDim size;

    if (!front_args(L, "start stop step dtype", arg) || m->form != META_ARRAY || m->ndim != 1
            || dt == CC_DTYPE_NONE || dt == CC_DTYPE_BOOL
            || !plain_options(L, arg[3], TAPE_NULL, TAPE_NULL)) {
        return front_no(L, "arguments that have no kernel");
    }
    bool constant = front_const(L, arg[0]) != NULL
        && (arg[1] == TAPE_NULL || front_const(L, arg[1]) != NULL)
        && (arg[2] == TAPE_NULL || front_const(L, arg[2]) != NULL);
    if (cc_dtype_is_float(dt)) {
        return constant ? float_range(L, arg[1] == TAPE_NULL ? NULL : front_const(L, arg[0]),
                                      front_const(L, arg[2]), out)
                        : front_no(L, "a range that is not known");
    }
    if (arg[1] == TAPE_NULL && arg[2] == TAPE_NULL && dt == CC_DTYPE_I64) {
        size = front_size(L, arg[0], m->dim[0]);
    } else {
        if (!front_const_int(L, arg[0], &from)
                || (arg[1] != TAPE_NULL && !front_const_int(L, arg[1], &to))
                || (arg[2] != TAPE_NULL && !front_const_int(L, arg[2], &step))) {
            return front_no(L, "a range that is not known");
        }
        from = arg[1] == TAPE_NULL ? 0 : from;
        size = cc_dim_const(L->g, m->dim[0], &L->st);
    }
    if (size == 0 || !front_int_fits(dt, from) || !front_int_fits(dt, step)) {
        return front_no(L, "a range that is not known");
    }
    CcRef r = cc_build_iota(L->g, cc_build_const_i64(L->g, dt, from, &L->st),
                            cc_build_const_i64(L->g, dt, step, &L->st), size, &L->st);
    return front_give(L, r, LAYOUT_C, true, out);
}

/* linspace of constants: arange(num) * step + start, and the stop itself as the last */
static bool
lower_linspace(Lower *L, FrontValue *out)
{
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    TapeRef arg[4];
    double end[2];

    if (!front_args(L, "start stop num endpoint", arg) || m->form != META_ARRAY || m->ndim != 1
            || result_dtype(L) != CC_DTYPE_F64) {
        return front_no(L, "arguments that have no kernel");
    }
    PyObject *last = arg[3] == TAPE_NULL ? Py_True : front_const(L, arg[3]);
    for (int i = 0; i < 2; i++) {
        PyObject *o = front_const(L, arg[i]);
        bool number = o != NULL && (PyFloat_CheckExact(o) || PyLong_CheckExact(o));
        end[i] = number ? PyFloat_AsDouble(o) : 0;
        last = number && !PyErr_Occurred() ? last : NULL;
        PyErr_Clear();
    }
    bool num = arg[2] == TAPE_NULL || front_const(L, arg[2]) != NULL;
    int64_t n = m->dim[0];
    if (last == NULL || !PyBool_Check(last) || !num || n < 2) {
        return front_no(L, "numbers that are not known");
    }
    double step = (end[1] - end[0]) / (double)(last == Py_True ? n - 1 : n);
    if (step == 0 || step - step != 0) {
        return front_no(L, "numbers that are not known");
    }
    CcRef r = cc_build_iota(L->g, cc_build_const_i64(L->g, CC_DTYPE_I64, 0, &L->st),
                            cc_build_const_i64(L->g, CC_DTYPE_I64, 1, &L->st),
                            cc_dim_const(L->g, n, &L->st), &L->st);
    CcRef two[2] = {r, cc_build_const_i64(L->g, CC_DTYPE_I64, n - 1, &L->st)};
    CcRef f[2] = {
        cc_build_cast(L->g, r, CC_DTYPE_F64, &L->st),
        cc_build_const_f64(L->g, CC_DTYPE_F64, step, &L->st),
    };
    CcRef g[2] = {0, cc_build_const_f64(L->g, CC_DTYPE_F64, end[0], &L->st)};
    if (!cc_build_broadcast_all(L->g, f, 2, &L->st)) {
        return front_no(L, "operands that the graph does not take");
    }
    g[0] = cc_build_binary(L->g, CC_OP_MUL, f[0], f[1], &L->st);
    if (g[0] == 0 || g[1] == 0 || !cc_build_broadcast_all(L->g, g, 2, &L->st)) {
        return front_no(L, "operands that the graph does not take");
    }
    CcRef value = cc_build_binary(L->g, CC_OP_ADD, g[0], g[1], &L->st);
    if (last == Py_True && value != 0 && cc_build_broadcast_all(L->g, two, 2, &L->st)) {
        CcRef three[3] = {
            cc_build_binary(L->g, CC_OP_EQ, two[0], two[1], &L->st),
            cc_build_const_f64(L->g, CC_DTYPE_F64, end[1], &L->st),
            value,
        };
        value = three[0] != 0 && three[1] != 0 && cc_build_broadcast_all(L->g, three, 3, &L->st)
                    ? cc_build_where(L->g, three[0], three[1], three[2], &L->st) : 0;
    }
    return front_give(L, value, LAYOUT_C, true, out);
}

/* array(x) is a copy; asarray(x), ascontiguousarray(x) may be x itself; a flat list of numbers is
 * an array of them. */
static bool
lower_array(Lower *L, bool copies, FrontValue *out)
{
    TapeRef arg[2], item[MAKE_MAX_ITEMS];
    CcRef part[MAKE_MAX_ITEMS];
    FrontValue v;

    if (!front_args(L, copies ? "object dtype" : "a dtype", arg)
            || !plain_options(L, arg[1], TAPE_NULL, TAPE_NULL)
            || result_dtype(L) == CC_DTYPE_NONE) {
        return front_no(L, "arguments that have no kernel");
    }
    int n = front_items(L, arg[0], item, MAKE_MAX_ITEMS);
    if (n < 0 && front_array(L, arg[0], &v)) {
        CcRef r = front_as(L, &v, result_dtype(L));
        bool same = r == v.ref;
        return front_give(L, r, same ? v.order : front_copy_order(L, &v), copies || !same, out);
    }
    for (int i = 0; i < n; i++) {
        if (!front_value(L, item[i], &v) || (v.form == META_ARRAY)) {
            return front_no(L, "an array of other things than numbers");
        }
        part[i] = cc_build_expand(L->g, front_as(L, &v, result_dtype(L)), 1, &L->st);
        if (part[i] == 0) {
            return front_no(L, "an array of other things than numbers");
        }
    }
    CcRef r = n < 1 ? 0 : cc_build_concat(L->g, part, (uint32_t)n, 0, &L->st);
    return front_give(L, r, LAYOUT_C, true, out);
}

/* -- From parts
 * ---------------------------------------------------------------------------------------- */

/* The parts in the result's dtype; `stack`: each gets a new axis. Returns their number, 0 = no. */
static uint32_t
read_parts(Lower *L, TapeRef ref, bool stack, int64_t *axis, CcRef *part, FrontValue *v)
{
    TapeRef item[MAKE_MAX_PARTS];
    int n = front_items(L, ref, item, MAKE_MAX_PARTS);

    for (int i = 0; i < n; i++) {
        if (!front_value(L, item[i], &v[i])) {
            return 0;
        }
        if (v[i].form != META_ARRAY) {
            return 0;
        }
        uint8_t ndim = L->g->node[v[i].ref].ndim;
        if (i == 0) {
            *axis += *axis < 0 ? ndim + stack : 0;
        }
        if (*axis < 0 || *axis >= ndim + stack) {
            return 0;
        }
        part[i] = front_as(L, &v[i], result_dtype(L));
        if (stack && part[i] != 0) {
            part[i] = cc_build_expand(L->g, part[i], (uint64_t)1 << *axis, &L->st);
        }
        if (part[i] == 0) {
            return 0;
        }
    }
    return n < 0 ? 0 : (uint32_t)n;
}

static bool
lower_joined(Lower *L, bool stack, FrontValue *out)
{
    TapeRef arg[2];
    CcRef part[MAKE_MAX_PARTS];
    FrontValue v[MAKE_MAX_PARTS];
    int64_t axis = 0;

    if (!front_args(L, "arrays axis", arg)) {
        return front_no(L, "arguments that have no kernel");
    }
    bool flat = !stack && front_const(L, arg[1]) == Py_None;
    if (!flat && arg[1] != TAPE_NULL && !front_const_int(L, arg[1], &axis)) {
        return front_no(L, "arguments that have no kernel");
    }
    uint32_t n = read_parts(L, arg[0], stack, &axis, part, v);
    for (uint32_t i = 0; flat && i < n; i++) {
        CcDim all = cc_numel(L->g, part[i], &L->st);
        part[i] = all == 0 ? 0 : cc_build_reshape(L->g, part[i], 1, &all, &L->st);
        n = part[i] == 0 ? 0 : n;
    }
    if (n == 0) {
        return front_no(L, "parts that are not known");
    }
    uint8_t order = flat ? LAYOUT_C : front_order(L, v, n);
    for (uint32_t i = 0; stack && i < n; i++) {
        order = v[i].order == LAYOUT_C ? order : LAYOUT_STRIDED;
    }
    CcRef r = cc_build_concat(L->g, part, n, (uint32_t)axis, &L->st);
    return front_give(L, r, order, true, out);
}

/* Widths of one axis from 3, (3,), (1, 2) or one such row per axis. */
static bool
pad_widths(PyObject *obj, uint8_t axis, uint8_t ndim, long *lo, long *hi)
{
    bool rows = PyTuple_Check(obj) && PyTuple_GET_SIZE(obj) > 0;

    if (rows && PyTuple_Check(PyTuple_GET_ITEM(obj, 0))) {
        if (PyTuple_GET_SIZE(obj) != 1 && PyTuple_GET_SIZE(obj) != ndim) {
            return false;
        }
        obj = PyTuple_GET_ITEM(obj, PyTuple_GET_SIZE(obj) == 1 ? 0 : axis);
    }
    if (PyTuple_Check(obj)) {
        Py_ssize_t n = PyTuple_GET_SIZE(obj);
        if ((n != 1 && n != 2) || !PyLong_CheckExact(PyTuple_GET_ITEM(obj, 0))
                || !PyLong_CheckExact(PyTuple_GET_ITEM(obj, n - 1))) {
            return false;
        }
        *lo = PyLong_AsLong(PyTuple_GET_ITEM(obj, 0));
        *hi = PyLong_AsLong(PyTuple_GET_ITEM(obj, n - 1));
    } else {
        *lo = *hi = PyLong_CheckExact(obj) ? PyLong_AsLong(obj) : -1;
    }
    PyErr_Clear();
    return *lo >= 0 && *hi >= 0;
}

/* pad(a, widths) with a constant number */
static bool
lower_pad(Lower *L, FrontValue *out)
{
    TapeRef arg[4];
    CcDim lo[TAPE_MAX_NDIM], hi[TAPE_MAX_NDIM];
    FrontValue a, number;
    CcRef value;

    if (!front_args(L, "array pad_width mode constant_values", arg) || arg[0] == TAPE_NULL
            || !front_value(L, arg[0], &a) || a.form != META_ARRAY) {
        return front_no(L, "arguments that have no kernel");
    }
    PyObject *mode = front_const(L, arg[2]);
    if (arg[2] != TAPE_NULL && (mode == NULL || !PyUnicode_CheckExact(mode)
                                || PyUnicode_CompareWithASCIIString(mode, "constant") != 0)) {
        return front_no(L, "pad() in another mode");
    }
    if (arg[3] == TAPE_NULL) {
        value = cc_build_const_i64(L->g, front_dtype(a.dtype), 0, &L->st);
    } else {
        bool plain = front_const(L, arg[3]) != NULL && !PyTuple_Check(front_const(L, arg[3]));
        value = plain && front_value(L, arg[3], &number) && number.ref == 0
                    ? front_as(L, &number, front_dtype(a.dtype)) : 0;
    }
    PyObject *widths = front_object(L, arg[1]);
    uint8_t n = L->g->node[a.ref].ndim;
    bool ok = widths != NULL && value != 0;
    for (uint8_t i = 0; ok && i < n; i++) {
        long before, after;
        ok = pad_widths(widths, i, n, &before, &after);
        lo[i] = ok ? cc_dim_const(L->g, before, &L->st) : 0;
        hi[i] = ok ? cc_dim_const(L->g, after, &L->st) : 0;
    }
    Py_XDECREF(widths);
    if (!ok) {
        return front_no(L, "pad() by what is not known");
    }
    uint8_t order = front_copy_order(L, &a) == LAYOUT_C ? LAYOUT_C : LAYOUT_STRIDED;
    return front_give(L, cc_build_pad(L->g, a.ref, value, lo, hi, &L->st), order, true, out);
}

bool
front_lower_making(Lower *L, const char *name, bool *mine, FrontValue *out)
{
    *mine = true;
    if (strcmp(name, "zeros") == 0 || strcmp(name, "ones") == 0 || strcmp(name, "full") == 0
            || strcmp(name, "empty") == 0) {
        return lower_filled(L, name, out);
    }
    if (strcmp(name, "zeros_like") == 0 || strcmp(name, "ones_like") == 0
            || strcmp(name, "full_like") == 0 || strcmp(name, "empty_like") == 0) {
        return lower_like(L, name, out);
    }
    if (strcmp(name, "arange") == 0) {
        return lower_arange(L, out);
    }
    if (strcmp(name, "linspace") == 0) {
        return lower_linspace(L, out);
    }
    if (strcmp(name, "array") == 0 || strcmp(name, "asarray") == 0) {
        return lower_array(L, name[1] == 'r', out);
    }
    if (strcmp(name, "concatenate") == 0 || strcmp(name, "stack") == 0) {
        return lower_joined(L, *name == 's', out);
    }
    if (strcmp(name, "pad") == 0) {
        return lower_pad(L, out);
    }
    *mine = false;
    return false;
}
