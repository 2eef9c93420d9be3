/* py/v313/frame.c - the parts of py/frame.h that CPython 3.13 answers in its own way; the rest is
 * py/common.c over layout.h. */
#include "../internal.h"

#define NEED_OPCODE_METADATA
#include <internal/pycore_opcode_metadata.h>
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

int
py_poll(PyThreadState *ts)
{
    return _Py_HandlePending(ts);
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
        _PyFunction_SetVersion((PyFunctionObject *)func, ((PyCodeObject *)code)->co_version);
    }
    return func;
}

unsigned
py_type_tag(PyTypeObject *type)
{
    return PyUnstable_Type_AssignVersionTag(type) ? type->tp_version_tag : 0;
}
