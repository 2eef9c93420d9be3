/* tape/print.c - a trace as text (docs/tape.md): snapshots, virtual objects, then a row a line. */
#include "text.h"

/* Its repr runs no code of the program. */
static bool
is_quiet(PyObject *obj)
{
    if (PyTuple_CheckExact(obj)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(obj); i++) {
            if (!is_quiet(PyTuple_GET_ITEM(obj, i))) {
                return false;
            }
        }
        return true;
    }
    return PyLong_CheckExact(obj) || PyFloat_CheckExact(obj) || PyUnicode_CheckExact(obj)
        || obj == Py_None || PyBool_Check(obj);
}

void
tape_put_object(CcBuf *b, PyObject *obj)
{
    if (obj == NULL) {
        cc_buf_puts(b, "NULL");
        return;
    }
    if (is_quiet(obj)) {
        PyObject *text = PyObject_Repr(obj);
        const char *s = text == NULL ? NULL : PyUnicode_AsUTF8(text);
        cc_buf_puts(b, s == NULL ? "?" : s);
        Py_XDECREF(text);
        PyErr_Clear();
        return;
    }
    const char *name = PyType_Check(obj) ? ((PyTypeObject *)obj)->tp_name
                     : PyCFunction_Check(obj) ? ((PyCFunctionObject *)obj)->m_ml->ml_name
                     : PyCode_Check(obj) ? PyUnicode_AsUTF8(((PyCodeObject *)obj)->co_name)
                     : Py_TYPE(obj)->tp_name;
    cc_buf_printf(b, "<%s>", name == NULL ? "?" : name);
}

static void
put_ref(CcBuf *b, const Trace *t, TapeRef ref)
{
    switch (TAPE_KIND(ref)) {
    case TAPE_REG:
        cc_buf_printf(b, "o%u", TAPE_INDEX(ref) + 1);
        break;
    case TAPE_CONST:
        tape_put_object(b, t->konst[TAPE_INDEX(ref)]);
        break;
    case TAPE_VIRT:
        cc_buf_printf(b, "v%u", TAPE_INDEX(ref) + 1);
        break;
    default:
        cc_buf_puts(b, ".");
    }
}

static void
put_refs(CcBuf *b, const Trace *t, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cc_buf_puts(b, i ? " " : "");
        put_ref(b, t, t->opnd[first + i]);
    }
}

static void
put_virts(CcBuf *b, const Trace *t)
{
    static const char *const name[VIRT__COUNT] = {
        "tuple",  "list",  "dict",     "slice",   "cell",      "method",   "function",
        "object", "super", "dictview", "seqiter", "rangeiter", "calliter", "dictiter",
        "joiniter",
    };
    for (uint32_t i = 0; i < t->nvirt; i++) {
        cc_buf_printf(b, "virt v%u = %s#%u(", i + 1, name[t->virt[i].kind], t->virt[i].id);
        put_refs(b, t, t->virt[i].first, t->virt[i].nfields);
        cc_buf_puts(b, ")\n");
    }
}

static void
put_snaps(CcBuf *b, const Trace *t)
{
    static const char *const cont[CONT__COUNT] = {"", "CALL", "INIT", "DISCARD", "GETATTR"};

    for (uint32_t i = 0; i < t->nsnap; i++) {
        const TapeSnap *s = &t->snap[i];
        cc_buf_printf(b, "snap S%u =", i);
        for (uint32_t k = 0; k < s->nframes; k++) {
            const TapeFrame *f = &t->frame[s->frame + k];
            const char *name = PyUnicode_AsUTF8(((PyCodeObject *)t->konst[f->code])->co_name);
            cc_buf_printf(b, "%s%s{", k ? " / " : " ", name == NULL ? "?" : name);
            put_ref(b, t, f->func);
            if (f->cont == CONT_NONE) {
                cc_buf_printf(b, "}@%d [", f->unit);
            } else {
                cc_buf_printf(b, "}#%d..%d:%s [", f->unit, f->next, cont[f->cont]);
            }
            put_refs(b, t, f->slot, f->nlocals);
            cc_buf_puts(b, "] (");
            put_refs(b, t, f->slot + f->nlocals, f->nstack);
            cc_buf_puts(b, ")");
        }
        cc_buf_puts(b, "\n");
    }
}

static bool
is_call(uint8_t op)
{
    return op == TAPE_PCALL || op == TAPE_NODE || op == TAPE_RCALL;
}

static bool
names_constant(uint8_t op)
{
    return op == TAPE_LDGLOB || op == TAPE_LDATTR || op == TAPE_GNOATTR || op == TAPE_LDMOD
        || op == TAPE_LDTYPE || op == TAPE_GTYPEATTR || op == TAPE_GTYPE || op == TAPE_GEQ
        || op == TAPE_GFUNC;
}

static void
put_row(CcBuf *b, const Trace *t, const TapeIns *in)
{
    if (in->dst) {
        cc_buf_printf(b, "o%u = ", in->dst);
    }
    cc_buf_puts(b, tape_row_info[in->op].name);
    if (is_call(in->op)) {
        cc_buf_printf(b, ".%s", tape_call_name[in->sub]);
    }
    cc_buf_puts(b, in->n ? " " : "");
    put_refs(b, t, in->arg, in->n);
    if (names_constant(in->op)) {
        cc_buf_puts(b, " ");
        tape_put_object(b, t->konst[in->aux]);
    } else if (in->op == TAPE_TXN) {
        cc_buf_printf(b, " S%u", in->aux);
    } else if (in->op == TAPE_EXIT) {
        cc_buf_printf(b, " %s", cc_reason_name((CcReason)in->aux));
    } else if (is_call(in->op)) {
        if (in->aux) {
            cc_buf_printf(b, " op %u", in->aux);
        }
        if (in->kw) {
            cc_buf_puts(b, " kw ");
            tape_put_object(b, t->konst[in->kw]);
        }
    } else if (in->aux) {
        cc_buf_printf(b, " %u", in->aux);
    }
    if (in->op == TAPE_RCALL) {
        cc_buf_printf(b, " at %u pop %u%s", in->unit, in->pop,
                      in->flags & TAPE_NOFRAME ? " noframe" : "");
        if (in->alt) {
            cc_buf_printf(b, " else S%u", in->alt - 1);
        }
    }
    if (in->op == TAPE_GIS || in->op == TAPE_GTRUTH || in->op == TAPE_GKEY) {
        cc_buf_printf(b, " =%u", in->sub);
    }
    cc_buf_puts(b, "\n");
}

static void
put_trace(CcBuf *b, const Trace *t)
{
    if (t->parent != NULL) {
        cc_buf_printf(b, "side of S%u, %u inputs\n", t->parent_snap, t->ninputs);
    } else {
        cc_buf_printf(b, "root, %u inputs\n", t->ninputs);
    }
    put_virts(b, t);
    put_snaps(b, t);
    for (uint32_t i = 0; i < t->nins; i++) {
        put_row(b, t, &t->ins[i]);
    }
    for (uint32_t i = 0; i < t->nsnap; i++) {
        for (uint32_t k = 0; k < t->exit[i].nside; k++) {
            put_trace(b, t->exit[i].side[k]);
        }
    }
}

PyObject *
tape_print(const Trace *t)
{
    CcBuf b;
    PyObject *text;

    cc_buf_init(&b);
    put_trace(&b, t);
    text = b.failed ? PyErr_NoMemory() : PyUnicode_FromStringAndSize(cc_buf_text(&b), b.len);
    cc_buf_fini(&b);
    return text;
}
