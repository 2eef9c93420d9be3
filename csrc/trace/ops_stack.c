/* trace/ops_stack.c - locals, cells, constants, globals, and moving values on the stack. */
#include "ops.h"

RecStatus
rec_op_nop(Recorder *r, int oparg)
{
    (void)r;
    (void)oparg;
    return REC_OK;
}

/* Serve what waits, as the instruction does. If Python code ran, what was read is old. Inside a
 * differentiated function it waits on: what happens there may happen twice. */
RecStatus
rec_poll(Recorder *r)
{
    if (r->grad != NULL || !py_breaker_set(r->ts)) {
        return REC_OK;
    }
    if (py_poll(r->ts) < 0) {
        return REC_ERROR;
    }
    rec_close(r);
    rec_new_epoch(r);
    return REC_OK;
}

RecStatus
rec_op_resume(Recorder *r, int oparg)
{
    return (oparg & 3) <= 1 ? rec_poll(r) : REC_OK;
}

RecStatus
rec_op_pop_top(Recorder *r, int oparg)
{
    (void)oparg;
    rec_pop(r, 1);
    return REC_OK;
}

RecStatus
rec_op_push_null(Recorder *r, int oparg)
{
    (void)oparg;
    rec_push_steal(r, NULL, TAPE_NULL);
    return REC_OK;
}

RecStatus
rec_op_copy(Recorder *r, int oparg)
{
    rec_push_steal(r, Py_XNewRef(rec_real(r, oparg - 1)), rec_peek(r, oparg - 1));
    return REC_OK;
}

RecStatus
rec_op_swap(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    int a = fr->sp - 1, b = fr->sp - oparg;
    PyObject *real = fr->slot[a];
    TapeRef ref = fr->sh[a];

    fr->slot[a] = fr->slot[b];
    fr->sh[a] = fr->sh[b];
    fr->slot[b] = real;
    fr->sh[b] = ref;
    return REC_OK;
}

RecStatus
rec_op_load_const(Recorder *r, int oparg)
{
    PyObject *obj = PyTuple_GET_ITEM(rec_top(r)->co->co_consts, oparg);

    rec_push_steal(r, Py_NewRef(obj), rec_const(r, obj));
    return REC_OK;
}

/* -- Locals --------------------------------------------------------------------- */

/* An unbound local raises; CPython words the error. */
static RecStatus
unbound(Recorder *r)
{
    return rec_stop(r, CC_REASON_EXCEPTION, "unbound local variable");
}

RecStatus
rec_op_load_fast(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);

    if (fr->slot[oparg] == NULL) {
        return unbound(r);
    }
    rec_push_steal(r, Py_NewRef(fr->slot[oparg]), fr->sh[oparg]);
    return REC_OK;
}

RecStatus
rec_op_load_fast_and_clear(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *real = fr->slot[oparg];
    TapeRef ref = fr->sh[oparg];

    fr->slot[oparg] = NULL;
    fr->sh[oparg] = TAPE_NULL;
    rec_push_steal(r, real, ref);
    return REC_OK;
}

RecStatus
rec_op_load_fast_load_fast(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);

    if (fr->slot[oparg >> 4] == NULL || fr->slot[oparg & 15] == NULL) {
        return unbound(r);
    }
    rec_op_load_fast(r, oparg >> 4);
    return rec_op_load_fast(r, oparg & 15);
}

RecStatus
rec_op_store_fast(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *real = fr->slot[fr->sp - 1];
    TapeRef ref = fr->sh[fr->sp - 1];

    fr->sp--;
    fr->slot[fr->sp] = NULL;
    fr->sh[fr->sp] = TAPE_NULL;
    rec_set_slot_steal(r, oparg, real, ref);
    return REC_OK;
}

RecStatus
rec_op_store_fast_load_fast(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);

    if (fr->slot[oparg & 15] == NULL && (oparg & 15) != oparg >> 4) {
        return unbound(r);
    }
    rec_op_store_fast(r, oparg >> 4);
    return rec_op_load_fast(r, oparg & 15);
}

RecStatus
rec_op_store_fast_store_fast(Recorder *r, int oparg)
{
    rec_op_store_fast(r, oparg >> 4);
    return rec_op_store_fast(r, oparg & 15);
}

RecStatus
rec_op_delete_fast(Recorder *r, int oparg)
{
    if (rec_top(r)->slot[oparg] == NULL) {
        return unbound(r);
    }
    rec_set_slot_steal(r, oparg, NULL, TAPE_NULL);
    return REC_OK;
}

RecStatus
rec_op_end_for_1(Recorder *r, int oparg)
{
    (void)oparg;
    rec_pop(r, 1);
    return REC_OK;
}

RecStatus
rec_op_end_for_2(Recorder *r, int oparg)
{
    (void)oparg;
    rec_pop(r, 2);
    return REC_OK;
}

/* -- Cells ------------------------------------------------------------------------ */

RecStatus
rec_op_make_cell(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *cell = PyCell_New(fr->slot[oparg]);

    if (cell == NULL) {
        return REC_ERROR;
    }
    TapeRef field = fr->sh[oparg];
    TapeRef ref = rec_virt(r, VIRT_CELL, &field, 1);
    Py_XDECREF(fr->slot[oparg]);        /* the cell holds it too: nothing dies */
    fr->slot[oparg] = cell;
    fr->sh[oparg] = ref;
    return REC_OK;
}

static TapeRef
closure_ref(Recorder *r, TapeRef func, int i, PyObject *cell)
{
    RecVirt *v = rec_virt_of(r, func);
    if (v == NULL) {
        return rec_load(r, TAPE_LDFUNC, TAPE_FUNC_CLOSURE, func, TAPE_NULL, (uint32_t)i, cell);
    }
    TapeRef closure = rec_ref(r, v->field[6]);
    RecVirt *t = rec_virt_of(r, closure);
    if (t != NULL) {
        return t->field[i];
    }
    return rec_load(r, TAPE_LDITEM, 0, closure, rec_const_int(r, i), 0, cell);
}

RecStatus
rec_op_copy_free_vars(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *closure = py_frame_func_borrow(fr->live.f)->func_closure;
    int base = fr->nlocals - oparg;

    for (int i = 0; i < oparg; i++) {
        PyObject *cell = PyTuple_GET_ITEM(closure, i);
        TapeRef ref = closure_ref(r, fr->func, i, cell);
        fr->slot[base + i] = Py_NewRef(cell);
        fr->sh[base + i] = ref;
    }
    return REC_OK;
}

RecStatus
rec_op_load_closure(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);

    rec_push_steal(r, Py_NewRef(fr->slot[oparg]), fr->sh[oparg]);
    return REC_OK;
}

RecStatus
rec_op_load_deref(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *real = PyCell_GET(fr->slot[oparg]);

    if (real == NULL) {
        return unbound(r);
    }
    RecVirt *v = rec_virt_of(r, fr->sh[oparg]);
    TapeRef ref = v != NULL ? rec_ref(r, v->field[0])
                            : rec_load(r, TAPE_LDCELL, 0, fr->sh[oparg], TAPE_NULL, 0, real);
    rec_push_steal(r, Py_NewRef(real), ref);
    return REC_OK;
}

/* A store to a real cell may drop an object whose finaliser runs: it has an effect of its own. */
static RecStatus
cell_store(Recorder *r, int oparg, bool delete)
{
    RecFrame *fr = rec_top(r);
    PyObject *cell = fr->slot[oparg];
    PyObject *value = delete ? NULL : rec_real(r, 0);
    TapeRef vref = delete ? TAPE_NULL : rec_peek(r, 0);
    RecVirt *v = rec_virt_of(r, fr->sh[oparg]);

    if (rec_grad_fixed(r, fr->sh[oparg])) {
        return rec_stop(r, CC_REASON_EFFECT, "a variable of an outer function");
    }
    if (v != NULL) {
        v->field[0] = vref;
        rec_virt_touch(r, v);
        PyCell_Set(cell, value);
    } else {
        PyObject *real[2] = {cell, value}, *none;
        TapeRef ref[2] = {fr->sh[oparg], vref}, out;
        RecStatus st = rec_residual(r, DO_SETCELL, 0, real, ref, delete ? 1 : 2, NULL, !delete, 0,
                                    &none, &out);
        if (st != REC_OK) {
            return st;
        }
        Py_DECREF(none);
    }
    if (!delete) {
        rec_pop(r, 1);
    }
    return REC_OK;
}

RecStatus
rec_op_store_deref(Recorder *r, int oparg)
{
    return cell_store(r, oparg, false);
}

RecStatus
rec_op_delete_deref(Recorder *r, int oparg)
{
    if (PyCell_GET(rec_top(r)->slot[oparg]) == NULL) {
        return unbound(r);
    }
    return cell_store(r, oparg, true);
}

/* -- Globals and imports ------------------------------------------------------------- */

/* A function made on the tape shares the globals of its maker. */
static TapeRef
globals_owner(Recorder *r, TapeRef func)
{
    RecVirt *v;
    while ((v = rec_virt_of(r, func)) != NULL) {
        func = v->field[1];
    }
    return rec_ref(r, func);
}

RecStatus
rec_op_load_global(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *globals = py_frame_globals_borrow(fr->live.f);
    PyObject *builtins = py_frame_builtins_borrow(fr->live.f);
    int index;
    bool null;

    py_arg_load_global(oparg, &index, &null);
    PyObject *name = PyTuple_GET_ITEM(fr->co->co_names, index);
    if (!PyDict_CheckExact(globals) || !PyDict_CheckExact(builtins)) {
        return rec_stop(r, CC_REASON_BYTECODE, "globals are not a plain dict");
    }
    PyObject *real = PyDict_GetItemWithError(globals, name);
    if (real == NULL && !PyErr_Occurred()) {
        real = PyDict_GetItemWithError(builtins, name);
    }
    if (real == NULL) {
        PyErr_Clear();
        return rec_stop(r, CC_REASON_EXCEPTION, "name is not defined");
    }
    Py_INCREF(real);
    TapeRef ref = rec_load(r, TAPE_LDGLOB, 0, globals_owner(r, fr->func), TAPE_NULL,
                           TAPE_INDEX(rec_const(r, name)), real);
    if (null && PY_CALL_NULL_FIRST) {
        rec_push_steal(r, NULL, TAPE_NULL);
    }
    rec_push_steal(r, real, ref);
    if (null && !PY_CALL_NULL_FIRST) {
        rec_push_steal(r, NULL, TAPE_NULL);
    }
    return REC_OK;
}

static TapeRef
globals_ref(Recorder *r, PyObject *globals)
{
    return rec_load(r, TAPE_LDFUNC, TAPE_FUNC_GLOBALS, globals_owner(r, rec_top(r)->func),
                    TAPE_NULL, 0, globals);
}

RecStatus
rec_op_store_global(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *globals = py_frame_globals_borrow(fr->live.f);
    PyObject *name = PyTuple_GET_ITEM(fr->co->co_names, oparg);

    if (!PyDict_CheckExact(globals)) {
        return rec_stop(r, CC_REASON_BYTECODE, "globals are not a plain dict");
    }
    PyObject *real[3] = {globals, name, rec_real(r, 0)}, *none;
    TapeRef ref[3] = {globals_ref(r, globals), rec_const(r, name), rec_peek(r, 0)}, out;
    RecStatus st = rec_residual(r, DO_DICTSET, 0, real, ref, 3, NULL, 1, 0, &none, &out);
    if (st != REC_OK) {
        return st;
    }
    Py_DECREF(none);
    rec_pop(r, 1);
    return REC_OK;
}

RecStatus
rec_op_delete_global(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *globals = py_frame_globals_borrow(fr->live.f);
    PyObject *name = PyTuple_GET_ITEM(fr->co->co_names, oparg);

    if (!PyDict_CheckExact(globals) || PyDict_Contains(globals, name) != 1) {
        PyErr_Clear();
        return rec_stop(r, CC_REASON_EXCEPTION, "name is not defined");
    }
    PyObject *real[2] = {globals, name}, *none;
    TapeRef ref[2] = {globals_ref(r, globals), rec_const(r, name)}, out;
    RecStatus st = rec_residual(r, DO_DICTDEL, 0, real, ref, 2, NULL, 0, 0, &none, &out);
    if (st == REC_OK) {
        Py_DECREF(none);
    }
    return st;
}

RecStatus
rec_op_load_assertion_error(Recorder *r, int oparg)
{
    (void)oparg;
    rec_push_steal(r, Py_NewRef(PyExc_AssertionError), rec_const(r, PyExc_AssertionError));
    return REC_OK;
}

RecStatus
rec_op_import_name(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *globals = py_frame_globals_borrow(fr->live.f);
    PyObject *name = PyTuple_GET_ITEM(fr->co->co_names, oparg);

    if (!PyDict_CheckExact(globals)) {
        return rec_stop(r, CC_REASON_BYTECODE, "globals are not a plain dict");
    }
    PyObject *real[4] = {globals, name, rec_real(r, 0), rec_real(r, 1)}, *res;
    TapeRef ref[4] = {globals_ref(r, globals), rec_const(r, name), rec_peek(r, 0), rec_peek(r, 1)};
    TapeRef out;
    RecStatus st = rec_residual(r, DO_IMPORT, 0, real, ref, 4, NULL, 2, 0, &res, &out);
    if (st == REC_OK) {
        rec_replace_steal(r, 2, res, out);
    }
    return st;
}

RecStatus
rec_op_import_from(Recorder *r, int oparg)
{
    PyObject *name = PyTuple_GET_ITEM(rec_top(r)->co->co_names, oparg);
    PyObject *real[2] = {rec_real(r, 0), name}, *res;
    TapeRef ref[2] = {rec_peek(r, 0), rec_const(r, name)}, out;
    RecStatus st = rec_residual(r, DO_IMPORTFROM, 0, real, ref, 2, NULL, 0, 0, &res, &out);

    if (st == REC_OK) {
        rec_push_steal(r, res, out);
    }
    return st;
}
