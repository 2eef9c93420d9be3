#include "chain.h"

int
py_live_link(PyThreadState *ts, PyLive *lv)
{
    if (py_recursion_enter(ts) < 0) {
        return -1;
    }
    py_frame_link(ts, lv->f);
    return 0;
}

void
py_live_unlink(PyThreadState *ts, PyLive *lv)
{
    py_frame_unlink(ts, lv->f);
    py_recursion_leave(ts);
}

static void
live_push(PyIFrame *f, PyObject *value)
{
    int top = py_frame_stacktop(f);

    py_frame_slots(f)[top] = value;
    py_frame_set_stacktop(f, top + 1);
}

int
py_live_deliver(PyLive *lv, PyObject *r)
{
    switch ((FrameCont)lv->cont) {
    case CONT_DISCARD:
        Py_DECREF(r);
        break;
    case CONT_INIT:
        if (r != Py_None) {
            PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'",
                         Py_TYPE(r)->tp_name);
            Py_DECREF(r);
            return -1;
        }
        Py_DECREF(r);
        live_push(lv->f, lv->extra);
        lv->extra = NULL;
        break;
    case CONT_GETATTR:
        if (lv->cont_arg && PY_CALL_NULL_FIRST) {
            live_push(lv->f, NULL);
        }
        live_push(lv->f, r);
        if (lv->cont_arg && !PY_CALL_NULL_FIRST) {
            live_push(lv->f, NULL);
        }
        break;
    default:
        live_push(lv->f, r);
    }
    return 0;
}

void
py_live_end(PyThreadState *ts, PyLive *lv)
{
    Py_CLEAR(lv->extra);
    if (lv->ours) {
        py_frame_clear_pop(ts, lv->f);
    } else {
        py_hook_frame_done(ts, lv->f);
    }
}

/* `lv` is linked and suspended, r is its callee's outcome. It is unlinked and run to its end. */
static PyObject *
live_finish(PyThreadState *ts, PyLive *lv, PyObject *r)
{
    int next = lv->next;

    if (r != NULL && py_live_deliver(lv, r) < 0) {
        r = NULL;
    }
    if (r == NULL) {
        next = py_unwind(ts, lv->f, lv->unit);
    }
    py_live_unlink(ts, lv);
    if (next < 0) {
        py_live_end(ts, lv);
        return NULL;
    }
    Py_CLEAR(lv->extra);
    py_frame_set_next(lv->f, next);
    return py_frame_eval(ts, lv->f, lv->ours);
}

PyObject *
py_chain_finish(PyThreadState *ts, PyLive *lv, int n, PyObject *r)
{
    for (int i = n - 1; i >= 0; i--) {
        r = live_finish(ts, &lv[i], r);
    }
    return r;
}

PyObject *
py_chain_run(PyThreadState *ts, PyLive *lv, int n, int next_unit)
{
    PyLive *in = &lv[n - 1];

    py_live_unlink(ts, in);
    Py_CLEAR(in->extra);
    py_frame_set_next(in->f, next_unit);
    return py_chain_finish(ts, lv, n - 1, py_frame_eval(ts, in->f, in->ours));
}
