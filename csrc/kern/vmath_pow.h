/* kern/vmath_pow.h - pow cbrt hypot logaddexp erf for binary64. */
#ifndef VM_POW_H
#define VM_POW_H

#include "vmath_core.h"
#include "vmath_coef.h"
#include "vmath_tables.h"
#include "vmath_exp.h"
#include "vmath_log.h"

/* -- pow ------------------------------------------------------------------------- */

#define VM_POW_MAX_Y 0x1p70     /* beyond it any x != 1 over- or underflows */

/* y log(x 2^add) = result + *el, x positive and normal. The sum is good to about 2^-64 of it, so
 * that e^ of it is off by less than a quarter ulp before its last rounding: what can be
 * exact, is. */
VM_INLINE vm_f64
vm_pow_log(vm_f64 x, vm_f64 y, vm_f64 add, vm_f64 *el)
{
    VmLog v = vm_log_split(x);
    vm_f64 l, h = vm_log_pair(v, v.k + add, &l);
    vm_f64 e = y * h;

    *el = vm_fma_f64(y, l, vm_mul_err(y, h, e));
    return e;
}

/* pow of one pair with a zero, an infinity, a NaN, or x < 0 with a y that is no integer. */
VM_COLD double
vm_pow_special(double x, double y, int odd)
{
    vm_long ax = vm_abs_of(x), ay = vm_abs_of(y);
    int neg = vm_bits(x) < 0, down = vm_bits(y) < 0;

    if (ay == 0 || vm_bits(x) == vm_bits(1.0)) {
        return 1.0;
    }
    if (vm_isnan(x) || vm_isnan(y)) {
        return x + y;
    }
    if (ay == VM_INF_BITS) {
        if (ax == vm_bits(1.0)) {
            return 1.0;
        }
        return (ax > vm_bits(1.0)) != down ? __builtin_inf() : 0.0;
    }
    if (ax == 0) {
        double zero = vm_opaque(odd ? x : 0.0);

        return down ? 1.0 / zero : zero;
    }
    if (ax == VM_INF_BITS) {
        double big = down ? 0.0 : __builtin_inf();

        return odd && neg ? -big : big;
    }
    return vm_opaque(0.0) / 0.0;
}

/* Masks of the lanes whose y is an odd integer, and any integer. */
VM_INLINE vm_i64
vm_odd_integer(vm_f64 y, vm_i64 *integer)
{
    vm_i64 ay = vm_abs_bits_f64(y);
    vm_i64 big = ay >= vm_bits(0x1p52), even = ay >= vm_bits(0x1p53);
    vm_f64 t = (vm_f64)(ay & ~big) + 0x1p52;
    vm_i64 low = (vm_i64)vm_sel_f64(big, (vm_f64)ay, t);

    *integer = big | ((vm_i64)(t - 0x1p52) == ay);
    return -(low & 1) & ~even & *integer;
}

VM_COLD vm_f64
vm_pow_cold(vm_f64 x, vm_f64 y)
{
    vm_i64 ax = vm_abs_bits_f64(x), ay = vm_abs_bits_f64(y), neg = (vm_i64)x < 0, integer;
    vm_i64 odd = vm_odd_integer(y, &integer);
    vm_i64 special = (ax == 0) | (ax >= VM_INF_BITS) | (ay >= VM_INF_BITS) | (neg & ~integer);
    vm_f64 base = (vm_f64)ax, add, e, el, r;
    vm_f64 p = vm_sel_f64(ay > vm_bits(VM_POW_MAX_Y),
                          vm_copysign_f64(VM_ALL_F64(VM_POW_MAX_Y), y), y);

    base = vm_sel_f64(special, VM_ALL_F64(1.0), base);
    p = vm_sel_f64(special, VM_ALL_F64(1.0), p);
    (void)vm_log_prepare(&base, &add);
    e = vm_pow_log(base, p, add, &el);
    r = vm_exp_wide(e, el, 0);
    r = (vm_f64)((vm_i64)r ^ (odd & neg & VM_SIGN_F64));
    for (int i = 0; i < VM_D; i++) {
        if (special[i]) {
            r[i] = vm_pow_special(x[i], y[i], odd[i] != 0);
        }
    }
    return r;
}

VM_INLINE vm_f64
vm_pow_any(vm_f64 x, vm_f64 y)
{
    vm_i64 magic;
    vm_f64 e, el, r, rl;

    if (VM_UNLIKELY(vm_any(vm_log_unusual(x) | (vm_abs_bits_f64(y) > vm_bits(VM_POW_MAX_Y))))) {
        return vm_pow_cold(x, y);
    }
    e = vm_pow_log(x, y, VM_NOTHING, &el);
    if (VM_UNLIKELY(vm_any(vm_abs_bits_f64(e) > vm_bits(708.0)))) {
        return vm_pow_cold(x, y);
    }
    r = vm_exp_reduce(e, el, &magic, &rl);
    return (vm_f64)((vm_i64)vm_exp_poly(r, rl) + (magic << 52));
}

VM_INLINE vm_f64
vm_pow_f64(vm_f64 x, vm_f64 y)
{
    vm_i64 two = (vm_i64)y == (vm_i64)VM_ALL_F64(2.0);
    vm_f64 r = vm_pow_any(x, y);

    if (VM_UNLIKELY(vm_any(two))) {     /* x * x to the last bit, as NumPy has it */
        vm_f64 s = vm_sel_f64(two, x, VM_ALL_F64(1.0));

        r = vm_sel_f64(two, s * s, r);
    }
    return r;
}

/* -- cbrt --------------------------------------------------------------------------- */

/* |x| = m 2^(3k), m in [1, 8). z = m^(-1/3) by a polynomial and one third-order step, then
 * y = m z^2 with one Newton step on the exact residue, so that cubes are exact. */
VM_INLINE vm_f64
vm_cbrt_core(vm_f64 x)
{
    vm_i64 bits = vm_abs_bits_f64(x), m3;
    vm_i64 one = (vm_i64)VM_ALL_F64(1.0);
    vm_f64 eb = vm_exponent_f64(bits);              /* 1023 = 3 * 341 */
    vm_f64 t = VM_FMA_C(eb - 1.0, VM_ALL_F64(1.0 / 3), VM_MAGIC);
    vm_i64 k = (vm_i64)t - (vm_i64)VM_ALL_F64(VM_MAGIC);
    vm_i64 j = (vm_i64)(eb - 3.0 * (t - VM_MAGIC));     /* 0, 1 or 2 as a double */
    vm_f64 u = (vm_f64)((bits & 0xfffffffffffff) | one), m, z, h, y, s, c, rest;

    m3 = (k + k + k) << 52;
    m = (vm_f64)(bits - m3 + one);
    z = vm_poly(VM_RCBRT, 6, u);
    s = vm_sel_f64(j == one, VM_ALL_F64(VM_CBRT_HALF), VM_ALL_F64(1.0));
    z = z * vm_sel_f64(j > one, VM_ALL_F64(VM_CBRT_QUARTER), s);
    h = 1.0 - m * z * (z * z);
    z = vm_fma_f64(z * h, VM_FMA_C(h, VM_ALL_F64(2.0 / 9), 1.0 / 3), z);
    y = m * (z * z);
    s = y * y;
    c = s * y;
    rest = ((m - c) - vm_mul_err(s, y, c)) - vm_mul_err(y, y, s) * y;
    y = vm_fma_f64(rest, z * z * (1.0 / 3), y);
    return vm_copysign_f64((vm_f64)((vm_i64)y + ((k - 341) << 52)), x);
}

VM_COLD vm_f64
vm_cbrt_cold(vm_f64 x)
{
    vm_i64 ax = vm_abs_bits_f64(x);
    vm_i64 special = (ax == 0) | (ax >= VM_INF_BITS), sub = ax < 0x0010000000000000;
    vm_f64 y = vm_sel_f64(special, VM_ALL_F64(1.0), x);

    y = vm_sel_f64(sub & ~special, vm_sel_f64(sub, y, VM_ALL_F64(1.0)) * 0x1p54, y);
    y = vm_cbrt_core(y);
    y = vm_sel_f64(sub, y * 0x1p-18, y);
    x = (vm_f64)((vm_i64)x & special);
    return vm_sel_f64(special, x + x, y);
}

VM_INLINE vm_f64
vm_cbrt_f64(vm_f64 x)
{
    vm_i64 ax = vm_abs_bits_f64(x);

    if (VM_UNLIKELY(vm_any((ax < 0x0010000000000000) | (ax >= VM_INF_BITS)))) {
        return vm_cbrt_cold(x);
    }
    return vm_cbrt_core(x);
}

/* -- hypot -------------------------------------------------------------------------- */

/* sqrt(a^2 + b^2) for a >= b >= 0, 2^-500 <= a <= 2^500. */
VM_INLINE vm_f64
vm_hypot_core(vm_f64 a, vm_f64 b)
{
    vm_f64 p = a * a, r = b * b, s = p + r;
    vm_f64 sl = vm_fast_sum_err(p, r, s) + (vm_mul_err(a, a, p) + vm_mul_err(b, b, r));
    vm_f64 q = vm_sqrt_f64(s), qq = q * q;
    vm_f64 rest = ((s - qq) - vm_mul_err(q, q, qq)) + sl;

    return q + 0.5 * rest / q;
}

VM_COLD vm_f64
vm_hypot_cold(vm_f64 a, vm_f64 b)
{
    vm_i64 big = (vm_i64)a > vm_bits(0x1p500), small = (vm_i64)a < vm_bits(0x1p-400);
    vm_i64 special = ((vm_i64)a >= VM_INF_BITS) | ((vm_i64)a == 0);
    vm_f64 one = VM_ALL_F64(1.0), scale, back, r;

    scale = vm_sel_f64(big, VM_ALL_F64(0x1p-600), vm_sel_f64(small, VM_ALL_F64(0x1p600), one));
    back = vm_sel_f64(big, VM_ALL_F64(0x1p600), vm_sel_f64(small, VM_ALL_F64(0x1p-600), one));
    scale = vm_sel_f64(special, one, scale);
    r = vm_hypot_core(vm_sel_f64(special, one, a) * scale, vm_sel_f64(special, one, b) * scale);
    r = r * vm_sel_f64(special, one, back);
    for (int i = 0; i < VM_D; i++) {
        if (special[i]) {   /* an infinity wins over a NaN; a holds the larger bits */
            r[i] = vm_bits(b[i]) == VM_INF_BITS ? b[i] : a[i] + a[i];
        }
    }
    return r;
}

VM_INLINE vm_f64
vm_hypot_f64(vm_f64 x, vm_f64 y)
{
    vm_f64 ax = vm_abs_f64(x), ay = vm_abs_f64(y);
    vm_i64 less = (vm_i64)ax < (vm_i64)ay;
    vm_f64 a = vm_sel_f64(less, ay, ax), b = vm_sel_f64(less, ax, ay);

    if (VM_UNLIKELY(vm_any(((vm_i64)a < vm_bits(0x1p-400)) | ((vm_i64)a > vm_bits(0x1p500))))) {
        return vm_hypot_cold(a, b);
    }
    return vm_hypot_core(a, b);
}

/* -- logaddexp ------------------------------------------------------------------------ */

/* log(e^x + e^y) = max + log1p(e^-|x - y|). Where the two terms cancel (both arguments near
 * -0.7) the error is small against the arguments, not against the result.
 * Flags as NumPy's comparisons raise them: invalid for NaN, overflow where x - y does. */
VM_INLINE vm_f64
vm_logaddexp_finite(vm_f64 x, vm_f64 y)
{
    vm_f64 d = x - y;
    vm_f64 most = vm_sel_f64((vm_i64)d < 0, y, x);
    vm_f64 e = vm_exp_f64((vm_f64)((vm_i64)d | VM_SIGN_F64)), u = 1.0 + e, tail, h, s;

    h = vm_log_sum_pair(u, vm_fast_sum_err(VM_ALL_F64(1.0), e, u), VM_NOTHING, &tail);
    s = most + h;
    return s + (vm_sum_err(most, h, s) + tail);
}

VM_COLD vm_f64
vm_logaddexp_cold(vm_f64 x, vm_f64 y)
{
    vm_i64 special = (vm_abs_bits_f64(x) >= VM_INF_BITS) | (vm_abs_bits_f64(y) >= VM_INF_BITS);
    vm_f64 r = vm_logaddexp_finite((vm_f64)((vm_i64)x & ~special), (vm_f64)((vm_i64)y & ~special));

    for (int i = 0; i < VM_D; i++) {
        if (!special[i]) {
            continue;
        }
        if (vm_isnan(x[i]) || vm_isnan(y[i])) {
            r[i] = vm_opaque(0.0) / 0.0;
        } else {        /* the larger of the two, one of which is infinite */
            int take_x = vm_bits(x[i]) == VM_INF_BITS || vm_bits(y[i]) == vm_bits(-__builtin_inf());

            r[i] = (take_x ? x[i] : y[i]) + 0.0;    /* -0 + log1p(0) is 0 */
        }
    }
    return r;
}

VM_INLINE vm_f64
vm_logaddexp_f64(vm_f64 x, vm_f64 y)
{
    if (VM_UNLIKELY(vm_any((vm_abs_bits_f64(x) >= VM_INF_BITS)
                           | (vm_abs_bits_f64(y) >= VM_INF_BITS)))) {
        return vm_logaddexp_cold(x, y);
    }
    return vm_logaddexp_finite(x, y);
}

/* -- erf ------------------------------------------------------------------------------- */

/* erf(x) = erf(r) + 2/sqrt(pi) e^(-r^2) u(r, d), r = i/128 the nearest grid point, d = x - r;
 * u is the Taylor series of the difference, its coefficients Hermite polynomials of r. */
VM_INLINE vm_f64
vm_erf_f64(vm_f64 x)
{
    vm_i64 ax = vm_abs_bits_f64(x), big = ax > vm_bits(5.99);
    vm_f64 a = vm_sel_f64(big, VM_ALL_F64(5.99), (vm_f64)ax);
    vm_f64 t = a + 0x1.8p45, r = t - 0x1.8p45, d = a - r, d2 = d * d, r2 = r * r;
    vm_i64 row = ((vm_i64)t - (vm_i64)VM_ALL_F64(0x1.8p45)) << 5;
    vm_f64 hi, lo, slope, c2, c3, c4, c5, c6, p, u, y;

    vm_rows(VM_ERF_TABLE, row, &hi, &lo, &slope);
    c2 = VM_FMA_C(r2, VM_ALL_F64(2.0 / 3), -1.0 / 3);
    c3 = r * VM_FMA_C(r2, VM_ALL_F64(-1.0 / 3), 0.5);
    c4 = VM_FMA_C(r2, VM_FMA_C(r2, VM_ALL_F64(2.0 / 15), -0.4), 0.1);
    c5 = r * VM_FMA_C(r2, VM_FMA_C(r2, VM_ALL_F64(-2.0 / 45), 2.0 / 9), -1.0 / 6);
    c6 = VM_FMA_C(r2, VM_FMA_C(r2, VM_FMA_C(r2, VM_ALL_F64(4.0 / 315), -2.0 / 21), 1.0 / 7),
                  -1.0 / 42);
    p = vm_fma_f64(d2, c6, vm_fma_f64(d, c5, c4));
    p = vm_fma_f64(d2, p, vm_fma_f64(d, c3, c2));
    p = vm_fma_f64(p, d2, -(r * d));
    u = vm_fma_f64(d, p, d);
    y = hi + vm_fma_f64(slope, u, lo);
    y = vm_copysign_f64(vm_sel_f64(big, VM_ALL_F64(1.0), y), x);
    if (VM_UNLIKELY(vm_any(ax > VM_INF_BITS))) {
        y = vm_sel_f64(ax > VM_INF_BITS, x, y);
    }
    return y;
}

#endif
