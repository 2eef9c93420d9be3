/* core/state.h - everything that one import of ccompile._core owns; reached through the module. */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include "backend.h"
#include "base/buf.h"
#include "base/config.h"
#include "exec/exec.h"
#include "pass/pass.h"
#include "py/py.h"
#include "trace/rec.h"

/* What counters() gives, in this order. */
#define CORE_COUNTERS(X)                                                                          \
    X(recorded) X(replayed) X(side_exits) X(fallback) X(graph_breaks) X(array_ops_in_kernels)     \
    X(array_ops_extern) X(array_ops_residual) X(compiled_kernels) X(cache_hits) X(faults)         \
    X(discarded)

typedef struct {
#define X(name) uint64_t name;
    CORE_COUNTERS(X)
#undef X
} CoreCounters;

typedef struct {
    PyObject *testing;                  /* namespace `_core._testing`; owned */
    CcConfig config; /* of the process: environment, then ccompile.config.set() */
    PyObject *callable_type, *graph_type;
    PyObject *is_compiling, *graph_break;
    PyObject *break_type; /* what `fullgraph` raises; owned, NULL until Python has set it */
    PyObject *grad_hooks;               /* of _gradtape.py; owned, NULL until it is loaded */
    CoreCounters count;
    CoreBuilder builder;                /* of compiled kernels */
    uint32_t ndumped;                   /* traces that were dumped */
    bool works;                         /* the self-test of this interpreter has passed */
} CoreState;

static inline CoreState *
core_state(PyObject *module)
{
    return PyModule_GetState(module);
}

/* core/config.c: options from the environment and the functions config_* and switch_rows. -1 with
 * an exception; a bad variable is a RuntimeWarning and keeps its default. */
int core_config_setup(PyObject *module);

/* core/callable.c: the type of compiled callables. */
int core_callable_setup(PyObject *module);
bool core_is_disabled(PyObject *obj);   /* a compiled callable made with disable=True */

/* -- Traces of one code object ---------------------------------------------------- */

typedef struct {
    PyCodeObject *code;                 /* owned */
    Trace **root;                       /* owned; most recently made first */
    uint32_t nroot;
    uint32_t tries;                     /* recordings that gave no trace */
    bool closed;                        /* no further recording: limits */
} CodeTraces;

/* Why a call was not served by one graph. */
typedef struct {
    CcReason reason;
    PyObject *code;                     /* owned */
    int unit;
    char detail[80];
} CoreBreak;

/* How array work is done; the numbers of _api.BACKENDS. */
typedef enum { CORE_EAGER, CORE_INTERP, CORE_C, CORE_CUSTOM, CORE_BACKEND__COUNT } CoreBackend;

/* A compiled callable's own part. The executor's owner is its first member, so that it finds the
 * rest. */
typedef struct {
    ExecOwner exec;
    CoreState *state;
    CcConfig config;
    bool fullgraph;
    uint8_t backend;                    /* CoreBackend */
    PyObject *custom;                   /* CORE_CUSTOM: the program's backend; the options hold it */
    CodeTraces **traces; /* each stays where it is until the owner goes: calls hold them */
    uint32_t ntraces;
    CoreBreak *brk;
    uint32_t nbrk;
    PyObject *misses;                   /* list of str: why calls were recorded again; or NULL */
    CoreCounters count;
    int depth;                          /* calls that are recording now */
} CoreOwner;

/* -- compile.c ------------------------------------------------------------------------ */

/* Call `func` with these arguments, through its traces, recording where there is none. */
PyObject *core_call(CoreOwner *own, PyFunctionObject *func, PyObject *const *args, size_t nargsf,
                    PyObject *kwnames);
void core_owner_init(CoreOwner *own, CoreState *state);
void core_owner_reset(CoreOwner *own);  /* forget all traces */
void core_owner_fini(CoreOwner *own);   /* no call is running */
int core_owner_traverse(CoreOwner *own, visitproc visit, void *arg);

/* -- report.c ------------------------------------------------------------------------- */

PyObject *core_report_traces(const CoreOwner *own); /* list of dicts, the form of report/model.py */
void core_report_recording(CoreOwner *own,
                           const Recorder *r); /* keep and log what interrupted it */
void core_report_miss(CoreOwner *own,
                      const CodeTraces *ct); /* no root fitted, each has its failed row */

PyObject *core_trace_guards(const Trace *t);    /* list of (text, file, line) */

/* A line on sys.stderr if the list `logs` has the item; PyUnicode_FromFormat's formats. */
void core_log(CoreOwner *own, CcLogItem item, const char *fmt, ...);
void core_log_guards(CoreOwner *own, const Trace *t);
void core_log_side_limit(CoreOwner *own, const Trace *t, uint32_t snap);
/* The line about an exit that is taken; NULL when nobody wants it, never an exception. It is
 * written when the call is over, since writing runs code of the program. */
PyObject *core_exit_text(const CoreOwner *own, const Trace *t, uint32_t snap);
PyObject *core_log_exit_steal(CoreOwner *own, PyObject *text, PyObject *result); /* gives result */

/* -- dump.c ----------------------------------------------------------------------------- */

/* What the option `dump` wants of one recording. */
typedef struct {
    const CcDump *want;
    const char *dir;
    CcBuf ir;                           /* graphs after the passes, as they run */
    PassOptions watch;                  /* for front_lower */
} CoreDump;

void core_dump_init(CoreDump *d, const CcConfig *config);
/* Write what is wanted of a trace that is ready, and forget it. No exception. */
void core_dump_end(CoreDump *d, CoreState *state, const Trace *t);

/* -- kernels.c -------------------------------------------------------------------------- */

/* Compiled bodies for the plans of a trace that no call runs yet. What cannot be compiled stays
 * with the interpreter. -1: a signal handler has raised; the trace is good all the same. */
int core_give_bodies(CoreOwner *own, Trace *t);

/* -- graph.c ---------------------------------------------------------------------------- */

/* Functions of the program's backend for the graphs of a trace. No exception. */
void core_ask_backend(CoreOwner *own, Trace *t);
int core_graph_setup(PyObject *module);         /* type Graph */

int core_kernels_setup(PyObject *module);       /* function backend_info */

#endif
