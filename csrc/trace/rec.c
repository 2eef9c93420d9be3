/* trace/rec.c - the recording loop: one instruction of a real frame at a time.
 *
 * At every instruction boundary the real frames are what CPython would have, so any of them can be
 * handed to CPython in mid-frame: when the recording stops, when it ends at a loop, and when an
 * exception is to be handled. Whatever happens, the program runs once and to its end. */
#include "rec.h"

#include "../base/check.h"
#include "../base/mem.h"
#include "../base/vec.h"

#include <opcode.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* -- Life ------------------------------------------------------------------------ */

Recorder *
rec_new(PyThreadState *ts, const RecOptions *opt)
{
    Recorder *r = cc_calloc(1, sizeof(*r));
    Trace *t = cc_calloc(1, sizeof(*t));

    if (r == NULL || t == NULL) {
        cc_free(r);
        cc_free(t);
        return NULL;
    }
    r->ts = ts;
    r->opt = *opt;
    r->t = t;
    t->drop = opt->drop;
    r->epoch = 1;
    if (!CC_GROW(t->konst, 0, r->cap_konst, 1) || !CC_GROW(t->chk, 0, r->cap_chk, 1)) {
        rec_free(r);
        return NULL;
    }
    t->konst[0] = NULL;
    t->nkonst = 1;
    memset(&t->chk[0], 0, sizeof(t->chk[0]));
    t->nchk = 1;
    return r;
}

void
rec_free(Recorder *r)
{
    if (r == NULL) {
        return;
    }
    for (uint32_t i = 0; i < r->nvirt; i++) {
        cc_free(r->virt[i].field);
    }
    cc_free(r->virt);
    cc_free(r->reg);
    cc_free(r->load);
    cc_free(r->brk);
    cc_free(r->drop);
    cc_free(r->pre.row);
    cc_free(r->node.row);
    cc_free(r->post.row);
    cc_free(r->write.row);
    cc_free(r->pending);
    rec_grad_free(r);
    tape_free(r->t);
    cc_free(r);
}

int
rec_add_frame(Recorder *r, const PyLive *live, TapeRef func)
{
    RecFrame *fr = &r->frame[r->nframes];
    PyCodeObject *co = py_frame_code_borrow(live->f);
    int nlocals = co->co_nlocalsplus;

    memset(fr, 0, sizeof(*fr));
    fr->bytes = py_code_bytes(co);
    fr->sh = cc_calloc((size_t)(nlocals + co->co_stacksize + 2), sizeof(*fr->sh));
    if (fr->bytes == NULL || fr->sh == NULL) {
        Py_CLEAR(fr->bytes);
        cc_free(fr->sh);
        PyErr_Clear();
        return -1;
    }
    fr->live = *live;
    fr->co = co;
    fr->code = (const uint8_t *)PyBytes_AS_STRING(fr->bytes);
    fr->code_k = TAPE_INDEX(rec_const(r, (PyObject *)co));
    fr->slot = py_frame_slots(live->f);
    fr->nlocals = nlocals;
    fr->sp = py_frame_stacktop(live->f);
    fr->next = py_frame_next(live->f);
    fr->start = fr->unit = fr->next;
    fr->func = func;
    fr->kw_start = -1;
    r->nframes++;
    return 0;
}

/* The recorder's own part of a frame; the frame itself lives on or has ended. */
static void
rec_drop_frame(RecFrame *fr)
{
    Py_CLEAR(fr->bytes);
    cc_free(fr->sh);
    fr->sh = NULL;
}

/* -- Reasons ---------------------------------------------------------------------- */

RecStatus
rec_stop(Recorder *r, CcReason reason, const char *fmt, ...)
{
    va_list ap;

    r->stop = reason;
    va_start(ap, fmt);
    vsnprintf(r->stop_detail, sizeof(r->stop_detail), fmt, ap);
    va_end(ap);
    return REC_STOP;
}

/* A fault is NumPy's own warning at its own line: it runs on even where breaks are not wanted. */
RecStatus
rec_break(Recorder *r, CcReason reason, const char *fmt, ...)
{
    bool refuse = r->opt.fullgraph && reason != CC_REASON_FAULT;
    va_list ap;

    if (!refuse && !CC_GROW(r->brk, r->nbrk, r->cap_brk, 1)) {
        r->broken = true;
        return REC_OK;
    }
    RecBreak *b = refuse ? NULL : &r->brk[r->nbrk++];
    va_start(ap, fmt);
    vsnprintf(refuse ? r->stop_detail : b->detail, sizeof(r->stop_detail), fmt, ap);
    va_end(ap);
    if (refuse) {
        r->stop = reason;
        return REC_STOP;
    }
    b->reason = reason;
    b->place = rec_place(r);
    return REC_OK;
}

/* -- Polling ---------------------------------------------------------------------- */

/* First row of its transaction: if it runs a handler, what follows reads anew. */
static void
emit_poll(Recorder *r)
{
    r->want_poll = false;
    rec_open_here(r);
    if (r->pre.n > 0) {
        rec_close(r);
    }
    if (!tape_drops(r->t, CC_DROP_POLL)) {
        rec_emit(r, rec_ins(TAPE_POLL, 0, 0), NULL, 0, false);
    }
    rec_new_epoch(r);
}

/* What a residual row may have left waiting is served where the recording ends, too. */
static void
end_at_exit(Recorder *r, CcReason why)
{
    if (r->want_poll && r->grad == NULL) {
        emit_poll(r);
    }
    rec_end(r, rec_ins(TAPE_EXIT, 0, why), NULL, 0);
}

/* -- Leaving ---------------------------------------------------------------------- */

/* Give all frames to CPython; the innermost goes on at `unit`, or with an exception if unit < 0. */
static PyObject *
hand_off(Recorder *r, int unit)
{
    PyLive live[REC_MAX_FRAMES];
    int n = r->nframes;

    for (int i = 0; i < n; i++) {
        RecFrame *fr = &r->frame[i];
        live[i] = fr->live;
        py_frame_set_stacktop(fr->live.f, fr->sp);
        rec_drop_frame(fr);
    }
    r->nframes = 0;
    if (unit >= 0) {
        return py_chain_run(r->ts, live, n, unit);
    }
    /* The innermost frame has no handler: it ends, the next one gets the exception. */
    py_live_unlink(r->ts, &live[n - 1]);
    py_live_end(r->ts, &live[n - 1]);
    return py_chain_finish(r->ts, live, n - 1, NULL);
}

/* Under `fullgraph` the program hears of a break, but not of what is its own exception anyway, of
 * our shortage of memory, or of an instruction that is done already. */
static bool
must_raise_break(const Recorder *r)
{
    CcReasonKind kind = cc_reason_kind(r->stop);

    return r->opt.fullgraph && (kind == CC_KIND_STOP || kind == CC_KIND_RESIDUAL)
        && r->stop != CC_REASON_EXCEPTION && r->stop != CC_REASON_FRAME_SEEN;
}

static int
set_attr_steal(PyObject *exc, const char *name, PyObject *value)
{
    int err = value == NULL ? -1 : PyObject_SetAttrString(exc, name, value);

    Py_XDECREF(value);
    return err;
}

/* Sets a GraphBreak that names the instruction (any failure sets another exception). */
static void
set_break(const Recorder *r, const RecFrame *fr)
{
    const char *text = cc_reason_text(r->stop), *hint = cc_reason_hint(r->stop);
    int line = py_code_line(fr->co, fr->unit);
    PyObject *exc = NULL;
    PyObject *message = PyUnicode_FromFormat(
        "%U:%d: %s%s%s%s [%s]%s%s", fr->co->co_filename, line, text, r->stop_detail[0] ? " (" : "",
        r->stop_detail, r->stop_detail[0] ? ")" : "", cc_reason_name(r->stop),
        hint[0] ? "\n  hint: " : "", hint);

    if (message != NULL) {
        exc = PyObject_CallOneArg(r->opt.break_type, message);
        Py_DECREF(message);
    }
    const char *name = cc_reason_name(r->stop);
    if (exc != NULL && set_attr_steal(exc, "reason", PyUnicode_FromString(name)) == 0
            && set_attr_steal(exc, "filename", Py_NewRef(fr->co->co_filename)) == 0
            && set_attr_steal(exc, "lineno", PyLong_FromLong(line)) == 0
            && set_attr_steal(exc, "hint", PyUnicode_FromString(hint)) == 0) {
        PyErr_SetObject(r->opt.break_type, exc);
    }
    Py_XDECREF(exc);
}

/* The instruction has not run: the program is told instead, as by an exception of its own. */
static PyObject *
leave_refused(Recorder *r)
{
    RecFrame *fr = rec_top(r);

    if (!r->broken) {
        r->t->end = r->stop;
        r->t->end_place = rec_place(r);
    }
    r->broken = r->raised_break = true;
    py_frame_set_stacktop(fr->live.f, fr->sp);
    set_break(r, fr);
    int handler = py_unwind(r->ts, fr->live.f, fr->unit);
    fr->sp = py_frame_stacktop(fr->live.f);
    return hand_off(r, handler);
}

static PyObject *
leave_stopped(Recorder *r)
{
    RecFrame *fr = rec_top(r);
    int unit = fr->start;

    if (must_raise_break(r)) {
        return leave_refused(r);
    }
    if (!r->broken) {
        r->t->end = r->stop;
        r->t->end_place = rec_place(r);
        end_at_exit(r, r->stop);
    }
    return hand_off(r, unit);
}

static PyObject *
leave_raised(Recorder *r)
{
    RecFrame *fr = rec_top(r);

    if (!r->broken) {
        PyObject *exc = py_exc_take();
        r->t->end = r->stop = CC_REASON_EXCEPTION;
        r->t->end_place = rec_place(r);
        end_at_exit(r, CC_REASON_EXCEPTION);
        py_exc_give_steal(exc);
    }
    py_frame_set_stacktop(fr->live.f, fr->sp);
    int handler = py_unwind(r->ts, fr->live.f, fr->unit);
    fr->sp = py_frame_stacktop(fr->live.f);
    return hand_off(r, handler);
}

/* -- The loop ----------------------------------------------------------------------- */

static void
decode(RecFrame *fr, int *op, int *oparg)
{
    int i = fr->next;

    fr->start = fr->kwnames != NULL ? fr->kw_start : i;
    *op = fr->code[2 * i];
    *oparg = fr->code[2 * i + 1];
    while (*op == EXTENDED_ARG) {
        i++;
        *op = fr->code[2 * i];
        *oparg = *oparg << 8 | fr->code[2 * i + 1];
    }
    fr->unit = i;
    fr->next = i + 1 + py_caches(*op);
}

static bool
someone_looked(Recorder *r)
{
    for (int i = 0; i < r->nframes; i++) {
        if (py_frame_has_object(r->frame[i].live.f)) {
            return true;
        }
    }
    return false;
}

/* What waits at the boundary: objects that died in the last instruction. */
static void
emit_drops(Recorder *r)
{
    for (uint32_t i = 0; i < r->ndrop && !r->broken; i++) {
        rec_emit_alone(r, rec_ins(TAPE_DROP, 0, 0), &r->drop[i], 1, false);
    }
    r->ndrop = 0;
}

/* The instruction is done: the state is the one before the next. */
static void
instruction_done(Recorder *r)
{
    if (r->nframes > 0) {
        RecFrame *fr = rec_top(r);
        fr->start = fr->kwnames != NULL ? fr->kw_start : fr->next;
    }
    r->icount++;
}

/* What foreign code has left waiting is served before the next instruction, as after a call in
 * CPython. An exception of a handler comes from this instruction, which is not done again. */
static RecStatus
serve_behind(Recorder *r)
{
    if (!py_breaker_set(r->ts)) {
        return REC_OK;
    }
    instruction_done(r);
    return rec_poll(r);
}

static RecStatus
rec_step(Recorder *r)
{
    RecFrame *fr = rec_top(r);
    int op, oparg;

    decode(fr, &op, &oparg);
    r->icount++;
    py_frame_set_running(fr->live.f, fr->unit);
    if (r->broken) {
        return rec_stop(r, CC_REASON_NO_MEMORY, "while recording");
    }
    if (r->need_open || (r->t->nins == 0 && !r->open)) {
        r->need_open = false;
        rec_open_here(r);
    }
    if (r->ndrop > 0) {
        emit_drops(r);
    }
    if (r->want_poll && r->grad == NULL) {
        emit_poll(r);
    }
    if (r->opt.stress_txn) {
        rec_close(r);
    }
    if (r->t->nins + r->pre.n + r->node.n + r->post.n + r->write.n > r->opt.trace_limit) {
        return rec_stop(r, CC_REASON_TRACE_TOO_LONG, "over %u rows", r->opt.trace_limit);
    }
    if (r->ntargets > 0 && r->icount > 1 && r->grad == NULL) {
        RecStatus st = rec_at_head(r);
        if (st != REC_OK) {
            return st;
        }
    }
    if (rec_handler[op] == NULL) {
        return rec_stop(r, rec_stop_reason(op), "%s", py_opcode_name(op));
    }
    r->ran_foreign = false;
    RecStatus st = rec_handler[op](r, oparg);
    CC_ASSERT((st != REC_OK && st != REC_STOP) || !PyErr_Occurred());
    if (st == REC_OK && r->ran_foreign) {
        st = serve_behind(r);
    }
    if (st == REC_OK && (py_tracing(r->ts) || someone_looked(r))) {
        instruction_done(r);
        if (r->nframes > 0) {
            rec_top(r)->unit = rec_top(r)->next;
        }
        return rec_stop(r, CC_REASON_FRAME_SEEN, "after %s", py_opcode_name(op));
    }
    return st;
}

PyObject *
rec_run(Recorder *r)
{
    for (;;) {
        RecStatus st = rec_step(r);
        if ((st == REC_STOP || st == REC_ERROR) && r->grad != NULL) {
            st = rec_grad_abandon(r);
        }
        if (st == REC_OK) {
            continue;
        }
        if (st == REC_STOP) {
            return leave_stopped(r);
        }
        if (st == REC_ERROR) {
            return leave_raised(r);
        }
        /* REC_DONE: at RET the frames are gone; at a loop's end CPython goes on at the head. */
        return r->nframes == 0 ? r->result : hand_off(r, rec_top(r)->next);
    }
}
