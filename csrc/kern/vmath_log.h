/* kern/vmath_log.h - the logarithms for binary64: log log2 log10 log1p asinh acosh atanh.
 *
 * x = 2^k z with z around 1; r = z / c - 1 for the table's c; log x = k ln2 - log(1/c) + log1p(r).
 * 1/c has 20 bits, so that z / c is a sum of two exact products and r needs no fused multiply-add.
 * Lanes outside (0, inf) are left to one scalar function per family. */
#ifndef VM_LOG_H
#define VM_LOG_H

#include "vmath_core.h"
#include "vmath_coef.h"
#include "vmath_tables.h"
#include "vmath_exp.h"

typedef struct {
    vm_f64 k, inv, ch, cl;      /* the exponent; 1/c; -log(1/c) as a multiple of 2^-42, its rest */
    vm_f64 r, rh, re;           /* r; and as rh + re, unevaluated and exact */
    vm_f64 scale;               /* 2^-k */
} VmLog;

VM_INLINE VmLog
vm_log_split(vm_f64 x)
{
    vm_i64 t = (vm_i64)x - VM_LOG_OFFSET;
    vm_i64 row = (vm_i64)((vm_u64)t >> 40) & (127 << 5);
    vm_i64 exponent = t & (vm_long)0xfff0000000000000;
    vm_i64 zbits = (vm_i64)x - exponent;
    vm_f64 zh = (vm_f64)(zbits & (vm_long)0xffffffffffe00000);
    vm_f64 zl = (vm_f64)zbits - zh;
    VmLog v;

    v.k = vm_exponent_f64(t);
    v.scale = (vm_f64)((vm_i64)VM_ALL_F64(1.0) - exponent);
    vm_rows(VM_LOG_TABLE, row, &v.inv, &v.ch, &v.cl);
    v.rh = vm_fma_f64(zh, v.inv, VM_ALL_F64(-1.0));     /* exact either way */
    v.re = zl * v.inv;
#if VM_FMA
    v.r = vm_fma_f64((vm_f64)zbits, v.inv, VM_ALL_F64(-1.0));   /* the same number, sooner */
#else
    v.r = v.rh + v.re;
#endif
    return v;
}

VM_INLINE vm_f64
vm_log_tail(vm_f64 r)           /* (log1p(r) - r) / r^2 */
{
    return vm_fma_f64(vm_poly(VM_LOGP, 6, r), r, VM_ALL_F64(-0.5));
}

/* log(x) + add ln2 for positive normal x. */
VM_INLINE vm_f64
vm_log_core(vm_f64 x, vm_f64 add)
{
    VmLog v = vm_log_split(x);
    vm_f64 r = v.r, k = v.k + add;
    vm_f64 b = vm_fma_f64(k, VM_ALL_F64(VM_LN2_1), v.ch);
    vm_f64 h = b + r;
    vm_f64 l = vm_fast_sum_err(b, r, h) + vm_fma_f64(k, VM_ALL_F64(VM_LN2_2), v.cl);

    return h + vm_fma_f64(vm_log_tail(r), r * r, l);
}

/* k ln2 + log(z) as h + *l, to about 2^-65 of the larger term. The exponent is a parameter:
 * log2 and log10 add it themselves. */
VM_INLINE vm_f64
vm_log_pair(VmLog v, vm_f64 k, vm_f64 *l)
{
    vm_f64 r = v.r, re = v.re - (r - v.rh);
    vm_f64 base = vm_fma_f64(k, VM_ALL_F64(VM_LN2_1), v.ch);    /* exact */
    vm_f64 t = base + r;
    vm_f64 half = -0.5 * r, square = r * half, h = t + square;
    vm_f64 low = (vm_fma_f64(k, VM_ALL_F64(VM_LN2_2), v.cl) + re)
                 + vm_fast_sum_err(base, r, t);

    low = low + (vm_mul_err(r, half, square) + vm_fast_sum_err(t, square, h));
    low = vm_fma_f64(vm_poly(VM_LOGP, 6, r), r * (r * r), vm_fnma_f64(re, r, low));
    t = h + low;
    *l = vm_fast_sum_err(h, low, t);
    return t;
}

/* -- Special lanes -------------------------------------------------------------------- */

/* The logarithm of zero, infinity, NaN or a negative number, with its flag. */
VM_INLINE double
vm_log_of_special(double x)
{
    if (vm_abs_of(x) == 0) {
        return -1.0 / vm_opaque(0.0);
    }
    if (vm_bits(x) < 0 && !vm_isnan(x)) {
        return vm_opaque(0.0) / 0.0;
    }
    return x + x;
}

/* Lanes outside [2^-1022, inf): ordinary bit patterns in *x, 54 in *add for subnormals;
 * a mask of those that stay special. */
VM_INLINE vm_i64
vm_log_prepare(vm_f64 *x, vm_f64 *add)
{
    vm_i64 bits = (vm_i64)*x;
    vm_i64 sub = (bits > 0) & (bits < 0x0010000000000000);
    vm_i64 special = (bits <= 0) | (bits >= VM_INF_BITS);
    vm_f64 y = vm_sel_f64(sub, *x, VM_ALL_F64(1.0)) * 0x1p54;

    *add = (vm_f64)(sub & (vm_i64)VM_ALL_F64(-54.0));
    *x = vm_sel_f64(special, VM_ALL_F64(1.0), vm_sel_f64(sub, y, *x));
    return special;
}

/* y, with the logarithm of a special x in the lanes of the mask. */
VM_COLD vm_f64
vm_log_patch(vm_f64 y, vm_f64 x, vm_i64 special)
{
    for (int i = 0; i < VM_D; i++) {
        if (special[i]) {
            y[i] = vm_log_of_special(x[i]);
        }
    }
    return y;
}

VM_INLINE vm_i64
vm_log_unusual(vm_f64 x)
{
    vm_u64 t = (vm_u64)x - 0x0010000000000000u;

    /* an unsigned compare, as a signed one: the other does not exist before AVX-512 */
    return (vm_i64)(t + 0x8000000000000000u) >= (vm_long)0xffe0000000000000;
}

VM_COLD vm_f64
vm_log_cold(vm_f64 x)
{
    vm_f64 y = x, add;
    vm_i64 special = vm_log_prepare(&y, &add);

    return vm_log_patch(vm_log_core(y, add), x, special);
}

VM_INLINE vm_f64
vm_log_f64(vm_f64 x)
{
    if (VM_UNLIKELY(vm_any(vm_log_unusual(x)))) {
        return vm_log_cold(x);
    }
    return vm_log_core(x, VM_NOTHING);
}

/* -- log2 and log10 --------------------------------------------------------------------- */

/* (h + l) * (c1 + c2) + (k1 + k2), k1 a multiple of 2^-42. A head of 27 bits makes h c1 exact. */
VM_INLINE vm_f64
vm_log_scaled(vm_f64 h, vm_f64 l, double c1, double c2, vm_f64 k1, vm_f64 k2)
{
    vm_f64 hh = (vm_f64)((vm_i64)h & (vm_long)0xfffffffffc000000);
    vm_f64 p = hh * c1, s = k1 + p;
    vm_f64 rest = ((h - hh) + l) * c1 + (h + l) * c2;

    return s + ((vm_sum_err(k1, p, s) + k2) + rest);
}

VM_INLINE vm_f64
vm_log2_core(vm_f64 x, vm_f64 add)
{
    VmLog v = vm_log_split(x);
    vm_f64 k = v.k + add, l, h = vm_log_pair(v, VM_ALL_F64(0), &l);

    return vm_log_scaled(h, l, VM_LOG2E_1, VM_LOG2E_2, k, VM_ALL_F64(0));
}

VM_INLINE vm_f64
vm_log10_core(vm_f64 x, vm_f64 add)
{
    VmLog v = vm_log_split(x);
    vm_f64 k = v.k + add, l, h = vm_log_pair(v, VM_ALL_F64(0), &l);

    return vm_log_scaled(h, l, VM_LOG10E_1, VM_LOG10E_2, k * VM_LG2_1, k * VM_LG2_2);
}

VM_COLD vm_f64
vm_log2_cold(vm_f64 x)
{
    vm_f64 y = x, add;
    vm_i64 special = vm_log_prepare(&y, &add);

    return vm_log_patch(vm_log2_core(y, add), x, special);
}

VM_INLINE vm_f64
vm_log2_f64(vm_f64 x)
{
    if (VM_UNLIKELY(vm_any(vm_log_unusual(x)))) {
        return vm_log2_cold(x);
    }
    return vm_log2_core(x, VM_NOTHING);
}

VM_COLD vm_f64
vm_log10_cold(vm_f64 x)
{
    vm_f64 y = x, add;
    vm_i64 special = vm_log_prepare(&y, &add);

    return vm_log_patch(vm_log10_core(y, add), x, special);
}

VM_INLINE vm_f64
vm_log10_f64(vm_f64 x)
{
    if (VM_UNLIKELY(vm_any(vm_log_unusual(x)))) {
        return vm_log10_cold(x);
    }
    return vm_log10_core(x, VM_NOTHING);
}

/* -- log1p and the inverse hyperbolic functions -------------------------------------------- */

/* log(u + c) + add ln2 = result + *tail, unevaluated; *tail is small. For u in [2^-53, 2^1000]
 * and |c| <= ulp(u): where u = 1 + a was rounded, c is what the rounding lost. */
VM_INLINE vm_f64
vm_log_sum_pair(vm_f64 u, vm_f64 c, vm_f64 add, vm_f64 *tail)
{
    VmLog v = vm_log_split(u);
    vm_f64 r0 = v.r, e = (c * v.scale) * v.inv;
    vm_f64 r = r0 + e, re = (v.re - (r0 - v.rh)) + vm_sum_err(r0, e, r);
    vm_f64 k = v.k + add, b, h, l;

    b = vm_fma_f64(k, VM_ALL_F64(VM_LN2_1), v.ch);
    h = b + r;
    l = (vm_fast_sum_err(b, r, h) + re) + vm_fma_f64(k, VM_ALL_F64(VM_LN2_2), v.cl);
    *tail = vm_fma_f64(vm_log_tail(r), r * r, l);
    return h;
}

VM_INLINE vm_f64
vm_log_sum(vm_f64 u, vm_f64 c, vm_f64 add)
{
    vm_f64 tail, h = vm_log_sum_pair(u, c, add, &tail);

    return h + tail;
}

/* log1p(a + al) for a in (-1, 2^1000]. */
VM_INLINE vm_f64
vm_log1p_pair(vm_f64 a, vm_f64 al)
{
    vm_f64 u = 1.0 + a;

    return vm_log_sum(u, vm_sum_err(VM_ALL_F64(1.0), a, u) + al, VM_NOTHING);
}

VM_INLINE vm_i64
vm_log1p_unusual(vm_f64 x)
{
    vm_i64 bits = (vm_i64)x;

    return (bits > vm_bits(0x1p1000)) | ((bits < 0) & (vm_abs_bits_f64(x) >= vm_bits(1.0)));
}

VM_COLD vm_f64
vm_log1p_cold(vm_f64 x)
{
    vm_i64 unusual = vm_log1p_unusual(x);
    vm_f64 y = vm_log1p_pair((vm_f64)((vm_i64)x & ~unusual), VM_ALL_F64(0));

    for (int i = 0; i < VM_D; i++) {
        if (!unusual[i]) {
            continue;
        }
        if (vm_bits(x[i]) > 0 && vm_bits(x[i]) < VM_INF_BITS) {
            y[i] = vm_log_core(VM_ALL_F64(x[i]), VM_ALL_F64(0))[0];
        } else {
            y[i] = vm_log_of_special(vm_bits(x[i]) == vm_bits(-1.0) ? 0.0 : x[i]);
        }
    }
    return vm_copysign_f64(y, x);
}

VM_INLINE vm_f64
vm_log1p_f64(vm_f64 x)
{
    if (VM_UNLIKELY(vm_any(vm_log1p_unusual(x)))) {
        return vm_log1p_cold(x);
    }
    return vm_copysign_f64(vm_log1p_pair(x, VM_ALL_F64(0)), x);
}

#define VM_LARGE 0x1p28         /* from here on sqrt(x^2 +- 1) is x for our purposes */

/* log(2a) where `large`, log1p(y + yl) elsewhere. */
VM_INLINE vm_f64
vm_log1p_or_large(vm_f64 a, vm_i64 large, vm_f64 y, vm_f64 yl)
{
    vm_f64 u = 1.0 + y, c = vm_sum_err(VM_ALL_F64(1.0), y, u) + yl;

    return vm_log_sum(vm_sel_f64(large, a, u), (vm_f64)((vm_i64)c & ~large),
                      (vm_f64)((vm_i64)VM_ALL_F64(1.0) & large));
}

/* asinh a = log1p(a + a^2 / (1 + sqrt(a^2 + 1))), a = |x|. */
VM_INLINE vm_f64
vm_asinh_core(vm_f64 x)
{
    vm_f64 a = vm_abs_f64(x);
    vm_i64 large = (vm_i64)a > vm_bits(VM_LARGE);
    vm_f64 b = (vm_f64)((vm_i64)a & ~large);
    vm_f64 square = b * b, q = square / (1.0 + vm_sqrt_f64(1.0 + square));
    vm_f64 y = b + q, yl = vm_fast_sum_err(b, q, y);

    return vm_copysign_f64(vm_log1p_or_large(a, large, y, yl), x);
}

VM_COLD vm_f64
vm_asinh_cold(vm_f64 x)
{
    vm_i64 special = vm_abs_bits_f64(x) > vm_bits(0x1p1000);
    vm_f64 y = vm_asinh_core((vm_f64)((vm_i64)x & ~special));

    for (int i = 0; i < VM_D; i++) {
        if (special[i]) {
            vm_f64 v = VM_ALL_F64(x[i]);

            if (vm_abs_bits_f64(v)[0] >= VM_INF_BITS) {
                y[i] = x[i] + x[i];
            } else {
                y[i] = vm_copysign_f64(vm_log_core(vm_abs_f64(v), VM_ALL_F64(1.0)), v)[0];
            }
        }
    }
    return y;
}

VM_INLINE vm_f64
vm_asinh_f64(vm_f64 x)
{
    if (VM_UNLIKELY(vm_any(vm_abs_bits_f64(x) > vm_bits(0x1p1000)))) {
        return vm_asinh_cold(x);
    }
    return vm_asinh_core(x);
}

/* acosh x = log1p(t + sqrt(t (x + 1))), t = x - 1; the square root as a pair, because near
 * x = 1 it is the result. */
VM_INLINE vm_f64
vm_acosh_core(vm_f64 x)
{
    vm_i64 large = (vm_i64)x > vm_bits(VM_LARGE);
    vm_f64 a = vm_sel_f64(large, VM_ALL_F64(2.0), x);
    vm_f64 t = a - 1.0, d = a + 1.0, dl = vm_fast_sum_err(a, VM_ALL_F64(1.0), d);
    vm_f64 p = t * d, pl = vm_fma_f64(t, dl, vm_mul_err(t, d, p));
    vm_f64 q = vm_sqrt_f64(p), qq = q * q, rest = ((p - qq) - vm_mul_err(q, q, qq)) + pl;
    vm_i64 zero = (vm_i64)q == 0;
    vm_f64 ql = rest / vm_sel_f64(zero, VM_ALL_F64(1.0), q + q);
    vm_f64 y = q + t, yl = vm_fast_sum_err(q, t, y) + ql;

    return vm_log1p_or_large(x, large, y, yl);
}

VM_COLD vm_f64
vm_acosh_cold(vm_f64 x)
{
    vm_i64 special = ((vm_i64)x < vm_bits(1.0)) | ((vm_i64)x > vm_bits(0x1p1000));
    vm_f64 y = vm_acosh_core(vm_sel_f64(special, VM_ALL_F64(1.0), x));

    for (int i = 0; i < VM_D; i++) {
        if (!special[i]) {
            continue;
        }
        if (vm_bits(x[i]) > vm_bits(1.0) && vm_bits(x[i]) < VM_INF_BITS) {
            y[i] = vm_log_core(VM_ALL_F64(x[i]), VM_ALL_F64(1.0))[0];
        } else {
            y[i] = vm_log_of_special(vm_isnan(x[i]) || vm_bits(x[i]) == VM_INF_BITS
                                     ? x[i] : -1.0);
        }
    }
    return y;
}

VM_INLINE vm_f64
vm_acosh_f64(vm_f64 x)
{
    vm_i64 bits = (vm_i64)x;

    if (VM_UNLIKELY(vm_any((bits < vm_bits(1.0)) | (bits > vm_bits(0x1p1000))))) {
        return vm_acosh_cold(x);
    }
    return vm_acosh_core(x);
}

/* atanh a = log1p(2a / (1 - a)) / 2. */
VM_INLINE vm_f64
vm_atanh_core(vm_f64 x)
{
    vm_f64 a = vm_abs_f64(x), d = 1.0 - a, dl = (1.0 - d) - a;
    vm_f64 ql, q = vm_div_pair(a + a, VM_ALL_F64(0), d, dl, &ql);
    vm_f64 y = q + ql;

    return vm_copysign_f64(0.5 * vm_log1p_pair(y, vm_fast_sum_err(q, ql, y)), x);
}

VM_COLD vm_f64
vm_atanh_cold(vm_f64 x)
{
    vm_i64 special = vm_abs_bits_f64(x) >= vm_bits(1.0);
    vm_f64 y = vm_atanh_core((vm_f64)((vm_i64)x & ~special));

    for (int i = 0; i < VM_D; i++) {
        if (!special[i]) {
            continue;
        }
        if (vm_abs_of(x[i]) == vm_bits(1.0)) {
            y[i] = x[i] / vm_opaque(0.0);
        } else {
            y[i] = vm_log_of_special(vm_isnan(x[i]) ? x[i] : -1.0);
        }
    }
    return y;
}

VM_INLINE vm_f64
vm_atanh_f64(vm_f64 x)
{
    if (VM_UNLIKELY(vm_any(vm_abs_bits_f64(x) >= vm_bits(1.0)))) {
        return vm_atanh_cold(x);
    }
    return vm_atanh_core(x);
}

#endif
