/* exec/exit.c - back to frames: pushing what a snapshot describes, taking it down, going on in it.
 */
#include "exec.h"

static void
frame_fill(PyIFrame *f, const TapeFrame *tf, PyObject **obj, int pop)
{
    PyObject **slot = py_frame_slots(f);
    int keep = (int)(tf->nlocals + tf->nstack) - pop;

    for (int i = 0; i < keep; i++) {
        slot[i] = obj[i];
        obj[i] = NULL;
    }
    py_frame_set_stacktop(f, keep);
}

int
exec_frames_push(PyThreadState *ts, const Trace *t, uint32_t snap, Image *im, int pop, PyLive *live)
{
    const TapeSnap *s = &t->snap[snap];
    uint32_t at = 0;
    int n = 0;

    for (uint32_t i = 0; i < s->nframes; i++) {
        const TapeFrame *tf = &t->frame[s->frame + i];
        bool inner = i + 1 == s->nframes;
        PyObject *func = im->obj[im->nslots + 2 * i];
        PyLive *lv = &live[i];

        *lv = (PyLive){.unit = tf->unit,
                       .next = tf->next,
                       .cont = tf->cont,
                       .cont_arg = tf->cont_arg,
                       .ours = true};
        lv->f = py_frame_push(ts, (PyFunctionObject *)func);
        if (lv->f == NULL) {
            goto fail;
        }
        frame_fill(lv->f, tf, im->obj + at, inner ? pop : 0);
        at += tf->nlocals + tf->nstack;
        lv->extra = im->obj[im->nslots + 2 * i + 1];
        im->obj[im->nslots + 2 * i + 1] = NULL;
        if (inner) {
            py_frame_set_running(lv->f, tf->unit);
        } else {
            py_frame_set_suspended(lv->f, tf->next);
        }
        if (py_live_link(ts, lv) < 0) {
            py_live_end(ts, lv);
            goto fail;
        }
        n++;
    }
    return 0;
fail:
    {
        PyObject *exc = PyErr_Occurred() ? py_exc_take() : NULL;
        exec_frames_pop(ts, live, n);
        if (exc != NULL) {
            py_exc_give_steal(exc);
        } else {
            PyErr_NoMemory();
        }
    }
    return -1;
}

void
exec_frames_pop(PyThreadState *ts, PyLive *live, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        py_live_unlink(ts, &live[i]);
        py_live_end(ts, &live[i]);
    }
}

bool
exec_frames_looked_at(const PyLive *live, int n)
{
    for (int i = 0; i < n; i++) {
        if (py_frame_has_object(live[i].f)) {
            return true;
        }
    }
    return false;
}

PyObject *
exec_frames_raise(PyThreadState *ts, PyLive *live, int n, int unit)
{
    int handler = py_unwind(ts, live[n - 1].f, unit);

    if (handler >= 0) {
        return py_chain_run(ts, live, n, handler);
    }
    py_live_unlink(ts, &live[n - 1]);
    py_live_end(ts, &live[n - 1]);
    return py_chain_finish(ts, live, n - 1, NULL);
}
