/* kern/move_t.h - moving strided blocks: copies, transposes, gathers. Needs ukr.h (its KT).
 *
 * Everything that brings a tensor into the layout of the micro-kernels, or a tile back into the
 * user's strides, is one call of kern_move(): it finds the unit stride and takes the vector path
 * that fits. Destination lanes are written exactly rows x cols, never past them. */
#ifndef CC_KERN_MOVE_T_H
#define CC_KERN_MOVE_T_H

#include "ukr.h"

/* Interleave the low (high) halves of two vectors: KW steps of log2 make a transpose. */
#if KW == 16
#define MOVE_LO(x, y)                                                                           \
    __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define MOVE_HI(x, y)                                                                           \
    __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif KW == 8
#define MOVE_LO(x, y) __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11)
#define MOVE_HI(x, y) __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15)
#elif KW == 4
#define MOVE_LO(x, y) __builtin_shufflevector(x, y, 0, 4, 1, 5)
#define MOVE_HI(x, y) __builtin_shufflevector(x, y, 2, 6, 3, 7)
#else
#define MOVE_LO(x, y) __builtin_shufflevector(x, y, 0, 2)
#define MOVE_HI(x, y) __builtin_shufflevector(x, y, 1, 3)
#endif

#if KW == 16
#define MOVE_STEPS 4
#elif KW == 8
#define MOVE_STEPS 3
#elif KW == 4
#define MOVE_STEPS 2
#else
#define MOVE_STEPS 1
#endif

/* dst[j * ldd + i] = src[i * lds + j] for a KW x KW block. */
static void
move_block(KT *dst, int64_t ldd, const KT *src, int64_t lds)
{
    KV r[KW], t[KW];

#pragma GCC unroll 16
    for (int i = 0; i < KW; i++) {
        r[i] = ukr_load(src + i * lds);
    }
#pragma GCC unroll 16
    for (int step = 0; step < MOVE_STEPS; step++) {
#pragma GCC unroll 16
        for (int i = 0; i < KW / 2; i++) {
            t[2 * i] = MOVE_LO(r[i], r[i + KW / 2]);
            t[2 * i + 1] = MOVE_HI(r[i], r[i + KW / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < KW; i++) {
            r[i] = t[i];
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < KW; i++) {
        ukr_store(dst + i * ldd, r[i]);
    }
}

/* dst[j * ldd + i] = src[i * lds + j], i < rows, j < cols. */
static void
move_transpose(KT *dst, int64_t ldd, const KT *src, int64_t lds, int64_t rows, int64_t cols)
{
    int64_t i = 0;

    for (; i + KW <= rows; i += KW) {
        int64_t j = 0;

        for (; j + KW <= cols; j += KW) {
            move_block(dst + j * ldd + i, ldd, src + i * lds + j, lds);
        }
        for (; j < cols; j++) {
            for (int64_t r = 0; r < KW; r++) {
                dst[j * ldd + i + r] = src[(i + r) * lds + j];
            }
        }
    }
    for (; i < rows; i++) {
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
