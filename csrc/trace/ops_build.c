/* trace/ops_build.c - building and filling containers, strings, functions.
 *
 * A container built on the tape is virtual: the real one exists while recording, a replay builds it
 * where it is shown. Changes of a virtual container only change its description. */
#include "ops.h"

#include "../py/compat.h"

enum { BUILD_MAX = 1024 };

/* Refs of the n top slots, from the bottom. */
static bool
top_refs(Recorder *r, TapeRef *ref, int n)
{
    for (int i = 0; i < n; i++) {
        ref[i] = rec_peek(r, n - 1 - i);
    }
    return n <= BUILD_MAX;
}

static RecStatus
build_sequence(Recorder *r, int n, bool tuple)
{
    TapeRef ref[BUILD_MAX];

    if (n > BUILD_MAX) {
        return rec_stop(r, CC_REASON_BYTECODE, "a display of more than %d items", BUILD_MAX);
    }
    top_refs(r, ref, n);
    PyObject *obj = tuple ? PyTuple_New(n) : PyList_New(n);
    if (obj == NULL) {
        return REC_ERROR;
    }
    for (int i = 0; i < n; i++) {
        PyObject *item = Py_NewRef(rec_real(r, n - 1 - i));
        if (tuple) {
            PyTuple_SET_ITEM(obj, i, item);
        } else {
            PyList_SET_ITEM(obj, i, item);
        }
    }
    TapeRef out = rec_virt(r, tuple ? VIRT_TUPLE : VIRT_LIST, ref, (uint32_t)n);
    rec_replace_steal(r, n, obj, out);
    return REC_OK;
}

RecStatus
rec_op_build_tuple(Recorder *r, int oparg)
{
    if (oparg == 0) {
        PyObject *empty = PyTuple_New(0);
        if (empty == NULL) {
            return REC_ERROR;
        }
        rec_push_steal(r, empty, rec_const(r, empty));
        return REC_OK;
    }
    return build_sequence(r, oparg, true);
}

RecStatus
rec_op_build_list(Recorder *r, int oparg)
{
    return build_sequence(r, oparg, false);
}

RecStatus
rec_op_build_set(Recorder *r, int oparg)
{
    PyObject *real[BUILD_MAX], *res;
    TapeRef ref[BUILD_MAX], out;

    if (oparg > 60) {
        return rec_stop(r, CC_REASON_BYTECODE, "a set display of more than 60 items");
    }
    top_refs(r, ref, oparg);
    for (int i = 0; i < oparg; i++) {
        real[i] = rec_real(r, oparg - 1 - i);
    }
    RecStatus st =
        rec_residual(r, DO_MKSET, 0, real, ref, (uint32_t)oparg, NULL, oparg, 0, &res, &out);
    if (st == REC_OK) {
        rec_replace_steal(r, oparg, res, out);
    }
    return st;
}

static bool
is_key(PyObject *key)
{
    return PyUnicode_CheckExact(key) || PyLong_CheckExact(key);
}

static bool
dict_index(PyObject *const *key, int i)
{
    for (int k = 0; k < i; k++) {
        if (Py_TYPE(key[k]) == Py_TYPE(key[i]) &&
            PyObject_RichCompareBool(key[k], key[i], Py_EQ) == 1) {
            return true;
        }
    }
    return false;
}

/* `key` and `value` are refs and reals of n pairs; n slots `pop` go. */
static RecStatus
build_dict(Recorder *r, PyObject *const *key, const TapeRef *kref, PyObject *const *value,
           const TapeRef *vref, int n, int pop)
{
    TapeRef field[2 * 64];
    PyObject *dict = PyDict_New();

    if (dict == NULL) {
        return REC_ERROR;
    }
    for (int i = 0; i < n; i++) {
        if (!is_key(key[i]) || dict_index(key, i)) {
            Py_DECREF(dict);
            return rec_stop(r, CC_REASON_BYTECODE, "a dict display with unusual keys");
        }
    }
    for (int i = 0; i < n; i++) {
        field[2 * i] = rec_fix_value(r, kref[i], key[i]);
        field[2 * i + 1] = vref[i];
        if (PyDict_SetItem(dict, key[i], value[i]) < 0) {
            Py_DECREF(dict);
            return REC_ERROR;
        }
    }
    rec_replace_steal(r, pop, dict, rec_virt(r, VIRT_DICT, field, (uint32_t)(2 * n)));
    return REC_OK;
}

RecStatus
rec_op_build_map(Recorder *r, int oparg)
{
    PyObject *key[64], *value[64];
    TapeRef kref[64], vref[64];

    if (oparg > 60) {
        return rec_stop(r, CC_REASON_BYTECODE, "a dict display of more than 60 items");
    }
    for (int i = 0; i < oparg; i++) {
        int depth = 2 * (oparg - 1 - i);
        key[i] = rec_real(r, depth + 1);
        kref[i] = rec_peek(r, depth + 1);
        value[i] = rec_real(r, depth);
        vref[i] = rec_peek(r, depth);
    }
    return build_dict(r, key, kref, value, vref, oparg, 2 * oparg);
}

RecStatus
rec_op_build_const_key_map(Recorder *r, int oparg)
{
    PyObject *key[64], *value[64], *names = rec_real(r, 0);
    TapeRef kref[64], vref[64];

    if (oparg > 60) {
        return rec_stop(r, CC_REASON_BYTECODE, "a dict display of more than 60 items");
    }
    for (int i = 0; i < oparg; i++) {
        key[i] = PyTuple_GET_ITEM(names, i);
        kref[i] = rec_const(r, key[i]);
        value[i] = rec_real(r, oparg - i);
        vref[i] = rec_peek(r, oparg - i);
    }
    return build_dict(r, key, kref, value, vref, oparg, oparg + 1);
}

RecStatus
rec_op_build_slice(Recorder *r, int oparg)
{
    TapeRef ref[3] = {TAPE_NULL, TAPE_NULL, rec_const(r, Py_None)};
    PyObject *step = oparg == 3 ? rec_real(r, 0) : NULL;

    top_refs(r, ref, oparg);
    PyObject *s = PySlice_New(rec_real(r, oparg - 1), rec_real(r, oparg - 2), step);
    if (s == NULL) {
        return REC_ERROR;
    }
    rec_replace_steal(r, oparg, s, rec_virt(r, VIRT_SLICE, ref, 3));
    return REC_OK;
}

/* -- Strings ------------------------------------------------------------------------ */

static RecStatus
operate_top(Recorder *r, CallKind kind, uint32_t code, int n)
{
    PyObject *real[64], *res;
    TapeRef ref[64], out;

    if (n > 60) {
        return rec_stop(r, CC_REASON_BYTECODE, "more than 60 operands");
    }
    top_refs(r, ref, n);
    for (int i = 0; i < n; i++) {
        real[i] = rec_real(r, n - 1 - i);
    }
    RecStatus st = rec_operate(r, kind, code, real, ref, (uint32_t)n, NULL, n, &res, &out);
    if (st == REC_OK) {
        rec_replace_steal(r, n, res, out);
    }
    return st;
}

RecStatus
rec_op_build_string(Recorder *r, int oparg)
{
    return operate_top(r, DO_JOIN, 0, oparg);
}

RecStatus
rec_op_format_value(Recorder *r, int oparg)
{
    return operate_top(r, DO_FORMAT, (uint32_t)(oparg & 3), (oparg & 4) ? 2 : 1);
}

RecStatus
rec_op_format_simple(Recorder *r, int oparg)
{
    (void)oparg;
    if (!PyUnicode_CheckExact(rec_real(r, 0))) {
        return operate_top(r, DO_FORMAT, 0, 1);
    }
    rec_guard_type(r, rec_peek(r, 0), rec_real(r, 0));
    return REC_OK;
}

RecStatus
rec_op_format_with_spec(Recorder *r, int oparg)
{
    (void)oparg;
    return operate_top(r, DO_FORMAT, 0, 2);
}

/* The result is a str, so formatting it again without a spec changes nothing. */
RecStatus
rec_op_convert_value(Recorder *r, int oparg)
{
    return operate_top(r, DO_FORMAT, (uint32_t)oparg, 1);
}

/* -- Filling -------------------------------------------------------------------------- */

/* An effect on the container at `depth` (counted after the operand on top is gone). */
static RecStatus
container_effect(Recorder *r, CallKind kind, int depth, int n)
{
    PyObject *real[3] = {rec_real(r, depth + n - 1)}, *none;
    TapeRef ref[3] = {rec_peek(r, depth + n - 1)}, out;

    for (int i = 0; i < n; i++) {
        real[1 + i] = rec_real(r, n - 1 - i);
        ref[1 + i] = rec_peek(r, n - 1 - i);
    }
    /* Appending to an exact list looks at nothing; hashing, iterating may. */
    int flags = kind == DO_LISTAPPEND ? TAPE_NOFRAME : 0;
    RecStatus st =
        rec_residual(r, kind, 0, real, ref, (uint32_t)n + 1, NULL, n, flags, &none, &out);
    if (st == REC_OK) {
        Py_DECREF(none);
        rec_pop(r, n);
    }
    return st;
}

RecStatus
rec_op_list_append(Recorder *r, int oparg)
{
    RecVirt *v = rec_virt_of(r, rec_peek(r, oparg));

    if (v == NULL) {
        return container_effect(r, DO_LISTAPPEND, oparg, 1);
    }
    if (PyList_Append(rec_real(r, oparg), rec_real(r, 0)) < 0) {
        return REC_ERROR;
    }
    rec_virt_append(r, v, rec_peek(r, 0));
    rec_pop(r, 1);
    return REC_OK;
}

/* The fields of a container whose items are known, or NULL. */
static const TapeRef *
known_items(Recorder *r, TapeRef ref, PyObject *real, uint32_t *n, TapeRef *room)
{
    RecVirt *v = rec_virt_of(r, ref);

    if (v != NULL && (v->kind == VIRT_TUPLE || v->kind == VIRT_LIST)) {
        *n = v->nfields;
        return v->field;
    }
    bool seq = PyTuple_CheckExact(real) || PyList_CheckExact(real);
    if (v != NULL || !seq || PySequence_Fast_GET_SIZE(real) > 64) {
        return NULL;
    }
    *n = (uint32_t)PySequence_Fast_GET_SIZE(real);
    rec_guard_len(r, ref, real);
    for (uint32_t i = 0; i < *n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(real, i);
        room[i] = TAPE_KIND(ref) == TAPE_CONST
                      ? rec_const(r, item)
                      : rec_load(r, TAPE_LDITEM, 0, ref, rec_const_int(r, i), 0, item);
    }
    return room;
}

RecStatus
rec_op_list_extend(Recorder *r, int oparg)
{
    RecVirt *v = rec_virt_of(r, rec_peek(r, oparg));
    PyObject *from = rec_real(r, 0);
    TapeRef room[64];
    uint32_t n;

    if (Py_TYPE(from)->tp_iter == NULL && !PySequence_Check(from)) {
        return rec_stop(r, CC_REASON_EXCEPTION, "extend by something that is not iterable");
    }
    const TapeRef *item = v == NULL ? NULL : known_items(r, rec_peek(r, 0), from, &n, room);
    if (item == NULL) {
        return container_effect(r, DO_LISTEXTEND, oparg, 1);
    }
    if (py_list_extend(rec_real(r, oparg), from) < 0) {
        return REC_ERROR;
    }
    for (uint32_t i = 0; i < n && !r->broken; i++) {
        rec_virt_append(r, rec_virt_of(r, rec_peek(r, oparg)), item[i]);
    }
    rec_pop(r, 1);
    return REC_OK;
}

RecStatus
rec_op_list_to_tuple(Recorder *r, int oparg)
{
    RecVirt *v = rec_virt_of(r, rec_peek(r, 0));
    PyObject *t = PyList_AsTuple(rec_real(r, 0));

    (void)oparg;
    if (t == NULL) {
        return REC_ERROR;
    }
    if (v != NULL) {
        TapeRef ref =
            v->nfields == 0 ? rec_const(r, t) : rec_virt(r, VIRT_TUPLE, v->field, v->nfields);
        rec_replace_steal(r, 1, t, ref);
        return REC_OK;
    }
    Py_DECREF(t);
    PyObject *real[1] = {rec_real(r, 0)}, *res;
    TapeRef ref[1] = {rec_peek(r, 0)}, out;
    RecStatus st = rec_residual(r, DO_TUPLE, 0, real, ref, 1, NULL, 1, TAPE_NOFRAME, &res, &out);
    if (st == REC_OK) {
        rec_replace_steal(r, 1, res, out);
    }
    return st;
}

RecStatus
rec_op_set_add(Recorder *r, int oparg)
{
    return container_effect(r, DO_SETADD, oparg, 1);
}

RecStatus
rec_op_set_update(Recorder *r, int oparg)
{
    return container_effect(r, DO_SETUPDATE, oparg, 1);
}

RecStatus
rec_op_map_add(Recorder *r, int oparg)
{
    RecVirt *v = rec_virt_of(r, rec_peek(r, oparg + 1));
    PyObject *key = rec_real(r, 1);

    if (v == NULL || !is_key(key) || PyDict_Contains(rec_real(r, oparg + 1), key) != 0) {
        return container_effect(r, DO_DICTSET, oparg, 2);
    }
    TapeRef k = rec_fix_value(r, rec_peek(r, 1), key);
    if (PyDict_SetItem(rec_real(r, oparg + 1), key, rec_real(r, 0)) < 0) {
        return REC_ERROR;
    }
    v = rec_virt_of(r, rec_peek(r, oparg + 1));
    rec_virt_append(r, v, k);
    rec_virt_append(r, rec_virt_of(r, rec_peek(r, oparg + 1)), rec_peek(r, 0));
    rec_pop(r, 2);
    return REC_OK;
}

/* Both sides virtual with distinct constant keys: the description grows. */
static bool
merge_virtual(Recorder *r, int depth)
{
    RecVirt *into = rec_virt_of(r, rec_peek(r, depth)), *from = rec_virt_of(r, rec_peek(r, 0));
    PyObject *have = rec_real(r, depth), *more = rec_real(r, 0), *key, *value;
    Py_ssize_t pos = 0;

    if (into == NULL || !PyDict_CheckExact(more) || PyDict_GET_SIZE(more) > 60
            || (from == NULL && !rec_guard_keys(r, rec_peek(r, 0), more))) {
        return false;
    }
    while (PyDict_Next(more, &pos, &key, &value)) {
        if (PyDict_Contains(have, key) != 0) {
            PyErr_Clear();
            return false;
        }
    }
    if (PyDict_Update(have, more) < 0) {
        r->broken = true;
        PyErr_Clear();
    }
    TapeRef source = rec_peek(r, 0);
    pos = 0;
    for (uint32_t i = 0; PyDict_Next(more, &pos, &key, &value) && !r->broken; i++) {
        from = rec_virt_of(r, source);
        TapeRef k = from != NULL ? from->field[2 * i] : rec_const(r, key);
        TapeRef v = from != NULL ? from->field[2 * i + 1]
                                 : rec_load(r, TAPE_LDKEY, 0, source, k, 0, value);
        rec_virt_append(r, rec_virt_of(r, rec_peek(r, depth)), k);
        rec_virt_append(r, rec_virt_of(r, rec_peek(r, depth)), v);
    }
    rec_pop(r, 1);
    return true;
}

RecStatus
rec_op_dict_update(Recorder *r, int oparg)
{
    if (merge_virtual(r, oparg)) {
        return REC_OK;
    }
    if (!PyDict_CheckExact(rec_real(r, 0))) {
        return rec_stop(r, CC_REASON_BYTECODE, "** of a mapping that is not a dict");
    }
    return container_effect(r, DO_DICTUPDATE, oparg, 1);
}

RecStatus
rec_op_dict_merge(Recorder *r, int oparg)
{
    if (merge_virtual(r, oparg)) {
        return REC_OK;
    }
    PyObject *more = rec_real(r, 0), *key, *value;
    Py_ssize_t pos = 0;
    if (!PyDict_CheckExact(more)) {
        return rec_stop(r, CC_REASON_BYTECODE, "** of a mapping that is not a dict");
    }
    while (PyDict_Next(more, &pos, &key, &value)) {
        if (!PyUnicode_Check(key) || PyDict_Contains(rec_real(r, oparg), key) != 0) {
            PyErr_Clear();
            return rec_stop(r, CC_REASON_EXCEPTION, "keyword given twice");
        }
    }
    return container_effect(r, DO_DICTMERGE, oparg, 1);
}

/* -- Unpacking -------------------------------------------------------------------------- */

static RecStatus
push_unpacked(Recorder *r, PyObject *items, const TapeRef *item, int n)
{
    TapeRef ref[BUILD_MAX];

    for (int i = 0; i < n; i++) {
        ref[i] = item[i];
    }
    Py_INCREF(items);
    rec_pop(r, 1);
    for (int i = n - 1; i >= 0; i--) {
        rec_push_steal(r, Py_NewRef(PyTuple_GET_ITEM(items, i)), ref[i]);
    }
    Py_DECREF(items);
    return REC_OK;
}

/* The items of an array are array work; its length becomes part of the program's structure. */
static RecStatus
unpack_array(Recorder *r, PyObject *array, TapeRef ref, int n)
{
    PyObject *len, *item[64];
    TapeRef out[64], len_ref;
    RecStatus st = rec_pure(r, TAPE_PCALL, DO_LEN, 0, &array, &ref, 1, NULL, 0, &len, &len_ref);

    if (st != REC_OK) {
        return st;
    }
    bool fits = PyLong_AsLong(len) == n;
    rec_fix_value(r, len_ref, len);
    Py_DECREF(len);
    if (!fits) {
        return rec_stop(r, CC_REASON_EXCEPTION, "wrong number of items to unpack");
    }
    for (int i = 0; i < n; i++) {
        TapeRef a[2] = {ref, rec_const_int(r, i)};
        PyObject *index = PyLong_FromLong(i);
        PyObject *real[2] = {array, index};
        st = index == NULL
                 ? REC_ERROR
                 : rec_pure(r, TAPE_NODE, DO_GETITEM, 0, real, a, 2, NULL, 0, &item[i], &out[i]);
        Py_XDECREF(index);
        if (st != REC_OK) {
            while (i-- > 0) {
                Py_DECREF(item[i]);
            }
            return st;
        }
    }
    rec_pop(r, 1);
    for (int i = n - 1; i >= 0; i--) {
        rec_push_steal(r, item[i], out[i]);
    }
    return REC_OK;
}

RecStatus
rec_op_unpack_sequence(Recorder *r, int oparg)
{
    PyObject *seq = rec_real(r, 0), *items;
    TapeRef room[64], ref = rec_peek(r, 0), out;
    uint32_t n = 0;
    bool exact = (PyTuple_CheckExact(seq) || PyList_CheckExact(seq))
        && PySequence_Fast_GET_SIZE(seq) == oparg;

    const TapeRef *item = exact && oparg <= 60 ? known_items(r, ref, seq, &n, room) : NULL;
    if (item != NULL && (int)n == oparg) {
        items = PySequence_Tuple(seq);
        if (items == NULL) {
            return REC_ERROR;
        }
        push_unpacked(r, items, item, oparg);
        Py_DECREF(items);
        return REC_OK;
    }
    if (oparg > 60) {
        return rec_stop(r, CC_REASON_BYTECODE, "unpacking more than 60 items");
    }
    if (front_is_array(seq)) {
        return unpack_array(r, seq, ref, oparg);
    }
    RecStatus st =
        rec_residual(r, DO_UNPACK, (uint32_t)oparg, &seq, &ref, 1, NULL, 1, 0, &items, &out);
    if (st != REC_OK) {
        return st;
    }
    rec_residual_items(r, out, items, room);
    push_unpacked(r, items, room, oparg);
    Py_DECREF(items);
    return REC_OK;
}

RecStatus
rec_op_unpack_ex(Recorder *r, int oparg)
{
    PyObject *seq = rec_real(r, 0), *items;
    int before = oparg & 255, after = oparg >> 8, n = before + 1 + after;
    TapeRef room[64], part[64], ref = rec_peek(r, 0), out;
    uint32_t have = 0;

    if (n > 60) {
        return rec_stop(r, CC_REASON_BYTECODE, "unpacking more than 60 items");
    }
    const TapeRef *item = known_items(r, ref, seq, &have, room);
    if (item != NULL && (int)have >= before + after) {
        uint32_t middle = have - (uint32_t)(before + after);
        items = tape_call(DO_UNPACKEX, (uint32_t)oparg, &seq, 1, NULL);
        if (items == NULL) {
            return REC_ERROR;
        }
        for (int i = 0; i < before; i++) {
            part[i] = item[i];
        }
        for (int i = 0; i < after; i++) {
            part[before + 1 + i] = item[before + (int)middle + i];
        }
        part[before] = rec_virt(r, VIRT_LIST, item + before, middle);
        push_unpacked(r, items, part, n);
        Py_DECREF(items);
        return REC_OK;
    }
    RecStatus st =
        rec_residual(r, DO_UNPACKEX, (uint32_t)oparg, &seq, &ref, 1, NULL, 1, 0, &items, &out);
    if (st != REC_OK) {
        return st;
    }
    rec_residual_items(r, out, items, part);
    push_unpacked(r, items, part, n);
    Py_DECREF(items);
    return REC_OK;
}

RecStatus
rec_op_get_len(Recorder *r, int oparg)
{
    (void)oparg;
    return rec_stop(r, CC_REASON_BYTECODE, "match on a sequence");
}

/* -- Functions ------------------------------------------------------------------------------ */

static RecStatus
function_made(Recorder *r, PyObject *fn, TapeRef *field, int pop)
{
    TapeRef out = rec_virt(r, VIRT_FUNCTION, field, 7);

    rec_replace_steal(r, pop, fn, out);
    return REC_OK;
}

/* 3.11, 3.12: closure, annotations, kwdefaults, defaults lie below the code, as oparg says. */
RecStatus
rec_op_make_function_flags(Recorder *r, int oparg)
{
    RecFrame *fr = rec_top(r);
    PyObject *code = rec_real(r, 0);
    TapeRef field[7] = {rec_peek(r, 0), fr->func};
    PyObject *fn = py_make_function(code, py_frame_globals_borrow(fr->live.f), NULL);
    int pop = 1;

    if (fn == NULL) {
        return REC_ERROR;
    }
    PyFunctionObject *f = (PyFunctionObject *)fn;
    struct { int bit, field; PyObject **real; } part[4] = {
        {8, 6, &f->func_closure}, {4, 5, &f->func_annotations},
        {2, 4, &f->func_kwdefaults}, {1, 3, &f->func_defaults},
    };
    for (int i = 0; i < 4; i++) {
        if (oparg & part[i].bit) {
            *part[i].real = Py_NewRef(rec_real(r, pop));
            field[part[i].field] = rec_peek(r, pop);
            pop++;
        }
    }
    return function_made(r, fn, field, pop);
}

RecStatus
rec_op_make_function(Recorder *r, int oparg)
{
    return rec_op_make_function_flags(r, oparg & 0);
}

RecStatus
rec_op_set_function_attribute(Recorder *r, int oparg)
{
    PyFunctionObject *f = (PyFunctionObject *)rec_real(r, 0);
    RecVirt *v = rec_virt_of(r, rec_peek(r, 0));
    int index = oparg == 8 ? 6 : oparg == 4 ? 5 : oparg == 2 ? 4 : 3;
    PyObject **part = oparg == 8 ? &f->func_closure : oparg == 4 ? &f->func_annotations
                    : oparg == 2 ? &f->func_kwdefaults : &f->func_defaults;

    if (v == NULL) {
        return rec_stop(r, CC_REASON_BYTECODE, "SET_FUNCTION_ATTRIBUTE");
    }
    v->field[index] = rec_peek(r, 1);
    rec_virt_touch(r, v);
    *part = Py_NewRef(rec_real(r, 1));
    PyObject *fn = Py_NewRef((PyObject *)f);
    rec_replace_steal(r, 2, fn, rec_peek(r, 0));
    return REC_OK;
}

RecStatus
rec_op_intrinsic_1(Recorder *r, int oparg)
{
    switch (py_intrinsic_1(oparg)) {
    case PY_INTRINSIC_LIST_TO_TUPLE:
        return rec_op_list_to_tuple(r, 0);
    case PY_INTRINSIC_UNARY_POSITIVE:
        return rec_op_unary_positive(r, 0);
    default:
        break;
    }
    return rec_stop(r, CC_REASON_BYTECODE, "CALL_INTRINSIC_1 %d", oparg);
}
