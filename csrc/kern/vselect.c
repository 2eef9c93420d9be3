/* kern/vselect.c - the vector engine of the best ISA level that this CPU runs. */
#include "visa.h"

const RtVecTable *
kern_vec_table(void)
{
    static const RtVecTable base = {"base", kern_interp_base, &kern_reduce_base};
#if defined(CC_HAVE_ISA_V3)
    static const RtVecTable v3 = {"v3", kern_interp_v3, &kern_reduce_v3};
#endif
#if defined(CC_HAVE_ISA_V4)
    static const RtVecTable v4 = {"v4", kern_interp_v4, &kern_reduce_v4};
#endif

#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
#if defined(CC_HAVE_ISA_V4)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return &v4;
    }
#endif
#if defined(CC_HAVE_ISA_V3)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return &v3;
    }
#endif
    return &base;
}
