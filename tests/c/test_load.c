/* build/load and build/make: objects from memory, many alive at once, unloading, damaged bytes, and
 * the way from texts to kernels with a warm, a damaged and a shared cache. */
#define _GNU_SOURCE
#include "../../csrc/base/mem.h"
#include "../../csrc/build/make.h"

#include "t.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNITS = 3 };

static char top[64], source[UNITS][200];
static const BuildRun two_jobs = {.jobs = 2};
static BuildCache cache;
static BuildToolchain tool;

typedef int (*Kernel)(int);

static void
set_sources(int salt)
{
    for (int i = 0; i < UNITS; i++) {
        snprintf(source[i], sizeof(source[i]), "int kernel(int x) { return x * %d + %d; }\n", i + 2,
                 salt);
    }
}

static void
set_units(BuildUnit unit[UNITS])
{
    for (int i = 0; i < UNITS; i++) {
        unit[i] = (BuildUnit){.source = source[i], .size = strlen(source[i])};
    }
}

/* Make the units and call them; the number that was compiled, -1 = failed. */
static int
make_and_call(BuildCache *c, int salt)
{
    BuildUnit unit[UNITS];
    CcStatus st;
    int compiled = 0;

    set_units(unit);
    if (!build_make(c, &tool, unit, UNITS, &two_jobs, &st)) {
        printf("make: %s: %s\n", cc_reason_name(st.reason), st.detail);
        return -1;
    }
    for (int i = 0; i < UNITS; i++) {
        Kernel fn = (Kernel)build_object_find(unit[i].object, "kernel", &st);
        T_CHECK(fn != NULL && fn(10) == 10 * (i + 2) + salt);
        compiled += unit[i].compiled;
        build_object_unref(unit[i].object);
    }
    return compiled;
}

static void
damage_objects(const char *how)
{
    DIR *list = opendir(cache.dir);

    for (struct dirent *e; (e = readdir(list)) != NULL;) {
        char path[400];
        if (strncmp(e->d_name, "o-", 2) == 0) {
            snprintf(path, sizeof(path), "%s/%s", cache.dir, e->d_name);
            if (strcmp(how, "empty") == 0) {
                T_CHECK(truncate(path, 0) == 0);
            } else if (strcmp(how, "half") == 0) {
                T_CHECK(truncate(path, 5000) == 0);
            } else if (strcmp(how, "garbage") == 0) {
                FILE *f = fopen(path, "w");
                T_CHECK(f != NULL && fputs("not a library", f) >= 0 && fclose(f) == 0);
            } else {
                T_CHECK(unlink(path) == 0);
            }
        }
    }
    closedir(list);
}

static void
test_warm_and_damaged_cache(void)
{
    static const char *const how[] = {"empty", "half", "garbage", "gone"};

    set_sources(1);
    T_CHECK(make_and_call(&cache, 1) == UNITS);
    T_CHECK(make_and_call(&cache, 1) == 0);
    for (int i = 0; i < 4; i++) {
        damage_objects(how[i]);
        T_CHECK(make_and_call(&cache, 1) == UNITS);
        T_CHECK(make_and_call(&cache, 1) == 0);
    }
}

static void
test_known_objects_need_no_compiler(void)
{
    BuildUnit unit[UNITS];
    BuildObject *object[UNITS];
    BuildKey key[UNITS];
    CcStatus st;

    set_sources(2);
    T_CHECK(make_and_call(&cache, 2) == UNITS);
    set_units(unit);
    T_CHECK(build_make(&cache, &tool, unit, UNITS, &two_jobs, &st));
    for (int i = 0; i < UNITS; i++) {
        key[i] = unit[i].key;
        build_object_unref(unit[i].object);
    }
    T_CHECK(build_make_known(&cache, key, object, UNITS));
    Kernel fn = (Kernel)build_object_find(object[1], "kernel", &st);
    T_CHECK(fn != NULL && fn(4) == 14);
    T_CHECK(build_object_find(object[1], "kernels", &st) == NULL);
    T_CHECK(st.reason == CC_REASON_LOAD_FAILED && strstr(st.detail, "kernels") != NULL);
    for (int i = 0; i < UNITS; i++) {
        build_object_unref(object[i]);
    }
    build_cache_drop(&cache, BUILD_OBJECT, &key[2]);
    T_CHECK(!build_make_known(&cache, key, object, UNITS));
    T_CHECK(object[0] == NULL && object[1] == NULL && object[2] == NULL);
}

/* Verified, but no object of this machine: dropped, compiled again. */
static void
test_entry_that_does_not_load(void)
{
    BuildUnit unit[UNITS];
    CcStatus st;

    set_sources(3);
    T_CHECK(make_and_call(&cache, 3) == UNITS);
    set_units(unit);
    T_CHECK(build_make(&cache, &tool, unit, UNITS, &two_jobs, &st));
    for (int i = 0; i < UNITS; i++) {
        build_object_unref(unit[i].object);
    }
    T_CHECK(build_cache_put(&cache, BUILD_OBJECT, &unit[1].key, "\177ELF but no more", 16));
    T_CHECK(make_and_call(&cache, 3) == 1);
    T_CHECK(make_and_call(&cache, 3) == 0);
}

static void *
compile_text(const char *text, size_t *size)
{
    BuildText t = {.source = text, .size = strlen(text)};
    CcStatus st;

    T_CHECK(build_toolchain_compile(&tool, &cache, &t, 1, &two_jobs, &st));
    *size = t.object_size;
    return t.object;
}

/* Many objects alive at once, then many one after the other: none is taken for another. */
static void
test_many_objects(void)
{
    static const char text[] = "int number = 7777777; int kernel(int x) { return x + number; }";
    BuildObject *object[40];
    int number = 7777777;
    size_t size, place = 0;
    CcStatus st;
    char *bytes = compile_text(text, &size);

    while (place + 4 < size && memcmp(bytes + place, &number, 4) != 0) {
        place++;
    }
    for (int i = 0; i < 40; i++) {      /* 40 different objects without 40 compilations */
        memcpy(bytes + place, &i, 4);
        object[i] = build_object_load(&cache, bytes, size, &st);
        T_CHECK(object[i] != NULL);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 40; i++) {
            Kernel fn = (Kernel)build_object_find(object[i], "kernel", &st);
            T_CHECK(fn != NULL && fn(100) == 100 + i + 40 * round);
            build_object_unref(object[i]);
            number = i + 40 * (round + 1);
            memcpy(bytes + place, &number, 4);
            object[i] = build_object_load(&cache, bytes, size, &st);
            T_CHECK(object[i] != NULL);
        }
    }
    for (int i = 0; i < 40; i++) {
        build_object_unref(object[i]);
    }
    cc_free(bytes);
}

/* Mappings of anonymous objects in this process. */
static int
count_mapped(void)
{
    char line[600];
    int n = 0;
    FILE *f = fopen("/proc/self/maps", "r");

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        n += strstr(line, "memfd:ccompile") != NULL;
    }
    if (f != NULL) {
        fclose(f);
    }
    return n;
}

static void
test_references(void)
{
    size_t size;
    CcStatus st;
    char *bytes = compile_text("int kernel(int x) { return -x; }", &size);
    int before = count_mapped();
    BuildObject *o = build_object_load(&cache, bytes, size, &st);
    bool seen = count_mapped() > before;        /* false where memfd is forbidden */

    cc_free(bytes);                     /* the object does not need them any more */
    T_CHECK(build_object_ref(o) == o);
    build_object_unref(o);
    Kernel fn = (Kernel)build_object_find(o, "kernel", &st);
    T_CHECK(fn != NULL && fn(5) == -5);
    T_CHECK(!seen || count_mapped() > before);
    build_object_unref(o);
    T_CHECK(count_mapped() == before);
    build_object_unref(NULL);
}

static void
test_bad_bytes(void)
{
    size_t size;
    CcStatus st;
    char *bytes = compile_text("int kernel(int x) { return x; }", &size);

    for (size_t cut = 0; cut < 400; cut += 16) {
        st.reason = CC_REASON_NONE;
        T_CHECK(build_object_load(&cache, bytes, cut, &st) == NULL);
        T_CHECK(st.reason == CC_REASON_LOAD_FAILED);
    }
    cc_free(bytes);
    bytes = compile_text("int nowhere(int); int kernel(int x) { return nowhere(x); }", &size);
    T_CHECK(build_object_load(&cache, bytes, size, &st) == NULL);
    T_CHECK(st.reason == CC_REASON_LOAD_FAILED && strstr(st.detail, "nowhere") != NULL);
    cc_free(bytes);
}

static void
test_failing_unit(void)
{
    BuildUnit unit[UNITS];
    CcStatus st;

    set_sources(4);
    set_units(unit);
    unit[1].source = "int kernel(int x) { return x +; }";
    unit[1].size = strlen(unit[1].source);
    T_CHECK(!build_make(&cache, &tool, unit, UNITS, &two_jobs, &st));
    T_CHECK(st.reason == CC_REASON_COMPILE_FAILED && strstr(st.detail, "error") != NULL);
    T_CHECK(strstr(st.detail, "u1.c") != NULL || strstr(st.detail, "expected") != NULL);
    for (int i = 0; i < UNITS; i++) {
        T_CHECK(unit[i].object == NULL);
    }
    T_CHECK(make_and_call(&cache, 4) == 1);     /* the good ones are in the cache */
}

/* -- Two processes, threads ------------------------------------------------------------------ */

static void
test_processes_compile_once(void)
{
    pid_t pid[3];
    int total = 0;

    set_sources(5);
    for (int p = 0; p < 3; p++) {
        pid[p] = fork();
        if (pid[p] == 0) {
            int compiled = make_and_call(&cache, 5);
            _exit(t_failed || compiled < 0 ? 100 : compiled);
        }
    }
    for (int p = 0; p < 3; p++) {
        int status = -1;
        T_CHECK(waitpid(pid[p], &status, 0) == pid[p] && WIFEXITED(status));
        total += WEXITSTATUS(status);
    }
    T_CHECK(total == UNITS);
}

static void *
thread_makes(void *arg)
{
    return (char *)arg + (make_and_call(&cache, 6) < 0);
}

static void
test_threads_make_at_once(void)
{
    pthread_t thread[3];
    char base[1];
    void *end;

    set_sources(6);
    for (int i = 0; i < 3; i++) {
        T_CHECK(pthread_create(&thread[i], NULL, thread_makes, base) == 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], &end);
        T_CHECK(end == base);
    }
}

static void
test_without_any_directory(void)
{
    BuildCache none = {.fd = -1, .build_id = (char *)"test"};

    set_sources(7);
    T_CHECK(make_and_call(&none, 7) == UNITS);  /* a place to work is enough */
    T_CHECK(none.count.failed == UNITS);
}

static void
test_memory_failure(void)
{
    bool whole = false;

    for (long n = 0; n < 200 && !whole; n += n < 40 ? 1 : 7) {
        BuildUnit unit[UNITS];
        CcStatus st = {CC_REASON_NONE, ""};
        set_sources(n < 3 ? 100 + (int)n : 8);  /* cold at first, then from the cache */
        set_units(unit);
        cc_mem_fail_after(n);
        bool made = build_make(&cache, &tool, unit, UNITS, &two_jobs, &st);
        whole = made && !cc_mem_failed();
        cc_mem_fail_after(-1);
        T_CHECK(made || st.reason == CC_REASON_NO_MEMORY || st.reason == CC_REASON_COMPILE_FAILED);
        for (int i = 0; i < UNITS; i++) {
            T_CHECK((unit[i].object != NULL) == made);
            build_object_unref(unit[i].object);
        }
    }
    T_CHECK(whole);
}

int
main(void)
{
    char command[80];
    CcStatus st;

    alarm(300);
    strcpy(top, "/tmp/ccloadXXXXXX");
    T_CHECK(mkdtemp(top) != NULL);
    setenv("TMPDIR", top, 1);
    snprintf(command, sizeof(command), "%s/cache", top);
    T_CHECK(build_cache_open(&cache, command, 0, "test", &st) && !cache.own);
    if (!build_toolchain_find(&tool, &cache, NULL, &two_jobs, &st)) {
        printf("no compiler to test with: %s\n", st.detail);
        return 1;
    }
    test_warm_and_damaged_cache();
    test_known_objects_need_no_compiler();
    test_entry_that_does_not_load();
    test_many_objects();
    test_references();
    test_bad_bytes();
    test_failing_unit();
    test_processes_compile_once();
    test_threads_make_at_once();
    test_without_any_directory();
    test_memory_failure();
    build_toolchain_fini(&tool);
    build_cache_close(&cache);
    snprintf(command, sizeof(command), "rm -r %s", top);
    T_CHECK(system(command) == 0);
    return t_failed != 0;
}
