/* trace/grad.c - calls of value_and_grad objects: the function on plain arrays, then its gradients.
 *
 * While the function is recorded (r->grad) every snapshot is the one before the call, so whatever
 * fails in it repeats the whole call; nothing in it may have an effect. At its end the rows that
 * lead from the leaves to the loss are listed (TapeGrad) and one more array operation, a Backward
 * of _gradtape.py, gives the gradients. Abandoning takes the recorder back to where it was. */
#include "rec.h"

#include "../base/mem.h"
#include "../base/vec.h"

#include <stdio.h>
#include <string.h>

enum { GRAD_MAX_LEAVES = 200, GRAD_MAX_INPUTS = 250 };

enum { HOOK_VALUE_AND_GRAD, HOOK_GRAD, HOOK_PLAN, HOOK_COLLECT, HOOK_BACKWARD };
enum { PLAN_KEY, PLAN_LEAVES, PLAN_NUMBERS, PLAN_OPENED, PLAN_OPENED_TREES, PLAN_GRAD_TREES,
       PLAN_OWNERS, PLAN_ONE };

struct RecGrad {
    RecCall call;
    PyObject *kwnames, *plan;           /* owned */
    bool has_aux, only;                 /* what the call gives: (value, gradients) or gradients */
    int nframes;                        /* frames below the function's */
    uint32_t snap;
    TapeRef leaf[GRAD_MAX_LEAVES];
    uint32_t nleaves;
    PyObject **kept;                    /* owned; by register: what it holds */
    uint32_t nkept, cap_kept;
    /* what abandoning goes back to */
    uint32_t nins, nbrk, nreg, nvirt;
    RecReg *reg;
    RecVirt *virt;
    bool want_poll;
};

static PyObject *
hook(const Recorder *r, int which)
{
    return PyTuple_GET_ITEM(r->opt.grad_hooks, which);
}

static PyObject *
plan_item(const RecGrad *gr, int which)
{
    return PyTuple_GET_ITEM(gr->plan, which);
}

/* -- What the recorder was ------------------------------------------------------------------ */

static void
saved_free(RecGrad *gr)
{
    for (uint32_t i = 0; gr->virt != NULL && i < gr->nvirt; i++) {
        cc_free(gr->virt[i].field);
    }
    cc_free(gr->virt);
    cc_free(gr->reg);
    gr->virt = NULL;
    gr->reg = NULL;
}

static bool
saved_take(RecGrad *gr, const Recorder *r)
{
    gr->nins = r->t->nins;
    gr->nbrk = r->nbrk;
    gr->nreg = r->t->nreg;
    gr->nvirt = r->nvirt;
    gr->want_poll = r->want_poll;
    gr->reg = cc_calloc(r->t->nreg + 1, sizeof(*gr->reg));
    gr->virt = cc_calloc(r->nvirt + 1, sizeof(*gr->virt));
    if (gr->reg == NULL || gr->virt == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < r->t->nreg; i++) {
        gr->reg[i] = r->reg[i];
    }
    for (uint32_t i = 0; i < r->nvirt; i++) {
        RecVirt *v = &gr->virt[i];
        *v = r->virt[i];
        v->field = cc_calloc(v->cap + 1, sizeof(*v->field));
        if (v->field == NULL) {
            gr->nvirt = i;
            return false;
        }
        for (uint32_t k = 0; k < v->nfields; k++) {
            v->field[k] = r->virt[i].field[k];
        }
    }
    return true;
}

static void
saved_give(RecGrad *gr, Recorder *r)
{
    r->t->nins = gr->nins;
    r->nbrk = gr->nbrk;
    r->want_poll = gr->want_poll;
    r->pre.n = r->node.n = r->post.n = r->write.n = 0;
    r->npending = r->nover = 0;
    r->open = false;
    r->ndrop = 0;
    r->nlate = 0;
    r->need_open = false;
    for (uint32_t i = 0; i < gr->nreg; i++) {
        r->reg[i] = gr->reg[i];
    }
    for (uint32_t i = 0; i < gr->nvirt; i++) {
        RecVirt mine = r->virt[i];
        r->virt[i] = gr->virt[i];
        gr->virt[i] = mine;
    }
    r->virt_gen++;
    rec_new_epoch(r);
}

/* -- Life --------------------------------------------------------------------------------------- */

void
rec_grad_free(Recorder *r)
{
    RecGrad *gr = r->grad;

    if (gr == NULL) {
        return;
    }
    r->grad = NULL;
    saved_free(gr);
    for (uint32_t i = 0; i < gr->nkept; i++) {
        Py_XDECREF(gr->kept[i]);
    }
    cc_free(gr->kept);
    Py_XDECREF(gr->plan);
    Py_XDECREF(gr->kwnames);
    cc_free(gr);
}

uint32_t
rec_grad_snapshot(const Recorder *r)
{
    return r->grad->snap;
}

bool
rec_grad_returns(const Recorder *r)
{
    return r->grad != NULL && r->nframes == r->grad->nframes + 1;
}

bool
rec_grad_fixed(Recorder *r, TapeRef ref)
{
    if (r->grad == NULL) {
        return false;
    }
    ref = rec_ref(r, ref);
    return TAPE_KIND(ref) == TAPE_VIRT && TAPE_INDEX(ref) < r->grad->nvirt;
}

void
rec_grad_note(Recorder *r, TapeRef ref, PyObject *real)
{
    RecGrad *gr = r->grad;

    if (gr == NULL || r->broken || TAPE_KIND(ref) != TAPE_REG) {
        return;
    }
    uint32_t i = TAPE_INDEX(ref);
    if (i >= gr->nkept) {
        if (!CC_GROW(gr->kept, gr->nkept, gr->cap_kept, i + 1 - gr->nkept)) {
            r->broken = true;
            return;
        }
        memset(gr->kept + gr->nkept, 0, (i + 1 - gr->nkept) * sizeof(*gr->kept));
        gr->nkept = i + 1;
    }
    Py_XSETREF(gr->kept[i], Py_NewRef(real));
}

TapeRef
rec_grad_attr(Recorder *r, PyObject *owner, PyObject *name, PyObject *real, TapeRef ref)
{
    RecGrad *gr = r->grad;

    if (gr == NULL || r->broken || !front_is_array(real)) {
        return ref;
    }
    PyObject *owners = plan_item(gr, PLAN_OWNERS);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(owners); i++) {
        PyObject *row = PyList_GET_ITEM(owners, i);     /* (Module, attribute, leaf) */
        if (PyTuple_GET_ITEM(row, 0) == owner
                && PyUnicode_Compare(PyTuple_GET_ITEM(row, 1), name) == 0) {
            TapeRef leaf = gr->leaf[PyLong_AsSize_t(PyTuple_GET_ITEM(row, 2))];
            rec_guard_is(r, ref, leaf, true);
            return leaf;
        }
    }
    return ref;
}

/* -- Beginning ------------------------------------------------------------------------------------ */

static bool
is_grad_object(const Recorder *r, PyObject *obj)
{
    return r->opt.grad_hooks != NULL
        && (Py_IS_TYPE(obj, (PyTypeObject *)hook(r, HOOK_VALUE_AND_GRAD))
            || Py_IS_TYPE(obj, (PyTypeObject *)hook(r, HOOK_GRAD)));
}

static bool
flag_attr(PyObject *obj, const char *name)
{
    PyObject *v = PyObject_GetAttrString(obj, name);
    bool yes = v == Py_True;

    Py_XDECREF(v);
    PyErr_Clear();
    return yes;
}

/* The positional arguments as a tuple, or those at `numbers`. */
static PyObject *
arguments(const RecCall *c, PyObject *numbers)
{
    Py_ssize_t npos = c->n - (c->kwnames == NULL ? 0 : PyTuple_GET_SIZE(c->kwnames));
    Py_ssize_t n = numbers == NULL ? npos : PyTuple_GET_SIZE(numbers);
    PyObject *args = PyTuple_New(n);

    for (Py_ssize_t i = 0; args != NULL && i < n; i++) {
        Py_ssize_t at = numbers == NULL ? i : PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i));
        PyTuple_SET_ITEM(args, i, Py_NewRef(c->real[1 + at]));
    }
    return args;
}

/* NULL without an exception: eager mode. */
static PyObject *
make_plan(const Recorder *r, const RecCall *c)
{
    PyObject *args = arguments(c, NULL);
    PyObject *plan = args == NULL ? NULL
                   : PyObject_CallFunctionObjArgs(hook(r, HOOK_PLAN), c->real[0], args, NULL);

    Py_XDECREF(args);
    if (plan == NULL || plan == Py_None
            || PyList_GET_SIZE(PyTuple_GET_ITEM(plan, PLAN_LEAVES)) > GRAD_MAX_LEAVES) {
        PyErr_Clear();
        Py_CLEAR(plan);
    }
    return plan;
}

/* The row that reads the leaves at every call, and their registers. */
static RecStatus
emit_collect(Recorder *r, RecGrad *gr, const RecCall *c)
{
    PyObject *numbers = plan_item(gr, PLAN_NUMBERS);
    PyObject *args = arguments(c, numbers), *res;
    PyObject *count = PyLong_FromUnsignedLong(gr->nleaves);
    TapeRef field[REC_CALL_MAX], item[GRAD_MAX_LEAVES + 1], out;
    uint32_t n = (uint32_t)PyTuple_GET_SIZE(numbers);

    if (args == NULL || count == NULL) {
        Py_XDECREF(args);
        Py_XDECREF(count);
        return REC_ERROR;
    }
    for (uint32_t i = 0; i < n; i++) {
        field[i] = rec_ref(r, c->ref[1 + PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i))]);
    }
    PyObject *real[4] = {hook(r, HOOK_COLLECT), c->real[0], args, count};
    TapeRef ref[4] = {rec_const(r, real[0]), c->ref[0], rec_virt(r, VIRT_TUPLE, field, n),
                      rec_const_int(r, (Py_ssize_t)gr->nleaves)};
    RecStatus st = rec_residual(r, DO_CALL, 0, real, ref, 4, NULL, c->pop, 0, &res, &out);
    Py_DECREF(args);
    Py_DECREF(count);
    if (st != REC_OK) {
        return st;
    }
    bool fits = PyTuple_CheckExact(res) && PyTuple_GET_SIZE(res) == (Py_ssize_t)gr->nleaves + 1;
    if (fits && !r->broken) {
        rec_residual_items(r, out, res, item);
        r->need_open = false;
        rec_open_here(r);
        rec_fix_value(r, item[0], PyTuple_GET_ITEM(res, 0));
    }
    for (uint32_t i = 0; fits && !r->broken && i < gr->nleaves; i++) {
        gr->leaf[i] = item[1 + i];
        rec_guard_array(r, gr->leaf[i], PyTuple_GET_ITEM(res, 1 + i));
    }
    Py_DECREF(res);
    return fits ? REC_OK : REC_STOP;
}

/* A tree of indices as virtual containers of refs. */
static TapeRef
tree_ref(Recorder *r, PyObject *tree, const TapeRef *leaf)
{
    TapeRef *field = NULL, out;
    uint32_t n = 0, cap = 0;
    PyObject *key, *value;
    Py_ssize_t pos = 0;

    if (PyLong_CheckExact(tree)) {
        return leaf[PyLong_AsSize_t(tree)];
    }
    if (!CC_GROW(field, n, cap, 2 * (uint32_t)PyObject_Size(tree) + 1)) {
        r->broken = true;
        return TAPE_NULL;
    }
    while (PyDict_CheckExact(tree) && PyDict_Next(tree, &pos, &key, &value)) {
        field[n++] = rec_const(r, key);
        field[n++] = tree_ref(r, value, leaf);
    }
    for (Py_ssize_t i = 0; !PyDict_CheckExact(tree) && i < PySequence_Fast_GET_SIZE(tree); i++) {
        field[n++] = tree_ref(r, PySequence_Fast_GET_ITEM(tree, i), leaf);
    }
    out = rec_virt(r, PyDict_CheckExact(tree) ? VIRT_DICT : PyList_CheckExact(tree) ? VIRT_LIST
                                                                                    : VIRT_TUPLE,
                   field, n);
    cc_free(field);
    return out;
}

/* The inner call with opened arguments; its frame is pushed above operands that stay. */
static int
push_function(Recorder *r, RecGrad *gr, const RecCall *c, PyObject *f)
{
    RecCall in = *c;
    PyObject *numbers = plan_item(gr, PLAN_NUMBERS);
    PyObject *name = PyUnicode_InternFromString("f");

    if (name == NULL) {
        return -1;
    }
    rec_guard_type(r, c->ref[0], c->real[0]);
    in.real[0] = f;
    in.ref[0] = rec_load(r, TAPE_LDATTR, 0, c->ref[0], TAPE_NULL, TAPE_INDEX(rec_const(r, name)),
                         f);
    Py_DECREF(name);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(numbers); i++) {
        Py_ssize_t at = 1 + PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i));
        PyObject *tree = PyList_GET_ITEM(plan_item(gr, PLAN_OPENED_TREES), i);
        in.real[at] = PyList_GET_ITEM(plan_item(gr, PLAN_OPENED), i);
        in.ref[at] = tree == Py_None ? c->ref[at] : tree_ref(r, tree, gr->leaf);
    }
    rec_call_resolve(r, &in);
    return rec_call_may_inline(r, &in) ? rec_call_push(r, &in, 0, CONT_CALL) : 0;
}

bool
rec_grad_begin(Recorder *r, const RecCall *c, RecStatus *st)
{
    PyObject *vg = c->real[0];
    RecGrad *gr;

    if (r->grad != NULL || r->broken || !is_grad_object(r, vg)) {
        return false;
    }
    PyObject *plan = make_plan(r, c);
    PyObject *f = plan == NULL ? NULL : PyObject_GetAttrString(vg, "f");
    gr = f == NULL ? NULL : cc_calloc(1, sizeof(*gr));
    PyErr_Clear();
    if (gr == NULL) {
        Py_XDECREF(plan);
        Py_XDECREF(f);
        return false;
    }
    rec_close(r);
    gr->plan = plan;
    gr->call = *c;
    gr->kwnames = Py_XNewRef(c->kwnames);
    gr->nframes = r->nframes;
    gr->nleaves = (uint32_t)PyList_GET_SIZE(plan_item(gr, PLAN_LEAVES));
    gr->only = Py_IS_TYPE(vg, (PyTypeObject *)hook(r, HOOK_GRAD));
    gr->has_aux = flag_attr(vg, "has_aux");
    bool ok = saved_take(gr, r);
    r->broken |= !ok;
    *st = ok ? emit_collect(r, gr, c) : REC_ERROR;
    gr->snap = r->txn_snap;
    r->grad = gr;
    for (uint32_t i = 0; *st == REC_OK && i < gr->nleaves; i++) {
        rec_grad_note(r, gr->leaf[i], PyList_GET_ITEM(plan_item(gr, PLAN_LEAVES), i));
    }
    if (*st == REC_OK && !r->broken) {
        r->want_poll = gr->want_poll;
        int done = push_function(r, gr, c, f);
        *st = done > 0 ? REC_OK : done < 0 ? REC_ERROR
            : rec_stop(r, CC_REASON_GRADIENT, "not a Python function");
    } else if (*st == REC_OK) {
        *st = rec_stop(r, CC_REASON_NO_MEMORY, "while recording");
    }
    Py_DECREF(f);
    return true;                        /* what is no success is abandoned by rec_run() */
}

/* -- Abandoning ------------------------------------------------------------------------------------- */

/* Frames of the function and what it called are dropped: they only hold what it made. */
static void
drop_frames(Recorder *r, int n)
{
    while (r->nframes > n) {
        RecFrame fr = r->frame[--r->nframes];
        py_frame_set_stacktop(fr.live.f, fr.sp);
        py_live_unlink(r->ts, &fr.live);
        py_live_end(r->ts, &fr.live);
        Py_DECREF(fr.bytes);
        cc_free(fr.sh);
    }
}

RecStatus
rec_grad_abandon(Recorder *r)
{
    RecGrad *gr = r->grad;
    RecCall c = gr->call;
    char why[sizeof(r->stop_detail)];
    PyObject *kwnames = Py_XNewRef(gr->kwnames);

    snprintf(why, sizeof(why), "%s", PyErr_Occurred() ? "an exception" : r->stop_detail);
    PyErr_Clear();
    drop_frames(r, gr->nframes);
    if (!r->broken) {
        saved_give(gr, r);
    }
    rec_grad_free(r);
    r->stop = CC_REASON_NONE;
    r->stop_detail[0] = '\0';
    py_frame_set_running(rec_top(r)->live.f, rec_top(r)->unit);
    c.kwnames = kwnames;
    RecStatus st = rec_break(r, CC_REASON_GRADIENT, "%.70s", why);
    if (st == REC_OK) {
        st = rec_call_residual(r, &c);
    }
    Py_XDECREF(kwnames);
    return st;
}

/* -- What leads from the leaves to the loss ------------------------------------------------------------ */

typedef struct {
    Recorder *r;
    uint32_t *slot, *step;              /* by register: number + 1 as an input, as an operation */
    uint8_t *dep;                       /* by register: depends on a leaf */
    TapeRef input[GRAD_MAX_INPUTS];     /* leaves, then what else comes from outside */
    uint32_t ninputs;
    uint32_t *op;                       /* registers of the operations, in order */
    uint32_t nops, cap;
    PyObject *list;                     /* owned: operations for Backward */
    const char *why;
} Path;

static bool
path_no(Path *p, const char *why)
{
    p->why = why;
    return false;
}

static bool
depends(const Path *p, TapeRef ref, int depth)
{
    const Trace *t = p->r->t;

    if (TAPE_KIND(ref) == TAPE_REG) {
        return p->dep[TAPE_INDEX(ref)] != 0;
    }
    if (TAPE_KIND(ref) != TAPE_VIRT || depth > 5) {
        return false;
    }
    const TapeVirt *v = &t->virt[TAPE_INDEX(ref)];
    for (uint32_t i = 0; i < v->nfields; i++) {
        if (depends(p, t->opnd[v->first + i], depth + 1)) {
            return true;
        }
    }
    return false;
}

static bool
path_input(Path *p, uint32_t reg)
{
    if (p->slot[reg] != 0) {
        return true;
    }
    if (p->ninputs >= GRAD_MAX_INPUTS) {
        return path_no(p, "too many operands");
    }
    p->input[p->ninputs++] = TAPE_REF(TAPE_REG, reg);
    p->slot[reg] = p->ninputs;
    return true;
}

/* A register as ("input", i) or ("result", i). */
static PyObject *
register_part(Path *p, uint32_t reg)
{
    if (p->step[reg] != 0) {
        return Py_BuildValue("(sI)", "result", p->step[reg] - 1);
    }
    return path_input(p, reg) ? Py_BuildValue("(sI)", "input", p->slot[reg] - 1) : NULL;
}

/* That, ("const", object) or (kind of container, operands): new reference; NULL = not possible. */
static PyObject *
operand_part(Path *p, TapeRef ref, int depth)
{
    static const char *const name[VIRT__COUNT] = {
        [VIRT_TUPLE] = "tuple", [VIRT_LIST] = "list", [VIRT_SLICE] = "slice"};
    const Trace *t = p->r->t;
    uint32_t i = TAPE_INDEX(ref);

    switch (TAPE_KIND(ref)) {
    case TAPE_CONST:
        return Py_BuildValue("(sO)", "const", t->konst[i]);
    case TAPE_REG:
        return register_part(p, i);
    case TAPE_VIRT:
        break;
    default:
        return NULL;
    }
    const TapeVirt *v = &t->virt[i];
    if (name[v->kind] == NULL || depth > 5) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (uint32_t k = 0; list != NULL && k < v->nfields; k++) {
        PyObject *part = operand_part(p, t->opnd[v->first + k], depth + 1);
        if (part == NULL || PyList_Append(list, part) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(part);
    }
    return list == NULL ? NULL : Py_BuildValue("(sN)", name[v->kind], list);
}

static bool
path_op(Path *p, const TapeIns *in)
{
    const Trace *t = p->r->t;
    PyObject *parts = PyList_New(0), *names = t->konst[in->kw], *row = NULL;
    PyObject *none = PyTuple_New(0);

    for (uint32_t i = 0; parts != NULL && i < in->n; i++) {
        PyObject *part = operand_part(p, t->opnd[in->arg + i], 0);
        if (part == NULL || PyList_Append(parts, part) < 0) {
            Py_CLEAR(parts);
        }
        Py_XDECREF(part);
    }
    if (parts != NULL && none != NULL) {
        row = Py_BuildValue("(sIOO)", tape_call_name[in->sub], in->aux, parts,
                            names == NULL ? none : names);
    }
    bool ok = row != NULL && PyList_Append(p->list, row) == 0 && CC_GROW(p->op, p->nops, p->cap, 1);
    if (ok) {
        p->op[p->nops++] = in->dst - 1;
        p->step[in->dst - 1] = p->nops;
        p->dep[in->dst - 1] = 1;
    }
    Py_XDECREF(row);
    Py_XDECREF(parts);
    Py_XDECREF(none);
    PyErr_Clear();
    return ok || path_no(p, "an operation without a gradient");
}

/* What a row on a differentiated value is: a step of the path, a constant, or a loss of gradient. */
static bool
path_row(Path *p, const TapeIns *in)
{
    const Trace *t = p->r->t;
    bool dep = false;

    if (in->dst == 0) {
        return true;
    }
    for (uint32_t i = 0; i < in->n && !dep; i++) {
        dep = depends(p, t->opnd[in->arg + i], 0);
    }
    if (!dep) {
        return true;
    }
    const TapeMeta *m = &t->meta[in->dst - 1];
    bool number = m->form == META_ARRAY || m->form == META_SCALAR;
    if (in->op == TAPE_PCALL && m->form == META_NONE) {
        return true;                    /* a shape, a dtype */
    }
    if (m->form == META_INT || m->form == META_BOOL || (number && !front_is_float(m->dtype))) {
        return !front_is_complex(number ? m->dtype : -1) || path_no(p, "a complex value");
    }
    if (in->op != TAPE_NODE || m->form == META_FLOAT) {
        return path_no(p, "a differentiated value becomes a Python object");
    }
    return path_op(p, in);
}

static bool
path_rows(Path *p)
{
    Recorder *r = p->r;
    const RecRows *rows[3] = {&r->pre, &r->node, &r->post};

    for (uint32_t i = r->grad->nins; i < r->t->nins; i++) {
        if (!path_row(p, &r->t->ins[i])) {
            return false;
        }
    }
    for (int k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < rows[k]->n; i++) {
            if (!path_row(p, &rows[k]->row[i])) {
                return false;
            }
        }
    }
    return true;
}

static bool
path_find(Path *p, TapeRef loss)
{
    Recorder *r = p->r;

    p->slot = cc_calloc(r->t->nreg + 1, sizeof(*p->slot));
    p->step = cc_calloc(r->t->nreg + 1, sizeof(*p->step));
    p->dep = cc_calloc(r->t->nreg + 1, 1);
    p->list = PyList_New(0);
    if (p->slot == NULL || p->step == NULL || p->dep == NULL || p->list == NULL) {
        return path_no(p, "no memory");
    }
    for (uint32_t i = 0; i < r->grad->nleaves; i++) {
        uint32_t reg = TAPE_INDEX(r->grad->leaf[i]);
        p->dep[reg] = 1;
        p->input[p->ninputs++] = r->grad->leaf[i];
        p->slot[reg] = p->ninputs;
    }
    if (!path_rows(p)) {
        return false;
    }
    if (TAPE_KIND(loss) != TAPE_REG || !p->dep[TAPE_INDEX(loss)]) {
        return path_no(p, "a loss that depends on nothing");
    }
    return true;
}

static void
path_fini(Path *p)
{
    cc_free(p->slot);
    cc_free(p->step);
    cc_free(p->dep);
    cc_free(p->op);
    Py_XDECREF(p->list);
    PyErr_Clear();
}

/* -- The gradients ---------------------------------------------------------------------------------------- */

/* The row of the trace's table; index + 1, or 0. */
static uint32_t
note_grad(Path *p, TapeRef loss)
{
    Recorder *r = p->r;
    Trace *t = r->t;
    uint32_t nleaves = r->grad->nleaves;

    if (!CC_GROW(t->grad, t->ngrad, r->cap_grad, 1)
            || !CC_GROW(t->opnd, t->nopnd, r->cap_opnd, nleaves + p->nops)) {
        r->broken = true;
        return 0;
    }
    t->grad[t->ngrad] = (TapeGrad){TAPE_INDEX(loss), t->nopnd, nleaves, p->nops};
    for (uint32_t i = 0; i < nleaves; i++) {
        t->opnd[t->nopnd++] = r->grad->leaf[i];
    }
    for (uint32_t i = 0; i < p->nops; i++) {
        t->opnd[t->nopnd++] = TAPE_REF(TAPE_REG, p->op[i]);
    }
    return ++t->ngrad;
}

static PyObject *
make_backward(Path *p, TapeRef loss)
{
    PyObject *part = register_part(p, TAPE_INDEX(loss));
    PyObject *made = part == NULL ? NULL
                   : PyObject_CallFunction(hook(p->r, HOOK_BACKWARD), "OOI", p->list, part,
                                           p->r->grad->nleaves);

    Py_XDECREF(part);
    return made;
}

/* Runs the Backward on what the registers hold: the tuple of gradients and its register. */
static RecStatus
emit_backward(Path *p, TapeRef loss, PyObject **res, TapeRef *out)
{
    Recorder *r = p->r;
    PyObject *real[GRAD_MAX_INPUTS + 1];
    TapeRef ref[GRAD_MAX_INPUTS + 1];

    real[0] = make_backward(p, loss);
    if (real[0] == NULL) {
        return REC_ERROR;
    }
    ref[0] = rec_const(r, real[0]);
    for (uint32_t i = 0; i < p->ninputs; i++) {
        uint32_t reg = TAPE_INDEX(p->input[i]);
        real[1 + i] = reg < r->grad->nkept ? r->grad->kept[reg] : NULL;
        ref[1 + i] = p->input[i];
        if (real[1 + i] == NULL) {
            Py_DECREF(real[0]);
            return rec_stop(r, CC_REASON_GRADIENT, "an operand that is not known");
        }
    }
    uint32_t index = note_grad(p, loss);
    RecStatus st = rec_pure(r, TAPE_NODE, DO_CALL, index, real, ref, p->ninputs + 1, NULL, 0, res,
                            out);
    Py_DECREF(real[0]);
    if (st == REC_OK && !r->broken) {
        rec_reg(r, *out)->pure_epoch = r->epoch;
    }
    return st;
}

static RecStatus
emit_items(Recorder *r, PyObject *tuple, TapeRef tref, TapeRef *item)
{
    for (uint32_t i = 0; i < r->grad->nleaves; i++) {
        PyObject *k = PyLong_FromUnsignedLong(i), *res;
        PyObject *real[2] = {tuple, k};
        TapeRef ref[2] = {tref, rec_const_int(r, (Py_ssize_t)i)};
        RecStatus st = k == NULL ? REC_ERROR
                     : rec_pure(r, TAPE_NODE, DO_GETITEM, 0, real, ref, 2, NULL, 0, &res, &item[i]);
        Py_XDECREF(k);
        if (st != REC_OK) {
            return st;
        }
        Py_DECREF(res);
    }
    return REC_OK;
}

static PyObject *
tree_real(PyObject *tree, PyObject *leaves)
{
    PyObject *out, *key, *value;
    Py_ssize_t pos = 0;

    if (PyLong_CheckExact(tree)) {
        return Py_NewRef(PyTuple_GET_ITEM(leaves, PyLong_AsSsize_t(tree)));
    }
    if (PyDict_CheckExact(tree)) {
        out = PyDict_New();
        while (out != NULL && PyDict_Next(tree, &pos, &key, &value)) {
            PyObject *v = tree_real(value, leaves);
            if (v == NULL || PyDict_SetItem(out, key, v) < 0) {
                Py_CLEAR(out);
            }
            Py_XDECREF(v);
        }
        return out;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(tree);
    bool list = PyList_CheckExact(tree);
    out = list ? PyList_New(n) : PyTuple_New(n);
    for (Py_ssize_t i = 0; out != NULL && i < n; i++) {
        PyObject *v = tree_real(PySequence_Fast_GET_ITEM(tree, i), leaves);
        if (v == NULL) {
            Py_CLEAR(out);
        } else if (list) {
            PyList_SET_ITEM(out, i, v);
        } else {
            PyTuple_SET_ITEM(out, i, v);
        }
    }
    return out;
}

/* A new tuple and its virtual object. Steals the reals. */
static PyObject *
pair_steal(Recorder *r, PyObject *a, PyObject *b, TapeRef ra, TapeRef rb, TapeRef *out)
{
    TapeRef field[2] = {ra, rb};
    PyObject *pair = a == NULL || b == NULL ? NULL : PyTuple_Pack(2, a, b);

    Py_XDECREF(a);
    Py_XDECREF(b);
    *out = rec_virt(r, VIRT_TUPLE, field, 2);
    return pair;
}

/* The gradients in the form of the arguments. */
static PyObject *
grads_in_form(Recorder *r, PyObject *tuple, const TapeRef *item, TapeRef *out)
{
    PyObject *trees = plan_item(r->grad, PLAN_GRAD_TREES);
    PyObject *as_tuple = PyList_AsTuple(trees), *real;

    if (as_tuple == NULL) {
        return NULL;
    }
    PyObject *form = plan_item(r->grad, PLAN_ONE) == Py_True ? PyTuple_GET_ITEM(as_tuple, 0)
                                                             : as_tuple;
    *out = tree_ref(r, form, item);
    real = tree_real(form, tuple);
    Py_DECREF(as_tuple);
    return real;
}

/* What may be given beside the loss: nothing that eager mode would have copied. */
static bool
aux_fits(Recorder *r, TapeRef ref, PyObject *real)
{
    bool container = PyDict_Check(real) || PyList_Check(real) || PyTuple_Check(real);

    return !container || TAPE_KIND(rec_ref(r, ref)) == TAPE_VIRT;
}

typedef struct {
    PyObject *loss, *aux;               /* borrowed */
    TapeRef loss_ref, aux_ref;
} Returned;

static bool
split_returned(Recorder *r, PyObject *value, TapeRef ref, Returned *out)
{
    RecVirt *v = rec_virt_of(r, ref);

    *out = (Returned){.loss = value, .loss_ref = rec_ref(r, ref)};
    if (r->grad->has_aux) {
        if (v == NULL || v->kind != VIRT_TUPLE || v->nfields != 2) {
            return false;
        }
        *out = (Returned){PyTuple_GET_ITEM(value, 0), PyTuple_GET_ITEM(value, 1),
                          rec_ref(r, v->field[0]), rec_ref(r, v->field[1])};
        if (!aux_fits(r, out->aux_ref, out->aux)) {
            return false;
        }
    }
    TapeMeta m;
    front_meta(out->loss, &m);
    return (m.form == META_SCALAR || (m.form == META_ARRAY && m.ndim == 0))
        && front_is_float(m.dtype) && TAPE_KIND(out->loss_ref) == TAPE_REG;
}

/* What the call gives; NULL without an exception: r->stop says why not. */
static PyObject *
make_result(Recorder *r, const Returned *got, TapeRef *out)
{
    Path p = {.r = r};
    PyObject *tuple = NULL, *res = NULL;
    TapeRef item[GRAD_MAX_LEAVES], tref, gref;
    bool ok = path_find(&p, got->loss_ref);

    if (!ok) {
        rec_stop(r, CC_REASON_GRADIENT, "%s", p.why == NULL ? "an operand" : p.why);
    }
    ok = ok && emit_backward(&p, got->loss_ref, &tuple, &tref) == REC_OK
        && emit_items(r, tuple, tref, item) == REC_OK && !r->broken;
    PyObject *grads = ok ? grads_in_form(r, tuple, item, &gref) : NULL;
    if (grads != NULL) {
        PyObject *value = Py_NewRef(got->loss);
        TapeRef vref = got->loss_ref;
        if (r->grad->only) {
            Py_DECREF(value);
            res = grads;
            *out = gref;
            if (got->aux != NULL) {
                res = pair_steal(r, grads, Py_NewRef(got->aux), gref, got->aux_ref, out);
            }
        } else {
            if (got->aux != NULL) {
                value = pair_steal(r, value, Py_NewRef(got->aux), vref, got->aux_ref, &vref);
            }
            res = pair_steal(r, value, grads, vref, gref, out);
        }
    }
    Py_XDECREF(tuple);
    path_fini(&p);
    return res;
}

RecStatus
rec_grad_end(Recorder *r, PyObject *value, TapeRef ref)
{
    Returned got;
    TapeRef out = TAPE_NULL;
    PyObject *res = NULL;

    if (!split_returned(r, value, ref, &got)) {
        rec_stop(r, CC_REASON_GRADIENT, "a result that is no plain scalar of floats");
    } else {
        res = make_result(r, &got, &out);
    }
    if (res == NULL || r->broken) {
        Py_XDECREF(res);
        Py_DECREF(value);
        return REC_STOP;
    }
    int pop = r->grad->call.pop;
    drop_frames(r, r->grad->nframes);
    Py_DECREF(value);
    rec_grad_free(r);
    rec_replace_steal(r, pop, res, out);
    return REC_OK;
}
