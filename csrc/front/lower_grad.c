/* front/lower_grad.c - the gradients of a recorded loss: reverse mode on the graph of its launch.
 *
 * All operations between the leaves and the loss must be nodes of this very graph: one that was
 * computed elsewhere would be a parameter here, and the path through it would be lost. Such ones,
 * from before a branch on a value, are computed here again. */
#include "npy.h"

#include "../base/vec.h"
#include "../pass/pass.h"
#include "lower_node.h"

static bool
bring_path_here(Lower *L, const TapeGrad *tg)
{
    const TapeRef *op = L->t->opnd + tg->first + tg->nleaves;
    const TapeIns *in = L->in;
    bool ok = true, again = false;      /* behind one that comes, all come: theirs had a parameter */

    for (uint32_t i = 0; ok && i < tg->nops; i++) {
        FrontValue *v = &L->val[TAPE_INDEX(op[i])], out;
        if (v->inside && !again) {
            continue;
        }
        again = true;
        L->in = front_row_of(L, op[i]);
        ok = L->in != NULL && front_lower_row(L, &out);
        out.inside = true;
        *v = ok ? out : *v;
    }
    L->in = in;
    return ok || front_no(L, "a gradient of what has no kernel");
}

static FrontGradient *
push_gradient(Lower *L, uint32_t nleaves)
{
    if (L->ngrad >= FRONT_MAX_GRADIENTS || !CC_GROW(L->gref, L->ngref, L->cap_gref, nleaves)) {
        L->why = "too many gradients";
        return NULL;
    }
    FrontGradient *gr = &L->grad[L->ngrad];
    *gr = (FrontGradient){.reg = L->in->dst - 1, .first = L->ngref, .n = nleaves};
    return gr;
}

/* The row that calls a Backward: its result is a tuple, which only lower_gradient_item reads. */
bool
front_lower_gradient(Lower *L, FrontValue *out)
{
    const TapeGrad *tg = &L->t->grad[L->in->aux - 1];
    CcRef wrt[FRONT_MAX_LEAVES];
    FrontValue loss, v;

    if (tg->nleaves > FRONT_MAX_LEAVES || !bring_path_here(L, tg)
            || !front_value(L, TAPE_REF(TAPE_REG, tg->loss), &loss) || loss.ref == 0) {
        return front_no(L, L->why == NULL ? "a loss that is no node" : L->why);
    }
    for (uint32_t i = 0; i < tg->nleaves; i++) {
        if (!front_value(L, L->t->opnd[tg->first + i], &v) || v.form != META_ARRAY) {
            return front_no(L, "a leaf that is no array");
        }
        wrt[i] = v.ref;
    }
    FrontGradient *gr = push_gradient(L, tg->nleaves);
    if (gr == NULL) {
        return false;
    }
    gr->from = L->g->len;
    if (!pass_grad(L->g, loss.ref, wrt, tg->nleaves, L->gref + gr->first, &L->st)) {
        return front_no(L, "an operation without a derivative");
    }
    gr->to = L->g->len;
    L->ngref += tg->nleaves;
    L->ngrad++;
    *out = (FrontValue){.form = META_NONE};
    return true;
}

bool
front_is_gradient(const Lower *L, TapeRef ref)
{
    for (uint32_t i = 0; TAPE_KIND(ref) == TAPE_REG && i < L->ngrad; i++) {
        if (L->grad[i].reg == TAPE_INDEX(ref)) {
            return true;
        }
    }
    return false;
}

bool
front_lower_gradient_item(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg;
    int64_t k;

    for (uint32_t i = 0; i < L->ngrad; i++) {
        if (L->grad[i].reg == TAPE_INDEX(arg[0]) && front_const_int(L, arg[1], &k) && k >= 0
                && k < L->grad[i].n) {
            return front_give(L, L->gref[L->grad[i].first + (uint32_t)k], LAYOUT_C, true, out);
        }
    }
    return front_no(L, "an item that is no gradient");
}

/* Errors in the derivative are ignored, as the framework's own way ignores them. */
bool
front_is_quiet(const Lower *L, CcRef r)
{
    for (uint32_t i = 0; i < L->ngrad; i++) {
        if (r >= L->grad[i].from && r < L->grad[i].to) {
            return true;
        }
    }
    return false;
}
