/* py/v312/frame.c - the parts of py/frame.h that CPython 3.12 answers in its own way; the rest is
 * py/common.c over layout.h. */
#include "../internal.h"

#define NEED_OPCODE_TABLES
#include <internal/pycore_opcode.h>
#include <internal/pycore_instruments.h>

/* -- Tracing ----------------------------------------------------------------- */

/* settrace and setprofile are tools of sys.monitoring themselves. Their event bits are shared by
 * all threads and say nothing about this one, whose own functions are looked at instead. */
#define FRAME_OTHER_TOOLS \
    ((uint8_t)~((1u << PY_MONITORING_SYS_TRACE_ID) | (1u << PY_MONITORING_SYS_PROFILE_ID)))

static bool
frame_any_tool(const uint8_t *tools, int events)
{
    uint8_t all = 0;

    for (int i = 0; i < events; i++) {
        all |= tools[i];
    }
    return (all & FRAME_OTHER_TOOLS) != 0;
}

bool
py_tracing(PyThreadState *ts)
{
    return ts->c_tracefunc != NULL || ts->c_profilefunc != NULL
           || frame_any_tool(ts->interp->monitors.tools, _PY_MONITORING_UNGROUPED_EVENTS);
}

bool
py_code_monitored(PyCodeObject *co)
{
    return co->_co_monitoring != NULL
           && frame_any_tool(co->_co_monitoring->local_monitors.tools, _PY_MONITORING_LOCAL_EVENTS);
}

/* -- Polling and recursion --------------------------------------------------- */

/* The entry of the poll function is the outermost one, if the call got that far. */
static void
frame_strip_poll_entry(void)
{
    PyObject *exc = PyErr_GetRaisedException();
    PyObject *tb = exc != NULL ? PyException_GetTraceback(exc) : NULL;

    if (tb != NULL && py_is_poll_entry(tb)) {
        PyObject *rest = (PyObject *)((PyTracebackObject *)tb)->tb_next;
        PyException_SetTraceback(exc, rest != NULL ? rest : Py_None);
    }
    Py_XDECREF(tb);
    PyErr_SetRaisedException(exc);
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

/* CPython counts C and Python calls apart; a call of ours costs one of each. While an overflow is
 * being reported (headroom), 50 more are allowed. */
int
py_recursion_enter(PyThreadState *ts)
{
    if (Py_EnterRecursiveCall("")) {
        return -1;
    }
    if (ts->py_recursion_remaining <= (ts->recursion_headroom > 0 ? -50 : 0)) {
        Py_LeaveRecursiveCall();
        ts->recursion_headroom++;
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
        ts->recursion_headroom--;
        return -1;
    }
    ts->py_recursion_remaining--;
    return 0;
}

void
py_recursion_leave(PyThreadState *ts)
{
    ts->py_recursion_remaining++;
    Py_LeaveRecursiveCall();
}

/* -- Exceptions -------------------------------------------------------------- */

PyObject *
py_exc_take(void)
{
    return PyErr_GetRaisedException();
}

void
py_exc_give_steal(PyObject *exc)
{
    PyErr_SetRaisedException(exc);
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
    PyObject *func = PyFunction_NewWithQualName(code, globals, qualname);

    if (func != NULL) {
        ((PyFunctionObject *)func)->func_version = ((PyCodeObject *)code)->co_version;
    }
    return func;
}

unsigned
py_type_tag(PyTypeObject *type)
{
    return PyUnstable_Type_AssignVersionTag(type) ? type->tp_version_tag : 0;
}
