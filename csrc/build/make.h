/* build/make.h - C texts -> loaded objects, through the cache: all that core/ needs of build/.
 *
 * For each unit: its object from the cache; what is missing is compiled together, under locks, so
 * that two processes with the same need compile once. An object that verifies but does not load
 * (made on another system, say) is dropped and compiled again. */
#ifndef CC_BUILD_MAKE_H
#define CC_BUILD_MAKE_H

#include "load.h"
#include "toolchain.h"

typedef struct {
    const char *source;                 /* a complete C text; borrowed */
    size_t size;
    BuildKey key;                       /* out: the object's name, for a plan */
    BuildObject *object;                /* out: one reference, the caller's */
    bool compiled;                      /* out: not from the cache */
} BuildUnit;

/* Make all units. False: COMPILE_FAILED, LOAD_FAILED, INTERRUPTED or NO_MEMORY of the first that
 * failed; no unit holds an object then (what was compiled stays in the cache). */
bool build_make(BuildCache *c, const BuildToolchain *tc, BuildUnit *unit, uint32_t n,
                const BuildRun *run, CcStatus *st);

/* A warm start: load the `n` objects of a plan by name, no compiler needed. False = one of them is
 * missing or does not load; `object` holds nothing then. */
bool build_make_known(BuildCache *c, const BuildKey *key, BuildObject **object, uint32_t n);

#endif
