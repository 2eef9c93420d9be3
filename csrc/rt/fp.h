/* rt/fp.h - the floating-point control and status word of this thread.
 *
 * x86-64: MXCSR (vector code does not use the x87 unit); aarch64: FPCR and FPSR. Elsewhere
 * <fenv.h>, which carries rounding but not flush-to-zero. */
#ifndef CC_RT_FP_H
#define CC_RT_FP_H

#include "kernel.h"

#include <stdint.h>

#if defined(__x86_64__)

typedef uint32_t RtFp;

enum { RT_FP_FLAGS = 0x3f, RT_FP_MASKS = 0x1f80 };

static inline RtFp
rt_fp_get(void)
{
    return __builtin_ia32_stmxcsr();
}

static inline void
rt_fp_set(RtFp fp)
{
    __builtin_ia32_ldmxcsr(fp);
}

/* The control bits of `fp` with no flag raised and no trap enabled. */
static inline RtFp
rt_fp_quiet(RtFp fp)
{
    return (fp & ~(RtFp)RT_FP_FLAGS) | RT_FP_MASKS;
}

/* The raised flags of this thread as CC_FAULT_* bits. */
static inline uint32_t
rt_fp_faults(void)
{
    uint32_t flags = __builtin_ia32_stmxcsr();

    return (flags & 1 ? CC_FAULT_INVALID : 0) | (flags & 4 ? CC_FAULT_DIV : 0) |
           (flags & 8 ? CC_FAULT_OVER : 0) | (flags & 16 ? CC_FAULT_UNDER : 0);
}

#elif defined(__aarch64__)

typedef struct {
    uint64_t control, status;
} RtFp;

static inline RtFp
rt_fp_get(void)
{
    RtFp fp;

    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(fp.control), "=r"(fp.status)::"memory");
    return fp;
}

static inline void
rt_fp_set(RtFp fp)
{
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" : : "r"(fp.control), "r"(fp.status) : "memory");
}

static inline RtFp
rt_fp_quiet(RtFp fp)
{
    fp.control &= ~(uint64_t)0x9f00;    /* trap enables: IDE, IXE .. IOE */
    fp.status &= ~(uint64_t)0x9f;
    return fp;
}

static inline uint32_t
rt_fp_faults(void)
{
    uint64_t flags = rt_fp_get().status;

    return (flags & 1 ? CC_FAULT_INVALID : 0) | (flags & 2 ? CC_FAULT_DIV : 0) |
           (flags & 4 ? CC_FAULT_OVER : 0) | (flags & 8 ? CC_FAULT_UNDER : 0);
}

#else

#include <fenv.h>

typedef fenv_t RtFp;

static inline RtFp
rt_fp_get(void)
{
    RtFp fp;

    fegetenv(&fp);
    return fp;
}

static inline void
rt_fp_set(RtFp fp)
{
    fesetenv(&fp);
}

static inline RtFp
rt_fp_quiet(RtFp fp)
{
    RtFp before = rt_fp_get(), quiet;

    fesetenv(&fp);
    feholdexcept(&quiet);               /* saves, clears the flags, goes on without traps */
    fegetenv(&quiet);
    fesetenv(&before);
    return quiet;
}

static inline uint32_t
rt_fp_faults(void)
{
    int flags = fetestexcept(FE_ALL_EXCEPT);

    return (flags & FE_INVALID ? CC_FAULT_INVALID : 0) | (flags & FE_DIVBYZERO ? CC_FAULT_DIV : 0) |
           (flags & FE_OVERFLOW ? CC_FAULT_OVER : 0) | (flags & FE_UNDERFLOW ? CC_FAULT_UNDER : 0);
}

#endif

#endif
