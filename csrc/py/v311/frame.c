/* py/v311/frame.c - the parts of py/frame.h that CPython 3.11 answers in its own way; the rest is
 * py/common.c over layout.h. */
#include "../internal.h"

#define NEED_OPCODE_TABLES
#include <internal/pycore_opcode.h>

/* -- Tracing ----------------------------------------------------------------- */

bool
py_tracing(PyThreadState *ts)
{
    return ts->cframe->use_tracing != 0;
}

bool
py_code_monitored(PyCodeObject *Py_UNUSED(co))
{
    return false;                       /* no sys.monitoring here */
}

/* -- Polling and recursion --------------------------------------------------- */

/* The entry of the poll function is the outermost one, if the call got that far. */
static void
frame_strip_poll_entry(void)
{
    PyObject *type, *value, *tb, *rest;

    PyErr_Fetch(&type, &value, &tb);
    if (tb != NULL && py_is_poll_entry(tb)) {
        rest = Py_XNewRef((PyObject *)((PyTracebackObject *)tb)->tb_next);
        Py_SETREF(tb, rest);
    }
    PyErr_Restore(type, value, tb);
}

/* Signal handlers are served first and by themselves, so that they see the program's frame and
 * not the poll function's. */
int
py_poll(PyThreadState *Py_UNUSED(ts))
{
    PyObject *none;

    if (PyErr_CheckSignals() < 0) {
        return -1;
    }
    none = PyObject_CallNoArgs(py_poll_function_borrow());
    if (none == NULL) {
        frame_strip_poll_entry();
        return -1;
    }
    Py_DECREF(none);
    return 0;
}

int
py_recursion_enter(PyThreadState *Py_UNUSED(ts))
{
    return Py_EnterRecursiveCall("") ? -1 : 0;
}

void
py_recursion_leave(PyThreadState *Py_UNUSED(ts))
{
    Py_LeaveRecursiveCall();
}

/* -- Exceptions -------------------------------------------------------------- */

PyObject *
py_exc_take(void)
{
    PyObject *type, *value, *tb;

    PyErr_Fetch(&type, &value, &tb);
    if (type == NULL) {
        return NULL;
    }
    PyErr_NormalizeException(&type, &value, &tb);
    PyException_SetTraceback(value, tb != NULL ? tb : Py_None);
    Py_DECREF(type);
    Py_XDECREF(tb);
    return value;
}

void
py_exc_give_steal(PyObject *exc)
{
    PyErr_Restore(Py_NewRef(Py_TYPE(exc)), exc, PyException_GetTraceback(exc));
}

/* -- Code, functions, types -------------------------------------------------- */

int
py_caches(int opcode)
{
    return _PyOpcode_Caches[opcode & 0xff];
}

PyObject *
py_make_function(PyObject *code, PyObject *globals, PyObject *qualname)
{
    return PyFunction_NewWithQualName(code, globals, qualname);
}

/* A lookup is what gives a type its tag; __doc__ is found in the first dict of most types. */
unsigned
py_type_tag(PyTypeObject *type)
{
    if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) {
        PyObject *name = PyUnicode_InternFromString("__doc__");
        if (name == NULL) {
            PyErr_Clear();
            return 0;
        }
        (void)_PyType_Lookup(type, name);
        Py_DECREF(name);
        if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) {
            return 0;
        }
    }
    return type->tp_version_tag;
}
