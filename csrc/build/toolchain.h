/* build/toolchain.h - the system's C compiler: found, tested once, run.
 *
 * Candidates are $CC (split into words as a shell would, without running one), or, when CC is not
 * set, cc, gcc and clang from the absolute directories of PATH. A set CC is the only candidate: it
 * is a wish.
 *
 * A compiler is used only after it has shown, by a program run in a process of its own and by an
 * object loaded here, that it knows vector types, keeps IEEE results (no contraction, no
 * reassociation, NaN, signed zero and denormals as they are), wraps signed integers and makes
 * loadable objects. tcc takes vector_size and ignores it: it would compile every kernel to wrong
 * results. The verdict is kept on disk under the compiler's path, time, size and words, the flags
 * and the CPU.
 *
 * The flags (toolchain.c says why each) come after the words of $CC, so they win over -ffast-math
 * or -Ofast in it. Units are complete C texts; nothing is included, so CPATH and the like have no
 * influence. */
#ifndef CC_BUILD_TOOLCHAIN_H
#define CC_BUILD_TOOLCHAIN_H

#include "cache.h"
#include "proc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char **argv;                        /* words of the command and flags, NULL at the end; owned */
    uint32_t nargv, nword;              /* all; those of the command */
    char *flags;                        /* the flags as one text, for reports; owned */
    char version[128];                  /* first line of --version, "" = it has none */
    BuildKey identity;                  /* part of each object's key */
} BuildToolchain;

/* Find a compiler that passes the test; `wish`, unless NULL, takes the place of $CC. False:
 * NO_COMPILER (the detail is the fault of the first that exists), INTERRUPTED or NO_MEMORY; `tc`
 * needs no fini then. */
bool build_toolchain_find(BuildToolchain *tc, BuildCache *c, const char *wish, const BuildRun *run,
                          CcStatus *st);
void build_toolchain_fini(BuildToolchain *tc);

/* A text to compile, and what became of it. */
typedef struct {
    const char *source;                 /* borrowed */
    size_t size;
    uint8_t *object;                    /* owned (cc_free); NULL = not compiled */
    size_t object_size;
} BuildText;

/* Compile those of `n` texts that have no object yet, run->jobs at a time. False: the reason of the
 * first that failed, COMPILE_FAILED with the compiler's first complaint; or INTERRUPTED or
 * NO_MEMORY. The others may have objects. */
bool build_toolchain_compile(const BuildToolchain *tc, const BuildCache *c, BuildText *text,
                             uint32_t n, const BuildRun *run, CcStatus *st);

#endif
