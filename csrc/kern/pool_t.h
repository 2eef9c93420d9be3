/* kern/pool_t.h - max-pooling and its gradient for one float type at one ISA level. A template.
 *
 * One plane (image, channel) per step of the range. A row of outputs is made in scratch: values and
 * window positions (kh * KW + kw), vectors across the outputs where the window lies inside and
 * the stride is 1 or 2, one by one at the padded edges and for other strides. A row shorter than a
 * vector is copied to where a vector may be read; what the vector gives past its end is not used.
 * The gradient finds the positions again: reading x twice costs less than keeping them. The
 * commonest window, 2 x 2 at stride 2 without padding, has a path of its own (`quads`).
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

/* Window position -> distance from the window's first element, for rows `down` and columns `right`
 * apart. */
static void
pool_distances(const KernPool *p, int64_t down, int64_t right, int64_t *distance)
{
    for (int64_t k = 0; k < p->kh * p->kw; k++) {
        distance[k] = k / p->kw * p->dil_h * down + k % p->kw * p->dil_w * right;
    }
}

/* Cut a task's scratch; where the distances lie. */
static int64_t *
pool_scratch(const KernPool *p, void *scratch, PoolRow *row)
{
    char *base = (char *)scratch + pool_bytes(p->kh * p->kw, sizeof(int64_t));

    row->best = (KT *)base;
    row->pos = (KI *)(base + pool_bytes(pool_width(p), sizeof(KT)));
    row->copy = (KT *)(base + 2 * pool_bytes(pool_width(p), sizeof(KT)));
    /* what is read past a short row decides nothing, but is not left unset */
    move_zero(row->copy, p->kh * pool_pitch(p));
    return scratch;
}

static const KT *
pool_plane(const KernPool *p, int64_t i)
{
    return (const KT *)p->x + i / p->c * p->xs[0] + i % p->c * p->xs[1];
}

/* -- Windows of 2 x 2 at stride 2 ----------------------------------------------------- */

static bool
pool_is_quads(const KernPool *p)
{
    return p->kh == 2 && p->kw == 2 && p->stride_h == 2 && p->stride_w == 2 && p->dil_h == 1
        && p->dil_w == 1 && p->pad_h == 0 && p->pad_w == 0 && 2 * p->oh <= p->h
        && 2 * p->ow <= p->w && p->xs[3] == 1 && p->ys[3] == 1;
}

/* x[0], x[2], ... and x[1], x[3], ... of 2 KW elements; and back. */
UKR_INLINE void
pool_unzip(const KT *x, KV *even, KV *odd)
{
    KV lo = ukr_load(x), hi = ukr_load(x + KW);

#if KW == 16
    *even = __builtin_shufflevector(lo, hi, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                    30);
    *odd = __builtin_shufflevector(lo, hi, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29,
                                   31);
#elif KW == 8
    *even = __builtin_shufflevector(lo, hi, 0, 2, 4, 6, 8, 10, 12, 14);
    *odd = __builtin_shufflevector(lo, hi, 1, 3, 5, 7, 9, 11, 13, 15);
#elif KW == 4
    *even = __builtin_shufflevector(lo, hi, 0, 2, 4, 6);
    *odd = __builtin_shufflevector(lo, hi, 1, 3, 5, 7);
#else
    *even = __builtin_shufflevector(lo, hi, 0, 2);
    *odd = __builtin_shufflevector(lo, hi, 1, 3);
#endif
}

UKR_INLINE void
pool_zip(KT *x, KV even, KV odd)
{
#if KW == 16
    ukr_store(x, __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
                                         7, 23));
    ukr_store(x + KW, __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                              29, 14, 30, 15, 31));
#elif KW == 8
    ukr_store(x, __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11));
    ukr_store(x + KW, __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15));
#elif KW == 4
    ukr_store(x, __builtin_shufflevector(even, odd, 0, 4, 1, 5));
    ukr_store(x + KW, __builtin_shufflevector(even, odd, 2, 6, 3, 7));
#else
    ukr_store(x, __builtin_shufflevector(even, odd, 0, 2));
    ukr_store(x + KW, __builtin_shufflevector(even, odd, 1, 3));
#endif
}

/* KW windows: their maxima, and which of its elements 1, 2, 3 won over all before it. */
typedef struct {
    KV best;
    KM wins[4];
} PoolQuads;

UKR_INLINE PoolQuads
pool_quads(const KT *above, const KT *below)
{
    KV x[4];
    PoolQuads q;

    pool_unzip(above, &x[0], &x[1]);
    pool_unzip(below, &x[2], &x[3]);
    q.best = x[0];
    for (int k = 1; k < 4; k++) {
        q.wins[k] = (x[k] > q.best) | (x[k] != x[k]);
        q.best = ukr_select(q.wins[k], x[k], q.best);
    }
    return q;
}

UKR_INLINE KV
pool_masked(KM mask, KV x)
{
    return (KV)(mask & (KM)x);
}

/* y's gradient where an element won and none after it did, zero elsewhere. */
UKR_INLINE void
pool_quads_dx(const KT *above, const KT *below, const KT *dy, KT *dx_above, KT *dx_below)
{
    PoolQuads q = pool_quads(above, below);
    KV g = ukr_load(dy) + UKR_SPLAT(0);                 /* a sum that began at +0 is never -0 */
    KM late = q.wins[2] | q.wins[3];

    pool_zip(dx_above, pool_masked(~(q.wins[1] | late), g), pool_masked(q.wins[1] & ~late, g));
    pool_zip(dx_below, pool_masked(q.wins[2] & ~q.wins[3], g), pool_masked(q.wins[3], g));
}

/* One row of outputs; a short one goes by way of a copy. */
static void
pool_quads_row(const KernPool *p, const KT *above, const KT *below, KT *y, KT *copy)
{
    size_t bytes = (size_t)p->ow * sizeof(KT);
    int64_t ow = 0;

    if (p->ow < KW) {
        __builtin_memcpy(copy, above, 2 * bytes);
        __builtin_memcpy(copy + 2 * KW, below, 2 * bytes);
        ukr_store(copy, pool_quads(copy, copy + 2 * KW).best);
        __builtin_memcpy(y, copy, bytes);
        return;
    }
    for (; ow + KW <= p->ow; ow += KW) {
        ukr_store(y + ow, pool_quads(above + 2 * ow, below + 2 * ow).best);
    }
    if (ow < p->ow) {
        ow = p->ow - KW;                                /* the last vector overlaps */
        ukr_store(y + ow, pool_quads(above + 2 * ow, below + 2 * ow).best);
    }
}

/* The two rows of dx below it. */
static void
pool_quads_row_dx(const KernPool *p, const KT *above, const KT *below, const KT *dy, KT *dx,
                  KT *copy)
{
    size_t bytes = (size_t)p->ow * sizeof(KT);
    KT *dx_below = dx + p->dxs[2];
    int64_t ow = 0;

    if (p->ow < KW) {
        __builtin_memcpy(copy, above, 2 * bytes);
        __builtin_memcpy(copy + 2 * KW, below, 2 * bytes);
        __builtin_memcpy(copy + 4 * KW, dy, bytes);
        pool_quads_dx(copy, copy + 2 * KW, copy + 4 * KW, copy, copy + 2 * KW);
        __builtin_memcpy(dx, copy, 2 * bytes);
        __builtin_memcpy(dx_below, copy + 2 * KW, 2 * bytes);
        return;
    }
    for (; ow + KW <= p->ow; ow += KW) {
        pool_quads_dx(above + 2 * ow, below + 2 * ow, dy + ow, dx + 2 * ow, dx_below + 2 * ow);
    }
    if (ow < p->ow) {
        ow = p->ow - KW;
        pool_quads_dx(above + 2 * ow, below + 2 * ow, dy + ow, dx + 2 * ow, dx_below + 2 * ow);
    }
}

static void
pool_run_quads(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernPool *p = args;
    KT copy[4 * KW] __attribute__((aligned(64))) = {0};

    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const KT *x = pool_plane(p, i);
        KT *y = (KT *)p->y + i / p->c * p->ys[0] + i % p->c * p->ys[1];

        for (int64_t oh = 0; oh < p->oh; oh++, x += 2 * p->xs[2], y += p->ys[2]) {
            pool_quads_row(p, x, x + p->xs[2], y, copy);
        }
    }
}

static void
pool_run_quads_dx(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernPool *p = args;
    KT copy[5 * KW] __attribute__((aligned(64))) = {0};

    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        const KT *x = pool_plane(p, i);
        const KT *dy = (const KT *)p->y + i / p->c * p->ys[0] + i % p->c * p->ys[1];
        KT *dx = (KT *)p->dx + i / p->c * p->dxs[0] + i % p->c * p->dxs[1];

        for (int64_t oh = 0; oh < p->oh; oh++) {
            pool_quads_row_dx(p, x, x + p->xs[2], dy, dx, copy);
            for (int64_t w = 2 * p->ow; w < p->w; w++) {
                dx[w] = dx[w + p->dxs[2]] = 0;
            }
            x += 2 * p->xs[2], dy += p->ys[2], dx += 2 * p->dxs[2];
        }
        for (int64_t h = 2 * p->oh; h < p->h; h++, dx += p->dxs[2]) {
            move_zero(dx, p->w);
        }
    }
}

/* -- Any window ----------------------------------------------------------------------- */

static void
pool_run(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernPool *p = args;
    PoolRow row;
    int64_t *distance = pool_scratch(p, scratch, &row);

    pool_distances(p, p->w, 1, distance);
    for (int64_t i = begin; i < end; i++) {
        KT *y = (KT *)p->y + i / p->c * p->ys[0] + i % p->c * p->ys[1];

        for (int64_t oh = 0; oh < p->oh; oh++) {
            int64_t out = (i * p->oh + oh) * p->ow;
            int64_t corner = (oh * p->stride_h - p->pad_h) * p->w - p->pad_w;

            pool_row(p, pool_plane(p, i), oh, row);
            if (p->ys[3] == 1) {
                __builtin_memcpy(y + oh * p->ys[2], row.best, (size_t)p->ow * sizeof(KT));
            } else {
                kern_move(y + oh * p->ys[2], 0, p->ys[3], row.best, 0, 1, 1, p->ow);
            }
            for (int64_t ow = 0; p->index != NULL && ow < p->ow; ow++) {
                p->index[out + ow] = corner + ow * p->stride_w + distance[row.pos[ow]];
            }
        }
    }
}

/* dx = 0, then each output adds its gradient to its maximum. */
static void
pool_run_dx(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernPool *p = args;
    PoolRow row;
    int64_t *distance = pool_scratch(p, scratch, &row);

    pool_distances(p, p->dxs[2], p->dxs[3], distance);
    for (int64_t i = begin; i < end; i++) {
        KT *dx = (KT *)p->dx + i / p->c * p->dxs[0] + i % p->c * p->dxs[1];
        const KT *dy = (const KT *)p->y + i / p->c * p->ys[0] + i % p->c * p->ys[1];

        for (int64_t at = 0; at < p->h * p->w; at++) {
            dx[at / p->w * p->dxs[2] + at % p->w * p->dxs[3]] = 0;
        }
        for (int64_t oh = 0; oh < p->oh; oh++) {
            KT *corner = dx + (oh * p->stride_h - p->pad_h) * p->dxs[2] - p->pad_w * p->dxs[3];

            pool_row(p, pool_plane(p, i), oh, row);
            for (int64_t ow = 0; ow < p->ow; ow++) {
                corner[ow * p->stride_w * p->dxs[3] + distance[row.pos[ow]]]
                    += dy[oh * p->ys[2] + ow * p->ys[3]];
            }
        }
    }
}

/* -- Plans ---------------------------------------------------------------------------- */

static void
pool_phase(const KernPool *p, CcPhaseFn fn, KernPlan *plan)
{
    int64_t cost = p->oh * p->ow * p->kh * p->kw + p->h * p->w;

    plan->nphase = 1;
    plan->phase[0] = (CcPhase){.fn = fn,
                               .size = p->n > 0 ? p->n * p->c : 0,
                               .grain = 1 + 8192 / (cost + 1),
                               .scratch = pool_bytes(p->kh * p->kw, sizeof(int64_t))
                                        + 2 * pool_bytes(pool_width(p), sizeof(KT))
                                        + pool_bytes(p->kh * pool_pitch(p), sizeof(KT)),
                               .work = (double)p->n * (double)p->c * (double)cost * 0.5};
}

static void
pool_plan(const KernPool *p, KernPlan *plan)
{
    bool quads = pool_is_quads(p) && p->index == NULL;

    *plan = (KernPlan){.nphase = 0};
    pool_phase(p, quads ? pool_run_quads : pool_run, plan);
}

static void
pool_plan_dx(const KernPool *p, KernPlan *plan)
{
    bool quads = pool_is_quads(p) && p->dxs[3] == 1;

    *plan = (KernPlan){.nphase = 0};
    pool_phase(p, quads ? pool_run_quads_dx : pool_run_dx, plan);
}

#endif
