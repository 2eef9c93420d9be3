/* tests/c/test_conv.c - convolution and its gradients against naive sums in double, every level. */
#include "kern_run.h"

#include <float.h>
#include <math.h>

static uint64_t seed = 7;

typedef enum { NCHW, NHWC, SPACED, KIND__COUNT } Kind;

/* A tensor of either float type: values[] in n c h w order, and the same in `data`, strided. */
typedef struct {
    int64_t dims[4], strides[4], count, items;
    double *values;                     /* owned */
    char *data;                         /* owned */
} Tensor;

static Tensor
tensor_new(bool f64, Kind kind, int64_t n, int64_t c, int64_t h, int64_t w)
{
    Tensor t = {.dims = {n, c, h, w}, .count = n * c * h * w};
    int64_t step = kind == SPACED ? 2 : 1;

    t.items = t.count * step;
    t.strides[0] = c * h * w * step;
    t.strides[1] = kind == NHWC ? 1 : h * w * step;
    t.strides[2] = kind == NHWC ? w * c : w * step;
    t.strides[3] = kind == NHWC ? c : step;
    t.values = malloc(sizeof(double) * (size_t)t.count + 1);
    t.data = malloc((size_t)(t.items * 8) + 1);
    for (int64_t i = 0; i < t.items * 2; i++) {
        ((float *)t.data)[i] = NAN;
    }
    for (int64_t i = 0; i < t.count; i++) {
        int64_t at = i / (c * h * w) * t.strides[0] + i / (h * w) % c * t.strides[1]
                   + i / w % h * t.strides[2] + i % w * t.strides[3];
        double x = run_random(&seed);

        t.values[i] = f64 ? x : (double)(float)x;
        if (f64) {
            ((double *)t.data)[at] = x;
        } else {
            ((float *)t.data)[at] = (float)x;
        }
    }
    return t;
}

static double
tensor_data(const Tensor *t, bool f64, int64_t i)
{
    int64_t c = t->dims[1], h = t->dims[2], w = t->dims[3];
    int64_t at = i / (c * h * w) * t->strides[0] + i / (h * w) % c * t->strides[1]
               + i / w % h * t->strides[2] + i % w * t->strides[3];

    return f64 ? ((double *)t->data)[at] : (double)((float *)t->data)[at];
}

static void
tensor_free(Tensor *t)
{
    free(t->values);
    free(t->data);
}

typedef enum { FORWARD, DX, DW, WHAT__COUNT } What;

/* The target's values become the sums, size[] their sums of magnitudes. */
static void
naive(const KernConv *c, What what, Tensor *x, Tensor *w, Tensor *y, double *size)
{
    Tensor *target = what == FORWARD ? y : what == DX ? x : w;
    int64_t cg = c->c / c->groups, og = c->oc / c->groups, oh = y->dims[2], ow = y->dims[3];

    for (int64_t i = 0; i < target->count; i++) {
        target->values[i] = size[i] = 0;
    }
    for (int64_t i = 0; i < y->count; i++) {
        int64_t n = i / (c->oc * oh * ow), o = i / (oh * ow) % c->oc, r = i / ow % oh, q = i % ow;

        for (int64_t k = 0; k < cg * c->kh * c->kw; k++) {
            int64_t ci = k / (c->kh * c->kw), kh = k / c->kw % c->kh, kw = k % c->kw;
            int64_t h = r * c->stride_h - c->pad_top + kh * c->dil_h;
            int64_t v = q * c->stride_w - c->pad_left + kw * c->dil_w;

            if (h < 0 || h >= c->h || v < 0 || v >= c->w) {
                continue;
            }
            int64_t xi = ((n * c->c + o / og * cg + ci) * c->h + h) * c->w + v;
            int64_t wi = ((o * cg + ci) * c->kh + kh) * c->kw + kw;
            int64_t ti = what == FORWARD ? i : what == DX ? xi : wi;
            double term = what == FORWARD ? x->values[xi] * w->values[wi]
                        : what == DX      ? y->values[i] * w->values[wi]
                                          : y->values[i] * x->values[xi];

            target->values[ti] += term;
            size[ti] += fabs(term);
        }
    }
}

/* Stores the tile as it is: with it a convolution gives what STORE gives. */
static void
store_hook(const void *ctx, void *tile, int64_t ldt, const int64_t at[4], int64_t rows,
           int64_t cols)
{
    const KernConv *c = ctx;

    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            int64_t to = at[0] * c->ys[0] + (at[3] + j) * c->ys[1]
                       + (at[1] + i / c->p.out_w) * c->ys[2] + i % c->p.out_w * c->ys[3];

            ((float *)c->y)[to] = ((float *)tile)[i * ldt + j];
        }
    }
}

static void
check(const KernTable *table, KernConv c, bool f64, What what, Kind kinds[3])
{
    int64_t oh = kern_conv_out(c.h, c.kh, c.stride_h, c.dil_h, c.pad_top + c.pad_bottom);
    int64_t ow = kern_conv_out(c.w, c.kw, c.stride_w, c.dil_w, c.pad_left + c.pad_right);
    Tensor x = tensor_new(f64, kinds[0], c.n, c.c, c.h, c.w);
    Tensor w = tensor_new(f64, kinds[1], c.oc, c.c / c.groups, c.kh, c.kw);
    Tensor y = tensor_new(f64, kinds[2], c.n, c.oc, oh, ow);
    Tensor bias = tensor_new(f64, NCHW, 1, c.oc, 1, 1);
    Tensor *target = what == FORWARD ? &y : what == DX ? &x : &w;
    double *size = malloc(sizeof(double) * (size_t)target->count + 1);
    size_t bytes = (size_t)target->items * (f64 ? 8 : 4);
    char *first = malloc(bytes + 1);
    const KernFloat *ops = f64 ? table->f64 : table->f32;
    double eps = f64 ? DBL_EPSILON : (double)FLT_EPSILON;
    KernPlan plan;
    int bad = 0;

    memcpy(c.xs, x.strides, sizeof(c.xs));
    memcpy(c.ws, w.strides, sizeof(c.ws));
    memcpy(c.ys, y.strides, sizeof(c.ys));
    c.x = x.data, c.wt = w.data, c.y = y.data, c.bias = bias.data;
    c.hook = store_hook, c.hook_ctx = &c;
    (what == FORWARD ? ops->conv : what == DX ? ops->conv_dx : ops->conv_dw)(&c, &plan);
    for (int cut = 0; cut < RUN__COUNT; cut++) {
        memset(target->data, 0xff, bytes);
        run_plan(&plan, &c, &c.shared, (RunCut)cut);
        if (cut == 0) {
            memcpy(first, target->data, bytes);
        }
        T_CHECK(memcmp(first, target->data, bytes) == 0);
    }
    memcpy(target->data, first, bytes);
    naive(&c, what, &x, &w, &y, size);
    for (int64_t i = 0; i < target->count; i++) {
        double want = target->values[i], got = tensor_data(target, f64, i);

        if (what == FORWARD && (c.epi == KERN_EPI_BIAS || c.epi == KERN_EPI_BIAS_RELU)) {
            want += bias.values[i / (oh * ow) % c.oc];
            want = c.epi == KERN_EPI_BIAS_RELU && want < 0 ? 0 : want;
        }
        bad += !(fabs(got - want) <= eps * (4 + sqrt((double)(y.count + w.count))) * (size[i] + 1));
    }
    if (bad > 0) {
        printf("%s f%d %s n %d c %d oc %d g %d %dx%d k %dx%d s %d %d d %d %d p %d %d %d %d epi %d "
               "cols %d: %d of %d wrong\n",
               table->name, f64 ? 64 : 32, what == FORWARD ? "fwd" : what == DX ? "dx" : "dw",
               (int)c.n, (int)c.c, (int)c.oc, (int)c.groups, (int)c.h, (int)c.w, (int)c.kh,
               (int)c.kw, (int)c.stride_h, (int)c.stride_w, (int)c.dil_h, (int)c.dil_w,
               (int)c.pad_top, (int)c.pad_bottom, (int)c.pad_left, (int)c.pad_right, c.epi,
               c.p.cols, bad, (int)target->count);
        t_failed++;
    }
    tensor_free(&x), tensor_free(&w), tensor_free(&y), tensor_free(&bias);
    free(size), free(first);
}

static KernConv
conv_of(const int64_t v[16])
{
    return (KernConv){.n = v[0], .c = v[1], .h = v[2], .w = v[3], .oc = v[4], .kh = v[5],
                      .kw = v[6], .groups = v[7], .stride_h = v[8], .stride_w = v[9],
                      .dil_h = v[10], .dil_w = v[11], .pad_top = v[12], .pad_bottom = v[13],
                      .pad_left = v[14], .pad_right = v[15]};
}

static void
test_listed(const KernTable *table)
{
    /* n c h w oc kh kw groups, strides, dilations, top bottom left right */
    static const int64_t list[][16] = {
        {2, 1, 28, 28, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {3, 32, 14, 14, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {2, 3, 9, 11, 5, 3, 2, 1, 2, 3, 1, 1, 0, 1, 2, 0},
        {9, 16, 4, 4, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {5, 24, 1, 1, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
        {2, 40, 10, 12, 37, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
        {2, 40, 10, 12, 37, 1, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0},
        {1, 20, 3, 30, 70, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2, 0},
        {2, 12, 20, 21, 18, 3, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2},
        {2, 12, 12, 12, 12, 3, 3, 12, 2, 2, 1, 1, 1, 1, 1, 1},
        {1, 24, 40, 40, 8, 5, 5, 1, 1, 1, 1, 1, 2, 2, 2, 2},
        {1, 600, 9, 9, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},
        {2, 70, 9, 9, 3, 3, 3, 1, 1, 1, 1, 1, 5, 0, 0, 4},
        {1, 2, 2, 2, 3, 3, 3, 1, 1, 1, 1, 1, 0, 0, 0, 0},
        {0, 2, 5, 5, 3, 3, 3, 1, 1, 1, 1, 1, 0, 0, 0, 0},
        {2, 0, 5, 5, 3, 3, 3, 1, 1, 1, 1, 1, 0, 0, 0, 0},
        {2, 2, 5, 5, 0, 3, 3, 1, 1, 1, 1, 1, 0, 0, 0, 0},
        {1, 3, 31, 64, 20, 7, 7, 1, 2, 2, 1, 1, 3, 3, 3, 3},
    };

    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        for (int what = 0; what < WHAT__COUNT; what++) {
            for (int f64 = 0; f64 < 2; f64++) {
                check(table, conv_of(list[i]), f64, (What)what, (Kind[3]){NCHW, NCHW, NCHW});
            }
        }
    }
}

static void
test_random(const KernTable *table)
{
    for (int i = 0; i < 90; i++) {
        int64_t r[20];
        KernConv c;

        for (int j = 0; j < 20; j++) {
            r[j] = (int64_t)((run_random(&seed) + 1) * 1e6);
        }
        c = conv_of((int64_t[16]){
            1 + r[0] % 6, 0, 1 + r[1] % 17, 1 + r[2] % 23, 0, 1 + r[5] % 4, 1 + r[6] % 4,
            r[3] % 4 == 0 ? 1 + r[4] % 3 : 1, 1 + r[7] % 3 / 2 * (r[8] % 3),
            1 + r[7] % 3 / 2 * (r[9] % 2), 1 + r[10] % 4 / 3, 1 + r[11] % 4 / 3, r[12] % 3,
            r[13] % 3, r[14] % 4, r[15] % 2});
        c.c = c.groups * (1 + r[16] % 20);
        c.oc = c.groups * (1 + r[17] % 40);
        c.epi = (KernEpi)(r[18] % 3);
        check(table, c, i % 2, (What)(i / 2 % 3),
              (Kind[3]){(Kind)(r[18] % 7 % 3), (Kind)(r[19] % 3), (Kind)(r[19] % 11 % 3)});
    }
}

static void
test_hook(const KernTable *table)
{
    KernConv wide = conv_of((int64_t[16]){1, 16, 9, 17, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    KernConv small = conv_of((int64_t[16]){5, 16, 3, 3, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1});

    wide.epi = small.epi = KERN_EPI_HOOK;
    check(table, wide, false, FORWARD, (Kind[3]){NCHW, NCHW, NCHW});
    check(table, small, false, FORWARD, (Kind[3]){NCHW, NHWC, NHWC});
}

int
main(void)
{
    T_CHECK(kern_conv_out(28, 3, 1, 1, 2) == 28 && kern_conv_out(2, 3, 1, 1, 0) == 0);
    T_CHECK(kern_conv_out(5, 3, 2, 2, 0) == 1);
    for (int level = 0; level < KERN_LEVEL__COUNT; level++) {
        const KernTable *table = kern_table_level((KernLevel)level);

        if (table != NULL) {
            test_listed(table);
            test_random(table);
            test_hook(table);
        }
    }
    return t_failed != 0;
}
