/* front/run_graph.c - graphs and Python objects: a graph run on arrays and numbers that somebody
 * gives, and the results of somebody else's function in place of a graph's. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* -- A graph on objects ----------------------------------------------------------------------- */

static bool
number_in(PyObject *obj, CcDtype dt, CcScalar *out)
{
    if (dt == CC_DTYPE_F64) {
        out->d = PyFloat_AsDouble(obj);
    } else if (dt == CC_DTYPE_BOOL) {
        out->i = PyObject_IsTrue(obj);
    } else {
        PyObject *index = PyNumber_Index(obj);
        out->i = index == NULL ? -1 : PyLong_AsLongLong(index);
        Py_XDECREF(index);
    }
    return !PyErr_Occurred();
}

/* New reference to an array that the graph can read; NULL with an exception. */
static PyObject *
array_in(PyObject *obj, const CcNode *node, CcLayout layout)
{
    int num = front_typenum((CcDtype)node->dtype),
        flags = NPY_ARRAY_BEHAVED_NS & ~NPY_ARRAY_WRITEABLE;

    if (!PyArray_Check(obj) || PyArray_TYPE((PyArrayObject *)obj) != num ||
        PyArray_NDIM((PyArrayObject *)obj) != node->ndim) {
        PyErr_Format(PyExc_TypeError, "expected an array of %s with %d dimensions",
                     cc_dtype_info[node->dtype].text, node->ndim);
        return NULL;
    }
    flags |= layout == CC_LAYOUT_C ? NPY_ARRAY_C_CONTIGUOUS
           : layout == CC_LAYOUT_F ? NPY_ARRAY_F_CONTIGUOUS : 0;
    return PyArray_FromAny(obj, NULL, node->ndim, node->ndim, flags, NULL);
}

static PyObject *
array_out(const CcOutShape *shape)
{
    bool f = shape->ndim > 1 && shape->stride[0] < shape->stride[shape->ndim - 1];

    return PyArray_New(&PyArray_Type, shape->ndim, (npy_intp *)shape->dim,
                       front_typenum((CcDtype)shape->dtype), NULL, NULL, 0,
                       f ? NPY_ARRAY_F_CONTIGUOUS : 0, NULL);
}

static bool
take_inputs(const CcGraph *g, PyObject *const *in, PyObject **held, CcArgIn *arg)
{
    for (uint32_t i = 0; i < g->nparam; i++) {
        const CcNode *node = &g->node[g->param[i].node];
        if (g->param[i].layout == CC_LAYOUT_SCALAR) {
            if (!number_in(in[i], (CcDtype)node->dtype, &arg[i].scalar)) {
                return false;
            }
            continue;
        }
        held[i] = array_in(in[i], node, (CcLayout)g->param[i].layout);
        if (held[i] == NULL) {
            return false;
        }
        front_arg_of(held[i], &arg[i]);
    }
    return true;
}

static PyObject *
run_into(const CcGraph *g, const CcPlan *plan, CcBinding *b, const CcArgIn *arg, CcArgIn *result)
{
    CcRunOptions opt = {0};
    CcFaults faults = {0};
    CcStatus st = {0};
    PyObject *out = PyTuple_New(g->nout);

    if (out == NULL || !rt_plan_bind(plan, arg, b, &st)) {
        Py_XDECREF(out);
        PyErr_Format(PyExc_ValueError, "the sizes do not fit the graph: %s", st.detail);
        return NULL;
    }
    for (uint32_t k = 0; k < g->nout; k++) {
        PyObject *a = array_out(&b->out[k]);
        if (a == NULL) {
            Py_DECREF(out);
            return NULL;
        }
        front_arg_of(a, &result[k]);
        PyTuple_SET_ITEM(out, k, a);
    }
    if (!rt_plan_run(plan, arg, result, b, &opt, &faults, &st)) {
        Py_DECREF(out);
        PyErr_Format(PyExc_RuntimeError, "the graph did not run: %s", st.detail);
        return NULL;
    }
    for (uint32_t k = 0; k < g->nout; k++) {
        PyObject *a = PyTuple_GET_ITEM(out, k);
        if (g->out[k].kind == CC_OUT_SCALAR) {
            PyTuple_SET_ITEM(out, k, PyArray_Return((PyArrayObject *)a));
        }
    }
    return out;
}

PyObject *
front_run_objects(const CcGraph *g, const CcPlan *plan, PyObject *const *in, uint32_t n)
{
    PyObject **held = PyMem_Calloc(g->nparam + 1, sizeof(*held)), *out = NULL;
    CcArgIn *arg = PyMem_Calloc(g->nparam + g->nout + 1, sizeof(*arg));
    CcBinding b;

    rt_binding_init(&b);
    if (held == NULL || arg == NULL) {
        PyErr_NoMemory();
    } else if (n != g->nparam) {
        PyErr_Format(PyExc_TypeError, "expected %u inputs, got %u", g->nparam, n);
    } else if (take_inputs(g, in, held, arg)) {
        out = run_into(g, plan, &b, arg, arg + g->nparam);
    }
    rt_binding_fini(&b);
    for (uint32_t i = 0; held != NULL && i < g->nparam; i++) {
        Py_XDECREF(held[i]);
    }
    PyMem_Free(held);
    PyMem_Free(arg);
    return out;
}

/* -- A function in place of a graph --------------------------------------------------------------- */

PyObject *
front_example(const FrontIn *in)
{
    npy_intp dim[TAPE_MAX_NDIM];

    if (in->kind != FRONT_IN_ARRAY) {
        return in->kind == FRONT_IN_FLOAT || in->kind == FRONT_IN_INTFLOAT ? PyFloat_FromDouble(1)
             : in->kind == FRONT_IN_BOOL ? Py_NewRef(Py_True) : PyLong_FromLong(1);
    }
    for (uint32_t i = 0; i < in->meta.ndim; i++) {
        dim[i] = in->meta.dim[i];
    }
    return PyArray_ZEROS(in->meta.ndim, dim, in->meta.dtype, in->meta.layout == LAYOUT_F);
}

/* Contents of a result of the right dtype and shape, copied. */
static bool
copy_result(PyObject *given, const CcOutShape *shape, void *data, PyObject *array)
{
    PyObject *a = PyArray_FromAny(given, NULL, 0, 0, NPY_ARRAY_CARRAY_RO, NULL);
    bool ok = a != NULL && PyArray_TYPE((PyArrayObject *)a) == front_typenum((CcDtype)shape->dtype)
        && PyArray_NDIM((PyArrayObject *)a) == shape->ndim;

    for (uint32_t i = 0; ok && i < shape->ndim; i++) {
        ok = PyArray_DIM((PyArrayObject *)a, (int)i) == shape->dim[i];
    }
    if (!ok && !PyErr_Occurred()) {
        PyErr_SetString(PyExc_TypeError,
                        "the backend's function gave a result of another dtype or shape");
    }
    if (ok && array != NULL) {
        ok = PyArray_CopyInto((PyArrayObject *)array, (PyArrayObject *)a) == 0;
    } else if (ok) {
        memcpy(data, PyArray_DATA((PyArrayObject *)a),
               (size_t)PyArray_ITEMSIZE((PyArrayObject *)a));
    }
    Py_XDECREF(a);
    return ok;
}

bool
front_run_custom(FrontGraph *fg, const Trace *t, PyObject **reg)
{
    PyObject *in = PyTuple_New(fg->nin), *res = NULL, *seq = NULL;
    bool ok = in != NULL;

    for (uint32_t i = 0; ok && i < fg->nin; i++) {
        uint32_t at = TAPE_INDEX(fg->in[i].ref);
        PyObject *obj = TAPE_KIND(fg->in[i].ref) == TAPE_REG ? reg[at] : t->konst[at];
        PyTuple_SET_ITEM(in, i, Py_NewRef(obj));
    }
    res = ok ? PyObject_CallObject(fg->custom, in) : NULL;
    seq = res == NULL ? NULL : PySequence_Fast(res, "the backend's function gave no sequence");
    ok = seq != NULL && PySequence_Fast_GET_SIZE(seq) == (Py_ssize_t)fg->nout;
    if (seq != NULL && !ok) {
        PyErr_Format(PyExc_TypeError, "the backend's function gave %zd results, expected %u",
                     PySequence_Fast_GET_SIZE(seq), fg->nout);
    }
    for (uint32_t k = 0; ok && k < fg->nout; k++) {
        ok = copy_result(PySequence_Fast_GET_ITEM(seq, (Py_ssize_t)k), &fg->binding.out[k],
                         &fg->number[k], fg->made[k]);
    }
    if (!ok) {                          /* said once; from now on the graph's own plan runs */
        PyErr_WriteUnraisable(fg->custom);
        fg->custom = NULL;
    }
    Py_XDECREF(seq);
    Py_XDECREF(res);
    Py_XDECREF(in);
    return ok;
}
