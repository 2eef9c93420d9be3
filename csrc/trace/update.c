/* trace/update.c - arrays that the program changes in place, and who shares memory with whom.
 *
 * Every register that holds an array has a root: the register in whose memory it lies. Memory that
 * an operation made on this tape is its root's `own` until something else can name it: foreign
 * code, a real container, the next turn of a loop, an operation that may give its operand. Different
 * roots of which one is own are apart; two others are so where the transaction's GOVER row says it.
 * Where neither is known the transaction ends, which writes what is pending.
 *
 * Invariant: `pending` has the WRITE rows of the open transaction, in order, and is empty when none
 * is open. What reads memory is asked for in rec_memory_read; nothing else in a transaction reads
 * contents, and snapshots are taken when nothing is pending. */
#include "rec.h"

#include "../base/vec.h"

#include <string.h>

/* So many bytes in so many arrays are written before more are computed: while they are near. */
enum { UPDATE_MAX = 64, UPDATE_NEAR = 1 << 20, UPDATE_FEW = 3 };

/* -- Roots ------------------------------------------------------------------------------------ */

static TapeRef
root_of(Recorder *r, TapeRef ref)
{
    TapeRef root = rec_reg(r, ref)->root;

    return root == TAPE_NULL ? ref : root;
}

static bool
is_own(Recorder *r, TapeRef root)
{
    return rec_reg(r, root)->own && rec_reg(r, root)->priv;
}

void
rec_memory_shown(Recorder *r, TapeRef ref)
{
    TapeRef root = root_of(r, ref);

    rec_reg(r, root)->own &= tape_drops(r->t, CC_DROP_SHOWN);
}

static bool
is_array_reg(Recorder *r, TapeRef ref)
{
    return TAPE_KIND(ref) == TAPE_REG && rec_reg(r, ref)->dtype >= 0;
}

/* Neither the tuples and slices of a key nor what they hold can be of another type in a replay. */
static bool
key_is_fixed(Recorder *r, TapeRef ref)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) == TAPE_REG) {
        PyTypeObject *tp = rec_reg(r, ref)->type;
        return tp != NULL && tp != &PyTuple_Type && tp != &PyList_Type && tp != &PySlice_Type;
    }
    RecVirt *v = rec_virt_of(r, ref);
    for (uint32_t i = 0; v != NULL && i < v->nfields; i++) {
        if (!key_is_fixed(r, v->field[i])) {
            return false;
        }
        v = rec_virt_of(r, ref);
    }
    return true;
}

static FrontMem
memory_of(Recorder *r, CallKind kind, PyObject *const *real, const TapeRef *a, uint32_t n,
          PyObject *kwnames, PyObject *res)
{
    bool by_key = kind == DO_GETITEM || kind == DO_VIEW;

    if (by_key && front_is_array(res) && !key_is_fixed(r, a[1])) {
        return FRONT_MEM_ANY;
    }
    return front_memory(kind, real, n, kwnames, res);
}

/* Registers in an operand: counted, and all shown where it may lie in any of them. */
static void
shown_in(Recorder *r, TapeRef ref, int depth)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) == TAPE_REG) {
        rec_memory_shown(r, ref);
    }
    for (uint32_t i = 0; depth < 8 && TAPE_KIND(ref) == TAPE_VIRT
             && i < r->virt[TAPE_INDEX(ref)].nfields; i++) {
        shown_in(r, r->virt[TAPE_INDEX(ref)].field[i], depth + 1);
    }
}

/* The only register among the operands; TAPE_NULL = there are more, or containers. */
static TapeRef
only_array(Recorder *r, const TapeRef *a, uint32_t n)
{
    TapeRef one = TAPE_NULL;

    for (uint32_t i = 0; i < n; i++) {
        if (is_array_reg(r, a[i])) {
            if (one != TAPE_NULL) {
                return TAPE_NULL;
            }
            one = a[i];
        } else if (TAPE_KIND(a[i]) == TAPE_REG && !key_is_fixed(r, a[i])) {
            return TAPE_NULL;
        }
    }
    return one;
}

static void
lies_in(Recorder *r, TapeRef out, TapeRef ref)
{
    RecReg *reg = rec_reg(r, out), *of = rec_reg(r, ref);

    reg->root = root_of(r, ref);
    reg->root_epoch = of->root == TAPE_NULL ? r->epoch : of->root_epoch;
    rec_reg(r, reg->root)->viewed = true;
}

void
rec_memory_note(Recorder *r, TapeRef out, CallKind kind, PyObject *const *real, const TapeRef *a,
                uint32_t n, PyObject *kwnames, PyObject *res)
{
    if (r->broken || TAPE_KIND(out) != TAPE_REG) {
        return;
    }
    FrontMem mem = memory_of(r, kind, real, a, n, kwnames, res);
    RecReg *reg = rec_reg(r, out);
    if (mem == FRONT_MEM_OWN) {
        reg->own = front_is_array(res);
        return;
    }
    if (mem == FRONT_MEM_VIEW && is_array_reg(r, a[0])) {
        lies_in(r, out, a[0]);
        if (kind == DO_GETITEM) {
            reg->part_of = a[0];
            reg->part_key = a[1];
            reg->part_epoch = r->epoch;
        }
        return;
    }
    TapeRef one = only_array(r, a, n);
    if (one != TAPE_NULL && front_is_array(res)) {
        lies_in(r, out, one);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        shown_in(r, a[i], 0);
    }
}

/* -- Parts ---------------------------------------------------------------------------------------- */

static bool
same_key(Recorder *r, TapeRef a, TapeRef b, int depth)
{
    a = rec_ref(r, a);
    b = rec_ref(r, b);
    if (a == b) {
        return true;
    }
    RecVirt *x = rec_virt_of(r, a), *y = rec_virt_of(r, b);
    if (x == NULL || y == NULL || x->kind != y->kind || x->nfields != y->nfields || depth > 4
            || (x->kind != VIRT_SLICE && x->kind != VIRT_TUPLE)) {
        return false;
    }
    for (uint32_t i = 0; i < x->nfields; i++) {
        if (!same_key(r, x->field[i], y->field[i], depth + 1)) {
            return false;
        }
    }
    return true;
}

bool
rec_is_own_part(Recorder *r, TapeRef target, TapeRef key, TapeRef value)
{
    value = rec_ref(r, value);
    if (r->grad != NULL || TAPE_KIND(value) != TAPE_REG) {
        return false;
    }
    const RecReg *reg = rec_reg(r, value);
    return reg->part_of != TAPE_NULL && reg->part_of == rec_ref(r, target)
        && reg->part_epoch == r->epoch && same_key(r, reg->part_key, key, 0);
}

/* -- Who shares memory ------------------------------------------------------------------------------ */

/* A register with whose bounds a guard can be made now: at the start of the open transaction. */
static TapeRef
guardable(Recorder *r, TapeRef ref)
{
    const RecReg *reg = rec_reg(r, ref);

    if (reg->root != TAPE_NULL && reg->root_epoch == r->epoch) {
        ref = reg->root;
        reg = rec_reg(r, ref);
    }
    bool early = !r->open || reg->txn != r->txn || reg->phase == PHASE_PRE;
    return early && reg->dtype >= 0 ? ref : TAPE_NULL;
}

static bool
extents_meet(const RecReg *a, const RecReg *b)
{
    return a->extent.lo < b->extent.hi && b->extent.lo < a->extent.hi && a->extent.lo < a->extent.hi
        && b->extent.lo < b->extent.hi;
}

/* Enter it into the guard's list; false: it would not hold, or there is no room. */
static bool
over_add(Recorder *r, TapeRef ref, bool written)
{
    uint32_t at = r->nover;

    for (uint32_t i = 0; i < r->nover; i++) {
        if (r->over[i].ref == ref) {
            at = i;
        } else if ((written || r->over[i].written)
                   && extents_meet(rec_reg(r, ref), rec_reg(r, r->over[i].ref))) {
            return false;
        }
    }
    if (at == REC_MAX_OVER) {
        return false;
    }
    if (at == r->nover) {
        r->over[r->nover++].written = false;
        r->over[at].ref = ref;
    }
    r->over[at].written |= written;
    return true;
}

/* Both, or the list stays as it was. */
static bool
over_add_both(Recorder *r, TapeRef written, TapeRef read)
{
    uint32_t n = r->nover, at = 0;

    while (at < n && r->over[at].ref != written) {
        at++;
    }
    bool was = at < n && r->over[at].written;
    if (over_add(r, written, true) && over_add(r, read, false)) {
        return true;
    }
    if (at < n) {
        r->over[at].written = was;
    }
    r->nover = n;
    return false;
}

/* The memory of `ref` and that of a pending target share nothing, in every replay. */
static bool
are_apart(Recorder *r, TapeRef ref, TapeRef target)
{
    TapeRef a = root_of(r, ref), b = root_of(r, target);

    if (a == b && !tape_drops(r->t, CC_DROP_OVERLAP)) {
        return false;
    }
    if (is_own(r, a) || is_own(r, b) || tape_drops(r->t, CC_DROP_OVERLAP)) {
        return true;
    }
    a = guardable(r, ref);
    b = guardable(r, target);
    return a != TAPE_NULL && b != TAPE_NULL && a != b && over_add_both(r, b, a);
}

typedef enum { TOUCH_NOTHING, TOUCH_TARGET, TOUCH_SHARED } Touch;

/* What of the pending writes a read of this register would miss; the last write counts. */
static Touch
touch_reg(Recorder *r, TapeRef ref, uint32_t *which)
{
    for (uint32_t i = r->npending; i-- > 0;) {
        if (r->pending[i].target == ref && !r->pending[i].element) {
            *which = i;
            return TOUCH_TARGET;
        }
        if (!are_apart(r, ref, r->pending[i].target)) {
            return TOUCH_SHARED;
        }
    }
    return TOUCH_NOTHING;
}

static Touch
touch(Recorder *r, TapeRef ref, uint32_t *which, int depth)
{
    ref = rec_ref(r, ref);
    if (is_array_reg(r, ref)) {
        return touch_reg(r, ref, which);
    }
    if (TAPE_KIND(ref) == TAPE_CONST) {
        return front_is_array(rec_konst_borrow(r, ref)) ? TOUCH_SHARED : TOUCH_NOTHING;
    }
    if (TAPE_KIND(ref) != TAPE_VIRT) {  /* containers hold what is not known */
        return TAPE_KIND(ref) == TAPE_NULL || key_is_fixed(r, ref) ? TOUCH_NOTHING : TOUCH_SHARED;
    }
    for (uint32_t i = 0; i < r->virt[TAPE_INDEX(ref)].nfields; i++) {
        TapeRef field = r->virt[TAPE_INDEX(ref)].field[i];
        if (depth > 8 || touch(r, field, which, depth + 1) != TOUCH_NOTHING) {
            return TOUCH_SHARED;
        }
    }
    return TOUCH_NOTHING;
}

/* `skip`: an operand whose contents do not matter. */
static void
read_operands(Recorder *r, TapeRef *a, uint32_t n, uint32_t skip, bool values)
{
    uint32_t which;

    for (uint32_t i = 0; i < n && r->npending > 0 && !r->broken; i++) {
        if (a[i] == TAPE_NULL || i == skip) {
            continue;
        }
        switch (touch(r, a[i], &which, 0)) {
        case TOUCH_NOTHING:
            break;
        case TOUCH_TARGET:
            if (values && !tape_drops(r->t, CC_DROP_FORWARD)) {
                a[i] = r->pending[which].value;
                break;
            }
            if (!tape_drops(r->t, CC_DROP_FORWARD)) {
                rec_close(r);
            }
            break;
        case TOUCH_SHARED:
            rec_close(r);
        }
    }
}

void
rec_memory_read(Recorder *r, CallKind kind, PyObject *const *real, TapeRef *a, uint32_t n,
                PyObject *kwnames, PyObject *res)
{
    FrontMem mem = memory_of(r, kind, real, a, n, kwnames, res);

    if (mem != FRONT_MEM_VIEW) {
        read_operands(r, a, n, n, mem == FRONT_MEM_OWN);
    }
}

void
rec_memory_flush(Recorder *r)
{
    TapeRef a[REC_MAX_OVER];
    uint32_t n = 0, nwritten;

    for (uint32_t i = 0; i < r->nover; i++) {
        if (r->over[i].written) {
            a[n++] = r->over[i].ref;
        }
    }
    nwritten = n;
    for (uint32_t i = 0; i < r->nover; i++) {
        if (!r->over[i].written) {
            a[n++] = r->over[i].ref;
        }
    }
    r->npending = r->nover = 0;
    if (n > 0) {
        rec_emit(r, rec_ins(TAPE_GOVER, 0, nwritten), a, n, false);
    }
}

/* -- Changing an array ------------------------------------------------------------------------------ */

/* The variable of the program that held `old` holds `new`: nobody has seen the old object. */
static void
rename_ref(Recorder *r, TapeRef old, TapeRef new)
{
    for (int i = 0; i < r->nframes; i++) {
        RecFrame *fr = &r->frame[i];
        for (int k = 0; k < fr->sp; k++) {
            fr->sh[k] = fr->sh[k] == old ? new : fr->sh[k];
        }
    }
    for (uint32_t i = 0; i < r->nvirt; i++) {
        for (uint32_t k = 0; k < r->virt[i].nfields; k++) {
            if (r->virt[i].field[k] == old) {
                r->virt[i].field[k] = new;
                rec_virt_touch(r, &r->virt[i]);
            }
        }
    }
}

/* Made by this transaction's launch, known by this register only, and not written yet. */
static bool
is_unseen(Recorder *r, TapeRef ref)
{
    const RecReg *reg = rec_reg(r, ref);

    for (uint32_t i = 0; i < r->npending; i++) {
        if (r->pending[i].target == ref) {
            return false;
        }
    }
    return r->open && reg->txn == r->txn && reg->phase == PHASE_NODE && reg->root == TAPE_NULL
        && !reg->viewed && is_own(r, ref);
}

static void
note_contents(Recorder *r, TapeRef ref, PyObject *real)
{
    if (r->broken) {
        return;
    }
    RecReg *reg = rec_reg(r, ref);
    reg->type = Py_TYPE(real);
    reg->type_epoch = r->epoch;
    reg->priv = true;
    front_result(real, &reg->dtype, &reg->ndim);
    rec_note_meta(r, ref, real);
}

/* a: target, value, then the places of an element */
static void
push_write(Recorder *r, const TapeRef *a, uint32_t n)
{
    bool element = n > 2;

    if (r->broken || !CC_GROW(r->pending, r->npending, r->cap_pending, 1)) {
        r->broken = true;
        return;
    }
    rec_emit(r, rec_ins(TAPE_WRITE, element, 0), a, n, false);
    if (!r->broken) {
        uint32_t opnd = r->write.row[r->write.n - 1].arg + 1;
        r->pending[r->npending++] = (RecWrite){a[0], a[1], opnd, element};
    }
}

static void
add_write(Recorder *r, TapeRef target, TapeRef value, bool part)
{
    TapeRef a[2] = {target, value};
    uint32_t which;

    if (!part && touch(r, target, &which, 0) == TOUCH_TARGET) {
        r->pending[which].value = value;
        r->t->opnd[r->pending[which].opnd] = value;
        return;
    }
    push_write(r, a, 2);
}

/* array[places] = number without a kernel; false: the value has to be converted first. */
static bool
update_element(Recorder *r, PyObject *const *real, const TapeRef *a)
{
    bool tuple = PyTuple_CheckExact(real[1]);
    Py_ssize_t n = tuple ? PyTuple_GET_SIZE(real[1]) : 1;
    RecVirt *v = rec_virt_of(r, a[1]);
    TapeRef row[2 + TAPE_MAX_NDIM] = {a[0], a[2]};
    PyObject *index[TAPE_MAX_NDIM];

    if (n < 1 || n > TAPE_MAX_NDIM || (tuple && (v == NULL || v->nfields != (uint32_t)n))) {
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        index[i] = tuple ? PyTuple_GET_ITEM(real[1], i) : real[1];
        row[2 + i] = rec_ref(r, tuple ? v->field[i] : a[1]);
    }
    if (!front_element(real[0], index, (uint32_t)n, real[2], true)) {
        return false;
    }
    push_write(r, row, 2 + (uint32_t)n);
    return true;
}

static TapeRef
emit_part(Recorder *r, const TapeRef *a, PyObject *real)
{
    TapeIns ins = rec_ins(TAPE_PCALL, DO_VIEW, 0);

    ins.check = rec_check_of(r, real);
    TapeRef part = rec_emit(r, ins, a, 2, true);
    if (!r->broken) {
        note_contents(r, part, real);
        lies_in(r, part, a[0]);
    }
    return part;
}

static bool
is_much(Recorder *r, TapeRef target)
{
    uintptr_t size = 0;

    for (uint32_t i = 0; i < r->npending; i++) {
        const FrontExtent *e = &rec_reg(r, r->pending[i].target)->extent;
        if (r->pending[i].target == target) {
            return false;
        }
        size += r->pending[i].element ? 0 : e->hi - e->lo;
    }
    return r->npending >= UPDATE_FEW && size > UPDATE_NEAR;
}

/* The rows of an update that was done: `now` are the contents of `place`, a part of the target or
 * the target itself. Gives the register of the target. */
static TapeRef
emit_update(Recorder *r, const FrontUpdate *up, TapeRef *a, uint32_t n, PyObject *kwnames,
            PyObject *now, PyObject *place)
{
    TapeRef target = a[up->target], old[2] = {a[0], a[1]};
    TapeIns ins = rec_ins(TAPE_NODE, (uint8_t)up->kind, up->oparg);

    if (is_much(r, target)) {
        rec_close(r);
    }
    read_operands(r, a, n, up->reads ? n : up->target, true);
    ins.kw = kwnames == NULL ? 0 : (uint16_t)TAPE_INDEX(rec_const(r, kwnames));
    ins.check = rec_check_of(r, now);
    TapeRef value = rec_emit(r, ins, a, n, true);
    if (r->broken) {
        return target;
    }
    note_contents(r, value, now);
    rec_reg(r, value)->own = true;
    r->ops_node++;
    if (!up->part && is_unseen(r, target)) {
        rename_ref(r, target, value);
        return value;
    }
    TapeRef to = up->part ? emit_part(r, old, place) : target;
    if (!r->broken) {
        add_write(r, to, value, up->part);
    }
    return target;
}

RecStatus
rec_update(Recorder *r, const FrontUpdate *up, CallKind kind, uint32_t oparg, PyObject *const *real,
           const TapeRef *ref, uint32_t n, PyObject *kwnames, int pop, PyObject **res, TapeRef *out)
{
    TapeRef a[UPDATE_MAX];
    PyObject *now = NULL, *place = NULL;
    bool ok = r->grad == NULL && n <= UPDATE_MAX;

    for (uint32_t i = 0; ok && i < n; i++) {
        a[i] = ref[i] == TAPE_NULL ? TAPE_NULL : rec_ref(r, ref[i]);
        if (a[i] != TAPE_NULL) {
            rec_guard_pure(r, a[i], real[i]);
        }
    }
    ok = ok && !r->broken && is_array_reg(r, a[up->target])
        && (kind != DO_SETITEM || key_is_fixed(r, a[1]));
    if (ok && up->element && update_element(r, real, a)) {
        *res = Py_NewRef(Py_None);
        *out = rec_const(r, Py_None);
        return REC_OK;
    }
    int how = ok ? rec_run_node(up->kind, up->oparg, real, n, kwnames, &now) : -1;
    if (how == 0) {
        place = up->part ? tape_call(DO_VIEW, 0, real, 2, NULL) : Py_NewRef(real[up->target]);
    }
    if (place == NULL || !front_write_fits(place, now)) {       /* it raises its own errors */
        Py_XDECREF(now);
        Py_XDECREF(place);
        PyErr_Clear();
        if (how > 0) {
            rec_break(r, CC_REASON_FAULT, "%s", tape_call_name[kind]);
        }
        return rec_residual(r, kind, oparg, real, ref, n, kwnames, pop, 0, res, out);
    }
    front_write(place, now);
    TapeRef target = emit_update(r, up, a, n, kwnames, now, place);
    *res = Py_NewRef(up->gives_target ? real[up->target] : Py_None);
    *out = up->gives_target ? target : rec_const(r, Py_None);
    Py_DECREF(now);
    Py_DECREF(place);
    return REC_OK;
}
