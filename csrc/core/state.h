/* core/state.h - everything that one import of ccompile._core owns; reached through the module. */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include "base/config.h"
#include "py/py.h"

typedef struct {
    PyObject *testing;                  /* namespace `_core._testing`; owned */
    CcConfig config;                    /* of the process: environment, then ccompile.config.set() */
} CoreState;

static inline CoreState *
core_state(PyObject *module)
{
    return PyModule_GetState(module);
}

/* core/config.c: options from the environment and the functions config_* and switch_rows. -1 with an
 * exception; a bad variable is a RuntimeWarning and keeps its default. */
int core_config_setup(PyObject *module);

#endif
