/* build/load.h - verified bytes of a shared object -> callable kernels.
 *
 * What was verified is what is loaded: the bytes come from memory (build_cache_get), go into an
 * anonymous file of our own (memfd, sealed) and dlopen maps that. A path would be opened a second
 * time, and could by then be another file. It also loads where the disk is mounted noexec. Where
 * memfd does not exist or is forbidden, the bytes go to a new file in a new 0700 directory that is
 * removed right after dlopen.
 *
 * RTLD_NOW: a missing symbol fails here, not in a kernel. RTLD_LOCAL: objects do not see each
 * other. */
#ifndef CC_BUILD_LOAD_H
#define CC_BUILD_LOAD_H

#include "../base/status.h"
#include "cache.h"

#include <stdbool.h>
#include <stddef.h>

/* A loaded object; references are counted (any thread), the last one unloads it. */
typedef struct BuildObject BuildObject;

/* Load an object; the result holds one reference. NULL = LOAD_FAILED or NO_MEMORY. `cache` offers
 * the directory for the fallback. */
BuildObject *build_object_load(const BuildCache *cache, const void *bytes, size_t size,
                               CcStatus *st);

BuildObject *build_object_ref(BuildObject *o);
void build_object_unref(BuildObject *o);        /* NULL is allowed */

/* The address of an exported function, valid while a reference is held; LOAD_FAILED when absent. */
typedef void (*BuildFn)(void);
BuildFn build_object_find(const BuildObject *o, const char *name, CcStatus *st);

#endif
