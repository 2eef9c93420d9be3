/* exec/run.c - the loop that runs a tape.
 *
 * Until COMMIT a row may fail: everything it made is in registers, so throwing the registers away
 * leaves the program at the transaction's snapshot. Rows that run foreign code stand alone and do
 * so in real frames. The frames of a residual call are taken down again unless somebody looked at
 * them or it raised; then the program goes on in those very frames. */
#include "exec.h"

#include "../base/dump.h"
#include "../base/mem.h"
#include "../front/lower.h"
#include "../py/compat.h"

#include <limits.h>
#include <string.h>

enum { RUN_MAX_OPERANDS = 256 };

typedef struct {
    ExecOwner *own;
    PyThreadState *ts;
    Act *act;
    uint32_t pc;
    PyLive live[EXEC_MAX_FRAMES]; /* frames of a residual call in which the program must go on */
    int nlive;
    int gc_was_on;
    uint32_t exit_snap; /* where a row that failed leaves the program, if not at its TXN */
    bool stopped;                       /* at an EXIT row */
    PyObject *result;
} Run;

typedef enum { RUN_NEXT, RUN_FAIL, RUN_MISS, RUN_END } RunStatus;

/* -- Activations ------------------------------------------------------------------------ */

static Act *
act_new(Trace *t, Act *parent)
{
    size_t room = t->nreg + 1 + (size_t)t->max_image + t->nids + 1;
    Act *act = cc_realloc(NULL, sizeof(*act) + room * sizeof(PyObject *));

    if (act != NULL) {
        memset(act, 0, sizeof(*act) + (t->nreg + 1) * sizeof(PyObject *));
        act->t = t;
        act->reg = (PyObject **)(act + 1);
        act->image = act->reg + t->nreg + 1;
        act->memo = act->image + t->max_image;
        act->parent = parent;
        t->running++;
        t->entered++;
    }
    return act;
}

/* An exception that is set stays set: a finaliser may run here. */
static void
act_free(Act *act)
{
    while (act != NULL) {
        Act *up = act->parent;
        Trace *t = act->t;
        PyObject *exc = PyErr_Occurred() ? py_exc_take() : NULL;
        for (uint32_t i = 0; i < t->nreg; i++) {
            Py_CLEAR(act->reg[i]);
        }
        cc_free(act);
        if (--t->running == 0 && t->dead) {
            tape_free(t);
        }
        if (exc != NULL) {
            py_exc_give_steal(exc);
        }
        act = up;
    }
}

/* A side trace goes on with the objects of the image: only what a jump back needs stays here, so
 * that objects die when the program lets them go. */
static void
act_trim(Act *act)
{
    const Trace *t = act->t;

    for (uint32_t i = 0; i < t->nreg; i++) {
        if (t->keep == NULL || !t->keep[i]) {
            Py_CLEAR(act->reg[i]);
        }
    }
}

static void
act_set_steal(Act *act, const TapeIns *in, PyObject *value)
{
    if (in->dst == 0) {
        Py_XDECREF(value);
        return;
    }
    PyObject *old = act->reg[in->dst - 1];
    act->reg[in->dst - 1] = value;
    Py_XDECREF(old);
}

/* -- Operations --------------------------------------------------------------------------- */

static bool
result_fits(const Trace *t, const TapeIns *in, PyObject *res)
{
    const TapeCheck *chk = &t->chk[in->check];
    int16_t dtype, ndim;

    if (in->check == 0) {
        return true;
    }
    if ((PyObject *)Py_TYPE(res) != t->konst[chk->type]) {
        return false;
    }
    if (chk->ndim < 0) {
        return true;
    }
    front_result(res, &dtype, &ndim);
    return dtype == chk->dtype && ndim == chk->ndim;
}

/* The operation of a row on its operands; virtual ones are built for it. NULL with an exception. */
static PyObject *
run_operation(const Act *act, const TapeIns *in)
{
    PyObject *a[RUN_MAX_OPERANDS], *built[RUN_MAX_OPERANDS];
    const Trace *t = act->t;
    PyObject *res = NULL;
    uint32_t nbuilt = 0;
    bool ok = true;

    for (uint32_t i = 0; i < in->n && ok; i++) {
        TapeRef ref = t->opnd[in->arg + i];
        if (TAPE_KIND(ref) == TAPE_VIRT) {
            a[i] = exec_image_value(act, ref);
            ok = a[i] != NULL;
            if (ok) {
                built[nbuilt++] = a[i];
            }
        } else {
            a[i] = act_get(act, ref);
        }
    }
    if (ok) {
        res = tape_call((CallKind)in->sub, in->aux, a, in->n, t->konst[in->kw]);
    }
    while (nbuilt > 0) {
        Py_DECREF(built[--nbuilt]);
    }
    return res;
}

static RunStatus
run_pure(Run *run, const TapeIns *in)
{
    PyObject *res = run_operation(run->act, in);

    if (res == NULL || !result_fits(run->act->t, in, res)) {
        if (res == NULL && PyErr_ExceptionMatches(PyExc_FloatingPointError)) {
            run->own->faults++;
            run->act->t->faults++;
        }
        Py_XDECREF(res);
        PyErr_Clear();
        return RUN_FAIL;
    }
    act_set_steal(run->act, in, res);
    return RUN_NEXT;
}

/* Rows from pc on, by the framework. */
static RunStatus
run_nodes(Run *run, uint32_t pc, uint32_t n)
{
    FrontFp fp = {0};
    RunStatus st = RUN_NEXT;
    bool silent = tape_drops(run->act->t, CC_DROP_FAULT);

    if (!silent && front_fp_begin(&fp) < 0) {
        PyErr_Clear();
        return RUN_FAIL;
    }
    for (uint32_t i = 0; i < n && st == RUN_NEXT; i++) {
        st = run_pure(run, &run->act->t->ins[pc + i]);
    }
    if (!silent) {
        front_fp_end(&fp);
    }
    run->own->ops_node += n;
    return st;
}

static RunStatus
run_graph(Run *run, const FrontStep *step, uint32_t ignored)
{
    Act *act = run->act;
    FrontRan how = front_launch(step->graph, act->t, act->reg, ignored);

    PyErr_Clear();
    run->own->faults += how == FRONT_FAULT;
    act->t->faults += how == FRONT_FAULT;
    run->own->ops_kernel += how == FRONT_RAN ? step->n : 0;
    return how == FRONT_RAN ? RUN_NEXT : RUN_FAIL;
}

/* All array work of the transaction: graphs where there are any, else the framework. Vector math
 * says nothing true about underflow, so a program that wants to hear of it gets the framework. */
static RunStatus
run_launch(Run *run, const TapeIns *in)
{
    const FrontPlans *plans = front_plans(run->act->t);
    uint32_t pc = run->pc, end = pc + in->aux;
    RunStatus st = RUN_NEXT;

    run->pc = end;
    if (in->check == 0 || plans == NULL) {
        return run_nodes(run, pc, in->aux);
    }
    int ignored = front_fp_ignored();
    if (tape_drops(run->act->t, CC_DROP_FAULT)) {
        ignored = INT_MAX;
    }
    if (ignored < 0 || !(ignored & CC_FAULT_UNDERFLOW)) {
        PyErr_Clear();
        return run_nodes(run, pc, in->aux);
    }
    for (const FrontStep *step = &plans->step[in->check - 1]; pc < end && st == RUN_NEXT; step++) {
        uint32_t n = step->n;
        if (step->graph != NULL) {
            st = run_graph(run, step, (uint32_t)ignored);
        } else {
            for (const FrontStep *next = step + 1; pc + n < end && next->graph == NULL; next++) {
                n += next->n;
                step = next;
            }
            st = run_nodes(run, pc, n);
        }
        pc += n;
    }
    return st;
}

/* One WRITE row, or whether it would succeed. */
static bool
do_write(const Act *act, const TapeIns *in, bool write)
{
    PyObject *target = act_operand(act, in, 0), *contents = act_operand(act, in, 1);
    PyObject *index[TAPE_MAX_NDIM];

    if (target == NULL || contents == NULL) {
        return false;
    }
    if (in->sub == 1) {
        for (uint32_t i = 2; i < in->n; i++) {
            index[i - 2] = act_operand(act, in, i);
            if (index[i - 2] == NULL) {
                return false;
            }
        }
        return front_element(target, index, in->n - 2u, contents, write);
    }
    if (!front_write_fits(target, contents)) {
        return false;
    }
    if (write) {
        front_write(target, contents);
    }
    return true;
}

/* What the transaction writes to the program's memory: all rows are checked, then none can fail. */
static RunStatus
run_writes(Run *run)
{
    const Act *act = run->act;
    const TapeIns *first = &act->t->ins[run->pc - 1], *end = first;

    for (; end->op == TAPE_WRITE; end++) {
        if (!do_write(act, end, false)) {
            return RUN_FAIL;
        }
    }
    for (const TapeIns *in = first; in < end; in++) {
        do_write(act, in, true);
    }
    run->pc += (uint32_t)(end - first) - 1;
    return RUN_NEXT;
}

/* For tests: as if nothing could fail any more. */
static void
write_early(Run *run)
{
    uint32_t pc = run->pc;
    const Trace *t = run->act->t;

    while (t->ins[pc].op != TAPE_WRITE && t->ins[pc].op != TAPE_COMMIT) {
        pc++;
    }
    for (; t->ins[pc].op == TAPE_WRITE; pc++) {
        do_write(run->act, &t->ins[pc], true);
    }
}

/* -- Residual rows --------------------------------------------------------------------------- */

static int
push_live(Run *run, uint32_t snap, int pop)
{
    Image im;
    int err;

    if (!exec_image_build(run->act, snap, &im)) {
        PyErr_NoMemory();
        return -1;
    }
    err = exec_frames_push(run->ts, run->act->t, snap, &im, pop, run->live);
    exec_image_drop(&im);
    if (err == 0) {
        run->nlive = (int)run->act->t->snap[snap].nframes;
    }
    return err;
}

static RunStatus
end_with(Run *run, PyObject *result)
{
    run->result = result;
    run->nlive = 0;
    return RUN_END;
}

/* A residual operation raised in the frames that stand. */
static RunStatus
end_raised(Run *run, int unit)
{
    int n = run->nlive;

    act_free(run->act);
    run->act = NULL;
    return end_with(run, exec_frames_raise(run->ts, run->live, n, unit));
}

/* The program is at `snap` in the frames that stand: their own locals hold, the innermost stack
 * above what the operation left is filled in. */
static RunStatus
end_in_place(Run *run, uint32_t snap)
{
    const Trace *t = run->act->t;
    const TapeSnap *s = &t->snap[snap];
    const TapeFrame *f = &t->frame[s->frame + s->nframes - 1];
    PyIFrame *top = run->live[run->nlive - 1].f;
    Image im;
    int n = run->nlive;

    if (!exec_image_build(run->act, snap, &im)) {
        PyErr_NoMemory();
        return end_raised(run, run->live[n - 1].unit);
    }
    PyObject **slot = py_frame_slots(top), **obj = im.obj + im.nslots - (f->nlocals + f->nstack);
    int have = py_frame_stacktop(top), want = (int)(f->nlocals + f->nstack);
    for (int i = have; i < want; i++) {
        slot[i] = obj[i];
        obj[i] = NULL;
    }
    for (int i = want; i < have; i++) {
        Py_CLEAR(slot[i]);
    }
    py_frame_set_stacktop(top, want);
    exec_image_drop(&im);
    int unit = f->unit;
    act_free(run->act);
    run->act = NULL;
    run->own->side_exits++;
    return end_with(run, py_chain_run(run->ts, run->live, n, unit));
}

static RunStatus
run_residual(Run *run, TapeIns *in)
{
    uint32_t snap = run->act->t->ins[run->act->txn].aux;
    bool frames = !(in->flags & TAPE_NOFRAME);
    PyObject *res;

    if (frames && push_live(run, snap, in->pop) < 0) {
        act_free(run->act);
        run->act = NULL;
        return end_with(run, NULL);
    }
    if (frames) {
        py_frame_set_running(run->live[run->nlive - 1].f, (int)in->unit);
    }
    if (frames) {
        py_gc_release(run->gc_was_on);
    }
    res = run_operation(run->act, in);
    if (frames) {
        run->gc_was_on = py_gc_hold();
    }
    run->own->ops_residual += (in->flags & TAPE_ARRAYS) != 0;
    if (res == NULL) {
        if (!frames) {
            PyObject *exc = py_exc_take();
            int err = push_live(run, snap, in->pop);
            if (err < 0) {
                Py_XDECREF(exc);
                act_free(run->act);
                run->act = NULL;
                return end_with(run, NULL);
            }
            py_exc_give_steal(exc);
        }
        return end_raised(run, (int)in->unit);
    }
    bool other = in->alt != 0 && (res != tape_end_borrow()) != in->check;
    act_set_steal(run->act, in, res);
    bool stay = frames && !tape_drops(run->act->t, CC_DROP_INPLACE)
        && (exec_frames_looked_at(run->live, run->nlive) || py_tracing(run->ts));
    if (frames && !stay) {
        exec_frames_pop(run->ts, run->live, run->nlive);
        run->nlive = 0;
    }
    if (!other) {
        return RUN_NEXT;                /* frames that were seen are met at the next TXN */
    }
    if (stay) {
        return end_in_place(run, in->alt - 1);
    }
    run->exit_snap = in->alt - 1;
    return RUN_FAIL;
}

static RunStatus
run_poll(Run *run)
{
    uint32_t snap = run->act->t->ins[run->act->txn].aux;

    if (!py_breaker_set(run->ts)) {
        return RUN_NEXT;
    }
    if (push_live(run, snap, 0) < 0) {
        act_free(run->act);
        run->act = NULL;
        return end_with(run, NULL);
    }
    py_gc_release(run->gc_was_on);
    int err = py_poll(run->ts);
    run->gc_was_on = py_gc_hold();
    if (err < 0) {
        return end_raised(run, run->live[run->nlive - 1].unit);
    }
    if (exec_frames_looked_at(run->live, run->nlive) || py_tracing(run->ts)) {
        return end_in_place(run, snap);
    }
    exec_frames_pop(run->ts, run->live, run->nlive);
    run->nlive = 0;
    return RUN_NEXT;
}

/* -- Loops and ends ---------------------------------------------------------------------------- */

/* Parallel move into the carried registers of an anchor of `to`. */
static void
carry(const Act *from, const TapeIns *in, Act *to, const TapeAnchor *an)
{
    PyObject *value[RUN_MAX_OPERANDS];

    bool one_by_one = tape_drops(from->t, CC_DROP_PARALLEL);

    for (uint32_t i = 0; i < in->n && !one_by_one; i++) {
        value[i] = Py_XNewRef(act_operand(from, in, i));
    }
    for (uint32_t i = 0; i < in->n; i++) {
        PyObject **reg = &to->reg[to->t->opnd[an->first + i]];
        PyObject *old = *reg;
        *reg = one_by_one ? Py_XNewRef(act_operand(from, in, i)) : value[i];
        Py_XDECREF(old);
    }
}

static void
run_jump(Run *run, const TapeIns *in)
{
    Act *from = run->act, *to = from;

    for (uint32_t up = in->check; up > 0; up--) {
        to = to->parent;
    }
    carry(from, in, to, &to->t->anchor[in->aux]);
    run->act = to;
    run->pc = to->t->anchor[in->aux].pc + 1;
    while (from != to) {
        Act *up = from->parent;
        from->parent = NULL;
        from->t->completed++;
        act_free(from);
        from = up;
    }
}

static RunStatus
run_return(Run *run, const TapeIns *in)
{
    PyObject *res = Py_NewRef(act_operand(run->act, in, 0));

    run->act->t->completed++;
    run->own->replayed++;
    act_free(run->act);
    run->act = NULL;
    return end_with(run, res);
}

static void
run_commit(Run *run, const TapeIns *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        Py_CLEAR(run->act->reg[TAPE_INDEX(run->act->t->opnd[in->arg + i])]);
    }
}

static RunStatus
run_txn(Run *run)
{
    if (!tape_drops(run->act->t, CC_DROP_TXN)) {
        run->act->txn = run->pc - 1;
    }
    if (run->nlive > 0) {
        return end_in_place(run, run->act->t->ins[run->pc - 1].aux);
    }
    return RUN_NEXT;
}

/* Only dispatches. */
static RunStatus
run_row(Run *run, TapeIns *in)
{
    Act *act = run->act;
    RunStatus st;
    PyObject *v;

    switch ((TapeOp)in->op) {
    case TAPE_TXN:
        return run_txn(run);
    case TAPE_COMMIT:
        run_commit(run, in);
        return RUN_NEXT;
    case TAPE_ANCHOR:
    case TAPE_BACK:
        carry(act, in, act, &act->t->anchor[in->aux]);
        run->pc = act->t->anchor[in->aux].pc + 1;
        return RUN_NEXT;
    case TAPE_JUMP:
        run_jump(run, in);
        return RUN_NEXT;
    case TAPE_EXIT:
        run->stopped = true;
        return RUN_FAIL;
    case TAPE_RET:
        return run_return(run, in);
    case TAPE_POLL:
        return run_poll(run);
    case TAPE_LAUNCH:
        st = run_launch(run, in);
        if (st == RUN_NEXT && tape_drops(run->act->t, CC_DROP_EARLY)) {
            write_early(run);
        }
        return st;
    case TAPE_PCALL:
    case TAPE_NODE:
        return run_pure(run, in);
    case TAPE_MKOBJ:
        v = exec_image_value(act, act->t->opnd[in->arg]);
        if (v == NULL) {
            PyErr_Clear();
            return RUN_FAIL;
        }
        act_set_steal(act, in, v);
        return RUN_NEXT;
    case TAPE_WRITE:
        return run_writes(run);
    case TAPE_RCALL:
        return run_residual(run, in);
    case TAPE_DROP:
        Py_CLEAR(act->reg[TAPE_INDEX(act->t->opnd[in->arg])]);
        return RUN_NEXT;
    default:
        if (in->dst == 0) {
            return exec_guard(act, in) ? RUN_NEXT : RUN_FAIL;
        }
        v = exec_load(act, in);
        if (v == NULL) {
            return RUN_FAIL;
        }
        act_set_steal(act, in, v);
        return RUN_NEXT;
    }
}

/* -- Exits
 * ----------------------------------------------------------------------------------------- */

/* The program is at `snap` of the activation's trace: a side trace that fits, or frames. */
static RunStatus
leave_at(Run *run, uint32_t snap, uint32_t first_side, Image *im)
{
    Act *act = run->act;
    Trace *t = act->t;
    TapeExit *ex = &t->exit[snap];

    if (first_side < ex->nside) {
        Trace *side = ex->side[ex->nside - 1 - first_side];     /* most recent first */
        Act *sub = side->ninputs == im->n ? act_new(side, act) : NULL;
        if (sub != NULL) {
            for (uint32_t i = 0; i < im->n; i++) {
                sub->reg[i] = im->obj[i];
                im->obj[i] = NULL;
            }
            sub->side_index = first_side;
            act_trim(act);
            run->act = sub;
            run->pc = 0;
            return RUN_NEXT;
        }
    }
    run->own->side_exits++;
    int err = exec_frames_push(run->ts, t, snap, im, 0, run->live);
    exec_image_drop(im);
    const TapeSnap *s = &t->snap[snap];
    int n = (int)s->nframes, unit = t->frame[s->frame + s->nframes - 1].unit;
    if (err < 0) {
        act_free(act);
        run->act = NULL;
        return end_with(run, NULL);
    }
    Trace *root = t;
    while (root->parent != NULL) {
        root = root->parent;
    }
    root->running++;                    /* the owner may look at its traces and add to them */
    act_free(act);
    run->act = NULL;
    py_gc_release(run->gc_was_on);
    PyObject *res = run->own->go_on(run->own, run->ts, t, snap, run->live, n, unit);
    run->gc_was_on = py_gc_hold();
    if (--root->running == 0 && root->dead) {
        PyObject *exc = PyErr_Occurred() ? py_exc_take() : NULL;
        tape_free(root);
        if (exc != NULL) {
            py_exc_give_steal(exc);
        }
    }
    return end_with(run, res);
}

/* A side trace whose first transaction fails has not begun: its inputs are the parent's image. */
static RunStatus
side_missed(Run *run)
{
    Act *sub = run->act;
    uint32_t snap = sub->t->parent_snap, next = sub->side_index + 1;
    Image im = {.obj = sub->parent->image, .n = sub->t->ninputs};
    const TapeSnap *s = &sub->t->parent->snap[snap];

    im.nslots = im.n - 2 * s->nframes;
    for (uint32_t i = 0; i < im.n; i++) {
        im.obj[i] = sub->reg[i];
        sub->reg[i] = NULL;
    }
    run->act = sub->parent;
    sub->parent = NULL;
    act_free(sub);
    /* the parent was trimmed: its slots are the image, nothing else is asked of it */
    return leave_at(run, snap, next, &im);
}

static RunStatus
run_failed(Run *run)
{
    Act *act = run->act;
    Trace *t = act->t;
    uint32_t snap = run->exit_snap != UINT32_MAX ? run->exit_snap : t->ins[act->txn].aux;
    bool first = act->txn == 0 && run->exit_snap == UINT32_MAX && !run->stopped;
    Image im;

    t->failed = run->pc - 1;
    run->exit_snap = UINT32_MAX;
    run->stopped = false;
    if (first && act->parent == NULL) {
        return RUN_MISS;
    }
    if (first) {
        return side_missed(run);
    }
    t->exit[snap].exits++;
    if (!exec_image_build(act, snap, &im)) {
        act_free(act);
        run->act = NULL;
        PyErr_NoMemory();
        return end_with(run, NULL);
    }
    return leave_at(run, snap, 0, &im);
}

static bool
stress_fails(Run *run, const TapeIns *in)
{
    ExecOwner *own = run->own;

    if (own->stress_exit == 0 || !tape_row_info[in->op].can_fail || (in->flags & TAPE_BEHIND)) {
        return false;
    }
    return ++own->stress_count % own->stress_exit == 0;
}

bool
exec_run(ExecOwner *own, PyThreadState *ts, Trace *t, PyObject *const *input, PyObject **result)
{
    Run run = {.own = own, .ts = ts, .exit_snap = UINT32_MAX};
    RunStatus st = RUN_NEXT;

    run.act = act_new(t, NULL);
    if (run.act == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < t->ninputs; i++) {
        run.act->reg[i] = Py_XNewRef(input[i]);
    }
    run.gc_was_on = py_gc_hold();
    while (st == RUN_NEXT) {
        TapeIns *in = &run.act->t->ins[run.pc++];
        st = stress_fails(&run, in) ? RUN_FAIL : run_row(&run, in);
        if (st == RUN_FAIL) {
            st = run_failed(&run);
        }
    }
    py_gc_release(run.gc_was_on);
    if (st == RUN_MISS) {
        act_free(run.act);
        return false;
    }
    *result = run.result;
    return true;
}
