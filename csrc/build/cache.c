#define _GNU_SOURCE
#include "cache.h"

#include "../base/mem.h"
#include "../base/vec.h"
#include "cpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CACHE_NAME = 80,                    /* room for the longest of our file names */
    CACHE_TOUCH = 3600,                 /* seconds after which a hit renews the file's time */
    CACHE_SWEEP = 3600,                 /* seconds between clean-ups, over all processes */
    CACHE_STALE = 3600,                 /* age of a leftover of a killed process */
    CACHE_SHARE = 16,                   /* clean up after storing 1 / CACHE_SHARE of the limit */
};
static const uint64_t cache_default_limit = (uint64_t)1 << 30;
static const uint64_t cache_largest_file = (uint64_t)1 << 28;
static const char cache_letter[BUILD_KIND__COUNT] = {'o', 'p', 'c'};

/* -- The directory ----------------------------------------------------------------- */

static char *
cache_join(const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = cc_realloc(NULL, size);

    if (path != NULL) {
        snprintf(path, size, "%s/%s", dir, name);
    }
    return path;
}

/* The wished directory as an absolute path in a new block. Without any wish, or without memory
 * (the status says so), NULL. */
static char *
cache_wish(const char *dir, CcStatus *st)
{
    const char *ours = getenv("CCOMPILE_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME"), *tail = "";
    char here[4096] = "";

    if (dir == NULL && ours != NULL && ours[0] != '\0') {
        dir = ours;
    } else if (dir == NULL && xdg != NULL && xdg[0] == '/') {
        dir = xdg;                      /* its standard: relative ones are to be ignored */
        tail = "ccompile";
    } else if (dir == NULL && home != NULL && home[0] == '/') {
        dir = home;
        tail = ".cache/ccompile";
    }
    if (dir == NULL) {
        cc_fail(st, CC_REASON_CACHE_UNSAFE, "no CCOMPILE_CACHE_DIR and no HOME");
        return NULL;
    }
    if (dir[0] != '/' && getcwd(here, sizeof(here)) == NULL) {
        cc_fail(st, CC_REASON_CACHE_UNSAFE, "%s is relative to an unknown directory", dir);
        return NULL;
    }
    char *joined = cache_join(dir, tail);
    char *path = joined == NULL || dir[0] == '/' ? joined : cache_join(here, joined);
    if (path != joined) {
        cc_free(joined);
    }
    if (path == NULL) {
        cc_fail(st, CC_REASON_NO_MEMORY, "name of the cache directory");
        return NULL;
    }
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--) {
        path[len - 1] = '\0';           /* a trailing slash would follow a link */
    }
    return path;
}

/* Make what is missing of a path, parents first. Errors show when it is opened. */
static void
cache_make_dirs(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
}

/* Open a directory that is ours alone; -1 = it is not, and why. */
static int
cache_open_dir(const char *path, CcStatus *st)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0) {
        cc_fail(st, CC_REASON_CACHE_UNSAFE, "%.110s: %s", path,
                errno == ELOOP ? "a symbolic link" : strerror(errno));
        return -1;
    }
    if (fstat(fd, &info) != 0 || info.st_uid != geteuid()) {
        cc_fail(st, CC_REASON_CACHE_UNSAFE, "%.110s: owned by another user", path);
    } else if ((info.st_mode & 077) != 0) {
        cc_fail(st, CC_REASON_CACHE_UNSAFE, "%.110s: mode %03o is not 700", path,
                (unsigned)info.st_mode & 0777);
    } else {
        return fd;
    }
    close(fd);
    return -1;
}

/* A new directory of mode 0700 in the `place`-th temporary place; NULL = not there. */
static char *
cache_temp_dir(unsigned place, const char *name)
{
    const char *dir = place == 0 ? getenv("TMPDIR") : place == 1 ? "/tmp" : "/dev/shm";
    char *path = dir == NULL || dir[0] != '/' ? NULL : cache_join(dir, name);

    if (path != NULL && mkdtemp(path) == NULL) {
        cc_free(path);
        path = NULL;
    }
    return path;
}

bool
build_cache_open(BuildCache *c, const char *dir, uint64_t limit, const char *build_id,
                 CcStatus *st)
{
    memset(c, 0, sizeof(*c));
    c->fd = -1;
    c->limit = limit == 0 ? cache_default_limit : limit;
    c->pid = getpid();
    c->build_id = cc_realloc(NULL, strlen(build_id) + 1);
    if (c->build_id == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "opening the cache");
    }
    strcpy(c->build_id, build_id);
    c->dir = cache_wish(dir, &c->why);
    if (c->dir != NULL) {
        cache_make_dirs(c->dir);
        c->fd = cache_open_dir(c->dir, &c->why);
    }
    for (unsigned place = 0; place < 3 && c->fd < 0; place++) {
        cc_free(c->dir);
        c->dir = cache_temp_dir(place, "ccompile-XXXXXX");
        if (c->dir != NULL) {
            CcStatus unused;
            c->fd = cache_open_dir(c->dir, &unused);
            c->own = c->fd >= 0;
        }
    }
    return true;
}

/* Remove the files of a directory, not of directories in it, then itself. */
static void
cache_remove_dir(const char *path)
{
    DIR *list = opendir(path);
    struct dirent *entry;

    if (list != NULL) {
        while ((entry = readdir(list)) != NULL) {
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
                unlinkat(dirfd(list), entry->d_name, 0);
            }
        }
        closedir(list);
    }
    rmdir(path);
}

void
build_cache_close(BuildCache *c)
{
    if (c->own && c->pid == getpid()) {
        cache_remove_dir(c->dir);
    }
    if (c->fd >= 0) {
        close(c->fd);
    }
    cc_free(c->dir);
    cc_free(c->build_id);
    c->dir = NULL;
    c->build_id = NULL;
    c->fd = -1;
    c->own = false;
}

/* -- Keys ------------------------------------------------------------------------------- */

void
build_key_add(BuildKeyMaker *m, const void *part, size_t len)
{
    uint64_t size = len;

    cc_sha256_add(m, &size, sizeof(size));
    cc_sha256_add(m, part, len);
}

void
build_key_text(BuildKeyMaker *m, const char *part)
{
    build_key_add(m, part, strlen(part));
}

void
build_key_init(BuildKeyMaker *m, const BuildCache *c, BuildKind kind)
{
    uint32_t cpu[BUILD_CPU_WORDS];

    build_cpu(cpu);
    cc_sha256_init(m);
    build_key_add(m, &cache_letter[kind], 1);
    build_key_add(m, cpu, sizeof(cpu));
    build_key_text(m, c->build_id);
}

BuildKey
build_key_end(BuildKeyMaker *m)
{
    BuildKey key;

    cc_sha256_end(m, key.byte);
    return key;
}

/* -- Entries ------------------------------------------------------------------------------ */

static void
cache_name(char name[CACHE_NAME], BuildKind kind, const BuildKey *key)
{
    name[0] = cache_letter[kind];
    name[1] = '-';
    cc_sha256_hex(key->byte, name + 2);
}

static void
cache_header(BuildHeader *h, BuildKind kind, const BuildKey *key, const void *payload, size_t size)
{
    CcSha256 sha;

    memset(h, 0, sizeof(*h));
    memcpy(h->magic, "CCOMPILE", sizeof(h->magic));
    h->version = BUILD_CACHE_VERSION;
    h->kind = kind;
    h->size = size;
    h->key = *key;
    cc_sha256_init(&sha);
    cc_sha256_add(&sha, h, offsetof(BuildHeader, hash));
    cc_sha256_add(&sha, payload, size);
    cc_sha256_end(&sha, h->hash);
}

typedef enum { CACHE_GOOD, CACHE_DAMAGED, CACHE_UNREADABLE } CacheLook;

/* Read and verify an open entry. UNREADABLE: no memory or a disk error, the file may be good. */
static CacheLook
cache_read_entry(int fd, BuildKind kind, const BuildKey *key, uint8_t **payload, size_t *size)
{
    struct stat info;
    BuildHeader found, want;

    if (fstat(fd, &info) != 0) {
        return CACHE_UNREADABLE;
    }
    if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022) != 0 ||
        (uint64_t)info.st_size < sizeof(found) || (uint64_t)info.st_size > cache_largest_file) {
        return CACHE_DAMAGED;
    }
    *size = (size_t)info.st_size - sizeof(found);
    *payload = cc_realloc(NULL, *size);
    if (*payload == NULL || !build_read_all(fd, &found, sizeof(found)) ||
        !build_read_all(fd, *payload, *size)) {
        return CACHE_UNREADABLE;
    }
    cache_header(&want, kind, key, *payload, *size);
    if (memcmp(&found, &want, sizeof(found)) != 0) {
        return CACHE_DAMAGED;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec - info.st_mtime > CACHE_TOUCH) {
        futimens(fd, NULL);             /* the clean-up goes by this time */
    }
    return CACHE_GOOD;
}

void *
build_cache_get(BuildCache *c, BuildKind kind, const BuildKey *key, size_t *size)
{
    char name[CACHE_NAME];
    uint8_t *payload = NULL;
    CacheLook look = CACHE_UNREADABLE;

    if (c->fd >= 0) {
        cache_name(name, kind, key);
        int fd = openat(c->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0) {
            look = cache_read_entry(fd, kind, key, &payload, size);
            close(fd);
        } else if (errno == ELOOP) {
            look = CACHE_DAMAGED;       /* a link is never ours */
        }
    }
    if (look == CACHE_GOOD) {
        atomic_fetch_add(&c->count.hits, 1);
        return payload;
    }
    cc_free(payload);
    atomic_fetch_add(&c->count.misses, 1);
    if (look == CACHE_DAMAGED) {
        atomic_fetch_add(&c->count.damaged, 1);
        build_cache_drop(c, kind, key);
    }
    return NULL;
}

void
build_cache_drop(BuildCache *c, BuildKind kind, const BuildKey *key)
{
    char name[CACHE_NAME];

    if (c->fd >= 0) {
        cache_name(name, kind, key);
        unlinkat(c->fd, name, 0);
    }
}

/* Write header and payload under a name of this call, then rename. */
static bool
cache_write_entry(int dir, const char *name, const BuildHeader *h, const void *payload)
{
    char temp[CACHE_NAME];
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

    /* One thread of one process has this stack address, so the name is ours. */
    snprintf(temp, sizeof(temp), "t-%ld-%llx", (long)getpid(), (unsigned long long)(uintptr_t)temp);
    int fd = openat(dir, temp, flags, 0600);
    if (fd < 0 && errno == EEXIST) {    /* left by a killed process that had our number */
        unlinkat(dir, temp, 0);
        fd = openat(dir, temp, flags, 0600);
    }
    if (fd < 0) {
        return false;
    }
    bool good = build_write_all(fd, h, sizeof(*h)) && build_write_all(fd, payload, h->size);
    good = close(fd) == 0 && good;      /* some disks report "full" only here */
    good = good && renameat(dir, temp, dir, name) == 0;
    if (!good) {
        unlinkat(dir, temp, 0);
    }
    return good;
}

/* Whether a clean-up is due: much stored, or the first entry of this process and the last
 * clean-up of anybody is old. */
static bool
cache_due(BuildCache *c, uint64_t size)
{
    struct stat info;
    struct timespec now;
    uint64_t before = atomic_fetch_add(&c->unswept, size);

    if (before + size > c->limit / CACHE_SHARE) {
        return true;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    return before == 0 && (fstatat(c->fd, "lock-sweep", &info, AT_SYMLINK_NOFOLLOW) != 0 ||
                           now.tv_sec - info.st_mtime > CACHE_SWEEP);
}

bool
build_cache_put(BuildCache *c, BuildKind kind, const BuildKey *key, const void *payload,
                size_t size)
{
    BuildHeader header;
    char name[CACHE_NAME];
    bool good = false;

    if (c->fd >= 0 && size <= cache_largest_file - sizeof(header)) {
        cache_name(name, kind, key);
        cache_header(&header, kind, key, payload, size);
        good = cache_write_entry(c->fd, name, &header, payload);
    }
    atomic_fetch_add(good ? &c->count.stored : &c->count.failed, 1);
    if (good && cache_due(c, size + sizeof(header))) {
        build_cache_sweep(c);
    }
    return good;
}

/* -- Plans: count, size, the objects' keys, the blob ---------------------------------------- */

void
build_plan_fini(BuildPlan *plan)
{
    cc_free(plan->object);
    cc_free(plan->blob);
    memset(plan, 0, sizeof(*plan));
}

bool
build_plan_get(BuildCache *c, const BuildKey *key, BuildPlan *plan)
{
    size_t size, keys;
    uint8_t *bytes = build_cache_get(c, BUILD_PLAN, key, &size);

    memset(plan, 0, sizeof(*plan));
    if (bytes == NULL) {
        return false;
    }
    if (size >= 8) {
        memcpy(&plan->count, bytes, 4);
        memcpy(&plan->size, bytes + 4, 4);
    }
    keys = (size_t)plan->count * sizeof(BuildKey);
    bool good = size >= 8 && size == 8 + keys + plan->size;
    if (good) {
        plan->object = cc_realloc(NULL, keys);
        plan->blob = cc_realloc(NULL, plan->size);
        good = plan->object != NULL && plan->blob != NULL;
    }
    if (good) {
        memcpy(plan->object, bytes + 8, keys);
        memcpy(plan->blob, bytes + 8 + keys, plan->size);
    } else {
        build_plan_fini(plan);
    }
    cc_free(bytes);
    return good;
}

bool
build_plan_put(BuildCache *c, const BuildKey *key, const BuildPlan *plan)
{
    size_t keys = (size_t)plan->count * sizeof(BuildKey), size = 8 + keys + plan->size;
    uint8_t *bytes = cc_realloc(NULL, size);

    if (bytes == NULL) {
        atomic_fetch_add(&c->count.failed, 1);
        return false;
    }
    memcpy(bytes, &plan->count, 4);
    memcpy(bytes + 4, &plan->size, 4);
    if (keys > 0) {
        memcpy(bytes + 8, plan->object, keys);
    }
    if (plan->size > 0) {
        memcpy(bytes + 8 + keys, plan->blob, plan->size);
    }
    bool good = build_cache_put(c, BUILD_PLAN, key, bytes, size);
    cc_free(bytes);
    return good;
}

/* -- Locks ------------------------------------------------------------------------------------ */

uint8_t
build_lock_stripe(const BuildKey *key)
{
    return key->byte[0] & 63;
}

static int
lock_open(BuildCache *c, const char *name)
{
    return c->fd < 0 ? -1 : openat(c->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

bool
build_lock_take(BuildCache *c, uint8_t stripe, const BuildRun *run, int *lock, CcStatus *st)
{
    const struct timespec nap = {0, BUILD_POLL_MS * 1000000L / 2};
    double until = build_now() + (run->seconds > 0 ? run->seconds : BUILD_SECONDS);
    char name[CACHE_NAME];

    snprintf(name, sizeof(name), "lock-%02x", stripe);
    *lock = lock_open(c, name);
    while (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) != 0) {
        bool wait = errno == EWOULDBLOCK || errno == EINTR;
        bool stop = build_interrupted(run);
        if (stop || !wait || build_now() > until) {
            close(*lock);
            *lock = -1;
            return !stop || cc_fail(st, CC_REASON_INTERRUPTED, "waiting for another compilation");
        }
        nanosleep(&nap, NULL);
    }
    return true;
}

void
build_lock_drop(int lock)
{
    if (lock >= 0) {
        flock(lock, LOCK_UN);           /* a child forked meanwhile has the descriptor too */
        close(lock);
    }
}

/* -- Work and space -------------------------------------------------------------------------- */

char *
build_work_make(const BuildCache *c, unsigned *place)
{
    char *path = NULL;

    while (path == NULL && *place < 3) {
        path = cache_temp_dir((*place)++, "ccompile-w-XXXXXX");
    }
    if (path == NULL && *place == 3 && c->fd >= 0) {
        ++*place;
        path = cache_join(c->dir, "w-XXXXXX");
        if (path != NULL && mkdtemp(path) == NULL) {
            cc_free(path);
            path = NULL;
        }
    }
    return path;
}

void
build_work_remove(const char *path)
{
    cache_remove_dir(path);
}

typedef struct {
    char name[CACHE_NAME];
    int64_t when;
    uint64_t size;
} SweepFile;

static int
sweep_older(const void *a, const void *b)
{
    const SweepFile *x = a, *y = b;

    return x->when != y->when ? (x->when < y->when ? -1 : 1) : strcmp(x->name, y->name);
}

static bool
sweep_is_entry(const char *name)
{
    return strlen(name) == 2 * CC_SHA256_SIZE + 2 && name[1] == '-' &&
           memchr(cache_letter, name[0], sizeof(cache_letter)) != NULL;
}

/* A leftover: remove it when it is old. */
static void
sweep_leftover(const BuildCache *c, const char *name, int64_t age)
{
    if (age <= CACHE_STALE) {
        return;
    }
    if (strncmp(name, "t-", 2) == 0) {
        unlinkat(c->fd, name, 0);
    } else if (strncmp(name, "w-", 2) == 0) {
        char *path = cache_join(c->dir, name);
        if (path != NULL) {
            cache_remove_dir(path);
            cc_free(path);
        }
    }
}

/* List the entries; false = no memory or unreadable, `*file` is to be freed in any case. */
static bool
sweep_list(const BuildCache *c, SweepFile **file, uint32_t *count, uint64_t *total)
{
    uint32_t cap = 0;
    struct dirent *entry;
    struct stat info;
    struct timespec now;
    bool good = true;
    int fd = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);

    if (list == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    while (good && (entry = readdir(list)) != NULL) {
        if (fstatat(c->fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (!sweep_is_entry(entry->d_name)) {
            sweep_leftover(c, entry->d_name, now.tv_sec - info.st_mtime);
            continue;
        }
        good = CC_GROW(*file, *count, cap, 1);
        if (good) {
            SweepFile *f = &(*file)[(*count)++];
            memcpy(f->name, entry->d_name, 2 * CC_SHA256_SIZE + 3);
            f->when = (int64_t)info.st_mtime;
            f->size = (uint64_t)info.st_size;
            *total += f->size;
        }
    }
    closedir(list);
    return good;
}

void
build_cache_sweep(BuildCache *c)
{
    SweepFile *file = NULL;
    uint32_t count = 0;
    uint64_t total = 0;
    int lock = lock_open(c, "lock-sweep");

    atomic_store(&c->unswept, 1);       /* not 0: the first entry was long ago */
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
        if (lock >= 0) {
            close(lock);                /* another process is at it */
        }
        return;
    }
    futimens(lock, NULL);
    if (sweep_list(c, &file, &count, &total) && total > c->limit) {
        qsort(file, count, sizeof(*file), sweep_older);
        for (uint32_t i = 0; i < count && total > c->limit / 5 * 4; i++) {
            if (unlinkat(c->fd, file[i].name, 0) == 0) {
                total -= file[i].size;
                atomic_fetch_add(&c->count.evicted, 1);
            }
        }
    }
    cc_free(file);
    build_lock_drop(lock);
}
