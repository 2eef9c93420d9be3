/* front/lower_arrange.c - rows that repeat, join or mask whole arrays: repeat, tile, roll, vstack,
 * tril, eye, diagonal ...
 *
 * NumPy gives some of them as views of arrays that nobody else has: those are `wrapped`. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

enum { ARRANGE_MAX_PARTS = 32 };

static bool
given(const Lower *L, TapeRef ref)
{
    return ref != TAPE_NULL && front_const(L, ref) != Py_None;
}

static CcRef
as_row(Lower *L, CcRef r)
{
    CcDim n = cc_numel(L->g, r, &L->st);

    return n == 0 ? 0 : cc_build_reshape(L->g, r, 1, &n, &L->st);
}

static bool
give_wrapped(Lower *L, CcRef r, uint8_t order, FrontValue *out)
{
    bool ok = front_give(L, r, order, true, out);

    out->wrapped = ok;
    return ok;
}

/* -- Repeating ---------------------------------------------------------------------------------- */

/* x with every axis i read times[i] times: as blocks (tile), or element by element (repeat). */
static CcRef
repeated(Lower *L, CcRef x, const int64_t *times, bool blocks)
{
    CcDim dim[TAPE_MAX_NDIM], thin[CC_MAX_NDIM], wide[CC_MAX_NDIM], full[TAPE_MAX_NDIM];
    uint8_t n = front_dims(L, x, dim);
    CcDim one = cc_dim_const(L->g, 1, &L->st);

    for (uint8_t i = 0; i < n; i++) {
        CcDim t = cc_dim_const(L->g, times[i], &L->st);
        uint8_t outer = (uint8_t)(2 * i), inner = (uint8_t)(2 * i + 1);
        thin[outer] = blocks ? one : dim[i];
        thin[inner] = blocks ? dim[i] : one;
        wide[outer] = blocks ? t : dim[i];
        wide[inner] = blocks ? dim[i] : t;
        full[i] = t == 0 ? 0 : cc_dim_make(L->g, CC_DIM_MUL, dim[i], t, &L->st);
        if (full[i] == 0 || one == 0) {
            return 0;
        }
    }
    L->work = true;
    CcRef r = cc_build_reshape(L->g, x, (uint8_t)(2 * n), thin, &L->st);
    r = cc_build_broadcast(L->g, r, (uint8_t)(2 * n), wide, &L->st);
    return cc_build_reshape(L->g, r, n, full, &L->st);
}

/* repeat(a, constant, axis) */
static bool
lower_repeat(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    int64_t count, times[TAPE_MAX_NDIM];
    uint8_t axis = 0;
    FrontValue v;

    if (!front_args(L, "a repeats axis", arg) || !front_array(L, arg[0], &v)
            || !front_const_int(L, arg[1], &count) || count < 1 || count > 1 << 20) {
        return front_no(L, "repeat() by what is not known");
    }
    CcRef x = given(L, arg[2]) ? v.ref : as_row(L, v.ref);
    if (x == 0 || (given(L, arg[2]) && !front_axis(L, arg[2], L->g->node[x].ndim, &axis))) {
        return false;
    }
    for (uint8_t i = 0; i < L->g->node[x].ndim; i++) {
        times[i] = i == axis ? count : 1;
    }
    return front_give(L, repeated(L, x, times, false), LAYOUT_C, true, out);
}

/* tile(A, reps) with constants; axes that either lacks come first. */
static bool
lower_tile(Lower *L, FrontValue *out)
{
    TapeRef arg[2];
    int64_t times[TAPE_MAX_NDIM];
    FrontValue v;
    bool more = false;

    if (!front_args(L, "A reps", arg) || !front_array(L, arg[0], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    PyObject *obj = front_object(L, arg[1]);
    PyObject *reps = obj == NULL ? NULL : PyLong_CheckExact(obj) ? PyTuple_Pack(1, obj)
                   : PyTuple_CheckExact(obj) || PyList_CheckExact(obj) ? PySequence_Tuple(obj)
                                                                        : NULL;
    Py_ssize_t nreps = reps == NULL ? 0 : PyTuple_GET_SIZE(reps);
    uint8_t ndim = L->g->node[v.ref].ndim, n = nreps > ndim ? (uint8_t)nreps : ndim;
    bool ok = nreps > 0 && nreps <= TAPE_MAX_NDIM;
    for (uint8_t i = 0; i < ndim; i++) {        /* of nothing: a view of A */
        ok &= !cc_dim_equals(L->g, cc_shape(L->g, v.ref)[i], 0);
    }
    for (uint8_t i = 0; ok && i < n; i++) {
        Py_ssize_t at = i - (n - nreps);
        PyObject *o = at < 0 ? NULL : PyTuple_GET_ITEM(reps, at);
        times[i] = o == NULL ? 1 : PyLong_CheckExact(o) ? PyLong_AsLong(o) : 0;
        ok = times[i] >= 1 && times[i] <= 1 << 20;
        more |= times[i] > 1;
    }
    Py_XDECREF(obj);
    Py_XDECREF(reps);
    PyErr_Clear();
    if (!ok || !more) {
        return front_no(L, "tile() by what is not known");
    }
    uint64_t lead = ((uint64_t)1 << (n - ndim)) - 1;
    CcRef x = lead == 0 ? v.ref : cc_build_expand(L->g, v.ref, lead, &L->st);
    return give_wrapped(L, x == 0 ? 0 : repeated(L, x, times, true), LAYOUT_C, out);
}

/* -- Rolling ------------------------------------------------------------------------------------ */

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

/* The last `shift` elements of an axis come first; 0: the axis may be too short. */
static CcRef
rolled(Lower *L, CcRef x, int64_t shift, uint8_t axis)
{
    CcDim size = cc_shape(L->g, x)[axis], zero = cc_dim_const(L->g, 0, &L->st);
    int64_t known;

    if (cc_dim_is_const(L->g, size, &known) && known > 0) {
        shift %= known;
    }
    if (shift == 0) {
        return x;
    }
    CcDim count = cc_dim_const(L->g, shift < 0 ? -shift : shift, &L->st);
    CcDim rest = front_dim(L, CC_DIM_SUB, size, shift < 0 ? -shift : shift);
    if (rest == 0 || cc_dim_eval(L->g, rest, L->sym) < 1 || !front_need(L, rest, 1)) {
        L->why = "a shift beyond the axis";
        return 0;
    }
    CcDim head = shift > 0 ? rest : count, tail = shift > 0 ? count : rest;
    CcRef part[2] = {part_of(L, x, axis, head, tail), part_of(L, x, axis, zero, head)};
    /* the sum of both parts is the whole again */
    return part[0] == 0 || part[1] == 0 ? 0 : cc_build_concat(L->g, part, 2, axis, &L->st);
}

static bool
shift_item(PyObject *obj, Py_ssize_t i, int64_t *out)
{
    PyObject *o = PyTuple_CheckExact(obj) ? PyTuple_GET_ITEM(obj, i) : obj;

    *out = PyLong_CheckExact(o) ? PyLong_AsLong(o) : INT64_MAX;
    PyErr_Clear();
    return *out > -(1 << 30) && *out < 1 << 30;
}

/* One shift or axis for all, or one each. */
static CcRef
rolled_axes(Lower *L, CcRef x, PyObject *shift, PyObject *axis)
{
    Py_ssize_t ns = PyTuple_CheckExact(shift) ? PyTuple_GET_SIZE(shift) : 1;
    Py_ssize_t na = PyTuple_CheckExact(axis) ? PyTuple_GET_SIZE(axis) : 1;
    Py_ssize_t n = ns > na ? ns : na;
    int64_t by, along;
    uint8_t ndim = L->g->node[x].ndim;

    if (ns < 1 || na < 1 || (ns != n && PyTuple_CheckExact(shift))
            || (na != n && PyTuple_CheckExact(axis))) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < n && x != 0; i++) {
        if (!shift_item(shift, i, &by) || !shift_item(axis, i, &along)) {
            return 0;
        }
        along += along < 0 ? ndim : 0;
        x = along >= 0 && along < ndim ? rolled(L, x, by, (uint8_t)along) : 0;
    }
    return x;
}

static bool
lower_roll(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue v;
    CcRef r = 0;

    if (!front_args(L, "a shift axis", arg) || !front_array(L, arg[0], &v)
            || L->g->node[v.ref].ndim == 0) {
        return front_no(L, "arguments that have no kernel");
    }
    PyObject *shift = front_object(L, arg[1]);
    if (shift != NULL && !given(L, arg[2]) && PyLong_CheckExact(shift)) {
        CcDim dim[TAPE_MAX_NDIM];
        int64_t by;
        CcRef row = as_row(L, v.ref);
        r = row != 0 && shift_item(shift, 0, &by) ? rolled(L, row, by, 0) : 0;
        r = cc_build_reshape(L->g, r, front_dims(L, v.ref, dim), dim, &L->st);
    } else if (shift != NULL && given(L, arg[2])) {
        PyObject *axis = front_object(L, arg[2]);
        r = axis == NULL ? 0 : rolled_axes(L, v.ref, shift, axis);
        Py_XDECREF(axis);
    }
    Py_XDECREF(shift);
    if (r == 0 || r == v.ref) {
        return front_no(L, "a shift that is not known");
    }
    return given(L, arg[2]) ? front_give(L, r, front_copy_order(L, &v), true, out)
                            : give_wrapped(L, r, LAYOUT_C, out);
}

/* -- Joining ------------------------------------------------------------------------------------ */

/* What each function does to a part before it joins along an axis. */
typedef enum { JOIN_ROWS, JOIN_COLUMNS, JOIN_DEPTH, JOIN_WIDE } JoinKind;

static CcRef
join_part(Lower *L, JoinKind kind, CcRef x, uint32_t *axis)
{
    uint8_t n = L->g->node[x].ndim;

    switch (kind) {
    case JOIN_ROWS:
        *axis = 0;
        return n >= 2 ? x : cc_build_expand(L->g, x, n == 0 ? 3 : 1, &L->st);
    case JOIN_WIDE:
        *axis = n > 1;
        return n >= 1 ? x : cc_build_expand(L->g, x, 1, &L->st);
    case JOIN_COLUMNS:
        *axis = 1;
        return n >= 2 ? x : cc_build_expand(L->g, x, n == 0 ? 3 : 2, &L->st);
    default:
        *axis = 2;
        return n >= 3 ? x : cc_build_expand(L->g, x, n == 0 ? 7 : n == 1 ? 5 : 4, &L->st);
    }
}

/* The parts as they are, in the dtype of the result; 0 = not known. */
static uint32_t
join_values(Lower *L, const TapeRef *item, uint32_t n, CcRef *part, uint8_t *order)
{
    CcDtype dt = front_dtype(L->t->meta[L->in->dst - 1].dtype);

    *order = LAYOUT_C;
    for (uint32_t i = 0; i < n; i++) {
        FrontValue v;
        if (!front_array(L, item[i], &v)) {
            return 0;
        }
        bool ordered = v.order == LAYOUT_C || L->g->node[v.ref].ndim < 2;
        *order = ordered ? *order : LAYOUT_STRIDED;
        part[i] = front_as(L, &v, dt);
        if (part[i] == 0) {
            return 0;
        }
    }
    return n;
}

static bool
lower_join(Lower *L, JoinKind kind, FrontValue *out)
{
    TapeRef arg[1], item[ARRANGE_MAX_PARTS];
    CcRef part[ARRANGE_MAX_PARTS];
    uint32_t axis = 0, first = 0;
    uint8_t order;

    int n = front_args(L, "tup", arg) ? front_items(L, arg[0], item, ARRANGE_MAX_PARTS) : -1;
    if (n < 1 || join_values(L, item, (uint32_t)n, part, &order) == 0) {
        return front_no(L, "parts that are not known");
    }
    for (int i = 0; i < n; i++) {
        part[i] = join_part(L, kind, part[i], &axis);
        first = i == 0 ? axis : first;
        if (part[i] == 0 || axis != first) {
            return front_no(L, "parts that do not fit");
        }
    }
    CcRef r = cc_build_concat(L->g, part, (uint32_t)n, axis, &L->st);
    return front_give(L, r, order, true, out);
}

static bool
lower_vstack(Lower *L, FrontValue *out)
{
    return lower_join(L, JOIN_ROWS, out);
}

static bool
lower_hstack(Lower *L, FrontValue *out)
{
    return lower_join(L, JOIN_WIDE, out);
}

static bool
lower_dstack(Lower *L, FrontValue *out)
{
    return lower_join(L, JOIN_DEPTH, out);
}

static bool
lower_columns(Lower *L, FrontValue *out)
{
    return lower_join(L, JOIN_COLUMNS, out);
}

/* append(arr, values, axis) */
static bool
lower_append(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    CcRef part[2];
    uint8_t order, axis = 0;

    if (!front_args(L, "arr values axis", arg) || join_values(L, arg, 2, part, &order) == 0) {
        return front_no(L, "parts that are not known");
    }
    if (!given(L, arg[2])) {
        part[0] = as_row(L, part[0]);
        part[1] = as_row(L, part[1]);
        order = LAYOUT_C;
    } else if (!front_axis(L, arg[2], L->g->node[part[0]].ndim, &axis)) {
        return false;
    }
    CcRef r = part[0] == 0 || part[1] == 0 ? 0 : cc_build_concat(L->g, part, 2, axis, &L->st);
    return front_give(L, r, order, true, out);
}

/* -- Diagonals ---------------------------------------------------------------------------------- */

/* Numbers from `from` on along axis 0 or 1 of a matrix. */
static CcRef
counting(Lower *L, int64_t from, CcDim size, uint32_t axis)
{
    CcRef start = cc_build_const_i64(L->g, CC_DTYPE_I64, from, &L->st);
    CcRef step = cc_build_const_i64(L->g, CC_DTYPE_I64, 1, &L->st);
    CcRef r = size == 0 ? 0 : cc_build_iota(L->g, start, step, size, &L->st);

    return cc_build_expand(L->g, r, axis == 0 ? 2 : 1, &L->st);
}

/* row + k `op` column, for a matrix of these sizes */
static CcRef
diagonal_mask(Lower *L, CcOp op, CcDim rows, CcDim columns, int64_t k)
{
    CcRef two[2] = {counting(L, k, rows, 0), counting(L, 0, columns, 1)};

    if (two[0] == 0 || two[1] == 0 || !cc_build_broadcast_all(L->g, two, 2, &L->st)) {
        return 0;
    }
    return cc_build_binary(L->g, op, two[0], two[1], &L->st);
}

static bool
diagonal_of(Lower *L, TapeRef ref, int64_t *k)
{
    *k = 0;
    return ref == TAPE_NULL || (front_const_int(L, ref, k) && *k > -(1 << 30) && *k < 1 << 30);
}

static bool
lower_triangle(Lower *L, bool low, FrontValue *out)
{
    TapeRef arg[2];
    FrontValue v;
    int64_t k;

    if (!front_args(L, "m k", arg) || !front_array(L, arg[0], &v) || !diagonal_of(L, arg[1], &k)
            || L->g->node[v.ref].ndim < 2) {
        return front_no(L, "arguments that have no kernel");
    }
    const CcDim *dim = cc_shape(L->g, v.ref) + L->g->node[v.ref].ndim - 2;
    CcRef zero = cc_build_const_i64(L->g, front_dtype(v.dtype), 0, &L->st);
    CcRef three[3] = {
        diagonal_mask(L, CC_OP_GE, dim[0], dim[1], low ? k : k - 1),
        low ? v.ref : zero,
        low ? zero : v.ref,
    };
    if (three[0] == 0 || zero == 0 || !cc_build_broadcast_all(L->g, three, 3, &L->st)) {
        return front_no(L, "operands that the graph does not take");
    }
    FrontValue both[2] = {v, {.ref = three[0], .order = LAYOUT_C}};
    CcRef r = cc_build_where(L->g, three[0], three[1], three[2], &L->st);
    return front_give(L, r, front_order(L, both, 2), true, out);
}

static bool
lower_tril(Lower *L, FrontValue *out)
{
    return lower_triangle(L, true, out);
}

static bool
lower_triu(Lower *L, FrontValue *out)
{
    return lower_triangle(L, false, out);
}

/* eye(N, M, k), identity(n), tri(N, M, k): sizes may be numbers at run time */
static bool
lower_unit(Lower *L, const char *names, CcOp op, FrontValue *out)
{
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    TapeRef arg[4] = {TAPE_NULL, TAPE_NULL, TAPE_NULL, TAPE_NULL};
    int64_t k;

    if (!front_args(L, names, arg) || m->form != META_ARRAY || m->ndim != 2) {
        return front_no(L, "arguments that have no kernel");
    }
    bool square = strcmp(names, "n dtype") == 0;
    TapeRef dtype = square ? arg[1] : arg[3];
    TapeRef columns = square || !given(L, arg[1]) ? arg[0] : arg[1];
    if (!diagonal_of(L, square ? TAPE_NULL : arg[2], &k)
            || (given(L, dtype) && front_dtype_operand(L, dtype) < 0)) {
        return front_no(L, "arguments that have no kernel");
    }
    CcRef mask = diagonal_mask(L, op, front_size(L, arg[0], m->dim[0]),
                               front_size(L, columns, m->dim[1]), k);
    CcRef r = cc_build_cast(L->g, mask, front_dtype(m->dtype), &L->st);
    return front_give(L, r, LAYOUT_C, true, out);
}

static bool
lower_eye(Lower *L, FrontValue *out)
{
    return lower_unit(L, "N M k dtype", CC_OP_EQ, out);
}

static bool
lower_identity(Lower *L, FrontValue *out)
{
    return lower_unit(L, "n dtype", CC_OP_EQ, out);
}

static bool
lower_tri(Lower *L, FrontValue *out)
{
    return lower_unit(L, "N M k dtype", CC_OP_GE, out);
}

/* The main diagonal of a matrix: every (columns + 1)-th element. */
static CcRef
main_diagonal(Lower *L, CcRef x)
{
    CcDim rows = cc_shape(L->g, x)[0], columns = cc_shape(L->g, x)[1];
    CcDim size = cc_dim_make(L->g, CC_DIM_MIN, rows, columns, &L->st);
    CcDim stride = front_dim(L, CC_DIM_ADD, columns, 1);
    CcRef zero = cc_build_const_i64(L->g, CC_DTYPE_I64, 0, &L->st);
    CcRef step = stride == 0 ? 0 : cc_build_size(L->g, stride, CC_DTYPE_I64, &L->st);
    CcRef at = size == 0 ? 0 : cc_build_iota(L->g, zero, step, size, &L->st);

    return cc_build_gather(L->g, as_row(L, x), at, 0, &L->st);
}

static bool
matrix_alone(Lower *L, FrontValue *v)
{
    if (L->in->n != 2 || L->in->kw != 0 || !front_array(L, L->t->opnd[L->in->arg + 1], v)) {
        return front_no(L, "arguments that have no kernel");
    }
    return true;
}

static bool
lower_diagonal(Lower *L, FrontValue *out)
{
    FrontValue v;

    if (!matrix_alone(L, &v) || L->g->node[v.ref].ndim != 2) {
        return front_no(L, "arguments that have no kernel");
    }
    return front_give(L, main_diagonal(L, v.ref), LAYOUT_C, false, out);
}

/* diag(row): a matrix of zeros around it */
static bool
lower_diag(Lower *L, FrontValue *out)
{
    FrontValue v;

    if (!matrix_alone(L, &v) || L->g->node[v.ref].ndim != 1) {
        return lower_diagonal(L, out);
    }
    CcDim n = cc_shape(L->g, v.ref)[0];
    CcRef three[3] = {
        diagonal_mask(L, CC_OP_EQ, n, n, 0),
        v.ref,
        cc_build_const_i64(L->g, front_dtype(v.dtype), 0, &L->st),
    };
    if (three[0] == 0 || three[2] == 0 || !cc_build_broadcast_all(L->g, three, 3, &L->st)) {
        return front_no(L, "operands that the graph does not take");
    }
    CcRef r = cc_build_where(L->g, three[0], three[1], three[2], &L->st);
    return front_give(L, r, LAYOUT_C, true, out);
}

/* trace(matrix): added up in the dtype of sums */
static bool
lower_trace(Lower *L, FrontValue *out)
{
    FrontValue v;
    CcDtype dt = front_dtype(L->t->meta[L->in->dst - 1].dtype);

    if (!matrix_alone(L, &v) || L->g->node[v.ref].ndim != 2 || dt == CC_DTYPE_NONE) {
        return front_no(L, "arguments that have no kernel");
    }
    CcRef r = cc_build_cast(L->g, main_diagonal(L, v.ref), dt, &L->st);
    r = r == 0 ? 0 : cc_build_reduce(L->g, CC_OP_SUM, r, 1, false, &L->st);
    return front_give(L, r, LAYOUT_C, true, out);
}

/* -- Dispatch ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool (*lower)(Lower *L, FrontValue *out);
} arrange_rows[] = {
    {"repeat", lower_repeat},     {"tile", lower_tile},     {"roll", lower_roll},
    {"vstack", lower_vstack},     {"hstack", lower_hstack}, {"dstack", lower_dstack},
    {"column_stack", lower_columns}, {"append", lower_append}, {"tril", lower_tril},
    {"triu", lower_triu},         {"eye", lower_eye},       {"identity", lower_identity},
    {"tri", lower_tri},           {"diag", lower_diag},     {"diagonal", lower_diagonal},
    {"trace", lower_trace},
};

bool
front_lower_arranged(Lower *L, const char *name, bool *mine, FrontValue *out)
{
    for (size_t i = 0; i < sizeof(arrange_rows) / sizeof(*arrange_rows); i++) {
        if (strcmp(arrange_rows[i].name, name) == 0) {
            *mine = true;
            return arrange_rows[i].lower(L, out);
        }
    }
    *mine = false;
    return false;
}
