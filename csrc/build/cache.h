/* build/cache.h - the disk cache: content-checked files in a directory that only we can write.
 *
 *   DIR/o-<64 hex>   a compiled object        level 2: text + flags + compiler + CPU + build
 *   DIR/p-<64 hex>   a plan                   level 1: IR text + layouts + options + build
 *   DIR/c-<64 hex>   a verdict on a compiler  path, time, size, flags, CPU
 *   DIR/lock-*       empty, for flock         DIR/t-*, w-*  being written, a compiler's work
 *
 * Each file is a 96-byte header (BuildHeader) and the payload. The hash covers the header's other
 * fields, the key included, and the payload: a file that was cut, changed, renamed or is of
 * another version is a miss and is removed. Files are written aside and renamed, so a reader sees
 * all or nothing.
 *
 * Invariants
 *   - Nothing is read from a directory or file that another user owns or may write, or through a
 *     link; all names are looked up in the directory that was checked (openat), not in what stands
 *     there later.
 *   - What get() returns are the bytes that were verified, in memory; nobody reads the file again.
 *   - No failure here is an error of the program: a full, read-only or unsafe disk means misses,
 *     counted.
 *
 * A BuildCache may be used by several threads. It never prints. The process must ignore SIGXFSZ, as
 * Python does, or a file size limit would end it instead of failing a write. */
#ifndef CC_BUILD_CACHE_H
#define CC_BUILD_CACHE_H

#include "../base/sha256.h"
#include "../base/status.h"
#include "proc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint8_t byte[CC_SHA256_SIZE];
} BuildKey;

typedef enum { BUILD_OBJECT, BUILD_PLAN, BUILD_VERDICT, BUILD_KIND__COUNT } BuildKind;

/* Host byte order: a cache directory belongs to one kind of machine (another one sees misses). */
typedef struct {
    char magic[8];                      /* "CCOMPILE" */
    uint32_t version;                   /* BUILD_CACHE_VERSION */
    uint32_t kind;                      /* BuildKind */
    uint64_t size;                      /* of the payload */
    uint64_t reserved;                  /* 0 */
    BuildKey key;
    uint8_t hash[CC_SHA256_SIZE];       /* of all fields above, then the payload */
} BuildHeader;

enum { BUILD_CACHE_VERSION = 1 };
_Static_assert(sizeof(BuildHeader) == 96, "the file format has no padding");

typedef struct {
    _Atomic uint64_t hits, misses;
    _Atomic uint64_t damaged;           /* files removed because they could not be trusted */
    _Atomic uint64_t stored, failed;    /* files written; writes that did not succeed */
    _Atomic uint64_t evicted;           /* files removed because of the size limit */
} BuildCacheCount;

typedef struct {
    char *dir;                          /* absolute; NULL = no directory at all, nothing is kept */
    int fd;                             /* the directory, -1 = none */
    bool own;                           /* a private one of this process, removed by close */
    pid_t pid;                          /* who opened it: a forked child removes nothing */
    uint64_t limit;                     /* bytes */
    char *build_id;                     /* part of each key */
    CcStatus why;                       /* reason NONE, or why the wished directory is not used */
    _Atomic uint64_t unswept;           /* bytes stored since the last clean-up */
    BuildCacheCount count;
} BuildCache;

/* Open the directory: `dir`, else $CCOMPILE_CACHE_DIR, else $XDG_CACHE_HOME/ccompile, else
 * $HOME/.cache/ccompile; missing ones are made with mode 0700. When it cannot be trusted or used,
 * `why` says so and a private temporary directory takes its place. `limit` 0 = 1 GB. `build_id`
 * names our version. False: no memory, nothing to close. */
bool build_cache_open(BuildCache *c, const char *dir, uint64_t limit, const char *build_id,
                      CcStatus *st);
void build_cache_close(BuildCache *c);

/* -- Keys: kind, build and CPU, then the caller's parts, each with its length ------------ */

typedef CcSha256 BuildKeyMaker;

void build_key_init(BuildKeyMaker *m, const BuildCache *c, BuildKind kind);
void build_key_add(BuildKeyMaker *m, const void *part, size_t len);
void build_key_text(BuildKeyMaker *m, const char *part);
BuildKey build_key_end(BuildKeyMaker *m);

/* -- Entries ------------------------------------------------------------------------------- */

/* The payload in a new block (cc_free), or NULL: a miss, or no memory. */
void *build_cache_get(BuildCache *c, BuildKind kind, const BuildKey *key, size_t *size);

/* Keep a payload; false = it was not kept (counted). */
bool build_cache_put(BuildCache *c, BuildKind kind, const BuildKey *key, const void *payload,
                     size_t size);

/* Remove an entry whose content proved useless. */
void build_cache_drop(BuildCache *c, BuildKind kind, const BuildKey *key);

/* Level 1: the objects of a plan, in order, and what the plan itself wants to keep. */
typedef struct {
    uint32_t count;
    BuildKey *object;                   /* owned */
    uint32_t size;
    uint8_t *blob;                      /* owned */
} BuildPlan;

bool build_plan_get(BuildCache *c, const BuildKey *key, BuildPlan *plan);
bool build_plan_put(BuildCache *c, const BuildKey *key, const BuildPlan *plan);
void build_plan_fini(BuildPlan *plan);

/* -- Locks between processes ------------------------------------------------------------------ */

/* Stripe of a key. Take several in ascending order, each once, or two processes wait for
 * each other. */
uint8_t build_lock_stripe(const BuildKey *key);

/* Take the stripe's lock; wait for its holder at most as long as one compiler may run. *lock -1 =
 * none (read-only disk, waited too long): go on without, work is done twice at worst. False:
 * INTERRUPTED, nothing is held. */
bool build_lock_take(BuildCache *c, uint8_t stripe, const BuildRun *run, int *lock, CcStatus *st);
void build_lock_drop(int lock);

/* -- Work and space -------------------------------------------------------------------------- */

/* Make a private directory for a compiler, path in a new block (cc_free). *place starts at 0; each
 * further call with it tries the next place: $TMPDIR, /tmp, /dev/shm, the cache. NULL = no more. */
char *build_work_make(const BuildCache *c, unsigned *place);

/* Remove such a directory and its files. */
void build_work_remove(const char *path);

/* Remove the entries used longest ago until 4/5 of the limit are left, and leftovers of killed
 * processes. put() calls it when it is due. */
void build_cache_sweep(BuildCache *c);

#endif
