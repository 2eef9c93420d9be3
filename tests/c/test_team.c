/* rt/team: same bits for any team, phases in order, scratch, faults, FP state, stop, fork, nesting,
 * threads, memory failure; on libgomp and on our own pool. */
#define _GNU_SOURCE
#include "../../csrc/base/mem.h"
#include "../../csrc/rt/fp.h"
#include "../../csrc/rt/team.h"

#include "t.h"

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 100003, GRAIN = 64 };

static float in[N], mid[N], out[N];

typedef struct {
    atomic_int calls[4];
    atomic_int bad;
    uint32_t fault;
    uint32_t stop;
    int nested;
} Args;

#define ARGS(p) ((Args *)(uintptr_t)(p))        /* the counters behind the const block */

/* mid = in * 3; scratch is aligned, ours alone during the call. */
static void
phase_one(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    Args *a = ARGS(args);
    atomic_int *owner = scratch;

    atomic_store(owner, 1);
    for (cc_i64 i = begin; i < end; i++) {
        mid[i] = in[i] * 3.0f;
    }
    if ((uintptr_t)scratch % 64 != 0 || atomic_fetch_add(owner, 1) != 1 || begin % GRAIN != 0 ||
        (end % GRAIN != 0 && end != N)) {
        atomic_fetch_add(&a->bad, 1);
    }
    atomic_fetch_add(&a->calls[0], (int)(end - begin));
}

/* out reads mid at the mirrored place: right only when phase one is over everywhere. */
static void
phase_two(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    Args *a = ARGS(args);

    for (cc_i64 i = begin; i < end; i++) {
        out[i] = mid[N - 1 - i] + in[i] / 7.0f;
    }
    if (scratch != NULL || atomic_load(&a->calls[0]) != N) {
        atomic_fetch_add(&a->bad, 1);
    }
    atomic_fetch_add(&a->calls[1], (int)(end - begin));
}

static const CcPhase two_phases[] = {
    {phase_one, N, GRAIN, 4096, 1e9},
    {phase_two, 0, 1, 0, 0},            /* empty: fn is not called */
    {phase_two, N, GRAIN, 0, 1e9},
};

static void
fill(void)
{
    for (int i = 0; i < N; i++) {
        in[i] = (float)(i * 37 % 1001) / 13.0f;
    }
}

static bool
run_two(uint32_t threads)
{
    Args a = {.fault = 0};
    CcKernel k = {two_phases, 3, &a, &a.fault};
    CcStatus st;

    memset(mid, 0, sizeof(mid));
    memset(out, 0, sizeof(out));
    bool ok = rt_team_run(&k, threads, NULL, &st);
    return ok && a.bad == 0 && a.calls[0] == N && a.calls[1] == N;
}

static void
test_same_bits_for_any_number_of_threads(void)
{
    static float want[N];
    RtTeamInfo before, after;

    T_CHECK(run_two(1));
    memcpy(want, out, sizeof(out));
    rt_team_info(&before);
    for (uint32_t threads = 2; threads <= 8; threads++) {
        for (int again = 0; again < 20; again++) {
            T_CHECK(run_two(threads));
            T_CHECK(memcmp(want, out, sizeof(out)) == 0);
        }
    }
    rt_team_info(&after);
    T_CHECK(after.parallel == before.parallel + 140);
}

static void
add_one(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    (void)scratch;
    atomic_fetch_add(&ARGS(args)->calls[0], (int)(end - begin));
}

static void
test_sizes_and_grains(void)
{
    static const cc_i64 sizes[] = {0, 1, 2, 7, 63, 64, 65, 1000};
    CcStatus st;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (cc_i64 grain = 1; grain < 200; grain += 31) {
            for (uint32_t threads = 1; threads < 5; threads++) {
                Args a = {.fault = 0};
                CcPhase p = {add_one, sizes[s], grain, 0, 1e9};
                CcKernel k = {&p, 1, &a, &a.fault};
                T_CHECK(rt_team_run(&k, threads, &a.stop, &st));
                T_CHECK(a.calls[0] == sizes[s]);
            }
        }
    }
}

static void
test_small_work_stays_serial(void)
{
    Args a = {.fault = 0};
    CcPhase p = {add_one, 1000, 1, 0, 900};
    CcKernel k = {&p, 1, &a, &a.fault};
    RtTeamInfo before, after;
    CcStatus st;

    rt_team_info(&before);
    T_CHECK(rt_team_run(&k, 4, NULL, &st) && a.calls[0] == 1000);
    rt_team_info(&after);
    T_CHECK(after.serial == before.serial + 1 && after.parallel == before.parallel);
}

/* -- Floating-point state ----------------------------------------------------------- */

static _Atomic float one_third, tiny_half, zero;

static void
divide(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    (void)scratch;
    for (cc_i64 i = begin; i < end; i++) {
        float q = (float)(i + 1) / (i == 999 ? zero : 3.0f);
        if (i == 0) {
            one_third = q;
            tiny_half = (float)(1e-38f * (zero + 1.0f)) / 2.0f;
        }
        atomic_fetch_add(&ARGS(args)->calls[1], q > 0);
    }
}

static void
test_rounding_and_faults(uint32_t threads)
{
    Args a = {.fault = 0};
    CcPhase p = {divide, 1000, 1, 0, 1e9};
    CcKernel k = {&p, 1, &a, &a.fault};
    CcStatus st;

    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_INVALID);
    fesetround(FE_UPWARD);
    T_CHECK(rt_team_run(&k, threads, NULL, &st));
    T_CHECK(fegetround() == FE_UPWARD);
    T_CHECK(one_third == 0x1.555556p-2f);               /* down or nearest: ...554, ...556 */
    fesetround(FE_DOWNWARD);
    T_CHECK(rt_team_run(&k, threads, NULL, &st));
    T_CHECK(one_third == 0x1.555554p-2f);
    fesetround(FE_TONEAREST);
    T_CHECK((a.fault & CC_FAULT_DIV) != 0 && (a.fault & CC_FAULT_OVER) == 0);
    T_CHECK((a.fault & CC_FAULT_INVALID) == 0);         /* the caller's own flag is not the kernel's */
    T_CHECK(fetestexcept(FE_INVALID | FE_DIVBYZERO) == FE_INVALID);
    feclearexcept(FE_ALL_EXCEPT);
#ifdef __x86_64__
    T_CHECK(tiny_half != 0);
    RtFp before = rt_fp_get();
    rt_fp_set(before | 0x8040);                         /* FTZ, DAZ */
    T_CHECK(rt_team_run(&k, threads, NULL, &st));
    T_CHECK(rt_fp_get() == (before | 0x8040));
    rt_fp_set(before);
    T_CHECK(tiny_half == 0);
    rt_fp_set(before & ~0x200u);                        /* trap on division by zero: not in kernels */
    T_CHECK(rt_team_run(&k, threads, NULL, &st));
    rt_fp_set(before);
    T_CHECK(rt_team_run(&k, threads, NULL, &st) && tiny_half != 0);     /* workers are as before */
#endif
}

static void
slow_divide(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    static atomic_int arrived;

    (void)scratch;
    atomic_fetch_add(&arrived, 1);
    for (int i = 0; i < 100 && atomic_load(&arrived) < 2; i++) {
        usleep(1000);                                   /* so that both ranges get a thread */
    }
    volatile float q = (float)begin / (begin == 0 ? zero : 1.0f);  /* 0/0 in one, exact in the other */
    atomic_fetch_add(&ARGS(args)->calls[0], (int)(end - begin) + (q > 5));
}

static void
test_fault_of_any_thread_is_seen(void)
{
    Args a = {.fault = 0};
    CcPhase p = {slow_divide, 2, 1, 0, 1e9};
    CcKernel k = {&p, 1, &a, &a.fault};
    CcStatus st;

    T_CHECK(rt_team_run(&k, 2, NULL, &st));
    T_CHECK(a.fault == CC_FAULT_INVALID && a.calls[0] == 2);
}

/* -- Stop, nesting, other threads ------------------------------------------------------- */

static void
stop_in_the_middle(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    Args *a = ARGS(args);

    (void)scratch;
    if (atomic_fetch_add(&a->calls[0], (int)(end - begin)) > 200) {
        __atomic_store_n(&a->stop, 1, __ATOMIC_RELAXED);
    }
}

static void
must_not_run(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    (void)begin, (void)end, (void)scratch;
    atomic_fetch_add(&ARGS(args)->bad, 1);
}

static void
test_stop(void)
{
    for (uint32_t threads = 1; threads <= 4; threads++) {
        Args a = {.fault = 0};
        CcPhase p[] = {{stop_in_the_middle, 100000, 1, 0, 1e12}, {must_not_run, 1000, 1, 0, 1e9}};
        CcKernel k = {p, 2, &a, &a.fault};
        CcStatus st = {CC_REASON_NONE, ""};
        T_CHECK(!rt_team_run(&k, threads, &a.stop, &st));
        T_CHECK(st.reason == CC_REASON_INTERRUPTED && a.bad == 0 && a.calls[0] < 100000);
    }
}

static void
call_inside(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    Args *a = ARGS(args);
    CcPhase p = {add_one, 100, 1, 64, 1e9};
    CcKernel k = {&p, 1, a, &a->fault};
    CcStatus st;

    (void)scratch;
    for (cc_i64 i = begin; i < end; i++) {
        if (!rt_team_run(&k, 4, NULL, &st)) {
            atomic_fetch_add(&a->bad, 1);
        }
    }
}

static void
test_nested_runs_alone(void)
{
    Args a = {.fault = 0};
    CcPhase p = {call_inside, 50, 1, 0, 1e9};
    CcKernel k = {&p, 1, &a, &a.fault};
    RtTeamInfo before, after;
    CcStatus st;

    rt_team_info(&before);
    T_CHECK(rt_team_run(&k, 4, NULL, &st));
    rt_team_info(&after);
    T_CHECK(a.calls[0] == 5000 && a.bad == 0);
    T_CHECK(after.parallel == before.parallel + 1 && after.busy == before.busy + 50);
}

static void *
many_runs(void *arg)
{
    intptr_t bad = 0;

    for (int i = 0; i < 2000; i++) {
        Args a = {.fault = 0};
        CcPhase p[] = {{add_one, 300 + i % 7, 1, i % 3 * 1000, 1e9}, {add_one, 100, 9, 0, 1e9}};
        CcKernel k = {p, 2, &a, &a.fault};
        CcStatus st;
        bad += !rt_team_run(&k, 3, NULL, &st) || a.calls[0] != 400 + i % 7;
    }
    return (char *)arg + bad;
}

static void
test_threads_share_the_team(void)
{
    pthread_t other[3];
    RtTeamInfo before, after;
    char base[1];
    void *end;

    rt_team_info(&before);
    for (int i = 0; i < 3; i++) {
        T_CHECK(pthread_create(&other[i], NULL, many_runs, base) == 0);
    }
    T_CHECK(many_runs(base) == base);
    for (int i = 0; i < 3; i++) {
        pthread_join(other[i], &end);
        T_CHECK(end == base);
    }
    rt_team_info(&after);
    T_CHECK(after.parallel + after.busy == before.parallel + before.busy + 8000);
    T_CHECK(after.parallel > before.parallel);
}

/* -- fork --------------------------------------------------------------------------------- */

static int
child_code(pid_t pid)
{
    int status = -1;

    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void
run_child(void)
{
    RtTeamInfo info;

    alarm(20);
    int code = run_two(1) && run_two(4) && run_two(4) ? 0 : 1;
    rt_team_info(&info);
    code = info.runtime == RT_TEAM_POOL && info.workers == 3 ? code : 2;
    pid_t grandchild = fork();
    if (grandchild == 0) {
        alarm(20);
        _exit(run_two(3) ? 0 : 3);
    }
    _exit(code != 0 ? code : child_code(grandchild));
}

static atomic_bool keep_busy;

static void *
busy_runs(void *arg)
{
    while (atomic_load(&keep_busy)) {
        arg = many_runs(arg);
    }
    return arg;
}

static void
test_fork(void)
{
    static float want[N];
    pthread_t other;
    char base[1];

    T_CHECK(run_two(4));
    memcpy(want, out, sizeof(out));
    atomic_store(&keep_busy, true);
    T_CHECK(pthread_create(&other, NULL, busy_runs, base) == 0);
    for (int i = 0; i < 10; i++) {      /* at any moment of the other thread's runs */
        pid_t pid = fork();
        if (pid == 0) {
            run_child();
        }
        T_CHECK(child_code(pid) == 0);
    }
    atomic_store(&keep_busy, false);
    pthread_join(other, NULL);
    T_CHECK(run_two(4) && memcmp(want, out, sizeof(out)) == 0);
}

/* -- Memory, thread counts ------------------------------------------------------------------ */

static void
test_memory_failure(void)
{
    bool ran = false;

    for (long n = 0; n < 20 && !(ran && !cc_mem_failed()); n++) {
        Args a = {.fault = 0};
        CcPhase p = {add_one, 1000, 1, 100000 * (n + 1), 1e9};  /* larger than what is kept */
        CcKernel k = {&p, 1, &a, &a.fault};
        CcStatus st = {CC_REASON_NONE, ""};
        cc_mem_fail_after(n);
        ran = rt_team_run(&k, 3, NULL, &st);
        T_CHECK(ran ? a.calls[0] == 1000 : st.reason == CC_REASON_NO_MEMORY && a.calls[0] == 0);
    }
    cc_mem_fail_after(-1);
    T_CHECK(ran);
}

static void
write_file(const char *dir, const char *name, const char *text)
{
    char path[512], *slash;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    for (slash = path + strlen(dir) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    T_CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void
test_thread_counts(void)
{
    char dir[] = "/tmp/ccteamXXXXXX", command[64];

    T_CHECK(rt_cpus_parse(NULL) == 0 && rt_cpus_parse("") == 0 && rt_cpus_parse("x") == 0);
    T_CHECK(rt_cpus_parse("0") == 0 && rt_cpus_parse("-3") == 0 && rt_cpus_parse("3") == 3);
    T_CHECK(rt_cpus_parse("4,2") == 4 && rt_cpus_parse("99999999999") == RT_MAX_THREADS);
    T_CHECK(rt_cpus_affinity() >= 1);
    T_CHECK(mkdtemp(dir) != NULL);
    T_CHECK(rt_cpus_quota(dir) == RT_MAX_THREADS);
    write_file(dir, "proc/self/cgroup", "0::/a/b\n");
    T_CHECK(rt_cpus_quota(dir) == RT_MAX_THREADS);
    write_file(dir, "sys/fs/cgroup/cpu.max", "max 100000\n");
    write_file(dir, "sys/fs/cgroup/a/b/cpu.max", "950000 100000\n");
    T_CHECK(rt_cpus_quota(dir) == 10);
    write_file(dir, "sys/fs/cgroup/a/cpu.max", "350000 100000\n");
    T_CHECK(rt_cpus_quota(dir) == 4);
    write_file(dir, "sys/fs/cgroup/a/cpu.max", "100 100000\n");
    T_CHECK(rt_cpus_quota(dir) == 1);
    write_file(dir, "proc/self/cgroup", "5:cpuset:/x\n4:cpuacct,cpu:/docker/q\n1:name=systemd:/\n");
    T_CHECK(rt_cpus_quota(dir) == RT_MAX_THREADS);
    write_file(dir, "sys/fs/cgroup/cpu/docker/q/cpu.cfs_quota_us", "-1\n");
    write_file(dir, "sys/fs/cgroup/cpu/docker/q/cpu.cfs_period_us", "100000\n");
    T_CHECK(rt_cpus_quota(dir) == RT_MAX_THREADS);
    write_file(dir, "sys/fs/cgroup/cpu/docker/q/cpu.cfs_quota_us", "200001\n");
    T_CHECK(rt_cpus_quota(dir) == 3);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    T_CHECK(system(command) == 0);
}

/* Each setting in a child: the environment is read once per process. */
static uint32_t
threads_with(const char *ours, const char *omp, uint32_t framework)
{
    pid_t pid = fork();

    if (pid == 0) {
        ours ? setenv("CCOMPILE_NUM_THREADS", ours, 1) : unsetenv("CCOMPILE_NUM_THREADS");
        omp ? setenv("OMP_NUM_THREADS", omp, 1) : unsetenv("OMP_NUM_THREADS");
        rt_team_set_threads(framework);
        _exit((int)rt_team_threads());
    }
    return (uint32_t)child_code(pid);
}

static void
test_order_of_the_settings(void)
{
    uint32_t cpus = threads_with(NULL, NULL, 0);

    T_CHECK(cpus >= 1);
    T_CHECK(threads_with("7", "1", 3) == 7);
    T_CHECK(threads_with("junk", "1", 3) == 3);
    T_CHECK(threads_with(NULL, "1", 0) == 1);
    T_CHECK(threads_with(NULL, "250", 0) == cpus);

    uint32_t before = rt_team_threads();
    rt_team_set_threads(3);
    rt_team_tell_threads(5);            /* the option comes before the framework */
    T_CHECK(rt_team_threads() == 5);
    rt_team_tell_threads(0);
    rt_team_set_threads(0);
    T_CHECK(rt_team_threads() == before);
}

static void
test_serial_by_wish(void)
{
    RtTeamInfo before, after;

    rt_team_use(RT_TEAM_SERIAL);
    rt_team_info(&before);
    T_CHECK(run_two(4));
    rt_team_info(&after);
    T_CHECK(after.parallel == before.parallel && after.serial == before.serial + 1);
    rt_team_use(RT_TEAM_AUTO);
}

static void
test_all(RtRuntime wish)
{
    RtTeamInfo info;

    rt_team_use(wish);
    test_same_bits_for_any_number_of_threads();
    test_sizes_and_grains();
    test_small_work_stays_serial();
    test_rounding_and_faults(1);
    test_rounding_and_faults(2);
    test_rounding_and_faults(4);
    test_fault_of_any_thread_is_seen();
    test_stop();
    test_nested_runs_alone();
    test_threads_share_the_team();
    test_memory_failure();
    test_fork();
    rt_team_info(&info);
    T_CHECK(info.runtime == (wish == RT_TEAM_AUTO && info.library[0] != '\0' ? RT_TEAM_GOMP
                                                                              : RT_TEAM_POOL));
    rt_team_fini();
}

int
main(void)
{
    alarm(120);
    fill();
    test_order_of_the_settings();
    test_thread_counts();
    test_all(RT_TEAM_POOL);
    test_serial_by_wish();
#ifndef __SANITIZE_THREAD__                     /* libgomp's own synchronisation is not seen by TSan */
    test_all(RT_TEAM_AUTO);
#endif
    return t_failed != 0;
}
