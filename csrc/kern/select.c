/* kern/select.c - which ISA level runs here. Asked of the CPU each time: no state, no start-up. */
#include "isa.h"

static const KernTable select_table[KERN_LEVEL__COUNT] = {
    [KERN_LEVEL_BASE] = {"base", &kern_f32_base, &kern_f64_base},
#ifdef CC_HAVE_ISA_V3
    [KERN_LEVEL_V3] = {"v3", &kern_f32_v3, &kern_f64_v3},
#endif
#ifdef CC_HAVE_ISA_V4
    [KERN_LEVEL_V4] = {"v4", &kern_f32_v4, &kern_f64_v4},
#endif
};

/* The level was built, and the CPU and the system's register saving allow it. */
static bool
select_runs(KernLevel level)
{
    if (select_table[level].name == NULL) {
        return false;
    }
#if defined(__x86_64__)
    bool v3, v4;

    __builtin_cpu_init();
    v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
      && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
      && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
      && __builtin_cpu_supports("avx512vl");
    return level == KERN_LEVEL_BASE || (level == KERN_LEVEL_V3 && v3)
        || (level == KERN_LEVEL_V4 && v4);
#else
    return level == KERN_LEVEL_BASE;
#endif
}

const KernTable *
kern_table_level(KernLevel level)
{
    return level < KERN_LEVEL__COUNT && select_runs(level) ? &select_table[level] : NULL;
}

const KernTable *
kern_table(void)
{
    int level = KERN_LEVEL__COUNT - 1;

    while (level > 0 && !select_runs((KernLevel)level)) {
        level--;
    }
    return &select_table[level];
}
