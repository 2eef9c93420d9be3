/* pass/pass.h - the contract of a pass, and the runner.
 *
 * A pass is `bool pass_x(CcGraph *, CcStatus *)`. It keeps no state, knows no order and leaves a
 * graph that verifies; on failure the graph is still valid (as it was, or partly rewritten with
 * the same meaning). pass.def says what it needs, keeps and breaks; run.c runs lists of names. A
 * rewrite keeps dtype and shape, honours the exactness column and the fault roots: a node marked
 * CC_NODE_FAULT may only go when nothing it could raise is lost. */
#ifndef CC_PASS_H
#define CC_PASS_H

#include "../ir/graph.h"

typedef bool (*PassFn)(CcGraph *g, CcStatus *st);

typedef struct {
    const char *name;
    PassFn run;
    uint32_t needs, makes, breaks;      /* PASS_P_* bits */
} PassInfo;

enum {                                  /* properties of a graph */
    PASS_P_TYPED = 1,                   /* dtypes and canonical shapes are filled in */
    PASS_P_PRIMITIVE = 2,               /* no COMP nodes */
    PASS_P_LIVE = 4                     /* no dead nodes */
};

typedef enum {
#define PASS(name, needs, makes, breaks) PASS_##name,
#include "pass.def"
#undef PASS
    PASS__COUNT
} PassId;

extern const PassInfo pass_info[PASS__COUNT];

#define PASS(name, needs, makes, breaks) bool pass_##name(CcGraph *g, CcStatus *st);
#include "pass.def"
#undef PASS

/* Called after each pass that run. ns: its own time without verify. */
typedef void (*PassHook)(void *ctx, const char *pass, const CcGraph *g, uint64_t ns);

typedef struct {
    bool verify;                        /* after each pass; debug builds set it */
    PassHook hook;                      /* NULL = none */
    void *ctx;
} PassOptions;

/* Run the passes named in `names` (blank separated). BAD_TEXT for an unknown name; BAD_GRAPH when a
 * need is not met by what ran before (`have`: properties that the graph has at the start). */
bool pass_run(CcGraph *g, const char *names, uint32_t have, const PassOptions *opt, CcStatus *st);

/* The default pipeline up to fusion, as a list for pass_run. */
extern const char pass_default[];

/* Reverse mode. `loss` is a 0-d float node. Appends nodes and writes grads_out[i], the gradient
 * of the loss with respect to node wrt[i], of its shape and dtype (a BROADCAST of 0 when the loss
 * does not depend on it). Fails with NO_GRADIENT naming the node (its `where` is in the graph)
 * when a gradient arrives at an op whose row says `none`. Tie rules: grad.c. Works on composites
 * as well as after decompose. */
bool pass_grad(CcGraph *g, CcRef loss, const CcRef *wrt, uint32_t nwrt, CcRef *grads_out,
               CcStatus *st);

#endif
