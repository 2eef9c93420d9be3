/* trace/ops_super.c - super(): the object is virtual, and what it finds is a method of the class
 * behind, where that class has the rest of the order of the instance's class as its own. */
#include "ops.h"

/* Where the search goes on behind `cls` in the order of `tp`; NULL when no single class has it. */
static PyTypeObject *
class_behind(PyTypeObject *tp, PyObject *cls)
{
    PyObject *mro = tp->tp_mro;
    Py_ssize_t n = PyTuple_GET_SIZE(mro), i = 0;

    while (i < n && PyTuple_GET_ITEM(mro, i) != cls) {
        i++;
    }
    if (i + 1 >= n) {
        return NULL;
    }
    PyTypeObject *next = (PyTypeObject *)PyTuple_GET_ITEM(mro, i + 1);
    bool same = PyTuple_GET_SIZE(next->tp_mro) == n - i - 1;
    for (Py_ssize_t k = i + 1; same && k < n; k++) {
        same = PyTuple_GET_ITEM(next->tp_mro, k - i - 1) == PyTuple_GET_ITEM(mro, k);
    }
    return same ? next : NULL;
}

/* `pop` slots make place for the attribute, in the method form for a pair. */
static void
put_steal(Recorder *r, int pop, PyObject *real, TapeRef ref, bool method)
{
    bool first = method && PY_CALL_NULL_FIRST;

    rec_replace_steal(r, pop, first ? NULL : real, first ? TAPE_NULL : ref);
    if (method) {
        rec_push_steal(r, first ? real : NULL, first ? ref : TAPE_NULL);
    }
}

RecStatus
rec_super_attr(Recorder *r, PyObject *obj, TapeRef obj_ref, PyObject *name, bool method, int pop)
{
    RecVirt *v = rec_virt_of(r, obj_ref);
    PyObject *cls = rec_konst_borrow(r, rec_ref(r, v->field[0])), *res;
    PyObject *self = PyObject_GetAttrString(obj, "__self__");
    TapeRef self_ref = rec_ref(r, v->field[1]), out;
    if (self == NULL) {
        return REC_ERROR;
    }
    Py_DECREF(self);                    /* `obj` holds it */
    PyTypeObject *behind = cls == NULL || PyType_Check(self) ? NULL
                                                             : class_behind(Py_TYPE(self), cls);
    PyObject *d = behind == NULL ? NULL : _PyType_Lookup(behind, name);
    bool found = d != NULL && (PyFunction_Check(d) || Py_IS_TYPE(d, &PyWrapperDescr_Type));

    if (!found || (!method && !PyFunction_Check(d))) {
        PyObject *real[2] = {obj, name};
        TapeRef ref[2] = {obj_ref, rec_const(r, name)};
        RecStatus st = rec_residual(r, DO_GETATTR, 0, real, ref, 2, NULL, pop, 0, &res, &out);
        if (st == REC_OK) {
            put_steal(r, pop, res, out, method);
        }
        return st;
    }
    rec_guard_type(r, self_ref, self);
    out = rec_load_type_attr(r, behind, name, d);
    if (method) {
        Py_INCREF(self);
        rec_replace_steal(r, pop, Py_NewRef(d), out);
        rec_push_steal(r, self, self_ref);
        return REC_OK;
    }
    TapeRef field[2] = {out, self_ref};
    res = PyMethod_New(d, self);
    if (res == NULL) {
        return REC_ERROR;
    }
    put_steal(r, pop, res, rec_virt(r, VIRT_METHOD, field, 2), false);
    return REC_OK;
}

static PyObject *
new_super(PyObject *cls, PyObject *self)
{
    PyObject *arg[2] = {cls, self};
    return PyObject_Vectorcall((PyObject *)&PySuper_Type, arg, 2, NULL);
}

/* 3.12 on: super, class, self on the stack. */
RecStatus
rec_op_load_super_attr(Recorder *r, int oparg)
{
    PyObject *name = PyTuple_GET_ITEM(rec_top(r)->co->co_names, oparg >> 2);
    TapeRef field[2] = {rec_peek(r, 1), rec_peek(r, 0)};

    if (rec_real(r, 2) != (PyObject *)&PySuper_Type || TAPE_KIND(rec_peek(r, 2)) != TAPE_CONST) {
        return rec_stop(r, CC_REASON_BYTECODE, "super is something else");
    }
    PyObject *obj = new_super(rec_real(r, 1), rec_real(r, 0));
    if (obj == NULL) {
        PyErr_Clear();
        return rec_stop(r, CC_REASON_EXCEPTION, "super() of an object that is no instance");
    }
    TapeRef ref = rec_virt(r, VIRT_SUPER, field, 2);
    RecStatus st = r->broken ? rec_stop(r, CC_REASON_NO_MEMORY, "super")
                             : rec_super_attr(r, obj, ref, name, oparg & 1, 3);
    Py_DECREF(obj);
    return st;
}

/* The local, or what its cell holds; NULL where it is unbound. */
static PyObject *
local_of(Recorder *r, int i, TapeRef *ref)
{
    RecFrame *fr = rec_top(r);
    PyObject *real = fr->slot[i];

    *ref = rec_ref(r, fr->sh[i]);
    if (real == NULL || !PyCell_Check(real)) {
        return real;
    }
    RecVirt *v = rec_virt_of(r, *ref);
    real = PyCell_GET(real);
    if (real != NULL) {
        *ref = v != NULL ? rec_ref(r, v->field[0])
                         : rec_load(r, TAPE_LDCELL, 0, *ref, TAPE_NULL, 0, real);
    }
    return real;
}

RecStatus
rec_super_call(Recorder *r, PyObject *const *real, const TapeRef *ref, Py_ssize_t n, int pop,
               bool *handled)
{
    RecFrame *fr = rec_top(r);
    PyObject *cls = n == 2 ? real[0] : NULL, *self = n == 2 ? real[1] : NULL;
    TapeRef field[2] = {TAPE_NULL, TAPE_NULL};

    *handled = false;
    if (n == 2) {
        field[0] = ref[0];
        field[1] = ref[1];
    } else if (n == 0 && fr->co->co_argcount > 0) {
        self = local_of(r, 0, &field[1]);
        for (int i = fr->co->co_argcount; i < fr->nlocals; i++) {
            PyObject *name = PyTuple_GET_ITEM(fr->co->co_localsplusnames, i);
            if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0 && fr->slot[i] != NULL
                    && PyCell_Check(fr->slot[i])) {
                cls = local_of(r, i, &field[0]);
            }
        }
    }
    if (cls == NULL || self == NULL || !PyType_Check(cls) || TAPE_KIND(field[0]) != TAPE_CONST
            || r->broken) {
        return REC_OK;
    }
    PyObject *obj = new_super(cls, self);
    if (obj == NULL) {
        PyErr_Clear();                  /* the call says it itself */
        return REC_OK;
    }
    *handled = true;
    rec_replace_steal(r, pop, obj, rec_virt(r, VIRT_SUPER, field, 2));
    return REC_OK;
}
