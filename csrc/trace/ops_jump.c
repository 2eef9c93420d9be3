/* trace/ops_jump.c - branches, iteration, loops.
 *
 * A branch guards its outcome. A loop over a container whose items are known is unrolled. Any other
 * loop becomes a loop of the tape: its first turn is straight code; at the first jump back the head
 * gets an ANCHOR with fresh registers for the locals that the loop stores; at the second the tape
 * closes with BACK and CPython runs the rest of that call. Leaving the loop is an exit; the side
 * trace recorded there may JUMP to the anchors of its ancestors. */
#include "ops.h"

#include "../base/vec.h"

#include <opcode.h>

/* -- Truth ------------------------------------------------------------------------ */

static bool
has_builtin_truth(PyObject *obj)
{
    return PyBool_Check(obj) || PyLong_CheckExact(obj) || PyFloat_CheckExact(obj)
        || PyUnicode_CheckExact(obj) || PyTuple_CheckExact(obj) || PyList_CheckExact(obj)
        || PyDict_CheckExact(obj) || obj == Py_None || PyAnySet_CheckExact(obj)
        || PyBytes_CheckExact(obj) || PyComplex_CheckExact(obj) || Py_IS_TYPE(obj, &PyRange_Type);
}

static bool
is_always_true(PyTypeObject *tp)
{
    return (tp->tp_as_number == NULL || tp->tp_as_number->nb_bool == NULL)
        && (tp->tp_as_mapping == NULL || tp->tp_as_mapping->mp_length == NULL)
        && (tp->tp_as_sequence == NULL || tp->tp_as_sequence->sq_length == NULL);
}

/* A class that gets __bool__ or __len__ later is noticed. */
static void
guard_no_truth(Recorder *r, TapeRef ref, PyObject *real)
{
    rec_guard_type(r, ref, real);
    rec_guard_special(r, Py_TYPE(real), "__bool__");
    rec_guard_special(r, Py_TYPE(real), "__len__");
}

/* Unknown code decides: the truth replaces the object on the stack, so that it is asked once. */
static RecStatus
branch_residual(Recorder *r, PyObject *real, TapeRef ref, bool *outcome)
{
    PyObject *res;
    TapeRef out;
    RecStatus st = rec_break(r, CC_REASON_USER_OPERATOR, "truth of %.40s", Py_TYPE(real)->tp_name);

    if (st == REC_OK) {
        st = rec_residual(r, DO_TRUTH, 0, &real, &ref, 1, NULL, 1, 0, &res, &out);
    }
    if (st != REC_OK) {
        return st;
    }
    *outcome = res == Py_True;
    rec_replace_steal(r, 1, res, out);
    r->icount++;
    r->need_open = false;
    rec_open_here(r);
    rec_guard_truth(r, out, *outcome);
    return REC_OK;
}

RecStatus
rec_branch(Recorder *r, bool *outcome)
{
    PyObject *real = rec_real(r, 0);
    TapeRef ref = rec_peek(r, 0);
    bool builtin = has_builtin_truth(real);

    if (builtin || is_always_true(Py_TYPE(real))) {
        int yes = PyObject_IsTrue(real);
        *outcome = yes > 0;
        if (TAPE_KIND(ref) == TAPE_REG && builtin) {
            rec_guard_type(r, ref, real);
            rec_guard_truth(r, ref, *outcome);
        } else if (TAPE_KIND(ref) == TAPE_REG || rec_is_virt(r, ref, VIRT_OBJECT)) {
            guard_no_truth(r, ref, real);
        }
        return REC_OK;
    }
    if (front_is_array(real) || front_is_scalar(real)) {
        PyObject *res;
        TapeRef out;
        RecStatus st = rec_pure(r, TAPE_NODE, DO_TRUTH, 0, &real, &ref, 1, NULL, 1, &res, &out);
        if (st != REC_OK) {
            return st;
        }
        *outcome = res == Py_True;
        Py_DECREF(res);
        if (r->need_open) {             /* it had to run on its own: there is no state in between */
            r->broken = true;
        }
        rec_guard_truth(r, out, *outcome);
        return REC_OK;
    }
    if (rec_top(r)->code[2 * rec_top(r)->unit] == COMPARE_OP) {
        return rec_stop(r, CC_REASON_BYTECODE, "truth inside a comparison");
    }
    return branch_residual(r, real, ref, outcome);
}

/* -- Jumps --------------------------------------------------------------------------- */

static void
jump(Recorder *r, int delta)
{
    rec_top(r)->next += delta;
}

RecStatus
rec_op_jump_forward(Recorder *r, int oparg)
{
    jump(r, oparg);
    return REC_OK;
}

RecStatus
rec_op_jump_backward(Recorder *r, int oparg)
{
    RecStatus st = rec_poll(r);

    return st != REC_OK ? st : rec_backward(r, rec_top(r)->next - oparg);
}

RecStatus
rec_op_jump_backward_no_interrupt(Recorder *r, int oparg)
{
    jump(r, -oparg);
    return REC_OK;
}

static RecStatus
jump_if(Recorder *r, bool want, int delta)
{
    bool yes;
    RecStatus st = rec_branch(r, &yes);

    if (st != REC_OK) {
        return st;
    }
    rec_pop(r, 1);
    if (yes != want) {
        return REC_OK;
    }
    if (delta < 0) {
        return rec_backward(r, rec_top(r)->next + delta);
    }
    jump(r, delta);
    return REC_OK;
}

static RecStatus
jump_if_none(Recorder *r, bool want, int delta)
{
    PyObject *real = rec_real(r, 0);
    TapeRef ref = rec_peek(r, 0);

    if (TAPE_KIND(ref) == TAPE_REG) {
        rec_guard_is(r, ref, rec_const(r, Py_None), real == Py_None);
    }
    bool taken = (real == Py_None) == want;
    rec_pop(r, 1);
    if (taken && delta < 0) {
        return rec_backward(r, rec_top(r)->next + delta);
    }
    if (taken) {
        jump(r, delta);
    }
    return REC_OK;
}

RecStatus
rec_op_pop_jump_if_true(Recorder *r, int oparg)
{
    return jump_if(r, true, oparg);
}

RecStatus
rec_op_pop_jump_if_false(Recorder *r, int oparg)
{
    return jump_if(r, false, oparg);
}

RecStatus
rec_op_pop_jump_if_none(Recorder *r, int oparg)
{
    return jump_if_none(r, true, oparg);
}

RecStatus
rec_op_pop_jump_if_not_none(Recorder *r, int oparg)
{
    return jump_if_none(r, false, oparg);
}

RecStatus
rec_op_pop_jump_backward_if_true(Recorder *r, int oparg)
{
    return jump_if(r, true, -oparg);
}

RecStatus
rec_op_pop_jump_backward_if_false(Recorder *r, int oparg)
{
    return jump_if(r, false, -oparg);
}

RecStatus
rec_op_pop_jump_backward_if_none(Recorder *r, int oparg)
{
    return jump_if_none(r, true, -oparg);
}

RecStatus
rec_op_pop_jump_backward_if_not_none(Recorder *r, int oparg)
{
    return jump_if_none(r, false, -oparg);
}

static RecStatus
jump_or_pop(Recorder *r, bool want, int delta)
{
    bool yes;
    PyObject *before = rec_real(r, 0);

    if (!has_builtin_truth(before) && !is_always_true(Py_TYPE(before)) && !front_is_array(before)
            && !front_is_scalar(before)) {
        return rec_stop(r, CC_REASON_USER_OPERATOR, "and/or on an object with its own truth");
    }
    RecStatus st = rec_branch(r, &yes);
    if (st != REC_OK) {
        return st;
    }
    if (yes == want) {
        jump(r, delta);
    } else {
        rec_pop(r, 1);
    }
    return REC_OK;
}

RecStatus
rec_op_jump_if_true_or_pop(Recorder *r, int oparg)
{
    return jump_or_pop(r, true, oparg);
}

RecStatus
rec_op_jump_if_false_or_pop(Recorder *r, int oparg)
{
    return jump_or_pop(r, false, oparg);
}

/* -- Iteration ------------------------------------------------------------------------- */

static PyObject *
range_part(PyObject *range, const char *name)
{
    return PyObject_GetAttrString(range, name);
}

/* A short range whose bounds are constants of the program: unrolled. */
static TapeRef
const_range_iter(Recorder *r, PyObject *range)
{
    TapeRef field[3];
    const char *const part[3] = {"start", "stop", "step"};
    Py_ssize_t n = PyObject_Size(range);

    if (n < 0 || n > (Py_ssize_t)r->opt.unroll) {
        PyErr_Clear();
        return TAPE_NULL;
    }
    for (int i = 0; i < 3; i++) {
        PyObject *v = range_part(range, part[i]);
        Py_ssize_t k = v == NULL ? -1 : PyLong_AsSsize_t(v);
        Py_XDECREF(v);
        if (k == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return TAPE_NULL;
        }
        field[i] = rec_const_int(r, k);
    }
    return rec_virt(r, VIRT_RANGEITER, field, 3);
}

/* The dict's keys are guarded: exact strings, or constants of a dict made here. */
bool
rec_keys_known(Recorder *r, TapeRef ref, PyObject *dict)
{
    RecVirt *v = rec_virt_of(r, ref);

    if (PyDict_GET_SIZE(dict) > (Py_ssize_t)r->opt.unroll) {
        return false;
    }
    if (v != NULL) {
        for (uint32_t i = 0; i < v->nfields; i += 2) {
            if (TAPE_KIND(rec_ref(r, v->field[i])) != TAPE_CONST) {
                return false;
            }
        }
        return v->kind == VIRT_DICT && v->nfields == 2 * (uint32_t)PyDict_GET_SIZE(dict);
    }
    if (TAPE_KIND(rec_ref(r, ref)) != TAPE_REG) {
        return false;
    }
    rec_guard_type(r, ref, dict);
    return rec_guard_keys(r, ref, dict);
}

static TapeRef
dict_iter(Recorder *r, PyObject *dict, TapeRef ref, PyDictPart part)
{
    TapeRef field[4] = {ref, rec_const_int(r, 0), rec_const_int(r, part),
                        rec_const_int(r, PyDict_GET_SIZE(dict))};

    return rec_keys_known(r, ref, dict) ? rec_virt(r, VIRT_DICTITER, field, 4) : TAPE_NULL;
}

TapeRef
rec_known_iter(Recorder *r, PyObject *real, TapeRef ref)
{
    RecVirt *v = rec_virt_of(r, ref);
    bool seq = PyTuple_CheckExact(real) || PyList_CheckExact(real);

    if (seq && PySequence_Fast_GET_SIZE(real) <= (Py_ssize_t)r->opt.unroll) {
        if (v == NULL) {
            rec_guard_len(r, ref, real);
        }
        TapeRef field[2] = {ref, rec_const_int(r, 0)};
        return rec_virt(r, VIRT_SEQITER, field, 2);
    }
    if (PyDict_CheckExact(real)) {
        return dict_iter(r, real, ref, PY_DICT_KEYS);
    }
    if (v != NULL && v->kind == VIRT_DICTVIEW) {
        PyDictPart part;
        return py_dict_part(real, &part)
                   ? dict_iter(r, py_dict_of_view_borrow(real), rec_ref(r, v->field[0]), part)
                   : TAPE_NULL;
    }
    if (Py_IS_TYPE(real, &PyRange_Type) && TAPE_KIND(ref) == TAPE_CONST) {
        return const_range_iter(r, real);
    }
    return TAPE_NULL;
}

RecStatus
rec_op_get_iter(Recorder *r, int oparg)
{
    PyObject *real = rec_real(r, 0), *res;
    TapeRef ref = rec_peek(r, 0), out;

    (void)oparg;
    RecVirt *v = rec_virt_of(r, ref);
    if (v != NULL && v->kind >= VIRT_SEQITER) {
        return REC_OK;                  /* an iterator is its own iterator */
    }
    out = rec_known_iter(r, real, ref);
    if (out != TAPE_NULL) {
        res = PyObject_GetIter(real);
        if (res == NULL) {
            return REC_ERROR;
        }
        rec_replace_steal(r, 1, res, out);
        return REC_OK;
    }
    RecStatus st = rec_operate(r, DO_ITER, 0, &real, &ref, 1, NULL, 1, &res, &out);
    if (st == REC_OK) {
        rec_replace_steal(r, 1, res, out);
    }
    return st;
}

/* Number i of a dict whose keys are known. */
TapeRef
rec_dict_item(Recorder *r, PyObject *dict, TapeRef ref, PyDictPart part, Py_ssize_t i)
{
    RecVirt *v = rec_virt_of(r, ref);
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t pos = 0;
    TapeRef pair[2];

    for (Py_ssize_t k = 0; k <= i && PyDict_Next(dict, &pos, &key, &value); k++) {
    }
    pair[0] = v != NULL ? rec_ref(r, v->field[2 * i]) : rec_const(r, key);
    pair[1] = part == PY_DICT_KEYS ? TAPE_NULL
            : v != NULL ? rec_ref(r, v->field[2 * i + 1])
                        : rec_load(r, TAPE_LDKEY, 0, ref, pair[0], 0, value);
    return part == PY_DICT_KEYS ? pair[0] : part == PY_DICT_VALUES ? pair[1]
                                          : rec_virt(r, VIRT_TUPLE, pair, 2);
}

static int
dict_next(Recorder *r, TapeRef it, PyObject *dict, TapeRef *value)
{
    RecVirt *v = rec_virt_of(r, it);
    TapeRef ref = rec_ref(r, v->field[0]);
    Py_ssize_t i = PyLong_AsSsize_t(rec_konst_borrow(r, v->field[1]));
    long part = PyLong_AsLong(rec_konst_borrow(r, v->field[2]));
    Py_ssize_t used = PyLong_AsSsize_t(rec_konst_borrow(r, v->field[3]));

    if (dict == NULL || PyDict_GET_SIZE(dict) != used || !rec_keys_known(r, ref, dict)) {
        return -1;
    }
    if (i >= used) {
        return 0;
    }
    *value = rec_dict_item(r, dict, ref, (PyDictPart)part, i);
    TapeRef next = rec_const_int(r, i + 1);
    v = rec_virt_of(r, it);
    v->field[1] = next;
    rec_virt_touch(r, v);
    return 1;
}

/* The container under a real list or tuple iterator, borrowed; NULL when it is used up. */
static PyObject *
iter_container(PyObject *it)
{
    typedef struct {
        PyObject_HEAD
        Py_ssize_t index;
        PyObject *seq;
    } SeqIter;
    return ((SeqIter *)it)->seq;
}

static int join_next(Recorder *r, TapeRef it, PyObject *real, TapeRef *value);

static int
range_next(Recorder *r, TapeRef it, TapeRef *value)
{
    RecVirt *v = rec_virt_of(r, it);
    Py_ssize_t start = PyLong_AsSsize_t(rec_konst_borrow(r, v->field[0]));
    Py_ssize_t stop = PyLong_AsSsize_t(rec_konst_borrow(r, v->field[1]));
    Py_ssize_t step = PyLong_AsSsize_t(rec_konst_borrow(r, v->field[2]));

    if (step > 0 ? start >= stop : start <= stop) {
        return 0;
    }
    *value = v->field[0];
    TapeRef next = rec_const_int(r, start + step);
    v = rec_virt_of(r, it);
    v->field[0] = next;
    rec_virt_touch(r, v);
    return 1;
}

/* real: the list or tuple; not read where it is virtual. */
static int
seq_next(Recorder *r, TapeRef it, PyObject *real, TapeRef *value)
{
    RecVirt *v = rec_virt_of(r, it);
    Py_ssize_t i = PyLong_AsSsize_t(rec_konst_borrow(r, v->field[1]));
    TapeRef seq = rec_ref(r, v->field[0]);
    RecVirt *s = rec_virt_of(r, seq);

    if (s != NULL) {
        if (i >= (Py_ssize_t)s->nfields) {
            return 0;
        }
        *value = rec_ref(r, s->field[i]);
    } else {
        rec_guard_len(r, seq, real);
        if (i >= PySequence_Fast_GET_SIZE(real)) {
            return 0;
        }
        PyObject *item = PySequence_Fast_GET_ITEM(real, i);
        *value = TAPE_KIND(seq) == TAPE_CONST
                     ? rec_const(r, item)
                     : rec_load(r, TAPE_LDITEM, 0, seq, rec_const_int(r, i), 0, item);
    }
    TapeRef next = rec_const_int(r, i + 1);
    v = rec_virt_of(r, it);
    v->field[1] = next;
    rec_virt_touch(r, v);
    return 1;
}

/* What a virtual iterator gives next: 1 a value, 0 the end, -1 it cannot be known. real: the
 * iterator of the recorded program, which has not been asked yet. */
static int
virt_next(Recorder *r, TapeRef it, PyObject *real, TapeRef *value)
{
    RecVirt *v = rec_virt_of(r, it);

    if (v == NULL || rec_grad_fixed(r, it)) {
        return -1;
    }
    switch ((VirtKind)v->kind) {
    case VIRT_DICTITER:
        return dict_next(r, it, py_dict_of_iter_borrow(real), value);
    case VIRT_RANGEITER:
        return range_next(r, it, value);
    case VIRT_CALLITER:
        return seq_next(r, it, NULL, value);
    case VIRT_SEQITER:
        return seq_next(r, it, iter_container(real), value);
    case VIRT_JOINITER:
        return join_next(r, it, real, value);
    default:
        return -1;
    }
}

/* virt_next() of this iterator will not say -1. */
static bool
next_is_known(Recorder *r, TapeRef it, PyObject *real)
{
    RecVirt *v = rec_virt_of(r, it);

    if (v == NULL || rec_grad_fixed(r, it)) {
        return false;
    }
    TapeRef of = rec_ref(r, v->field[0]);
    if (v->kind == VIRT_SEQITER) {
        return rec_virt_of(r, of) != NULL || iter_container(real) != NULL;
    }
    if (v->kind == VIRT_DICTITER) {
        PyObject *dict = py_dict_of_iter_borrow(real);
        Py_ssize_t used = PyLong_AsSsize_t(rec_konst_borrow(r, v->field[3]));
        return dict != NULL && PyDict_GET_SIZE(dict) == used && rec_keys_known(r, of, dict);
    }
    return v->kind == VIRT_RANGEITER;
}

/* zip and enumerate: the next items of the parts, in order, until one of them ends. Nothing is
 * taken before all of them are known to answer. */
static int
join_next(Recorder *r, TapeRef it, PyObject *real, TapeRef *value)
{
    RecVirt *v = rec_virt_of(r, it);
    bool count = rec_konst_borrow(r, v->field[0]) == (PyObject *)&PyEnum_Type;
    uint32_t n = count ? 1 : v->nfields - 1;
    TapeRef item[REC_JOIN_MAX + 1] = {count ? v->field[2] : TAPE_NULL};
    PyObject *state = PyObject_CallMethod(real, "__reduce__", NULL);
    PyObject *part = state == NULL ? NULL : PyTuple_GET_ITEM(state, 1);
    int more = part != NULL;

    PyErr_Clear();
    for (uint32_t k = 0; k < n && more; k++) {
        v = rec_virt_of(r, it);
        more = next_is_known(r, rec_ref(r, v->field[1 + k]), PyTuple_GET_ITEM(part, k));
    }
    if (!more) {
        Py_XDECREF(state);
        return -1;
    }
    for (uint32_t k = 0; k < n && more; k++) {
        v = rec_virt_of(r, it);
        more = virt_next(r, rec_ref(r, v->field[1 + k]), PyTuple_GET_ITEM(part, k),
                         &item[count + k]);
    }
    Py_DECREF(state);
    if (more && count) {
        TapeRef next = rec_const_int(r, PyLong_AsSsize_t(rec_konst_borrow(r, item[0])) + 1);
        v = rec_virt_of(r, it);
        v->field[2] = next;
        rec_virt_touch(r, v);
    }
    *value = more ? rec_virt(r, VIRT_TUPLE, item, n + count) : TAPE_NULL;
    return more;
}

static void
exhausted(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);

    fr->next = py_for_iter_exhausted(fr->next, oparg);
    rec_pop(r, 1);
}

/* False: what comes cannot be known; the iterator becomes a real one. */
static bool
for_iter_known(Recorder *r, int oparg)
{
    PyObject *it = rec_real(r, 0);
    TapeRef value = TAPE_NULL;
    int more = virt_next(r, rec_peek(r, 0), it, &value);

    if (more < 0) {
        rec_materialise(r, rec_peek(r, 0));
        return false;
    }
    if (more == 0) {
        exhausted(r, oparg);
        return true;
    }
    PyObject *v = Py_TYPE(it)->tp_iternext(it);
    if (v == NULL) {                    /* the description and the iterator disagree */
        r->broken = true;
        PyErr_Clear();
        exhausted(r, oparg);
        return true;
    }
    rec_push_steal(r, v, value);
    return true;
}

/* Iterators of builtin containers look at no frames. */
static int
next_flags(PyObject *it)
{
    PyTypeObject *tp = Py_TYPE(it);
    bool quiet = tp == &PyRangeIter_Type || tp == &PyListIter_Type || tp == &PyTupleIter_Type
        || tp == &PyDictIterKey_Type || tp == &PyDictIterItem_Type || tp == &PyDictIterValue_Type
        || tp == &PyUnicodeIter_Type;
    return quiet ? TAPE_NOFRAME : 0;
}

/* The state of the outcome that did not happen, for exits and side traces. */
static uint32_t
other_outcome(Recorder *r, bool more, int oparg, TapeRef value)
{
    RecFrame *fr = rec_top(r);
    int start = fr->start;
    uint32_t snap;

    if (more) {                         /* recorded: a value; the other: the end */
        TapeRef it = fr->sh[--fr->sp];
        fr->start = py_for_iter_exhausted(fr->next, oparg);
        snap = rec_snapshot(r);
        fr->sh[fr->sp++] = it;
    } else {
        fr->sh[fr->sp++] = value;
        fr->start = fr->next;
        snap = rec_snapshot(r);
        fr->sh[--fr->sp] = TAPE_NULL;
    }
    fr->start = start;
    return snap;
}

RecStatus
rec_op_for_iter(Recorder *r, int oparg)
{
    PyObject *it = rec_real(r, 0), *res;
    TapeRef ref = rec_peek(r, 0), out;

    if (rec_virt_of(r, ref) != NULL && for_iter_known(r, oparg)) {
        return REC_OK;
    }
    ref = rec_ref(r, ref);
    int flags = next_flags(it);
    if (flags) {
        rec_guard_type(r, ref, it);
    }
    rec_close(r);
    RecStatus st = !PyGen_Check(it) && !rec_is_user(it) ? REC_OK
                 : PyGen_Check(it) ? rec_break(r, CC_REASON_GENERATOR, "next of a generator")
                 : rec_break(r, CC_REASON_USER_OPERATOR, "next of %.40s", Py_TYPE(it)->tp_name);
    if (st == REC_OK) {
        st = rec_residual(r, DO_NEXT, 0, &it, &ref, 1, NULL, 0, flags, &res, &out);
    }
    if (st != REC_OK) {
        return st;
    }
    bool more = res != tape_end_borrow();
    uint32_t alt = other_outcome(r, more, oparg, out);
    if (!r->broken) {
        TapeIns *row = &r->t->ins[r->t->nins - 2];      /* behind it: COMMIT */
        row->alt = alt + 1;
        row->check = more;
    }
    if (more) {
        rec_push_steal(r, res, out);
    } else {
        Py_DECREF(res);
        exhausted(r, oparg);
    }
    return REC_OK;
}

/* -- Loops ------------------------------------------------------------------------------- */

static RecLoop *
find_loop(RecFrame *fr, int head)
{
    for (int i = 0; i < fr->nloops; i++) {
        if (fr->loop[i].head == head) {
            return &fr->loop[i];
        }
    }
    if (fr->nloops == REC_MAX_LOOPS) {
        return NULL;
    }
    fr->loop[fr->nloops] = (RecLoop){.head = head};
    return &fr->loop[fr->nloops++];
}

/* Which locals the code from `head` to `end` stores or deletes. */
static void
stored_locals(const RecFrame *fr, int head, int end, bool *stored)
{
    for (int i = head; i <= end;) {
        int op = fr->code[2 * i], oparg = fr->code[2 * i + 1];
        while (op == EXTENDED_ARG) {
            i++;
            op = fr->code[2 * i];
            oparg = oparg << 8 | fr->code[2 * i + 1];
        }
        int a, b;
        int n = py_stored_locals(op, oparg, &a, &b);
        if (n > 0 && a < fr->nlocals) {
            stored[a] = true;
        }
        if (n > 1 && b < fr->nlocals) {
            stored[b] = true;
        }
        i += 1 + py_caches(op);
    }
}

static void
materialise_all(Recorder *r)
{
    for (int i = 0; i < r->nframes; i++) {
        RecFrame *fr = &r->frame[i];
        for (int k = 0; k < fr->sp; k++) {
            TapeRef ref = rec_materialise(r, fr->sh[k]);
            fr->sh[k] = ref;
        }
        fr->func = rec_materialise(r, fr->func);
        fr->extra = rec_materialise(r, fr->extra);
    }
}

/* The state at the head of the loop, from which the next turn starts. */
static void
go_to(Recorder *r, int head)
{
    RecFrame *fr = rec_top(r);

    fr->next = fr->start = fr->unit = head;
    r->icount++;
}

static RecStatus
place_anchor(Recorder *r, RecLoop *loop, int end)
{
    Trace *t = r->t;
    RecFrame *fr = rec_top(r);
    TapeRef init[REC_MAX_CARRIED];
    uint32_t n = 0;
    bool *stored = cc_calloc((size_t)fr->nlocals + 1, sizeof(bool));

    if (stored == NULL || !CC_GROW(t->anchor, t->nanchor, r->cap_anchor, 1)) {
        cc_free(stored);
        r->broken = true;
        return REC_OK;
    }
    if (t->nanchor == REC_MAX_ANCHORS) {
        cc_free(stored);
        return rec_stop(r, CC_REASON_TRACE_TOO_LONG, "more than %d loops", REC_MAX_ANCHORS);
    }
    stored_locals(fr, loop->head, end, stored);
    materialise_all(r);
    rec_close(r);
    /* Side traces come back here: what they show to foreign code is not known on this tape. */
    for (uint32_t i = 0; i < r->t->nreg; i++) {
        r->reg[i].priv = r->reg[i].own = false;
    }
    for (int i = 0; i < fr->nlocals && !r->broken; i++) {
        if (stored[i] && fr->sh[i] != TAPE_NULL) {
            if (n == REC_MAX_CARRIED) {
                cc_free(stored);
                return rec_stop(r, CC_REASON_LOOP_UNSTABLE, "more than %d variables",
                                REC_MAX_CARRIED);
            }
            bool foreign = TAPE_KIND(fr->sh[i]) == TAPE_REG && rec_reg(r, fr->sh[i])->foreign;
            init[n++] = fr->sh[i];
            fr->sh[i] = rec_newreg(r, PHASE_PRE);
            if (!r->broken) {
                rec_reg(r, fr->sh[i])->foreign = foreign;
            }
        }
    }
    rec_anchor(r, stored, init, n);
    cc_free(stored);
    loop->anchor = t->nanchor;
    rec_new_epoch(r);
    r->want_poll = true;
    return REC_OK;
}

/* Current refs of what an anchor carries, built; false if the bound ones have changed. */
static bool
carried_now(Recorder *r, const Trace *t, uint32_t anchor, TapeRef *now)
{
    const TapeAnchor *an = &t->anchor[anchor];
    const TapeFrame *f = &t->frame[t->snap[an->snap].frame + t->snap[an->snap].nframes - 1];
    RecFrame *fr = rec_top(r);
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->nlocals; i++) {
        TapeRef at_head = t->opnd[f->slot + i];
        bool bound = fr->slot[i] != NULL;
        if ((at_head != TAPE_NULL) != bound) {
            return false;
        }
        if (n < an->ncarried && at_head == TAPE_REF(TAPE_REG, t->opnd[an->first + n])) {
            now[n++] = rec_materialise(r, fr->sh[i]);
            fr->sh[i] = now[n - 1];
        }
    }
    return n == an->ncarried && !r->broken;
}

/* -- Jumping to an ancestor ------------------------------------------------------------------ */

/* Ref of slot `index` (counted over all frames) in a snapshot, and how many slots it has. */
static TapeRef
snap_slot(const Trace *t, uint32_t snap, uint32_t index, bool *found)
{
    const TapeSnap *s = &t->snap[snap];

    for (uint32_t i = 0; i < s->nframes; i++) {
        const TapeFrame *f = &t->frame[s->frame + i];
        if (index < f->nlocals + f->nstack) {
            *found = true;
            return t->opnd[f->slot + index];
        }
        index -= f->nlocals + f->nstack;
    }
    *found = false;
    return TAPE_NULL;
}

/* Follow an entry register of side traces up to the trace `up` levels above. */
static bool
origin(const Trace *t, TapeRef ref, uint32_t up, TapeRef *res)
{
    while (up-- > 0) {
        bool found;
        if (TAPE_KIND(ref) != TAPE_REG || TAPE_INDEX(ref) >= t->ninputs) {
            return false;
        }
        ref = snap_slot(t->parent, t->parent_snap, TAPE_INDEX(ref), &found);
        t = t->parent;
        if (!found) {
            return false;
        }
    }
    *res = ref;
    return true;
}

static bool
is_carried(const Trace *t, const TapeAnchor *an, TapeRef ref)
{
    for (uint32_t i = 0; i < an->ncarried; i++) {
        if (ref == TAPE_REF(TAPE_REG, t->opnd[an->first + i])) {
            return true;
        }
    }
    return false;
}

/* What the anchor does not carry must be what its own trace still has there. */
static bool
frame_fits(Recorder *r, const RecTarget *tg, const TapeFrame *f, const RecFrame *fr, bool top)
{
    const Trace *t = tg->trace;
    const TapeAnchor *an = &t->anchor[tg->anchor];

    for (int k = 0; k < fr->sp && !tape_drops(r->t, CC_DROP_UNCHANGED); k++) {
        TapeRef want = t->opnd[f->slot + (uint32_t)k], ref = rec_ref(r, fr->sh[k]), from;
        if (top && k < fr->nlocals && is_carried(t, an, want)) {
            continue;
        }
        if (want == TAPE_NULL || ref == TAPE_NULL) {
            if (want != TAPE_NULL || ref != TAPE_NULL) {
                return false;
            }
            continue;
        }
        bool same = TAPE_KIND(want) == TAPE_CONST && TAPE_KIND(ref) == TAPE_CONST
            && t->konst[TAPE_INDEX(want)] == r->t->konst[TAPE_INDEX(ref)];
        if (!same && (!origin(r->t, ref, tg->up, &from) || from != want)) {
            /* a constant of the ancestor comes back as an entry register */
            if (TAPE_KIND(want) != TAPE_CONST || fr->slot[k] != t->konst[TAPE_INDEX(want)]) {
                return false;
            }
            rec_guard_is(r, ref, rec_const(r, fr->slot[k]), true);
        }
    }
    return true;
}

static bool
target_fits(Recorder *r, const RecTarget *tg)
{
    const Trace *t = tg->trace;
    const TapeSnap *s = &t->snap[t->anchor[tg->anchor].snap];

    if (s->nframes != (uint32_t)r->nframes) {
        return false;
    }
    for (uint32_t i = 0; i < s->nframes; i++) {
        const TapeFrame *f = &t->frame[s->frame + i];
        const RecFrame *fr = &r->frame[i];
        bool top = i == s->nframes - 1;
        if (t->konst[f->code] != (PyObject *)fr->co
                || f->nlocals + f->nstack != (uint32_t)fr->sp
                || (top ? f->unit != fr->start : f->next != fr->live.next)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < s->nframes; i++) {
        if (!frame_fits(r, tg, &t->frame[s->frame + i], &r->frame[i], i == s->nframes - 1)) {
            return false;
        }
    }
    return true;
}

RecStatus
rec_backward(Recorder *r, int head)
{
    RecFrame *fr = rec_top(r);
    RecLoop *loop = find_loop(fr, head);
    bool for_known = fr->sp > fr->nlocals && rec_virt_of(r, rec_peek(r, 0)) != NULL
        && rec_virt_of(r, rec_peek(r, 0))->kind >= VIRT_SEQITER;
    int end = fr->unit;

    if (loop == NULL) {
        return rec_stop(r, CC_REASON_TRACE_TOO_LONG, "more than %d loops in a function",
                        REC_MAX_LOOPS);
    }
    loop->turns++;
    if (for_known || r->broken || r->grad != NULL) {    /* derivatives see loops unrolled */
        go_to(r, head);
        return REC_OK;
    }
    /* The jump has no effect of its own: the state is the one at the head. An anchor of an earlier
     * turn of an outer loop does not fit: what it takes from outside has changed. */
    TapeRef now[REC_MAX_CARRIED];
    uint32_t anchor = loop->anchor - 1;
    go_to(r, head);
    if (loop->anchor == 0 || !target_fits(r, &(RecTarget){r->t, anchor, 0})
            || !carried_now(r, r->t, anchor, now)) {
        return place_anchor(r, loop, end);
    }
    rec_end(r, rec_ins(TAPE_BACK, 0, anchor), now, r->t->anchor[anchor].ncarried);
    return REC_DONE;
}

RecStatus
rec_at_head(Recorder *r)
{
    TapeRef now[REC_MAX_CARRIED];

    for (int i = 0; i < r->ntargets && !r->broken; i++) {
        const RecTarget *tg = &r->target[i];
        const TapeAnchor *an = &tg->trace->anchor[tg->anchor];
        const TapeSnap *s = &tg->trace->snap[an->snap];
        const TapeFrame *f = &tg->trace->frame[s->frame + s->nframes - 1];
        if (f->unit != rec_top(r)->start || !target_fits(r, tg)
                || !carried_now(r, tg->trace, tg->anchor, now)) {
            continue;
        }
        TapeIns ins = rec_ins(TAPE_JUMP, 0, tg->anchor);
        ins.check = tg->up;
        rec_end(r, ins, now, an->ncarried);
        rec_top(r)->next = rec_top(r)->start;
        return REC_DONE;
    }
    return REC_OK;
}
