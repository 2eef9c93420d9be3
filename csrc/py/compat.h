/* py/compat.h - functions that CPython exports under other names, or without a public declaration.
 */
#ifndef PY_COMPAT_H
#define PY_COMPAT_H

#include "py.h"

#if PY_VERSION_HEX >= 0x030D0000
extern int _PySet_Update(PyObject *set, PyObject *iterable);
extern int _PyDict_MergeEx(PyObject *into, PyObject *from, int on_duplicate);
#endif

/* On 3.11 any allocation may collect garbage and so run finalisers; later versions collect only
 * where signals are served. hold: was collection on? release: put that back. */
static inline int
py_gc_hold(void)
{
#if PY_VERSION_HEX < 0x030C0000
    return PyGC_Disable();
#else
    return 0;
#endif
}

static inline void
py_gc_release(int was_on)
{
    if (was_on) {
        PyGC_Enable();
    }
}

/* list.extend without the method call; 0 or -1. */
static inline int
py_list_extend(PyObject *list, PyObject *iterable)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyList_Extend(list, iterable);
#else
    PyObject *none = _PyList_Extend((PyListObject *)list, iterable);
    Py_XDECREF(none);
    return none == NULL ? -1 : 0;
#endif
}

/* The attribute or NULL; -1 only for errors other than AttributeError. */
static inline int
py_lookup_attr(PyObject *obj, PyObject *name, PyObject **res)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyObject_GetOptionalAttr(obj, name, res);
#else
    return _PyObject_LookupAttr(obj, name, res);
#endif
}

#endif
