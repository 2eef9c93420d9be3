/* tests/c/test_gen.c - compiled loops and interpreted ones give the same bits on random graphs. */
#include "gen_run.h"

#include "ir/build.h"

#include <math.h>

static uint64_t seed = 88172645463325252u;

static uint64_t
rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* Numbers of all sizes, special ones among them. */
static void
fill_random(PrArray *a, CcDtype dt, int64_t n)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 0.5, -2.5,
                                     1e300, 1e-310};

    for (int64_t i = 0; i < n; i++) {
        uint64_t u = rnd();
        double d = rnd() % 4 == 0 ? special[rnd() % 11]
                 : ((double)(int64_t)u / 9e18) * (double)(1 + rnd() % 90);
        float f = (float)d;
        u = rnd() % 3 == 0 ? rnd() % 5 - 2 : rnd() % 7 == 0 ? (uint64_t)1 << (rnd() % 64) : u;
        memcpy(a->data + i * cc_dtype_info[dt].size,
               dt == CC_DTYPE_F64 ? (void *)&d : dt == CC_DTYPE_F32 ? (void *)&f : (void *)&u,
               cc_dtype_info[dt].size);
    }
}

/* A graph whose k-th parameter is of a random dtype. */
static bool
random_graph(CcGraph *g, int nops, CcStatus *st)
{
    CcRef ref[64];
    int n = 0, nparam = 3;
    CcDim dim[1];

    cc_graph_init(g);
    dim[0] = cc_dim_sym(g, 1, st);
    for (int k = 0; k < nparam; k++) {
        CcDtype dt = (CcDtype)(1 + rnd() % 11);
        ref[n++] = cc_build_param(g, dt, 1, dim, CC_LAYOUT_STRIDED, st);
    }
    for (int tries = 0; n < nops && tries < 3000; tries++) {
        CcOp op = (CcOp)(CC_OP_NEG + rnd() % (CC_OP_CAST - CC_OP_NEG + 1));
        const CcOpInfo *info = &cc_op_info[op];
        CcRef arg[3], r;
        for (int k = 0; k < 3; k++) {
            arg[k] = ref[rnd() % (unsigned)n];
        }
        if (op == CC_OP_CAST) {
            r = cc_build_cast(g, arg[0], (CcDtype)(1 + rnd() % 11), st);
        } else {
            CcSpec spec = {.op = op, .narg = info->nargs, .arg = arg};
            r = cc_build(g, &spec, st);
        }
        if (r != 0) {
            ref[n++] = r;
        }
    }
    for (int k = n - 8; k < n; k++) {
        if (!cc_graph_add_output(g, ref[k], CC_OUT_ARRAY, NULL, st)) {
            return false;
        }
    }
    return cc_graph_verify(g, st);
}

enum { GRAPHS = 14 };

typedef struct {
    PrRun interp, c;                    /* the same graph twice */
} Pair;

static bool
pair_finish(Pair *p, CcGraph *g)
{
    CcStatus st = {0};

    memset(p, 0, sizeof(*p));
    rt_binding_init(&p->interp.b);
    rt_binding_init(&p->c.b);
    p->interp.g = *g;
    return cc_graph_clone(&p->c.g, g, &st)
        && (p->interp.plan = rt_plan_new(&p->interp.g, &st)) != NULL
        && (p->c.plan = rt_plan_new(&p->c.g, &st)) != NULL;
}

/* Both on the same numbers; `dims` for all parameters. */
static int
pair_differs(Pair *p, unsigned ndim, const int64_t *dims, bool backwards)
{
    PrArray in[PR_MAX] = {{0}};
    const CcGraph *g = &p->c.g;
    int64_t total = 1;
    int differs = 0;

    for (unsigned d = 0; d < ndim; d++) {
        total *= dims[d];
    }
    for (uint32_t k = 0; k < g->nparam; k++) {
        CcDtype dt = (CcDtype)g->node[g->param[k].node].dtype;
        uint8_t nd = g->node[g->param[k].node].ndim;
        int64_t count = total;
        for (unsigned d = 0; d + nd < ndim; d++) {      /* right aligned */
            count /= dims[d] != 0 ? dims[d] : 1;
        }
        in[k] = pr_array(cc_dtype_info[dt].size, nd, dims + ndim - nd);
        fill_random(&in[k], dt, count);
        if (backwards && count > 0) {
            in[k].data += (count - 1) * cc_dtype_info[dt].size;
            for (unsigned d = 0; d < nd; d++) {
                in[k].stride[d] = -in[k].stride[d];
            }
        }
    }
    T_CHECK(pr_call(&p->interp, in, NULL) && pr_call(&p->c, in, NULL));
    for (uint32_t k = 0; k < g->nout; k++) {
        const CcOutShape *s = &p->c.b.out[k];
        size_t bytes = cc_dtype_info[s->dtype].size;
        for (unsigned d = 0; d < s->ndim; d++) {
            bytes *= (size_t)s->dim[d];
        }
        if (memcmp(p->interp.out[k].data, p->c.out[k].data, bytes) != 0) {
            differs++;
            printf("output %u (%s) differs\n", k, cc_info(g, g->out[k].node)->name);
        }
    }
    differs += p->interp.faults.bits != p->c.faults.bits;
    for (uint32_t k = 0; k < g->nparam; k++) {
        pr_free(&in[k]);
    }
    return differs;
}

static BuildObject *
pair_compile(GrTools *t, Pair *pair, uint32_t n)
{
    PrRun *all = malloc(n * sizeof(*all));
    BuildObject *o;

    for (uint32_t i = 0; i < n; i++) {
        all[i] = pair[i].c;
    }
    o = gr_compile(t, all, n);
    free(all);
    return o;
}

static void
pair_close(Pair *p)
{
    pr_close(&p->interp);
    pr_close(&p->c);
}

static void
test_random_graphs(GrTools *t)
{
    static const int64_t sizes[] = {0, 1, 3, 16, 31, 64, 70, 513, 1500};
    static Pair pair[GRAPHS];
    CcStatus st = {0};

    for (uint32_t i = 0; i < GRAPHS; i++) {
        CcGraph g;
        T_CHECK(random_graph(&g, 14 + (int)i, &st));
        if (!pair_finish(&pair[i], &g)) {
            printf("graph %u does not plan\n", i);
            t_failed++;
            return;
        }
    }
    BuildObject *o = pair_compile(t, pair, GRAPHS);
    T_CHECK(o != NULL);
    for (uint32_t i = 0; o != NULL && i < GRAPHS; i++) {
        for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            int differs = pair_differs(&pair[i], 1, &sizes[s], i % 3 == 1);
            T_CHECK(differs == 0);
            if (differs != 0) {
                CcBuf text;
                cc_buf_init(&text);
                cc_graph_print(&pair[i].c.g, &text);
                printf("n = %d\n%s", (int)sizes[s], cc_buf_text(&text));
                cc_buf_fini(&text);
                break;
            }
        }
    }
    for (uint32_t i = 0; i < GRAPHS; i++) {
        pair_close(&pair[i]);
    }
    build_object_unref(o);
}

/* Rows and columns: operands that are one element along an axis, reductions before and after. */
static void
test_two_axes(GrTools *t)
{
    static const char *const text[] = {
        "%1 = PARAM[strided] f32[n1,n2]\n%2 = MAX[axes=1] f32[n1] %1\n%3 = RESHAPE f32[n1,1] %2\n"
        "%4 = BROADCAST f32[n1,n2] %3\n%5 = SUB f32[n1,n2] %1 %4\n%6 = EXP f32[n1,n2] %5\n"
        "%7 = SUM[axes=1] f32[n1] %6\n%8 = RESHAPE f32[n1,1] %7\n%9 = BROADCAST f32[n1,n2] %8\n"
        "%10 = DIV f32[n1,n2] %6 %9\nout %10\n",
        "%1 = PARAM[strided] f64[n1,n2]\n%2 = PARAM[strided] f64[n2]\n"
        "%3 = BROADCAST f64[n1,n2] %2\n"
        "%4 = MUL f64[n1,n2] %1 %3\n%5 = SUM[axes=0] f64[n2] %4\n%6 = PROD[axes=0,1] f64[] %4\n"
        "%7 = ARGMAX[axes=1] i64[n1] %4\n%8 = CAST bool[n1,n2] %4\n%9 = ANY[axes=0] bool[n2] %8\n"
        "out %4 %5 %6 %7 %9\n",
        "%1 = PARAM[strided] i16[n1,n2]\n%2 = CAST i64[n1,n2] %1\n%3 = SUM[axes=1] i64[n1] %2\n"
        "%4 = MIN[axes=0] i16[n2] %1\n%5 = RESHAPE i64[n1,1] %3\n%6 = BROADCAST i64[n1,n2] %5\n"
        "%7 = MOD i64[n1,n2] %2 %6\n%8 = LE bool[n1,n2] %7 %6\n%9 = ALL[axes=1] bool[n1] %8\n"
        "out %3 %4 %7 %9\n",
    };
    static const int64_t sizes[][2] = {{1, 1}, {3, 5}, {4, 100}, {100, 3}, {70, 600}, {0, 5},
                                       {700, 65}};
    enum { N = sizeof(text) / sizeof(text[0]) };
    static Pair pair[N];

    for (uint32_t i = 0; i < N; i++) {
        CcGraph g;
        CcStatus st = {0};
        T_CHECK(cc_graph_parse(&g, text[i], &st) && cc_graph_verify(&g, &st));
        T_CHECK(pair_finish(&pair[i], &g));
    }
    BuildObject *o = pair_compile(t, pair, N);
    T_CHECK(o != NULL);
    for (uint32_t i = 0; o != NULL && i < N; i++) {
        for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            T_CHECK(pair_differs(&pair[i], 2, sizes[s], s % 2 == 1) == 0);
        }
    }
    for (uint32_t i = 0; i < N; i++) {
        pair_close(&pair[i]);
    }
    build_object_unref(o);
}

static CcBodyFn
find_body(void *ctx, const char *name)
{
    CcStatus st;

    return (CcBodyFn)build_object_find(ctx, name, &st);
}

static void
test_one_plan_from_text_to_bodies(GrTools *t)
{
    Pair pair;
    CcGraph g;
    CcStatus st = {0};
    CcBuf text;
    const int64_t dims[2] = {9, 130};

    T_CHECK(cc_graph_parse(&g, "%1 = PARAM[c] f64[n1,n2]\n%2 = TANH f64[n1,n2] %1\n"
                               "%3 = SUM[axes=1] f64[n1] %2\n%4 = NEG f64[n1] %3\n"
                               "%5 = TRANSPOSE[perm=1,0] f64[n2,n1] %2\nout %4 %5\n", &st));
    T_CHECK(pair_finish(&pair, &g));
    cc_buf_init(&text);
    T_CHECK(rt_plan_source(pair.c.plan, &text, &st));
    BuildUnit unit = {.source = cc_buf_text(&text), .size = text.len};
    T_CHECK(build_make(&t->cache, &t->tool, &unit, 1, &(BuildRun){0}, &st));
    T_CHECK(rt_plan_link(pair.c.plan, find_body, unit.object));
    T_CHECK(pair_differs(&pair, 2, dims, false) == 0);
    cc_buf_fini(&text);
    pair_close(&pair);
    build_object_unref(unit.object);
}

int
main(void)
{
    GrTools tools;

    if (!gr_open(&tools)) {             /* without a compiler there is nothing to compare */
        return 0;
    }
    test_random_graphs(&tools);
    test_two_axes(&tools);
    test_one_plan_from_text_to_bodies(&tools);
    gr_close(&tools);
    return t_failed != 0;
}
