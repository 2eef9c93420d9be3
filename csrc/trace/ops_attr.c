/* trace/ops_attr.c - attributes, the way object.__getattribute__ finds them.
 *
 * What the class holds and whether the instance shadows it is guarded; values are read. Anything
 * that would run code of the program's (its own __getattribute__, descriptors other than functions
 * and properties) is a residual operation. */
#include "ops.h"

#include <structmember.h>

/* Top of the stack becomes the attribute, in the method form with a NULL. */
static void
put_attr_steal(Recorder *r, PyObject *real, TapeRef ref, bool method)
{
    if (method && PY_CALL_NULL_FIRST) {
        rec_replace_steal(r, 1, NULL, TAPE_NULL);
        rec_push_steal(r, real, ref);
        return;
    }
    rec_replace_steal(r, 1, real, ref);
    if (method) {
        rec_push_steal(r, NULL, TAPE_NULL);
    }
}

/* Top of the stack stays as self, under it goes the function. */
static void
put_method(Recorder *r, PyObject *func, TapeRef ref)
{
    RecFrame *fr = rec_top(r);
    PyObject *self = fr->slot[fr->sp - 1];
    TapeRef self_ref = fr->sh[fr->sp - 1];

    fr->slot[fr->sp - 1] = Py_NewRef(func);
    fr->sh[fr->sp - 1] = ref;
    rec_push_steal(r, self, self_ref);
}

static RecStatus
attr_residual(Recorder *r, PyObject *name, bool method)
{
    PyObject *real[2] = {rec_real(r, 0), name}, *res;
    TapeRef ref[2] = {rec_peek(r, 0), rec_const(r, name)}, out;
    FrontKind kind = front_classify(DO_GETATTR, 0, real, 2, NULL);
    RecStatus st;

    if (kind != FRONT_FOREIGN) {
        st = rec_pure(r, kind == FRONT_ARRAY ? TAPE_NODE : TAPE_PCALL, DO_GETATTR, 0, real, ref, 2,
                      NULL, 1, &res, &out);
    } else {
        bool plain = !(Py_TYPE(real[0])->tp_flags & Py_TPFLAGS_HEAPTYPE)
            && Py_TYPE(real[0])->tp_getattro == PyObject_GenericGetAttr;
        if (plain) {
            rec_guard_type(r, ref[0], real[0]);
        } else {
            st = rec_break(r, CC_REASON_USER_OPERATOR, "attribute of %.40s",
                           Py_TYPE(real[0])->tp_name);
            if (st != REC_OK) {
                return st;
            }
        }
        st = rec_residual(r, DO_GETATTR, 0, real, ref, 2, NULL, 1, plain ? TAPE_NOFRAME : 0, &res,
                          &out);
    }
    if (st == REC_OK) {
        put_attr_steal(r, res, out, method);
    }
    return st;
}

static RecStatus
attr_bound(Recorder *r, PyObject *func, TapeRef fref, PyObject *self, TapeRef sref, bool method)
{
    PyObject *m = PyMethod_New(func, self);
    TapeRef field[2] = {fref, sref};

    if (m == NULL) {
        return REC_ERROR;
    }
    put_attr_steal(r, m, rec_virt(r, VIRT_METHOD, field, 2), method);
    return REC_OK;
}

/* Whatever a class holds under a name, bound to nothing, to `self` or to the class. */
static RecStatus
attr_from_class(Recorder *r, PyTypeObject *tp, PyObject *name, PyObject *d, bool method,
                bool instance)
{
    PyObject *self = rec_real(r, 0);
    TapeRef sref = rec_peek(r, 0);

    if (PyFunction_Check(d)) {
        TapeRef fref = rec_load_type_attr(r, tp, name, d);
        if (!instance) {
            put_attr_steal(r, Py_NewRef(d), fref, method);
            return REC_OK;
        }
        if (method) {
            put_method(r, d, fref);
            return REC_OK;
        }
        return attr_bound(r, d, fref, self, sref, false);
    }
    if (Py_IS_TYPE(d, &PyStaticMethod_Type) || Py_IS_TYPE(d, &PyClassMethod_Type)) {
        PyObject *func = PyObject_GetAttrString(d, "__func__");
        if (func == NULL) {
            return REC_ERROR;
        }
        TapeRef fref =
            rec_load(r, TAPE_LDMETH, 2, rec_load_type_attr(r, tp, name, d), TAPE_NULL, 0, func);
        if (Py_IS_TYPE(d, &PyStaticMethod_Type)) {
            put_attr_steal(r, func, fref, method);
            return REC_OK;
        }
        PyObject *cls = instance ? (PyObject *)Py_TYPE(self) : self;
        RecStatus st = PyFunction_Check(func)
                           ? attr_bound(r, func, fref, cls, rec_const(r, cls), method)
                           : attr_residual(r, name, method);
        Py_DECREF(func);
        return st;
    }
    if (Py_IS_TYPE(d, &PyMethodDescr_Type) && (method || !instance)) {
        TapeRef fref = rec_load_type_attr(r, tp, name, d);
        if (instance) {
            put_method(r, d, fref);
        } else {
            put_attr_steal(r, Py_NewRef(d), fref, method);
        }
        return REC_OK;
    }
    if (Py_IS_TYPE(d, &PyWrapperDescr_Type) && !instance) {
        put_attr_steal(r, Py_NewRef(d), rec_load_type_attr(r, tp, name, d), method);
        return REC_OK;
    }
    if (Py_TYPE(d)->tp_descr_get == NULL) {
        TapeRef dref = rec_load_type_attr(r, tp, name, d);
        rec_guard_type(r, dref, d);     /* it is no descriptor, and its class does not become one */
        rec_guard_special(r, Py_TYPE(d), "__get__");
        put_attr_steal(r, Py_NewRef(d), dref, method);
        return REC_OK;
    }
    return attr_residual(r, name, method);
}

static RecStatus
attr_property(Recorder *r, PyTypeObject *tp, PyObject *name, PyObject *d, bool method)
{
    PyObject *fget = PyObject_GetAttrString(d, "fget");
    RecStatus st;

    if (fget == NULL || !rec_inlineable(fget) || (method && PY_CALL_NULL_FIRST)) {
        Py_XDECREF(fget);
        PyErr_Clear();
        return attr_residual(r, name, method);
    }
    TapeRef pref = rec_load_type_attr(r, tp, name, d);
    rec_guard_type(r, pref, d);
    TapeRef fref = rec_load(r, TAPE_LDMETH, 3, pref, TAPE_NULL, 0, fget);
    PyObject *self = rec_real(r, 0);
    TapeRef sref = rec_peek(r, 0);
    st = rec_call_function(r, fget, fref, &self, &sref, 1, NULL, 1, CONT_GETATTR, method);
    Py_DECREF(fget);
    return st;
}

static RecStatus
attr_slot(Recorder *r, PyTypeObject *tp, PyObject *name, PyObject *d, bool method)
{
    PyMemberDef *m = ((PyMemberDescrObject *)d)->d_member;
    PyObject *self = rec_real(r, 0);
    PyObject *v = m->type == T_OBJECT_EX ? *(PyObject **)((char *)self + m->offset) : NULL;

    if (v == NULL) {
        return attr_residual(r, name, method);
    }
    rec_guard_type_attr(r, tp, name, d);
    TapeRef ref = rec_peek(r, 0), of = ref;
    if (!rec_is_virt(r, of, VIRT_OBJECT)) {
        ref = rec_load(r, TAPE_LDSLOT, 0, of, TAPE_NULL, (uint32_t)m->offset, v);
    } else if (!rec_instance_get(r, of, NULL, m->offset, &ref)) {
        r->broken = true;
    }
    put_attr_steal(r, Py_NewRef(v), ref, method);
    return REC_OK;
}

bool
rec_has_dict(PyTypeObject *tp)
{
    return tp->tp_dictoffset != 0 || (tp->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
}

/* `own` is the instance's own attribute; the class holds `d`, no data descriptor, or nothing. */
static TapeRef
load_own(Recorder *r, PyObject *obj, TapeRef ref, PyObject *name, PyObject *d, PyObject *own)
{
    PyTypeObject *tp = Py_TYPE(obj);
    TapeRef out = TAPE_NULL;

    rec_guard_type_attr(r, tp, name, d);
    if (d != NULL && (Py_TYPE(d)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        rec_guard_type(r, rec_load_type_attr(r, tp, name, d), d);
        rec_guard_special(r, Py_TYPE(d), "__set__");    /* or it would hide the instance's own */
        rec_guard_special(r, Py_TYPE(d), "__delete__");
    }
    if (!rec_is_virt(r, ref, VIRT_OBJECT)) {
        out = rec_load(r, TAPE_LDATTR, 0, ref, TAPE_NULL, TAPE_INDEX(rec_const(r, name)), own);
    } else if (!rec_instance_get(r, ref, name, 0, &out)) {
        r->broken = true;               /* the description and the instance disagree */
    }
    return rec_grad_attr(r, obj, name, own, out);
}

static RecStatus
attr_generic(Recorder *r, PyObject *name, bool method)
{
    PyObject *obj = rec_real(r, 0);
    TapeRef ref = rec_peek(r, 0);
    PyTypeObject *tp = Py_TYPE(obj);
    PyObject *d = _PyType_Lookup(tp, name);
    bool data = d != NULL && Py_TYPE(d)->tp_descr_set != NULL;

    rec_guard_type(r, ref, obj);
    rec_guard_special(r, tp, "__getattribute__");
    if (data && Py_IS_TYPE(d, &PyProperty_Type)) {
        return attr_property(r, tp, name, d, method);
    }
    if (data && Py_IS_TYPE(d, &PyMemberDescr_Type)) {
        return attr_slot(r, tp, name, d, method);
    }
    if (data) {
        return attr_residual(r, name, method);
    }
    PyObject *own = rec_has_dict(tp) ? py_instance_attr_borrow(obj, name) : NULL;
    if (own != NULL) {
        Py_INCREF(own);
        put_attr_steal(r, own, load_own(r, obj, ref, name, d, own), method);
        return REC_OK;
    }
    if (d == NULL) {
        return attr_residual(r, name, method);
    }
    if (rec_has_dict(tp)) {
        rec_guard_no_attr(r, ref, name);
    }
    Py_INCREF(d);
    RecStatus st = attr_from_class(r, tp, name, d, method, true);
    Py_DECREF(d);
    return st;
}

static RecStatus
attr_of_type(Recorder *r, PyObject *name, bool method)
{
    PyTypeObject *tp = (PyTypeObject *)rec_real(r, 0);
    PyObject *meta = _PyType_Lookup(&PyType_Type, name);
    PyObject *d = _PyType_Lookup(tp, name);

    if ((meta != NULL && Py_TYPE(meta)->tp_descr_set != NULL) || d == NULL) {
        return attr_residual(r, name, method);
    }
    Py_INCREF(d);
    RecStatus st = attr_from_class(r, tp, name, d, method, false);
    Py_DECREF(d);
    return st;
}

/* What a module holds under a name, a new reference; NULL = it is not simply that. */
static PyObject *
load_of_module(Recorder *r, PyObject *mod, TapeRef ref, PyObject *name, TapeRef *out)
{
    PyObject *v = PyDict_GetItemWithError(PyModule_GetDict(mod), name);

    if (v == NULL || _PyType_Lookup(&PyModule_Type, name) != NULL) {
        PyErr_Clear();
        return NULL;
    }
    Py_INCREF(v);
    *out = rec_load(r, TAPE_LDMOD, 0, ref, TAPE_NULL, TAPE_INDEX(rec_const(r, name)), v);
    return v;
}

static RecStatus
attr_of_module(Recorder *r, PyObject *name, bool method)
{
    TapeRef out;
    PyObject *v = load_of_module(r, rec_real(r, 0), rec_peek(r, 0), name, &out);

    if (v == NULL) {
        return attr_residual(r, name, method);
    }
    put_attr_steal(r, v, out, method);
    return REC_OK;
}

/* object.__getattribute__, also where a class adds __getattr__ for names that are missing. */
static bool
finds_generically(PyTypeObject *tp)
{
    if (tp->tp_getattro == PyObject_GenericGetAttr) {
        return true;
    }
    if (!(tp->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        return false;
    }
    PyObject *name = PyUnicode_InternFromString("__getattribute__");
    PyObject *own = name == NULL ? NULL : _PyType_Lookup(tp, name);
    PyObject *base = name == NULL ? NULL : _PyType_Lookup(&PyBaseObject_Type, name);
    Py_XDECREF(name);
    PyErr_Clear();
    return own != NULL && own == base;
}

/* getattr() and hasattr() of what needs no code of the program's: the instance's own attribute, a
 * module's, a method, or nothing at all. */
RecAttr
rec_attr_look(Recorder *r, PyObject *obj, TapeRef ref, PyObject *name, PyObject **real,
              TapeRef *out)
{
    PyTypeObject *tp = Py_TYPE(obj);
    RecVirt *v = rec_virt_of(r, ref);

    if (PyModule_CheckExact(obj) && TAPE_KIND(ref) == TAPE_CONST) {
        *real = load_of_module(r, obj, ref, name, out);
        return *real == NULL ? REC_ATTR_UNKNOWN : REC_ATTR_FOUND;
    }
    if ((v != NULL && v->kind != VIRT_OBJECT) || PyModule_Check(obj) || PyType_Check(obj)
            || !(tp->tp_flags & Py_TPFLAGS_HEAPTYPE) || !finds_generically(tp)) {
        return REC_ATTR_UNKNOWN;
    }
    PyObject *d = _PyType_Lookup(tp, name);
    PyObject *own = rec_has_dict(tp) ? py_instance_attr_borrow(obj, name) : NULL;
    if (d != NULL && (Py_TYPE(d)->tp_descr_set != NULL || (own == NULL && !PyFunction_Check(d)))) {
        return REC_ATTR_UNKNOWN;
    }
    rec_guard_type(r, ref, obj);
    rec_guard_special(r, tp, "__getattribute__");
    if (own != NULL) {
        *real = Py_NewRef(own);
        *out = load_own(r, obj, ref, name, d, own);
        return REC_ATTR_FOUND;
    }
    if (rec_has_dict(tp)) {
        rec_guard_no_attr(r, ref, name);
    }
    if (d != NULL) {
        TapeRef field[2] = {rec_load_type_attr(r, tp, name, d), ref};
        *real = PyMethod_New(d, obj);
        *out = rec_virt(r, VIRT_METHOD, field, 2);
        return REC_ATTR_FOUND;
    }
    PyObject *special = PyUnicode_InternFromString("__getattr__");
    bool asks = special == NULL || _PyType_Lookup(tp, special) != NULL;
    Py_XDECREF(special);
    PyErr_Clear();
    if (asks) {
        return REC_ATTR_UNKNOWN;
    }
    rec_guard_special(r, tp, "__getattr__");
    rec_guard_type_attr(r, tp, name, NULL);
    return REC_ATTR_ABSENT;
}

RecStatus
rec_attr(Recorder *r, PyObject *name, bool method)
{
    PyObject *obj = rec_real(r, 0);
    TapeRef ref = rec_peek(r, 0);
    PyTypeObject *tp = Py_TYPE(obj);

    if (rec_is_virt(r, ref, VIRT_SUPER)) {
        return rec_super_attr(r, obj, ref, name, method, 1);
    }
    if (rec_is_virt(r, ref, VIRT_OBJECT)) {
        return finds_generically(tp) ? attr_generic(r, name, method)
                                     : attr_residual(r, name, method);
    }
    if (rec_virt_of(r, ref) != NULL || front_is_array(obj) || front_is_scalar(obj)) {
        PyObject *d = _PyType_Lookup(tp, name);
        rec_guard_pure(r, ref, obj);    /* which method it is depends on the type */
        if (method && d != NULL && Py_IS_TYPE(d, &PyMethodDescr_Type)) {
            put_method(r, d, rec_const(r, d));
            return REC_OK;
        }
        if (rec_virt_of(r, ref) != NULL) {
            rec_materialise(r, ref);
        }
        return attr_residual(r, name, method);
    }
    if (PyModule_CheckExact(obj) && TAPE_KIND(ref) == TAPE_CONST) {
        return attr_of_module(r, name, method);
    }
    if (Py_IS_TYPE(obj, &PyType_Type) && TAPE_KIND(ref) == TAPE_CONST) {
        return attr_of_type(r, name, method);
    }
    if (finds_generically(tp)) {
        return attr_generic(r, name, method);
    }
    return attr_residual(r, name, method);
}

static PyObject *
name_at(Recorder *r, int index)
{
    return PyTuple_GET_ITEM(rec_top(r)->co->co_names, index);
}

RecStatus
rec_op_load_attr(Recorder *r, int oparg)
{
    int name;
    bool method;

    py_arg_load_attr(oparg, &name, &method);
    return rec_attr(r, name_at(r, name), method);
}

RecStatus
rec_op_load_method(Recorder *r, int oparg)
{
    return rec_attr(r, name_at(r, oparg), true);
}

RecStatus
rec_op_store_attr(Recorder *r, int oparg)
{
    PyObject *name = name_at(r, oparg);
    PyObject *real[3] = {rec_real(r, 0), name, rec_real(r, 1)}, *none;
    TapeRef ref[3] = {rec_peek(r, 0), rec_const(r, name), rec_peek(r, 1)}, out;
    bool handled;

    if (r->grad == NULL && Py_TYPE(real[0])->tp_setattro == PyObject_GenericSetAttr
            && rec_loaded(r, TAPE_LDATTR, ref[0], TAPE_NULL, TAPE_INDEX(ref[1]), ref[2])) {
        /* x.a += array stores what is there */
        rec_guard_special(r, Py_TYPE(real[0]), "__setattr__");
        rec_pop(r, 2);
        return REC_OK;
    }
    RecStatus st =
        rec_instance_store(r, real[0], ref[0], name, real[2], ref[2], false, &handled);
    if (handled || st != REC_OK) {
        if (st == REC_OK) {
            rec_pop(r, 2);
        }
        return st;
    }
    st = rec_residual(r, DO_SETATTR, 0, real, ref, 3, NULL, 2, 0, &none, &out);

    if (st == REC_OK) {
        Py_DECREF(none);
        rec_pop(r, 2);
    }
    return st;
}

RecStatus
rec_op_delete_attr(Recorder *r, int oparg)
{
    PyObject *name = name_at(r, oparg);
    PyObject *real[2] = {rec_real(r, 0), name}, *none;
    TapeRef ref[2] = {rec_peek(r, 0), rec_const(r, name)}, out;
    RecStatus st = rec_residual(r, DO_DELATTR, 0, real, ref, 2, NULL, 1, 0, &none, &out);

    if (st == REC_OK) {
        Py_DECREF(none);
        rec_pop(r, 1);
    }
    return st;
}

/* The bound __exit__ stays below what __enter__ gave. */
RecStatus
rec_op_before_with(Recorder *r, int oparg)
{
    PyObject *mgr = rec_real(r, 0), *pair;
    TapeRef ref = rec_peek(r, 0), out, item[2];
    RecStatus st = rec_break(r, CC_REASON_USER_OPERATOR, "with %.40s", Py_TYPE(mgr)->tp_name);

    (void)oparg;
    if (st == REC_OK) {
        st = rec_residual(r, DO_ENTER, 0, &mgr, &ref, 1, NULL, 1, 0, &pair, &out);
    }
    if (st != REC_OK) {
        return st;
    }
    rec_residual_items(r, out, pair, item);
    rec_replace_steal(r, 1, Py_NewRef(PyTuple_GET_ITEM(pair, 0)), item[0]);
    rec_push_steal(r, Py_NewRef(PyTuple_GET_ITEM(pair, 1)), item[1]);
    Py_DECREF(pair);
    return REC_OK;
}
