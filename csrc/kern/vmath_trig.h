/* kern/vmath_trig.h - sin cos tan asin acos atan atan2 for binary64.
 *
 * sin, cos, tan: x = n pi/2 + r + rl. Up to VM_TRIG_MAX by three-part subtraction, beyond by
 * Payne and Hanek's method in 256-bit integers, lane by lane. The inverse functions are one
 * core, the angle of a point whose coordinates are given as unevaluated sums. */
#ifndef VM_TRIG_H
#define VM_TRIG_H

#include "vmath_core.h"
#include "vmath_coef.h"
#include "vmath_tables.h"
#include "vmath_exp.h"

/* -- Reduction ------------------------------------------------------------------- */

#if VM_FMA
#define VM_TRIG_MAX 0x1p30
#else
#define VM_TRIG_MAX 0x1p20      /* n < 2^20, so that its products with 33-bit parts are exact */
#endif

typedef struct {
    vm_f64 r, rl;               /* r keeps the sign of a zero x */
    vm_i64 q;                   /* n modulo 4, in the low two bits */
} VmAngle;

VM_INLINE VmAngle
vm_trig_reduce(vm_f64 x)
{
    vm_f64 t = VM_FMA_C(x, VM_ALL_F64(VM_TWO_OVER_PI), VM_MAGIC);
    vm_f64 n = t - VM_MAGIC;
    VmAngle v;

    v.q = (vm_i64)t;
#if VM_FMA
    {   /* exact: the first part was cut, not rounded, and the difference has few bits */
        vm_f64 a = vm_fnma_f64(n, VM_ALL_F64(VM_PIO2_1), x);
        vm_f64 p = n * VM_PIO2_2, pl = vm_fma_f64(n, VM_ALL_F64(VM_PIO2_2), -p);

        v.r = a - p;
        v.rl = vm_sum_err(a, -p, v.r) - pl;
        v.rl = vm_fnma_f64(n, VM_ALL_F64(VM_PIO2_3), v.rl);
    }
#else
    {
        vm_f64 a = x - n * VM_PIO2S_1;
        vm_f64 p = n * VM_PIO2S_2, b = a - p;
        vm_f64 p3 = n * VM_PIO2S_3;

        v.r = b - p3;
        v.rl = (vm_sum_err(a, -p, b) + vm_sum_err(b, -p3, v.r)) - n * VM_PIO2S_4;
    }
#endif
    return v;
}

__extension__ typedef unsigned __int128 vm_wide;

/* 64 bits of 2/pi from bit `at` on; bits before the first are zero. */
VM_INLINE vm_word
vm_two_over_pi(int at)
{
    int word = at >> 6, shift = at & 63;
    vm_word hi = word < 0 ? 0 : VM_TWO_OVER_PI_BITS[word];
    vm_word lo = word + 1 < 0 ? 0 : VM_TWO_OVER_PI_BITS[word + 1];

    return shift == 0 ? hi : hi << shift | lo >> (64 - shift);
}

/* *r + *rl = x - n pi/2 for finite |x| >= 2^20, returns n modulo 4.
 *
 * x = m 2^e; the bits of 2/pi whose weight times m 2^e is a multiple of 4 are left out, then
 * 256 bits of the product hold the quadrant (2 bits) and its fraction (254). */
VM_COLD int
vm_trig_reduce_huge(double x, double *r, double *rl)
{
    vm_word u = (vm_word)vm_abs_of(x);
    int e = (int)(u >> 52) - 1075, lz, q;
    vm_word m = (u & 0xfffffffffffff) | 0x10000000000000;
    vm_word p[4], top, next;
    vm_wide carry = 0;
    vm_f64 h, l, hi, lo, sum;
    int neg;

    for (int i = 3; i >= 0; i--) {
        carry += (vm_wide)m * vm_two_over_pi(e - 2 + 64 * i);
        p[i] = (vm_word)carry;
        carry >>= 64;
    }
    q = (int)(p[0] >> 62);
    for (int i = 0; i < 3; i++) {
        p[i] = p[i] << 2 | p[i + 1] >> 62;
    }
    p[3] <<= 2;
    neg = p[0] >> 63 != 0;                  /* nearer to the next multiple of pi/2 */
    if (neg) {
        q++;
        for (int i = 0; i < 4; i++) {
            p[i] = ~p[i];
        }
    }
    for (lz = 0; lz < 64 && p[0] == 0; lz += 64) {
        p[0] = p[1];
        p[1] = p[2];
        p[2] = p[3];
    }
    if (p[0] != 0) {
        int s = __builtin_clzll(p[0]);

        lz += s;
        p[0] = s ? p[0] << s | p[1] >> (64 - s) : p[0];
        p[1] = s ? p[1] << s | p[2] >> (64 - s) : p[1];
    }
    top = p[0] >> 11;
    next = p[0] << 53 | p[1] >> 11;
    h = VM_ALL_F64((double)top * vm_from_bits((vm_word)(1023 - 53 - lz) << 52));
    l = VM_ALL_F64((double)next * vm_from_bits((vm_word)(1023 - 117 - lz) << 52));
    hi = h * VM_PIO2_1;
    lo = vm_mul_err(h, VM_ALL_F64(VM_PIO2_1), hi) + (h * VM_PIO2_2 + l * VM_PIO2_1);
    sum = hi + lo;
    lo = vm_fast_sum_err(hi, lo, sum);
    neg ^= vm_bits(x) < 0;
    *r = neg ? -sum[0] : sum[0];
    *rl = neg ? -lo[0] : lo[0];
    return vm_bits(x) < 0 ? -q : q;
}

/* -- sin, cos, tan ------------------------------------------------------------------ */

/* sin and cos of the reduced angle, each the head *sh (r itself) or *ch plus a small rest. */
VM_INLINE void
vm_trig_parts(VmAngle v, vm_f64 *sl, vm_f64 *ch, vm_f64 *cl)
{
    vm_f64 z = v.r * v.r, half = 0.5 * z, w = 1.0 - half;
    vm_f64 s = vm_poly(VM_SINS, 6, z), c = vm_poly(VM_COSC, 6, z);

    *sl = vm_fma_f64(s * z, v.r, vm_fnma_f64(v.rl, half, v.rl));
    *ch = w;
    *cl = ((1.0 - w) - half) + vm_fma_f64(c, z * z, -(v.r * v.rl));
}

/* which: 0 sin, 1 cos, 2 tan */
VM_INLINE vm_f64
vm_trig_eval(VmAngle v, int which)
{
    vm_f64 sl, ch, cl, s, c, y;
    vm_i64 odd;

    vm_trig_parts(v, &sl, &ch, &cl);
    s = vm_copysign_f64(v.r + sl, v.r);     /* -0 + 0 would be 0 */
    c = ch + cl;
    if (which < 2) {
        vm_i64 q = v.q + which;

        odd = -(q & 1);
        y = vm_sel_f64(odd, c, s);
        return (vm_f64)((vm_i64)y ^ ((q & 2) << 62));
    }
    odd = -(v.q & 1);
    sl = vm_fast_sum_err(v.r, sl, s);
    cl = vm_fast_sum_err(ch, cl, c);
    y = vm_div_pair(vm_sel_f64(odd, c, s), vm_sel_f64(odd, cl, sl),
                    vm_sel_f64(odd, s, c), vm_sel_f64(odd, sl, cl), &ch);
    return (vm_f64)(vm_abs_bits_f64(y + ch) | (((vm_i64)v.r ^ odd) & VM_SIGN_F64));
}

VM_COLD vm_f64
vm_trig_cold(vm_f64 x, int which)
{
    vm_i64 ax = vm_abs_bits_f64(x);
    vm_i64 huge = ax > vm_bits(VM_TRIG_MAX), special = ax >= VM_INF_BITS;
    VmAngle v = vm_trig_reduce((vm_f64)((vm_i64)x & ~huge));
    vm_f64 y;

    for (int i = 0; i < VM_D; i++) {
        if (huge[i] && !special[i]) {
            double r, rl;

            v.q[i] = vm_trig_reduce_huge(x[i], &r, &rl);
            v.r[i] = r;
            v.rl[i] = rl;
        }
    }
    y = which == 0 ? vm_trig_eval(v, 0) : which == 1 ? vm_trig_eval(v, 1) : vm_trig_eval(v, 2);
    x = (vm_f64)((vm_i64)x & special);
    return vm_sel_f64(special, x - x, y);
}

VM_INLINE int
vm_trig_unusual(vm_f64 x)
{
    return VM_UNLIKELY(vm_any(vm_abs_bits_f64(x) > vm_bits(VM_TRIG_MAX)));
}

VM_INLINE vm_f64
vm_sin_f64(vm_f64 x)
{
    return vm_trig_unusual(x) ? vm_trig_cold(x, 0) : vm_trig_eval(vm_trig_reduce(x), 0);
}

VM_INLINE vm_f64
vm_cos_f64(vm_f64 x)
{
    return vm_trig_unusual(x) ? vm_trig_cold(x, 1) : vm_trig_eval(vm_trig_reduce(x), 1);
}

VM_INLINE vm_f64
vm_tan_f64(vm_f64 x)
{
    return vm_trig_unusual(x) ? vm_trig_cold(x, 2) : vm_trig_eval(vm_trig_reduce(x), 2);
}

/* -- Angles ------------------------------------------------------------------------- */

/* The angle in [0, pi] of the point (x, y) with y = yh + yl >= 0 and |x| = xh + xl, where
 * `left` lanes have x < 0. Not both zero; quotients neither overflow nor underflow to zero.
 *
 * Angle = m pi/4 +- atan(t), |t| <= tan(pi/8), where t is the quotient of the smaller by the
 * larger coordinate or that point turned by -pi/4. */
VM_INLINE vm_f64
vm_angle(vm_f64 yh, vm_f64 yl, vm_f64 xh, vm_f64 xl, vm_i64 left)
{
    vm_i64 steep = (vm_i64)yh > (vm_i64)xh;
    vm_f64 n = vm_sel_f64(steep, xh, yh), nl = vm_sel_f64(steep, xl, yl);
    vm_f64 d = vm_sel_f64(steep, yh, xh), dl = vm_sel_f64(steep, yl, xl);
    vm_i64 turn = (vm_i64)n > (vm_i64)(d * 0x1.a8279ap-2);
    vm_f64 diff = n - d, sum = n + d;
    vm_f64 t, tl, z, p, m, head, low, s;
    vm_i64 flip;

    nl = vm_sel_f64(turn, vm_sum_err(n, -d, diff) + (nl - dl), nl);
    dl = vm_sel_f64(turn, vm_fast_sum_err(d, n, sum) + (vm_sel_f64(steep, xl, yl) + dl), dl);
    t = vm_div_pair(vm_sel_f64(turn, diff, n), nl, vm_sel_f64(turn, sum, d), dl, &tl);
    z = t * t;
    p = vm_fma_f64(vm_poly(VM_ATANP, 12, z) * z, t, vm_fnma_f64(tl, z, tl));

    m = (vm_f64)(turn & (vm_i64)VM_ALL_F64(1.0));
    m = vm_sel_f64(steep, 2.0 - m, m);
    m = vm_sel_f64(left, 4.0 - m, m);
    flip = (steep ^ left) & VM_SIGN_F64;
    t = (vm_f64)((vm_i64)t ^ flip);
    p = (vm_f64)((vm_i64)p ^ flip);
    head = m * VM_PIO4_1;                           /* exact */
    s = head + t;
    low = vm_fast_sum_err(head, t, s);
    return s + (low + vm_fma_f64(m, VM_ALL_F64(VM_PIO4_2), p));
}

VM_INLINE vm_f64
vm_atan_f64(vm_f64 x)
{
    vm_i64 ax = vm_abs_bits_f64(x), big = ax > vm_bits(0x1p60);
    vm_f64 zero = VM_ALL_F64(0);
    vm_f64 y = vm_angle(vm_sel_f64(big, VM_ALL_F64(0x1p60), (vm_f64)ax), zero, VM_ALL_F64(1.0),
                        zero, (vm_i64)zero);

    y = vm_copysign_f64(y, x);
    if (VM_UNLIKELY(vm_any(ax > VM_INF_BITS))) {
        y = vm_sel_f64(ax > VM_INF_BITS, x, y);
    }
    return y;
}

/* sqrt(1 - a^2) = result + *low for a in [0, 1]. */
VM_INLINE vm_f64
vm_other_leg(vm_f64 a, vm_f64 *low)
{
    vm_f64 p = a * a, s = 1.0 - p, sl = ((1.0 - s) - p) - vm_mul_err(a, a, p);
    vm_f64 q = vm_sqrt_f64(s), qq = q * q;
    vm_f64 rest = ((s - qq) - vm_mul_err(q, q, qq)) + sl;

    *low = 0.5 * rest / vm_sel_f64((vm_i64)q == 0, VM_ALL_F64(1.0), q);
    return q;
}

VM_INLINE vm_f64
vm_asin_core(vm_f64 x)
{
    vm_f64 a = vm_abs_f64(x), l, q = vm_other_leg(a, &l), zero = VM_ALL_F64(0);

    return vm_copysign_f64(vm_angle(a, zero, q, l, (vm_i64)zero), x);
}

VM_INLINE vm_f64
vm_acos_core(vm_f64 x)
{
    vm_f64 a = vm_abs_f64(x), l, q = vm_other_leg(a, &l);

    return vm_angle(q, l, a, VM_ALL_F64(0), (vm_i64)x < 0);
}

/* Lanes outside [-1, 1]: NaN, with the invalid flag unless they were NaN. */
VM_COLD vm_f64
vm_arc_patch(vm_f64 y, vm_f64 x, vm_i64 outside)
{
    for (int i = 0; i < VM_D; i++) {
        if (outside[i]) {
            y[i] = vm_isnan(x[i]) ? x[i] + x[i] : vm_opaque(0.0) / 0.0;
        }
    }
    return y;
}

VM_INLINE vm_f64
vm_asin_f64(vm_f64 x)
{
    vm_i64 outside = vm_abs_bits_f64(x) > vm_bits(1.0);
    vm_f64 y = vm_asin_core((vm_f64)((vm_i64)x & ~outside));

    return VM_UNLIKELY(vm_any(outside)) ? vm_arc_patch(y, x, outside) : y;
}

VM_INLINE vm_f64
vm_acos_f64(vm_f64 x)
{
    vm_i64 outside = vm_abs_bits_f64(x) > vm_bits(1.0);
    vm_f64 y = vm_acos_core((vm_f64)((vm_i64)x & ~outside));

    return VM_UNLIKELY(vm_any(outside)) ? vm_arc_patch(y, x, outside) : y;
}

/* -- atan2 ----------------------------------------------------------------------------- */

VM_INLINE vm_i64
vm_atan2_unusual(vm_f64 v)      /* |v| outside [2^-500, 2^500] */
{
    vm_i64 a = vm_abs_bits_f64(v);

    return (a < vm_bits(0x1p-500)) | (a > vm_bits(0x1p500));
}

/* One pair outside the common range. */
VM_COLD double
vm_atan2_one(double y, double x)
{
    vm_long ay = vm_abs_of(y), ax = vm_abs_of(x);
    int left = vm_bits(x) < 0, apart = (int)(ay >> 52) - (int)(ax >> 52);
    double scale = 1.0, angle;

    if (vm_isnan(x) || vm_isnan(y)) {
        return x + y;
    }
    if (ay == VM_INF_BITS && ax == VM_INF_BITS) {
        angle = left ? 3 * VM_PIO4_1 + 3 * VM_PIO4_2 : VM_PIO4_1 + VM_PIO4_2;
    } else if (ay == 0 || ax == VM_INF_BITS) {
        angle = left ? 4 * VM_PIO4_1 + 4 * VM_PIO4_2 : 0.0;
    } else if (ax == 0 || ay == VM_INF_BITS || apart > 120) {
        angle = VM_PIO2_1;
    } else if (apart < -120) {
        angle = left ? 4 * VM_PIO4_1 + 4 * VM_PIO4_2 : vm_opaque(y) / x;
    } else {
        vm_long most = ay > ax ? ay : ax;

        if (most > vm_bits(0x1p400)) {
            scale = 0x1p-600;
        } else if (most < vm_bits(0x1p-400)) {
            scale = 0x1p600;
        }
        angle = vm_angle(vm_abs_f64(VM_ALL_F64(y * scale)), VM_ALL_F64(0),
                         vm_abs_f64(VM_ALL_F64(x * scale)), VM_ALL_F64(0), VM_ALL_I64(-left))[0];
    }
    return vm_copysign_f64(VM_ALL_F64(angle), VM_ALL_F64(y))[0];
}

VM_COLD vm_f64
vm_atan2_cold(vm_f64 y, vm_f64 x)
{
    vm_i64 special = vm_atan2_unusual(x) | vm_atan2_unusual(y);
    vm_f64 one = VM_ALL_F64(1.0), zero = VM_ALL_F64(0);
    vm_f64 r = vm_angle(vm_sel_f64(special, one, vm_abs_f64(y)), zero,
                        vm_sel_f64(special, one, vm_abs_f64(x)), zero, (vm_i64)x < 0);

    r = vm_copysign_f64(r, y);
    for (int i = 0; i < VM_D; i++) {
        if (special[i]) {
            r[i] = vm_atan2_one(y[i], x[i]);
        }
    }
    return r;
}

VM_INLINE vm_f64
vm_atan2_f64(vm_f64 y, vm_f64 x)
{
    vm_f64 zero = VM_ALL_F64(0);

    if (VM_UNLIKELY(vm_any(vm_atan2_unusual(x) | vm_atan2_unusual(y)))) {
        return vm_atan2_cold(y, x);
    }
    return vm_copysign_f64(vm_angle(vm_abs_f64(y), zero, vm_abs_f64(x), zero, (vm_i64)x < 0), y);
}

#endif
