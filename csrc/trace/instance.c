/* trace/instance.c - instances that the program makes of its own classes.
 *
 * An instance of an ordinary class (metaclass `type`, object.__new__, no finaliser) is virtual until
 * it is shown: a description of its class and its attributes. __init__ is inlined. Attributes
 * that no code of the program's guards (own attributes, slots) change the description only.
 *
 * Invariant: the fields of a VIRT_OBJECT are its class, then pairs of where and what in the order of
 * the stores; where is the name in its dict, or an int, the offset of a slot. The real instance of
 * the recording has exactly these attributes. */
#include "ops.h"

#include <structmember.h>

static PyObject *
lookup(PyTypeObject *tp, const char *special)
{
    PyObject *name = PyUnicode_InternFromString(special);
    PyObject *d = name == NULL ? NULL : _PyType_Lookup(tp, name);

    Py_XDECREF(name);
    PyErr_Clear();
    return d;
}

void
rec_guard_special(Recorder *r, PyTypeObject *tp, const char *special)
{
    PyObject *name = PyUnicode_InternFromString(special);

    if (name == NULL) {
        PyErr_Clear();
        r->broken = true;
        return;
    }
    rec_guard_type_attr(r, tp, name, _PyType_Lookup(tp, name));
    Py_DECREF(name);
}

/* -- Attributes of a virtual instance -------------------------------------------------------- */

static int
field_index(Recorder *r, const RecVirt *v, PyObject *where)
{
    for (uint32_t i = 1; i < v->nfields; i += 2) {
        PyObject *have = rec_konst_borrow(r, v->field[i]);
        if (have == where
                || (Py_TYPE(have) == Py_TYPE(where)
                    && PyObject_RichCompareBool(have, where, Py_EQ) == 1)) {
            return (int)i;
        }
    }
    return -1;
}

bool
rec_instance_get(Recorder *r, TapeRef obj, PyObject *name, Py_ssize_t offset, TapeRef *res)
{
    RecVirt *v = rec_virt_of(r, obj);
    PyObject *where = name != NULL ? Py_NewRef(name) : PyLong_FromSsize_t(offset);
    int i = where == NULL ? -1 : field_index(r, v, where);

    if (where == NULL) {
        PyErr_Clear();
        r->broken = true;
    }
    Py_XDECREF(where);
    *res = i < 0 ? TAPE_NULL : rec_ref(r, v->field[i + 1]);
    return i >= 0;
}

/* Where a plain store puts the attribute: a constant, TAPE_NULL when code of the program's or of a
 * descriptor decides, or there is no such place. */
static TapeRef
place_of(Recorder *r, PyTypeObject *tp, PyObject *name, PyObject *d)
{
    if (d != NULL && Py_IS_TYPE(d, &PyMemberDescr_Type)) {
        PyMemberDef *m = ((PyMemberDescrObject *)d)->d_member;
        return m->type == T_OBJECT_EX && m->flags == 0 ? rec_const_int(r, m->offset) : TAPE_NULL;
    }
    bool free_name = d == NULL || Py_TYPE(d)->tp_descr_set == NULL;
    return free_name && rec_has_dict(tp) ? rec_const(r, name) : TAPE_NULL;
}

RecStatus
rec_instance_store(Recorder *r, PyObject *obj, TapeRef ref, PyObject *name, PyObject *value,
                   TapeRef vref, bool raw, bool *handled)
{
    PyTypeObject *tp = Py_TYPE(obj);
    PyObject *d = _PyType_Lookup(tp, name);

    *handled = false;
    if (!rec_is_virt(r, ref, VIRT_OBJECT)
            || (!raw && tp->tp_setattro != PyObject_GenericSetAttr)) {
        return REC_OK;
    }
    TapeRef where = place_of(r, tp, name, d);
    if (where == TAPE_NULL || rec_reaches(r, vref, ref)) {
        return REC_OK;
    }
    if (rec_grad_fixed(r, ref)) {
        return rec_stop(r, CC_REASON_EFFECT, "an attribute");
    }
    if (!raw) {
        rec_guard_special(r, tp, "__setattr__");
    }
    rec_guard_type_attr(r, tp, name, d);
    if (d != NULL && (Py_TYPE(d)->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        rec_guard_type(r, rec_load_type_attr(r, tp, name, d), d);
        rec_guard_special(r, Py_TYPE(d), "__set__");
        rec_guard_special(r, Py_TYPE(d), "__delete__");
    }
    *handled = true;
    if (PyObject_GenericSetAttr(obj, name, value) < 0) {
        return REC_ERROR;
    }
    RecVirt *v = rec_virt_of(r, ref);
    int i = r->broken ? -1 : field_index(r, v, rec_konst_borrow(r, where));
    if (i >= 0) {
        TapeRef old = v->field[i + 1];
        v->field[i + 1] = vref;
        rec_virt_touch(r, v);
        rec_lost(r, old);
    } else {
        rec_virt_append(r, v, where);
        rec_virt_append(r, v, vref);
    }
    return REC_OK;
}

/* -- Making ------------------------------------------------------------------------------------ */

static bool
is_ordinary_class(PyObject *cls)
{
    PyTypeObject *tp = (PyTypeObject *)cls;

    return Py_IS_TYPE(cls, &PyType_Type) && (tp->tp_flags & Py_TPFLAGS_HEAPTYPE)
        && !(tp->tp_flags & Py_TPFLAGS_IS_ABSTRACT) && tp->tp_new == PyBaseObject_Type.tp_new
        && tp->tp_itemsize == 0 && tp->tp_finalize == NULL && tp->tp_del == NULL
        && lookup(tp, "__del__") == NULL;
}

/* What makes the class ordinary can change. */
static void
guard_class(Recorder *r, PyTypeObject *tp)
{
    static const char *const special[] = {"__new__", "__del__", "__abstractmethods__"};

    for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++) {
        rec_guard_special(r, tp, special[i]);
    }
}

static PyObject *
new_instance(PyObject *cls)
{
    PyObject *none = PyTuple_New(0);
    PyObject *obj = none == NULL ? NULL
                                 : PyBaseObject_Type.tp_new((PyTypeObject *)cls, none, NULL);

    Py_XDECREF(none);
    return obj;
}

/* The frame of __init__ above the caller, which waits for the instance. */
static RecStatus
push_init(Recorder *r, const RecCall *c, PyObject *init, PyObject *obj, TapeRef ref, bool *handled)
{
    PyTypeObject *tp = Py_TYPE(obj);
    PyObject *name = PyUnicode_InternFromString("__init__");
    RecCall with = *c;

    if (name == NULL) {
        PyErr_Clear();
        return REC_OK;
    }
    with.real[0] = init;
    with.ref[0] = rec_load_type_attr(r, tp, name, init);
    Py_DECREF(name);
    rec_call_insert(&with, obj, ref);
    int done = rec_call_may_inline(r, &with) ? rec_call_push(r, &with, c->pop, CONT_INIT) : 0;
    *handled = done != 0;
    if (done > 0) {
        RecFrame *fr = &r->frame[r->nframes - 2];
        fr->live.extra = Py_NewRef(obj);
        fr->extra = ref;
    }
    return done < 0 ? REC_ERROR : REC_OK;
}

RecStatus
rec_instance_make(Recorder *r, const RecCall *c, bool *handled)
{
    PyObject *cls = c->real[0], *init = NULL;
    RecStatus st = REC_OK;

    *handled = false;
    if (!is_ordinary_class(cls) || c->n >= REC_CALL_MAX) {
        return REC_OK;
    }
    init = lookup((PyTypeObject *)cls, "__init__");
    bool plain = init == lookup(&PyBaseObject_Type, "__init__") && c->n == 0;
    if (init == NULL || (!plain && !rec_inlineable(init))) {
        return REC_OK;
    }
    Py_INCREF(init);
    PyObject *obj = new_instance(cls);
    if (obj == NULL) {
        PyErr_Clear();                  /* the call says it itself */
        Py_DECREF(init);
        return REC_OK;
    }
    guard_class(r, (PyTypeObject *)cls);
    TapeRef ref = rec_virt(r, VIRT_OBJECT, &c->ref[0], 1);
    if (plain) {
        rec_guard_special(r, (PyTypeObject *)cls, "__init__");
        *handled = true;
        rec_replace_steal(r, c->pop, Py_NewRef(obj), ref);
    } else if (!r->broken) {
        st = push_init(r, c, init, obj, ref, handled);
    }
    Py_DECREF(init);
    Py_DECREF(obj);
    return st;
}
