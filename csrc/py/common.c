/* py/common.c - what is the same in every version: py/frame.h over the accessors of layout.h.
 *
 * Holds the process-wide state of py/ (one struct, written under the GIL of the interpreter that
 * called py_frame_setup; another interpreter's threads never arm the hook) and, per OS thread, the
 * list of calls that wait for their frame.
 * Invariant of the hook: it is installed exactly while a request waits, unless somebody installed
 * another evaluator above it meanwhile; then it stays below and passes everything on. */
#include "internal.h"

typedef struct HookRequest {
    struct HookRequest *next;
    PyThreadState *ts;
    PyFunctionObject *func;
    PyHookFn run;
    void *ctx;
    bool waiting;
} HookRequest;

static struct {
    PyInterpreterState *interp;
    PyObject *poll;                     /* lambda: None */
    PyObject *names;                    /* opcode.opname */
    vectorcallfunc vectorcall;          /* of plain Python functions */
    _PyFrameEvalFunction previous;      /* the evaluator below the hook */
    int waiting;                        /* requests of all threads */
} common_state;

static _Thread_local HookRequest *hook_requests;
/* frame handed to the previous evaluator just now */
static _Thread_local PyIFrame *hook_passing;

/* -- Module set-up ----------------------------------------------------------- */

int
py_frame_setup(PyObject *module_globals)
{
    PyObject *code = NULL, *poll = NULL, *module = NULL, *names = NULL;
    int status = -1;

    code = Py_CompileString("lambda: None", "<ccompile>", Py_eval_input);
    if (code == NULL) {
        goto done;
    }
    poll = PyEval_EvalCode(code, module_globals, module_globals);
    if (poll == NULL) {
        goto done;
    }
    module = PyImport_ImportModule("opcode");
    if (module == NULL) {
        goto done;
    }
    names = PyObject_GetAttrString(module, "opname");
    if (names == NULL) {
        goto done;
    }
    if (!PyFunction_Check(poll) || !PyList_Check(names)) {
        PyErr_SetString(PyExc_SystemError, "this Python does not look like CPython");
        goto done;
    }
    common_state.interp = PyInterpreterState_Get();
    common_state.vectorcall = ((PyFunctionObject *)poll)->vectorcall;
    Py_XSETREF(common_state.poll, Py_NewRef(poll));
    Py_XSETREF(common_state.names, Py_NewRef(names));
    status = 0;
done:
    Py_XDECREF(code);
    Py_XDECREF(poll);
    Py_XDECREF(module);
    Py_XDECREF(names);
    return status;
}

PyObject *
py_poll_function_borrow(void)
{
    return common_state.poll;
}

bool
py_is_poll_entry(PyObject *tb)
{
    PyIFrame *f = ((PyTracebackObject *)tb)->tb_frame->f_frame;

    return (PyObject *)layout_code(f) == ((PyFunctionObject *)common_state.poll)->func_code;
}

/* -- Thread ------------------------------------------------------------------ */

PyIFrame *
py_current_frame(PyThreadState *ts)
{
    return *layout_current(ts);
}

bool
py_breaker_set(PyThreadState *ts)
{
    return layout_breaker(ts);
}

PyObject *
py_handled_exc_borrow(PyThreadState *ts)
{
    return ts->exc_info->exc_value;
}

void
py_set_handled_exc_steal(PyThreadState *ts, PyObject *exc)
{
    PyObject *old = ts->exc_info->exc_value;

    ts->exc_info->exc_value = exc;
    Py_XDECREF(old);
}

/* -- The PEP 523 hook -------------------------------------------------------- */

static PyObject *hook_eval(PyThreadState *ts, PyIFrame *f, int throwflag);

static void
hook_add(PyThreadState *ts, HookRequest *request)
{
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(ts->interp);

    if (now != hook_eval) {
        common_state.previous = now;
        _PyInterpreterState_SetEvalFrameFunc(ts->interp, hook_eval);
    }
    common_state.waiting++;
    request->waiting = true;
    request->next = hook_requests;
    hook_requests = request;
}

/* Not a plain pop: a switch of C stacks within the thread may end calls in another order. */
static void
hook_remove(PyThreadState *ts, HookRequest *request)
{
    HookRequest **at = &hook_requests;

    while (*at != NULL && *at != request) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = request->next;
    }
    request->waiting = false;
    if (--common_state.waiting == 0
        && _PyInterpreterState_GetEvalFrameFunc(ts->interp) == hook_eval) {
        _PyInterpreterState_SetEvalFrameFunc(ts->interp, common_state.previous);
    }
}

/* The same frame coming round again means that the evaluator below us was installed above us and
 * passes on to us: then the default one ends the circle. */
static PyObject *
hook_pass(PyThreadState *ts, PyIFrame *f, int throwflag)
{
    _PyFrameEvalFunction eval = common_state.previous;
    PyIFrame *outer = hook_passing;
    PyObject *res;

    if (eval == NULL || eval == hook_eval || outer == f) {
        eval = _PyEval_EvalFrameDefault;
    }
    if (eval == _PyEval_EvalFrameDefault) {
        return eval(ts, f, throwflag);
    }
    hook_passing = f;
    res = eval(ts, f, throwflag);
    hook_passing = outer;
    return res;
}

static PyObject *
hook_eval(PyThreadState *ts, PyIFrame *f, int throwflag)
{
    const int generator = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    HookRequest *request = hook_requests;

    if (request == NULL) {              /* another thread armed it */
        return hook_pass(ts, f, throwflag);
    }
    if (throwflag || f->owner != FRAME_OWNED_BY_THREAD || (layout_code(f)->co_flags & generator)) {
        return hook_pass(ts, f, throwflag);
    }
    while (request != NULL && (request->ts != ts || request->func != layout_func(f))) {
        request = request->next;
    }
    if (request == NULL) {
        return hook_pass(ts, f, throwflag);
    }
    hook_remove(ts, request);
    return request->run(ts, f, request->ctx);
}

PyObject *
py_call_hooked(PyThreadState *ts, PyObject *callable, PyObject *const *args, size_t nargsf,
               PyObject *kwnames, PyFunctionObject *func, PyHookFn hook, void *ctx)
{
    HookRequest request = {NULL, ts, func, hook, ctx, false};
    PyObject *res;

    if (ts->interp != common_state.interp) {
        return PyObject_Vectorcall(callable, args, nargsf, kwnames);
    }
    hook_add(ts, &request);
    res = PyObject_Vectorcall(callable, args, nargsf, kwnames);
    if (request.waiting) {
        hook_remove(ts, &request);
    }
    return res;
}

/* Pop the value stack down to `depth` values. */
static void
frame_drop_stack(PyIFrame *f, int depth)
{
    int base = layout_code(f)->co_nlocalsplus + depth;

    while (f->stacktop > base) {
        PyObject *value = f->localsplus[--f->stacktop];
        Py_XDECREF(value);
    }
}

void
py_hook_frame_done(PyThreadState *ts, PyIFrame *f)
{
    if (LAYOUT_EVAL_POPS) {
        py_frame_clear_pop(ts, f);
    }
    else {
        frame_drop_stack(f, 0);
    }
}

/* -- Reading a frame --------------------------------------------------------- */

PyCodeObject *
py_frame_code_borrow(const PyIFrame *f)
{
    return layout_code(f);
}

PyFunctionObject *
py_frame_func_borrow(const PyIFrame *f)
{
    return layout_func(f);
}

PyObject *
py_frame_globals_borrow(const PyIFrame *f)
{
    return f->f_globals;
}

PyObject *
py_frame_builtins_borrow(const PyIFrame *f)
{
    return f->f_builtins;
}

PyObject **
py_frame_slots(PyIFrame *f)
{
    return f->localsplus;
}

int
py_frame_stacktop(const PyIFrame *f)
{
    return f->stacktop;
}

void
py_frame_set_stacktop(PyIFrame *f, int top)
{
    f->stacktop = top;
}

bool
py_frame_has_object(const PyIFrame *f)
{
    return f->frame_obj != NULL;
}

bool
py_frame_is_complete(const PyIFrame *f)
{
    return !_PyFrame_IsIncomplete((PyIFrame *)f);
}

/* With `f` on top of the chain it is what PyThreadState_GetFrame looks at. */
PyFrameObject *
py_frame_object_borrow(PyThreadState *ts, PyIFrame *f)
{
    PyIFrame **current = layout_current(ts), *saved = *current;

    if (f->frame_obj == NULL) {
        *current = f;
        Py_XDECREF(PyThreadState_GetFrame(ts));
        *current = saved;
    }
    return f->frame_obj;
}

/* -- Position ---------------------------------------------------------------- */

static int
frame_instr(const PyIFrame *f)
{
    return (int)(*layout_instr((PyIFrame *)f) - _PyCode_CODE(layout_code(f)));
}

static void
frame_set_instr(PyIFrame *f, int unit)
{
    *layout_instr(f) = _PyCode_CODE(layout_code(f)) + unit;
}

int
py_frame_next(const PyIFrame *f)
{
    return frame_instr(f) + LAYOUT_NEXT_BIAS;
}

void
py_frame_set_next(PyIFrame *f, int unit)
{
    frame_set_instr(f, unit - LAYOUT_NEXT_BIAS);
}

void
py_frame_set_running(PyIFrame *f, int unit)
{
    frame_set_instr(f, unit);
}

void
py_frame_set_suspended(PyIFrame *f, int next)
{
    /* the last unit of the call: same line, inside its handlers */
    frame_set_instr(f, next - 1);
}

/* -- Life -------------------------------------------------------------------- */

PyIFrame *
py_frame_push(PyThreadState *ts, PyFunctionObject *func)
{
    PyCodeObject *co = (PyCodeObject *)func->func_code;
    PyObject *locals = (co->co_flags & CO_OPTIMIZED) ? NULL : Py_NewRef(func->func_globals);
    PyIFrame *f = (PyIFrame *)py_stack_push(ts, layout_slots(co));

    if (f == NULL) {
        Py_XDECREF(locals);
        return NULL;
    }
    layout_init_frame(f, (PyFunctionObject *)Py_NewRef(func), locals, co);
    f->previous = NULL;
    return f;
}

void
py_frame_clear_pop(PyThreadState *ts, PyIFrame *f)
{
    py_frame_clear(ts, f);
    py_stack_pop(ts, f);
}

void
py_frame_link(PyThreadState *ts, PyIFrame *f)
{
    PyIFrame **current = layout_current(ts);

    f->previous = *current;
    *current = f;
}

void
py_frame_unlink(PyThreadState *ts, PyIFrame *f)
{
    *layout_current(ts) = f->previous;
}

PyObject *
py_frame_eval(PyThreadState *ts, PyIFrame *f, bool ours)
{
    PyObject *res = _PyEval_EvalFrameDefault(ts, f, 0);

    if (ours && !LAYOUT_EVAL_POPS) {
        py_frame_clear_pop(ts, f);
    }
    return res;
}

/* -- Code objects ------------------------------------------------------------ */

PyObject *
py_code_bytes(PyCodeObject *co)
{
    return PyCode_GetCode(co);
}

/* A number of the exception table: 6 bits per byte, high ones first, 64 = more follow. */
static const unsigned char *
code_read_number(const unsigned char *at, int *number)
{
    int value = *at & 63;

    while (*at++ & 64) {
        value = value << 6 | (*at & 63);
    }
    *number = value;
    return at;
}

/* Rows: start, length, handler, depth * 2 + lasti; sorted by start, not overlapping. */
bool
py_code_handler(PyCodeObject *co, int unit, int *depth, int *handler, bool *lasti)
{
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(co->co_exceptiontable);
    const unsigned char *end = at + PyBytes_GET_SIZE(co->co_exceptiontable);
    int start, length, target, packed;

    while (at < end) {
        at = code_read_number(at, &start);
        at = code_read_number(at, &length);
        at = code_read_number(at, &target);
        at = code_read_number(at, &packed);
        if (unit < start) {
            return false;
        }
        if (unit < start + length) {
            *handler = target;
            *depth = packed >> 1;
            *lasti = packed & 1;
            return true;
        }
    }
    return false;
}

int
py_code_line(PyCodeObject *co, int unit)
{
    return PyCode_Addr2Line(co, unit * (int)sizeof(_Py_CODEUNIT));
}

const char *
py_opcode_name(int opcode)
{
    PyObject *name;
    const char *text;

    if (opcode < 0 || opcode >= PyList_GET_SIZE(common_state.names)) {
        return "";
    }
    name = PyList_GET_ITEM(common_state.names, opcode);
    text = PyUnicode_AsUTF8(name);
    if (text == NULL) {
        PyErr_Clear();
        return "";
    }
    return text[0] == '<' ? "" : text;  /* opcode.py writes a hole as <n> */
}

/* -- Errors ------------------------------------------------------------------ */

int
py_unwind_raised(PyThreadState *Py_UNUSED(ts), PyIFrame *f, int unit)
{
    int depth, handler;
    bool lasti;

    for (;;) {
        PyObject *at;

        if (!py_code_handler(layout_code(f), unit, &depth, &handler, &lasti)) {
            frame_drop_stack(f, 0);
            return -1;
        }
        frame_drop_stack(f, depth);
        if (!lasti) {
            break;
        }
        at = PyLong_FromLong(frame_instr(f));
        if (at != NULL) {
            f->localsplus[f->stacktop++] = at;
            break;
        }
        /* out of memory is the exception now, and it is handled at the same place */
    }
    f->localsplus[f->stacktop] = py_exc_take();
    f->stacktop++;
    return handler;
}

int
py_unwind(PyThreadState *ts, PyIFrame *f, int unit)
{
    if (!PyErr_Occurred()) {            /* a bug of an extension module; as CPython calls it */
        PyErr_SetString(PyExc_SystemError, "error return without exception set");
    }
    py_frame_set_running(f, unit);
    if (py_frame_is_complete(f)) {
        PyFrameObject *fo = py_frame_object_borrow(ts, f);
        if (fo != NULL) {
            PyTraceBack_Here(fo);
        }
        else if (!PyErr_Occurred()) {   /* the API hides why it made none */
            PyErr_NoMemory();
        }
    }
    return py_unwind_raised(ts, f, unit);
}

/* -- What an argument means -------------------------------------------------- */

void
py_arg_compare(int oparg, int *op, bool *to_bool)
{
    *op = oparg >> LAYOUT_COMPARE_SHIFT;
    *to_bool = (oparg & LAYOUT_COMPARE_BOOL) != 0;
}

void
py_arg_load_global(int oparg, int *name, bool *push_null)
{
    *name = oparg >> 1;
    *push_null = oparg & 1;
}

void
py_arg_load_attr(int oparg, int *name, bool *method)
{
    *name = oparg >> LAYOUT_ATTR_METHOD_BIT;
    *method = LAYOUT_ATTR_METHOD_BIT && (oparg & 1);
}

int
py_for_iter_exhausted(int next, int oparg)
{
    return next + oparg + LAYOUT_FOR_ITER_END;
}

/* -- Functions --------------------------------------------------------------- */

bool
py_plain_function(PyObject *callable)
{
    return Py_IS_TYPE(callable, &PyFunction_Type)
           && ((PyFunctionObject *)callable)->vectorcall == common_state.vectorcall;
}

/* -- Dicts and instances ----------------------------------------------------- */

uint64_t
py_dict_tag(PyObject *dict)
{
    return ((PyDictObject *)dict)->ma_version_tag >> LAYOUT_DICT_TAG_SHIFT;
}

/* Two exact strings with the same text; the hash of `name` is known. */
static bool
dict_same_name(PyObject *key, PyObject *name)
{
    if (key == name) {
        return true;
    }
    return PyUnicode_CheckExact(key)
           && ((PyASCIIObject *)key)->hash == ((PyASCIIObject *)name)->hash
           && PyUnicode_GET_LENGTH(key) == PyUnicode_GET_LENGTH(name)
           && PyUnicode_Compare(key, name) == 0;
}

/* Index of `name` among the entries of a table whose keys are all strings; -1 = absent. */
static Py_ssize_t
dict_find_string(PyDictKeysObject *keys, PyObject *name)
{
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);

    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        if (entries[i].me_key == name) {
            return i;
        }
    }
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        if (entries[i].me_key != NULL && dict_same_name(entries[i].me_key, name)) {
            return i;
        }
    }
    return -1;
}

static PyObject *
dict_find_general(PyDictKeysObject *keys, PyObject *name)
{
    PyDictKeyEntry *entries = DK_ENTRIES(keys);

    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        if (entries[i].me_value != NULL && dict_same_name(entries[i].me_key, name)) {
            return entries[i].me_value;
        }
    }
    return NULL;
}

PyObject *
py_instance_attr_borrow(PyObject *obj, PyObject *name)
{
    PyObject *dict, **values;
    PyDictKeysObject *keys;
    Py_hash_t hash;
    Py_ssize_t i;

    if (!PyUnicode_CheckExact(name)) {
        return NULL;
    }
    hash = PyObject_Hash(name);         /* of an exact string: cached or computed, cannot fail */
    values = layout_instance(obj, &dict);
    if (values != NULL) {
        i = dict_find_string(((PyHeapTypeObject *)Py_TYPE(obj))->ht_cached_keys, name);
        return i >= 0 ? values[i] : NULL;
    }
    if (dict == NULL) {
        return NULL;
    }
    keys = ((PyDictObject *)dict)->ma_keys;
    /* a key of another type could run code: not asked */
    if (keys->dk_kind == DICT_KEYS_GENERAL) {
        return dict_find_general(keys, name);
    }
    return _PyDict_GetItem_KnownHash(dict, name, hash);
}

/* -- Dict iterators ------------------------------------------------------------ */

/* Objects/dictobject.c has this layout in all supported versions. */
typedef struct {
    PyObject_HEAD
    PyObject *dict;                     /* NULL when used up */
    Py_ssize_t used, pos;
} DictIter;

bool
py_dict_part(PyObject *view, PyDictPart *part)
{
    PyTypeObject *const type[] = {&PyDictKeys_Type, &PyDictValues_Type, &PyDictItems_Type};

    for (int i = 0; i < 3; i++) {
        if (Py_IS_TYPE(view, type[i])) {
            *part = (PyDictPart)i;
            return PyDict_CheckExact(py_dict_of_view_borrow(view));
        }
    }
    return false;
}

PyObject *
py_dict_of_view_borrow(PyObject *view)
{
    return (PyObject *)((_PyDictViewObject *)view)->dv_dict;
}

PyObject *
py_dict_of_iter_borrow(PyObject *it)
{
    return ((DictIter *)it)->dict;
}

PyObject *
py_dict_view(PyObject *dict, PyDictPart part)
{
    static const char *const name[] = {"keys", "values", "items"};

    return PyObject_CallMethod(dict, name[part], NULL);
}

PyObject *
py_dict_iter(PyObject *dict, PyDictPart part, Py_ssize_t skip, Py_ssize_t used)
{
    PyObject *view = py_dict_view(dict, part);
    PyObject *it = view == NULL ? NULL : PyObject_GetIter(view);

    Py_XDECREF(view);
    for (; it != NULL && skip > 0 && PyDict_GET_SIZE(dict) == used; skip--) {
        PyObject *item = PyIter_Next(it);
        if (item == NULL && PyErr_Occurred()) {
            Py_CLEAR(it);
        }
        Py_XDECREF(item);
    }
    if (it != NULL) {
        ((DictIter *)it)->used = used;  /* another size now: the next step raises */
    }
    return it;
}
