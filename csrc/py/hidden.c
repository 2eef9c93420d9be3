/* py/hidden.c - push, clear and pop of frames: CPython keeps these, so they follow its behaviour.
 *
 * The data stack is a list of chunks. A frame never straddles two of them; a chunk whose first
 * frame is popped goes back to the allocator it came from. Pushes and pops of ours nest with
 * CPython's own, because both follow the calls in C. The very first chunk keeps one slot unused, so
 * that it is never the one to be freed.
 *
 * A frame that dies while its frame object is referenced elsewhere moves into that object, locals
 * and all; otherwise its references are dropped. A frame must be unlinked before it is cleared:
 * finalizers run here and may look at the chain of frames. */
#include "internal.h"

#include <string.h>

/* -- The data stack ---------------------------------------------------------- */

#define STACK_CHUNK_BYTES (16 * 1024)
/* room a fresh chunk offers beyond the frame it is made for */
#define STACK_SPARE_SLOTS 1000

static PyObject **
stack_push_chunk(PyThreadState *ts, int slots)
{
    PyObjectArenaAllocator arena;       /* the door through which CPython gets its chunks, too */
    _PyStackChunk *chunk, *old = ts->datastack_chunk;
    size_t bytes = STACK_CHUNK_BYTES;
    PyObject **start;

    while (bytes < sizeof(PyObject *) * ((size_t)slots + STACK_SPARE_SLOTS)) {
        bytes *= 2;
    }
    PyObject_GetArenaAllocator(&arena);
    chunk = arena.alloc(arena.ctx, bytes);
    if (chunk == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    chunk->previous = old;
    chunk->size = bytes;
    chunk->top = 0;
    if (old != NULL) {
        old->top = (size_t)(ts->datastack_top - &old->data[0]);
    }
    start = &chunk->data[old == NULL ? 1 : 0];
    ts->datastack_chunk = chunk;
    ts->datastack_top = start + slots;
    ts->datastack_limit = (PyObject **)((char *)chunk + bytes);
    return start;
}

PyObject **
py_stack_push(PyThreadState *ts, int slots)
{
    PyObject **start = ts->datastack_top;

    if (start == NULL || slots >= ts->datastack_limit - start) {
        return stack_push_chunk(ts, slots);
    }
    ts->datastack_top = start + slots;
    return start;
}

void
py_stack_pop(PyThreadState *ts, PyIFrame *f)
{
    _PyStackChunk *chunk = ts->datastack_chunk, *below;
    PyObjectArenaAllocator arena;

    if ((PyObject **)f != &chunk->data[0]) {
        ts->datastack_top = (PyObject **)f;
        return;
    }
    below = chunk->previous;
    ts->datastack_chunk = below;
    ts->datastack_top = &below->data[below->top];
    ts->datastack_limit = (PyObject **)((char *)below + below->size);
    PyObject_GetArenaAllocator(&arena);
    arena.free(arena.ctx, chunk, chunk->size);
}

/* -- The end of a frame ------------------------------------------------------ */

/* The references move with the copy. The frame object also loses its way to the older frames, so
 * f_back is fixed now. */
static void
hidden_move_to_object(PyThreadState *ts, PyFrameObject *fo, PyIFrame *f)
{
    PyIFrame *copy = (PyIFrame *)fo->_f_frame_data, *back = f->previous;
    PyFrameObject *back_object;

    memcpy(copy, f, (size_t)((char *)&f->localsplus[f->stacktop] - (char *)f));
    fo->f_frame = copy;
    copy->owner = FRAME_OWNED_BY_FRAME_OBJECT;
    copy->previous = NULL;
    if (_PyFrame_IsIncomplete(copy)) {
        PyCodeObject *co = layout_code(copy);
        *layout_instr(copy) = _PyCode_CODE(co) + co->_co_firsttraceable + LAYOUT_FIRST_DEAD;
    }
    while (back != NULL && _PyFrame_IsIncomplete(back)) {
        back = back->previous;
    }
    if (back != NULL) {
        back_object = py_frame_object_borrow(ts, back);
        if (back_object == NULL) {
            PyErr_Clear();              /* out of memory: an f_back of None is what CPython gives */
        }
        else {
            fo->f_back = (PyFrameObject *)Py_NewRef(back_object);
        }
    }
    if (!PyObject_GC_IsTracked((PyObject *)fo)) {
        PyObject_GC_Track((PyObject *)fo);
    }
}

void
py_frame_clear(PyThreadState *ts, PyIFrame *f)
{
    PyFrameObject *fo = f->frame_obj;
    int top = f->stacktop;

    f->frame_obj = NULL;
    if (fo != NULL && Py_REFCNT(fo) > 1) {
        hidden_move_to_object(ts, fo, f);
        Py_DECREF(fo);
        return;
    }
    Py_XDECREF(fo);
    f->stacktop = 0;                    /* nothing may reach the slots that are going away */
    for (int i = 0; i < top; i++) {
        Py_XDECREF(f->localsplus[i]);
    }
    Py_CLEAR(f->f_locals);
    Py_DECREF(layout_func(f));
    Py_DECREF(layout_code(f));
}
