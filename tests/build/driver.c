/* tests/build/driver.c - csrc/build/ as a program, for the tests in Python.
 *
 *     driver DIR put TEXT...        keep each text as an object, a plan and a verdict
 *     driver DIR get TEXT...        print "hit" or "miss" of the object of each text
 *     driver DIR make SALT COUNT    compile COUNT kernels and call them; print how many were compiled,
 *                                   then the cache's counters
 * The status of a failure goes to stdout, exit status 1. */
#include "../../csrc/base/mem.h"
#include "../../csrc/build/make.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static BuildKey
key_of(const BuildCache *c, BuildKind kind, const char *text)
{
    BuildKeyMaker m;

    build_key_init(&m, c, kind);
    build_key_text(&m, text);
    return build_key_end(&m);
}

static int
put_or_get(BuildCache *c, bool put, char **text)
{
    for (; *text != NULL; text++) {
        size_t size;
        for (int kind = 0; put && kind < BUILD_KIND__COUNT; kind++) {
            BuildKey key = key_of(c, (BuildKind)kind, *text);
            build_cache_put(c, (BuildKind)kind, &key, *text, strlen(*text));
        }
        if (!put) {
            BuildKey key = key_of(c, BUILD_OBJECT, *text);
            void *got = build_cache_get(c, BUILD_OBJECT, &key, &size);
            puts(got != NULL && size == strlen(*text) && memcmp(got, *text, size) == 0 ? "hit"
                                                                                       : "miss");
            cc_free(got);
        }
    }
    return 0;
}

static bool
make(BuildCache *c, int salt, int count, CcStatus *st)
{
    static char source[64][100];
    static BuildUnit unit[64];
    BuildRun run = {.jobs = 2, .seconds = 60};
    BuildToolchain tc;
    int compiled = 0;
    bool good = build_toolchain_find(&tc, c, NULL, &run, st);

    if (!good) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        snprintf(source[i], sizeof(source[i]), "int kernel(int x) { return x * %d + %d; }", i, salt);
        unit[i] = (BuildUnit){.source = source[i], .size = strlen(source[i])};
    }
    good = build_make(c, &tc, unit, (uint32_t)count, &run, st);
    for (int i = 0; good && i < count; i++) {
        BuildFn fn = build_object_find(unit[i].object, "kernel", st);
        good = fn != NULL && ((int (*)(int))fn)(7) == 7 * i + salt;
        compiled += unit[i].compiled;
        build_object_unref(unit[i].object);
    }
    build_toolchain_fini(&tc);
    printf("%d %s failed=%d damaged=%d\n", compiled, cc_reason_name(c->why.reason),
           (int)c->count.failed, (int)c->count.damaged);
    return good;
}

int
main(int argc, char **argv)
{
    BuildCache c;
    CcStatus st = {CC_REASON_NONE, ""};
    int bad = 2;

    signal(SIGXFSZ, SIG_IGN);           /* as Python does */
    if (argc < 3 || !build_cache_open(&c, argv[1][0] == '\0' ? NULL : argv[1], 0, "driver", &st)) {
        return bad;
    }
    if (strcmp(argv[2], "make") == 0 && argc == 5) {
        int count = atoi(argv[4]);
        bad = count < 0 || count > 64 || !make(&c, atoi(argv[3]), count, &st);
        if (bad) {
            printf("%s: %s\n", cc_reason_name(st.reason), st.detail);
        }
    } else if (strcmp(argv[2], "put") == 0 || strcmp(argv[2], "get") == 0) {
        bad = put_or_get(&c, argv[2][0] == 'p', argv + 3);
    }
    build_cache_close(&c);
    return bad;
}
