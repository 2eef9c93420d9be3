/* pass/dce.c - drop nodes that nothing needs.
 *
 * Alive: outputs, fault roots, parameters (they are the calling convention) and operands of those.
 * Keeps order and everything else. One backward walk marks, one forward walk copies, so it ends. */
#include "../base/mem.h"
#include "pass.h"

bool
pass_dce(CcGraph *g, CcStatus *st)
{
    CcRef *map = cc_calloc(g->len, sizeof(*map));       /* first: 1 = alive; then: new ref */
    CcGraph dst;
    bool ok = false;

    cc_graph_init(&dst);
    if (map == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "dce of %u nodes", g->len);
    }
    for (uint32_t i = 0; i < g->nout; i++) {
        map[g->out[i].node] = 1;
    }
    for (CcRef r = g->len; r-- > 1;) {
        const CcNode *nd = &g->node[r];
        if (map[r] == 0 && nd->op != CC_OP_PARAM && (nd->flags & CC_NODE_FAULT) == 0) {
            continue;
        }
        map[r] = 1;
        for (uint32_t i = 0; i < nd->narg; i++) {
            map[cc_arg(g, r, i)] = 1;
        }
    }
    if (!cc_graph_rewrite_begin(&dst, g, st)) {
        goto done;
    }
    for (CcRef r = 1; r < g->len; r++) {
        if (map[r] != 0 && (map[r] = cc_graph_rewrite_copy(&dst, g, r, map, st)) == 0) {
            goto done;
        }
    }
    ok = cc_graph_rewrite_end(g, &dst, map, st);
done:
    cc_graph_fini(&dst);
    cc_free(map);
    return ok;
}
