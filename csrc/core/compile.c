/* core/compile.c - the life of a call: bind, guards of each trace, replay; or record.
 *
 *   core_call    -> bind arguments -> each root trace of the code, most recent first -> result
 *                   no trace fits  -> one-shot hook -> recorder -> a new root trace
 *   core_go_on   -> a trace was left: the frames stand -> recorder -> a new side trace
 * Whatever is not served by a trace runs as plain Python and is counted. */
#include "state.h"

#include "base/mem.h"
#include "base/vec.h"
#include "front/lower.h"

#include <string.h>

enum { CORE_MAX_SLOTS = 256 };

/* -- Owner -------------------------------------------------------------------------- */

static PyObject *core_go_on(ExecOwner *exec, PyThreadState *ts, Trace *t, uint32_t snap,
                            PyLive *live, int n, int unit);

void
core_owner_init(CoreOwner *own, CoreState *state)
{
    memset(own, 0, sizeof(*own));
    own->state = state;
    own->config = state->config;
    own->exec.go_on = core_go_on;
}

static void
trace_kill(Trace *t)
{
    t->dead = true;
    if (t->running == 0 || tape_drops(t, CC_DROP_RUNNING)) {
        tape_free(t);
    }
}

/* Calls may be running: what they stand on stays until they end. */
void
core_owner_reset(CoreOwner *own)
{
    CoreBreak *brk = own->brk;
    uint32_t nbrk = own->nbrk;

    Py_CLEAR(own->misses);
    own->brk = NULL;
    own->nbrk = 0;
    for (uint32_t i = 0; i < own->ntraces; i++) {
        CodeTraces *ct = own->traces[i];
        Trace **root = ct->root;
        uint32_t n = ct->nroot;
        ct->root = NULL;
        ct->nroot = ct->tries = 0;
        ct->closed = false;
        for (uint32_t k = 0; k < n; k++) {
            trace_kill(root[k]);
        }
        cc_free(root);
    }
    for (uint32_t i = 0; i < nbrk; i++) {
        Py_DECREF(brk[i].code);
    }
    cc_free(brk);
}

void
core_owner_fini(CoreOwner *own)
{
    core_owner_reset(own);
    for (uint32_t i = 0; i < own->ntraces; i++) {
        Py_DECREF(own->traces[i]->code);
        cc_free(own->traces[i]);
    }
    cc_free(own->traces);
    own->traces = NULL;
    own->ntraces = 0;
}

int
core_owner_traverse(CoreOwner *own, visitproc visit, void *arg)
{
    for (uint32_t i = 0; i < own->ntraces; i++) {
        Py_VISIT(own->traces[i]->code);
        for (uint32_t k = 0; k < own->traces[i]->nroot; k++) {
            int err = tape_traverse(own->traces[i]->root[k], visit, arg);
            if (err) {
                return err;
            }
        }
    }
    for (uint32_t i = 0; i < own->nbrk; i++) {
        Py_VISIT(own->brk[i].code);
    }
    return 0;
}

static CodeTraces *
find_traces(CoreOwner *own, PyCodeObject *code)
{
    for (uint32_t i = 0; i < own->ntraces; i++) {
        if (own->traces[i]->code == code) {
            return own->traces[i];
        }
    }
    CodeTraces *ct = cc_calloc(1, sizeof(*ct));
    CodeTraces **grown = cc_realloc(own->traces, (own->ntraces + 1) * sizeof(*grown));
    if (grown != NULL) {
        own->traces = grown;
    }
    if (ct == NULL || grown == NULL) {
        cc_free(ct);
        return NULL;
    }
    ct->code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    own->traces[own->ntraces++] = ct;
    return ct;
}

/* -- Counting --------------------------------------------------------------------------- */

#define COUNT(own, name, n) ((own)->count.name += (n), (own)->state->count.name += (n))

/* What the executor has counted goes to the callable's and the process's numbers. */
static void
take_counts(CoreOwner *own)
{
    ExecOwner *e = &own->exec;

    COUNT(own, replayed, e->replayed);
    COUNT(own, side_exits, e->side_exits);
    COUNT(own, array_ops_in_kernels, e->ops_kernel);
    COUNT(own, array_ops_extern, e->ops_node);
    COUNT(own, array_ops_residual, e->ops_residual);
    COUNT(own, faults, e->faults);
    e->replayed = e->side_exits = e->ops_kernel = e->ops_node = e->ops_residual = e->faults = 0;
}

/* -- Recording ----------------------------------------------------------------------------- */

static RecOptions
rec_options(const CoreOwner *own)
{
    const CcConfig *c = &own->config;

    return (RecOptions){
        .trace_limit = (uint32_t)c->trace_limit,
        .inline_depth = (uint32_t)c->inline_depth,
        .unroll = c->unroll > 64 ? 64 : (uint32_t)c->unroll,
        .fullgraph = own->fullgraph,
        .is_compiling = own->state->is_compiling,
        .graph_break = own->state->graph_break,
        .break_type = own->state->break_type != NULL ? own->state->break_type : PyExc_RuntimeError,
        .is_disabled = core_is_disabled,
        .grad_hooks = own->state->grad_hooks,
        .drop = c->stress.drop,
        .stress_txn = (c->stress.bits & (1u << CC_STRESS_SNAP | 1u << CC_STRESS_TXN)) != 0,
    };
}

/* No side trace starts where the recording had to end. */
static void
close_end(Trace *t)
{
    if (t->end == CC_REASON_NONE) {
        return;
    }
    for (uint32_t pc = t->nins; pc-- > 0;) {
        if (t->ins[pc].op == TAPE_TXN) {
            t->exit[t->ins[pc].aux].closed = 1;
            return;
        }
    }
}

/* An end before anything was recorded is not worth a trace. */
static bool
worth_keeping(const Trace *t)
{
    uint32_t rows = 0;

    for (uint32_t pc = 0; pc < t->nins; pc++) {
        uint8_t op = t->ins[pc].op;
        rows += op != TAPE_TXN && op != TAPE_COMMIT && op != TAPE_EXIT && op != TAPE_POLL;
    }
    return rows > 0;
}

/* *signal: the exception of a signal handler that ran while the compiler did, else NULL. */
static Trace *
take_trace(CoreOwner *own, Recorder *r, PyObject **signal)
{
    Trace *t = NULL;
    CoreDump dump;

    COUNT(own, graph_breaks, r->nbrk);
    COUNT(own, recorded, 1);
    core_report_recording(own, r);
    if (rec_finish(r) && worth_keeping(r->t)) {
        t = r->t;
        r->t = NULL;
        close_end(t);
        core_dump_init(&dump, &own->state->config);
        if (own->backend != CORE_EAGER) {
            front_lower(t, &dump.watch);
        }
        if (own->backend == CORE_CUSTOM) {
            core_ask_backend(own, t);
        }
        if (own->backend == CORE_C && core_give_bodies(own, t) < 0) {
            *signal = py_exc_take();
        }
        core_log_guards(own, t);
        core_dump_end(&dump, own->state, t);
    } else {
        COUNT(own, discarded, 1);
    }
    return t;
}

/* The end of a call that was recorded: its result or exception, unless a signal handler's comes. */
static PyObject *
end_call_steal(PyObject *res, PyObject *exc, PyObject *signal)
{
    if (signal != NULL) {
        Py_XDECREF(res);
        if (exc != NULL) {
            PyException_SetContext(signal, exc);
        }
        res = NULL;
        exc = signal;
    }
    if (exc != NULL) {
        py_exc_give_steal(exc);
    }
    return res;
}

typedef struct {
    CoreOwner *own;
    PyFunctionObject *func;
    Recorder *r;
} RootRecording;

/* The hook has the frame of the function, with its arguments bound. */
static PyObject *
record_root_frame(PyThreadState *ts, PyIFrame *f, void *ctx)
{
    RootRecording *rec = ctx;
    Recorder *r = rec->r;
    PyLive live = {.f = f};
    PyCodeObject *co = py_frame_code_borrow(f);
    int n = py_nparams(co);

    r->t->ninputs = (uint32_t)n + 1;
    for (int i = 0; i <= n; i++) {
        rec_newreg(r, PHASE_PRE);
    }
    if (r->broken || py_live_link(ts, &live) < 0) {
        PyErr_Clear();                  /* CPython meets the same limit, or not */
        rec->r = NULL;
        rec_free(r);
        return py_frame_eval(ts, f, false);
    }
    if (rec_add_frame(r, &live, TAPE_REF(TAPE_REG, (uint32_t)n)) < 0) {
        py_live_unlink(ts, &live);
        rec->r = NULL;
        rec_free(r);
        return py_frame_eval(ts, f, false);
    }
    for (int i = 0; i < n; i++) {
        RecFrame *fr = &r->frame[0];
        fr->sh[i] = fr->slot[i] == NULL ? TAPE_NULL : TAPE_REF(TAPE_REG, (uint32_t)i);
    }
    return rec_run(r);
}

static void
add_root(CoreOwner *own, PyCodeObject *code, Trace *t)
{
    CodeTraces *ct = find_traces(own, code);
    Trace **grown = ct == NULL ? NULL : cc_realloc(ct->root, (ct->nroot + 1) * sizeof(*grown));

    if (grown == NULL) {
        tape_free(t);
        return;
    }
    ct->root = grown;
    memmove(grown + 1, grown, ct->nroot * sizeof(*grown));
    grown[0] = t;
    ct->nroot++;
}

static PyObject *
record_root(CoreOwner *own, PyFunctionObject *func, PyObject *const *args, size_t nargsf,
            PyObject *kwnames, PyThreadState *ts)
{
    RecOptions opt = rec_options(own);
    RootRecording rec = {.own = own, .func = func, .r = rec_new(ts, &opt)};
    PyCodeObject *code = (PyCodeObject *)Py_NewRef(func->func_code);

    if (rec.r == NULL) {
        Py_DECREF(code);
        return PyObject_Vectorcall((PyObject *)func, args, nargsf, kwnames);
    }
    own->depth++;
    PyObject *res =
        py_call_hooked(ts, (PyObject *)func, args, nargsf, kwnames, func, record_root_frame, &rec);
    own->depth--;
    PyObject *exc = res == NULL ? py_exc_take() : NULL, *signal = NULL;
    if (rec.r != NULL && rec.r->t->ninputs > 0) {
        Trace *t = take_trace(own, rec.r, &signal);
        if (t != NULL) {
            add_root(own, code, t);
        } else {
            CodeTraces *ct = find_traces(own, code);
            if (ct != NULL && !rec.r->raised_break &&
                ++ct->tries >= (uint32_t)own->config.recompile_limit) {
                ct->closed = true;
                core_log(own, CC_LOG_RECOMPILES,
                         "%U (%U:%d): nothing worth keeping was recorded in %u calls; "
                         "it runs as plain Python from now on",
                         code->co_qualname, code->co_filename, code->co_firstlineno, ct->tries);
            }
        }
    }
    rec_free(rec.r);
    Py_DECREF(code);
    return end_call_steal(res, exc, signal);
}

/* -- Side traces --------------------------------------------------------------------------------
 */

static Trace *
root_of(Trace *t)
{
    while (t->parent != NULL) {
        t = t->parent;
    }
    return t;
}

static bool
may_record_side(CoreOwner *own, Trace *t, uint32_t snap)
{
    TapeExit *ex = &t->exit[snap];
    const Trace *root = root_of(t);

    if (ex->closed || root->dead) {
        return false;
    }
    if (ex->nside < (uint32_t)own->config.side_limit
            && tape_count(root) <= (uint32_t)own->config.side_total) {
        return true;
    }
    ex->closed = 1;                     /* said once */
    return false;
}

static void
set_targets(Recorder *r, Trace *t)
{
    uint32_t up = 1;

    for (; t != NULL; t = t->parent, up++) {
        for (uint32_t i = 0; i < t->nanchor && r->ntargets < REC_MAX_ANCHORS; i++) {
            r->target[r->ntargets++] = (RecTarget){t, i, up};
        }
    }
}

/* Entry registers: the slots of all frames in order, then function and extra of each frame. */
static bool
side_frames(Recorder *r, Trace *t, uint32_t snap, PyLive *live, int n, int unit)
{
    uint32_t at = 0, nslots = 0;

    for (int i = 0; i < n; i++) {
        nslots += (uint32_t)py_frame_stacktop(live[i].f);
    }
    r->t->parent = t;
    r->t->parent_snap = snap;
    r->t->ninputs = nslots + 2 * (uint32_t)n;
    for (uint32_t i = 0; i < r->t->ninputs; i++) {
        rec_newreg(r, PHASE_PRE);
    }
    if (r->broken) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        uint32_t func = nslots + 2 * (uint32_t)i;
        if (rec_add_frame(r, &live[i], TAPE_REF(TAPE_REG, func)) < 0) {
            return false;
        }
        RecFrame *fr = &r->frame[i];
        fr->extra = live[i].extra == NULL ? TAPE_NULL : TAPE_REF(TAPE_REG, func + 1);
        fr->unit = live[i].unit;
        fr->next = i == n - 1 ? unit : live[i].next;
        fr->start = fr->next;
        for (int k = 0; k < fr->sp; k++, at++) {
            fr->sh[k] = fr->slot[k] == NULL ? TAPE_NULL : TAPE_REF(TAPE_REG, at);
            /* the frames may be its only holders */
            r->reg[at].foreign = fr->slot[k] != NULL && !rec_is_inert(fr->slot[k]);
        }
    }
    return true;
}

static void
add_side(Trace *t, uint32_t snap, Trace *side)
{
    TapeExit *ex = &t->exit[snap];
    Trace **grown = cc_realloc(ex->side, (ex->nside + 1) * sizeof(*grown));

    if (grown == NULL) {
        tape_free(side);
        return;
    }
    ex->side = grown;
    ex->side[ex->nside++] = side;
}

static PyObject *
core_go_on(ExecOwner *exec, PyThreadState *ts, Trace *t, uint32_t snap, PyLive *live, int n,
           int unit)
{
    CoreOwner *own = (CoreOwner *)exec;
    RecOptions opt = rec_options(own);

    PyObject *told = core_exit_text(own, t, snap);
    bool open = !t->exit[snap].closed;
    if (!may_record_side(own, t, snap) || py_tracing(ts)) {
        PyObject *plain = core_log_exit_steal(own, told, py_chain_run(ts, live, n, unit));
        if (open && t->exit[snap].closed) {
            core_log_side_limit(own, t, snap);
        }
        return plain;
    }
    Recorder *r = rec_new(ts, &opt);
    if (r == NULL || !side_frames(r, t, snap, live, n, unit)) {
        for (int i = 0; r != NULL && i < r->nframes; i++) {
            Py_CLEAR(r->frame[i].bytes);
            cc_free(r->frame[i].sh);
        }
        rec_free(r);
        return core_log_exit_steal(own, told, py_chain_run(ts, live, n, unit));
    }
    set_targets(r, t);
    own->depth++;
    PyObject *res = rec_run(r);
    own->depth--;
    PyObject *exc = res == NULL ? py_exc_take() : NULL, *signal = NULL;
    Trace *side = take_trace(own, r, &signal);
    if (side != NULL && !root_of(t)->dead) {
        add_side(t, snap, side);
    } else {
        tape_free(side);
        t->exit[snap].closed |= !r->raised_break;       /* the next call must hear of it again */
    }
    rec_free(r);
    return core_log_exit_steal(own, told, end_call_steal(res, exc, signal));
}

/* -- A call
 * ---------------------------------------------------------------------------------------- */

/* The arguments as the inputs of root traces: 1, 0 when plain Python must make the call. */
static int
bind_inputs(PyFunctionObject *func, PyObject *const *args, size_t nargsf, PyObject *kwnames,
            PyObject **slot, int *n)
{
    *n = py_nparams((PyCodeObject *)func->func_code);
    if (*n >= CORE_MAX_SLOTS) {
        return 0;
    }
    memset(slot, 0, (size_t)*n * sizeof(*slot));
    if (py_bind(func, args, PyVectorcall_NARGS(nargsf), kwnames, slot) <= 0) {
        PyErr_Clear();
        return 0;
    }
    slot[*n] = Py_NewRef((PyObject *)func);
    return 1;
}

static bool
replay(CoreOwner *own, CodeTraces *ct, PyThreadState *ts, PyObject *const *slot, PyObject **res)
{
    for (uint32_t i = 0; i < ct->nroot; i++) {  /* another thread may add or reset meanwhile */
        Trace *t = ct->root[i];
        if (exec_run(&own->exec, ts, t, slot, res)) {
            take_counts(own);
            return true;
        }
    }
    return false;
}

/* Advice, not an event of the program's: a filter that makes errors of warnings does not stop it.
 */
static void
warn_limit(CodeTraces *ct, CoreOwner *own)
{
    PyCodeObject *co = (PyCodeObject *)Py_NewRef(ct->code);
    long long limit = (long long)own->config.recompile_limit;
    PyObject *why = ct->nroot > 0 ? tape_describe(ct->root[0], ct->root[0]->failed) : NULL;

    ct->closed = true;                  /* what follows may run code of the program */
    PyErr_Clear();
    core_log(own, CC_LOG_RECOMPILES, "%U (%U:%d): recompile_limit %lld is reached", co->co_qualname,
             co->co_filename, co->co_firstlineno, limit);
    int err = PyErr_WarnFormat(
        PyExc_RuntimeWarning, 1,
        "ccompile: %U was recorded %lld times for different arguments or state; it "
        "runs as plain Python from now on where no trace fits. Last guard that "
        "failed: %S (options={'recompile_limit': n} raises the limit)",
        co->co_qualname, limit, why == NULL ? Py_None : why);
    Py_XDECREF(why);
    Py_DECREF(co);
    if (err < 0) {
        PyErr_Clear();
    }
}

static PyObject *
plain_call(CoreOwner *own, PyFunctionObject *func, PyObject *const *args, size_t nargsf,
           PyObject *kwnames)
{
    COUNT(own, fallback, 1);
    return PyObject_Vectorcall((PyObject *)func, args, nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET,
                               kwnames);
}

PyObject *
core_call(CoreOwner *own, PyFunctionObject *func, PyObject *const *args, size_t nargsf,
          PyObject *kwnames)
{
    PyThreadState *ts = PyThreadState_Get();
    PyObject *slot[CORE_MAX_SLOTS], *res = NULL;
    int n;

    if (!own->state->works || py_tracing(ts) ||
        py_code_monitored((PyCodeObject *)func->func_code) || !rec_inlineable((PyObject *)func)) {
        return plain_call(own, func, args, nargsf, kwnames);
    }
    CodeTraces *ct = find_traces(own, (PyCodeObject *)func->func_code);
    if (ct == NULL || !bind_inputs(func, args, nargsf, kwnames, slot, &n)) {
        return plain_call(own, func, args, nargsf, kwnames);
    }
    own->exec.stress_exit = own->config.stress.exit_every;
    bool done = ct->nroot > 0 && replay(own, ct, ts, slot, &res);
    PyObject *exc = done && res == NULL ? py_exc_take() : NULL;
    for (int i = 0; i <= n; i++) {
        Py_XDECREF(slot[i]);
    }
    if (exc != NULL) {
        py_exc_give_steal(exc);
    }
    if (done) {
        return res;
    }
    ct = find_traces(own, (PyCodeObject *)func->func_code);
    if (ct != NULL && !ct->closed && ct->nroot >= (uint32_t)own->config.recompile_limit) {
        warn_limit(ct, own);
        return plain_call(own, func, args, nargsf, kwnames);
    }
    if (ct == NULL || ct->closed || own->depth > 8) {
        return plain_call(own, func, args, nargsf, kwnames);
    }
    if (ct->nroot > 0) {
        core_report_miss(own, ct);
    }
    return record_root(own, func, args, nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET, kwnames, ts);
}
