/* py/internal.h - what the .c files of py/ share and nobody else sees.
 *
 * Includes the layout of the running version: CPython's internal headers plus one set of inline
 * accessors (layout_*, LAYOUT_*) that every version folder defines. Included first, because the
 * internal headers need Py_BUILD_CORE_MODULE before Python.h. A new version is one folder and one
 * line here. */
#ifndef PY_INTERNAL_H
#define PY_INTERNAL_H

#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1
#endif
#include <patchlevel.h>

#if PY_VERSION_HEX < 0x030C0000
#include "v311/layout.h"
#elif PY_VERSION_HEX < 0x030D0000
#include "v312/layout.h"
#else
#include "v313/layout.h"
#endif

/* -- py/hidden.c ------------------------------------------------------------- */

PyObject **py_stack_push(PyThreadState *ts, int slots);         /* NULL with MemoryError */
void py_stack_pop(PyThreadState *ts, PyIFrame *f);              /* f is the topmost frame */

/* Drop everything the frame holds; a frame object that outlives it takes the contents over.
 * Unlinked, stacktop set; the memory of the frame stays. */
void py_frame_clear(PyThreadState *ts, PyIFrame *f);

/* -- py/common.c ------------------------------------------------------------- */

/* The frame object of a complete frame, made if there is none. NULL with MemoryError. */
PyFrameObject *py_frame_object_borrow(PyThreadState *ts, PyIFrame *f);

/* A trivial Python function: calling it makes CPython's evaluator serve what waits. */
PyObject *py_poll_function_borrow(void);

/* This traceback entry is the poll function's own. */
bool py_is_poll_entry(PyObject *tb);

#endif
