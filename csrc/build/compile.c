#define _GNU_SOURCE
#include "compile.h"

#include "../base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    COMPILE_JOBS = 16,                  /* most compilers at the same time */
    COMPILE_PATH = 512,
    COMPILE_ROOM = 4 << 20,             /* a disk with less free bytes counts as full */
};

extern char **environ;

/* -- Environment and words of the command ------------------------------------------------ */

/* The environment for compilers: their temporary files go into `dir`, so they disappear with it;
 * messages are in English; nothing writes dependency files. One block, freed by cc_free. */
static char **
compile_env(const char *dir)
{
    static const char *const drop[] = {"TMPDIR=", "LC_ALL=", "DEPENDENCIES_OUTPUT=",
                                       "SUNPRO_DEPENDENCIES="};
    size_t count = 0, len = strlen(dir) + sizeof("TMPDIR=");

    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    char **env = cc_realloc(NULL, (count + 3) * sizeof(*env) + len);
    if (env == NULL) {
        return NULL;
    }
    char *temp = (char *)(env + count + 3);
    snprintf(temp, len, "TMPDIR=%s", dir);
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        bool keep = true;
        for (size_t k = 0; k < sizeof(drop) / sizeof(drop[0]); k++) {
            keep = keep && strncmp(environ[i], drop[k], strlen(drop[k])) != 0;
        }
        if (keep) {
            env[used++] = environ[i];
        }
    }
    env[used++] = temp;
    env[used++] = (char *)"LC_ALL=C";
    env[used] = NULL;
    return env;
}

/* `argv -o out in tail` in a new block; the strings are borrowed. */
static char **
compile_argv(const BuildCommand *cmd, const char *out, const char *in)
{
    const char *const middle[] = {"-o", out, in, NULL};
    const char *const *part[] = {(const char *const *)cmd->argv, middle, cmd->tail};
    size_t count = 1, used = 0;

    for (int p = 0; p < 3; p++) {
        for (const char *const *w = part[p]; *w != NULL; w++) {
            count++;
        }
    }
    char **argv = cc_realloc(NULL, count * sizeof(*argv));
    for (int p = 0; p < 3 && argv != NULL; p++) {
        for (const char *const *w = part[p]; *w != NULL; w++) {
            argv[used++] = (char *)(uintptr_t)*w;       /* execve's argument lacks the const */
        }
    }
    if (argv != NULL) {
        argv[used] = NULL;
    }
    return argv;
}

/* -- One place --------------------------------------------------------------------------------- */

typedef struct {
    const BuildCommand *cmd;
    const BuildText *text;
    bool *done;
    uint32_t n, next;                   /* texts; the first that was not looked at */
    const BuildRun *run;
    const char *dir;
    char **env;
    bool full;                          /* the place is full: elsewhere it may work */
    bool failed;
    CcStatus why;                       /* of the first failure */
    BuildProc proc[COMPILE_JOBS];
    uint32_t index[COMPILE_JOBS];       /* the text of each process */
    uint32_t running;
} CompileJob;

static bool
compile_path(const CompileJob *j, char path[COMPILE_PATH], uint32_t i, const char *suffix)
{
    return snprintf(path, COMPILE_PATH, "%s/u%u%s", j->dir, (unsigned)i, suffix) < COMPILE_PATH;
}

static void
compile_failed(CompileJob *j, const CcStatus *why)
{
    struct statvfs disk;

    if (!j->failed) {
        j->why = *why;
    }
    j->failed = true;
    if (statvfs(j->dir, &disk) == 0 && disk.f_bavail * disk.f_frsize < COMPILE_ROOM) {
        j->full = true;
    }
}

/* Write the text and start its compiler in slot j->running. */
static void
compile_start(CompileJob *j, uint32_t i)
{
    char in[COMPILE_PATH], out[COMPILE_PATH];
    char **argv = NULL;
    CcStatus st;
    bool good = compile_path(j, in, i, ".c") && compile_path(j, out, i, ".so");
    int fd = good ? open(in, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;

    good = fd >= 0 && build_write_all(fd, j->text[i].source, j->text[i].size);
    if (fd >= 0) {
        good = close(fd) == 0 && good;
    }
    if (!good) {
        j->full = true;
        cc_fail(&st, CC_REASON_COMPILE_FAILED, "%.80s: %s", j->dir, strerror(errno));
    } else if ((argv = compile_argv(j->cmd, out, in)) == NULL) {
        good = cc_fail(&st, CC_REASON_NO_MEMORY, "starting the compiler");
    } else {
        good = build_proc_start(&j->proc[j->running], argv, j->env, j->run->seconds, &st);
    }
    cc_free(argv);
    if (good) {
        j->index[j->running++] = i;
    } else {
        compile_failed(j, &st);
    }
}

/* The line of the output that says most: the first with "error", else the first. */
static void
compile_complaint(const BuildProc *p, CcStatus *st)
{
    const char *all = cc_buf_text(&p->output), *error = strstr(all, "error"), *line = all;

    for (const char *at = all; error != NULL && at < error; at++) {
        line = *at == '\n' ? at + 1 : line;
    }
    const char *dir = strstr(line, "/u");       /* the work directory's name says nothing */
    line = dir != NULL && error != NULL && dir < error ? dir + 1 : line;
    cc_fail(st, CC_REASON_COMPILE_FAILED, "%.*s", (int)strcspn(line, "\n"), line);
}

/* A process has ended: take its object. */
static void
compile_end(CompileJob *j, const BuildProc *p, uint32_t i)
{
    char out[COMPILE_PATH];
    CcStatus st;

    /* A lost exit status with neither words nor a missing file is success: compilers complain,
     * and remove what they could not finish. */
    bool good = p->end == BUILD_PROC_EXITED ? p->code == 0
                                            : p->end == BUILD_PROC_LOST && p->output.len == 0;
    if (good) {
        compile_path(j, out, i, ".so");
        good = j->cmd->take(j->cmd->ctx, i, out, j->env, &st);
        j->done[i] = good;
    } else if (p->end == BUILD_PROC_TIMEOUT) {
        cc_fail(&st, CC_REASON_COMPILE_FAILED, "not finished after %.0f s",
                j->run->seconds > 0 ? j->run->seconds : BUILD_SECONDS);
    } else if (p->output.len > 0) {
        compile_complaint(p, &st);
    } else if (p->end == BUILD_PROC_KILLED) {
        cc_fail(&st, CC_REASON_COMPILE_FAILED, "killed by signal %d", p->code);
    } else {
        cc_fail(&st, CC_REASON_COMPILE_FAILED, "exit status %d", p->code);
    }
    if (!good) {
        compile_failed(j, &st);
    }
}

static void
compile_fill(CompileJob *j, uint32_t jobs)
{
    while (j->running < jobs && j->next < j->n && !j->full) {
        uint32_t i = j->next++;
        if (!j->done[i]) {
            compile_start(j, i);
        }
    }
}

/* All texts in one place; false only when interrupted. */
static bool
compile_here(CompileJob *j, CcStatus *st)
{
    uint32_t jobs = j->run->jobs == 0 ? 1 : j->run->jobs;
    BuildProc *procs[COMPILE_JOBS];
    bool go = true;

    jobs = jobs > COMPILE_JOBS ? COMPILE_JOBS : jobs;
    for (compile_fill(j, jobs); go && j->running > 0; compile_fill(j, jobs)) {
        if (build_interrupted(j->run)) {
            go = cc_fail(st, CC_REASON_INTERRUPTED, "while the C compiler ran");
            break;
        }
        for (uint32_t s = 0; s < j->running; s++) {
            procs[s] = &j->proc[s];
        }
        build_proc_poll(procs, j->running);
        for (uint32_t s = 0; s < j->running;) {
            if (j->proc[s].end == BUILD_PROC_RUNNING) {
                s++;
                continue;
            }
            compile_end(j, &j->proc[s], j->index[s]);
            build_proc_fini(&j->proc[s]);
            j->running--;
            j->proc[s] = j->proc[j->running];
            j->index[s] = j->index[j->running];
        }
    }
    while (j->running > 0) {
        build_proc_fini(&j->proc[--j->running]);
    }
    return go;
}

bool
build_compile(const BuildCommand *cmd, const BuildCache *c, const BuildText *text, bool *done,
              uint32_t n, const BuildRun *run, CcStatus *st)
{
    CompileJob *j = cc_calloc(1, sizeof(*j));
    unsigned place = 0;
    bool go = true;
    char *dir = NULL;

    if (j == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "running the C compiler");
    }
    cc_fail(&j->why, CC_REASON_COMPILE_FAILED, "no directory to work in");
    j->failed = j->full = true;         /* so far nothing could be tried */
    while (go && j->full && (dir = build_work_make(c, &place)) != NULL) {
        *j = (CompileJob){.cmd = cmd, .text = text, .done = done, .n = n, .run = run, .dir = dir};
        j->env = compile_env(dir);
        if (j->env == NULL) {
            j->failed = true;
            cc_fail(&j->why, CC_REASON_NO_MEMORY, "running the C compiler");
        } else {
            go = compile_here(j, st);
        }
        build_work_remove(dir);
        cc_free(j->env);
        cc_free(dir);
    }
    bool good = go && !j->failed;
    if (go && !good) {
        *st = j->why;
    }
    cc_free(j);
    return good;
}
