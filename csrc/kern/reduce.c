/* isa: multi */
/* kern/reduce.c - the reductions of one ISA level; rt/reduce.h says what is added to what.
 *
 * NaN rules are NumPy's: it wins in MAX and MIN, and the first one is the place of ARGMAX and
 * ARGMIN. Padding lanes hold the neutral element or a copy, so they raise no flags. */
#include "visa.h"
#include "vop.h"

#include <string.h>

/* -- The operations on single elements, matching the vop_ functions -------------------------- */

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

/* -- Sums of floats: rt/reduce.h says in what order ------------------------------------------- */

/* The running sums of a leaf: SUM_VEC(T) vectors of SUM_BYTES(T), RT_SUM_LANES elements in all. */
#define SUM_BYTES(T) (RT_SUM_LANES * sizeof(T) < CC_VB ? RT_SUM_LANES * sizeof(T) : CC_VB)
#define SUM_VEC(T) (RT_SUM_LANES * sizeof(T) / SUM_BYTES(T))
#define SUM_UNROLL _Pragma("GCC unroll 16")

/* Leaves of one node are added side by side, since an addition waits for the one before it. */
#define RED_SUM(t, T)                                                                             \
    typedef T e_##t __attribute__((vector_size(SUM_BYTES(T)), aligned(1), may_alias));            \
    typedef struct {                                                                              \
        e_##t v[SUM_VEC(T)];                                                                      \
    } Sums_##t;                                                                                   \
    static inline void sums_start_##t(Sums_##t *r, const y_##t *x)                                \
    {                                                                                             \
        SUM_UNROLL for (unsigned k = 0; k < SUM_VEC(T); k++)                                      \
        {                                                                                         \
            r->v[k] = *(const e_##t *)(x + k * (SUM_BYTES(T) / sizeof(T)));                       \
        }                                                                                         \
    }                                                                                             \
    static inline void sums_add_##t(Sums_##t *r, const y_##t *x)                                  \
    {                                                                                             \
        SUM_UNROLL for (unsigned k = 0; k < SUM_VEC(T); k++)                                      \
        {                                                                                         \
            r->v[k] += *(const e_##t *)(x + k * (SUM_BYTES(T) / sizeof(T)));                      \
        }                                                                                         \
    }                                                                                             \
    /* the leaf x of n elements, `done` of which are in r */                                      \
    static inline T sums_end_##t(Sums_##t *r, const y_##t *x, cc_i64 done, cc_i64 n)              \
    {                                                                                             \
        T s[RT_SUM_LANES], sum;                                                                   \
        for (; done + RT_SUM_LANES <= n; done += RT_SUM_LANES) {                                  \
            sums_add_##t(r, x + done);                                                            \
        }                                                                                         \
        memcpy(s, r->v, sizeof(s));                                                               \
        sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));                  \
        for (; done < n; done++) {                                                                \
            sum += x[done];                                                                       \
        }                                                                                         \
        return sum;                                                                               \
    }                                                                                             \
    static T leaf_sum_##t(const y_##t *x, cc_i64 n)                                               \
    {                                                                                             \
        Sums_##t r;                                                                               \
        T sum = (T)-0.0;                                                                          \
        if (n >= RT_SUM_LANES) {                                                                  \
            sums_start_##t(&r, x);                                                                \
            return sums_end_##t(&r, x, RT_SUM_LANES, n);                                          \
        }                                                                                         \
        for (cc_i64 i = 0; i < n; i++) {                                                          \
            sum += x[i];                                                                          \
        }                                                                                         \
        return sum;                                                                               \
    }                                                                                             \
    /* four leaves: x + at[k] of at[k + 1] - at[k] >= RT_SUM_LANES elements */                    \
    static T leaves_sum_##t(const y_##t *x, const cc_i64 at[5])                                   \
    {                                                                                             \
        Sums_##t r[4];                                                                            \
        T sum[4];                                                                                 \
        cc_i64 i, common = at[1] - at[0];                                                         \
        for (int k = 1; k < 4; k++) {                                                             \
            common = at[k + 1] - at[k] < common ? at[k + 1] - at[k] : common;                     \
        }                                                                                         \
        SUM_UNROLL for (int k = 0; k < 4; k++) { sums_start_##t(&r[k], x + at[k]); }              \
        for (i = RT_SUM_LANES; i + RT_SUM_LANES <= common; i += RT_SUM_LANES) {                   \
            SUM_UNROLL for (int k = 0; k < 4; k++) { sums_add_##t(&r[k], x + at[k] + i); }        \
        }                                                                                         \
        SUM_UNROLL for (int k = 0; k < 4; k++)                                                    \
        {                                                                                         \
            sum[k] = sums_end_##t(&r[k], x + at[k], i, at[k + 1] - at[k]);                        \
        }                                                                                         \
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);                                             \
    }                                                                                             \
    static T node_sum_##t(const y_##t *x, cc_i64 n)                                               \
    {                                                                                             \
        cc_i64 half = rt_sum_split(n), left = rt_sum_split(half);                                 \
        cc_i64 right = half + rt_sum_split(n - half);                                             \
        if (n <= RT_SUM_LEAF) {                                                                   \
            return leaf_sum_##t(x, n);                                                            \
        }                                                                                         \
        if (half > RT_SUM_LEAF && half - left <= RT_SUM_LEAF && n - right <= RT_SUM_LEAF) {       \
            return leaves_sum_##t(x, (cc_i64[5]){0, left, half, right, n});                       \
        }                                                                                         \
        T sum = node_sum_##t(x, half);                                                            \
        return sum + node_sum_##t(x + half, n - half);                                            \
    }                                                                                             \
    static void block_sum_##t(const char *p, cc_i64 n, char *out)                                 \
    {                                                                                             \
        T sum = node_sum_##t((const y_##t *)p, n);                                                \
        memcpy(out, &sum, sizeof(T));                                                             \
    }

/* One after the other, as NumPy does. */
#define RED_PROD(t, T)                                                                            \
    static void block_prod_##t(const char *p, cc_i64 n, char *out)                                \
    {                                                                                             \
        T product = 1;                                                                            \
        for (cc_i64 i = 0; i < n; i++) {                                                          \
            product *= ((const y_##t *)p)[i];                                                     \
        }                                                                                         \
        memcpy(out, &product, sizeof(T));                                                         \
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

#define RED_FOLDS(name, t, T, V, PREP)                                                            \
    RED_FOLD(name, t, T, V, PREP)                                                                 \
    RED_FOLD4(name, t, T, V, PREP)
#define RED_ONE(name, t, T, V, S, PREP, has_pad, pad)                                             \
    RED_BLOCK(name, t, T, V, S, PREP, has_pad, pad)                                               \
    RED_FOLDS(name, t, T, V, PREP)
#define RED_FLT(t, T, m, u, s)                                                                    \
    RED_SUM(t, T)                                                                                 \
    RED_FOLDS(sum, t, T, vop_add_##t, BARE)                                                       \
    RED_PROD(t, T)                                                                                \
    RED_FOLDS(prod, t, T, vop_mul_##t, BARE)                                                      \
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
