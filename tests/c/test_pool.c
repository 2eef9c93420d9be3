/* tests/c/test_pool.c - max-pooling against the definition, every ISA level. */
#include "kern_run.h"

#include <math.h>

static uint64_t seed = 3;

typedef struct {
    double *x, *y, *dx, *dy;            /* n c h w order */
    int64_t *index;
    int64_t nx, ny;
} Want;

/* torch's rule, element by element. */
static void
naive(const KernPool *p, Want *t)
{
    for (int64_t i = 0; i < t->nx; i++) {
        t->dx[i] = 0;
    }
    for (int64_t o = 0; o < t->ny; o++) {
        int64_t plane = o / (p->oh * p->ow), oh = o / p->ow % p->oh, ow = o % p->ow, at = -1;
        double best = -INFINITY;

        for (int64_t k = 0; k < p->kh * p->kw; k++) {
            int64_t h = oh * p->stride_h - p->pad_h + k / p->kw * p->dil_h;
            int64_t w = ow * p->stride_w - p->pad_w + k % p->kw * p->dil_w;

            if (h >= 0 && h < p->h && w >= 0 && w < p->w) {
                double x = t->x[(plane * p->h + h) * p->w + w];

                if (at < 0 || x > best || isnan(x)) {
                    best = x;
                    at = h * p->w + w;
                }
            }
        }
        t->y[o] = best;
        t->index[o] = at;
        t->dx[plane * p->h * p->w + at] += t->dy[o];
    }
}

static double
get(const void *data, bool f64, int64_t at)
{
    return f64 ? ((const double *)data)[at] : (double)((const float *)data)[at];
}

static void
set(void *data, bool f64, int64_t at, double x)
{
    if (f64) {
        ((double *)data)[at] = x;
    } else {
        ((float *)data)[at] = (float)x;
    }
}

static bool
same(double a, double b)
{
    return (a == b && !signbit(a) == !signbit(b)) || (isnan(a) && isnan(b));
}

/* step: distance of neighbours in a row; the tensors are spread by it. */
static void
check(const KernTable *table, KernPool p, bool f64, int64_t step, bool places)
{
    const KernFloat *ops = f64 ? table->f64 : table->f32;
    Want t = {.nx = p.n * p.c * p.h * p.w, .ny = p.n * p.c * p.oh * p.ow};
    void *x = malloc((size_t)(t.nx * step * 8) + 1), *y = malloc((size_t)(t.ny * step * 8) + 1);
    void *dx = malloc((size_t)(t.nx * step * 8) + 1);
    int64_t *index = malloc((size_t)t.ny * 8 + 1);
    KernPlan plan;
    int bad = 0;

    t.x = malloc((size_t)t.nx * 8 + 1), t.dx = malloc((size_t)t.nx * 8 + 1);
    t.y = malloc((size_t)t.ny * 8 + 1), t.dy = malloc((size_t)t.ny * 8 + 1);
    t.index = malloc((size_t)t.ny * 8 + 1);
    for (int64_t i = 0; i < t.nx; i++) {
        double r = run_random(&seed);

        t.x[i] = r > 0.97 ? NAN : r < -0.7 ? -INFINITY : floor(r * 4) * (i % 2 ? 1 : -1); /* many ties */
        set(x, f64, i * step, t.x[i]);
    }
    for (int64_t i = 0; i < t.ny; i++) {
        t.dy[i] = i % 7 == 0 ? -0.0 : floor(run_random(&seed) * 8);
    }
    naive(&p, &t);
    for (int i = 0; i < 4; i++) {
        p.xs[i] = step * (i == 0 ? p.c * p.h * p.w : i == 1 ? p.h * p.w : i == 2 ? p.w : 1);
        p.ys[i] = step * (i == 0 ? p.c * p.oh * p.ow : i == 1 ? p.oh * p.ow : i == 2 ? p.ow : 1);
    }
    memcpy(p.dxs, p.xs, sizeof(p.dxs));
    p.x = x, p.y = y, p.index = places ? index : NULL;
    ops->pool(&p, &plan);
    run_plan(&plan, &p, NULL, RUN_BACKWARDS);
    for (int64_t o = 0; o < t.ny; o++) {
        bad += !same(get(y, f64, o * step), t.y[o]) || (places && index[o] != t.index[o]);
        set(y, f64, o * step, t.dy[o]);
    }
    memset(dx, 0x77, (size_t)(t.nx * step * 8));
    p.dx = dx;
    ops->pool_dx(&p, &plan);
    run_plan(&plan, &p, NULL, RUN_THREADS);
    for (int64_t i = 0; i < t.nx; i++) {
        bad += !same(get(dx, f64, i * step), t.dx[i]);
    }
    if (bad > 0) {
        printf("%s f%d %dx%d k %dx%d s %d %d p %d %d d %d %d step %d: %d wrong\n", table->name,
               f64 ? 64 : 32, (int)p.h, (int)p.w, (int)p.kh, (int)p.kw, (int)p.stride_h,
               (int)p.stride_w, (int)p.pad_h, (int)p.pad_w, (int)p.dil_h, (int)p.dil_w, (int)step,
               bad);
        t_failed++;
    }
    free(x), free(y), free(dx), free(index);
    free(t.x), free(t.dx), free(t.y), free(t.dy), free(t.index);
}

static void
test_random(const KernTable *table)
{
    for (int i = 0; i < 400; i++) {
        int64_t r[12];
        KernPool p;

        for (int j = 0; j < 12; j++) {
            r[j] = (int64_t)((run_random(&seed) + 1) * 1e6);
        }
        p = (KernPool){.n = 1 + r[0] % 2, .c = 1 + r[1] % 3, .h = 5 + r[2] % 9, .w = 5 + r[3] % 70,
                       .kh = 1 + r[4] % 3, .kw = 1 + r[5] % 3, .stride_h = 1 + r[6] % 3,
                       .stride_w = 1 + r[7] % 3, .dil_h = 1 + r[8] % 4 / 3,
                       .dil_w = 1 + r[9] % 4 / 3};
        p.pad_h = r[10] % (p.kh / 2 + 1);
        p.pad_w = r[11] % (p.kw / 2 + 1);
        if (i % 3 == 0) {                               /* the window that has its own path */
            p.kh = p.kw = p.stride_h = p.stride_w = 2;
            p.dil_h = p.dil_w = 1;
            p.pad_h = p.pad_w = 0;
        }
        p.oh = kern_conv_out(p.h, p.kh, p.stride_h, p.dil_h, 2 * p.pad_h);
        p.ow = kern_conv_out(p.w, p.kw, p.stride_w, p.dil_w, 2 * p.pad_w);
        check(table, p, i % 2, 1 + i % 5 / 4, i % 4 == 0);
    }
}

static void
test_all_minus_inf_and_empty(const KernTable *table)
{
    float x[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY}, y[1] = {0};
    int64_t index[1] = {-1};
    KernPool p = {.n = 1, .c = 1, .h = 2, .w = 2, .oh = 1, .ow = 1, .kh = 2, .kw = 2,
                  .stride_h = 2, .stride_w = 2, .dil_h = 1, .dil_w = 1, .xs = {4, 4, 2, 1},
                  .ys = {1, 1, 1, 1}, .x = x, .y = y, .index = index};
    KernPlan plan;

    table->f32->pool(&p, &plan);
    run_plan(&plan, &p, NULL, RUN_WHOLE);
    T_CHECK(y[0] == -INFINITY && index[0] == 0);
    p.n = 0;
    table->f32->pool(&p, &plan);
    T_CHECK(plan.phase[0].size == 0);
}

int
main(void)
{
    for (int level = 0; level < KERN_LEVEL__COUNT; level++) {
        const KernTable *table = kern_table_level((KernLevel)level);

        if (table != NULL) {
            test_random(table);
            test_all_minus_inf_and_empty(table);
        }
    }
    return t_failed != 0;
}
