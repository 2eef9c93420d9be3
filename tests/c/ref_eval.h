/* tests/c/ref_eval.h - the meaning of a graph in plain loops, for tests only.
 *
 * Every element is kept in the 64-bit form of cc_const_*; floats are computed in double and rounded
 * to their dtype after each op. C order, no sharing, no speed. Shapes come from the graph's dims
 * and the symbols bound by the inputs. Unknown ops make ref_eval() return false. */
#ifndef CC_REF_EVAL_H
#define CC_REF_EVAL_H

#include "base/mem.h"
#include "ir/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    CcDtype dt;
    uint32_t ndim;
    int64_t dim[CC_MAX_NDIM];
    int64_t n;
    uint64_t *e;                        /* owned */
} RefArray;

typedef struct {
    const CcGraph *g;
    RefArray *val;                      /* owned: per node */
    int64_t *sym;                       /* owned */
} RefRun;

static inline double
ref_get(const RefArray *a, int64_t i)
{
    return cc_const_f64(a->dt, a->e[i]);
}

static inline void
ref_set(RefArray *a, int64_t i, double v)
{
    a->e[i] = cc_const_from_f64(a->dt, v);
}

static inline void
ref_alloc(RefArray *a)
{
    a->n = 1;
    for (uint32_t i = 0; i < a->ndim; i++) {
        a->n *= a->dim[i];
    }
    a->e = calloc((size_t)(a->n > 0 ? a->n : 1), sizeof(*a->e));
}

/* Next index in C order; false at the end. */
static inline bool
ref_next(const RefArray *a, int64_t *idx)
{
    for (uint32_t i = a->ndim; i-- > 0;) {
        if (++idx[i] < a->dim[i]) {
            return true;
        }
        idx[i] = 0;
    }
    return false;
}

static inline int64_t
ref_flat(const RefArray *a, const int64_t *idx)
{
    int64_t at = 0;

    for (uint32_t i = 0; i < a->ndim; i++) {
        at = at * a->dim[i] + idx[i];
    }
    return at;
}

/* -- Elementwise ------------------------------------------------------------- */

static inline double
ref_float_1(int op, double x)
{
    switch (op) {
    case CC_OP_NEG: return -x;
    case CC_OP_ABS: return fabs(x);
    case CC_OP_SIGN: return x > 0 ? 1 : x < 0 ? -1 : x;
    case CC_OP_SQRT: return sqrt(x);
    case CC_OP_CBRT: return cbrt(x);
    case CC_OP_SQUARE: return x * x;
    case CC_OP_RECIP: return 1 / x;
    case CC_OP_EXP: return exp(x);
    case CC_OP_EXP2: return exp2(x);
    case CC_OP_EXPM1: return expm1(x);
    case CC_OP_LOG: return log(x);
    case CC_OP_LOG2: return log2(x);
    case CC_OP_LOG10: return log10(x);
    case CC_OP_LOG1P: return log1p(x);
    case CC_OP_SIN: return sin(x);
    case CC_OP_COS: return cos(x);
    case CC_OP_TAN: return tan(x);
    case CC_OP_ASIN: return asin(x);
    case CC_OP_ACOS: return acos(x);
    case CC_OP_ATAN: return atan(x);
    case CC_OP_SINH: return sinh(x);
    case CC_OP_COSH: return cosh(x);
    case CC_OP_TANH: return tanh(x);
    case CC_OP_ASINH: return asinh(x);
    case CC_OP_ACOSH: return acosh(x);
    case CC_OP_ATANH: return atanh(x);
    case CC_OP_ERF: return erf(x);
    case CC_OP_SIGMOID: return 1 / (1 + exp(-x));
    case CC_OP_RELU: return x <= 0 ? 0 : x;
    case CC_OP_FLOOR: return floor(x);
    case CC_OP_CEIL: return ceil(x);
    case CC_OP_TRUNC: return trunc(x);
    case CC_OP_RINT: return rint(x);
    case CC_OP_ISNAN: return isnan(x) != 0;
    case CC_OP_ISINF: return isinf(x) != 0;
    case CC_OP_ISFINITE: return isfinite(x) != 0;
    case CC_OP_SIGNBIT: return signbit(x) != 0;
    case CC_OP_GELU: return x * 0.5 * (1 + erf(x * sqrt(0.5)));
    default: return NAN;
    }
}

static inline double
ref_float_2(int op, double x, double y)
{
    double r;

    switch (op) {
    case CC_OP_ADD: return x + y;
    case CC_OP_SUB: return x - y;
    case CC_OP_MUL: return x * y;
    case CC_OP_DIV: return x / y;
    case CC_OP_FLOORDIV: return floor(x / y);
    case CC_OP_FMOD: return fmod(x, y);
    case CC_OP_MOD:
        r = fmod(x, y);
        return r != 0 && (r < 0) != (y < 0) ? r + y : r;
    case CC_OP_POW: return pow(x, y);
    case CC_OP_MAXIMUM: return isnan(x) ? x : isnan(y) ? y : x > y ? x : y;
    case CC_OP_MINIMUM: return isnan(x) ? x : isnan(y) ? y : x < y ? x : y;
    case CC_OP_FMAX: return fmax(x, y);
    case CC_OP_FMIN: return fmin(x, y);
    case CC_OP_ATAN2: return atan2(x, y);
    case CC_OP_HYPOT: return hypot(x, y);
    case CC_OP_LOGADDEXP: return (x > y ? x : y) + log1p(exp(-fabs(x - y)));
    case CC_OP_COPYSIGN: return copysign(x, y);
    case CC_OP_EQ: return x == y;
    case CC_OP_NE: return x != y;
    case CC_OP_LT: return x < y;
    case CC_OP_LE: return x <= y;
    case CC_OP_GT: return x > y;
    case CC_OP_GE: return x >= y;
    case CC_OP_LAND: return x != 0 && y != 0;
    case CC_OP_LOR: return x != 0 || y != 0;
    case CC_OP_LXOR: return (x != 0) != (y != 0);
    default: return NAN;
    }
}

/* Integers and bool; wraps by the caller. `big`: unsigned 64 bits. */
static inline uint64_t
ref_int(int op, uint64_t x, uint64_t y, bool big)
{
    int64_t a = (int64_t)x, b = (int64_t)y;
    bool less = big ? x < y : a < b;

    switch (op) {
    case CC_OP_NEG: return 0 - x;
    case CC_OP_ABS: return !big && a < 0 ? 0 - x : x;
    case CC_OP_SIGN: return x == 0 ? 0 : !big && a < 0 ? UINT64_MAX : 1;
    case CC_OP_RELU: return !big && a < 0 ? 0 : x;
    case CC_OP_ADD: return x + y;
    case CC_OP_SUB: return x - y;
    case CC_OP_MUL: return x * y;
    case CC_OP_SQUARE: return x * x;
    case CC_OP_MAXIMUM:
    case CC_OP_FMAX: return less ? y : x;
    case CC_OP_MINIMUM:
    case CC_OP_FMIN: return less ? x : y;
    case CC_OP_BAND: return x & y;
    case CC_OP_BOR: return x | y;
    case CC_OP_BXOR: return x ^ y;
    case CC_OP_BNOT: return ~x;
    case CC_OP_FLOORDIV:
        if (y == 0 || (!big && b == -1)) {
            return y == 0 ? 0 : 0 - x;
        }
        return big ? x / y : (uint64_t)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
    case CC_OP_EQ: return x == y;
    case CC_OP_NE: return x != y;
    case CC_OP_LT: return less;
    case CC_OP_LE: return less || x == y;
    case CC_OP_GT: return !less && x != y;
    case CC_OP_GE: return !less;
    case CC_OP_LAND: return x != 0 && y != 0;
    case CC_OP_LOR: return x != 0 || y != 0;
    case CC_OP_LXOR: return (x != 0) != (y != 0);
    case CC_OP_LNOT: return x == 0;
    default: return 0;
    }
}

static inline void
ref_ew(const CcNode *nd, RefArray *out, RefArray *const *in)
{
    CcDtype dt = in[0]->dt;

    for (int64_t i = 0; i < out->n; i++) {
        if (nd->op == CC_OP_WHERE) {
            out->e[i] = in[0]->e[i] != 0 ? in[1]->e[i] : in[2]->e[i];
        }
        else if (nd->op == CC_OP_CAST && !cc_dtype_is_float(dt) && !cc_dtype_is_float(out->dt)) {
            out->e[i] = cc_const_from_i64(out->dt, (int64_t)in[0]->e[i]);
        }
        else if (nd->op == CC_OP_CAST) {
            out->e[i] = cc_const_from_f64(out->dt, ref_get(in[0], i));
        }
        else if (!cc_dtype_is_float(dt)) {
            uint64_t y = nd->narg > 1 ? in[1]->e[i] : 0;
            uint64_t r = ref_int(nd->op, in[0]->e[i], y, dt == CC_DTYPE_U64);
            out->e[i] = cc_const_from_i64(out->dt, (int64_t)r);
        }
        else if (nd->op == CC_OP_LNOT) {
            out->e[i] = ref_get(in[0], i) == 0;
        }
        else if (nd->narg == 1) {
            ref_set(out, i, ref_float_1(nd->op, ref_get(in[0], i)));
        }
        else {
            ref_set(out, i, ref_float_2(nd->op, ref_get(in[0], i), ref_get(in[1], i)));
        }
    }
}

/* -- Reductions, scans ------------------------------------------------------- */

typedef struct {
    double sum, best;
    uint64_t isum;
    int64_t count, place;
} RefFold;

static inline bool
ref_beats(double v, double best, bool max)
{
    return !isnan(best) && (isnan(v) || (max ? v > best : v < best));
}

static inline void
ref_red(const CcNode *nd, const int64_t *attr, RefArray *out, const RefArray *in)
{
    RefFold *fold = calloc((size_t)(out->n > 0 ? out->n : 1), sizeof(*fold));
    RefFold *dev = NULL;
    int64_t idx[CC_MAX_NDIM] = {0};
    bool max = nd->op == CC_OP_MAX || nd->op == CC_OP_ARGMAX;
    bool spread = nd->op == CC_OP_VAR || nd->op == CC_OP_STD;
    bool all = (uint64_t)attr[0] == (UINT64_C(1) << in->ndim) - 1;

    for (int round = 0; round < (spread ? 2 : 1); round++) {
        for (int64_t i = 0; i < in->n; i++) {
            int64_t at = 0, axis = 0;
            for (uint32_t k = 0; k < in->ndim; k++) {
                if ((attr[0] >> k & 1) != 0) {
                    axis = idx[k];
                }
                else {
                    at = at * in->dim[k] + idx[k];
                }
            }
            RefFold *f = round == 0 ? &fold[at] : &dev[at];
            double v = ref_get(in, i);
            if (round == 1) {
                double d = v - fold[at].sum / (double)fold[at].count;
                f->sum += d * d;
            }
            else {
                bool first = f->count++ == 0;
                f->sum = nd->op == CC_OP_PROD ? (first ? v : f->sum * v) : f->sum + v;
                f->isum = nd->op == CC_OP_PROD ? (first ? in->e[i] : f->isum * in->e[i])
                                               : f->isum + in->e[i];
                if (first || ref_beats(v, f->best, max)) {
                    f->best = v;
                    f->place = all ? i : axis;
                }
                bool truth = v != 0;
                f->sum = nd->op == CC_OP_ANY ? (first ? truth : f->sum != 0 || truth)
                       : nd->op == CC_OP_ALL ? (first ? truth : f->sum != 0 && truth) : f->sum;
            }
            ref_next(in, idx);
        }
        if (round == 0 && spread) {
            dev = calloc((size_t)(out->n > 0 ? out->n : 1), sizeof(*dev));
        }
    }
    for (int64_t i = 0; i < out->n; i++) {
        double n = (double)fold[i].count, rest = spread ? n - (double)attr[1] : 1;
        switch (nd->op) {
        case CC_OP_SUM:
        case CC_OP_PROD:
            if (!cc_dtype_is_float(out->dt)) {
                out->e[i] = cc_const_from_i64(out->dt, (int64_t)fold[i].isum);
                break;
            }
            ref_set(out, i, fold[i].count == 0 && nd->op == CC_OP_PROD ? 1 : fold[i].sum);
            break;
        case CC_OP_ANY:
        case CC_OP_ALL:
            out->e[i] = fold[i].count == 0 ? nd->op == CC_OP_ALL : fold[i].sum != 0;
            break;
        case CC_OP_MEAN:
            ref_set(out, i, fold[i].sum / n);
            break;
        case CC_OP_VAR:
            ref_set(out, i, dev[i].sum / (rest > 0 ? rest : 0));
            break;
        case CC_OP_STD:
            ref_set(out, i, sqrt(dev[i].sum / (rest > 0 ? rest : 0)));
            break;
        case CC_OP_ARGMAX:
        case CC_OP_ARGMIN:
            out->e[i] = (uint64_t)fold[i].place;
            break;
        default:
            ref_set(out, i, fold[i].best);
            break;
        }
    }
    free(fold);
    free(dev);
}

static inline void
ref_scan(const CcNode *nd, int64_t axis, RefArray *out, const RefArray *in)
{
    int64_t inner = 1, len = in->dim[axis];

    for (uint32_t k = (uint32_t)axis + 1; k < in->ndim; k++) {
        inner *= in->dim[k];
    }
    for (int64_t i = 0; i < in->n; i++) {
        if (i / inner % len != 0) {
            continue;
        }
        double acc = 0, best = -INFINITY;
        for (int64_t k = 0; k < len; k++) {
            best = fmax(best, ref_get(in, i + k * inner));
        }
        for (int64_t k = 0; k < len; k++) {
            double v = ref_get(in, i + k * inner);
            if (nd->op == CC_OP_CUMSUM || nd->op == CC_OP_CUMPROD) {
                acc = k == 0 ? v : nd->op == CC_OP_CUMSUM ? acc + v : acc * v;
                ref_set(out, i + k * inner, acc);
                acc = ref_get(out, i + k * inner);
            }
            else {
                acc += exp(v - best);
            }
        }
        for (int64_t k = 0; k < len; k++) {
            double off = ref_get(in, i + k * inner) - best;
            if (nd->op == CC_OP_SOFTMAX) {
                ref_set(out, i + k * inner, exp(off) / acc);
            }
            else if (nd->op == CC_OP_LOGSOFTMAX) {
                ref_set(out, i + k * inner, off - log(acc));
            }
        }
    }
}

/* -- Moves, indexing --------------------------------------------------------- */

/* The element of in[0] that stands at `idx` of the result; -1: none (PAD). */
static inline int64_t
ref_source(const RefRun *run, CcRef r, const RefArray *in, const int64_t *idx)
{
    const CcNode *nd = &run->g->node[r];
    const int64_t *attr = cc_attrs(run->g, r);
    int64_t from[CC_MAX_NDIM] = {0};

    for (uint32_t i = 0; i < in->ndim; i++) {
        switch (nd->op) {
        case CC_OP_TRANSPOSE:
            from[attr[i]] = idx[i];
            break;
        case CC_OP_BROADCAST:
            from[i] = in->dim[i] == 1 ? 0 : idx[nd->ndim - in->ndim + i];
            break;
        case CC_OP_SLICE:
            from[i] = cc_dim_eval(run->g, (CcDim)attr[i], run->sym) + idx[i] * attr[in->ndim + i];
            break;
        default:                        /* PAD */
            from[i] = idx[i] - cc_dim_eval(run->g, (CcDim)attr[i], run->sym);
            break;
        }
        if (from[i] < 0 || from[i] >= in->dim[i]) {
            return -1;
        }
    }
    return ref_flat(in, from);
}

static inline void
ref_update(const RefRun *run, CcRef r, RefArray *out, const RefArray *base, const RefArray *value)
{
    const int64_t *attr = cc_attrs(run->g, r);
    int64_t idx[CC_MAX_NDIM] = {0}, to[CC_MAX_NDIM] = {0};

    memcpy(out->e, base->e, (size_t)out->n * sizeof(*out->e));
    for (int64_t i = 0; i < value->n; i++) {
        for (uint32_t k = 0; k < out->ndim; k++) {
            to[k] = cc_dim_eval(run->g, (CcDim)attr[k], run->sym) + idx[k] * attr[out->ndim + k];
        }
        out->e[ref_flat(out, to)] = value->e[i];
        ref_next(value, idx);
    }
}

static inline void
ref_concat(const RefRun *run, CcRef r, RefArray *out)
{
    int64_t axis = cc_attrs(run->g, r)[0], offset = 0;

    for (uint32_t k = 0; k < run->g->node[r].narg; k++) {
        const RefArray *part = &run->val[cc_arg(run->g, r, k)];
        int64_t idx[CC_MAX_NDIM] = {0}, to[CC_MAX_NDIM] = {0};
        for (int64_t i = 0; i < part->n; i++) {
            memcpy(to, idx, sizeof(to));
            to[axis] += offset;
            out->e[ref_flat(out, to)] = part->e[i];
            ref_next(part, idx);
        }
        offset += part->dim[axis];
    }
}

/* GATHER: out = places of base; SCATTER: out = base with them set or added. */
static inline bool
ref_index(const CcNode *nd, int64_t axis, RefArray *out, RefArray *const *in)
{
    const RefArray *base = in[0], *index = in[1];
    int64_t inner = 1, outer = 1, at = 0;

    for (uint32_t i = 0; i < base->ndim; i++) {
        outer *= i < (uint32_t)axis ? base->dim[i] : 1;
        inner *= i > (uint32_t)axis ? base->dim[i] : 1;
    }
    if (nd->op != CC_OP_GATHER) {
        memcpy(out->e, base->e, (size_t)out->n * sizeof(*out->e));
    }
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t k = 0; k < index->n; k++) {
            int64_t place = (int64_t)index->e[k];
            place += place < 0 ? base->dim[axis] : 0;
            if (place < 0 || place >= base->dim[axis]) {
                return false;
            }
            for (int64_t i = 0; i < inner; i++, at++) {
                int64_t cell = (o * base->dim[axis] + place) * inner + i;
                if (nd->op == CC_OP_GATHER) {
                    out->e[at] = base->e[cell];
                }
                else if (nd->op == CC_OP_SCATTER) {
                    out->e[cell] = in[2]->e[at];
                }
                else {
                    ref_set(out, cell, ref_get(out, cell) + ref_get(in[2], at));
                }
            }
        }
    }
    return true;
}

/* -- Heavy ------------------------------------------------------------------- */

static inline void
ref_matmul(const int64_t *attr, RefArray *out, const RefArray *a, const RefArray *b)
{
    int64_t m = out->dim[out->ndim - 2], n = out->dim[out->ndim - 1];
    int64_t k = a->dim[a->ndim - (attr[0] ? 2 : 1)];
    int64_t batches = m * n == 0 ? 0 : out->n / (m * n);

    for (int64_t s = 0; s < batches; s++) {
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++) {
                    sum += ref_get(a, s * m * k + (attr[0] ? l * m + i : i * k + l))
                         * ref_get(b, s * k * n + (attr[1] ? j * k + l : l * n + j));
                }
                ref_set(out, (s * m + i) * n + j, sum);
            }
        }
    }
}

/* y = x * w in all three roles: adds one product into the result that op computes. */
static inline void
ref_conv(int op, const int64_t *at, RefArray *out, const RefArray *p, const RefArray *q)
{
    const RefArray *x = op == CC_OP_CONV2D ? p : op == CC_OP_CONV2D_DX ? out : q;
    const RefArray *w = op == CC_OP_CONV2D_DW ? out : q;
    const RefArray *y = op == CC_OP_CONV2D ? out : p;
    int64_t outs = w->dim[0] / at[8], yi[4] = {0};

    for (int64_t s = 0; s < y->n; s++, ref_next(y, yi)) {
        for (int64_t c = 0; c < w->dim[1]; c++) {
            for (int64_t kh = 0; kh < w->dim[2]; kh++) {
                for (int64_t kw = 0; kw < w->dim[3]; kw++) {
                    int64_t h = yi[2] * at[0] - at[2] + kh * at[6];
                    int64_t v = yi[3] * at[1] - at[4] + kw * at[7];
                    if (h < 0 || h >= x->dim[2] || v < 0 || v >= x->dim[3]) {
                        continue;
                    }
                    int64_t xi[4] = {yi[0], yi[1] / outs * w->dim[1] + c, h, v};
                    int64_t wi[4] = {yi[1], c, kh, kw};
                    int64_t fx = ref_flat(x, xi), fw = ref_flat(w, wi);
                    int64_t to = op == CC_OP_CONV2D ? s : op == CC_OP_CONV2D_DX ? fx : fw;
                    double f = (op == CC_OP_CONV2D_DX ? 1 : ref_get(x, fx))
                             * (op == CC_OP_CONV2D_DW ? 1 : ref_get(w, fw))
                             * (op == CC_OP_CONV2D ? 1 : ref_get(y, s));
                    ref_set(out, to, ref_get(out, to) + f);
                }
            }
        }
    }
}

static inline void
ref_maxpool(int op, const int64_t *at, RefArray *out, const RefArray *x)
{
    int64_t yi[4] = {0};

    for (int64_t s = 0; s < out->n; s++, ref_next(out, yi)) {
        double best = 0;
        int64_t place = -1;
        for (int64_t kh = 0; kh < at[0]; kh++) {
            for (int64_t kw = 0; kw < at[1]; kw++) {
                int64_t h = yi[2] * at[2] - at[4] + kh, w = yi[3] * at[3] - at[6] + kw;
                if (h < 0 || h >= x->dim[2] || w < 0 || w >= x->dim[3]) {
                    continue;
                }
                int64_t xi[4] = {yi[0], yi[1], h, w};
                double v = ref_get(x, ref_flat(x, xi));
                if (place < 0 || ref_beats(v, best, true)) {
                    best = v;
                    place = h * x->dim[3] + w;
                }
            }
        }
        if (op == CC_OP_MAXPOOL2D) {
            ref_set(out, s, best);
        }
        else {
            out->e[s] = (uint64_t)place;
        }
    }
}

static inline void
ref_maxpool_dx(const int64_t *at, RefArray *out, const RefArray *dy, const RefArray *x)
{
    int64_t plane = dy->dim[2] * dy->dim[3], cells = out->dim[2] * out->dim[3];
    RefArray place = *dy;

    place.e = malloc((size_t)(dy->n + 1) * sizeof(*place.e));
    ref_maxpool(CC_OP_MAXPOOL2D_ARG, at, &place, x);
    for (int64_t i = 0; i < dy->n; i++) {
        int64_t to = i / plane * cells + (int64_t)place.e[i];
        ref_set(out, to, ref_get(out, to) + ref_get(dy, i));
    }
    free(place.e);
}

/* -- Whole graphs ------------------------------------------------------------ */

static inline bool
ref_move(const RefRun *run, CcRef r, RefArray *out, RefArray *const *in)
{
    int64_t idx[CC_MAX_NDIM] = {0};

    switch (run->g->node[r].op) {
    case CC_OP_RESHAPE:
        memcpy(out->e, in[0]->e, (size_t)out->n * sizeof(*out->e));
        return out->n == in[0]->n;
    case CC_OP_UPDATE:
        ref_update(run, r, out, in[0], in[1]);
        return true;
    case CC_OP_CONCAT:
        ref_concat(run, r, out);
        return true;
    default:
        for (int64_t i = 0; i < out->n; i++, ref_next(out, idx)) {
            int64_t from = ref_source(run, r, in[0], idx);
            if (from < 0 && run->g->node[r].op != CC_OP_PAD) {
                return false;
            }
            out->e[i] = from < 0 ? in[1]->e[0] : in[0]->e[from];
        }
        return true;
    }
}

static inline bool
ref_node(const RefRun *run, CcRef r)
{
    const CcGraph *g = run->g;
    const CcNode *nd = &g->node[r];
    const int64_t *attr = cc_attrs(g, r);
    RefArray *out = &run->val[r], *in[3] = {NULL, NULL, NULL};

    for (uint32_t i = 0; i < nd->narg && i < 3; i++) {
        in[i] = &run->val[cc_arg(g, r, i)];
    }
    switch (nd->op) {
    case CC_OP_PARAM:
        return true;
    case CC_OP_CONST:
        out->e[0] = nd->bits;
        return true;
    case CC_OP_SIZE:
        out->e[0] = (uint64_t)cc_dim_eval(g, (CcDim)attr[0], run->sym);
        return true;
    case CC_OP_IOTA:
        for (int64_t i = 0; i < out->n; i++) {
            ref_set(out, i, ref_get(in[0], 0) + (double)i * ref_get(in[1], 0));
        }
        return true;
    case CC_OP_MATMUL:
        ref_matmul(attr, out, in[0], in[1]);
        return true;
    case CC_OP_CONV2D:
    case CC_OP_CONV2D_DX:
    case CC_OP_CONV2D_DW:
        ref_conv(nd->op, attr, out, in[0], in[1]);
        for (int64_t s = 0, plane = out->dim[2] * out->dim[3]; nd->narg == 3 && s < out->n; s++) {
            ref_set(out, s, ref_get(out, s) + ref_get(in[2], s / plane % out->dim[1]));
        }
        return true;
    case CC_OP_MAXPOOL2D:
    case CC_OP_MAXPOOL2D_ARG:
        ref_maxpool(nd->op, attr, out, in[0]);
        return true;
    case CC_OP_MAXPOOL2D_DX:
        ref_maxpool_dx(attr, out, in[0], in[1]);
        return true;
    case CC_OP_GELU:
        ref_ew(nd, out, in);
        return true;
    case CC_OP_SOFTMAX:
    case CC_OP_LOGSOFTMAX:
        ref_scan(nd, attr[0], out, in[0]);
        return true;
    default:
        break;
    }
    switch (cc_op_info[nd->op].cls) {
    case CC_CLASS_EW:
        ref_ew(nd, out, in);
        return true;
    case CC_CLASS_RED:
    case CC_CLASS_COMP:
        ref_red(nd, attr, out, in[0]);
        return true;
    case CC_CLASS_SCAN:
        ref_scan(nd, attr[0], out, in[0]);
        return true;
    case CC_CLASS_MOVE:
        return ref_move(run, r, out, in);
    case CC_CLASS_INDEX:
        return ref_index(nd, attr[0], out, in);
    default:
        return false;
    }
}

static inline void
ref_fini(RefRun *run)
{
    for (CcRef r = 1; run->val != NULL && r < run->g->len; r++) {
        free(run->val[r].e);
    }
    free(run->val);
    free(run->sym);
    run->val = NULL;
    run->sym = NULL;
}

/* Values of all nodes for these inputs (one per parameter, copied). False: an op without a meaning
 * here, an index out of range, a guard or size that does not hold. */
static inline bool
ref_eval(RefRun *run, const CcGraph *g, const RefArray *input)
{
    run->g = g;
    run->val = calloc(g->len + 1u, sizeof(*run->val));
    run->sym = calloc(CC_MAX_SYM, sizeof(*run->sym));
    for (uint32_t k = g->nparam; k-- > 0;) {    /* the first parameter wins */
        CcRef r = g->param[k].node;
        if (g->param[k].sym != 0) {
            run->sym[g->param[k].sym] = (int64_t)input[k].e[0];
        }
        for (uint32_t i = g->node[r].ndim; i-- > 0;) {
            const CcDimRow *row = &g->dims.row[cc_shape(g, r)[i]];
            if (row->kind == CC_DIM_SYM) {
                run->sym[row->value] = input[k].dim[i];
            }
        }
    }
    if (!cc_graph_guards_hold(g, run->sym, NULL)) {
        return false;
    }
    uint32_t nparam = 0;
    for (CcRef r = 1; r < g->len; r++) {
        RefArray *a = &run->val[r];
        a->dt = (CcDtype)g->node[r].dtype;
        a->ndim = g->node[r].ndim;
        for (uint32_t i = 0; i < a->ndim; i++) {
            a->dim[i] = cc_dim_eval(g, cc_shape(g, r)[i], run->sym);
            if (a->dim[i] < 0) {
                return false;
            }
        }
        ref_alloc(a);
        if (g->node[r].op == CC_OP_PARAM) {
            const RefArray *from = &input[nparam++];
            if (from->n != a->n || from->dt != a->dt) {
                return false;
            }
            memcpy(a->e, from->e, (size_t)a->n * sizeof(*a->e));
        }
        if (!ref_node(run, r)) {
            return false;
        }
    }
    return true;
}

/* Equal bits; NaN equals NaN. */
static inline bool
ref_equal(const RefArray *a, const RefArray *b)
{
    if (a->dt != b->dt || a->n != b->n || a->ndim != b->ndim) {
        return false;
    }
    for (int64_t i = 0; i < a->n; i++) {
        bool nan = cc_dtype_is_float(a->dt) && isnan(ref_get(a, i)) && isnan(ref_get(b, i));
        if (a->e[i] != b->e[i] && !nan) {
            return false;
        }
    }
    return true;
}

#endif
