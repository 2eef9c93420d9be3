/* build/proc.h - run one program to its end: argv, no shell, bounded output, time-out, interrupt.
 *
 * The child gets a process group of its own, /dev/null as input, default signal handling and
 * nothing unblocked that the program had blocked. When the run ends, for whatever reason, the whole
 * group is killed and the child is reaped: no zombie, no compiler left behind. */
#ifndef CC_BUILD_PROC_H
#define CC_BUILD_PROC_H

#include "../base/buf.h"
#include "../base/status.h"

#include <stdbool.h>
#include <sys/types.h>

/* How a caller bounds the work done for it. Zeroed = no interrupts, default time-out, one job. */
typedef struct {
    bool (*interrupted)(void *ctx);     /* polled about every 50 ms by the caller; may be NULL */
    void *ctx;
    double seconds;                     /* limit of one compiler run; 0 = BUILD_SECONDS */
    unsigned jobs;                      /* compilers at the same time; 0 = 1 */
} BuildRun;

enum { BUILD_SECONDS = 120, BUILD_OUTPUT = 16384, BUILD_POLL_MS = 50 };

typedef enum {
    BUILD_PROC_RUNNING,
    BUILD_PROC_EXITED,                  /* code = exit status */
    BUILD_PROC_KILLED,                  /* code = signal */
    BUILD_PROC_LOST,                    /* reaped by others (SIGCHLD ignored): code unknown */
    BUILD_PROC_TIMEOUT
} BuildProcEnd;

typedef struct {
    pid_t pid;
    int pipe;                           /* its stdout and stderr; -1 = closed */
    double deadline;
    BuildProcEnd end;
    int code;
    CcBuf output;                       /* at most BUILD_OUTPUT bytes, the first ones */
} BuildProc;

/* Start argv[0] (a path, not searched for) with environment `env`. On failure
 * nothing runs and nothing needs finishing. */
bool build_proc_start(BuildProc *p, char *const *argv, char *const *env, double seconds,
                      CcStatus *st);

/* Wait up to BUILD_POLL_MS for one of `n` processes to say or end something. */
void build_proc_poll(BuildProc **procs, unsigned n);

/* Kill the group if the process still runs, reap, free. `p` was started. */
void build_proc_fini(BuildProc *p);

/* Start, wait, end. False: it did not start, or INTERRUPTED. How it ended is in p->end;
 * `p` needs build_proc_fini in any case. */
bool build_proc_run(BuildProc *p, char *const *argv, char *const *env, const BuildRun *run,
                    CcStatus *st);

bool build_interrupted(const BuildRun *run);

/* All bytes, or false (errno says why, or the file is too short). EINTR is not an error. */
bool build_read_all(int fd, void *bytes, size_t size);
bool build_write_all(int fd, const void *bytes, size_t size);

/* Seconds of a clock that only goes forward. */
double build_now(void);

#endif
