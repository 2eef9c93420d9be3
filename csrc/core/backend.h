/* core/backend.h - compiled bodies for the loops of plans: texts, cache, compiler.
 *
 * Knows no Python: the caller gives options and a function that asks for signals, and holds no GIL
 * (a compiler may run for seconds). One CoreBuilder serves a process; any thread may use it, one at
 * a time, and the others wait, asking for signals too.
 *
 * Invariant: a plan is right at any time. A loop without a body is interpreted, with the same bits.
 */
#ifndef CORE_BACKEND_H
#define CORE_BACKEND_H

#include "build/make.h"
#include "rt/plan.h"

#include <stdatomic.h>

typedef enum { BACKEND_TOOL_UNKNOWN, BACKEND_TOOL_READY, BACKEND_TOOL_NONE } BackendTool;

enum { BACKEND_TEXT = 1024 };           /* of an option, with its NUL: CC_CONFIG_TEXT_SIZE */

typedef struct {
    _Atomic uint64_t holder;            /* process and thread that is inside, 0 = none */
    char id[CC_SHA256_HEX];             /* of our build; "" = not made yet */
    bool open;                          /* cache, dir, limit */
    BuildCache cache;
    char dir[BACKEND_TEXT];
    uint64_t limit;
    BackendTool found;
    BuildToolchain tool;                /* READY */
    char wish[BACKEND_TEXT];            /* what the search was for */
    CcStatus no_tool;                   /* NONE: why */
    CcStatus why;                       /* the first failure; reason NONE = there was none */
    double seconds;                     /* spent with the compiler */
} CoreBuilder;

typedef struct {
    const char *cache_dir, *compiler;   /* options; "" = the default */
    uint64_t cache_size;
    bool (*interrupted)(void *ctx);     /* polled while we wait, as BuildRun's; may be NULL */
    void *ctx;
    unsigned jobs;                      /* 0 = the processors we may use */
    /* What becomes of it; readable in `interrupted`. */
    uint32_t compiling;                 /* kernels that wait for the compiler */
    uint32_t compiled, hits;            /* kernels from it; from the cache */
} BackendCall;

/* The code that plans point into. */
typedef struct BackendBodies BackendBodies;

/* Give the loops of the plans of one trace their bodies. False: not all have one; NO_COMPILER,
 * COMPILE_FAILED, LOAD_FAILED, INTERRUPTED or NO_MEMORY. *bodies is set in any case (NULL = no loop
 * has a body) and must outlive the plans. No plan may be running. */
bool core_backend_prepare(CoreBuilder *b, CcPlan *const *plan, uint32_t nplan, BackendCall *call,
                          BackendBodies **bodies, CcStatus *st);
void core_backend_drop(BackendBodies *bodies);          /* NULL is allowed */

/* To read the state: false = somebody is inside. */
bool core_backend_enter(CoreBuilder *b);
void core_backend_leave(CoreBuilder *b);

void core_backend_fini(CoreBuilder *b);                 /* `b` was zeroed at first */

#endif
