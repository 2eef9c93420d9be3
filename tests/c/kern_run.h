/* tests/c/kern_run.h - runs the phases of a heavy operation as a team would: cut in several ways,
 * scratch and shared memory exact in size and full of NaN, so a stray read or write shows. */
#ifndef CC_KERN_RUN_H
#define CC_KERN_RUN_H
#include "kern/kern.h"

#include "t.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef enum { RUN_WHOLE, RUN_GRAINS, RUN_BACKWARDS, RUN_THREADS, RUN__COUNT } RunCut;

static inline void *
run_alloc(size_t bytes)
{
    char *p = bytes == 0 ? NULL : aligned_alloc(64, (bytes + 63) / 64 * 64);

    if (p != NULL) {
        memset(p, 0xff, (bytes + 63) / 64 * 64);
    }
    return p;
}

typedef struct {
    const CcPhase *phase;
    const void *args;
    int64_t next;                       /* taken atomically */
} RunShare;

static void *
run_thread(void *arg)
{
    RunShare *s = arg;
    void *scratch = run_alloc((size_t)s->phase->scratch);

    for (;;) {
        int64_t begin = __atomic_fetch_add(&s->next, s->phase->grain, __ATOMIC_RELAXED);
        int64_t end = begin + s->phase->grain;

        if (begin >= s->phase->size) {
            break;
        }
        s->phase->fn(s->args, begin, end < s->phase->size ? end : s->phase->size, scratch);
    }
    free(scratch);
    return NULL;
}

static inline void
run_phase(const CcPhase *p, const void *args, RunCut cut)
{
    void *scratch = run_alloc((size_t)p->scratch);
    int64_t ranges = (p->size + p->grain - 1) / p->grain;

    if (p->size > 0 && cut == RUN_WHOLE) {
        p->fn(args, 0, p->size, scratch);
    } else if (cut == RUN_THREADS) {
        RunShare s = {p, args, 0};
        pthread_t other[2];

        for (int i = 0; i < 2; i++) {
            T_CHECK(pthread_create(&other[i], NULL, run_thread, &s) == 0);
        }
        run_thread(&s);
        for (int i = 0; i < 2; i++) {
            pthread_join(other[i], NULL);
        }
    } else {
        for (int64_t r = 0; r < ranges; r++) {
            int64_t begin = (cut == RUN_BACKWARDS ? ranges - 1 - r : r) * p->grain;
            int64_t end = begin + p->grain < p->size ? begin + p->grain : p->size;

            p->fn(args, begin, end, scratch);
        }
    }
    free(scratch);
}

/* `shared` is where the operation keeps its shared pointer, NULL when it has none. */
static inline void
run_plan(const KernPlan *plan, const void *args, void **shared, RunCut cut)
{
    T_CHECK(plan->nphase <= KERN_PHASES && (shared != NULL || plan->shared == 0));
    if (shared != NULL) {
        *shared = run_alloc(plan->shared);
    }
    for (uint32_t i = 0; i < plan->nphase; i++) {
        T_CHECK(plan->phase[i].grain >= 1 && plan->phase[i].scratch >= 0);
        run_phase(&plan->phase[i], args, cut);
    }
    if (shared != NULL) {
        free(*shared);
        *shared = NULL;
    }
}

/* Deterministic numbers in (-1, 1). */
static inline double
run_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / 4503599627370496.0 - 1.0;
}

#endif
