/* tape/call.c - the operations of call.def on real objects, for recorder and executor alike. */
#include "tape.h"

#include "../py/compat.h"

#include <opcode.h>

enum { CALL_MAX = 64 };

static PyObject *call_end;              /* what NEXT gives at the end of an iterator */
static PyObject *str_enter, *str_exit, *str_empty, *str_import, *str_name, *str_builtins;
static PyObject *str_copy, *str_k;

static PyObject *
power(PyObject *a, PyObject *b)
{
    return PyNumber_Power(a, b, Py_None);
}

static PyObject *
inplace_power(PyObject *a, PyObject *b)
{
    return PyNumber_InPlacePower(a, b, Py_None);
}

/* By the oparg of BINARY_OP, the same in 3.11 - 3.13. */
static const binaryfunc binary_fn[] = {
    [NB_ADD] = PyNumber_Add,
    [NB_AND] = PyNumber_And,
    [NB_FLOOR_DIVIDE] = PyNumber_FloorDivide,
    [NB_LSHIFT] = PyNumber_Lshift,
    [NB_MATRIX_MULTIPLY] = PyNumber_MatrixMultiply,
    [NB_MULTIPLY] = PyNumber_Multiply,
    [NB_REMAINDER] = PyNumber_Remainder,
    [NB_OR] = PyNumber_Or,
    [NB_POWER] = power,
    [NB_RSHIFT] = PyNumber_Rshift,
    [NB_SUBTRACT] = PyNumber_Subtract,
    [NB_TRUE_DIVIDE] = PyNumber_TrueDivide,
    [NB_XOR] = PyNumber_Xor,
    [NB_INPLACE_ADD] = PyNumber_InPlaceAdd,
    [NB_INPLACE_AND] = PyNumber_InPlaceAnd,
    [NB_INPLACE_FLOOR_DIVIDE] = PyNumber_InPlaceFloorDivide,
    [NB_INPLACE_LSHIFT] = PyNumber_InPlaceLshift,
    [NB_INPLACE_MATRIX_MULTIPLY] = PyNumber_InPlaceMatrixMultiply,
    [NB_INPLACE_MULTIPLY] = PyNumber_InPlaceMultiply,
    [NB_INPLACE_REMAINDER] = PyNumber_InPlaceRemainder,
    [NB_INPLACE_OR] = PyNumber_InPlaceOr,
    [NB_INPLACE_POWER] = inplace_power,
    [NB_INPLACE_RSHIFT] = PyNumber_InPlaceRshift,
    [NB_INPLACE_SUBTRACT] = PyNumber_InPlaceSubtract,
    [NB_INPLACE_TRUE_DIVIDE] = PyNumber_InPlaceTrueDivide,
    [NB_INPLACE_XOR] = PyNumber_InPlaceXor,
};

int
tape_call_setup(void)
{
    if (call_end != NULL) {
        return 0;
    }
    str_enter = PyUnicode_InternFromString("__enter__");
    str_exit = PyUnicode_InternFromString("__exit__");
    str_empty = PyUnicode_InternFromString("");
    str_import = PyUnicode_InternFromString("__import__");
    str_name = PyUnicode_InternFromString("__name__");
    str_builtins = PyUnicode_InternFromString("__builtins__");
    str_copy = PyUnicode_InternFromString("copy");
    str_k = PyUnicode_InternFromString("K");
    call_end = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    return str_enter && str_exit && str_empty && str_import && str_name && str_builtins && str_copy
            && str_k && call_end
               ? 0 : -1;
}

PyObject *
tape_end_borrow(void)
{
    return call_end;
}

static PyObject *
none_or_null(int err)
{
    return err < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *
truth(int yes)
{
    return yes < 0 ? NULL : PyBool_FromLong(yes);
}

static PyObject *
call_unary(uint32_t oparg, PyObject *a)
{
    switch (oparg) {
    case 0:
        return PyNumber_Negative(a);
    case 1:
        return PyNumber_Positive(a);
    case 2:
        return PyNumber_Invert(a);
    default: {
        int yes = PyObject_IsTrue(a);
        return yes < 0 ? NULL : PyBool_FromLong(!yes);
    }
    }
}

static PyObject *
call_compare(PyObject *a, PyObject *b, uint32_t oparg)
{
    PyObject *res = PyObject_RichCompare(a, b, (int)(oparg & 15));
    if (res == NULL || !(oparg & 16) || PyBool_Check(res)) {
        return res;
    }
    int yes = PyObject_IsTrue(res);
    Py_DECREF(res);
    return truth(yes);
}

static PyObject *
call_next(PyObject *it)
{
    PyObject *v = (*Py_TYPE(it)->tp_iternext)(it);

    if (v != NULL) {
        return v;
    }
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_StopIteration)) {
            return NULL;
        }
        PyErr_Clear();
    }
    return Py_NewRef(call_end);
}

/* A special method is looked up on the type; __get__ binds it. */
static PyObject *
bound_special(PyObject *obj, PyObject *name, const char *protocol)
{
    PyTypeObject *tp = Py_TYPE(obj);
    PyObject *m = _PyType_Lookup(tp, name);

    if (m == NULL) {
        PyErr_Format(PyExc_TypeError,
                     "'%.200s' object does not support the context manager protocol%s",
                     tp->tp_name, protocol);
        return NULL;
    }
    descrgetfunc get = Py_TYPE(m)->tp_descr_get;
    return get == NULL ? Py_NewRef(m) : get(m, obj, (PyObject *)tp);
}

static PyObject *
call_enter(PyObject *mgr)
{
    PyObject *enter = bound_special(mgr, str_enter, "");
    if (enter == NULL) {
        return NULL;
    }
    PyObject *pair = NULL, *res = NULL;
    PyObject *leave = bound_special(mgr, str_exit, " (missed __exit__ method)");
    if (leave != NULL) {
        res = PyObject_CallNoArgs(enter);
    }
    if (res != NULL) {
        pair = PyTuple_Pack(2, leave, res);
    }
    Py_DECREF(enter);
    Py_XDECREF(leave);
    Py_XDECREF(res);
    return pair;
}

static PyObject *
call_format(uint32_t conversion, PyObject *value, PyObject *spec)
{
    PyObject *v = conversion == 0 ? Py_NewRef(value)
                : conversion == 1 ? PyObject_Str(value)
                : conversion == 2 ? PyObject_Repr(value) : PyObject_ASCII(value);
    if (v == NULL) {
        return NULL;
    }
    if (spec == NULL && PyUnicode_CheckExact(v)) {
        return v;
    }
    PyObject *res = PyObject_Format(v, spec);
    Py_DECREF(v);
    return res;
}

/* The items of a sequence of exactly n, the errors as UNPACK_SEQUENCE words them. */
static PyObject *
call_unpack(PyObject *seq, Py_ssize_t n)
{
    if ((PyTuple_CheckExact(seq) || PyList_CheckExact(seq)) && PySequence_Fast_GET_SIZE(seq) == n) {
        return PySequence_Tuple(seq);
    }
    PyObject *it = PyObject_GetIter(seq);
    if (it == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(seq)->tp_iter == NULL
                && !PySequence_Check(seq)) {
            PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object",
                         Py_TYPE(seq)->tp_name);
        }
        return NULL;
    }
    PyObject *res = PyTuple_New(n), *v = NULL;
    for (Py_ssize_t i = 0; res != NULL && i < n; i++) {
        v = PyIter_Next(it);
        if (v == NULL) {
            if (!PyErr_Occurred()) {
                PyErr_Format(PyExc_ValueError,
                             "not enough values to unpack (expected %zd, got %zd)", n, i);
            }
            Py_CLEAR(res);
            break;
        }
        PyTuple_SET_ITEM(res, i, v);
    }
    if (res != NULL && (v = PyIter_Next(it)) != NULL) {
        Py_DECREF(v);
        PyErr_Format(PyExc_ValueError, "too many values to unpack (expected %zd)", n);
        Py_CLEAR(res);
    } else if (res != NULL && PyErr_Occurred()) {
        Py_CLEAR(res);
    }
    Py_DECREF(it);
    return res;
}

static PyObject *
call_unpack_ex(PyObject *seq, Py_ssize_t before, Py_ssize_t after)
{
    PyObject *all = PySequence_List(seq), *res = NULL;
    if (all == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) && Py_TYPE(seq)->tp_iter == NULL
                && !PySequence_Check(seq)) {
            PyErr_Format(PyExc_TypeError, "cannot unpack non-iterable %.200s object",
                         Py_TYPE(seq)->tp_name);
        }
        return NULL;
    }
    Py_ssize_t len = PyList_GET_SIZE(all);
    if (len < before + after) {
        PyErr_Format(PyExc_ValueError,
                     "not enough values to unpack (expected at least %zd, got %zd)", before + after,
                     len);
        goto done;
    }
    res = PyTuple_New(before + 1 + after);
    if (res == NULL) {
        goto done;
    }
    for (Py_ssize_t i = 0; i < before; i++) {
        PyTuple_SET_ITEM(res, i, Py_NewRef(PyList_GET_ITEM(all, i)));
    }
    for (Py_ssize_t i = 0; i < after; i++) {
        PyTuple_SET_ITEM(res, before + 1 + i, Py_NewRef(PyList_GET_ITEM(all, len - after + i)));
    }
    PyObject *middle = PyList_GetSlice(all, before, len - after);
    if (middle == NULL) {
        Py_CLEAR(res);
        goto done;
    }
    PyTuple_SET_ITEM(res, before, middle);
done:
    Py_DECREF(all);
    return res;
}

static PyObject *
call_import(PyObject *globals, PyObject *name, PyObject *fromlist, PyObject *level)
{
    PyObject *builtins = PyDict_GetItemWithError(globals, str_builtins);
    PyObject *fn = NULL;

    if (builtins == NULL && PyErr_Occurred()) {
        return NULL;
    }
    if (builtins == NULL) {
        builtins = PyEval_GetBuiltins();
    }
    if (builtins != NULL && PyModule_Check(builtins)) {
        builtins = PyModule_GetDict(builtins);
    }
    if (builtins != NULL) {
        fn = PyDict_GetItemWithError(builtins, str_import);
    }
    if (fn == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ImportError, "__import__ not found");
        }
        return NULL;
    }
    return PyObject_CallFunctionObjArgs(fn, name, globals, Py_None, fromlist, level, NULL);
}

static PyObject *
call_import_from(PyObject *module, PyObject *name)
{
    PyObject *v = PyObject_GetAttr(module, name);
    if (v != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return v;
    }
    PyObject *err = py_exc_take();
    PyObject *pkg = PyObject_GetAttr(module, str_name);
    if (pkg != NULL && PyUnicode_Check(pkg)) {
        PyObject *full = PyUnicode_FromFormat("%U.%U", pkg, name);
        if (full != NULL) {
            v = PyImport_GetModule(full);
            Py_DECREF(full);
        }
    }
    Py_XDECREF(pkg);
    if (v == NULL) {
        PyErr_Clear();
        py_exc_give_steal(err);
        return NULL;
    }
    Py_XDECREF(err);
    return v;
}

static PyObject *
call_dict_merge(PyObject *into, PyObject *from)
{
    if (!PyDict_CheckExact(from)) {
        PyErr_SetString(PyExc_TypeError, "argument after ** must be a mapping");
        return NULL;
    }
    return none_or_null(_PyDict_MergeEx(into, from, 2));
}

static PyObject *
call_set(PyObject *const *a, uint32_t n)
{
    PyObject *s = PySet_New(NULL);
    for (uint32_t i = 0; s != NULL && i < n; i++) {
        if (PySet_Add(s, a[i]) < 0) {
            Py_CLEAR(s);
        }
    }
    return s;
}

static PyObject *
call_join(PyObject *const *a, uint32_t n)
{
    PyObject *t = PyTuple_New(n), *res = NULL;
    if (t == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        PyTuple_SET_ITEM(t, i, Py_NewRef(a[i]));
    }
    res = PyUnicode_Join(str_empty, t);
    Py_DECREF(t);
    return res;
}

static PyObject *
call_vector(PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    size_t nkw = kwnames == NULL ? 0 : (size_t)PyTuple_GET_SIZE(kwnames);

    return PyObject_Vectorcall(a[0], a + 1, (n - 1 - nkw) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                               kwnames);
}

/* -- In place, on new memory ------------------------------------------------------ */

/* Axes lie in the new memory as in the old. */
static PyObject *
call_copy(PyObject *array)
{
    PyObject *args[2] = {array, str_k};

    return PyObject_VectorcallMethod(str_copy, args, 2, NULL);
}

static PyObject *
call_inplace(PyObject *a, PyObject *b, uint32_t oparg)
{
    PyObject *copy = call_copy(a);
    PyObject *res = copy == NULL ? NULL : binary_fn[oparg](copy, b);

    Py_XDECREF(copy);
    return res;
}

static bool
has_ellipsis(PyObject *key)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
        if (PyTuple_GET_ITEM(key, i) == Py_Ellipsis) {
            return true;
        }
    }
    return false;
}

/* With an ellipsis in the key even an element is an array, of no axes. */
static PyObject *
call_view(PyObject *array, PyObject *key)
{
    bool tuple = PyTuple_CheckExact(key);
    Py_ssize_t n = tuple ? PyTuple_GET_SIZE(key) : 1;
    PyObject *wide, *res;

    if (key == Py_Ellipsis || (tuple && has_ellipsis(key))) {
        return PyObject_GetItem(array, key);
    }
    wide = PyTuple_New(n + 1);
    if (wide == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTuple_SET_ITEM(wide, i, Py_NewRef(tuple ? PyTuple_GET_ITEM(key, i) : key));
    }
    PyTuple_SET_ITEM(wide, n, Py_NewRef(Py_Ellipsis));
    res = PyObject_GetItem(array, wide);
    Py_DECREF(wide);
    return res;
}

static PyObject *
call_store_steal(PyObject *copy, PyObject *key, PyObject *value)
{
    if (copy != NULL && PyObject_SetItem(copy, key, value) < 0) {
        Py_CLEAR(copy);
    }
    return copy;
}

static PyObject *
call_assign(PyObject *a, PyObject *key, PyObject *value)
{
    PyObject *view = call_view(a, key);
    PyObject *copy = view == NULL ? NULL : call_copy(view);

    Py_XDECREF(view);
    return call_store_steal(copy, Py_Ellipsis, value);
}

static PyObject *
call_into(PyObject *const *a, uint32_t n, PyObject *kwnames, uint32_t target)
{
    PyObject *arg[CALL_MAX], *copy, *res;

    if (n > CALL_MAX || target >= n) {
        PyErr_SetString(PyExc_SystemError, "ccompile: a call with too many operands");
        return NULL;
    }
    copy = call_copy(a[target]);
    if (copy == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        arg[i] = i == target ? copy : a[i];
    }
    res = call_vector(arg, n, kwnames);
    if (res != NULL && res != copy && res != Py_None) {
        PyErr_SetString(PyExc_SystemError, "ccompile: a call gave a result of its own");
        Py_CLEAR(res);
    }
    if (res == NULL) {
        Py_CLEAR(copy);
    }
    Py_XDECREF(res);
    return copy;
}

/* Only dispatches. */
PyObject *
tape_call(CallKind kind, uint32_t oparg, PyObject *const *a, uint32_t n, PyObject *kwnames)
{
    Py_ssize_t len;

    switch (kind) {
    case DO_CALL:
        return call_vector(a, n, kwnames);
    case DO_CALLEX:
        return PyObject_Call(a[0], a[1], n > 2 ? a[2] : NULL);
    case DO_BINARY:
        return binary_fn[oparg](a[0], a[1]);
    case DO_UNARY:
        return call_unary(oparg, a[0]);
    case DO_COMPARE:
        return call_compare(a[0], a[1], oparg);
    case DO_CONTAINS: {
        int in = PySequence_Contains(a[1], a[0]);
        return in < 0 ? NULL : PyBool_FromLong(in ^ (int)oparg);
    }
    case DO_TRUTH:
        return truth(PyObject_IsTrue(a[0]));
    case DO_LEN:
    case DO_GETLEN:
        len = PyObject_Length(a[0]);
        return len < 0 ? NULL : PyLong_FromSsize_t(len);
    case DO_GETITEM:
        return PyObject_GetItem(a[0], a[1]);
    case DO_SETITEM:
        return none_or_null(PyObject_SetItem(a[0], a[1], a[2]));
    case DO_DELITEM:
        return none_or_null(PyObject_DelItem(a[0], a[1]));
    case DO_GETATTR:
        return PyObject_GetAttr(a[0], a[1]);
    case DO_SETATTR:
        return none_or_null(PyObject_SetAttr(a[0], a[1], a[2]));
    case DO_DELATTR:
        return none_or_null(PyObject_SetAttr(a[0], a[1], NULL));
    case DO_ITER:
        return PyObject_GetIter(a[0]);
    case DO_NEXT:
        return call_next(a[0]);
    case DO_ENTER:
        return call_enter(a[0]);
    case DO_FORMAT:
        return call_format(oparg, a[0], n > 1 ? a[1] : NULL);
    case DO_JOIN:
        return call_join(a, n);
    case DO_TUPLE:
        return PySequence_Tuple(a[0]);
    case DO_UNPACK:
        return call_unpack(a[0], oparg);
    case DO_UNPACKEX:
        return call_unpack_ex(a[0], oparg & 255, oparg >> 8);
    case DO_IMPORT:
        return call_import(a[0], a[1], a[2], a[3]);
    case DO_IMPORTFROM:
        return call_import_from(a[0], a[1]);
    case DO_LISTAPPEND:
        return none_or_null(PyList_Append(a[0], a[1]));
    case DO_LISTEXTEND:
        return none_or_null(py_list_extend(a[0], a[1]));
    case DO_SETADD:
        return none_or_null(PySet_Add(a[0], a[1]));
    case DO_SETUPDATE:
        return none_or_null(_PySet_Update(a[0], a[1]));
    case DO_DICTSET:
        return none_or_null(PyDict_SetItem(a[0], a[1], a[2]));
    case DO_DICTUPDATE:
        return none_or_null(PyDict_Update(a[0], a[1]));
    case DO_DICTMERGE:
        return call_dict_merge(a[0], a[1]);
    case DO_DICTDEL:
        return none_or_null(PyDict_DelItem(a[0], a[1]));
    case DO_SETCELL:
        return none_or_null(PyCell_Set(a[0], n > 1 ? a[1] : NULL));
    case DO_MKSET:
        return call_set(a, n);
    case DO_SLICE:
        return PySlice_New(a[0], a[1], a[2]);
    case DO_INPLACE:
        return call_inplace(a[0], a[1], oparg);
    case DO_VIEW:
        return call_view(a[0], a[1]);
    case DO_ASSIGN:
        return call_assign(a[0], a[1], a[2]);
    case DO_STORE:
        return call_store_steal(call_copy(a[0]), a[1], a[2]);
    case DO_INTO:
        return call_into(a, n, kwnames, oparg);
    case DO__COUNT:
        break;
    }
    PyErr_SetString(PyExc_SystemError, "ccompile: unknown operation");
    return NULL;
}
