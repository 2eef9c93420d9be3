/* trace/shadow.c - refs, registers, virtual objects, and the slots of the recorded frames.
 *
 * Invariant: slot i of a frame and shadow i are changed together. A register keeps no reference to
 * the program's object; virtual objects are known by identity number, and every change of their
 * fields goes through rec_virt_touch, so a snapshot sees the version of its moment. */
#include "rec.h"

#include "../base/vec.h"

#include <string.h>

/* -- Registers and constants --------------------------------------------------- */

TapeRef
rec_newreg(Recorder *r, TapePhase phase)
{
    if (!CC_GROW(r->reg, r->t->nreg, r->cap_reg, 1)
            || !CC_GROW(r->t->meta, r->t->nreg, r->cap_meta, 1)) {
        r->broken = true;
        return TAPE_NULL;
    }
    r->t->meta[r->t->nreg] = (TapeMeta){0};
    r->reg[r->t->nreg] = (RecReg){.txn = r->txn, .phase = (uint8_t)phase, .dtype = -1, .ndim = -1};
    return TAPE_REF(TAPE_REG, r->t->nreg++);
}

void
rec_note_meta(Recorder *r, TapeRef ref, PyObject *real)
{
    if (!r->broken && TAPE_KIND(ref) == TAPE_REG) {
        front_meta(real, &r->t->meta[TAPE_INDEX(ref)]);
        front_extent(real, &rec_reg(r, ref)->extent);
    }
}

TapeRef
rec_const(Recorder *r, PyObject *obj)
{
    Trace *t = r->t;

    for (uint32_t i = 1; i < t->nkonst; i++) {
        if (t->konst[i] == obj) {
            return TAPE_REF(TAPE_CONST, i);
        }
    }
    if (!CC_GROW(t->konst, t->nkonst, r->cap_konst, 1)) {
        r->broken = true;
        return TAPE_NULL;
    }
    t->konst[t->nkonst] = Py_NewRef(obj);
    return TAPE_REF(TAPE_CONST, t->nkonst++);
}

TapeRef
rec_const_int(Recorder *r, Py_ssize_t value)
{
    PyObject *obj = PyLong_FromSsize_t(value);
    TapeRef ref = TAPE_NULL;

    if (obj == NULL) {
        PyErr_Clear();
        r->broken = true;
        return ref;
    }
    for (uint32_t i = 1; i < r->t->nkonst; i++) {
        PyObject *k = r->t->konst[i];
        if (PyLong_CheckExact(k) && PyObject_RichCompareBool(k, obj, Py_EQ) == 1) {
            ref = TAPE_REF(TAPE_CONST, i);
        }
    }
    ref = ref == TAPE_NULL ? rec_const(r, obj) : ref;
    Py_DECREF(obj);
    return ref;
}

PyObject *
rec_konst_borrow(Recorder *r, TapeRef ref)
{
    return TAPE_KIND(ref) == TAPE_CONST ? r->t->konst[TAPE_INDEX(ref)] : NULL;
}

/* -- Virtual objects -------------------------------------------------------------- */

TapeRef
rec_ref(Recorder *r, TapeRef ref)
{
    if (TAPE_KIND(ref) == TAPE_VIRT && r->virt[TAPE_INDEX(ref)].real != TAPE_NULL) {
        return r->virt[TAPE_INDEX(ref)].real;
    }
    return ref;
}

RecVirt *
rec_virt_of(Recorder *r, TapeRef ref)
{
    ref = rec_ref(r, ref);
    return TAPE_KIND(ref) == TAPE_VIRT ? &r->virt[TAPE_INDEX(ref)] : NULL;
}

bool
rec_is_virt(Recorder *r, TapeRef ref, VirtKind kind)
{
    RecVirt *v = rec_virt_of(r, ref);
    return v != NULL && v->kind == kind;
}

TapeRef
rec_virt(Recorder *r, VirtKind kind, const TapeRef *field, uint32_t n)
{
    RecVirt v = {.kind = (uint8_t)kind};

    if (!CC_GROW(r->virt, r->nvirt, r->cap_virtobj, 1)
            || (n > 0 && !CC_GROW(v.field, 0, v.cap, n))) {
        r->broken = true;
        return TAPE_NULL;
    }
    for (uint32_t i = 0; i < n; i++) {
        v.field[i] = field[i];
    }
    v.nfields = n;
    r->virt[r->nvirt] = v;
    r->t->nids = r->nvirt + 1;
    return TAPE_REF(TAPE_VIRT, r->nvirt++);
}

void
rec_virt_touch(Recorder *r, RecVirt *v)
{
    (void)v;
    r->virt_gen += !tape_drops(r->t, CC_DROP_VIRTUAL);
}

void
rec_virt_append(Recorder *r, RecVirt *v, TapeRef field)
{
    if (!CC_GROW(v->field, v->nfields, v->cap, 1)) {
        r->broken = true;
        return;
    }
    v->field[v->nfields++] = field;
    rec_virt_touch(r, v);
}

static TapeRef
virt_row_ref(Recorder *r, TapeRef ref)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) != TAPE_VIRT) {
        return ref;
    }
    return TAPE_REF(TAPE_VIRT, rec_virt_row(r, TAPE_INDEX(ref)));
}

static bool
pool_push(Recorder *r, TapeRef ref)
{
    if (!CC_GROW(r->t->opnd, r->t->nopnd, r->cap_opnd, 1)) {
        r->broken = true;
        return false;
    }
    r->t->opnd[r->t->nopnd++] = ref;
    return true;
}

/* The row that describes a virtual object as it is now. Rows are shared until any virtual changes.
 * A cycle ends at the row being made, which is entered before its fields. */
uint32_t
rec_virt_row(Recorder *r, uint32_t id)
{
    Trace *t = r->t;
    RecVirt *v = &r->virt[id];
    uint32_t n = v->nfields, row = t->nvirt;

    if (v->row_gen == r->virt_gen + 1) {
        return v->row;
    }
    if (r->broken || !CC_GROW(t->virt, t->nvirt, r->cap_virt, 1)) {
        r->broken = true;
        return 0;
    }
    v->row = row;
    v->row_gen = r->virt_gen + 1;
    t->virt[t->nvirt++] = (TapeVirt){.kind = v->kind, .id = id};
    TapeRef *field = NULL;
    uint32_t cap = 0;
    if (n > 0 && !CC_GROW(field, 0, cap, n)) {
        r->broken = true;
        return row;
    }
    for (uint32_t i = 0; i < n; i++) {
        field[i] = virt_row_ref(r, r->virt[id].field[i]);
    }
    uint32_t first = t->nopnd;
    for (uint32_t i = 0; i < n && pool_push(r, field[i]); i++) {
    }
    cc_free(field);
    t->virt[row].nfields = n;
    t->virt[row].first = first;
    return row;
}

static PyTypeObject *const virt_type[VIRT__COUNT] = {
    [VIRT_TUPLE] = &PyTuple_Type,
    [VIRT_LIST] = &PyList_Type,
    [VIRT_DICT] = &PyDict_Type,
    [VIRT_SLICE] = &PySlice_Type,
    [VIRT_CELL] = &PyCell_Type,
    [VIRT_METHOD] = &PyMethod_Type,
    [VIRT_FUNCTION] = &PyFunction_Type,
    [VIRT_SUPER] = &PySuper_Type,
    [VIRT_RANGEITER] = &PyRangeIter_Type,
};

static TapeRef build_virt(Recorder *r, TapeRef ref);

/* A cell may hold a function that closes over it: it is built empty and filled at the end. */
static TapeRef
build_cell(Recorder *r, uint32_t id)
{
    TapeRef content = rec_ref(r, r->virt[id].field[0]);

    if (TAPE_KIND(content) == TAPE_VIRT && r->nlate < REC_MAX_LATE) {
        TapeRef empty = rec_virt(r, VIRT_CELL, &(TapeRef){TAPE_NULL}, 1);
        TapeRef reg = rec_emit(r, rec_ins(TAPE_MKOBJ, 0, 0), &empty, 1, true);
        r->late[r->nlate].cell = reg;
        r->late[r->nlate++].content = content;
        return reg;
    }
    r->virt[id].field[0] = content;
    rec_foreign_ref(r, content);
    TapeRef self = TAPE_REF(TAPE_VIRT, id);
    return TAPE_KIND(content) == TAPE_VIRT ? TAPE_NULL
                                           : rec_emit(r, rec_ins(TAPE_MKOBJ, 0, 0), &self, 1, true);
}

/* Nested virtual objects are built on their own first: so each is built once and keeps its
 * identity. */
static TapeRef
build_virt(Recorder *r, TapeRef ref)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) != TAPE_VIRT || r->broken) {
        return ref;
    }
    uint32_t id = TAPE_INDEX(ref);
    TapeRef reg;
    if (r->virt[id].building) {         /* a cycle that goes through no cell */
        r->broken = true;
        return TAPE_NULL;
    }
    r->virt[id].building = true;
    if (r->virt[id].kind == VIRT_CELL) {
        reg = build_cell(r, id);
    } else {
        for (uint32_t i = 0; i < r->virt[id].nfields && !r->broken; i++) {
            TapeRef built = build_virt(r, r->virt[id].field[i]);
            r->virt[id].field[i] = built;
            rec_foreign_ref(r, built);  /* the object can be read from this one */
        }
        r->virt[id].row_gen = 0;
        reg = r->broken ? TAPE_NULL : rec_emit(r, rec_ins(TAPE_MKOBJ, 0, 0), &ref, 1, true);
    }
    r->virt[id].building = false;
    if (r->broken || reg == TAPE_NULL) {
        r->broken = true;
        return TAPE_NULL;
    }
    rec_reg(r, reg)->type = virt_type[r->virt[id].kind];
    if (r->virt[id].kind == VIRT_OBJECT) {
        rec_reg(r, reg)->type = (PyTypeObject *)rec_konst_borrow(r, r->virt[id].field[0]);
        rec_reg(r, reg)->type_epoch = r->epoch;
    }
    r->virt[id].real = reg;
    r->virt_gen++;
    return reg;
}

TapeRef
rec_materialise(Recorder *r, TapeRef ref)
{
    TapeRef res = build_virt(r, ref);

    while (r->nlate > 0 && !r->broken) {
        TapeRef cell = r->late[--r->nlate].cell;
        TapeRef a[2] = {cell, build_virt(r, r->late[r->nlate].content)};
        if (!r->broken) {
            rec_emit(r, rec_ins(TAPE_PCALL, DO_SETCELL, 0), a, 2, true);
        }
    }
    r->nlate = 0;
    return r->broken ? TAPE_NULL : res;
}

static bool
reaches(Recorder *r, TapeRef from, TapeRef to)
{
    from = rec_ref(r, from);
    if (TAPE_KIND(from) != TAPE_VIRT || from == to) {
        return from == to;
    }
    RecVirt *v = &r->virt[TAPE_INDEX(from)];
    if (v->mark == r->walk) {
        return false;
    }
    v->mark = r->walk;
    for (uint32_t i = 0; i < v->nfields; i++) {
        if (reaches(r, v->field[i], to)) {
            return true;
        }
    }
    return false;
}

/* Virtual objects are built inside out, so none may hold itself, but for cells. */
bool
rec_reaches(Recorder *r, TapeRef from, TapeRef to)
{
    r->walk++;
    return reaches(r, from, rec_ref(r, to));
}

static void
foreign_ref(Recorder *r, TapeRef ref)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) == TAPE_REG) {
        rec_reg(r, ref)->priv = false;
        rec_memory_shown(r, ref);
    }
    if (TAPE_KIND(ref) != TAPE_VIRT || r->virt[TAPE_INDEX(ref)].mark == r->walk) {
        return;
    }
    RecVirt *v = &r->virt[TAPE_INDEX(ref)];
    v->mark = r->walk;
    for (uint32_t i = 0; i < v->nfields; i++) {
        foreign_ref(r, v->field[i]);
    }
}

void
rec_foreign_ref(Recorder *r, TapeRef ref)
{
    r->walk++;
    foreign_ref(r, ref);
}

/* -- Slots --------------------------------------------------------------------------- */

static bool
virt_holds(Recorder *r, TapeRef ref)
{
    for (uint32_t i = 0; i < r->nvirt; i++) {
        for (uint32_t k = 0; k < r->virt[i].nfields; k++) {
            if (r->virt[i].field[k] == ref) {
                return true;
            }
        }
    }
    return false;
}

static bool
ref_is_held(Recorder *r, TapeRef ref)
{
    for (int i = 0; i < r->nframes; i++) {
        RecFrame *fr = &r->frame[i];
        if (fr->func == ref || fr->extra == ref) {
            return true;
        }
        for (int k = 0; k < fr->sp; k++) {
            if (fr->sh[k] == ref) {
                return true;
            }
        }
    }
    return virt_holds(r, ref);
}

/* A slot lost `ref`. When it was the last one of a foreign object, its death is an event of the
 * program's: the tape releases it at this point. */
static void
slot_lost(Recorder *r, TapeRef ref)
{
    ref = rec_ref(r, ref);
    if (TAPE_KIND(ref) != TAPE_REG || !rec_reg(r, ref)->foreign || ref_is_held(r, ref)
            || tape_drops(r->t, CC_DROP_DEATH)) {
        return;
    }
    if (!CC_GROW(r->drop, r->ndrop, r->cap_drop, 1)) {
        r->broken = true;
        return;
    }
    rec_reg(r, ref)->foreign = false;
    r->drop[r->ndrop++] = ref;
}

void
rec_lost(Recorder *r, TapeRef ref)
{
    slot_lost(r, ref);
}

TapeRef
rec_peek(Recorder *r, int depth)
{
    RecFrame *fr = rec_top(r);
    return rec_ref(r, fr->sh[fr->sp - 1 - depth]);
}

PyObject *
rec_real(Recorder *r, int depth)
{
    RecFrame *fr = rec_top(r);
    return fr->slot[fr->sp - 1 - depth];
}

void
rec_push_steal(Recorder *r, PyObject *real, TapeRef ref)
{
    RecFrame *fr = rec_top(r);

    fr->slot[fr->sp] = real;
    fr->sh[fr->sp] = ref;
    fr->sp++;
}

void
rec_pop(Recorder *r, int n)
{
    RecFrame *fr = rec_top(r);

    while (n-- > 0) {
        fr->sp--;
        PyObject *real = fr->slot[fr->sp];
        TapeRef ref = fr->sh[fr->sp];
        fr->slot[fr->sp] = NULL;
        fr->sh[fr->sp] = TAPE_NULL;
        slot_lost(r, ref);
        Py_XDECREF(real);
    }
}

/* The callee's frame is the next entry: its slots count as holders. */
void
rec_pop_moved(Recorder *r, int n)
{
    RecFrame *fr = rec_top(r);

    while (n-- > 0) {
        fr->sp--;
        PyObject *real = fr->slot[fr->sp];
        TapeRef ref = fr->sh[fr->sp];
        fr->slot[fr->sp] = NULL;
        fr->sh[fr->sp] = TAPE_NULL;
        r->nframes++;
        slot_lost(r, ref);
        r->nframes--;
        Py_XDECREF(real);
    }
}

void
rec_frame_died(Recorder *r, const RecFrame *fr)
{
    for (int i = 0; i < fr->sp; i++) {
        slot_lost(r, fr->sh[i]);
    }
    slot_lost(r, fr->func);
}

void
rec_replace_steal(Recorder *r, int n, PyObject *real, TapeRef ref)
{
    RecFrame *fr = rec_top(r);
    PyObject *old[8];
    TapeRef old_ref[8];
    int few = n > 8 ? 8 : n;

    rec_pop(r, n - few);
    /* The new value is in place before an old one dies: its finaliser sees a consistent frame. */
    for (int i = 0; i < few; i++) {
        fr->sp--;
        old[i] = fr->slot[fr->sp];
        old_ref[i] = fr->sh[fr->sp];
        fr->slot[fr->sp] = NULL;
        fr->sh[fr->sp] = TAPE_NULL;
    }
    rec_push_steal(r, real, ref);
    for (int i = 0; i < few; i++) {
        slot_lost(r, old_ref[i]);
        Py_XDECREF(old[i]);
    }
}

void
rec_set_slot_steal(Recorder *r, int index, PyObject *real, TapeRef ref)
{
    RecFrame *fr = rec_top(r);
    PyObject *old = fr->slot[index];
    TapeRef old_ref = fr->sh[index];

    fr->slot[index] = real;
    fr->sh[index] = ref;
    slot_lost(r, old_ref);
    Py_XDECREF(old);
}
