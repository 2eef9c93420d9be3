/* rt/plan.h - a graph made ready to run: groups, their programs, memory; then call after call.
 *
 *     rt_plan_new()     once per graph: fuse, lower
 *     rt_plan_bind()    per call: sizes from the parameters, guards, shapes of the results, memory
 *     rt_plan_run()     the work: results go to memory of the caller
 *
 * A plan does not change after rt_plan_set_body(); any number of threads may run it at once, each
 * with its own CcBinding. The graph must outlive the plan. Nothing here knows Python. */
#ifndef CC_RT_PLAN_H
#define CC_RT_PLAN_H

#include "../gen/lower.h"
#include "../pass/fuse.h"
#include "view.h"

typedef struct CcPlan CcPlan;

/* A parameter or a result of the caller. Strides in bytes. Layout SCALAR: `scalar` alone. */
typedef struct {
    void *data;
    const int64_t *dims, *strides;
    CcScalar scalar;
} CcArgIn;

typedef struct {
    uint8_t ndim, dtype;
    int64_t dim[CC_MAX_NDIM];
    int64_t stride[CC_MAX_NDIM];        /* bytes, of the memory order the graph asks for */
} CcOutShape;

/* The memory of one activation; may be used again for further calls, of any plan. */
typedef struct {
    CcOutShape *out;                    /* by output; owned, as all below */
    int64_t *sym, *dim;                 /* values of symbols and of all rows of the dim table */
    int64_t *offset;                    /* of buffers in the arena */
    CcScalar *scalar;                   /* by parameter */
    RtLoop *loop;
    char *arena, *work, *raw_arena, *raw_work;
    int64_t arena_size, arena_need, work_size;
    const CcPlan *plan;                 /* that sized the arrays above */
} CcBinding;

/* EXTERN: call framework function `id`; read args, write the results into the views' memory. */
typedef bool (*CcExternFn)(void *ctx, int64_t id, const CcView *arg, uint32_t narg,
                           const CcView *result, uint32_t nresult, CcStatus *st);

typedef struct {
    uint32_t threads;                   /* 0 = the team's choice */
    const uint32_t *stop;               /* see rt_team_run(); NULL = never */
    CcExternFn external;                /* may be NULL when the graph has no EXTERN */
    void *ctx;
} CcRunOptions;

typedef struct {
    uint32_t bits;                      /* CC_FAULT_* of ir/graph.h: DIVIDE .. ERROR */
    CcRef node;                         /* a fault root of the first group with a fault; 0 none */
} CcFaults;

CcPlan *rt_plan_new(const CcGraph *g, CcStatus *st);
void rt_plan_free(CcPlan *p);

void rt_binding_init(CcBinding *b);
void rt_binding_fini(CcBinding *b);

/* BAD_OPERANDS: a guard on sizes does not hold. params: one per CcGraph.param. */
bool rt_plan_bind(const CcPlan *p, const CcArgIn *params, CcBinding *b, CcStatus *st);

/* outs: one per output, of the shapes that bind computed; C order where the output is not
 * `ordered`. On failure (NO_MEMORY, INTERRUPTED, an extern's) results are undefined. */
bool rt_plan_run(const CcPlan *p, const CcArgIn *params, const CcArgIn *outs, CcBinding *b,
                 const CcRunOptions *opt, CcFaults *faults, CcStatus *st);

/* -- Backends -------------------------------------------------------------- */

uint32_t rt_plan_ngroups(const CcPlan *p);
const CcGroups *rt_plan_groups(const CcPlan *p);        /* for printing */
const CcGroup *rt_plan_group(const CcPlan *p, uint32_t group);

/* One C text with the loops of the plan worth compiling; empty when there are none. */
bool rt_plan_source(const CcPlan *p, CcBuf *out, CcStatus *st);

/* Take the bodies from the object made of that text; find: the address of a function, NULL = it is
 * not there. False: one is missing, the plan is as it was. No run of the plan may be active. */
typedef CcBodyFn (*CcFindFn)(void *ctx, const char *name);
bool rt_plan_link(CcPlan *p, CcFindFn find, void *ctx);

/* The program of a LOOP group that computes something; NULL: nothing to compile. */
const GenLoop *rt_plan_loop(const CcPlan *p, uint32_t group);

/* Compiled bodies of a LOOP group; row may be NULL when mask_row == mask_flat. flat NULL: the
 * interpreter. */
void rt_plan_set_body(CcPlan *p, uint32_t group, CcBodyFn flat, CcBodyFn row);

#endif
