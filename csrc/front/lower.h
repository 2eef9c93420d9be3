/* front/lower.h - the array work of a trace as kernels: what front_lower() makes and exec/ runs.
 *
 * The NODE rows of a LAUNCH are cut, in order, into steps: a run of rows that became one graph, or
 * one row that the framework executes as recorded. A graph reads registers and constants and sets
 * the registers that anything outside of the run reads; the others stay as they were. What it gives
 * is what the framework would have given: type, dtype, shape, memory order. Where that cannot be
 * known the row is left to the framework.
 *
 * A graph has one binding, so it runs under the GIL, one call at a time. */
#ifndef FRONT_LOWER_H
#define FRONT_LOWER_H

#include "../pass/pass.h"
#include "../rt/plan.h"
#include "front.h"

typedef enum {
    FRONT_IN_ARRAY,
    FRONT_IN_SCALAR,                    /* NumPy scalar, by value */
    FRONT_IN_INT,                       /* Python int that must fit the dtype `fits` */
    FRONT_IN_INTFLOAT,                  /* Python int as a float */
    FRONT_IN_SIZE,                      /* Python int that is a size */
    FRONT_IN_FLOAT,
    FRONT_IN_BOOL,
} FrontInKind;

typedef struct {
    TapeRef ref;                        /* register or constant */
    uint8_t kind;                       /* FrontInKind */
    uint8_t fits;                       /* CcDtype */
    TapeMeta meta;                      /* sizes: 0 and 1 are demanded, others may be any above 1 */
    PyTypeObject *type;                 /* SCALAR: exact type; borrowed, static */
} FrontIn;

typedef struct {
    uint32_t reg;
    uint8_t form;                       /* TapeForm */
    uint8_t order;                      /* LAYOUT_C or LAYOUT_F */
    bool wrapped;                       /* a view of the whole of an array that nobody else has */
    int16_t dtype;                      /* NumPy type number; arrays and scalars */
    bool hidden;                        /* an array that only this graph and WRITE rows read */
} FrontOut;

/* A size that the graph computes and that must be at least `min` (the recording knew that). */
typedef struct {
    CcDim dim;
    int64_t min;
} FrontNeed;

/* Memory that hidden results take in turn, so that it stays mapped and near: a block is free when
 * nothing else holds it. */
enum { FRONT_POOL_BLOCKS = 64 };
typedef struct FrontPool {
    PyObject *block[FRONT_POOL_BLOCKS]; /* owned: arrays of bytes */
    uint32_t n;
} FrontPool;

typedef struct {
    CcGraph g;
    CcPlan *plan;
    CcBinding binding;
    FrontIn *in;                        /* owned; one per parameter */
    FrontOut *out;                      /* owned; one per output */
    FrontNeed *need;                    /* owned */
    uint32_t nin, capin, nout, capout, nneed, capneed;
    CcArgIn *arg, *result;              /* owned: room for a call */
    CcScalar *number;
    PyObject **made;
    struct FrontPool *pool;             /* of the trace; memory of hidden results */
    PyObject *custom;                   /* of a backend of the program's; pinned by the trace */
    uint32_t strict; /* faults (CC_FAULT_*) with which a result is not NumPy's, ignored or not */
    bool busy; /* in a call: a weakref callback of a result may come here again */
} FrontGraph;

typedef struct {
    uint32_t n;                         /* rows */
    FrontGraph *graph;                  /* owned; NULL: the framework, row by row */
    const char *why;                    /* no graph: the reason, static text */
} FrontStep;

/* Steps of all launches of a trace: LAUNCH.check - 1 is the first one of a launch. */
typedef struct {
    FrontStep *step;                    /* owned */
    uint32_t nstep, capstep;
    FrontPool pool;
} FrontPlans;

/* Make kernels of a finished trace: sets plan_owner, plan_free and `check` of its LAUNCH rows.
 * `watch`: the hook sees the graphs after each pass. Needs the GIL, asks NumPy; leaves no exception.
 * A trace for which memory is short has no kernels. */
void front_lower(Trace *t, const PassOptions *watch);

/* Plans of a trace, NULL when it has none. */
static inline FrontPlans *
front_plans(const Trace *t)
{
    return t->plan_owner;
}

/* For reports: a list of (rows, graph text or reason, whether it is a graph) of a trace and of its
 * side traces; NULL with an exception. */
PyObject *front_plans_list(const Trace *t);

void front_arg_of(PyObject *array, CcArgIn *arg);       /* its memory */

/* -- launch.c ------------------------------------------------------------------------ */

typedef enum { FRONT_RAN, FRONT_REFUSED, FRONT_FAULT } FrontRan;

/* Run a graph on these registers. REFUSED: the inputs are not as recorded; FAULT: an error that the
 * mask `ignored` (CC_FAULT_* bits) does not cover. Then no register has changed. No exception. */
FrontRan front_launch(FrontGraph *fg, const Trace *t, PyObject **reg, uint32_t ignored);

/* -- run_graph.c ---------------------------------------------------------------------- */

/* A graph on objects: a tuple of new arrays and NumPy scalars; NULL with an exception. */
PyObject *front_run_objects(const CcGraph *g, const CcPlan *plan, PyObject *const *in, uint32_t n);
PyObject *front_example(const FrontIn *in);     /* of an input's type, zeros or ones */
/* The function in place of a graph whose results are made and bound. False: it failed, which was
 * said, and is not asked again. */
bool front_run_custom(FrontGraph *fg, const Trace *t, PyObject **reg);

bool front_int_fits(CcDtype dt, int64_t value);         /* as a value of this integer dtype */

#endif
