/* core/graph.c - graphs for Python: the type that a backend of the program's gets, and asking it.
 *
 * A Graph is made from the text form and runs on the interpreter; it shares nothing with the trace
 * that it came from, so it lives as long as somebody wants it. */
#include "state.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/vec.h"
#include "front/lower.h"
#include "ir/graph.h"

typedef struct {
    PyObject_HEAD
    CcGraph g;
    CcPlan *plan;
    PyObject *text;
} Graph;

static PyObject *
graph_new(PyTypeObject *tp, PyObject *args, PyObject *kwargs)
{
    PyObject *text;
    CcStatus st = {0};

    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Graph() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "U:Graph", &text)) {
        return NULL;
    }
    const char *utf8 = PyUnicode_AsUTF8(text);
    Graph *self = utf8 == NULL ? NULL : (Graph *)tp->tp_alloc(tp, 0);
    if (self == NULL) {
        return NULL;
    }
    cc_graph_init(&self->g);
    self->text = Py_NewRef(text);
    if (!cc_graph_parse(&self->g, utf8, &st) || (self->plan = rt_plan_new(&self->g, &st)) == NULL) {
        PyErr_Format(PyExc_ValueError, "no graph: %s", st.detail);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void
graph_dealloc(Graph *self)
{
    PyTypeObject *tp = Py_TYPE(self);

    rt_plan_free(self->plan);
    cc_graph_fini(&self->g);
    Py_XDECREF(self->text);
    tp->tp_free((PyObject *)self);
    Py_DECREF(tp);
}

static PyObject *
graph_call(Graph *self, PyObject *args, PyObject *kwargs)
{
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "a Graph takes no keyword arguments");
        return NULL;
    }
    return front_run_objects(&self->g, self->plan, &PyTuple_GET_ITEM(args, 0),
                             (uint32_t)PyTuple_GET_SIZE(args));
}

static PyObject *
graph_str(Graph *self)
{
    return Py_NewRef(self->text);
}

static PyObject *
graph_ninputs(Graph *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(self->g.nparam);
}

static PyObject *
graph_noutputs(Graph *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLong(self->g.nout);
}

static PyGetSetDef graph_getset[] = {
    {"ninputs", (getter)graph_ninputs, NULL, "How many inputs a call takes.", NULL},
    {"noutputs", (getter)graph_noutputs, NULL, "How many results a call gives.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    graph_doc,
    "Graph(text, /)\n--\n\n"
    "Array work as a graph. str() is its text form; a call with the inputs (arrays of the\n"
    "dtype and rank of each parameter, numbers for scalars) runs it on the interpreter and\n"
    "gives a tuple of new arrays and NumPy scalars. Raises TypeError and ValueError for\n"
    "inputs that do not fit.");

static PyType_Slot graph_slots[] = {
    {Py_tp_doc, (void *)graph_doc},
    {Py_tp_new, graph_new},
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_call, graph_call},
    {Py_tp_str, graph_str},
    {Py_tp_getset, graph_getset},
    {0, NULL},
};

static PyType_Spec graph_spec = {
    .name = "ccompile.Graph",
    .basicsize = sizeof(Graph),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = graph_slots,
};

int
core_graph_setup(PyObject *module)
{
    CoreState *state = core_state(module);

    state->graph_type = PyType_FromModuleAndSpec(module, &graph_spec, NULL);
    return state->graph_type == NULL ? -1
                                     : PyModule_AddObjectRef(module, "Graph", state->graph_type);
}

/* -- A backend of the program's ------------------------------------------------------------------
 */

static PyObject *
graph_object(const CoreState *state, const CcGraph *g)
{
    PyObject *res = NULL;
    CcBuf text;

    cc_buf_init(&text);
    cc_graph_print(g, &text);
    if (!text.failed) {
        res = PyObject_CallFunction(state->graph_type, "s", cc_buf_text(&text));
    }
    cc_buf_fini(&text);
    return res == NULL && !PyErr_Occurred() ? PyErr_NoMemory() : res;
}

static PyObject *
examples(const FrontGraph *fg)
{
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < fg->nin; i++) {
        PyObject *x = front_example(&fg->in[i]);
        if (x == NULL || PyList_Append(list, x) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(x);
    }
    return list;
}

/* The trace pins what was given; the graph borrows it. */
static bool
pin(Trace *t, PyObject *obj)
{
    uint32_t cap = t->nkonst;

    if (!CC_GROW(t->konst, t->nkonst, cap, 1)) {
        return false;
    }
    t->konst[t->nkonst++] = Py_NewRef(obj);
    return true;
}

void
core_ask_backend(CoreOwner *own, Trace *t)
{
    const FrontPlans *plans = front_plans(t);

    for (uint32_t i = 0; plans != NULL && i < plans->nstep; i++) {
        FrontGraph *fg = plans->step[i].graph;
        PyObject *graph = fg == NULL ? NULL : graph_object(own->state, &fg->g);
        PyObject *in = graph == NULL ? NULL : examples(fg);
        PyObject *fn = in == NULL ? NULL
                     : PyObject_CallFunctionObjArgs(own->custom, graph, in, NULL);
        if (fn != NULL && !PyCallable_Check(fn)) {
            PyErr_SetString(PyExc_TypeError, "the backend gave nothing that can be called");
            Py_CLEAR(fn);
        }
        if (fn != NULL && pin(t, fn)) {
            fg->custom = fn;
        }
        if (PyErr_Occurred()) {         /* heard of; the interpreter runs this graph */
            PyErr_WriteUnraisable(own->custom);
        }
        Py_XDECREF(fn);
        Py_XDECREF(in);
        Py_XDECREF(graph);
    }
}
