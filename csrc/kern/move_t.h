/* kern/move_t.h - moving strided blocks: copies, transposes, gathers. Needs ukr.h (its KT).
 *
 * Everything that brings a tensor into the layout of the micro-kernels, or a tile back into the
 * user's strides, is one call of kern_move(): it finds the unit stride and takes the vector path
 * that fits. Destination lanes are written exactly rows x cols, never past them. */
#ifndef CC_KERN_MOVE_T_H
#define CC_KERN_MOVE_T_H

#include "ukr.h"

/* Interleave the low (high) halves of two vectors: log2(n) rounds of it make a transpose. */
#define MOVE_LO16(x, y)                                                                         \
    __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define MOVE_HI16(x, y)                                                                         \
    __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define MOVE_LO8(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define MOVE_HI8(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#define MOVE_LO4(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define MOVE_HI4(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#define MOVE_LO2(x, y) __builtin_shufflevector(x, y, 0, 2)
#define MOVE_HI2(x, y) __builtin_shufflevector(x, y, 1, 3)

/* move_blockN: dst[j * ldd + i] = src[i * lds + j] for an N x N block in registers. */
#define MOVE_BLOCK(N, ROUNDS)                                                                   \
    typedef KT MoveV##N __attribute__((vector_size(N * sizeof(KT))));                           \
    typedef KT MoveU##N                                                                         \
        __attribute__((vector_size(N * sizeof(KT)), aligned(sizeof(KT)), may_alias));           \
    UKR_INLINE void                                                                             \
    move_block##N(KT *dst, int64_t ldd, const KT *src, int64_t lds)                             \
    {                                                                                           \
        MoveV##N r[N], t[N];                                                                    \
                                                                                                \
        _Pragma("GCC unroll 16") for (int i = 0; i < N; i++)                                    \
        {                                                                                       \
            r[i] = *(const MoveU##N *)(src + i * lds);                                          \
        }                                                                                       \
        _Pragma("GCC unroll 16") for (int round = 0; round < ROUNDS; round++)                   \
        {                                                                                       \
            _Pragma("GCC unroll 16") for (int i = 0; i < N / 2; i++)                            \
            {                                                                                   \
                t[2 * i] = MOVE_LO##N(r[i], r[i + N / 2]);                                      \
                t[2 * i + 1] = MOVE_HI##N(r[i], r[i + N / 2]);                                  \
            }                                                                                   \
            _Pragma("GCC unroll 16") for (int i = 0; i < N; i++)                                \
            {                                                                                   \
                r[i] = t[i];                                                                    \
            }                                                                                   \
        }                                                                                       \
        _Pragma("GCC unroll 16") for (int i = 0; i < N; i++)                                    \
        {                                                                                       \
            *(MoveU##N *)(dst + i * ldd) = r[i];                                                \
        }                                                                                       \
    }

/* A grid of blocks; the last one of a row or column is moved back inside and overlaps. */
#define MOVE_GRID(N)                                                                            \
    static void                                                                                 \
    move_grid##N(KT *dst, int64_t ldd, const KT *src, int64_t lds, int64_t rows, int64_t cols)  \
    {                                                                                           \
        for (int64_t i = 0; i < rows; i += N) {                                                 \
            int64_t r = i + N <= rows ? i : rows - N;                                           \
                                                                                                \
            for (int64_t j = 0; j < cols; j += N) {                                             \
                int64_t c = j + N <= cols ? j : cols - N;                                       \
                                                                                                \
                move_block##N(dst + c * ldd + r, ldd, src + r * lds + c, lds);                  \
            }                                                                                   \
        }                                                                                       \
    }

#if KW >= 16
MOVE_BLOCK(16, 4)
MOVE_GRID(16)
#endif
#if KW >= 8
MOVE_BLOCK(8, 3)
MOVE_GRID(8)
#endif
#if KW >= 4
MOVE_BLOCK(4, 2)
MOVE_GRID(4)
#endif
MOVE_BLOCK(2, 1)
MOVE_GRID(2)

/* dst[j * ldd + i] = src[i * lds + j], i < rows, j < cols. */
static void
move_transpose(KT *dst, int64_t ldd, const KT *src, int64_t lds, int64_t rows, int64_t cols)
{
    int64_t least = rows < cols ? rows : cols;

#if KW >= 16
    if (least >= 16) {
        move_grid16(dst, ldd, src, lds, rows, cols);
        return;
    }
#endif
#if KW >= 8
    if (least >= 8) {
        move_grid8(dst, ldd, src, lds, rows, cols);
        return;
    }
#endif
#if KW >= 4
    if (least >= 4) {
        move_grid4(dst, ldd, src, lds, rows, cols);
        return;
    }
#endif
    if (least >= 2) {
        move_grid2(dst, ldd, src, lds, rows, cols);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            dst[j * ldd + i] = src[i * lds + j];
        }
    }
}

UKR_INLINE void
move_run(KT *dst, const KT *src, int64_t len)
{
    int64_t j = 0;

    for (; j + KW <= len; j += KW) {
        ukr_store(dst + j, ukr_load(src + j));
    }
    for (; j < len; j++) {
        dst[j] = src[j];
    }
}

UKR_INLINE void
move_zero(KT *dst, int64_t len)
{
    int64_t j = 0;

    for (; j + KW <= len; j += KW) {
        ukr_store(dst + j, (KV){0});
    }
    for (; j < len; j++) {
        dst[j] = 0;
    }
}

/* dst[i * dr + j * dc] = src[i * sr + j * sc], i < rows, j < cols; the two do not overlap. */
static __attribute__((unused)) void
kern_move(KT *dst, int64_t dr, int64_t dc, const KT *src, int64_t sr, int64_t sc, int64_t rows,
          int64_t cols)
{
    if (dr == 1 && sr == 1 && !(dc == 1 && sc == 1)) {
        kern_move(dst, dc, dr, src, sc, sr, cols, rows);
    } else if (dc == 1 && sc == 1) {
        for (int64_t i = 0; i < rows; i++) {
            move_run(dst + i * dr, src + i * sr, cols);
        }
    } else if (dr == 1 && sc == 1) {
        move_transpose(dst, dc, src, sr, rows, cols);
    } else if (dc == 1 && sr == 1) {
        move_transpose(dst, dr, src, sc, cols, rows);
    } else {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < cols; j++) {
                dst[i * dr + j * dc] = src[i * sr + j * sc];
            }
        }
    }
}

/* Fill columns cols..width - 1 of a packed block with copies of column cols - 1. */
UKR_INLINE void
move_pad_cols(KT *dst, int64_t ldd, int64_t rows, int64_t cols, int64_t width)
{
    for (int64_t i = 0; i < rows && cols < width; i++) {
        for (int64_t j = cols; j < width; j++) {
            dst[i * ldd + j] = dst[i * ldd + cols - 1];
        }
    }
}

#endif
