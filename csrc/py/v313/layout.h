/* py/v313/layout.h - where CPython 3.13 keeps what py/ asks for: one accessor per fact.
 *
 * Needs Py_BUILD_CORE_MODULE (py/internal.h). Nothing here calls into CPython beyond what its
 * headers inline. The other version folders define the same names. */
#ifndef PY_LAYOUT_H
#define PY_LAYOUT_H

#include "../frame.h"

#include <stddef.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wcast-function-type"
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_code.h>
#include <internal/pycore_ceval.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_function.h>
#include <internal/pycore_object.h>
#pragma GCC diagnostic pop

/* -- Facts ------------------------------------------------------------------- */

#define LAYOUT_NEXT_BIAS 0              /* the instruction field holds the next unit itself */
/* an incomplete frame that died pretends to stand here + firsttraceable */
#define LAYOUT_FIRST_DEAD 1
#define LAYOUT_EVAL_POPS true           /* the evaluator clears and pops its frame */
#define LAYOUT_COMPARE_SHIFT 5
#define LAYOUT_COMPARE_BOOL 16
#define LAYOUT_ATTR_METHOD_BIT 1
#define LAYOUT_FOR_ITER_END 2
#define LAYOUT_DICT_TAG_SHIFT 12        /* low bits: watchers and a count of watched changes */

/* -- Thread and frame -------------------------------------------------------- */

static inline PyIFrame **
layout_current(PyThreadState *ts)
{
    return &ts->current_frame;
}

static inline PyCodeObject *
layout_code(const PyIFrame *f)
{
    return (PyCodeObject *)f->f_executable;
}

static inline PyFunctionObject *
layout_func(const PyIFrame *f)
{
    return (PyFunctionObject *)f->f_funcobj;
}

static inline _Py_CODEUNIT **
layout_instr(PyIFrame *f)
{
    return &f->instr_ptr;
}

static inline int
layout_slots(PyCodeObject *co)          /* size of a frame on the data stack */
{
    return co->co_framesize;
}

/* Steals func and locals. */
static inline void
layout_init_frame(PyIFrame *f, PyFunctionObject *func, PyObject *locals, PyCodeObject *co)
{
    _PyFrame_Initialize(f, func, locals, co, 0);
}

static inline bool
layout_breaker(PyThreadState *ts)
{
    return (_Py_atomic_load_uintptr_relaxed(&ts->eval_breaker) & _PY_EVAL_EVENTS_MASK) != 0;
}

/* -- Instances --------------------------------------------------------------- */

/* Attributes kept without a dict: the values array, else NULL and *dict is what there is.
 * A dict that was made for an object with valid inline values shares that array. */
static inline PyObject **
layout_instance(PyObject *obj, PyObject **dict)
{
    unsigned long flags = Py_TYPE(obj)->tp_flags;
    PyObject **at;

    *dict = NULL;
    if ((flags & Py_TPFLAGS_INLINE_VALUES) && _PyObject_InlineValues(obj)->valid) {
        return _PyObject_InlineValues(obj)->values;
    }
    if (flags & Py_TPFLAGS_MANAGED_DICT) {
        *dict = (PyObject *)_PyObject_GetManagedDict(obj);
        return NULL;
    }
    at = _PyObject_GetDictPtr(obj);     /* an unmanaged dict: nothing is made */
    *dict = at != NULL ? *at : NULL;
    return NULL;
}

#endif
