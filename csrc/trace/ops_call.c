/* trace/ops_call.c - calls: inlined Python functions, known builtins, array functions, and the
 * rest.
 *
 * An inlined call pushes the callee's real frame; its arguments' shadows are bound by the same
 * rules as the values. Returning gives the result to the caller by the frame's continuation. */
#include "ops.h"

#include "../base/mem.h"


/* -- Binding shadows ------------------------------------------------------------------- */

static TapeRef
default_ref(Recorder *r, TapeRef func, PyFunctionObject *fn, Py_ssize_t i)
{
    PyObject *real = PyTuple_GET_ITEM(fn->func_defaults, i);
    RecVirt *v = rec_virt_of(r, func);

    if (v == NULL) {
        return rec_load(r, TAPE_LDFUNC, TAPE_FUNC_DEFAULT, func, TAPE_NULL, (uint32_t)i, real);
    }
    TapeRef all = rec_ref(r, v->field[3]);
    RecVirt *t = rec_virt_of(r, all);
    if (t != NULL) {
        return rec_ref(r, t->field[i]);
    }
    return TAPE_KIND(all) == TAPE_CONST
               ? rec_const(r, real)
               : rec_load(r, TAPE_LDITEM, 0, all, rec_const_int(r, i), 0, real);
}

static TapeRef
kwdefault_ref(Recorder *r, TapeRef func, PyFunctionObject *fn, PyObject *name)
{
    PyObject *real = PyDict_GetItemWithError(fn->func_kwdefaults, name);
    RecVirt *v = rec_virt_of(r, func);
    uint32_t k = TAPE_INDEX(rec_const(r, name));

    if (v == NULL) {
        return rec_load(r, TAPE_LDFUNC, TAPE_FUNC_KWDEFAULT, func, TAPE_NULL, k, real);
    }
    TapeRef all = rec_ref(r, v->field[4]);
    RecVirt *d = rec_virt_of(r, all);
    for (uint32_t i = 0; d != NULL && i < d->nfields; i += 2) {
        if (rec_konst_borrow(r, d->field[i]) == name) {
            return rec_ref(r, d->field[i + 1]);
        }
    }
    return rec_load(r, TAPE_LDKEY, 0, all, rec_const(r, name), 0, real);
}

static int
param_index(PyCodeObject *co, PyObject *name)
{
    int n = co->co_argcount + co->co_kwonlyargcount;

    for (int i = co->co_posonlyargcount; i < n; i++) {
        PyObject *have = PyTuple_GET_ITEM(co->co_localsplusnames, i);
        if (have == name || PyUnicode_Compare(have, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* py_bind has bound the values, so the call is right; this says where each came from. */
static void
bind_refs(Recorder *r, PyFunctionObject *fn, TapeRef func, const TapeRef *arg, Py_ssize_t npos,
          PyObject *kwnames, TapeRef *slot)
{
    PyCodeObject *co = (PyCodeObject *)fn->func_code;
    Py_ssize_t nargs = co->co_argcount, nnamed = nargs + co->co_kwonlyargcount;
    Py_ssize_t ndef = fn->func_defaults == NULL ? 0 : PyTuple_GET_SIZE(fn->func_defaults);
    TapeRef extra[2 * REC_CALL_MAX];
    uint32_t nextra = 0;

    if (r->broken) {                    /* a ref that is NULL does not say "not given" then */
        return;
    }
    for (Py_ssize_t i = 0; i < npos && i < nargs; i++) {
        slot[i] = arg[i];
    }
    for (Py_ssize_t j = 0; kwnames != NULL && j < PyTuple_GET_SIZE(kwnames); j++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, j);
        int i = param_index(co, name);
        if (i >= 0) {
            slot[i] = arg[npos + j];
        } else {
            extra[nextra++] = rec_const(r, name);
            extra[nextra++] = arg[npos + j];
        }
    }
    for (Py_ssize_t i = 0; i < nnamed; i++) {
        if (slot[i] == TAPE_NULL) {
            slot[i] = i < nargs
                          ? default_ref(r, func, fn, i - (nargs - ndef))
                          : kwdefault_ref(r, func, fn, PyTuple_GET_ITEM(co->co_localsplusnames, i));
        }
    }
    Py_ssize_t at = nnamed;
    if (co->co_flags & CO_VARARGS) {
        Py_ssize_t more = npos > nargs ? npos - nargs : 0;
        if (more == 0) {
            PyObject *empty = PyTuple_New(0);
            slot[at++] = empty == NULL ? TAPE_NULL : rec_const(r, empty);
            Py_XDECREF(empty);
        } else {
            slot[at++] = rec_virt(r, VIRT_TUPLE, arg + nargs, (uint32_t)more);
        }
    }
    if (co->co_flags & CO_VARKEYWORDS) {
        slot[at++] = rec_virt(r, VIRT_DICT, extra, nextra);
    }
}

/* -- Inlining ---------------------------------------------------------------------------- */

bool
rec_inlineable(PyObject *func)
{
    if (!py_plain_function(func)) {
        return false;
    }
    PyCodeObject *co = (PyCodeObject *)((PyFunctionObject *)func)->func_code;
    int never = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    return (co->co_flags & CO_OPTIMIZED) && !(co->co_flags & never);
}

/* 1 pushed, 0 plain Python must make this call, -1 an exception. */
static int
push_callee(Recorder *r, PyFunctionObject *fn, TapeRef func, PyObject *const *real,
            const TapeRef *ref, Py_ssize_t n, PyObject *kwnames, int pop, FrameCont cont,
            int cont_arg)
{
    PyCodeObject *co = (PyCodeObject *)fn->func_code;
    Py_ssize_t nkw = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    PyLive live = {.ours = true};
    TapeRef *sh = cc_calloc((size_t)co->co_nlocalsplus + 1, sizeof(*sh));

    if (sh == NULL || (live.f = py_frame_push(r->ts, fn)) == NULL) {
        cc_free(sh);
        PyErr_Clear();
        return 0;
    }
    int bound = py_bind(fn, real, n - nkw, kwnames, py_frame_slots(live.f));
    if (bound <= 0) {
        py_frame_clear_pop(r->ts, live.f);
        cc_free(sh);
        PyErr_Clear();
        return 0;
    }
    rec_guard_func(r, func, (PyObject *)fn);
    bind_refs(r, fn, func, ref, n - nkw, kwnames, sh);
    /* The caller waits in this instruction with the operands gone; the callee's slots hold them. */
    RecFrame *fr = rec_top(r);
    fr->live.unit = fr->unit;
    fr->live.next = fr->next;
    fr->live.cont = (uint8_t)cont;
    fr->live.cont_arg = (uint8_t)cont_arg;
    py_frame_set_suspended(fr->live.f, fr->next);
    Py_INCREF(fn);
    if (py_live_link(r->ts, &live) < 0) {
        py_frame_clear_pop(r->ts, live.f);
        Py_DECREF(fn);
        cc_free(sh);
        return -1;
    }
    if (rec_add_frame(r, &live, func) < 0) {
        r->broken = true;
        py_live_unlink(r->ts, &live);
        py_frame_clear_pop(r->ts, live.f);
        Py_DECREF(fn);
        cc_free(sh);
        return 0;
    }
    for (int i = 0; i < co->co_nlocalsplus; i++) {
        rec_top(r)->sh[i] = sh[i];
    }
    r->nframes--;                       /* pop in the caller, with the callee's refs already held */
    rec_pop_moved(r, pop);
    r->nframes++;
    Py_DECREF(fn);
    cc_free(sh);
    return 1;
}

RecStatus
rec_call_function(Recorder *r, PyObject *func, TapeRef func_ref, PyObject *const *real,
                  const TapeRef *ref, Py_ssize_t n, PyObject *kwnames, int pop, FrameCont cont,
                  int cont_arg)
{
    if (!rec_inlineable(func)) {
        return rec_stop(r, CC_REASON_BYTECODE, "not a function that can be inlined");
    }
    int done = r->nframes >= (int)r->opt.inline_depth || r->nframes >= REC_MAX_FRAMES - 1
                   ? 0
                   : push_callee(r, (PyFunctionObject *)func, func_ref, real, ref, n, kwnames, pop,
                                 cont, cont_arg);
    return done > 0 ? REC_OK : done < 0 ? REC_ERROR
         : rec_stop(r, CC_REASON_INLINE_DEPTH, "at %d frames", r->nframes);
}

/* -- Returning ------------------------------------------------------------------------------- */

static RecStatus
return_outermost(Recorder *r, PyObject *value, TapeRef ref)
{
    RecFrame *fr = rec_top(r);

    ref = rec_materialise(r, ref);
    if (!r->broken) {
        rec_end(r, rec_ins(TAPE_RET, 0, 0), &ref, 1);
    }
    py_frame_set_stacktop(fr->live.f, fr->sp);
    py_live_unlink(r->ts, &fr->live);
    py_live_end(r->ts, &fr->live);
    Py_CLEAR(fr->bytes);
    cc_free(fr->sh);
    fr->sh = NULL;
    r->nframes = 0;
    r->result = value;
    return REC_DONE;
}

static RecStatus
return_value(Recorder *r, PyObject *value, TapeRef ref)
{
    RecFrame callee = *rec_top(r);

    if (rec_grad_returns(r)) {
        return rec_grad_end(r, value, ref);
    }
    if (r->nframes == 1) {
        return return_outermost(r, value, ref);
    }
    RecFrame *fr = &r->frame[r->nframes - 2];
    if (fr->live.cont == CONT_INIT && value != Py_None) {
        rec_push_steal(r, value, ref);
        return rec_stop(r, CC_REASON_EXCEPTION, "__init__ returned something");
    }
    r->nframes--;
    /* The result is in the caller before the callee's locals die. */
    switch ((FrameCont)fr->live.cont) {
    case CONT_DISCARD:
        Py_DECREF(value);
        break;
    case CONT_INIT:
        Py_DECREF(value);
        rec_push_steal(r, fr->live.extra, fr->extra);
        fr->live.extra = NULL;
        fr->extra = TAPE_NULL;
        break;
    default:
        rec_push_steal(r, value, ref);
        if (fr->live.cont == CONT_GETATTR && fr->live.cont_arg) {
            rec_push_steal(r, NULL, TAPE_NULL);
        }
    }
    rec_frame_died(r, &callee);
    py_frame_set_stacktop(callee.live.f, callee.sp);
    py_live_unlink(r->ts, &callee.live);
    py_live_end(r->ts, &callee.live);
    Py_DECREF(callee.bytes);
    cc_free(callee.sh);
    return REC_OK;
}

RecStatus
rec_op_return_value(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *value = fr->slot[fr->sp - 1];
    TapeRef ref = rec_ref(r, fr->sh[fr->sp - 1]);

    (void)oparg;
    if (r->nframes == 1) {
        ref = rec_materialise(r, ref);  /* while the slots are as at the start of the instruction */
    } else if (r->frame[r->nframes - 2].live.cont == CONT_INIT && value == Py_None
               && TAPE_KIND(ref) == TAPE_REG) {
        rec_guard_is(r, ref, rec_const(r, Py_None), true);
    }
    fr->sp--;
    fr->slot[fr->sp] = NULL;
    fr->sh[fr->sp] = TAPE_NULL;
    return return_value(r, value, ref);
}

RecStatus
rec_op_return_const(Recorder *r, int oparg)
{
    PyObject *value = PyTuple_GET_ITEM(rec_top(r)->co->co_consts, oparg);

    return return_value(r, Py_NewRef(value), rec_const(r, value));
}

/* -- Calls ------------------------------------------------------------------------------------ */

void
rec_call_insert(RecCall *c, PyObject *self, TapeRef ref)
{
    for (Py_ssize_t i = c->n; i >= 1; i--) {
        c->real[i + 1] = c->real[i];
        c->ref[i + 1] = c->ref[i];
    }
    c->real[1] = self;
    c->ref[1] = ref;
    c->n++;
}

/* A bound method is its function with self in front. */
static void
call_unbind(Recorder *r, RecCall *c)
{
    PyObject *m = c->real[0];
    RecVirt *v = rec_virt_of(r, c->ref[0]);
    TapeRef func, self;

    if (!PyMethod_Check(m) || c->n >= REC_CALL_MAX) {
        return;
    }
    if (v != NULL) {
        func = rec_ref(r, v->field[0]);
        self = rec_ref(r, v->field[1]);
    } else {
        rec_guard_type(r, c->ref[0], m);
        func = rec_load(r, TAPE_LDMETH, 0, c->ref[0], TAPE_NULL, 0, PyMethod_GET_FUNCTION(m));
        self = rec_load(r, TAPE_LDMETH, 1, c->ref[0], TAPE_NULL, 0, PyMethod_GET_SELF(m));
    }
    c->real[0] = PyMethod_GET_FUNCTION(m);
    c->ref[0] = func;
    rec_call_insert(c, PyMethod_GET_SELF(m), self);
}

/* An object whose class defines __call__ as a Python function. */
static void
call_object(Recorder *r, RecCall *c)
{
    PyObject *obj = c->real[0];
    PyTypeObject *tp = Py_TYPE(obj);

    if (!(tp->tp_flags & Py_TPFLAGS_HEAPTYPE) || PyType_Check(obj) || c->n >= REC_CALL_MAX
            || (rec_virt_of(r, c->ref[0]) != NULL && !rec_is_virt(r, c->ref[0], VIRT_OBJECT))) {
        return;
    }
    PyObject *name = PyUnicode_InternFromString("__call__");
    PyObject *d = name == NULL ? NULL : _PyType_Lookup(tp, name);
    if (d != NULL && rec_inlineable(d)) {
        TapeRef self = c->ref[0];
        rec_guard_type(r, self, obj);
        c->ref[0] = rec_load_type_attr(r, tp, name, d);
        c->real[0] = d;
        rec_call_insert(c, obj, self);
    }
    Py_XDECREF(name);
    PyErr_Clear();
}

/* Making an exception in C code is no break: what follows is the program's own exception. */
static bool
makes_exception(PyObject *callable)
{
    if (!PyExceptionClass_Check(callable) || Py_TYPE(callable) != &PyType_Type) {
        return false;
    }
    for (const char *const *name = (const char *const[]){"__init__", "__new__", NULL}; *name;
         name++) {
        PyObject *key = PyUnicode_InternFromString(*name);
        PyObject *d = key == NULL ? NULL : _PyType_Lookup((PyTypeObject *)callable, key);
        Py_XDECREF(key);
        if (d == NULL || PyFunction_Check(d) || Py_IS_TYPE(d, &PyStaticMethod_Type)) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

RecStatus
rec_call_residual(Recorder *r, const RecCall *c)
{
    PyObject *res;
    TapeRef out;
    RecStatus st;

    if (c->nstar > 0) {                 /* unknown code may keep the very tuple it is called with */
        st = rec_residual(r, DO_CALLEX, 0, c->star_real, c->star_ref, c->nstar, NULL, c->pop, 0,
                          &res, &out);
    } else {
        st = rec_residual(r, DO_CALL, 0, c->real, c->ref, (uint32_t)c->n + 1, c->kwnames, c->pop, 0,
                          &res, &out);
    }
    if (st == REC_OK) {
        rec_replace_steal(r, c->pop, res, out);
    }
    return st;
}

static RecStatus
call_residual(Recorder *r, RecCall *c)
{
    CcReason why = r->opt.is_disabled(c->real[0]) ? CC_REASON_DISABLED
                 : r->nframes >= (int)r->opt.inline_depth && PyFunction_Check(c->real[0])
                     ? CC_REASON_INLINE_DEPTH
                 : PyFunction_Check(c->real[0]) ? CC_REASON_GENERATOR : CC_REASON_UNKNOWN_CALL;
    PyObject *named = c->real[0];
    const char *name = PyCFunction_Check(named) ? ((PyCFunctionObject *)named)->m_ml->ml_name
                     : PyType_Check(named) ? ((PyTypeObject *)named)->tp_name
                     : PyFunction_Check(named)
                         ? PyUnicode_AsUTF8(((PyFunctionObject *)named)->func_name)
                         : Py_TYPE(named)->tp_name;

    if (name == NULL) {
        PyErr_Clear();
        name = "?";
    }
    RecStatus st = makes_exception(named) ? REC_OK : rec_break(r, why, "%.60s", name);
    return st == REC_OK ? rec_call_residual(r, c) : st;
}

/* A function of ours that runs whole: what is no array decides which kernel it is. */
static void
call_fix_arguments(Recorder *r, RecCall *c)
{
    for (Py_ssize_t i = 1; i <= c->n; i++) {
        if (!front_is_array(c->real[i]) && !front_is_scalar(c->real[i])) {
            c->ref[i] = rec_fix_tree(r, c->ref[i], c->real[i]);
        }
    }
}

/* Whether var() and std() warn depends on it: what was judged is what will be. */
static void
call_fix_ddof(Recorder *r, RecCall *c)
{
    Py_ssize_t nkw = c->kwnames == NULL ? 0 : PyTuple_GET_SIZE(c->kwnames);

    for (Py_ssize_t i = 0; i < nkw; i++) {
        Py_ssize_t at = 1 + c->n - nkw + i;
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(c->kwnames, i), "ddof") == 0) {
            c->ref[at] = rec_fix_value(r, c->ref[at], c->real[at]);
        }
    }
}

static RecStatus
call_array(Recorder *r, RecCall *c, FrontKind kind)
{
    PyObject *res;
    TapeRef out;

    if (front_runs_whole(c->real[0])) {
        rec_guard_func(r, c->ref[0], c->real[0]);
    }
    if (front_is_registered(c->real[0])) {
        call_fix_arguments(r, c);
    } else {
        call_fix_ddof(r, c);
    }
    RecStatus st = rec_pure(r, kind == FRONT_ARRAY ? TAPE_NODE : TAPE_PCALL, DO_CALL, 0, c->real,
                            c->ref, (uint32_t)c->n + 1, c->kwnames, c->pop, &res, &out);

    if (st == REC_OK) {
        rec_replace_steal(r, c->pop, res, out);
    }
    return st;
}

static RecStatus
call_update(Recorder *r, RecCall *c, const FrontUpdate *up)
{
    PyObject *res;
    TapeRef out;
    RecStatus st = rec_update(r, up, DO_CALL, 0, c->real, c->ref, (uint32_t)c->n + 1, c->kwnames,
                              c->pop, &res, &out);

    if (st == REC_OK) {
        rec_replace_steal(r, c->pop, res, out);
    }
    return st;
}

void
rec_call_resolve(Recorder *r, RecCall *c)
{
    call_unbind(r, c);
    call_object(r, c);
}

int
rec_call_push(Recorder *r, const RecCall *c, int pop, FrameCont cont)
{
    return push_callee(r, (PyFunctionObject *)c->real[0], c->ref[0], c->real + 1, c->ref + 1, c->n,
                       c->kwnames, pop, cont, 0);
}

bool
rec_call_may_inline(Recorder *r, const RecCall *c)
{
    return rec_inlineable(c->real[0]) && c->ref[0] != TAPE_NULL
        && r->nframes < (int)r->opt.inline_depth && r->nframes < REC_MAX_FRAMES - 1;
}

static RecStatus
call_plan(Recorder *r, RecCall *c)
{
    RecStatus grad;
    FrontUpdate up;
    bool constant;

    if (rec_grad_begin(r, c, &grad)) {
        return grad;
    }
    rec_call_resolve(r, c);
    constant = TAPE_KIND(c->ref[0]) == TAPE_CONST;
    if (constant) {
        bool handled = false;
        RecStatus st = rec_builtin(r, c->real[0], c->real + 1, c->ref + 1, c->n, c->kwnames, c->pop,
                                   &handled);
        if (handled) {
            return st;
        }
        FrontKind kind = front_classify(DO_CALL, 0, c->real, (uint32_t)c->n + 1, c->kwnames);
        if (kind != FRONT_FOREIGN) {
            return call_array(r, c, kind);
        }
        if (front_update(DO_CALL, 0, c->real, (uint32_t)c->n + 1, c->kwnames, &up)) {
            return call_update(r, c, &up);
        }
        if (PyType_Check(c->real[0])) {
            st = rec_instance_make(r, c, &handled);
            if (handled || st != REC_OK) {
                return st;
            }
        }
    }
    if (rec_call_may_inline(r, c)) {
        int done = rec_call_push(r, c, c->pop, CONT_CALL);
        if (done != 0) {
            return done > 0 ? REC_OK : REC_ERROR;
        }
    }
    return call_residual(r, c);
}

RecStatus
rec_call(Recorder *r, int nargs, PyObject *kwnames, int extra_pop)
{
    RecCall c = {.kwnames = kwnames, .pop = nargs + 2 + extra_pop};

    if (nargs > REC_CALL_MAX - 2) {
        return rec_stop(r, CC_REASON_TOO_MANY_ARGS, "%d", nargs);
    }
    int base = nargs + extra_pop;       /* depth of the slot below the arguments, plus one */
    int first = PY_CALL_NULL_FIRST ? base + 1 : base;   /* NULL or method | self or NULL */
    int second = PY_CALL_NULL_FIRST ? base : base + 1;
    PyObject *maybe = rec_real(r, first);
    bool method = maybe != NULL;
    int callable = PY_CALL_NULL_FIRST ? (method ? first : second) : second;

    c.real[0] = rec_real(r, callable);
    c.ref[0] = rec_peek(r, callable);
    if (method) {
        int self = PY_CALL_NULL_FIRST ? second : first;
        c.real[1] = rec_real(r, self);
        c.ref[1] = rec_peek(r, self);
        c.n = 1;
    }
    for (int i = 0; i < nargs; i++) {
        c.real[1 + c.n] = rec_real(r, base - 1 - i);
        c.ref[1 + c.n] = rec_peek(r, base - 1 - i);
        c.n++;
    }
    return call_plan(r, &c);
}

RecStatus
rec_op_kw_names(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);

    fr->kwnames = PyTuple_GET_ITEM(fr->co->co_consts, oparg);
    fr->kw_start = fr->start;
    return REC_OK;
}

RecStatus
rec_op_call(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *kwnames = fr->kwnames;

    fr->kwnames = NULL;
    return rec_call(r, oparg, kwnames, 0);
}

RecStatus
rec_op_call_kw(Recorder *r, int oparg)
{
    return rec_call(r, oparg, rec_real(r, 0), 1);
}

/* -- f(*args, **kwargs) -------------------------------------------------------------------------
 */

/* The items of the argument tuple and dict as one flat call; false when they are not known. */
static bool
flatten(Recorder *r, RecCall *c, PyObject *args, TapeRef aref, PyObject *kwargs, TapeRef kref,
        PyObject **names)
{
    Py_ssize_t npos = PyTuple_GET_SIZE(args), nkw = kwargs == NULL ? 0 : PyDict_GET_SIZE(kwargs);
    RecVirt *va = rec_virt_of(r, aref), *vk = kwargs == NULL ? NULL : rec_virt_of(r, kref);
    PyObject *key, *value;
    Py_ssize_t pos = 0, i = 0;

    if (npos + nkw > REC_CALL_MAX - 2) {
        return false;
    }
    if (kwargs != NULL && vk == NULL && !rec_guard_keys(r, kref, kwargs)) {
        return false;
    }
    if (va == NULL) {
        rec_guard_len(r, aref, args);
    }
    for (Py_ssize_t k = 0; k < npos; k++) {
        PyObject *item = PyTuple_GET_ITEM(args, k);
        va = rec_virt_of(r, aref);
        c->real[1 + c->n] = item;
        c->ref[1 + c->n] = va != NULL ? rec_ref(r, va->field[k])
                         : TAPE_KIND(aref) == TAPE_CONST
                             ? rec_const(r, item)
                             : rec_load(r, TAPE_LDITEM, 0, aref, rec_const_int(r, k), 0, item);
        c->n++;
    }
    *names = nkw == 0 ? NULL : PyTuple_New(nkw);
    if (nkw > 0 && *names == NULL) {
        PyErr_Clear();
        return false;
    }
    while (nkw > 0 && PyDict_Next(kwargs, &pos, &key, &value)) {
        if (!PyUnicode_CheckExact(key)) {
            Py_CLEAR(*names);
            return false;
        }
        PyTuple_SET_ITEM(*names, i, Py_NewRef(key));
        c->real[1 + c->n] = value;
        vk = rec_virt_of(r, kref);
        c->ref[1 + c->n] = vk != NULL
                               ? rec_ref(r, vk->field[2 * i + 1])
                               : rec_load(r, TAPE_LDKEY, 0, kref, rec_const(r, key), 0, value);
        c->n++;
        i++;
    }
    return true;
}

RecStatus
rec_op_call_function_ex(Recorder *r, int oparg)
{
    bool kw = oparg & 1;
    PyObject *kwargs = kw ? rec_real(r, 0) : NULL;
    PyObject *args = rec_real(r, kw);
    int callable = PY_CALL_NULL_FIRST ? kw + 1 : kw + 2;
    RecCall c = {.pop = 3 + kw};
    PyObject *names = NULL;

    if (!PyTuple_CheckExact(args) || (kw && !PyDict_CheckExact(kwargs))) {
        return rec_stop(r, CC_REASON_BYTECODE, "star arguments that are not a tuple and a dict");
    }
    c.real[0] = c.star_real[0] = rec_real(r, callable);
    c.ref[0] = c.star_ref[0] = rec_peek(r, callable);
    c.star_real[1] = args;
    c.star_ref[1] = rec_peek(r, kw);
    c.star_real[2] = kwargs;
    c.star_ref[2] = kw ? rec_peek(r, 0) : TAPE_NULL;
    c.nstar = 2u + kw;
    if (flatten(r, &c, args, rec_peek(r, kw), kwargs, kw ? rec_peek(r, 0) : TAPE_NULL, &names)) {
        c.kwnames = names;
        RecStatus st = call_plan(r, &c);
        Py_XDECREF(names);
        return st;
    }
    RecStatus st = rec_break(r, CC_REASON_UNKNOWN_CALL, "star arguments");
    return st == REC_OK ? rec_call_residual(r, &c) : st;
}
