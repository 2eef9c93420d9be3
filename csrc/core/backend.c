/* core/backend.c - the loops of a trace's plans -> kernels -> units -> objects -> bodies.
 *
 *   collect   equal loops are one kernel: equal C under the same name
 *   units     a few kernels per file, cut by their size alone, so that a later run, on whatever
 *             number of processors, asks for the same files
 *   known     text and wished compiler -> name of the object, from the cache: no compiler needed
 *   make      what is missing, through build_make
 *   link      bodies of the kernels that have an object
 *
 * The files of the cache are bound to this very build of ours by the hash of the file we were
 * loaded from. Needs no GIL, calls no Python. */
#define _GNU_SOURCE
#include "backend.h"

#include "base/mem.h"
#include "base/vec.h"
#include "gen/gen.h"
#include "rt/cpus.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    UNIT_KERNELS = 8,                   /* most kernels of a file */
    UNIT_WEIGHT = 64,                   /* most instructions, unless one kernel has more: compiling
                                         * them takes about as long as the headers before them */
    WAIT_MS = 10,                       /* between two looks at a holder */
};

struct BackendBodies {
    uint32_t n;
    BuildObject *object[];
};

typedef struct {
    const GenLoop *loop;
    uint8_t hash[CC_SHA256_SIZE];       /* of its C text */
    uint32_t unit, at;                  /* its place */
} Kernel;

typedef struct {
    uint32_t plan, group, kernel;
} Use;

typedef struct {
    CcBuf text;
    uint32_t first, n;                  /* kernels */
    BuildKey known;                     /* of the name of its object */
    BuildObject *object;
} Unit;

typedef struct {
    CoreBuilder *b;
    CcPlan *const *plan;
    BackendCall *call;
    Kernel *kernel;                     /* owned, as are the next two */
    Use *use;
    Unit *unit;
    uint32_t nkernel, capkernel, nuse, capuse, nunit, capunit;
    CcStatus *st;
} Work;

/* -- One at a time -------------------------------------------------------------------------- */

static uint64_t
holder_pid(uint64_t holder)
{
    return holder >> 42;
}

/* Differs between all threads of a process and between it and its forked children: thread handles
 * are addresses of aligned blocks. Where they were longer, two threads could at worst look the
 * same, and one would go without compiled code. */
static uint64_t
holder_self(void)
{
    uint64_t thread = ((uint64_t)(uintptr_t)pthread_self() >> 6) & (((uint64_t)1 << 42) - 1);

    return (uint64_t)getpid() << 42 | thread;
}

/* False: INTERRUPTED; or this thread is inside already (a signal handler calls compiled code). */
static bool
holder_take(CoreBuilder *b, const BuildRun *run, CcStatus *st)
{
    uint64_t self = holder_self(), now = 0;

    while (!atomic_compare_exchange_strong(&b->holder, &now, self)) {
        if (now == self) {
            return cc_fail(st, CC_REASON_INTERRUPTED, "called while this thread compiles");
        }
        if (now != 0 && holder_pid(now) != holder_pid(self)) {
            continue;                   /* the holder did not survive fork: take over from it */
        }
        if (now != 0) {
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
            if (build_interrupted(run)) {
                return cc_fail(st, CC_REASON_INTERRUPTED, "waiting for another thread's compiler");
            }
        }
        now = 0;
    }
    return true;
}

bool
core_backend_enter(CoreBuilder *b)
{
    uint64_t now = 0;

    return atomic_compare_exchange_strong(&b->holder, &now, holder_self());
}

void
core_backend_leave(CoreBuilder *b)
{
    atomic_store(&b->holder, 0);
}

/* -- Cache and compiler ------------------------------------------------------------------------ */

/* The content of the file that holds this code; a name of our own when it cannot be read, which
 * shares nothing. */
static void
backend_build_id(char id[CC_SHA256_HEX])
{
    Dl_info info;
    CcSha256 hash;
    uint8_t digest[CC_SHA256_SIZE], block[8192];
    ssize_t n = -1;
    int fd = -1;

    cc_sha256_init(&hash);
    if (dladdr((void *)(uintptr_t)core_backend_prepare, &info) != 0 && info.dli_fname != NULL) {
        fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
    }
    while (fd >= 0 && (n = read(fd, block, sizeof(block))) > 0) {
        cc_sha256_add(&hash, block, (size_t)n);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (n != 0) {
        double now = build_now();
        pid_t pid = getpid();
        cc_sha256_add(&hash, &pid, sizeof(pid));
        cc_sha256_add(&hash, &now, sizeof(now));
    }
    cc_sha256_end(&hash, digest);
    cc_sha256_hex(digest, id);
}

static void
backend_forget_tool(CoreBuilder *b)
{
    if (b->found == BACKEND_TOOL_READY) {
        build_toolchain_fini(&b->tool);
    }
    b->found = BACKEND_TOOL_UNKNOWN;
}

/* Open the cache; again when the options have changed. */
static bool
backend_open(CoreBuilder *b, const BackendCall *call, CcStatus *st)
{
    const char *dir = call->cache_dir[0] != '\0' ? call->cache_dir : NULL;

    if (b->open && strcmp(b->dir, call->cache_dir) == 0 && b->limit == call->cache_size) {
        return true;
    }
    core_backend_fini(b);
    if (b->id[0] == '\0') {
        backend_build_id(b->id);
    }
    if (!build_cache_open(&b->cache, dir, call->cache_size, b->id, st)) {
        return false;
    }
    if (b->cache.why.reason != CC_REASON_NONE && b->why.reason == CC_REASON_NONE) {
        b->why = b->cache.why;
    }
    snprintf(b->dir, sizeof(b->dir), "%s", call->cache_dir);
    b->limit = call->cache_size;
    b->open = true;
    return true;
}

static unsigned
backend_jobs(void)
{
    uint32_t cpus = rt_cpus_affinity(), quota = rt_cpus_quota("");

    return cpus < quota ? cpus : quota;
}

/* The compiler, looked for once per wish. */
static bool
backend_find(CoreBuilder *b, const BackendCall *call, const BuildRun *run, CcStatus *st)
{
    const char *wish = call->compiler[0] != '\0' ? call->compiler : NULL;

    if (b->found != BACKEND_TOOL_UNKNOWN && strcmp(b->wish, call->compiler) != 0) {
        backend_forget_tool(b);
    }
    if (b->found == BACKEND_TOOL_NONE) {
        *st = b->no_tool;
        return false;
    }
    if (b->found == BACKEND_TOOL_UNKNOWN) {
        snprintf(b->wish, sizeof(b->wish), "%s", call->compiler);
        if (build_toolchain_find(&b->tool, &b->cache, wish, run, st)) {
            b->found = BACKEND_TOOL_READY;
        } else if (st->reason == CC_REASON_NO_COMPILER) {
            b->found = BACKEND_TOOL_NONE;
            b->no_tool = *st;
        }
    }
    return b->found == BACKEND_TOOL_READY;
}

/* -- Kernels ------------------------------------------------------------------------------------
 */

static bool
work_no_memory(Work *w)
{
    return cc_fail(w->st, CC_REASON_NO_MEMORY, "compiling %u kernels", w->nkernel);
}

/* The number of the loop's kernel, a new one or one that is the same C. */
static bool
work_kernel(Work *w, const GenLoop *loop, uint32_t *kernel)
{
    Kernel k = {.loop = loop};
    CcSha256 hash;
    CcBuf text;
    bool good;

    cc_buf_init(&text);
    gen_loop(&text, "cc_flat", &loop->prog, loop->mask_flat);
    if (gen_has_row(loop)) {
        gen_loop(&text, "cc_row", &loop->prog, loop->mask_row);
    }
    cc_sha256_init(&hash);
    cc_sha256_add(&hash, cc_buf_text(&text), text.len);
    cc_sha256_end(&hash, k.hash);
    good = !text.failed;
    cc_buf_fini(&text);
    for (*kernel = 0; good && *kernel < w->nkernel; ++*kernel) {
        if (memcmp(w->kernel[*kernel].hash, k.hash, sizeof(k.hash)) == 0) {
            return true;
        }
    }
    if (!good || !CC_GROW(w->kernel, w->nkernel, w->capkernel, 1)) {
        return work_no_memory(w);
    }
    w->kernel[w->nkernel++] = k;
    return true;
}

static bool
work_collect(Work *w, uint32_t nplan)
{
    for (uint32_t p = 0; p < nplan; p++) {
        for (uint32_t k = 0; k < rt_plan_ngroups(w->plan[p]); k++) {
            const GenLoop *loop = rt_plan_loop(w->plan[p], k);
            uint32_t kernel;
            if (loop == NULL) {
                continue;
            }
            if (!CC_GROW(w->use, w->nuse, w->capuse, 1)) {
                return work_no_memory(w);
            }
            if (!work_kernel(w, loop, &kernel)) {
                return false;
            }
            w->use[w->nuse++] = (Use){p, k, kernel};
        }
    }
    return true;
}

/* -- Units ------------------------------------------------------------------------------------- */

/* The name of a unit's object is kept under this. The wish is part of it: who asks for another
 * compiler gets code of that. */
static BuildKey
unit_known(const Work *w, const Unit *u)
{
    BuildKeyMaker m;

    build_key_init(&m, &w->b->cache, BUILD_PLAN);
    build_key_text(&m, "unit");
    build_key_text(&m, w->call->compiler);
    build_key_add(&m, cc_buf_text(&u->text), u->text.len);
    return build_key_end(&m);
}

static bool
work_units(Work *w)
{
    const GenLoop *loop[UNIT_KERNELS];

    for (uint32_t k = 0; k < w->nkernel;) {
        Unit u = {.first = k};
        uint32_t weight = 0;
        for (; k < w->nkernel && u.n < UNIT_KERNELS; k++, u.n++) {
            weight += w->kernel[k].loop->prog.len;
            if (u.n > 0 && weight > UNIT_WEIGHT) {
                break;
            }
            w->kernel[k].unit = w->nunit;
            w->kernel[k].at = u.n;
            loop[u.n] = w->kernel[k].loop;
        }
        if (!CC_GROW(w->unit, w->nunit, w->capunit, 1)) {
            return work_no_memory(w);
        }
        cc_buf_init(&u.text);
        bool good = gen_unit(&u.text, loop, u.n, w->st);
        u.known = unit_known(w, &u);
        w->unit[w->nunit++] = u;
        if (!good) {
            return false;
        }
    }
    return true;
}

/* Objects whose names the cache knows; the number of kernels that have none. */
static uint32_t
work_look(Work *w)
{
    uint32_t missing = 0;

    for (uint32_t i = 0; i < w->nunit; i++) {
        Unit *u = &w->unit[i];
        BuildPlan names = {0};
        if (build_plan_get(&w->b->cache, &u->known, &names)) {
            if (names.count == 1) {
                build_make_known(&w->b->cache, names.object, &u->object, 1);
            }
            build_plan_fini(&names);
        }
        *(u->object != NULL ? &w->call->hits : &missing) += u->n;
    }
    return missing;
}

/* -- Compiling
 * ------------------------------------------------------------------------------------- */

static void
work_take(Work *w, const BuildUnit *made)
{
    for (uint32_t i = 0; i < w->nunit; i++) {
        Unit *u = &w->unit[i];
        if (u->object != NULL) {
            continue;
        }
        BuildKey name = made->key;
        BuildPlan names = {.count = 1, .object = &name};
        u->object = made->object;
        *(made->compiled ? &w->call->compiled : &w->call->hits) += u->n;
        build_plan_put(&w->b->cache, &u->known, &names);
        made++;
    }
}

static bool
work_make(Work *w, const BuildRun *run)
{
    BuildUnit *unit = cc_calloc(w->nunit, sizeof(*unit));
    uint32_t n = 0;

    if (unit == NULL) {
        return work_no_memory(w);
    }
    for (uint32_t i = 0; i < w->nunit; i++) {
        const Unit *u = &w->unit[i];
        if (u->object == NULL) {
            unit[n++] = (BuildUnit){.source = cc_buf_text(&u->text), .size = u->text.len};
        }
    }
    double start = build_now();
    bool good = build_make(&w->b->cache, &w->b->tool, unit, n, run, w->st);
    w->b->seconds += build_now() - start;
    if (good) {
        work_take(w, unit);
    }
    cc_free(unit);
    return good;
}

/* -- Bodies
 * ---------------------------------------------------------------------------------------- */

static bool
work_link_use(Work *w, const Use *use)
{
    const Kernel *k = &w->kernel[use->kernel];
    const BuildObject *o = w->unit[k->unit].object;
    BuildFn flat, row = NULL;
    char name[24];

    if (o == NULL) {
        return true;                    /* st says why already */
    }
    snprintf(name, sizeof(name), "cc_flat_%u", k->at);
    flat = build_object_find(o, name, w->st);
    if (flat != NULL && gen_has_row(k->loop)) {
        snprintf(name, sizeof(name), "cc_row_%u", k->at);
        row = build_object_find(o, name, w->st);
        flat = row == NULL ? NULL : flat;
    }
    if (flat == NULL) {
        return false;
    }
    rt_plan_set_body(w->plan[use->plan], use->group, (CcBodyFn)flat, (CcBodyFn)row);
    return true;
}

/* The references of the units move to *bodies. */
static bool
work_link(Work *w, BackendBodies **bodies)
{
    uint32_t n = 0;
    bool good = true;

    for (uint32_t i = 0; i < w->nunit; i++) {
        n += w->unit[i].object != NULL;
    }
    if (n == 0) {
        return true;
    }
    *bodies = cc_calloc(1, sizeof(**bodies) + n * sizeof((*bodies)->object[0]));
    if (*bodies == NULL) {
        return work_no_memory(w);
    }
    for (uint32_t i = 0; i < w->nuse; i++) {
        good &= work_link_use(w, &w->use[i]);
    }
    for (uint32_t i = 0; i < w->nunit; i++) {
        if (w->unit[i].object != NULL) {
            (*bodies)->object[(*bodies)->n++] = w->unit[i].object;
            w->unit[i].object = NULL;
        }
    }
    return good;
}

static void
work_fini(Work *w)
{
    for (uint32_t i = 0; i < w->nunit; i++) {
        cc_buf_fini(&w->unit[i].text);
        build_object_unref(w->unit[i].object);
    }
    cc_free(w->kernel);
    cc_free(w->use);
    cc_free(w->unit);
}

/* -- A trace
 * --------------------------------------------------------------------------------------- */

static bool
backend_work(Work *w, const BuildRun *run, BackendBodies **bodies)
{
    if (!backend_open(w->b, w->call, w->st) || !work_units(w)) {
        return false;
    }
    bool good = true;
    w->call->compiling = work_look(w);
    if (w->call->compiling > 0) {
        good = backend_find(w->b, w->call, run, w->st) && work_make(w, run);
    }
    w->call->compiling = 0;
    return work_link(w, bodies) && good;
}

bool
core_backend_prepare(CoreBuilder *b, CcPlan *const *plan, uint32_t nplan, BackendCall *call,
                     BackendBodies **bodies, CcStatus *st)
{
    Work w = {.b = b, .plan = plan, .call = call, .st = st};
    BuildRun run = {.interrupted = call->interrupted, .ctx = call->ctx, .jobs = call->jobs};
    bool good = work_collect(&w, nplan);

    *bodies = NULL;
    call->compiling = call->compiled = call->hits = 0;
    run.jobs = run.jobs != 0 ? run.jobs : backend_jobs();
    if (good && w.nuse > 0) {
        good = holder_take(b, &run, st);
        if (good) {
            good = backend_work(&w, &run, bodies);
            if (!good && st->reason != CC_REASON_INTERRUPTED && b->why.reason == CC_REASON_NONE) {
                b->why = *st;
            }
            core_backend_leave(b);
        }
    }
    work_fini(&w);
    return good;
}

void
core_backend_drop(BackendBodies *bodies)
{
    if (bodies == NULL) {
        return;
    }
    for (uint32_t i = 0; i < bodies->n; i++) {
        build_object_unref(bodies->object[i]);
    }
    cc_free(bodies);
}

void
core_backend_fini(CoreBuilder *b)
{
    backend_forget_tool(b);
    if (b->open) {
        build_cache_close(&b->cache);
    }
    b->open = false;
}
