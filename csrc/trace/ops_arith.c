/* trace/ops_arith.c - operators, comparisons, subscripts. */
#include "ops.h"

#include <opcode.h>

static RecStatus
unary(Recorder *r, CallKind kind, uint32_t code)
{
    PyObject *real[1] = {rec_real(r, 0)}, *res;
    TapeRef ref[1] = {rec_peek(r, 0)}, out;
    RecStatus st = rec_operate(r, kind, code, real, ref, 1, NULL, 1, &res, &out);

    if (st == REC_OK) {
        rec_replace_steal(r, 1, res, out);
    }
    return st;
}

static RecStatus
binary(Recorder *r, CallKind kind, uint32_t code)
{
    PyObject *real[2] = {rec_real(r, 1), rec_real(r, 0)}, *res;
    TapeRef ref[2] = {rec_peek(r, 1), rec_peek(r, 0)}, out;
    RecStatus st = rec_operate(r, kind, code, real, ref, 2, NULL, 2, &res, &out);

    if (st == REC_OK) {
        rec_replace_steal(r, 2, res, out);
    }
    return st;
}

RecStatus
rec_op_binary_op(Recorder *r, int oparg)
{
    return binary(r, DO_BINARY, (uint32_t)oparg);
}

RecStatus
rec_op_unary_negative(Recorder *r, int oparg)
{
    (void)oparg;
    return unary(r, DO_UNARY, 0);
}

RecStatus
rec_op_unary_positive(Recorder *r, int oparg)
{
    (void)oparg;
    return unary(r, DO_UNARY, 1);
}

RecStatus
rec_op_unary_invert(Recorder *r, int oparg)
{
    (void)oparg;
    return unary(r, DO_UNARY, 2);
}

static void
replace_by_bool(Recorder *r, int n, bool yes)
{
    PyObject *b = yes ? Py_True : Py_False;
    rec_replace_steal(r, n, Py_NewRef(b), rec_const(r, b));
}

/* The outcome is guarded, so the result is a constant. */
RecStatus
rec_op_unary_not(Recorder *r, int oparg)
{
    bool yes;
    RecStatus st = rec_branch(r, &yes);

    (void)oparg;
    if (st == REC_OK) {
        replace_by_bool(r, 1, !yes);
    }
    return st;
}

RecStatus
rec_op_to_bool(Recorder *r, int oparg)
{
    bool yes;

    (void)oparg;
    if (PyBool_Check(rec_real(r, 0))) {
        return REC_OK;
    }
    RecStatus st = rec_branch(r, &yes);
    if (st == REC_OK) {
        replace_by_bool(r, 1, yes);
    }
    return st;
}

RecStatus
rec_op_compare_op(Recorder *r, int oparg)
{
    int op;
    bool to_bool;

    py_arg_compare(oparg, &op, &to_bool);
    PyObject *real[2] = {rec_real(r, 1), rec_real(r, 0)}, *res;
    TapeRef ref[2] = {rec_peek(r, 1), rec_peek(r, 0)}, out;
    /* 3.13 may ask for the truth at once: one operation, since there is no state in between. */
    RecStatus st = rec_operate(r, DO_COMPARE, (uint32_t)(op | to_bool << 4), real, ref, 2, NULL, 2,
                               &res, &out);
    if (st != REC_OK) {
        return st;
    }
    rec_replace_steal(r, 2, res, out);
    return REC_OK;
}

RecStatus
rec_op_contains_op(Recorder *r, int oparg)
{
    PyObject *real[2] = {rec_real(r, 1), rec_real(r, 0)}, *res;
    TapeRef ref[2] = {rec_peek(r, 1), rec_peek(r, 0)}, out;

    if (PyDict_CheckExact(real[1]) && PyUnicode_CheckExact(real[0])) {
        int in = PyDict_Contains(real[1], real[0]);
        RecVirt *v = rec_virt_of(r, ref[1]);
        TapeRef key = rec_fix(r, ref[0], real[0]);
        if (v == NULL && TAPE_KIND(ref[1]) == TAPE_REG) {
            TapeRef a[2] = {ref[1], key};
            rec_guard_type(r, ref[1], real[1]);
            rec_emit(r, rec_ins(TAPE_GKEY, in == 1, 0), a, 2, false);
        }
        replace_by_bool(r, 2, (in == 1) ^ oparg);
        return REC_OK;
    }
    RecStatus st = rec_operate(r, DO_CONTAINS, (uint32_t)oparg, real, ref, 2, NULL, 2, &res, &out);
    if (st == REC_OK) {
        rec_replace_steal(r, 2, res, out);
    }
    return st;
}

RecStatus
rec_op_is_op(Recorder *r, int oparg)
{
    PyObject *a = rec_real(r, 1), *b = rec_real(r, 0);
    TapeRef ra = rec_peek(r, 1), rb = rec_peek(r, 0);
    bool same = a == b;

    /* A virtual object is nobody else's; two constants are what they are. */
    bool known = ra == rb || TAPE_KIND(ra) == TAPE_VIRT || TAPE_KIND(rb) == TAPE_VIRT
        || (TAPE_KIND(ra) == TAPE_CONST && TAPE_KIND(rb) == TAPE_CONST);
    if (!known) {
        rec_guard_is(r, ra, rb, same);
    }
    replace_by_bool(r, 2, same ^ oparg);
    return REC_OK;
}

/* -- Subscripts --------------------------------------------------------------------- */

static TapeRef
virt_dict_get(Recorder *r, RecVirt *v, TapeRef key)
{
    PyObject *want = rec_konst_borrow(r, key);

    for (uint32_t i = 0; i < v->nfields; i += 2) {
        PyObject *have = rec_konst_borrow(r, rec_ref(r, v->field[i]));
        if (have != NULL && want != NULL && Py_TYPE(have) == Py_TYPE(want)
                && PyObject_RichCompareBool(have, want, Py_EQ) == 1) {
            return rec_ref(r, v->field[i + 1]);
        }
    }
    return TAPE_NULL;
}

/* The ref of an item of a container whose real item is known, TAPE_NULL if it must be computed. */
static TapeRef
item_ref(Recorder *r, PyObject *const *real, const TapeRef *ref, PyObject *item)
{
    bool seq = PyTuple_CheckExact(real[0]) || PyList_CheckExact(real[0]);
    RecVirt *v = rec_virt_of(r, ref[0]);

    if (seq && PyLong_CheckExact(real[1])) {
        if (v != NULL) {
            TapeRef k = rec_fix_value(r, ref[1], real[1]);
            if (r->broken) {
                return TAPE_NULL;
            }
            Py_ssize_t i = PyLong_AsSsize_t(rec_konst_borrow(r, k));
            v = rec_virt_of(r, ref[0]);
            i = i < 0 ? i + (Py_ssize_t)v->nfields : i;
            return rec_ref(r, v->field[i]);
        }
        if (TAPE_KIND(ref[0]) == TAPE_CONST && TAPE_KIND(ref[1]) == TAPE_CONST) {
            return rec_const(r, item);
        }
        rec_guard_type(r, ref[0], real[0]);
        rec_guard_type(r, ref[1], real[1]);
        return rec_load(r, TAPE_LDITEM, 0, ref[0], ref[1], 0, item);
    }
    if (PyDict_CheckExact(real[0]) &&
        (PyUnicode_CheckExact(real[1]) || PyLong_CheckExact(real[1]))) {
        if (v != NULL) {
            TapeRef key = rec_fix_value(r, ref[1], real[1]);
            return r->broken ? TAPE_NULL : virt_dict_get(r, rec_virt_of(r, ref[0]), key);
        }
        rec_guard_type(r, ref[0], real[0]);
        rec_guard_type(r, ref[1], real[1]);
        return rec_load(r, TAPE_LDKEY, 0, ref[0], ref[1], 0, item);
    }
    return TAPE_NULL;
}

static PyObject *
item_borrow(PyObject *container, PyObject *key)
{
    PyObject *item = NULL;

    if (PyTuple_CheckExact(container) || PyList_CheckExact(container)) {
        if (PyLong_CheckExact(key)) {
            Py_ssize_t i = PyLong_AsSsize_t(key), n = PySequence_Fast_GET_SIZE(container);
            i = i < 0 ? i + n : i;
            if (i >= 0 && i < n && !PyErr_Occurred()) {
                item = PySequence_Fast_GET_ITEM(container, i);
            }
        }
    } else if (PyDict_CheckExact(container) &&
               (PyUnicode_CheckExact(key) || PyLong_CheckExact(key))) {
        item = PyDict_GetItemWithError(container, key);
    }
    PyErr_Clear();
    return item;
}

/* A part of a virtual list or tuple by constant bounds: a new virtual one. */
static bool
virt_slice(Recorder *r, const TapeRef *ref, PyObject *res, PyObject *slice, TapeRef *out)
{
    RecVirt *v = rec_virt_of(r, ref[0]), *s = rec_virt_of(r, ref[1]);
    TapeRef part[64];
    Py_ssize_t start, stop, step;

    if (v == NULL || (v->kind != VIRT_TUPLE && v->kind != VIRT_LIST) || !PySlice_Check(slice)) {
        return false;
    }
    for (uint32_t i = 0; s != NULL && i < 3; i++) {
        if (TAPE_KIND(rec_ref(r, s->field[i])) != TAPE_CONST) {
            return false;
        }
    }
    if ((s == NULL && TAPE_KIND(rec_ref(r, ref[1])) != TAPE_CONST)
            || PySlice_Unpack(slice, &start, &stop, &step) < 0) {
        PyErr_Clear();
        return false;
    }
    Py_ssize_t n = PySlice_AdjustIndices((Py_ssize_t)v->nfields, &start, &stop, step);
    if (n > 64 || PySequence_Fast_GET_SIZE(res) != n) {
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        part[i] = v->field[start + i * step];
    }
    *out = n == 0 && PyTuple_CheckExact(res) ? rec_const(r, res)
                                              : rec_virt(r, (VirtKind)v->kind, part, (uint32_t)n);
    return true;
}

static RecStatus
subscript(Recorder *r, PyObject *const *real, const TapeRef *ref, int pop)
{
    PyObject *res = item_borrow(real[0], real[1]);
    TapeRef out = TAPE_NULL;

    if (res != NULL) {
        Py_INCREF(res);
        out = item_ref(r, real, ref, res);
        if (out != TAPE_NULL || r->broken) {
            rec_replace_steal(r, pop, res, out);
            return REC_OK;
        }
        Py_DECREF(res);
    }
    if (PySlice_Check(real[1]) && (PyList_CheckExact(real[0]) || PyTuple_CheckExact(real[0]))
            && rec_virt_of(r, ref[0]) != NULL) {
        res = PyObject_GetItem(real[0], real[1]);
        if (res != NULL && virt_slice(r, ref, res, real[1], &out)) {
            rec_replace_steal(r, pop, res, out);
            return REC_OK;
        }
        Py_XDECREF(res);
        PyErr_Clear();
    }
    RecStatus st = rec_operate(r, DO_GETITEM, 0, real, ref, 2, NULL, pop, &res, &out);
    if (st == REC_OK) {
        rec_replace_steal(r, pop, res, out);
    }
    return st;
}

RecStatus
rec_op_binary_subscr(Recorder *r, int oparg)
{
    PyObject *real[2] = {rec_real(r, 1), rec_real(r, 0)};
    TapeRef ref[2] = {rec_peek(r, 1), rec_peek(r, 0)};

    (void)oparg;
    return subscript(r, real, ref, 2);
}

static TapeRef
make_slice(Recorder *r, const TapeRef *part, uint32_t n)
{
    TapeRef field[3] = {part[0], part[1], n > 2 ? part[2] : rec_const(r, Py_None)};
    return rec_virt(r, VIRT_SLICE, field, 3);
}

RecStatus
rec_op_binary_slice(Recorder *r, int oparg)
{
    TapeRef part[2] = {rec_peek(r, 1), rec_peek(r, 0)};
    PyObject *slice = PySlice_New(rec_real(r, 1), rec_real(r, 0), NULL);

    (void)oparg;
    if (slice == NULL) {
        return REC_ERROR;
    }
    PyObject *real[2] = {rec_real(r, 2), slice};
    TapeRef ref[2] = {rec_peek(r, 2), make_slice(r, part, 2)};
    RecStatus st = subscript(r, real, ref, 3);
    Py_DECREF(slice);
    return st;
}

static RecStatus
store_item(Recorder *r, PyObject *const *real, const TapeRef *ref, int pop)
{
    RecVirt *v = rec_virt_of(r, ref[0]);
    PyObject *none;
    TapeRef out;

    if (rec_grad_fixed(r, ref[0])) {
        return rec_stop(r, CC_REASON_EFFECT, "a store");
    }
    if (v != NULL && rec_reaches(r, ref[2], ref[0])) {
        v = NULL;
    }
    if (v != NULL && v->kind == VIRT_DICT
            && (PyUnicode_CheckExact(real[1]) || PyLong_CheckExact(real[1]))) {
        TapeRef key = rec_fix_value(r, ref[1], real[1]);
        if (!r->broken && PyDict_SetItem(real[0], real[1], real[2]) == 0) {
            v = rec_virt_of(r, ref[0]);
            for (uint32_t i = 0; i < v->nfields; i += 2) {
                PyObject *have = rec_konst_borrow(r, rec_ref(r, v->field[i]));
                if (have != NULL && Py_TYPE(have) == Py_TYPE(real[1])
                        && PyObject_RichCompareBool(have, real[1], Py_EQ) == 1) {
                    v->field[i + 1] = ref[2];
                    rec_virt_touch(r, v);
                    rec_pop(r, pop);
                    return REC_OK;
                }
            }
            rec_virt_append(r, v, key);
            rec_virt_append(r, v, ref[2]);
            rec_pop(r, pop);
            return REC_OK;
        }
        PyErr_Clear();
    }
    if (v != NULL && v->kind == VIRT_LIST && PyLong_CheckExact(real[1])
            && item_borrow(real[0], real[1]) != NULL) {
        TapeRef k = rec_fix_value(r, ref[1], real[1]);
        if (!r->broken) {
            Py_ssize_t i = PyLong_AsSsize_t(rec_konst_borrow(r, k));
            v = rec_virt_of(r, ref[0]);
            i = i < 0 ? i + (Py_ssize_t)v->nfields : i;
            v->field[i] = ref[2];
            rec_virt_touch(r, v);
            PyList_SetItem(real[0], i, Py_NewRef(real[2]));
            rec_pop(r, pop);
            return REC_OK;
        }
    }
    bool list = PyList_CheckExact(real[0]), dict = PyDict_CheckExact(real[0]);
    if (r->grad == NULL && v == NULL && (list || dict)
            && rec_loaded(r, list ? TAPE_LDITEM : TAPE_LDKEY, ref[0], ref[1], 0, ref[2])) {
        rec_pop(r, pop);                /* xs[k] += array stores what is there */
        return REC_OK;
    }
    FrontUpdate up;
    RecStatus st;
    if (!front_update(DO_SETITEM, 0, real, 3, NULL, &up)) {
        st = rec_residual(r, DO_SETITEM, 0, real, ref, 3, NULL, pop, 0, &none, &out);
    } else if (rec_is_own_part(r, ref[0], ref[1], ref[2])) {    /* a[k] += b stores a[k] there */
        rec_guard_array(r, ref[0], real[0]);
        rec_pop(r, pop);
        return REC_OK;
    } else {
        st = rec_update(r, &up, DO_SETITEM, 0, real, ref, 3, NULL, pop, &none, &out);
    }
    if (st == REC_OK) {
        Py_DECREF(none);
        rec_pop(r, pop);
    }
    return st;
}

RecStatus
rec_op_store_subscr(Recorder *r, int oparg)
{
    PyObject *real[3] = {rec_real(r, 1), rec_real(r, 0), rec_real(r, 2)};
    TapeRef ref[3] = {rec_peek(r, 1), rec_peek(r, 0), rec_peek(r, 2)};

    (void)oparg;
    return store_item(r, real, ref, 3);
}

RecStatus
rec_op_store_slice(Recorder *r, int oparg)
{
    TapeRef part[2] = {rec_peek(r, 1), rec_peek(r, 0)};
    PyObject *slice = PySlice_New(rec_real(r, 1), rec_real(r, 0), NULL);

    (void)oparg;
    if (slice == NULL) {
        return REC_ERROR;
    }
    PyObject *real[3] = {rec_real(r, 2), slice, rec_real(r, 3)};
    TapeRef ref[3] = {rec_peek(r, 2), make_slice(r, part, 2), rec_peek(r, 3)};
    RecStatus st = store_item(r, real, ref, 4);
    Py_DECREF(slice);
    return st;
}

RecStatus
rec_op_delete_subscr(Recorder *r, int oparg)
{
    PyObject *real[2] = {rec_real(r, 1), rec_real(r, 0)}, *none;
    TapeRef ref[2] = {rec_peek(r, 1), rec_peek(r, 0)}, out;

    (void)oparg;
    RecStatus st = rec_residual(r, DO_DELITEM, 0, real, ref, 2, NULL, 2, 0, &none, &out);
    if (st == REC_OK) {
        Py_DECREF(none);
        rec_pop(r, 2);
    }
    return st;
}
