/* kern/intmm.c - matrix products of integers and bools, NumPy's semantics.
 *
 * Sums wrap around, so they are formed in the unsigned type of the same width and signed and
 * unsigned share one loop. A bool is true when any byte pair is non-zero; the result is 0 or 1. */
#include "kern.h"

#define INTMM_COLS 64                   /* sums kept at a time, side by side in one row of C */

/* One row of C. MUL and ADD combine elements read as READ(byte pattern). */
#define INTMM_ROW(name, type, wide, READ, ADD)                                                  \
    static void                                                                                 \
    name(const KernIntMm *g, const void *a_row, const void *b_mat, void *c_row)                 \
    {                                                                                           \
        const type *a = a_row, *b = b_mat;                                                      \
        type *c = c_row;                                                                        \
                                                                                                \
        for (int64_t j0 = 0; j0 < g->n; j0 += INTMM_COLS) {                                     \
            int64_t cols = g->n - j0 < INTMM_COLS ? g->n - j0 : INTMM_COLS;                     \
            type sum[INTMM_COLS] = {0};                                                         \
                                                                                                \
            for (int64_t k = 0; k < g->k; k++) {                                                \
                const type *row = b + k * g->b_row + j0 * g->b_col;                             \
                wide x = READ(a[k * g->a_col]);                                                 \
                                                                                                \
                for (int64_t j = 0; j < cols; j++) {                                            \
                    sum[j] = (type)ADD(sum[j], x, READ(row[j * g->b_col]));                     \
                }                                                                               \
            }                                                                                   \
            for (int64_t j = 0; j < cols; j++) {                                                \
                c[(j0 + j) * g->c_col] = sum[j];                                                \
            }                                                                                   \
        }                                                                                       \
    }

#define INTMM_SAME(x) (x)
#define INTMM_TRUE(x) ((x) != 0)
#define INTMM_MULADD(s, x, y) ((s) + (x) * (y))
#define INTMM_ANY(s, x, y) ((s) | ((x) & (y)))

/* 8 and 16 bits multiply as uint32_t: promoted to int, 65535 * 65535 would overflow. */
INTMM_ROW(intmm_row8, uint8_t, uint32_t, INTMM_SAME, INTMM_MULADD)
INTMM_ROW(intmm_row16, uint16_t, uint32_t, INTMM_SAME, INTMM_MULADD)
INTMM_ROW(intmm_row32, uint32_t, uint32_t, INTMM_SAME, INTMM_MULADD)
INTMM_ROW(intmm_row64, uint64_t, uint64_t, INTMM_SAME, INTMM_MULADD)
INTMM_ROW(intmm_row_bool, uint8_t, uint8_t, INTMM_TRUE, INTMM_ANY)

typedef void (*IntMmRow)(const KernIntMm *, const void *, const void *, void *);

static const struct {
    int64_t item;
    IntMmRow row;
} intmm_type[] = {
    [KERN_I8] = {1, intmm_row8},     [KERN_I16] = {2, intmm_row16},
    [KERN_I32] = {4, intmm_row32},   [KERN_I64] = {8, intmm_row64},
    [KERN_U8] = {1, intmm_row8},     [KERN_U16] = {2, intmm_row16},
    [KERN_U32] = {4, intmm_row32},   [KERN_U64] = {8, intmm_row64},
    [KERN_BOOL] = {1, intmm_row_bool},
};

static void
intmm_run(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const KernIntMm *g = args;
    int64_t item = intmm_type[g->type].item;

    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        int64_t batch = i / g->m, row = i % g->m;

        intmm_type[g->type].row(
            g, (const char *)g->a + (batch * g->a_batch + row * g->a_row) * item,
            (const char *)g->b + batch * g->b_batch * item,
            (char *)g->c + (batch * g->c_batch + row * g->c_row) * item);
    }
}

void
kern_intmm_plan(const KernIntMm *g, KernPlan *plan)
{
    double cost = (double)g->n * (double)(g->k + 1);
    int64_t rows = g->n > 0 && g->nbatch > 0 ? g->m * g->nbatch : 0;

    *plan = (KernPlan){.nphase = 1};
    plan->phase[0] = (CcPhase){.fn = intmm_run,
                               .size = rows,
                               .grain = cost < 4096 ? (int64_t)(4096 / (cost + 1)) + 1 : 1,
                               .work = (double)rows * cost};
}
