/* kern/vmath_exp.h - exp and its relatives for binary64: exp exp2 expm1 sinh cosh tanh.
 *
 * x = k ln2 + r, |r| <= ln2/2; e^r = 1 + r + r^2 q(r). Where the result needs it, e^x - 1 is
 * kept as an unevaluated sum h + l (vm_expm1_pair), good to about 2^-60. */
#ifndef VM_EXP_H
#define VM_EXP_H

#include "vmath_core.h"
#include "vmath_coef.h"

/* r for x + xl, with k = round(x / ln2) in the low bits of *magic; *rl gets the rounding error
 * of r. n VM_LN2_1 is exact. */
VM_INLINE vm_f64
vm_exp_reduce(vm_f64 x, vm_f64 xl, vm_i64 *magic, vm_f64 *rl)
{
    vm_f64 t = VM_FMA_C(x, VM_ALL_F64(VM_LOG2E), VM_MAGIC);
    vm_f64 n = t - VM_MAGIC;
    vm_f64 head = vm_fnma_f64(n, VM_ALL_F64(VM_LN2_1), x);
    vm_f64 tail = vm_fma_f64(n, VM_ALL_F64(VM_LN2_2), -xl);
    vm_f64 r = head - tail;

    *magic = (vm_i64)t;
    *rl = (head - r) - tail;
    return r;
}

/* e^(r + rl) in [0.7, 1.42]; 1 + r is kept exact until the last addition. */
VM_INLINE vm_f64
vm_exp_poly(vm_f64 r, vm_f64 rl)
{
    vm_f64 q = VM_FMA_C(vm_poly(VM_EXPQ, 9, r), r, 0.5);
    vm_f64 s = 1.0 + r;

    return s + vm_fma_f64(q, r * r, ((1.0 - s) + r) + vm_fma_f64(rl, r, rl));
}

/* e^-inf = 0, e^inf = inf, e^NaN = NaN in the special lanes. */
VM_INLINE vm_f64
vm_exp_special(vm_f64 x, vm_i64 special)
{
    vm_f64 y = (vm_f64)((vm_i64)x & special & ((vm_i64)x != (vm_i64)VM_ALL_F64(-__builtin_inf())));

    return y + y;
}

/* e^(x + xl) * 2^add for any x; add is 0 or -1. Overflow and underflow round once. */
VM_COLD vm_f64
vm_exp_wide(vm_f64 x, vm_f64 xl, vm_long add)
{
    vm_i64 ax = vm_abs_bits_f64(x);
    vm_i64 special = ax >= VM_INF_BITS;
    vm_i64 large = ax > vm_bits(800.0);
    vm_i64 magic, k1, k2;
    vm_f64 rl, r, e;

    r = vm_sel_f64(large, vm_copysign_f64(VM_ALL_F64(800.0), x), x);
    r = (vm_f64)((vm_i64)r & ~special);
    r = vm_exp_reduce(r, (vm_f64)((vm_i64)xl & ~(large | special)), &magic, &rl);
    e = vm_exp_poly(r, rl);
    k2 = magic - (vm_i64)VM_ALL_F64(VM_MAGIC) + add;
    k1 = k2 >> 1;
    k2 -= k1;
    e = e * (vm_f64)((k1 + 1023) << 52) * (vm_f64)((k2 + 1023) << 52);
    return vm_sel_f64(special, vm_exp_special(x, special), e);
}

VM_COLD vm_f64
vm_exp_cold(vm_f64 x)
{
    return vm_exp_wide(x, VM_ALL_F64(0), 0);
}

VM_INLINE vm_f64
vm_exp_f64(vm_f64 x)
{
    vm_i64 magic;
    vm_f64 r, rl, e;

    if (VM_UNLIKELY(vm_any(vm_abs_bits_f64(x) > vm_bits(708.0)))) {
        return vm_exp_cold(x);
    }
    r = vm_exp_reduce(x, VM_ALL_F64(0), &magic, &rl);
    e = vm_exp_poly(r, rl);
    return (vm_f64)((vm_i64)e + (magic << 52));
}

/* -- exp2 ----------------------------------------------------------------------- */

VM_INLINE vm_f64
vm_exp2_poly(vm_f64 f)
{
    vm_f64 r = f * VM_LN2F_1;
    vm_f64 rl = vm_fma_f64(f, VM_ALL_F64(VM_LN2F_2), vm_mul_err(f, VM_ALL_F64(VM_LN2F_1), r));

    return vm_exp_poly(r, rl);
}

VM_COLD vm_f64
vm_exp2_cold(vm_f64 x)
{
    vm_i64 ax = vm_abs_bits_f64(x);
    vm_i64 special = ax >= VM_INF_BITS, k1, k2;
    vm_f64 y, t, e;

    y = vm_sel_f64(ax > vm_bits(1100.0), vm_copysign_f64(VM_ALL_F64(1100.0), x), x);
    y = (vm_f64)((vm_i64)y & ~special);
    t = y + VM_MAGIC;
    e = vm_exp2_poly(y - (t - VM_MAGIC));
    k2 = (vm_i64)t - (vm_i64)VM_ALL_F64(VM_MAGIC);
    k1 = k2 >> 1;
    k2 -= k1;
    e = e * (vm_f64)((k1 + 1023) << 52) * (vm_f64)((k2 + 1023) << 52);
    return vm_sel_f64(special, vm_exp_special(x, special), e);
}

VM_INLINE vm_f64
vm_exp2_f64(vm_f64 x)
{
    vm_f64 t, e;

    if (VM_UNLIKELY(vm_any(vm_abs_bits_f64(x) > vm_bits(1021.0)))) {
        return vm_exp2_cold(x);
    }
    t = x + VM_MAGIC;
    e = vm_exp2_poly(x - (t - VM_MAGIC));
    return (vm_f64)((vm_i64)e + ((vm_i64)t << 52));
}

/* -- expm1 and the hyperbolic functions -------------------------------------------- */

/* e^x - 1 = h + *l for |x| <= 708, |*l| small against h. */
VM_INLINE vm_f64
vm_expm1_pair(vm_f64 x, vm_f64 *l)
{
    vm_i64 magic;
    vm_f64 rl, r = vm_exp_reduce(x, VM_ALL_F64(0), &magic, &rl);
    vm_f64 q = VM_FMA_C(vm_poly(VM_EXPM1Q, 10, r), r, 0.5);
    vm_f64 tail = vm_fma_f64(q, r * r, vm_fma_f64(rl, r, rl));
    vm_f64 s = vm_pow2_f64(magic);
    vm_f64 a = s - 1.0, b = s * r;
    vm_f64 h = a + b;
    vm_f64 low = vm_fast_sum_err(a, b, h) + ((s - a) - 1.0);
    vm_f64 sum;

    low = vm_fma_f64(s, tail, low);
    sum = h + low;
    *l = vm_fast_sum_err(h, low, sum);
    return sum;
}

VM_COLD vm_f64
vm_expm1_cold(vm_f64 x)
{
    vm_i64 large = vm_abs_bits_f64(x) > vm_bits(708.0);
    vm_f64 l, h = vm_expm1_pair((vm_f64)((vm_i64)x & ~large), &l);
    vm_f64 e = vm_exp_wide((vm_f64)((vm_i64)x & large), VM_ALL_F64(0), 0);

    /* below -708: e^x is nothing against 1, but must not underflow on the way */
    e = vm_sel_f64(((vm_i64)x < 0) & (vm_abs_bits_f64(x) <= VM_INF_BITS), VM_ALL_F64(-1.0), e);
    return vm_sel_f64(large, e, vm_copysign_f64(h, x));
}

VM_INLINE vm_f64
vm_expm1_f64(vm_f64 x)
{
    vm_f64 l;

    if (VM_UNLIKELY(vm_any(vm_abs_bits_f64(x) > vm_bits(708.0)))) {
        return vm_expm1_cold(x);
    }
    return vm_copysign_f64(vm_expm1_pair(x, &l), x);
}

/* n / d for n = nh + nl, d = dh + dl, one division: the quotient and its low part. */
VM_INLINE vm_f64
vm_div_pair(vm_f64 nh, vm_f64 nl, vm_f64 dh, vm_f64 dl, vm_f64 *low)
{
    vm_f64 inv = 1.0 / dh;
    vm_f64 q = nh * inv;
    vm_f64 p = q * dh;
    vm_f64 rest = ((nh - p) - vm_mul_err(q, dh, p)) + (nl - q * dl);

    *low = rest * inv;
    return q;
}

VM_INLINE vm_f64
vm_tanh_f64(vm_f64 x)
{
    vm_i64 ax = vm_abs_bits_f64(x);
    vm_i64 big = ax > vm_bits(20.0), nan;
    vm_f64 a = vm_sel_f64(big, VM_ALL_F64(20.0), (vm_f64)ax);
    vm_f64 l, h = vm_expm1_pair(a + a, &l);
    vm_f64 d = h + 2.0, q, ql;

    /* e = e^2a - 1; tanh a = e / (e + 2). d = h + 2 has its own error: h may be the smaller */
    q = vm_div_pair(h, l, d, vm_sum_err(h, VM_ALL_F64(2.0), d) + l, &ql);
    q = vm_copysign_f64(q + ql, x);
    nan = ax > VM_INF_BITS;
    if (VM_UNLIKELY(vm_any(nan))) {
        q = vm_sel_f64(nan, x, q);
    }
    return q;
}

VM_COLD vm_f64
vm_hyperbolic_wide(vm_f64 x)    /* e^|x| / 2 */
{
    return vm_exp_wide(vm_abs_f64(x), VM_ALL_F64(0), -1);
}

/* sinh |x| = (e + e / (e + 1)) / 2 with e = e^|x| - 1, for |x| <= 708. */
VM_INLINE vm_f64
vm_sinh_core(vm_f64 x)
{
    vm_f64 l, h = vm_expm1_pair(vm_abs_f64(x), &l);
    vm_f64 d = h + 1.0, q, ql, s;

    q = vm_div_pair(h, l, d, vm_sum_err(h, VM_ALL_F64(1.0), d) + l, &ql);
    s = h + q;
    s = s + (vm_sum_err(h, q, s) + (l + ql));
    return vm_copysign_f64(0.5 * s, x);
}

/* cosh x = (e + 1 + 1 / (e + 1)) / 2. */
VM_INLINE vm_f64
vm_cosh_core(vm_f64 x)
{
    vm_f64 l, h = vm_expm1_pair(vm_abs_f64(x), &l);
    vm_f64 d = h + 1.0, dl = vm_sum_err(h, VM_ALL_F64(1.0), d) + l, q, ql, s;

    q = vm_div_pair(VM_ALL_F64(1.0), VM_ALL_F64(0), d, dl, &ql);
    s = d + q;
    s = s + (vm_fast_sum_err(d, q, s) + (dl + ql));
    return 0.5 * s;
}

VM_COLD vm_f64
vm_sinh_cold(vm_f64 x)
{
    vm_i64 large = vm_abs_bits_f64(x) > vm_bits(708.0);
    vm_f64 wide = vm_hyperbolic_wide((vm_f64)((vm_i64)x & large));
    vm_f64 y = vm_sinh_core((vm_f64)((vm_i64)x & ~large));

    return vm_sel_f64(large, vm_copysign_f64(wide, x), y);
}

VM_INLINE vm_f64
vm_sinh_f64(vm_f64 x)
{
    if (VM_UNLIKELY(vm_any(vm_abs_bits_f64(x) > vm_bits(708.0)))) {
        return vm_sinh_cold(x);
    }
    return vm_sinh_core(x);
}

VM_COLD vm_f64
vm_cosh_cold(vm_f64 x)
{
    vm_i64 large = vm_abs_bits_f64(x) > vm_bits(708.0);
    vm_f64 wide = vm_hyperbolic_wide((vm_f64)((vm_i64)x & large));

    return vm_sel_f64(large, wide, vm_cosh_core((vm_f64)((vm_i64)x & ~large)));
}

VM_INLINE vm_f64
vm_cosh_f64(vm_f64 x)
{
    if (VM_UNLIKELY(vm_any(vm_abs_bits_f64(x) > vm_bits(708.0)))) {
        return vm_cosh_cold(x);
    }
    return vm_cosh_core(x);
}

#endif
