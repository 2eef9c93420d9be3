/* exec/image.c - the objects that a snapshot describes.
 *
 * A virtual object is built once per image: shells of mutable containers are entered in the memo
 * before their fields, so that cycles close. Nothing here runs Python code. */
#include "exec.h"

#include <string.h>

typedef struct {
    const Act *act;
    PyObject **memo;                    /* by identity number; borrowed from the objects built */
    PyObject *keep;                     /* list: owns what is in the memo */
} Build;

static PyObject *build_value(Build *b, TapeRef ref);

static PyObject *
field(Build *b, const TapeVirt *v, uint32_t i)
{
    return build_value(b, b->act->t->opnd[v->first + i]);
}

static PyObject *
build_tuple(Build *b, const TapeVirt *v)
{
    PyObject *t = PyTuple_New(v->nfields);
    for (uint32_t i = 0; t != NULL && i < v->nfields; i++) {
        PyObject *item = field(b, v, i);
        if (item == NULL) {
            Py_CLEAR(t);
            break;
        }
        PyTuple_SET_ITEM(t, i, item);
    }
    return t;
}

static bool
fill_list(Build *b, const TapeVirt *v, PyObject *list)
{
    for (uint32_t i = 0; i < v->nfields; i++) {
        PyObject *item = field(b, v, i);
        int err = item == NULL ? -1 : PyList_Append(list, item);
        Py_XDECREF(item);
        if (err < 0) {
            return false;
        }
    }
    return true;
}

static bool
fill_dict(Build *b, const TapeVirt *v, PyObject *dict)
{
    for (uint32_t i = 0; i < v->nfields; i += 2) {
        PyObject *key = field(b, v, i), *value = field(b, v, i + 1);
        int err = key == NULL || value == NULL ? -1 : PyDict_SetItem(dict, key, value);
        Py_XDECREF(key);
        Py_XDECREF(value);
        if (err < 0) {
            return false;
        }
    }
    return true;
}

/* A function made on the tape shares the globals of its maker. */
static PyObject *
globals_of(const Act *act, TapeRef maker)
{
    while (TAPE_KIND(maker) == TAPE_VIRT) {
        maker = act->t->opnd[act->t->virt[TAPE_INDEX(maker)].first + 1];
    }
    PyObject *fn = act_get(act, maker);
    return fn == NULL ? NULL : ((PyFunctionObject *)fn)->func_globals;
}

static PyObject *
build_function(Build *b, const TapeVirt *v)
{
    PyObject *code = act_get(b->act, b->act->t->opnd[v->first]);
    PyObject *globals = globals_of(b->act, b->act->t->opnd[v->first + 1]);

    return globals == NULL ? NULL : py_make_function(code, globals, NULL);
}

/* Its closure may hold a cell that holds the function. */
static bool
fill_function(Build *b, const TapeVirt *v, PyObject *fn)
{
    PyFunctionObject *f = (PyFunctionObject *)fn;
    PyObject **to[4] = {&f->func_defaults, &f->func_kwdefaults, &f->func_annotations,
                        &f->func_closure};

    for (uint32_t i = 0; i < 4; i++) {
        TapeRef ref = b->act->t->opnd[v->first + 3 + i];
        if (ref != TAPE_NULL) {
            *to[i] = build_value(b, ref);
            if (*to[i] == NULL) {
                return false;
            }
        }
    }
    return true;
}

static PyObject *
build_iter(Build *b, const TapeVirt *v)
{
    PyObject *seq = field(b, v, 0), *index = field(b, v, 1), *it = NULL, *none = NULL;

    if (seq != NULL && index != NULL) {
        it = PyObject_GetIter(seq);
    }
    if (it != NULL) {
        none = PyObject_CallMethod(it, "__setstate__", "O", index);
        if (none == NULL) {
            Py_CLEAR(it);
        }
    }
    Py_XDECREF(none);
    Py_XDECREF(seq);
    Py_XDECREF(index);
    return it;
}

static PyObject *
build_range_iter(Build *b, const TapeVirt *v)
{
    PyObject *part[3] = {field(b, v, 0), field(b, v, 1), field(b, v, 2)}, *range = NULL, *it = NULL;

    if (part[0] && part[1] && part[2]) {
        range = PyObject_Vectorcall((PyObject *)&PyRange_Type, part, 3, NULL);
    }
    if (range != NULL) {
        it = PyObject_GetIter(range);
    }
    Py_XDECREF(range);
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(part[i]);
    }
    return it;
}

/* The same call again, advanced to where the description is. */
static PyObject *
build_call_iter(Build *b, const TapeVirt *v)
{
    PyObject *arg[8] = {0}, *it = NULL, *index = field(b, v, 1);
    uint32_t n = v->nfields - 3;
    bool ok = n <= 8 && index != NULL;

    for (uint32_t i = 0; ok && i < n; i++) {
        arg[i] = field(b, v, 3 + i);
        ok = arg[i] != NULL;
    }
    if (ok) {
        it = PyObject_Vectorcall(act_get(b->act, b->act->t->opnd[v->first + 2]), arg, n, NULL);
    }
    for (Py_ssize_t i = ok ? PyLong_AsSsize_t(index) : 0; it != NULL && i > 0; i--) {
        PyObject *item = PyIter_Next(it);
        Py_XDECREF(item);
    }
    for (uint32_t i = 0; i < n && i < 8; i++) {
        Py_XDECREF(arg[i]);
    }
    Py_XDECREF(index);
    return it;
}

/* The callable over iterators that are where they should be. */
static PyObject *
build_join_iter(Build *b, const TapeVirt *v)
{
    PyObject *arg[8] = {0}, *it = NULL;
    uint32_t n = v->nfields - 1;
    bool ok = n <= 8;

    for (uint32_t i = 0; ok && i < n; i++) {
        arg[i] = field(b, v, 1 + i);
        ok = arg[i] != NULL;
    }
    if (ok) {
        it = PyObject_Vectorcall(act_get(b->act, b->act->t->opnd[v->first]), arg, n, NULL);
    }
    for (uint32_t i = 0; i < n && i < 8; i++) {
        Py_XDECREF(arg[i]);
    }
    return it;
}

/* A view of a dict, or an iterator over one. */
static PyObject *
build_dict_part(Build *b, const TapeVirt *v)
{
    PyObject *part[4] = {0}, *obj = NULL;
    bool ok = true, iter = v->kind == VIRT_DICTITER;

    for (uint32_t i = 0; ok && i < v->nfields && i < 4; i++) {
        part[i] = field(b, v, i);
        ok = part[i] != NULL;
    }
    if (ok && iter) {
        obj = py_dict_iter(part[0], (PyDictPart)PyLong_AsLong(part[2]), PyLong_AsSsize_t(part[1]),
                           PyLong_AsSsize_t(part[3]));
    } else if (ok) {
        obj = py_dict_view(part[0], (PyDictPart)PyLong_AsLong(part[1]));
    }
    for (int i = 0; i < 4; i++) {
        Py_XDECREF(part[i]);
    }
    return obj;
}

static PyObject *
build_from_parts(Build *b, const TapeVirt *v)
{
    PyObject *part[3] = {0}, *res = NULL;

    for (uint32_t i = 0; i < v->nfields && i < 3; i++) {
        part[i] = field(b, v, i);
        if (part[i] == NULL) {
            goto done;
        }
    }
    res = v->kind == VIRT_SLICE ? PySlice_New(part[0], part[1], part[2])
        : v->kind == VIRT_SUPER ? PyObject_Vectorcall((PyObject *)&PySuper_Type, part, 2, NULL)
                                : PyMethod_New(part[0], part[1]);
done:
    for (int i = 0; i < 3; i++) {
        Py_XDECREF(part[i]);
    }
    return res;
}

/* An abstract class refuses new instances; this one is as old as the call that made it. */
static PyObject *
build_object(const Build *b, const TapeVirt *v)
{
    PyTypeObject *cls = (PyTypeObject *)act_get(b->act, b->act->t->opnd[v->first]);
    unsigned long abstract = cls->tp_flags & Py_TPFLAGS_IS_ABSTRACT;
    PyObject *none = PyTuple_New(0), *obj = NULL;

    if (none != NULL) {
        cls->tp_flags &= ~Py_TPFLAGS_IS_ABSTRACT;
        obj = PyBaseObject_Type.tp_new(cls, none, NULL);
        cls->tp_flags |= abstract;
        Py_DECREF(none);
    }
    return obj;
}

/* Into the instance's own attributes, whatever its class holds under the name by now. */
static bool
put_own(PyObject *obj, PyObject *name, PyObject *value)
{
    PyObject *d = _PyType_Lookup(Py_TYPE(obj), name);

    if (d == NULL || Py_TYPE(d)->tp_descr_set == NULL) {
        return PyObject_GenericSetAttr(obj, name, value) == 0;
    }
    PyObject *dict = PyObject_GenericGetDict(obj, NULL);
    bool ok = dict != NULL && PyDict_SetItem(dict, name, value) == 0;
    Py_XDECREF(dict);
    return ok;
}

static bool
fill_object(Build *b, const TapeVirt *v, PyObject *obj)
{
    for (uint32_t i = 1; i < v->nfields; i += 2) {
        PyObject *where = act_get(b->act, b->act->t->opnd[v->first + i]);
        PyObject *value = field(b, v, i + 1);
        if (value == NULL) {
            return false;
        }
        if (PyLong_Check(where)) {
            *(PyObject **)((char *)obj + PyLong_AsSsize_t(where)) = value;
            continue;
        }
        bool ok = put_own(obj, where, value);
        Py_DECREF(value);
        if (!ok) {
            return false;
        }
    }
    return true;
}

static PyObject *
build_virt(Build *b, const TapeVirt *v)
{
    PyObject *obj = NULL;
    bool ok = true;

    if (b->memo[v->id] != NULL) {
        return Py_NewRef(b->memo[v->id]);
    }
    switch ((VirtKind)v->kind) {
    case VIRT_LIST:
        obj = PyList_New(0);
        break;
    case VIRT_DICT:
        obj = PyDict_New();
        break;
    case VIRT_CELL:
        obj = PyCell_New(NULL);
        break;
    case VIRT_TUPLE:
        obj = build_tuple(b, v);
        break;
    case VIRT_FUNCTION:
        obj = build_function(b, v);
        break;
    case VIRT_OBJECT:
        obj = build_object(b, v);
        break;
    case VIRT_SEQITER:
        obj = build_iter(b, v);
        break;
    case VIRT_CALLITER:
        obj = build_call_iter(b, v);
        break;
    case VIRT_JOINITER:
        obj = build_join_iter(b, v);
        break;
    case VIRT_DICTVIEW:
    case VIRT_DICTITER:
        obj = build_dict_part(b, v);
        break;
    case VIRT_RANGEITER:
        obj = build_range_iter(b, v);
        break;
    default:
        obj = build_from_parts(b, v);
    }
    if (obj == NULL || PyList_Append(b->keep, obj) < 0) {
        Py_XDECREF(obj);
        return NULL;
    }
    b->memo[v->id] = tape_drops(b->act->t, CC_DROP_ONCE) ? NULL : obj;
    if (v->kind == VIRT_LIST) {
        ok = fill_list(b, v, obj);
    } else if (v->kind == VIRT_DICT) {
        ok = fill_dict(b, v, obj);
    } else if (v->kind == VIRT_OBJECT) {
        ok = fill_object(b, v, obj);
    } else if (v->kind == VIRT_FUNCTION) {
        ok = fill_function(b, v, obj);
    } else if (v->kind == VIRT_CELL && b->act->t->opnd[v->first] != TAPE_NULL) {
        PyObject *value = field(b, v, 0);
        ok = value != NULL;
        PyCell_SET(obj, value);
    }
    if (!ok) {
        Py_DECREF(obj);
        return NULL;
    }
    return obj;
}

static PyObject *
build_value(Build *b, TapeRef ref)
{
    if (TAPE_KIND(ref) == TAPE_VIRT) {
        return build_virt(b, &b->act->t->virt[TAPE_INDEX(ref)]);
    }
    return Py_XNewRef(act_get(b->act, ref));
}

static bool
build_begin(Build *b, const Act *act)
{
    b->act = act;
    b->memo = act->memo;
    memset(b->memo, 0, (act->t->nids + 1) * sizeof(*b->memo));
    b->keep = PyList_New(0);
    return b->keep != NULL;
}

static void
build_end(Build *b)
{
    Py_XDECREF(b->keep);
}

PyObject *
exec_image_value(const Act *act, TapeRef ref)
{
    Build b;
    PyObject *obj = NULL;

    if (TAPE_KIND(ref) != TAPE_VIRT) {
        return Py_XNewRef(act_get(act, ref));
    }
    if (build_begin(&b, act)) {
        obj = build_value(&b, ref);
    }
    build_end(&b);
    return obj;
}

static bool
image_put(Build *b, Image *im, uint32_t at, TapeRef ref)
{
    im->obj[at] = ref == TAPE_NULL ? NULL : build_value(b, ref);
    return ref == TAPE_NULL || im->obj[at] != NULL || TAPE_KIND(ref) == TAPE_REG;
}

bool
exec_image_build(const Act *act, uint32_t snap, Image *im)
{
    const Trace *t = act->t;
    const TapeSnap *s = &t->snap[snap];
    Build b;
    uint32_t at = 0;
    bool ok = true;

    im->nslots = 0;
    for (uint32_t i = 0; i < s->nframes; i++) {
        const TapeFrame *f = &t->frame[s->frame + i];
        im->nslots += f->nlocals + f->nstack;
    }
    im->n = im->nslots + 2 * s->nframes;
    im->obj = act->image;
    memset(im->obj, 0, im->n * sizeof(*im->obj));
    ok = build_begin(&b, act);
    for (uint32_t i = 0; ok && i < s->nframes; i++) {
        const TapeFrame *f = &t->frame[s->frame + i];
        for (uint32_t k = 0; ok && k < f->nlocals + f->nstack; k++) {
            ok = image_put(&b, im, at++, t->opnd[f->slot + k]);
        }
        ok = ok && image_put(&b, im, im->nslots + 2 * i, f->func)
            && image_put(&b, im, im->nslots + 2 * i + 1, f->extra);
    }
    build_end(&b);
    if (!ok) {
        PyErr_Clear();
        exec_image_drop(im);
    }
    return ok;
}

void
exec_image_drop(Image *im)
{
    for (uint32_t i = 0; im->obj != NULL && i < im->n; i++) {
        Py_XDECREF(im->obj[i]);
    }
    im->obj = NULL;
    im->n = 0;
}
