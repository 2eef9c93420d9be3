/* core/callable.c - the type of what compile() returns.
 *
 * It stands in for the wrapped object: attributes are read from and written to that, methods bind,
 * and a call goes through the traces. It owns its traces and takes part in garbage collection. */
#include "state.h"

#include "base/mem.h"
#include "front/lower.h"

#include <stddef.h>
#include <structmember.h>

static _Thread_local int calls_active;  /* compiled calls of this thread, for is_compiling() */

typedef struct {
    PyObject_HEAD
    PyObject *wrapped;                  /* what the user gave */
    PyObject *module;                   /* ccompile._core: keeps the state */
    PyObject *options;                  /* what compile() was called with, for copies and pickles */
    PyObject *dict, *weakrefs;
    vectorcallfunc vectorcall;
    bool disabled;
    CoreOwner own;
} Callable;

/* The function that a call of the wrapped object runs, borrowed; `self` goes in front if not NULL.
 */
static PyFunctionObject *
callable_target(Callable *c, PyObject **self)
{
    PyObject *w = c->wrapped;

    *self = NULL;
    if (PyFunction_Check(w)) {
        return (PyFunctionObject *)w;
    }
    if (PyMethod_Check(w) && PyFunction_Check(PyMethod_GET_FUNCTION(w))) {
        *self = PyMethod_GET_SELF(w);
        return (PyFunctionObject *)PyMethod_GET_FUNCTION(w);
    }
    if (PyType_Check(w)) {
        return NULL;
    }
    PyObject *name = PyUnicode_InternFromString("__call__");
    PyObject *d = name == NULL ? NULL : _PyType_Lookup(Py_TYPE(w), name);
    Py_XDECREF(name);
    PyErr_Clear();
    if (d != NULL && PyFunction_Check(d)) {
        *self = w;
        return (PyFunctionObject *)d;
    }
    return NULL;
}

static PyObject *
call_with_self(Callable *c, PyFunctionObject *func, PyObject *self, PyObject *const *args,
               size_t nargsf, PyObject *kwnames)
{
    size_t n = (size_t)PyVectorcall_NARGS(nargsf);
    size_t all = n + (kwnames == NULL ? 0 : (size_t)PyTuple_GET_SIZE(kwnames));
    PyObject *few[16], **with = few;

    if (all + 1 > 16) {
        with = PyMem_Malloc((all + 1) * sizeof(*with));
        if (with == NULL) {
            return PyErr_NoMemory();
        }
    }
    with[0] = self;
    for (size_t i = 0; i < all; i++) {
        with[i + 1] = args[i];
    }
    PyObject *res = core_call(&c->own, func, with, n + 1, kwnames);
    if (with != few) {
        PyMem_Free(with);
    }
    return res;
}

static PyObject *
callable_vectorcall(PyObject *obj, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Callable *c = (Callable *)obj;
    PyObject *self, *res;
    PyFunctionObject *func = c->disabled ? NULL : callable_target(c, &self);

    if (func == NULL) {
        int outer = calls_active;
        c->own.count.fallback++;
        c->own.state->count.fallback++;
        if (c->disabled) {
            calls_active = 0;           /* the program asked for plain Python here */
        }
        res = PyObject_Vectorcall(c->wrapped, args, nargsf, kwnames);
        calls_active = outer;
        return res;
    }
    if (Py_EnterRecursiveCall(" while calling a compiled function")) {
        return NULL;
    }
    calls_active++;
    Py_INCREF(obj);                     /* the program may drop its last reference to us */
    Py_INCREF(func);
    Py_XINCREF(self);
    res = self == NULL ? core_call(&c->own, func, args, nargsf, kwnames)
                       : call_with_self(c, func, self, args, nargsf, kwnames);
    Py_XDECREF(self);
    Py_DECREF(func);
    Py_DECREF(obj);
    calls_active--;
    Py_LeaveRecursiveCall();
    return res;
}

/* -- Life ------------------------------------------------------------------------------ */

static int
callable_traverse(Callable *c, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(c));
    Py_VISIT(c->wrapped);
    Py_VISIT(c->module);
    Py_VISIT(c->options);
    Py_VISIT(c->dict);
    return c->own.state == NULL ? 0 : core_owner_traverse(&c->own, visit, arg);
}

static int
callable_clear(Callable *c)
{
    if (c->own.state != NULL) {
        core_owner_reset(&c->own);
    }
    Py_CLEAR(c->dict);
    Py_CLEAR(c->options);
    /* `wrapped` stays until the end: a call of a half-cleared object must not crash. */
    return 0;
}

static void
callable_dealloc(Callable *c)
{
    PyTypeObject *tp = Py_TYPE(c);

    PyObject_GC_UnTrack(c);
    if (c->weakrefs != NULL) {
        PyObject_ClearWeakRefs((PyObject *)c);
    }
    callable_clear(c);
    if (c->own.state != NULL) {
        core_owner_fini(&c->own);
    }
    Py_CLEAR(c->wrapped);
    Py_CLEAR(c->module);
    tp->tp_free((PyObject *)c);
    Py_DECREF(tp);
}

bool
core_is_disabled(PyObject *obj)
{
    return Py_TYPE(obj)->tp_dealloc == (destructor)callable_dealloc && ((Callable *)obj)->disabled;
}

/* -- Attributes ---------------------------------------------------------------------------- */

static PyObject *
callable_getattro(PyObject *obj, PyObject *name)
{
    Callable *c = (Callable *)obj;
    PyObject *v = PyObject_GenericGetAttr(obj, name);

    if (v != NULL || c->wrapped == NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return v;
    }
    PyErr_Clear();
    return PyObject_GetAttr(c->wrapped, name);
}

static int
callable_setattro(PyObject *obj, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((Callable *)obj)->wrapped, name, value);
}

static PyObject *
callable_get(PyObject *self, PyObject *obj, PyObject *Py_UNUSED(type))
{
    Callable *c = (Callable *)self;

    if (obj == NULL || obj == Py_None || !PyFunction_Check(c->wrapped)) {
        return Py_NewRef(self);
    }
    return PyMethod_New(self, obj);
}

static PyObject *
callable_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<ccompile.compile of %R>", ((Callable *)self)->wrapped);
}

static PyObject *
forwarded(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((Callable *)self)->wrapped, name);
}

static PyGetSetDef callable_getset[] = {
    {"__doc__", forwarded, NULL, "the wrapped object's", "__doc__"},
    {"__module__", forwarded, NULL, "the wrapped object's", "__module__"},
    {"__name__", forwarded, NULL, "the wrapped object's", "__name__"},
    {"__qualname__", forwarded, NULL, "the wrapped object's", "__qualname__"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef callable_members[] = {
    {"__wrapped__", T_OBJECT, offsetof(Callable, wrapped), READONLY, "what was compiled"},
    {"_options", T_OBJECT, offsetof(Callable, options), READONLY, "arguments of compile()"},
    {"__dictoffset__", T_PYSSIZET, offsetof(Callable, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Callable, weakrefs), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Callable, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* -- Methods ------------------------------------------------------------------------------------
 */

static PyObject *
callable_reset(PyObject *self, PyObject *Py_UNUSED(none))
{
    core_owner_reset(&((Callable *)self)->own);
    Py_RETURN_NONE;
}

static PyObject *
counters_dict(const CoreCounters *count)
{
    PyObject *d = PyDict_New();
    bool ok = d != NULL;

#define X(name)                                                                                   \
    if (ok) {                                                                                     \
        PyObject *v = PyLong_FromUnsignedLongLong(count->name);                                   \
        ok = v != NULL && PyDict_SetItemString(d, #name, v) == 0;                                 \
        Py_XDECREF(v);                                                                            \
    }
    CORE_COUNTERS(X)
#undef X
    if (!ok) {
        Py_CLEAR(d);
    }
    return d;
}

static PyObject *
callable_counters(PyObject *self, PyObject *Py_UNUSED(none))
{
    return counters_dict(&((Callable *)self)->own.count);
}

static PyObject *
callable_tapes(PyObject *self, PyObject *Py_UNUSED(none))
{
    CoreOwner *own = &((Callable *)self)->own;
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < own->ntraces; i++) {
        for (uint32_t k = 0; list != NULL && k < own->traces[i]->nroot; k++) {
            PyObject *text = tape_print(own->traces[i]->root[k]);
            if (text == NULL || PyList_Append(list, text) < 0) {
                Py_CLEAR(list);
            }
            Py_XDECREF(text);
        }
    }
    return list;
}

static PyObject *
callable_plans(PyObject *self, PyObject *Py_UNUSED(none))
{
    CoreOwner *own = &((Callable *)self)->own;
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < own->ntraces; i++) {
        for (uint32_t k = 0; list != NULL && k < own->traces[i]->nroot; k++) {
            PyObject *part = front_plans_list(own->traces[i]->root[k]);
            PyObject *both = part == NULL ? NULL : PySequence_InPlaceConcat(list, part);
            Py_XDECREF(part);
            Py_SETREF(list, both);
        }
    }
    return list;
}

static PyObject *
callable_breaks(PyObject *self, PyObject *Py_UNUSED(none))
{
    static const char *const kind[] = {"residual", "exit", "stop", "bug", "env"};
    CoreOwner *own = &((Callable *)self)->own;
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < own->nbrk; i++) {
        const CoreBreak *b = &own->brk[i];
        PyCodeObject *co = (PyCodeObject *)b->code;
        PyObject *row = Py_BuildValue("(isssssOi)", (int)b->reason, cc_reason_name(b->reason),
                                      kind[cc_reason_kind(b->reason)], cc_reason_text(b->reason),
                                      cc_reason_hint(b->reason), b->detail, co->co_filename,
                                      py_code_line(co, b->unit));
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *
callable_report(PyObject *self, PyObject *Py_UNUSED(none))
{
    return core_report_traces(&((Callable *)self)->own);
}

static PyObject *
callable_misses(PyObject *self, PyObject *Py_UNUSED(none))
{
    PyObject *misses = ((Callable *)self)->own.misses;

    return misses == NULL ? PyList_New(0) : PyList_GetSlice(misses, 0, PyList_GET_SIZE(misses));
}

static PyObject *
callable_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    PyObject *api = PyImport_ImportModule("ccompile._api");
    PyObject *res = api == NULL ? NULL : PyObject_CallMethod(api, "_reduce", "O", self);

    Py_XDECREF(api);
    return res;
}

static PyObject *
callable_deepcopy(PyObject *self, PyObject *memo)
{
    PyObject *api = PyImport_ImportModule("ccompile._api");
    PyObject *res = api == NULL ? NULL : PyObject_CallMethod(api, "_deepcopy", "OO", self, memo);

    Py_XDECREF(api);
    return res;
}

static PyMethodDef callable_methods[] = {
    {"_reset", callable_reset, METH_NOARGS, "Forget all traces."},
    {"_counters", callable_counters, METH_NOARGS, "The callable's own counters."},
    {"_tapes", callable_tapes, METH_NOARGS, "Text of every root trace with its side traces."},
    {"_plans", callable_plans, METH_NOARGS,
     "(rows, graph or reason, whether it is a graph) of every step of array work."},
    {"_breaks", callable_breaks, METH_NOARGS,
     "(id, name, kind, text, hint, detail, file, line) of everything that interrupted a graph."},
    {"_report", callable_report, METH_NOARGS,
     "A dict for each root trace, in the order they were made."},
    {"_misses", callable_misses, METH_NOARGS,
     "The guards that made calls be recorded again, as text."},
    {"__reduce__", callable_reduce, METH_NOARGS, NULL},
    {"__deepcopy__", callable_deepcopy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot callable_slots[] = {
    {Py_tp_dealloc, callable_dealloc},   {Py_tp_traverse, callable_traverse},
    {Py_tp_clear, callable_clear},       {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, callable_getattro}, {Py_tp_setattro, callable_setattro},
    {Py_tp_descr_get, callable_get},     {Py_tp_repr, callable_repr},
    {Py_tp_methods, callable_methods},   {Py_tp_members, callable_members},
    {Py_tp_getset, callable_getset},     {0, NULL},
};

static PyType_Spec callable_spec = {
    .name = "ccompile._core.Callable",
    .basicsize = sizeof(Callable),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL
        | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = callable_slots,
};

/* -- Functions of the module --------------------------------------------------------------------
 */

static int
set_options(CcConfig *config, PyObject *options)
{
    PyObject *key, *value;
    Py_ssize_t pos = 0;
    CcStatus st;

    while (PyDict_Next(options, &pos, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key), *text = PyUnicode_AsUTF8(value);
        if (name == NULL || text == NULL) {
            return -1;
        }
        const CcConfigRow *row = cc_config_find(name);
        if (row == NULL || !row->callable) {
            PyErr_Format(PyExc_ValueError, "no option '%s' of one callable", name);
            return -1;
        }
        if (!cc_config_set(config, name, text, &st)) {
            PyErr_SetString(PyExc_ValueError, st.detail);
            return -1;
        }
    }
    return 0;
}

PyDoc_STRVAR(wrap_doc, "wrap(obj, fullgraph, disabled, texts, options, backend, /)\n--\n\n"
                       "A compiled callable of obj. backend: its number in list_backends(); the\n"
                       "next one: options[\"backend\"], a callable. texts: "
                       "{option name: text};\n"
                       "options is kept for copies.");

static PyObject *
core_wrap(PyObject *module, PyObject *args)
{
    CoreState *state = core_state(module);
    PyObject *obj, *texts, *options;
    int fullgraph, disabled, backend;

    if (!PyArg_ParseTuple(args, "OppO!O!i:wrap", &obj, &fullgraph, &disabled, &PyDict_Type, &texts,
                          &PyDict_Type, &options, &backend)) {
        return NULL;
    }
    if (backend < 0 || backend >= CORE_BACKEND__COUNT) {
        PyErr_Format(PyExc_ValueError, "no backend %d", backend);
        return NULL;
    }
    PyTypeObject *tp = (PyTypeObject *)state->callable_type;
    Callable *c = (Callable *)tp->tp_alloc(tp, 0);
    if (c == NULL) {
        return NULL;
    }
    core_owner_init(&c->own, state);
    c->vectorcall = callable_vectorcall;
    c->wrapped = Py_NewRef(obj);
    c->module = Py_NewRef(module);
    c->options = Py_NewRef(options);
    c->own.fullgraph = fullgraph;
    c->own.backend = (uint8_t)backend;
    c->own.custom = backend == CORE_CUSTOM ? PyDict_GetItemString(options, "backend") : NULL;
    if (backend == CORE_CUSTOM && c->own.custom == NULL) {
        PyErr_SetString(PyExc_ValueError, "no backend in the options");
        Py_DECREF(c);
        return NULL;
    }
    c->disabled = disabled;
    if (set_options(&c->own.config, texts) < 0) {
        Py_DECREF(c);
        return NULL;
    }
    return (PyObject *)c;
}

static PyObject *
core_counters(PyObject *module, PyObject *Py_UNUSED(none))
{
    return counters_dict(&core_state(module)->count);
}

static PyObject *
core_is_compiling(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(calls_active > 0);
}

static PyObject *
core_array_function(PyObject *Py_UNUSED(module), PyObject *function)
{
    return front_register(function) < 0 ? NULL : Py_NewRef(function);
}

static PyObject *
core_graph_break(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    enable_doc,
    "enable(yes, /)\n--\n\nSwitch capture on or off for the process (the self-test does).");

static PyObject *
core_enable(PyObject *module, PyObject *yes)
{
    int on = PyObject_IsTrue(yes);

    if (on < 0) {
        return NULL;
    }
    core_state(module)->works = on;
    Py_RETURN_NONE;
}

static PyObject *
core_set_break_type(PyObject *module, PyObject *type)
{
    if (!PyExceptionClass_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "set_break_type() takes an exception class");
        return NULL;
    }
    Py_XSETREF(core_state(module)->break_type, Py_NewRef(type));
    Py_RETURN_NONE;
}

static PyObject *
core_set_grad_hooks(PyObject *module, PyObject *hooks)
{
    if (!PyTuple_CheckExact(hooks) || PyTuple_GET_SIZE(hooks) != 5) {
        PyErr_SetString(PyExc_TypeError, "set_grad_hooks() takes a tuple of five");
        return NULL;
    }
    Py_XSETREF(core_state(module)->grad_hooks, Py_NewRef(hooks));
    Py_RETURN_NONE;
}

static PyObject *
core_clear_counters(PyObject *module, PyObject *Py_UNUSED(none))
{
    core_state(module)->count = (CoreCounters){0};
    Py_RETURN_NONE;
}

static PyObject *
core_enabled(PyObject *module, PyObject *Py_UNUSED(none))
{
    return PyBool_FromLong(core_state(module)->works);
}

static PyMethodDef core_functions[] = {
    {"wrap", core_wrap, METH_VARARGS, wrap_doc},
    {"enable", core_enable, METH_O, enable_doc},
    {"set_grad_hooks", core_set_grad_hooks, METH_O,
     "set_grad_hooks(hooks, /)\n--\n\nThe two classes and three functions of _gradtape.py."},
    {"clear_counters", core_clear_counters, METH_NOARGS,
     "clear_counters()\n--\n\nThe counters of the process start again at 0."},
    {"enabled", core_enabled, METH_NOARGS,
     "enabled()\n--\n\nWhether capture is on in the process."},
    {"set_break_type", core_set_break_type, METH_O,
     "set_break_type(type, /)\n--\n\nThe exception class that fullgraph=True raises."},
    {"counters", core_counters, METH_NOARGS,
     "counters()\n--\n\nCounters of the process: {name: int}."},
    {"array_function", core_array_function, METH_O,
     "array_function(function, /)\n--\n\nA decorator: a pure function of arrays that compiled code "
     "runs whole."},
    {"is_compiling", core_is_compiling, METH_NOARGS,
     "is_compiling()\n--\n\nTrue inside a compiled function, while it records, replays or falls "
     "back."},
    {"graph_break", core_graph_break, METH_NOARGS,
     "graph_break()\n--\n\nEnd the graph here; nothing else happens."},
    {NULL, NULL, 0, NULL},
};

int
core_callable_setup(PyObject *module)
{
    CoreState *state = core_state(module);

    state->callable_type = PyType_FromModuleAndSpec(module, &callable_spec, NULL);
    if (state->callable_type == NULL || PyModule_AddFunctions(module, core_functions) < 0
            || PyModule_AddObjectRef(module, "Callable", state->callable_type) < 0) {
        return -1;
    }
    state->is_compiling = PyObject_GetAttrString(module, "is_compiling");
    state->graph_break = PyObject_GetAttrString(module, "graph_break");
    state->works = true;
    return state->is_compiling && state->graph_break ? 0 : -1;
}
