/* front/lower_shape.c - rows that only give elements another place: reshape, transpose, flip ...
 *
 * NumPy makes views of them where it can, so none but flatten() and roll() may be a result. */
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

static bool
lower_reshape(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg + 1;
    TapeRef item[TAPE_MAX_NDIM];
    CcDim dim[TAPE_MAX_NDIM];
    FrontValue v;
    int n = (int)L->in->n - 2;

    if (L->in->kw != 0 || n < 1 || n > TAPE_MAX_NDIM || !front_array(L, arg[0], &v)) {
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
    bool row = front_wide_axes(L, v.ref) < 2;
    return front_give(L, r, row ? FRONT_NO_ORDER : LAYOUT_STRIDED, false, out);
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
    bool turned = true;
    uint8_t n = L->g->node[v->ref].ndim, order = LAYOUT_STRIDED;

    for (uint32_t i = 0; i < n; i++) {
        turned &= perm[i] == n - 1 - i;
    }
    if (v->order == FRONT_NO_ORDER) {
        order = FRONT_NO_ORDER;
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

/* One axis; false: not constant. */
static bool
axis_of(Lower *L, TapeRef ref, uint8_t ndim, uint8_t *axis)
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

    if (L->in->kw != 0 || L->in->n < 2 || !front_array(L, arg[0], &v)) {
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
        if (!axis_of(L, arg[1 + i], n, &perm[i])) {
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
    if (!axis_of(L, arg[1], n, &i) || !axis_of(L, arg[2], n, &k)) {
        return false;
    }
    for (uint8_t d = 0; d < n; d++) {
        perm[d] = d == i ? k : d == k ? i : d;
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

/* Elements [from, from + size) of one axis. */
static CcRef
part_of(Lower *L, CcRef r, uint8_t axis, CcDim from, CcDim size)
{
    CcDim dim[TAPE_MAX_NDIM], start[TAPE_MAX_NDIM], zero = cc_dim_const(L->g, 0, &L->st);
    int64_t step[TAPE_MAX_NDIM];
    uint8_t n = front_dims(L, r, dim);

    if (from == 0 || size == 0 || zero == 0) {
        return 0;
    }
    for (uint8_t i = 0; i < n; i++) {
        start[i] = i == axis ? from : zero;
        step[i] = 1;
    }
    dim[axis] = size;
    return cc_build_slice(L->g, r, start, step, dim, &L->st);
}

/* The last `shift` elements come first; the shift is a constant that is smaller than the axis. */
static bool
lower_roll(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue v;
    int64_t shift;
    uint8_t axis = 0;

    if (!front_args(L, "a shift axis", arg) || !front_array(L, arg[0], &v)
            || !front_const_int(L, arg[1], &shift) || shift == 0 || shift < -64 || shift > 64) {
        return front_no(L, "a shift that is not known");
    }
    uint8_t n = L->g->node[v.ref].ndim;
    bool flat = arg[2] == TAPE_NULL || front_const(L, arg[2]) == Py_None;
    if ((flat && n != 1) || (!flat && !axis_of(L, arg[2], n, &axis))) {
        return front_no(L, "roll() of all axes");
    }
    CcDim size = cc_shape(L->g, v.ref)[axis], zero = cc_dim_const(L->g, 0, &L->st);
    CcDim count = cc_dim_const(L->g, shift < 0 ? -shift : shift, &L->st);
    CcDim rest = front_dim(L, CC_DIM_SUB, size, shift < 0 ? -shift : shift);
    if (rest == 0 || cc_dim_eval(L->g, rest, L->sym) < 1 || !front_need(L, rest, 1)) {
        return front_no(L, "a shift beyond the axis");
    }
    CcDim head = shift > 0 ? rest : count, tail = shift > 0 ? count : rest;
    CcRef part[2] = {part_of(L, v.ref, axis, head, tail), part_of(L, v.ref, axis, zero, head)};
    CcRef r = part[0] == 0 || part[1] == 0 ? 0 : cc_build_concat(L->g, part, 2, axis, &L->st);
    /* the sum of both parts is the whole again */
    return front_give(L, r, front_copy_order(L, &v), true, out);
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
    {"flip", lower_flip},               {"roll", lower_roll},
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
