/* kern/vmath_f32.h - the functions for binary32: computed in binary64, rounded once. (The common
 * ranges of exp and log are the exception: they stay in binary32.)
 *
 * A float's range and its subnormals are nothing special in binary64, and the conversion
 * of the result raises overflow where it must. Functions with their own polynomials of float
 * degree are below; the others are the binary64 functions on both halves. */
#ifndef VM_F32_H
#define VM_F32_H

#include "vmath_core.h"
#include "vmath_coef.h"
#include "vmath_exp.h"
#include "vmath_log.h"
#include "vmath_pow.h"
#include "vmath_trig.h"

/* -- Halves -------------------------------------------------------------------------- */

typedef union {
    vm_f32 v;
    vm_f32h h[2];
} VmHalves;

VM_INLINE vm_f64
vm_widen(vm_f32 x, int half)
{
    VmHalves u = {x};

    return __builtin_convertvector(u.h[half], vm_f64);
}

VM_INLINE vm_f32
vm_narrow(vm_f64 lo, vm_f64 hi)
{
    VmHalves u;

    u.h[0] = __builtin_convertvector(lo, vm_f32h);
    u.h[1] = __builtin_convertvector(hi, vm_f32h);
    return u.v;
}

/* -- exp ------------------------------------------------------------------------------ */

/* e^x for clamped x: k ln2 needs no split and 2^k no care. */
VM_INLINE vm_f64
vm_expf_half(vm_f64 x)
{
    vm_i64 large = vm_abs_bits_f64(x) > vm_bits(200.0);
    vm_f64 a = vm_sel_f64(large, vm_copysign_f64(VM_ALL_F64(200.0), x), x);
    vm_f64 t = VM_FMA_C(a, VM_ALL_F64(VM_LOG2E), VM_MAGIC);
    vm_f64 r = vm_fnma_f64(t - VM_MAGIC, VM_ALL_F64(VM_LN2F_1), a);
    vm_f64 e = VM_FMA_C(vm_poly(VM_EXPF, 6, r), r, 1.0);

    return (vm_f64)((vm_i64)e + ((vm_i64)t << 52));
}

/* The common range in binary32, |x| <= 87: 1 + r is kept exact until the last addition. */
VM_INLINE vm_f32
vm_expf_core(vm_f32 x)
{
    vm_f32 t = vm_fma_f32(x, VM_ALL_F32(VM_LOG2E), VM_ALL_F32(0x1.8p23f)), n = t - 0x1.8p23f;
    vm_f32 r = vm_fma_f32(-n, VM_ALL_F32(VM_LN2S_1), x), r2, p, q, s;

    r = vm_fma_f32(-n, VM_ALL_F32(VM_LN2S_2), r);
    r2 = r * r;
    p = vm_fma_f32(VM_ALL_F32(VM_EXPS[1]), r, VM_ALL_F32(VM_EXPS[0]));
    q = vm_fma_f32(VM_ALL_F32(VM_EXPS[3]), r, VM_ALL_F32(VM_EXPS[2]));
    q = vm_fma_f32(VM_ALL_F32(VM_EXPS[4]), r2, q);
    p = vm_fma_f32(q, r2, p);
    s = 1.0f + r;
    s = s + vm_fma_f32(p, r2, (1.0f - s) + r);
    return (vm_f32)((vm_i32)s + ((vm_i32)t << 23));
}

VM_INLINE vm_i32
vm_expf_unusual(vm_f32 x)
{
    return vm_abs_bits_f32(x) > (vm_i32)VM_ALL_F32(87.0f);
}

/* Results that over- or underflow get their rounding and flags from the conversion. Infinities
 * and NaN have no flags to raise: they are put in after it. */
VM_COLD vm_f32
vm_expf_cold(vm_f32 x)
{
    vm_i32 special = vm_abs_bits_f32(x) >= VM_INF_BITS_F32, unusual = vm_expf_unusual(x);
    vm_f32 y = (vm_f32)((vm_i32)x & unusual & ~special);

    y = vm_narrow(vm_expf_half(vm_widen(y, 0)), vm_expf_half(vm_widen(y, 1)));
    y = vm_sel_f32(unusual, y, vm_expf_core((vm_f32)((vm_i32)x & ~unusual)));
    x = (vm_f32)((vm_i32)x & special & ((vm_i32)x != (vm_i32)VM_ALL_F32(-__builtin_inff())));
    return vm_sel_f32(special, x + x, y);
}

VM_INLINE vm_f32
vm_exp_f32(vm_f32 x)
{
    return VM_UNLIKELY(vm_any_f32(vm_expf_unusual(x))) ? vm_expf_cold(x) : vm_expf_core(x);
}

/* -- log ------------------------------------------------------------------------------ */

/* x positive and normal: 2^k (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); in binary32. */
VM_INLINE vm_f32
vm_logf_core(vm_f32 x)
{
    vm_i32 t = (vm_i32)x - 0x3f3504f3, e = t & (vm_int)0xff800000;
    vm_f32 f = (vm_f32)((vm_i32)x - e) - 1.0f, k = __builtin_convertvector(t >> 23, vm_f32);
    vm_f32 f2 = f * f, f4 = f2 * f2, a, b, c, d, y;

    a = vm_fma_f32(VM_ALL_F32(VM_LOGS[1]), f, VM_ALL_F32(VM_LOGS[0]));
    b = vm_fma_f32(VM_ALL_F32(VM_LOGS[3]), f, VM_ALL_F32(VM_LOGS[2]));
    c = vm_fma_f32(VM_ALL_F32(VM_LOGS[5]), f, VM_ALL_F32(VM_LOGS[4]));
    d = vm_fma_f32(VM_ALL_F32(VM_LOGS[7]), f, VM_ALL_F32(VM_LOGS[6]));
    d = vm_fma_f32(VM_ALL_F32(VM_LOGS[8]), f2, d);
    a = vm_fma_f32(vm_fma_f32(d, f2, c), f4, vm_fma_f32(b, f2, a));
    y = vm_fma_f32(a * f, f2, k * (float)VM_LN2S_2);
    y = vm_fma_f32(VM_ALL_F32(-0.5f), f2, y);
    return vm_fma_f32(k, VM_ALL_F32(VM_LN2S_1), f + y);
}

VM_INLINE vm_i32
vm_logf_unusual(vm_f32 x)
{
    return ((vm_i32)x < 0x00800000) | ((vm_i32)x >= VM_INF_BITS_F32);
}

VM_COLD vm_f32
vm_logf_cold(vm_f32 x)
{
    vm_i32 unusual = vm_logf_unusual(x);
    vm_f32 one = VM_ALL_F32(1.0f), u = vm_sel_f32(unusual, x, one);
    vm_f32 y = vm_narrow(vm_log_f64(vm_widen(u, 0)), vm_log_f64(vm_widen(u, 1)));

    return vm_sel_f32(unusual, y, vm_logf_core(vm_sel_f32(unusual, one, x)));
}

VM_INLINE vm_f32
vm_log_f32(vm_f32 x)
{
    return VM_UNLIKELY(vm_any_f32(vm_logf_unusual(x))) ? vm_logf_cold(x) : vm_logf_core(x);
}

/* -- tanh ----------------------------------------------------------------------------- */

VM_INLINE vm_f64
vm_tanhf_half(vm_f64 x)
{
    vm_i64 ax = vm_abs_bits_f64(x);
    vm_f64 a = vm_sel_f64(ax > vm_bits(10.0), VM_ALL_F64(10.0), (vm_f64)ax);
    vm_f64 t = VM_FMA_C(a, VM_ALL_F64(2 * VM_LOG2E), VM_MAGIC);
    vm_f64 r = vm_fnma_f64(t - VM_MAGIC, VM_ALL_F64(VM_LN2F_1), a + a);
    vm_f64 s = vm_pow2_f64((vm_i64)t), e = vm_poly(VM_EXPM1F, 7, r) * r;

    e = vm_fma_f64(s, e, s - 1.0);
    return vm_copysign_f64(e / (e + 2.0), x);
}

VM_INLINE vm_f32
vm_tanh_f32(vm_f32 x)
{
    vm_i32 nan = vm_abs_bits_f32(x) > VM_INF_BITS_F32;
    vm_f32 y = vm_narrow(vm_tanhf_half(vm_widen(x, 0)), vm_tanhf_half(vm_widen(x, 1)));

    return VM_UNLIKELY(vm_any_f32(nan)) ? vm_sel_f32(nan, x, y) : y;
}

/* -- sin and cos ------------------------------------------------------------------------ */

VM_INLINE vm_f64
vm_trigf_half(vm_f64 x, int which)
{
    vm_f64 t = VM_FMA_C(x, VM_ALL_F64(VM_TWO_OVER_PI), VM_MAGIC), n = t - VM_MAGIC;
    vm_f64 r = vm_fnma_f64(n, VM_ALL_F64(VM_PIO2H_1), x), z, s, c;
    vm_i64 q = (vm_i64)t + which;

    r = vm_fnma_f64(n, VM_ALL_F64(VM_PIO2H_2), r);
    z = r * r;
    s = r * VM_FMA_C(vm_poly(VM_SINF, 3, z), z, 1.0);           /* keeps -0 */
    c = vm_fma_f64(vm_poly(VM_COSF, 3, z), z * z, VM_FMA_C(z, VM_ALL_F64(-0.5), 1.0));
    return (vm_f64)((vm_i64)vm_sel_f64(-(q & 1), c, s) ^ ((q & 2) << 62));
}

VM_COLD vm_f32
vm_trigf_cold(vm_f32 x, int which)
{
    vm_i32 huge = vm_abs_bits_f32(x) > (vm_i32)VM_ALL_F32(0x1p20f);
    vm_f32 a = (vm_f32)((vm_i32)x & ~huge), b = (vm_f32)((vm_i32)x & huge), y, z;

    z = vm_narrow(vm_trig_cold(vm_widen(b, 0), which), vm_trig_cold(vm_widen(b, 1), which));
    if (which == 0) {
        y = vm_narrow(vm_trigf_half(vm_widen(a, 0), 0), vm_trigf_half(vm_widen(a, 1), 0));
    } else {
        y = vm_narrow(vm_trigf_half(vm_widen(a, 0), 1), vm_trigf_half(vm_widen(a, 1), 1));
    }
    return vm_sel_f32(huge, z, y);
}

VM_INLINE int
vm_trigf_unusual(vm_f32 x)
{
    return VM_UNLIKELY(vm_any_f32(vm_abs_bits_f32(x) > (vm_i32)VM_ALL_F32(0x1p20f)));
}

VM_INLINE vm_f32
vm_sin_f32(vm_f32 x)
{
    if (vm_trigf_unusual(x)) {
        return vm_trigf_cold(x, 0);
    }
    return vm_narrow(vm_trigf_half(vm_widen(x, 0), 0), vm_trigf_half(vm_widen(x, 1), 0));
}

VM_INLINE vm_f32
vm_cos_f32(vm_f32 x)
{
    if (vm_trigf_unusual(x)) {
        return vm_trigf_cold(x, 1);
    }
    return vm_narrow(vm_trigf_half(vm_widen(x, 0), 1), vm_trigf_half(vm_widen(x, 1), 1));
}

/* -- pow -------------------------------------------------------------------------------- */

VM_INLINE vm_f64
vm_powf_half(vm_f64 x, vm_f64 y)        /* x positive and finite, y finite */
{
    vm_i64 t = (vm_i64)x - 0x3fe6a09e667f3bcd;
    vm_f64 m = (vm_f64)((vm_i64)x - (t & (vm_long)0xfff0000000000000));
    vm_f64 s = (m - 1.0) / (m + 1.0), z = s * s;
    vm_f64 l = vm_fma_f64(s * z, vm_poly(VM_LOG2F, 4, z), vm_exponent_f64(t));
    vm_f64 e = y * vm_fma_f64(s, VM_ALL_F64(2 * VM_LOG2E), l), r;
    vm_i64 large = vm_abs_bits_f64(e) > vm_bits(400.0);

    e = vm_sel_f64(large, vm_copysign_f64(VM_ALL_F64(400.0), e), e);
    s = e + VM_MAGIC;
    r = e - (s - VM_MAGIC);
    return (vm_f64)((vm_i64)vm_poly(VM_EXP2F, 8, r) + ((vm_i64)s << 52));
}

VM_COLD vm_f32
vm_powf_cold(vm_f32 x, vm_f32 y)        /* the lanes left to powf_half have the same bits here */
{
    vm_i32 bad = ((vm_i32)x <= 0) | ((vm_i32)x >= VM_INF_BITS_F32)
                 | (vm_abs_bits_f32(y) >= VM_INF_BITS_F32);
    vm_f32 one = VM_ALL_F32(1.0f);
    vm_f32 gx = vm_sel_f32(bad, one, x), gy = vm_sel_f32(bad, one, y);
    vm_f32 bx = vm_sel_f32(bad, x, one), by = vm_sel_f32(bad, y, one);
    vm_f32 good = vm_narrow(vm_powf_half(vm_widen(gx, 0), vm_widen(gy, 0)),
                            vm_powf_half(vm_widen(gx, 1), vm_widen(gy, 1)));
    vm_f32 rest = vm_narrow(vm_pow_cold(vm_widen(bx, 0), vm_widen(by, 0)),
                            vm_pow_cold(vm_widen(bx, 1), vm_widen(by, 1)));

    return vm_sel_f32(bad, rest, good);
}

VM_INLINE vm_f32
vm_pow_f32(vm_f32 x, vm_f32 y)
{
    vm_i32 two = (vm_i32)y == (vm_i32)VM_ALL_F32(2.0f);
    vm_f32 r, one = VM_ALL_F32(1.0f);

    if (VM_UNLIKELY(vm_any_f32(two))) {
        vm_f32 s = vm_sel_f32(two, x, one);
        vm_f32 rest = vm_powf_cold(vm_sel_f32(two, one, x), vm_sel_f32(two, one, y));

        return vm_sel_f32(two, s * s, rest);
    }
    if (VM_UNLIKELY(vm_any_f32(((vm_i32)x <= 0) | ((vm_i32)x >= VM_INF_BITS_F32)
                               | (vm_abs_bits_f32(y) >= VM_INF_BITS_F32)))) {
        return vm_powf_cold(x, y);
    }
    r = vm_narrow(vm_powf_half(vm_widen(x, 0), vm_widen(y, 0)),
                  vm_powf_half(vm_widen(x, 1), vm_widen(y, 1)));
    return r;
}

/* -- The rest: the binary64 function on both halves ---------------------------------------- */

#define VM_WIDE1(name)                                                                \
    VM_INLINE vm_f32                                                                  \
    vm_##name##_f32(vm_f32 x)                                                         \
    {                                                                                 \
        return vm_narrow(vm_##name##_f64(vm_widen(x, 0)), vm_##name##_f64(vm_widen(x, 1))); \
    }

#define VM_WIDE2(name)                                                                \
    VM_INLINE vm_f32                                                                  \
    vm_##name##_f32(vm_f32 x, vm_f32 y)                                               \
    {                                                                                 \
        return vm_narrow(vm_##name##_f64(vm_widen(x, 0), vm_widen(y, 0)),             \
                         vm_##name##_f64(vm_widen(x, 1), vm_widen(y, 1)));            \
    }

VM_WIDE1(exp2)
VM_WIDE1(expm1)
VM_WIDE1(log2)
VM_WIDE1(log10)
VM_WIDE1(log1p)
VM_WIDE1(tan)
VM_WIDE1(asin)
VM_WIDE1(acos)
VM_WIDE1(atan)
VM_WIDE1(sinh)
VM_WIDE1(cosh)
VM_WIDE1(asinh)
VM_WIDE1(acosh)
VM_WIDE1(atanh)
VM_WIDE1(cbrt)
VM_WIDE1(erf)
VM_WIDE2(atan2)
VM_WIDE2(hypot)

/* NumPy's subtraction of finite floats may overflow: the wide one does for no pair of them. */
VM_INLINE vm_f32
vm_logaddexp_f32(vm_f32 x, vm_f32 y)
{
    vm_i32 finite = (vm_abs_bits_f32(x) < VM_INF_BITS_F32) & (vm_abs_bits_f32(y) < VM_INF_BITS_F32);
    vm_f32 d = (vm_f32)((vm_i32)x & finite) - (vm_f32)((vm_i32)y & finite);

    __asm__ volatile("" : : "m"(d));
    return vm_narrow(vm_logaddexp_f64(vm_widen(x, 0), vm_widen(y, 0)),
                     vm_logaddexp_f64(vm_widen(x, 1), vm_widen(y, 1)));
}

#endif
