/* tests/c/plan_run.h - run a graph given as text on small arrays, for test_plan.c and its like. */
#ifndef CC_PLAN_RUN_H
#define CC_PLAN_RUN_H

#include "base/mem.h"
#include "ir/graph.h"
#include "rt/plan.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>

enum { PR_MAX = 12 };

/* An array of the test: C order unless strides are changed. */
typedef struct {
    uint8_t ndim;
    int64_t dim[CC_MAX_NDIM], stride[CC_MAX_NDIM];
    char *data, *raw;
    CcScalar scalar;
} PrArray;

typedef struct {
    CcGraph g;
    CcPlan *plan;
    CcBinding b;
    PrArray out[PR_MAX];
    CcFaults faults;
    CcStatus st;
} PrRun;

static inline PrArray
pr_array(unsigned size, unsigned ndim, const int64_t *dim)
{
    PrArray a = {.ndim = (uint8_t)ndim};
    int64_t step = size;

    for (unsigned d = ndim; d-- > 0;) {
        a.dim[d] = dim[d];
        a.stride[d] = step;
        step *= dim[d];
    }
    a.raw = malloc((size_t)step + 1);       /* exact: a sanitizer sees reads past the end */
    a.data = a.raw;
    memset(a.raw, 0xee, (size_t)step);
    return a;
}

static inline void
pr_free(PrArray *a)
{
    free(a->raw);
    a->raw = NULL;
}

static inline bool
pr_open(PrRun *r, const char *text)
{
    memset(r, 0, sizeof(*r));
    rt_binding_init(&r->b);
    if (!cc_graph_parse(&r->g, text, &r->st)) {
        return false;
    }
    if (!cc_graph_verify(&r->g, &r->st)) {
        return false;
    }
    r->plan = rt_plan_new(&r->g, &r->st);
    return r->plan != NULL;
}

static inline bool
pr_call(PrRun *r, const PrArray *in, const CcRunOptions *opt)
{
    CcArgIn params[PR_MAX], outs[PR_MAX];

    for (uint32_t k = 0; k < r->g.nparam; k++) {
        params[k] = (CcArgIn){in[k].data, in[k].dim, in[k].stride, in[k].scalar};
    }
    if (!rt_plan_bind(r->plan, params, &r->b, &r->st)) {
        return false;
    }
    for (uint32_t k = 0; k < r->g.nout; k++) {
        const CcOutShape *s = &r->b.out[k];
        pr_free(&r->out[k]);
        r->out[k] = pr_array(cc_dtype_info[s->dtype].size, s->ndim, s->dim);
        memcpy(r->out[k].stride, s->stride, sizeof(s->stride));
        outs[k] = (CcArgIn){r->out[k].data, r->out[k].dim, r->out[k].stride, {0}};
    }
    return rt_plan_run(r->plan, params, outs, &r->b, opt, &r->faults, &r->st);
}

static inline void
pr_close(PrRun *r)
{
    for (uint32_t k = 0; k < PR_MAX; k++) {
        pr_free(&r->out[k]);
    }
    rt_binding_fini(&r->b);
    rt_plan_free(r->plan);
    cc_graph_fini(&r->g);
}

#endif
