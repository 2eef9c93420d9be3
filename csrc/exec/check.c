/* exec/check.c - reads of Python state and guards. None runs Python code or leaves an exception. */
#include "exec.h"

#include "../front/front.h"

/* -- Reads --------------------------------------------------------------------------- */

static PyObject *
dict_get(PyObject *dict, PyObject *key)
{
    PyObject *v = PyDict_GetItemWithError(dict, key);

    if (v == NULL) {
        PyErr_Clear();
    }
    return Py_XNewRef(v);
}

static PyObject *
load_global(PyObject *func, PyObject *name)
{
    PyFunctionObject *fn = (PyFunctionObject *)func;

    if (!PyDict_CheckExact(fn->func_globals) || !PyDict_CheckExact(fn->func_builtins)) {
        return NULL;
    }
    PyObject *v = dict_get(fn->func_globals, name);
    return v != NULL ? v : dict_get(fn->func_builtins, name);
}

static PyObject *
load_func(const Act *act, const TapeIns *in, PyFunctionObject *fn)
{
    Py_ssize_t i = (Py_ssize_t)in->aux;

    switch (in->sub) {
    case TAPE_FUNC_GLOBALS:
        return Py_NewRef(fn->func_globals);
    case TAPE_FUNC_CLOSURE:
        return fn->func_closure != NULL && i < PyTuple_GET_SIZE(fn->func_closure)
                   ? Py_NewRef(PyTuple_GET_ITEM(fn->func_closure, i)) : NULL;
    case TAPE_FUNC_DEFAULT:
        return fn->func_defaults != NULL && i < PyTuple_GET_SIZE(fn->func_defaults)
                   ? Py_NewRef(PyTuple_GET_ITEM(fn->func_defaults, i)) : NULL;
    default:
        return fn->func_kwdefaults != NULL && PyDict_CheckExact(fn->func_kwdefaults)
                   ? dict_get(fn->func_kwdefaults, act->t->konst[in->aux]) : NULL;
    }
}

static PyObject *
attr_of(PyObject *obj, const char *name)
{
    PyObject *v = PyObject_GetAttrString(obj, name); /* a C member of a static type: no user code */

    if (v == NULL) {
        PyErr_Clear();
    }
    return v;
}

static PyObject *
load_method(const TapeIns *in, PyObject *m)
{
    switch (in->sub) {
    case 0:
        return PyMethod_Check(m) ? Py_NewRef(PyMethod_GET_FUNCTION(m)) : NULL;
    case 1:
        return PyMethod_Check(m) ? Py_NewRef(PyMethod_GET_SELF(m)) : NULL;
    case 2:
        return Py_IS_TYPE(m, &PyStaticMethod_Type) || Py_IS_TYPE(m, &PyClassMethod_Type)
                   ? attr_of(m, "__func__") : NULL;
    default:
        return Py_IS_TYPE(m, &PyProperty_Type) ? attr_of(m, "fget") : NULL;
    }
}

static PyObject *
load_item(PyObject *seq, PyObject *index)
{
    if (!(PyTuple_CheckExact(seq) || PyList_CheckExact(seq)) || !PyLong_CheckExact(index)) {
        return NULL;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(seq), i = PyLong_AsSsize_t(index);
    if (i == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    i = i < 0 ? i + n : i;
    return i >= 0 && i < n ? Py_NewRef(PySequence_Fast_GET_ITEM(seq, i)) : NULL;
}

static bool
is_exact_key(PyObject *key)
{
    return PyUnicode_CheckExact(key) || PyLong_CheckExact(key);
}

PyObject *
exec_load(const Act *act, TapeIns *in)
{
    PyObject *a = act_operand(act, in, 0), *b = act_operand(act, in, 1);
    PyObject *name = in->aux < act->t->nkonst ? act->t->konst[in->aux] : NULL;

    if (a == NULL) {
        return NULL;
    }
    switch (in->op) {
    case TAPE_LDGLOB:
        return PyFunction_Check(a) ? load_global(a, name) : NULL;
    case TAPE_LDATTR:
        return Py_XNewRef(py_instance_attr_borrow(a, name));
    case TAPE_LDMOD:
        return PyModule_CheckExact(a) ? dict_get(PyModule_GetDict(a), name) : NULL;
    case TAPE_LDTYPE:
        return Py_XNewRef(_PyType_Lookup((PyTypeObject *)a, name));
    case TAPE_LDCELL:
        return PyCell_Check(a) ? Py_XNewRef(PyCell_GET(a)) : NULL;
    case TAPE_LDFUNC:
        return PyFunction_Check(a) ? load_func(act, in, (PyFunctionObject *)a) : NULL;
    case TAPE_LDMETH:
        return load_method(in, a);
    case TAPE_LDITEM:
        return load_item(a, b);
    case TAPE_LDKEY:
        return PyDict_CheckExact(a) && b != NULL && is_exact_key(b) ? dict_get(a, b) : NULL;
    case TAPE_LDSLOT:
        return Py_XNewRef(*(PyObject **)((char *)a + in->aux));
    default:
        return NULL;
    }
}

/* -- Guards ------------------------------------------------------------------------------ */

static bool
same_value(PyObject *have, PyObject *want)
{
    if (have == want) {
        return true;
    }
    if (Py_TYPE(have) != Py_TYPE(want)) {
        return false;
    }
    if (PyFloat_CheckExact(have)) {     /* by bits: -0.0 is not 0.0, NaN is itself */
        double x = PyFloat_AS_DOUBLE(have), y = PyFloat_AS_DOUBLE(want);
        return memcmp(&x, &y, sizeof(x)) == 0;
    }
    if (PyUnicode_CheckExact(have) || PyLong_CheckExact(have) || PyBytes_CheckExact(have)) {
        return PyObject_RichCompareBool(have, want, Py_EQ) == 1;
    }
    return false;
}

/* The look-up is repeated only when the class or a base has changed. */
static bool
type_attr_is(const Act *act, TapeIns *in, PyTypeObject *tp, PyObject *want)
{
    unsigned tag = py_type_tag(tp);

    if (tag != 0 && tag == in->cache) {
        return true;
    }
    if (_PyType_Lookup(tp, act->t->konst[in->aux]) != want) {
        return false;
    }
    in->cache = py_type_tag(tp);
    return true;
}

static bool
func_is(const Act *act, const TapeIns *in, PyObject *func)
{
    PyFunctionObject *fn = (PyFunctionObject *)func;

    if (!py_plain_function(func) || fn->func_code != act->t->konst[in->aux]) {
        return false;
    }
    Py_ssize_t n = fn->func_defaults == NULL ? 0 : PyTuple_GET_SIZE(fn->func_defaults);
    return n == (Py_ssize_t)in->check;
}

static bool
keys_are(PyObject *dict, PyObject *keys)
{
    PyObject *key, *value;
    Py_ssize_t pos = 0, i = 0, n = PyTuple_GET_SIZE(keys);

    if (!PyDict_CheckExact(dict) || PyDict_GET_SIZE(dict) != n) {
        return false;
    }
    while (PyDict_Next(dict, &pos, &key, &value)) {
        PyObject *want = PyTuple_GET_ITEM(keys, i++);
        if (key != want && (!PyUnicode_CheckExact(key) || PyUnicode_Compare(key, want) != 0)) {
            return false;
        }
    }
    return true;
}

static bool
memory_apart(const Act *act, const TapeIns *in)
{
    PyObject *array[FRONT_MAX_EXTENTS];

    if (in->n > FRONT_MAX_EXTENTS) {
        return false;
    }
    for (uint32_t i = 0; i < in->n; i++) {
        array[i] = act_operand(act, in, i);
        if (array[i] == NULL) {
            return false;
        }
    }
    return front_apart(array, in->aux, in->n);
}

bool
exec_guard(const Act *act, TapeIns *in)
{
    PyObject *a = act_operand(act, in, 0), *b = act_operand(act, in, 1);

    if (a == NULL) {
        return false;
    }
    switch (in->op) {
    case TAPE_GTYPE:
        return (PyObject *)Py_TYPE(a) == act->t->konst[in->aux];
    case TAPE_GIS:
        return (a == b) == in->sub;
    case TAPE_GEQ:
        return same_value(a, act->t->konst[in->aux]);
    case TAPE_GFUNC:
        return func_is(act, in, a);
    case TAPE_GTRUTH:
        return PyObject_IsTrue(a) == in->sub;
    case TAPE_GLEN:
        return PyObject_Size(a) == (Py_ssize_t)in->aux;
    case TAPE_GKEY:
        return PyDict_CheckExact(a) && is_exact_key(b) && PyDict_Contains(a, b) == in->sub;
    case TAPE_GKEYS:
        return keys_are(a, b);
    case TAPE_GNOATTR:
        return py_instance_attr_borrow(a, act->t->konst[in->aux]) == NULL;
    case TAPE_GTYPEATTR:
        return type_attr_is(act, in, (PyTypeObject *)a, b);
    case TAPE_GPURE:
        return front_is_pure(a);
    case TAPE_GOVER:
        return memory_apart(act, in);
    case TAPE_GARR:
        return front_matches(a, &act->t->arr[in->aux]);
    default:
        return false;
    }
}
