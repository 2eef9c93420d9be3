/* front/lower_index.c - x[key] with constant places, and with one array of places. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* A place on an axis: a constant, a Python int at run time, or left out. */
typedef struct {
    bool given;
    TapeRef ref;                        /* of the int at run time */
    int64_t at;                         /* else */
} Bound;

typedef enum { ITEM_NONE, ITEM_ELLIPSIS, ITEM_PLACE, ITEM_SLICE } ItemKind;

typedef struct {
    ItemKind kind;
    Bound bound[3];                     /* a place; or start, stop, step */
} Item;

/* The operand being cut, axis by axis, and the shape of the result. */
typedef struct {
    CcRef x;
    uint8_t axis, ndim;                 /* next axis of x */
    CcDim start[TAPE_MAX_NDIM], size[TAPE_MAX_NDIM];
    int64_t step[TAPE_MAX_NDIM];
    CcDim shape[CC_MAX_NDIM];
    uint8_t nshape;
} Cut;

/* -- Reading a key
 * ---------------------------------------------------------------------------------- */

static bool
const_bound(PyObject *obj, Bound *b)
{
    int over = 0;

    b->given = obj != Py_None;
    b->ref = TAPE_NULL;
    b->at = b->given && PyLong_CheckExact(obj) ? PyLong_AsLongLongAndOverflow(obj, &over) : 0;
    return (!b->given || PyLong_CheckExact(obj)) && !over && b->at > -(1 << 30) && b->at < 1 << 30;
}

static bool
const_item(PyObject *obj, Item *it)
{
    if (obj == Py_None || obj == Py_Ellipsis) {
        it->kind = obj == Py_None ? ITEM_NONE : ITEM_ELLIPSIS;
        return true;
    }
    if (PySlice_Check(obj)) {
        PySliceObject *s = (PySliceObject *)obj;
        it->kind = ITEM_SLICE;
        return const_bound(s->start, &it->bound[0]) && const_bound(s->stop, &it->bound[1])
            && const_bound(s->step, &it->bound[2]);
    }
    it->kind = ITEM_PLACE;
    return PyLong_CheckExact(obj) && const_bound(obj, &it->bound[0]);
}

static bool
read_bound(const Lower *L, TapeRef ref, Bound *b)
{
    PyObject *obj = front_const(L, ref);

    if (obj != NULL) {
        return const_bound(obj, b);
    }
    *b = (Bound){.given = true, .ref = ref};
    return TAPE_KIND(ref) == TAPE_REG && L->t->meta[TAPE_INDEX(ref)].form == META_INT;
}

static bool
read_item(const Lower *L, TapeRef ref, Item *it)
{
    const TapeVirt *v = TAPE_KIND(ref) == TAPE_VIRT ? &L->t->virt[TAPE_INDEX(ref)] : NULL;
    PyObject *obj = front_const(L, ref);

    if (obj != NULL) {
        return const_item(obj, it);
    }
    if (v == NULL) {
        it->kind = ITEM_PLACE;
        return read_bound(L, ref, &it->bound[0]);
    }
    if (v->kind != VIRT_SLICE || v->nfields != 3) {
        return false;
    }
    it->kind = ITEM_SLICE;
    for (uint32_t i = 0; i < 3; i++) {
        if (!read_bound(L, L->t->opnd[v->first + i], &it->bound[i])) {
            return false;
        }
    }
    return true;
}

/* Items of a key of basic indexing; -1 = it is another one. */
static int
read_key(const Lower *L, TapeRef key, Item *item)
{
    TapeRef ref[TAPE_MAX_NDIM];
    PyObject *obj = front_const(L, key);
    bool list = TAPE_KIND(key) == TAPE_VIRT && L->t->virt[TAPE_INDEX(key)].kind == VIRT_LIST;
    int n = obj != NULL || list ? -1 : front_items(L, key, ref, TAPE_MAX_NDIM);

    if (obj != NULL && PyTuple_CheckExact(obj)) {
        n = PyTuple_GET_SIZE(obj) > TAPE_MAX_NDIM ? -1 : (int)PyTuple_GET_SIZE(obj);
        for (int i = 0; i < n; i++) {
            if (!const_item(PyTuple_GET_ITEM(obj, i), &item[i])) {
                return -1;
            }
        }
        return n;
    }
    if (n < 0) {
        return !list && read_item(L, key, &item[0]) ? 1 : -1;
    }
    for (int i = 0; i < n; i++) {
        if (!read_item(L, ref[i], &item[i])) {
            return -1;
        }
    }
    return n;
}

/* -- Basic indexing -------------------------------------------------------------------------------
 */

/* A bound of a slice beyond the end of its axis, which is where NumPy puts it; 0 = it is not. */
static CcDim
clipped(Lower *L, CcDim n, const Bound *b)
{
    CcDim at = front_dim(L, CC_DIM_ADD, n, b->at), zero = cc_dim_const(L->g, 0, &L->st);

    if (b->ref != TAPE_NULL || at == 0 || zero == 0) {
        return 0;
    }
    return b->at < 0 ? cc_dim_make(L->g, CC_DIM_MAX, at, zero, &L->st)
                     : front_dim(L, CC_DIM_MIN, n, b->at);
}

/* A bound as NumPy counts it, on an axis so long that nothing is clipped; `edge` 1: it must be an
 * element itself. */
static CcDim
place(Lower *L, CcDim n, const Bound *b, int64_t edge)
{
    CcDim at = b->ref != TAPE_NULL ? front_bound(L, b->ref) : 0, room;

    if (b->ref == TAPE_NULL) {
        at = b->at < 0 ? front_dim(L, CC_DIM_ADD, n, b->at) : cc_dim_const(L->g, b->at, &L->st);
        room = b->at < 0 ? at : front_dim(L, CC_DIM_SUB, n, b->at + edge);
    } else {
        room = at == 0 ? 0 : cc_dim_make(L->g, CC_DIM_SUB, n, at, &L->st);
        room = front_dim(L, CC_DIM_SUB, room, edge);
    }
    if (room != 0 && edge == 0 && cc_dim_eval(L->g, room, L->sym) < 0) {
        return clipped(L, n, b);
    }
    if (room == 0 || cc_dim_eval(L->g, room, L->sym) < 0 || !front_need(L, room, 0)) {
        L->why = "a place beyond the axis";
        return 0;
    }
    return at;
}

static bool
cut_slice(Lower *L, Cut *c, const Bound *b)
{
    CcDim n = cc_shape(L->g, c->x)[c->axis], from, to;
    int64_t step = b[2].given ? b[2].at : 1;

    if (b[2].ref != TAPE_NULL || step == 0) {
        return front_no(L, "a slice that is not known");
    }
    bool up = step > 0;
    from = b[0].given ? place(L, n, &b[0], up ? 0 : 1)
         : up ? cc_dim_const(L->g, 0, &L->st) : front_dim(L, CC_DIM_SUB, n, 1);
    to = b[1].given ? place(L, n, &b[1], up ? 0 : 1)
       : up ? n : cc_dim_const(L->g, -1, &L->st);
    CcDim len = from == 0 || to == 0 ? 0
              : cc_dim_make(L->g, CC_DIM_SUB, up ? to : from, up ? from : to, &L->st);
    if (len != 0 && (up ? step : -step) > 1) {
        len = front_dim(L, CC_DIM_ADD, len, (up ? step : -step) - 1);
        len = len == 0 ? 0 : front_dim(L, CC_DIM_FLOORDIV, len, up ? step : -step);
    }
    /* an empty slice may start anywhere: NumPy's */
    if (len == 0 || cc_dim_eval(L->g, len, L->sym) < 1 || !front_need(L, len, 1)) {
        return front_no(L, "a slice that may be empty");
    }
    c->start[c->axis] = from;
    c->step[c->axis] = step;
    c->size[c->axis++] = len;
    c->shape[c->nshape++] = len;
    return true;
}

static bool
cut_place(Lower *L, Cut *c, const Bound *b)
{
    c->start[c->axis] = place(L, cc_shape(L->g, c->x)[c->axis], b, 1);
    c->step[c->axis] = 1;
    c->size[c->axis] = cc_dim_const(L->g, 1, &L->st);
    return c->start[c->axis++] != 0;
}

static bool
cut_whole(Lower *L, Cut *c)
{
    c->start[c->axis] = cc_dim_const(L->g, 0, &L->st);
    c->step[c->axis] = 1;
    c->size[c->axis] = c->shape[c->nshape++] = cc_shape(L->g, c->x)[c->axis];
    return c->start[c->axis++] != 0;
}

static bool
cut_item(Lower *L, Cut *c, const Item *it, uint8_t later)
{
    if (it->kind == ITEM_NONE) {
        c->shape[c->nshape++] = cc_dim_const(L->g, 1, &L->st);
        return c->nshape < TAPE_MAX_NDIM;
    }
    if (it->kind == ITEM_ELLIPSIS) {
        while (c->axis + later < c->ndim) {
            if (!cut_whole(L, c)) {
                return false;
            }
        }
        return true;
    }
    if (c->axis >= c->ndim) {
        return front_no(L, "too many indexes");
    }
    return it->kind == ITEM_SLICE ? cut_slice(L, c, it->bound) : cut_place(L, c, it->bound);
}

static bool
cut_all(Lower *L, Cut *c, const Item *item, int n)
{
    uint8_t later = 0;                  /* axes that items behind this one take */
    bool ok = true;

    for (int i = 0; i < n; i++) {
        later += item[i].kind == ITEM_PLACE || item[i].kind == ITEM_SLICE;
    }
    for (int i = 0; ok && i < n; i++) {
        later -= item[i].kind == ITEM_PLACE || item[i].kind == ITEM_SLICE;
        ok = cut_item(L, c, &item[i], later);
    }
    while (ok && c->axis < c->ndim) {
        ok = cut_whole(L, c);
    }
    return ok || front_no(L, L->why != NULL ? L->why : "an index without a kernel");
}

bool
front_part_shape(Lower *L, CcRef x, TapeRef key, uint8_t *ndim, CcDim *dim)
{
    Cut c = {.x = x, .ndim = L->g->node[x].ndim};
    Item item[TAPE_MAX_NDIM];
    int n = read_key(L, key, item);

    if (n < 0) {
        return front_no(L, "an index that is not known");
    }
    if (!cut_all(L, &c, item, n)) {
        return false;
    }
    *ndim = c.nshape;
    memcpy(dim, c.shape, c.nshape * sizeof(*dim));
    return true;
}

static bool
lower_basic(Lower *L, const FrontValue *v, const Item *item, int n, FrontValue *out)
{
    Cut c = {.x = v->ref, .ndim = L->g->node[v->ref].ndim};

    if (!cut_all(L, &c, item, n)) {
        return false;
    }
    CcRef r = cc_build_slice(L->g, v->ref, c.start, c.step, c.size, &L->st);
    r = r == 0 ? 0 : cc_build_reshape(L->g, r, c.nshape, c.shape, &L->st);
    /* a single element is a number; the rest are views */
    bool number = L->t->meta[L->in->dst - 1].form == META_SCALAR;
    return front_give(L, r, v->order, number, out);
}

/* -- One array of places
 * ------------------------------------------------------------------------------ */

/* Places as a node: an array of integers, or a short list of constants. */
static CcRef
places_of(Lower *L, TapeRef ref, FrontValue *at)
{
    enum { MAX = 16 };
    CcRef part[MAX];
    PyObject *obj = TAPE_KIND(ref) == TAPE_REG ? NULL : front_object(L, ref);
    bool list = obj != NULL && PyList_CheckExact(obj);
    Py_ssize_t n = list && PyList_GET_SIZE(obj) <= MAX ? PyList_GET_SIZE(obj) : 0;

    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyList_GET_ITEM(obj, i);
        long place = PyLong_CheckExact(o) ? PyLong_AsLong(o) : LONG_MAX;
        bool ok = place > -(1 << 30) && place < 1 << 30;
        part[i] = ok ? cc_build_const_i64(L->g, CC_DTYPE_I64, place, &L->st) : 0;
        part[i] = cc_build_expand(L->g, part[i], 1, &L->st);
        n = part[i] == 0 ? 0 : n;
    }
    Py_XDECREF(obj);
    PyErr_Clear();
    if (list) {
        *at = (FrontValue){.order = LAYOUT_C, .form = META_ARRAY, .dtype = NPY_INT64};
        at->ref = n == 0 ? 0 : cc_build_concat(L->g, part, (uint32_t)n, 0, &L->st);
        return at->ref;
    }
    if (!front_array(L, ref, at)) {
        return 0;
    }
    CcDtype dt = front_dtype(at->dtype);
    bool ok = dt != CC_DTYPE_U64 && cc_dtype_is_int(dt) && L->g->node[at->ref].ndim > 0;
    return ok ? front_as(L, at, CC_DTYPE_I64) : 0;
}

/* The memory of x[:, :, places] has the axes of the places before all others. */
static uint8_t
gather_order(const Lower *L, const FrontValue *v, const FrontValue *at, uint8_t axis)
{
    FrontValue both[2] = {*v, *at};

    if (front_order(L, both, 2) != LAYOUT_C) {
        return LAYOUT_STRIDED;
    }
    bool matrix = L->g->node[v->ref].ndim == 2 && L->g->node[at->ref].ndim == 1;
    return axis == 0 ? LAYOUT_C : matrix ? LAYOUT_F : LAYOUT_STRIDED;
}

static bool
lower_gather(Lower *L, const FrontValue *v, TapeRef places, uint8_t axis, FrontValue *out)
{
    FrontValue at;
    CcRef r = places_of(L, places, &at);

    if (r == 0) {
        return front_no(L, "an index without a kernel");
    }
    r = cc_build_gather(L->g, v->ref, r, axis, &L->st);
    bool ok = front_give(L, r, gather_order(L, v, &at, axis), true, out);
    out->wrapped = true;                /* the turned one is a view */
    return ok;
}

static bool
is_whole(const Lower *L, TapeRef ref)
{
    PyObject *obj = front_object(L, ref);
    PySliceObject *s = obj != NULL && PySlice_Check(obj) ? (PySliceObject *)obj : NULL;
    bool whole = s != NULL && s->start == Py_None && s->stop == Py_None && s->step == Py_None;

    Py_XDECREF(obj);
    return whole;
}

/* (:, ..., places, :): which item has the places, -1 = there is more to it; *axis gets their axis.
 */
static int
gather_item(const Lower *L, const TapeRef *item, int n, uint8_t ndim, uint8_t *axis)
{
    int found = -1, rest = -1;

    for (int i = 0; i < n; i++) {
        if (front_const(L, item[i]) == Py_Ellipsis && rest < 0) {
            rest = i;
        } else if (!is_whole(L, item[i])) {
            if (found >= 0) {
                return -1;
            }
            found = i;
        }
    }
    if (found < 0 || n - (rest >= 0) > ndim) {
        return -1;
    }
    *axis = (uint8_t)(rest >= 0 && rest < found ? ndim - (n - found) : found);
    return found;
}

bool
front_lower_getitem(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg;
    TapeRef item[TAPE_MAX_NDIM + 1];
    uint8_t axis = 0;
    FrontValue v;

    if (!front_value(L, arg[0], &v)) {
        return false;
    }
    if (v.form != META_ARRAY) {
        return front_no(L, "an index into a number");
    }
    Item basic[TAPE_MAX_NDIM];
    int nbasic = read_key(L, arg[1], basic);
    if (nbasic >= 0) {
        return lower_basic(L, &v, basic, nbasic, out);
    }
    uint8_t ndim = L->g->node[v.ref].ndim;
    const TapeVirt *virt = TAPE_KIND(arg[1]) == TAPE_VIRT ? &L->t->virt[TAPE_INDEX(arg[1])] : NULL;
    if (ndim > 0 && (virt == NULL || virt->kind == VIRT_LIST)) {
        return lower_gather(L, &v, arg[1], 0, out);
    }
    int n = front_items(L, arg[1], item, ndim + 1);
    int at = n < 1 ? -1 : gather_item(L, item, n, ndim, &axis);
    if (at < 0) {
        return front_no(L, "an index that is not known");
    }
    return lower_gather(L, &v, item[at], axis, out);
}

/* np.take(a, places, axis): always in C order */
bool
front_lower_take(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue v, at;
    uint8_t axis = 0;

    if (!front_args(L, "a indices axis", arg) || arg[1] == TAPE_NULL
            || !front_array(L, arg[0], &v)) {
        return front_no(L, "arguments that have no kernel");
    }
    CcRef x = v.ref;
    if (arg[2] == TAPE_NULL || front_const(L, arg[2]) == Py_None) {
        CcDim n = cc_numel(L->g, x, &L->st);
        x = n == 0 ? 0 : cc_build_reshape(L->g, x, 1, &n, &L->st);
    } else if (!front_axis(L, arg[2], L->g->node[x].ndim, &axis)) {
        return false;
    }
    CcRef places = places_of(L, arg[1], &at);
    if (x == 0 || places == 0) {
        return front_no(L, "an index without a kernel");
    }
    return front_give(L, cc_build_gather(L->g, x, places, axis, &L->st), LAYOUT_C, true, out);
}
