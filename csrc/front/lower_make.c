/* front/lower_make.c - arrays made from numbers, and arrays put together from parts. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

enum { MAKE_MAX_PARTS = 64 };

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

/* zeros(shape), ones(shape), full(shape, value); their dtype is as recorded. */
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

/* zeros_like(a), ones_like(a), full_like(a, value) */
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

/* arange of one size, or of constants */
static bool
lower_arange(Lower *L, FrontValue *out)
{
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    TapeRef arg[4];
    int64_t from = 0, to = 0, step = 1;
    CcDim size;

    if (!front_args(L, "start stop step dtype", arg) || result_dtype(L) != CC_DTYPE_I64
            || m->form != META_ARRAY || m->ndim != 1) {
        return front_no(L, "arguments that have no kernel");
    }
    if (arg[1] == TAPE_NULL) {
        size = front_size(L, arg[0], m->dim[0]);
    } else {
        if (!front_const_int(L, arg[0], &from) || !front_const_int(L, arg[1], &to)
                || (arg[2] != TAPE_NULL && !front_const_int(L, arg[2], &step))) {
            return front_no(L, "a range that is not known");
        }
        size = cc_dim_const(L->g, m->dim[0], &L->st);
    }
    if (size == 0) {
        return front_no(L, "a range that is not known");
    }
    CcRef r = cc_build_iota(L->g, cc_build_const_i64(L->g, CC_DTYPE_I64, from, &L->st),
                            cc_build_const_i64(L->g, CC_DTYPE_I64, step, &L->st), size, &L->st);
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

    if (!front_args(L, "arrays axis", arg)
            || (arg[1] != TAPE_NULL && !front_const_int(L, arg[1], &axis))) {
        return front_no(L, "arguments that have no kernel");
    }
    uint32_t n = read_parts(L, arg[0], stack, &axis, part, v);
    if (n == 0) {
        return front_no(L, "parts that are not known");
    }
    uint8_t order = front_order(L, v, n);
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
    if (strcmp(name, "zeros") == 0 || strcmp(name, "ones") == 0 || strcmp(name, "full") == 0) {
        return lower_filled(L, name, out);
    }
    if (strcmp(name, "zeros_like") == 0 || strcmp(name, "ones_like") == 0
            || strcmp(name, "full_like") == 0) {
        return lower_like(L, name, out);
    }
    if (strcmp(name, "arange") == 0) {
        return lower_arange(L, out);
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
