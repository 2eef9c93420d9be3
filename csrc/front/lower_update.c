/* front/lower_update.c - the new contents of an array that the program changes in place.
 *
 * They have the shape and dtype of the target, and its order in memory; nobody sees them but the row
 * that copies them, or they become the variable's array. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* `r` stretched to this shape: axes that must be equal are guarded to be. */
static CcRef
to_shape(Lower *L, CcRef r, uint8_t ndim, const CcDim *dim)
{
    uint8_t have = r == 0 ? 0 : L->g->node[r].ndim;

    if (r == 0 || have > ndim) {
        return 0;
    }
    for (uint32_t i = 0; i < have; i++) {
        CcDim d = cc_shape(L->g, r)[i], want = dim[ndim - have + i];
        if (!cc_dim_equals(L->g, d, 1) && !cc_graph_require_eq(L->g, d, want, &L->st)) {
            return 0;
        }
    }
    return cc_build_broadcast(L->g, r, ndim, dim, &L->st);
}

/* `r` as the contents of `ndim` axes of an array like `like`. */
static bool
give_contents(Lower *L, const FrontValue *like, CcRef r, uint8_t ndim, const CcDim *dim,
              FrontValue *out)
{
    r = cc_build_cast(L->g, r, front_dtype(like->dtype), &L->st);
    r = to_shape(L, r, ndim, dim);
    return front_give(L, r, like->order, like->order != LAYOUT_STRIDED, out);
}

static bool
give_whole(Lower *L, const FrontValue *like, CcRef r, FrontValue *out)
{
    CcDim dim[CC_MAX_NDIM];
    uint8_t ndim = L->g->node[like->ref].ndim;

    for (uint8_t i = 0; i < ndim; i++) {
        dim[i] = cc_shape(L->g, like->ref)[i];
    }
    return give_contents(L, like, r, ndim, dim, out);
}

/* A target: an array. */
static bool
target_value(Lower *L, TapeRef ref, FrontValue *out)
{
    return front_value(L, ref, out)
        && (out->form == META_ARRAY || front_no(L, "a target that is no array"));
}

static bool
lower_inplace(Lower *L, const TapeRef *arg, FrontValue *out)
{
    FrontValue a, v;

    return target_value(L, arg[0], &a) && front_lower_binary(L, arg, &v)
        && give_whole(L, &a, v.ref, out);
}

static bool
lower_assign(Lower *L, const TapeRef *arg, FrontValue *out)
{
    CcDim dim[CC_MAX_NDIM];
    FrontValue a, v;
    uint8_t ndim;

    if (!target_value(L, arg[0], &a) || !front_value(L, arg[2], &v)
            || !front_part_shape(L, a.ref, arg[1], &ndim, dim)) {
        return false;
    }
    CcRef r = front_as(L, &v, front_dtype(a.dtype));
    return r != 0 && give_contents(L, &a, r, ndim, dim, out);
}

/* a[mask] = number */
static bool
lower_store(Lower *L, const TapeRef *arg, FrontValue *out)
{
    FrontValue a, mask, v;

    if (!target_value(L, arg[0], &a) || !target_value(L, arg[1], &mask)
            || !front_value(L, arg[2], &v)) {
        return false;
    }
    CcRef value = front_as(L, &v, front_dtype(a.dtype));
    if (value == 0 || mask.dtype != NPY_BOOL
            || L->g->node[mask.ref].ndim != L->g->node[a.ref].ndim) {
        return front_no(L, "an index without a kernel");
    }
    if (L->g->node[value].ndim != 0) {
        return front_no(L, "a mask with many values");
    }
    CcRef ref[3] = {mask.ref, value, a.ref};
    if (!cc_build_broadcast_all(L->g, ref, 3, &L->st)) {
        return front_no(L, "shapes that do not fit");
    }
    return give_whole(L, &a, cc_build_where(L->g, ref[0], ref[1], ref[2], &L->st), out);
}

/* f(..., out=a) of a ufunc */
static bool
into_ufunc(Lower *L, PyUFuncObject *uf, const TapeRef *arg, const FrontValue *a, FrontValue *out)
{
    PyObject *kwnames = L->in->kw == 0 ? NULL : L->t->konst[L->in->kw];
    uint32_t nkw = kwnames == NULL ? 0 : (uint32_t)PyTuple_GET_SIZE(kwnames);
    FrontValue v;
    bool ok;

    if (L->in->n != (uint32_t)uf->nin + 2 || nkw > 1 || L->in->aux != (uint32_t)uf->nin + 1) {
        return front_no(L, "arguments that have no kernel");
    }
    if (strcmp(uf->name, "matmul") == 0) {
        ok = front_lower_matmul(L, arg[1], arg[2], false, &v);
    } else {
        ok = front_lower_ufunc(L, uf->name, arg + 1, (uint32_t)uf->nin, &v);
    }
    return ok && give_whole(L, a, v.ref, out);
}

static bool
lower_into(Lower *L, const TapeRef *arg, FrontValue *out)
{
    PyObject *fn = front_const(L, arg[0]);
    FrontValue a, v;

    if (fn == NULL || !target_value(L, arg[L->in->aux], &a)) {
        return front_no(L, "a callable that is no constant");
    }
    if (Py_IS_TYPE(fn, &PyUFunc_Type)) {
        return into_ufunc(L, (PyUFuncObject *)fn, arg, &a, out);
    }
    bool fills = Py_IS_TYPE(fn, &PyMethodDescr_Type)
        && strcmp(((PyMethodDescrObject *)fn)->d_method->ml_name, "fill") == 0;
    bool copies = !Py_IS_TYPE(fn, &PyMethodDescr_Type) && L->in->kw == 0;       /* copyto */
    if (L->in->n != 3 || (!fills && !copies)) {
        return front_no(L, "a function without a kernel");
    }
    if (!front_value(L, arg[2], &v)) {
        return false;
    }
    CcRef r = front_as(L, &v, front_dtype(a.dtype));
    return r != 0 && give_whole(L, &a, r, out);
}

bool
front_lower_update(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg;

    switch ((CallKind)L->in->sub) {
    case DO_INPLACE:
        return lower_inplace(L, arg, out);
    case DO_ASSIGN:
        return lower_assign(L, arg, out);
    case DO_STORE:
        return lower_store(L, arg, out);
    default:
        return lower_into(L, arg, out);
    }
}
