/* py/py.h - the one way to Python.h. */
#ifndef PY_PY_H
#define PY_PY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "ccompile supports CPython 3.11, 3.12 and 3.13; see docs/adding-a-python.md for a new one"
#endif
#ifdef Py_GIL_DISABLED
#error "ccompile does not support free-threaded builds of CPython"
#endif

#endif
