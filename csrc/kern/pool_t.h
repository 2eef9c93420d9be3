/* kern/pool_t.h - max-pooling and its gradient for one float type at one ISA level. A template.
 *
 * One plane (image, channel) per step of the range. A row of outputs is made in scratch: values and
 * window positions (kh * KW + kw), vectors across the outputs where the window lies inside and
 * the stride is 1 or 2, one by one at the padded edges and for other strides. A row shorter than a
 * vector is copied to where a vector may be read; what the vector gives past its end is not used.
 * Needs: each window covers at least one element (torch's rule: padding <= window / 2). */
#ifndef CC_KERN_POOL_T_H
#define CC_KERN_POOL_T_H

#include "move_t.h"

#include "kern.h"

typedef struct {
    KT *best;                           /* [ow], at least KW */
    KI *pos;
    KT *copy;                           /* [kh][pool_pitch()]: the input rows of a short row */
} PoolRow;

static int64_t
pool_bytes(int64_t count, int64_t item)
{
    return (count * item + 63) / 64 * 64;
}

/* Elements of a copied input row: what the vectors of one short output row read. */
static int64_t
pool_pitch(const KernPool *p)
{
    return 2 * KW + (p->kw - 1) * p->dil_w;
}

/* Outputs of a row, and room for the vector that a short one is. */
static int64_t
pool_width(const KernPool *p)
{
    return p->ow < KW ? KW : p->ow;
}

/* Elements x[0], x[sw], ... of a row whose stride is 1; touches nothing past the last. */
UKR_INLINE KV
pool_load(const KT *x, int64_t sw)
{
    KV lo = ukr_load(x), hi;

    if (sw == 1) {
        return lo;
    }
    hi = ukr_load(x + KW - 1);
#if KW == 16
    return __builtin_shufflevector(lo, hi, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29,
                                   31);
#elif KW == 8
    return __builtin_shufflevector(lo, hi, 0, 2, 4, 6, 9, 11, 13, 15);
#elif KW == 4
    return __builtin_shufflevector(lo, hi, 0, 2, 5, 7);
#else
    return __builtin_shufflevector(lo, hi, 0, 3);
#endif
}

/* Window rows kh0..kh1 - 1 lie inside the plane. */
static void
pool_one(const KernPool *p, const KT *top, int64_t kh0, int64_t kh1, int64_t ow, PoolRow out)
{
    int64_t left = ow * p->stride_w - p->pad_w, kw0 = 0, kw1 = p->kw, pos;
    KT best = -(KT)__builtin_inf();

    while (kw0 < kw1 && left + kw0 * p->dil_w < 0) {
        kw0++;
    }
    while (kw1 > kw0 && left + (kw1 - 1) * p->dil_w >= p->w) {
        kw1--;
    }
    pos = kh0 * p->kw + kw0;
    for (int64_t i = kh0; i < kh1; i++) {
        for (int64_t j = kw0; j < kw1; j++) {
            KT x = top[i * p->dil_h * p->xs[2] + (left + j * p->dil_w) * p->xs[3]];

            if (x > best || x != x) {
                best = x;
                pos = i * p->kw + j;
            }
        }
    }
    out.best[ow] = best;
    out.pos[ow] = (KI)pos;
}

/* KW outputs from ow on, windows inside; x[] is their first window's row 0, with stride 1; the rows
 * of a window are `down` apart. */
UKR_INLINE void
pool_vector(const KernPool *p, const KT *x, int64_t down, int64_t kh0, int64_t kh1, int64_t ow,
            int64_t sw, PoolRow out)
{
    KV best = UKR_SPLAT(-(KT)__builtin_inf());
    KM pos = (KM){0} + (KI)(kh0 * p->kw);

    for (int64_t i = kh0; i < kh1; i++) {
        for (int64_t j = 0; j < p->kw; j++) {
            KV v = pool_load(x + i * down + j * p->dil_w, sw);
            KM wins = (v > best) | (v != v);

            best = ukr_select(wins, v, best);
            pos = (wins & ((KM){0} + (KI)(i * p->kw + j))) | (~wins & pos);
        }
    }
    ukr_store(out.best + ow, best);
    __builtin_memcpy(out.pos + ow, &pos, sizeof(pos));
}

static void
pool_vector_at(const KernPool *p, const KT *top, int64_t kh0, int64_t kh1, int64_t ow, PoolRow out)
{
    const KT *x = top + ow * p->stride_w - p->pad_w;
    int64_t down = p->dil_h * p->xs[2];

    if (p->stride_w == 1) {
        pool_vector(p, x, down, kh0, kh1, ow, 1, out);
    } else {
        pool_vector(p, x, down, kh0, kh1, ow, 2, out);
    }
}

/* All outputs of a row that is shorter than a vector; no padding beside it. */
static void
pool_short(const KernPool *p, const KT *top, int64_t kh0, int64_t kh1, PoolRow out)
{
    int64_t pitch = pool_pitch(p), n = p->w < pitch ? p->w : pitch;

    for (int64_t i = kh0; i < kh1; i++) {
        __builtin_memcpy(out.copy + i * pitch, top + i * p->dil_h * p->xs[2],
                         (size_t)n * sizeof(KT));
    }
    if (p->stride_w == 1) {
        pool_vector(p, out.copy, pitch, kh0, kh1, 0, 1, out);
    } else {
        pool_vector(p, out.copy, pitch, kh0, kh1, 0, 2, out);
    }
}

/* One row of outputs into scratch. */
static void
pool_row(const KernPool *p, const KT *plane, int64_t oh, PoolRow out)
{
    int64_t row = oh * p->stride_h - p->pad_h, kh0 = 0, kh1 = p->kh, ow = 0, inside = 0;
    int64_t room = p->w - 1 + p->pad_w - (p->kw - 1) * p->dil_w;
    const KT *top = plane + row * p->xs[2];

    while (kh0 < kh1 && row + kh0 * p->dil_h < 0) {
        kh0++;
    }
    while (kh1 > kh0 && row + (kh1 - 1) * p->dil_h >= p->h) {
        kh1--;
    }
    if (p->xs[3] == 1 && p->stride_w <= 2 && room >= 0) {
        inside = room / p->stride_w + 1;                /* outputs before the right edge */
        inside = inside < p->ow ? inside : p->ow;
    }
    if (p->pad_w == 0 && p->ow < KW && inside == p->ow) {
        pool_short(p, top, kh0, kh1, out);
        return;
    }
    for (; ow < inside && ow * p->stride_w < p->pad_w; ow++) {
        pool_one(p, top, kh0, kh1, ow, out);
    }
    for (; ow + KW <= inside; ow += KW) {
        pool_vector_at(p, top, kh0, kh1, ow, out);
    }
    if (ow < inside && inside - KW >= 0 && (inside - KW) * p->stride_w >= p->pad_w) {
        pool_vector_at(p, top, kh0, kh1, inside - KW, out); /* the last vector overlaps */
        ow = inside;
    }
    for (; ow < p->ow; ow++) {
        pool_one(p, top, kh0, kh1, ow, out);
    }
}

/* Window position -> distance in the plane from the window's first element, elements of h, w. */
static void
pool_distances(const KernPool *p, int64_t *distance)
{
    for (int64_t k = 0; k < p->kh * p->kw; k++) {
        distance[k] = k / p->kw * p->dil_h * p->w + k % p->kw * p->dil_w;
    }
}

static void
pool_run(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernPool *p = args;
    char *base = scratch;
    int64_t *distance = (int64_t *)base;
    PoolRow row;

    base += pool_bytes(p->kh * p->kw, sizeof(int64_t));
    row.best = (KT *)base;
    row.pos = (KI *)(base + pool_bytes(pool_width(p), sizeof(KT)));
    row.copy = (KT *)(base + 2 * pool_bytes(pool_width(p), sizeof(KT)));
    /* what is read past a short row decides nothing, but is not left unset */
    move_zero(row.copy, p->kh * pool_pitch(p));
    pool_distances(p, distance);
    for (int64_t i = begin; i < end; i++) {
        const KT *plane = (const KT *)p->x + i / p->c * p->xs[0] + i % p->c * p->xs[1];
        KT *y = (KT *)p->y + i / p->c * p->ys[0] + i % p->c * p->ys[1];

        for (int64_t oh = 0; oh < p->oh; oh++) {
            int64_t out = (i * p->oh + oh) * p->ow;
            int64_t corner = (oh * p->stride_h - p->pad_h) * p->w - p->pad_w;

            pool_row(p, plane, oh, row);
            if (p->ys[3] == 1) {
                __builtin_memcpy(y + oh * p->ys[2], row.best, (size_t)p->ow * sizeof(KT));
            } else {
                kern_move(y + oh * p->ys[2], 0, p->ys[3], row.best, 0, 1, 1, p->ow);
            }
            for (int64_t ow = 0; p->mask != NULL && ow < p->ow; ow++) {
                p->mask[out + ow] = (uint8_t)row.pos[ow];
            }
            for (int64_t ow = 0; p->index != NULL && ow < p->ow; ow++) {
                p->index[out + ow] = corner + ow * p->stride_w + distance[row.pos[ow]];
            }
        }
    }
}

/* One row of outputs of plane i. */
static void
pool_row_dx(const KernPool *p, KT *plane, const KT *dy, int64_t i, int64_t oh, bool packed,
            const int64_t *distance)
{
    int64_t out = (i * p->oh + oh) * p->ow;
    int64_t corner = (oh * p->stride_h - p->pad_h) * p->w - p->pad_w;

    for (int64_t ow = 0; ow < p->ow; ow++, out++) {
        int64_t at = p->index != NULL ? p->index[out]
                                      : corner + ow * p->stride_w + distance[p->mask[out]];
        KT g = dy[oh * p->ys[2] + ow * p->ys[3]];

        if (packed) {
            plane[at] += g;
        } else {
            plane[at / p->w * p->xs[2] + at % p->w * p->xs[3]] += g;
        }
    }
}

/* dx = 0, then each output adds its gradient to its maximum. */
static void
pool_run_dx(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernPool *p = args;
    int64_t *distance = scratch;
    bool packed = p->xs[3] == 1 && p->xs[2] == p->w;

    pool_distances(p, distance);
    for (int64_t i = begin; i < end; i++) {
        KT *plane = (KT *)p->x + i / p->c * p->xs[0] + i % p->c * p->xs[1];
        const KT *dy = (const KT *)p->y + i / p->c * p->ys[0] + i % p->c * p->ys[1];

        if (packed) {
            move_zero(plane, p->h * p->w);
        }
        for (int64_t at = 0; !packed && at < p->h * p->w; at++) {
            plane[at / p->w * p->xs[2] + at % p->w * p->xs[3]] = 0;
        }
        for (int64_t oh = 0; oh < p->oh; oh++) {
            pool_row_dx(p, plane, dy, i, oh, packed, distance);
        }
    }
}

static CcPhase
pool_phase(const KernPool *p, CcPhaseFn fn, int64_t scratch)
{
    int64_t cost = p->oh * p->ow * p->kh * p->kw + p->h * p->w;

    return (CcPhase){.fn = fn,
                     .size = p->n > 0 ? p->n * p->c : 0,
                     .grain = 1 + 8192 / (cost + 1),
                     .scratch = scratch + pool_bytes(p->kh * p->kw, sizeof(int64_t)),
                     .work = (double)p->n * (double)p->c * (double)cost * 0.5};
}

static void
pool_plan(const KernPool *p, KernPlan *plan)
{
    *plan = (KernPlan){.nphase = 1};
    plan->phase[0] = pool_phase(p, pool_run, 2 * pool_bytes(pool_width(p), sizeof(KT))
                                             + pool_bytes(p->kh * pool_pitch(p), sizeof(KT)));
}

static void
pool_plan_dx(const KernPool *p, KernPlan *plan)
{
    *plan = (KernPlan){.nphase = 1};
    plan->phase[0] = pool_phase(p, pool_run_dx, 0);
}

#endif
