/* front/npy.h - NumPy's C API for the files of this layer; one of them (numpy.c) imports it. */
#ifndef FRONT_NPY_H
#define FRONT_NPY_H

#include "../py/py.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL front_npy_array_api
#define PY_UFUNC_UNIQUE_SYMBOL front_npy_ufunc_api
#ifndef FRONT_NPY_IMPORTS
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#endif
