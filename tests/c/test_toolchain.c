/* build/toolchain: which compilers are taken and which are not, with compilers made of shell scripts
 * around the real one; time-out, interrupt, output, zombies, descriptors; verdicts on disk. */
#define _GNU_SOURCE
#include "../../csrc/base/mem.h"
#include "../../csrc/build/load.h"
#include "../../csrc/build/toolchain.h"
#include "../../csrc/rt/fp.h"

#include "t.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char top[64], real_cc[300];
static const BuildRun no_limits;
static BuildCache cache;

/* A file below `top`. */
static const char *
at(const char *name)
{
    static char path[4][400];
    static int turn;
    char *p = path[turn++ % 4];

    snprintf(p, 400, "%s/%s", top, name);
    return p;
}

/* Make CC a script with this body; $cc in it is the real compiler, each start leaves a line in `log`. */
static void
use_script(const char *body)
{
    FILE *f = fopen(at("fake"), "w");

    T_CHECK(f != NULL);
    fprintf(f, "#!/bin/sh\necho run >> %s\ncc=%s\n%s\n", at("log"), real_cc, body);
    T_CHECK(fclose(f) == 0 && chmod(at("fake"), 0700) == 0);
    unlink(at("log"));
    setenv("CC", at("fake"), 1);
}

/* A script that treats texts with this shell code, `$out` being the output, and knows --version. */
static void
use_fake(const char *code)
{
    char body[1000];

    snprintf(body, sizeof(body),
             "if [ \"$1\" = --version ]; then echo fake 1.0; exit; fi\n"
             "for a; do if [ \"$last\" = -o ]; then out=$a; fi; last=$a; done\n%s", code);
    use_script(body);
}

static int
runs(void)
{
    FILE *f = fopen(at("log"), "r");
    int n = 0, ch;

    while (f != NULL && (ch = getc(f)) != EOF) {
        n += ch == '\n';
    }
    if (f != NULL) {
        fclose(f);
    }
    return n;
}

static int
open_descriptors(void)
{
    DIR *list = opendir("/proc/self/fd");
    int n = 0;

    while (list != NULL && readdir(list) != NULL) {
        n++;
    }
    if (list != NULL) {
        closedir(list);
    }
    return n;
}

static bool
find(BuildToolchain *tc, CcStatus *st)
{
    int before = open_descriptors();
    bool found = build_toolchain_find(tc, &cache, NULL, &no_limits, st);

    T_CHECK(open_descriptors() == before);
    T_CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);   /* no zombie */
    return found;
}

/* CC is not taken, and the reason says `said`. */
static void
refused(const char *said)
{
    BuildToolchain tc;
    CcStatus st = {CC_REASON_NONE, ""};

    bool found = find(&tc, &st);
    T_CHECK(!found && st.reason == CC_REASON_NO_COMPILER);
    if (strstr(st.detail, said) == NULL) {
        printf("'%s' does not say '%s'\n", st.detail, said);
        t_failed++;
    }
    if (found) {
        build_toolchain_fini(&tc);
    }
}

/* CC is taken; it compiles and the kernel works. `flag`: part of its flags, or NULL. */
static void
taken(const char *flag)
{
    BuildToolchain tc;
    static const char source[] = "int kernel(int x) { return x * 5; }";
    BuildText text = {.source = source, .size = sizeof(source) - 1};
    CcStatus st = {CC_REASON_NONE, ""};

    if (!find(&tc, &st)) {
        printf("not taken: %s: %s\n", cc_reason_name(st.reason), st.detail);
        t_failed++;
        return;
    }
    T_CHECK(flag == NULL || strstr(tc.flags, flag) != NULL);
    T_CHECK(build_toolchain_compile(&tc, &cache, &text, 1, &no_limits, &st));
    BuildObject *o = build_object_load(&cache, text.object, text.object_size, &st);
    BuildFn fn = o == NULL ? NULL : build_object_find(o, "kernel", &st);
    T_CHECK(fn != NULL && ((int (*)(int))fn)(7) == 35);
    build_object_unref(o);
    cc_free(text.object);
    build_toolchain_fini(&tc);
}

/* -- Which compilers are taken --------------------------------------------------------------- */

static void
test_the_real_compiler(void)
{
    char *path = strdup(getenv("PATH"));
    BuildToolchain tc;
    CcStatus st;

    unsetenv("CC");
    taken("-ffp-contract=off");
    T_CHECK(!build_toolchain_find(&tc, &cache, "/nonexistent", &no_limits, &st));
    setenv("CC", "/nonexistent", 1);    /* a wish comes before $CC */
    T_CHECK(build_toolchain_find(&tc, &cache, real_cc, &no_limits, &st));
    build_toolchain_fini(&tc);
    setenv("CC", " \t", 1);             /* blank = not set */
    taken(NULL);
    setenv("CC", real_cc, 1);
    taken("-O2");
    T_CHECK(find(&tc, &st) && tc.version[0] != '\0' && tc.nword == 1);
    build_toolchain_fini(&tc);
    unsetenv("CC");
    setenv("PATH", "", 1);
    refused("not found");
    setenv("PATH", ".:tests:", 1);      /* relative directories do not count */
    T_CHECK(symlink(real_cc, at("cc")) == 0 && chdir(top) == 0);
    refused("not found");
    char both[4000];
    snprintf(both, sizeof(both), "%s:%s", top, path);
    setenv("PATH", both, 1);
    T_CHECK(find(&tc, &st) && strncmp(tc.argv[0], top, strlen(top)) == 0);
    build_toolchain_fini(&tc);
    T_CHECK(chdir("/") == 0 && unlink(at("cc")) == 0);
    setenv("PATH", path, 1);
    free(path);
}

static void
test_words_of_cc(void)
{
    char cc[900];
    BuildToolchain tc;
    CcStatus st;

    T_CHECK(mkdir(at("a dir"), 0700) == 0 && symlink(real_cc, at("a dir/c'c")) == 0);
    snprintf(cc, sizeof(cc), "  \"%s\"  -DA='b c'  -D\\Q=\"x\\\"y\"", at("a dir/c'c"));
    setenv("CC", cc, 1);
    T_CHECK(find(&tc, &st) && tc.nword == 3);
    T_CHECK(strcmp(tc.argv[1], "-DA=b c") == 0 && strcmp(tc.argv[2], "-DQ=x\"y") == 0);
    build_toolchain_fini(&tc);
    setenv("CC", "cc; touch /tmp/no-shell", 1);
    refused("not found");
    setenv("CC", "/nonexistent/cc", 1);
    refused("/nonexistent/cc: not found");
    setenv("CC", "/", 1);
    refused("not found");
    setenv("CC", "false", 1);
    refused("exit status 1");
    setenv("CC", "true", 1);            /* success, but nothing was made */
    refused("");
}

static void
test_compilers_with_wrong_results(void)
{
    use_fake("exec $cc \"$@\" '-Dvector_size(n)=vector_size(16)'");
    refused("returned 1");
    T_CHECK(runs() > 0);
    use_fake("exec $cc \"$@\" '-Dvector_size(n)=unused'");      /* tcc: not a vector at all */
    refused("error");
    use_fake("exec $cc \"$@\" -mfma -ffp-contract=fast");
#ifdef __x86_64__
    if (__builtin_cpu_supports("fma")) {
        refused("returned 1");
    }
#endif
    use_fake("exec $cc \"$@\" -ffast-math");
    refused("returned 1");
    use_fake("exec $cc \"$@\" -fno-wrapv");
    refused("returned 18");
    use_fake("printf '#!/bin/sh\\nkill -ILL $$\\n' > $out; chmod +x $out");
    refused("signal 4");
    use_fake("echo garbage > $out; chmod +x $out");
    refused("");
    /* the program is right, the object is not */
    use_fake("case \"$*\" in *-shared*) exec $cc \"$@\" -Dcc_selftest=other;; esac\nexec $cc \"$@\"");
    refused("cc_selftest");
    use_fake("case \"$*\" in *-shared*) exec $cc \"$@\" -Dv=v+1;; esac\nexec $cc \"$@\"");
    refused("");
}

static void
test_flags(void)
{
    char cc[400];
    RtFp before = rt_fp_get();

    use_fake("case \"$*\" in *native*) echo unknown flag >&2; exit 1;; esac\nexec $cc \"$@\"");
    taken("-fno-strict-aliasing -w -fPIC");
    snprintf(cc, sizeof(cc), "%s -Ofast -ffast-math -funsafe-math-optimizations", real_cc);
    setenv("CC", cc, 1);
    taken(NULL);                        /* our flags come later and win */
    rt_fp_set(rt_fp_quiet(rt_fp_get()));
    RtFp quiet = rt_fp_get();
    taken(NULL);
#ifdef __x86_64__
    T_CHECK((rt_fp_get() & ~(RtFp)RT_FP_FLAGS) == quiet);       /* no crtfastmath.o */
#else
    (void)quiet;
#endif
    rt_fp_set(before);
}

/* -- Failures of a run -------------------------------------------------------------------------- */

static bool
alive(const char *pid_file)
{
    char path[100], text[300] = "";
    FILE *f = fopen(pid_file, "r");
    long pid = 0;
    bool lives = false;

    T_CHECK(f != NULL && fscanf(f, "%ld", &pid) == 1 && pid > 0);
    if (f != NULL) {
        fclose(f);
    }
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    f = fopen(path, "r");
    if (f != NULL) {
        const char *state = fgets(text, sizeof(text), f) == NULL ? NULL : strrchr(text, ')');
        lives = state != NULL && state[2] != 'Z';
        fclose(f);
    }
    return lives;
}

/* Both the script and what it started in the background are gone (init may reap a bit later). */
static void
check_gone(void)
{
    bool lives = true;

    for (int i = 0; i < 50 && lives; i++) {
        lives = alive(at("pid1")) || alive(at("pid2"));
        if (lives) {
            usleep(20000);
        }
    }
    T_CHECK(!lives);
}

static void
use_sleeper(void)
{
    char body[1000];

    snprintf(body, sizeof(body), "echo $$ > %s; sleep 300 & echo $! > %s\nwait; sleep 300",
             at("pid1"), at("pid2"));
    use_fake(body);
}

static bool
after_a_while(void *ctx)
{
    return build_now() > *(double *)ctx;
}

static void
test_time_out_and_interrupt(void)
{
    double start = build_now(), until = start + 0.4;
    BuildRun brief = {.seconds = 0.2}, stop = {.interrupted = after_a_while, .ctx = &until};
    BuildToolchain tc;
    CcStatus st;

    use_sleeper();
    T_CHECK(!build_toolchain_find(&tc, &cache, NULL, &brief, &st));
    T_CHECK(st.reason == CC_REASON_NO_COMPILER && strstr(st.detail, "not finished") != NULL);
    check_gone();
    start = build_now();
    until = start + 0.4;
    T_CHECK(!build_toolchain_find(&tc, &cache, NULL, &stop, &st));
    T_CHECK(st.reason == CC_REASON_INTERRUPTED && build_now() - start < 10);
    check_gone();
    T_CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    use_fake("exec $cc \"$@\"");        /* neither is a verdict: the same name works now */
    taken(NULL);
}

static void
test_output_is_bounded(void)
{
    use_fake("i=0; while [ $i -lt 3000 ]; do echo 'a line of noise, and another one, and one more';"
             " i=$((i+1)); done >&2; exit 3");
    refused("a line of noise");
    use_fake("echo 'u0.c:1:2: warning: x' >&2; echo 'u0.c:3:4: error: no such thing' >&2; exit 1");
    refused("u0.c:3:4: error: no such thing");
}

static void
test_sigchld_ignored(void)
{
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    BuildToolchain tc;
    CcStatus st;

    setenv("CC", real_cc, 1);
    cache.fd = -1;                      /* no verdict from disk */
    /* the test program's own exit status is what counts, so nothing can be proven here */
    T_CHECK(!build_toolchain_find(&tc, &cache, NULL, &no_limits, &st));
    T_CHECK(st.reason == CC_REASON_NO_COMPILER);
    cache.fd = open(cache.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    taken(NULL);                        /* with a verdict, compiling works */
    signal(SIGCHLD, before);
}

static void
test_environment_of_the_compiler(void)
{
    setenv("DEPENDENCIES_OUTPUT", at("depends"), 1);
    use_fake("case $TMPDIR in */ccompile-w-*) ;; *) exit 9;; esac\nexec $cc \"$@\"");
    taken(NULL);
    T_CHECK(access(at("depends"), F_OK) != 0);
    unsetenv("DEPENDENCIES_OUTPUT");
}

/* $TMPDIR is full: the work is done elsewhere. */
static void
test_full_disk(void)
{
    pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        T_CHECK(mkdir(at("disk"), 0700) == 0);
        if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", at("disk"), "tmpfs", 0, "size=16k,mode=700") != 0) {
            _exit(0);                   /* not allowed here */
        }
        setenv("TMPDIR", at("disk"), 1);
        use_fake("exec $cc \"$@\"");
        taken(NULL);
        fflush(stdout);
        _exit(t_failed != 0);
    }
    T_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* -- Verdicts ------------------------------------------------------------------------------------- */

static void
test_verdicts_are_remembered(void)
{
    BuildToolchain a, b;
    CcStatus st;

    use_fake("exec $cc \"$@\"");
    T_CHECK(find(&a, &st) && runs() == 3);      /* --version, program, object */
    T_CHECK(find(&b, &st) && runs() == 3);
    T_CHECK(memcmp(&a.identity, &b.identity, sizeof(a.identity)) == 0);
    T_CHECK(strcmp(b.version, "fake 1.0") == 0);
    build_toolchain_fini(&b);
    struct timespec when[2] = {{1000000000, 5}, {1000000000, 5}};
    T_CHECK(utimensat(AT_FDCWD, at("fake"), when, 0) == 0);
    T_CHECK(find(&b, &st) && runs() == 6);      /* another time, another compiler */
    T_CHECK(memcmp(&a.identity, &b.identity, sizeof(a.identity)) != 0);
    build_toolchain_fini(&b);
    build_toolchain_fini(&a);
    use_fake("exec $cc \"$@\" -fno-wrapv");
    refused("returned 18");
    int ran = runs();
    refused("failed the test before");
    T_CHECK(runs() == ran);
    use_fake("exit 1");                 /* may be a full disk: asked again */
    refused("exit status 1");
    ran = runs();
    refused("exit status 1");
    T_CHECK(runs() == 2 * ran);
}

static void
test_several_texts(void)
{
    static char source[7][64];
    BuildText text[7];
    BuildToolchain tc;
    BuildRun run = {.jobs = 3};
    CcStatus st;

    setenv("CC", real_cc, 1);
    T_CHECK(find(&tc, &st));
    for (int i = 0; i < 7; i++) {
        snprintf(source[i], sizeof(source[i]), i == 4 ? "int kernel( {" : "int k%d = %d;", i, i);
        text[i] = (BuildText){.source = source[i], .size = strlen(source[i])};
    }
    T_CHECK(!build_toolchain_compile(&tc, &cache, text, 7, &run, &st));
    T_CHECK(st.reason == CC_REASON_COMPILE_FAILED && strncmp(st.detail, "u4.c", 4) == 0);
    for (int i = 0; i < 7; i++) {
        T_CHECK((text[i].object != NULL) == (i != 4));
        cc_free(text[i].object);
    }
    build_toolchain_fini(&tc);
}

static void
test_memory_failure(void)
{
    bool whole = false;

    use_fake("exec $cc \"$@\"");
    for (long n = 0; n < 300 && !whole; n += n < 60 ? 1 : 9) {
        BuildToolchain tc;
        CcStatus st = {CC_REASON_NONE, ""};
        cc_mem_fail_after(n);
        bool found = build_toolchain_find(&tc, &cache, NULL, &no_limits, &st);
        whole = found && !cc_mem_failed();
        cc_mem_fail_after(-1);
        T_CHECK(found || st.reason == CC_REASON_NO_MEMORY || st.reason == CC_REASON_NO_COMPILER);
        if (found) {
            build_toolchain_fini(&tc);
        }
    }
    T_CHECK(whole);
}

int
main(void)
{
    char command[200];
    CcStatus st;

    alarm(300);
    FILE *f = popen("command -v cc || command -v gcc", "r");
    T_CHECK(f != NULL && fscanf(f, "%299s", real_cc) == 1);
    pclose(f);
    strcpy(top, "/tmp/cctoolXXXXXX");
    T_CHECK(mkdtemp(top) != NULL);
    setenv("TMPDIR", top, 1);
    T_CHECK(build_cache_open(&cache, at("cache"), 0, "test", &st) && !cache.own);
    test_the_real_compiler();
    test_words_of_cc();
    test_compilers_with_wrong_results();
    test_flags();
    test_time_out_and_interrupt();
    test_output_is_bounded();
    test_environment_of_the_compiler();
    test_full_disk();
    test_verdicts_are_remembered();
    test_several_texts();
    test_memory_failure();
    test_sigchld_ignored();
    build_cache_close(&cache);
    snprintf(command, sizeof(command), "ls -d %s/ccompile-w-* 2>/dev/null | grep .", top);
    T_CHECK(system(command) != 0);      /* no work directory is left */
    snprintf(command, sizeof(command), "rm -r %s", top);
    T_CHECK(system(command) == 0);
    return t_failed != 0;
}
