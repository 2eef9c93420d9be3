/* core/module.c - the module ccompile._core: its state, its functions, its test door.
 *
 * Multi-phase initialisation with per-module state; PyInit__core is the only symbol that the shared
 * object shows. `_testing` is in every build, so that the tests run against what users get. */
#include "base/mem.h"
#include "state.h"

/* -- _core._testing --------------------------------------------------------- */

PyDoc_STRVAR(fail_alloc_doc,
             "fail_alloc(n, /)\n--\n\n"
             "Let n allocations of the C code succeed, then fail one; n < 0 switches it off.\n"
             "Returns whether the previous setting has failed one.");

static PyObject *
testing_fail_alloc(PyObject *Py_UNUSED(self), PyObject *arg)
{
    long n = PyLong_AsLong(arg);
    int fired = cc_mem_failed();

    if (n == -1 && PyErr_Occurred()) {
        return NULL;
    }
    cc_mem_fail_after(n);
    return PyBool_FromLong(fired);
}

PyDoc_STRVAR(opcodes_doc,
             "opcodes()\n--\n\n"
             "[(name, opcode, handler, reason)]: the rows of bytecode.def; without a handler,\n"
             "None and the number of the reason that ends a recording there.");

static PyObject *
testing_opcodes(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    uint32_t count;
    const RecOpcode *row = rec_opcodes(&count);
    PyObject *list = PyList_New(count);

    for (uint32_t i = 0; list != NULL && i < count; i++) {
        int reason = row[i].handler != NULL ? 0 : (int)rec_stop_reason(row[i].op);
        PyObject *item =
            Py_BuildValue("(sizi)", row[i].name, row[i].op, row[i].handler, reason);
        if (item == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, item);
        }
    }
    return list;
}

static PyMethodDef testing_methods[] = {
    {"opcodes", testing_opcodes, METH_NOARGS, opcodes_doc},
    {"fail_alloc", testing_fail_alloc, METH_O, fail_alloc_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef testing_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "ccompile._core._testing",
    .m_doc = "Doors for the tests; not part of the API.",
    .m_size = 0,
    .m_methods = testing_methods,
};

/* -- _core ------------------------------------------------------------------ */

static int
core_exec(PyObject *module)
{
    CoreState *state = core_state(module);

    if (core_config_setup(module) < 0 || tape_call_setup() < 0 || front_setup() < 0
            || py_frame_setup(PyModule_GetDict(module)) < 0 || core_callable_setup(module) < 0
            || core_kernels_setup(module) < 0 || core_graph_setup(module) < 0) {
        return -1;
    }
    state->testing = PyModule_Create(&testing_module);
    if (state->testing == NULL) {
        return -1;
    }
    return PyModule_AddObjectRef(module, "_testing", state->testing);
}

static int
core_traverse(PyObject *module, visitproc visit, void *arg)
{
    CoreState *state = core_state(module);

    if (state != NULL) {
        Py_VISIT(state->testing);
        Py_VISIT(state->callable_type);
        Py_VISIT(state->graph_type);
        Py_VISIT(state->is_compiling);
        Py_VISIT(state->graph_break);
        Py_VISIT(state->break_type);
        Py_VISIT(state->grad_hooks);
    }
    return 0;
}

static int
core_clear(PyObject *module)
{
    CoreState *state = core_state(module);

    if (state != NULL) {
        Py_CLEAR(state->testing);
        Py_CLEAR(state->callable_type);
        Py_CLEAR(state->graph_type);
        Py_CLEAR(state->is_compiling);
        Py_CLEAR(state->graph_break);
        Py_CLEAR(state->break_type);
        Py_CLEAR(state->grad_hooks);
    }
    return 0;
}

static void
core_free(void *module)
{
    CoreState *state = core_state(module);

    core_clear(module);
    if (state != NULL) {
        core_backend_fini(&state->builder);
    }
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, core_exec},
    {0, NULL},
};

static struct PyModuleDef core_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "ccompile._core",
    .m_doc = "The C half of ccompile.",
    .m_size = sizeof(CoreState),
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
    .m_free = core_free,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&core_module);
}
