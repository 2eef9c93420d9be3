/* py/v312/layout.h - where CPython 3.12 keeps what py/ asks for: one accessor per fact.
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

/* the instruction field holds the unit before the next one */
#define LAYOUT_NEXT_BIAS 1
/* an incomplete frame that died pretends to stand here + firsttraceable */
#define LAYOUT_FIRST_DEAD 0
#define LAYOUT_EVAL_POPS true           /* the evaluator clears and pops its frame */
#define LAYOUT_COMPARE_SHIFT 4
#define LAYOUT_COMPARE_BOOL 0
#define LAYOUT_ATTR_METHOD_BIT 1
#define LAYOUT_FOR_ITER_END 1
#define LAYOUT_DICT_TAG_SHIFT 8         /* low bits: watchers */

/* -- Thread and frame -------------------------------------------------------- */

static inline PyIFrame **
layout_current(PyThreadState *ts)
{
    return &ts->cframe->current_frame;
}

static inline PyCodeObject *
layout_code(const PyIFrame *f)
{
    return f->f_code;
}

static inline PyFunctionObject *
layout_func(const PyIFrame *f)
{
    return (PyFunctionObject *)f->f_funcobj;
}

static inline _Py_CODEUNIT **
layout_instr(PyIFrame *f)
{
    return &f->prev_instr;
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
    return _Py_atomic_load_relaxed(&ts->interp->ceval.eval_breaker) != 0;
}

/* -- Instances --------------------------------------------------------------- */

/* Attributes kept without a dict: the values array, else NULL and *dict is what there is. */
static inline PyObject **
layout_instance(PyObject *obj, PyObject **dict)
{
    PyObject **at;

    *dict = NULL;
    if (Py_TYPE(obj)->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
        PyDictOrValues both = *_PyObject_DictOrValuesPointer(obj);
        if (_PyDictOrValues_IsValues(both)) {
            return _PyDictOrValues_GetValues(both)->values;
        }
        *dict = _PyDictOrValues_GetDict(both);
        return NULL;
    }
    at = _PyObject_GetDictPtr(obj);     /* an unmanaged dict: nothing is made */
    *dict = at != NULL ? *at : NULL;
    return NULL;
}

#endif
