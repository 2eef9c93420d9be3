/* kern/kern.h - heavy operations: matrix products, convolutions, max-pooling.
 *
 * An operation is a parameter struct. The caller fills its public part, calls the `plan` function
 * of the table (cheap, no memory: once per call when sizes change), gives plan.shared bytes of
 * 64-byte aligned memory in `shared`, sets the data pointers, and lets the team run the phases
 * with the struct as their argument block. Nothing here allocates, fails, or keeps state.
 *
 * Invariants
 *   - Strides are in elements, any sign, and belong to the user's tensors: no layout is required.
 *   - Bits of a result depend on sizes, strides and the ISA level, never on the thread count or
 *     on how a phase was cut.
 *   - The output must not overlap an input (but for accumulate, which reads what it writes).
 *   - Lanes past a tail work on copies of real ones, so they raise no IEEE flags of their own. */
#ifndef CC_KERN_H
#define CC_KERN_H

#include "../rt/kernel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERN_PHASES 4

typedef struct {
    CcPhase phase[KERN_PHASES];
    uint32_t nphase;
    size_t shared;                      /* bytes that all threads share, may be 0 */
} KernPlan;

/* What happens to a finished tile of the result, once, while it is in the L1 cache. */
typedef enum {
    KERN_EPI_STORE,                     /* C = x, or C += x with `accumulate` */
    KERN_EPI_BIAS,                      /* C = x + bias[column] */
    KERN_EPI_BIAS_RELU,                 /* C = relu(x + bias[column]), NaN stays NaN */
    KERN_EPI_RESIDUAL,                  /* C = x + residual, GEMM only */
    KERN_EPI_HOOK                       /* the hook reads the tile and writes whatever it wants */
} KernEpi;

/* tile[i * ldt + j], i < rows, j < cols, is final. It may be changed in place. GEMM: at = {batch,
 * row, column, 0}. Convolution: at = {image, output row, 0, channel}; the rows of the tile are the
 * output positions of whole output rows, in order, its columns the channels. */
typedef void (*KernEpiFn)(const void *ctx, void *tile, int64_t ldt, const int64_t at[4],
                          int64_t rows, int64_t cols);

/* GEMM prologue: write op(A)[row + i][k], k0 <= k < k1, to dst[i * ldd + k - k0], i < rows.
 * src is the address of A[row][k0] with strides `row_stride` and `k_stride`. */
typedef void (*KernProFn)(const void *ctx, const void *src, int64_t row_stride, int64_t k_stride,
                          void *dst, int64_t ldd, int64_t row, int64_t rows, int64_t k0,
                          int64_t k1);

/* -- C[b] = A[b] * B[b], float and double --------------------------------------------- */

typedef struct {
    int64_t nbatch, m, n, k;
    int64_t a_batch, a_row, a_col;      /* strides of A[m][k] */
    int64_t b_batch, b_row, b_col;      /* strides of B[k][n]; b_batch 0 = shared by all */
    int64_t c_batch, c_row, c_col;      /* strides of C[m][n] */
    int64_t r_batch, r_row, r_col;      /* KERN_EPI_RESIDUAL: strides of residual[m][n] */
    bool accumulate;                    /* with KERN_EPI_STORE only */
    KernEpi epi;
    KernProFn pro;                      /* NULL = none */
    KernEpiFn hook;
    const void *pro_ctx, *hook_ctx;
    const void *a, *b;
    void *c;
    const void *bias, *residual;        /* bias: n elements, contiguous */
    void *shared;

    /* Set by the plan. */
    struct {
        bool swapped;                   /* C' = B' * A': the operand read in place is B */
        bool direct;                    /* tiles go straight to C */
        bool pack_a, pack_b, inplace_b;
        int64_t m, n, k, am, ak, ab, bk, bn, bb, cm, cn;
        int64_t mc, kc, panels, task_panels, mtasks, ntasks;
    } p;
} KernGemm;

/* -- Integer and bool products: NumPy's, wrapping around; bool is any(and) ------------ */

typedef enum {
    KERN_I8, KERN_I16, KERN_I32, KERN_I64, KERN_U8, KERN_U16, KERN_U32, KERN_U64, KERN_BOOL
} KernInt;

typedef struct {
    KernInt type;
    int64_t nbatch, m, n, k;
    int64_t a_batch, a_row, a_col, b_batch, b_row, b_col, c_batch, c_row, c_col;
    const void *a, *b;
    void *c;
} KernIntMm;

void kern_intmm_plan(const KernIntMm *g, KernPlan *plan);

/* -- Convolution, N C H W tensors with any strides ------------------------------------ */

/* x[n][c][h][w], w[oc][c / groups][kh][kw], y[n][oc][oh][ow]. One struct serves forward (x, w in,
 * y out), input gradient (y, w in, x out) and weight gradient (x, y in, w out); y and x stand for
 * their gradients there. */
typedef struct {
    int64_t n, c, h, w, oc, kh, kw, groups;
    int64_t stride_h, stride_w, dil_h, dil_w;
    int64_t pad_top, pad_bottom, pad_left, pad_right;
    int64_t xs[4], ws[4], ys[4];        /* strides */
    KernEpi epi;                        /* forward only; STORE, BIAS, BIAS_RELU or HOOK */
    KernEpiFn hook;
    const void *hook_ctx;
    const void *bias;                   /* oc elements, contiguous */
    void *x, *wt, *y;                   /* the inputs are only read */
    void *shared;

    /* Set by the plan: the problem in the kernel's terms, see conv_t.h. */
    struct {
        bool cols, flat, planes;
        int64_t in_h, in_w, ic, oc, out_h, out_w;           /* channels of one group */
        int64_t zoom_h, zoom_w;         /* zeros are put between the rows of the input */
        int64_t sh, sw, top, left;
        int64_t is[4], os[4];           /* strides of input and output */
        int64_t ko, ki, kh, kw, kg, k0; /* strides of the weights, and of groups; first element */
        int64_t k, run, nseg, block_h, block_w;
        int64_t images, row_block, row_blocks, epi_rows;
        int64_t panels, group_panels, panel_groups, splits;
    } p;
} KernConv;

/* Output size of one axis; 0 when the window does not fit. */
int64_t kern_conv_out(int64_t size, int64_t kernel, int64_t stride, int64_t dil, int64_t pad);

/* -- Max-pooling ---------------------------------------------------------------------- */

/* x[n][c][h][w] -> y[n][c][oh][ow]. The first maximum of a window in row order wins; a NaN wins
 * over everything and the last NaN over earlier ones, as in torch. Padding never wins. `index`
 * (contiguous n c oh ow) gets h * width + w in the input plane. The gradient reads x, takes y for
 * y's gradient and writes dx. */
typedef struct {
    int64_t n, c, h, w, oh, ow;
    int64_t kh, kw, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w;
    int64_t xs[4], ys[4], dxs[4];
    const void *x;
    void *y, *dx;                       /* dx: gradient only; y is read there */
    int64_t *index;                     /* forward only; NULL = not wanted */
} KernPool;

/* -- The table of one ISA level ------------------------------------------------------- */

typedef struct {
    void (*gemm)(KernGemm *g, KernPlan *plan);
    void (*conv)(KernConv *c, KernPlan *plan);          /* forward */
    void (*conv_dx)(KernConv *c, KernPlan *plan);
    void (*conv_dw)(KernConv *c, KernPlan *plan);
    void (*pool)(const KernPool *p, KernPlan *plan);
    void (*pool_dx)(const KernPool *p, KernPlan *plan);
} KernFloat;

typedef enum { KERN_LEVEL_BASE, KERN_LEVEL_V3, KERN_LEVEL_V4, KERN_LEVEL__COUNT } KernLevel;

typedef struct {
    const char *name;                   /* "base", "v3", "v4" */
    const KernFloat *f32, *f64;
} KernTable;

/* The best table that this CPU runs. */
const KernTable *kern_table(void);

/* The table of one level, NULL when the CPU or the build lacks it. */
const KernTable *kern_table_level(KernLevel level);

#endif
