/* front/lower_product.c - sums of products: matmul, dot, inner, tensordot, einsum, outer ...
 *
 * All but matmul are contractions: every axis of both operands and of the result has a label. Axes
 * that only one operand has and the result lacks are summed first; the rest is one matrix product,
 * or elementwise work where nothing is summed or nothing remains. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* -- Matrix products ---------------------------------------------------------------------------- */

/* Leading axes of a and b made equal. */
static bool
same_batch(Lower *L, CcRef *a, CcRef *b)
{
    CcGraph *g = L->g;
    CcDim da[TAPE_MAX_NDIM + 2], db[TAPE_MAX_NDIM + 2];
    uint8_t na = front_dims(L, *a, da), nb = front_dims(L, *b, db), n = na > nb ? na : nb;
    CcDim wide_a[TAPE_MAX_NDIM + 2], wide_b[TAPE_MAX_NDIM + 2];

    for (uint8_t i = 0; i + 2 < n; i++) {
        int ia = i - (n - na), ib = i - (n - nb);
        CcDim x = ia >= 0 ? da[ia] : db[ib], y = ib >= 0 ? db[ib] : da[ia];
        bool x_one = cc_dim_equals(g, x, 1), y_one = cc_dim_equals(g, y, 1);
        if (!x_one && !y_one && !cc_graph_require_eq(g, x, y, &L->st)) {
            return front_no(L, "shapes that do not fit");
        }
        wide_a[i] = wide_b[i] = x_one ? y : x;
    }
    memcpy(wide_a + n - 2, da + na - 2, 2 * sizeof(*da));
    memcpy(wide_b + n - 2, db + nb - 2, 2 * sizeof(*db));
    *a = cc_build_broadcast(g, *a, n, wide_a, &L->st);
    *b = cc_build_broadcast(g, *b, n, wide_b, &L->st);
    return *a != 0 && *b != 0;
}

bool
front_lower_matmul(Lower *L, TapeRef a, TapeRef b, bool dot, FrontValue *out)
{
    FrontValue v[2];
    CcDtype dt = front_dtype(L->t->meta[L->in->dst - 1].dtype);
    CcDim dim[TAPE_MAX_NDIM + 2];
    CcRef x, y;

    if (!front_array(L, a, &v[0]) || !front_array(L, b, &v[1])) {
        return false;
    }
    uint8_t na = L->g->node[v[0].ref].ndim, nb = L->g->node[v[1].ref].ndim;
    if (na == 0 || nb == 0 || (dot && (na > 2 || nb > 2)) || dt == CC_DTYPE_BOOL) {
        return front_no(L, "a product that is not of matrices");
    }
    x = front_as(L, &v[0], dt);
    y = front_as(L, &v[1], dt);
    if (x == 0 || y == 0) {
        return false;
    }
    x = na == 1 ? cc_build_expand(L->g, x, 1, &L->st) : x;
    y = nb == 1 ? cc_build_expand(L->g, y, 2, &L->st) : y;
    if (x == 0 || y == 0 || !same_batch(L, &x, &y)) {
        return front_no(L, "shapes that do not fit");
    }
    CcRef r = cc_build_matmul(L->g, x, y, false, false, &L->st);
    if (r != 0 && (na == 1 || nb == 1)) {
        uint8_t n = front_dims(L, r, dim), keep = 0;
        for (uint8_t i = 0; i < n; i++) {
            bool gone = (na == 1 && i == n - 2) || (nb == 1 && i == n - 1);
            if (!gone) {
                dim[keep++] = dim[i];
            }
        }
        r = cc_build_reshape(L->g, r, keep, dim, &L->st);
    }
    return front_give(L, r, LAYOUT_C, true, out);
}

/* -- Contractions ------------------------------------------------------------------------------- */

enum { SIDE_MAX = TAPE_MAX_NDIM, OUT_MAX = CC_MAX_NDIM };

/* An operand and the label of each of its axes. */
typedef struct {
    CcRef r;
    uint8_t n, label[SIDE_MAX];
} Side;

/* Axes of one kind, in the order in which the matrix product has them. */
typedef struct {
    uint8_t n, label[OUT_MAX];
    CcDim dim[OUT_MAX];
} Group;

static int
label_at(const uint8_t *label, uint8_t n, uint8_t want)
{
    for (int i = 0; i < n; i++) {
        if (label[i] == want) {
            return i;
        }
    }
    return -1;
}

static bool
labels_differ(const uint8_t *label, uint8_t n)
{
    for (uint8_t i = 0; i < n; i++) {
        if (label_at(label, i, label[i]) >= 0) {
            return false;
        }
    }
    return true;
}

/* Sum what neither the other side nor the result has. */
static bool
side_sum(Lower *L, Side *s, const Side *other, const uint8_t *out, uint8_t nout)
{
    uint64_t axes = 0;
    uint8_t keep = 0;

    for (uint8_t i = 0; i < s->n; i++) {
        if (label_at(out, nout, s->label[i]) < 0
                && (other == NULL || label_at(other->label, other->n, s->label[i]) < 0)) {
            axes |= (uint64_t)1 << i;
        } else {
            s->label[keep++] = s->label[i];
        }
    }
    s->n = keep;
    s->r = axes == 0 ? s->r : cc_build_reduce(L->g, CC_OP_SUM, s->r, axes, false, &L->st);
    return s->r != 0;
}

/* The side with its axes in the order of these groups; a group it lacks gets axes of size 1 when
 * `stretch`. Axes of size 1 against longer ones are the framework's. */
static CcRef
side_turn(Lower *L, const Side *s, const Group *const *group, uint32_t ngroup, bool stretch)
{
    uint8_t perm[SIDE_MAX], n = 0, ndim = 0;
    CcDim dim[OUT_MAX * 3];

    for (uint32_t k = 0; k < ngroup; k++) {
        for (uint8_t i = 0; i < group[k]->n; i++) {
            int at = label_at(s->label, s->n, group[k]->label[i]);
            if (at >= 0) {
                perm[n++] = (uint8_t)at;
                dim[ndim++] = group[k]->dim[i];
            } else if (stretch) {
                dim[ndim++] = cc_dim_const(L->g, 1, &L->st);
            }
        }
    }
    CcRef r = cc_build_transpose(L->g, s->r, perm, &L->st);
    return r == 0 || !stretch ? r : cc_build_reshape(L->g, r, ndim, dim, &L->st);
}

static void
group_add(Group *g, uint8_t label, CcDim dim)
{
    g->label[g->n] = label;
    g->dim[g->n++] = dim;
}

/* Both, free in a, free in b, summed. */
static bool
contract_groups(Lower *L, const Side *a, const Side *b, const uint8_t *out, uint8_t nout,
                Group group[4])
{
    memset(group, 0, 4 * sizeof(*group));
    for (uint8_t i = 0; i < a->n; i++) {
        int other = label_at(b->label, b->n, a->label[i]);
        CcDim dim = cc_shape(L->g, a->r)[i];
        if (other >= 0 && !cc_graph_require_eq(L->g, dim, cc_shape(L->g, b->r)[other], &L->st)) {
            return front_no(L, "shapes that do not fit");
        }
        bool kept = label_at(out, nout, a->label[i]) >= 0;
        group_add(&group[other < 0 ? 1 : kept ? 0 : 3], a->label[i], dim);
    }
    for (uint8_t i = 0; i < b->n; i++) {
        if (label_at(a->label, a->n, b->label[i]) < 0) {
            group_add(&group[2], b->label[i], cc_shape(L->g, b->r)[i]);
        }
    }
    return true;
}

static CcDim
group_size(Lower *L, const Group *g)
{
    CcDim n = cc_dim_const(L->g, 1, &L->st);

    for (uint8_t i = 0; i < g->n && n != 0; i++) {
        n = cc_dim_make(L->g, CC_DIM_MUL, n, g->dim[i], &L->st);
    }
    return n;
}

/* Axes both, free a, free b as one matrix product. */
static CcRef
contract_matrix(Lower *L, const Side *a, const Side *b, const Group group[4])
{
    const Group *left[3] = {&group[0], &group[1], &group[3]};
    const Group *right[3] = {&group[0], &group[3], &group[2]};
    CcDim dim[OUT_MAX * 2], m = group_size(L, &group[1]), n = group_size(L, &group[2]),
                            k = group_size(L, &group[3]);
    uint8_t nb = group[0].n;

    memcpy(dim, group[0].dim, nb * sizeof(*dim));
    dim[nb] = m;
    dim[nb + 1] = k;
    CcRef x = m == 0 || k == 0 || n == 0 ? 0 : side_turn(L, a, left, 3, false);
    x = cc_build_reshape(L->g, x, (uint8_t)(nb + 2), dim, &L->st);
    dim[nb] = k;
    dim[nb + 1] = n;
    CcRef y = x == 0 ? 0 : side_turn(L, b, right, 3, false);
    y = cc_build_reshape(L->g, y, (uint8_t)(nb + 2), dim, &L->st);
    CcRef r = cc_build_matmul(L->g, x, y, false, false, &L->st);
    memcpy(dim + nb, group[1].dim, group[1].n * sizeof(*dim));
    memcpy(dim + nb + group[1].n, group[2].dim, group[2].n * sizeof(*dim));
    return cc_build_reshape(L->g, r, (uint8_t)(nb + group[1].n + group[2].n), dim, &L->st);
}

/* As products of elements, and the sum of what is to be summed behind them. */
static CcRef
contract_elements(Lower *L, const Side *a, const Side *b, const Group group[4])
{
    const Group *all[4] = {&group[0], &group[1], &group[2], &group[3]};
    CcRef ref[2] = {side_turn(L, a, all, 4, true), side_turn(L, b, all, 4, true)};
    uint8_t first = (uint8_t)(group[0].n + group[1].n + group[2].n);

    if (ref[0] == 0 || ref[1] == 0 || !cc_build_broadcast_all(L->g, ref, 2, &L->st)) {
        return 0;
    }
    CcRef r = cc_build_binary(L->g, CC_OP_MUL, ref[0], ref[1], &L->st);
    uint64_t axes = (((uint64_t)1 << group[3].n) - 1) << first;
    return group[3].n == 0 ? r : cc_build_reduce(L->g, CC_OP_SUM, r, axes, false, &L->st);
}

static bool
contract_two(Lower *L, Side *a, Side *b, uint8_t *order, const uint8_t *out, uint8_t nout, CcRef *r)
{
    Group group[4];

    if (!side_sum(L, a, b, out, nout) || !side_sum(L, b, a, out, nout)
            || !contract_groups(L, a, b, out, nout, group)) {
        return false;
    }
    bool matrix = group[3].n > 0 && group[1].n + group[2].n > 0;
    *r = matrix ? contract_matrix(L, a, b, group) : contract_elements(L, a, b, group);
    uint8_t n = 0;
    for (uint32_t k = 0; k < 3; k++) {
        memcpy(order + n, group[k].label, group[k].n);
        n = (uint8_t)(n + group[k].n);
    }
    return n == nout || front_no(L, "a label that no operand has");
}

/* The contraction of one or two sides, axes of the result as in `out`. */
static CcRef
contract(Lower *L, Side *a, Side *b, const uint8_t *out, uint8_t nout)
{
    uint8_t order[OUT_MAX], perm[OUT_MAX];
    CcRef r = 0;

    if (!labels_differ(a->label, a->n) || !labels_differ(out, nout)
            || (b != NULL && !labels_differ(b->label, b->n))) {
        L->why = "a diagonal";
        return 0;
    }
    if (b == NULL) {
        if (!side_sum(L, a, NULL, out, nout) || a->n != nout) {
            return 0;
        }
        memcpy(order, a->label, nout);
        r = a->r;
    } else if (!contract_two(L, a, b, order, out, nout, &r)) {
        return 0;
    }
    for (uint8_t i = 0; i < nout; i++) {
        int at = label_at(order, nout, out[i]);
        if (at < 0) {
            L->why = "a label that no operand has";
            return 0;
        }
        perm[i] = (uint8_t)at;
    }
    return cc_build_transpose(L->g, r, perm, &L->st);
}

/* -- Functions ---------------------------------------------------------------------------------- */

static bool
side_of(Lower *L, TapeRef ref, FrontValue *v, Side *s)
{
    CcDtype dt = front_dtype(L->t->meta[L->in->dst - 1].dtype);

    if (!front_array(L, ref, v) || dt == CC_DTYPE_BOOL) {
        return front_no(L, "a product that has no kernel");
    }
    s->r = front_as(L, v, dt);
    s->n = s->r == 0 ? 0 : L->g->node[s->r].ndim;
    return s->r != 0;
}

/* Labels of a: 0, 1 ...; those of b start at SIDE_MAX. */
static bool
two_sides(Lower *L, const char *names, TapeRef *arg, FrontValue *v, Side *s)
{
    if (!front_args(L, names, arg) || !side_of(L, arg[0], &v[0], &s[0])
            || !side_of(L, arg[1], &v[1], &s[1])) {
        return front_no(L, "arguments that have no kernel");
    }
    for (uint8_t i = 0; i < SIDE_MAX; i++) {
        s[0].label[i] = i;
        s[1].label[i] = (uint8_t)(SIDE_MAX + i);
    }
    return true;
}

/* Labels of the result: what is not summed of a, then of b. */
static uint8_t
free_labels(const Side *s, uint8_t *out)
{
    uint8_t n = 0;

    for (int k = 0; k < 2; k++) {
        for (uint8_t i = 0; i < s[k].n; i++) {
            if (label_at(s[1 - k].label, s[1 - k].n, s[k].label[i]) < 0) {
                out[n++] = s[k].label[i];
            }
        }
    }
    return n;
}

static bool
lower_inner(Lower *L, FrontValue *out)
{
    TapeRef arg[2];
    FrontValue v[2];
    Side s[2];
    uint8_t label[OUT_MAX];

    if (!two_sides(L, "a b", arg, v, s)) {
        return false;
    }
    if (s[0].n == 0 || s[1].n == 0) {
        return front_no(L, "a product with a number");
    }
    s[1].label[s[1].n - 1] = s[0].label[s[0].n - 1];
    uint8_t n = free_labels(s, label);
    return front_give(L, contract(L, &s[0], &s[1], label, n), LAYOUT_C, true, out);
}

static CcRef
as_row(Lower *L, CcRef r)
{
    CcDim n = cc_numel(L->g, r, &L->st);

    return n == 0 ? 0 : cc_build_reshape(L->g, r, 1, &n, &L->st);
}

/* vdot(a, b): of all elements */
static bool
lower_vdot(Lower *L, FrontValue *out)
{
    TapeRef arg[2];
    FrontValue v[2];
    Side s[2];

    if (!two_sides(L, "a b", arg, v, s)) {
        return false;
    }
    s[0].r = as_row(L, s[0].r);
    s[1].r = as_row(L, s[1].r);
    s[0].n = s[1].n = 1;
    s[1].label[0] = s[0].label[0];
    return front_give(L, contract(L, &s[0], &s[1], NULL, 0), LAYOUT_C, true, out);
}

static bool
lower_outer(Lower *L, FrontValue *out)
{
    TapeRef arg[2];
    FrontValue v[2];
    Side s[2];

    if (!two_sides(L, "a b", arg, v, s)) {
        return false;
    }
    s[0].r = as_row(L, s[0].r);
    s[1].r = as_row(L, s[1].r);
    s[0].n = s[1].n = 1;
    uint8_t label[2] = {s[0].label[0], s[1].label[0]};
    return front_give(L, contract(L, &s[0], &s[1], label, 2), LAYOUT_C, true, out);
}

/* Axes of tensordot: a number, or a pair of axes or of rows of axes. */
static bool
tensordot_axes(PyObject *axes, Side *s)
{
    PyObject *side[2];
    long count = PyLong_CheckExact(axes) ? PyLong_AsLong(axes) : -1;

    if (count >= 0) {
        for (long i = 0; i < count && count <= s[0].n && count <= s[1].n; i++) {
            s[1].label[i] = s[0].label[s[0].n - count + i];
        }
        return count <= s[0].n && count <= s[1].n;
    }
    if ((!PyTuple_CheckExact(axes) && !PyList_CheckExact(axes))
            || PySequence_Fast_GET_SIZE(axes) != 2) {
        return false;
    }
    for (int k = 0; k < 2; k++) {
        PyObject *o = PySequence_Fast_GET_ITEM(axes, k);
        bool one = PyLong_CheckExact(o);
        side[k] = one ? PyTuple_Pack(1, o) : PyTuple_CheckExact(o) || PyList_CheckExact(o)
                        ? PySequence_Tuple(o) : NULL;
    }
    bool ok = side[0] != NULL && side[1] != NULL
        && PyTuple_GET_SIZE(side[0]) == PyTuple_GET_SIZE(side[1]);
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(side[0]); i++) {
        long at[2];
        for (int k = 0; k < 2 && ok; k++) {
            PyObject *o = PyTuple_GET_ITEM(side[k], i);
            at[k] = PyLong_CheckExact(o) ? PyLong_AsLong(o) : s[k].n;
            at[k] += at[k] < 0 ? s[k].n : 0;
            ok = at[k] >= 0 && at[k] < s[k].n;
        }
        if (ok) {
            s[1].label[at[1]] = s[0].label[at[0]];
        }
    }
    Py_XDECREF(side[0]);
    Py_XDECREF(side[1]);
    return ok;
}

/* Its result is a view of the matrix product, which nobody else sees. */
static bool
lower_tensordot(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue v[2];
    Side s[2];
    uint8_t label[OUT_MAX];

    if (!two_sides(L, "a b axes", arg, v, s)) {
        return false;
    }
    PyObject *axes = arg[2] == TAPE_NULL ? PyLong_FromLong(2) : front_object(L, arg[2]);
    bool ok = axes != NULL && tensordot_axes(axes, s);
    Py_XDECREF(axes);
    PyErr_Clear();
    if (!ok || !labels_differ(s[0].label, s[0].n) || !labels_differ(s[1].label, s[1].n)) {
        return front_no(L, "axes that are not known");
    }
    uint8_t n = free_labels(s, label);
    ok = front_give(L, contract(L, &s[0], &s[1], label, n), LAYOUT_C, true, out);
    out->wrapped = true;
    return ok;
}

/* -- einsum ------------------------------------------------------------------------------------- */

/* One operand's letters; "..." stands for what the letters leave, labels 128 + distance from the
 * last. */
static const char *
einsum_side(const char *text, uint8_t ndim, uint8_t *label, uint8_t *n)
{
    uint8_t letters = 0;

    for (const char *s = text; *s != '\0' && *s != ',' && *s != '-'; s++) {
        letters += *s != ' ' && *s != '.';
    }
    *n = 0;
    while (*text != '\0' && *text != ',' && *text != '-') {
        if (*text == ' ') {
            text++;
            continue;
        }
        if (strncmp(text, "...", 3) == 0) {
            for (uint8_t i = letters; i < ndim && *n < OUT_MAX; i++) {
                label[(*n)++] = (uint8_t)(128 + ndim - i);
            }
            text += 3;
            continue;
        }
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        if (!letter || *n == OUT_MAX) {
            return NULL;
        }
        label[(*n)++] = (uint8_t)*text++;
    }
    return *n == ndim ? text : NULL;
}

/* Without "->": the axes of "...", then letters that occur once, sorted. */
static uint8_t
einsum_implicit(const Side *s, uint32_t ns, uint8_t *out)
{
    uint8_t n = 0;

    for (int label = 128 + SIDE_MAX; label > 128; label--) {
        bool any = false;
        for (uint32_t k = 0; k < ns; k++) {
            any |= label_at(s[k].label, s[k].n, (uint8_t)label) >= 0;
        }
        if (any) {
            out[n++] = (uint8_t)label;
        }
    }
    for (int label = 'A'; label <= 'z'; label++) {
        int count = 0;
        for (uint32_t k = 0; k < ns; k++) {
            for (uint8_t i = 0; i < s[k].n; i++) {
                count += s[k].label[i] == label;
            }
        }
        if (count == 1 && n < OUT_MAX) {
            out[n++] = (uint8_t)label;
        }
    }
    return n;
}

static bool
einsum_labels(Lower *L, const char *text, Side *s, uint32_t ns, uint8_t *out, uint8_t *nout)
{
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];

    for (uint32_t k = 0; k < ns; k++) {
        uint8_t label[OUT_MAX], n;
        text = einsum_side(text, s[k].n, label, &n);
        bool more = k + 1 < ns;
        if (text == NULL || n > SIDE_MAX || (more && *text != ',') || (!more && *text == ',')) {
            return front_no(L, "subscripts without a kernel");
        }
        memcpy(s[k].label, label, n);
        text += more;
    }
    if (*text == '\0') {
        *nout = einsum_implicit(s, ns, out);
        return true;
    }
    bool ok = text[0] == '-' && text[1] == '>';
    text = ok ? einsum_side(text + 2, m->form == META_ARRAY ? m->ndim : 0, out, nout) : NULL;
    return (text != NULL && *text == '\0') || front_no(L, "subscripts without a kernel");
}

static bool
lower_einsum(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue v[2];
    Side s[2];
    uint8_t label[OUT_MAX], nout;
    uint32_t ns = L->in->n - 2u;

    if (L->in->kw != 0 || ns < 1 || ns > 2 || !front_args(L, "subscripts a b", arg)) {
        return front_no(L, "arguments that have no kernel");
    }
    for (uint32_t k = 0; k < ns; k++) {
        if (!side_of(L, arg[1 + k], &v[k], &s[k])) {
            return false;
        }
    }
    PyObject *text = front_const(L, arg[0]);
    const char *subscripts = text != NULL && PyUnicode_CheckExact(text) ? PyUnicode_AsUTF8(text)
                                                                         : NULL;
    PyErr_Clear();
    if (subscripts == NULL || !einsum_labels(L, subscripts, s, ns, label, &nout)) {
        return front_no(L, "subscripts without a kernel");
    }
    CcRef r = contract(L, &s[0], ns == 2 ? &s[1] : NULL, label, nout);
    return front_give(L, r, front_order(L, v, ns) == LAYOUT_C ? LAYOUT_C : LAYOUT_STRIDED, true,
                      out);
}

static bool
lower_dot(Lower *L, FrontValue *out)
{
    TapeRef arg[2];

    return front_args(L, "a b", arg) && front_lower_matmul(L, arg[0], arg[1], true, out);
}

static const struct {
    const char *name;
    bool (*lower)(Lower *L, FrontValue *out);
} product_rows[] = {
    {"dot", lower_dot},     {"inner", lower_inner},         {"vdot", lower_vdot},
    {"outer", lower_outer}, {"tensordot", lower_tensordot}, {"einsum", lower_einsum},
};

bool
front_lower_product(Lower *L, const char *name, bool *mine, FrontValue *out)
{
    for (size_t i = 0; i < sizeof(product_rows) / sizeof(*product_rows); i++) {
        if (strcmp(product_rows[i].name, name) == 0) {
            *mine = true;
            return product_rows[i].lower(L, out);
        }
    }
    *mine = false;
    return false;
}
