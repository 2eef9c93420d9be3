/* front/lower_row.c - which rule a row has, by its kind and its callable. */
#include "npy.h"

#include "lower_node.h"

#include <string.h>

/* A function of numpy that is neither a ufunc nor a reduction, or a method that has one's name. */
static bool
lower_named(Lower *L, const char *name, FrontValue *out)
{
    bool mine;
    bool ok = front_lower_reduction(L, name, &mine, out);

    if (mine) {
        return ok;
    }
    ok = front_lower_shaping(L, name, &mine, out);
    if (!mine) {
        ok = front_lower_making(L, name, &mine, out);
    }
    if (!mine) {
        ok = front_lower_composed(L, name, &mine, out);
    }
    if (!mine) {
        ok = front_lower_product(L, name, &mine, out);
    }
    if (!mine) {
        ok = front_lower_arranged(L, name, &mine, out);
    }
    if (mine) {
        return ok;
    }
    if (strcmp(name, "where") == 0) {
        return front_lower_where(L, out);
    }
    return strcmp(name, "clip") == 0 ? front_lower_clip(L, out)
                                     : front_no(L, "a function without a kernel");
}

static bool
method_astype(Lower *L, FrontValue *out)
{
    TapeRef arg[3];

    /* behind dtype comes `order` by position, `copy` only by name */
    if (!front_args(L, "a dtype copy", arg) || (L->in->n > 3 && L->in->kw == 0)) {
        return front_no(L, "arguments that have no kernel");
    }
    int num = front_dtype_operand(L, arg[1]);
    bool copies = arg[2] == TAPE_NULL || front_const(L, arg[2]) == Py_True;
    if (num < 0) {
        return front_no(L, "a dtype that is not known");
    }
    return front_lower_cast(L, arg[0], num, copies, out);
}

static bool
lower_method(Lower *L, PyObject *descr, FrontValue *out)
{
    const char *name = ((PyMethodDescrObject *)descr)->d_method->ml_name;
    const TapeRef *arg = L->t->opnd + L->in->arg + 1;

    if (L->in->n < 2) {
        return front_no(L, "a method of nothing");
    }
    if (strcmp(name, "astype") == 0) {
        return method_astype(L, out);
    }
    if (strcmp(name, "item") == 0 && L->in->n == 2) {
        return front_lower_number(L, arg[0], L->t->meta[L->in->dst - 1].form, out);
    }
    return lower_named(L, name, out);
}

/* float(x), int(x), bool(x), np.float32(x) */
static bool
lower_type(Lower *L, PyTypeObject *tp, FrontValue *out)
{
    TapeRef a = L->t->opnd[L->in->arg + 1];

    if (L->in->n != 2 || L->in->kw != 0) {
        return front_no(L, "arguments that have no kernel");
    }
    if (tp == &PyBool_Type) {
        return front_lower_truth(L, a, out);
    }
    if (tp == &PyFloat_Type || tp == &PyLong_Type) {
        return front_lower_number(L, a, tp == &PyFloat_Type ? META_FLOAT : META_INT, out);
    }
    PyArray_Descr *d = PyArray_DescrFromTypeObject((PyObject *)tp);
    int num = d == NULL ? -1 : d->type_num;
    Py_XDECREF(d);
    PyErr_Clear();
    return front_lower_cast(L, a, num, false, out);
}

static bool
lower_function(Lower *L, PyObject *fn, FrontValue *out)
{
    PyObject *text = PyObject_GetAttrString(fn, "__name__");
    const char *name = text == NULL ? NULL : PyUnicode_AsUTF8(text);
    TapeRef arg[2];
    bool ok;

    PyErr_Clear();
    if (name == NULL) {
        ok = front_no(L, "a function without a name");
    } else if (Py_IS_TYPE(fn, &PyUFunc_Type)) {
        uint32_t n = (uint32_t)((PyUFuncObject *)fn)->nin;
        if (L->in->kw != 0 || L->in->n != n + 1) {
            ok = front_no(L, "arguments that have no kernel");
        } else if (strcmp(name, "matmul") == 0) {
            memcpy(arg, L->t->opnd + L->in->arg + 1, sizeof(arg));
            ok = front_lower_matmul(L, arg[0], arg[1], false, out);
        } else {
            ok = front_lower_ufunc(L, name, L->t->opnd + L->in->arg + 1, n, out);
        }
    } else if (front_is_registered(fn)) {
        ok = front_lower_nn(L, name, out);
    } else if (PyCFunction_CheckExact(fn) && strcmp(name, "abs") == 0) {
        ok = front_lower_ufunc(L, "absolute", L->t->opnd + L->in->arg + 1, 1, out);
    } else {
        ok = lower_named(L, name, out);
    }
    Py_XDECREF(text);
    return ok;
}

static bool
lower_call(Lower *L, FrontValue *out)
{
    PyObject *fn = front_const(L, L->t->opnd[L->in->arg]);

    if (fn == NULL) {
        return front_no(L, "a callable that is no constant");
    }
    if (Py_IS_TYPE(fn, &PyMethodDescr_Type)) {
        return lower_method(L, fn, out);
    }
    return PyType_Check(fn) ? lower_type(L, (PyTypeObject *)fn, out) : lower_function(L, fn, out);
}

static bool
lower_kind(Lower *L, FrontValue *out)
{
    switch ((CallKind)L->in->sub) {
    case DO_BINARY:
    case DO_UNARY:
    case DO_COMPARE:
        return front_lower_operator(L, out);
    case DO_TRUTH:
        return front_lower_truth(L, L->t->opnd[L->in->arg], out);
    case DO_GETITEM:
        return front_is_gradient(L, L->t->opnd[L->in->arg]) ? front_lower_gradient_item(L, out)
                                                             : front_lower_getitem(L, out);
    case DO_GETATTR:
        return front_lower_attribute(L, out);
    case DO_INPLACE:
    case DO_ASSIGN:
    case DO_STORE:
    case DO_INTO:
        return front_lower_update(L, out);
    case DO_CALL:
        return lower_call(L, out);
    default:
        return front_no(L, "an operation without a kernel");
    }
}

/* What was inferred must be what was seen. */
static bool
agrees(Lower *L, const FrontValue *v, const TapeMeta *m)
{
    bool array = m->form == META_ARRAY;
    bool typed = array || m->form == META_SCALAR;

    if (m->form == META_NONE || L->g->node[v->ref].ndim != (array ? m->ndim : 0)
            || (typed && v->dtype != m->dtype)) {
        return front_no(L, "a result that was not foreseen");
    }
    CcDtype dt = (CcDtype)L->g->node[v->ref].dtype;
    if ((m->form == META_INT && dt != CC_DTYPE_I64) || (m->form == META_FLOAT && dt != CC_DTYPE_F64)
            || (m->form == META_BOOL && dt != CC_DTYPE_BOOL)) {
        return front_no(L, "a number that was not foreseen");
    }
    for (uint32_t i = 0; array && i < m->ndim; i++) {
        if (cc_dim_eval(L->g, cc_shape(L->g, v->ref)[i], L->sym) != m->dim[i]) {
            return front_no(L, "a shape that was not foreseen");
        }
    }
    return true;
}

/* Nodes from `first` on that are worth a launch. */
static bool
is_work(const Lower *L, CcRef first)
{
    for (CcRef r = first; r < L->g->len; r++) {
        const CcNode *node = &L->g->node[r];
        uint8_t cls = cc_info(L->g, r)->cls;
        bool moves = node->op == CC_OP_CONCAT || node->op == CC_OP_PAD;
        if ((cls == CC_CLASS_EW && node->ndim > 0) || (cls == CC_CLASS_MOVE && moves)
                || (cls != CC_CLASS_LEAF && cls != CC_CLASS_EW && cls != CC_CLASS_MOVE)) {
            return true;
        }
    }
    return false;
}

bool
front_lower_row(Lower *L, FrontValue *out)
{
    if (L->in->dst == 0) {
        return front_no(L, "a row without a result");
    }
    const TapeMeta *m = &L->t->meta[L->in->dst - 1];
    CcRef first = L->g->len;
    if (L->in->sub == DO_CALL && L->in->aux != 0) {
        return front_lower_gradient(L, out);
    }
    if (!lower_kind(L, out) || !agrees(L, out, m) || !front_need_dims(L, out->ref)) {
        return false;
    }
    /* what lay otherwise than foreseen, or is a view, cannot be given to anybody */
    if (m->form == META_ARRAY && (out->order != m->layout || m->layout == LAYOUT_STRIDED
                                  || (m->view && !out->wrapped))) {
        out->fresh = false;
    }
    out->wrapped &= m->view;
    L->work |= is_work(L, first);
    return true;
}
