#define _GNU_SOURCE
#include "cpus.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t
rt_cpus_parse(const char *text)
{
    char *end;

    if (text == NULL) {
        return 0;
    }
    long n = strtol(text, &end, 10);
    if (end == text || n < 1) {
        return 0;
    }
    return n > RT_MAX_THREADS ? RT_MAX_THREADS : (uint32_t)n;
}

uint32_t
rt_cpus_affinity(void)
{
    long n = 0;

#ifdef __linux__
    cpu_set_t set;                      /* fails with EINVAL beyond 1024 CPUs */
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        n = CPU_COUNT(&set);
    }
#endif
    if (n < 1) {
        n = sysconf(_SC_NPROCESSORS_ONLN);
    }
    if (n < 1) {
        return 1;
    }
    return n > RT_MAX_THREADS ? RT_MAX_THREADS : (uint32_t)n;
}

/* -- Control groups ------------------------------------------------------------- */

static uint32_t
cpus_of_quota(long long quota, long long period)
{
    if (quota <= 0 || period <= 0) {    /* "max" or -1: no limit */
        return RT_MAX_THREADS;
    }
    long long n = (quota - 1) / period + 1;
    return n > RT_MAX_THREADS ? RT_MAX_THREADS : (uint32_t)n;
}

/* Read up to two numbers from a file; a word such as "max" counts as 0. Returns how many. */
static int
cpus_read(const char *path, long long *a, long long *b)
{
    char line[128];
    FILE *f = fopen(path, "re");

    if (f == NULL) {
        return 0;
    }
    bool got = fgets(line, sizeof(line), f) != NULL;
    fclose(f);
    if (!got) {
        return 0;
    }
    char *rest = line;
    *a = strtoll(line, &rest, 10);
    if (rest == line) {
        *a = 0;
        rest += strcspn(line, " ");
    }
    char *end = rest;
    long long second = strtoll(rest, &end, 10);
    if (end == rest) {
        return 1;
    }
    *b = second;
    return 2;
}

/* The smallest quota from the group `group` up to the root of the hierarchy `mount`: inside a
 * container the group's path may not exist, then its root stands for it. */
static uint32_t
cpus_walk(const char *root, const char *mount, const char *group, bool v2)
{
    char dir[512], path[1200];
    uint32_t best = RT_MAX_THREADS;

    if (snprintf(dir, sizeof(dir), "%s", group) >= (int)sizeof(dir)) {
        dir[0] = '\0';
    }
    for (;;) {
        long long quota = 0, period = 0;
        uint32_t n = RT_MAX_THREADS;
        snprintf(path, sizeof(path), "%s%s%s/cpu.%s", root, mount, dir,
                 v2 ? "max" : "cfs_quota_us");
        int got = cpus_read(path, &quota, &period);
        if (!v2 && got > 0) {
            long long unused;
            snprintf(path, sizeof(path), "%s%s%s/cpu.cfs_period_us", root, mount, dir);
            got = cpus_read(path, &period, &unused) > 0 ? 2 : 0;
        }
        if (got == 2) {
            n = cpus_of_quota(quota, period);
        }
        best = n < best ? n : best;
        char *slash = strrchr(dir, '/');
        if (slash == NULL) {
            return best;
        }
        *slash = '\0';
    }
}

static bool
cpus_has_controller(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = list; (at = strstr(at, name)) != NULL; at += len) {
        if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

uint32_t
rt_cpus_quota(const char *root)
{
    char path[512], line[1024];
    uint32_t best = RT_MAX_THREADS;

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return best;
    }
    while (fgets(line, sizeof(line), f) != NULL) {  /* "id:controllers:group" */
        char *list = strchr(line, ':');
        char *group = list == NULL ? NULL : strchr(list + 1, ':');
        if (group == NULL) {
            continue;
        }
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        bool v2 = list[1] == '\0';
        if (v2 || cpus_has_controller(list + 1, "cpu")) {
            uint32_t n = cpus_walk(root, v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", group, v2);
            best = n < best ? n : best;
        }
    }
    fclose(f);
    return best;
}

uint32_t
rt_cpus_default(void)
{
    uint32_t n = rt_cpus_parse(getenv("CCOMPILE_NUM_THREADS"));

    if (n > 0) {
        return n;
    }
    uint32_t most = rt_cpus_affinity(), quota = rt_cpus_quota("");
    most = quota < most ? quota : most;
    n = rt_cpus_parse(getenv("OMP_NUM_THREADS"));
    return n > 0 && n < most ? n : most;
}
