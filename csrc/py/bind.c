/* py/bind.c - the arguments of a call, put where the callee's code expects them.
 *
 * The order of events is CPython's: positionals, *args, keywords, then defaults. A call that plain
 * Python refuses, or that needs a comparison which could run code, is refused without an exception
 * and leaves every slot NULL. */
#include "internal.h"

typedef struct {
    PyFunctionObject *func;
    PyCodeObject *co;
    PyObject **slots;
    int positional;                     /* parameters that take positional arguments */
    int named;                          /* and all that have a name of their own */
    PyObject *kwargs;                   /* the ** dict, borrowed from its slot, or NULL */
} Bind;

int
py_nparams(PyCodeObject *co)
{
    return co->co_argcount + co->co_kwonlyargcount + ((co->co_flags & CO_VARARGS) != 0)
           + ((co->co_flags & CO_VARKEYWORDS) != 0);
}

/* Positionals and *args. 1, 0, -1 as py_bind. */
static int
bind_positional(Bind *b, PyObject *const *args, Py_ssize_t nargs)
{
    Py_ssize_t taken = nargs < b->positional ? nargs : b->positional;
    PyObject *rest;

    for (Py_ssize_t i = 0; i < taken; i++) {
        b->slots[i] = Py_NewRef(args[i]);
    }
    if (!(b->co->co_flags & CO_VARARGS)) {
        return taken == nargs;
    }
    rest = PyTuple_New(nargs - taken);
    if (rest == NULL) {
        return -1;
    }
    for (Py_ssize_t i = taken; i < nargs; i++) {
        PyTuple_SET_ITEM(rest, i - taken, Py_NewRef(args[i]));
    }
    b->slots[b->named] = rest;
    return 1;
}

/* Index of the parameter that the keyword names, -1 = none. By identity first: names in code
 * objects are interned, and so are most keywords. */
static int
bind_find(const Bind *b, PyObject *keyword)
{
    PyObject **names = &PyTuple_GET_ITEM(b->co->co_localsplusnames, 0);

    for (int i = b->co->co_posonlyargcount; i < b->named; i++) {
        if (names[i] == keyword) {
            return i;
        }
    }
    for (int i = b->co->co_posonlyargcount; i < b->named; i++) {
        if (PyUnicode_Compare(names[i], keyword) == 0) {
            return i;
        }
    }
    return -1;
}

static int
bind_keywords(Bind *b, PyObject *const *values, PyObject *kwnames)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *keyword = PyTuple_GET_ITEM(kwnames, k);
        int i;

        if (!PyUnicode_CheckExact(keyword)) {
            return 0;
        }
        i = bind_find(b, keyword);
        if (i >= 0 && b->slots[i] == NULL) {
            b->slots[i] = Py_NewRef(values[k]);
        }
        else if (i >= 0 || b->kwargs == NULL) {         /* given twice, or unexpected */
            return 0;
        }
        else if (PyDict_SetItem(b->kwargs, keyword, values[k]) < 0) {
            return -1;
        }
    }
    return 1;
}

static int
bind_defaults(Bind *b)
{
    PyObject *defaults = b->func->func_defaults, *kwdefaults = b->func->func_kwdefaults;
    Py_ssize_t ndefaults = defaults != NULL ? PyTuple_GET_SIZE(defaults) : 0;

    for (int i = 0; i < b->positional; i++) {
        Py_ssize_t at = ndefaults - b->positional + i;
        if (b->slots[i] != NULL) {
            continue;
        }
        if (at < 0) {
            return 0;
        }
        b->slots[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, at));
    }
    for (int i = b->positional; i < b->named; i++) {
        PyObject *value;
        if (b->slots[i] != NULL) {
            continue;
        }
        if (kwdefaults == NULL || !DK_IS_UNICODE(((PyDictObject *)kwdefaults)->ma_keys)) {
            return 0;
        }
        value = PyDict_GetItemWithError(kwdefaults,
                                        PyTuple_GET_ITEM(b->co->co_localsplusnames, i));
        if (value == NULL) {
            return PyErr_Occurred() ? -1 : 0;
        }
        b->slots[i] = Py_NewRef(value);
    }
    return 1;
}

int
py_bind(PyFunctionObject *func, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
        PyObject **slots)
{
    PyCodeObject *co = (PyCodeObject *)func->func_code;
    Bind b = {func, co, slots, co->co_argcount, co->co_argcount + co->co_kwonlyargcount, NULL};
    int nparams = py_nparams(co), status;

    for (int i = 0; i < nparams; i++) {
        slots[i] = NULL;
    }
    if (co->co_flags & CO_VARKEYWORDS) {
        b.kwargs = PyDict_New();
        if (b.kwargs == NULL) {
            return -1;
        }
        slots[nparams - 1] = b.kwargs;
    }
    status = bind_positional(&b, args, nargs);
    if (status > 0 && kwnames != NULL) {
        status = bind_keywords(&b, args + nargs, kwnames);
    }
    if (status > 0) {
        status = bind_defaults(&b);
    }
    if (status <= 0) {
        for (int i = 0; i < nparams; i++) {
            Py_CLEAR(slots[i]);
        }
    }
    return status;
}
