/* tape/verify.c - the structure of a tape, checked after every recording.
 *
 * A finding is a bug of ours: the recording is thrown away and the program runs as plain Python. */
#include "tape.h"

#include "../base/mem.h"

typedef struct {
    const Trace *t;
    uint8_t *defined;                   /* by register */
    CcStatus *st;
    uint32_t pc;
    bool in_txn, writes;                /* it has begun to write */
} Verify;

static bool
bad(Verify *v, const char *what)
{
    return cc_fail(v->st, CC_REASON_BAD_TAPE, "row %u (%s): %s", v->pc,
                   v->pc < v->t->nins ? tape_row_info[v->t->ins[v->pc].op].name : "end", what);
}

static bool
verify_ref(Verify *v, TapeRef ref, int depth)
{
    uint32_t i = TAPE_INDEX(ref);

    switch (TAPE_KIND(ref)) {
    case TAPE_NULL:
        return true;
    case TAPE_REG:
        return i < v->t->nreg && v->defined[i] ? true : bad(v, "register used before it is set");
    case TAPE_CONST:
        return i < v->t->nkonst ? true : bad(v, "no such constant");
    case TAPE_VIRT:
        if (i >= v->t->nvirt || v->t->virt[i].id >= v->t->nids) {
            return bad(v, "no such virtual object");
        }
        for (uint32_t k = 0; depth < 8 && k < v->t->virt[i].nfields; k++) {
            if (!verify_ref(v, v->t->opnd[v->t->virt[i].first + k], depth + 1)) {
                return false;
            }
        }
        return true;
    default:
        return bad(v, "unknown kind of reference");
    }
}

static bool
verify_snap(Verify *v, uint32_t snap)
{
    const Trace *t = v->t;

    if (snap >= t->nsnap) {
        return bad(v, "no such snapshot");
    }
    const TapeSnap *s = &t->snap[snap];
    uint32_t objects = 0;
    for (uint32_t i = 0; i < s->nframes; i++) {
        const TapeFrame *f = &t->frame[s->frame + i];
        objects += f->nlocals + f->nstack + 2;
        PyCodeObject *co = (PyCodeObject *)t->konst[f->code];
        bool inner = i + 1 == s->nframes;
        if ((int)f->nlocals != co->co_nlocalsplus || (int)f->nstack > co->co_stacksize) {
            return bad(v, "a frame of the snapshot has the wrong size");
        }
        if (inner != (f->cont == CONT_NONE)) {
            return bad(v, "only the innermost frame is not in a call");
        }
        if (!verify_ref(v, f->func, 0) || !verify_ref(v, f->extra, 0)) {
            return false;
        }
        for (uint32_t k = 0; k < f->nlocals + f->nstack; k++) {
            if (!verify_ref(v, t->opnd[f->slot + k], 0)) {
                return false;
            }
        }
    }
    return objects <= t->max_image ? true : bad(v, "a snapshot of more objects than there is room");
}

static bool
verify_anchor(Verify *v, const TapeIns *in)
{
    if (in->aux >= v->t->nanchor) {
        return bad(v, "no such anchor");
    }
    const TapeAnchor *an = &v->t->anchor[in->aux];
    if (an->ncarried != in->n) {
        return bad(v, "wrong number of carried registers");
    }
    for (uint32_t i = 0; in->op == TAPE_ANCHOR && i < an->ncarried; i++) {
        v->defined[v->t->opnd[an->first + i]] = 1;
    }
    return true;
}

static bool
verify_row(Verify *v, const TapeIns *in)
{
    TapePhase phase = tape_row_info[in->op].phase;

    if (phase != PHASE_EDGE && !v->in_txn) {
        return bad(v, "outside a transaction");
    }
    if (v->writes && in->op != TAPE_WRITE && in->op != TAPE_COMMIT) {
        return bad(v, "behind what the transaction writes");
    }
    v->writes = in->op == TAPE_WRITE;
    if (in->op == TAPE_TXN) {
        if (v->in_txn) {
            return bad(v, "a transaction in a transaction");
        }
        v->in_txn = true;
        return verify_snap(v, in->aux);
    }
    for (uint32_t i = 0; i < in->n; i++) {
        if (!verify_ref(v, v->t->opnd[in->arg + i], 0)) {
            return false;
        }
    }
    if (in->dst != 0) {
        if (in->dst > v->t->nreg) {
            return bad(v, "no such register");
        }
        v->defined[in->dst - 1] = 1;
    }
    if (in->op == TAPE_COMMIT) {
        v->in_txn = false;
    }
    if (in->op == TAPE_ANCHOR || in->op == TAPE_BACK) {
        return verify_anchor(v, in);
    }
    if (in->op == TAPE_LAUNCH && v->pc + in->aux >= v->t->nins) {
        return bad(v, "a launch beyond the end");
    }
    return in->alt == 0 || verify_snap(v, in->alt - 1);
}

static bool
verify_end(Verify *v)
{
    const Trace *t = v->t;
    uint8_t op = t->nins > 0 ? t->ins[t->nins - 1].op : TAPE_TXN;

    if (op == TAPE_COMMIT && t->nins > 1) {     /* an EXIT stands in a transaction of its own */
        op = t->ins[t->nins - 2].op;
    }
    if (op != TAPE_RET && op != TAPE_BACK && op != TAPE_JUMP && op != TAPE_EXIT) {
        return bad(v, "the tape has no end");
    }
    return t->nins > 0 && t->ins[0].op == TAPE_TXN ? true : bad(v, "the first row is not TXN");
}

bool
tape_verify(const Trace *t, CcStatus *st)
{
    Verify v = {.t = t, .st = st};
    bool ok = true;

    v.defined = cc_calloc(t->nreg + 1, 1);
    if (v.defined == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "tape of %u rows", t->nins);
    }
    for (uint32_t i = 0; i < t->ninputs; i++) {
        v.defined[i] = 1;
    }
    for (v.pc = 0; ok && v.pc < t->nins; v.pc++) {
        ok = t->ins[v.pc].op < TAPE__COUNT ? verify_row(&v, &t->ins[v.pc]) : bad(&v, "no such row");
    }
    ok = ok && verify_end(&v);
    cc_free(v.defined);
    return ok;
}
