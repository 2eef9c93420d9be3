/* ir/verify.c - every invariant of graph.h, first bad node named. */
#include "build.h"

#include <string.h>

static bool
bad(CcStatus *st, CcRef r, const char *what)
{
    return cc_fail(st, CC_REASON_BAD_GRAPH, "%%%u: %s", r, what);
}

/* Places in the pools lie inside the pools, dims are rows, counts fit the row. */
static bool
verify_pools(const CcGraph *g, CcRef r, CcStatus *st)
{
    const CcNode *nd = &g->node[r];

    if (nd->op >= CC_OP__COUNT) {
        return bad(st, r, "unknown op");
    }
    if ((uint64_t)nd->arg + nd->narg > g->nopnd || (uint64_t)nd->attr + nd->nattr > g->nattr
        || (uint64_t)nd->shape + nd->ndim > g->nshape || nd->ndim > CC_MAX_NDIM) {
        return bad(st, r, "outside the pools");
    }
    for (uint32_t i = 0; i < nd->narg; i++) {
        if (cc_arg(g, r, i) == 0 || cc_arg(g, r, i) >= r) {
            return bad(st, r, "operand is not defined before");
        }
    }
    for (uint32_t i = 0; i < nd->ndim; i++) {
        if (cc_shape(g, r)[i] == 0 || cc_shape(g, r)[i] >= g->dims.len) {
            return bad(st, r, "dim is no row");
        }
    }
    if ((nd->flags & ~CC_NODE_FAULT) != 0) {
        return bad(st, r, "unknown flags");
    }
    return true;
}

/* What inference says of the node is what the node says. */
static bool
verify_type(CcGraph *g, CcRef r, CcStatus *st)
{
    const CcNode nd = g->node[r];
    CcSpec spec = {.op = (CcOp)nd.op, .dtype = (CcDtype)nd.dtype, .ndim = nd.ndim, .narg = nd.narg,
                   .nattr = nd.nattr, .shape = cc_shape(g, r), .arg = cc_args(g, r),
                   .attr = cc_attrs(g, r)};
    CcStatus why = {0};
    CcType type;

    if (!cc_infer(g, &spec, false, &type, &why)) {
        if (why.reason == CC_REASON_NO_MEMORY) {
            *st = why;
            return false;
        }
        return cc_fail(st, CC_REASON_BAD_GRAPH, "%%%u: %.120s", r, why.detail);
    }
    if (type.dtype != nd.dtype) {
        return cc_fail(st, CC_REASON_BAD_GRAPH, "%%%u: %s is %s, not %s", r, cc_op_info[nd.op].name,
                       cc_dtype_info[type.dtype].text,
                       nd.dtype < CC_DTYPE__COUNT ? cc_dtype_info[nd.dtype].text : "?");
    }
    if (type.ndim != nd.ndim) {
        return bad(st, r, "wrong number of axes");
    }
    for (uint32_t i = 0; i < type.ndim; i++) {
        if (!cc_dim_same(g, type.dim[i], cc_shape(g, r)[i])) {
            return cc_fail(st, CC_REASON_BAD_GRAPH, "%%%u: wrong size of axis %u", r, i);
        }
    }
    return true;
}

static bool
verify_leaf(const CcGraph *g, CcRef r, uint32_t *nparam, CcStatus *st)
{
    const CcNode *nd = &g->node[r];

    if (nd->op != CC_OP_CONST && nd->bits != 0) {
        return bad(st, r, "a value that is no constant");
    }
    if (nd->op == CC_OP_CONST && nd->dtype == CC_DTYPE_F32 && nd->bits >> 32 != 0) {
        return bad(st, r, "value does not fit its dtype");
    }
    if (nd->op == CC_OP_CONST && !cc_dtype_is_float((CcDtype)nd->dtype)
        && cc_const_from_i64((CcDtype)nd->dtype, (int64_t)nd->bits) != nd->bits) {
        return bad(st, r, "value does not fit its dtype");
    }
    if (nd->op != CC_OP_PARAM) {
        return true;
    }
    if (*nparam >= g->nparam || g->param[*nparam].node != r) {
        return bad(st, r, "parameter has no row");
    }
    const CcParam *param = &g->param[(*nparam)++];
    if (param->layout >= CC_LAYOUT__COUNT) {
        return bad(st, r, "unknown layout");
    }
    bool scalar = param->layout == CC_LAYOUT_SCALAR;
    if (scalar && (nd->ndim != 0 || (nd->dtype != CC_DTYPE_I64 && nd->dtype != CC_DTYPE_F64
                                     && nd->dtype != CC_DTYPE_BOOL))) {
        return bad(st, r, "a scalar parameter is 0-d i64, f64 or bool");
    }
    if (param->sym != 0 && (!scalar || nd->dtype != CC_DTYPE_I64 || param->sym >= CC_MAX_SYM)) {
        return bad(st, r, "only an i64 scalar binds a symbol");
    }
    return true;
}

typedef struct {
    const CcGraph *g;
    uint8_t bound[CC_MAX_SYM / 8];      /* bit per symbol number */
} Bound;

static void
bound_add(Bound *b, uint32_t number)
{
    b->bound[number / 8] |= (uint8_t)(1u << number % 8);
}

static void
bound_by_params(Bound *b)
{
    const CcGraph *g = b->g;

    for (uint32_t k = 0; k < g->nparam; k++) {
        CcRef r = g->param[k].node;
        bound_add(b, g->param[k].sym);
        for (uint32_t i = 0; i < g->node[r].ndim; i++) {
            const CcDimRow *row = &g->dims.row[cc_shape(g, r)[i]];
            if (row->kind == CC_DIM_SYM) {
                bound_add(b, (uint32_t)row->value);
            }
        }
    }
}

static bool
dim_bound(const Bound *b, CcDim d)
{
    const CcDimRow *row = &b->g->dims.row[d];

    if (row->kind == CC_DIM_SYM) {
        return (b->bound[row->value / 8] >> row->value % 8 & 1) != 0;
    }
    return row->kind <= CC_DIM_SYM || (dim_bound(b, row->a) && dim_bound(b, row->b));
}

/* Every symbol that has to be evaluated is bound. */
static bool
verify_symbols(const Bound *b, CcStatus *st)
{
    const CcGraph *g = b->g;

    for (uint32_t i = 0; i < g->dims.nguard; i++) {
        if (!dim_bound(b, g->dims.guard[i].a) || !dim_bound(b, g->dims.guard[i].b)) {
            return cc_fail(st, CC_REASON_BAD_GRAPH, "guard %u: a symbol is not bound", i);
        }
    }
    for (CcRef r = 1; r < g->len; r++) {
        const CcNode *nd = &g->node[r];
        const char *at = NULL;
        CcAttrSpec attr = {0};
        for (uint32_t i = 0; i < nd->ndim; i++) {
            if (!dim_bound(b, cc_shape(g, r)[i])) {
                return bad(st, r, "a symbol of the shape is not bound");
            }
        }
        uint8_t ndim0 = nd->narg > 0 ? g->node[cc_arg(g, r, 0)].ndim : 0;
        while (cc_attr_next((CcOp)nd->op, ndim0, &at, &attr)) {
            for (uint32_t i = 0; i < attr.count; i++) {
                if ((attr.kind == 'd' || attr.kind == 'D')
                    && !dim_bound(b, (CcDim)cc_attrs(g, r)[attr.first + i])) {
                    return bad(st, r, "a symbol of an attribute is not bound");
                }
            }
        }
    }
    return true;
}

static bool
verify_outputs(const CcGraph *g, CcStatus *st)
{
    for (uint32_t i = 0; i < g->nout; i++) {
        const CcOutput *out = &g->out[i];
        if (out->node == 0 || out->node >= g->len) {
            return cc_fail(st, CC_REASON_BAD_GRAPH, "output %u: no node", i);
        }
        const CcNode *nd = &g->node[out->node];
        if (nd->dtype == CC_DTYPE_OPAQUE || (out->kind == CC_OUT_SCALAR && nd->ndim != 0)) {
            return cc_fail(st, CC_REASON_BAD_GRAPH, "output %u: wrong kind", i);
        }
        uint32_t seen = 0;
        for (uint32_t k = 0; out->ordered && k < nd->ndim; k++) {
            seen |= out->perm[k] < nd->ndim ? 1u << out->perm[k] : 0;
        }
        if (out->ordered && seen != (1u << nd->ndim) - 1) {
            return cc_fail(st, CC_REASON_BAD_GRAPH, "output %u: order is no permutation", i);
        }
    }
    return true;
}

bool
cc_graph_verify(CcGraph *g, CcStatus *st)
{
    Bound bound = {.g = g};
    uint32_t nparam = 0;

    for (CcRef r = 1; r < g->len; r++) {
        if (!verify_pools(g, r, st) || !verify_type(g, r, st) || !verify_leaf(g, r, &nparam, st)) {
            return false;
        }
    }
    if (nparam != g->nparam) {
        return cc_fail(st, CC_REASON_BAD_GRAPH, "parameter %u has no node", nparam);
    }
    bound_by_params(&bound);
    return verify_symbols(&bound, st) && verify_outputs(g, st);
}
