/* trace/operate.c - one operation on real operands: pure (repeated freely, thrown away freely) or
 * residual (an event of the program's, in order, with its frames). */
#include "rec.h"

#include <opcode.h>
#include <string.h>

enum { OPERATE_MAX = 256 };

/* Immutable builtins whose operations run no user code. */
static bool
is_plain(PyObject *obj)
{
    return PyLong_CheckExact(obj) || PyFloat_CheckExact(obj) || PyUnicode_CheckExact(obj)
        || PyBool_Check(obj) || obj == Py_None || PyComplex_CheckExact(obj)
        || PyBytes_CheckExact(obj) || obj == Py_Ellipsis;
}

/* A constant container of plain values: `x in ("a", "b")`. */
static bool
is_plain_tuple(PyObject *obj)
{
    if (PyFrozenSet_CheckExact(obj)) {
        return true; /* from the code's constants: marshal makes only plain ones */
    }
    if (!PyTuple_CheckExact(obj)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(obj); i++) {
        if (!is_plain(PyTuple_GET_ITEM(obj, i))) {
            return false;
        }
    }
    return true;
}

static bool
all_plain(PyObject *const *real, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!is_plain(real[i])) {
            return false;
        }
    }
    return true;
}

static bool
is_pure_builtin(CallKind kind, PyObject *const *real, const TapeRef *ref, uint32_t n)
{
    PyObject *a = real[0];

    switch (kind) {
    case DO_COMPARE:
        /* shapes; what else a tuple may hold in a replay is as pure (GPURE) */
        return all_plain(real, n)
            || (PyTuple_CheckExact(a) && PyTuple_CheckExact(real[1]) && is_plain_tuple(a)
                && is_plain_tuple(real[1]));
    case DO_BINARY:
    case DO_UNARY:
    case DO_FORMAT:
    case DO_JOIN:
    case DO_TRUTH:
        return all_plain(real, n);
    case DO_CONTAINS:
        return is_plain(a) && ((PyUnicode_CheckExact(a) && PyUnicode_CheckExact(real[1]))
                               || (TAPE_KIND(ref[1]) == TAPE_CONST && is_plain_tuple(real[1])));
    case DO_GETITEM:
        return (PyUnicode_CheckExact(a) || PyBytes_CheckExact(a) || Py_IS_TYPE(a, &PyRange_Type))
            && (PyLong_CheckExact(real[1]) || PySlice_Check(real[1]));
    case DO_LEN:
        return PyUnicode_CheckExact(a) || PyBytes_CheckExact(a) || Py_IS_TYPE(a, &PyRange_Type)
            || PyTuple_CheckExact(a) || PyList_CheckExact(a) || PyDict_CheckExact(a)
            || PyAnySet_CheckExact(a);
    case DO_ITER:
        return PyTuple_CheckExact(a) || PyList_CheckExact(a) || PyDict_CheckExact(a)
            || Py_IS_TYPE(a, &PyRange_Type) || PyUnicode_CheckExact(a) || PyBytes_CheckExact(a)
            || Py_IS_TYPE(a, &PyDictItems_Type) || Py_IS_TYPE(a, &PyDictKeys_Type)
            || Py_IS_TYPE(a, &PyDictValues_Type) || PyAnySet_CheckExact(a);
    case DO_SLICE:
        return true;
    default:
        return false;
    }
}

/* Dropping the last reference to it runs no Python code. */
bool
rec_is_inert(PyObject *obj)
{
    return is_plain(obj) || PyType_Check(obj) || PyModule_Check(obj) || PyCFunction_Check(obj)
        || PyCode_Check(obj) || front_is_array(obj) || front_is_scalar(obj)
        || front_is_constant(obj) || obj == tape_end_borrow();
}

static TapeRef
fold(Recorder *r, TapeOp op, const TapeRef *ref, uint32_t n, PyObject *res)
{
    if (op != TAPE_PCALL || !is_plain(res)) {
        return TAPE_NULL;
    }
    int big = 0;
    if (PyLong_CheckExact(res)) {
        PyLong_AsLongLongAndOverflow(res, &big);
    }
    if (big || (PyUnicode_CheckExact(res) && PyUnicode_GET_LENGTH(res) > 4096)) {
        return TAPE_NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (ref[i] != TAPE_NULL && TAPE_KIND(ref[i]) != TAPE_CONST) {
            return TAPE_NULL;
        }
    }
    return rec_const(r, res);
}

static void
note_result(Recorder *r, TapeRef out, PyObject *res, PyObject *const *real, uint32_t n)
{
    if (r->broken || TAPE_KIND(out) != TAPE_REG) {
        return;
    }
    RecReg *reg = rec_reg(r, out);
    reg->type = Py_TYPE(res);
    reg->type_epoch = r->epoch;
    front_result(res, &reg->dtype, &reg->ndim);
    rec_note_meta(r, out, res);
    rec_grad_note(r, out, res);
    reg->priv = true;
    for (uint32_t i = 0; i < n; i++) {
        if (real[i] == res) {
            reg->priv = false;          /* the operand itself: others may hold it */
        }
    }
}

/* Array work is run as a replay runs it: floating-point errors that the program would hear of
 * raise. 1: there was one, so the operation must run with its frames. */
int
rec_run_node(CallKind kind, uint32_t oparg, PyObject *const *real, uint32_t n,
             PyObject *kwnames, PyObject **res)
{
    FrontFp fp;

    if (front_fp_begin(&fp) < 0) {
        return -1;
    }
    *res = tape_call(kind, oparg, real, n, kwnames);
    front_fp_end(&fp);
    if (*res == NULL && PyErr_ExceptionMatches(PyExc_FloatingPointError)) {
        PyErr_Clear();
        return 1;
    }
    return *res == NULL ? -1 : 0;
}

RecStatus
rec_pure(Recorder *r, TapeOp op, CallKind kind, uint32_t oparg, PyObject *const *real,
         const TapeRef *ref, uint32_t n, PyObject *kwnames, int pop, PyObject **res, TapeRef *out)
{
    TapeRef a[OPERATE_MAX], was[OPERATE_MAX];

    if (op == TAPE_NODE) {
        int faulty = rec_run_node(kind, oparg, real, n, kwnames, res);
        if (faulty > 0) {
            rec_break(r, CC_REASON_FAULT, "%s", tape_call_name[kind]);
            return rec_residual(r, kind, oparg, real, ref, n, kwnames, pop, 0, res, out);
        }
        if (faulty < 0) {
            return REC_ERROR;
        }
    } else {
        *res = tape_call(kind, oparg, real, n, kwnames);
        if (*res == NULL) {
            return REC_ERROR;
        }
    }
    *out = fold(r, op, ref, n, *res);
    if (*out != TAPE_NULL) {
        return REC_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        a[i] = ref[i] == TAPE_NULL ? TAPE_NULL
             : op == TAPE_NODE ? rec_ref(r, ref[i]) : rec_materialise(r, ref[i]);
        if (a[i] != TAPE_NULL) {
            rec_guard_pure(r, a[i], real[i]);
        }
        was[i] = a[i];
    }
    if (op == TAPE_NODE) {
        rec_memory_read(r, kind, real, a, n, kwnames, *res);
    }
    TapeIns ins = rec_ins(op, (uint8_t)kind, oparg);
    ins.kw = kwnames == NULL ? 0 : (uint16_t)TAPE_INDEX(rec_const(r, kwnames));
    ins.check = tape_drops(r->t, CC_DROP_RESULT) ? 0 : rec_check_of(r, *res);
    *out = rec_emit(r, ins, a, n, true);
    note_result(r, *out, *res, real, n);
    rec_memory_note(r, *out, kind, real, was, n, kwnames, *res);
    r->ops_node += op == TAPE_NODE;
    return REC_OK;
}

RecStatus
rec_residual(Recorder *r, CallKind kind, uint32_t oparg, PyObject *const *real, const TapeRef *ref,
             uint32_t n, PyObject *kwnames, int pop, int flags, PyObject **res, TapeRef *out)
{
    TapeRef a[OPERATE_MAX];
    bool arrays = false;

    if (r->grad != NULL) {
        return rec_stop(r, CC_REASON_EFFECT, "%s", tape_call_name[kind]);
    }
    flags |= tape_drops(r->t, CC_DROP_FRAMES) ? TAPE_NOFRAME : 0;
    for (uint32_t i = 0; i < n; i++) {
        a[i] = ref[i] == TAPE_NULL ? TAPE_NULL : rec_materialise(r, ref[i]);
        arrays |= front_is_array(real[i]);
    }
    *res = tape_call(kind, oparg, real, n, kwnames);
    if (*res == NULL) {
        return REC_ERROR;
    }
    for (uint32_t i = 0; i < n; i++) {
        rec_foreign_ref(r, a[i]);
    }
    TapeIns ins = rec_ins(TAPE_RCALL, (uint8_t)kind, oparg);
    ins.kw = kwnames == NULL ? 0 : (uint16_t)TAPE_INDEX(rec_const(r, kwnames));
    ins.pop = (uint8_t)pop;
    arrays |= front_is_array(*res);
    ins.flags = (uint8_t)(flags | (arrays ? TAPE_ARRAYS : 0));
    ins.unit = (uint32_t)rec_top(r)->unit;
    *out = rec_emit_alone(r, ins, a, n, true);
    /* Where frames were shown the program may have to go on in them, from right behind it. */
    r->need_open = !(flags & TAPE_NOFRAME);
    r->want_poll |= !(flags & TAPE_NOFRAME);
    r->ran_foreign = !(flags & TAPE_NOFRAME);
    r->ops_residual += arrays;
    if (!r->broken) {
        rec_reg(r, *out)->foreign = !rec_is_inert(*res);
    }
    return REC_OK;
}

void
rec_residual_items(Recorder *r, TapeRef tuple, PyObject *items, TapeRef *item)
{
    if (r->broken) {
        return;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
        item[i] = rec_emit_behind(r, tuple, (uint32_t)i);
        if (!r->broken) {
            rec_reg(r, item[i])->foreign = !rec_is_inert(PyTuple_GET_ITEM(items, i));
        }
    }
    if (!r->broken) {
        rec_reg(r, tuple)->foreign = false;
    }
}

/* Static types of the interpreter itself have no module in their name. */
bool
rec_is_user(PyObject *obj)
{
    PyTypeObject *tp = Py_TYPE(obj);

    return (tp->tp_flags & Py_TPFLAGS_HEAPTYPE) || strchr(tp->tp_name, '.') != NULL
        || tp == &PyMap_Type || tp == &PyFilter_Type;
}

static PyObject *
user_operand(PyObject *const *real, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (real[i] != NULL && rec_is_user(real[i])) {
            return real[i];
        }
    }
    return NULL;
}

static RecStatus
break_at_user(Recorder *r, CallKind kind, PyObject *const *real, uint32_t n)
{
    PyObject *user = user_operand(real, n);

    return user == NULL ? REC_OK
         : rec_break(r, CC_REASON_USER_OPERATOR, "%s of %.40s", tape_call_name[kind],
                     Py_TYPE(user)->tp_name);
}

RecStatus
rec_operate(Recorder *r, CallKind kind, uint32_t oparg, PyObject *const *real, const TapeRef *ref,
            uint32_t n, PyObject *kwnames, int pop, PyObject **res, TapeRef *out)
{
    FrontUpdate up;

    if (is_pure_builtin(kind, real, ref, n)) {
        return rec_pure(r, TAPE_PCALL, kind, oparg, real, ref, n, kwnames, pop, res, out);
    }
    switch (front_classify(kind, oparg, real, n, kwnames)) {
    case FRONT_ARRAY:
        return rec_pure(r, TAPE_NODE, kind, oparg, real, ref, n, kwnames, pop, res, out);
    case FRONT_META:
        return rec_pure(r, TAPE_PCALL, kind, oparg, real, ref, n, kwnames, pop, res, out);
    default:
        if (front_update(kind, oparg, real, n, kwnames, &up)) {
            return rec_update(r, &up, kind, oparg, real, ref, n, kwnames, pop, res, out);
        }
        return break_at_user(r, kind, real, n) == REC_STOP
                   ? REC_STOP
                   : rec_residual(r, kind, oparg, real, ref, n, kwnames, pop, 0, res, out);
    }
}
