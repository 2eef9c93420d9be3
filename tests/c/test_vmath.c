/* kern/vmath.h at the build's own width: every function against libm, special lanes among
 * ordinary ones, flags. The bounds are measured by tests/vmath against mpmath. */
#include "t.h"

#include "../../csrc/kern/vmath.h"

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;
    int nin;
    double bound, bound_f32;
    void (*f64)(const double *x, const double *y, double *out);
    void (*f32)(const float *x, const float *y, float *out);
    long double (*want)(long double x, long double y);
} Fn;

/* -- One vector in, one out --------------------------------------------------------- */

#define ONE_VECTOR(fn, type, elem, expr)                                    \
    static void run_##fn(const elem *x, const elem *y, elem *out)           \
    {                                                                       \
        type a, b, r;                                                       \
                                                                            \
        memcpy(&a, x, sizeof(a));                                           \
        memcpy(&b, y, sizeof(b));                                           \
        (void)b;                                                            \
        r = expr;                                                           \
        memcpy(out, &r, sizeof(r));                                         \
    }

#define VM_FN1(name, f64, f32)                                              \
    ONE_VECTOR(name##_f64, vm_f64, double, vm_##name##_f64(a))              \
    ONE_VECTOR(name##_f32, vm_f32, float, vm_##name##_f32(a))
#define VM_FN2(name, f64, f32)                                              \
    ONE_VECTOR(name##_f64, vm_f64, double, vm_##name##_f64(a, b))           \
    ONE_VECTOR(name##_f32, vm_f32, float, vm_##name##_f32(a, b))
#include "../../csrc/kern/vmath.def"
#undef VM_FN1
#undef VM_FN2

static long double
logaddexp_l(long double x, long double y)
{
    return x == y ? x + logl(2) : fmaxl(x, y) + log1pl(expl(-fabsl(x - y)));
}

static long double
remainder_of(long double x, long double y)      /* Python's modulo */
{
    long double m = fmodl(x, y);

    return m == 0 ? copysignl(0, y) : (m < 0) != (y < 0) ? m + y : m;
}

static long double
quotient_of(long double x, long double y)
{
    return floorl((x - remainder_of(x, y)) / y + 0.25L);
}

#define WANT1(name, fn)                             \
    static long double                              \
    want_##name(long double x, long double y)       \
    {                                               \
        (void)y;                                    \
        return fn(x);                               \
    }
#define WANT2(name, fn)                             \
    static long double                              \
    want_##name(long double x, long double y)       \
    {                                               \
        return fn(x, y);                            \
    }

WANT1(exp, expl)
WANT1(exp2, exp2l)
WANT1(expm1, expm1l)
WANT1(log, logl)
WANT1(log2, log2l)
WANT1(log10, log10l)
WANT1(log1p, log1pl)
WANT1(sin, sinl)
WANT1(cos, cosl)
WANT1(tan, tanl)
WANT1(asin, asinl)
WANT1(acos, acosl)
WANT1(atan, atanl)
WANT1(sinh, sinhl)
WANT1(cosh, coshl)
WANT1(tanh, tanhl)
WANT1(asinh, asinhl)
WANT1(acosh, acoshl)
WANT1(atanh, atanhl)
WANT1(cbrt, cbrtl)
WANT1(erf, erfl)
WANT1(sqrt, sqrtl)
WANT1(rint, rintl)
WANT1(floor, floorl)
WANT1(ceil, ceill)
WANT1(trunc, truncl)
WANT2(pow, powl)
WANT2(atan2, atan2l)
WANT2(hypot, hypotl)
WANT2(logaddexp, logaddexp_l)
WANT2(fmod, fmodl)
WANT2(remainder, remainder_of)
WANT2(floor_divide, quotient_of)

static const Fn functions[] = {
#define VM_FN1(name, f64, f32) {#name, 1, f64, f32, run_##name##_f64, run_##name##_f32, want_##name},
#define VM_FN2(name, f64, f32) {#name, 2, f64, f32, run_##name##_f64, run_##name##_f32, want_##name},
#include "../../csrc/kern/vmath.def"
#undef VM_FN1
#undef VM_FN2
};

#define NFN ((int)(sizeof(functions) / sizeof(functions[0])))

/* -- Numbers ------------------------------------------------------------------------- */

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545F4914F6CDD1Du;
}

/* A mix: most are of moderate size, some have random bits, some are special. */
static double
some_number(uint64_t *state)
{
    static const double special[] = {0, -0.0, 1, -1, 2, 0.5, INFINITY, -INFINITY, NAN, 1e-310,
                                     -1e-310, 709.9, -746, 1e300, 0x1p52, 3};
    uint64_t u = next_random(state), pick = next_random(state) >> 60;
    double x;

    if (pick == 0) {
        return special[u >> 60];
    }
    if (pick == 1) {
        memcpy(&x, &u, sizeof(x));
        return x;
    }
    return ((double)(u >> 11) * 0x1p-53 - 0.5) * (pick < 8 ? 2 : 40);
}

/* Error in ulp of a binary format with `digits` bits and smallest exponent `least`. */
static double
ulp_off(double got, long double want, int digits, int least, long double scale)
{
    int e;

    if (isnan(want)) {
        return isnan(got) ? 0 : HUGE_VAL;
    }
    if (isinf(got) || isinf(want)) {
        return got == want || (fabsl(want) >= ldexpl(1, 3 - least) * 0.999999L
                               && isinf(got)) ? 0 : HUGE_VAL;
    }
    frexpl(scale, &e);
    if (scale == 0 || e < least) {
        e = least;
    }
    return (double)(fabsl(got - want) / ldexpl(1, e - digits));
}

static long double
scale_of(const Fn *f, long double want, double x, double y)
{
    long double s = fabsl(want);

    if (strcmp(f->name, "logaddexp") == 0) {
        s = fmaxl(s, fmaxl(fabsl(x), fabsl(y)));
    }
    return s;
}

/* The long double reference is not exact where its own rounding counts. */
static bool
reference_is_good(const Fn *f, double x, double y)
{
    if (f->bound == 0 && f->nin == 2) {     /* exact ones: only while the quotient is small */
        return isfinite(x) && isfinite(y) && y != 0 && fabs(x / y) < 1e9 && fabs(y) > 1e-290
               && fabs(x) > 1e-290;
    }
    return true;
}

static void
check_f64(const Fn *f, uint64_t *state)
{
    double x[VM_D], y[VM_D], out[VM_D], worst = 0;

    for (int round = 0; round < 4000; round++) {
        for (int i = 0; i < VM_D; i++) {
            x[i] = some_number(state);
            y[i] = some_number(state);
        }
        f->f64(x, y, out);
        for (int i = 0; i < VM_D; i++) {
            long double want = f->want(x[i], y[i]);
            double off = ulp_off(out[i], want, 53, -1021, scale_of(f, want, x[i], y[i]));

            if (!reference_is_good(f, x[i], y[i])) {
                continue;
            }
            if (off > (f->bound == 0 ? 0.5 : f->bound) + 0.01) {
                printf("%s(%a, %a) = %a, want %La\n", f->name, x[i], y[i], out[i], want);
            }
            worst = off > worst ? off : worst;
        }
    }
    T_CHECK(worst <= (f->bound == 0 ? 0.5 : f->bound) + 0.01);
}

static void
check_f32(const Fn *f, uint64_t *state)
{
    float x[VM_W], y[VM_W], out[VM_W];
    double worst = 0;

    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < VM_W; i++) {
            x[i] = (float)some_number(state);
            y[i] = (float)some_number(state);
        }
        f->f32(x, y, out);
        for (int i = 0; i < VM_W; i++) {
            long double want = f->want(x[i], y[i]);
            double off = ulp_off(out[i], want, 24, -125, scale_of(f, want, x[i], y[i]));

            if (!reference_is_good(f, x[i], y[i]) || fabs(x[i]) < 1e-37 || fabs(y[i]) < 1e-37) {
                continue;
            }
            worst = off > worst ? off : worst;
        }
    }
    T_CHECK(worst <= (f->bound_f32 == 0 ? 0.5 : f->bound_f32) + 0.01);
}

/* -- Flags ---------------------------------------------------------------------------- */

static const Fn *
find(const char *name)
{
    for (int i = 0; i < NFN; i++) {
        if (strcmp(functions[i].name, name) == 0) {
            return &functions[i];
        }
    }
    abort();
}

/* The flags raised when one lane has these arguments and the others have 0.75, 1.25. */
static int
flags_of(const char *name, double x, double y)
{
    double a[VM_D], b[VM_D], out[VM_D];

    for (int i = 0; i < VM_D; i++) {
        a[i] = name[0] == 'a' && name[1] == 'c' ? 1.0 : 0.75;
        b[i] = 1.25;
    }
    a[VM_D - 1] = x;
    b[VM_D - 1] = y;
    feclearexcept(FE_ALL_EXCEPT);
    find(name)->f64(a, b, out);
    return fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID);
}

static void
check_flags(void)
{
    T_CHECK(flags_of("log", 0, 0) == FE_DIVBYZERO);
    T_CHECK(flags_of("log", -1, 0) == FE_INVALID);
    T_CHECK(flags_of("log", INFINITY, 0) == 0);
    T_CHECK(flags_of("log1p", -1, 0) == FE_DIVBYZERO);
    T_CHECK(flags_of("exp", 1000, 0) == FE_OVERFLOW);
    T_CHECK(flags_of("exp", -1.7e308, 0) == 0);
    T_CHECK(flags_of("exp", -INFINITY, 0) == 0);
    T_CHECK(flags_of("expm1", 720, 0) == FE_OVERFLOW);
    T_CHECK(flags_of("sinh", -720, 0) == FE_OVERFLOW);
    T_CHECK(flags_of("sin", INFINITY, 0) == FE_INVALID);
    T_CHECK(flags_of("cos", 1e300, 0) == 0);
    T_CHECK(flags_of("asin", 1.5, 0) == FE_INVALID);
    T_CHECK(flags_of("acosh", 0.5, 0) == FE_INVALID);
    T_CHECK(flags_of("atanh", 1, 0) == FE_DIVBYZERO);
    T_CHECK(flags_of("atan2", 1e300, 1e-300) == 0);
    T_CHECK(flags_of("hypot", 1e300, 1e300) == 0);
    T_CHECK(flags_of("hypot", 1.7e308, 1.7e308) == FE_OVERFLOW);
    T_CHECK(flags_of("pow", 0, -1) == FE_DIVBYZERO);
    T_CHECK(flags_of("pow", -2, 0.5) == FE_INVALID);
    T_CHECK(flags_of("pow", 1e200, 2) == FE_OVERFLOW);
    T_CHECK(flags_of("pow", 1e200, 1.5) == 0);
    T_CHECK(flags_of("sqrt", -1, 0) == FE_INVALID);
    T_CHECK(flags_of("floor_divide", 1, 0) == FE_DIVBYZERO);
    T_CHECK(flags_of("remainder", 1, 0) == FE_INVALID);
    for (int i = 0; i < NFN; i++) {
        int nan = flags_of(functions[i].name, NAN, NAN);

        T_CHECK(nan == (strcmp(functions[i].name, "logaddexp") == 0 ? FE_INVALID : 0));
    }
}

int
main(void)
{
    uint64_t state = 88172645463325252u;

    for (int i = 0; i < NFN; i++) {
        int before = t_failed;

        check_f64(&functions[i], &state);
        check_f32(&functions[i], &state);
        if (t_failed != before) {
            printf("in %s\n", functions[i].name);
        }
    }
    check_flags();
    return t_failed != 0;
}
