/* trace/builtins.c - callables of C that the recorder knows: what they read, whether they are pure,
 * how they fold. Whatever is not here is a residual call. */
#include "ops.h"

#include <opcode.h>
#include <string.h>

typedef struct {
    PyObject *const *real;
    const TapeRef *ref;
    Py_ssize_t n;
    PyObject *kwnames;
    int pop;
    PyObject *callable;
} BuiltinCall;

typedef RecStatus (*BuiltinFn)(Recorder *r, const BuiltinCall *c, bool *handled);

static RecStatus
give(Recorder *r, const BuiltinCall *c, PyObject *res, TapeRef ref, bool *handled)
{
    *handled = true;
    if (res == NULL) {
        return REC_ERROR;
    }
    rec_replace_steal(r, c->pop, res, ref);
    return REC_OK;
}

static bool
is_number(PyObject *o)
{
    return PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBool_Check(o) ||
           PyComplex_CheckExact(o);
}

static bool
all_simple(const BuiltinCall *c)
{
    for (Py_ssize_t i = 0; i < c->n; i++) {
        PyObject *o = c->real[i];
        if (!is_number(o) && !PyUnicode_CheckExact(o) && o != Py_None && !PyBytes_CheckExact(o)) {
            return false;
        }
    }
    return true;
}

static RecStatus
pure_call(Recorder *r, const BuiltinCall *c, TapeOp op, CallKind kind, bool *handled)
{
    PyObject *real[64], *res;
    TapeRef ref[64], out;
    uint32_t first = kind == DO_CALL;

    real[0] = c->callable;
    ref[0] = rec_const(r, c->callable);
    for (Py_ssize_t i = 0; i < c->n; i++) {
        real[first + i] = c->real[i];
        ref[first + i] = c->ref[i];
    }
    *handled = true;
    RecStatus st =
        rec_pure(r, op, kind, 0, real, ref, (uint32_t)c->n + first, c->kwnames, c->pop, &res, &out);
    if (st == REC_OK) {
        rec_replace_steal(r, c->pop, res, out);
    }
    return st;
}

/* Numbers and strings only: a value like any operator's. */
static RecStatus
bi_plain(Recorder *r, const BuiltinCall *c, bool *handled)
{
    if (c->kwnames != NULL || !all_simple(c) || c->n == 0) {
        return REC_OK;
    }
    return pure_call(r, c, TAPE_PCALL, DO_CALL, handled);
}

static RecStatus
bi_range(Recorder *r, const BuiltinCall *c, bool *handled)
{
    bool constant = c->kwnames == NULL && c->n >= 1 && c->n <= 3;

    for (Py_ssize_t i = 0; i < c->n && constant; i++) {
        constant = PyLong_CheckExact(c->real[i]) && TAPE_KIND(c->ref[i]) == TAPE_CONST;
    }
    if (!constant) {
        return bi_plain(r, c, handled);
    }
    PyObject *res = PyObject_Vectorcall(c->callable, c->real, (size_t)c->n, NULL);
    return give(r, c, res, res == NULL ? TAPE_NULL : rec_const(r, res), handled);
}

static RecStatus
bi_len(Recorder *r, const BuiltinCall *c, bool *handled)
{
    if (c->n != 1 || c->kwnames != NULL) {
        return REC_OK;
    }
    PyObject *obj = c->real[0];
    RecVirt *v = rec_virt_of(r, c->ref[0]);
    if (v != NULL && (v->kind == VIRT_TUPLE || v->kind == VIRT_LIST || v->kind == VIRT_DICT)) {
        Py_ssize_t n = v->kind == VIRT_DICT ? v->nfields / 2 : v->nfields;
        return give(r, c, PyLong_FromSsize_t(n), rec_const_int(r, n), handled);
    }
    bool builtin = PyTuple_CheckExact(obj) || PyList_CheckExact(obj) || PyDict_CheckExact(obj)
        || PyUnicode_CheckExact(obj) || Py_IS_TYPE(obj, &PyRange_Type) || PyAnySet_CheckExact(obj);
    if (builtin || front_classify(DO_LEN, 0, &obj, 1, NULL) == FRONT_META) {
        if (builtin) {
            rec_guard_type(r, c->ref[0], obj);
        }
        return pure_call(r, c, TAPE_PCALL, DO_LEN, handled);
    }
    return REC_OK;
}

/* A class whose metaclass is `type` itself asks nobody else. */
static bool
is_plain_class(PyObject *cls)
{
    if (PyTuple_CheckExact(cls)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cls); i++) {
            if (!Py_IS_TYPE(PyTuple_GET_ITEM(cls, i), &PyType_Type)) {
                return false;
            }
        }
        return true;
    }
    return Py_IS_TYPE(cls, &PyType_Type);
}

static bool
is_constant_class(Recorder *r, TapeRef ref)
{
    RecVirt *v = rec_virt_of(r, ref);

    if (v == NULL) {
        return TAPE_KIND(ref) == TAPE_CONST;
    }
    for (uint32_t i = 0; i < v->nfields; i++) {
        if (TAPE_KIND(rec_ref(r, v->field[i])) != TAPE_CONST) {
            return false;
        }
    }
    return v->kind == VIRT_TUPLE;
}

/* An instance's __class__ could be a property of its class: only the exact type may answer. */
static RecStatus
bi_isinstance(Recorder *r, const BuiltinCall *c, bool *handled)
{
    if (c->n != 2 || c->kwnames != NULL || !is_plain_class(c->real[1])
            || !is_constant_class(r, c->ref[1])) {
        return REC_OK;
    }
    PyObject *name = PyUnicode_InternFromString("__class__");
    PyObject *own = name == NULL ? NULL : _PyType_Lookup(Py_TYPE(c->real[0]), name);
    PyObject *base = name == NULL ? NULL : _PyType_Lookup(&PyBaseObject_Type, name);
    Py_XDECREF(name);
    if (own == NULL || own != base) {
        PyErr_Clear();
        return REC_OK;
    }
    int is = PyObject_IsInstance(c->real[0], c->real[1]);
    if (is < 0) {
        *handled = true;
        return REC_ERROR;
    }
    rec_guard_type(r, c->ref[0], c->real[0]);
    PyObject *res = is ? Py_True : Py_False;
    return give(r, c, Py_NewRef(res), rec_const(r, res), handled);
}

static RecStatus
bi_type(Recorder *r, const BuiltinCall *c, bool *handled)
{
    if (c->n != 1 || c->kwnames != NULL) {
        return REC_OK;
    }
    rec_guard_type(r, c->ref[0], c->real[0]);
    PyObject *tp = (PyObject *)Py_TYPE(c->real[0]);
    return give(r, c, Py_NewRef(tp), rec_const(r, tp), handled);
}

/* float(x), int(x), bool(x), abs(x), round(x) ... of numbers, or of one array element. */
static RecStatus
bi_convert(Recorder *r, const BuiltinCall *c, bool *handled)
{
    if (c->kwnames != NULL || c->n < 1) {
        return REC_OK;
    }
    if (all_simple(c)) {
        return pure_call(r, c, TAPE_PCALL, DO_CALL, handled);
    }
    if (c->n == 1 && (front_is_array(c->real[0]) || front_is_scalar(c->real[0]))) {
        return pure_call(r, c, TAPE_NODE, DO_CALL, handled);
    }
    return REC_OK;
}

static RecStatus
bi_bool(Recorder *r, const BuiltinCall *c, bool *handled)
{
    RecVirt *v = c->n == 1 ? rec_virt_of(r, c->ref[0]) : NULL;

    if (v != NULL && (v->kind == VIRT_TUPLE || v->kind == VIRT_LIST || v->kind == VIRT_DICT)) {
        PyObject *yes = v->nfields > 0 ? Py_True : Py_False;
        return give(r, c, Py_NewRef(yes), rec_const(r, yes), handled);
    }
    return bi_convert(r, c, handled);
}

/* getattr(obj, "name"[, default]) where no code of the program's runs. */
static RecStatus
bi_getattr(Recorder *r, const BuiltinCall *c, bool *handled)
{
    PyObject *real = NULL;
    TapeRef out = TAPE_NULL;

    if ((c->n != 2 && c->n != 3) || c->kwnames != NULL || !PyUnicode_CheckExact(c->real[1])) {
        return REC_OK;
    }
    RecAttr found = rec_attr_look(r, c->real[0], c->ref[0], c->real[1], &real, &out);
    if (found == REC_ATTR_UNKNOWN || (found == REC_ATTR_ABSENT && c->n == 2)) {
        return REC_OK;
    }
    rec_fix_value(r, c->ref[1], c->real[1]);
    return found == REC_ATTR_FOUND ? give(r, c, real, out, handled)
                                   : give(r, c, Py_NewRef(c->real[2]), c->ref[2], handled);
}

static RecStatus
bi_hasattr(Recorder *r, const BuiltinCall *c, bool *handled)
{
    PyObject *real = NULL;
    TapeRef out;

    if (c->n != 2 || c->kwnames != NULL || !PyUnicode_CheckExact(c->real[1])) {
        return REC_OK;
    }
    RecAttr found = rec_attr_look(r, c->real[0], c->ref[0], c->real[1], &real, &out);
    if (found == REC_ATTR_UNKNOWN) {
        return REC_OK;
    }
    rec_fix_value(r, c->ref[1], c->real[1]);
    Py_XDECREF(real);
    PyErr_Clear();
    PyObject *res = found == REC_ATTR_FOUND ? Py_True : Py_False;
    return give(r, c, Py_NewRef(res), rec_const(r, res), handled);
}

/* -- Sequences of known items ------------------------------------------------------------- */

/* Those of a dict or of a virtual view of one. */
static Py_ssize_t
dict_items_of(Recorder *r, PyObject *seq, TapeRef ref, TapeRef *item)
{
    RecVirt *v = rec_virt_of(r, ref);
    PyDictPart part = PY_DICT_KEYS;

    if (!PyDict_CheckExact(seq)) {
        if (v == NULL || v->kind != VIRT_DICTVIEW || !py_dict_part(seq, &part)) {
            return -1;
        }
        seq = py_dict_of_view_borrow(seq);
        ref = rec_ref(r, v->field[0]);
    }
    if (!rec_keys_known(r, ref, seq)) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyDict_GET_SIZE(seq); i++) {
        item[i] = rec_dict_item(r, seq, ref, part, i);
    }
    return PyDict_GET_SIZE(seq);
}

/* Refs and reals of the items of a short sequence, or -1. */
static Py_ssize_t
items_of(Recorder *r, PyObject *seq, TapeRef ref, TapeRef *item)
{
    RecVirt *v = rec_virt_of(r, ref);
    bool exact = PyTuple_CheckExact(seq) || PyList_CheckExact(seq);
    Py_ssize_t n = exact ? PySequence_Fast_GET_SIZE(seq) : -1;

    if (!exact) {
        return dict_items_of(r, seq, ref, item);
    }
    if (n > (Py_ssize_t)r->opt.unroll || (v != NULL && v->nfields != (uint32_t)n)) {
        return -1;
    }
    if (v == NULL) {
        rec_guard_len(r, ref, seq);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *real = PySequence_Fast_GET_ITEM(seq, i);
        v = rec_virt_of(r, ref);
        item[i] = v != NULL ? rec_ref(r, v->field[i])
                : TAPE_KIND(ref) == TAPE_CONST
                    ? rec_const(r, real)
                    : rec_load(r, TAPE_LDITEM, 0, ref, rec_const_int(r, i), 0, real);
    }
    return n;
}

/* An iterator whose items are known: shown to anybody, it is made by the same call and advanced. */
static RecStatus
give_iter(Recorder *r, const BuiltinCall *c, const TapeRef *item, Py_ssize_t n, bool *handled)
{
    PyObject *res = PyObject_Vectorcall(c->callable, c->real, (size_t)c->n, NULL);
    TapeRef field[3 + 4] = {TAPE_NULL};

    if (res != NULL) {
        field[0] = rec_virt(r, VIRT_LIST, item, (uint32_t)n);
        field[1] = rec_const_int(r, 0);
        field[2] = rec_const(r, c->callable);
        for (Py_ssize_t i = 0; i < c->n; i++) {
            field[3 + i] = c->ref[i];
        }
    }
    TapeRef out = res == NULL ? TAPE_NULL : rec_virt(r, VIRT_CALLITER, field, (uint32_t)(3 + c->n));
    return give(r, c, res, out, handled);
}

static bool
is_short_sequence(Recorder *r, PyObject *o)
{
    PyDictPart part;

    if (PyDict_CheckExact(o)) {
        return PyDict_GET_SIZE(o) <= (Py_ssize_t)r->opt.unroll;
    }
    if (py_dict_part(o, &part)) {
        return PyDict_GET_SIZE(py_dict_of_view_borrow(o)) <= (Py_ssize_t)r->opt.unroll;
    }
    return (PyTuple_CheckExact(o) || PyList_CheckExact(o))
        && PySequence_Fast_GET_SIZE(o) <= (Py_ssize_t)r->opt.unroll;
}

/* A list may change while it is iterated, and zip and enumerate would see it: tuples only. */
static bool
is_known_sequence(Recorder *r, PyObject *o)
{
    return PyTuple_CheckExact(o) && PyTuple_GET_SIZE(o) <= (Py_ssize_t)r->opt.unroll;
}

/* zip and enumerate of what may change while it is iterated: the items are taken one by one. Only in
 * the head of a loop, where nobody can ask an iterator again that came to its end. */
static RecStatus
give_join(Recorder *r, const BuiltinCall *c, bool *handled)
{
    const RecFrame *fr = rec_top(r);
    TapeRef field[1 + REC_JOIN_MAX + 1] = {rec_const(r, c->callable)};
    PyObject *it[REC_JOIN_MAX] = {NULL}, *res = NULL;
    uint32_t n = (uint32_t)c->n;
    bool count = c->callable == (PyObject *)&PyEnum_Type, ok = true;

    if (fr->code[2 * fr->next] != GET_ITER || c->n < 1 || c->n > REC_JOIN_MAX) {
        return REC_OK;
    }
    for (uint32_t k = 0; k < n; k++) {
        field[1 + k] = rec_known_iter(r, c->real[k], c->ref[k]);
        if (field[1 + k] == TAPE_NULL) {
            return REC_OK;
        }
    }
    for (uint32_t k = 0; ok && k < n; k++) {
        it[k] = PyObject_GetIter(c->real[k]);
        ok = it[k] != NULL;
    }
    if (ok) {
        res = PyObject_Vectorcall(c->callable, it, n, NULL);
    }
    for (uint32_t k = 0; k < n; k++) {
        Py_XDECREF(it[k]);
    }
    if (count) {
        field[1 + n++] = rec_const_int(r, 0);
    }
    return give(r, c, res, res == NULL ? TAPE_NULL : rec_virt(r, VIRT_JOINITER, field, 1 + n),
                handled);
}

static RecStatus
bi_enumerate(Recorder *r, const BuiltinCall *c, bool *handled)
{
    TapeRef item[64];

    if (c->n != 1 || c->kwnames != NULL || r->opt.unroll > 64) {
        return REC_OK;
    }
    if (!is_known_sequence(r, c->real[0])) {
        return give_join(r, c, handled);
    }
    Py_ssize_t n = items_of(r, c->real[0], c->ref[0], item);
    for (Py_ssize_t i = 0; i < n; i++) {
        TapeRef pair[2] = {rec_const_int(r, i), item[i]};
        item[i] = rec_virt(r, VIRT_TUPLE, pair, 2);
    }
    return n < 0 ? REC_OK : give_iter(r, c, item, n, handled);
}

static RecStatus
bi_zip(Recorder *r, const BuiltinCall *c, bool *handled)
{
    TapeRef part[4][64], item[64];
    Py_ssize_t n = 64;

    if (c->n < 1 || c->n > 4 || c->kwnames != NULL || r->opt.unroll > 64) {
        return REC_OK;
    }
    for (Py_ssize_t k = 0; k < c->n; k++) {
        if (!is_known_sequence(r, c->real[k])) {
            return give_join(r, c, handled);
        }
    }
    for (Py_ssize_t k = 0; k < c->n; k++) {
        Py_ssize_t m = items_of(r, c->real[k], c->ref[k], part[k]);
        if (m < 0) {
            return REC_OK;
        }
        n = m < n ? m : n;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        TapeRef row[4];
        for (Py_ssize_t k = 0; k < c->n; k++) {
            row[k] = part[k][i];
        }
        item[i] = rec_virt(r, VIRT_TUPLE, row, (uint32_t)c->n);
    }
    return give_iter(r, c, item, n, handled);
}

static RecStatus
bi_reversed(Recorder *r, const BuiltinCall *c, bool *handled)
{
    TapeRef item[64], back[64];

    if (c->n != 1 || c->kwnames != NULL || r->opt.unroll > 64 ||
        !is_known_sequence(r, c->real[0])) {
        return REC_OK;
    }
    Py_ssize_t n = items_of(r, c->real[0], c->ref[0], item);
    for (Py_ssize_t i = 0; i < n; i++) {
        back[i] = item[n - 1 - i];
    }
    return n < 0 ? REC_OK : give_iter(r, c, back, n, handled);
}

/* tuple(x), list(x) of known items: a new virtual container. */
static RecStatus
bi_sequence(Recorder *r, const BuiltinCall *c, bool *handled)
{
    TapeRef item[64];
    bool tuple = c->callable == (PyObject *)&PyTuple_Type;

    if (c->kwnames != NULL || c->n > 1 || r->opt.unroll > 64) {
        return REC_OK;
    }
    if (c->n == 0) {
        PyObject *empty = tuple ? PyTuple_New(0) : PyList_New(0);
        TapeRef ref = empty == NULL ? TAPE_NULL
                      : tuple       ? rec_const(r, empty)
                                    : rec_virt(r, VIRT_LIST, NULL, 0);
        return give(r, c, empty, ref, handled);
    }
    if (!is_short_sequence(r, c->real[0])) {
        return REC_OK;
    }
    if (tuple && PyTuple_CheckExact(c->real[0])) {
        return give(r, c, Py_NewRef(c->real[0]), c->ref[0], handled);
    }
    Py_ssize_t n = items_of(r, c->real[0], c->ref[0], item);
    if (n < 0) {
        return REC_OK;
    }
    PyObject *res = tuple ? PySequence_Tuple(c->real[0]) : PySequence_List(c->real[0]);
    TapeRef ref = res == NULL ? TAPE_NULL
                : tuple && n == 0 ? rec_const(r, res)
                                  : rec_virt(r, tuple ? VIRT_TUPLE : VIRT_LIST, item, (uint32_t)n);
    return give(r, c, res, ref, handled);
}

static RecStatus
bi_dict(Recorder *r, const BuiltinCall *c, bool *handled)
{
    TapeRef field[128];
    Py_ssize_t nkw = c->kwnames == NULL ? 0 : PyTuple_GET_SIZE(c->kwnames);

    if (c->n != nkw) {
        return REC_OK;
    }
    for (Py_ssize_t i = 0; i < nkw; i++) {
        field[2 * i] = rec_const(r, PyTuple_GET_ITEM(c->kwnames, i));
        field[2 * i + 1] = c->ref[i];
    }
    PyObject *res = PyObject_Vectorcall(c->callable, c->real, 0, c->kwnames);
    TapeRef ref = res == NULL ? TAPE_NULL : rec_virt(r, VIRT_DICT, field, (uint32_t)(2 * nkw));
    return give(r, c, res, ref, handled);
}

static RecStatus
bi_slice(Recorder *r, const BuiltinCall *c, bool *handled)
{
    TapeRef none = rec_const(r, Py_None), field[3] = {none, none, none};

    if (c->kwnames != NULL || c->n < 1 || c->n > 3) {
        return REC_OK;
    }
    if (c->n == 1) {
        field[1] = c->ref[0];
    } else {
        for (Py_ssize_t i = 0; i < c->n; i++) {
            field[i] = c->ref[i];
        }
    }
    PyObject *res = PyObject_Vectorcall(c->callable, c->real, (size_t)c->n, NULL);
    return give(r, c, res, res == NULL ? TAPE_NULL : rec_virt(r, VIRT_SLICE, field, 3), handled);
}

/* -- Tables ---------------------------------------------------------------------------------- */

static const struct {
    PyTypeObject *type;
    BuiltinFn fn;
} by_type[] = {
    {&PyRange_Type, bi_range},       {&PyType_Type, bi_type},        {&PyFloat_Type, bi_convert},
    {&PyLong_Type, bi_convert},      {&PyBool_Type, bi_bool},        {&PyComplex_Type, bi_convert},
    {&PyUnicode_Type, bi_plain},     {&PyEnum_Type, bi_enumerate},   {&PyZip_Type, bi_zip},
    {&PyReversed_Type, bi_reversed}, {&PyTuple_Type, bi_sequence},   {&PyList_Type, bi_sequence},
    {&PyDict_Type, bi_dict},         {&PySlice_Type, bi_slice},
};

static const struct {
    const char *name;
    BuiltinFn fn;
} by_name[] = {
    {"len", bi_len},     {"isinstance", bi_isinstance},
    {"getattr", bi_getattr}, {"hasattr", bi_hasattr},
    {"abs", bi_convert}, {"round", bi_convert},
    {"min", bi_plain},   {"max", bi_plain},
    {"pow", bi_plain},   {"divmod", bi_plain},
    {"ord", bi_plain},   {"chr", bi_plain},
    {"repr", bi_plain},  {"ascii", bi_plain},
    {"hex", bi_plain},   {"oct", bi_plain},
    {"bin", bi_plain},   {"format", bi_plain},
};

static bool
is_module_named(PyObject *self, const char *name)
{
    if (self == NULL || !PyModule_Check(self)) {
        return false;
    }
    const char *have = PyModule_GetName(self);
    if (have == NULL) {
        PyErr_Clear();
    }
    return have != NULL && strcmp(have, name) == 0;
}

/* -- Methods of builtin types ------------------------------------------------------------------ */

static const char *const str_methods_pure[] = {
    "upper", "lower", "strip", "lstrip", "rstrip", "startswith", "endswith", "replace", "title",
    "capitalize", "find", "rfind", "count", "isdigit", "isalpha", "islower", "isupper", "zfill",
    "center", "ljust", "rjust", "removeprefix", "removesuffix", "swapcase", "casefold", "index",
};

static bool
is_named(PyObject *descr, const char *const *name, size_t n)
{
    const char *have = ((PyMethodDescrObject *)descr)->d_method->ml_name;

    for (size_t i = 0; i < n; i++) {
        if (strcmp(have, name[i]) == 0) {
            return true;
        }
    }
    return false;
}

static RecStatus
list_append(Recorder *r, const BuiltinCall *c, bool *handled)
{
    RecVirt *v = rec_virt_of(r, c->ref[0]);
    PyObject *none;
    TapeRef out;

    if (c->n != 2 || c->kwnames != NULL || !PyList_CheckExact(c->real[0])) {
        return REC_OK;
    }
    *handled = true;
    if (rec_grad_fixed(r, c->ref[0])) {
        return rec_stop(r, CC_REASON_EFFECT, "list.append");
    }
    if (v != NULL && !rec_reaches(r, c->ref[1], c->ref[0])) {
        if (PyList_Append(c->real[0], c->real[1]) < 0) {
            return REC_ERROR;
        }
        rec_virt_append(r, v, c->ref[1]);
        return give(r, c, Py_NewRef(Py_None), rec_const(r, Py_None), handled);
    }
    rec_guard_type(r, c->ref[0], c->real[0]);
    RecStatus st = rec_residual(r, DO_LISTAPPEND, 0, c->real, c->ref, 2, NULL, c->pop, TAPE_NOFRAME,
                                &none, &out);
    if (st != REC_OK) {
        return st;
    }
    return give(r, c, none, rec_const(r, Py_None), handled);
}

/* dict.get(key[, default]) of a real dict: presence is guarded, the value read. */
static RecStatus
dict_get(Recorder *r, const BuiltinCall *c, bool *handled)
{
    if ((c->n != 2 && c->n != 3) || c->kwnames != NULL || !PyDict_CheckExact(c->real[0])
            || !(PyUnicode_CheckExact(c->real[1]) || PyLong_CheckExact(c->real[1]))
            || rec_virt_of(r, c->ref[0]) != NULL || TAPE_KIND(c->ref[0]) != TAPE_REG) {
        return REC_OK;
    }
    PyObject *v = PyDict_GetItemWithError(c->real[0], c->real[1]);
    TapeRef a[2] = {c->ref[0], c->ref[1]}, none = rec_const(r, Py_None);
    if (v == NULL && PyErr_Occurred()) {
        PyErr_Clear();
        return REC_OK;
    }
    rec_guard_type(r, a[0], c->real[0]);
    rec_guard_type(r, a[1], c->real[1]);
    rec_emit(r, rec_ins(TAPE_GKEY, v != NULL, 0), a, 2, false);
    if (v != NULL) {
        Py_INCREF(v);
        return give(r, c, v, rec_load(r, TAPE_LDKEY, 0, a[0], a[1], 0, v), handled);
    }
    PyObject *dflt = c->n == 3 ? c->real[2] : Py_None;
    return give(r, c, Py_NewRef(dflt), c->n == 3 ? c->ref[2] : none, handled);
}

static RecStatus
dict_view(Recorder *r, const BuiltinCall *c, bool *handled)
{
    if (c->n != 1 || c->kwnames != NULL || !PyDict_CheckExact(c->real[0])) {
        return REC_OK;
    }
    PyObject *view = PyObject_CallOneArg(c->callable, c->real[0]);
    PyDictPart part = PY_DICT_KEYS;
    rec_guard_type(r, c->ref[0], c->real[0]);
    if (view != NULL) {
        py_dict_part(view, &part);
    }
    TapeRef field[2] = {c->ref[0], rec_const_int(r, part)};
    return give(r, c, view, view == NULL ? TAPE_NULL : rec_virt(r, VIRT_DICTVIEW, field, 2),
                handled);
}

static RecStatus
builtin_method(Recorder *r, const BuiltinCall *c, bool *handled)
{
    PyTypeObject *tp = PyDescr_TYPE(c->callable);
    const char *name = ((PyMethodDescrObject *)c->callable)->d_method->ml_name;

    if (c->n < 1) {
        return REC_OK;
    }
    if (tp == &PyList_Type && strcmp(name, "append") == 0) {
        return list_append(r, c, handled);
    }
    if (tp == &PyDict_Type && strcmp(name, "get") == 0) {
        return dict_get(r, c, handled);
    }
    if (tp == &PyDict_Type &&
        (strcmp(name, "items") == 0 || strcmp(name, "keys") == 0 || strcmp(name, "values") == 0)) {
        return dict_view(r, c, handled);
    }
    size_t n = sizeof(str_methods_pure) / sizeof(*str_methods_pure);
    bool pure = (tp == &PyUnicode_Type && is_named(c->callable, str_methods_pure, n))
        || tp == &PyLong_Type || tp == &PyFloat_Type || tp == &PyComplex_Type;
    return pure ? bi_plain(r, c, handled) : REC_OK;
}

/* object.__init__(self), object.__setattr__(self, name, value): what a class of the program's
 * calls where it has its own. */
static RecStatus
object_slot(Recorder *r, const BuiltinCall *c, bool *handled)
{
    const char *name = ((PyWrapperDescrObject *)c->callable)->d_base->name;

    if (PyDescr_TYPE(c->callable) != &PyBaseObject_Type || c->kwnames != NULL || c->n < 1) {
        return REC_OK;
    }
    if (c->n == 1 && strcmp(name, "__init__") == 0) {
        return give(r, c, Py_NewRef(Py_None), rec_const(r, Py_None), handled);
    }
    if (c->n == 3 && strcmp(name, "__setattr__") == 0 && TAPE_KIND(c->ref[1]) == TAPE_CONST
            && PyUnicode_CheckExact(c->real[1])) {
        RecStatus st = rec_instance_store(r, c->real[0], c->ref[0], c->real[1], c->real[2],
                                          c->ref[2], true, handled);
        if (!*handled || st != REC_OK) {
            return st;
        }
        return give(r, c, Py_NewRef(Py_None), rec_const(r, Py_None), handled);
    }
    return REC_OK;
}

RecStatus
rec_builtin(Recorder *r, PyObject *callable, PyObject *const *real, const TapeRef *ref,
            Py_ssize_t n, PyObject *kwnames, int pop, bool *handled)
{
    BuiltinCall c = {real, ref, n, kwnames, pop, callable};

    *handled = false;
    if (callable == r->opt.is_compiling && n == 0) {
        return give(r, &c, Py_NewRef(Py_True), rec_const(r, Py_True), handled);
    }
    if (callable == r->opt.graph_break && n == 0) {
        RecStatus st = rec_break(r, CC_REASON_ASKED, "graph_break()");
        *handled = st != REC_OK;
        return st;
    }
    if (callable == (PyObject *)&PySuper_Type && kwnames == NULL) {
        return rec_super_call(r, real, ref, n, pop, handled);
    }
    if (Py_IS_TYPE(callable, &PyWrapperDescr_Type)) {
        return object_slot(r, &c, handled);
    }
    if (PyType_Check(callable)) {
        for (size_t i = 0; i < sizeof(by_type) / sizeof(*by_type); i++) {
            if (callable == (PyObject *)by_type[i].type) {
                return by_type[i].fn(r, &c, handled);
            }
        }
        return REC_OK;
    }
    if (Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
        return builtin_method(r, &c, handled);
    }
    if (!PyCFunction_CheckExact(callable)) {
        return REC_OK;
    }
    PyObject *self = PyCFunction_GET_SELF(callable);
    const char *name = ((PyCFunctionObject *)callable)->m_ml->ml_name;
    if (is_module_named(self, "builtins")) {
        for (size_t i = 0; i < sizeof(by_name) / sizeof(*by_name); i++) {
            if (strcmp(name, by_name[i].name) == 0) {
                return by_name[i].fn(r, &c, handled);
            }
        }
    } else if (is_module_named(self, "math") || is_module_named(self, "cmath")) {
        return bi_plain(r, &c, handled);
    }
    return REC_OK;
}
