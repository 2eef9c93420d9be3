/* kern/ukr.h - the micro-kernel family: one register tile of C += A * B, for GEMM and convolution.
 *
 * A template. The including file may define KERN_F64 (double instead of float); the vector width
 * follows from the target flags. One tile is mr x nv vectors, every accumulator a named variable,
 * because gcc keeps arrays of vectors in memory. A is read by broadcast with two strides, B is
 * read by vectors, so a transposed A, a convolution window and a gradient are all just strides.
 * The k axis is cut into nseg segments of `run` steps: segment s of A starts at off[s] (one row of
 * a convolution window, one image row of a weight gradient); B runs on through all segments.
 *
 * Rounding: with FMA hardware one rounding per step, on baseline x86-64 two. -ffp-contract=off
 * holds everywhere, so the FMA is written out. No system header but stdint: generated C may
 * include this file. Strides and offsets are in elements. */
#ifndef CC_KERN_UKR_H
#define CC_KERN_UKR_H

#include <stdint.h>

#if defined(__AVX512F__)
#define UKR_BYTES 64
#elif defined(__AVX2__) && defined(__FMA__)
#define UKR_BYTES 32
#else
#define UKR_BYTES 16
#endif

#ifdef KERN_F64
typedef double KT;
typedef int64_t KI;
#define KW (UKR_BYTES / 8)
#else
typedef float KT;
typedef int32_t KI;
#define KW (UKR_BYTES / 4)
#endif

typedef KT KV __attribute__((vector_size(UKR_BYTES)));
typedef KT KVu __attribute__((vector_size(UKR_BYTES), aligned(sizeof(KT)), may_alias));
typedef KI KM __attribute__((vector_size(UKR_BYTES)));      /* masks and indices of KV's lanes */

/* Rows of the largest tile. With nv = 2 it leaves room for two vectors of B and a broadcast. */
#if UKR_BYTES == 64
#define UKR_MR 14
#elif defined(__aarch64__)
#define UKR_MR 10
#else
#define UKR_MR 6
#endif
#define UKR_NV 2
#define UKR_NR (UKR_NV * KW)

/* Pin a value in a vector register, else gcc loads B again for each row of the tile. */
#if defined(__x86_64__)
#define UKR_KEEP(x) __asm__("" : "+v"(x))
#elif defined(__aarch64__)
#define UKR_KEEP(x) __asm__("" : "+w"(x))
#else
#define UKR_KEEP(x) ((void)0)
#endif

/* ... and the row pointers apart, else gcc folds them into one offset register per row. */
#define UKR_KEEP_ADDRESS(p, q, r)                                                               \
    __asm__("" : "+r"(p));                                                                      \
    __asm__("" : "+r"(q));                                                                      \
    __asm__("" : "+r"(r));

/* c + a * b in one rounding where the level has it. */
#if defined(__clang__)
#define UKR_FMA(a, b, c) ukr_contracted(a, b, c)
#elif UKR_BYTES == 64 && defined(KERN_F64)
#define UKR_FMA(a, b, c) ((KV)__builtin_ia32_vfmaddpd512_mask(a, b, c, (unsigned char)-1, 4))
#elif UKR_BYTES == 64
#define UKR_FMA(a, b, c) ((KV)__builtin_ia32_vfmaddps512_mask(a, b, c, (unsigned short)-1, 4))
#elif UKR_BYTES == 32 && defined(KERN_F64)
#define UKR_FMA(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#elif UKR_BYTES == 32
#define UKR_FMA(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#elif defined(__aarch64__) && defined(KERN_F64)
#define UKR_FMA(a, b, c) __builtin_aarch64_fmav2df(a, b, c)
#elif defined(__aarch64__)
#define UKR_FMA(a, b, c) __builtin_aarch64_fmav4sf(a, b, c)
#else
#define UKR_FMA(a, b, c) ((c) + (a) * (b))
#endif

#if KW == 16
#define UKR_SPLAT(x) ((KV){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x})
#elif KW == 8
#define UKR_SPLAT(x) ((KV){x, x, x, x, x, x, x, x})
#elif KW == 4
#define UKR_SPLAT(x) ((KV){x, x, x, x})
#else
#define UKR_SPLAT(x) ((KV){x, x})
#endif

#define UKR_INLINE static inline __attribute__((always_inline, unused))

#if defined(__clang__)
UKR_INLINE KV
ukr_contracted(KV a, KV b, KV c)
{
#pragma STDC FP_CONTRACT ON
    return a * b + c;
}
#endif

UKR_INLINE KV
ukr_load(const KT *p)
{
    return *(const KVu *)p;
}

UKR_INLINE void
ukr_store(KT *p, KV x)
{
    *(KVu *)p = x;
}

/* mask ? x : y, lane by lane (gcc's C has no vector ?:). */
UKR_INLINE KV
ukr_select(KM mask, KV x, KV y)
{
    return (KV)((mask & (KM)x) | (~mask & (KM)y));
}

/* Zero where x < 0, else x itself: NaN and -0 stay. */
UKR_INLINE KV
ukr_relu(KV x)
{
    return (KV)(~(x < (KV){0}) & (KM)x);
}

/* One tile: rows a + i * sam, b and c contiguous in columns. add: C += product, else =. */
typedef void (*UkrFn)(int64_t nseg, int64_t run, const KT *a, const int64_t *off, int64_t sam,
                      int64_t sak, const KT *b, int64_t sbk, KT *c, int64_t ldc, int add);

/* -- Generating the tiles: X(i) for each row, Y(i, j) for each vector of a row -------- */

#define UKR_ROWS1(X) X(0)
#define UKR_ROWS2(X) UKR_ROWS1(X) X(1)
#define UKR_ROWS3(X) UKR_ROWS2(X) X(2)
#define UKR_ROWS4(X) UKR_ROWS3(X) X(3)
#define UKR_ROWS5(X) UKR_ROWS4(X) X(4)
#define UKR_ROWS6(X) UKR_ROWS5(X) X(5)
#define UKR_ROWS7(X) UKR_ROWS6(X) X(6)
#define UKR_ROWS8(X) UKR_ROWS7(X) X(7)
#define UKR_ROWS9(X) UKR_ROWS8(X) X(8)
#define UKR_ROWS10(X) UKR_ROWS9(X) X(9)
#define UKR_ROWS11(X) UKR_ROWS10(X) X(10)
#define UKR_ROWS12(X) UKR_ROWS11(X) X(11)
#define UKR_ROWS13(X) UKR_ROWS12(X) X(12)
#define UKR_ROWS14(X) UKR_ROWS13(X) X(13)

#define UKR_ZERO1(i) KV c##i##_0 = {0};
#define UKR_ZERO2(i) UKR_ZERO1(i) KV c##i##_1 = {0};

#define UKR_LOADB1                                                                              \
    KV b0 = ukr_load(b);                                                                        \
    UKR_KEEP(b0);
#define UKR_LOADB2                                                                              \
    UKR_LOADB1                                                                                  \
    KV b1 = ukr_load(b + KW);                                                                   \
    UKR_KEEP(b1);

/* Element of row i: three base pointers with five rows each keep the addresses in registers. */
#define UKR_A0 a[0]
#define UKR_A1 a[sam]
#define UKR_A2 a[2 * sam]
#define UKR_A3 a[sam3]
#define UKR_A4 a[4 * sam]
#define UKR_A5 a5[0]
#define UKR_A6 a5[sam]
#define UKR_A7 a5[2 * sam]
#define UKR_A8 a5[sam3]
#define UKR_A9 a5[4 * sam]
#define UKR_A10 a10[0]
#define UKR_A11 a10[sam]
#define UKR_A12 a10[2 * sam]
#define UKR_A13 a10[sam3]

#define UKR_STEP1(i)                                                                            \
    {                                                                                           \
        KV x = UKR_SPLAT(UKR_A##i);                                                             \
        c##i##_0 = UKR_FMA(x, b0, c##i##_0);                                                    \
    }
#define UKR_STEP2(i)                                                                            \
    {                                                                                           \
        KV x = UKR_SPLAT(UKR_A##i);                                                             \
        c##i##_0 = UKR_FMA(x, b0, c##i##_0);                                                    \
        c##i##_1 = UKR_FMA(x, b1, c##i##_1);                                                    \
    }

#define UKR_PUT1(i) ukr_store(c + i * ldc, c##i##_0);
#define UKR_PUT2(i) UKR_PUT1(i) ukr_store(c + i * ldc + KW, c##i##_1);
#define UKR_ADD1(i) ukr_store(c + i * ldc, ukr_load(c + i * ldc) + c##i##_0);
#define UKR_ADD2(i)                                                                             \
    UKR_ADD1(i) ukr_store(c + i * ldc + KW, ukr_load(c + i * ldc + KW) + c##i##_1);

#define UKR_TILE(mr, nv)                                                                        \
    static __attribute__((noinline)) void                                                       \
    ukr_##mr##x##nv(int64_t nseg, int64_t run, const KT *a0, const int64_t *off, int64_t sam,   \
                    int64_t sak, const KT *b, int64_t sbk, KT *c, int64_t ldc, int add)         \
    {                                                                                           \
        int64_t sam3 = 3 * sam;                                                                 \
        (void)sam3;                                                                             \
        UKR_ROWS##mr(UKR_ZERO##nv)                                                              \
        for (int64_t s = 0; s < nseg; s++) {                                                    \
            const KT *a = a0 + off[s], *a5 = a + 5 * sam, *a10 = a5 + 5 * sam;                  \
            for (int64_t k = 0; k < run; k++) {                                                 \
                UKR_LOADB##nv                                                                   \
                UKR_KEEP_ADDRESS(a, a5, a10)                                                    \
                UKR_ROWS##mr(UKR_STEP##nv)                                                      \
                a += sak;                                                                       \
                a5 += sak;                                                                      \
                a10 += sak;                                                                     \
                b += sbk;                                                                       \
            }                                                                                   \
        }                                                                                       \
        if (add) {                                                                              \
            UKR_ROWS##mr(UKR_ADD##nv)                                                           \
        } else {                                                                                \
            UKR_ROWS##mr(UKR_PUT##nv)                                                           \
        }                                                                                       \
    }

#define UKR_TILES_6(X, nv) X(1, nv) X(2, nv) X(3, nv) X(4, nv) X(5, nv) X(6, nv)
#define UKR_TILES_10(X, nv) UKR_TILES_6(X, nv) X(7, nv) X(8, nv) X(9, nv) X(10, nv)
#define UKR_TILES_14(X, nv) UKR_TILES_10(X, nv) X(11, nv) X(12, nv) X(13, nv) X(14, nv)
#if UKR_MR == 14
#define UKR_TILES(X, nv) UKR_TILES_14(X, nv)
#elif UKR_MR == 10
#define UKR_TILES(X, nv) UKR_TILES_10(X, nv)
#else
#define UKR_TILES(X, nv) UKR_TILES_6(X, nv)
#endif

UKR_TILES(UKR_TILE, 1)
UKR_TILES(UKR_TILE, 2)

#define UKR_NAME(mr, nv) ukr_##mr##x##nv,
static const UkrFn ukr_fn[UKR_NV][UKR_MR] = {       /* [vectors - 1][rows - 1] */
    {UKR_TILES(UKR_NAME, 1)},
    {UKR_TILES(UKR_NAME, 2)},
};

/* The next tile's rows when `left` rows remain: equal tiles, so that none is left with few rows. */
UKR_INLINE int64_t
ukr_rows(int64_t left)
{
    int64_t tiles = (left + UKR_MR - 1) / UKR_MR;

    return (left + tiles - 1) / tiles;
}

#endif
