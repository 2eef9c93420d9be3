#define _GNU_SOURCE
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool
build_interrupted(const BuildRun *run)
{
    return run->interrupted != NULL && run->interrupted(run->ctx);
}

double
build_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool
build_read_all(int fd, void *bytes, size_t size)
{
    for (char *at = bytes; size > 0;) {
        ssize_t got = read(fd, at, size);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        size -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool
build_write_all(int fd, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t put = write(fd, at, size);
        if (put <= 0 && !(put < 0 && errno == EINTR)) {
            return false;
        }
        at += put > 0 ? put : 0;
        size -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool
proc_pipe(int fd[2])
{
#ifdef __linux__
    return pipe2(fd, O_CLOEXEC) == 0;
#else
    if (pipe(fd) != 0) {
        return false;
    }
    fcntl(fd[0], F_SETFD, FD_CLOEXEC);
    fcntl(fd[1], F_SETFD, FD_CLOEXEC);
    return true;
#endif
}

/* posix_spawn with everything the child needs; 0 or an errno value. */
static int
proc_spawn(pid_t *pid, char *const *argv, char *const *env, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int bad = posix_spawn_file_actions_init(&files);

    if (bad != 0) {
        return bad;
    }
    bad = posix_spawnattr_init(&attr);
    if (bad != 0) {
        posix_spawn_file_actions_destroy(&files);
        return bad;
    }
    sigemptyset(&none);
    sigfillset(&all);
    bad = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    bad = bad ? bad : posix_spawn_file_actions_adddup2(&files, out, 1);
    bad = bad ? bad : posix_spawn_file_actions_adddup2(&files, out, 2);
    bad = bad ? bad : posix_spawnattr_setpgroup(&attr, 0);
    bad = bad ? bad : posix_spawnattr_setsigmask(&attr, &none);
    bad = bad ? bad : posix_spawnattr_setsigdefault(&attr, &all);
    bad = bad ? bad
              : posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    bad = bad ? bad : posix_spawn(pid, argv[0], &files, &attr, argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return bad;
}

bool
build_proc_start(BuildProc *p, char *const *argv, char *const *env, double seconds, CcStatus *st)
{
    int fd[2];

    memset(p, 0, sizeof(*p));
    p->pipe = -1;
    if (!proc_pipe(fd)) {
        return cc_fail(st, CC_REASON_COMPILE_FAILED, "no pipe: %s", strerror(errno));
    }
    int bad = proc_spawn(&p->pid, argv, env, fd[1]);
    close(fd[1]);
    if (bad != 0) {
        close(fd[0]);
        return cc_fail(st, CC_REASON_COMPILE_FAILED, "%s: %s", argv[0], strerror(bad));
    }
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    p->pipe = fd[0];
    p->end = BUILD_PROC_RUNNING;
    p->deadline = build_now() + (seconds > 0 ? seconds : BUILD_SECONDS);
    cc_buf_init(&p->output);
    return true;
}

/* Take what the child wrote; what is beyond the bound is read and dropped, so it never blocks. */
static void
proc_drain(BuildProc *p)
{
    char bytes[4096];

    while (p->pipe >= 0) {
        ssize_t got = read(p->pipe, bytes, sizeof(bytes));
        if (got > 0) {
            size_t room = BUILD_OUTPUT - p->output.len;
            cc_buf_put(&p->output, bytes, (size_t)got < room ? (size_t)got : room);
        } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
            close(p->pipe);
            p->pipe = -1;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* `end` RUNNING: it has ended, ask how. Else kill it for that reason. */
static void
proc_reap(BuildProc *p, BuildProcEnd end)
{
    int status = 0;
    pid_t got;

    kill(-p->pid, SIGKILL);             /* before reaping: until then the group's id is ours */
    do {
        got = waitpid(p->pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    if (end != BUILD_PROC_RUNNING) {
        p->end = end;
    } else if (got != p->pid) {
        p->end = BUILD_PROC_LOST;
    } else {
        p->end = WIFEXITED(status) ? BUILD_PROC_EXITED : BUILD_PROC_KILLED;
        p->code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    }
    proc_drain(p);
}

/* Look whether it ended; does not wait. */
static void
proc_check(BuildProc *p)
{
    siginfo_t info;

    proc_drain(p);
    memset(&info, 0, sizeof(info));
    int bad = waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (bad != 0 && errno == ECHILD) {
        p->end = BUILD_PROC_LOST;       /* its id may be somebody else's by now: no kill */
        proc_drain(p);
    } else if (info.si_pid == p->pid) {
        proc_reap(p, BUILD_PROC_RUNNING);
    } else if (build_now() > p->deadline) {
        proc_reap(p, BUILD_PROC_TIMEOUT);
    }
}

void
build_proc_poll(BuildProc **procs, unsigned n)
{
    struct pollfd fd[64];
    unsigned nfd = 0;
    int wait_ms = BUILD_POLL_MS;

    for (unsigned i = 0; i < n && nfd < 64; i++) {
        if (procs[i]->end == BUILD_PROC_RUNNING && procs[i]->pipe >= 0) {
            fd[nfd].fd = procs[i]->pipe;
            fd[nfd++].events = POLLIN;
        } else if (procs[i]->end == BUILD_PROC_RUNNING) {
            wait_ms = 1;                /* its output is closed: it is about to end */
        }
    }
    poll(fd, nfd, wait_ms);
    for (unsigned i = 0; i < n; i++) {
        if (procs[i]->end == BUILD_PROC_RUNNING) {
            proc_check(procs[i]);
        }
    }
}

void
build_proc_fini(BuildProc *p)
{
    if (p->pid > 0 && p->end == BUILD_PROC_RUNNING) {
        proc_reap(p, BUILD_PROC_KILLED);
    }
    if (p->pipe >= 0) {
        close(p->pipe);
    }
    cc_buf_fini(&p->output);
    p->pid = 0;
    p->pipe = -1;
}

bool
build_proc_run(BuildProc *p, char *const *argv, char *const *env, const BuildRun *run,
               CcStatus *st)
{
    if (!build_proc_start(p, argv, env, run->seconds, st)) {
        return false;
    }
    while (p->end == BUILD_PROC_RUNNING) {
        if (build_interrupted(run)) {
            return cc_fail(st, CC_REASON_INTERRUPTED, "while %s ran", argv[0]);
        }
        build_proc_poll(&p, 1);
    }
    return true;
}
