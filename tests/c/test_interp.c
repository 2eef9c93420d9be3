/* tests/c/test_interp.c - each elementwise op with each dtype it exists for, against plain scalar C
 * that says what NumPy computes. */
#include "plan_run.h"

#include "ir/build.h"

#include <math.h>
#include <stdio.h>

typedef __int128 wide;

enum { COUNT = 2 * 331 };

static uint64_t seed = 1442695040888963407u;

static uint64_t
rnd(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* An element as a double and as an integer of any type; bools by their truth. */
typedef struct {
    double d;
    wide i;
} Value;

static Value
get(CcDtype dt, const char *p)
{
    Value v = {0};
    int64_t s = 0;
    uint64_t u = 0;
    unsigned size = cc_dtype_info[dt].size;
    float f;

    memcpy(&u, p, size);
    if (dt == CC_DTYPE_F64) {
        memcpy(&v.d, p, 8);
    } else if (dt == CC_DTYPE_F32) {
        memcpy(&f, p, 4);
        v.d = (double)f;
    } else if (dt == CC_DTYPE_BOOL) {
        v.i = u != 0;
    } else if (cc_dtype_info[dt].cls == CC_DCLASS_INT) {
        s = (int64_t)(u << (64 - 8 * size)) >> (64 - 8 * size);
        v.i = s;
    } else {
        v.i = u;
    }
    return v;
}

static void
put(CcDtype dt, Value v, char *p)
{
    uint64_t u = (uint64_t)v.i;
    float f = (float)v.d;

    memcpy(p, dt == CC_DTYPE_F64 ? (void *)&v.d : dt == CC_DTYPE_F32 ? (void *)&f : (void *)&u,
           cc_dtype_info[dt].size);
}

static void
fill(char *p, CcDtype dt)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 0.5, -2.5,
                                     3e9, -3e9, 1e19, 200.5, 70000.0, -129.0};

    for (int k = 0; k < COUNT; k++) {
        Value v;
        v.d = rnd() % 3 == 0 ? special[rnd() % 15]
            : (double)(int64_t)rnd() / 9e18 * (double)(1 + rnd() % 20);
        v.i = rnd() % 2 == 0 ? (int64_t)(rnd() % 9) - 4 : (int64_t)(rnd() << (rnd() % 64));
        if (rnd() % 16 == 0) {                          /* the smallest number */
            v.i = -((wide)1 << (8 * cc_dtype_info[dt].size - 1));
        }
        put(dt, v, p + k * cc_dtype_info[dt].size);
    }
}

/* -- The reference --------------------------------------------------------- */

#define FLOAT_REF(T, name, F)                                                                     \
    static bool name(CcOp op, T a, T b, T *out)                                                   \
    {                                                                                             \
        T w;                                                                                      \
        switch (op) {                                                                             \
        case CC_OP_NEG: *out = -a; break;                                                         \
        case CC_OP_ABS: *out = F(fabs)(a); break;                                                 \
        case CC_OP_SIGN: *out = isnan(a) ? a : (T)((a > 0) - (a < 0)); break;                     \
        case CC_OP_ADD: *out = a + b; break;                                                      \
        case CC_OP_SUB: *out = a - b; break;                                                      \
        case CC_OP_MUL: *out = a * b; break;                                                      \
        case CC_OP_DIV: *out = a / b; break;                                                      \
        case CC_OP_SQUARE: *out = a * a; break;                                                   \
        case CC_OP_RECIP: *out = 1 / a; break;                                                    \
        case CC_OP_SQRT: *out = F(sqrt)(a); break;                                                \
        case CC_OP_FLOOR: *out = F(floor)(a); break;                                              \
        case CC_OP_CEIL: *out = F(ceil)(a); break;                                                \
        case CC_OP_TRUNC: *out = F(trunc)(a); break;                                              \
        case CC_OP_RINT: *out = F(rint)(a); break;                                                \
        case CC_OP_FMOD: *out = F(fmod)(a, b); break;                                             \
        case CC_OP_MOD:                                                                           \
            w = F(fmod)(a, b);                                                                    \
            *out = b == 0 || isnan(w) ? w : w == 0 ? F(copysign)(0, b)                            \
                 : (w < 0) != (b < 0) ? w + b : w;                                                \
            break;                                                                                \
        case CC_OP_FLOORDIV:                                                                      \
            w = F(fmod)(a, b);                                                                    \
            if (b == 0) {                                                                         \
                *out = a / b;                                                                     \
                break;                                                                            \
            }                                                                                     \
            *out = (a - w) / b;                                                                   \
            if (w != 0 && (w < 0) != (b < 0)) {                                                   \
                *out -= 1;                                                                        \
            }                                                                                     \
            w = F(floor)(*out);                                                                   \
            *out = *out == 0 ? F(copysign)(0, a / b) : *out - w > (T)0.5 ? w + 1 : w;             \
            break;                                                                                \
        case CC_OP_RELU: *out = isnan(a) || a > 0 ? a : 0; break;                                 \
        case CC_OP_COPYSIGN: *out = F(copysign)(a, b); break;                                     \
        case CC_OP_MAXIMUM: *out = isnan(a) || a > b ? a : b; break;                              \
        case CC_OP_MINIMUM: *out = isnan(a) || a < b ? a : b; break;                              \
        case CC_OP_FMAX: *out = isnan(b) || a > b ? a : b; break;                                 \
        case CC_OP_FMIN: *out = isnan(b) || a < b ? a : b; break;                                 \
        default: return false;                                                                    \
        }                                                                                         \
        return true;                                                                              \
    }
#define F64_NAME(fn) fn
#define F32_NAME(fn) fn##f
FLOAT_REF(double, ref_f64, F64_NAME)
FLOAT_REF(float, ref_f32, F32_NAME)

static bool
ref_bool(CcOp op, bool flt, Value a, Value b, bool *out)
{
    bool ta = flt ? a.d != 0 : a.i != 0, tb = flt ? b.d != 0 : b.i != 0;

    switch (op) {
    case CC_OP_EQ: *out = flt ? a.d == b.d : a.i == b.i; break;
    case CC_OP_NE: *out = flt ? a.d != b.d : a.i != b.i; break;
    case CC_OP_LT: *out = flt ? a.d < b.d : a.i < b.i; break;
    case CC_OP_LE: *out = flt ? a.d <= b.d : a.i <= b.i; break;
    case CC_OP_GT: *out = flt ? a.d > b.d : a.i > b.i; break;
    case CC_OP_GE: *out = flt ? a.d >= b.d : a.i >= b.i; break;
    case CC_OP_LAND: *out = ta && tb; break;
    case CC_OP_LOR: *out = ta || tb; break;
    case CC_OP_LXOR: *out = ta != tb; break;
    case CC_OP_LNOT: *out = !ta; break;
    case CC_OP_ISNAN: *out = isnan(a.d); break;
    case CC_OP_ISINF: *out = isinf(a.d); break;
    case CC_OP_ISFINITE: *out = isfinite(a.d); break;
    case CC_OP_SIGNBIT: *out = signbit(a.d) != 0; break;
    default: return false;
    }
    return true;
}

/* Exact, to be cut to the type. */
static bool
ref_int(CcOp op, unsigned bits, wide a, wide b, wide *out)
{
    wide one = 1;
    uint64_t p = 1;

    switch (op) {
    case CC_OP_NEG: *out = -a; break;
    case CC_OP_ABS: *out = a < 0 ? -a : a; break;
    case CC_OP_SIGN: *out = (a > 0) - (a < 0); break;
    case CC_OP_ADD: *out = a + b; break;
    case CC_OP_SUB: *out = a - b; break;
    case CC_OP_SQUARE: *out = (wide)((uint64_t)a * (uint64_t)a); break;
    case CC_OP_MUL: *out = (wide)((uint64_t)a * (uint64_t)b); break;
    case CC_OP_FLOORDIV: *out = b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)); break;
    case CC_OP_MOD: *out = b == 0 ? 0 : a % b != 0 && (a < 0) != (b < 0) ? a % b + b : a % b; break;
    case CC_OP_FMOD: *out = b == 0 ? 0 : a % b; break;
    case CC_OP_POW:
        for (wide k = 0; k < b % 64 && b > 0; k++) {
            p *= (uint64_t)a;
        }
        *out = b < 0 ? 0 : (wide)p;
        return b < 64;                  /* larger ones: only that nothing crashes */
    case CC_OP_MAXIMUM:
    case CC_OP_FMAX: *out = a > b ? a : b; break;
    case CC_OP_MINIMUM:
    case CC_OP_FMIN: *out = a < b ? a : b; break;
    case CC_OP_RELU: *out = a > 0 ? a : 0; break;
    case CC_OP_BAND: *out = a & b; break;
    case CC_OP_BOR: *out = a | b; break;
    case CC_OP_BXOR: *out = a ^ b; break;
    case CC_OP_BNOT: *out = ~a; break;
    case CC_OP_SHL:
        *out = b < 0 || b >= bits ? 0 : (wide)((uint64_t)a * (uint64_t)(one << b));
        break;
    case CC_OP_SHR: *out = b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b; break;
    default: return false;
    }
    return true;
}

static bool
ref_math(CcOp op, double a, double b, double *out)
{
    switch (op) {
#define ROW(G, f) case CC_OP_##G: *out = f(a); break;
    ROW(EXP, exp) ROW(EXP2, exp2) ROW(EXPM1, expm1) ROW(LOG, log) ROW(LOG2, log2)
    ROW(LOG10, log10) ROW(LOG1P, log1p) ROW(SIN, sin) ROW(COS, cos) ROW(TAN, tan) ROW(ASIN, asin)
    ROW(ACOS, acos) ROW(ATAN, atan) ROW(SINH, sinh) ROW(COSH, cosh) ROW(TANH, tanh)
    ROW(ASINH, asinh) ROW(ACOSH, acosh) ROW(ATANH, atanh) ROW(CBRT, cbrt) ROW(ERF, erf)
#undef ROW
    case CC_OP_SIGMOID: *out = 1 / (1 + exp(-a)); break;
    case CC_OP_POW: *out = pow(a, b); break;
    case CC_OP_ATAN2: *out = atan2(a, b); break;
    case CC_OP_HYPOT: *out = hypot(a, b); break;
    case CC_OP_LOGADDEXP: *out = a == b ? a + log(2) : fmax(a, b) + log1p(exp(-fabs(a - b))); break;
    default: return false;
    }
    return true;
}

/* -- Comparing ------------------------------------------------------------- */

static bool
close_to(double got, double want, bool f32)
{
    double tol = f32 ? 3e-7 : 1e-15;

    if (isnan(got) || isnan(want)) {
        return isnan(got) && isnan(want);
    }
    if (f32 && (fabs(want) > 3.4e38 || fabs(want) < 1.2e-38)) {
        return isinf(got) || fabs(got) < 1.3e-38;
    }
    return got == want || fabs(got - want) <= tol * fabs(want) + 1e-307;
}

static bool
same(CcOp op, double got, double want)
{
    bool loose = op == CC_OP_MAXIMUM || op == CC_OP_MINIMUM || op == CC_OP_FMAX || op == CC_OP_FMIN;

    return isnan(want) ? isnan(got) : got == want && (loose || signbit(got) == signbit(want));
}

/* 1 = right, 0 = wrong, -1 = no reference. */
static int
judge(CcOp op, CcDtype dt, CcDtype res, Value a, Value b, const char *got)
{
    bool flt = cc_dtype_is_float(dt), truth, f32 = dt == CC_DTYPE_F32;
    Value g = get(res, got);
    char cut[8];

    if (res == CC_DTYPE_BOOL && ref_bool(op, flt, a, b, &truth)) {
        return (unsigned char)*got == truth;
    }
    if (flt) {
        double want;
        float fwant;
        if (f32 ? ref_f32(op, (float)a.d, (float)b.d, &fwant) : ref_f64(op, a.d, b.d, &want)) {
            return same(op, g.d, f32 ? (double)fwant : want);
        }
        return ref_math(op, a.d, b.d, &want) ? close_to(g.d, want, f32) : -1;
    }
    if (dt == CC_DTYPE_BOOL) {
        bool want = op == CC_OP_BAND ? a.i & b.i : op == CC_OP_BOR ? a.i | b.i : a.i ^ b.i;
        return (unsigned char)*got == want;
    }
    Value want = {0};
    if (!ref_int(op, 8 * cc_dtype_info[dt].size, a.i, b.i, &want.i)) {
        return -1;
    }
    put(dt, want, cut);
    return memcmp(cut, got, cc_dtype_info[dt].size) == 0;
}

/* -- Every op -------------------------------------------------------------- */

static bool
open_one(PrRun *r, CcOp op, CcDtype dt)
{
    CcStatus *st = &r->st;
    CcRef arg[3], n;

    memset(r, 0, sizeof(*r));
    rt_binding_init(&r->b);
    cc_graph_init(&r->g);
    CcDim dim = cc_dim_sym(&r->g, 1, st);
    for (int k = 0; k < 2; k++) {
        arg[k] = cc_build_param(&r->g, dt, 1, &dim, CC_LAYOUT_STRIDED, st);
    }
    CcSpec spec = {.op = op, .narg = cc_op_info[op].nargs, .arg = arg};
    n = cc_build(&r->g, &spec, st);
    return n != 0 && cc_graph_add_output(&r->g, n, CC_OUT_ARRAY, NULL, st)
        && (r->plan = rt_plan_new(&r->g, st)) != NULL;
}

static void
test_each_op(void)
{
    int judged = 0;

    for (CcOp op = CC_OP_NEG; op <= CC_OP_SHR; op++) {
        for (CcDtype dt = CC_DTYPE_BOOL; dt <= CC_DTYPE_F64; dt++) {
            PrRun r;
            const int64_t n = COUNT / 2;
            unsigned size = cc_dtype_info[dt].size;
            int wrong = 0;
            if (!open_one(&r, op, dt)) {
                T_CHECK(r.st.reason == CC_REASON_BAD_OPERANDS);
                pr_close(&r);
                continue;
            }
            PrArray in[2] = {pr_array(size, 1, &(int64_t){COUNT}),
                             pr_array(size, 1, &(int64_t){COUNT})};
            fill(in[0].data, dt);
            fill(in[1].data, dt);
            in[0].dim[0] = in[1].dim[0] = n;
            in[0].stride[0] = 2 * size;                 /* every other one */
            T_CHECK(pr_call(&r, in, NULL));
            CcDtype res = (CcDtype)r.b.out[0].dtype;
            for (int64_t k = 0; k < n; k++) {
                Value a = get(dt, in[0].data + k * 2 * size), b = get(dt, in[1].data + k * size);
                int right = judge(op, dt, res, a, b, r.out[0].data + k * cc_dtype_info[res].size);
                judged += right >= 0;
                if (right == 0 && wrong++ == 0) {
                    Value g = get(res, r.out[0].data + k * cc_dtype_info[res].size);
                    printf("%s %s: (%.17g, %.17g) (%lld, %lld) -> %.17g %lld\n",
                           cc_op_info[op].name, cc_dtype_info[dt].text, a.d, b.d, (long long)a.i,
                           (long long)b.i, g.d, (long long)g.i);
                }
            }
            T_CHECK(wrong == 0);
            pr_free(&in[0]);
            pr_free(&in[1]);
            pr_close(&r);
        }
    }
    T_CHECK(judged > 200 * COUNT / 2);
}

/* C casts of numbers in memory, as NumPy does them on this machine. */
static bool
ref_cast(CcDtype from, CcDtype to, const char *p, char *out)
{
#define TO(T, x)                                                                                  \
    do {                                                                                          \
        T t = (T)(x);                                                                             \
        memcpy(out, &t, sizeof(t));                                                               \
    } while (0)
#define TO_ALL(x)                                                                                 \
    switch (to) {                                                                                 \
    case CC_DTYPE_BOOL: *out = (x) != 0; break;                                                   \
    case CC_DTYPE_I8: TO(int8_t, x); break;                                                       \
    case CC_DTYPE_I16: TO(int16_t, x); break;                                                     \
    case CC_DTYPE_I32: TO(int32_t, x); break;                                                     \
    case CC_DTYPE_I64: TO(int64_t, x); break;                                                     \
    case CC_DTYPE_U8: TO(uint8_t, x); break;                                                      \
    case CC_DTYPE_U16: TO(uint16_t, x); break;                                                    \
    case CC_DTYPE_U32: TO(uint32_t, x); break;                                                    \
    case CC_DTYPE_U64: TO(uint64_t, x); break;                                                    \
    case CC_DTYPE_F32: TO(float, x); break;                                                       \
    default: TO(double, x); break;                                                                \
    }
    Value v = get(from, p);
    volatile double d = v.d;
    volatile float f = (float)v.d;

    if (from == CC_DTYPE_F64) {
        TO_ALL(d)
    } else if (from == CC_DTYPE_F32) {
        TO_ALL(f)
    } else if (cc_dtype_info[from].cls == CC_DCLASS_INT) {
        TO_ALL((int64_t)v.i)
    } else {
        TO_ALL((uint64_t)v.i)
    }
    return true;
}

static void
test_each_cast(void)
{
    for (CcDtype from = CC_DTYPE_BOOL; from <= CC_DTYPE_F64; from++) {
        for (CcDtype to = CC_DTYPE_BOOL; to <= CC_DTYPE_F64; to++) {
            PrRun r;
            char text[200], want[8];
            unsigned si = cc_dtype_info[from].size, so = cc_dtype_info[to].size;
            int wrong = 0;
            if (from == to) {
                continue;
            }
            snprintf(text, sizeof(text),
                     "%%1 = PARAM[strided] %s[n1]\n%%2 = CAST %s[n1] %%1\nout %%2\n",
                     cc_dtype_info[from].text, cc_dtype_info[to].text);
            T_CHECK(pr_open(&r, text));
            PrArray in = pr_array(si, 1, &(int64_t){COUNT});
            fill(in.data, from);
            T_CHECK(pr_call(&r, &in, NULL));
            for (int64_t k = 0; k < COUNT; k++) {
                ref_cast(from, to, in.data + k * si, want);
                Value g = get(to, r.out[0].data + k * so), w = get(to, want);
                bool nan = cc_dtype_is_float(to) && isnan(w.d) && isnan(g.d);
                if (!nan && memcmp(want, r.out[0].data + k * so, so) != 0 && wrong++ == 0) {
                    Value a = get(from, in.data + k * si);
                    printf("%s -> %s: %.17g %lld -> %.17g %lld\n", cc_dtype_info[from].text,
                           cc_dtype_info[to].text, a.d, (long long)a.i, g.d, (long long)g.i);
                }
            }
            T_CHECK(wrong == 0);
            pr_free(&in);
            pr_close(&r);
        }
    }
}

int
main(void)
{
    test_each_op();
    test_each_cast();
    return t_failed != 0;
}
