#define _GNU_SOURCE
#include "load.h"

#include "../base/mem.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct BuildObject {
    void *handle;
    _Atomic uint32_t refs;
};

#ifdef MFD_CLOEXEC

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u                /* Linux 6.3: without it the kernel log gets a warning */
#endif

/* The loader tells objects apart by the name given to dlopen before it looks at the file, and a
 * descriptor's number is used again: two objects under "/proc/self/fd/7" would be taken for one.
 * So the inode number, different for all that are alive, is spelled into the name: a "./" per
 * set bit, a "/" per clear one; all these names mean the same file. */
static void
load_name(char name[160], int fd, unsigned long long inode)
{
    char *at = name + sprintf(name, "/proc/self/fd/");

    for (; inode != 0; inode >>= 1) {
        at += sprintf(at, "%s", inode & 1 ? "./" : "/");
    }
    sprintf(at, "%d", fd);
}

static void *
load_memory(const void *bytes, size_t size)
{
    char name[160];
    struct stat info;
    void *handle = NULL;
    int fd = memfd_create("ccompile", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

    if (fd < 0 && errno == EINVAL) {    /* an older kernel */
        fd = memfd_create("ccompile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    if (fd < 0) {
        return NULL;
    }
    if (build_write_all(fd, bytes, size) && fstat(fd, &info) == 0) {
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        load_name(name, fd, info.st_ino);
        handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    close(fd);                          /* the mapping keeps the file */
    return handle;
}

#else

static void *
load_memory(const void *bytes, size_t size)
{
    (void)bytes, (void)size;
    return NULL;
}

#endif

/* Write the bytes to a file of their own and load that; mkdtemp names are never used twice. */
static void *
load_file(const BuildCache *cache, const void *bytes, size_t size)
{
    void *handle = NULL;
    unsigned place = 0;

    for (char *dir; handle == NULL && (dir = build_work_make(cache, &place)) != NULL;) {
        char path[512];
        if (snprintf(path, sizeof(path), "%s/object", dir) < (int)sizeof(path)) {
            int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
            bool written = fd >= 0 && build_write_all(fd, bytes, size);
            if (fd >= 0 && close(fd) == 0 && written) {
                handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            }
        }
        build_work_remove(dir);
        cc_free(dir);
    }
    return handle;
}

BuildObject *
build_object_load(const BuildCache *cache, const void *bytes, size_t size, CcStatus *st)
{
    BuildObject *o = cc_calloc(1, sizeof(*o));

    if (o == NULL) {
        cc_fail(st, CC_REASON_NO_MEMORY, "loading an object");
        return NULL;
    }
    atomic_init(&o->refs, 1);
    o->handle = load_memory(bytes, size);
    if (o->handle == NULL) {
        o->handle = load_file(cache, bytes, size);
    }
    if (o->handle == NULL) {
        const char *why = dlerror();
        cc_fail(st, CC_REASON_LOAD_FAILED, "%.150s", why == NULL ? "no place to load from" : why);
        cc_free(o);
        return NULL;
    }
    return o;
}

BuildObject *
build_object_ref(BuildObject *o)
{
    atomic_fetch_add(&o->refs, 1);
    return o;
}

void
build_object_unref(BuildObject *o)
{
    if (o != NULL && atomic_fetch_sub(&o->refs, 1) == 1) {
        dlclose(o->handle);
        cc_free(o);
    }
}

BuildFn
build_object_find(const BuildObject *o, const char *name, CcStatus *st)
{
    void *address = dlsym(o->handle, name);
    BuildFn fn = NULL;

    if (address == NULL) {
        cc_fail(st, CC_REASON_LOAD_FAILED, "no symbol %.100s", name);
    } else {
        memcpy(&fn, &address, sizeof(fn));      /* ISO C has no cast between these */
    }
    return fn;
}
