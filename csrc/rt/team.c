/* How a region works
 *
 *   slot[t].next   phase << 32 | index of the next range in thread t's share of the phase
 *
 * Each thread takes ranges from its own share first (the same data as in the last region, still in
 * its cache), then from the others'. A phase is over when the ranges *done* equal its ranges, so
 * the barrier counts work, not threads: a worker that the scheduler has not yet started holds
 * nobody up, and a runtime that gives fewer threads than asked is no special case. Who finishes a
 * phase resets all slots for the next one and then publishes its number; a range is taken by
 * compare-and-swap on a value that holds the phase, so a slow thread cannot take a range of a
 * phase it does not know.
 *
 * Mutable statics, all in this file: `team` (who has it, choice of runtime, counters), `pool` (our
 * own threads), `store` (scratch memory). `team.lock` guards what is not atomic; fork() takes it,
 * so that the child finds everything but the pool's threads in order. */
#define _GNU_SOURCE
#include "team.h"

#include "../base/mem.h"
#include "fp.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <link.h>
#endif

enum {
    TEAM_LINE = 64,                     /* bytes of a cache line */
    TEAM_SHARE = 8,                     /* ranges per thread: others take over a late one's share */
    TEAM_SPIN = 4000,                   /* pauses (some 40 us) before the processor is given up */
    TEAM_TOLD = 0x40000000,             /* the number is CCOMPILE_NUM_THREADS */
    TEAM_RESOLVE_EVERY = 256,           /* regions until a missing libgomp is looked for again */
};
static const double team_range_ns = 1e6;        /* longest time between two looks at `stop` */
static const double team_thread_ns = 2e4;       /* work that pays for waking one more thread */

typedef void (*GompParallel)(void (*fn)(void *), void *data, unsigned threads, unsigned flags);

typedef struct {
    _Alignas(TEAM_LINE) _Atomic uint64_t next;
} TeamSlot;

typedef struct {                        /* how a phase is cut */
    int64_t chunk;                      /* length of a range, a multiple of the grain */
    uint32_t count;                     /* ranges */
} TeamCut;

typedef struct {
    const CcKernel *k;
    const uint32_t *stop;
    uint32_t threads;                   /* shares; more threads than that find nothing to do */
    RtFp fp;                            /* what kernels run with */
    void *scratch[RT_MAX_THREADS];
    _Alignas(TEAM_LINE) _Atomic uint32_t ticket;
    _Alignas(TEAM_LINE) _Atomic uint32_t phase;
    _Alignas(TEAM_LINE) _Atomic uint32_t done;
    _Alignas(TEAM_LINE) _Atomic uint32_t stopped;
    TeamSlot slot[RT_MAX_THREADS];
} TeamJob;

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    atomic_flag taken;
    atomic_bool forked;                 /* a child: no libgomp any more */
    _Atomic int wish;                   /* RtRuntime */
    _Atomic uint32_t framework_threads, default_threads;    /* 0 = not known; TEAM_TOLD */
    _Atomic int runtime;                /* RtRuntime of the last parallel region */
    _Atomic(GompParallel) gomp;
    char library[256];                  /* under lock */
    uint32_t looked;                    /* regions since the last search; owner of the team only */
    _Atomic uint64_t parallel, serial, busy;
    TeamJob job;                        /* owner of the team only */
} team = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .taken = ATOMIC_FLAG_INIT};

/* -- Scratch memory: blocks kept for the next run ---------------------------------- */

typedef struct TeamBlock {
    struct TeamBlock *next;
    void *raw;                          /* what the allocator gave */
    size_t size;                        /* usable bytes behind this header */
} TeamBlock;

_Static_assert(sizeof(TeamBlock) <= TEAM_LINE, "the header fits before the aligned bytes");

static struct {
    TeamBlock *free;                    /* under team.lock; never more than run at the same time */
} store;

static void *
store_get(size_t size)
{
    TeamBlock *block;

    pthread_mutex_lock(&team.lock);
    TeamBlock **at = &store.free;
    while (*at != NULL && (*at)->size < size) {
        at = &(*at)->next;
    }
    if (*at == NULL) {                  /* none is large enough: one of the small ones makes room */
        at = &store.free;
    }
    block = *at;
    if (block != NULL) {
        *at = block->next;
    }
    pthread_mutex_unlock(&team.lock);
    if (block != NULL && block->size >= size) {
        return (char *)block + TEAM_LINE;
    }
    if (block != NULL) {
        cc_free(block->raw);
    }
    size = (size + 4095) & ~(size_t)4095;
    char *raw = cc_realloc(NULL, size + 2 * TEAM_LINE);
    if (raw == NULL) {
        return NULL;
    }
    block = (TeamBlock *)(raw + (TEAM_LINE - (uintptr_t)raw % TEAM_LINE) % TEAM_LINE);
    block->raw = raw;
    block->size = size;
    return (char *)block + TEAM_LINE;
}

static void
store_put(void *bytes)
{
    if (bytes != NULL) {
        TeamBlock *block = (TeamBlock *)((char *)bytes - TEAM_LINE);
        pthread_mutex_lock(&team.lock);
        block->next = store.free;
        store.free = block;
        pthread_mutex_unlock(&team.lock);
    }
}

/* -- Our own threads ----------------------------------------------------------------- */

enum { POOL_CLOSED = 0x80000000u };

static struct {
    pthread_cond_t wake;                /* with team.lock */
    pthread_t thread[RT_MAX_THREADS];
    uint32_t workers;                   /* under lock */
    atomic_bool quit;
    _Atomic uint32_t epoch;             /* counts regions */
    _Atomic uint32_t sleepers;
    _Atomic uint32_t gate;              /* workers inside; POOL_CLOSED = the region takes no more */
    void (*fn)(void *);
    void *data;
} pool = {.wake = PTHREAD_COND_INITIALIZER, .gate = POOL_CLOSED};

static void
team_pause(uint32_t spins)
{
    if (spins >= TEAM_SPIN) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void *
pool_worker(void *arg)
{
    uint32_t seen = (uint32_t)(uintptr_t)arg;

    for (;;) {
        for (uint32_t spins = 0; spins < TEAM_SPIN && atomic_load(&pool.epoch) == seen; spins++) {
            team_pause(spins);
        }
        if (atomic_load(&pool.epoch) == seen) {
            pthread_mutex_lock(&team.lock);
            atomic_fetch_add(&pool.sleepers, 1);    /* pool_region reads it after its epoch */
            while (atomic_load(&pool.epoch) == seen && !atomic_load(&pool.quit)) {
                pthread_cond_wait(&pool.wake, &team.lock);
            }
            atomic_fetch_sub(&pool.sleepers, 1);
            pthread_mutex_unlock(&team.lock);
        }
        if (atomic_load(&pool.quit)) {
            return NULL;
        }
        seen = atomic_load(&pool.epoch);
        if ((atomic_fetch_add(&pool.gate, 1) & POOL_CLOSED) == 0) {
            pool.fn(pool.data);
        }
        atomic_fetch_sub(&pool.gate, 1);
    }
}

/* Have at least `wanted` workers, or as many as the system gives. They take no signals: those
 * are for the program's own threads. */
static void
pool_grow(uint32_t wanted)
{
    sigset_t all, before;

    pthread_mutex_lock(&team.lock);
    if (pool.workers < wanted) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        void *seen = (void *)(uintptr_t)atomic_load(&pool.epoch);
        while (pool.workers < wanted &&
               pthread_create(&pool.thread[pool.workers], NULL, pool_worker, seen) == 0) {
            pool.workers++;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&team.lock);
}

/* Run fn(data) here and on the workers; return when nobody is inside any more. */
static void
pool_region(void (*fn)(void *), void *data, uint32_t threads)
{
    pool_grow(threads - 1);
    pool.fn = fn;
    pool.data = data;
    atomic_fetch_and(&pool.gate, ~POOL_CLOSED);
    atomic_fetch_add(&pool.epoch, 1);
    if (atomic_load(&pool.sleepers) > 0) {
        pthread_mutex_lock(&team.lock);
        pthread_cond_broadcast(&pool.wake);
        pthread_mutex_unlock(&team.lock);
    }
    fn(data);
    atomic_fetch_or(&pool.gate, POOL_CLOSED);
    for (uint32_t spins = 0; atomic_load(&pool.gate) != POOL_CLOSED; spins++) {
        team_pause(spins);
    }
}

/* -- The OpenMP runtime of the process -------------------------------------------------- */

#ifdef __linux__
static int
gomp_look(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *base = strrchr(info->dlpi_name, '/');
    base = base == NULL ? info->dlpi_name : base + 1;
    if (strncmp(base, "libgomp", 7) != 0 || strlen(info->dlpi_name) >= sizeof(team.library)) {
        return 0;
    }
    strcpy(found, info->dlpi_name);
    return strncmp(base, "libgomp.so", 10) == 0;    /* torch's and the system's name: the best */
}
#endif

static GompParallel
gomp_symbol(void *library)
{
    void *address = dlsym(library, "GOMP_parallel");
    GompParallel fn = NULL;

    if (address != NULL) {
        memcpy(&fn, &address, sizeof(fn));  /* ISO C has no cast from object to function pointer */
        Dl_info info;
        if (dladdr(address, &info) != 0 && info.dli_fname != NULL) {
            strncpy(team.library, info.dli_fname, sizeof(team.library) - 1);
        }
    }
    return fn;
}

/* Find GOMP_parallel: in the global scope, or in a libgomp loaded privately (wheels rename it).
 * None is loaded for us: nobody else's threads are then in the process, and our own pool waits for
 * the work instead of for every worker, which on a busy machine is a scheduler's slice per region.
 */
static GompParallel
gomp_resolve(void)
{
    GompParallel fn = gomp_symbol(RTLD_DEFAULT);
    void *library = NULL;

#ifdef __linux__
    char name[sizeof(team.library)] = "";
    if (fn == NULL) {
        dl_iterate_phdr(gomp_look, name);
        library = name[0] == '\0' ? NULL : dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    }
#endif
    return fn == NULL && library != NULL ? gomp_symbol(library) : fn;
}

/* NULL = use our own pool. Called by the team's owner. */
static GompParallel
team_gomp(void)
{
    if (atomic_load(&team.forked) || atomic_load(&team.wish) == RT_TEAM_POOL) {
        return NULL;
    }
    GompParallel fn = atomic_load(&team.gomp);
    if (fn == NULL && team.looked++ % TEAM_RESOLVE_EVERY == 0) {
        pthread_mutex_lock(&team.lock);
        fn = gomp_resolve();
        pthread_mutex_unlock(&team.lock);
        atomic_store(&team.gomp, fn);
    }
    return fn;
}

/* -- fork() --------------------------------------------------------------------------------- */

static void
team_before_fork(void)
{
    pthread_mutex_lock(&team.lock);
}

static void
team_after_fork_parent(void)
{
    pthread_mutex_unlock(&team.lock);
}

/* Only the forking thread lives on: whoever had the team is gone, and so are the workers. */
static void
team_after_fork_child(void)
{
    static const pthread_mutex_t fresh_lock = PTHREAD_MUTEX_INITIALIZER;
    static const pthread_cond_t fresh_wake = PTHREAD_COND_INITIALIZER;

    memcpy(&team.lock, &fresh_lock, sizeof(fresh_lock));
    memcpy(&pool.wake, &fresh_wake, sizeof(fresh_wake));
    pool.workers = 0;
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.gate, POOL_CLOSED);
    atomic_store(&team.forked, true);
    atomic_flag_clear(&team.taken);
}

static void
team_start(void)
{
    pthread_atfork(team_before_fork, team_after_fork_parent, team_after_fork_child);
}

/* -- A region ------------------------------------------------------------------------------- */

/* Cut a phase into ranges. The cut depends on the number of threads, results do not (kernel.h). */
static TeamCut
team_cut(const CcPhase *p, uint32_t threads, bool stops)
{
    TeamCut cut = {.chunk = 0, .count = 0};

    if (p->size <= 0) {
        return cut;
    }
    int64_t grains = (p->size - 1) / p->grain + 1;
    double wanted = threads == 1 ? 1 : (double)threads * TEAM_SHARE;
    if (stops && p->work / team_range_ns > wanted) {
        wanted = p->work / team_range_ns < 1e6 ? p->work / team_range_ns : 1e6;
    }
    int64_t per = grains / (int64_t)wanted;     /* rounded down: rather more ranges than wanted */
    per = per < 1 ? 1 : per;
    if ((grains - 1) / per >= INT32_MAX) {
        per = (grains - 1) / INT32_MAX + 1;
    }
    cut.count = (uint32_t)((grains - 1) / per + 1);
    cut.chunk = cut.count == 1 ? p->size : per * p->grain;
    return cut;
}

/* First range of thread t's share. */
static uint32_t
team_share(const TeamCut *cut, uint32_t threads, uint32_t t)
{
    return (uint32_t)((uint64_t)cut->count * t / threads);
}

static void
team_range(const CcKernel *k, const CcPhase *p, const TeamCut *cut, uint32_t index, void *scratch)
{
    int64_t begin = cut->chunk * (int64_t)index;
    int64_t end = index + 1 == cut->count ? p->size : begin + cut->chunk;

    p->fn(k->args, begin, end, p->scratch > 0 ? scratch : NULL);
}

static bool
team_stops(const uint32_t *stop)
{
    return stop != NULL && __atomic_load_n(stop, __ATOMIC_RELAXED) != 0;
}

/* Take and run ranges of share `victim` until there are none, or the phase is over. */
static uint32_t
team_take(TeamJob *j, uint32_t phase, const TeamCut *cut, uint32_t victim, void *scratch)
{
    uint32_t first = team_share(cut, j->threads, victim);
    uint32_t len = team_share(cut, j->threads, victim + 1) - first, ran = 0;
    uint64_t next = atomic_load(&j->slot[victim].next);

    while (next >> 32 == phase && (uint32_t)next < len) {
        if (!atomic_compare_exchange_weak(&j->slot[victim].next, &next, next + 1)) {
            continue;
        }
        if (team_stops(j->stop) || atomic_load_explicit(&j->stopped, memory_order_relaxed)) {
            atomic_store(&j->stopped, 1);
            return ran;
        }
        team_range(j->k, &j->k->phase[phase], cut, first + (uint32_t)next, scratch);
        ran++;
        next = atomic_load(&j->slot[victim].next);
    }
    return ran;
}

/* Open the first phase from `phase` on that has work, or nphase. */
static void
team_open(TeamJob *j, uint32_t phase)
{
    while (phase < j->k->nphase && j->k->phase[phase].size <= 0) {
        phase++;
    }
    atomic_store(&j->done, 0);
    for (uint32_t t = 0; t < j->threads; t++) {
        atomic_store(&j->slot[t].next, (uint64_t)phase << 32);
    }
    atomic_store(&j->phase, phase);
}

static void
team_phases(TeamJob *j, uint32_t me)
{
    uint32_t phase = atomic_load(&j->phase);

    while (phase < j->k->nphase) {
        TeamCut cut = team_cut(&j->k->phase[phase], j->threads, j->stop != NULL);
        uint32_t ran = 0;
        for (uint32_t t = 0; t < j->threads; t++) {
            ran += team_take(j, phase, &cut, (me + t) % j->threads, j->scratch[me]);
        }
        if (ran > 0 && atomic_fetch_add(&j->done, ran) + ran == cut.count) {
            team_open(j, phase + 1);
        }
        for (uint32_t spins = 0; atomic_load(&j->phase) == phase; spins++) {
            if (atomic_load_explicit(&j->stopped, memory_order_relaxed)) {
                return;
            }
            team_pause(spins);
        }
        phase = atomic_load(&j->phase);
    }
}

/* What each thread of a region runs. */
static void
team_region(void *data)
{
    TeamJob *j = data;
    uint32_t me = atomic_fetch_add(&j->ticket, 1);

    if (me >= j->threads) {
        return;
    }
    RtFp before = rt_fp_get();
    rt_fp_set(j->fp);
    team_phases(j, me);
    cc_fault_or(j->k->fault, rt_fp_faults());
    rt_fp_set(before);
}

/* The kernel on this thread alone; true unless `stop` ended it. */
static bool
team_alone(const CcKernel *k, const uint32_t *stop, void *scratch)
{
    RtFp before = rt_fp_get();
    bool whole = true;

    rt_fp_set(rt_fp_quiet(before));
    for (uint32_t phase = 0; phase < k->nphase && whole; phase++) {
        const CcPhase *p = &k->phase[phase];
        TeamCut cut = team_cut(p, 1, stop != NULL);
        for (uint32_t i = 0; i < cut.count && whole; i++) {
            whole = !team_stops(stop);
            if (whole) {
                team_range(k, p, &cut, i, scratch);
            }
        }
    }
    cc_fault_or(k->fault, rt_fp_faults());
    rt_fp_set(before);
    return whole;
}

/* The kernel on the team, which the caller has; j->threads and j->scratch are filled. */
static bool
team_together(TeamJob *j, const CcKernel *k, const uint32_t *stop)
{
    GompParallel gomp = team_gomp();

    j->k = k;
    j->stop = stop;
    j->fp = rt_fp_quiet(rt_fp_get());
    atomic_store(&j->ticket, 0);
    atomic_store(&j->stopped, 0);
    team_open(j, 0);
    atomic_store(&team.runtime, gomp != NULL ? RT_TEAM_GOMP : RT_TEAM_POOL);
    atomic_fetch_add(&team.parallel, 1);
    if (gomp != NULL) {
        gomp(team_region, j, j->threads, 0);
    } else {
        pool_region(team_region, j, j->threads);
    }
    return !atomic_load(&j->stopped);
}

/* -- Entry --------------------------------------------------------------------------------- */

/* Threads that can pay: not more than ranges in the longest phase, nor than the work is worth. */
static uint32_t
team_worth(const CcKernel *k, uint32_t threads, size_t *scratch)
{
    double work = 0;
    int64_t most = 0, bytes = 0;

    for (uint32_t i = 0; i < k->nphase; i++) {
        const CcPhase *p = &k->phase[i];
        if (p->size > 0) {
            int64_t grains = (p->size - 1) / p->grain + 1;
            most = grains > most ? grains : most;
            bytes = p->scratch > bytes ? p->scratch : bytes;
            work += p->work;
        }
    }
    *scratch = (size_t)bytes;
    if (threads > most) {
        threads = most < 1 ? 1 : (uint32_t)most;
    }
    if (work < team_thread_ns * threads) {
        threads = work < team_thread_ns ? 1 : (uint32_t)(work / team_thread_ns);
    }
    return threads;
}

/* Fill j->scratch for up to j->threads threads, fewer when memory is short; false for none. */
static bool
team_scratch(TeamJob *j, size_t bytes)
{
    for (uint32_t t = 0; t < j->threads; t++) {
        j->scratch[t] = bytes > 0 ? store_get(bytes) : NULL;
        if (bytes > 0 && j->scratch[t] == NULL) {
            j->threads = t;
        }
    }
    return j->threads > 0;
}

bool
rt_team_run(const CcKernel *k, uint32_t threads, const uint32_t *stop, CcStatus *st)
{
    size_t bytes;
    bool whole = true, memory = true;

    threads = threads == 0 ? rt_team_threads() : threads;
    threads = threads > RT_MAX_THREADS ? RT_MAX_THREADS : threads;
    threads = team_worth(k, threads, &bytes);
    threads = atomic_load(&team.wish) == RT_TEAM_SERIAL ? 1 : threads;
    if (threads > 1) {
        pthread_once(&team.once, team_start);
    }
    bool mine = threads > 1 && !atomic_flag_test_and_set(&team.taken);
    if (mine) {
        team.job.threads = threads;
        memory = team_scratch(&team.job, bytes);
        if (memory) {
            whole = team_together(&team.job, k, stop);
        }
        for (uint32_t t = 0; t < team.job.threads; t++) {
            store_put(team.job.scratch[t]);
        }
        atomic_flag_clear(&team.taken);
    } else {
        void *scratch = bytes > 0 ? store_get(bytes) : NULL;
        memory = bytes == 0 || scratch != NULL;
        if (memory) {
            atomic_fetch_add(threads > 1 ? &team.busy : &team.serial, 1);
            whole = team_alone(k, stop, scratch);
        }
        store_put(scratch);
    }
    if (!memory) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "scratch memory of a kernel");
    }
    return whole || cc_fail(st, CC_REASON_INTERRUPTED, "during a kernel");
}

uint32_t
rt_team_threads(void)
{
    uint32_t n = atomic_load(&team.framework_threads);
    uint32_t own = atomic_load(&team.default_threads);

    if (own == 0) {                     /* two threads that come here at once find the same */
        bool told = rt_cpus_parse(getenv("CCOMPILE_NUM_THREADS")) > 0;
        own = rt_cpus_default() | (told ? TEAM_TOLD : 0);
        atomic_store(&team.default_threads, own);
    }
    return n > 0 && !(own & TEAM_TOLD) ? n : own & ~TEAM_TOLD;
}

void
rt_team_set_threads(uint32_t threads)
{
    atomic_store(&team.framework_threads, threads > RT_MAX_THREADS ? RT_MAX_THREADS : threads);
}

void
rt_team_tell_threads(uint32_t threads)
{
    threads = threads > RT_MAX_THREADS ? RT_MAX_THREADS : threads;
    atomic_store(&team.default_threads, threads > 0 ? threads | TEAM_TOLD : 0);
}

void
rt_team_use(RtRuntime wish)
{
    atomic_store(&team.wish, wish);
}

void
rt_team_info(RtTeamInfo *info)
{
    info->runtime = (RtRuntime)atomic_load(&team.runtime);
    info->parallel = atomic_load(&team.parallel);
    info->serial = atomic_load(&team.serial);
    info->busy = atomic_load(&team.busy);
    pthread_mutex_lock(&team.lock);
    memcpy(info->library, team.library, sizeof(info->library));
    info->workers = pool.workers;
    pthread_mutex_unlock(&team.lock);
}

void
rt_team_fini(void)
{
    pthread_mutex_lock(&team.lock);
    uint32_t workers = pool.workers;
    pool.workers = 0;
    atomic_store(&pool.quit, true);
    atomic_fetch_add(&pool.epoch, 1);
    pthread_cond_broadcast(&pool.wake);
    TeamBlock *block = store.free;
    store.free = NULL;
    pthread_mutex_unlock(&team.lock);
    for (uint32_t i = 0; i < workers; i++) {
        pthread_join(pool.thread[i], NULL);
    }
    atomic_store(&pool.quit, false);
    while (block != NULL) {
        TeamBlock *next = block->next;
        cc_free(block->raw);
        block = next;
    }
}
