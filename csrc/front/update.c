/* front/update.c - operations of NumPy that change an array in place: which ones can be done as
 * pure work followed by a copy of the result, that copy, and whose memory a result is.
 *
 * What is not known here stays foreign: objects, subclasses, `where=`, lists of places, values
 * whose kind the target's dtype does not hold. Needs the GIL, runs no Python code. */
#include "npy.h"

#include "../rt/team.h"
#include "front.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* -- Arrays ------------------------------------------------------------------------------------ */

static int64_t
distance(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* No two elements of it share memory: each axis steps over all that lies nearer. */
static bool
is_solid(PyArrayObject *a)
{
    bool done[NPY_MAXDIMS] = {false};
    int64_t room = PyArray_ITEMSIZE(a);

    for (int k = 0; k < PyArray_NDIM(a); k++) {
        int near = -1;
        for (int i = 0; i < PyArray_NDIM(a); i++) {
            if (!done[i] && (near < 0 || distance(PyArray_STRIDE(a, i))
                                             < distance(PyArray_STRIDE(a, near)))) {
                near = i;
            }
        }
        done[near] = true;
        if (PyArray_DIM(a, near) == 0) {
            return true;
        }
        if (PyArray_DIM(a, near) > 1) {
            if (distance(PyArray_STRIDE(a, near)) < room) {
                return false;
            }
            room += distance(PyArray_STRIDE(a, near)) * (PyArray_DIM(a, near) - 1);
        }
    }
    return true;
}

static bool
is_target(PyObject *obj)
{
    return front_is_array(obj) && PyArray_ISWRITEABLE((PyArrayObject *)obj)
        && is_solid((PyArrayObject *)obj);
}

bool
front_extent(PyObject *array, FrontExtent *out)
{
    PyArrayObject *a = (PyArrayObject *)array;

    if (!PyArray_CheckExact(array)) {
        return false;
    }
    out->lo = out->hi = (uintptr_t)PyArray_DATA(a);
    if (PyArray_SIZE(a) == 0) {
        return true;
    }
    for (int i = 0; i < PyArray_NDIM(a); i++) {
        npy_intp reach = PyArray_STRIDE(a, i) * (PyArray_DIM(a, i) - 1);
        if (reach < 0) {
            out->lo -= (uintptr_t)-reach;
        } else {
            out->hi += (uintptr_t)reach;
        }
    }
    out->hi += (uintptr_t)PyArray_ITEMSIZE(a);
    return true;
}

static int
extent_order(const void *a, const void *b)
{
    uintptr_t x = ((const FrontExtent *)a)->lo, y = ((const FrontExtent *)b)->lo;

    return x < y ? -1 : x > y;
}

/* Some of the n extents, which are sorted and apart, meets this one. */
static bool
meets_any(const FrontExtent *sorted, uint32_t n, FrontExtent e)
{
    uint32_t lo = 0, hi = n;

    while (lo < hi) {                   /* the first that ends behind the start of `e` */
        uint32_t mid = (lo + hi) / 2;
        if (sorted[mid].hi <= e.lo) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < n && e.lo < e.hi && sorted[lo].lo < e.hi;
}

bool
front_apart(PyObject *const *array, uint32_t nwritten, uint32_t n)
{
    FrontExtent written[FRONT_MAX_EXTENTS], e;
    uint32_t nw = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (i < nwritten) {
            if (i >= FRONT_MAX_EXTENTS || !front_extent(array[i], &written[nw])) {
                return false;
            }
            nw += written[nw].lo < written[nw].hi;
        }
        if (i + 1 == nwritten) {
            qsort(written, nw, sizeof(*written), extent_order);
            for (uint32_t k = 1; k < nw; k++) {
                if (written[k].lo < written[k - 1].hi) {
                    return false;
                }
            }
        }
        if (i >= nwritten && (!front_extent(array[i], &e) || meets_any(written, nw, e))) {
            return false;
        }
    }
    return true;
}

/* -- The copy ------------------------------------------------------------------------------------ */

bool
front_write_fits(PyObject *target, PyObject *contents)
{
    PyArrayObject *a = (PyArrayObject *)target, *b = (PyArrayObject *)contents;
    FrontExtent x, y;

    if (!front_is_array(target) || !front_is_array(contents) || !is_target(target)
            || PyArray_TYPE(a) != PyArray_TYPE(b) || PyArray_NDIM(a) != PyArray_NDIM(b)) {
        return false;
    }
    for (int i = 0; i < PyArray_NDIM(a); i++) {
        if (PyArray_DIM(a, i) != PyArray_DIM(b, i)) {
            return false;
        }
    }
    front_extent(target, &x);
    front_extent(contents, &y);
    return x.hi <= y.lo || y.hi <= x.lo;
}

typedef struct {
    int ndim;
    npy_intp dim[NPY_MAXDIMS], to[NPY_MAXDIMS], from[NPY_MAXDIMS];
    size_t item;
} CopyLoop;

/* Bytes side by side; large ones by the team. */
typedef struct {
    char *to;
    const char *from;
    npy_intp n;
} CopyBlock;

enum { COPY_UNIT = 1 << 16 };

static void
copy_units(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const CopyBlock *c = args;
    npy_intp first = begin * COPY_UNIT, last = end * COPY_UNIT < c->n ? end * COPY_UNIT : c->n;

    (void)scratch;
    memcpy(c->to + first, c->from + first, (size_t)(last - first));
}

static void
copy_block(char *to, const char *from, npy_intp n)
{
    CopyBlock c = {to, from, n};
    CcPhase phase = {.fn = copy_units,
                     .size = (n + COPY_UNIT - 1) / COPY_UNIT,
                     .grain = 4,
                     .work = (double)n * 0.1};
    cc_u32 fault = 0;
    CcKernel kernel = {.phase = &phase, .nphase = 1, .args = &c, .fault = &fault};
    CcStatus st;

    if (n < 8 * COPY_UNIT || !rt_team_run(&kernel, 0, NULL, &st)) {
        memcpy(to, from, (size_t)n);
    }
}

static void
copy_row(const CopyLoop *c, char *to, const char *from)
{
    npy_intp n = c->dim[c->ndim - 1], ts = c->to[c->ndim - 1], fs = c->from[c->ndim - 1];

    if ((size_t)ts == c->item && (size_t)fs == c->item) {
        memcpy(to, from, (size_t)n * c->item);
        return;
    }
    for (npy_intp i = 0; i < n; i++) {
        switch (c->item) {              /* constant sizes become single moves */
        case 4:
            memcpy(to, from, 4);
            break;
        case 8:
            memcpy(to, from, 8);
            break;
        default:
            memcpy(to, from, c->item);
        }
        to += ts;
        from += fs;
    }
}

static void
copy_axis(const CopyLoop *c, int axis, char *to, const char *from)
{
    if (axis + 1 == c->ndim) {
        copy_row(c, to, from);
        return;
    }
    for (npy_intp i = 0; i < c->dim[axis]; i++) {
        copy_axis(c, axis + 1, to + i * c->to[axis], from + i * c->from[axis]);
    }
}

/* Axes from far to near in the target's memory. */
void
front_write(PyObject *target, PyObject *contents)
{
    PyArrayObject *a = (PyArrayObject *)target, *b = (PyArrayObject *)contents;
    CopyLoop c = {.ndim = PyArray_NDIM(a), .item = (size_t)PyArray_ITEMSIZE(a)};
    int axis[NPY_MAXDIMS];

    bool alike = (PyArray_IS_C_CONTIGUOUS(a) && PyArray_IS_C_CONTIGUOUS(b))
        || (PyArray_IS_F_CONTIGUOUS(a) && PyArray_IS_F_CONTIGUOUS(b));
    if (alike || c.ndim == 0) {
        copy_block(PyArray_BYTES(a), PyArray_BYTES(b), PyArray_NBYTES(a));
        return;
    }
    for (int i = 0; i < c.ndim; i++) {
        int k = i;
        while (k > 0 && distance(PyArray_STRIDE(a, axis[k - 1])) < distance(PyArray_STRIDE(a, i))) {
            axis[k] = axis[k - 1];
            k--;
        }
        axis[k] = i;
    }
    for (int i = 0; i < c.ndim; i++) {
        c.dim[i] = PyArray_DIM(a, axis[i]);
        c.to[i] = PyArray_STRIDE(a, axis[i]);
        c.from[i] = PyArray_STRIDE(b, axis[i]);
    }
    copy_axis(&c, 0, PyArray_BYTES(a), PyArray_BYTES(b));
}

/* -- One element --------------------------------------------------------------------------------- */

typedef union {
    npy_bool b;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
    char bytes[64];
} Element;

/* A float that float32 holds as a normal number, rounded: anything else may warn. */
static bool
element_of_float(int num, double d, Element *out)
{
    if (num == NPY_DOUBLE) {
        out->f64 = d;
        return true;
    }
    out->f32 = (float)d;
    double size = d < 0 ? -d : d;
    return num == NPY_FLOAT && (d == 0.0 || (size > 1e-37 && size < 3e38));
}

static bool
element_of_int(int num, PyObject *value, Element *out)
{
    int over;
    int64_t v = PyLong_AsLongLongAndOverflow(value, &over);

    if (over) {
        return false;
    }
    switch (num) {
    case NPY_INT8:
        out->i8 = (int8_t)v;
        return v == out->i8;
    case NPY_INT16:
        out->i16 = (int16_t)v;
        return v == out->i16;
    case NPY_INT32:
        out->i32 = (int32_t)v;
        return v == out->i32;
    case NPY_INT64:
        out->i64 = v;
        return true;
    case NPY_UINT8:
        out->u8 = (uint8_t)v;
        return v == out->u8;
    case NPY_UINT16:
        out->u16 = (uint16_t)v;
        return v == out->u16;
    case NPY_UINT32:
        out->u32 = (uint32_t)v;
        return v == out->u32;
    case NPY_DOUBLE:
    case NPY_FLOAT:
        return v > -(1 << 24) && v < 1 << 24 && element_of_float(num, (double)v, out);
    default:
        return false;
    }
}

static bool
element_of(int num, PyObject *value, Element *out)
{
    if (PyFloat_CheckExact(value)) {
        return element_of_float(num, PyFloat_AS_DOUBLE(value), out);
    }
    if (PyBool_Check(value)) {
        out->b = value == Py_True;
        return num == NPY_BOOL;
    }
    if (PyLong_CheckExact(value)) {
        return element_of_int(num, value, out);
    }
    if (!front_is_scalar(value)) {
        return false;
    }
    PyArray_Descr *d = PyArray_DescrFromScalar(value);
    bool same = d != NULL && d->type_num == num;
    Py_XDECREF(d);
    PyErr_Clear();
    if (same) {
        PyArray_ScalarAsCtype(value, out);
    }
    return same;
}

bool
front_element(PyObject *array, PyObject *const *index, uint32_t n, PyObject *value, bool write)
{
    PyArrayObject *a = (PyArrayObject *)array;
    Element e;

    if (!front_is_array(array) || !PyArray_ISWRITEABLE(a) || PyArray_NDIM(a) != (int)n
            || (size_t)PyArray_ITEMSIZE(a) > sizeof(e) || !element_of(PyArray_TYPE(a), value, &e)) {
        return false;
    }
    char *at = PyArray_BYTES(a);
    for (uint32_t i = 0; i < n; i++) {
        int over;
        int64_t size = PyArray_DIM(a, (int)i), k;
        if (!PyLong_CheckExact(index[i])) {
            return false;
        }
        k = PyLong_AsLongLongAndOverflow(index[i], &over);
        k += k < 0 ? size : 0;
        if (over || k < 0 || k >= size) {
            return false;
        }
        at += k * PyArray_STRIDE(a, (int)i);
    }
    if (write) {
        memcpy(at, &e, (size_t)PyArray_ITEMSIZE(a));
    }
    return true;
}

/* -- Operations ----------------------------------------------------------------------------------- */

static bool
is_number(PyObject *o)
{
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o)
        || PyComplex_CheckExact(o);
}

/* bool, integer, real, complex; -1 = no array and no number. */
static int
rank_of(PyObject *o)
{
    int num = -1;

    if (front_is_array(o)) {
        num = PyArray_TYPE((PyArrayObject *)o);
    } else if (front_is_scalar(o)) {
        PyArray_Descr *d = PyArray_DescrFromScalar(o);
        num = d == NULL ? -1 : d->type_num;
        Py_XDECREF(d);
        PyErr_Clear();
    } else if (is_number(o)) {
        return PyBool_Check(o) ? 0 : PyLong_CheckExact(o) ? 1 : PyFloat_CheckExact(o) ? 2 : 3;
    }
    return num < 0 ? -1 : num == NPY_BOOL ? 0 : PyTypeNum_ISINTEGER(num) ? 1
         : PyTypeNum_ISFLOAT(num) ? 2 : 3;
}

/* A value whose kind the target's dtype holds: a store warns or fails for others, or asks Python. */
static bool
is_value_for(PyObject *value, PyObject *target)
{
    int rank = rank_of(value);

    return rank >= 0 && rank <= rank_of(target);
}

static bool
is_place(PyObject *o)
{
    return PyLong_CheckExact(o)
        || (front_is_scalar(o) && PyArray_IsScalar(o, Integer));
}

static bool
is_bound(PyObject *o)
{
    return o == Py_None || PyLong_CheckExact(o);
}

static bool
is_basic_item(PyObject *o)
{
    if (PySlice_Check(o)) {
        PySliceObject *s = (PySliceObject *)o;
        return is_bound(s->start) && is_bound(s->stop) && is_bound(s->step);
    }
    return is_place(o) || o == Py_None || o == Py_Ellipsis;
}

bool
front_key_is_basic(PyObject *key)
{
    if (!PyTuple_CheckExact(key)) {
        return is_basic_item(key);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
        if (!is_basic_item(PyTuple_GET_ITEM(key, i))) {
            return false;
        }
    }
    return true;
}

/* It names one element. */
static bool
is_element(PyObject *key, int ndim)
{
    bool tuple = PyTuple_CheckExact(key);
    Py_ssize_t n = tuple ? PyTuple_GET_SIZE(key) : 1;

    for (Py_ssize_t i = 0; i < n; i++) {
        if (!is_place(tuple ? PyTuple_GET_ITEM(key, i) : key)) {
            return false;
        }
    }
    return n == ndim;
}

static bool
update_setitem(PyObject *const *a, FrontUpdate *up)
{
    if (!is_target(a[0]) || !is_value_for(a[2], a[0])) {
        return false;
    }
    int ndim = PyArray_NDIM((PyArrayObject *)a[0]);
    bool many = front_is_array(a[2]) && PyArray_NDIM((PyArrayObject *)a[2]) > 0;
    if (front_key_is_basic(a[1])) {
        /* an array of one element is no number without a warning */
        *up = (FrontUpdate){.kind = DO_ASSIGN, .part = true, .element = is_element(a[1], ndim)};
        return !many || !up->element;
    }
    *up = (FrontUpdate){.kind = DO_STORE, .reads = true};
    return front_is_array(a[1]) && PyArray_TYPE((PyArrayObject *)a[1]) == NPY_BOOL
        && PyArray_NDIM((PyArrayObject *)a[1]) == ndim && ndim > 0;
}

static bool
update_binary(uint32_t oparg, PyObject *const *a, FrontUpdate *up)
{
    *up = (FrontUpdate){.kind = DO_INPLACE, .oparg = oparg, .reads = true, .gives_target = true};
    return oparg >= 13 && is_target(a[0]) && rank_of(a[1]) >= 0;        /* NB_INPLACE_* */
}

static bool
is_named(PyObject *callable, const char *const *name, size_t n)
{
    PyObject *text = Py_IS_TYPE(callable, &PyMethodDescr_Type)
                         ? Py_NewRef(PyDescr_NAME(callable))
                         : PyObject_GetAttrString(callable, "__name__");
    bool found = false;

    for (size_t i = 0; text != NULL && PyUnicode_Check(text) && i < n && !found; i++) {
        found = PyUnicode_CompareWithASCIIString(text, name[i]) == 0;
    }
    Py_XDECREF(text);
    PyErr_Clear();
    return found;
}

/* Place of a keyword among the operands (the callable is 0), 0 = not there. */
static uint32_t
keyword_place(PyObject *kwnames, uint32_t n, const char *name)
{
    Py_ssize_t nkw = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);

    for (Py_ssize_t i = 0; i < nkw; i++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), name) == 0) {
            return n - (uint32_t)(nkw - i);
        }
    }
    return 0;
}

static bool
all_known(PyObject *const *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (a[i] == NULL || !front_is_pure(a[i])) {
            return false;
        }
    }
    return true;
}

/* Place of `out` among the arguments of functions and methods, where self is the first one. */
static const struct {
    const char *name;
    uint32_t place;
} out_places[] = {
    {"sum", 3},    {"prod", 3},   {"mean", 3},   {"var", 3},         {"std", 3},    {"nansum", 3},
    {"max", 2},    {"min", 2},    {"amax", 2},   {"amin", 2},        {"ptp", 2},    {"argmax", 2},
    {"argmin", 2}, {"any", 2},    {"all", 2},    {"cumsum", 3},      {"cumprod", 3}, {"dot", 2},
    {"outer", 2},  {"clip", 3},   {"round", 2},  {"around", 2},      {"take", 3},   {"trace", 5},
    {"stack", 2},  {"concatenate", 2},
};

/* The operand (the callable is 0) of such a call, 0 = none. */
static uint32_t
out_by_position(PyObject *callable, uint32_t npos)
{
    for (size_t i = 0; i < COUNT(out_places); i++) {
        if (npos > out_places[i].place && is_named(callable, &out_places[i].name, 1)) {
            return out_places[i].place + 1;
        }
    }
    return 0;
}

bool
front_has_out(PyObject *callable, PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    uint32_t nkw = kwnames == NULL ? 0 : (uint32_t)PyTuple_GET_SIZE(kwnames);

    if (keyword_place(kwnames, n + 1, "out") > 0) {
        return true;
    }
    uint32_t at = Py_IS_TYPE(callable, &PyUFunc_Type) || n - nkw < 3
                      ? 0 : out_by_position(callable, n - nkw);
    return at > 0 && a[at - 1] != Py_None;
}

/* f(..., out=array): a ufunc, or one of those that give nothing else. */
static uint32_t
out_place(PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    static const char *const name[] = {"clip", "sum", "prod", "dot", "cumsum", "cumprod"};
    uint32_t nkw = kwnames == NULL ? 0 : (uint32_t)PyTuple_GET_SIZE(kwnames);
    uint32_t at = keyword_place(kwnames, n, "out");

    if (!front_knows(a[0]) || keyword_place(kwnames, n, "where") > 0
            || keyword_place(kwnames, n, "like") > 0) {
        return 0;
    }
    if (!Py_IS_TYPE(a[0], &PyUFunc_Type)) {
        at = at == 0 ? out_by_position(a[0], n - 1 - nkw) : at;
        return is_named(a[0], name, COUNT(name)) ? at : 0;
    }
    PyUFuncObject *uf = (PyUFuncObject *)a[0];
    uint32_t npos = n - 1 - nkw, nin = (uint32_t)uf->nin;
    if (uf->nout != 1) {
        return 0;
    }
    return npos == nin ? at : npos == nin + 1 && at == 0 ? nin + 1 : 0;
}

/* Arrays and numbers only, and no complex one where the target is real: NumPy warns of that. */
static bool
operands_fit(PyObject *const *a, uint32_t n, PyObject *kwnames, uint32_t target)
{
    uint32_t nkw = kwnames == NULL ? 0 : (uint32_t)PyTuple_GET_SIZE(kwnames);
    bool ufunc = Py_IS_TYPE(a[0], &PyUFunc_Type);

    for (uint32_t i = 1; i < n - nkw; i++) {
        int rank = rank_of(a[i]);
        bool known = rank >= 0 || (!ufunc && i > 1 && !PyList_Check(a[i]));
        if (!known || (rank == 3 && rank_of(a[target]) < 3)) {
            return false;
        }
    }
    return true;
}

static bool
update_call(PyObject *const *a, uint32_t n, PyObject *kwnames, FrontUpdate *up)
{
    static const char *const method[] = {"fill", "sort"}, *const copyto[] = {"copyto"};
    bool is_method = Py_IS_TYPE(a[0], &PyMethodDescr_Type);

    *up = (FrontUpdate){.kind = DO_INTO, .oparg = 1, .target = 1};
    if (n < 2 || !all_known(a + 1, n - 1)) {
        return false;
    }
    if (is_method && PyDescr_TYPE(a[0]) == &PyArray_Type && is_named(a[0], method, 2)) {
        up->reads = is_named(a[0], method + 1, 1);
        return kwnames == NULL && is_target(a[1])
            && (up->reads || (n == 3 && is_value_for(a[2], a[1]) && !front_is_array(a[2])));
    }
    if (!is_method && front_is_constant(a[0]) && !Py_IS_TYPE(a[0], &PyUFunc_Type) && kwnames == NULL
            && n == 3 && is_named(a[0], copyto, 1)) {
        return is_target(a[1]) && is_value_for(a[2], a[1]);
    }
    up->target = up->oparg = out_place(a, n, kwnames);
    up->gives_target = true;
    return up->target > 0 && is_target(a[up->target]) && operands_fit(a, n, kwnames, up->target);
}

bool
front_update(CallKind kind, uint32_t oparg, PyObject *const *a, uint32_t n, PyObject *kwnames,
             FrontUpdate *up)
{
    switch (kind) {
    case DO_BINARY:
        return update_binary(oparg, a, up);
    case DO_SETITEM:
        return update_setitem(a, up);
    case DO_CALL:
        return update_call(a, n, kwnames, up);
    default:
        return false;
    }
}

/* -- Whose memory a result is ---------------------------------------------------------------------- */

/* Functions and methods whose result is always new memory; the others may give an operand. */
static const char *const own_names[] = {
    "sum", "prod", "mean", "var", "std", "max", "min", "amax", "amin", "argmax", "argmin", "any",
    "all", "cumsum", "cumprod", "dot", "vdot", "inner", "outer", "tensordot", "concatenate",
    "stack", "vstack", "hstack", "dstack", "column_stack", "pad", "roll", "repeat", "tile", "where",
    "clip", "take", "take_along_axis", "tril", "triu", "zeros_like", "ones_like", "full_like",
    "kron", "sort", "argsort", "searchsorted", "copy", "flatten", "bincount", "flatnonzero",
    "isclose", "zeros", "ones", "full", "empty", "arange", "eye", "identity", "tri", "linspace",
};

static FrontMem
memory_of_call(PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    static const char *const maybe[] = {"array", "astype"};

    if (Py_IS_TYPE(a[0], &PyUFunc_Type)) {
        return FRONT_MEM_OWN;
    }
    if (PyType_Check(a[0]) || front_is_registered(a[0]) || !front_knows(a[0])) {
        return FRONT_MEM_ANY;
    }
    if (is_named(a[0], maybe, COUNT(maybe))) {  /* unless it is told not to copy */
        return kwnames == NULL && n <= 3 ? FRONT_MEM_OWN : FRONT_MEM_ANY;
    }
    return is_named(a[0], own_names, COUNT(own_names)) ? FRONT_MEM_OWN : FRONT_MEM_ANY;
}

FrontMem
front_memory(CallKind kind, PyObject *const *a, uint32_t n, PyObject *kwnames, PyObject *res)
{
    static const char *const view[] = {"T", "mT"};

    if (!PyArray_Check(res)) {
        return PyTuple_Check(res) || PyList_Check(res) ? FRONT_MEM_ANY : FRONT_MEM_OWN;
    }
    switch (kind) {
    case DO_BINARY:
    case DO_UNARY:
    case DO_COMPARE:
    case DO_INPLACE:
    case DO_ASSIGN:
    case DO_STORE:
    case DO_INTO:
        return FRONT_MEM_OWN;
    case DO_GETITEM:
        if (!front_is_array(a[0])) {
            return FRONT_MEM_ANY;
        }
        return front_key_is_basic(a[1]) ? FRONT_MEM_VIEW : FRONT_MEM_OWN;
    case DO_VIEW:
        return FRONT_MEM_VIEW;
    case DO_GETATTR:
        for (size_t i = 0; i < COUNT(view) && PyUnicode_Check(a[1]); i++) {
            if (PyUnicode_CompareWithASCIIString(a[1], view[i]) == 0) {
                return FRONT_MEM_VIEW;
            }
        }
        return FRONT_MEM_ANY;
    case DO_CALL:
        return memory_of_call(a, n, kwnames);
    default:
        return FRONT_MEM_ANY;
    }
}
