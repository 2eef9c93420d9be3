/* pass/algebra.c - replace nodes by simpler ones: an operand, a composed move, a constant.
 *
 * Needs dtypes and shapes. Leaves dead nodes for dce.
 * Rule 1: a rewrite keeps dtype and shape.
 * Rule 2: a rewrite is bit-exact under IEEE 754 in every rounding mode (NaN payloads apart): no
 *         x + 0 -> x (wrong for -0.0), and constants are folded only where the result is exact.
 * Rule 3: a rewrite drops no fault: what it replaces cannot raise (x * 1, moves, exact results).
 * Each node is rewritten until no rule applies; every rule makes the expression above a node's
 * operands smaller, so this ends. */
#include "../base/mem.h"
#include "../ir/build.h"
#include "pass.h"

#include <float.h>
#include <math.h>

/* -- Constants ------------------------------------------------------------------------- */

/* True when all elements of r are one constant: CONST behind any BROADCAST and RESHAPE. */
static bool
algebra_const(const CcGraph *g, CcRef r, uint64_t *bits)
{
    while (g->node[r].op == CC_OP_BROADCAST || g->node[r].op == CC_OP_RESHAPE) {
        r = cc_arg(g, r, 0);
    }
    *bits = g->node[r].bits;
    return g->node[r].op == CC_OP_CONST;
}

static bool
algebra_is(const CcGraph *g, CcRef r, int value)
{
    CcDtype dt = (CcDtype)g->node[r].dtype;
    uint64_t bits;

    return algebra_const(g, r, &bits) && bits == cc_const_from_i64(dt, value);
}

/* x op y for integers; wraps. False: not folded. */
static bool
fold_int(CcOp op, CcDtype dt, uint64_t x, uint64_t y, uint64_t *res)
{
    switch (op) {
    case CC_OP_NEG:
        *res = 0 - x;
        break;
    case CC_OP_ADD:
        *res = x + y;
        break;
    case CC_OP_SUB:
        *res = x - y;
        break;
    case CC_OP_MUL:
        *res = x * y;
        break;
    case CC_OP_SQUARE:
        *res = x * x;
        break;
    case CC_OP_BAND:
        *res = x & y;
        break;
    case CC_OP_BOR:
        *res = x | y;
        break;
    case CC_OP_BXOR:
        *res = x ^ y;
        break;
    case CC_OP_BNOT:
        *res = ~x;
        break;
    default:
        return false;
    }
    *res = cc_const_from_i64(dt, (int64_t)*res);
    return true;
}

/* x op y for floats, when the result is finite, exact and no zero whose sign depends on the
 * rounding mode. f32 operands are computed in double, and the result must be an f32 as it is. */
static bool
fold_float(CcOp op, CcDtype dt, double x, double y, uint64_t *res)
{
    double r;

    switch (op) {
    case CC_OP_NEG:
        r = -x;
        break;
    case CC_OP_ABS:
        r = fabs(x);
        break;
    case CC_OP_ADD:
    case CC_OP_SUB: {
        y = op == CC_OP_SUB ? -y : y;
        r = x + y;
        double t = r - x;
        if (r == 0 || (x - (r - t)) + (y - t) != 0) {
            return false;
        }
        break;
    }
    case CC_OP_SQUARE:
        return fold_float(CC_OP_MUL, dt, x, x, res);
    case CC_OP_MUL:
        r = x * y;
        if (fabs(r) < DBL_MIN * 0x1p60 || fma(x, y, -r) != 0) {
            return false;
        }
        break;
    case CC_OP_DIV:
        r = x / y;
        if (y == 0 || fabs(r) < DBL_MIN * 0x1p60 || fabs(x) < DBL_MIN * 0x1p60
            || fma(r, y, -x) != 0) {
            return false;
        }
        break;
    case CC_OP_FLOOR:
        r = floor(x);
        break;
    case CC_OP_CEIL:
        r = ceil(x);
        break;
    case CC_OP_TRUNC:
        r = trunc(x);
        break;
    default:
        return false;
    }
    *res = cc_const_from_f64(dt, r);
    return isfinite(r) && cc_const_f64(dt, *res) == r && (r == 0 || fabs(r) >= (double)FLT_MIN);
}

static bool
fold_compare(CcOp op, double x, double y, uint64_t *res)
{
    switch (op) {
    case CC_OP_EQ:
        *res = x == y;
        return true;
    case CC_OP_NE:
        *res = x != y;
        return true;
    case CC_OP_LT:
        *res = x < y;
        return true;
    case CC_OP_LE:
        *res = x <= y;
        return true;
    case CC_OP_GT:
        *res = x > y;
        return true;
    case CC_OP_GE:
        *res = x >= y;
        return true;
    case CC_OP_LAND:
        *res = x != 0 && y != 0;
        return true;
    case CC_OP_LOR:
        *res = x != 0 || y != 0;
        return true;
    case CC_OP_LXOR:
        *res = (x != 0) != (y != 0);
        return true;
    case CC_OP_LNOT:
        *res = x == 0;
        return true;
    default:
        return false;
    }
}

/* True when every value of dtype a is a value of dtype b. */
static bool
dtype_widens(CcDtype a, CcDtype b)
{
    const CcDtypeInfo *x = &cc_dtype_info[a], *y = &cc_dtype_info[b];

    if (a == b || a == CC_DTYPE_BOOL) {
        return true;
    }
    if (y->cls == CC_DCLASS_FLOAT) {    /* 24 and 53 bits of significand */
        return x->cls == CC_DCLASS_FLOAT ? x->size < y->size : 2 * x->size <= y->size;
    }
    if (x->cls == CC_DCLASS_FLOAT || y->cls == CC_DCLASS_BOOL) {
        return false;
    }
    return x->cls == y->cls ? x->size <= y->size : x->cls == CC_DCLASS_UINT && x->size < y->size;
}

/* The exact value of a constant as a double exists. */
static bool
const_is_double(CcDtype dt, uint64_t bits)
{
    const int64_t limit = INT64_C(1) << 53;

    if (dt == CC_DTYPE_U64) {
        return bits <= (uint64_t)limit;
    }
    return dt != CC_DTYPE_I64 || ((int64_t)bits >= -limit && (int64_t)bits <= limit);
}

static bool
fold_cast(CcDtype from, CcDtype to, uint64_t bits, uint64_t *res)
{
    if (!cc_dtype_is_float(from) && !cc_dtype_is_float(to)) {
        *res = cc_const_from_i64(to, (int64_t)bits);
        return true;
    }
    if (!const_is_double(from, bits)) {
        return false;
    }
    double x = cc_const_f64(from, bits);
    if (!isfinite(x)) {
        return false;
    }
    *res = cc_const_from_f64(to, x);
    return cc_const_f64(to, *res) == x && (x == 0 || fabs(x) >= (double)FLT_MIN);
}

/* The constant that node r always is. */
static bool
algebra_fold(const CcGraph *g, CcRef r, uint64_t *res)
{
    const CcNode *nd = &g->node[r];
    uint64_t bits[2] = {0, 0};
    double x[2];

    if (cc_info(g, r)->cls != CC_CLASS_EW || nd->narg > 2) {
        return false;
    }
    CcDtype dt = (CcDtype)g->node[cc_arg(g, r, 0)].dtype;
    for (uint32_t i = 0; i < nd->narg; i++) {
        if (!algebra_const(g, cc_arg(g, r, i), &bits[i])) {
            return false;
        }
        x[i] = cc_const_f64(dt, bits[i]);
    }
    x[1] = nd->narg < 2 ? 0 : x[1];
    if (nd->op == CC_OP_CAST) {
        return fold_cast(dt, (CcDtype)nd->dtype, bits[0], res);
    }
    if (const_is_double(dt, bits[0]) && const_is_double(dt, bits[1])
        && fold_compare((CcOp)nd->op, x[0], x[1], res)) {
        return true;
    }
    if (cc_dtype_is_float(dt)) {
        return nd->dtype == dt && fold_float((CcOp)nd->op, dt, x[0], x[1], res);
    }
    return dt != CC_DTYPE_BOOL && nd->dtype == dt
        && fold_int((CcOp)nd->op, dt, bits[0], bits[1], res);
}

/* -- Same as an operand ------------------------------------------------------------------ */

static CcRef
algebra_arith(const CcGraph *g, CcRef r)
{
    const CcNode *nd = &g->node[r];
    CcRef a = nd->narg > 0 ? cc_arg(g, r, 0) : 0, b = nd->narg > 1 ? cc_arg(g, r, 1) : 0;
    bool integer = cc_dtype_is_int((CcDtype)nd->dtype);

    switch (nd->op) {
    case CC_OP_MUL:
        return algebra_is(g, b, 1) ? a : algebra_is(g, a, 1) ? b : r;
    case CC_OP_DIV:
    case CC_OP_POW:
        return algebra_is(g, b, 1) ? a : r;
    case CC_OP_FLOORDIV:
        return integer && algebra_is(g, b, 1) ? a : r;
    case CC_OP_ADD:
        return !integer ? r : algebra_is(g, b, 0) ? a : algebra_is(g, a, 0) ? b : r;
    case CC_OP_SUB:
        return integer && algebra_is(g, b, 0) ? a : r;
    case CC_OP_NEG:
    case CC_OP_BNOT:
        return g->node[a].op == nd->op ? cc_arg(g, a, 0) : r;
    case CC_OP_LNOT:
        if (g->node[a].op == CC_OP_LNOT && g->node[cc_arg(g, a, 0)].dtype == CC_DTYPE_BOOL) {
            return cc_arg(g, a, 0);
        }
        return r;
    case CC_OP_ABS:
    case CC_OP_RELU:
    case CC_OP_FLOOR:
    case CC_OP_CEIL:
    case CC_OP_TRUNC:
    case CC_OP_RINT:
    case CC_OP_SIGN:
        return g->node[a].op == nd->op ? a : r;
    case CC_OP_WHERE:
        if (b == cc_arg(g, r, 2)) {
            return b;
        }
        return algebra_is(g, a, 1) ? b : algebra_is(g, a, 0) ? cc_arg(g, r, 2) : r;
    default:
        return (cc_info(g, r)->flags & CC_OPF_IDEMPOTENT) != 0 && a == b ? a : r;
    }
}

static bool
all_dims_are(const CcGraph *g, CcRef r, uint32_t first, uint32_t n, int64_t value)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!cc_dim_equals(g, (CcDim)cc_attrs(g, r)[first + i], value)) {
            return false;
        }
    }
    return true;
}

static bool
all_ints_are(const CcGraph *g, CcRef r, uint32_t first, uint32_t n, int64_t value)
{
    for (uint32_t i = 0; i < n; i++) {
        if (cc_attrs(g, r)[first + i] != value) {
            return false;
        }
    }
    return true;
}

static bool
same_slice(const CcGraph *g, CcRef a, CcRef b)
{
    for (uint32_t i = 0; i < g->node[a].nattr; i++) {
        int64_t p = cc_attrs(g, a)[i], q = cc_attrs(g, b)[i];
        if (i < g->node[a].nattr / 2u ? !cc_dim_same(g, (CcDim)p, (CcDim)q) : p != q) {
            return false;
        }
    }
    return true;
}

static CcRef
algebra_still(const CcGraph *g, CcRef r)        /* moves that move nothing */
{
    const CcNode *nd = &g->node[r];
    CcRef a = nd->narg > 0 ? cc_arg(g, r, 0) : 0;
    uint32_t ndim = g->node[a].ndim;

    switch (nd->op) {
    case CC_OP_RESHAPE:
    case CC_OP_BROADCAST:
        return cc_same_shape(g, r, a) ? a : r;
    case CC_OP_TRANSPOSE:
        for (uint32_t i = 0; i < ndim; i++) {
            if (cc_attrs(g, r)[i] != i) {
                return r;
            }
        }
        return a;
    case CC_OP_SLICE:
        if (g->node[a].op == CC_OP_UPDATE && same_slice(g, r, a)
            && cc_same_shape(g, r, cc_arg(g, a, 1))) {
            return cc_arg(g, a, 1);
        }
        return cc_same_shape(g, r, a) && all_dims_are(g, r, 0, ndim, 0)
                   && all_ints_are(g, r, ndim, ndim, 1) ? a : r;
    case CC_OP_UPDATE:
        return cc_same_shape(g, r, cc_arg(g, r, 1)) && all_dims_are(g, r, 0, ndim, 0)
                   && all_ints_are(g, r, ndim, ndim, 1) ? cc_arg(g, r, 1) : r;
    case CC_OP_PAD:
        return all_dims_are(g, r, 0, 2 * ndim, 0) ? a : r;
    case CC_OP_CONCAT:
        return nd->narg == 1 ? a : r;
    case CC_OP_SUM:                     /* starts at +0.0, so it turns -0.0 into that */
        return cc_attrs(g, r)[0] == 0 && !cc_dtype_is_float((CcDtype)nd->dtype) ? a : r;
    case CC_OP_PROD:
    case CC_OP_MAX:
    case CC_OP_MIN:
        return cc_attrs(g, r)[0] == 0 ? a : r;
    case CC_OP_ANY:
    case CC_OP_ALL:
        return cc_attrs(g, r)[0] == 0 && g->node[a].dtype == CC_DTYPE_BOOL ? a : r;
    default:
        return r;
    }
}

/* -- Two nodes in one ---------------------------------------------------------------------- */

static void
copy_shape(const CcGraph *g, CcRef r, CcDim *dim)
{
    for (uint32_t i = 0; i < g->node[r].ndim; i++) {
        dim[i] = cc_shape(g, r)[i];
    }
}

static CcRef
compose_cast(CcGraph *g, CcRef r, CcStatus *st)
{
    CcRef a = cc_arg(g, r, 0);
    CcDtype to = (CcDtype)g->node[r].dtype, mid = (CcDtype)g->node[a].dtype;

    if (to == mid) {
        return a;
    }
    if (g->node[a].op != CC_OP_CAST) {
        return r;
    }
    CcRef x = cc_arg(g, a, 0);
    CcDtype from = (CcDtype)g->node[x].dtype;
    /* integer -> float -> narrower integer: out of range is a fault there, wrapping here */
    bool wraps = cc_dtype_is_float(mid) && !cc_dtype_is_float(from) && cc_dtype_is_int(to)
              && !dtype_widens(from, to);
    return dtype_widens(from, mid) && !wraps ? cc_build_cast(g, x, to, st) : r;
}

static CcRef
compose_slice(CcGraph *g, CcRef r, CcStatus *st)
{
    CcRef a = cc_arg(g, r, 0);
    CcDim start[CC_MAX_NDIM], size[CC_MAX_NDIM];
    int64_t step[CC_MAX_NDIM];
    uint32_t ndim = g->node[r].ndim;

    copy_shape(g, r, size);
    for (uint32_t i = 0; i < ndim; i++) {       /* inner[s + (start + i*step) * t] */
        int64_t t = cc_attrs(g, a)[ndim + i];
        CcDim factor = cc_dim_const(g, t, st);
        CcDim from = (CcDim)cc_attrs(g, r)[i], base = (CcDim)cc_attrs(g, a)[i];
        CcDim by = factor == 0 ? 0 : cc_dim_make(g, CC_DIM_MUL, from, factor, st);
        start[i] = by == 0 ? 0 : cc_dim_make(g, CC_DIM_ADD, base, by, st);
        if (start[i] == 0) {
            return 0;
        }
        if (__builtin_mul_overflow(t, cc_attrs(g, r)[ndim + i], &step[i])) {
            return r;
        }
    }
    return cc_build_slice(g, cc_arg(g, a, 0), start, step, size, st);
}

/* A move of equal elements: BROADCAST of a 0-d node to the result's shape. */
static bool
moves_scalar(const CcGraph *g, CcRef r)
{
    CcRef a = cc_arg(g, r, 0);
    CcOp op = (CcOp)g->node[r].op;
    bool moves = op == CC_OP_RESHAPE || op == CC_OP_TRANSPOSE || op == CC_OP_SLICE;

    return moves && g->node[a].op == CC_OP_BROADCAST && g->node[cc_arg(g, a, 0)].ndim == 0;
}

/* RESHAPE that only puts axes of size 1 in front, or takes them away: no concern of a BROADCAST. */
static bool
pads_front(const CcGraph *g, CcRef r)
{
    if (g->node[r].op != CC_OP_RESHAPE) {
        return false;
    }
    CcRef x = cc_arg(g, r, 0);
    uint32_t from = g->node[x].ndim, to = g->node[r].ndim, both = from < to ? from : to;
    for (uint32_t i = 1; i <= from || i <= to; i++) {   /* i-th axis from the right */
        CcDim a = i <= from ? cc_shape(g, x)[from - i] : 0;
        CcDim b = i <= to ? cc_shape(g, r)[to - i] : 0;
        if (i <= both ? !cc_dim_same(g, a, b) : !cc_dim_equals(g, a == 0 ? b : a, 1)) {
            return false;
        }
    }
    return true;
}

/* TRANSPOSE that swaps exactly the last two axes. */
static bool
swaps_last(const CcGraph *g, CcRef r)
{
    uint32_t ndim = g->node[r].ndim;

    if (g->node[r].op != CC_OP_TRANSPOSE || ndim < 2) {
        return false;
    }
    for (uint32_t i = 0; i < ndim; i++) {
        uint32_t want = i + 2 < ndim ? i : i + 1 < ndim ? ndim - 1 : ndim - 2;
        if (cc_attrs(g, r)[i] != want) {
            return false;
        }
    }
    return true;
}

static CcRef
compose_matmul(CcGraph *g, CcRef r, CcStatus *st)
{
    CcRef arg[2] = {cc_arg(g, r, 0), cc_arg(g, r, 1)};
    bool flag[2] = {cc_attrs(g, r)[0] != 0, cc_attrs(g, r)[1] != 0}, changed = false;

    for (int i = 0; i < 2; i++) {
        if (swaps_last(g, arg[i])) {
            arg[i] = cc_arg(g, arg[i], 0);
            flag[i] = !flag[i];
            changed = true;
        }
    }
    return changed ? cc_build_matmul(g, arg[0], arg[1], flag[0], flag[1], st) : r;
}

static CcRef
algebra_compose(CcGraph *g, CcRef r, CcStatus *st)
{
    const CcNode *nd = &g->node[r];
    CcRef a = nd->narg > 0 ? cc_arg(g, r, 0) : 0;
    CcDim dim[CC_MAX_NDIM];
    uint8_t ndim = nd->ndim, perm[CC_MAX_NDIM];

    if (nd->op == CC_OP_CAST) {
        return compose_cast(g, r, st);
    }
    if (nd->op == CC_OP_MATMUL) {
        return compose_matmul(g, r, st);
    }
    if (cc_info(g, r)->cls != CC_CLASS_MOVE) {
        return r;
    }
    copy_shape(g, r, dim);
    if (moves_scalar(g, r)) {
        return cc_build_broadcast(g, cc_arg(g, a, 0), ndim, dim, st);
    }
    if (nd->op == CC_OP_BROADCAST && pads_front(g, a) && g->node[cc_arg(g, a, 0)].ndim <= ndim) {
        return cc_build_broadcast(g, cc_arg(g, a, 0), ndim, dim, st);
    }
    if (g->node[a].op != nd->op) {
        return r;
    }
    switch (nd->op) {
    case CC_OP_RESHAPE:
        return cc_build_reshape(g, cc_arg(g, a, 0), ndim, dim, st);
    case CC_OP_BROADCAST:
        return cc_build_broadcast(g, cc_arg(g, a, 0), ndim, dim, st);
    case CC_OP_SLICE:
        return compose_slice(g, r, st);
    case CC_OP_TRANSPOSE:
        for (uint32_t i = 0; i < ndim; i++) {
            perm[i] = (uint8_t)cc_attrs(g, a)[cc_attrs(g, r)[i]];
        }
        return cc_build_transpose(g, cc_arg(g, a, 0), perm, st);
    default:
        return r;
    }
}

/* -- The pass ------------------------------------------------------------------------------- */

/* One rewrite of node r: the node that replaces it, r when no rule applies, 0 = failed. */
static CcRef
algebra_step(CcGraph *g, CcRef r, CcStatus *st)
{
    CcDim dim[CC_MAX_NDIM];
    uint64_t bits;
    CcRef same = algebra_arith(g, r);

    same = same == r ? algebra_still(g, r) : same;
    if (same != r) {
        return same;
    }
    if (algebra_fold(g, r, &bits)) {
        copy_shape(g, r, dim);
        CcRef value = cc_build_const(g, (CcDtype)g->node[r].dtype, bits, st);
        return value == 0 ? 0 : cc_build_broadcast(g, value, g->node[r].ndim, dim, st);
    }
    return algebra_compose(g, r, st);
}

/* The simplest node that equals r, which was just appended; marks and positions move along. */
static CcRef
algebra_simplify(CcGraph *g, CcRef r, CcStatus *st)
{
    for (;;) {
        CcRef was = g->len, now = algebra_step(g, r, st);
        if (now == r || now == 0) {
            return now;
        }
        if (now >= was) {               /* a new node in r's place */
            g->node[now].where = g->node[r].where;
            g->node[now].flags = g->node[r].flags & (cc_node_faults(g, now) != 0 ? 0xff : 0);
        }
        g->node[r].flags = 0;           /* rule 3: nothing of r itself could raise */
        if (now < was) {
            return now;                 /* simplified when it was made */
        }
        r = now;
    }
}

bool
pass_algebra(CcGraph *g, CcStatus *st)
{
    CcRef *map = cc_calloc(g->len, sizeof(*map));
    CcGraph dst;
    bool ok = false;

    cc_graph_init(&dst);
    if (map == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "algebra of %u nodes", g->len);
    }
    if (!cc_graph_rewrite_begin(&dst, g, st)) {
        goto done;
    }
    for (CcRef r = 1; r < g->len; r++) {
        map[r] = cc_graph_rewrite_copy(&dst, g, r, map, st);
        map[r] = map[r] == 0 ? 0 : algebra_simplify(&dst, map[r], st);
        if (map[r] == 0) {
            goto done;
        }
    }
    ok = cc_graph_rewrite_end(g, &dst, map, st);
done:
    cc_graph_fini(&dst);
    cc_free(map);
    return ok;
}
