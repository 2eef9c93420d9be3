/* rt/plan_heavy.h - one run of a plan, shared by rt/plan.c (loops, memory) and rt/plan_heavy.c
 * (every other kind of group). Included by these two only. */
#ifndef CC_RT_PLAN_HEAVY_H
#define CC_RT_PLAN_HEAVY_H

#include "plan.h"

typedef struct {
    const CcPlan *p;
    const CcGraph *g;
    const CcGroups *groups;
    const CcArgIn *params, *outs;
    CcBinding *b;
    const CcRunOptions *opt;
    CcStatus *st;
    uint32_t group;                     /* in work */
    cc_u32 fault;                       /* of the group in work, rt/kernel.h bits */
} PlanRun;

/* Where value r lies: a parameter, a buffer, or a view of one. */
bool rt_plan_view(const PlanRun *run, CcRef r, CcView *v);
void rt_plan_buffer_view(const PlanRun *run, uint32_t buffer, CcView *v);

/* v, whose dims are set, becomes the SLICE with these attributes of a. */
void rt_plan_slice(const PlanRun *run, const int64_t *attr, const CcView *a, CcView *v);

/* Memory until the next call of rt_plan_work, 64-byte aligned. */
bool rt_plan_work(PlanRun *run, int64_t need, char **out);
bool rt_plan_phases(PlanRun *run, const CcPhase *phase, uint32_t n, const void *args);

/* Run a group that is no LOOP. */
bool rt_plan_run_other(PlanRun *run, uint32_t group);

#endif
