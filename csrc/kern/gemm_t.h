/* kern/gemm_t.h - matrix product of one float type at one ISA level. A template like ukr.h.
 *
 * The operand called A here is read by broadcast, in place when its k axis is contiguous; B is
 * packed once, for all threads, into panels [panel][k][UKR_NR] (phase 1); block by block into the
 * task's scratch when one task has all rows of A; or read in place when its rows are contiguous
 * and A has very few. When the user's B is large and transposed (x W^T with few rows in x) or C
 * is column-major, the roles are swapped: C' = B' A'. A product with a vector, where the matrix
 * has its k axis contiguous, is a dot product per row instead.
 *
 * A task (phase 2) is mc rows x task_panels panels of C. It runs over k in blocks of kc; each
 * block's product is summed in registers and then added, so the error grows with kc + k / kc, not
 * with k, and the order of a sum depends on nothing but k. Tiles go straight to C (p.direct) or
 * through a tile in the thread's scratch, which the epilogue reads from the L1 cache.
 *
 *     scratch:  tiles [task_panels][mc][NR] | A block [mc][kc] | B tail [kc][NR] | turned tile */
#ifndef CC_KERN_GEMM_T_H
#define CC_KERN_GEMM_T_H

#include "kern.h"
#include "move_t.h"

#define GEMM_KC 256
#define GEMM_MC (UKR_MR == 14 ? 84 : UKR_MR == 10 ? 80 : 72)
#define GEMM_TILES (256 * 1024)         /* bytes of unfinished tiles a task may keep */
#define GEMM_SMALL (64 * 1024)          /* multiply-adds below which one thread does it all */
#define GEMM_TASKS 16                   /* as many tasks as this, if the sizes allow it */
#define GEMM_LD (GEMM_KC + 16)          /* row of a packed A: no power of two, for the L1 sets */

static int64_t
gemm_ceil(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static int64_t
gemm_round(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* -- Scratch of a task ---------------------------------------------------------------- */

typedef struct {
    KT *tiles, *a, *b, *turned;
} GemmScratch;

/* Bytes of the four parts. */
static int64_t
gemm_scratch_sizes(const KernGemm *g, int64_t size[4])
{
    int64_t item = sizeof(KT);
    int64_t keep = g->p.k > g->p.kc ? g->p.task_panels : 1;

    size[0] = gemm_round((g->p.direct ? UKR_MR : keep * g->p.mc) * UKR_NR * item);
    size[1] = g->p.pack_a ? gemm_round(g->p.mc * GEMM_LD * item) : 0;
    size[2] = g->p.pack_b ? 0 : gemm_round(g->p.kc * UKR_NR * item);
    size[3] = g->p.swapped ? gemm_round(g->p.mc * UKR_NR * item) : 0;
    return size[0] + size[1] + size[2] + size[3];
}

static GemmScratch
gemm_scratch(const KernGemm *g, char *base)
{
    int64_t size[4];

    (void)gemm_scratch_sizes(g, size);
    return (GemmScratch){.tiles = (KT *)base,
                         .a = (KT *)(base + size[0]),
                         .b = (KT *)(base + size[0] + size[1]),
                         .turned = (KT *)(base + size[0] + size[1] + size[2])};
}

/* -- Packing -------------------------------------------------------------------------- */

/* k0..k0 + kc of one panel, columns past n as copies of the last. */
static void
gemm_pack_panel(const KernGemm *g, const KT *b, int64_t panel, int64_t k0, int64_t kc, KT *dst)
{
    int64_t j = panel * UKR_NR;
    int64_t cols = g->p.n - j < UKR_NR ? g->p.n - j : UKR_NR;

    kern_move(dst, UKR_NR, 1, b + k0 * g->p.bk + j * g->p.bn, g->p.bk, g->p.bn, kc, cols);
    move_pad_cols(dst, UKR_NR, kc, cols, gemm_ceil(cols, KW) * KW);
}

static void
gemm_pack_b(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernGemm *g = args;
    const KT *b = g->p.swapped ? g->a : g->b;
    int64_t size = g->p.k * UKR_NR;

    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        gemm_pack_panel(g, b + i / g->p.panels * g->p.bb, i % g->p.panels, 0, g->p.k,
                        (KT *)g->shared + i * size);
    }
}

/* Rows m0..m0 + mc, k0..k0 + kc of A into [row][GEMM_LD]. */
static void
gemm_pack_a(const KernGemm *g, const KT *a, int64_t m0, int64_t mc, int64_t k0, int64_t kc,
            KT *dst)
{
    const KT *src = a + m0 * g->p.am + k0 * g->p.ak;

    if (g->pro != NULL) {
        g->pro(g->pro_ctx, src, g->p.am, g->p.ak, dst, GEMM_LD, m0, mc, k0, k0 + kc);
    } else {
        kern_move(dst, GEMM_LD, 1, src, g->p.am, g->p.ak, mc, kc);
    }
}

/* -- Finishing a tile ----------------------------------------------------------------- */

/* tile[i * ld + j] += add[j], optionally relu. Whole vectors: the tile's rows are padded. */
static void
gemm_bias(KT *tile, int64_t ld, const KT *bias, int64_t rows, int64_t cols, bool relu)
{
    for (int64_t i = 0; i < rows; i++) {
        KT *row = tile + i * ld;
        int64_t j = 0;

        for (; j + KW <= cols; j += KW) {
            KV x = ukr_load(row + j) + ukr_load(bias + j);

            ukr_store(row + j, relu ? ukr_relu(x) : x);
        }
        for (; j < cols; j++) {
            KT x = row[j] + bias[j];

            row[j] = relu && x < 0 ? 0 : x;
        }
    }
}

/* dst[i][j] (+)= tile[i * ld + j] (+ res[i][j]) in any strides. */
static void
gemm_add(KT *dst, int64_t dr, int64_t dc, const KT *tile, int64_t ld, const KT *res, int64_t rr,
         int64_t rc, int64_t rows, int64_t cols)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t j = 0;

        for (; dc == 1 && rc == 1 && j + KW <= cols; j += KW) {
            ukr_store(dst + i * dr + j, ukr_load(res + i * rr + j) + ukr_load(tile + i * ld + j));
        }
        for (; j < cols; j++) {
            dst[i * dr + j * dc] = res[i * rr + j * rc] + tile[i * ld + j];
        }
    }
}

/* The tile of the user's rows m.. and columns n.. is final. */
static void
gemm_epilogue(const KernGemm *g, int64_t batch, KT *tile, int64_t ld, int64_t m, int64_t n,
              int64_t rows, int64_t cols)
{
    KT *c = (KT *)g->c + batch * g->c_batch + m * g->c_row + n * g->c_col;

    if (g->epi == KERN_EPI_HOOK) {
        g->hook(g->hook_ctx, tile, ld, (int64_t[4]){batch, m, n, 0}, rows, cols);
        return;
    }
    if (g->epi == KERN_EPI_RESIDUAL) {
        const KT *r = (const KT *)g->residual + batch * g->r_batch + m * g->r_row + n * g->r_col;

        gemm_add(c, g->c_row, g->c_col, tile, ld, r, g->r_row, g->r_col, rows, cols);
        return;
    }
    if (g->epi == KERN_EPI_STORE && g->accumulate) {
        gemm_add(c, g->c_row, g->c_col, tile, ld, c, g->c_row, g->c_col, rows, cols);
        return;
    }
    if (g->epi != KERN_EPI_STORE) {
        gemm_bias(tile, ld, (const KT *)g->bias + n, rows, cols, g->epi == KERN_EPI_BIAS_RELU);
    }
    kern_move(c, g->c_row, g->c_col, tile, ld, 1, rows, cols);
}

/* -- One task ------------------------------------------------------------------------- */

/* The product of one block of A rows with one block of a panel, into c. */
static void
gemm_block(int64_t mc, int64_t kc, const KT *a, int64_t am, int64_t ak, const KT *b, int64_t bk,
           int64_t cols, KT *c, int64_t ldc, int add)
{
    static const int64_t zero[1] = {0};
    const UkrFn *fn = ukr_fn[cols > KW];

    for (int64_t i = 0, mr; i < mc; i += mr) {
        mr = ukr_rows(mc - i);
        fn[mr - 1](1, kc, a + i * am, zero, am, ak, b, bk, c + i * ldc, ldc, add);
    }
}

typedef struct {
    int64_t batch, m0, mc, first, last;         /* rows and panels of the task */
    const KT *a, *b;                            /* of this batch */
    KT *c;
    GemmScratch s;
} GemmTask;

/* Panel `panel` of block k0..k0 + kc; ap, am, ak: the task's rows of A from k0 on. */
static void
gemm_panel(const KernGemm *g, GemmTask *t, int64_t panel, int64_t k0, int64_t kc, const KT *ap,
           int64_t am, int64_t ak)
{
    int64_t n0 = panel * UKR_NR;
    int64_t cols = g->p.n - n0 < UKR_NR ? g->p.n - n0 : UKR_NR;
    bool whole = cols % KW == 0, last = k0 + kc >= g->p.k;
    const KT *b = t->b + n0;
    int64_t bk = g->p.bk;
    KT *tile;

    if (g->p.pack_b) {
        b = t->b + (panel * g->p.k + k0) * UKR_NR;
        bk = UKR_NR;
    } else if (!whole || !g->p.inplace_b) {
        b = t->s.b;
        bk = UKR_NR;
        gemm_pack_panel(g, t->b, panel, k0, kc, t->s.b);
    } else {
        b += k0 * bk;
    }
    if (g->p.direct && whole) {
        gemm_block(t->mc, kc, ap, am, ak, b, bk, cols, t->c + t->m0 * g->p.cm + n0, g->p.cm,
                   g->accumulate || k0 > 0);
        return;
    }
    if (g->p.direct) {                          /* a tail panel: tile by tile through scratch */
        for (int64_t i = 0, mr; i < t->mc; i += mr) {
            KT *c = t->c + (t->m0 + i) * g->p.cm + n0;

            mr = ukr_rows(t->mc - i);
            gemm_block(mr, kc, ap + i * am, am, ak, b, bk, cols, t->s.tiles, UKR_NR, 0);
            if (g->accumulate || k0 > 0) {
                gemm_add(c, g->p.cm, 1, t->s.tiles, UKR_NR, c, g->p.cm, 1, mr, cols);
            } else {
                kern_move(c, g->p.cm, 1, t->s.tiles, UKR_NR, 1, mr, cols);
            }
        }
        return;
    }
    tile = t->s.tiles + (g->p.k > g->p.kc ? panel - t->first : 0) * g->p.mc * UKR_NR;
    gemm_block(t->mc, kc, ap, am, ak, b, bk, cols, tile, UKR_NR, k0 > 0);
    if (last && g->p.swapped) {
        move_transpose(t->s.turned, g->p.mc, tile, UKR_NR, t->mc, cols);
        gemm_epilogue(g, t->batch, t->s.turned, g->p.mc, n0, t->m0, cols, t->mc);
    } else if (last) {
        gemm_epilogue(g, t->batch, tile, UKR_NR, t->m0, n0, t->mc, cols);
    }
}

static void
gemm_task(const KernGemm *g, GemmTask *t)
{
    int64_t k0 = 0;

    do {                                        /* once for k = 0, which stores zeros */
        int64_t kc = g->p.k - k0 < g->p.kc ? g->p.k - k0 : g->p.kc;
        const KT *ap = t->a + t->m0 * g->p.am + k0 * g->p.ak;
        int64_t am = g->p.am, ak = g->p.ak;

        if (g->p.pack_a) {
            gemm_pack_a(g, t->a, t->m0, t->mc, k0, kc, t->s.a);
            ap = t->s.a;
            am = GEMM_LD;
            ak = 1;
        }
        for (int64_t panel = t->first; panel < t->last; panel++) {
            gemm_panel(g, t, panel, k0, kc, ap, am, ak);
        }
        k0 += kc;
    } while (k0 < g->p.k);
}

static void
gemm_run(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernGemm *g = args;
    GemmTask t;

    t.s = gemm_scratch(g, scratch);
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i % g->p.mtasks, col = i / g->p.mtasks % g->p.ntasks;

        t.batch = i / (g->p.mtasks * g->p.ntasks);
        t.m0 = row * g->p.mc;
        t.mc = g->p.m - t.m0 < g->p.mc ? g->p.m - t.m0 : g->p.mc;
        t.first = col * g->p.task_panels;
        t.last = t.first + g->p.task_panels < g->p.panels ? t.first + g->p.task_panels
                                                          : g->p.panels;
        t.a = (const KT *)(g->p.swapped ? g->b : g->a) + t.batch * g->p.ab;
        t.b = (const KT *)(g->p.swapped ? g->a : g->b) + t.batch * g->p.bb;
        if (g->p.pack_b) {
            t.b = (const KT *)g->shared
                + (g->p.bb == 0 ? 0 : t.batch) * g->p.panels * g->p.k * UKR_NR;
        }
        t.c = (KT *)g->c + t.batch * g->c_batch;
        gemm_task(g, &t);
    }
}

/* -- Matrix times vector -------------------------------------------------------------- */

#define GEMM_DOTS 64                    /* rows per epilogue */

static KT
gemm_dot(const KT *a, const KT *x, int64_t k)
{
    KV s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    KT sum = 0;
    int64_t i = 0;

    for (; i + 4 * KW <= k; i += 4 * KW) {
        s0 = UKR_FMA(ukr_load(a + i), ukr_load(x + i), s0);
        s1 = UKR_FMA(ukr_load(a + i + KW), ukr_load(x + i + KW), s1);
        s2 = UKR_FMA(ukr_load(a + i + 2 * KW), ukr_load(x + i + 2 * KW), s2);
        s3 = UKR_FMA(ukr_load(a + i + 3 * KW), ukr_load(x + i + 3 * KW), s3);
    }
    for (; i + KW <= k; i += KW) {
        s0 = UKR_FMA(ukr_load(a + i), ukr_load(x + i), s0);
    }
    for (; i < k; i++) {
        sum += a[i] * x[i];
    }
    s0 = (s0 + s1) + (s2 + s3);
    for (int j = 0; j < KW; j++) {
        sum += s0[j];
    }
    return sum;
}

/* Sums of blocks, so that a long vector loses no more than a long k of a product. */
static KT
gemm_long_dot(const KT *a, const KT *x, int64_t k)
{
    enum { BLOCK = 16 * GEMM_KC };
    KT sum = 0;

    for (int64_t k0 = 0; k0 < k; k0 += BLOCK) {
        sum += gemm_dot(a + k0, x + k0, k - k0 < BLOCK ? k - k0 : BLOCK);
    }
    return sum;
}

/* The vector of each batch, side by side. */
static void
gemm_pack_vector(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernGemm *g = args;
    const KT *x = g->p.swapped ? g->a : g->b;

    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        kern_move((KT *)g->shared + i * g->p.k, 0, 1, x + i * g->p.bb, 0, g->p.bk, 1, g->p.k);
    }
}

static void
gemm_run_vector(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernGemm *g = args;
    KT sum[GEMM_DOTS];

    (void)scratch;
    for (int64_t i = begin, count; i < end; i += count) {
        int64_t batch = i / g->p.m, row = i % g->p.m;
        const KT *a = (const KT *)(g->p.swapped ? g->b : g->a) + batch * g->p.ab + row * g->p.am;
        const KT *x = (const KT *)g->shared + (g->p.bb == 0 ? 0 : batch) * g->p.k;

        count = end - i < GEMM_DOTS ? end - i : GEMM_DOTS;
        count = g->p.m - row < count ? g->p.m - row : count;
        for (int64_t r = 0; r < count; r++) {
            sum[r] = gemm_long_dot(a + r * g->p.am, x, g->p.k);
        }
        if (g->p.swapped) {
            gemm_epilogue(g, batch, sum, count, 0, row, 1, count);
        } else {
            gemm_epilogue(g, batch, sum, 1, row, 0, count, 1);
        }
    }
}

static void
gemm_plan_vector(KernGemm *g, KernPlan *plan)
{
    int64_t vectors = g->p.bb == 0 ? 1 : g->nbatch;
    double work = (double)g->k / KW + 5;

    plan->shared = (size_t)gemm_round(vectors * g->k * (int64_t)sizeof(KT));
    plan->phase[0] = (CcPhase){.fn = gemm_pack_vector, .size = vectors,
                               .grain = gemm_ceil(8192, g->k + 1),
                               .work = (double)vectors * (double)g->k * 0.2};
    plan->phase[1] = (CcPhase){.fn = gemm_run_vector, .size = g->nbatch * g->p.m,
                               .grain = gemm_ceil(GEMM_SMALL, g->k + 64),
                               .work = (double)g->nbatch * (double)g->p.m * work};
    plan->nphase = 2;
}

/* -- The plan ------------------------------------------------------------------------- */

/* Which operand is broadcast, and the problem in its terms. */
static void
gemm_orient(KernGemm *g)
{
    bool few = g->m <= 128 && g->m < g->n && g->b_row == 1 && g->b_col != 1;
    bool column_major = g->epi == KERN_EPI_STORE && g->c_row == 1 && g->c_col != 1;

    bool turned_vector = g->n == 1 && g->a_row == 1 && g->a_col != 1;

    if (g->m == 1 || g->n == 1) {
        few = g->m == 1 && g->n > 1 && g->b_row == 1;
        column_major = false;
    }
    g->p.swapped = g->pro == NULL && (few || column_major || turned_vector);
    g->p.k = g->k;
    if (g->p.swapped) {
        g->p.m = g->n, g->p.n = g->m;
        g->p.ab = g->b_batch, g->p.am = g->b_col, g->p.ak = g->b_row;
        g->p.bb = g->a_batch, g->p.bk = g->a_col, g->p.bn = g->a_row;
        g->p.cm = g->c_col, g->p.cn = g->c_row;
    } else {
        g->p.m = g->m, g->p.n = g->n;
        g->p.ab = g->a_batch, g->p.am = g->a_row, g->p.ak = g->a_col;
        g->p.bb = g->b_batch, g->p.bk = g->b_row, g->p.bn = g->b_col;
        g->p.cm = g->c_row, g->p.cn = g->c_col;
    }
}

/* Cut C into tasks: by sizes alone, so that the same work is done by any number of threads. */
static void
gemm_cut(KernGemm *g)
{
    int64_t tile = GEMM_MC * UKR_NR * (int64_t)sizeof(KT);

    g->p.kc = GEMM_KC;
    g->p.mc = g->p.m < GEMM_MC ? g->p.m : GEMM_MC;
    g->p.pack_b = g->p.m > GEMM_MC;
    g->p.inplace_b = g->p.bn == 1 && g->p.m <= 2 * UKR_MR;
    g->p.panels = gemm_ceil(g->p.n, UKR_NR);
    g->p.task_panels = g->p.panels < GEMM_TILES / tile ? g->p.panels : GEMM_TILES / tile;
    if (g->p.m * g->p.n * g->k > GEMM_SMALL) {
        for (;;) {
            int64_t tasks = gemm_ceil(g->p.m, g->p.mc) * g->nbatch
                          * gemm_ceil(g->p.panels, g->p.task_panels);

            if (tasks >= GEMM_TASKS) {
                break;
            }
            if (g->p.pack_b && g->p.mc > 2 * UKR_MR && g->p.task_panels * UKR_NR <= 2 * g->p.mc) {
                g->p.mc = gemm_ceil(gemm_ceil(g->p.mc, UKR_MR), 2) * UKR_MR;
            } else if (g->p.task_panels > 1) {
                g->p.task_panels = gemm_ceil(g->p.task_panels, 2);
            } else {
                break;
            }
        }
    }
    g->p.mtasks = gemm_ceil(g->p.m, g->p.mc);
    g->p.ntasks = gemm_ceil(g->p.panels, g->p.task_panels);
}

static void
gemm_plan(KernGemm *g, KernPlan *plan)
{
    int64_t item = sizeof(KT), packs, parts[4];
    double flops = (double)g->m * (double)g->n * (double)g->k;

    gemm_orient(g);
    g->p.direct = g->epi == KERN_EPI_STORE && g->p.cn == 1;
    *plan = (KernPlan){.nphase = 0};
    if (g->m <= 0 || g->n <= 0 || g->nbatch <= 0) {
        return;
    }
    if (g->p.n == 1 && g->p.ak == 1 && g->pro == NULL) {
        gemm_plan_vector(g, plan);
        return;
    }
    gemm_cut(g);
    /* Rows a multiple of 2 KB apart share few sets of the L1 cache; k steps a row apart share no
     * cache line. Both are fine for a narrow C, which reads A only once or twice. */
    g->p.pack_a = g->pro != NULL
               || ((g->p.ak != 1 || g->p.am * item % 2048 == 0) && g->p.task_panels > 2);
    packs = g->p.panels * (g->p.bb == 0 ? 1 : g->nbatch);
    if (g->p.pack_b && g->k > 0) {
        plan->shared = (size_t)gemm_round(packs * g->k * UKR_NR * item);
        plan->phase[plan->nphase++] = (CcPhase){
            .fn = gemm_pack_b, .size = packs, .grain = gemm_ceil(8192, g->k * UKR_NR),
            .work = (double)packs * (double)g->k * UKR_NR * 0.25};
    }
    plan->phase[plan->nphase++] = (CcPhase){
        .fn = gemm_run, .size = g->nbatch * g->p.mtasks * g->p.ntasks,
        .grain = flops <= GEMM_SMALL ? gemm_ceil(GEMM_SMALL, (int64_t)flops + 4096) : 1,
        .scratch = gemm_scratch_sizes(g, parts),
        .work = (double)g->nbatch * (flops / (UKR_NR * 1.5) + 100.0)};
}

#endif
