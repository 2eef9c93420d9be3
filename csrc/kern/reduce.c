/* isa: multi */
/* kern/reduce.c - the reductions of one ISA level; rt/reduce.h says what is added to what.
 *
 * NaN rules are NumPy's: it wins in MAX and MIN, and the first one is the place of ARGMAX and
 * ARGMIN. Padding lanes hold the neutral element or a copy, so they raise no flags. */
#include "visa.h"
#include "vop.h"

#include <string.h>

/* -- The operations on single elements, matching the vop_ functions -------------------------- */

#define SUM_f64(x, y) ((x) + (y))
#define SUM_f32(x, y) ((x) + (y))
#define PROD_f64(x, y) ((x) * (y))
#define PROD_f32(x, y) ((x) * (y))
#define MAX_f64(x, y) ((x) != (x) || __builtin_isgreater(x, y) ? (x) : (y))
#define MAX_f32(x, y) MAX_f64(x, y)
#define MIN_f64(x, y) ((x) != (x) || __builtin_isless(x, y) ? (x) : (y))
#define MIN_f32(x, y) MIN_f64(x, y)
#define SUM_INT(x, y) ((cc_u64)(x) + (cc_u64)(y))
#define PROD_INT(x, y) ((cc_u64)(x) * (cc_u64)(y))
#define MAX_INT(x, y) ((x) > (y) ? (x) : (y))
#define MIN_INT(x, y) ((x) < (y) ? (x) : (y))
#define OR_INT(x, y) ((x) | (y))
#define AND_INT(x, y) ((x) & (y))
#define BARE(v) (v)
#define TRUTH(v) ((v_u8)((v) != 0) & 1)

#define RED_AT(t, p, j) (*(const x_##t *)((p) + (j) * CC_VB))

/* Vector j goes to accumulator j % 4; then ((0 + 1) + (2 + 3)), then halves of lanes. `pad` fills
 * the lanes past the end, 0 = with the last element. */
#define RED_BLOCK(name, t, T, V, S, PREP, has_pad, pad)                                           \
    static void block_##name##_##t(const char *p, cc_i64 n, char *out)                            \
    {                                                                                             \
        enum { lanes = CC_VB / sizeof(T) };                                                       \
        v_##t acc[4], v;                                                                          \
        T x[lanes];                                                                               \
        cc_i64 i = 0, j = 0;                                                                      \
        if (n >= 4 * lanes) {           /* the same as below, in registers */                     \
            v_##t a0 = PREP(RED_AT(t, p, 0)), a1 = PREP(RED_AT(t, p, 1));                         \
            v_##t a2 = PREP(RED_AT(t, p, 2)), a3 = PREP(RED_AT(t, p, 3));                         \
            for (j = 4; (j + 4) * lanes <= n; j += 4) {                                           \
                a0 = V(a0, PREP(RED_AT(t, p, j)));                                                \
                a1 = V(a1, PREP(RED_AT(t, p, j + 1)));                                            \
                a2 = V(a2, PREP(RED_AT(t, p, j + 2)));                                            \
                a3 = V(a3, PREP(RED_AT(t, p, j + 3)));                                            \
            }                                                                                     \
            acc[0] = a0;                                                                          \
            acc[1] = a1;                                                                          \
            acc[2] = a2;                                                                          \
            acc[3] = a3;                                                                          \
            i = j * lanes;                                                                        \
        }                                                                                         \
        for (; i < n; i += lanes, j++) {                                                          \
            if (n - i >= lanes) {                                                                 \
                v = *(const x_##t *)(p + i * (cc_i64)sizeof(T));                                  \
            } else {                                                                              \
                const char *last = p + (n - 1) * (cc_i64)sizeof(T);                               \
                v = vop_splat_##t(has_pad ? (T)pad : *(const y_##t *)last);                       \
                memcpy(x, &v, sizeof(x));                                                         \
                memcpy(x, p + i * (cc_i64)sizeof(T), (size_t)(n - i) * sizeof(T));                \
                memcpy(&v, x, sizeof(x));                                                         \
            }                                                                                     \
            v = PREP(v);                                                                          \
            acc[j & 3] = j < 4 ? v : V(acc[j & 3], v);                                            \
        }                                                                                         \
        if (j > 1) {                                                                              \
            acc[0] = V(acc[0], acc[1]);                                                           \
        }                                                                                         \
        if (j > 2) {                                                                              \
            acc[0] = V(acc[0], j > 3 ? V(acc[2], acc[3]) : acc[2]);                               \
        }                                                                                         \
        memcpy(x, &acc[0], sizeof(x));                                                            \
        for (int w = lanes / 2; w > 0; w /= 2) {                                                  \
            for (int k = 0; k < w; k++) {                                                         \
                x[k] = (T)S(x[k], x[k + w]);                                                      \
            }                                                                                     \
        }                                                                                         \
        memcpy(out, &x[0], sizeof(T));                                                            \
    }

#define RED_FOLD(name, t, T, V, PREP)                                                             \
    static void fold_##name##_##t(char *acc, const char *p, cc_i64 n)                             \
    {                                                                                             \
        enum { lanes = CC_VB / sizeof(T) };                                                       \
        cc_i64 i = 0;                                                                             \
        for (; i + lanes <= n; i += lanes) {                                                      \
            cc_i64 at = i * (cc_i64)sizeof(T);                                                    \
            *(x_##t *)(acc + at) = V(*(x_##t *)(acc + at), PREP(*(const x_##t *)(p + at)));       \
        }                                                                                         \
        if (i < n) {                                                                              \
            size_t bytes = (size_t)(n - i) * sizeof(T);                                           \
            char *end = acc + i * (cc_i64)sizeof(T);                                              \
            v_##t a = vop_splat_##t(*(const y_##t *)end), b;                                      \
            b = vop_splat_##t(*(const y_##t *)(p + i * (cc_i64)sizeof(T)));                       \
            memcpy(&a, end, bytes);                                                               \
            memcpy(&b, p + i * (cc_i64)sizeof(T), bytes);                                         \
            a = V(a, PREP(b));                                                                    \
            memcpy(end, &a, bytes);                                                               \
        }                                                                                         \
    }

/* The same as fold() four times, with the accumulators in registers. */
#define RED_FOLD4(name, t, T, V, PREP)                                                            \
    static void fold4_##name##_##t(char *acc, const char *p, cc_i64 stride, cc_i64 n)             \
    {                                                                                             \
        enum { lanes = CC_VB / sizeof(T) };                                                       \
        cc_i64 whole = n / lanes * lanes, bytes = whole * (cc_i64)sizeof(T);                      \
        for (cc_i64 at = 0; at < bytes; at += CC_VB) {                                            \
            v_##t a = V(*(x_##t *)(acc + at), PREP(*(const x_##t *)(p + at)));                    \
            a = V(a, PREP(*(const x_##t *)(p + stride + at)));                                    \
            a = V(a, PREP(*(const x_##t *)(p + 2 * stride + at)));                                \
            *(x_##t *)(acc + at) = V(a, PREP(*(const x_##t *)(p + 3 * stride + at)));             \
        }                                                                                         \
        for (int k = 0; k < 4 && whole < n; k++) {                                                \
            fold_##name##_##t(acc + bytes, p + k * stride + bytes, n - whole);                    \
        }                                                                                         \
    }

#define RED_ONE(name, t, T, V, S, PREP, has_pad, pad)                                             \
    RED_BLOCK(name, t, T, V, S, PREP, has_pad, pad)                                               \
    RED_FOLD(name, t, T, V, PREP)                                                                 \
    RED_FOLD4(name, t, T, V, PREP)
#define RED_FLT(t, T, m, u, s)                                                                    \
    RED_ONE(sum, t, T, vop_add_##t, SUM_##t, BARE, 1, 0)                                          \
    RED_ONE(prod, t, T, vop_mul_##t, PROD_##t, BARE, 1, 1)                                        \
    RED_ONE(max, t, T, vop_maximum_##t, MAX_##t, BARE, 0, 0)                                      \
    RED_ONE(min, t, T, vop_minimum_##t, MIN_##t, BARE, 0, 0)
#define RED_INT(t, T, m, u, s)                                                                    \
    RED_ONE(sum, t, T, vop_add_##t, SUM_INT, BARE, 1, 0)                                          \
    RED_ONE(prod, t, T, vop_mul_##t, PROD_INT, BARE, 1, 1)                                        \
    RED_ONE(max, t, T, vop_maximum_##t, MAX_INT, BARE, 0, 0)                                      \
    RED_ONE(min, t, T, vop_minimum_##t, MIN_INT, BARE, 0, 0)
VOP_SET_FLT(RED_FLT)
VOP_SET_INT(RED_INT)
RED_ONE(any, u8, cc_u8, vop_bor_u8, OR_INT, TRUTH, 0, 0)
RED_ONE(all, u8, cc_u8, vop_band_u8, AND_INT, TRUTH, 0, 0)

/* -- Places ---------------------------------------------------------------------------------- */

/* The first element equal to the extreme one, or the first NaN. */
#define RED_PLACE(t, T, m, u, s)                                                                  \
    static cc_i64 place_##t(const char *p, cc_i64 n, const char *best)                            \
    {                                                                                             \
        enum { lanes = CC_VB / sizeof(T) };                                                       \
        T want = *(const y_##t *)best;                                                            \
        v_##t all = vop_splat_##t(want);                                                          \
        cc_i64 i = 0;                                                                             \
        for (; i + 2 * lanes <= n; i += 2 * lanes) {                                              \
            v_##t x = RED_AT(t, p + i * (cc_i64)sizeof(T), 0);                                    \
            v_##t y = RED_AT(t, p + i * (cc_i64)sizeof(T), 1);                                    \
            unsigned long long bits[CC_VB / 8], any = 0;                                          \
            __typeof__(x == y) hit = want != want ? (x != x) | (y != y)                           \
                                                  : (x == all) | (y == all);                      \
            memcpy(bits, &hit, sizeof(bits));                                                     \
            for (unsigned k = 0; k < CC_VB / 8; k++) {                                            \
                any |= bits[k];                                                                   \
            }                                                                                     \
            if (any != 0) {                                                                       \
                break;                                                                            \
            }                                                                                     \
        }                                                                                         \
        for (; i < n - 1; i++) {                                                                  \
            T x = *(const y_##t *)(p + i * (cc_i64)sizeof(T));                                    \
            if (x == want || (want != want && x != x)) {                                          \
                break;                                                                            \
            }                                                                                     \
        }                                                                                         \
        return i;                                                                                 \
    }
VOP_SET_ALL(RED_PLACE)

/* -- The table ------------------------------------------------------------- */

typedef void (*BlockFn)(const char *p, cc_i64 n, char *out);
typedef void (*FoldFn)(char *acc, const char *p, cc_i64 n);
typedef void (*Fold4Fn)(char *acc, const char *p, cc_i64 stride, cc_i64 n);
typedef cc_i64 (*PlaceFn)(const char *p, cc_i64 n, const char *best);

#define NUM_ROW(fn, name, t) [CC_VT_##t] = fn##_##name##_##t,
#define SUM_BLOCK(t, T, m, u, s) NUM_ROW(block, sum, t)
#define PROD_BLOCK(t, T, m, u, s) NUM_ROW(block, prod, t)
#define MAX_BLOCK(t, T, m, u, s) NUM_ROW(block, max, t)
#define MIN_BLOCK(t, T, m, u, s) NUM_ROW(block, min, t)
#define SUM_FOLD(t, T, m, u, s) NUM_ROW(fold, sum, t)
#define SUM_FOLD4(t, T, m, u, s) NUM_ROW(fold4, sum, t)
#define PROD_FOLD(t, T, m, u, s) NUM_ROW(fold, prod, t)
#define PROD_FOLD4(t, T, m, u, s) NUM_ROW(fold4, prod, t)
#define MAX_FOLD(t, T, m, u, s) NUM_ROW(fold, max, t)
#define MAX_FOLD4(t, T, m, u, s) NUM_ROW(fold4, max, t)
#define MIN_FOLD(t, T, m, u, s) NUM_ROW(fold, min, t)
#define MIN_FOLD4(t, T, m, u, s) NUM_ROW(fold4, min, t)

static const BlockFn block_table[RT_RED__COUNT][CC_VT__COUNT] = {
    [RT_RED_SUM] = {VOP_SET_ALL(SUM_BLOCK)},
    [RT_RED_PROD] = {VOP_SET_ALL(PROD_BLOCK)},
    [RT_RED_MAX] = {VOP_SET_ALL(MAX_BLOCK)},
    [RT_RED_MIN] = {VOP_SET_ALL(MIN_BLOCK)},
    [RT_RED_ARGMAX] = {VOP_SET_ALL(MAX_BLOCK)},
    [RT_RED_ARGMIN] = {VOP_SET_ALL(MIN_BLOCK)},
    [RT_RED_ANY] = {[CC_VT_u8] = block_any_u8},
    [RT_RED_ALL] = {[CC_VT_u8] = block_all_u8},
};

static const Fold4Fn fold4_table[RT_RED__COUNT][CC_VT__COUNT] = {
    [RT_RED_SUM] = {VOP_SET_ALL(SUM_FOLD4)},
    [RT_RED_PROD] = {VOP_SET_ALL(PROD_FOLD4)},
    [RT_RED_MAX] = {VOP_SET_ALL(MAX_FOLD4)},
    [RT_RED_MIN] = {VOP_SET_ALL(MIN_FOLD4)},
    [RT_RED_ANY] = {[CC_VT_u8] = fold4_any_u8},
    [RT_RED_ALL] = {[CC_VT_u8] = fold4_all_u8},
};

static const FoldFn fold_table[RT_RED__COUNT][CC_VT__COUNT] = {
    [RT_RED_SUM] = {VOP_SET_ALL(SUM_FOLD)},
    [RT_RED_PROD] = {VOP_SET_ALL(PROD_FOLD)},
    [RT_RED_MAX] = {VOP_SET_ALL(MAX_FOLD)},
    [RT_RED_MIN] = {VOP_SET_ALL(MIN_FOLD)},
    [RT_RED_ANY] = {[CC_VT_u8] = fold_any_u8},
    [RT_RED_ALL] = {[CC_VT_u8] = fold_all_u8},
};

#define PLACE_ROW(t, T, m, u, s) [CC_VT_##t] = place_##t,
static const PlaceFn place_table[CC_VT__COUNT] = {VOP_SET_ALL(PLACE_ROW)};

static void
reduce_block(RtRed red, CcVType t, const char *p, cc_i64 n, char *out, char *best)
{
    bool arg = red == RT_RED_ARGMAX || red == RT_RED_ARGMIN;

    block_table[red][t](p, n, arg ? best : out);
    if (arg) {
        cc_i64 at = place_table[t](p, n, best);
        memcpy(out, &at, sizeof(at));
    }
}

static void
reduce_fold(RtRed red, CcVType t, char *acc, const char *p, cc_i64 n)
{
    fold_table[red][t](acc, p, n);
}

static void
reduce_fold4(RtRed red, CcVType t, char *acc, const char *p, cc_i64 stride, cc_i64 n)
{
    fold4_table[red][t](acc, p, stride, n);
}

const RtReduceTable KERN_V_SYM(kern_reduce) = {reduce_block, reduce_fold, reduce_fold4};
