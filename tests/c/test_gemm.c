/* tests/c/test_gemm.c - matrix products against naive sums, every ISA level this machine has. */
#include "kern_run.h"

#include <float.h>
#include <math.h>

static uint64_t seed = 1;

/* -- Operands of either float type, in any strides ------------------------------------ */

typedef struct {
    bool f64;
    char *block;                        /* owned */
    char *origin;                       /* element 0, 0 */
    int64_t batch, row, col, items;
} Mat;

typedef enum { ROWS, COLS, SPACED, BACKWARDS, KIND__COUNT } Kind;

static double
mat_get(const Mat *m, int64_t b, int64_t i, int64_t j)
{
    int64_t at = b * m->batch + i * m->row + j * m->col;

    return m->f64 ? ((double *)m->origin)[at] : (double)((float *)m->origin)[at];
}

static void
mat_set(const Mat *m, int64_t b, int64_t i, int64_t j, double x)
{
    int64_t at = b * m->batch + i * m->row + j * m->col;

    if (m->f64) {
        ((double *)m->origin)[at] = x;
    } else {
        ((float *)m->origin)[at] = (float)x;
    }
}

static Mat
mat_new(bool f64, Kind kind, int64_t batch, int64_t rows, int64_t cols)
{
    int64_t step = kind == SPACED ? 3 : 1, item = f64 ? 8 : 4;
    Mat m = {.f64 = f64, .items = batch * rows * cols * step};

    m.block = malloc((size_t)(m.items * item) + 1);
    m.batch = rows * cols * step;
    m.row = kind == COLS ? 1 : cols * step;
    m.col = kind == COLS ? rows : step;
    m.origin = m.block;
    if (kind == BACKWARDS && m.items > 0) {
        m.origin += (rows * cols - 1) * item;
        m.row = -m.row;
        m.col = -m.col;
    }
    for (int64_t i = 0; i < m.items; i++) {
        if (f64) {
            ((double *)m.block)[i] = run_random(&seed);
        } else {
            ((float *)m.block)[i] = (float)run_random(&seed);
        }
    }
    return m;
}

/* -- One product and its check -------------------------------------------------------- */

typedef struct {
    bool f64, accumulate, shared_b;
    KernEpi epi;
    Kind a, b, c;
    int64_t batch, m, n, k;
    bool prologue;
} Case;

/* relu(2 a + k), as a normalisation would be. */
static void
double_plus_k(const void *ctx, const void *src, int64_t row_stride, int64_t k_stride, void *dst,
              int64_t ldd, int64_t row, int64_t rows, int64_t k0, int64_t k1)
{
    (void)row;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = k0; k < k1; k++) {
            int64_t from = i * row_stride + (k - k0) * k_stride, to = i * ldd + k - k0;

            if (*(const bool *)ctx) {
                double x = 2 * ((const double *)src)[from] + (double)k;

                ((double *)dst)[to] = x < 0 ? 0 : x;
            } else {
                float x = 2 * ((const float *)src)[from] + (float)k;

                ((float *)dst)[to] = x < 0 ? 0 : x;
            }
        }
    }
}

/* Writes 3 x to C: called once for each element. */
static void
times_three(const void *ctx, void *tile, int64_t ldt, const int64_t at[4], int64_t rows,
            int64_t cols)
{
    const Mat *c = ctx;

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            double x = c->f64 ? ((double *)tile)[i * ldt + j]
                              : (double)((float *)tile)[i * ldt + j];

            mat_set(c, at[0], at[1] + i, at[2] + j, 3 * x);
        }
    }
}

static double
expected(const Case *t, const Mat *a, const Mat *b, const Mat *c, const Mat *bias, const Mat *res,
         int64_t at[3], double *size)
{
    double sum = 0;

    *size = 0;
    for (int64_t k = 0; k < t->k; k++) {
        double x = mat_get(a, at[0], at[1], k);

        if (t->prologue) {
            x = 2 * x + (double)k < 0 ? 0 : 2 * x + (double)k;
        }
        x *= mat_get(b, at[0], k, at[2]);
        sum += x;
        *size += fabs(x);
    }
    if (t->accumulate) {
        sum += mat_get(c, at[0], at[1], at[2]);
    } else if (t->epi == KERN_EPI_BIAS || t->epi == KERN_EPI_BIAS_RELU) {
        sum += mat_get(bias, 0, 0, at[2]);
    } else if (t->epi == KERN_EPI_RESIDUAL) {
        sum += mat_get(res, at[0], at[1], at[2]);
    }
    *size += 1;
    if (t->epi == KERN_EPI_HOOK) {
        *size *= 3;
        return 3 * sum;
    }
    return t->epi == KERN_EPI_BIAS_RELU && sum < 0 ? 0 : sum;
}

static void
check(const KernTable *table, const Case *t)
{
    Mat a = mat_new(t->f64, t->a, t->batch, t->m, t->k);
    Mat b = mat_new(t->f64, t->b, t->shared_b ? 1 : t->batch, t->k, t->n);
    Mat c = mat_new(t->f64, t->c, t->batch, t->m, t->n);
    Mat bias = mat_new(t->f64, ROWS, 1, 1, t->n), res = mat_new(t->f64, ROWS, t->batch, t->m, t->n);
    size_t bytes = (size_t)c.items * (t->f64 ? 8 : 4);
    char *before = malloc(bytes + 1), *first = malloc(bytes + 1);
    double eps = t->f64 ? DBL_EPSILON : (double)FLT_EPSILON;
    KernPlan plan;

    b.batch = t->shared_b ? 0 : b.batch;
    KernGemm g = {
        .nbatch = t->batch, .m = t->m, .n = t->n, .k = t->k,
        .a_batch = a.batch, .a_row = a.row, .a_col = a.col,
        .b_batch = b.batch, .b_row = b.row, .b_col = b.col,
        .c_batch = c.batch, .c_row = c.row, .c_col = c.col,
        .r_batch = res.batch, .r_row = res.row, .r_col = res.col,
        .accumulate = t->accumulate, .epi = t->epi,
        .pro = t->prologue ? double_plus_k : NULL, .pro_ctx = &t->f64,
        .hook = times_three, .hook_ctx = &c,
        .a = a.origin, .b = b.origin, .c = c.origin, .bias = bias.origin, .residual = res.origin,
    };
    memcpy(before, c.block, bytes);
    (t->f64 ? table->f64 : table->f32)->gemm(&g, &plan);
    for (int cut = 0; cut < RUN__COUNT; cut++) {
        memcpy(c.block, before, bytes);
        run_plan(&plan, &g, &g.shared, (RunCut)cut);
        if (cut == 0) {
            memcpy(first, c.block, bytes);
        }
        T_CHECK(memcmp(first, c.block, bytes) == 0);
    }
    Mat old = c;
    old.block = before;
    old.origin = before + (c.origin - c.block);
    int bad = 0;
    for (int64_t i = 0; i < t->batch * t->m * t->n; i++) {
        int64_t at[3] = {i / (t->m * t->n), i / t->n % t->m, i % t->n};
        double size, want = expected(t, &a, &b, &old, &bias, &res, at, &size);
        double got = mat_get(&c, at[0], at[1], at[2]);

        bad += !(fabs(got - want) <= eps * (3 + sqrt((double)t->k)) * size);
    }
    if (bad > 0) {
        printf("%s f%d batch %d m %d n %d k %d kinds %d %d %d epi %d acc %d pro %d: %d wrong\n",
               table->name, t->f64 ? 64 : 32, (int)t->batch, (int)t->m, (int)t->n, (int)t->k, t->a,
               t->b, t->c, t->epi, t->accumulate, t->prologue, bad);
        t_failed++;
    }
    free(a.block), free(b.block), free(c.block), free(bias.block), free(res.block);
    free(before), free(first);
}

/* -- Sweeps --------------------------------------------------------------------------- */

static void
test_shapes(const KernTable *table)
{
    static const int64_t shape[][3] = {         /* m, n, k */
        {0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {1, 1, 1}, {1, 37, 5}, {37, 1, 5}, {5, 7, 3}, {14, 32, 9},
        {15, 33, 257}, {29, 65, 300}, {64, 10, 600}, {6, 200, 31}, {85, 129, 40}, {173, 70, 20},
        {100, 300, 7}, {64, 256, 513},
    };

    for (size_t s = 0; s < sizeof(shape) / sizeof(shape[0]); s++) {
        for (int kinds = 0; kinds < KIND__COUNT * KIND__COUNT * KIND__COUNT; kinds++) {
            bool small = shape[s][0] * shape[s][1] * shape[s][2] < 5000;
            Case t = {.f64 = kinds % 2 == 0, .batch = kinds % 5 == 0 ? 3 : 1, .m = shape[s][0],
                      .n = shape[s][1], .k = shape[s][2], .a = (Kind)(kinds % KIND__COUNT),
                      .b = (Kind)(kinds / KIND__COUNT % KIND__COUNT),
                      .c = (Kind)(kinds / KIND__COUNT / KIND__COUNT),
                      .accumulate = kinds % 3 == 0, .shared_b = kinds % 7 == 0};

            if (kinds % (small ? 5 : 21) == (int)(s % 5)) {
                check(table, &t);
                t.f64 = !t.f64;
                check(table, &t);
            }
        }
    }
}

static void
test_hooks(const KernTable *table)
{
    static const int64_t shape[][3] = {{3, 4, 0}, {1, 9, 4}, {31, 75, 20}, {90, 64, 300},
                                       {40, 170, 270}};

    for (size_t s = 0; s < sizeof(shape) / sizeof(shape[0]); s++) {
        for (int i = (int)s % 7; i < 2 * KIND__COUNT * KIND__COUNT * 5; i += 7) {
            Case t = {.f64 = i % 2, .batch = s == 1 ? 2 : 1, .m = shape[s][0], .n = shape[s][1],
                      .k = shape[s][2], .b = (Kind)(i / 2 % KIND__COUNT),
                      .c = (Kind)(i / 2 / KIND__COUNT % KIND__COUNT),
                      .epi = (KernEpi)(i / 2 / KIND__COUNT / KIND__COUNT),
                      .prologue = i % 4 == 0};

            check(table, &t);
        }
    }
}

/* NaN and inf in one row of A and one column of B reach exactly that row and column. */
static void
test_specials(const KernTable *table)
{
    enum { M = 17, N = 35, K = 300 };
    static float a[M][K], b[K][N], c[M][N];
    KernGemm g = {.nbatch = 1, .m = M, .n = N, .k = K, .a_row = K, .a_col = 1, .b_row = N,
                  .b_col = 1, .c_row = N, .c_col = 1, .a = a, .b = b, .c = c};
    KernPlan plan;

    for (int i = 0; i < M * K; i++) {
        a[i / K][i % K] = 1;
    }
    for (int i = 0; i < K * N; i++) {
        b[i / N][i % N] = 1;
    }
    a[3][299] = INFINITY;
    b[7][34] = NAN;
    table->f32->gemm(&g, &plan);
    run_plan(&plan, &g, &g.shared, RUN_WHOLE);
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            T_CHECK(j == 34 ? isnan(c[i][j]) : i == 3 ? c[i][j] == INFINITY : c[i][j] == K);
        }
    }
    g.epi = KERN_EPI_BIAS_RELU;
    g.bias = b[0];
    table->f32->gemm(&g, &plan);
    run_plan(&plan, &g, &g.shared, RUN_WHOLE);
    T_CHECK(isnan(c[0][34]) && c[3][0] == INFINITY);
}

/* Blocked sums: a long sum of equal terms is off by 4e-2 as one running sum. */
static void
test_accuracy(const KernTable *table)
{
    enum { K = 1 << 20 };
    float *a = malloc(sizeof(float) * K), one = 1, c = 0;
    KernGemm g = {.nbatch = 1, .m = 1, .n = 1, .k = K, .a_col = 1, .c_row = 1, .c_col = 1, .a = a,
                  .b = &one, .c = &c};
    KernPlan plan;

    for (int i = 0; i < K; i++) {
        a[i] = 0.1f;
    }
    table->f32->gemm(&g, &plan);
    run_plan(&plan, &g, &g.shared, RUN_WHOLE);
    T_CHECK(fabs((double)c / (K * (double)0.1f) - 1) < 2e-4);
    free(a);
}

/* -- Integers ------------------------------------------------------------------------- */

static void
test_integers(void)
{
    enum { M = 3, N = 70, K = 9 };
    static const int item[] = {1, 2, 4, 8, 1, 2, 4, 8};
    static uint64_t a[M * K], b[K * N], c[M * N];

    for (int type = KERN_I8; type <= KERN_U64; type++) {
        uint64_t mask = item[type] == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * item[type]) - 1;
        KernIntMm g = {.type = (KernInt)type, .nbatch = 1, .m = M, .n = N, .k = K, .a_row = K,
                       .a_col = 1, .b_row = 1, .b_col = K, .c_row = N, .c_col = 1, .a = a, .b = b,
                       .c = c};
        KernPlan plan;

        for (int i = 0; i < M * K + K * N; i++) {
            uint64_t *to = i < M * K ? a : b;
            uint64_t x = i == 0 ? mask : (uint64_t)(run_random(&seed) * 4e18);

            memcpy((char *)to + (i < M * K ? i : i - M * K) * item[type], &x, (size_t)item[type]);
        }
        kern_intmm_plan(&g, &plan);
        run_plan(&plan, &g, NULL, RUN_GRAINS);
        for (int i = 0; i < M * N; i++) {
            uint64_t sum = 0, got = 0;

            for (int k = 0; k < K; k++) {
                uint64_t x = 0, y = 0;

                memcpy(&x, (char *)a + (i / N * K + k) * item[type], (size_t)item[type]);
                memcpy(&y, (char *)b + (i % N * K + k) * item[type], (size_t)item[type]);
                sum += x * y;
            }
            memcpy(&got, (char *)c + i * item[type], (size_t)item[type]);
            T_CHECK(got == (sum & mask));
        }
    }
}

static void
test_bools(void)
{
    uint8_t a[4] = {0, 2, 0, 4}, b[4] = {255, 0, 1, 0}, c[4] = {9, 9, 9, 9}, none[4] = {9, 9, 9, 9};
    KernIntMm g = {.type = KERN_BOOL, .nbatch = 1, .m = 2, .n = 2, .k = 2, .a_row = 2, .a_col = 1,
                   .b_row = 2, .b_col = 1, .c_row = 2, .c_col = 1, .a = a, .b = b, .c = c};
    KernPlan plan;

    kern_intmm_plan(&g, &plan);
    run_plan(&plan, &g, NULL, RUN_WHOLE);
    T_CHECK(c[0] == 1 && c[1] == 0 && c[2] == 1 && c[3] == 0);
    g.k = 0;
    g.c = none;
    kern_intmm_plan(&g, &plan);
    run_plan(&plan, &g, NULL, RUN_WHOLE);
    T_CHECK(none[0] == 0 && none[3] == 0);
}

int
main(void)
{
    T_CHECK(kern_table() != NULL && kern_table_level(KERN_LEVEL_BASE) != NULL);
    T_CHECK(kern_table_level(KERN_LEVEL__COUNT) == NULL);
    for (int level = 0; level < KERN_LEVEL__COUNT; level++) {
        const KernTable *table = kern_table_level((KernLevel)level);

        if (table != NULL) {
            test_shapes(table);
            test_hooks(table);
            test_specials(table);
            test_accuracy(table);
        }
    }
    test_integers();
    test_bools();
    return t_failed != 0;
}
