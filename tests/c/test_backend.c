/* tests/c/test_backend.c - bodies for plans: cold, warm, without a compiler, interrupted. */
#include "core/backend.c"

#include "plan_run.h"

#include <sys/stat.h>

static const char *const TANH2 = "%1 = PARAM[c] f64[n1]\n%2 = TANH f64[n1] %1\n"
                                 "%3 = MUL f64[n1] %2 %2\nout %3\n";
static const char *const ROWS = "%1 = PARAM[c] f64[n1,n2]\n%2 = PARAM[c] f64[n2]\n"
                                "%3 = BROADCAST f64[n1,n2] %2\n%4 = SUB f64[n1,n2] %1 %3\n"
                                "%5 = EXP f64[n1,n2] %4\n%6 = SUM[axes=1] f64[n1] %5\n"
                                "out %5 %6\n";

static char dir[64], cache[100], fake[100], marker[100];

static BackendCall
call_with(const char *compiler)
{
    return (BackendCall){.cache_dir = cache, .compiler = compiler, .jobs = 2};
}

static void
shell(const char *format, const char *what)
{
    char command[300];

    snprintf(command, sizeof(command), format, what);
    T_CHECK(system(command) == 0);
}

/* Does a plan give what a fresh, interpreted one gives? */
static bool
same_as_interp(PrRun *c, const char *text)
{
    enum { N = 37, M = 21 };
    PrRun interp;
    PrArray in[2];
    const int64_t one[] = {N}, two[] = {M, N};
    bool rows = text == ROWS, good;

    in[0] = pr_array(8, rows ? 2 : 1, rows ? two : one);
    in[1] = pr_array(8, 1, one);
    for (int i = 0; i < (rows ? N * M : N); i++) {
        ((double *)(void *)in[0].data)[i] = 0.37 * i - 3;
    }
    for (int i = 0; i < N; i++) {
        ((double *)(void *)in[1].data)[i] = 0.11 * i;
    }
    good = pr_open(&interp, text) && pr_call(&interp, in, NULL) && pr_call(c, in, NULL);
    for (uint32_t k = 0; good && k < c->g.nout; k++) {
        size_t bytes = 8;
        for (unsigned d = 0; d < c->out[k].ndim; d++) {
            bytes *= (size_t)c->out[k].dim[d];
        }
        good = memcmp(c->out[k].data, interp.out[k].data, bytes) == 0;
    }
    pr_close(&interp);
    pr_free(&in[0]);
    pr_free(&in[1]);
    return good;
}

static bool
prepare(CoreBuilder *b, PrRun *run, uint32_t n, BackendCall *call, BackendBodies **bodies,
        CcStatus *st)
{
    CcPlan *plan[4];

    for (uint32_t i = 0; i < n; i++) {
        plan[i] = run[i].plan;
    }
    *st = (CcStatus){0};
    return core_backend_prepare(b, plan, n, call, bodies, st);
}

/* -- The ways it goes ------------------------------------------------------------------- */

static void
test_cold_then_warm(void)
{
    static const char *const text[] = {TANH2, ROWS, TANH2};
    char *path = strdup(getenv("PATH"));

    for (int warm = 0; warm < 2; warm++) {
        CoreBuilder b = {0};
        BackendBodies *bodies;
        BackendCall call = call_with("");
        CcStatus st;
        PrRun run[3];
        for (int i = 0; i < 3; i++) {
            T_CHECK(pr_open(&run[i], i == 0 ? TANH2 : i == 1 ? ROWS : TANH2));
        }
        T_CHECK(prepare(&b, run, 3, &call, &bodies, &st));
        T_CHECK(bodies != NULL && call.compiling == 0);
        T_CHECK(call.compiled == (warm ? 0 : 2) && call.hits == (warm ? 2 : 0));
        T_CHECK(b.found == (warm ? BACKEND_TOOL_UNKNOWN : BACKEND_TOOL_READY));
        T_CHECK(b.why.reason == CC_REASON_NONE && (b.seconds > 0) == !warm);
        for (int i = 0; i < 3; i++) {
            T_CHECK(same_as_interp(&run[i], text[i]));
            pr_close(&run[i]);
        }
        core_backend_drop(bodies);
        core_backend_fini(&b);
        setenv("PATH", "", 1);
    }
    setenv("PATH", path, 1);
    free(path);
}

static void
test_nothing_to_compile(void)
{
    CoreBuilder b = {0};
    BackendBodies *bodies;
    BackendCall call = call_with("");
    CcStatus st;
    PrRun run;

    T_CHECK(pr_open(&run, "%1 = PARAM[c] f64[n1]\n%2 = PARAM[c] f64[n1]\n"
                          "%3 = CONCAT[axis=0] f64[n1+n1] %1 %2\nout %3\n")
            || pr_open(&run, "%1 = PARAM[c] f64[n1]\nout %1\n"));
    T_CHECK(prepare(&b, &run, 1, &call, &bodies, &st));
    T_CHECK(bodies == NULL && call.compiled == 0 && !b.open);
    pr_close(&run);
    core_backend_fini(&b);
}

static void
test_no_compiler_interprets(void)
{
    CoreBuilder b = {0};
    BackendBodies *bodies;
    BackendCall call = call_with("/nonexistent/cc");
    CcStatus st;
    PrRun run;

    T_CHECK(pr_open(&run, TANH2));
    for (int i = 0; i < 2; i++) {
        T_CHECK(!prepare(&b, &run, 1, &call, &bodies, &st));
        T_CHECK(st.reason == CC_REASON_NO_COMPILER && b.why.reason == CC_REASON_NO_COMPILER);
        T_CHECK(bodies == NULL && call.compiled == 0 && call.hits == 0 && b.seconds == 0);
    }
    T_CHECK(same_as_interp(&run, TANH2));
    call = call_with("");               /* another wish: it is looked for again */
    T_CHECK(prepare(&b, &run, 1, &call, &bodies, &st) && bodies != NULL);
    T_CHECK(b.why.reason == CC_REASON_NO_COMPILER);
    T_CHECK(same_as_interp(&run, TANH2));
    pr_close(&run);
    core_backend_drop(bodies);
    core_backend_fini(&b);
}

/* A compiler that fails once it has passed its test. */
static void
test_compiler_that_fails(void)
{
    CoreBuilder b = {0};
    BackendBodies *bodies;
    BackendCall call = call_with(fake);
    CcStatus st;
    PrRun run[2];

    T_CHECK(pr_open(&run[0], TANH2) && pr_open(&run[1], ROWS));
    shell("rm -f %s", marker);
    T_CHECK(prepare(&b, run, 1, &call, &bodies, &st) && call.compiled == 1);
    shell("echo 'echo no; exit 1' > %s", marker);
    BackendBodies *more;
    T_CHECK(!prepare(&b, &run[1], 1, &call, &more, &st) && more == NULL);
    T_CHECK(st.reason == CC_REASON_COMPILE_FAILED && b.why.reason == CC_REASON_COMPILE_FAILED);
    T_CHECK(call.compiled == 0 && call.hits == 0);
    T_CHECK(same_as_interp(&run[0], TANH2) && same_as_interp(&run[1], ROWS));
    pr_close(&run[0]);
    pr_close(&run[1]);
    core_backend_drop(bodies);
    core_backend_fini(&b);
}

typedef struct {
    CoreBuilder *b;
    PrRun *run;
    BackendCall *call;
    int polls, stop;
    uint32_t compiling;
    CcReason nested;
} Poll;

/* As a signal handler that runs compiled code, and then raises. */
static bool
poll_then_stop(void *ctx)
{
    Poll *p = ctx;
    BackendCall call = call_with("");
    BackendBodies *bodies;
    CcStatus st;

    p->compiling = p->call->compiling > 0 ? p->call->compiling : p->compiling;
    if (++p->polls == 1 && !prepare(p->b, p->run, 1, &call, &bodies, &st)) {
        p->nested = st.reason;
    }
    return p->polls >= p->stop;
}

static void
test_interrupt_leaves_all_usable(void)
{
    CoreBuilder b = {0};
    BackendBodies *bodies;
    BackendCall call = call_with(fake);
    Poll poll = {.b = &b, .call = &call, .stop = 4};
    CcStatus st;
    PrRun run;

    T_CHECK(pr_open(&run, ROWS));
    poll.run = &run;
    shell("echo 'sleep 60; exit 1' > %s", marker);
    call.interrupted = poll_then_stop;
    call.ctx = &poll;
    double start = build_now();
    T_CHECK(!prepare(&b, &run, 1, &call, &bodies, &st) && bodies == NULL);
    T_CHECK(st.reason == CC_REASON_INTERRUPTED && build_now() - start < 20);
    T_CHECK(poll.compiling == 1 && poll.nested == CC_REASON_INTERRUPTED);
    T_CHECK(call.compiling == 0 && call.compiled == 0 && b.why.reason == CC_REASON_NONE);
    T_CHECK(b.holder == 0 && same_as_interp(&run, ROWS));
    shell("rm -f %s", marker);
    poll.stop = 1000000;
    T_CHECK(prepare(&b, &run, 1, &call, &bodies, &st) && bodies != NULL);
    T_CHECK(same_as_interp(&run, ROWS));
    pr_close(&run);
    core_backend_drop(bodies);
    core_backend_fini(&b);
}

static void
test_unusable_directory(void)
{
    CoreBuilder b = {0};
    BackendBodies *bodies;
    BackendCall call = call_with("");
    CcStatus st;
    PrRun run;
    char private[300];

    call.cache_dir = "/dev/null/cache";
    T_CHECK(pr_open(&run, TANH2));
    T_CHECK(prepare(&b, &run, 1, &call, &bodies, &st) && call.compiled == 1);
    T_CHECK(b.why.reason == CC_REASON_CACHE_UNSAFE && b.cache.own);
    T_CHECK(same_as_interp(&run, TANH2));
    snprintf(private, sizeof(private), "%s", b.cache.dir);
    T_CHECK(access(private, F_OK) == 0);
    core_backend_fini(&b);
    T_CHECK(access(private, F_OK) != 0);
    T_CHECK(same_as_interp(&run, TANH2));       /* the code does not need the directory */
    pr_close(&run);
    core_backend_drop(bodies);
}

/* Units are cut the same way whatever the number of processors, and large traces are several. */
static void
test_many_kernels(void)
{
    CoreBuilder b = {0};
    BackendBodies *bodies;
    BackendCall call = call_with("");
    CcPlan *plan[20];
    CcStatus st = {0};
    static PrRun run[20];

    for (int i = 0; i < 20; i++) {
        char text[200];
        snprintf(text, sizeof(text), "%%1 = PARAM[c] f64[n1]\n%%2 = CONST f64[] %d.5\n"
                 "%%3 = BROADCAST f64[n1] %%2\n%%4 = ADD f64[n1] %%1 %%3\nout %%4\n", i);
        if (!pr_open(&run[i], text)) {
            T_CHECK(!"the text is a graph");
            return;
        }
        plan[i] = run[i].plan;
    }
    T_CHECK(core_backend_prepare(&b, plan, 20, &call, &bodies, &st));
    T_CHECK(call.compiled == 20 && bodies->n == 3);
    core_backend_drop(bodies);
    call.jobs = 1;
    T_CHECK(core_backend_prepare(&b, plan, 20, &call, &bodies, &st) && call.hits == 20);
    for (int i = 0; i < 20; i++) {
        PrArray in = pr_array(8, 1, (const int64_t[]){1});
        *(double *)(void *)in.data = 0.25;
        T_CHECK(pr_call(&run[i], &in, NULL));
        T_CHECK(*(double *)(void *)run[i].out[0].data == 0.25 + i + 0.5);
        pr_free(&in);
        pr_close(&run[i]);
    }
    core_backend_drop(bodies);
    core_backend_fini(&b);
}

static void *
thread_prepares(void *arg)
{
    Poll *p = arg;
    BackendBodies *bodies;
    CcStatus st;

    p->polls = prepare(p->b, p->run, 1, p->call, &bodies, &st);
    p->polls &= same_as_interp(p->run, ROWS);
    pr_close(p->run);
    core_backend_drop(bodies);
    return NULL;
}

static void
test_threads_and_fork_wait_or_take_over(void)
{
    CoreBuilder b = {0};
    BackendCall call[2] = {call_with(""), call_with("")};
    PrRun run[2];
    Poll p[2];
    pthread_t thread;

    b.holder = ((uint64_t)getpid() + 1) << 42 | 5;      /* a parent's thread */
    for (int i = 0; i < 2; i++) {
        T_CHECK(pr_open(&run[i], ROWS));
        p[i] = (Poll){.b = &b, .run = &run[i], .call = &call[i]};
    }
    T_CHECK(pthread_create(&thread, NULL, thread_prepares, &p[1]) == 0);
    thread_prepares(&p[0]);
    pthread_join(thread, NULL);
    T_CHECK(p[0].polls == 1 && p[1].polls == 1);
    T_CHECK(core_backend_enter(&b) && !core_backend_enter(&b));
    core_backend_leave(&b);
    core_backend_fini(&b);
}

/* Every allocation fails once: the plan stays right and nothing is lost. */
static void
test_no_memory(void)
{
    PrRun run;
    CoreBuilder b = {0};                /* one, for the hash of this program takes long */
    bool fired = true;

    T_CHECK(pr_open(&run, ROWS));
    for (long n = 0; fired && n < 2000; n++) {
        BackendBodies *bodies;
        BackendCall call = call_with("");
        CcStatus st;
        cc_mem_fail_after(n);
        bool good = prepare(&b, &run, 1, &call, &bodies, &st);
        fired = cc_mem_failed();
        cc_mem_fail_after(-1);
        T_CHECK(good == (bodies != NULL) && (good || st.reason != CC_REASON_NONE));
        if (n % 8 == 0 || !fired) {
            T_CHECK(same_as_interp(&run, ROWS));
        }
        for (uint32_t k = 0; k < rt_plan_ngroups(run.plan); k++) {
            rt_plan_set_body(run.plan, k, NULL, NULL);
        }
        core_backend_drop(bodies);
        core_backend_fini(&b);
    }
    T_CHECK(!fired);
    pr_close(&run);
}

/* -- Places -------------------------------------------------------------------------------- */

static bool
open_places(void)
{
    CoreBuilder b = {0};
    BackendCall call = {.cache_dir = cache, .compiler = ""};
    CcStatus st = {0};

    unsetenv("CC");
    strcpy(dir, "/tmp/ccompile-test-XXXXXX");
    if (mkdtemp(dir) == NULL) {
        return false;
    }
    snprintf(cache, sizeof(cache), "%s/cache", dir);
    snprintf(fake, sizeof(fake), "%s/fake-cc", dir);
    snprintf(marker, sizeof(marker), "%s/marker", dir);
    FILE *f = fopen(fake, "w");
    T_CHECK(f != NULL);
    fprintf(f, "#!/bin/sh\n[ -e %s ] && . %s\nexec cc \"$@\"\n", marker, marker);
    T_CHECK(fclose(f) == 0 && chmod(fake, 0700) == 0);
    bool good = backend_open(&b, &call, &st) && backend_find(&b, &call, &(BuildRun){0}, &st);
    if (!good) {
        printf("no compiler: %s\n", st.detail);
    }
    core_backend_fini(&b);
    return good;
}

int
main(void)
{
    if (open_places()) {                /* without a compiler there is nothing to see */
        test_cold_then_warm();
        test_nothing_to_compile();
        test_no_compiler_interprets();
        test_compiler_that_fails();
        test_interrupt_leaves_all_usable();
        test_unusable_directory();
        test_many_kernels();
        test_threads_and_fork_wait_or_take_over();
        test_no_memory();
    }
    shell("rm -rf %s", dir);
    return t_failed != 0;
}
