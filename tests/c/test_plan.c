/* tests/c/test_plan.c - whole graphs through fuse, lower and plan, with the interpreter. */
#include "plan_run.h"

#include <math.h>
#include <stdio.h>

static void
fill(PrArray *a, unsigned n, double start, double step)
{
    for (unsigned i = 0; i < n; i++) {
        ((double *)(void *)a->data)[i] = start + step * i;
    }
}

#define F64(r, k) ((double *)(void *)(r).out[k].data)
#define I64(r, k) ((int64_t *)(void *)(r).out[k].data)

static void
test_chain_of_any_length(void)
{
    PrRun r;

    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1]\n%2 = PARAM[c] f64[n1]\n%3 = MUL f64[n1] %1 %2\n"
                        "%4 = ADD f64[n1] %3 %1\n%5 = EXP f64[n1] %2\n%6 = LT bool[n1] %1 %2\n"
                        "%7 = WHERE f64[n1] %6 %4 %5\nout %7 %6\n"));
    T_CHECK(rt_plan_ngroups(r.plan) == 1);
    for (int64_t n = 0; n < 71; n++) {
        PrArray in[2] = {pr_array(8, 1, &n), pr_array(8, 1, &n)};
        fill(&in[0], (unsigned)n, -3, 0.7);
        fill(&in[1], (unsigned)n, 2, -0.3);
        T_CHECK(pr_call(&r, in, NULL));
        for (int64_t i = 0; i < n; i++) {
            double x = -3 + 0.7 * (double)i, y = 2 + -0.3 * (double)i;
            double want = x < y ? x * y + x : exp(y);
            T_CHECK(fabs(F64(r, 0)[i] - want) <= 1e-15 * fabs(want));
            T_CHECK(r.out[1].data[i] == (x < y));
        }
        pr_free(&in[0]);
        pr_free(&in[1]);
    }
    pr_close(&r);
}

static void
test_broadcast_and_strides(void)
{
    PrRun r;
    const int64_t dims[2] = {5, 90}, row[1] = {90};

    T_CHECK(pr_open(&r, "%1 = PARAM[strided] f64[n1,n2]\n%2 = PARAM[c] f64[n2]\n"
                        "%3 = BROADCAST f64[n1,n2] %2\n%4 = ADD f64[n1,n2] %1 %3\n"
                        "%5 = TRANSPOSE[perm=1,0] f64[n2,n1] %4\nout %5 %4\n"));
    PrArray in[2] = {pr_array(8, 2, dims), pr_array(8, 1, row)};
    fill(&in[0], 450, 0, 1);
    fill(&in[1], 90, 1000, 1);
    in[0].data += 449 * 8;                              /* both axes backwards */
    in[0].stride[0] = -90 * 8;
    in[0].stride[1] = -8;
    T_CHECK(pr_call(&r, in, NULL));
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 90; k++) {
            double want = 449 - (i * 90 + k) + 1000 + k;
            T_CHECK(F64(r, 0)[k * 5 + i] == want);
            T_CHECK(F64(r, 1)[i * 90 + k] == want);
        }
    }
    pr_free(&in[0]);
    pr_free(&in[1]);
    pr_close(&r);
}

/* Sums over each set of axes of small integers are exact whatever the order. */
static void
test_reductions_over_each_set_of_axes(void)
{
    static const char *const axes[] = {"0", "1", "2", "0,1", "0,2", "1,2", "0,1,2"};
    static const char *const shape[] = {"n2,n3", "n1,n3", "n1,n2", "n3", "n2", "n1", ""};
    static const int mask[] = {1, 2, 4, 3, 5, 6, 7};
    static const int64_t sizes[][3] = {{3, 4, 5}, {70, 3, 80}, {1, 700, 2}, {9, 1, 1300}, {0, 3, 4},
                                       {600, 20, 7}};

    for (unsigned a = 0; a < 7; a++) {
        PrRun r;
        char text[600];
        snprintf(text, sizeof(text),
                 "%%1 = PARAM[c] f64[n1,n2,n3]\n%%2 = SUM[axes=%s] f64[%s] %%1\n"
                 "%%3 = SQUARE f64[n1,n2,n3] %%1\n%%4 = SUM[axes=%s] f64[%s] %%3\n"
                 "%%5 = LT bool[n1,n2,n3] %%1 %%3\n%%6 = ALL[axes=%s] bool[%s] %%5\n"
                 "out %%2 %%4 %%6\n", axes[a], shape[a], axes[a], shape[a], axes[a], shape[a]);
        T_CHECK(pr_open(&r, text));
        for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            const int64_t *n = sizes[s];
            int64_t total = n[0] * n[1] * n[2];
            PrArray in = pr_array(8, 3, n);
            size_t most = (size_t)(total > 64 ? total : 64);
            double *want = calloc(most, 8), *want2 = calloc(most, 8);
            char *all = malloc(most);
            memset(all, 1, most);
            for (int64_t i = 0; i < total; i++) {
                double x = (double)(i * 7 % 64);
                int64_t at[3] = {i / n[2] / n[1], i / n[2] % n[1], i % n[2]}, o = 0;
                ((double *)(void *)in.data)[i] = x;
                for (int d = 0; d < 3; d++) {
                    o = mask[a] >> d & 1 ? o : o * n[d] + at[d];
                }
                want[o] += x;
                want2[o] += x * x;
                all[o] &= x < x * x;
            }
            T_CHECK(pr_call(&r, &in, NULL));
            int64_t results = 1;
            for (unsigned d = 0; d < r.out[0].ndim; d++) {
                results *= r.out[0].dim[d];
            }
            int wrong = 0;
            for (int64_t i = 0; i < results; i++) {
                wrong += F64(r, 0)[i] != want[i] || F64(r, 1)[i] != want2[i]
                      || r.out[2].data[i] != all[i];
            }
            T_CHECK(wrong == 0);
            if (wrong) {
                printf("axes %s size %u: %d of %d wrong\n", axes[a], s, wrong, (int)results);
            }
            free(want);
            free(want2);
            free(all);
            pr_free(&in);
        }
        pr_close(&r);
    }
}

static void
test_softmax_is_right(void)
{
    PrRun r;
    const int64_t dims[2] = {7, 1000};

    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1,n2]\n%2 = MAX[axes=1] f64[n1] %1\n"
                        "%3 = RESHAPE f64[n1,1] %2\n%4 = BROADCAST f64[n1,n2] %3\n"
                        "%5 = SUB f64[n1,n2] %1 %4\n%6 = EXP f64[n1,n2] %5\n"
                        "%7 = SUM[axes=1] f64[n1] %6\n%8 = RESHAPE f64[n1,1] %7\n"
                        "%9 = BROADCAST f64[n1,n2] %8\n%10 = DIV f64[n1,n2] %6 %9\nout %10\n"));
    T_CHECK(rt_plan_ngroups(r.plan) == 3);
    PrArray in = pr_array(8, 2, dims);
    fill(&in, 7000, -5, 0.001);
    T_CHECK(pr_call(&r, &in, NULL));
    for (int i = 0; i < 7; i++) {
        double sum = 0;
        for (int k = 0; k < 1000; k++) {
            sum += F64(r, 0)[i * 1000 + k];
        }
        T_CHECK(fabs(sum - 1) < 1e-12);
    }
    pr_free(&in);
    pr_close(&r);
}

static void
test_scalars_and_iota(void)
{
    PrRun r;
    PrArray in[2] = {{0}, {0}};

    T_CHECK(pr_open(&r, "%1 = PARAM[scalar n1] i64[]\n%2 = PARAM[scalar] f64[]\n"
                        "%3 = CONST i64[] 0\n%4 = CONST i64[] 3\n%5 = IOTA i64[n1] %3 %4\n"
                        "%6 = CAST f64[n1] %5\n%7 = EXP f64[] %2\n%8 = BROADCAST f64[n1] %7\n"
                        "%9 = MUL f64[n1] %6 %8\n%10 = CUMSUM[axis=0] f64[n1] %9\n"
                        "out %10 %7\n"));
    in[0].scalar.i = 100;
    in[1].scalar.d = 0;
    T_CHECK(pr_call(&r, in, NULL));
    for (int i = 0; i < 100; i++) {
        T_CHECK(F64(r, 0)[i] == 3.0 * i * (i + 1) / 2);
    }
    T_CHECK(F64(r, 1)[0] == 1.0);
    pr_close(&r);
}

static void
test_moves(void)
{
    PrRun r;
    int64_t n = 6;

    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1]\n%2 = CONST f64[] 9.0\n"
                        "%3 = PAD[lo=2 hi=1] f64[n1 + 3] %1 %2\n"
                        "%4 = CONCAT[axis=0] f64[2*n1] %1 %1\n"
                        "%5 = SLICE[start=n1 - 1 step=-2] f64[n1//2] %1\n"
                        "%6 = NEG f64[n1//2] %5\n"
                        "%7 = UPDATE[start=0 step=2] f64[n1] %1 %6\nout %3 %4 %5 %7\n"));
    PrArray in = pr_array(8, 1, &n);
    fill(&in, 6, 0, 1);
    T_CHECK(pr_call(&r, &in, NULL));
    static const double pad[] = {9, 9, 0, 1, 2, 3, 4, 5, 9}, cut[] = {5, 3, 1},
                        put[] = {-5, 1, -3, 3, -1, 5};
    T_CHECK(memcmp(r.out[0].data, pad, sizeof(pad)) == 0);
    for (int i = 0; i < 12; i++) {
        T_CHECK(F64(r, 1)[i] == i % 6);
    }
    T_CHECK(memcmp(r.out[2].data, cut, sizeof(cut)) == 0);
    T_CHECK(memcmp(r.out[3].data, put, sizeof(put)) == 0);
    pr_free(&in);
    pr_close(&r);
}

static void
test_index_and_places(void)
{
    PrRun r;
    const int64_t dims[2] = {4, 3}, three = 3;

    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1,3]\n%2 = PARAM[c] i64[n2]\n"
                        "%3 = GATHER[axis=0] f64[n2,3] %1 %2\n"
                        "%4 = SCATTER_ADD[axis=0] f64[n1,3] %1 %2 %3\n"
                        "%5 = ARGMAX[axes=0] i64[3] %1\n%6 = ARGMIN[axes=0,1] i64[] %1\n"
                        "%7 = MAX[axes=1] f64[n1] %1\nout %3 %4 %5 %6 %7\n"));
    PrArray in[2] = {pr_array(8, 2, dims), pr_array(8, 1, &three)};
    fill(&in[0], 12, 0, 1);
    ((double *)(void *)in[0].data)[4] = NAN;
    const int64_t at[3] = {3, -4, 0};
    memcpy(in[1].data, at, sizeof(at));
    T_CHECK(pr_call(&r, in, NULL));
    T_CHECK(r.faults.bits == 0);
    T_CHECK(F64(r, 0)[0] == 9 && F64(r, 0)[3] == 0 && F64(r, 0)[8] == 2);
    T_CHECK(F64(r, 1)[2] == 6 && F64(r, 1)[9] == 18 && F64(r, 1)[5] == 5);
    T_CHECK(I64(r, 2)[0] == 3 && I64(r, 2)[1] == 1 && I64(r, 2)[2] == 3 && I64(r, 3)[0] == 4);
    T_CHECK(F64(r, 4)[0] == 2 && isnan(F64(r, 4)[1]) && F64(r, 4)[3] == 11);
    ((int64_t *)(void *)in[1].data)[1] = 4;
    T_CHECK(pr_call(&r, in, NULL));
    T_CHECK(r.faults.bits == CC_FAULT_ERROR);
    pr_free(&in[0]);
    pr_free(&in[1]);
    pr_close(&r);
}

static void
test_matmul_then_bias(void)
{
    PrRun r;
    const int64_t a[3] = {2, 3, 4}, b[3] = {2, 5, 4};

    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1,3,4]\n%2 = PARAM[c] f64[n1,5,4]\n"
                        "%3 = MATMUL[ta=0 tb=1] f64[n1,3,5] %1 %2\n%4 = RELU f64[n1,3,5] %3\n"
                        "%5 = CAST i64[n1,3,4] %1\n%6 = CAST i64[n1,5,4] %2\n"
                        "%7 = MATMUL[ta=0 tb=1] i64[n1,3,5] %5 %6\nout %4 %7\n"));
    PrArray in[2] = {pr_array(8, 3, a), pr_array(8, 3, b)};
    fill(&in[0], 24, -10, 1);
    fill(&in[1], 40, 3, -1);
    T_CHECK(pr_call(&r, in, NULL));
    for (int i = 0; i < 30; i++) {
        double sum = 0;
        for (int k = 0; k < 4; k++) {
            sum += ((double *)(void *)in[0].data)[i / 15 * 12 + i / 5 % 3 * 4 + k]
                 * ((double *)(void *)in[1].data)[i / 15 * 20 + i % 5 * 4 + k];
        }
        T_CHECK(F64(r, 0)[i] == (sum > 0 ? sum : 0) && I64(r, 1)[i] == (int64_t)sum);
    }
    pr_free(&in[0]);
    pr_free(&in[1]);
    pr_close(&r);
}

/* The error of a pairwise sum grows with log2(n): a few units in the last place. The bits are the
 * same for one thread and for four, whatever axis is reduced. */
static void
test_sums_are_accurate_and_do_not_depend_on_threads(void)
{
    static const char *const text[] = {
        "%1 = PARAM[c] f32[n1,n2]\n%2 = SUM[axes=0,1] f32[] %1\nout %2\n",
        "%1 = PARAM[c] f32[n1,n2]\n%2 = SUM[axes=0] f32[n2] %1\nout %2\n",
        "%1 = PARAM[c] f32[n1,n2]\n%2 = SUM[axes=1] f32[n1] %1\nout %2\n",
    };
    static const int64_t sizes[][2] = {{1000, 2001}, {9000, 33}, {3, 200001}, {200001, 2}};

    for (unsigned s = 0; s < 4; s++) {
        int64_t total = sizes[s][0] * sizes[s][1];
        PrArray in = pr_array(4, 2, sizes[s]);
        float *x = (float *)(void *)in.data;
        for (int64_t i = 0; i < total; i++) {
            x[i] = 0.1f + (float)(i * 2654435761u % 1000) * 1e-4f;
        }
        for (unsigned t = 0; t < 3; t++) {
            PrRun r;
            float one[1 << 18];
            int wrong = 0;
            T_CHECK(pr_open(&r, text[t]));
            T_CHECK(pr_call(&r, &in, &(CcRunOptions){.threads = 1}));
            int64_t results = t == 0 ? 1 : sizes[s][2 - t];
            memcpy(one, r.out[0].data, (size_t)results * 4);
            T_CHECK(pr_call(&r, &in, &(CcRunOptions){.threads = 4}));
            T_CHECK(memcmp(one, r.out[0].data, (size_t)results * 4) == 0);
            for (int64_t o = 0; o < results && o < 50; o++) {
                double want = 0;
                int64_t step = t == 1 ? sizes[s][1] : 1, count = total / results;
                for (int64_t i = 0; i < count; i++) {
                    want += (double)x[(t == 2 ? o * sizes[s][1] : o) + i * step];
                }
                wrong += fabs((double)one[o] - want) > 6 * 1.2e-7 * want;
            }
            T_CHECK(wrong == 0);
            pr_close(&r);
        }
        pr_free(&in);
    }
}

/* Outputs that are parameters, constants, iotas, views, reordered, named twice; reshapes too. */
static void
test_any_node_may_be_an_output(void)
{
    PrRun r;
    const int64_t dims[2] = {3, 4};
    PrArray in = pr_array(8, 2, dims);

    fill(&in, 12, 0, 1);
    T_CHECK(pr_open(&r, "%1 = PARAM[f] f64[n1,n2]\n%2 = NEG f64[n1,n2] %1\n%3 = CONST i64[] 5\n"
                        "%4 = CONST i64[] -2\n%5 = IOTA i64[n2] %3 %4\n%6 = RESHAPE f64[n1*n2] %2\n"
                        "%7 = ADD f64[n1*n2] %6 %6\n%8 = RESHAPE f64[n1*n2] %1\n"
                        "%9 = SUM[axes=0] f64[] %7\n%10 = ABS f64[] %9\n"
                        "out %1 %2:order=1,0 %2 %3 %5 %6 %7 %8 %10 %10\n"));
    in.stride[0] = 8;                                   /* element (i, k) is i + 3 k */
    in.stride[1] = 24;
    T_CHECK(pr_call(&r, &in, NULL));
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 4; k++) {
            double x = i + 3 * k;
            int c = i * 4 + k;
            T_CHECK(F64(r, 0)[c] == x && F64(r, 1)[i + 3 * k] == -x && F64(r, 2)[c] == -x);
            T_CHECK(F64(r, 5)[c] == -x && F64(r, 6)[c] == -2 * x && F64(r, 7)[c] == x);
        }
    }
    T_CHECK(I64(r, 3)[0] == 5 && I64(r, 4)[3] == -1);
    T_CHECK(F64(r, 8)[0] == 132 && F64(r, 9)[0] == 132);
    pr_free(&in);
    pr_close(&r);
}

static void
test_nothing_to_do(void)
{
    PrRun r;
    const int64_t a[2] = {3, 0}, b[2] = {0, 2}, none[1] = {0};

    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1,n2]\n%2 = PARAM[c] f64[n2,n3]\n"
                        "%3 = MATMUL[ta=0 tb=0] f64[n1,n3] %1 %2\n"
                        "%4 = CUMSUM[axis=1] f64[n1,n2] %1\n"
                        "%5 = SUM[axes=1] f64[n1] %1\n%6 = PARAM[c] i64[n2]\n"
                        "%7 = GATHER[axis=1] f64[n1,n2] %1 %6\n%8 = MAX[axes=1] f64[n1] %1\n"
                        "out %3 %4 %5 %7 %8\n"));
    PrArray in[3] = {pr_array(8, 2, a), pr_array(8, 2, b), pr_array(8, 1, none)};
    T_CHECK(pr_call(&r, in, NULL));
    for (int i = 0; i < 6; i++) {
        T_CHECK(F64(r, 0)[i] == 0 && F64(r, 2)[i / 2] == 0);
    }
    T_CHECK(r.faults.bits == CC_FAULT_ERROR);           /* the maximum of nothing */
    for (int k = 0; k < 3; k++) {
        pr_free(&in[k]);
    }
    pr_close(&r);
}

static double
dot(const PrArray *a, const PrArray *b, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++) {
        sum += ((double *)(void *)a->data)[i] * ((double *)(void *)b->data)[i];
    }
    return sum;
}

/* Forward against the sum itself; a gradient is the transposed map: <dy, x * w> = <dx, x> and
 * <dw, w>. */
static void
test_convolution_and_its_gradients(void)
{
    PrRun r;
    const int64_t x[4] = {2, 4, 7, 6}, w[4] = {6, 2, 3, 2}, y[4] = {2, 6, 4, 6};

    T_CHECK(pr_open(&r,
        "%1 = PARAM[c] f64[n1,4,7,6]\n%2 = PARAM[c] f64[6,2,3,2]\n%3 = PARAM[c] f64[n1,6,4,6]\n"
        "%4 = CONV2D[stride=2,1 pad=1,1,0,1 dilation=1,1 groups=2] f64[n1,6,4,6] %1 %2\n"
        "%5 = CONV2D_DX[stride=2,1 pad=1,1,0,1 dilation=1,1 groups=2] f64[n1,4,7,6] %3 %2\n"
        "%6 = CONV2D_DW[stride=2,1 pad=1,1,0,1 dilation=1,1 groups=2] f64[6,2,3,2] %3 %1\n"
        "out %4 %5 %6\n"));
    PrArray in[3] = {pr_array(8, 4, x), pr_array(8, 4, w), pr_array(8, 4, y)};
    fill(&in[0], 336, -1, 0.01);
    fill(&in[1], 72, 2, -0.07);
    fill(&in[2], 288, -3, 0.02);
    T_CHECK(pr_call(&r, in, NULL));
    int wrong = 0;
    for (int i = 0; i < 288; i++) {
        int n = i / 144, o = i / 24 % 6, h = i / 6 % 4, v = i % 6;
        double sum = 0;
        for (int k = 0; k < 12; k++) {
            int c = k / 6, yy = h * 2 - 1 + k / 2 % 3, xx = v + k % 2;
            bool inside = yy >= 0 && yy < 7 && xx < 6;
            sum += inside ? (-1 + 0.01 * (n * 168 + (o / 3 * 2 + c) * 42 + yy * 6 + xx))
                          * (2 + -0.07 * (o * 12 + k)) : 0;
        }
        wrong += fabs(F64(r, 0)[i] - sum) > 1e-12;
    }
    T_CHECK(wrong == 0);
    double both = dot(&in[2], &r.out[0], 288);
    T_CHECK(fabs(dot(&in[0], &r.out[1], 336) - both) < 1e-9 * fabs(both));
    T_CHECK(fabs(dot(&in[1], &r.out[2], 72) - both) < 1e-9 * fabs(both));
    for (int k = 0; k < 3; k++) {
        pr_free(&in[k]);
    }
    pr_close(&r);
}

/* A bias side by side, and one read through a slice: the sum is the same to the bit, since each is
 * added once, after the products. */
static void
test_convolution_bias(void)
{
    PrRun r;
    const int64_t x[4] = {2, 4, 7, 6}, w[4] = {6, 2, 3, 2}, b[1] = {6}, spread[1] = {12};

    T_CHECK(pr_open(&r,
        "%1 = PARAM[c] f64[n1,4,7,6]\n%2 = PARAM[c] f64[6,2,3,2]\n%3 = PARAM[c] f64[6]\n"
        "%4 = PARAM[c] f64[12]\n%5 = SLICE[start=0 step=2] f64[6] %4\n"
        "%6 = CONV2D[stride=2,1 pad=1,1,0,1 dilation=1,1 groups=2] f64[n1,6,4,6] %1 %2\n"
        "%7 = CONV2D[stride=2,1 pad=1,1,0,1 dilation=1,1 groups=2] f64[n1,6,4,6] %1 %2 %3\n"
        "%8 = CONV2D[stride=2,1 pad=1,1,0,1 dilation=1,1 groups=2] f64[n1,6,4,6] %1 %2 %5\n"
        "out %6 %7 %8\n"));
    PrArray in[4] = {pr_array(8, 4, x), pr_array(8, 4, w), pr_array(8, 1, b),
                     pr_array(8, 1, spread)};
    fill(&in[0], 336, -1, 0.01);
    fill(&in[1], 72, 2, -0.07);
    fill(&in[2], 6, 5, 0.5);
    fill(&in[3], 12, 5, 0.25);
    T_CHECK(pr_call(&r, in, NULL));
    int wrong = 0;
    for (int i = 0; i < 288; i++) {
        double sum = F64(r, 0)[i] + 5 + 0.5 * (i / 24 % 6);
        wrong += F64(r, 1)[i] != sum || F64(r, 2)[i] != sum;
    }
    T_CHECK(wrong == 0);
    for (int k = 0; k < 4; k++) {
        pr_free(&in[k]);
    }
    pr_close(&r);
}

static void
test_pooling(void)
{
    PrRun r;
    const int64_t x[4] = {1, 2, 4, 5};

    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1,2,4,5]\n"
                        "%2 = MAXPOOL2D[k=2,2 stride=2,2 pad=0,0,1,0] f64[n1,2,2,3] %1\n"
                        "%3 = MAXPOOL2D_ARG[k=2,2 stride=2,2 pad=0,0,1,0] i64[n1,2,2,3] %1\n"
                        "%4 = MAXPOOL2D_DX[k=2,2 stride=2,2 pad=0,0,1,0] f64[n1,2,4,5] %2 %1\n"
                        "out %2 %3 %4\n"));
    PrArray in = pr_array(8, 4, x);
    fill(&in, 40, 0, 1);
    T_CHECK(pr_call(&r, &in, NULL));
    static const int64_t place[6] = {5, 7, 9, 15, 17, 19};
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        T_CHECK(I64(r, 1)[i] == place[i % 6]);
        T_CHECK(F64(r, 0)[i] == (double)(place[i % 6] + i / 6 * 20));
        sum += F64(r, 0)[i] - F64(r, 2)[place[i % 6] + i / 6 * 20];
    }
    T_CHECK(sum == 0 && F64(r, 2)[0] == 0);
    pr_free(&in);
    pr_close(&r);
}

static void
test_faults_only_of_roots(void)
{
    PrRun r;
    int64_t n = 3;
    PrArray in = pr_array(8, 1, &n);

    fill(&in, 3, 1, -1);                                /* 1 0 -1 */
    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1]\n%2 = RECIP! f64[n1] %1\n%3 = LOG f64[n1] %1\n"
                        "out %2 %3\n"));
    T_CHECK(pr_call(&r, &in, NULL));
    T_CHECK((r.faults.bits & CC_FAULT_DIVIDE) && r.faults.node == 2);
    T_CHECK(!(r.faults.bits & CC_FAULT_INVALID));       /* the logarithm's, which nobody wants */
    pr_close(&r);
    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1]\n%2 = CAST i64[n1] %1\n"
                        "%3 = FLOORDIV! i64[n1] %2 %2\nout %3\n"));
    T_CHECK(pr_call(&r, &in, NULL));
    T_CHECK(r.faults.bits == CC_FAULT_DIVIDE && I64(r, 0)[1] == 0 && I64(r, 0)[2] == 1);
    for (int i = 0; i < 3; i++) {
        ((double *)(void *)in.data)[i] = 2 + i;
    }
    T_CHECK(pr_call(&r, &in, NULL));
    T_CHECK(r.faults.bits == 0);                        /* nothing from padding lanes */
    pr_close(&r);
    pr_free(&in);
}

static bool
call_double(void *ctx, int64_t id, const CcView *arg, uint32_t narg, const CcView *res,
            uint32_t nres, CcStatus *st)
{
    (void)st;
    T_CHECK(id == 7 && narg == 1 && nres == 1);
    for (int64_t i = 0; i < arg[0].dim[0]; i++) {
        ((double *)(void *)res[0].data)[i] = 2 * ((double *)(void *)arg[0].data)[i];
    }
    ++*(int *)ctx;
    return true;
}

static void
test_extern_in_order(void)
{
    PrRun r;
    int64_t n = 40;
    int calls = 0;
    CcRunOptions opt = {.external = call_double, .ctx = &calls};
    PrArray in = pr_array(8, 1, &n);

    fill(&in, 40, 0, 1);
    T_CHECK(pr_open(&r, "%1 = PARAM[c] f64[n1]\n%2 = SQUARE f64[n1] %1\n"
                        "%3 = EXTERN[id=7] opaque[] %2\n%4 = EXTERN_GET[k=0] f64[n1] %3\n"
                        "%5 = ADD f64[n1] %4 %1\nout %5\n"));
    T_CHECK(pr_call(&r, &in, &opt));
    T_CHECK(calls == 1 && F64(r, 0)[39] == 2 * 39 * 39 + 39);
    pr_free(&in);
    pr_close(&r);
}

static void
test_every_allocation_may_fail(void)
{
    const int64_t dims[2] = {3, 50};
    PrArray in = pr_array(8, 2, dims);
    bool done = false;

    fill(&in, 150, 0, 1);
    for (long n = 0; n < 2000 && !done; n++) {
        PrRun r;
        cc_mem_fail_after(n);
        done = pr_open(&r, "%1 = PARAM[c] f64[n1,n2]\n%2 = EXP f64[n1,n2] %1\n"
                           "%3 = SUM[axes=0] f64[n2] %2\n%4 = BROADCAST f64[n1,n2] %3\n"
                           "%5 = DIV f64[n1,n2] %2 %4\nout %5\n")
            && pr_call(&r, &in, NULL);
        bool failed = cc_mem_failed();
        cc_mem_fail_after(-1);
        T_CHECK(done || r.st.reason == CC_REASON_NO_MEMORY);
        T_CHECK(done || failed);
        pr_close(&r);
    }
    T_CHECK(done);
    pr_free(&in);
}

int
main(void)
{
    test_chain_of_any_length();
    test_broadcast_and_strides();
    test_reductions_over_each_set_of_axes();
    test_softmax_is_right();
    test_scalars_and_iota();
    test_moves();
    test_index_and_places();
    test_matmul_then_bias();
    test_sums_are_accurate_and_do_not_depend_on_threads();
    test_any_node_may_be_an_output();
    test_nothing_to_do();
    test_convolution_and_its_gradients();
    test_convolution_bias();
    test_pooling();
    test_faults_only_of_roots();
    test_extern_in_order();
    test_every_allocation_may_fail();
    return t_failed != 0;
}
