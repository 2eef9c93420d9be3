/* tests/c/test_pass_grad.c - gradients against central differences in f64, for every op row that
 * has a derivative rule, and the documented choices at ties. */
#include "base/mem.h"
#include "ir/build.h"
#include "pass/pass.h"
#include "ref_inputs.h"
#include "t.h"

typedef struct {
    const char *text;                   /* the last node is differentiated */
    double lo, hi;                      /* range of the float inputs */
    int64_t ilo, ihi;                   /* of the integer inputs */
} Case;

#define X1 "%1 = PARAM f64[n1,n2]\n"
#define X2 X1 "%2 = PARAM f64[n1,n2]\n"
#define UNARY(op, lo, hi) {X1 "%2 = " op " %1", lo, hi, 0, 0}
#define BINARY(op, lo, hi) {X2 "%3 = " op " %1 %2", lo, hi, 0, 0}
#define CONV "[stride=2,1 pad=1,0,2,1 dilation=1,2 groups=2]"

static const Case cases[] = {
    UNARY("NEG", -2, 2), UNARY("ABS", -2, 2), UNARY("SQRT", 0.5, 3), UNARY("CBRT", 0.5, 3),
    UNARY("SQUARE", -2, 2), UNARY("RECIP", 0.5, 2), UNARY("EXP", -2, 2), UNARY("EXP2", -2, 2),
    UNARY("EXPM1", -2, 2), UNARY("LOG", 0.5, 3), UNARY("LOG2", 0.5, 3), UNARY("LOG10", 0.5, 3),
    UNARY("LOG1P", -0.5, 3), UNARY("SIN", -3, 3), UNARY("COS", -3, 3), UNARY("TAN", -1, 1),
    UNARY("ASIN", -0.9, 0.9), UNARY("ACOS", -0.9, 0.9), UNARY("ATAN", -3, 3),
    UNARY("SINH", -2, 2), UNARY("COSH", -2, 2), UNARY("TANH", -2, 2), UNARY("ASINH", -2, 2),
    UNARY("ACOSH", 1.2, 3), UNARY("ATANH", -0.9, 0.9), UNARY("ERF", -2, 2),
    UNARY("SIGMOID", -3, 3), UNARY("RELU", -2, 2), UNARY("GELU", -3, 3),
    UNARY("CAST f64[n1,n2]", -2, 2),
    BINARY("ADD", -2, 2), BINARY("SUB", -2, 2), BINARY("MUL", -2, 2), BINARY("DIV", 0.5, 2),
    BINARY("MOD", 0.3, 3), BINARY("FMOD", 0.3, 3), BINARY("POW", 0.5, 2), BINARY("MAXIMUM", -2, 2),
    BINARY("MINIMUM", -2, 2), BINARY("FMAX", -2, 2), BINARY("FMIN", -2, 2),
    BINARY("COPYSIGN", -2, 2), BINARY("ATAN2", 0.3, 2), BINARY("HYPOT", 0.3, 2),
    BINARY("LOGADDEXP", -2, 2),
    {X1 "%2 = CONST f64[] 2.0\n%3 = BROADCAST f64[n1,n2] %2\n%4 = POW %1 %3", -2, 2, 0, 0},
    {X1 "%2 = CONST f64[] 3.0\n%3 = BROADCAST f64[n1,n2] %2\n%4 = POW %1 %3", -2, 2, 0, 0},
    {X1 "%2 = CONST f64[] 1.0\n%3 = BROADCAST f64[n1,n2] %2\n%4 = POW %1 %3", -2, 2, 0, 0},
    {X1 "%2 = CONST f64[] 0.0\n%3 = BROADCAST f64[n1,n2] %2\n%4 = POW %1 %3", -2, 2, 0, 0},
    {X2 "%3 = GT %1 %2\n%4 = WHERE %3 %1 %2", -2, 2, 0, 0},
    {X2 "%3 = PARAM bool[n1,n2]\n%4 = WHERE %3 %1 %2", -2, 2, 0, 1},
    UNARY("SUM[axes=1]", -2, 2), UNARY("SUM[axes=0,1]", -2, 2), UNARY("PROD[axes=0]", -2, 2),
    UNARY("PROD[axes=]", -2, 2), UNARY("PROD[axes=0,1]", -2, 2), UNARY("MAX[axes=1]", -2, 2),
    UNARY("MIN[axes=0]", -2, 2), UNARY("MAX[axes=0,1]", -2, 2), UNARY("MEAN[axes=0]", -2, 2),
    UNARY("VAR[axes=1 ddof=1]", -2, 2), UNARY("VAR[axes=0,1 ddof=0]", -2, 2),
    UNARY("STD[axes=0 ddof=0]", -2, 2), UNARY("CUMSUM[axis=0]", -2, 2),
    UNARY("CUMPROD[axis=0]", -2, 2), UNARY("CUMPROD[axis=1]", -2, 2),
    UNARY("SOFTMAX[axis=1]", -2, 2), UNARY("LOGSOFTMAX[axis=0]", -2, 2),
    UNARY("RESHAPE f64[n1*n2]", -2, 2), UNARY("TRANSPOSE[perm=1,0]", -2, 2),
    {"%1 = PARAM f64[n2,1]\n%2 = BROADCAST f64[n1,n2,n3] %1\n%3 = PARAM f64[n1,n3]", -2, 2, 0, 0},
    {"%1 = PARAM f64[n1,n3]\n%2 = PARAM f64[n2,1]\n%3 = BROADCAST f64[n1,n2,n3] %2", -2, 2, 0, 0},
    UNARY("SLICE[start=0,1 step=1,1] f64[n1,n2-1]", -2, 2),
    UNARY("SLICE[start=1,n2-1 step=-1,-2] f64[2,(n2+1)//2]", -2, 2),
    {X1 "%2 = PARAM f64[n1,1]\n%3 = UPDATE[start=0,1 step=1,2] %1 %2", -2, 2, 0, 0},
    {X1 "%2 = PARAM f64[n1,n3]\n%3 = CONCAT[axis=1] %1 %2 %1", -2, 2, 0, 0},
    {X1 "%2 = PARAM[scalar] f64[]\n%3 = PAD[lo=1,0 hi=2,n1] %1 %2", -2, 2, 0, 0},
    {X1 "%2 = PARAM i64[n3,2]\n%3 = GATHER[axis=1] %1 %2", -2, 2, -3, 2},
    {X1 "%2 = PARAM i64[n3]\n%3 = PARAM f64[n3,n2]\n%4 = SCATTER_ADD[axis=0] %1 %2 %3", -2, 2,
     -2, 1},
    {"%1 = PARAM f64[2,n1,n2]\n%2 = PARAM f64[2,n2,n3]\n%3 = MATMUL[ta=0 tb=0] %1 %2", -2, 2, 0, 0},
    {"%1 = PARAM f64[n2,n1]\n%2 = PARAM f64[n2,n3]\n%3 = MATMUL[ta=1 tb=0] %1 %2", -2, 2, 0, 0},
    {"%1 = PARAM f64[n1,n2]\n%2 = PARAM f64[n3,n2]\n%3 = MATMUL[ta=0 tb=1] %1 %2", -2, 2, 0, 0},
    {"%1 = PARAM f64[n2,n1]\n%2 = PARAM f64[n3,n2]\n%3 = MATMUL[ta=1 tb=1] %1 %2", -2, 2, 0, 0},
    {"%1 = PARAM f64[n1,4,5,6]\n%2 = PARAM f64[6,2,3,2]\n%3 = CONV2D" CONV " %1 %2", -1, 1, 0, 0},
    {"%1 = PARAM f64[n1,4,5,6]\n%2 = PARAM f64[6,2,3,2]\n%3 = PARAM f64[6]\n"
     "%4 = CONV2D" CONV " %1 %2 %3", -1, 1, 0, 0},
    {"%1 = PARAM f64[n1,6,2,7]\n%2 = PARAM f64[6,2,3,2]\n"
     "%3 = CONV2D_DX" CONV " f64[n1,4,5,6] %1 %2", -1, 1, 0, 0},
    {"%1 = PARAM f64[n1,6,2,7]\n%2 = PARAM f64[n1,4,5,6]\n"
     "%3 = CONV2D_DW" CONV " f64[6,2,3,2] %1 %2", -1, 1, 0, 0},
    {"%1 = PARAM f64[n1,2,5,n4]\n%2 = MAXPOOL2D[k=3,2 stride=2,1 pad=1,1,0,1] %1", -1, 1, 0, 0},
    {"%1 = PARAM f64[n1,n2,2,3]\n%2 = PARAM f64[n1,n2,4,5]\n"
     "%3 = MAXPOOL2D_DX[k=2,2 stride=2,2 pad=0,0,1,0] %1 %2", -1, 1, 0, 0},
    /* a small network: every path joins */
    {"%1 = PARAM f64[n1,n2]\n%2 = PARAM f64[n2,n3]\n%3 = PARAM f64[n3]\n"
     "%4 = MATMUL[ta=0 tb=0] %1 %2\n%5 = BROADCAST f64[n1,n3] %3\n%6 = ADD %4 %5\n%7 = TANH %6\n"
     "%8 = MUL %7 %6\n%9 = LOGSOFTMAX[axis=1] %8\n%10 = MEAN[axes=0,1] %9", -1, 1, 0, 0},
};

#define NCASE (sizeof(cases) / sizeof(cases[0]))

/* The last node that is no parameter: the one that is differentiated. */
static CcRef
last_op(const CcGraph *g)
{
    CcRef last = g->len - 1;

    while (g->node[last].op == CC_OP_PARAM) {
        last--;
    }
    return last;
}

static uint64_t
all_axes(const CcGraph *g)
{
    return (UINT64_C(1) << g->node[last_op(g)].ndim) - 1;
}

/* sum(last node * weights) as a new node; weights are a new last parameter. */
static CcRef
weighted_sum(CcGraph *g, CcStatus *st)
{
    CcRef last = last_op(g);
    CcDim dim[CC_MAX_NDIM] = {0};
    uint8_t ndim = g->node[last].ndim;

    for (uint32_t i = 0; i < ndim; i++) {
        dim[i] = cc_shape(g, last)[i];
    }
    CcRef w = cc_build_param(g, CC_DTYPE_F64, ndim, dim, CC_LAYOUT_C, st);
    CcRef product = cc_build_binary(g, CC_OP_MUL, last, w, st);
    return cc_build_reduce(g, CC_OP_SUM, product, (UINT64_C(1) << ndim) - 1, false, st);
}

static double
loss_at(const CcGraph *g, const RefArray *in, CcRef loss)
{
    RefRun run;

    T_CHECK(ref_eval(&run, g, in));
    double v = ref_get(&run.val[loss], 0);
    ref_fini(&run);
    return v;
}

/* Every gradient in `grad` against central differences. */
static bool
agrees(const CcGraph *g, RefArray *in, CcRef loss, const CcRef *wrt, const CcRef *grad,
       uint32_t n)
{
    RefRun run;
    bool ok = ref_eval(&run, g, in);

    for (uint32_t k = 0; k < n && ok; k++) {
        uint32_t p = 0;
        while (g->param[p].node != wrt[k]) {
            p++;
        }
        ok = run.val[grad[k]].n == in[p].n;
        for (int64_t i = 0; i < in[p].n && ok; i++) {
            double x = ref_get(&in[p], i), h = 1e-6;
            ref_set(&in[p], i, x + h);
            double up = loss_at(g, in, loss);
            ref_set(&in[p], i, x - h);
            double down = loss_at(g, in, loss);
            ref_set(&in[p], i, x);
            double want = (up - down) / (2 * h), have = ref_get(&run.val[grad[k]], i);
            if (!(fabs(want - have) <= 2e-7 * (1 + fabs(want) + fabs(have)) * 10)) {
                printf("parameter %u element %lld: %.9g, differences say %.9g\n", p, (long long)i,
                       have, want);
                ok = false;
            }
        }
    }
    ref_fini(&run);
    return ok;
}

static uint32_t
float_params(const CcGraph *g, CcDtype dt, CcRef *wrt)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < g->nparam; k++) {
        if (g->node[g->param[k].node].dtype == dt) {
            wrt[n++] = g->param[k].node;
        }
    }
    return n;
}

/* The gradients survive the pipeline: same values up to the rounding of decomposed composites. */
static bool
survives_passes(const CcGraph *made, const RefArray *in, const CcRef *grad, uint32_t n)
{
    PassOptions opt = {.verify = true};
    CcStatus st = {0};
    CcGraph g;
    RefRun before = {.g = made}, after = {.g = &g};
    bool ok = cc_graph_clone(&g, made, &st);

    for (uint32_t k = 0; k < n && ok; k++) {
        ok = cc_graph_add_output(&g, grad[k], CC_OUT_ARRAY, NULL, &st);
    }
    ok = ok && pass_run(&g, pass_default, 0, &opt, &st) && ref_eval(&before, made, in)
      && ref_eval(&after, &g, in);
    for (uint32_t k = 0; k < n && ok; k++) {
        const RefArray *x = &before.val[grad[k]], *y = &after.val[g.out[k].node];
        for (int64_t i = 0; i < x->n && ok; i++) {
            double want = ref_get(x, i), have = ref_get(y, i);
            ok = fabs(want - have) <= 1e-11 * (1 + fabs(want));
        }
    }
    if (!ok) {
        printf("passes: %s\n", st.detail);
    }
    ref_fini(&before);
    ref_fini(&after);
    cc_graph_fini(&g);
    return ok;
}

/* The same graph in f32: every piece of the gradient has to be f32 as well. */
static void
check_f32(const Case *c)
{
    CcStatus st = {0};
    CcGraph g;
    CcRef wrt[8], grad[8];
    char text[1024];

    snprintf(text, sizeof(text), "%s", c->text);
    for (char *s = strstr(text, "f64"); s != NULL; s = strstr(s, "f64")) {
        memcpy(s, "f32", 3);
    }
    if (strstr(text, "[scalar]") != NULL) {
        return;                         /* a Python float is f64: mixed with f32 it needs a CAST */
    }
    T_CHECK(cc_graph_parse(&g, text, &st));
    CcRef loss = cc_build_reduce(&g, CC_OP_SUM, last_op(&g), all_axes(&g), false, &st);
    uint32_t n = float_params(&g, CC_DTYPE_F32, wrt);
    if (!pass_grad(&g, loss, wrt, n, grad, &st) || !cc_graph_verify(&g, &st)) {
        printf("%s\n%s\n", text, st.detail);
        T_CHECK(false);
    }
    cc_graph_fini(&g);
}

static void
check_case(const Case *c, uint64_t *seed, bool *covered)
{
    CcStatus st = {0};
    CcGraph g;
    CcRef wrt[8], grad[8];

    if (!cc_graph_parse(&g, c->text, &st)) {
        printf("%s\n%s\n", c->text, st.detail);
        T_CHECK(false);
        return;
    }
    CcRef loss = weighted_sum(&g, &st);
    uint32_t n = float_params(&g, CC_DTYPE_F64, wrt);
    CcRef was = g.len;
    T_CHECK(loss != 0);
    bool ok = loss != 0 && pass_grad(&g, loss, wrt, n, grad, &st) && cc_graph_verify(&g, &st);
    for (CcRef r = 1; r < was; r++) {
        covered[g.node[r].op] = true;
    }
    if (ok) {
        T_CHECK(g.dims.nguard == 0);
        RefArray *in = ref_inputs(&g, seed, c->lo, c->hi, c->ilo, c->ihi);
        ok = agrees(&g, in, loss, wrt, grad, n) && survives_passes(&g, in, grad, n);
        ref_inputs_free(&g, in);
    }
    if (!ok) {
        printf("%s\n%s\n", c->text, st.detail);
        T_CHECK(false);
    }
    cc_graph_fini(&g);
}

static void
test_central_differences(void)
{
    bool covered[CC_OP__COUNT] = {false};
    uint64_t seed = 12345;

    for (size_t i = 0; i < NCASE; i++) {
        check_case(&cases[i], &seed, covered);
        check_f32(&cases[i]);
    }
    for (int op = 0; op < CC_OP__COUNT; op++) {
        const char *vjp = cc_op_info[op].vjp;
        bool rule = strcmp(vjp, "none") != 0 && strcmp(vjp, "zero") != 0;
        if (rule && !covered[op]) {
            printf("no gradient case for %s\n", cc_op_info[op].name);
            T_CHECK(false);
        }
    }
}

/* -- Ties and kinks ------------------------------------------------------------------------- */

/* Gradient of sum(last node) for the first parameter at the given values. */
static void
grad_at(const char *text, uint32_t which, const double *x0, const double *x1, int64_t n,
        double *out)
{
    CcStatus st = {0};
    CcGraph g;
    CcRef wrt[2], grad[2];
    RefRun run;

    T_CHECK(cc_graph_parse(&g, text, &st));
    CcRef last = g.len - 1;
    uint64_t all = (UINT64_C(1) << g.node[last].ndim) - 1;
    CcRef loss = cc_build_reduce(&g, CC_OP_SUM, last, all, false, &st);
    uint32_t nwrt = float_params(&g, CC_DTYPE_F64, wrt);
    T_CHECK(pass_grad(&g, loss, wrt, nwrt, grad, &st));
    T_CHECK(cc_graph_verify(&g, &st));
    RefArray in[2] = {{.dt = CC_DTYPE_F64, .ndim = 1, .dim = {n}}, {.dt = CC_DTYPE_F64, .ndim = 1,
                                                                   .dim = {n}}};
    for (int k = 0; k < 2; k++) {
        ref_alloc(&in[k]);
        for (int64_t i = 0; i < n; i++) {
            ref_set(&in[k], i, k == 0 ? x0[i] : x1[i]);
        }
    }
    T_CHECK(ref_eval(&run, &g, in));
    for (int64_t i = 0; i < n; i++) {
        out[i] = ref_get(&run.val[grad[which]], i);
    }
    ref_fini(&run);
    free(in[0].e);
    free(in[1].e);
    cc_graph_fini(&g);
}

static void
expect(const char *text, uint32_t which, const double *x0, const double *x1, const double *want)
{
    double have[4];

    grad_at(text, which, x0, x1, 4, have);
    for (int i = 0; i < 4; i++) {
        if (have[i] != want[i] && !(isnan(have[i]) && isnan(want[i]))) {
            printf("%s\nelement %d: %g, not %g\n", text, i, have[i], want[i]);
            T_CHECK(false);
        }
    }
}

#define A "%1 = PARAM f64[4]\n"
#define AB A "%2 = PARAM f64[4]\n"
#define V(...) ((const double[4]){__VA_ARGS__})

static void
test_ties(void)
{
    const double *ones = V(1, 1, 1, 1);
    const double *tie0 = V(1, 2, 3, NAN), *tie1 = V(1, 3, 2, 1);

    expect(AB "%3 = MAXIMUM %1 %2", 0, tie0, tie1, V(0.5, 0, 1, 1));
    expect(AB "%3 = MAXIMUM %1 %2", 1, tie0, tie1, V(0.5, 1, 0, 1));
    expect(AB "%3 = MINIMUM %1 %2", 0, tie0, tie1, V(0.5, 1, 0, 1));
    expect(AB "%3 = FMAX %1 %2", 0, tie0, tie1, V(1, 0, 1, 0));
    expect(AB "%3 = FMAX %1 %2", 1, tie0, tie1, V(0, 1, 0, 1));
    expect(AB "%3 = FMIN %1 %2", 0, tie0, tie1, V(1, 1, 0, 0));
    expect(A "%2 = ABS %1", 0, V(0, -0.0, -1, 2), ones, V(0, 0, -1, 1));
    expect(A "%2 = RELU %1", 0, V(0, -1, 2, NAN), ones, V(0, 0, 1, 1));
    expect(A "%2 = MAX[axes=0] %1", 0, V(5, 1, 5, 2), ones, V(0.5, 0, 0.5, 0));
    expect(A "%2 = MIN[axes=0] %1", 0, V(1, 1, 1, 1), ones, V(0.25, 0.25, 0.25, 0.25));
    expect(A "%2 = PROD[axes=0] %1", 0, V(2, 0, 3, 4), ones, V(0, 24, 0, 0));
    expect(A "%2 = PROD[axes=0] %1", 0, V(2, 0, 0, 4), ones, V(0, 0, 0, 0));
    expect(A "%2 = CUMPROD[axis=0] %1", 0, V(2, 0, 3, 4), ones, V(1, 32, 0, 0));
    expect(A "%2 = STD[axes=0 ddof=0] %1", 0, ones, ones, V(0, 0, 0, 0));
    expect(AB "%3 = POW %1 %2", 0, V(0, 0, 2, -1), V(0, 2, 3, 2), V(0, 0, 12, -2));
    expect(AB "%3 = POW %1 %2", 1, V(0, 0, 1, 0), V(0, 2, 3, 1), V(0, 0, 0, 0));
    expect(A "%2 = SQRT %1", 0, V(0, 1, 4, 0.25), ones, V(INFINITY, 0.5, 0.25, 1));
    expect(AB "%3 = COPYSIGN %1 %2", 0, V(0, -1, 2, -3), V(1, 1, -1, -1), V(0, -1, -1, 1));
    expect(A "%2 = RESHAPE f64[1,1,2,2] %1\n%3 = MAXPOOL2D[k=2,2 stride=2,2 pad=0,0,0,0] %2", 0,
           V(1, 7, 7, 7), ones, V(0, 1, 0, 0));
    expect(A "%2 = FLOOR %1\n%3 = MUL %1 %2", 0, V(1.5, 2.5, -1.5, 0.5), ones, V(1, 2, -2, 0));
}

/* -- Derivatives that are zero by nature ---------------------------------------------------- */

/* The path through a row with vjp zero is cut, whatever it is: x * op(x) has the slope op(x). */
static void
check_zero_row(CcOp op)
{
    const CcOpInfo *info = &cc_op_info[op];
    bool ints = op == CC_OP_BAND || op == CC_OP_BOR || op == CC_OP_BXOR || op == CC_OP_BNOT
        || op == CC_OP_SHL || op == CC_OP_SHR;
    bool reduces = info->cls == CC_CLASS_RED;
    const char *attrs = reduces ? "[axes=0]" : "";
    char text[512];

    snprintf(text, sizeof(text),
             "%%1 = PARAM f64[4]\n%%2 = CAST i64[4] %%1\n%%3 = %s%s %%%d%s\n"
             "%%4 = CAST f64[%s] %%3\n%%5 = BROADCAST f64[4] %%4\n%%6 = MUL %%1 %%5\n",
             info->name, attrs, ints ? 2 : 1, info->nargs == 2 ? ints ? " %2" : " %1" : "",
             reduces ? "" : "4");
    CcStatus st = {0};
    CcGraph g;
    CcRef wrt[1], grad[1];
    RefArray in = {.dt = CC_DTYPE_F64, .ndim = 1, .dim = {4}};
    RefRun run;
    bool ok = cc_graph_parse(&g, text, &st);
    CcRef loss = ok ? cc_build_reduce(&g, CC_OP_SUM, 6, 1, false, &st) : 0;
    ok = loss != 0 && float_params(&g, CC_DTYPE_F64, wrt) == 1
      && pass_grad(&g, loss, wrt, 1, grad, &st) && cc_graph_verify(&g, &st);
    if (!ok) {
        printf("%s\n%s\n", text, st.detail);
        T_CHECK(false);
        return;
    }
    ref_alloc(&in);
    for (int64_t i = 0; i < 4; i++) {
        ref_set(&in, i, V(2.25, 0.5, 1.75, 3.5)[i]);
    }
    T_CHECK(ref_eval(&run, &g, &in));
    for (int64_t i = 0; i < 4; i++) {
        T_CHECK(ref_get(&run.val[grad[0]], i) == ref_get(&run.val[5], i));
    }
    ref_fini(&run);
    free(in.e);
    cc_graph_fini(&g);
}

static void
test_zero_rows(void)
{
    for (int op = 0; op < CC_OP__COUNT; op++) {
        if (strcmp(cc_op_info[op].vjp, "zero") == 0 && op != CC_OP_IOTA
                && op != CC_OP_MAXPOOL2D_ARG) {
            check_zero_row((CcOp)op);
        }
    }
}

/* -- What has no gradient ------------------------------------------------------------------- */

static void
expect_no_gradient(const char *text, const char *node)
{
    CcStatus st = {0};
    CcGraph g;
    CcRef wrt[8], grad[8];

    T_CHECK(cc_graph_parse(&g, text, &st));
    CcRef loss = weighted_sum(&g, &st);
    T_CHECK(loss != 0);
    T_CHECK(!pass_grad(&g, loss, wrt, float_params(&g, CC_DTYPE_F64, wrt), grad, &st));
    T_CHECK(st.reason == CC_REASON_NO_GRADIENT && strstr(st.detail, node) != NULL);
    T_CHECK(cc_graph_verify(&g, &st));
    cc_graph_fini(&g);
}

static void
test_no_gradient(void)
{
    CcStatus st = {0};
    CcGraph g;
    CcRef wrt[2], grad[2];

    expect_no_gradient(X2 "%3 = FLOORDIV %1 %2", "%3: FLOORDIV");
    expect_no_gradient(A "%2 = PARAM i64[2]\n%3 = PARAM f64[2]\n%4 = SCATTER[axis=0] %1 %2 %3",
                       "%4: SCATTER");
    expect_no_gradient(A "%2 = EXTERN[id=7] %1\n%3 = EXTERN_GET[k=0] f64[4] %2",
                       "%3: EXTERN_GET");
    /* not on a path to the loss: no error, and zeros */
    T_CHECK(cc_graph_parse(&g, AB "%3 = FLOORDIV %1 %2\n%4 = SUM[axes=0] %2\n", &st));
    wrt[0] = 1;
    wrt[1] = 2;
    T_CHECK(pass_grad(&g, 4, wrt, 2, grad, &st));
    T_CHECK(g.node[grad[0]].op == CC_OP_BROADCAST && cc_same_shape(&g, grad[0], 1));
    T_CHECK(!pass_grad(&g, 1, wrt, 2, grad, &st) && st.reason == CC_REASON_BAD_OPERANDS);
    cc_graph_fini(&g);
}

/* The loss itself, and a node between, can be asked for. */
static void
test_intermediate(void)
{
    CcStatus st = {0};
    CcGraph g;
    CcRef wrt[3] = {1, 2, 3}, grad[3];
    RefRun run;
    RefArray in = {.dt = CC_DTYPE_F64, .ndim = 1, .dim = {4}};

    T_CHECK(cc_graph_parse(&g, A "%2 = SQUARE %1\n%3 = SUM[axes=0] %2\n", &st));
    T_CHECK(pass_grad(&g, 3, wrt, 3, grad, &st));
    ref_alloc(&in);
    ref_set(&in, 2, 3.0);
    T_CHECK(ref_eval(&run, &g, &in));
    T_CHECK(ref_get(&run.val[grad[2]], 0) == 1);
    T_CHECK(ref_get(&run.val[grad[1]], 2) == 1);
    T_CHECK(ref_get(&run.val[grad[0]], 2) == 6);
    ref_fini(&run);
    free(in.e);
    cc_graph_fini(&g);
}

static void
test_no_memory(void)
{
    for (size_t i = 0; i < NCASE; i += 9) {
        for (long n = 0;; n++) {
            CcStatus st = {0};
            CcGraph g;
            CcRef wrt[8], grad[8];
            T_CHECK(cc_graph_parse(&g, cases[i].text, &st));
            CcRef loss = weighted_sum(&g, &st);
            uint32_t nwrt = float_params(&g, CC_DTYPE_F64, wrt);
            cc_mem_fail_after(n);
            bool ok = pass_grad(&g, loss, wrt, nwrt, grad, &st);
            int fired = cc_mem_failed();
            cc_mem_fail_after(-1);
            T_CHECK(ok == !fired);
            T_CHECK(ok || st.reason == CC_REASON_NO_MEMORY);
            T_CHECK(cc_graph_verify(&g, &st));
            cc_graph_fini(&g);
            if (!fired) {
                break;
            }
        }
    }
}

int
main(void)
{
    test_central_differences();
    test_ties();
    test_zero_rows();
    test_no_gradient();
    test_intermediate();
    test_no_memory();
    return t_failed != 0;
}
