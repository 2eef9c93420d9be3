/* The flags, and what each is for
 *
 *   -std=gnu11            vector types
 *   -O2                   as good as -O3 on explicit vector code, in half the time
 *   -fno-fast-math        undoes what the words of $CC may have said, first of all
 *   -ffp-contract=off     a * b + c rounds twice, as NumPy's two operations do
 *   -fno-math-errno       sqrt is one instruction; errno is not part of NumPy's results
 *   -fwrapv               integers wrap as NumPy's do, instead of undefined behaviour
 *   -fno-strict-aliasing  an array's bytes are read as what the program says they are
 *   -w                    nobody reads warnings of generated code
 *   -march=native         x86; elsewhere -mcpu=native; without it when the compiler refuses
 *
 * -ftrapping-math is not said: it is gcc's default, and clang 14 cannot compile vector code with
 * it.
 *
 * and for objects
 *
 *   -fPIC -shared
 *   -nostartfiles         no start-up code: above all never crtfastmath.o, which -ffast-math at
 *                         link time brings in and which turns on flush-to-zero for the process */
#define _GNU_SOURCE
#include "toolchain.h"

#include "../base/mem.h"
#include "compile.h"
#include "load.h"
#include "selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TOOL_WORDS = 64,                    /* most words of a command with its flags */
    TOOL_PATH = 1024,
    TOOL_TEST_SECONDS = 20,             /* limit of the test program, which needs milliseconds */
};

#ifdef __APPLE__
#define TOOL_NANOSECONDS(info) ((info)->st_mtimespec.tv_nsec)
#else
#define TOOL_NANOSECONDS(info) ((info)->st_mtim.tv_nsec)
#endif

extern char **environ;

static const char *const tool_flags[] = {
    "-std=gnu11", "-O2", "-fno-fast-math", "-ffp-contract=off", "-fno-math-errno",
    "-fwrapv", "-fno-strict-aliasing", "-w", "-fPIC", NULL};
#if defined(__x86_64__) || defined(__i386__)
static const char *const tool_native[] = {"-march=native", ""};
#else
static const char *const tool_native[] = {"-mcpu=native", "-march=native", ""};
#endif
#ifdef __APPLE__
static const char *const tool_shared[] = {"-dynamiclib", "-undefined", "dynamic_lookup", NULL};
#else
static const char *const tool_shared[] = {"-shared", "-nostartfiles", NULL};
#endif
static const char *const tool_tail[] = {"-lm", NULL};

/* -- Words -------------------------------------------------------------------------------- */

typedef struct {
    char *word[TOOL_WORDS + 1];         /* NULL at the end */
    uint32_t n;
} Words;

static void
words_fini(Words *w)
{
    while (w->n > 0) {
        cc_free(w->word[--w->n]);
    }
}

/* False: no memory or too many words. */
static bool
words_add(Words *w, const char *text, size_t len)
{
    char *copy = w->n < TOOL_WORDS ? cc_realloc(NULL, len + 1) : NULL;

    if (copy == NULL) {
        return false;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    w->word[w->n++] = copy;
    w->word[w->n] = NULL;
    return true;
}

static bool
words_add_all(Words *w, const char *const *text)
{
    for (; *text != NULL; text++) {
        if (!words_add(w, *text, strlen(*text))) {
            return false;
        }
    }
    return true;
}

/* Split as a shell does: blanks, '...', "...", backslash; no expansion of any kind. */
static bool
words_split(Words *w, const char *text)
{
    char word[TOOL_PATH];

    for (;;) {
        size_t len = 0;
        char quote = '\0';
        text += strspn(text, " \t\n");
        if (*text == '\0') {
            return true;
        }
        for (; *text != '\0' && (quote != '\0' || strchr(" \t\n", *text) == NULL); text++) {
            if (*text == quote) {
                quote = '\0';
                continue;
            }
            if (quote == '\0' && (*text == '\'' || *text == '"')) {
                quote = *text;
                continue;
            }
            if (*text == '\\' && quote != '\'' && text[1] != '\0') {
                text++;
            }
            if (len == sizeof(word)) {
                return false;
            }
            word[len++] = *text;
        }
        if (!words_add(w, word, len)) {
            return false;
        }
    }
}

/* -- Where a command is ------------------------------------------------------------------- */

static bool
tool_is_program(const char *path, struct stat *info)
{
    return stat(path, info) == 0 && S_ISREG(info->st_mode) && access(path, X_OK) == 0;
}

/* The path of a command; only absolute directories of PATH count, "." would be anybody's. */
static bool
tool_locate(const char *name, char path[TOOL_PATH], struct stat *info)
{
    const char *dirs = getenv("PATH");

    if (strchr(name, '/') != NULL) {
        return snprintf(path, TOOL_PATH, "%s", name) < TOOL_PATH && tool_is_program(path, info);
    }
    while (dirs != NULL && *dirs != '\0') {
        int len = (int)strcspn(dirs, ":");
        if (dirs[0] == '/' && snprintf(path, TOOL_PATH, "%.*s/%s", len, dirs, name) < TOOL_PATH &&
            tool_is_program(path, info)) {
            return true;
        }
        dirs += len + (dirs[len] == ':');
    }
    return false;
}

/* -- The test ----------------------------------------------------------------------------- */

typedef struct {
    BuildCache *cache;
    const BuildRun *run;
    bool located;                       /* one of the candidates exists */
    bool wrong;                         /* it compiled, and the program's results were wrong */
} ToolTest;

/* Run the test program. A process of its own: a bad compiler's code may do anything. */
static bool
test_program(void *ctx, uint32_t index, const char *path, char *const *env, CcStatus *st)
{
    ToolTest *t = ctx;
    BuildRun run = *t->run;
    BuildProc p;
    char *argv[] = {(char *)(uintptr_t)path, NULL};

    (void)index;
    run.seconds = TOOL_TEST_SECONDS;
    if (!build_proc_run(&p, argv, env, &run, st)) {
        build_proc_fini(&p);
        return false;
    }
    bool good = p.end == BUILD_PROC_EXITED && p.code == BUILD_SELFTEST_GOOD;
    t->wrong = p.end == BUILD_PROC_KILLED || (p.end == BUILD_PROC_EXITED && !good);
    if (!good) {
        cc_fail(st, CC_REASON_COMPILE_FAILED, "the test program %s %d",
                p.end == BUILD_PROC_EXITED ? "returned" : "ended with signal", p.code);
    }
    build_proc_fini(&p);
    return good;
}

static bool
tool_read(const char *path, uint8_t **bytes, size_t *size, CcStatus *st)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool good = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;

    *bytes = NULL;
    if (good) {
        *size = (size_t)info.st_size;
        *bytes = cc_realloc(NULL, *size);
        good = *bytes != NULL && build_read_all(fd, *bytes, *size);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (!good) {
        cc_free(*bytes);
        *bytes = NULL;
        cc_fail(st, CC_REASON_COMPILE_FAILED, "the compiler made no readable object");
    }
    return good;
}

/* Load the test object here and call it; the arithmetic was the program's to show. */
static bool
test_object(void *ctx, uint32_t index, const char *path, char *const *env, CcStatus *st)
{
    ToolTest *t = ctx;
    uint8_t *bytes;
    size_t size;

    (void)index, (void)env;
    if (!tool_read(path, &bytes, &size, st)) {
        return false;
    }
    BuildObject *o = build_object_load(t->cache, bytes, size, st);
    cc_free(bytes);
    BuildFn fn = o == NULL ? NULL : build_object_find(o, "cc_selftest", st);
    bool good = fn != NULL;
    if (good && ((int (*)(int))fn)(13) != 38) {
        t->wrong = true;
        good = cc_fail(st, CC_REASON_COMPILE_FAILED, "the test object returned a wrong result");
    }
    build_object_unref(o);
    return good;
}

/* Compile the test text with `argv` and give the result to `take`. */
static bool
test_one(char *const *argv, ToolTest *t, BuildTake take, CcStatus *st)
{
    BuildCommand cmd = {argv, tool_tail, take, t};
    BuildText text = {.source = build_selftest, .size = sizeof(build_selftest) - 1};
    bool done = false;

    return build_compile(&cmd, t->cache, &text, &done, 1, t->run, st);
}

/* The first line of `argv[0..nword-1] --version`; a compiler without it has none. */
static bool
test_version(char *const *argv, uint32_t nword, const BuildRun *run, char version[128],
             CcStatus *st)
{
    BuildRun quick = *run;
    BuildProc p;
    char *words[TOOL_WORDS + 2];

    version[0] = '\0';
    quick.seconds = TOOL_TEST_SECONDS;
    memcpy(words, argv, nword * sizeof(*words));
    words[nword] = (char *)"--version";
    words[nword + 1] = NULL;
    if (!build_proc_run(&p, words, environ, &quick, st)) {
        build_proc_fini(&p);
        return false;
    }
    if (p.end == BUILD_PROC_EXITED && p.code == 0) {
        const char *text = cc_buf_text(&p.output);
        snprintf(version, 128, "%.*s", (int)strcspn(text, "\n"), text);
    }
    build_proc_fini(&p);
    return true;
}

/* -- Verdicts ----------------------------------------------------------------------------- */

typedef struct {
    uint32_t good;
    char version[128];
} Verdict;

/* What the verdict, and each object, depends on. */
static void
verdict_key(BuildKeyMaker *m, const BuildCache *c, const Words *w, const struct stat *info,
            BuildKind kind)
{
    int64_t number[] = {(int64_t)info->st_size, (int64_t)info->st_mtime, TOOL_NANOSECONDS(info)};

    build_key_init(m, c, kind);
    build_key_add(m, number, sizeof(number));
    for (uint32_t i = 0; i < w->n; i++) {
        build_key_text(m, w->word[i]);
    }
    build_key_add(m, build_selftest, sizeof(build_selftest));
}

/* Test one compiler with one set of flags, or remember the last test. Only a wrong result condemns
 * for good: a full disk or a time-out may pass. */
static bool
verdict_of(const Words *w, uint32_t nword, const struct stat *info, ToolTest *t, Verdict *v,
           CcStatus *st)
{
    BuildKeyMaker m;
    size_t size;
    Words shared = {.n = 0};

    memset(v, 0, sizeof(*v));
    verdict_key(&m, t->cache, w, info, BUILD_VERDICT);
    BuildKey key = build_key_end(&m);
    Verdict *known = build_cache_get(t->cache, BUILD_VERDICT, &key, &size);
    if (known != NULL && size == sizeof(*v)) {
        *v = *known;
        cc_free(known);
        return v->good || cc_fail(st, CC_REASON_COMPILE_FAILED, "failed the test before");
    }
    cc_free(known);
    t->wrong = false;
    bool made = words_add_all(&shared, (const char *const *)w->word) &&
                words_add_all(&shared, tool_shared);
    if (!made) {
        words_fini(&shared);
        return cc_fail(st, CC_REASON_NO_MEMORY, "testing the compiler");
    }
    v->good = test_version(w->word, nword, t->run, v->version, st) &&
              test_one(w->word, t, test_program, st) && test_one(shared.word, t, test_object, st);
    words_fini(&shared);
    if (v->good || t->wrong) {
        build_cache_put(t->cache, BUILD_VERDICT, &key, v, sizeof(*v));
    }
    return v->good;
}

/* -- Finding
 * ----------------------------------------------------------------------------------------- */

static bool
tool_hopeless(const CcStatus *st)
{
    return st->reason == CC_REASON_INTERRUPTED || st->reason == CC_REASON_NO_MEMORY;
}

/* Hand the words and what is known over to `tc`. */
static bool
tool_adopt(BuildToolchain *tc, const Words *w, uint32_t nword, const Verdict *v, BuildKeyMaker *m,
           CcStatus *st)
{
    Words all = {.n = 0};
    size_t len = 1, used = 0;

    memset(tc, 0, sizeof(*tc));
    for (uint32_t i = nword; i < w->n; i++) {
        len += strlen(w->word[i]) + 1;
    }
    bool good = words_add_all(&all, (const char *const *)w->word) &&
                words_add_all(&all, tool_shared);
    tc->argv = good ? cc_realloc(NULL, (all.n + 1) * sizeof(*tc->argv)) : NULL;
    tc->flags = tc->argv != NULL ? cc_realloc(NULL, len) : NULL;
    if (tc->flags == NULL) {
        words_fini(&all);
        cc_free(tc->argv);
        tc->argv = NULL;
        return cc_fail(st, CC_REASON_NO_MEMORY, "finding the compiler");
    }
    memcpy(tc->argv, all.word, (all.n + 1) * sizeof(*tc->argv));
    tc->nargv = all.n;
    tc->nword = nword;
    tc->flags[0] = '\0';
    for (uint32_t i = nword; i < w->n; i++) {
        used += (size_t)sprintf(tc->flags + used, "%s%s", i > nword ? " " : "", w->word[i]);
    }
    memcpy(tc->version, v->version, sizeof(tc->version));
    tc->version[sizeof(tc->version) - 1] = '\0';
    build_key_text(m, tc->version);
    tc->identity = build_key_end(m);
    return true;
}

/* Try the command in `text` with each set of flags. */
static bool
tool_try(BuildToolchain *tc, const char *text, ToolTest *t, CcStatus *st)
{
    char path[TOOL_PATH];
    struct stat info;
    Words command = {.n = 0};
    bool good = false;

    if (!words_split(&command, text) || command.n == 0) {
        words_fini(&command);
        return cc_fail(st, CC_REASON_COMPILE_FAILED, "CC is not a command");
    }
    if (!tool_locate(command.word[0], path, &info)) {
        cc_fail(st, CC_REASON_COMPILE_FAILED, "%.100s: not found", command.word[0]);
        words_fini(&command);
        return false;
    }
    t->located = true;
    for (size_t i = 0; i < sizeof(tool_native) / sizeof(tool_native[0]) && !good; i++) {
        Words w = {.n = 0};
        Verdict v;
        BuildKeyMaker m;
        const char *native[] = {tool_native[i][0] == '\0' ? NULL : tool_native[i], NULL};
        good = words_add(&w, path, strlen(path)) &&
               words_add_all(&w, (const char *const *)command.word + 1) &&
               words_add_all(&w, tool_flags) && words_add_all(&w, native);
        if (!good) {
            cc_fail(st, CC_REASON_NO_MEMORY, "finding the compiler");
        } else {
            good = verdict_of(&w, command.n, &info, t, &v, st);
        }
        if (good) {
            verdict_key(&m, t->cache, &w, &info, BUILD_OBJECT);
            good = tool_adopt(tc, &w, command.n, &v, &m, st);
        }
        words_fini(&w);
        if (tool_hopeless(st)) {
            break;
        }
    }
    words_fini(&command);
    return good;
}

bool
build_toolchain_find(BuildToolchain *tc, BuildCache *c, const char *wish, const BuildRun *run,
                     CcStatus *st)
{
    static const char *const usual[] = {"cc", "gcc", "clang"};
    ToolTest t = {.cache = c, .run = run};
    CcStatus why = {CC_REASON_NONE, ""};
    bool good = false;

    wish = wish == NULL ? getenv("CC") : wish;
    if (wish != NULL && wish[strspn(wish, " \t\n")] != '\0') {
        good = tool_try(tc, wish, &t, &why);
    } else {
        for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && !good; i++) {
            CcStatus last = {CC_REASON_NONE, ""};
            bool known = t.located; /* an existing compiler's fault says more than "not found" */
            good = tool_try(tc, usual[i], &t, &last);
            why = known && !tool_hopeless(&last) ? why : last;
            if (tool_hopeless(&why)) {
                break;
            }
        }
    }
    if (!good && tool_hopeless(&why)) {
        *st = why;
    } else if (!good) {
        cc_fail(st, CC_REASON_NO_COMPILER, "%.150s", why.detail);
    }
    return good;
}

void
build_toolchain_fini(BuildToolchain *tc)
{
    for (uint32_t i = 0; i < tc->nargv; i++) {
        cc_free(tc->argv[i]);
    }
    cc_free(tc->argv);
    cc_free(tc->flags);
    memset(tc, 0, sizeof(*tc));
}

/* -- Compiling
 * ------------------------------------------------------------------------------------------ */

static bool
take_object(void *ctx, uint32_t index, const char *path, char *const *env, CcStatus *st)
{
    BuildText *text = ctx;

    (void)env;
    return tool_read(path, &text[index].object, &text[index].object_size, st);
}

bool
build_toolchain_compile(const BuildToolchain *tc, const BuildCache *c, BuildText *text, uint32_t n,
                        const BuildRun *run, CcStatus *st)
{
    BuildCommand cmd = {tc->argv, tool_tail, take_object, text};
    bool *done = cc_calloc(n, sizeof(*done));

    if (done == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "compiling");
    }
    for (uint32_t i = 0; i < n; i++) {
        done[i] = text[i].object != NULL;
    }
    bool good = build_compile(&cmd, c, text, done, n, run, st);
    cc_free(done);
    return good;
}
