/* front/numpy.c - NumPy: which operations are pure array work, and how to look at an array.
 *
 * Pure means: exact ndarrays and scalars of plain dtypes in, a result that depends on nothing else
 * out, no Python code run, errors that do not depend on when it runs. Functions are known by
 * identity; everything else is foreign. Needs the GIL. */
#define FRONT_NPY_IMPORTS
#include "npy.h"

#include "lower.h"

#include <string.h>

static PyObject *known;                 /* dict: callable -> None, pure array functions */
static PyObject
    *known_fresh; /* dict: callable -> None, pure functions that make arrays from numbers */
static PyObject *registered;            /* dict: Python functions of ours -> None */
static PyObject *dispatcher_type;       /* type of np.sum and the like */
static PyObject *generic_type;
static PyObject *extobj_var, *make_extobj, *geterr_fn;
static PyObject *extobj_raise[16];      /* by mask of what is ignored */
static PyObject *extobj_seen;           /* the error state whose mask is cached */
static int extobj_mask;

/* Functions of numpy by name; the last ones make arrays out of shapes and numbers. */
static const char *const pure_functions[] = {
    "sum", "prod", "mean", "var", "std", "max", "min", "amax", "amin", "argmax", "argmin",
    "any", "all", "cumsum", "cumprod", "ptp", "dot", "vdot", "inner", "outer", "einsum",
    "tensordot", "reshape", "ravel", "transpose", "swapaxes", "moveaxis", "expand_dims",
    "squeeze", "broadcast_to", "concatenate", "stack", "vstack", "hstack", "dstack",
    "column_stack", "split", "array_split", "pad", "flip", "fliplr", "flipud", "roll", "rot90",
    "repeat", "tile", "where", "clip", "round", "around", "take", "take_along_axis", "diff",
    "trace", "diagonal", "diag", "tril", "triu", "zeros_like", "ones_like", "full_like",
    "empty_like", "atleast_1d", "atleast_2d", "atleast_3d", "vsplit", "hsplit", "dsplit",
    "append", "rollaxis", "fix", "select", "compress", "extract", "argwhere", "sinc", "cross",
    "kron", "count_nonzero", "sort", "argsort", "searchsorted", "nansum", "real", "imag",
    "shape", "ndim", "size", "copy", "astype", "permute_dims", "matrix_transpose", "interp",
    "array_equal", "allclose", "isclose", "bincount", "unique", "nonzero", "flatnonzero",
    "nan_to_num", "logspace", "meshgrid", "triu_indices", "tril_indices",
};
static const char *const fresh_functions[] = {
    "zeros", "ones", "full", "empty", "arange", "linspace", "eye", "identity", "array", "asarray",
    "ascontiguousarray", "tri",
};

/* Methods of ndarray and of scalars that are pure without an `out`. */
static const char *const pure_methods[] = {
    "sum", "prod", "mean", "var", "std", "max", "min", "argmax", "argmin", "any", "all", "cumsum",
    "cumprod", "dot", "reshape", "ravel", "flatten", "transpose", "swapaxes", "squeeze", "astype",
    "copy", "clip", "round", "item", "take", "repeat", "trace", "diagonal", "nonzero", "argsort",
    "conj", "conjugate", "tolist", "__len__",
};
static const char *const meta_attributes[] = {
    "shape", "ndim", "size", "dtype", "itemsize", "nbytes", "strides",
};
static const char *const warner_keywords[] = {"correction", "mean", "where"};
static const char *const view_attributes[] = {"T", "real", "imag", "mT"};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static bool
name_in(PyObject *name, const char *const *table, size_t n)
{
    for (size_t i = 0; PyUnicode_Check(name) && i < n; i++) {
        if (PyUnicode_CompareWithASCIIString(name, table[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* -- Set-up ----------------------------------------------------------------------------- */

static int
add_names(PyObject *into, PyObject *module, const char *const *name, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        PyObject *fn = PyObject_GetAttrString(module, name[i]);
        if (fn == NULL) {
            PyErr_Clear();              /* an older or newer NumPy without it */
            continue;
        }
        int err = PyDict_SetItem(into, fn, Py_None);
        Py_DECREF(fn);
        if (err < 0) {
            return -1;
        }
    }
    return 0;
}

/* All universal functions of the namespace, and matmul and vecdot are ones too. */
static int
add_ufuncs(PyObject *into, PyObject *module)
{
    PyObject *dict = PyModule_GetDict(module), *key, *value;
    Py_ssize_t pos = 0;

    while (PyDict_Next(dict, &pos, &key, &value)) {
        if (Py_IS_TYPE(value, &PyUFunc_Type) && PyDict_SetItem(into, value, Py_None) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
setup_errstate(void)
{
    PyObject *umath = PyImport_ImportModule("numpy._core.umath");

    if (umath == NULL) {
        return -1;
    }
    extobj_var = PyObject_GetAttrString(umath, "_extobj_contextvar");
    make_extobj = PyObject_GetAttrString(umath, "_make_extobj");
    geterr_fn = PyObject_GetAttrString(umath, "_get_extobj_dict");
    Py_DECREF(umath);
    return extobj_var && make_extobj && geterr_fn ? 0 : -1;
}

int
front_setup(void)
{
    PyObject *np, *sum;
    int err = -1;

    if (known != NULL) {
        return 0;
    }
    import_array1(-1);
    import_umath1(-1);
    np = PyImport_ImportModule("numpy");
    known = PyDict_New();
    known_fresh = PyDict_New();
    registered = PyDict_New();
    if (np == NULL || known == NULL || known_fresh == NULL || registered == NULL) {
        goto done;
    }
    sum = PyObject_GetAttrString(np, "sum");
    dispatcher_type = sum == NULL ? NULL : Py_NewRef((PyObject *)Py_TYPE(sum));
    Py_XDECREF(sum);
    generic_type = Py_NewRef((PyObject *)&PyGenericArrType_Type);
    if (dispatcher_type == NULL || add_ufuncs(known, np) < 0
            || add_names(known, np, pure_functions, COUNT(pure_functions)) < 0
            || add_names(known_fresh, np, fresh_functions, COUNT(fresh_functions)) < 0) {
        goto done;
    }
    err = setup_errstate();
done:
    Py_XDECREF(np);
    return err;
}

int
front_register(PyObject *function)
{
    if (!py_plain_function(function)) {
        PyErr_SetString(PyExc_TypeError, "expected a Python function");
        return -1;
    }
    return PyDict_SetItem(registered, function, Py_None);
}

bool
front_is_registered(PyObject *obj)
{
    return PyFunction_Check(obj) && PyDict_Contains(registered, obj) == 1;
}

/* -- Objects ---------------------------------------------------------------------------------- */

static bool
plain_dtype(PyArray_Descr *d)
{
    return (PyTypeNum_ISNUMBER(d->type_num) || d->type_num == NPY_BOOL)
        && !PyTypeNum_ISUSERDEF(d->type_num) && PyArray_ISNBO(d->byteorder);
}

bool
front_is_array(PyObject *obj)
{
    return PyArray_CheckExact(obj) && plain_dtype(PyArray_DESCR((PyArrayObject *)obj))
        && PyArray_NDIM((PyArrayObject *)obj) <= TAPE_MAX_NDIM;
}

bool
front_is_scalar(PyObject *obj)
{
    PyTypeObject *tp = Py_TYPE(obj);

    if (!PyArray_IsScalar(obj, Number) && !PyArray_IsScalar(obj, Bool)) {
        return false;
    }
    return !(tp->tp_flags & Py_TPFLAGS_HEAPTYPE);
}

static bool
is_plain(PyObject *o)
{
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) || o == Py_None
        || PyUnicode_CheckExact(o) || PyComplex_CheckExact(o) || o == Py_Ellipsis;
}

bool
front_runs_whole(PyObject *obj)
{
    return PyFunction_Check(obj)
        && (PyDict_Contains(registered, obj) == 1 || PyDict_Contains(known_fresh, obj) == 1);
}

bool
front_is_constant(PyObject *obj)
{
    return Py_IS_TYPE(obj, &PyUFunc_Type) || (PyObject *)Py_TYPE(obj) == dispatcher_type
        || PyArray_DescrCheck(obj) || front_runs_whole(obj);
}

static bool
pure_depth(PyObject *o, int depth)
{
    if (is_plain(o) || front_is_array(o) || front_is_scalar(o)) {
        return true;
    }
    if (PySlice_Check(o)) {
        PySliceObject *s = (PySliceObject *)o;
        return depth > 0 && pure_depth(s->start, depth - 1) && pure_depth(s->stop, depth - 1)
            && pure_depth(s->step, depth - 1);
    }
    if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        if (depth == 0 || n > 10000) {
            return false;
        }
        for (Py_ssize_t i = 0; i < n; i++) {
            if (!pure_depth(PySequence_Fast_GET_ITEM(o, i), depth - 1)) {
                return false;
            }
        }
        return true;
    }
    if (PyArray_DescrCheck(o)) {
        return plain_dtype((PyArray_Descr *)o);
    }
    return PyType_Check(o) && !(((PyTypeObject *)o)->tp_flags & Py_TPFLAGS_HEAPTYPE);
}

bool
front_is_pure(PyObject *obj)
{
    return pure_depth(obj, 5);
}

bool
front_knows(PyObject *callable)
{
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
        PyTypeObject *tp = PyDescr_TYPE(callable);
        return tp == &PyArray_Type || PyType_IsSubtype(tp, (PyTypeObject *)generic_type);
    }
    bool hashable = front_is_constant(callable) || PyCFunction_CheckExact(callable);
    return hashable && (PyDict_Contains(known, callable) == 1
                        || PyDict_Contains(known_fresh, callable) == 1);
}

/* -- Classes of operations ------------------------------------------------------------------------
 */

static bool
is_arrayish(PyObject *o)
{
    return front_is_array(o) || front_is_scalar(o);
}

static bool
any_arrayish(PyObject *const *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (a[i] != NULL && is_arrayish(a[i])) {
            return true;
        }
    }
    return false;
}

static bool
contains_arrayish(PyObject *o, int depth)
{
    if (is_arrayish(o)) {
        return true;
    }
    if (depth > 0 && (PyTuple_CheckExact(o) || PyList_CheckExact(o))) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++) {
            if (contains_arrayish(PySequence_Fast_GET_ITEM(o, i), depth - 1)) {
                return true;
            }
        }
    }
    return false;
}

static bool
all_pure(PyObject *const *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (a[i] != NULL && !front_is_pure(a[i])) {
            return false;
        }
    }
    return true;
}

/* `out=`, `where=` of a ufunc and the like write to or depend on more than the operands. */
static bool
has_keyword(PyObject *kwnames, const char *name)
{
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Reductions of nothing warn from Python code, with the caller's line: they stay foreign. */
static bool
has_empty(PyObject *const *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (a[i] != NULL && PyArray_Check(a[i]) && PyArray_SIZE((PyArrayObject *)a[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool
is_warner(const char *name)
{
    return strcmp(name, "mean") == 0 || strcmp(name, "var") == 0 || strcmp(name, "std") == 0;
}

/* `ddof` of 0, or of 1 where every axis is longer than that: what the guards of shapes keep so. */
static bool
ddof_is_calm(PyObject *array, PyObject *ddof)
{
    long value = PyLong_CheckExact(ddof) ? PyLong_AsLong(ddof) : -1;
    bool one = value == 1, calm = one || value == 0;

    PyErr_Clear();
    if (!PyArray_Check(array) || PyArray_NDIM((PyArrayObject *)array) == 0) {
        return false;
    }
    for (int i = 0; one && i < PyArray_NDIM((PyArrayObject *)array); i++) {
        calm &= PyArray_DIM((PyArrayObject *)array, i) > 1;
    }
    return calm;
}

/* mean, var, std with arguments that may warn: `where`, too large a `ddof`, or so many that they
 * may be there. */
static bool
may_warn(PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    uint32_t nkw = kwnames == NULL ? 0 : (uint32_t)PyTuple_GET_SIZE(kwnames);
    bool wild = false;

    if (n < 1 || n - nkw > 3 || has_empty(a, 1)) {
        return true;
    }
    for (uint32_t i = 0; i < nkw; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (PyUnicode_CompareWithASCIIString(name, "ddof") == 0) {
            wild |= !ddof_is_calm(a[0], a[n - nkw + i]);
        }
        wild |= name_in(name, warner_keywords, COUNT(warner_keywords));
    }
    return wild;
}

static FrontKind
classify_method(PyObject *descr, PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    PyTypeObject *tp = PyDescr_TYPE(descr);
    const char *name = ((PyMethodDescrObject *)descr)->d_method->ml_name;
    PyObject *as_str;

    if (n == 0 || !is_arrayish(a[0]) || !all_pure(a, n) || front_has_out(descr, a, n, kwnames)
            || (tp != &PyArray_Type && !PyType_IsSubtype(tp, (PyTypeObject *)generic_type))) {
        return FRONT_FOREIGN;
    }
    as_str = PyDescr_NAME(descr);
    if (!name_in(as_str, pure_methods, COUNT(pure_methods))) {
        return FRONT_FOREIGN;
    }
    if (is_warner(name) && may_warn(a, n, kwnames)) {
        return FRONT_FOREIGN;
    }
    return FRONT_ARRAY;
}

static FrontKind
classify_registered(PyObject *const *a, uint32_t n)
{
    return all_pure(a, n) && any_arrayish(a, n) && !has_empty(a, n) ? FRONT_ARRAY : FRONT_FOREIGN;
}

static FrontKind
classify_call(PyObject *callable, PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    if (front_is_registered(callable)) {
        return classify_registered(a, n);
    }
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
        return classify_method(callable, a, n, kwnames);
    }
    if (PyType_Check(callable)) {       /* np.float32(x): a scalar or array of that type */
        bool scalar = PyType_IsSubtype((PyTypeObject *)callable, (PyTypeObject *)generic_type)
            && !(((PyTypeObject *)callable)->tp_flags & Py_TPFLAGS_HEAPTYPE);
        return scalar && n == 1 && kwnames == NULL && callable != (PyObject *)&PyObjectArrType_Type
                && (is_arrayish(a[0]) || PyLong_CheckExact(a[0]) || PyFloat_CheckExact(a[0])
                    || PyBool_Check(a[0]))
            && PyType_IsSubtype((PyTypeObject *)callable, &PyNumberArrType_Type)
                   ? FRONT_ARRAY : FRONT_FOREIGN;
    }
    if (!front_knows(callable) || !all_pure(a, n)
            || front_has_out(callable, a, n, kwnames) || has_keyword(kwnames, "like")) {
        return FRONT_FOREIGN;
    }
    if (PyDict_Contains(known_fresh, callable) == 1) {
        return FRONT_ARRAY;
    }
    if (Py_IS_TYPE(callable, &PyUFunc_Type)) {
        uint32_t nkw = kwnames == NULL ? 0 : (uint32_t)PyTuple_GET_SIZE(kwnames);
        if (n - nkw > (uint32_t)((PyUFuncObject *)callable)->nin || has_keyword(kwnames, "where")) {
            return FRONT_FOREIGN;
        }
        return FRONT_ARRAY;
    }
    PyObject *name = PyObject_GetAttrString(callable, "__name__");
    const char *text = name == NULL ? NULL : PyUnicode_AsUTF8(name);
    bool foreign = text == NULL
        || (is_warner(text) && may_warn(a, n, kwnames));
    Py_XDECREF(name);
    PyErr_Clear();
    bool any = false;
    for (uint32_t i = 0; i < n && !any; i++) {
        any = contains_arrayish(a[i], 3);
    }
    return foreign || !any ? FRONT_FOREIGN : FRONT_ARRAY;
}

static FrontKind
classify_getattr(PyObject *obj, PyObject *name)
{
    if (!is_arrayish(obj)) {
        return FRONT_FOREIGN;
    }
    if (name_in(name, meta_attributes, COUNT(meta_attributes))) {
        return FRONT_META;
    }
    return name_in(name, view_attributes, COUNT(view_attributes)) ? FRONT_ARRAY : FRONT_FOREIGN;
}

static bool
is_inplace(uint32_t oparg, PyObject *target)
{
    return oparg >= 13 && front_is_array(target); /* NB_INPLACE_*: a scalar gives a new object */
}

FrontKind
front_classify(CallKind kind, uint32_t oparg, PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    switch (kind) {
    case DO_BINARY:
    case DO_COMPARE:
        /* None, str operands: comparisons with them warn or give one bool; leave them to NumPy. */
        for (uint32_t i = 0; i < 2; i++) {
            if (!is_arrayish(a[i]) && !PyLong_CheckExact(a[i]) && !PyFloat_CheckExact(a[i])
                    && !PyBool_Check(a[i]) && !PyComplex_CheckExact(a[i])) {
                return FRONT_FOREIGN;
            }
        }
        if (kind == DO_BINARY && is_inplace(oparg, a[0])) {
            return FRONT_FOREIGN;
        }
        return any_arrayish(a, 2) ? FRONT_ARRAY : FRONT_FOREIGN;
    case DO_UNARY:
    case DO_TRUTH:
        return is_arrayish(a[0]) ? FRONT_ARRAY : FRONT_FOREIGN;
    case DO_LEN:
        return front_is_array(a[0]) && PyArray_NDIM((PyArrayObject *)a[0]) > 0 ? FRONT_META
                                                                               : FRONT_FOREIGN;
    case DO_GETITEM:
        if (!front_is_array(a[0]) || PyUnicode_Check(a[1])) {
            return FRONT_FOREIGN;
        }
        return front_is_pure(a[1]) ? FRONT_ARRAY : FRONT_FOREIGN;
    case DO_GETATTR:
        return classify_getattr(a[0], a[1]);
    case DO_CALL:
        return classify_call(a[0], a + 1, n - 1, kwnames);
    default:
        return FRONT_FOREIGN;
    }
}

/* -- Arrays
 * ------------------------------------------------------------------------------------------ */

static uint8_t
layout_of(PyArrayObject *a)
{
    if (PyArray_IS_C_CONTIGUOUS(a)) {
        return LAYOUT_C;
    }
    return PyArray_IS_F_CONTIGUOUS(a) ? LAYOUT_F : LAYOUT_STRIDED;
}

uint8_t
front_layout(PyObject *array)
{
    return layout_of((PyArrayObject *)array);
}

/* Elements that lie on each other have no order: NumPy's functions differ in what they make of
 * them. */
uint8_t
front_memory_order(PyObject *array)
{
    PyArrayObject *a = (PyArrayObject *)array;
    bool falls = true, rises = true;

    for (int i = 0; i < PyArray_NDIM(a); i++) {
        for (int k = i + 1; k < PyArray_NDIM(a); k++) {
            npy_intp far = PyArray_STRIDE(a, i), near = PyArray_STRIDE(a, k);
            if (PyArray_DIM(a, i) < 2 || PyArray_DIM(a, k) < 2) {
                continue;
            }
            if (far == 0 || near == 0) {
                return LAYOUT_STRIDED;
            }
            far = far < 0 ? -far : far;
            near = near < 0 ? -near : near;
            falls &= near <= far;
            rises &= far < near;
        }
    }
    return falls ? LAYOUT_C : rises ? LAYOUT_F : LAYOUT_STRIDED;
}

void
front_describe(PyObject *array, TapeArr *out)
{
    PyArrayObject *a = (PyArrayObject *)array;

    memset(out, 0, sizeof(*out));
    out->dtype = (int16_t)PyArray_TYPE(a);
    out->ndim = (uint8_t)PyArray_NDIM(a);
    out->layout = layout_of(a);
    out->writeable = PyArray_ISWRITEABLE(a);
    for (int i = 0; i < out->ndim; i++) {
        npy_intp n = PyArray_DIM(a, i);
        out->dim[i] = n > 1 ? 2 : (int8_t)n;
    }
}

bool
front_matches(PyObject *array, const TapeArr *want)
{
    PyArrayObject *a = (PyArrayObject *)array;

    if (!PyArray_CheckExact(array) || PyArray_TYPE(a) != want->dtype ||
        PyArray_NDIM(a) != want->ndim || !PyArray_ISNBO(PyArray_DESCR(a)->byteorder) ||
        layout_of(a) != want->layout || PyArray_ISWRITEABLE(a) != want->writeable) {
        return false;
    }
    for (int i = 0; i < want->ndim; i++) {
        npy_intp n = PyArray_DIM(a, i);
        if ((n > 1 ? 2 : n) != want->dim[i]) {
            return false;
        }
    }
    return true;
}

void
front_meta(PyObject *obj, TapeMeta *out)
{
    memset(out, 0, sizeof(*out));
    if (front_is_array(obj)) {
        PyArrayObject *a = (PyArrayObject *)obj;
        out->form = PyArray_ISALIGNED(a) ? META_ARRAY : META_NONE;
        out->ndim = (uint8_t)PyArray_NDIM(a);
        out->layout = layout_of(a);
        out->order = out->layout == LAYOUT_STRIDED ? front_memory_order(obj) : out->layout;
        out->view = PyArray_BASE(a) != NULL;
        out->dtype = (int16_t)PyArray_TYPE(a);
        for (int i = 0; i < out->ndim; i++) {
            out->dim[i] = PyArray_DIM(a, i);
        }
    } else if (front_is_scalar(obj)) {
        PyArray_Descr *d = PyArray_DescrFromScalar(obj);
        out->form = META_SCALAR;
        out->dtype = (int16_t)(d == NULL ? -1 : d->type_num);
        Py_XDECREF(d);
        PyErr_Clear();
    } else {
        out->form = PyBool_Check(obj) ? META_BOOL : PyLong_CheckExact(obj) ? META_INT
                  : PyFloat_CheckExact(obj) ? META_FLOAT : META_NONE;
        if (out->form == META_INT) {
            int over;
            long long value = PyLong_AsLongLongAndOverflow(obj, &over);
            out->dim[0] = over ? INT64_MIN : value;
        }
    }
}

bool
front_is_float(int16_t dtype)
{
    return PyTypeNum_ISFLOAT(dtype);
}

bool
front_is_complex(int16_t dtype)
{
    return PyTypeNum_ISCOMPLEX(dtype);
}

void
front_result(PyObject *obj, int16_t *dtype, int16_t *ndim)
{
    if (front_is_array(obj)) {
        *dtype = (int16_t)PyArray_TYPE((PyArrayObject *)obj);
        *ndim = (int16_t)PyArray_NDIM((PyArrayObject *)obj);
    } else {
        *dtype = *ndim = -1;
    }
}

/* -- Floating-point errors
 * ------------------------------------------------------------------------------ */

static const char *const fp_kind[] = {"divide", "over", "under", "invalid"};

/* The error state that raises all but the kinds in `mask`. Made once per mask. */
static PyObject *
extobj_for(int mask)
{
    PyObject *kw, *none;

    if (extobj_raise[mask] != NULL) {
        return extobj_raise[mask];
    }
    kw = PyDict_New();
    none = PyTuple_New(0);
    for (int i = 0; kw != NULL && i < 4; i++) {
        PyObject *v = PyUnicode_FromString(mask & 1 << i ? "ignore" : "raise");
        if (v == NULL || PyDict_SetItemString(kw, fp_kind[i], v) < 0) {
            Py_CLEAR(kw);
        }
        Py_XDECREF(v);
    }
    if (kw != NULL && none != NULL) {
        extobj_raise[mask] = PyObject_Call(make_extobj, none, kw);
    }
    Py_XDECREF(kw);
    Py_XDECREF(none);
    return extobj_raise[mask];
}

static int
read_mask(PyObject *extobj)
{
    PyObject *dict = PyObject_CallNoArgs(geterr_fn);
    int mask = 0;

    if (dict == NULL) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        PyObject *v = PyDict_GetItemString(dict, fp_kind[i]);
        if (v != NULL && PyUnicode_Check(v) && PyUnicode_CompareWithASCIIString(v, "ignore") == 0) {
            mask |= 1 << i;
        }
    }
    Py_DECREF(dict);
    Py_XSETREF(extobj_seen, Py_XNewRef(extobj));
    extobj_mask = mask;
    return 0;
}

int
front_fp_ignored(void)
{
    PyObject *now;

    if (PyContextVar_Get(extobj_var, NULL, &now) < 0) {
        return -1;
    }
    if ((now != extobj_seen || extobj_seen == NULL) && read_mask(now) < 0) {
        Py_XDECREF(now);
        return -1;
    }
    Py_XDECREF(now);
    return extobj_mask;
}

int
front_fp_begin(FrontFp *fp)
{
    PyObject *raise;

    if (front_fp_ignored() < 0) {
        return -1;
    }
    raise = extobj_for(extobj_mask);
    fp->token = raise == NULL ? NULL : PyContextVar_Set(extobj_var, raise);
    return fp->token == NULL ? -1 : 0;
}

void
front_fp_end(FrontFp *fp)
{
    PyObject *exc = PyErr_Occurred() ? py_exc_take() : NULL;

    if (PyContextVar_Reset(extobj_var, fp->token) < 0) {
        PyErr_Clear();
    }
    Py_CLEAR(fp->token);
    if (exc != NULL) {
        py_exc_give_steal(exc);
    }
}
