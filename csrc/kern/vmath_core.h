/* kern/vmath_core.h - the vector types of kern/vmath.h and the few operations that the vector
 * extensions do not spell: fused multiply-add, select, any-lane tests, row look-up, rounding.
 *
 * Needs gcc 12 or clang with vector extensions, no header. Everything here is lane-wise.
 * Invariant: no floating comparison of vectors. gcc makes `a < b` a signalling compare, which
 * raises invalid for a quiet NaN; integer compares of the bit patterns raise nothing. */
#ifndef VM_CORE_H
#define VM_CORE_H

/* Cold functions take whole vectors; which registers they come in is nobody's business. */
#pragma GCC diagnostic ignored "-Wpsabi"

#if !defined(VM_W)
#if defined(__AVX512F__)
#define VM_W 16
#elif defined(__AVX__)
#define VM_W 8
#else
#define VM_W 4
#endif
#endif
#define VM_D (VM_W / 2)

#if !defined(VM_FMA)
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define VM_FMA 1
#else
#define VM_FMA 0
#endif
#endif

typedef double vm_f64 __attribute__((vector_size(VM_W * 4)));
typedef long long vm_i64 __attribute__((vector_size(VM_W * 4)));
typedef unsigned long long vm_u64 __attribute__((vector_size(VM_W * 4)));
typedef float vm_f32 __attribute__((vector_size(VM_W * 4)));
typedef __INT32_TYPE__ vm_i32 __attribute__((vector_size(VM_W * 4)));
typedef __UINT32_TYPE__ vm_u32 __attribute__((vector_size(VM_W * 4)));
typedef float vm_f32h __attribute__((vector_size(VM_W * 2)));   /* as many lanes as vm_f64 */
typedef long long vm_long;           /* as the builtins spell 64 bits */
typedef unsigned long long vm_word;
typedef __INT32_TYPE__ vm_int;

#define VM_INLINE static inline __attribute__((always_inline, unused))
#define VM_COLD static __attribute__((noinline, cold, unused))
#define VM_TABLE(type, name, count) \
    static const type name[count] __attribute__((aligned(64), unused))
#define VM_UNLIKELY(cond) __builtin_expect(!!(cond), 0)

/* -- Lanes -------------------------------------------------------------------- */

/* All lanes c; x - 0 is x, also for -0.0. */
#define VM_ALL_F64(c) ((double)(c) - (vm_f64){0})
#define VM_ALL_F32(c) ((float)(c) - (vm_f32){0})
#define VM_ALL_I64(c) ((vm_long)(c) - (vm_i64){0})
#define VM_ALL_I32(c) ((vm_int)(c) - (vm_i32){0})
#define VM_SIGN_F64 ((vm_i64)VM_ALL_F64(-0.0))
#define VM_SIGN_F32 ((vm_i32)VM_ALL_F32(-0.0f))
#define VM_NOTHING VM_ALL_F64(-0.0)     /* x + VM_NOTHING is x, and the compiler knows */
#define VM_INF_BITS 0x7ff0000000000000
#define VM_INF_BITS_F32 0x7f800000

typedef union {
    double f;
    vm_long i;
    vm_word u;
} VmBits;

/* The bits of one double. Non-negative doubles are ordered as their bits are. */
VM_INLINE vm_long
vm_bits(double x)
{
    VmBits b = {x};

    return b.i;
}

VM_INLINE double
vm_from_bits(vm_word u)
{
    VmBits b;

    b.u = u;
    return b.f;
}

VM_INLINE vm_long
vm_abs_of(double x)             /* the bits of |x| */
{
    return vm_bits(x) & 0x7fffffffffffffff;
}

VM_INLINE int
vm_isnan(double x)
{
    return vm_abs_of(x) > VM_INF_BITS;
}

VM_INLINE vm_i64
vm_abs_bits_f64(vm_f64 x)
{
    return (vm_i64)x & ~VM_SIGN_F64;
}

VM_INLINE vm_i32
vm_abs_bits_f32(vm_f32 x)
{
    return (vm_i32)x & ~VM_SIGN_F32;
}

VM_INLINE vm_f64
vm_abs_f64(vm_f64 x)
{
    return (vm_f64)vm_abs_bits_f64(x);
}

/* |x| with the sign of s. */
VM_INLINE vm_f64
vm_copysign_f64(vm_f64 x, vm_f64 s)
{
    return (vm_f64)(vm_abs_bits_f64(x) | ((vm_i64)s & VM_SIGN_F64));
}

VM_INLINE vm_f32
vm_copysign_f32(vm_f32 x, vm_f32 s)
{
    return (vm_f32)(vm_abs_bits_f32(x) | ((vm_i32)s & VM_SIGN_F32));
}

/* mask ? a : b for masks whose lanes are all ones or all zeros. */
VM_INLINE vm_f64
vm_sel_f64(vm_i64 mask, vm_f64 a, vm_f64 b)
{
#if VM_W == 8 && defined(__AVX__)
    return (vm_f64)__builtin_ia32_blendvpd256(b, a, (vm_f64)mask);
#elif VM_W == 4 && defined(__SSE4_1__)
    return (vm_f64)__builtin_ia32_blendvpd(b, a, (vm_f64)mask);
#else
    return (vm_f64)((mask & (vm_i64)a) | (~mask & (vm_i64)b));
#endif
}

VM_INLINE vm_f32
vm_sel_f32(vm_i32 mask, vm_f32 a, vm_f32 b)
{
#if VM_W == 8 && defined(__AVX__)
    return (vm_f32)__builtin_ia32_blendvps256(b, a, (vm_f32)mask);
#elif VM_W == 4 && defined(__SSE4_1__)
    return (vm_f32)__builtin_ia32_blendvps(b, a, (vm_f32)mask);
#else
    return (vm_f32)((mask & (vm_i32)a) | (~mask & (vm_i32)b));
#endif
}

/* Is a lane of the mask set? Masks have all-ones or zero lanes. */
VM_INLINE int
vm_any(vm_i64 mask)
{
#if VM_W == 16 && defined(__AVX512F__) && !defined(__clang__)
    return __builtin_ia32_ptestmq512((vm_i64)mask, (vm_i64)mask, -1) != 0;
#elif VM_W == 8 && defined(__AVX__)
    return __builtin_ia32_movmskpd256((vm_f64)mask) != 0;
#elif VM_W == 4 && defined(__SSE2__)
    return __builtin_ia32_movmskpd((vm_f64)mask) != 0;
#else
    vm_long any = 0;

    for (int i = 0; i < VM_D; i++) {
        any |= mask[i];
    }
    return any != 0;
#endif
}

VM_INLINE int
vm_any_f32(vm_i32 mask)
{
#if VM_W == 8 && defined(__AVX__)
    return __builtin_ia32_movmskps256((vm_f32)mask) != 0;
#elif VM_W == 4 && defined(__SSE2__)
    return __builtin_ia32_movmskps((vm_f32)mask) != 0;
#else
    return vm_any((vm_i64)mask);
#endif
}

/* A number the compiler knows nothing about: arithmetic on it happens, flags included. */
VM_INLINE double
vm_opaque(double x)
{
    __asm__ volatile("" : "+m"(x));
    return x;
}

/* -- Fused multiply-add --------------------------------------------------------- */

/* a * b + c: with one rounding when VM_FMA, else with two. */
VM_INLINE vm_f64
vm_fma_f64(vm_f64 a, vm_f64 b, vm_f64 c)
{
#if !VM_FMA
    return a * b + c;
#elif VM_W == 16 && defined(__AVX512F__) && !defined(__clang__)
    return (vm_f64)__builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4);
#elif VM_W == 8 && defined(__FMA__)
    return (vm_f64)__builtin_ia32_vfmaddpd256(a, b, c);
#elif VM_W == 4 && defined(__FMA__)
    return (vm_f64)__builtin_ia32_vfmaddpd(a, b, c);
#elif VM_W == 4 && defined(__aarch64__) && !defined(__clang__)
    return __builtin_aarch64_fmav2df(a, b, c);
#else
    for (int i = 0; i < VM_D; i++) {
        c[i] = __builtin_fma(a[i], b[i], c[i]);
    }
    return c;
#endif
}

VM_INLINE vm_f32
vm_fma_f32(vm_f32 a, vm_f32 b, vm_f32 c)
{
#if !VM_FMA
    return a * b + c;
#elif VM_W == 16 && defined(__AVX512F__) && !defined(__clang__)
    return (vm_f32)__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);
#elif VM_W == 8 && defined(__FMA__)
    return (vm_f32)__builtin_ia32_vfmaddps256(a, b, c);
#elif VM_W == 4 && defined(__FMA__)
    return (vm_f32)__builtin_ia32_vfmaddps(a, b, c);
#elif VM_W == 4 && defined(__aarch64__) && !defined(__clang__)
    return __builtin_aarch64_fmav4sf(a, b, c);
#else
    for (int i = 0; i < VM_W; i++) {
        c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    }
    return c;
#endif
}

/* c - a * b, and a * x + c with a constant c or a. */
VM_INLINE vm_f64
vm_fnma_f64(vm_f64 a, vm_f64 b, vm_f64 c)
{
    return vm_fma_f64(-a, b, c);
}

#define VM_FMA_C(a, x, c) vm_fma_f64(a, x, VM_ALL_F64(c))

/* -- Pairs: sums and products with their rounding errors ------------------------------ */

/* a * b - p for p = a * b rounded: exact with VM_FMA, else but for the last bit of 106. */
VM_INLINE vm_f64
vm_mul_err(vm_f64 a, vm_f64 b, vm_f64 p)
{
#if VM_FMA
    return vm_fma_f64(a, b, -p);
#else
    vm_i64 head = VM_ALL_I64(~(vm_long)0x7ffffff);
    vm_f64 ah = (vm_f64)((vm_i64)a & head), al = a - ah;
    vm_f64 bh = (vm_f64)((vm_i64)b & head), bl = b - bh;

    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

/* a + b - s for s = a + b rounded; the fast one needs |a| >= |b| or a == 0. */
VM_INLINE vm_f64
vm_fast_sum_err(vm_f64 a, vm_f64 b, vm_f64 s)
{
    return (a - s) + b;
}

VM_INLINE vm_f64
vm_sum_err(vm_f64 a, vm_f64 b, vm_f64 s)
{
    vm_f64 t = s - a;

    return (a - (s - t)) + (b - t);
}

/* -- Polynomials ------------------------------------------------------------------- */

VM_INLINE vm_f64
vm_poly4(const double *c, int n, vm_f64 x, vm_f64 x2)
{
    vm_f64 lo, hi;

    if (n == 1) {
        return VM_ALL_F64(c[0]);
    }
    lo = vm_fma_f64(VM_ALL_F64(c[1]), x, VM_ALL_F64(c[0]));
    if (n == 2) {
        return lo;
    }
    hi = VM_ALL_F64(c[2]);
    if (n == 4) {
        hi = vm_fma_f64(VM_ALL_F64(c[3]), x, hi);
    }
    return vm_fma_f64(hi, x2, lo);
}

/* c[0] + c[1] x + ... with n <= 12 terms, n and c known at compile time. In groups of four:
 * latency, not the number of operations, is what a single chain costs. */
VM_INLINE vm_f64
vm_poly(const double *c, int n, vm_f64 x)
{
    vm_f64 x2 = x * x, x4 = x2 * x2;

    if (n <= 4) {
        return vm_poly4(c, n, x, x2);
    }
    if (n <= 8) {
        return vm_fma_f64(vm_poly4(c + 4, n - 4, x, x2), x4, vm_poly4(c, 4, x, x2));
    }
    return vm_fma_f64(vm_fma_f64(vm_poly4(c + 8, n - 8, x, x2), x4, vm_poly4(c + 4, 4, x, x2)),
                      x4, vm_poly4(c, 4, x, x2));
}

/* -- Table rows ---------------------------------------------------------------------- */

#if VM_W == 8 && defined(__AVX__)
typedef double VmRow __attribute__((vector_size(32), aligned(32), may_alias));

#if defined(__clang__)
#define VM_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define VM_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (vm_i64){i, j, k, l})
#endif
#endif

/* The first three of the four doubles in the rows at these byte offsets. */
VM_INLINE void
vm_rows(const double *table, vm_i64 at, vm_f64 *c0, vm_f64 *c1, vm_f64 *c2)
{
    const char *base = (const char *)table;
#if VM_W == 8 && defined(__AVX__)
    vm_f64 a = *(const VmRow *)(base + at[0]), b = *(const VmRow *)(base + at[1]);
    vm_f64 c = *(const VmRow *)(base + at[2]), d = *(const VmRow *)(base + at[3]);
    vm_f64 ab0 = VM_SHUFFLE(a, b, 0, 4, 2, 6), ab1 = VM_SHUFFLE(a, b, 1, 5, 3, 7);
    vm_f64 cd0 = VM_SHUFFLE(c, d, 0, 4, 2, 6), cd1 = VM_SHUFFLE(c, d, 1, 5, 3, 7);

    *c0 = VM_SHUFFLE(ab0, cd0, 0, 1, 4, 5);
    *c1 = VM_SHUFFLE(ab1, cd1, 0, 1, 4, 5);
    *c2 = VM_SHUFFLE(ab0, cd0, 2, 3, 6, 7);
#elif VM_W == 16 && defined(__AVX512F__) && !defined(__clang__)
    *c0 = (vm_f64)__builtin_ia32_gatherdiv8df((vm_f64){0}, base, at, -1, 1);
    *c1 = (vm_f64)__builtin_ia32_gatherdiv8df((vm_f64){0}, base + 8, at, -1, 1);
    *c2 = (vm_f64)__builtin_ia32_gatherdiv8df((vm_f64){0}, base + 16, at, -1, 1);
#else
    vm_f64 r0, r1, r2;

    for (int i = 0; i < VM_D; i++) {
        const double *row = (const double *)(base + at[i]);

        r0[i] = row[0];
        r1[i] = row[1];
        r2[i] = row[2];
    }
    *c0 = r0;
    *c1 = r1;
    *c2 = r2;
#endif
}

/* -- Integers in the low bits of a double ------------------------------------------------ */

/* x + VM_MAGIC holds round(x) in its low bits, for |x| < 2^51 and rounding to nearest. */
#define VM_MAGIC 0x1.8p52

/* floor(t / 2^52) as a double. A 64-bit arithmetic shift is missing before AVX-512: bias, shift
 * logically, and read the number as the low bits of 2^52 + ... */
VM_INLINE vm_f64
vm_exponent_f64(vm_i64 t)
{
    vm_u64 biased = (vm_u64)t + 0x8000000000000000u;
    vm_f64 k = (vm_f64)((vm_i64)(biased >> 52) | (vm_i64)VM_ALL_F64(0x1p52));

    return k - (0x1p52 + 2048.0);
}

/* 2^k for integers |k| < 1023 given as the low bits of k + VM_MAGIC. */
VM_INLINE vm_f64
vm_pow2_f64(vm_i64 magic)
{
    return (vm_f64)((magic << 52) + (vm_i64)VM_ALL_F64(1.0));
}

/* -- Square root ------------------------------------------------------------------------ */

VM_INLINE vm_f64
vm_sqrt_f64(vm_f64 x)
{
#if VM_W == 16 && defined(__AVX512F__) && !defined(__clang__)
    return (vm_f64)__builtin_ia32_sqrtpd512_mask(x, x, -1, 4);
#elif VM_W == 8 && defined(__AVX__)
    return (vm_f64)__builtin_ia32_sqrtpd256(x);
#elif VM_W == 4 && defined(__SSE2__)
    return (vm_f64)__builtin_ia32_sqrtpd(x);
#elif VM_W == 4 && defined(__aarch64__) && !defined(__clang__)
    return __builtin_aarch64_sqrtv2df(x);
#else
    for (int i = 0; i < VM_D; i++) {
        x[i] = __builtin_sqrt(x[i]);
    }
    return x;
#endif
}

VM_INLINE vm_f32
vm_sqrt_f32(vm_f32 x)
{
#if VM_W == 16 && defined(__AVX512F__) && !defined(__clang__)
    return (vm_f32)__builtin_ia32_sqrtps512_mask(x, x, -1, 4);
#elif VM_W == 8 && defined(__AVX__)
    return (vm_f32)__builtin_ia32_sqrtps256(x);
#elif VM_W == 4 && defined(__SSE2__)
    return (vm_f32)__builtin_ia32_sqrtps(x);
#elif VM_W == 4 && defined(__aarch64__) && !defined(__clang__)
    return __builtin_aarch64_sqrtv4sf(x);
#else
    for (int i = 0; i < VM_W; i++) {
        x[i] = __builtin_sqrtf(x[i]);
    }
    return x;
#endif
}

#endif
