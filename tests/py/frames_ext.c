/* tests/py/frames_ext.c - the functions of py/frame.h, callable from Python tests only.
 *
 * A NULL slot is written as the object NULL of this module. Frames are given as tuples
 * (function, unit, slots, stack). */
#include "py/frame.h"

static PyObject *ext_null;              /* stands for an unset slot */

static PyObject *
ext_slot(PyObject *value)               /* new reference for Python */
{
    return Py_NewRef(value != NULL ? value : ext_null);
}

static PyObject *
ext_list(PyObject **slots, Py_ssize_t n)
{
    PyObject *list = PyList_New(n);

    for (Py_ssize_t i = 0; list != NULL && i < n; i++) {
        PyList_SET_ITEM(list, i, ext_slot(slots[i]));
    }
    return list;
}

/* -- Binding ----------------------------------------------------------------- */

/* bind(func, values, kwnames) -> list of slots, or the status */
static PyObject *
ext_bind(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *func, *values, *kwnames, *slots[64], *res;
    Py_ssize_t nkw;
    int status, n;

    if (!PyArg_ParseTuple(args, "O!O!O!", &PyFunction_Type, &func, &PyTuple_Type, &values,
                          &PyTuple_Type, &kwnames)) {
        return NULL;
    }
    n = py_nparams((PyCodeObject *)((PyFunctionObject *)func)->func_code);
    nkw = PyTuple_GET_SIZE(kwnames);
    status = py_bind((PyFunctionObject *)func, &PyTuple_GET_ITEM(values, 0),
                     PyTuple_GET_SIZE(values) - nkw, nkw > 0 ? kwnames : NULL, slots);
    if (status < 0 || PyErr_Occurred()) {
        return NULL;
    }
    if (status == 0) {
        for (int i = 0; i < n; i++) {
            if (slots[i] != NULL) {
                PyErr_SetString(PyExc_AssertionError, "a refused call left a slot behind");
                return NULL;
            }
        }
        return PyLong_FromLong(0);
    }
    res = ext_list(slots, n);
    for (int i = 0; i < n; i++) {
        Py_XDECREF(slots[i]);
    }
    return res;
}

/* -- Frames ------------------------------------------------------------------ */

static PyIFrame *
ext_push(PyThreadState *ts, PyObject *spec, int *unit)
{
    PyObject *func, *locals, *stack;
    PyIFrame *f;
    PyObject **slots;
    Py_ssize_t n = 0;

    if (!PyArg_ParseTuple(spec, "O!iO!O!", &PyFunction_Type, &func, unit, &PyList_Type, &locals,
                          &PyList_Type, &stack)) {
        return NULL;
    }
    f = py_frame_push(ts, (PyFunctionObject *)func);
    if (f == NULL) {
        return NULL;
    }
    slots = py_frame_slots(f);
    for (Py_ssize_t part = 0; part < 2; part++) {
        PyObject *list = part == 0 ? locals : stack;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++, n++) {
            PyObject *value = PyList_GET_ITEM(list, i);
            slots[n] = value == ext_null ? NULL : Py_NewRef(value);
        }
    }
    py_frame_set_stacktop(f, (int)n);
    return f;
}

/* run(spec, ...) -> result of the outermost frame; the last spec is the innermost frame */
static PyObject *
ext_run(PyObject *Py_UNUSED(self), PyObject *specs)
{
    PyThreadState *ts = PyThreadState_Get();
    int n = (int)PyTuple_GET_SIZE(specs), unit[16] = {0};
    PyIFrame *frames[16] = {NULL};
    PyObject *res;

    if (n < 1 || n > 16) {
        PyErr_SetString(PyExc_ValueError, "1 to 16 frames");
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        frames[i] = ext_push(ts, PyTuple_GET_ITEM(specs, i), &unit[i]);
        if (frames[i] == NULL) {
            return NULL;
        }
        if (i < n - 1) {
            py_frame_set_suspended(frames[i], unit[i]);
            py_frame_link(ts, frames[i]);
            if (py_recursion_enter(ts) < 0) {
                return NULL;
            }
        }
    }
    py_frame_set_next(frames[n - 1], unit[n - 1]);
    res = py_frame_eval(ts, frames[n - 1], true);
    for (int i = n - 2; i >= 0; i--) {
        PyIFrame *f = frames[i];
        int next = unit[i];

        py_recursion_leave(ts);
        if (res != NULL) {
            int top = py_frame_stacktop(f);
            py_frame_slots(f)[top] = res;
            py_frame_set_stacktop(f, top + 1);
        }
        else {
            next = py_unwind(ts, f, unit[i] - 1);
        }
        py_frame_unlink(ts, f);
        if (next < 0) {
            py_frame_clear_pop(ts, f);
            continue;
        }
        py_frame_set_next(f, next);
        res = py_frame_eval(ts, f, true);
    }
    return res;
}

/* push_clear(spec, with_object) -> the frame object, else None: a frame that lives and dies unrun.
 * With an object, the frame is linked and its unit is running. */
static PyObject *
ext_push_clear(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyThreadState *ts = PyThreadState_Get();
    PyObject *spec, *object = NULL;
    int with_object, unit;
    PyIFrame *f;

    if (!PyArg_ParseTuple(args, "Op", &spec, &with_object)) {
        return NULL;
    }
    f = ext_push(ts, spec, &unit);
    if (f == NULL) {
        return NULL;
    }
    if (with_object) {
        py_frame_link(ts, f);
        py_frame_set_running(f, unit);
        object = Py_XNewRef((PyObject *)PyEval_GetFrame());
        if (!py_frame_has_object(f)) {
            PyErr_SetString(PyExc_AssertionError, "no frame object");
            Py_CLEAR(object);
        }
        py_frame_unlink(ts, f);
    }
    py_frame_clear_pop(ts, f);
    return with_object ? object : Py_NewRef(Py_None);
}

static void *
ext_no_arena(void *Py_UNUSED(ctx), size_t Py_UNUSED(size))
{
    return NULL;
}

/* without_arenas(spec): push_clear while CPython's allocator of chunks has none to give */
static PyObject *
ext_without_arenas(PyObject *Py_UNUSED(self), PyObject *spec)
{
    PyObjectArenaAllocator saved, none;
    PyThreadState *ts = PyThreadState_Get();
    PyIFrame *f;
    int unit;

    PyObject_GetArenaAllocator(&saved);
    none = saved;
    none.alloc = ext_no_arena;
    PyObject_SetArenaAllocator(&none);
    f = ext_push(ts, spec, &unit);
    PyObject_SetArenaAllocator(&saved);
    if (f == NULL) {
        return NULL;
    }
    py_frame_clear_pop(ts, f);
    Py_RETURN_NONE;
}

/* unwind(spec, exc, raised) -> (handler, stack, exception): spec's unit was executing */
static PyObject *
ext_unwind(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyThreadState *ts = PyThreadState_Get();
    PyObject *spec, *exc, *stack = NULL, *pending;
    int raised, unit, handler, base;
    PyIFrame *f;

    if (!PyArg_ParseTuple(args, "OOp", &spec, &exc, &raised)) {
        return NULL;
    }
    f = ext_push(ts, spec, &unit);
    if (f == NULL) {
        return NULL;
    }
    py_frame_link(ts, f);
    py_frame_set_running(f, unit);
    if (PyType_Check(exc)) {
        PyErr_SetNone(exc);             /* not normalised yet on 3.11 */
    }
    else {
        py_exc_give_steal(Py_NewRef(exc));
    }
    handler = raised ? py_unwind_raised(ts, f, unit) : py_unwind(ts, f, unit);
    pending = handler < 0 ? py_exc_take() : NULL;
    base = py_frame_code_borrow(f)->co_nlocalsplus;
    if (!PyErr_Occurred()) {
        stack = ext_list(py_frame_slots(f) + base, py_frame_stacktop(f) - base);
    }
    py_frame_unlink(ts, f);
    py_frame_clear_pop(ts, f);
    if (stack == NULL) {
        Py_XDECREF(pending);
        return NULL;
    }
    return Py_BuildValue("(iNN)", handler, stack, pending != NULL ? pending : Py_NewRef(Py_None));
}

/* -- The hook ---------------------------------------------------------------- */

typedef struct {
    const char *mode;
    int fired;
    PyObject *seen;                     /* (next, stacktop - nlocalsplus, complete, has_object) */
} HookRun;

static PyObject *
ext_hook(PyThreadState *ts, PyIFrame *f, void *ctx)
{
    HookRun *run = ctx;
    PyCodeObject *co = py_frame_code_borrow(f);

    run->fired++;
    Py_XSETREF(run->seen, Py_BuildValue("(iiOO)", py_frame_next(f),
                                        py_frame_stacktop(f) - co->co_nlocalsplus,
                                        py_frame_is_complete(f) ? Py_True : Py_False,
                                        py_frame_has_object(f) ? Py_True : Py_False));
    if (run->mode[0] == 'h') {          /* hand off at once */
        return py_frame_eval(ts, f, false);
    }
    if (run->mode[0] == 'e') {          /* die from an exception */
        py_hook_frame_done(ts, f);
        PyErr_SetString(PyExc_LookupError, "from the hook");
        return NULL;
    }
    if (run->mode[0] == 'o') {          /* return, leaving a frame object behind */
        PyObject *object;
        py_frame_link(ts, f);
        py_frame_set_running(f, py_frame_next(f) + 1);
        object = Py_XNewRef((PyObject *)PyEval_GetFrame());
        py_frame_unlink(ts, f);
        py_hook_frame_done(ts, f);
        return object;
    }
    if (run->mode[0] == 's') {          /* return with a value left on the stack */
        int top = py_frame_stacktop(f);
        py_frame_slots(f)[top] = Py_NewRef(co->co_name);
        py_frame_set_stacktop(f, top + 1);
    }
    py_hook_frame_done(ts, f);
    return PyUnicode_FromString("from the hook");
}

/* hooked(mode, func, callable, values, kwnames) -> (result, fired, seen); exceptions pass */
static PyObject *
ext_hooked(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *func, *callable, *values, *kwnames, *res;
    HookRun run = {NULL, 0, NULL};
    Py_ssize_t nkw;

    if (!PyArg_ParseTuple(args, "sO!OO!O!", &run.mode, &PyFunction_Type, &func, &callable,
                          &PyTuple_Type, &values, &PyTuple_Type, &kwnames)) {
        return NULL;
    }
    nkw = PyTuple_GET_SIZE(kwnames);
    res = py_call_hooked(PyThreadState_Get(), callable, &PyTuple_GET_ITEM(values, 0),
                         (size_t)(PyTuple_GET_SIZE(values) - nkw), nkw > 0 ? kwnames : NULL,
                         (PyFunctionObject *)func, ext_hook, &run);
    if (res == NULL) {
        Py_XDECREF(run.seen);
        return NULL;
    }
    return Py_BuildValue("(NiN)", res, run.fired, run.seen != NULL ? run.seen : Py_NewRef(Py_None));
}

static Py_ssize_t ext_counted;

static PyObject *
ext_count_eval(PyThreadState *ts, PyIFrame *f, int throwflag)
{
    ext_counted++;
    return _PyEval_EvalFrameDefault(ts, f, throwflag);
}

/* evaluator(on) -> frames counted so far: an evaluator of somebody else, installed or removed */
static PyObject *
ext_evaluator(PyObject *Py_UNUSED(self), PyObject *on)
{
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), PyObject_IsTrue(on)
                                         ? ext_count_eval : _PyEval_EvalFrameDefault);
    return PyLong_FromSsize_t(ext_counted);
}

/* evaluator_name() -> 'default', 'counting' or 'other' */
static PyObject *
ext_evaluator_name(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    _PyFrameEvalFunction now = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());

    return PyUnicode_FromString(now == _PyEval_EvalFrameDefault ? "default"
                                : now == ext_count_eval ? "counting" : "other");
}

/* -- Thread state ------------------------------------------------------------ */

static PyObject *
ext_state(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    PyThreadState *ts = PyThreadState_Get();

    return Py_BuildValue("(nn)", (Py_ssize_t)ts->datastack_top, (Py_ssize_t)py_current_frame(ts));
}

static PyObject *
ext_tracing(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(py_tracing(PyThreadState_Get()));
}

static PyObject *
ext_code_monitored(PyObject *Py_UNUSED(self), PyObject *code)
{
    return PyBool_FromLong(py_code_monitored((PyCodeObject *)code));
}

/* poll(spins) -> how often the breaker was set; polls each time */
static PyObject *
ext_poll(PyObject *Py_UNUSED(self), PyObject *spins)
{
    PyThreadState *ts = PyThreadState_Get();
    long polled = 0;

    for (long i = PyLong_AsLong(spins); i > 0; i--) {
        if (py_breaker_set(ts)) {
            polled++;
            if (py_poll(ts) < 0) {
                return NULL;
            }
        }
    }
    return PyLong_FromLong(polled);
}

static PyObject *
ext_poll_now(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    if (py_poll(PyThreadState_Get()) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* recurse(func): func() inside one counted call of ours */
static PyObject *
ext_recurse(PyObject *Py_UNUSED(self), PyObject *func)
{
    PyThreadState *ts = PyThreadState_Get();
    PyObject *res;

    if (py_recursion_enter(ts) < 0) {
        return NULL;
    }
    res = PyObject_CallNoArgs(func);
    py_recursion_leave(ts);
    return res;
}

/* handled(exc) -> what sys.exc_info() would have shown before; afterwards it shows exc */
static PyObject *
ext_handled(PyObject *Py_UNUSED(self), PyObject *exc)
{
    PyThreadState *ts = PyThreadState_Get();
    PyObject *old = ext_slot(py_handled_exc_borrow(ts));

    py_set_handled_exc_steal(ts, Py_NewRef(exc));
    return old;
}

/* exc_round_trip(func): the exception of func() taken, given back, taken again */
static PyObject *
ext_exc_round_trip(PyObject *Py_UNUSED(self), PyObject *func)
{
    PyObject *res = PyObject_CallNoArgs(func);

    if (res != NULL) {
        return res;
    }
    py_exc_give_steal(py_exc_take());
    return py_exc_take();
}

/* -- Code, functions, dicts -------------------------------------------------- */

static PyObject *
ext_code_bytes(PyObject *Py_UNUSED(self), PyObject *code)
{
    return py_code_bytes((PyCodeObject *)code);
}

static PyObject *
ext_handler(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *code;
    int unit, depth, handler;
    bool lasti;

    if (!PyArg_ParseTuple(args, "O!i", &PyCode_Type, &code, &unit)) {
        return NULL;
    }
    if (!py_code_handler((PyCodeObject *)code, unit, &depth, &handler, &lasti)) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(iiO)", depth, handler, lasti ? Py_True : Py_False);
}

static PyObject *
ext_line(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *code;
    int unit;

    if (!PyArg_ParseTuple(args, "O!i", &PyCode_Type, &code, &unit)) {
        return NULL;
    }
    return PyLong_FromLong(py_code_line((PyCodeObject *)code, unit));
}

/* opcode(op) -> (name, caches) */
static PyObject *
ext_opcode(PyObject *Py_UNUSED(self), PyObject *op)
{
    int opcode = (int)PyLong_AsLong(op);

    return Py_BuildValue("(si)", py_opcode_name(opcode), py_caches(opcode));
}

/* argument(kind, oparg) -> what the argument of an instruction means */
static PyObject *
ext_argument(PyObject *Py_UNUSED(self), PyObject *args)
{
    const char *kind;
    int oparg, value = 0;
    bool flag = false;

    if (!PyArg_ParseTuple(args, "si", &kind, &oparg)) {
        return NULL;
    }
    switch (kind[0]) {
    case 'c':
        py_arg_compare(oparg, &value, &flag);
        break;
    case 'g':
        py_arg_load_global(oparg, &value, &flag);
        break;
    case 'a':
        py_arg_load_attr(oparg, &value, &flag);
        break;
    default:
        value = py_for_iter_exhausted(0, oparg);
        flag = PY_CALL_NULL_FIRST;
    }
    return Py_BuildValue("(iO)", value, flag ? Py_True : Py_False);
}

static PyObject *
ext_make_function(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *code, *globals;

    if (!PyArg_ParseTuple(args, "OO", &code, &globals)) {
        return NULL;
    }
    return py_make_function(code, globals, NULL);
}

static PyObject *
ext_function_version(PyObject *Py_UNUSED(self), PyObject *func)
{
    return PyLong_FromUnsignedLong(((PyFunctionObject *)func)->func_version);
}

static PyObject *
ext_plain_function(PyObject *Py_UNUSED(self), PyObject *callable)
{
    return PyBool_FromLong(py_plain_function(callable));
}

static PyObject *
ext_dict_tag(PyObject *Py_UNUSED(self), PyObject *dict)
{
    return PyLong_FromUnsignedLongLong(py_dict_tag(dict));
}

static PyObject *
ext_type_tag(PyObject *Py_UNUSED(self), PyObject *type)
{
    return PyLong_FromUnsignedLong(py_type_tag((PyTypeObject *)type));
}

static PyObject *
ext_instance_attr(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *obj, *name, *value;

    if (!PyArg_ParseTuple(args, "OO", &obj, &name)) {
        return NULL;
    }
    value = py_instance_attr_borrow(obj, name);
    return PyErr_Occurred() ? NULL : ext_slot(value);
}

/* -- Module ------------------------------------------------------------------ */

static PyMethodDef ext_methods[] = {
    {"bind", ext_bind, METH_VARARGS, NULL},
    {"run", ext_run, METH_VARARGS, NULL},
    {"push_clear", ext_push_clear, METH_VARARGS, NULL},
    {"without_arenas", ext_without_arenas, METH_O, NULL},
    {"unwind", ext_unwind, METH_VARARGS, NULL},
    {"hooked", ext_hooked, METH_VARARGS, NULL},
    {"evaluator", ext_evaluator, METH_O, NULL},
    {"evaluator_name", ext_evaluator_name, METH_NOARGS, NULL},
    {"state", ext_state, METH_NOARGS, NULL},
    {"tracing", ext_tracing, METH_NOARGS, NULL},
    {"code_monitored", ext_code_monitored, METH_O, NULL},
    {"poll", ext_poll, METH_O, NULL},
    {"poll_now", ext_poll_now, METH_NOARGS, NULL},
    {"recurse", ext_recurse, METH_O, NULL},
    {"handled", ext_handled, METH_O, NULL},
    {"exc_round_trip", ext_exc_round_trip, METH_O, NULL},
    {"code_bytes", ext_code_bytes, METH_O, NULL},
    {"handler", ext_handler, METH_VARARGS, NULL},
    {"line", ext_line, METH_VARARGS, NULL},
    {"opcode", ext_opcode, METH_O, NULL},
    {"argument", ext_argument, METH_VARARGS, NULL},
    {"make_function", ext_make_function, METH_VARARGS, NULL},
    {"function_version", ext_function_version, METH_O, NULL},
    {"plain_function", ext_plain_function, METH_O, NULL},
    {"dict_tag", ext_dict_tag, METH_O, NULL},
    {"type_tag", ext_type_tag, METH_O, NULL},
    {"instance_attr", ext_instance_attr, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef ext_module = {
    PyModuleDef_HEAD_INIT, "_pytest_frames", NULL, -1, ext_methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__pytest_frames(void);

PyMODINIT_FUNC
PyInit__pytest_frames(void)
{
    PyObject *module = PyModule_Create(&ext_module);

    if (module == NULL) {
        return NULL;
    }
    ext_null = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    if (ext_null == NULL || PyModule_AddObjectRef(module, "NULL", ext_null) < 0
        || py_frame_setup(PyModule_GetDict(module)) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
