/* front/lower_shape.c - rows that only give elements another place: reshape, transpose, flip ...
 *
 * NumPy makes views of them where it can, so none but copies may be a result. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* -- reshape ----------------------------------------------------------------------------------- */

/* The sizes asked for; a -1 becomes what the others leave. */
static bool
wanted_shape(Lower *L, const FrontValue *v, const TapeRef *ref, uint8_t n, CcDim *dim)
{
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    CcDim rest = cc_numel(L->g, v->ref, &L->st);
    int open = -1;
    int64_t known;

    if (m->form != META_ARRAY || m->ndim != n) {
        return front_no(L, "a shape that was not foreseen");
    }
    for (uint8_t i = 0; i < n; i++) {
        if (front_const_int(L, ref[i], &known) && known == -1) {
            open = i;
            continue;
        }
        dim[i] = front_size(L, ref[i], m->dim[i]);
        if (dim[i] == 0 || cc_dim_equals(L->g, dim[i], 0)) {
            return front_no(L, "a shape that is not known");
        }
    }
    for (uint8_t i = 0; open >= 0 && i < n && rest != 0; i++) {
        if (i != open) {
            rest = cc_dim_make(L->g, CC_DIM_FLOORDIV, rest, dim[i], &L->st);
        }
    }
    if (open >= 0) {
        dim[open] = rest;
    }
    return open < 0 || rest != 0 || front_no(L, "a shape that is not known");
}

/* 0 or 1 keyword: order="C"; others make the arguments too few. */
static int
in_c_order(const Lower *L)
{
    PyObject *names = L->in->kw == 0 ? NULL : L->t->konst[L->in->kw];

    if (names == NULL) {
        return 0;
    }
    PyObject *value = front_const(L, L->t->opnd[L->in->arg + L->in->n - 1]);
    bool plain = PyTuple_GET_SIZE(names) == 1 && value != NULL && PyUnicode_CheckExact(value)
        && PyUnicode_CompareWithASCIIString(value, "C") == 0
        && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "order") == 0;
    return plain ? 1 : (int)L->in->n;
}

static bool
lower_reshape(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg + 1;
    TapeRef item[TAPE_MAX_NDIM];
    CcDim dim[TAPE_MAX_NDIM];
    FrontValue v;
    int n = (int)L->in->n - 2 - in_c_order(L);

    if (n < 1 || n > TAPE_MAX_NDIM || !front_array(L, arg[0], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    PyObject *shape = n == 1 ? front_const(L, arg[1]) : NULL;
    memcpy(item, arg + 1, (size_t)n * sizeof(*item));
    if (n == 1 && TAPE_KIND(arg[1]) == TAPE_VIRT) {
        n = front_items(L, arg[1], item, TAPE_MAX_NDIM);
    } else if (shape != NULL && PyTuple_CheckExact(shape)) {
        return front_lower_reshape_to(L, &v, shape, out);
    }
    bool other = n == 1 && TAPE_KIND(arg[1]) == TAPE_REG
        && L->t->meta[TAPE_INDEX(arg[1])].form == META_NONE;
    if (other) {
        n = m->ndim;                    /* reshape(b.shape) */
        if (!front_shape(L, arg[1], m->ndim, m->dim, dim)) {
            return false;
        }
    } else if (n < 0 || !wanted_shape(L, &v, item, (uint8_t)n, dim)) {
        return front_no(L, "a shape that is not known");
    }
    CcRef r = cc_build_reshape(L->g, v.ref, (uint8_t)n, dim, &L->st);
    return front_give(L, r, LAYOUT_C, false, out);
}

/* A constant shape: its items as if they were operands. */
bool
front_lower_reshape_to(Lower *L, const FrontValue *v, PyObject *shape, FrontValue *out)
{
    CcDim dim[TAPE_MAX_NDIM], rest = cc_numel(L->g, v->ref, &L->st);
    Py_ssize_t n = PyTuple_GET_SIZE(shape), open = -1;

    for (Py_ssize_t i = 0; n <= TAPE_MAX_NDIM && i < n; i++) {
        PyObject *obj = PyTuple_GET_ITEM(shape, i);
        long size = PyLong_CheckExact(obj) ? PyLong_AsLong(obj) : -2;
        PyErr_Clear();
        if (size == -1 && open < 0) {
            open = i;
        } else if (size < 1) {
            return front_no(L, "a shape that is not known");
        } else {
            dim[i] = cc_dim_const(L->g, size, &L->st);
        }
    }
    for (Py_ssize_t i = 0; n <= TAPE_MAX_NDIM && open >= 0 && i < n && rest != 0; i++) {
        if (i != open) {
            rest = cc_dim_make(L->g, CC_DIM_FLOORDIV, rest, dim[i], &L->st);
        }
    }
    if (n > TAPE_MAX_NDIM || rest == 0) {
        return front_no(L, "a shape that is not known");
    }
    if (open >= 0) {
        dim[open] = rest;
    }
    CcRef r = cc_build_reshape(L->g, v->ref, (uint8_t)n, dim, &L->st);
    return front_give(L, r, LAYOUT_C, false, out);
}

static bool
lower_flat(Lower *L, bool fresh, FrontValue *out)
{
    FrontValue v;

    if (L->in->n != 2 || L->in->kw != 0 || !front_array(L, L->t->opnd[L->in->arg + 1], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    CcDim n = cc_numel(L->g, v.ref, &L->st);
    CcRef r = n == 0 ? 0 : cc_build_reshape(L->g, v.ref, 1, &n, &L->st);
    return front_give(L, r, LAYOUT_C, fresh, out);
}

static bool
lower_broadcast_to(Lower *L, FrontValue *out)
{
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    TapeRef arg[2];
    CcDim dim[TAPE_MAX_NDIM];
    FrontValue v;

    if (!front_args(L, "array shape", arg) || !front_array(L, arg[0], &v)
            || !front_shape(L, arg[1], m->ndim, m->dim, dim)) {
        return front_no(L, "arguments that have no kernel");
    }
    CcRef r = cc_build_broadcast(L->g, v.ref, m->ndim, dim, &L->st);
    /* axes that are stretched have no say in the order of what is made of it */
    uint8_t order = v.order == LAYOUT_C ? LAYOUT_C : LAYOUT_STRIDED;
    return front_give(L, r, front_wide_axes(L, v.ref) < 2 ? FRONT_NO_ORDER : order, false, out);
}

/* a.copy() is in C order, np.copy(a) in that of a. */
static bool
lower_copy(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg;
    bool method = Py_IS_TYPE(front_const(L, arg[0]), &PyMethodDescr_Type);
    FrontValue v;

    if (L->in->n != 2 || L->in->kw != 0 || !front_array(L, arg[1], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    return front_give(L, v.ref, method ? LAYOUT_C : front_copy_order(L, &v), true, out);
}

/* -- Axes
 * ------------------------------------------------------------------------------------------ */

static bool
permuted(Lower *L, const FrontValue *v, const uint8_t *perm, FrontValue *out)
{
    CcRef r = cc_build_transpose(L->g, v->ref, perm, &L->st);
    bool turned = true, kept = true;
    uint8_t n = L->g->node[v->ref].ndim, order = LAYOUT_STRIDED;

    for (int i = 0, last = -1; i < n; i++) {
        if (!cc_dim_equals(L->g, cc_shape(L->g, v->ref)[perm[i]], 1)) {
            turned &= last < 0 || perm[i] < last;
            kept &= perm[i] > last;
            last = perm[i];
        }
    }
    if (v->order == FRONT_NO_ORDER || kept) {
        order = v->order;
    } else if (turned && v->order != LAYOUT_STRIDED) {
        order = v->order == LAYOUT_C ? LAYOUT_F : LAYOUT_C;
    }
    return front_give(L, r, order, false, out);
}

static bool
turn_axes(Lower *L, const FrontValue *v, bool last_two, FrontValue *out)
{
    uint8_t perm[TAPE_MAX_NDIM], n = L->g->node[v->ref].ndim;

    for (uint8_t i = 0; i < n; i++) {
        perm[i] = last_two ? i : (uint8_t)(n - 1 - i);
    }
    if (last_two && n < 2) {
        return front_no(L, "fewer than two axes");
    }
    if (last_two) {
        perm[n - 1] = (uint8_t)(n - 2);
        perm[n - 2] = (uint8_t)(n - 1);
    }
    return permuted(L, v, perm, out);
}

bool
front_axis(Lower *L, TapeRef ref, uint8_t ndim, uint8_t *axis)
{
    int64_t a;

    if (!front_const_int(L, ref, &a)) {
        return front_no(L, "an axis that is not known");
    }
    a += a < 0 ? ndim : 0;
    *axis = (uint8_t)a;
    return (a >= 0 && a < ndim) || front_no(L, "an axis that is not there");
}

static bool
read_perm(Lower *L, TapeRef ref, uint8_t n, uint8_t *perm)
{
    PyObject *obj = front_object(L, ref);
    bool ok = obj != NULL && PyTuple_CheckExact(obj) && PyTuple_GET_SIZE(obj) == n;

    for (uint8_t i = 0; ok && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(obj, i);
        long a = PyLong_CheckExact(item) ? PyLong_AsLong(item) : n;
        PyErr_Clear();
        a += a < 0 ? n : 0;
        ok = a >= 0 && a < n;
        perm[i] = (uint8_t)a;
    }
    Py_XDECREF(obj);
    return ok || front_no(L, "axes that are not known");
}

static bool
lower_transpose(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg + 1;
    uint8_t perm[TAPE_MAX_NDIM];
    FrontValue v;

    PyObject *names = L->in->kw == 0 ? NULL : L->t->konst[L->in->kw];
    bool named = names != NULL && PyTuple_GET_SIZE(names) == 1 && L->in->n == 3
        && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "axes") == 0;
    if ((names != NULL && !named) || L->in->n < 2 || !front_array(L, arg[0], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    uint8_t n = L->g->node[v.ref].ndim;
    uint32_t given = L->in->n - 2u;
    if (given == 0 || (given == 1 && front_const(L, arg[1]) == Py_None)) {
        return turn_axes(L, &v, false, out);
    }
    if (given == 1 && n != 1) {
        return read_perm(L, arg[1], n, perm) && permuted(L, &v, perm, out);
    }
    if (given != n) {
        return front_no(L, "axes that are not known");
    }
    for (uint8_t i = 0; i < n; i++) {
        if (!front_axis(L, arg[1 + i], n, &perm[i])) {
            return false;
        }
    }
    return permuted(L, &v, perm, out);
}

static bool
lower_swapaxes(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    uint8_t perm[TAPE_MAX_NDIM], i, k;
    FrontValue v;

    if (!front_args(L, "a axis1 axis2", arg) || !front_array(L, arg[0], &v)) {
        return false;
    }
    uint8_t n = L->g->node[v.ref].ndim;
    if (!front_axis(L, arg[1], n, &i) || !front_axis(L, arg[2], n, &k)) {
        return false;
    }
    for (uint8_t d = 0; d < n; d++) {
        perm[d] = d == i ? k : d == k ? i : d;
    }
    return permuted(L, &v, perm, out);
}

static bool
lower_mt(Lower *L, FrontValue *out)
{
    FrontValue v;

    if (L->in->n != 2 || L->in->kw != 0 || !front_array(L, L->t->opnd[L->in->arg + 1], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    return turn_axes(L, &v, true, out);
}

/* One axis or several, in the order given; how many, 0 = not known. */
static uint8_t
axis_list(const Lower *L, TapeRef ref, uint8_t ndim, uint8_t *axis)
{
    PyObject *obj = front_object(L, ref);
    PyObject *all = obj == NULL ? NULL : PyLong_CheckExact(obj) ? PyTuple_Pack(1, obj)
                  : PyTuple_CheckExact(obj) || PyList_CheckExact(obj) ? PySequence_Tuple(obj)
                                                                       : NULL;
    Py_ssize_t n = all == NULL || PyTuple_GET_SIZE(all) > ndim ? 0 : PyTuple_GET_SIZE(all);

    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GET_ITEM(all, i);
        long a = PyLong_CheckExact(o) ? PyLong_AsLong(o) : ndim;
        a += a < 0 ? ndim : 0;
        bool ok = a >= 0 && a < ndim;
        axis[i] = (uint8_t)a;
        for (Py_ssize_t k = 0; k < i; k++) {
            ok &= axis[k] != axis[i];
        }
        n = ok ? n : 0;
    }
    Py_XDECREF(all);
    Py_XDECREF(obj);
    PyErr_Clear();
    return (uint8_t)n;
}

/* moveaxis(a, from, to): the others keep their order in what is left. */
static bool
lower_moveaxis(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    uint8_t from[TAPE_MAX_NDIM], to[TAPE_MAX_NDIM], perm[TAPE_MAX_NDIM];
    uint32_t moved = 0, taken = 0;
    FrontValue v;

    if (!front_args(L, "a source destination", arg) || !front_array(L, arg[0], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    uint8_t ndim = L->g->node[v.ref].ndim, n = axis_list(L, arg[1], ndim, from), at = 0;
    if (n == 0 || axis_list(L, arg[2], ndim, to) != n) {
        return front_no(L, "axes that are not known");
    }
    for (uint8_t i = 0; i < n; i++) {
        perm[to[i]] = from[i];
        taken |= 1u << to[i];
        moved |= 1u << from[i];
    }
    for (uint8_t i = 0; i < ndim; i++) {
        while (at < ndim && (moved >> at & 1)) {
            at++;
        }
        if ((taken >> i & 1) == 0) {
            perm[i] = at++;
        }
    }
    return permuted(L, &v, perm, out);
}

static bool
lower_expand(Lower *L, FrontValue *out)
{
    TapeRef arg[2];
    uint64_t axes;
    FrontValue v;
    int64_t one;

    if (!front_args(L, "a axis", arg) || !front_array(L, arg[0], &v)) {
        return false;
    }
    uint8_t n = L->g->node[v.ref].ndim, more = front_const_int(L, arg[1], &one) ? 1 : 2;
    if (n + more > TAPE_MAX_NDIM || !front_axes(L, arg[1], (uint8_t)(n + more), &axes)
            || __builtin_popcountll(axes) != more) {
        return front_no(L, "axes that are not known");
    }
    return front_give(L, cc_build_expand(L->g, v.ref, axes, &L->st), v.order, false, out);
}

static bool
lower_squeeze(Lower *L, FrontValue *out)
{
    TapeRef arg[2];
    CcDim dim[TAPE_MAX_NDIM];
    uint64_t axes = 0;
    uint8_t n = 0;
    FrontValue v;

    if (!front_args(L, "a axis", arg) || !front_array(L, arg[0], &v)) {
        return false;
    }
    uint8_t ndim = L->g->node[v.ref].ndim;
    bool all = arg[1] == TAPE_NULL || front_const(L, arg[1]) == Py_None;
    if (!all && !front_axes(L, arg[1], ndim, &axes)) {
        return false;
    }
    for (uint8_t i = 0; i < ndim; i++) {
        CcDim d = cc_shape(L->g, v.ref)[i];
        bool one = cc_dim_equals(L->g, d, 1), named = (axes >> i & 1) != 0;
        if (named && !one) {
            return front_no(L, "squeeze() of a long axis");
        }
        if (!(one && (all || named))) {
            dim[n++] = d;
        }
    }
    return front_give(L, cc_build_reshape(L->g, v.ref, n, dim, &L->st), v.order, false, out);
}

/* -- Elements
 * ------------------------------------------------------------------------------------------ */

static bool
lower_flip(Lower *L, FrontValue *out)
{
    TapeRef arg[2];
    uint64_t axes;
    FrontValue v;

    if (!front_args(L, "m axis", arg) || !front_array(L, arg[0], &v)) {
        return false;
    }
    uint8_t n = L->g->node[v.ref].ndim;
    if (arg[1] == TAPE_NULL || front_const(L, arg[1]) == Py_None) {
        axes = ((uint64_t)1 << n) - 1;
    } else if (!front_axes(L, arg[1], n, &axes)) {
        return false;
    }
    return front_give(L, cc_build_flip(L->g, v.ref, axes, &L->st), v.order, false, out);
}

static bool
flip_alone(Lower *L, uint32_t axis, FrontValue *out)
{
    FrontValue v;

    if (L->in->n != 2 || L->in->kw != 0 || !front_array(L, L->t->opnd[L->in->arg + 1], &v)
            || axis >= L->g->node[v.ref].ndim) {
        return front_no(L, "arguments that have no kernel");
    }
    CcRef r = cc_build_flip(L->g, v.ref, (uint64_t)1 << axis, &L->st);
    return front_give(L, r, v.order, false, out);
}

static bool
lower_fliplr(Lower *L, FrontValue *out)
{
    return flip_alone(L, 1, out);
}

static bool
lower_flipud(Lower *L, FrontValue *out)
{
    return flip_alone(L, 0, out);
}

/* Axes before what there is. */
static bool
at_least(Lower *L, uint8_t want, FrontValue *out)
{
    FrontValue v;

    if (L->in->n != 2 || L->in->kw != 0 || !front_array(L, L->t->opnd[L->in->arg + 1], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    uint8_t n = L->g->node[v.ref].ndim;
    uint64_t axes = n < want ? ((uint64_t)1 << (want - n)) - 1 : 0;
    CcRef r = axes == 0 ? v.ref : cc_build_expand(L->g, v.ref, axes, &L->st);
    return front_give(L, r, v.order, false, out);
}

static bool
lower_atleast_1d(Lower *L, FrontValue *out)
{
    return at_least(L, 1, out);
}

static bool
lower_atleast_2d(Lower *L, FrontValue *out)
{
    return at_least(L, 2, out);
}

/* -- Dispatch
 * --------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*lower)(Lower *L, FrontValue *out);
} shape_rows[] = {
    {"reshape", lower_reshape},         {"transpose", lower_transpose},
    {"permute_dims", lower_transpose},  {"swapaxes", lower_swapaxes},
    {"expand_dims", lower_expand},      {"squeeze", lower_squeeze},
    {"flip", lower_flip},               {"fliplr", lower_fliplr},
    {"flipud", lower_flipud},           {"moveaxis", lower_moveaxis},
    {"matrix_transpose", lower_mt},     {"atleast_1d", lower_atleast_1d},
    {"atleast_2d", lower_atleast_2d},
    {"take", front_lower_take},         {"broadcast_to", lower_broadcast_to},
    {"copy", lower_copy},
};

bool
front_lower_shaping(Lower *L, const char *name, bool *mine, FrontValue *out)
{
    *mine = true;
    if (strcmp(name, "ravel") == 0 || strcmp(name, "flatten") == 0) {
        return lower_flat(L, *name == 'f', out);
    }
    for (size_t i = 0; i < sizeof(shape_rows) / sizeof(*shape_rows); i++) {
        if (strcmp(shape_rows[i].name, name) == 0) {
            return shape_rows[i].lower(L, out);
        }
    }
    *mine = false;
    return false;
}

bool
front_lower_attribute(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg;
    PyObject *name = front_const(L, arg[1]);
    FrontValue v;

    if (name == NULL || !PyUnicode_CheckExact(name) || !front_array(L, arg[0], &v)) {
        return front_no(L, "an attribute without a kernel");
    }
    bool all = PyUnicode_CompareWithASCIIString(name, "T") == 0;
    if (!all && PyUnicode_CompareWithASCIIString(name, "mT") != 0) {
        return front_no(L, "an attribute without a kernel");
    }
    return turn_axes(L, &v, !all, out);
}
