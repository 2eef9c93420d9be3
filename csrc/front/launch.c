/* front/launch.c - run a graph: operands from registers, memory for results from NumPy, boxing.
 *
 * Nothing is changed until the work is done: a graph that refuses its inputs or finds a fault
 * leaves the registers as they were. Runs no Python code but destructors of what registers held and
 * the functions of a backend of the program's. */
#include "npy.h"

#include "lower.h"

#include <string.h>

/* -- Operands ------------------------------------------------------------------------------------
 */

void
front_arg_of(PyObject *array, CcArgIn *arg)
{
    PyArrayObject *a = (PyArrayObject *)array;

    *arg = (CcArgIn){
        .data = PyArray_DATA(a),
        .dims = (const int64_t *)PyArray_DIMS(a),
        .strides = (const int64_t *)PyArray_STRIDES(a),
    };
}

static bool
take_array(const FrontIn *in, PyObject *obj, CcArgIn *arg)
{
    PyArrayObject *a = (PyArrayObject *)obj;
    const TapeMeta *m = &in->meta;

    if (!PyArray_CheckExact(obj) || PyArray_TYPE(a) != m->dtype || PyArray_NDIM(a) != m->ndim
            || !PyArray_ISBEHAVED_RO(a) || front_layout(obj) != m->layout) {
        return false;
    }
    for (uint32_t i = 0; i < m->ndim; i++) {
        npy_intp n = PyArray_DIM(a, i);
        if (n > 1 ? m->dim[i] < 2 : n != m->dim[i]) {
            return false;
        }
    }
    bool ordered = m->layout == LAYOUT_STRIDED && m->order != LAYOUT_STRIDED;
    if (ordered && front_memory_order(obj) != m->order) {
        return false;
    }
    front_arg_of(obj, arg);
    return true;
}

static bool
take_scalar(const FrontIn *in, PyObject *obj, CcScalar *out)
{
    union {
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
    } v;

    if (Py_TYPE(obj) != in->type) {
        return false;
    }
    memset(&v, 0, sizeof(v));
    PyArray_ScalarAsCtype(obj, &v);
    switch (in->meta.dtype) {
    case NPY_BOOL:
        out->i = v.b != 0;
        break;
    case NPY_INT8:
        out->i = v.i8;
        break;
    case NPY_INT16:
        out->i = v.i16;
        break;
    case NPY_INT32:
        out->i = v.i32;
        break;
    case NPY_UINT8:
        out->i = v.u8;
        break;
    case NPY_UINT16:
        out->i = v.u16;
        break;
    case NPY_UINT32:
        out->i = v.u32;
        break;
    case NPY_FLOAT32:
        out->d = (double)v.f32;
        break;
    case NPY_FLOAT64:
        out->d = v.f64;
        break;
    default:
        out->i = v.i64;
    }
    return true;
}

static bool
take_int(const FrontIn *in, PyObject *obj, CcScalar *out)
{
    int over;

    if (!PyLong_CheckExact(obj)) {
        return false;
    }
    if (in->kind == FRONT_IN_INTFLOAT) {
        out->d = PyLong_AsDouble(obj);
        if (out->d == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
        return true;
    }
    out->i = PyLong_AsLongLongAndOverflow(obj, &over);
    if (in->kind == FRONT_IN_SIZE) {
        return !over && out->i >= 0;
    }
    return !over && front_int_fits((CcDtype)in->fits, out->i);
}

static bool
take(const FrontIn *in, PyObject *obj, CcArgIn *arg)
{
    if (obj == NULL) {
        return false;
    }
    switch ((FrontInKind)in->kind) {
    case FRONT_IN_ARRAY:
        return take_array(in, obj, arg);
    case FRONT_IN_SCALAR:
        return take_scalar(in, obj, &arg->scalar);
    case FRONT_IN_FLOAT:
        arg->scalar.d = PyFloat_CheckExact(obj) ? PyFloat_AS_DOUBLE(obj) : 0;
        return PyFloat_CheckExact(obj);
    case FRONT_IN_BOOL:
        arg->scalar.i = obj == Py_True;
        return PyBool_Check(obj);
    default:
        return take_int(in, obj, &arg->scalar);
    }
}

static bool
take_all(FrontGraph *fg, const Trace *t, PyObject **reg)
{
    for (uint32_t i = 0; i < fg->nin; i++) {
        uint32_t at = TAPE_INDEX(fg->in[i].ref);
        PyObject *obj = TAPE_KIND(fg->in[i].ref) == TAPE_REG ? reg[at] : t->konst[at];
        if (!take(&fg->in[i], obj, &fg->arg[i])) {
            return false;
        }
    }
    return true;
}

static bool
sizes_hold(const FrontGraph *fg)
{
    for (uint32_t i = 0; i < fg->nneed; i++) {
        if (fg->binding.dim[fg->need[i].dim] < fg->need[i].min) {
            return false;
        }
    }
    return true;
}

/* -- Results
 * ---------------------------------------------------------------------------------------- */

/* Small results are as near wherever they are. */
enum { POOL_SMALLEST = 16 << 10 };

/* A block of at least `size` bytes that nothing else holds, made or made anew; borrowed. */
static PyObject *
pool_block_borrow(FrontPool *pool, npy_intp size)
{
    uint32_t at = pool->n;
    npy_intp best = 0;

    for (uint32_t i = 0; i < pool->n; i++) {
        npy_intp have = PyArray_DIM((PyArrayObject *)pool->block[i], 0);
        if (Py_REFCNT(pool->block[i]) != 1) {
            continue;
        }
        bool fits = have >= size && have / 2 <= size;
        if (fits && (best == 0 || have < best)) {
            at = i;
            best = have;
        }
    }
    if (best > 0) {
        return pool->block[at];
    }
    for (uint32_t i = 0; i < pool->n && at == pool->n; i++) {
        bool full = pool->n == FRONT_POOL_BLOCKS;
        at = full && Py_REFCNT(pool->block[i]) == 1 ? i : at;
    }
    if (at == FRONT_POOL_BLOCKS) {
        return NULL;
    }
    PyObject *block = PyArray_SimpleNew(1, &size, NPY_UINT8);
    if (block == NULL) {
        PyErr_Clear();
        return NULL;
    }
    if (at < pool->n) {
        Py_DECREF(pool->block[at]);
    }
    pool->block[at] = block;
    pool->n += at == pool->n;
    return block;
}

/* An array in a block of the pool; NULL without an exception: it has none. */
static PyObject *
pool_array(FrontGraph *fg, const FrontOut *out, const CcOutShape *shape)
{
    PyArray_Descr *d = PyArray_DescrFromType(out->dtype);
    npy_intp size = d == NULL ? 0 : PyDataType_ELSIZE(d);

    for (int i = 0; i < shape->ndim; i++) {
        size *= (npy_intp)shape->dim[i];
    }
    PyObject *block = size < POOL_SMALLEST ? NULL : pool_block_borrow(fg->pool, size), *a = NULL;
    if (block != NULL) {
        int flags = out->order == LAYOUT_F ? NPY_ARRAY_FARRAY : NPY_ARRAY_CARRAY;
        a = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(d), shape->ndim,
                                 (npy_intp *)shape->dim, NULL,
                                 PyArray_DATA((PyArrayObject *)block), flags, NULL);
    }
    if (a != NULL && PyArray_SetBaseObject((PyArrayObject *)a, Py_NewRef(block)) < 0) {
        Py_CLEAR(a);
    }
    Py_XDECREF(d);
    PyErr_Clear();
    return a;
}

static PyObject *
make_array(FrontGraph *fg, uint32_t k)
{
    const FrontOut *out = &fg->out[k];
    const CcOutShape *shape = &fg->binding.out[k];
    PyObject *a = out->hidden ? pool_array(fg, out, shape) : NULL;

    if (a == NULL) {
        int flags = out->order == LAYOUT_F ? NPY_ARRAY_F_CONTIGUOUS : 0;
        a = PyArray_New(&PyArray_Type, shape->ndim, (npy_intp *)shape->dim, out->dtype, NULL, NULL,
                        0, flags, NULL);
    }
    return a;
}

static bool
make_result(FrontGraph *fg, uint32_t k)
{
    const FrontOut *out = &fg->out[k];
    const CcOutShape *shape = &fg->binding.out[k];

    fg->made[k] = NULL;
    if (out->form != META_ARRAY) {
        fg->result[k] = (CcArgIn){
            .data = &fg->number[k],
            .dims = shape->dim,
            .strides = shape->stride,
        };
        fg->number[k].u = 0;
        return true;
    }
    fg->made[k] = make_array(fg, k);
    if (fg->made[k] != NULL && out->wrapped) {
        PyObject *view = PyArray_View((PyArrayObject *)fg->made[k], NULL, NULL);
        Py_SETREF(fg->made[k], view);
    }
    if (fg->made[k] == NULL) {
        return false;
    }
    front_arg_of(fg->made[k], &fg->result[k]);
    return true;
}

static PyObject *
box(const FrontOut *out, const CcScalar *number)
{
    PyArray_Descr *d;
    PyObject *res;
    uint8_t truth;

    switch ((TapeForm)out->form) {
    case META_INT:
        return PyLong_FromLongLong(number->i);
    case META_FLOAT:
        return PyFloat_FromDouble(number->d);
    case META_BOOL:
        memcpy(&truth, number, 1);
        return PyBool_FromLong(truth);
    default:
        d = PyArray_DescrFromType(out->dtype);
        res = d == NULL ? NULL : PyArray_Scalar((void *)(uintptr_t)number, d, NULL);
        Py_XDECREF(d);
        return res;
    }
}

static bool
box_all(FrontGraph *fg)
{
    for (uint32_t k = 0; k < fg->nout; k++) {
        if (fg->out[k].form != META_ARRAY) {
            fg->made[k] = box(&fg->out[k], &fg->number[k]);
        }
        if (fg->made[k] == NULL) {
            return false;
        }
    }
    return true;
}

static FrontRan
drop_all(FrontGraph *fg, uint32_t n, FrontRan how)
{
    for (uint32_t k = 0; k < n; k++) {
        Py_CLEAR(fg->made[k]);
    }
    PyErr_Clear();
    return how;
}

/* -- A call
 * -------------------------------------------------------------------------------------------- */

/* The old objects go last: their weakref callbacks may run anything. */
static void
store_all(FrontGraph *fg, PyObject **reg)
{
    for (uint32_t k = 0; k < fg->nout; k++) {
        PyObject *old = reg[fg->out[k].reg];
        reg[fg->out[k].reg] = fg->made[k];
        fg->made[k] = old;
    }
    for (uint32_t k = 0; k < fg->nout; k++) {
        Py_CLEAR(fg->made[k]);
    }
}

static FrontRan
launch(FrontGraph *fg, const Trace *t, PyObject **reg, uint32_t ignored)
{
    CcRunOptions opt = {0};
    CcFaults faults = {0};
    CcStatus st;

    if (!take_all(fg, t, reg) || !rt_plan_bind(fg->plan, fg->arg, &fg->binding, &st)
            || !sizes_hold(fg)) {
        return FRONT_REFUSED;
    }
    for (uint32_t k = 0; k < fg->nout; k++) {
        if (!make_result(fg, k)) {
            return drop_all(fg, k, FRONT_REFUSED);
        }
    }
    if (fg->custom != NULL && front_run_custom(fg, t, reg)) {
        opt.threads = 1;
    } else if (!rt_plan_run(fg->plan, fg->arg, fg->result, &fg->binding, &opt, &faults, &st)) {
        return drop_all(fg, fg->nout, FRONT_REFUSED);
    }
    if (faults.bits & (~ignored | fg->strict)) {
        return drop_all(fg, fg->nout, FRONT_FAULT);
    }
    if (!box_all(fg)) {
        return drop_all(fg, fg->nout, FRONT_REFUSED);
    }
    store_all(fg, reg);
    return FRONT_RAN;
}

FrontRan
front_launch(FrontGraph *fg, const Trace *t, PyObject **reg, uint32_t ignored)
{
    if (fg->busy) {
        return FRONT_REFUSED;
    }
    fg->busy = true;
    FrontRan how = launch(fg, t, reg, ignored);
    fg->busy = false;
    return how;
}
