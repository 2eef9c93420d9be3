/* trace/guard_make.c - reads of Python state and the guards on them.
 *
 * A fact is guarded once per epoch. Guards run no user code: they compare identities, exact types
 * and values of builtin immutables. */
#include "rec.h"

#include "../base/vec.h"

/* A guard or load like this one is on the tape of this epoch; if not, it is from now on. */
static bool
load_seen(Recorder *r, TapeOp op, TapeRef a0, TapeRef a1, uint32_t aux)
{
    for (uint32_t i = 0; i < r->nload; i++) {
        RecLoad *l = &r->load[i];
        if (l->op == op && l->a0 == a0 && l->a1 == a1 && l->aux == aux) {
            return true;
        }
    }
    if (!CC_GROW(r->load, r->nload, r->cap_load, 1)) {
        r->broken = true;
        return true;
    }
    r->load[r->nload++] = (RecLoad){.op = (uint8_t)op, .a0 = a0, .a1 = a1, .aux = aux};
    return false;
}

static bool
is_heap(PyTypeObject *tp)
{
    return (tp->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
}

void
rec_need_pre(Recorder *r, TapeRef ref)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) == TAPE_REG && r->open) {
        RecReg *reg = rec_reg(r, ref);
        if (reg->txn == r->txn && reg->phase != PHASE_PRE) {
            rec_close(r);
        }
    }
}

static void
guard(Recorder *r, TapeOp op, uint8_t sub, uint32_t aux, TapeRef a0, TapeRef a1, uint32_t n)
{
    TapeRef a[2] = {a0, a1};
    rec_emit(r, rec_ins(op, sub, aux), a, n, false);
}

void
rec_guard_type(Recorder *r, TapeRef ref, PyObject *real)
{
    PyTypeObject *tp = Py_TYPE(real);

    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) != TAPE_REG || r->broken) {
        return;
    }
    RecReg *reg = rec_reg(r, ref);
    if (reg->type == tp && (!is_heap(tp) || reg->type_epoch == r->epoch)) {
        return;
    }
    uint32_t k = TAPE_INDEX(rec_const(r, (PyObject *)tp));
    guard(r, TAPE_GTYPE, 0, k, ref, TAPE_NULL, 1);
    if (!r->broken) {
        reg = rec_reg(r, ref);
        reg->type = tp;
        reg->type_epoch = r->epoch;
        rec_note_meta(r, ref, real);
    }
}

void
rec_guard_is(Recorder *r, TapeRef a, TapeRef b, bool same)
{
    guard(r, TAPE_GIS, same, 0, a, b, 2);
}

void
rec_guard_truth(Recorder *r, TapeRef ref, bool outcome)
{
    guard(r, TAPE_GTRUTH, outcome, 0, ref, TAPE_NULL, 1);
}

void
rec_guard_len(Recorder *r, TapeRef ref, PyObject *real)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) != TAPE_REG || r->broken) {
        return;
    }
    rec_guard_type(r, ref, real);
    RecReg *reg = rec_reg(r, ref);
    bool fixed = PyTuple_CheckExact(real) && reg->len_epoch != 0;
    if (fixed || reg->len_epoch == r->epoch) {
        return;
    }
    Py_ssize_t len = PyObject_Size(real);
    guard(r, TAPE_GLEN, 0, (uint32_t)len, ref, TAPE_NULL, 1);
    if (!r->broken) {
        rec_reg(r, ref)->len_epoch = r->epoch;
    }
}

bool
rec_guard_keys(Recorder *r, TapeRef ref, PyObject *dict)
{
    PyObject *keys = PyTuple_New(PyDict_GET_SIZE(dict)), *key, *value;
    Py_ssize_t pos = 0, i = 0;
    bool ok = keys != NULL;

    while (ok && PyDict_Next(dict, &pos, &key, &value)) {
        ok = PyUnicode_CheckExact(key);
        PyTuple_SET_ITEM(keys, i++, Py_NewRef(key));
    }
    PyErr_Clear();
    ref = rec_ref(r, ref);
    if (ok && TAPE_KIND(ref) == TAPE_REG && !load_seen(r, TAPE_GKEYS, ref, TAPE_NULL, 0)) {
        guard(r, TAPE_GKEYS, 0, 0, ref, rec_const(r, keys), 2);
    }
    Py_XDECREF(keys);
    return ok;
}

/* A function that is a constant can still change its code. */
void
rec_guard_func(Recorder *r, TapeRef ref, PyObject *func)
{
    PyFunctionObject *fn = (PyFunctionObject *)func;
    bool reg;

    ref = rec_ref(r, ref);
    reg = TAPE_KIND(ref) == TAPE_REG;
    if ((!reg && TAPE_KIND(ref) != TAPE_CONST) || r->broken
            || (reg && rec_reg(r, ref)->func_epoch == r->epoch)
            || (!reg && load_seen(r, TAPE_GFUNC, ref, TAPE_NULL, 0))) {
        return;
    }
    TapeIns ins = rec_ins(TAPE_GFUNC, 0, TAPE_INDEX(rec_const(r, fn->func_code)));
    ins.check = fn->func_defaults == NULL ? 0 : (uint32_t)PyTuple_GET_SIZE(fn->func_defaults);
    rec_emit(r, ins, &ref, 1, false);
    if (reg && !r->broken) {
        rec_reg(r, ref)->func_epoch = r->epoch;
        rec_reg(r, ref)->type = Py_TYPE(func);
    }
}

static uint32_t
arr_index(Recorder *r, PyObject *real)
{
    Trace *t = r->t;

    if (!CC_GROW(t->arr, t->narr, r->cap_arr, 1)) {
        r->broken = true;
        return 0;
    }
    front_describe(real, &t->arr[t->narr]);
    return t->narr++;
}

void
rec_guard_array(Recorder *r, TapeRef ref, PyObject *real)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) != TAPE_REG || r->broken) {
        return;
    }
    RecReg *reg = rec_reg(r, ref);
    if (reg->arr_epoch == r->epoch || (reg->priv && reg->dtype >= 0)) {
        return;
    }
    uint32_t arr = arr_index(r, real);
    guard(r, TAPE_GARR, 0, arr, ref, TAPE_NULL, 1);
    if (!r->broken) {
        reg = rec_reg(r, ref);
        reg->arr_epoch = r->epoch;
        rec_note_meta(r, ref, real);
        reg->type = Py_TYPE(real);
        front_result(real, &reg->dtype, &reg->ndim);
    }
}

void
rec_guard_pure(Recorder *r, TapeRef ref, PyObject *real)
{
    ref = rec_ref(r, ref);
    RecVirt *v = rec_virt_of(r, ref);
    if (v != NULL) {
        for (uint32_t i = 0; i < v->nfields && !r->broken; i++) {
            bool seq = PyTuple_CheckExact(real) || PyList_CheckExact(real);
            PyObject *item = seq ? PySequence_Fast_GET_ITEM(real, i) : NULL;
            if (PySlice_Check(real)) {
                PySliceObject *s = (PySliceObject *)real;
                item = i == 0 ? s->start : i == 1 ? s->stop : s->step;
            }
            if (item != NULL) {
                rec_guard_pure(r, r->virt[TAPE_INDEX(ref)].field[i], item);
            }
            v = &r->virt[TAPE_INDEX(ref)];
        }
        return;
    }
    if (TAPE_KIND(ref) != TAPE_REG) {
        return;
    }
    rec_grad_note(r, ref, real);
    if (front_is_array(real)) {
        rec_guard_array(r, ref, real);
        return;
    }
    rec_guard_type(r, ref, real);
    bool container = PyTuple_CheckExact(real) || PyList_CheckExact(real) || PySlice_Check(real);
    if (!container || r->broken || rec_reg(r, ref)->pure_epoch == r->epoch) {
        return;
    }
    guard(r, TAPE_GPURE, 0, 0, ref, TAPE_NULL, 1);
    if (!r->broken) {
        rec_reg(r, ref)->pure_epoch = r->epoch;
    }
}

/* -- Values --------------------------------------------------------------------------- */

/* Objects on which the structure of a program rests, and which are few: their value is guarded when
 * they are read. Numbers are not: they stay values. */
static bool
fixed_by_identity(PyObject *obj)
{
    return obj == Py_None || PyBool_Check(obj) || obj == Py_Ellipsis || obj == Py_NotImplemented
        || PyType_Check(obj) || PyModule_CheckExact(obj) || PyCFunction_CheckExact(obj)
        || Py_IS_TYPE(obj, &PyMethodDescr_Type) || Py_IS_TYPE(obj, &PyWrapperDescr_Type)
        || front_is_constant(obj);
}

/* A bound C method keeps its object alive and may be made anew each time. */
static bool
is_bound_builtin(PyObject *obj)
{
    return PyCFunction_CheckExact(obj) && PyCFunction_GET_SELF(obj) != NULL
        && !PyModule_Check(PyCFunction_GET_SELF(obj)) && !PyType_Check(PyCFunction_GET_SELF(obj));
}

TapeRef
rec_fix_value(Recorder *r, TapeRef ref, PyObject *real)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) != TAPE_REG) {
        return ref;
    }
    TapeRef k = rec_const(r, real);
    guard(r, TAPE_GEQ, 0, TAPE_INDEX(k), ref, TAPE_NULL, 1);
    return r->broken ? TAPE_NULL : k;
}

TapeRef
rec_fix(Recorder *r, TapeRef ref, PyObject *real)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) != TAPE_REG) {
        return ref;
    }
    if (PyUnicode_CheckExact(real) || PyBytes_CheckExact(real)) {
        return rec_fix_value(r, ref, real);
    }
    if (fixed_by_identity(real) && !is_bound_builtin(real)) {
        TapeRef k = rec_const(r, real);
        rec_guard_is(r, ref, k, true);
        return r->broken ? TAPE_NULL : k;
    }
    return ref;
}

TapeRef
rec_fix_tree(Recorder *r, TapeRef ref, PyObject *real)
{
    ref = rec_ref(r, ref);
    if (PyLong_CheckExact(real) || PyFloat_CheckExact(real)) {
        return rec_fix_value(r, ref, real);
    }
    if (!PyTuple_CheckExact(real) || TAPE_KIND(ref) != TAPE_REG) {
        return rec_fix(r, ref, real);
    }
    bool all = true;
    rec_guard_len(r, ref, real);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(real) && !r->broken; i++) {
        PyObject *item = PyTuple_GET_ITEM(real, i);
        TapeRef ir = rec_load(r, TAPE_LDITEM, 0, ref, rec_const_int(r, i), 0, item);
        all &= TAPE_KIND(rec_fix_tree(r, ir, item)) == TAPE_CONST;
    }
    return all && !r->broken ? rec_const(r, real) : ref;
}

/* -- Reads ------------------------------------------------------------------------------ */

TapeRef
rec_load(Recorder *r, TapeOp op, uint8_t sub, TapeRef a0, TapeRef a1, uint32_t aux, PyObject *real)
{
    TapeRef a[2] = {rec_ref(r, a0), rec_ref(r, a1)};

    for (uint32_t i = 0; i < r->nload; i++) {
        RecLoad *l = &r->load[i];
        if (l->op == op && l->sub == sub && l->a0 == a[0] && l->a1 == a[1] && l->aux == aux) {
            return l->res;
        }
    }
    TapeRef res = rec_emit(r, rec_ins(op, sub, aux), a, a[1] == TAPE_NULL ? 1 : 2, true);
    if (r->broken) {
        return TAPE_NULL;
    }
    res = rec_fix(r, res, real);
    if (!CC_GROW(r->load, r->nload, r->cap_load, 1)) {
        r->broken = true;
        return TAPE_NULL;
    }
    r->load[r->nload++] = (RecLoad){.op = (uint8_t)op,
                                    .sub = sub,
                                    .a0 = a[0],
                                    .a1 = a[1],
                                    .aux = aux,
                                    .res = res,
                                    .epoch = r->epoch};
    return res;
}

bool
rec_loaded(Recorder *r, TapeOp op, TapeRef a0, TapeRef a1, uint32_t aux, TapeRef value)
{
    a0 = rec_ref(r, a0);
    a1 = rec_ref(r, a1);
    value = rec_ref(r, value);
    for (uint32_t i = 0; i < r->nload && !r->broken; i++) {
        const RecLoad *l = &r->load[i];
        if (l->op == op && l->a0 == a0 && l->a1 == a1 && l->aux == aux) {
            return value != TAPE_NULL && l->res == value;
        }
    }
    return false;
}

void
rec_guard_no_attr(Recorder *r, TapeRef obj, PyObject *name)
{
    uint32_t k = TAPE_INDEX(rec_const(r, name));

    obj = rec_ref(r, obj);
    if (TAPE_KIND(obj) == TAPE_REG && !load_seen(r, TAPE_GNOATTR, obj, TAPE_NULL, k)) {
        guard(r, TAPE_GNOATTR, 0, k, obj, TAPE_NULL, 1);
    }
}

/* Static types cannot change; a heap type's attributes can. */
void
rec_guard_type_attr(Recorder *r, PyTypeObject *type, PyObject *name, PyObject *found)
{
    if (!is_heap(type)) {
        return;
    }
    TapeRef tk = rec_const(r, (PyObject *)type);
    uint32_t k = TAPE_INDEX(rec_const(r, name));
    TapeRef want = found == NULL ? TAPE_NULL : rec_const(r, found);

    if (!r->broken && !load_seen(r, TAPE_GTYPEATTR, tk, want, k)) {
        guard(r, TAPE_GTYPEATTR, 0, k, tk, want, 2);
    }
}

TapeRef
rec_load_type_attr(Recorder *r, PyTypeObject *type, PyObject *name, PyObject *found)
{
    if (!is_heap(type)) {
        return rec_const(r, found);
    }
    return rec_load(r, TAPE_LDTYPE, 0, rec_const(r, (PyObject *)type), TAPE_NULL,
                    TAPE_INDEX(rec_const(r, name)), found);
}
