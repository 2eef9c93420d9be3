/* core/kernels.c - the Python half of core/backend.c: options, the GIL, signals, one line of progress.
 *
 * The compiler runs without the GIL. About every 50 ms this thread takes it and lets Python look at
 * signals; an exception of a handler ends the compilation and is the caller's. */
#define _GNU_SOURCE
#include "state.h"

#include "base/mem.h"
#include "front/lower.h"

#include <stdio.h>
#include <unistd.h>

static const double session_quiet = 2, session_step = 0.5;      /* seconds */

typedef struct {
    BackendCall call;
    PyThreadState *ts;                  /* ours, while the GIL is released */
    double start, shown;                /* 0 = no line yet */
    bool show;
    bool raised;                        /* a signal handler's exception is set */
} Session;

/* -- Without the GIL ----------------------------------------------------------------------- */

static void
session_write(const char *text, int len)
{
    if (write(STDERR_FILENO, text, (size_t)len) < 0) {
        return;                         /* nobody reads it */
    }
}

static void
session_show(Session *s)
{
    char line[100];
    double now = build_now();

    if (!s->show || s->call.compiling == 0 || now - s->start < session_quiet
            || now - s->shown < session_step) {
        return;
    }
    s->shown = now;
    session_write(line, snprintf(line, sizeof(line), "\rccompile: compiling %u kernel%s, %.0f s ",
                                 s->call.compiling, s->call.compiling == 1 ? "" : "s",
                                 now - s->start));
}

static bool
session_interrupted(void *ctx)
{
    Session *s = ctx;

    session_show(s);
    if (!s->raised) {
        PyEval_RestoreThread(s->ts);
        s->raised = PyErr_CheckSignals() < 0;
        s->ts = PyEval_SaveThread();
    }
    return s->raised;
}

/* -- A trace --------------------------------------------------------------------------------- */

static void
drop_bodies(void *bodies)
{
    core_backend_drop(bodies);
}

/* The plans of a trace, `n` of them, in a new block; NULL = none, or no memory. */
static CcPlan **
plans_of(const Trace *t, uint32_t *n)
{
    const FrontPlans *plans = front_plans(t);
    CcPlan **list = plans == NULL ? NULL : cc_calloc(plans->nstep + 1, sizeof(*list));

    *n = 0;
    for (uint32_t i = 0; list != NULL && i < plans->nstep; i++) {
        if (plans->step[i].graph != NULL) {
            list[(*n)++] = plans->step[i].graph->plan;
        }
    }
    return list;
}

int
core_give_bodies(CoreOwner *own, Trace *t)
{
    CoreState *state = own->state;
    const CcConfig config = state->config;      /* may be changed while the GIL is free */
    bool logs = (config.logs & (1u << CC_LOG_KERNELS)) != 0;
    Session s = {
        .call = {.cache_dir = config.cache_dir.text, .compiler = config.compiler.text,
                 .cache_size = (uint64_t)config.cache_size, .interrupted = session_interrupted},
        .start = build_now(),
        .show = logs || isatty(STDERR_FILENO),
    };
    BackendBodies *bodies = NULL;
    CcStatus st = {0};
    uint32_t n;
    CcPlan **plan = plans_of(t, &n);

    s.call.ctx = &s;
    if (n > 0) {
        s.ts = PyEval_SaveThread();
        core_backend_prepare(&state->builder, plan, n, &s.call, &bodies, &st);
        PyEval_RestoreThread(s.ts);
    }
    cc_free(plan);
    if (s.shown > 0) {
        session_write("\n", 1);
    }
    t->body_owner = bodies;
    t->body_free = drop_bodies;
    own->count.compiled_kernels += s.call.compiled;
    state->count.compiled_kernels += s.call.compiled;
    own->count.cache_hits += s.call.hits;
    state->count.cache_hits += s.call.hits;
    if (s.raised) {
        return -1;
    }
    if (logs && (s.call.compiled + s.call.hits > 0 || st.reason != CC_REASON_NONE)) {
        PySys_WriteStderr("ccompile: kernels: %u compiled, %u from the cache, %.2f s%s%.160s\n",
                          s.call.compiled, s.call.hits, build_now() - s.start,
                          st.reason != CC_REASON_NONE ? "; " : "", st.detail);
    }
    return 0;
}

/* -- For Python -------------------------------------------------------------------------------- */

PyDoc_STRVAR(backend_info_doc,
             "backend_info()\n--\n\n"
             "State of backend \"c\": compiler, version, flags, cache, seconds (in the\n"
             "compiler), reason, detail, hint.\n"
             "compiler is None until one was needed and found; reason names the first failure.\n"
             "None of it is known while another thread compiles.");

static PyObject *
core_backend_info(PyObject *module, PyObject *Py_UNUSED(none))
{
    CoreBuilder *b = &core_state(module)->builder, nothing = {0};

    if (!core_backend_enter(b)) {
        b = &nothing;
    }
    bool tool = b->found == BACKEND_TOOL_READY, failed = b->why.reason != CC_REASON_NONE;

    PyObject *info = Py_BuildValue("{szszszszsdszszsz}", "compiler", tool ? b->tool.argv[0] : NULL,
        "version", tool ? b->tool.version : NULL,
        "flags", tool ? b->tool.flags : NULL,
        "cache", b->open ? b->cache.dir : NULL, "seconds", b->seconds,
        "reason", failed ? cc_reason_name(b->why.reason) : NULL,
        "detail", failed ? b->why.detail : NULL,
        "hint", failed ? cc_reason_hint(b->why.reason) : NULL);

    if (b != &nothing) {
        core_backend_leave(b);
    }
    return info;
}

static PyMethodDef kernels_methods[] = {
    {"backend_info", core_backend_info, METH_NOARGS, backend_info_doc},
    {NULL, NULL, 0, NULL},
};

int
core_kernels_setup(PyObject *module)
{
    return PyModule_AddFunctions(module, kernels_methods);
}
