/* build/compile.h - one command over several texts, in a work directory of its own; used by
 * toolchain.c for kernels and for its test program. */
#ifndef CC_BUILD_COMPILE_H
#define CC_BUILD_COMPILE_H

#include "toolchain.h"

/* Called with each output file (path) of a finished command; false = failed, `st` filled. */
typedef bool (*BuildTake)(void *ctx, uint32_t index, const char *path, char *const *env,
                          CcStatus *st);

typedef struct {
    char *const *argv;                  /* command and flags, NULL at the end */
    const char *const *tail;            /* words after the input file, NULL at the end */
    BuildTake take;
    void *ctx;
} BuildCommand;

/* Run `argv -o OUT IN tail` for each text with done[i] false, and set it. When a place for the work
 * is full or not writable, the next one is tried (build_work_make). Same results as
 * build_toolchain_compile. */
bool build_compile(const BuildCommand *cmd, const BuildCache *c, const BuildText *text, bool *done,
                   uint32_t n, const BuildRun *run, CcStatus *st);

#endif
