/* rt/cpus.h - how many threads this process should use, from what the machine and the user say.
 *
 * Reads the environment, the scheduler's affinity mask and the control groups; changes nothing.
 * Every number is at least 1. */
#ifndef CC_RT_CPUS_H
#define CC_RT_CPUS_H

#include <stdint.h>

enum { RT_MAX_THREADS = 256 };

/* The first number of a list such as "4,2"; 0 when the text is NULL or does not start with a
 * number of 1 or more. Larger numbers than RT_MAX_THREADS become RT_MAX_THREADS. */
uint32_t rt_cpus_parse(const char *text);

/* CPUs this process may run on. */
uint32_t rt_cpus_affinity(void);

/* The CPU quota of our control group (v2 or v1) rounded up, RT_MAX_THREADS when there is none.
 * `root` is put before /proc and /sys, "" outside tests. */
uint32_t rt_cpus_quota(const char *root);

/* CCOMPILE_NUM_THREADS as it is; else OMP_NUM_THREADS, but never more than the CPUs we may use,
 * because a preempted worker costs a scheduler slice at each barrier; else those CPUs. */
uint32_t rt_cpus_default(void);

#endif
