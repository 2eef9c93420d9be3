/* pass/cse.c - a node that computes what an earlier one computes is replaced by it.
 *
 * Equal: op, dtype, shape, attributes, constant and operands (commutative ops: in any order). Not
 * EXTERN, which may have state, and not PARAM. Of two outputs both stay, so each keeps a node of
 * its own. Fault roots: equal nodes raise equal flags, so one root remains for both. Leaves dead
 * nodes for dce. One forward walk, so it ends. */
#include "../base/mem.h"
#include "pass.h"

#include <string.h>

typedef struct {
    CcGraph *g;
    uint8_t *is_out;                    /* owned: node -> 1 */
    CcRef *slot;                        /* owned: open addressing, 0 = free */
    uint32_t nslot;                     /* a power of two, at most half full */
} Cse;

static void
cse_sorted_args(const CcGraph *g, CcRef r, CcRef pair[2])
{
    CcRef a = cc_arg(g, r, 0), b = cc_arg(g, r, 1);

    pair[0] = a < b ? a : b;
    pair[1] = a < b ? b : a;
}

static bool
cse_commutes(const CcGraph *g, CcRef r)
{
    return (cc_info(g, r)->flags & CC_OPF_COMMUTATIVE) != 0;
}

/* Attribute i is a dim: compared by class, not by index. */
static bool
cse_same_attrs(const CcGraph *g, CcRef a, CcRef b)
{
    const CcNode *x = &g->node[a];
    uint8_t ndim0 = x->narg > 0 ? g->node[cc_arg(g, a, 0)].ndim : 0;
    const char *at = NULL;
    CcAttrSpec spec = {0};

    while (cc_attr_next((CcOp)x->op, ndim0, &at, &spec)) {
        for (uint32_t i = spec.first; i < spec.first + (uint32_t)spec.count; i++) {
            int64_t p = cc_attrs(g, a)[i], q = cc_attrs(g, b)[i];
            bool dim = spec.kind == 'd' || spec.kind == 'D';
            if (dim ? !cc_dim_same(g, (CcDim)p, (CcDim)q) : p != q) {
                return false;
            }
        }
    }
    return true;
}

static bool
cse_equal(const CcGraph *g, CcRef a, CcRef b)
{
    const CcNode *x = &g->node[a], *y = &g->node[b];

    if (x->op != y->op || x->dtype != y->dtype || x->bits != y->bits || x->narg != y->narg
        || x->nattr != y->nattr || !cc_same_shape(g, a, b)) {
        return false;
    }
    if (cse_commutes(g, a)) {
        CcRef p[2], q[2];
        cse_sorted_args(g, a, p);
        cse_sorted_args(g, b, q);
        return p[0] == q[0] && p[1] == q[1];
    }
    return (x->narg == 0 || memcmp(cc_args(g, a), cc_args(g, b), x->narg * sizeof(CcRef)) == 0)
        && cse_same_attrs(g, a, b);
}

/* Only of what needs no canonical form: op, constant, operands. */
static uint32_t
cse_hash(const CcGraph *g, CcRef r)
{
    const CcNode *nd = &g->node[r];
    uint64_t h = nd->op + nd->bits * UINT64_C(0x9e3779b97f4a7c15);
    CcRef pair[2];
    const CcRef *arg = cc_args(g, r);

    if (cse_commutes(g, r)) {
        cse_sorted_args(g, r, pair);
        arg = pair;
    }
    for (uint32_t i = 0; i < nd->narg; i++) {
        h = (h ^ arg[i]) * UINT64_C(0xd6e8feb86659fd93);
        h ^= h >> 29;
    }
    return (uint32_t)(h ^ h >> 32);
}

/* The earlier node that r equals, or r itself, which is then remembered. */
static CcRef
cse_find(Cse *c, CcRef r)
{
    CcGraph *g = c->g;
    uint32_t at = cse_hash(g, r) & (c->nslot - 1);

    for (; c->slot[at] != 0; at = (at + 1) & (c->nslot - 1)) {
        CcRef old = c->slot[at];
        if (cse_equal(g, old, r) && !(c->is_out[old] && c->is_out[r])) {
            c->is_out[old] |= c->is_out[r];
            g->node[old].flags |= g->node[r].flags;
            g->node[r].flags = 0;
            return old;
        }
    }
    c->slot[at] = r;
    return r;
}

bool
pass_cse(CcGraph *g, CcStatus *st)
{
    Cse c = {.g = g, .nslot = 16};
    CcRef *map = NULL;
    bool ok = false;

    while (c.nslot < 2 * (uint64_t)g->len) {
        c.nslot *= 2;
    }
    map = cc_calloc(g->len, sizeof(*map));
    c.slot = cc_calloc(c.nslot, sizeof(*c.slot));
    c.is_out = cc_calloc(g->len, 1);
    if (map == NULL || c.slot == NULL || c.is_out == NULL) {
        cc_fail(st, CC_REASON_NO_MEMORY, "cse of %u nodes", g->len);
        goto done;
    }
    for (uint32_t i = 0; i < g->nout; i++) {
        c.is_out[g->out[i].node] = 1;
    }
    for (CcRef r = 1; r < g->len; r++) {
        const CcNode *nd = &g->node[r];
        for (uint32_t i = 0; i < nd->narg; i++) {
            g->opnd[nd->arg + i] = map[cc_arg(g, r, i)];
        }
        bool stays = nd->op == CC_OP_PARAM || nd->op == CC_OP_EXTERN;
        map[r] = stays ? r : cse_find(&c, r);
    }
    for (uint32_t i = 0; i < g->nout; i++) {
        g->out[i].node = map[g->out[i].node];
    }
    ok = true;
done:
    cc_free(map);
    cc_free(c.slot);
    cc_free(c.is_out);
    return ok;
}
