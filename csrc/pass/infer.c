/* pass/infer.c - fill in dtypes and canonical shapes (the rules are in ir/infer.c).
 *
 * Needs nothing. Keeps nodes and their order. Records equality guards where a rule needs them, so a
 * graph from text without guards becomes one that verifies. PARAM nodes keep the dims they were
 * made with: those say what is bound where. */
#include "../ir/build.h"
#include "pass.h"

static bool
infer_node(CcGraph *g, CcRef r, CcStatus *st)
{
    const CcNode nd = g->node[r];
    CcSpec spec = {.op = (CcOp)nd.op, .dtype = (CcDtype)nd.dtype, .ndim = nd.ndim, .narg = nd.narg,
                   .nattr = nd.nattr, .shape = cc_shape(g, r), .arg = cc_args(g, r),
                   .attr = cc_attrs(g, r)};
    CcType type;

    if (!cc_infer(g, &spec, true, &type, st)) {
        return false;
    }
    if (type.ndim != nd.ndim) {
        return cc_fail(st, CC_REASON_BAD_OPERANDS, "%%%u: wrong number of axes", r);
    }
    g->node[r].dtype = (uint8_t)type.dtype;
    for (uint32_t i = 0; nd.op != CC_OP_PARAM && i < nd.ndim; i++) {
        g->shape[nd.shape + i] = type.dim[i];
    }
    return true;
}

bool
pass_infer(CcGraph *g, CcStatus *st)
{
    for (CcRef r = 1; r < g->len; r++) {
        if (!infer_node(g, r, st)) {
            return false;
        }
    }
    for (CcRef r = 1; r < g->len; r++) {        /* a late guard changes what is canonical early */
        const CcNode *nd = &g->node[r];
        for (uint32_t i = 0; nd->op != CC_OP_PARAM && i < nd->ndim; i++) {
            g->shape[nd->shape + i] = cc_dim_canon(g, g->shape[nd->shape + i]);
        }
    }
    return true;
}
