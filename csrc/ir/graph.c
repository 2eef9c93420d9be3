/* ir/graph.c - the pools of a graph, element constants, node-by-node rewriting. */
#include "graph.h"

#include "../base/check.h"
#include "../base/vec.h"

#include <string.h>

/* -- Life -------------------------------------------------------------------- */

void
cc_graph_init(CcGraph *g)
{
    memset(g, 0, sizeof(*g));
}

void
cc_graph_fini(CcGraph *g)
{
    cc_free(g->node);
    cc_free(g->opnd);
    cc_free(g->attr);
    cc_free(g->shape);
    cc_free(g->param);
    cc_free(g->out);
    cc_free(g->dims.row);
    cc_free(g->dims.guard);
    cc_free(g->dims.joined);
    cc_graph_init(g);
}

/* Make *dst a copy of n items; an empty pool stays unallocated. */
static bool
graph_copy_pool(void **dst, uint32_t *len, uint32_t *cap, const void *src, uint32_t n, size_t item)
{
    if (n == 0) {
        return true;
    }
    if (!cc_grow(dst, 0, cap, n, item)) {
        return false;
    }
    memcpy(*dst, src, n * item);
    *len = n;
    return true;
}

#define COPY_POOL(ptr, len, cap)                                                                  \
    graph_copy_pool((void **)&dst->ptr, &dst->len, &dst->cap, src->ptr, src->len,                 \
                    sizeof(*dst->ptr))

bool
cc_graph_rewrite_begin(CcGraph *dst, const CcGraph *src, CcStatus *st)
{
    cc_graph_init(dst);
    if (!COPY_POOL(dims.row, dims.len, dims.cap)
        || !COPY_POOL(dims.guard, dims.nguard, dims.capguard)
        || !COPY_POOL(dims.joined, dims.njoined, dims.capjoined)) {
        cc_graph_fini(dst);
        return cc_fail(st, CC_REASON_NO_MEMORY, "dim table of %u rows", src->dims.len);
    }
    return true;
}

bool
cc_graph_clone(CcGraph *dst, const CcGraph *src, CcStatus *st)
{
    if (!cc_graph_rewrite_begin(dst, src, st)) {
        return false;
    }
    if (!COPY_POOL(node, len, cap) || !COPY_POOL(opnd, nopnd, capopnd)
        || !COPY_POOL(attr, nattr, capattr) || !COPY_POOL(shape, nshape, capshape)
        || !COPY_POOL(param, nparam, capparam) || !COPY_POOL(out, nout, capout)) {
        cc_graph_fini(dst);
        return cc_fail(st, CC_REASON_NO_MEMORY, "copy of a graph of %u nodes", src->len);
    }
    return true;
}

/* -- Growing ----------------------------------------------------------------- */

/* Everything is reserved before anything is written, so a failure changes nothing. */
CcRef
cc_graph_push(CcGraph *g, const CcSpec *spec, CcStatus *st)
{
    if (!CC_GROW(g->node, g->len, g->cap, 2) || !CC_GROW(g->opnd, g->nopnd, g->capopnd, spec->narg)
        || !CC_GROW(g->attr, g->nattr, g->capattr, spec->nattr)
        || !CC_GROW(g->shape, g->nshape, g->capshape, spec->ndim)) {
        cc_fail(st, CC_REASON_NO_MEMORY, "graph of %u nodes", g->len);
        return 0;
    }
    if (g->len == 0) {
        g->node[g->len++] = (CcNode){0};
    }
    g->node[g->len] = (CcNode){
        .op = (uint8_t)spec->op, .dtype = (uint8_t)spec->dtype, .ndim = spec->ndim,
        .flags = spec->flags, .narg = spec->narg, .nattr = spec->nattr, .arg = g->nopnd,
        .attr = g->nattr, .shape = g->nshape, .where = spec->where, .bits = spec->bits,
    };
    for (uint32_t i = 0; i < spec->narg; i++) {
        g->opnd[g->nopnd++] = spec->arg[i];
    }
    for (uint32_t i = 0; i < spec->nattr; i++) {
        g->attr[g->nattr++] = spec->attr[i];
    }
    for (uint32_t i = 0; i < spec->ndim; i++) {
        g->shape[g->nshape++] = spec->shape[i];
    }
    return g->len++;
}

CcRef
cc_graph_push_param(CcGraph *g, const CcSpec *spec, CcLayout layout, uint32_t sym, CcStatus *st)
{
    CC_ASSERT(spec->op == CC_OP_PARAM);
    if (!CC_GROW(g->param, g->nparam, g->capparam, 1)) {
        cc_fail(st, CC_REASON_NO_MEMORY, "%u parameters", g->nparam);
        return 0;
    }
    CcRef r = cc_graph_push(g, spec, st);
    if (r != 0) {
        g->param[g->nparam++] = (CcParam){.node = r, .layout = (uint8_t)layout, .sym = sym};
    }
    return r;
}

bool
cc_graph_add_output(CcGraph *g, CcRef node, CcOutKind kind, const uint8_t *perm, CcStatus *st)
{
    CcOutput out = {.node = node, .kind = (uint8_t)kind, .ordered = perm != NULL};

    CC_ASSERT(node < g->len);
    if (!CC_GROW(g->out, g->nout, g->capout, 1)) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "%u outputs", g->nout);
    }
    if (perm != NULL) {
        memcpy(out.perm, perm, g->node[node].ndim);
    }
    g->out[g->nout++] = out;
    return true;
}

/* -- Reading ----------------------------------------------------------------- */

bool
cc_same_shape(const CcGraph *g, CcRef a, CcRef b)
{
    if (g->node[a].ndim != g->node[b].ndim) {
        return false;
    }
    for (uint32_t i = 0; i < g->node[a].ndim; i++) {
        if (!cc_dim_same(g, cc_shape(g, a)[i], cc_shape(g, b)[i])) {
            return false;
        }
    }
    return true;
}

CcDim
cc_numel(CcGraph *g, CcRef r, CcStatus *st)
{
    CcDim n = cc_dim_const(g, 1, st);

    for (uint32_t i = 0; i < g->node[r].ndim && n != 0; i++) {
        n = cc_dim_make(g, CC_DIM_MUL, n, cc_shape(g, r)[i], st);
    }
    return n;
}

uint8_t
cc_node_faults(const CcGraph *g, CcRef r)
{
    const CcNode *nd = &g->node[r];
    const CcOpInfo *info = &cc_op_info[nd->op];
    CcDtype dt = (CcDtype)(nd->narg > 0 ? g->node[cc_arg(g, r, 0)].dtype : nd->dtype);

    if (nd->op == CC_OP_CAST) {         /* what a conversion can raise depends on both ends */
        if (!cc_dtype_is_float(dt)) {
            return 0;
        }
        if (cc_dtype_is_int((CcDtype)nd->dtype)) {
            return CC_FAULT_INVALID;
        }
        bool narrows = dt == CC_DTYPE_F64 && nd->dtype == CC_DTYPE_F32;
        return narrows ? CC_FAULT_OVERFLOW | CC_FAULT_UNDERFLOW : 0;
    }
    return cc_dtype_is_float(dt) ? info->float_faults : info->int_faults;
}

uint64_t
cc_const_from_i64(CcDtype dt, int64_t value)
{
    const CcDtypeInfo *info = &cc_dtype_info[dt];

    switch (info->cls) {
    case CC_DCLASS_BOOL:
        return value != 0;
    case CC_DCLASS_FLOAT:
        if (dt == CC_DTYPE_F32) {
            float f = (float)value;     /* one rounding, not two through double */
            uint32_t u;
            memcpy(&u, &f, sizeof(u));
            return u;
        }
        return cc_const_from_f64(dt, (double)value);
    default: {
        uint32_t unused = 64 - 8 * (uint32_t)info->size;
        uint64_t bits = (uint64_t)value << (unused & 63);
        return info->cls == CC_DCLASS_UINT ? bits >> unused : (uint64_t)((int64_t)bits >> unused);
    }
    }
}

uint64_t
cc_const_from_f64(CcDtype dt, double value)
{
    uint64_t bits = 0;

    if (dt == CC_DTYPE_F64) {
        memcpy(&bits, &value, sizeof(bits));
        return bits;
    }
    if (dt == CC_DTYPE_F32) {
        float f = (float)value;
        uint32_t low;
        memcpy(&low, &f, sizeof(low));
        return low;
    }
    if (dt == CC_DTYPE_BOOL) {
        return value != 0;
    }
    if (dt == CC_DTYPE_U64 && value >= 0x1p63 && value < 0x1p64) {
        return (uint64_t)value;
    }
    bool fits = value >= -0x1p63 && value < 0x1p63;
    return cc_const_from_i64(dt, fits ? (int64_t)value : INT64_MIN);
}

double
cc_const_f64(CcDtype dt, uint64_t bits)
{
    double value;

    if (dt == CC_DTYPE_F64) {
        memcpy(&value, &bits, sizeof(value));
        return value;
    }
    if (dt == CC_DTYPE_F32) {
        float f;
        uint32_t low = (uint32_t)bits;
        memcpy(&f, &low, sizeof(f));
        return f;
    }
    return dt == CC_DTYPE_U64 ? (double)bits : (double)(int64_t)bits;
}

int64_t
cc_const_i64(CcDtype dt, uint64_t bits)
{
    if (cc_dtype_is_float(dt)) {
        return (int64_t)cc_const_from_f64(CC_DTYPE_I64, cc_const_f64(dt, bits));
    }
    return (int64_t)bits;
}

/* -- Rewriting --------------------------------------------------------------- */

CcRef
cc_graph_rewrite_copy(CcGraph *dst, const CcGraph *src, CcRef r, const CcRef *map, CcStatus *st)
{
    const CcNode *nd = &src->node[r];
    CcSpec spec = {
        .op = (CcOp)nd->op, .dtype = (CcDtype)nd->dtype, .flags = nd->flags, .ndim = nd->ndim,
        .narg = nd->narg, .nattr = nd->nattr, .shape = src->shape + nd->shape,
        .arg = src->opnd + nd->arg, .attr = src->attr + nd->attr, .bits = nd->bits,
        .where = nd->where,
    };
    CcRef copy;

    if (nd->op == CC_OP_PARAM) {
        const CcParam *param = &src->param[dst->nparam];
        CC_ASSERT(param->node == r);
        copy = cc_graph_push_param(dst, &spec, (CcLayout)param->layout, param->sym, st);
    }
    else {
        copy = cc_graph_push(dst, &spec, st);
    }
    for (uint32_t i = 0; copy != 0 && i < nd->narg; i++) {
        CcRef *arg = &dst->opnd[dst->node[copy].arg + i];
        *arg = map[*arg];
        CC_ASSERT(*arg != 0 && *arg < copy);
    }
    return copy;
}

bool
cc_graph_rewrite_end(CcGraph *src, CcGraph *dst, const CcRef *map, CcStatus *st)
{
    if (!CC_GROW(dst->out, dst->nout, dst->capout, src->nout)) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "%u outputs", src->nout);
    }
    for (uint32_t i = 0; i < src->nout; i++) {
        dst->out[dst->nout] = src->out[i];
        dst->out[dst->nout++].node = map[src->out[i].node];
    }
    cc_graph_fini(src);
    *src = *dst;
    cc_graph_init(dst);
    return true;
}
