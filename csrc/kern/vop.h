/* kern/vop.h - what each vector instruction of interp.def computes, once for both engines.
 *
 * Part of generated C and of kern/interp.c; needs rt/kernel.h, kern/vmath.h, no system header.
 * A vector is CC_VB bytes: v_f64 v_f32 v_i64 .. v_u8. A mask has the width of the compared type
 * (v_m64 .. v_m8) and lanes of all ones or all zeros.
 *
 * Rules
 *   - Integers wrap, so their arithmetic is done unsigned.
 *   - No comparison raises an IEEE flag: `<` on float vectors is a signalling compare on every
 *     machine, so operands that are not ordered are replaced first, or the quiet instruction used.
 *   - No instruction has a flag that NumPy's scalar code for the same operation has not.
 *   - Nothing depends on the place of a lane. */
#ifndef CC_VOP_H
#define CC_VOP_H

#include "../rt/kernel.h"
#include "vmath.h"

#define CC_VB (VM_W * 4)

#define VOP_INLINE static inline __attribute__((always_inline, unused))

/* F(name, type, mask, unsigned type, bytes) for each type of a set. */
#define VOP_SET_FLT(F) F(f64, double, m64, u64, 8) F(f32, float, m32, u32, 4)
#define VOP_SET_SIN(F)                                                                            \
    F(i64, cc_i64, m64, u64, 8) F(i32, cc_i32, m32, u32, 4)                                       \
    F(i16, cc_i16, m16, u16, 2) F(i8, cc_i8, m8, u8, 1)
#define VOP_SET_UIN(F)                                                                            \
    F(u64, cc_u64, m64, u64, 8) F(u32, cc_u32, m32, u32, 4)                                       \
    F(u16, cc_u16, m16, u16, 2) F(u8, cc_u8, m8, u8, 1)
#define VOP_SET_MSK(F)                                                                            \
    F(m64, cc_i64, m64, u64, 8) F(m32, cc_i32, m32, u32, 4)                                       \
    F(m16, cc_i16, m16, u16, 2) F(m8, cc_i8, m8, u8, 1)
#define VOP_SET_INT(F) VOP_SET_SIN(F) VOP_SET_UIN(F)
#define VOP_SET_ALL(F) VOP_SET_FLT(F) VOP_SET_INT(F)

/* x_<t>: the same vector anywhere in memory. */
#define VOP_TYPES(t, T, m, u, s)                                                                  \
    typedef T v_##t __attribute__((vector_size(CC_VB)));                                          \
    typedef T x_##t __attribute__((vector_size(CC_VB), aligned(1), may_alias));                   \
    typedef T y_##t __attribute__((aligned(1), may_alias));
VOP_SET_ALL(VOP_TYPES)
VOP_SET_MSK(VOP_TYPES)

#define VOP_SPLAT(t, T, m, u, s)                                                                  \
    VOP_INLINE v_##t vop_splat_##t(T c)                                                           \
    {                                                                                             \
        v_##t r;                                                                                  \
        for (unsigned i = 0; i < CC_VB / s; i++) {                                                \
            r[i] = c;                                                                             \
        }                                                                                         \
        return r;                                                                                 \
    }
VOP_SET_ALL(VOP_SPLAT)
VOP_SET_MSK(VOP_SPLAT)

/* -- Blends ----------------------------------------------------------------------- */

#if defined(__AVX2__) && VM_W == 8
#define VOP_BLEND(m, a, b, V)                                                                     \
    ((V)__builtin_ia32_pblendvb256((vop_bytes)(b), (vop_bytes)(a), (vop_bytes)(m)))
typedef char vop_bytes __attribute__((vector_size(32)));
#else
#define VOP_BLEND(m, a, b, V) ((V)(((v_u64)(m) & (v_u64)(a)) | (~(v_u64)(m) & (v_u64)(b))))
#endif

#define VOP_SEL(t, T, m, u, s)                                                                    \
    VOP_INLINE v_##t vop_sel_##t(v_##m c, v_##t a, v_##t b) { return VOP_BLEND(c, a, b, v_##t); }
VOP_SET_ALL(VOP_SEL)

#define VOP_MASKS(t, T, m, u, s)                                                                  \
    VOP_INLINE v_##t vop_mand_##t(v_##t a, v_##t b) { return a & b; }                             \
    VOP_INLINE v_##t vop_mor_##t(v_##t a, v_##t b) { return a | b; }                              \
    VOP_INLINE v_##t vop_mxor_##t(v_##t a, v_##t b) { return a ^ b; }                             \
    VOP_INLINE v_##t vop_mnot_##t(v_##t a) { return ~a; }                                         \
    VOP_INLINE v_##t vop_msel_##t(v_##t c, v_##t a, v_##t b)                                      \
    {                                                                                             \
        return VOP_BLEND(c, a, b, v_##t);                                                         \
    }
VOP_SET_MSK(VOP_MASKS)

/* -- Integers ---------------------------------------------------------------------- */

#define VOP_INT_COMMON(t, T, m, u, s)                                                             \
    VOP_INLINE v_##t vop_neg_##t(v_##t a) { return (v_##t)(-(v_##u)a); }                          \
    VOP_INLINE v_##t vop_square_##t(v_##t a) { return (v_##t)((v_##u)a * (v_##u)a); }             \
    VOP_INLINE v_##t vop_add_##t(v_##t a, v_##t b) { return (v_##t)((v_##u)a + (v_##u)b); }       \
    VOP_INLINE v_##t vop_sub_##t(v_##t a, v_##t b) { return (v_##t)((v_##u)a - (v_##u)b); }       \
    VOP_INLINE v_##t vop_mul_##t(v_##t a, v_##t b) { return (v_##t)((v_##u)a * (v_##u)b); }       \
    VOP_INLINE v_##m vop_eq_##t(v_##t a, v_##t b) { return (v_##m)(a == b); }                     \
    VOP_INLINE v_##m vop_ne_##t(v_##t a, v_##t b) { return (v_##m)(a != b); }                     \
    VOP_INLINE v_##m vop_lt_##t(v_##t a, v_##t b) { return (v_##m)(a < b); }                      \
    VOP_INLINE v_##m vop_le_##t(v_##t a, v_##t b) { return (v_##m)(a <= b); }                     \
    VOP_INLINE v_##t vop_maximum_##t(v_##t a, v_##t b) { return VOP_BLEND(a > b, a, b, v_##t); }  \
    VOP_INLINE v_##t vop_minimum_##t(v_##t a, v_##t b) { return VOP_BLEND(a < b, a, b, v_##t); }  \
    VOP_INLINE v_##t vop_fmax_##t(v_##t a, v_##t b) { return VOP_BLEND(a > b, a, b, v_##t); }     \
    VOP_INLINE v_##t vop_fmin_##t(v_##t a, v_##t b) { return VOP_BLEND(a < b, a, b, v_##t); }     \
    VOP_INLINE v_##t vop_band_##t(v_##t a, v_##t b) { return a & b; }                             \
    VOP_INLINE v_##t vop_bor_##t(v_##t a, v_##t b) { return a | b; }                              \
    VOP_INLINE v_##t vop_bxor_##t(v_##t a, v_##t b) { return a ^ b; }                             \
    VOP_INLINE v_##t vop_bnot_##t(v_##t a) { return ~a; }                                         \
    VOP_INLINE v_##t vop_shl_##t(v_##t a, v_##t b)                                                \
    {                                                                                             \
        v_##u n = (v_##u)b, in = (v_##u)(n < 8 * s);                                              \
        return (v_##t)(((v_##u)a << (n & (8 * s - 1))) & in);                                     \
    }                                                                                             \
    static __attribute__((noinline, unused)) v_##t vop_pow_##t(v_##t a, v_##t b, cc_u32 *fault)   \
    {                                                                                             \
        v_##t r = {0};                                                                            \
        for (unsigned i = 0; i < CC_VB / s; i++) {                                                \
            cc_u64 base = (cc_u64)a[i], out = 1;                                                  \
            if (b[i] < (T)1 && b[i] != 0) {                                                       \
                *fault |= CC_FAULT_INTPOW;                                                        \
                continue;                                                                         \
            }                                                                                     \
            for (cc_u64 n = (cc_u64)b[i]; n != 0; n >>= 1, base *= base) {                        \
                out *= n & 1 ? base : 1;                                                          \
            }                                                                                     \
            r[i] = (T)out;                                                                        \
        }                                                                                         \
        return r;                                                                                 \
    }
VOP_SET_INT(VOP_INT_COMMON)

/* Quotients round to minus infinity and remainders have the sign of b; fmod's has that of a. */
#define VOP_SIN_ONLY(t, T, m, u, s)                                                               \
    VOP_INLINE v_##t vop_shr_##t(v_##t a, v_##t b)                                                \
    {                                                                                             \
        v_##u last = vop_splat_##u(8 * s - 1), n = (v_##u)b;                                      \
        return a >> (v_##t)VOP_BLEND(n < last, n, last, v_##u);                                   \
    }                                                                                             \
    VOP_INLINE v_##t vop_abs_##t(v_##t a)                                                         \
    {                                                                                             \
        v_##u neg = (v_##u)(a < 0);                                                               \
        return (v_##t)(((v_##u)a ^ neg) - neg);                                                   \
    }                                                                                             \
    VOP_INLINE v_##t vop_sign_##t(v_##t a) { return (v_##t)((a < 0) - (a > 0)); }                 \
    VOP_INLINE v_##t vop_relu_##t(v_##t a) { return a & (v_##t)(a > 0); }                         \
    static __attribute__((noinline, unused)) v_##t                                                \
    vop_divmod_##t(v_##t a, v_##t b, int what, cc_u32 *fault)                                     \
    {                                                                                             \
        v_##t r = {0};                                                                            \
        for (unsigned i = 0; i < CC_VB / s; i++) {                                                \
            if (b[i] == 0) {                                                                      \
                *fault |= CC_FAULT_INTDIV;                                                        \
            } else if (b[i] == -1) {                                                              \
                T low = (T)((cc_u64)1 << (8 * s - 1));                                            \
                *fault |= what == 0 && a[i] == low ? CC_FAULT_INTOVER : 0;                        \
                r[i] = what == 0 ? (T)-(cc_u64)a[i] : 0;                                          \
            } else {                                                                              \
                T q = a[i] / b[i], w = a[i] % b[i];                                               \
                int fix = w != 0 && (w < 0) != (b[i] < 0);                                        \
                r[i] = what == 0 ? q - fix : what == 1 && fix ? w + b[i] : w;                     \
            }                                                                                     \
        }                                                                                         \
        return r;                                                                                 \
    }                                                                                             \
    VOP_INT_DIV(t)
#define VOP_UIN_ONLY(t, T, m, u, s)                                                               \
    VOP_INLINE v_##t vop_shr_##t(v_##t a, v_##t b)                                                \
    {                                                                                             \
        return (a >> (b & (8 * s - 1))) & (v_##t)(b < 8 * s);                                     \
    }                                                                                             \
    VOP_INLINE v_##t vop_abs_##t(v_##t a) { return a; }                                           \
    VOP_INLINE v_##t vop_sign_##t(v_##t a) { return (v_##t)(a != 0) & 1; }                        \
    VOP_INLINE v_##t vop_relu_##t(v_##t a) { return a; }                                          \
    static __attribute__((noinline, unused)) v_##t                                                \
    vop_divmod_##t(v_##t a, v_##t b, int what, cc_u32 *fault)                                     \
    {                                                                                             \
        v_##t r = {0};                                                                            \
        for (unsigned i = 0; i < CC_VB / s; i++) {                                                \
            if (b[i] == 0) {                                                                      \
                *fault |= CC_FAULT_INTDIV;                                                        \
            } else {                                                                              \
                r[i] = what == 0 ? a[i] / b[i] : a[i] % b[i];                                     \
            }                                                                                     \
        }                                                                                         \
        return r;                                                                                 \
    }                                                                                             \
    VOP_INT_DIV(t)
#define VOP_INT_DIV(t)                                                                            \
    VOP_INLINE v_##t vop_floordiv_##t(v_##t a, v_##t b, cc_u32 *fault)                            \
    {                                                                                             \
        return vop_divmod_##t(a, b, 0, fault);                                                    \
    }                                                                                             \
    VOP_INLINE v_##t vop_mod_##t(v_##t a, v_##t b, cc_u32 *fault)                                 \
    {                                                                                             \
        return vop_divmod_##t(a, b, 1, fault);                                                    \
    }                                                                                             \
    VOP_INLINE v_##t vop_fmod_##t(v_##t a, v_##t b, cc_u32 *fault)                                \
    {                                                                                             \
        return vop_divmod_##t(a, b, 2, fault);                                                    \
    }
VOP_SET_SIN(VOP_SIN_ONLY)
VOP_SET_UIN(VOP_UIN_ONLY)

/* -- Floats: arithmetic and comparisons ----------------------------------------------- */

#if defined(__AVX__) && VM_W == 8
VOP_INLINE v_m64 vop_lt_f64(v_f64 a, v_f64 b) { return (v_m64)__builtin_ia32_cmppd256(a, b, 17); }
VOP_INLINE v_m64 vop_le_f64(v_f64 a, v_f64 b) { return (v_m64)__builtin_ia32_cmppd256(a, b, 18); }
VOP_INLINE v_m32 vop_lt_f32(v_f32 a, v_f32 b) { return (v_m32)__builtin_ia32_cmpps256(a, b, 17); }
VOP_INLINE v_m32 vop_le_f32(v_f32 a, v_f32 b) { return (v_m32)__builtin_ia32_cmpps256(a, b, 18); }
#else
#define VOP_ORDER(t, T, m, u, s)                                                                  \
    VOP_INLINE v_##m vop_lt_##t(v_##t a, v_##t b)                                                 \
    {                                                                                             \
        v_##m ok = (v_##m)(a == a) & (v_##m)(b == b);                                             \
        return (v_##m)((v_##t)((v_##m)a & ok) < (v_##t)((v_##m)b & ok)) & ok;                     \
    }                                                                                             \
    VOP_INLINE v_##m vop_le_##t(v_##t a, v_##t b)                                                 \
    {                                                                                             \
        v_##m ok = (v_##m)(a == a) & (v_##m)(b == b);                                             \
        return (v_##m)((v_##t)((v_##m)a & ok) <= (v_##t)((v_##m)b & ok)) & ok;                    \
    }
VOP_SET_FLT(VOP_ORDER)
#endif

#define VOP_SIGN_f64 0x8000000000000000u
#define VOP_SIGN_f32 0x80000000u
#define VOP_INF_f64 0x7ff0000000000000
#define VOP_INF_f32 0x7f800000

#define VOP_FLOAT(t, T, m, u, s)                                                                  \
    VOP_INLINE v_##t vop_neg_##t(v_##t a) { return (v_##t)((v_##u)a ^ VOP_SIGN_##t); }            \
    VOP_INLINE v_##t vop_abs_##t(v_##t a) { return (v_##t)((v_##u)a & ~VOP_SIGN_##t); }           \
    VOP_INLINE v_##t vop_square_##t(v_##t a) { return a * a; }                                    \
    VOP_INLINE v_##t vop_add_##t(v_##t a, v_##t b) { return a + b; }                              \
    VOP_INLINE v_##t vop_sub_##t(v_##t a, v_##t b) { return a - b; }                              \
    VOP_INLINE v_##t vop_mul_##t(v_##t a, v_##t b) { return a * b; }                              \
    VOP_INLINE v_##t vop_div_##t(v_##t a, v_##t b) { return a / b; }                              \
    VOP_INLINE v_##t vop_recip_##t(v_##t a) { return (T)1 / a; }                                  \
    VOP_INLINE v_##m vop_eq_##t(v_##t a, v_##t b) { return (v_##m)(a == b); }                     \
    VOP_INLINE v_##m vop_ne_##t(v_##t a, v_##t b) { return (v_##m)(a != b); }                     \
    VOP_INLINE v_##m vop_isnan_##t(v_##t a) { return (v_##m)(a != a); }                           \
    VOP_INLINE v_##m vop_isinf_##t(v_##t a)                                                       \
    {                                                                                             \
        return (v_##m)(((v_##m)a & (v_##m)vop_splat_##u(~VOP_SIGN_##t)) == VOP_INF_##t);          \
    }                                                                                             \
    VOP_INLINE v_##m vop_isfinite_##t(v_##t a)                                                    \
    {                                                                                             \
        return (v_##m)(((v_##m)a & (v_##m)vop_splat_##u(~VOP_SIGN_##t)) < VOP_INF_##t);           \
    }                                                                                             \
    VOP_INLINE v_##m vop_signbit_##t(v_##t a) { return (v_##m)((v_##m)a < 0); }                   \
    VOP_INLINE v_##t vop_copysign_##t(v_##t a, v_##t b)                                           \
    {                                                                                             \
        return (v_##t)(((v_##u)a & ~VOP_SIGN_##t) | ((v_##u)b & VOP_SIGN_##t));                   \
    }                                                                                             \
    VOP_INLINE v_##t vop_sign_##t(v_##t a)                                                        \
    {                                                                                             \
        v_##m one = (v_##m)vop_splat_##t(1);                                                      \
        v_##t r = (v_##t)((one & vop_lt_##t((v_##t){0}, a)) |                                     \
                          ((v_##m)(-(v_##t)one) & vop_lt_##t(a, (v_##t){0})));                    \
        return VOP_BLEND(a != a, a, r, v_##t);                                                    \
    }                                                                                             \
    VOP_INLINE v_##t vop_relu_##t(v_##t a)                                                        \
    {                                                                                             \
        return (v_##t)((v_##m)a & ((v_##m)(a != a) | vop_lt_##t((v_##t){0}, a)));                 \
    }                                                                                             \
    VOP_INLINE v_##t vop_maximum_##t(v_##t a, v_##t b)                                            \
    {                                                                                             \
        return VOP_BLEND((v_##m)(a != a) | vop_lt_##t(b, a), a, b, v_##t);                        \
    }                                                                                             \
    VOP_INLINE v_##t vop_minimum_##t(v_##t a, v_##t b)                                            \
    {                                                                                             \
        return VOP_BLEND((v_##m)(a != a) | vop_lt_##t(a, b), a, b, v_##t);                        \
    }                                                                                             \
    VOP_INLINE v_##t vop_fmax_##t(v_##t a, v_##t b)                                               \
    {                                                                                             \
        return VOP_BLEND((v_##m)(b != b) | vop_lt_##t(b, a), a, b, v_##t);                        \
    }                                                                                             \
    VOP_INLINE v_##t vop_fmin_##t(v_##t a, v_##t b)                                               \
    {                                                                                             \
        return VOP_BLEND((v_##m)(b != b) | vop_lt_##t(a, b), a, b, v_##t);                        \
    }
VOP_SET_FLT(VOP_FLOAT)

/* -- Floats: functions of kern/vmath.h ----------------------------------------------------- */

#define VOP_MATH_1(name)                                                                          \
    VOP_INLINE v_f64 vop_##name##_f64(v_f64 a) { return vm_##name##_f64(a); }                     \
    VOP_INLINE v_f32 vop_##name##_f32(v_f32 a) { return vm_##name##_f32(a); }
#define VOP_MATH_2(name)                                                                          \
    VOP_INLINE v_f64 vop_##name##_f64(v_f64 a, v_f64 b) { return vm_##name##_f64(a, b); }         \
    VOP_INLINE v_f32 vop_##name##_f32(v_f32 a, v_f32 b) { return vm_##name##_f32(a, b); }
VOP_MATH_1(sqrt)
VOP_MATH_1(floor)
VOP_MATH_1(ceil)
VOP_MATH_1(trunc)
VOP_MATH_1(rint)
VOP_MATH_1(exp)
VOP_MATH_1(exp2)
VOP_MATH_1(expm1)
VOP_MATH_1(log)
VOP_MATH_1(log2)
VOP_MATH_1(log10)
VOP_MATH_1(log1p)
VOP_MATH_1(sin)
VOP_MATH_1(cos)
VOP_MATH_1(tan)
VOP_MATH_1(asin)
VOP_MATH_1(acos)
VOP_MATH_1(atan)
VOP_MATH_1(sinh)
VOP_MATH_1(cosh)
VOP_MATH_1(tanh)
VOP_MATH_1(asinh)
VOP_MATH_1(acosh)
VOP_MATH_1(atanh)
VOP_MATH_1(cbrt)
VOP_MATH_1(erf)
VOP_MATH_2(atan2)
VOP_MATH_2(hypot)
VOP_MATH_2(logaddexp)

/* Rows of interp.def that report faults for integers; floats have IEEE flags. */
#define VOP_FAULT_2(name, fn)                                                                     \
    VOP_INLINE v_f64 vop_##name##_f64(v_f64 a, v_f64 b, cc_u32 *fault)                            \
    {                                                                                             \
        (void)fault;                                                                              \
        return vm_##fn##_f64(a, b);                                                               \
    }                                                                                             \
    VOP_INLINE v_f32 vop_##name##_f32(v_f32 a, v_f32 b, cc_u32 *fault)                            \
    {                                                                                             \
        (void)fault;                                                                              \
        return vm_##fn##_f32(a, b);                                                               \
    }
VOP_FAULT_2(pow, pow)
VOP_FAULT_2(fmod, fmod)
VOP_FAULT_2(mod, remainder)
VOP_FAULT_2(floordiv, floor_divide)

#define VOP_SIGMOID(t, T, m, u, s)                                                                \
    VOP_INLINE v_##t vop_sigmoid_##t(v_##t a) { return (T)1 / ((T)1 + vm_exp_##t(-a)); }
VOP_SET_FLT(VOP_SIGMOID)

/* -- Conversions --------------------------------------------------------------------------
 * One granule: as many lanes as the wider of the two types has in a vector. Floats go to the
 * narrow integers by way of i32, to u32 by way of i64, and f32 to u64 by way of f64, which is what
 * C casts (and so NumPy) give on this machine for numbers out of range. */

#define VOP_SIZE_f64 8
#define VOP_SIZE_f32 4
#define VOP_SIZE_i64 8
#define VOP_SIZE_i32 4
#define VOP_SIZE_i16 2
#define VOP_SIZE_i8 1
#define VOP_SIZE_u64 8
#define VOP_SIZE_u32 4
#define VOP_SIZE_u16 2
#define VOP_SIZE_u8 1
#define VOP_SIZE_m64 8
#define VOP_SIZE_m32 4
#define VOP_SIZE_m16 2
#define VOP_SIZE_m8 1

#define VOP_FROM_INT(C, f)                                                                        \
    C(f, f64) C(f, f32) C(f, i64) C(f, i32) C(f, i16) C(f, i8) C(f, u64) C(f, u32) C(f, u16)      \
        C(f, u8)
#define VOP_FROM_MSK(C, f) C(f, m64) C(f, m32) C(f, m16) C(f, m8)
#define VOP_CONVERSIONS(C)                                                                        \
    VOP_PLAIN_CONVERSIONS(C) C(f64, u64)
#define VOP_PLAIN_CONVERSIONS(C)                                                                  \
    VOP_FROM_INT(C, i64) VOP_FROM_INT(C, i32) VOP_FROM_INT(C, i16) VOP_FROM_INT(C, i8)            \
    VOP_FROM_INT(C, u64) VOP_FROM_INT(C, u32) VOP_FROM_INT(C, u16) VOP_FROM_INT(C, u8)            \
    C(f64, f32) C(f64, i64) C(f64, i32)                                                           \
    C(f32, f64) C(f32, i64) C(f32, i32)                                                           \
    VOP_FROM_MSK(C, m64) VOP_FROM_MSK(C, m32) VOP_FROM_MSK(C, m16) VOP_FROM_MSK(C, m8)

#define VOP_LANES(f, t)                                                                           \
    (CC_VB / (VOP_SIZE_##f > VOP_SIZE_##t ? VOP_SIZE_##f : VOP_SIZE_##t))
#define VOP_CVT(f, t)                                                                             \
    VOP_INLINE void vop_cvt_##f##_##t(void *out, const void *in)                                  \
    {                                                                                             \
        typedef y_##f from                                                                        \
            __attribute__((vector_size(VOP_LANES(f, t) * VOP_SIZE_##f), aligned(1), may_alias));  \
        typedef y_##t to                                                                          \
            __attribute__((vector_size(VOP_LANES(f, t) * VOP_SIZE_##t), aligned(1), may_alias));  \
        *(to *)out = __builtin_convertvector(*(const from *)in, to);                              \
    }
VOP_PLAIN_CONVERSIONS(VOP_CVT)

/* Written out: compilers differ in what numbers below 0 give, and AVX-512 has an instruction of yet
 * another opinion. Here -1.0 is 2^64 - 1, as by way of i64, and what does not fit is 2^63 or 0. */
VOP_INLINE void vop_cvt_f64_u64(void *out, const void *in)
{
    v_f64 a = *(const x_f64 *)in, top = vop_splat_f64(0x1p63);
    v_m64 high = vop_le_f64(top, a);
    v_i64 r = __builtin_convertvector(a - (v_f64)((v_m64)top & high), v_i64);

    *(x_u64 *)out = (v_u64)r ^ ((v_u64)high & VOP_SIGN_f64);
}

/* Bools in memory are bytes, true when not 0; they are written as 0 and 1. */
#define VOP_BOOLS(t, T, m, u, s)                                                                  \
    VOP_INLINE void vop_loadm_##t(void *out, const void *in)                                      \
    {                                                                                             \
        typedef y_u8 bytes __attribute__((vector_size(CC_VB / s), aligned(1), may_alias));        \
        typedef y_i8 small __attribute__((vector_size(CC_VB / s), aligned(1), may_alias));        \
        *(x_##t *)out = __builtin_convertvector((small)(*(const bytes *)in != 0), x_##t);         \
    }                                                                                             \
    VOP_INLINE void vop_storem_##t(void *out, const void *in)                                     \
    {                                                                                             \
        typedef y_u8 bytes __attribute__((vector_size(CC_VB / s), aligned(1), may_alias));        \
        *(bytes *)out = __builtin_convertvector(*(const x_##t *)in, bytes) & 1;                   \
    }
VOP_SET_MSK(VOP_BOOLS)

/* -- Tails: the last `rest` elements of an operand, padded with copies of the last one --------- */

VOP_INLINE void vop_pad(char *tail, const char *p, cc_i64 rest, cc_i64 size, cc_i64 lanes)
{
    __builtin_memcpy(tail, p, (cc_u64)(rest * size));
    for (cc_i64 i = rest; i < lanes; i++) {
        __builtin_memcpy(tail + i * size, p + (rest - 1) * size, (cc_u64)size);
    }
}

VOP_INLINE void vop_unpad(char *p, const char *tail, cc_i64 rest, cc_i64 size)
{
    __builtin_memcpy(p, tail, (cc_u64)(rest * size));
}

#endif
