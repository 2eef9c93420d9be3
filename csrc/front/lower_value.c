/* front/lower_value.c - operands of rows as nodes: parameters, constants, Python numbers (NEP 50).
 */
#include "npy.h"

#include "../base/mem.h"
#include "../base/vec.h"
#include "lower_node.h"

#include <string.h>

/* -- Dtypes -------------------------------------------------------------------------------- */

static const struct {
    CcDtype dt;
    int num;
} value_types[] = {
    {CC_DTYPE_BOOL, NPY_BOOL},   {CC_DTYPE_I8, NPY_INT8},     {CC_DTYPE_I16, NPY_INT16},
    {CC_DTYPE_I32, NPY_INT32},   {CC_DTYPE_I64, NPY_INT64},   {CC_DTYPE_U8, NPY_UINT8},
    {CC_DTYPE_U16, NPY_UINT16},  {CC_DTYPE_U32, NPY_UINT32},  {CC_DTYPE_U64, NPY_UINT64},
    {CC_DTYPE_F32, NPY_FLOAT32}, {CC_DTYPE_F64, NPY_FLOAT64},
};

CcDtype
front_dtype(int typenum)
{
    for (size_t i = 0; i < sizeof(value_types) / sizeof(*value_types); i++) {
        if (value_types[i].num == typenum) {
            return value_types[i].dt;
        }
    }
    return CC_DTYPE_NONE;
}

int
front_typenum(CcDtype dt)
{
    for (size_t i = 0; i < sizeof(value_types) / sizeof(*value_types); i++) {
        if (value_types[i].dt == dt) {
            return value_types[i].num;
        }
    }
    return -1;
}

/* -- Parameters ------------------------------------------------------------------------------ */

static bool
push_in(Lower *L, FrontIn in)
{
    FrontGraph *fg = L->fg;

    if (!CC_GROW(fg->in, fg->nin, fg->capin, 1)) {
        return front_no(L, "no memory");
    }
    fg->in[fg->nin++] = in;
    return true;
}

static uint8_t
param_layout(uint8_t layout)
{
    return layout == LAYOUT_C ? CC_LAYOUT_C : layout == LAYOUT_F ? CC_LAYOUT_F : CC_LAYOUT_STRIDED;
}

static bool
array_param(Lower *L, TapeRef ref, const TapeMeta *m, FrontValue *out)
{
    CcDim dim[TAPE_MAX_NDIM];
    CcDtype dt = front_dtype(m->dtype);

    if (dt == CC_DTYPE_NONE) {
        return front_no(L, "a dtype without kernels");
    }
    for (uint32_t i = 0; i < m->ndim; i++) {
        if (m->dim[i] > 1) {
            if (L->nsym >= CC_MAX_SYM) {
                return front_no(L, "too many sizes");
            }
            L->sym[L->nsym] = m->dim[i];
            dim[i] = cc_dim_sym(L->g, L->nsym++, &L->st);
        } else {
            dim[i] = cc_dim_const(L->g, m->dim[i], &L->st);
        }
        if (dim[i] == 0) {
            return front_no(L, "no memory");
        }
    }
    CcRef r = cc_build_param(L->g, dt, m->ndim, dim, (CcLayout)param_layout(m->layout), &L->st);
    *out = (FrontValue){.ref = r, .form = META_ARRAY, .order = m->order, .dtype = m->dtype};
    return r != 0 && push_in(L, (FrontIn){.ref = ref, .kind = FRONT_IN_ARRAY, .meta = *m});
}

/* A NumPy scalar: its bits in 64, then a cast that changes nothing. */
static bool
scalar_param(Lower *L, TapeRef ref, const TapeMeta *m, FrontValue *out)
{
    CcDtype dt = front_dtype(m->dtype);
    PyArray_Descr *d = dt == CC_DTYPE_NONE ? NULL : PyArray_DescrFromType(m->dtype);

    if (d == NULL) {
        return front_no(L, "a dtype without kernels");
    }
    PyTypeObject *type = d->typeobj;
    Py_DECREF(d);
    CcDtype as = cc_dtype_is_float(dt) ? CC_DTYPE_F64 : dt == CC_DTYPE_BOOL ? dt : CC_DTYPE_I64;
    CcRef r = cc_build_scalar_param(L->g, as, 0, &L->st);
    FrontIn in = {.ref = ref, .kind = FRONT_IN_SCALAR, .meta = *m, .type = type};
    if (r == 0 || !push_in(L, in)) {
        return front_no(L, "no memory");
    }
    r = cc_build_cast(L->g, r, dt, &L->st);
    *out = (FrontValue){.ref = r, .form = META_SCALAR, .order = LAYOUT_C, .dtype = m->dtype};
    return r != 0;
}

static bool
outside(Lower *L, TapeRef ref, const TapeMeta *m, FrontValue *out)
{
    switch ((TapeForm)m->form) {
    case META_ARRAY:
        return array_param(L, ref, m, out);
    case META_SCALAR:
        return scalar_param(L, ref, m, out);
    case META_INT:
    case META_FLOAT:
    case META_BOOL:
        *out = (FrontValue){.src = ref, .form = m->form, .order = LAYOUT_C, .dtype = -1};
        return true;
    default:
        return front_no(L, "an operand that is no array and no number");
    }
}

bool
front_value(Lower *L, TapeRef ref, FrontValue *out)
{
    uint32_t i = TAPE_INDEX(ref);
    TapeMeta m;

    if (TAPE_KIND(ref) == TAPE_CONST) {
        front_meta(L->t->konst[i], &m);
        return outside(L, ref, &m, out);
    }
    if (TAPE_KIND(ref) != TAPE_REG) {
        return front_no(L, "an operand that is no array and no number");
    }
    if (L->val[i].form == META_NONE && !outside(L, ref, &L->t->meta[i], &L->val[i])) {
        L->val[i].form = META_NONE;
        return false;
    }
    *out = L->val[i];
    return true;
}

bool
front_array(Lower *L, TapeRef ref, FrontValue *v)
{
    if (ref == TAPE_NULL || !front_value(L, ref, v)) {
        return false;
    }
    return v->form == META_ARRAY || front_no(L, "a number, not an array");
}

uint8_t
front_dims(const Lower *L, CcRef r, CcDim *dim)
{
    uint8_t n = L->g->node[r].ndim;

    for (uint32_t i = 0; i < n; i++) {
        dim[i] = cc_shape(L->g, r)[i];
    }
    return n;
}

/* -- Python numbers ------------------------------------------------------------------------------
 */

static const struct {
    int64_t min, max;
} int_range[CC_DTYPE__COUNT] = {
    [CC_DTYPE_I8] = {INT8_MIN, INT8_MAX},    [CC_DTYPE_I16] = {INT16_MIN, INT16_MAX},
    [CC_DTYPE_I32] = {INT32_MIN, INT32_MAX}, [CC_DTYPE_I64] = {INT64_MIN, INT64_MAX},
    [CC_DTYPE_U8] = {0, UINT8_MAX},          [CC_DTYPE_U16] = {0, UINT16_MAX},
    [CC_DTYPE_U32] = {0, UINT32_MAX},        [CC_DTYPE_U64] = {0, INT64_MAX},
};

bool
front_int_fits(CcDtype dt, int64_t value)
{
    return value >= int_range[dt].min && value <= int_range[dt].max;
}

static CcRef
const_number(Lower *L, PyObject *obj, CcDtype dt)
{
    if (PyBool_Check(obj)) {
        return cc_build_const_i64(L->g, dt, obj == Py_True, &L->st);
    }
    if (PyLong_CheckExact(obj) && !cc_dtype_is_float(dt)) {
        int over;
        int64_t v = PyLong_AsLongLongAndOverflow(obj, &over);
        return over || !front_int_fits(dt, v) ? 0 : cc_build_const_i64(L->g, dt, v, &L->st);
    }
    double d = PyFloat_AsDouble(obj);
    if (!cc_dtype_is_float(dt) || (d == -1.0 && PyErr_Occurred())) {
        PyErr_Clear();
        return 0;
    }
    bool over = dt == CC_DTYPE_F32 && d - d == 0.0 && (float)d - (float)d != 0.0f;
    return over ? 0 : cc_build_const_f64(L->g, dt, d, &L->st);
}

/* The parameter for one Python number in one role; made once. */
static CcRef
number_param(Lower *L, TapeRef ref, FrontInKind kind, CcDtype fits)
{
    FrontGraph *fg = L->fg;
    CcDtype as = kind == FRONT_IN_BOOL ? CC_DTYPE_BOOL : kind == FRONT_IN_INT ? CC_DTYPE_I64
                                                                                : CC_DTYPE_F64;

    for (uint32_t i = 0; i < fg->nin; i++) {
        if (fg->in[i].ref == ref && fg->in[i].kind == kind && fg->in[i].fits == fits) {
            return L->g->param[i].node;
        }
    }
    CcRef r = cc_build_scalar_param(L->g, as, 0, &L->st);
    return r != 0 && push_in(L, (FrontIn){.ref = ref, .kind = kind, .fits = fits}) ? r : 0;
}

static CcRef
run_number(Lower *L, const FrontValue *v, CcDtype dt)
{
    bool to_float = cc_dtype_is_float(dt);

    if (v->form == META_BOOL) {
        CcRef r = number_param(L, v->src, FRONT_IN_BOOL, CC_DTYPE_NONE);
        return cc_build_cast(L->g, r, dt, &L->st);
    }
    if (dt == CC_DTYPE_BOOL || (v->form == META_FLOAT && !to_float)) {
        return 0;
    }
    FrontInKind kind = v->form == META_FLOAT ? FRONT_IN_FLOAT : to_float ? FRONT_IN_INTFLOAT
                                                                          : FRONT_IN_INT;
    CcDtype fits = kind == FRONT_IN_INT ? dt : CC_DTYPE_NONE;
    if (kind == FRONT_IN_INT && !front_int_fits(dt, L->t->meta[TAPE_INDEX(v->src)].dim[0])) {
        return 0;
    }
    return cc_build_cast(L->g, number_param(L, v->src, kind, fits), dt, &L->st);
}

CcRef
front_as(Lower *L, const FrontValue *v, CcDtype dt)
{
    CcRef r;

    if (dt == CC_DTYPE_NONE) {
        L->why = "a dtype without kernels";
        return 0;
    }
    if (v->ref != 0) {
        r = cc_build_cast(L->g, v->ref, dt, &L->st);
    } else if (TAPE_KIND(v->src) == TAPE_CONST) {
        r = const_number(L, L->t->konst[TAPE_INDEX(v->src)], dt);
    } else {
        r = run_number(L, v, dt);
    }
    if (r == 0) {
        L->why = "a Python number that does not fit the dtype";
    }
    return r;
}

/* -- Constants
 * --------------------------------------------------------------------------------------- */

PyObject *
front_const(const Lower *L, TapeRef ref)
{
    return TAPE_KIND(ref) == TAPE_CONST ? L->t->konst[TAPE_INDEX(ref)] : NULL;
}

bool
front_const_int(const Lower *L, TapeRef ref, int64_t *out)
{
    PyObject *obj = front_const(L, ref);
    int over;

    if (obj == NULL || !PyLong_CheckExact(obj)) {
        return false;
    }
    *out = PyLong_AsLongLongAndOverflow(obj, &over);
    return !over;
}

int
front_items(const Lower *L, TapeRef ref, TapeRef *item, int max)
{
    if (TAPE_KIND(ref) != TAPE_VIRT) {
        return -1;
    }
    const TapeVirt *v = &L->t->virt[TAPE_INDEX(ref)];
    if ((v->kind != VIRT_TUPLE && v->kind != VIRT_LIST) || (int)v->nfields > max) {
        return -1;
    }
    memcpy(item, L->t->opnd + v->first, v->nfields * sizeof(*item));
    return (int)v->nfields;
}

/* Items of a virtual tuple, list or slice. */
static PyObject *
virtual_object(const Lower *L, const TapeVirt *v)
{
    bool slice = v->kind == VIRT_SLICE && v->nfields == 3;
    PyObject *res = slice || v->kind == VIRT_TUPLE ? PyTuple_New(v->nfields)
                  : v->kind == VIRT_LIST ? PyList_New(v->nfields) : NULL;

    for (uint32_t i = 0; res != NULL && i < v->nfields; i++) {
        PyObject *item = front_object(L, L->t->opnd[v->first + i]);
        if (item == NULL) {
            Py_CLEAR(res);
        } else if (PyTuple_Check(res)) {
            PyTuple_SET_ITEM(res, i, item);
        } else {
            PyList_SET_ITEM(res, i, item);
        }
    }
    if (slice && res != NULL) {
        PyObject *s = PySlice_New(PyTuple_GET_ITEM(res, 0), PyTuple_GET_ITEM(res, 1),
                                  PyTuple_GET_ITEM(res, 2));
        Py_SETREF(res, s);
    }
    PyErr_Clear();
    return res;
}

PyObject *
front_object(const Lower *L, TapeRef ref)
{
    if (TAPE_KIND(ref) == TAPE_VIRT) {
        return virtual_object(L, &L->t->virt[TAPE_INDEX(ref)]);
    }
    return Py_XNewRef(front_const(L, ref));
}

CcDim
front_dim(Lower *L, CcDimKind op, CcDim a, int64_t b)
{
    CcDim c = a == 0 ? 0 : cc_dim_const(L->g, b, &L->st);

    return c == 0 ? 0 : cc_dim_make(L->g, op, a, c, &L->st);
}

CcDim
front_bound(Lower *L, TapeRef ref)
{
    FrontGraph *fg = L->fg;
    const TapeMeta *m = TAPE_KIND(ref) == TAPE_REG ? &L->t->meta[TAPE_INDEX(ref)] : NULL;

    if (m == NULL || m->form != META_INT || m->dim[0] < 0 || L->val[TAPE_INDEX(ref)].ref != 0
            || L->nsym >= CC_MAX_SYM) {
        L->why = "a size that is not known";
        return 0;
    }
    for (uint32_t i = 0; i < fg->nin; i++) {
        if (fg->in[i].ref == ref && fg->in[i].kind == FRONT_IN_SIZE) {
            return cc_dim_sym(L->g, L->g->param[i].sym, &L->st);
        }
    }
    uint32_t sym = L->nsym++;
    L->sym[sym] = m->dim[0];
    if (cc_build_scalar_param(L->g, CC_DTYPE_I64, sym, &L->st) == 0
            || !push_in(L, (FrontIn){.ref = ref, .kind = FRONT_IN_SIZE, .fits = CC_DTYPE_NONE})) {
        return 0;
    }
    return cc_dim_sym(L->g, sym, &L->st);
}

CcDim
front_size(Lower *L, TapeRef ref, int64_t example)
{
    int64_t known;

    if (front_const_int(L, ref, &known)) {
        return known < 0 ? 0 : cc_dim_const(L->g, known, &L->st);
    }
    CcDim d = example < 2 ? 0 : front_bound(L, ref);
    return d != 0 && cc_dim_eval(L->g, d, L->sym) == example && front_need(L, d, 2) ? d : 0;
}

const TapeIns *
front_row_of(const Lower *L, TapeRef ref)
{
    for (uint32_t pc = 0; TAPE_KIND(ref) == TAPE_REG && pc < L->t->nins; pc++) {
        if (L->t->ins[pc].dst == TAPE_INDEX(ref) + 1) {
            return &L->t->ins[pc];
        }
    }
    return NULL;
}

/* The array whose attribute `name` a register holds; TAPE_NULL = it is something else. */
static TapeRef
attribute_of(const Lower *L, TapeRef ref, const char *name)
{
    const TapeIns *in = front_row_of(L, ref);

    if (in == NULL || in->op != TAPE_PCALL || in->sub != DO_GETATTR || in->n != 2) {
        return TAPE_NULL;
    }
    PyObject *attr = front_const(L, L->t->opnd[in->arg + 1]);
    TapeRef array = L->t->opnd[in->arg];
    bool named = attr != NULL && PyUnicode_CheckExact(attr)
        && PyUnicode_CompareWithASCIIString(attr, name) == 0;
    bool known = named && TAPE_KIND(array) == TAPE_REG
        && L->t->meta[TAPE_INDEX(array)].form == META_ARRAY;
    return known ? array : TAPE_NULL;
}

int
front_dtype_operand(const Lower *L, TapeRef ref)
{
    PyObject *obj = front_const(L, ref);
    TapeRef array = attribute_of(L, ref, "dtype");
    PyArray_Descr *d = NULL;

    if (array != TAPE_NULL) {
        return L->t->meta[TAPE_INDEX(array)].dtype;
    }
    bool known = obj != NULL
        && (PyArray_DescrCheck(obj) || PyType_Check(obj) || PyUnicode_CheckExact(obj));
    if (!known || !PyArray_DescrConverter(obj, &d) || d == NULL) {
        PyErr_Clear();
        return -1;
    }
    int num = d->type_num;
    Py_DECREF(d);
    return num;
}

static bool
shape_items(Lower *L, const TapeRef *item, uint8_t n, const int64_t *example, CcDim *dim)
{
    for (uint8_t i = 0; i < n; i++) {
        dim[i] = front_size(L, item[i], example[i]);
        if (dim[i] == 0) {
            return front_no(L, "a shape that is not known");
        }
    }
    return true;
}

bool
front_shape(Lower *L, TapeRef ref, uint8_t ndim, const int64_t *example, CcDim *dim)
{
    TapeRef item[TAPE_MAX_NDIM], array = attribute_of(L, ref, "shape");
    PyObject *tuple = front_const(L, ref);
    FrontValue v;
    int n = 1;

    if (array != TAPE_NULL) {
        if (!front_value(L, array, &v) || L->g->node[v.ref].ndim != ndim) {
            return front_no(L, "a shape that is not known");
        }
        for (uint8_t i = 0; i < ndim; i++) {
            dim[i] = cc_shape(L->g, v.ref)[i];
        }
        return true;
    }
    if (tuple != NULL && PyTuple_CheckExact(tuple)) {
        for (uint8_t i = 0; i < ndim && PyTuple_GET_SIZE(tuple) == ndim; i++) {
            dim[i] = cc_dim_const(L->g, example[i], &L->st);    /* a constant: as it was */
        }
        return PyTuple_GET_SIZE(tuple) == ndim || front_no(L, "a shape that is not known");
    }
    item[0] = ref;
    if (TAPE_KIND(ref) == TAPE_VIRT) {
        n = front_items(L, ref, item, TAPE_MAX_NDIM);
    }
    return n == ndim ? shape_items(L, item, ndim, example, dim)
                     : front_no(L, "a shape that is not known");
}

static bool
add_axis(Lower *L, PyObject *obj, uint8_t ndim, uint64_t *axes)
{
    long axis = PyLong_CheckExact(obj) ? PyLong_AsLong(obj) : ndim;

    PyErr_Clear();
    axis += axis < 0 ? ndim : 0;
    if (axis < 0 || axis >= ndim || (*axes >> axis & 1)) {
        return front_no(L, "an axis that is not known");
    }
    *axes |= (uint64_t)1 << axis;
    return true;
}

bool
front_axes(Lower *L, TapeRef ref, uint8_t ndim, uint64_t *axes)
{
    PyObject *obj = front_object(L, ref);
    bool ok = obj != NULL;

    *axes = 0;
    if (ok && PyTuple_CheckExact(obj)) {
        for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(obj); i++) {
            ok = add_axis(L, PyTuple_GET_ITEM(obj, i), ndim, axes);
        }
    } else if (ok) {
        ok = add_axis(L, obj, ndim, axes);
    }
    Py_XDECREF(obj);
    return (ok && *axes != 0) || front_no(L, "an axis that is not known");
}

/* -- Results
 * -------------------------------------------------------------------------------------------- */

uint32_t
front_wide_axes(const Lower *L, CcRef r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < L->g->node[r].ndim; i++) {
        n += !cc_dim_equals(L->g, cc_shape(L->g, r)[i], 1);
    }
    return n;
}

uint8_t
front_order(const Lower *L, const FrontValue *v, uint32_t n)
{
    uint8_t order = 0;

    for (uint32_t i = 0; i < n; i++) {
        /* fewer than two wide axes: nothing to order */
        if (v[i].ref == 0 || v[i].order == FRONT_NO_ORDER || front_wide_axes(L, v[i].ref) < 2) {
            continue;
        }
        if (order != 0 && order != v[i].order) {
            return LAYOUT_STRIDED;
        }
        order = v[i].order;
    }
    return order == 0 ? LAYOUT_C : order;
}

uint8_t
front_copy_order(const Lower *L, const FrontValue *v)
{
    return v->order == FRONT_NO_ORDER ? LAYOUT_STRIDED : front_order(L, v, 1);
}

bool
front_need(Lower *L, CcDim d, int64_t min)
{
    FrontGraph *fg = L->fg;
    int64_t known;

    if (cc_dim_is_const(L->g, d, &known)) {
        return known >= min || front_no(L, "a size is too small");
    }
    if (!CC_GROW(fg->need, fg->nneed, fg->capneed, 1)) {
        return front_no(L, "no memory");
    }
    fg->need[fg->nneed++] = (FrontNeed){d, min};
    return true;
}

bool
front_need_dims(Lower *L, CcRef r)
{
    for (uint32_t i = 0; i < L->g->node[r].ndim; i++) {
        CcDim d = cc_shape(L->g, r)[i];
        int64_t known;
        if (cc_dim_is_const(L->g, d, &known)) {
            continue;
        }
        if (cc_dim_eval(L->g, d, L->sym) < 2) {
            return front_no(L, "a size that is 0 or 1 by chance");
        }
        if (!front_need(L, d, 2)) {
            return false;
        }
    }
    return true;
}

bool
front_give(Lower *L, CcRef r, uint8_t order, bool fresh, FrontValue *out)
{
    if (r == 0) {
        return front_no(L, L->why != NULL ? L->why : "operands that the graph does not take");
    }
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    CcDtype dt = (CcDtype)L->g->node[r].dtype;
    *out = (FrontValue){
        .ref = r,
        .form = m->form,
        .order = front_wide_axes(L, r) < 2 ? LAYOUT_C : order,
        .dtype = (int16_t)front_typenum(dt),
        .fresh = fresh,
    };
    return true;
}

/* -- Dtypes of ufuncs
 * -------------------------------------------------------------------------------------- */

static PyObject *
resolve_operand(const FrontValue *v)
{
    switch ((TapeForm)v->form) {
    case META_INT:
        return Py_NewRef((PyObject *)&PyLong_Type);
    case META_FLOAT:
        return Py_NewRef((PyObject *)&PyFloat_Type);
    case META_BOOL:
        return (PyObject *)PyArray_DescrFromType(NPY_BOOL);
    default:
        return (PyObject *)PyArray_DescrFromType(v->dtype);
    }
}

static bool
resolved(PyObject *tuple, uint32_t n, CcDtype *dt)
{
    bool ok = PyTuple_Check(tuple) && PyTuple_GET_SIZE(tuple) == (Py_ssize_t)n + 1;

    for (uint32_t i = 0; ok && i <= n; i++) {
        PyObject *d = PyTuple_GET_ITEM(tuple, i);
        ok = PyArray_DescrCheck(d);
        dt[i] = ok ? front_dtype(((PyArray_Descr *)d)->type_num) : CC_DTYPE_NONE;
        ok = dt[i] != CC_DTYPE_NONE;
    }
    return ok;
}

bool
front_resolve(Lower *L, const char *name, const FrontValue *v, uint32_t n, CcDtype *dt)
{
    PyObject *types = PyTuple_New(n + 1);
    PyObject *ufunc = PyObject_GetAttrString(L->np, name), *res = NULL;
    bool ok = types != NULL && ufunc != NULL, strong = false;

    for (uint32_t i = 0; ok && i < n; i++) {
        PyObject *op = resolve_operand(&v[i]);
        ok = op != NULL;
        strong |= v[i].form == META_ARRAY || v[i].form == META_SCALAR;
        PyTuple_SET_ITEM(types, i, op);
    }
    if (ok && strong) {
        PyTuple_SET_ITEM(types, n, Py_NewRef(Py_None));
        res = PyObject_CallMethod(ufunc, "resolve_dtypes", "(O)", types);
    }
    ok = res != NULL && resolved(res, n, dt);
    Py_XDECREF(res);
    Py_XDECREF(ufunc);
    Py_XDECREF(types);
    PyErr_Clear();
    return ok || front_no(L, "dtypes without kernels");
}

/* -- Arguments
 * ------------------------------------------------------------------------------------------------
 */

/* Place of a parameter of this name in the list; -1 = none. */
static int
arg_place(const char *names, PyObject *kw)
{
    int place = 0;

    while (*names != '\0') {
        size_t len = strcspn(names, " ");
        PyObject *word = PyUnicode_FromStringAndSize(names, (Py_ssize_t)len);
        bool same = word != NULL && PyUnicode_Compare(word, kw) == 0;
        Py_XDECREF(word);
        PyErr_Clear();
        if (same) {
            return place;
        }
        names += len + (names[len] == ' ');
        place++;
    }
    return -1;
}

bool
front_args(Lower *L, const char *names, TapeRef *arg)
{
    const TapeRef *opnd = L->t->opnd + L->in->arg + 1;
    PyObject *kwnames = L->in->kw == 0 ? NULL : L->t->konst[L->in->kw];
    int nkw = kwnames == NULL ? 0 : (int)PyTuple_GET_SIZE(kwnames);
    int npos = (int)L->in->n - 1 - nkw, max = 1;

    for (const char *s = names; *s != '\0'; s++) {
        max += *s == ' ';
    }
    if (npos > max || max > FRONT_MAX_ARGS) {
        return front_no(L, "arguments that have no kernel");
    }
    for (int i = 0; i < max; i++) {
        arg[i] = i < npos ? opnd[i] : TAPE_NULL;
    }
    for (int i = 0; i < nkw; i++) {
        int at = arg_place(names, PyTuple_GET_ITEM(kwnames, i));
        if (at < 0 || arg[at] != TAPE_NULL) {
            return front_no(L, "arguments that have no kernel");
        }
        arg[at] = opnd[npos + i];
    }
    return true;
}
