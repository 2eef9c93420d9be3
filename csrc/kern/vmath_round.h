/* kern/vmath_round.h - rint floor ceil trunc, and NumPy's fmod, remainder and floor_divide.
 *
 * All results are exact or follow NumPy's own sequence of IEEE operations, so that they have
 * NumPy's bits. A remainder is taken as a - trunc(a / b) b where that is exact, else lane by lane
 * by long division of the significands. */
#ifndef VM_ROUND_H
#define VM_ROUND_H

#include "vmath_core.h"
#include "vmath_f32.h"

/* -- To integers ------------------------------------------------------------------ */

/* The instruction's codes: round as said, raise no inexact. */
#define VM_NEAREST 8
#define VM_DOWN 9
#define VM_UP 10
#define VM_TOWARDS_ZERO 11

#if VM_W == 16 && defined(__AVX512F__) && !defined(__clang__)
#define VM_ROUND_F64(x, how) ((vm_f64)__builtin_ia32_rndscalepd_mask(x, how, x, -1, 4))
#define VM_ROUND_F32(x, how) ((vm_f32)__builtin_ia32_rndscaleps_mask(x, how, x, -1, 4))
#elif VM_W == 8 && defined(__AVX__)
#define VM_ROUND_F64(x, how) ((vm_f64)__builtin_ia32_roundpd256(x, how))
#define VM_ROUND_F32(x, how) ((vm_f32)__builtin_ia32_roundps256(x, how))
#elif VM_W == 4 && defined(__SSE4_1__)
#define VM_ROUND_F64(x, how) ((vm_f64)__builtin_ia32_roundpd(x, how))
#define VM_ROUND_F32(x, how) ((vm_f32)__builtin_ia32_roundps(x, how))
#else
#define VM_ROUND_F64(x, how) vm_round_f64(x, how)
#define VM_ROUND_F32(x, how) vm_round_f32(x, how)

/* |x| + 2^52 - 2^52 is |x| to the nearest integer, ties to even; then one step where that lies
 * on the wrong side. From 2^52 on x is an integer; the sign of zero stays. */
VM_INLINE vm_f64
vm_round_f64(vm_f64 x, int how)
{
    vm_i64 ax = vm_abs_bits_f64(x), whole = ax >= vm_bits(0x1p52);
    vm_f64 a = (vm_f64)(ax & ~whole), y = (a + 0x1p52) - 0x1p52;
    vm_f64 off = a - y;                                                 /* exact */
    vm_i64 above = (vm_i64)off < 0, below = (vm_i64)off > 0;            /* y against |x| */
    vm_i64 neg = (vm_i64)x < 0;

    if (how == VM_DOWN || how == VM_UP) {       /* |x| rounds up on one side of zero */
        vm_i64 up = how == VM_DOWN ? neg : ~neg;

        above &= ~up;
        y = y + (vm_f64)((vm_i64)VM_ALL_F64(1.0) & below & up);
    }
    if (how != VM_NEAREST) {
        y = y - (vm_f64)((vm_i64)VM_ALL_F64(1.0) & above);
    }
    return vm_sel_f64(whole, x, vm_copysign_f64(y, x));
}

VM_INLINE vm_f32
vm_round_f32(vm_f32 x, int how)
{
    vm_i32 ax = vm_abs_bits_f32(x), whole = ax >= (vm_i32)VM_ALL_F32(0x1p23f);
    vm_f32 a = (vm_f32)(ax & ~whole), y = (a + 0x1p23f) - 0x1p23f;
    vm_f32 off = a - y;
    vm_i32 above = (vm_i32)off < 0, below = (vm_i32)off > 0;
    vm_i32 neg = (vm_i32)x < 0;

    if (how == VM_DOWN || how == VM_UP) {
        vm_i32 up = how == VM_DOWN ? neg : ~neg;

        above &= ~up;
        y = y + (vm_f32)((vm_i32)VM_ALL_F32(1.0f) & below & up);
    }
    if (how != VM_NEAREST) {
        y = y - (vm_f32)((vm_i32)VM_ALL_F32(1.0f) & above);
    }
    return vm_sel_f32(whole, x, vm_copysign_f32(y, x));
}
#endif

VM_INLINE vm_f64
vm_rint_f64(vm_f64 x)
{
    return VM_ROUND_F64(x, VM_NEAREST);
}

VM_INLINE vm_f64
vm_floor_f64(vm_f64 x)
{
    return VM_ROUND_F64(x, VM_DOWN);
}

VM_INLINE vm_f64
vm_ceil_f64(vm_f64 x)
{
    return VM_ROUND_F64(x, VM_UP);
}

VM_INLINE vm_f64
vm_trunc_f64(vm_f64 x)
{
    return VM_ROUND_F64(x, VM_TOWARDS_ZERO);
}

VM_INLINE vm_f32
vm_rint_f32(vm_f32 x)
{
    return VM_ROUND_F32(x, VM_NEAREST);
}

VM_INLINE vm_f32
vm_floor_f32(vm_f32 x)
{
    return VM_ROUND_F32(x, VM_DOWN);
}

VM_INLINE vm_f32
vm_ceil_f32(vm_f32 x)
{
    return VM_ROUND_F32(x, VM_UP);
}

VM_INLINE vm_f32
vm_trunc_f32(vm_f32 x)
{
    return VM_ROUND_F32(x, VM_TOWARDS_ZERO);
}

/* -- fmod ----------------------------------------------------------------------------- */

/* One remainder with the sign of x, exact; NaN and invalid for an infinite x or y = 0. */
VM_COLD double
vm_fmod_one(double x, double y)
{
    vm_long ax = vm_abs_of(x), ay = vm_abs_of(y);
    int ex = (int)(ax >> 52), ey = (int)(ay >> 52);
    vm_word mx = (vm_word)ax & 0xfffffffffffff, my = (vm_word)ay & 0xfffffffffffff;

    if (vm_isnan(x) || vm_isnan(y)) {
        return x + y;
    }
    if (ax == VM_INF_BITS || ay == 0) {
        return vm_opaque(0.0) / 0.0;
    }
    if (ax < ay) {
        return x;
    }
    if (ex != 0) {
        mx |= 0x10000000000000;
        ex--;
    }
    if (ey != 0) {
        my |= 0x10000000000000;
        ey--;
    }
    mx %= my;
    while (ex > ey && mx != 0) {
        int step = ex - ey < 11 ? ex - ey : 11;

        mx = (mx << step) % my;
        ex -= step;
    }
    if (mx != 0) {                          /* mx 2^(ey - 1074): put the leading bit in place */
        int up = __builtin_clzll(mx) - 11;

        if (up > ey) {
            up = ey;
        }
        mx = (mx << up) + ((vm_word)(ey - up) << 52);
    }
    return vm_from_bits(mx | ((vm_word)vm_bits(x) & 0x8000000000000000u));
}

/* Lanes whose remainder is not a - trunc(a / b) b: specials, and quotients from 2^50 on
 * (without VM_FMA, all that the product needs more than 53 bits for: left to the scalar). */
VM_INLINE vm_i64
vm_fmod_unusual(vm_f64 a, vm_f64 b)
{
    vm_i64 ax = vm_abs_bits_f64(a), ay = vm_abs_bits_f64(b);
#if VM_FMA
    vm_long apart = (vm_long)50 << 52;
#else
    vm_long apart = 0;          /* a < b or nearly so */
#endif

    return (ax >= VM_INF_BITS) | (ay < 0x0010000000000000) | (ay >= VM_INF_BITS)
           | (ax - ay >= apart);
}

VM_INLINE vm_f64
vm_fmod_core(vm_f64 a, vm_f64 b)
{
    vm_f64 x = vm_abs_f64(a), y = vm_abs_f64(b);
    vm_f64 r = vm_fnma_f64(vm_trunc_f64(x / y), y, x);

    /* a quotient rounded up to an integer is one too large */
    r = r + (vm_f64)(((vm_i64)r < 0) & (vm_abs_bits_f64(r) != 0) & (vm_i64)y);
    return vm_copysign_f64(r, a);
}

VM_COLD vm_f64
vm_fmod_cold(vm_f64 a, vm_f64 b)
{
    vm_i64 special = vm_fmod_unusual(a, b);
    vm_f64 one = VM_ALL_F64(1.0);
    vm_f64 r = vm_fmod_core(vm_sel_f64(special, one, a), vm_sel_f64(special, one, b));

    for (int i = 0; i < VM_D; i++) {
        if (special[i]) {
            r[i] = vm_fmod_one(a[i], b[i]);
        }
    }
    return r;
}

VM_INLINE vm_f64
vm_fmod_f64(vm_f64 a, vm_f64 b)
{
    if (VM_UNLIKELY(vm_any(vm_fmod_unusual(a, b)))) {
        return vm_fmod_cold(a, b);
    }
    return vm_fmod_core(a, b);
}

/* float: the product of a quotient below 2^29 with a float is exact in binary64. */
VM_INLINE vm_f64
vm_fmodf_half(vm_f64 a, vm_f64 b)
{
    vm_i64 ax = vm_abs_bits_f64(a), ay = vm_abs_bits_f64(b);
    vm_i64 special = (ax >= VM_INF_BITS) | (ay == 0) | (ay >= VM_INF_BITS)
                     | (ax - ay >= (vm_long)28 << 52);

    if (VM_UNLIKELY(vm_any(special))) {
        for (int i = 0; i < VM_D; i++) {
            a[i] = vm_fmod_one(a[i], b[i]);
        }
        return a;
    }
    return vm_fmod_core(a, b);
}

VM_INLINE vm_f32
vm_fmod_f32(vm_f32 a, vm_f32 b)
{
    return vm_narrow(vm_fmodf_half(vm_widen(a, 0), vm_widen(b, 0)),
                     vm_fmodf_half(vm_widen(a, 1), vm_widen(b, 1)));
}

/* -- remainder and floor_divide --------------------------------------------------------- */

/* Python's modulo, from m = fmod(a, b): the sign of b. */
VM_INLINE vm_f64
vm_modulo(vm_f64 m, vm_f64 b, vm_i64 *adjust)
{
    vm_i64 zero = vm_abs_bits_f64(m) == 0;

    *adjust = ~zero & (((vm_i64)m ^ (vm_i64)b) < 0) & (vm_abs_bits_f64(m) <= VM_INF_BITS);
    return vm_sel_f64(zero, vm_copysign_f64(m, b), m + (vm_f64)((vm_i64)b & *adjust));
}

VM_INLINE vm_f32
vm_modulo_f32(vm_f32 m, vm_f32 b, vm_i32 *adjust)
{
    vm_i32 zero = vm_abs_bits_f32(m) == 0;

    *adjust = ~zero & (((vm_i32)m ^ (vm_i32)b) < 0) & (vm_abs_bits_f32(m) <= VM_INF_BITS_F32);
    return vm_sel_f32(zero, vm_copysign_f32(m, b), m + (vm_f32)((vm_i32)b & *adjust));
}

VM_INLINE vm_f64
vm_remainder_f64(vm_f64 a, vm_f64 b)
{
    vm_i64 adjust;

    return vm_modulo(vm_fmod_f64(a, b), b, &adjust);
}

VM_INLINE vm_f32
vm_remainder_f32(vm_f32 a, vm_f32 b)
{
    vm_i32 adjust;

    return vm_modulo_f32(vm_fmod_f32(a, b), b, &adjust);
}

/* (a - m) / b, minus one where the modulo was adjusted, to the nearest integer. */
VM_INLINE vm_f64
vm_floor_divide_f64(vm_f64 a, vm_f64 b)
{
    vm_i64 by_zero = vm_abs_bits_f64(b) == 0, adjust, zero, up;
    vm_f64 one = VM_ALL_F64(1.0), m, d, f, s;

    if (VM_UNLIKELY(vm_any(by_zero))) {
        s = a / b;
        d = vm_sel_f64(by_zero, one, b);
    } else {
        s = VM_ALL_F64(0);
        d = b;
    }
    m = vm_fmod_f64(vm_sel_f64(by_zero, one, a), d);
    (void)vm_modulo(m, d, &adjust);
    f = (vm_sel_f64(by_zero, one, a) - m) / d - (vm_f64)((vm_i64)one & adjust);
    zero = vm_abs_bits_f64(f) == 0;
    m = vm_floor_f64(f);
    up = ((vm_i64)(f - m) > vm_bits(0.5)) & (vm_abs_bits_f64(f) < VM_INF_BITS);
    m = m + (vm_f64)((vm_i64)one & up);
    m = vm_sel_f64(zero, (vm_f64)(((vm_i64)a ^ (vm_i64)b) & VM_SIGN_F64), m);
    return vm_sel_f64(by_zero, s, m);
}

VM_INLINE vm_f32
vm_floor_divide_f32(vm_f32 a, vm_f32 b)
{
    vm_i32 by_zero = vm_abs_bits_f32(b) == 0, adjust, zero, up;
    vm_f32 one = VM_ALL_F32(1.0f), m, d, f, s;

    if (VM_UNLIKELY(vm_any_f32(by_zero))) {
        s = a / b;
        d = vm_sel_f32(by_zero, one, b);
    } else {
        s = VM_ALL_F32(0);
        d = b;
    }
    m = vm_fmod_f32(vm_sel_f32(by_zero, one, a), d);
    (void)vm_modulo_f32(m, d, &adjust);
    f = (vm_sel_f32(by_zero, one, a) - m) / d - (vm_f32)((vm_i32)one & adjust);
    zero = vm_abs_bits_f32(f) == 0;
    m = vm_floor_f32(f);
    up = ((vm_i32)(f - m) > (vm_i32)VM_ALL_F32(0.5f)) & (vm_abs_bits_f32(f) < VM_INF_BITS_F32);
    m = m + (vm_f32)((vm_i32)one & up);
    m = vm_sel_f32(zero, (vm_f32)(((vm_i32)a ^ (vm_i32)b) & VM_SIGN_F32), m);
    return vm_sel_f32(by_zero, s, m);
}

#endif
