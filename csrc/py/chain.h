/* py/chain.h - a chain of live frames that one piece of C runs in CPython's place, and how
 * CPython goes on with them.
 *
 * Entry 0 is the outermost. All frames but the innermost are linked, counted in the recursion
 * depth and suspended in a call (unit .. next, operands popped); `cont` says what each does with
 * the result of the frame above it. */
#ifndef PY_CHAIN_H
#define PY_CHAIN_H

#include "frame.h"

typedef enum {
    CONT_NONE,    /* innermost frame: at `unit`, not in a call */
    CONT_CALL,    /* push the result */
    CONT_INIT,    /* __init__: must be None, push `extra` (the instance) */
    CONT_DISCARD, /* drop the result */
    CONT_GETATTR, /* property: push the result; arg 1: as a method pair with NULL */
    CONT__COUNT
} FrameCont;

typedef struct {
    PyIFrame *f;
    int unit, next;
    PyObject *extra;                    /* owned or NULL */
    uint8_t cont, cont_arg;
    bool ours;                          /* we pushed it (frame.h, ownership) */
} PyLive;

/* Link a frame below which others will run, at `unit`. -1 with RecursionError, nothing linked. */
int py_live_link(PyThreadState *ts, PyLive *lv);
void py_live_unlink(PyThreadState *ts, PyLive *lv);

/* Give the result of the call in which `lv` is suspended to its stack. Steals r; stacktop must be
 * set. -1 with an exception (a wrong __init__). */
int py_live_deliver(PyLive *lv, PyObject *r);

/* End a frame that is not linked and whose bytecode will not run on. */
void py_live_end(PyThreadState *ts, PyLive *lv);

/* All n frames are linked and suspended; the innermost gets r (stolen; NULL = exception set).
 * CPython runs them to the end of the outermost, whose result is returned. */
PyObject *py_chain_finish(PyThreadState *ts, PyLive *lv, int n, PyObject *r);

/* The innermost frame is linked too, but not in a call: it goes on at `next_unit`. */
PyObject *py_chain_run(PyThreadState *ts, PyLive *lv, int n, int next_unit);

#endif
