#include "lower.h"

#include "../base/mem.h"
#include "../rt/reduce.h"

#include <string.h>

enum { MEMO_WIDTHS = 5 };               /* a number, or a mask of 64, 32, 16, 8 bits */

typedef struct {
    const CcGraph *g;
    const CcGroups *s;
    uint32_t group;
    GenLoop *l;
    CcStatus *st;
    uint16_t (*memo)[MEMO_WIDTHS];      /* by ref: value + 1 */
    int16_t *mem;                       /* by ref: operand + 1 */
} Lower;

static const struct {
    uint8_t op;                         /* graph op */
    uint8_t vop;
    bool swap;                          /* a > b is b < a */
} lower_rows[] = {
#define SAME(G, v) {CC_OP_##G, CC_VOP_##v, false},
    SAME(NEG, neg) SAME(ABS, abs) SAME(SIGN, sign) SAME(ADD, add) SAME(SUB, sub) SAME(MUL, mul)
    SAME(DIV, div) SAME(FLOORDIV, floordiv) SAME(MOD, mod) SAME(FMOD, fmod) SAME(POW, pow)
    SAME(MAXIMUM, maximum) SAME(MINIMUM, minimum) SAME(FMAX, fmax) SAME(FMIN, fmin)
    SAME(SQRT, sqrt) SAME(CBRT, cbrt) SAME(SQUARE, square) SAME(RECIP, recip) SAME(EXP, exp)
    SAME(EXP2, exp2) SAME(EXPM1, expm1) SAME(LOG, log) SAME(LOG2, log2) SAME(LOG10, log10)
    SAME(LOG1P, log1p) SAME(SIN, sin) SAME(COS, cos) SAME(TAN, tan) SAME(ASIN, asin)
    SAME(ACOS, acos) SAME(ATAN, atan) SAME(SINH, sinh) SAME(COSH, cosh) SAME(TANH, tanh)
    SAME(ASINH, asinh) SAME(ACOSH, acosh) SAME(ATANH, atanh) SAME(ATAN2, atan2)
    SAME(HYPOT, hypot) SAME(LOGADDEXP, logaddexp) SAME(ERF, erf) SAME(SIGMOID, sigmoid)
    SAME(RELU, relu) SAME(FLOOR, floor) SAME(CEIL, ceil) SAME(TRUNC, trunc) SAME(RINT, rint)
    SAME(COPYSIGN, copysign) SAME(ISNAN, isnan) SAME(ISINF, isinf) SAME(ISFINITE, isfinite)
    SAME(SIGNBIT, signbit) SAME(EQ, eq) SAME(NE, ne) SAME(LT, lt) SAME(LE, le)
    {CC_OP_GT, CC_VOP_lt, true}, {CC_OP_GE, CC_VOP_le, true},
    SAME(BAND, band) SAME(BOR, bor) SAME(BXOR, bxor) SAME(BNOT, bnot) SAME(SHL, shl)
    SAME(SHR, shr)
#undef SAME
};

CcVType
gen_vtype(CcDtype dt)
{
    static const uint8_t type[CC_DTYPE__COUNT] = {
        [CC_DTYPE_BOOL] = CC_VT_u8, [CC_DTYPE_I8] = CC_VT_i8, [CC_DTYPE_I16] = CC_VT_i16,
        [CC_DTYPE_I32] = CC_VT_i32, [CC_DTYPE_I64] = CC_VT_i64, [CC_DTYPE_U8] = CC_VT_u8,
        [CC_DTYPE_U16] = CC_VT_u16, [CC_DTYPE_U32] = CC_VT_u32, [CC_DTYPE_U64] = CC_VT_u64,
        [CC_DTYPE_F32] = CC_VT_f32, [CC_DTYPE_F64] = CC_VT_f64,
    };

    return (CcVType)type[dt];
}

static CcVType
mask_of_size(unsigned size)
{
    return size == 8 ? CC_VT_m64 : size == 4 ? CC_VT_m32 : size == 2 ? CC_VT_m16 : CC_VT_m8;
}

/* -- Instructions ---------------------------------------------------------- */

static uint16_t
lower_emit(Lower *w, unsigned op, CcVType type, CcVType in, uint16_t a, uint16_t b, uint16_t c)
{
    CcVIns ins = {.op = (uint8_t)op, .type = (uint8_t)type, .in = (uint8_t)in, .arg = {a, b, c}};
    const CcVIns *all = w->l->prog.ins;

    if (a == CC_V_NONE) {
        return a;                       /* an operand failed */
    }
    ins.uniform = all[a].uniform && (b == CC_V_NONE || all[b].uniform)
               && (c == CC_V_NONE || all[c].uniform);
    return rt_vprog_push(&w->l->prog, ins, w->st);
}

static uint16_t
lower_op(Lower *w, CcVOp op, CcVType in, uint16_t a, uint16_t b)
{
    bool mask = cc_vop_info[op].mask;

    if (cc_vop_info[op].n > 1 && b == CC_V_NONE) {
        return b;
    }
    return lower_emit(w, op, mask ? mask_of_size(cc_vtype_size[in]) : in, in, a, b, CC_V_NONE);
}

static uint16_t
lower_const(Lower *w, CcVType type, uint64_t bits)
{
    CcVIns ins = {.op = CC_V_CONST, .type = (uint8_t)type, .in = (uint8_t)type, .uniform = true,
                  .arg = {CC_V_NONE, CC_V_NONE, CC_V_NONE}, .bits = bits};

    return rt_vprog_push(&w->l->prog, ins, w->st);
}

static uint16_t
lower_cvt(Lower *w, uint16_t a, CcVType to)
{
    if (a == CC_V_NONE || w->l->prog.ins[a].type == to) {
        return a;
    }
    return lower_emit(w, CC_V_CVT, to, (CcVType)w->l->prog.ins[a].type, a, CC_V_NONE, CC_V_NONE);
}

/* The operand's number; CC_V_NONE when there are too many. */
static uint16_t
lower_mem(Lower *w, CcRef r, uint32_t buffer, bool out, CcDtype dt)
{
    CcVProg *p = &w->l->prog;

    if (p->nmem >= CC_VPROG_MAX_MEM) {
        cc_fail(w->st, CC_REASON_NO_LOWERING, "%%%u: a fused loop of more than %d arrays", r,
                CC_VPROG_MAX_MEM);
        return CC_V_NONE;
    }
    p->mem[p->nmem] = (CcVMem){.size = cc_dtype_info[dt].size, .is_bool = dt == CC_DTYPE_BOOL,
                               .out = out};
    w->l->operand[p->nmem] = (GenOperand){r, buffer};
    return p->nmem++;
}

/* Is r, read in the loop, one element along the inner axis (elementwise) or all reduced ones? */
static bool
lower_still(const Lower *w, CcRef r)
{
    const CcGraph *g = w->g;
    const CcGroup *gr = &w->s->group[w->group];
    uint32_t n = g->node[r].ndim;
    uint64_t axes = gr->nred > 0 ? gr->axes : (uint64_t)1 << (n - 1);

    /* Follow broadcasts and axes of size 1: an axis is still when it was stretched. */
    if (g->node[r].op != CC_OP_BROADCAST) {
        return false;
    }
    CcRef a = cc_arg(g, r, 0);
    uint32_t lost = n - g->node[a].ndim;
    for (uint32_t d = 0; d < n; d++) {
        bool stretched = d < lost || (cc_dim_equals(g, cc_shape(g, a)[d - lost], 1)
                                      && !cc_dim_equals(g, cc_shape(g, r)[d], 1));
        if ((axes >> d & 1) && !stretched) {
            return false;
        }
    }
    return true;
}

static uint16_t
lower_load(Lower *w, CcRef r, CcVType mask)
{
    CcDtype dt = (CcDtype)w->g->node[r].dtype;
    bool is_bool = dt == CC_DTYPE_BOOL;
    CcVType type = is_bool ? mask : gen_vtype(dt);
    uint16_t slot;

    if (w->mem[r] != 0) {
        slot = (uint16_t)(w->mem[r] - 1);
    } else {
        slot = lower_mem(w, r, 0, false, dt);
        if (slot == CC_V_NONE) {
            return slot;
        }
        w->mem[r] = (int16_t)(slot + 1);
        if (w->g->node[r].ndim == 0 && w->g->node[r].op != CC_OP_IOTA) {
            w->l->mask_flat |= (cc_u64)1 << slot;
        } else if (w->g->node[r].ndim > 0 && lower_still(w, r)) {
            w->l->mask_row |= (cc_u64)1 << slot;
        }
    }
    CcVIns ins = {.op = is_bool ? CC_V_LOADM : CC_V_LOAD, .type = (uint8_t)type,
                  .in = (uint8_t)type, .arg = {CC_V_NONE, CC_V_NONE, CC_V_NONE}, .slot = slot,
                  .uniform = w->l->mask_flat >> slot & 1};
    return rt_vprog_push(&w->l->prog, ins, w->st);
}

/* -- Values ---------------------------------------------------------------- */

static uint16_t lower_value(Lower *w, CcRef r, CcVType mask);

/* A bool operand comes as a mask of this width, a number as it is. */
static uint16_t
lower_arg(Lower *w, CcRef r, uint32_t i, CcVType mask)
{
    return lower_value(w, cc_arg(w->g, r, i), mask);
}

/* The operand as a truth value: not 0. */
static uint16_t
lower_truth(Lower *w, CcRef r, uint32_t i, CcVType mask)
{
    CcRef a = cc_arg(w->g, r, i);
    CcDtype dt = (CcDtype)w->g->node[a].dtype;
    CcVType t = gen_vtype(dt);

    if (dt == CC_DTYPE_BOOL) {
        return lower_value(w, a, mask);
    }
    uint16_t v = lower_value(w, a, mask), zero = lower_const(w, t, 0);
    return lower_cvt(w, lower_op(w, CC_VOP_ne, t, v, zero), mask);
}

static uint16_t
lower_cast(Lower *w, CcRef r, CcVType mask)
{
    const CcGraph *g = w->g;
    CcDtype from = (CcDtype)g->node[cc_arg(g, r, 0)].dtype, to = (CcDtype)g->node[r].dtype;
    CcVType ft = gen_vtype(from), tt = gen_vtype(to);

    if (to == CC_DTYPE_BOOL) {
        return lower_truth(w, r, 0, mask);
    }
    if (from == CC_DTYPE_BOOL) {
        CcVType m = mask_of_size(cc_vtype_size[tt]);
        uint16_t c = lower_arg(w, r, 0, m), zero = lower_const(w, tt, 0);
        uint16_t one = lower_const(w, tt, cc_const_from_i64(to, 1));
        return one == CC_V_NONE || zero == CC_V_NONE ? CC_V_NONE
             : lower_emit(w, CC_VOP_sel, tt, tt, c, one, zero);
    }
    uint16_t v = lower_arg(w, r, 0, mask);
    if (cc_dtype_is_float(from) && cc_dtype_is_int(to) && to != CC_DTYPE_I64 && to != CC_DTYPE_U64
        && to != CC_DTYPE_I32) {
        v = lower_cvt(w, v, to == CC_DTYPE_U32 ? CC_VT_i64 : CC_VT_i32);
    }
    if (ft == CC_VT_f32 && tt == CC_VT_u64) {
        v = lower_cvt(w, v, CC_VT_f64);
    }
    return lower_cvt(w, v, tt);
}

/* Comparisons and logic of bools. */
static uint16_t
lower_logic(Lower *w, CcRef r, CcVType mask)
{
    uint8_t op = w->g->node[r].op;
    uint16_t a = lower_truth(w, r, 0, mask);
    uint16_t b = w->g->node[r].narg > 1 ? lower_truth(w, r, 1, mask) : CC_V_NONE;

    switch (op) {
    case CC_OP_LAND:
    case CC_OP_BAND:
        return lower_op(w, CC_VOP_mand, mask, a, b);
    case CC_OP_LOR:
    case CC_OP_BOR:
        return lower_op(w, CC_VOP_mor, mask, a, b);
    case CC_OP_LXOR:
    case CC_OP_BXOR:
    case CC_OP_NE:
        return lower_op(w, CC_VOP_mxor, mask, a, b);
    case CC_OP_EQ:
        return lower_op(w, CC_VOP_mnot, mask, lower_op(w, CC_VOP_mxor, mask, a, b), CC_V_NONE);
    case CC_OP_LT:                                      /* false < true */
        return lower_op(w, CC_VOP_mand, mask, lower_op(w, CC_VOP_mnot, mask, a, CC_V_NONE), b);
    case CC_OP_GT:
        return lower_op(w, CC_VOP_mand, mask, a, lower_op(w, CC_VOP_mnot, mask, b, CC_V_NONE));
    case CC_OP_LE:
        return lower_op(w, CC_VOP_mor, mask, lower_op(w, CC_VOP_mnot, mask, a, CC_V_NONE), b);
    case CC_OP_GE:
        return lower_op(w, CC_VOP_mor, mask, a, lower_op(w, CC_VOP_mnot, mask, b, CC_V_NONE));
    case CC_OP_LNOT:
    case CC_OP_BNOT:
        return lower_op(w, CC_VOP_mnot, mask, a, CC_V_NONE);
    default:
        cc_fail(w->st, CC_REASON_NO_LOWERING, "%%%u: %s of bools", r, cc_info(w->g, r)->name);
        return CC_V_NONE;
    }
}

static uint16_t
lower_where(Lower *w, CcRef r, CcVType mask)
{
    CcDtype dt = (CcDtype)w->g->node[r].dtype;
    bool is_bool = dt == CC_DTYPE_BOOL;
    CcVType t = is_bool ? mask : gen_vtype(dt);
    uint16_t c = lower_arg(w, r, 0, is_bool ? mask : mask_of_size(cc_vtype_size[t]));
    uint16_t a = lower_arg(w, r, 1, mask), b = lower_arg(w, r, 2, mask);

    if (a == CC_V_NONE || b == CC_V_NONE) {
        return CC_V_NONE;
    }
    return lower_emit(w, is_bool ? CC_VOP_msel : CC_VOP_sel, t, t, c, a, b);
}

/* The mask width a bool value has by itself: that of the numbers it is made from. */
static CcVType
lower_width(const Lower *w, CcRef r, int depth)
{
    const CcGraph *g = w->g;

    if (w->s->group_of[r] == (int32_t)w->group || pass_fuse_is_inline(g, r)) {
        for (uint32_t k = 0; k < g->node[r].narg && depth < 8; k++) {
            CcRef a = cc_arg(g, r, k);
            if (g->node[a].dtype != CC_DTYPE_BOOL) {
                return mask_of_size(cc_dtype_info[g->node[a].dtype].size);
            }
            CcVType t = lower_width(w, a, depth + 1);
            if (t != CC_VT_m8) {
                return t;
            }
        }
    }
    return CC_VT_m8;
}

static uint16_t
lower_node(Lower *w, CcRef r, CcVType mask)
{
    const CcGraph *g = w->g;
    uint8_t op = g->node[r].op;
    CcDtype in = (CcDtype)g->node[cc_arg(g, r, 0)].dtype;

    if (op == CC_OP_CAST) {
        return lower_cast(w, r, mask);
    }
    if (op == CC_OP_WHERE) {
        return lower_where(w, r, mask);
    }
    if (op == CC_OP_LAND || op == CC_OP_LOR || op == CC_OP_LXOR || op == CC_OP_LNOT
        || in == CC_DTYPE_BOOL) {
        return lower_logic(w, r, mask);
    }
    for (size_t k = 0; k < sizeof(lower_rows) / sizeof(lower_rows[0]); k++) {
        if (lower_rows[k].op == op) {
            bool two = g->node[r].narg == 2, swap = lower_rows[k].swap;
            uint16_t a = lower_arg(w, r, 0, mask);
            uint16_t b = two ? lower_arg(w, r, 1, mask) : CC_V_NONE;
            return lower_op(w, (CcVOp)lower_rows[k].vop, gen_vtype(in), swap ? b : a,
                            swap ? a : b);
        }
    }
    cc_fail(w->st, CC_REASON_NO_LOWERING, "%%%u: %s has no vector form", r, cc_info(g, r)->name);
    return CC_V_NONE;
}

static uint16_t
lower_fresh(Lower *w, CcRef r, CcVType mask)
{
    const CcGraph *g = w->g;
    CcRef uniform = pass_fuse_uniform(g, r);
    CcDtype dt = (CcDtype)g->node[r].dtype;
    bool is_bool = dt == CC_DTYPE_BOOL;

    if (uniform != 0 && uniform != r) {
        return lower_value(w, uniform, mask);
    }
    if (g->node[r].op == CC_OP_CONST) {
        return lower_const(w, is_bool ? mask : gen_vtype(dt),
                           is_bool ? (uint64_t)0 - (g->node[r].bits != 0) : g->node[r].bits);
    }
    for (uint32_t k = 0; g->node[r].op == CC_OP_PARAM && k < g->nparam; k++) {
        if (g->param[k].node == r && g->param[k].layout == CC_LAYOUT_SCALAR) {
            CcVType t = is_bool ? mask : gen_vtype(dt);
            CcVIns ins = {.op = CC_V_SCALAR, .type = (uint8_t)t, .in = (uint8_t)t, .uniform = true,
                          .arg = {CC_V_NONE, CC_V_NONE, CC_V_NONE}, .slot = (uint16_t)k};
            return rt_vprog_push(&w->l->prog, ins, w->st);
        }
    }
    bool here = cc_info(g, r)->cls == CC_CLASS_EW
             && (w->s->group_of[r] == (int32_t)w->group || pass_fuse_is_inline(g, r));
    if (!here) {
        return lower_load(w, r, mask);
    }
    if (is_bool) {
        CcVType own = lower_width(w, r, 0);
        return own == mask ? lower_node(w, r, mask) : lower_cvt(w, lower_value(w, r, own), mask);
    }
    return lower_node(w, r, mask);
}

static uint16_t
lower_value(Lower *w, CcRef r, CcVType mask)
{
    bool is_bool = w->g->node[r].dtype == CC_DTYPE_BOOL;
    uint16_t *memo = &w->memo[r][is_bool ? 1 + mask - CC_VT_m64 : 0];

    if (*memo == 0) {
        uint16_t v = lower_fresh(w, r, mask);
        if (v == CC_V_NONE) {
            return v;
        }
        memo = &w->memo[r][is_bool ? 1 + mask - CC_VT_m64 : 0];
        *memo = (uint16_t)(v + 1);
    }
    return (uint16_t)(*memo - 1);
}

/* -- Stores and reductions ------------------------------------------------- */

/* A store instruction, kept back until all values are there. */
static bool
lower_store(Lower *w, CcVIns *list, uint32_t *n, CcRef value, uint32_t buffer)
{
    CcDtype dt = (CcDtype)w->g->node[value].dtype;
    bool is_bool = dt == CC_DTYPE_BOOL;
    CcVType t = is_bool ? lower_width(w, value, 0) : gen_vtype(dt);
    uint16_t v = lower_value(w, value, t);
    uint16_t slot = v == CC_V_NONE ? v : lower_mem(w, value, buffer, true, dt);

    if (slot == CC_V_NONE) {
        return false;
    }
    list[(*n)++] = (CcVIns){.op = is_bool ? CC_V_STOREM : CC_V_STORE, .type = (uint8_t)t,
                            .in = (uint8_t)t, .arg = {v, CC_V_NONE, CC_V_NONE}, .slot = slot};
    return true;
}

static bool
lower_red(Lower *w, CcVIns *list, uint32_t *n, CcRef r, uint32_t buffer)
{
    static const struct {
        uint8_t op, red;
    } row[] = {
        {CC_OP_SUM, RT_RED_SUM}, {CC_OP_PROD, RT_RED_PROD}, {CC_OP_MAX, RT_RED_MAX},
        {CC_OP_MIN, RT_RED_MIN}, {CC_OP_ARGMAX, RT_RED_ARGMAX}, {CC_OP_ARGMIN, RT_RED_ARGMIN},
        {CC_OP_ANY, RT_RED_ANY}, {CC_OP_ALL, RT_RED_ALL},
    };
    const CcGraph *g = w->g;
    CcRef a = cc_arg(g, r, 0);
    CcDtype dt = (CcDtype)g->node[a].dtype;
    GenRed *red = &w->l->red[w->l->nred++];
    bool truth = g->node[r].op == CC_OP_ANY || g->node[r].op == CC_OP_ALL;

    *red = (GenRed){.ref = r, .buffer = buffer, .type = (uint8_t)gen_vtype(dt)};
    for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
        red->red = row[k].op == g->node[r].op ? row[k].red : red->red;
    }
    if (truth && dt != CC_DTYPE_BOOL) {                 /* reduce the truth of numbers */
        CcVType m = mask_of_size(cc_dtype_info[dt].size);
        uint16_t v = lower_truth(w, r, 0, m);
        uint16_t slot = v == CC_V_NONE ? v : lower_mem(w, a, 0, true, CC_DTYPE_BOOL);
        if (slot == CC_V_NONE) {
            return false;
        }
        list[(*n)++] = (CcVIns){.op = CC_V_STOREM, .type = (uint8_t)m, .in = (uint8_t)m,
                                .arg = {v, CC_V_NONE, CC_V_NONE}, .slot = slot};
        red->type = CC_VT_u8;
        red->mem = (uint8_t)slot;
        return true;
    }
    bool here = cc_info(g, a)->cls == CC_CLASS_EW
             && (w->s->group_of[a] == (int32_t)w->group || pass_fuse_is_inline(g, a));
    CcRef uniform = pass_fuse_uniform(g, a);
    if (!here && uniform == 0) {                        /* straight from memory */
        if (lower_value(w, a, CC_VT_m8) == CC_V_NONE) {
            return false;
        }
        red->mem = (uint8_t)(w->mem[a] - 1);
        return true;
    }
    for (uint32_t i = 0; i < *n; i++) {                 /* stored anyway: read it there */
        if (w->l->operand[list[i].slot].ref == a && w->l->operand[list[i].slot].buffer != 0) {
            red->mem = (uint8_t)list[i].slot;
            return true;
        }
    }
    if (!lower_store(w, list, n, a, 0)) {
        return false;
    }
    red->mem = (uint8_t)(w->l->prog.nmem - 1);
    return true;
}

static double
lower_cost(const CcVProg *p)
{
    double cost = 0.3;

    for (uint32_t i = 0; i < p->len; i++) {
        const CcVIns *in = &p->ins[i];
        double scale = cc_vtype_size[in->type] / 8.0;
        if (in->uniform) {
            continue;
        }
        cost += in->op >= CC_VOP_exp && in->op <= CC_VOP_logaddexp ? 2.5 * scale
              : in->op < CC_VOP__COUNT && cc_vop_info[in->op].fault ? 5.0
              : in->op == CC_VOP_div || in->op == CC_VOP_sqrt ? 1.0 * scale : 0.2 * scale;
    }
    return cost;
}

static bool
lower_group(Lower *w)
{
    const CcGroup *gr = &w->s->group[w->group];
    CcVIns list[CC_VPROG_MAX_MEM];
    uint32_t n = 0;

    for (uint32_t i = 0; i < gr->nstore; i++) {
        const CcStore *st = &w->s->store[gr->store + i];
        bool red = cc_info(w->g, st->value)->cls == CC_CLASS_RED
                && w->s->group_of[st->value] == (int32_t)w->group;
        uint32_t buffer = w->s->buffer[st->buffer].out == -2 ? 0 : st->buffer;
        if (!(red ? lower_red(w, list, &n, st->value, st->buffer)
                  : lower_store(w, list, &n, st->value, buffer))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (rt_vprog_push(&w->l->prog, list[i], w->st) == CC_V_NONE) {
            return false;
        }
    }
    w->l->no_body = n == 0;
    w->l->copies = true;
    for (uint32_t i = 0; i < w->l->prog.len; i++) {
        uint8_t op = w->l->prog.ins[i].op;
        w->l->copies &= op >= CC_VOP__COUNT && op != CC_V_CVT;
    }
    w->l->mask_row |= w->l->mask_flat;
    w->l->cost = lower_cost(&w->l->prog);
    return rt_vprog_finish(&w->l->prog, w->st);
}

bool
gen_lower(const CcGraph *g, const CcGroups *s, uint32_t group, GenLoop *out, CcStatus *st)
{
    Lower w = {.g = g, .s = s, .group = group, .l = out, .st = st};
    bool ok;

    memset(out, 0, sizeof(*out));
    rt_vprog_init(&out->prog);
    w.memo = cc_calloc(g->len, sizeof(*w.memo));
    w.mem = cc_calloc(g->len, sizeof(*w.mem));
    if (w.memo == NULL || w.mem == NULL) {
        ok = cc_fail(st, CC_REASON_NO_MEMORY, "lowering a graph of %u nodes", g->len);
    } else {
        ok = lower_group(&w);
    }
    cc_free(w.memo);
    cc_free(w.mem);
    if (!ok) {
        gen_lower_fini(out);
    }
    return ok;
}

void
gen_lower_fini(GenLoop *l)
{
    rt_vprog_fini(&l->prog);
}
