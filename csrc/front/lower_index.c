/* front/lower_index.c - x[key] with constant places, and with one array of places. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* The operand being cut, axis by axis, and the shape of the result. */
typedef struct {
    CcRef x;
    uint8_t axis, ndim;                 /* next axis of x */
    CcDim start[TAPE_MAX_NDIM], size[TAPE_MAX_NDIM];
    int64_t step[TAPE_MAX_NDIM];
    CcDim shape[CC_MAX_NDIM];
    uint8_t nshape;
} Cut;

/* -- Basic indexing ------------------------------------------------------------------------------- */

/* A bound as NumPy counts it, where the axis is long enough that nothing is clipped. */
static CcDim
place(Lower *L, CcDim n, int64_t at, int64_t reach)
{
    if (!front_need(L, n, reach) || cc_dim_eval(L->g, n, L->sym) < reach) {
        L->why = "a place beyond the axis";
        return 0;
    }
    return at < 0 ? front_dim(L, CC_DIM_ADD, n, at) : cc_dim_const(L->g, at, &L->st);
}

static bool
read_bound(PyObject *obj, bool *given, int64_t *out)
{
    int over = 0;

    *given = obj != Py_None;
    if (!*given) {
        return true;
    }
    *out = PyLong_CheckExact(obj) ? PyLong_AsLongLongAndOverflow(obj, &over) : 0;
    return PyLong_CheckExact(obj) && !over && *out > -(1 << 30) && *out < 1 << 30;
}

static bool
cut_slice(Lower *L, Cut *c, PySliceObject *s)
{
    CcDim n = cc_shape(L->g, c->x)[c->axis], from, to;
    int64_t start = 0, stop = 0, step = 1;
    bool has_start, has_stop, has_step;

    if (!read_bound(s->start, &has_start, &start) || !read_bound(s->stop, &has_stop, &stop)
            || !read_bound(s->step, &has_step, &step) || step == 0) {
        return front_no(L, "a slice that is not known");
    }
    step = has_step ? step : 1;
    bool up = step > 0;
    int64_t edge = up ? 0 : 1;          /* downwards a bound must be a place itself */
    from = has_start ? place(L, n, start, start < 0 ? -start : start + edge)
         : up ? cc_dim_const(L->g, 0, &L->st) : front_dim(L, CC_DIM_SUB, n, 1);
    to = has_stop ? place(L, n, stop, stop < 0 ? -stop : stop + edge)
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
cut_place(Lower *L, Cut *c, PyObject *obj)
{
    int over;
    int64_t at = PyLong_AsLongLongAndOverflow(obj, &over);
    CcDim n = cc_shape(L->g, c->x)[c->axis];

    c->start[c->axis] = over ? 0 : place(L, n, at, at < 0 ? -at : at + 1);
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
cut_item(Lower *L, Cut *c, PyObject *obj, uint8_t later)
{
    if (obj == Py_None) {
        c->shape[c->nshape++] = cc_dim_const(L->g, 1, &L->st);
        return c->nshape < TAPE_MAX_NDIM;
    }
    if (obj == Py_Ellipsis) {
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
    if (PySlice_Check(obj)) {
        return cut_slice(L, c, (PySliceObject *)obj);
    }
    return PyLong_CheckExact(obj) ? cut_place(L, c, obj) : front_no(L, "an index without a kernel");
}

static bool
cut_all(Lower *L, Cut *c, PyObject *key)
{
    bool many = PyTuple_CheckExact(key);
    Py_ssize_t n = many ? PyTuple_GET_SIZE(key) : 1;
    uint8_t later = 0;                  /* axes that items behind this one take */

    if (n > TAPE_MAX_NDIM) {
        return front_no(L, "too many indexes");
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *obj = many ? PyTuple_GET_ITEM(key, i) : key;
        later += obj != Py_None && obj != Py_Ellipsis;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *obj = many ? PyTuple_GET_ITEM(key, i) : key;
        later -= obj != Py_None && obj != Py_Ellipsis;
        if (!cut_item(L, c, obj, later)) {
            return false;
        }
    }
    while (c->axis < c->ndim) {
        if (!cut_whole(L, c)) {
            return false;
        }
    }
    return true;
}

static bool
lower_basic(Lower *L, const FrontValue *v, PyObject *key, FrontValue *out)
{
    Cut c = {.x = v->ref, .ndim = L->g->node[v->ref].ndim};

    if (!cut_all(L, &c, key)) {
        return front_no(L, L->why != NULL ? L->why : "an index without a kernel");
    }
    CcRef r = cc_build_slice(L->g, v->ref, c.start, c.step, c.size, &L->st);
    r = r == 0 ? 0 : cc_build_reshape(L->g, r, c.nshape, c.shape, &L->st);
    /* a single element is a number; the rest are views */
    bool number = L->t->meta[L->in->dst - 1].form == META_SCALAR;
    return front_give(L, r, v->order, number, out);
}

/* -- One array of places ------------------------------------------------------------------------------ */

static bool
lower_gather(Lower *L, const FrontValue *v, TapeRef places, uint8_t axis, FrontValue *out)
{
    FrontValue at;

    if (!front_value(L, places, &at)) {
        return false;
    }
    CcDtype dt = front_dtype(at.dtype);
    if (at.form != META_ARRAY || dt == CC_DTYPE_U64 || !cc_dtype_is_int(dt)
            || L->g->node[at.ref].ndim == 0) {
        return front_no(L, "an index without a kernel");
    }
    FrontValue both[2] = {*v, at};
    CcRef r = cc_build_gather(L->g, v->ref, front_as(L, &at, CC_DTYPE_I64), axis, &L->st);
    uint8_t order = front_order(L, both, 2) == LAYOUT_C ? LAYOUT_C : LAYOUT_STRIDED;
    return front_give(L, r, order, true, out);
}

/* (:, :, places): the axis of the array, or -1. */
static int
gather_axis(Lower *L, const TapeRef *item, int n)
{
    for (int i = 0; i < n - 1; i++) {
        PyObject *obj = front_object(L, item[i]);
        PySliceObject *s = obj != NULL && PySlice_Check(obj) ? (PySliceObject *)obj : NULL;
        bool whole = s != NULL && s->start == Py_None && s->stop == Py_None && s->step == Py_None;
        Py_XDECREF(obj);
        if (!whole) {
            return -1;
        }
    }
    return n - 1;
}

bool
front_lower_getitem(Lower *L, FrontValue *out)
{
    const TapeRef *arg = L->t->opnd + L->in->arg;
    TapeRef item[TAPE_MAX_NDIM];
    FrontValue v;

    if (!front_value(L, arg[0], &v)) {
        return false;
    }
    if (v.form != META_ARRAY) {
        return front_no(L, "an index into a number");
    }
    PyObject *key = front_object(L, arg[1]);
    if (key != NULL) {
        bool ok = !PyArray_Check(key) && lower_basic(L, &v, key, out);
        Py_DECREF(key);
        return ok || front_no(L, L->why != NULL ? L->why : "an index without a kernel");
    }
    uint8_t ndim = L->g->node[v.ref].ndim;
    if (TAPE_KIND(arg[1]) == TAPE_REG && ndim > 0) {
        return lower_gather(L, &v, arg[1], 0, out);
    }
    int n = front_items(L, arg[1], item, ndim);
    int axis = n < 1 ? -1 : gather_axis(L, item, n);
    if (axis < 0 || TAPE_KIND(item[axis]) != TAPE_REG) {
        return front_no(L, "an index that is not known");
    }
    return lower_gather(L, &v, item[axis], (uint8_t)axis, out);
}

/* np.take(a, places, axis) */
bool
front_lower_take(Lower *L, FrontValue *out)
{
    TapeRef arg[3];
    FrontValue v;
    int64_t axis;

    if (!front_args(L, "a indices axis", arg) || arg[1] == TAPE_NULL || !front_value(L, arg[0], &v)
            || v.form != META_ARRAY || !front_const_int(L, arg[2], &axis)) {
        return front_no(L, "arguments that have no kernel");
    }
    uint8_t ndim = L->g->node[v.ref].ndim;
    axis += axis < 0 ? ndim : 0;
    if (axis < 0 || axis >= ndim) {
        return front_no(L, "an axis that is not there");
    }
    return lower_gather(L, &v, arg[1], (uint8_t)axis, out);
}
