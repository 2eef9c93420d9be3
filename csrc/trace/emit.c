/* trace/emit.c - rows, transactions, snapshots, and the lifetimes of registers.
 *
 * A transaction collects its rows by phase (before, inside and after the launch) and writes them to
 * the tape when it closes. It opens when the first row needs it, with a snapshot of the slots as
 * they are: handlers emit before they change a slot, so that is the start of an instruction. */
#include "rec.h"

#include "../base/vec.h"

#include <string.h>

TapeIns
rec_ins(TapeOp op, uint8_t sub, uint32_t aux)
{
    return (TapeIns){.op = (uint8_t)op, .sub = sub, .aux = aux};
}

void
rec_new_epoch(Recorder *r)
{
    if (tape_drops(r->t, CC_DROP_REVALIDATE)) {
        return;
    }
    r->epoch++;
    r->nload = 0;
}

uint32_t
rec_place(Recorder *r)
{
    Trace *t = r->t;
    RecFrame *fr = rec_top(r);
    TapePlace place = {fr->code_k, fr->unit};

    if (t->nplace > 0 && t->place[t->nplace - 1].code == place.code
            && t->place[t->nplace - 1].unit == place.unit) {
        return t->nplace - 1;
    }
    if (!CC_GROW(t->place, t->nplace, r->cap_place, 1)) {
        r->broken = true;
        return 0;
    }
    t->place[t->nplace] = place;
    return t->nplace++;
}

/* -- Snapshots --------------------------------------------------------------------- */

static TapeRef
snap_ref(Recorder *r, TapeRef ref)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) == TAPE_VIRT) {
        return TAPE_REF(TAPE_VIRT, rec_virt_row(r, TAPE_INDEX(ref)));
    }
    return ref;
}

static void
snap_frame(Recorder *r, const RecFrame *fr, bool innermost)
{
    Trace *t = r->t;
    TapeFrame tf = {.code = fr->code_k, .nlocals = (uint32_t)fr->nlocals,
                    .nstack = (uint32_t)(fr->sp - fr->nlocals)};

    tf.func = snap_ref(r, fr->func);
    tf.extra = snap_ref(r, fr->extra);
    for (int i = 0; i < fr->sp; i++) {          /* rows of virtuals go to the pool first */
        snap_ref(r, fr->sh[i]);
    }
    tf.unit = innermost ? fr->start : fr->live.unit;
    tf.next = innermost ? fr->start : fr->live.next;
    tf.cont = innermost ? CONT_NONE : fr->live.cont;
    tf.cont_arg = innermost ? 0 : fr->live.cont_arg;
    if (r->broken || !CC_GROW(t->opnd, t->nopnd, r->cap_opnd, (uint32_t)fr->sp)
            || !CC_GROW(t->frame, t->nframe, r->cap_frame, 1)) {
        r->broken = true;
        return;
    }
    tf.slot = t->nopnd;
    for (int i = 0; i < fr->sp; i++) {
        t->opnd[t->nopnd++] = snap_ref(r, fr->sh[i]);
    }
    t->frame[t->nframe++] = tf;
}

uint32_t
rec_snapshot(Recorder *r)
{
    Trace *t = r->t;
    uint32_t first = t->nframe, slots = 0;

    if (r->grad != NULL) {
        return rec_grad_snapshot(r);
    }
    for (int i = 0; i < r->nframes; i++) {
        snap_frame(r, &r->frame[i], i == r->nframes - 1);
        slots += (uint32_t)r->frame[i].sp + 2;
    }
    if (r->broken || !CC_GROW(t->snap, t->nsnap, r->cap_snap, 1)) {
        r->broken = true;
        return 0;
    }
    t->max_image = slots > t->max_image ? slots : t->max_image;
    t->snap[t->nsnap] = (TapeSnap){first, (uint32_t)r->nframes};
    return t->nsnap++;
}

/* -- Transactions ------------------------------------------------------------------- */

static void
rows_push(Recorder *r, RecRows *rows, TapeIns ins)
{
    if (!CC_GROW(rows->row, rows->n, rows->cap, 1)) {
        r->broken = true;
        return;
    }
    rows->row[rows->n++] = ins;
}

static void
tape_push(Recorder *r, TapeIns ins)
{
    if (!CC_GROW(r->t->ins, r->t->nins, r->cap_ins, 1)) {
        r->broken = true;
        return;
    }
    r->t->ins[r->t->nins++] = ins;
}

static void
tape_push_rows(Recorder *r, RecRows *rows)
{
    for (uint32_t i = 0; i < rows->n; i++) {
        tape_push(r, rows->row[i]);
    }
    rows->n = 0;
}

static void
txn_open(Recorder *r)
{
    if (r->open) {
        return;
    }
    r->txn_snap = rec_snapshot(r);
    r->txn_icount = r->icount;
    r->open = true;
}

void
rec_close(Recorder *r)
{
    if (!r->open) {
        return;
    }
    rec_memory_flush(r);
    TapeIns head = rec_ins(TAPE_TXN, 0, r->txn_snap);
    head.where = rec_place(r);
    tape_push(r, head);
    tape_push_rows(r, &r->pre);
    if (r->node.n > 0) {
        tape_push(r, rec_ins(TAPE_LAUNCH, 0, r->node.n));
        tape_push_rows(r, &r->node);
    }
    tape_push_rows(r, &r->post);
    tape_push_rows(r, &r->write);
    tape_push(r, rec_ins(TAPE_COMMIT, 0, 0));
    r->open = false;
    r->txn++;
}

uint32_t
rec_open_here(Recorder *r)
{
    bool work = r->node.n > 0 || r->post.n > 0 || r->write.n > 0;
    bool late = tape_drops(r->t, CC_DROP_FLUSH) && r->npending > 0;

    if (r->open && !late && (r->txn_icount != r->icount || work)) {
        rec_close(r);
    }
    txn_open(r);
    return r->txn_snap;
}

/* -- Rows ------------------------------------------------------------------------------ */

static TapePhase
ref_phase(Recorder *r, TapeRef ref)
{
    TapePhase phase = PHASE_PRE;

    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) == TAPE_REG) {
        RecReg *reg = rec_reg(r, ref);
        return r->open && reg->txn == r->txn ? (TapePhase)reg->phase : PHASE_PRE;
    }
    if (TAPE_KIND(ref) == TAPE_VIRT && r->virt[TAPE_INDEX(ref)].mark != r->walk) {
        RecVirt *v = &r->virt[TAPE_INDEX(ref)];
        v->mark = r->walk;
        for (uint32_t i = 0; i < v->nfields; i++) {
            TapePhase p = ref_phase(r, v->field[i]);
            phase = p == PHASE_FLOAT || (p == PHASE_NODE && phase == PHASE_PRE) ? p : phase;
        }
    }
    return phase;
}

/* PRE < NODE < FLOAT (after the launch) */
static TapePhase
operands_phase(Recorder *r, const TapeRef *a, uint32_t n)
{
    TapePhase phase = PHASE_PRE;

    r->walk++;
    for (uint32_t i = 0; i < n; i++) {
        TapePhase p = ref_phase(r, a[i]);
        if (p == PHASE_FLOAT || (p == PHASE_NODE && phase == PHASE_PRE)) {
            phase = p;
        }
    }
    return phase;
}

static bool
push_operands(Recorder *r, TapeIns *ins, const TapeRef *a, uint32_t n)
{
    Trace *t = r->t;
    TapeRef *ref = NULL;
    uint32_t cap = 0;

    if (n > 0 && !CC_GROW(ref, 0, cap, n)) {
        r->broken = true;
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        ref[i] = snap_ref(r, a[i]);
    }
    if (r->broken || !CC_GROW(t->opnd, t->nopnd, r->cap_opnd, n)) {
        r->broken = true;
        cc_free(ref);
        return false;
    }
    ins->arg = t->nopnd;
    ins->n = (uint16_t)n;
    for (uint32_t i = 0; i < n; i++) {
        t->opnd[t->nopnd++] = ref[i];
    }
    cc_free(ref);
    return true;
}

static bool
guard_dropped(const Recorder *r, uint8_t op)
{
    static const uint8_t rule[TAPE__COUNT] = {
        [TAPE_GTYPE] = CC_DROP_TYPE,         [TAPE_GIS] = CC_DROP_IDENTITY,
        [TAPE_GEQ] = CC_DROP_VALUE,          [TAPE_GFUNC] = CC_DROP_FUNCTION,
        [TAPE_GTRUTH] = CC_DROP_TRUTH,       [TAPE_GLEN] = CC_DROP_LENGTH,
        [TAPE_GKEY] = CC_DROP_KEYS,          [TAPE_GKEYS] = CC_DROP_KEYS,
        [TAPE_GNOATTR] = CC_DROP_ABSENT,     [TAPE_GTYPEATTR] = CC_DROP_CLASS,
        [TAPE_GPURE] = CC_DROP_PLAIN,        [TAPE_GARR] = CC_DROP_ARRAY,
        [TAPE_GOVER] = CC_DROP_OVERLAP,
    };

    return rule[op] != 0 && tape_drops(r->t, rule[op]);
}

TapeRef
rec_emit(Recorder *r, TapeIns ins, const TapeRef *a, uint32_t n, bool result)
{
    TapePhase phase = tape_row_info[ins.op].phase;
    TapePhase have = operands_phase(r, a, n);

    if (r->broken || guard_dropped(r, ins.op)) {
        return TAPE_NULL;
    }
    if ((phase == PHASE_PRE && have != PHASE_PRE) || (phase == PHASE_NODE && have == PHASE_FLOAT)) {
        rec_close(r);
        have = PHASE_PRE;
    }
    txn_open(r);
    /* A pure call on a node's result comes after the launch. */
    TapePhase at = phase == PHASE_FLOAT ? (have == PHASE_PRE ? PHASE_PRE : PHASE_FLOAT) : phase;
    if (!push_operands(r, &ins, a, n)) {
        return TAPE_NULL;
    }
    TapeRef res = TAPE_NULL;
    if (result) {
        res = rec_newreg(r, at);
        ins.dst = TAPE_INDEX(res) + 1;
    }
    ins.where = rec_place(r);
    rows_push(r, at == PHASE_PRE ? &r->pre : at == PHASE_NODE ? &r->node
                                          : at == PHASE_WRITE ? &r->write : &r->post, ins);
    return res;
}

TapeRef
rec_emit_alone(Recorder *r, TapeIns ins, const TapeRef *a, uint32_t n, bool result)
{
    TapeRef res = TAPE_NULL;

    if (tape_drops(r->t, CC_DROP_FLUSH)) {
        txn_open(r);
    } else {
        rec_open_here(r);
    }
    if (r->broken || !push_operands(r, &ins, a, n)) {
        return TAPE_NULL;
    }
    if (result) {
        res = rec_newreg(r, PHASE_PRE);
        ins.dst = TAPE_INDEX(res) + 1;
    }
    ins.where = rec_place(r);
    rows_push(r, &r->pre, ins);
    rec_close(r);
    rec_new_epoch(r);
    return res;
}

/* The carried registers are in the slots of the innermost frame, in the order of `init`. */
void
rec_anchor(Recorder *r, const bool *stored, const TapeRef *init, uint32_t n)
{
    Trace *t = r->t;
    RecFrame *fr = rec_top(r);
    TapeAnchor an = {.ncarried = n};
    TapeIns ins = rec_ins(TAPE_ANCHOR, 0, t->nanchor);

    an.snap = rec_snapshot(r);
    if (r->broken || !CC_GROW(t->opnd, t->nopnd, r->cap_opnd, n) || !push_operands(r, &ins, init, n)
            || !CC_GROW(t->opnd, t->nopnd, r->cap_opnd, n)) {
        r->broken = true;
        return;
    }
    an.first = t->nopnd;
    for (int i = 0; i < fr->nlocals; i++) {
        if (stored[i] && fr->sh[i] != TAPE_NULL) {
            t->opnd[t->nopnd++] = TAPE_INDEX(fr->sh[i]);
        }
    }
    an.pc = t->nins;
    ins.where = rec_place(r);
    tape_push(r, ins);
    t->anchor[t->nanchor++] = an;
}

/* The tape ends in the residual row (and loads behind it) and its COMMIT: one more load goes
 * between. */
TapeRef
rec_emit_behind(Recorder *r, TapeRef tuple, uint32_t index)
{
    TapeRef a[2] = {tuple, rec_const_int(r, index)};
    TapeIns ins = rec_ins(TAPE_LDITEM, 0, 0);

    ins.flags = TAPE_BEHIND;
    if (r->broken || !push_operands(r, &ins, a, 2)) {
        return TAPE_NULL;
    }
    TapeIns commit = r->t->ins[--r->t->nins];
    TapeRef res = rec_newreg(r, PHASE_PRE);
    ins.dst = TAPE_INDEX(res) + 1;
    ins.where = commit.where;
    tape_push(r, ins);
    tape_push(r, commit);
    return res;
}

void
rec_end(Recorder *r, TapeIns last, const TapeRef *a, uint32_t n)
{
    if (last.op == TAPE_EXIT) {
        rec_open_here(r);
        last.where = rec_place(r);
        rows_push(r, &r->pre, last);
        rec_close(r);
        return;
    }
    rec_close(r);
    if (push_operands(r, &last, a, n)) {
        last.where = rec_place(r);
        tape_push(r, last);
    }
}

uint32_t
rec_check_of(Recorder *r, PyObject *real)
{
    Trace *t = r->t;
    TapeCheck chk = {.type = TAPE_INDEX(rec_const(r, (PyObject *)Py_TYPE(real)))};

    front_result(real, &chk.dtype, &chk.ndim);
    for (uint32_t i = 1; i < t->nchk; i++) {
        if (memcmp(&t->chk[i], &chk, sizeof(chk)) == 0) {
            return i;
        }
    }
    if (r->broken || !CC_GROW(t->chk, t->nchk, r->cap_chk, 1)) {
        r->broken = true;
        return 0;
    }
    t->chk[t->nchk] = chk;
    return t->nchk++;
}

/* -- Lifetimes ---------------------------------------------------------------------------- */

typedef struct {
    uint32_t *last;                     /* by register: row of its last use */
    uint32_t *seen;                     /* by virtual object: row + 1 of the last walk over it */
    Trace *t;
} Lives;

static void
live_use(Lives *lv, TapeRef ref, uint32_t pc)
{
    if (TAPE_KIND(ref) == TAPE_REG) {
        uint32_t *last = &lv->last[TAPE_INDEX(ref)];
        *last = *last < pc ? pc : *last;
    } else if (TAPE_KIND(ref) == TAPE_VIRT && lv->seen[TAPE_INDEX(ref)] != pc + 1) {
        lv->seen[TAPE_INDEX(ref)] = pc + 1;
        const TapeVirt *v = &lv->t->virt[TAPE_INDEX(ref)];
        for (uint32_t i = 0; i < v->nfields; i++) {
            live_use(lv, lv->t->opnd[v->first + i], pc);
        }
    }
}

static void
live_use_snap(Lives *lv, uint32_t snap, uint32_t pc)
{
    const Trace *t = lv->t;
    const TapeSnap *s = &t->snap[snap];

    for (uint32_t i = 0; i < s->nframes; i++) {
        const TapeFrame *f = &t->frame[s->frame + i];
        live_use(lv, f->func, pc);
        live_use(lv, f->extra, pc);
        for (uint32_t k = 0; k < f->nlocals + f->nstack; k++) {
            live_use(lv, t->opnd[f->slot + k], pc);
        }
    }
}

/* Every row of a transaction may leave to its snapshot: what that names lives to the COMMIT. */
static void
lives_scan(Lives *lv)
{
    Trace *t = lv->t;
    uint32_t snap = UINT32_MAX;

    for (uint32_t pc = 0; pc < t->nins; pc++) {
        const TapeIns *in = &t->ins[pc];
        if (in->op == TAPE_TXN) {
            snap = in->aux;
        }
        if (snap != UINT32_MAX) {
            live_use_snap(lv, snap, pc);
        }
        if (in->alt) {
            live_use_snap(lv, in->alt - 1, pc);
        }
        if (in->op != TAPE_COMMIT && in->op != TAPE_DROP) {
            for (uint32_t i = 0; i < in->n; i++) {
                live_use(lv, t->opnd[in->arg + i], pc);
            }
        }
        if (in->op == TAPE_COMMIT) {
            snap = UINT32_MAX;
        }
    }
}

static void
lives_define(const Trace *t, uint32_t *def)
{
    for (uint32_t i = 0; i < t->nreg; i++) {
        def[i] = 0;
    }
    for (uint32_t pc = 0; pc < t->nins; pc++) {
        if (t->ins[pc].dst) {
            def[t->ins[pc].dst - 1] = pc;
        }
    }
    for (uint32_t i = 0; i < t->nanchor; i++) {
        for (uint32_t k = 0; k < t->anchor[i].ncarried; k++) {
            def[t->opnd[t->anchor[i].first + k]] = UINT32_MAX;  /* never released by COMMIT */
        }
    }
    for (uint32_t pc = 0; pc < t->nins; pc++) {
        if (t->ins[pc].op == TAPE_DROP) {
            def[TAPE_INDEX(t->opnd[t->ins[pc].arg])] = UINT32_MAX;
        }
    }
}

static bool
commit_fill(Recorder *r, uint32_t pc, uint32_t begin, const uint32_t *last, const uint32_t *def,
            uint32_t anchor)
{
    Trace *t = r->t;
    TapeIns *in = &t->ins[pc];

    in->arg = t->nopnd;
    for (uint32_t i = 0; i < t->nreg; i++) {
        bool in_range = last[i] <= pc && last[i] > begin && def[i] != UINT32_MAX;
        bool before_loop = def[i] < anchor;     /* stays for all turns of the loop */
        if (in_range && !before_loop) {
            if (!CC_GROW(t->opnd, t->nopnd, r->cap_opnd, 1)) {
                return false;
            }
            t->opnd[t->nopnd++] = TAPE_REF(TAPE_REG, i);
            in->n++;
        }
    }
    return true;
}

/* Fill the operands of each COMMIT with the registers whose last use it is. */
static bool
lives_release(Recorder *r)
{
    Trace *t = r->t;
    uint32_t anchor = 0, begin = 0;     /* rows: the last ANCHOR and the last COMMIT */
    uint32_t *last = cc_calloc(t->nreg + 1, sizeof(*last));
    uint32_t *def = cc_calloc(t->nreg + 1, sizeof(*def));
    uint32_t *seen = cc_calloc(t->nvirt + 1, sizeof(*seen));
    bool ok = last != NULL && def != NULL && seen != NULL;

    if (ok) {
        Lives lv = {.last = last, .seen = seen, .t = t};
        lives_define(t, def);
        for (uint32_t i = 0; i < t->nreg; i++) {
            last[i] = def[i] == UINT32_MAX ? 0 : def[i];
        }
        lives_scan(&lv);
    }
    for (uint32_t pc = 0; ok && pc < t->nins; pc++) {
        if (t->ins[pc].op == TAPE_ANCHOR) {
            anchor = pc;
        }
        if (t->ins[pc].op == TAPE_COMMIT) {
            ok = commit_fill(r, pc, begin, last, def, anchor);
            begin = pc;
        }
    }
    cc_free(last);
    cc_free(seen);
    cc_free(def);
    return ok;
}

static bool
carries(const Trace *t, const TapeAnchor *an, uint32_t reg)
{
    for (uint32_t i = 0; i < an->ncarried; i++) {
        if (t->opnd[an->first + i] == reg) {
            return true;
        }
    }
    return false;
}

/* What a jump back to an anchor finds in registers: the slots that the anchor does not carry. */
static bool
keep_at_anchors(Trace *t)
{
    if (t->nanchor == 0 || tape_drops(t, CC_DROP_KEEP)) {
        return true;
    }
    t->keep = cc_calloc(t->nreg + 1, 1);
    for (uint32_t i = 0; t->keep != NULL && i < t->nanchor; i++) {
        const TapeSnap *s = &t->snap[t->anchor[i].snap];
        for (uint32_t k = 0; k < s->nframes; k++) {
            const TapeFrame *f = &t->frame[s->frame + k];
            for (uint32_t j = 0; j < f->nlocals + f->nstack + 2; j++) {
                TapeRef ref = j < f->nlocals + f->nstack ? t->opnd[f->slot + j]
                            : j == f->nlocals + f->nstack ? f->func : f->extra;
                if (TAPE_KIND(ref) == TAPE_REG && !carries(t, &t->anchor[i], TAPE_INDEX(ref))) {
                    t->keep[TAPE_INDEX(ref)] = 1;
                }
            }
        }
    }
    return t->keep != NULL;
}

bool
rec_finish(Recorder *r)
{
    CcStatus st;

    if (r->broken) {
        return false;
    }
    r->t->exit = cc_calloc(r->t->nsnap, sizeof(*r->t->exit));
    if (r->t->exit == NULL || !lives_release(r) || !keep_at_anchors(r->t)) {
        return false;
    }
    if (!tape_verify(r->t, &st)) {
        r->stop = st.reason;
        return false;
    }
    return true;
}
