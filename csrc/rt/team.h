/* rt/team.h - the one team of threads that runs kernels.
 *
 * The threads are those of the OpenMP runtime that the process already has (torch's,
 * scikit-learn's), else of the system's libgomp, else of a small pthread pool of our own. Nothing
 * is linked: GOMP_parallel is looked up at run time. A second pool beside a spinning one would
 * slow both down twentyfold.
 *
 * Invariants
 *   - One caller has the team; another thread, or a nested call, runs its kernel alone, at once.
 *   - The bits of a result do not depend on who ran what (kernel.h: phases do not depend on cuts).
 *   - A forked child never calls a libgomp that its parent has used (it would wait for threads
 *     that fork did not copy): it runs serial until its first region that pays, then uses a pool
 *     of its own.
 *   - Kernels run with the caller's rounding, FTZ and DAZ bits and all IEEE traps masked, on every
 *     thread; the floating-point state of every thread, sticky flags included, is afterwards as
 *     before.
 *
 * Never calls Python, never prints, needs no GIL. The state is static (see team.c): a process has
 * one team. */
#ifndef CC_RT_TEAM_H
#define CC_RT_TEAM_H

#include "../base/status.h"
#include "cpus.h"
#include "kernel.h"

#include <stdbool.h>
#include <stdint.h>

/* Run the phases of `k` in order. `threads` is the most to use, 0 = rt_team_threads(). `stop`, when
 * not NULL, is read between ranges (a millisecond apart where the phase says its work); once it is
 * not 0 the run ends early. IEEE and software faults are in *k->fault.
 *
 * False: NO_MEMORY, nothing was run; or INTERRUPTED, some ranges were run and some were not. */
bool rt_team_run(const CcKernel *k, uint32_t threads, const uint32_t *stop, CcStatus *st);

/* The default number of threads: the setter's, unless CCOMPILE_NUM_THREADS is set, else
 * rt_cpus_default(). Read from the environment once. */
uint32_t rt_team_threads(void);

/* The framework's wish (torch.get_num_threads()), 0 = none. */
void rt_team_set_threads(uint32_t threads);

/* The option num_threads: before everything else, 0 = not set. */
void rt_team_tell_threads(uint32_t threads);

/* -- Choice of the runtime, reports, tests ---------------------------------------- */

typedef enum { RT_TEAM_AUTO, RT_TEAM_GOMP, RT_TEAM_POOL, RT_TEAM_SERIAL } RtRuntime;

/* AUTO as above; POOL as if no libgomp existed; SERIAL the caller alone. GOMP is not a wish but a
 * report. */
void rt_team_use(RtRuntime wish);

typedef struct {
    RtRuntime runtime;                  /* AUTO = no region ran yet */
    char library[256];                  /* file of the OpenMP runtime, "" = none */
    uint64_t parallel, serial, busy;    /* runs; busy = serial because the team was taken */
    uint32_t workers;                   /* threads of our own pool */
} RtTeamInfo;

void rt_team_info(RtTeamInfo *info);

/* End our own pool's threads and free the scratch memory; the next run makes them anew. No run may
 * be active. */
void rt_team_fini(void);

#endif
