/* exec/exec.h - running a trace.
 *
 * An activation belongs to one running call: its registers own what they hold. What fails before a
 * commit point leaves the program at the snapshot of its transaction; from there a side trace goes
 * on, a recording starts, or CPython runs the frames that the snapshot describes. */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include "../tape/tape.h"

enum { EXEC_MAX_FRAMES = 64 };

typedef struct Act Act;
struct Act {
    Trace *t;
    PyObject **reg;
    PyObject **image, **memo;           /* room for one snapshot: leaving needs no memory of ours */
    Act *parent;                        /* the trace that a side trace may jump back to */
    uint32_t txn;                       /* row of the current TXN */
    uint32_t side_index; /* side traces of the parent's exit that were tried before it */
};

/* What the owner of the traces is told and asked. */
typedef struct ExecOwner ExecOwner;
struct ExecOwner {
    uint64_t replayed, side_exits, fallbacks, ops_node, ops_kernel, ops_residual, faults;
    uint32_t stress_exit;               /* fail every n-th row that can fail; 0 = off */
    uint32_t stress_count;
    /* Frames of `snap` stand, all linked; the innermost goes on at `unit`. The owner records from
     * there, or has CPython run them; either way it returns the call's result. */
    PyObject *(*go_on)(ExecOwner *own, PyThreadState *ts, Trace *t, uint32_t snap, PyLive *live,
                       int n, int unit);
};

/* Run a root trace on its inputs (borrowed). False: it does not fit, nothing has happened. */
bool exec_run(ExecOwner *own, PyThreadState *ts, Trace *t, PyObject *const *input,
              PyObject **result);

/* -- image.c --------------------------------------------------------------------------- */

/* Slots of all frames, then function and extra of each frame: owned objects in the room that an
 * activation has for one image at a time. */
typedef struct {
    PyObject **obj;
    uint32_t n, nslots;
} Image;

bool exec_image_build(const Act *act, uint32_t snap,
                      Image *im); /* false: Python has no memory, no exception */
void exec_image_drop(Image *im);

/* One value of a snapshot or an operand: new reference; virtual objects are built. */
PyObject *exec_image_value(const Act *act, TapeRef ref);

/* -- exit.c ------------------------------------------------------------------------------ */

/* Push the frames of a snapshot, all linked, filled from the image (whose objects move). The top
 * `pop` stack slots of the innermost are left out. 0 pushed; -1 exception, nothing pushed. */
int exec_frames_push(PyThreadState *ts, const Trace *t, uint32_t snap, Image *im, int pop,
                     PyLive *live);
void exec_frames_pop(PyThreadState *ts, PyLive *live, int n);
bool exec_frames_looked_at(const PyLive *live, int n);

/* An exception is set; the innermost frame was at `unit`. CPython takes over. */
PyObject *exec_frames_raise(PyThreadState *ts, PyLive *live, int n, int unit);

/* -- check.c -------------------------------------------------------------------------------- */

bool exec_guard(const Act *act, TapeIns *in);
PyObject *exec_load(const Act *act, TapeIns *in); /* new reference; NULL = fails, no exception */

static inline PyObject *
act_get(const Act *act, TapeRef ref)
{
    return TAPE_KIND(ref) == TAPE_REG ? act->reg[TAPE_INDEX(ref)]
         : TAPE_KIND(ref) == TAPE_CONST ? act->t->konst[TAPE_INDEX(ref)] : NULL;
}

static inline PyObject *
act_operand(const Act *act, const TapeIns *in, uint32_t i)
{
    return i < in->n ? act_get(act, act->t->opnd[in->arg + i]) : NULL;
}

#endif
