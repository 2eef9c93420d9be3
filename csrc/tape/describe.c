/* tape/describe.c - a row in the words of the program, for explain(), logs and warnings.
 *
 * A value is named by the way that leads to it (argument 'x', global 'np', x.weight, x[0]), found
 * by following the loads of the tape backwards; what an operation made is named by the operation.
 * Nothing here runs the program's code. */
#include "text.h"

enum { DESCRIBE_DEPTH = 12 };           /* of a path; deeper ones are cut */

static void put_path(CcBuf *b, const Trace *t, TapeRef ref, int depth);

static const char *
text_borrow(PyObject *str)
{
    const char *s = str != NULL && PyUnicode_Check(str) ? PyUnicode_AsUTF8(str) : NULL;

    if (s == NULL) {
        PyErr_Clear();
    }
    return s == NULL ? "?" : s;
}

/* -- Inputs -------------------------------------------------------------------------- */

static void
put_local(CcBuf *b, PyCodeObject *co, uint32_t slot, const char *what)
{
    PyObject *names = PyCode_GetVarnames(co);

    if (names != NULL && slot < (uint32_t)PyTuple_GET_SIZE(names)) {
        cc_buf_printf(b, "%s '%s'", what, text_borrow(PyTuple_GET_ITEM(names, slot)));
    } else {
        bool local = slot < (uint32_t)co->co_nlocalsplus;
        cc_buf_puts(b, local ? "a closure cell" : "a value on the stack");
    }
    Py_XDECREF(names);
    PyErr_Clear();
}

static void
put_input(CcBuf *b, const Trace *t, uint32_t reg)
{
    const Trace *of = t->parent != NULL ? t->parent : t;
    const TapeSnap *s = &of->snap[t->parent != NULL ? t->parent_snap : 0];

    if (t->parent == NULL) {
        PyCodeObject *co = (PyCodeObject *)of->konst[of->frame[s->frame].code];
        if (reg + 1 == t->ninputs) {
            cc_buf_puts(b, "the function");
        } else {
            put_local(b, co, reg, "argument");
        }
        return;
    }
    for (uint32_t i = 0; i < s->nframes; i++) {
        const TapeFrame *f = &of->frame[s->frame + i];
        if (reg < f->nlocals + f->nstack) {
            put_local(b, (PyCodeObject *)of->konst[f->code], reg, "local");
            return;
        }
        reg -= f->nlocals + f->nstack;
    }
    cc_buf_puts(b, "a function on the stack");
}

/* -- Operations ----------------------------------------------------------------------- */

static void
put_callee(CcBuf *b, PyObject *obj)
{
    bool quiet =
        obj != NULL && !(Py_TYPE(obj)->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
        Py_TYPE(obj)->tp_getattro == PyObject_GenericGetAttr; /* asking runs no Python code */
    PyObject *name = quiet ? PyObject_GetAttrString(obj, "__name__") : NULL;

    PyErr_Clear();
    if (name != NULL && PyUnicode_Check(name)) {
        cc_buf_puts(b, text_borrow(name));
    } else {
        tape_put_object(b, obj);
    }
    Py_XDECREF(name);
}

static void
put_operation(CcBuf *b, const Trace *t, const TapeIns *in)
{
    static const char *const binary[] = {
        "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    };
    static const char *const unary[] = {"-", "+", "~", "not"};
    static const char *const compare[] = {"<", "<=", "==", "!=", ">", ">="};
    TapeRef a0 = in->n > 0 ? t->opnd[in->arg] : TAPE_NULL;
    TapeRef a1 = in->n > 1 ? t->opnd[in->arg + 1] : TAPE_NULL;

    if ((in->sub == DO_CALL || in->sub == DO_INTO) && TAPE_KIND(a0) == TAPE_CONST) {
        put_callee(b, t->konst[TAPE_INDEX(a0)]);
    } else if ((in->sub == DO_BINARY || in->sub == DO_INPLACE) && in->aux < 26) {
        cc_buf_printf(b, "%s%s", binary[in->aux % 13], in->aux >= 13 ? "=" : "");
    } else if (in->sub == DO_UNARY && in->aux < 4) {
        cc_buf_puts(b, unary[in->aux]);
    } else if (in->sub == DO_COMPARE && (in->aux & 15) < 6) {
        cc_buf_puts(b, compare[in->aux & 15]);
    } else if (in->sub == DO_GETATTR && in->n > 1 && TAPE_KIND(a1) == TAPE_CONST) {
        cc_buf_printf(b, ".%s", text_borrow(t->konst[TAPE_INDEX(a1)]));
    } else {
        cc_buf_puts(b, tape_call_name[in->sub]);
    }
}

/* -- Paths ------------------------------------------------------------------------------- */

/* A row that gives the register; NULL for inputs and variables of loops. */
static const TapeIns *
definition(const Trace *t, uint32_t reg)
{
    for (uint32_t pc = 0; pc < t->nins && reg >= t->ninputs; pc++) {
        if (t->ins[pc].dst == reg + 1) {
            return &t->ins[pc];
        }
    }
    return NULL;
}

static void
put_operand(CcBuf *b, const Trace *t, const TapeIns *in, uint32_t i, int depth)
{
    put_path(b, t, i < in->n ? t->opnd[in->arg + i] : TAPE_NULL, depth);
}

static void
put_loaded(CcBuf *b, const Trace *t, const TapeIns *in, int depth)
{
    static const char *const method[] = {".__func__", ".__self__", ".__func__", ".fget"};

    switch (in->op) {
    case TAPE_LDGLOB:
        cc_buf_printf(b, "global '%s'", text_borrow(t->konst[in->aux]));
        return;
    case TAPE_LDATTR:
    case TAPE_LDMOD:
    case TAPE_LDTYPE:
        put_operand(b, t, in, 0, depth);
        cc_buf_printf(b, ".%s", text_borrow(t->konst[in->aux]));
        return;
    case TAPE_LDCELL:
        put_operand(b, t, in, 0, depth);
        cc_buf_puts(b, ".cell_contents");
        return;
    case TAPE_LDFUNC:
        put_operand(b, t, in, 0, depth);
        cc_buf_puts(b, in->sub == TAPE_FUNC_CLOSURE ? ".__closure__"
                       : in->sub == TAPE_FUNC_DEFAULT ? ".__defaults__"
                       : in->sub == TAPE_FUNC_KWDEFAULT ? ".__kwdefaults__" : ".__globals__");
        if (in->sub != TAPE_FUNC_GLOBALS) {
            cc_buf_printf(b, "[%u]", in->aux);
        }
        return;
    case TAPE_LDMETH:
        put_operand(b, t, in, 0, depth);
        cc_buf_puts(b, in->sub < 4 ? method[in->sub] : "?");
        return;
    case TAPE_LDITEM:
    case TAPE_LDKEY:
        put_operand(b, t, in, 0, depth);
        cc_buf_puts(b, "[");
        put_operand(b, t, in, 1, depth);
        cc_buf_puts(b, "]");
        return;
    case TAPE_LDSLOT:
        put_operand(b, t, in, 0, depth);
        cc_buf_puts(b, ".<slot>");
        return;
    case TAPE_PCALL:
    case TAPE_NODE:
    case TAPE_RCALL:
        cc_buf_puts(b, "the result of ");
        put_operation(b, t, in);
        if (in->where < t->nplace) {
            const TapePlace *p = &t->place[in->where];
            PyCodeObject *co = (PyCodeObject *)t->konst[p->code];
            cc_buf_printf(b, " (line %d)", py_code_line(co, p->unit));
        }
        return;
    default:
        cc_buf_puts(b, "a value");
    }
}

static void
put_const(CcBuf *b, PyObject *obj)
{
    const char *name = obj != NULL && PyModule_Check(obj) ? PyModule_GetName(obj) : NULL;

    PyErr_Clear();
    if (name != NULL) {
        cc_buf_printf(b, "module %s", name);
    } else {
        tape_put_object(b, obj);
    }
}

static void
put_path(CcBuf *b, const Trace *t, TapeRef ref, int depth)
{
    const TapeIns *in;

    if (depth == 0 || TAPE_KIND(ref) == TAPE_VIRT || ref == TAPE_NULL) {
        cc_buf_puts(b, depth == 0 ? "..." : ref == TAPE_NULL ? "nothing" : "an object built here");
    } else if (TAPE_KIND(ref) == TAPE_CONST) {
        put_const(b, t->konst[TAPE_INDEX(ref)]);
    } else if (TAPE_INDEX(ref) < t->ninputs) {
        put_input(b, t, TAPE_INDEX(ref));
    } else if ((in = definition(t, TAPE_INDEX(ref))) != NULL) {
        put_loaded(b, t, in, depth - 1);
    } else {
        cc_buf_puts(b, "a variable of a loop");
    }
}

/* -- Guards -------------------------------------------------------------------------------- */

bool
tape_is_guard(const TapeIns *in)
{
    return tape_row_info[in->op].phase == PHASE_PRE && tape_row_info[in->op].name[0] == 'G';
}

static void
put_array(CcBuf *b, const TapeArr *arr)
{
    static const char *const dtype[] = {
        "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
        "longlong", "ulonglong", "float32", "float64", "longdouble", "complex64", "complex128",
        "clongdouble",
    };
    cc_buf_printf(b, "%s[", arr->dtype == 23 ? "float16"
                            : arr->dtype >= 0 && arr->dtype < 17 ? dtype[arr->dtype] : "other");
    for (int i = 0; i < arr->ndim && i < TAPE_MAX_NDIM; i++) {
        cc_buf_puts(b, i ? ", " : "");
        if (arr->dim[i] > 1) {
            cc_buf_puts(b, "n");
        } else {
            cc_buf_printf(b, "%d", arr->dim[i]);
        }
    }
    cc_buf_printf(b, "]%s%s", arr->layout == LAYOUT_STRIDED ? ", strided"
                              : arr->layout == LAYOUT_F ? ", Fortran order" : ", C order",
                  arr->writeable ? "" : ", read-only");
}

static void
put_guard(CcBuf *b, const Trace *t, const TapeIns *in)
{
    PyObject *k = in->aux < t->nkonst ? t->konst[in->aux] : NULL;
    int d = DESCRIBE_DEPTH;

    if (in->op == TAPE_GTYPE) {
        cc_buf_puts(b, "type of ");
    } else if (in->op == TAPE_GLEN) {
        cc_buf_puts(b, "len of ");
    }
    put_operand(b, t, in, 0, d);
    switch (in->op) {
    case TAPE_GTYPE:
        cc_buf_printf(b, " is %s", k == NULL ? "?" : ((PyTypeObject *)k)->tp_name);
        break;
    case TAPE_GIS:
        cc_buf_puts(b, in->sub ? " is " : " is not ");
        put_operand(b, t, in, 1, d);
        break;
    case TAPE_GEQ:
        cc_buf_puts(b, " == ");
        tape_put_object(b, k);
        break;
    case TAPE_GFUNC:
        cc_buf_puts(b, " is the same function: ");
        tape_put_object(b, k);
        break;
    case TAPE_GTRUTH:
        cc_buf_puts(b, in->sub ? " is true" : " is false");
        break;
    case TAPE_GLEN:
        cc_buf_printf(b, " == %u", in->aux);
        break;
    case TAPE_GKEY:
        cc_buf_puts(b, in->sub ? " has key " : " has no key ");
        put_operand(b, t, in, 1, d);
        break;
    case TAPE_GKEYS:
        cc_buf_puts(b, " has exactly the keys ");
        put_operand(b, t, in, 1, d);
        break;
    case TAPE_GNOATTR:
        cc_buf_printf(b, " has no '%s' of its own", text_borrow(k));
        break;
    case TAPE_GTYPEATTR:
        if (in->n < 2 || t->opnd[in->arg + 1] == TAPE_NULL) {
            cc_buf_printf(b, " defines no '%s'", text_borrow(k));
        } else {
            cc_buf_printf(b, ".%s is ", text_borrow(k));
            put_operand(b, t, in, 1, d);
        }
        break;
    case TAPE_GPURE:
        cc_buf_puts(b, " is made of plain arrays and values");
        break;
    case TAPE_GOVER:
        cc_buf_puts(b, in->n > 2 ? " and other arrays share no memory" : " shares no memory with ");
        if (in->n == 2) {
            put_operand(b, t, in, 1, d);
        }
        break;
    case TAPE_GARR:
        cc_buf_puts(b, " is ");
        put_array(b, &t->arr[in->aux]);
        break;
    default:
        cc_buf_puts(b, " is as it was");
    }
}

PyObject *
tape_describe(const Trace *t, uint32_t pc)
{
    const TapeIns *in = &t->ins[pc];
    PyObject *text;
    CcBuf b;

    cc_buf_init(&b);
    if (tape_is_guard(in)) {
        put_guard(&b, t, in);
    } else if (in->op == TAPE_NODE) {
        put_operation(&b, t, in);
    } else if (in->op == TAPE_PCALL || in->op == TAPE_LAUNCH) {
        cc_buf_puts(&b, "an operation gives a result of the same kind: ");
        put_operation(&b, t, in->op == TAPE_LAUNCH && pc + 1 < t->nins ? in + 1 : in);
    } else if (tape_row_info[in->op].phase == PHASE_PRE && in->dst != 0) {
        put_loaded(&b, t, in, DESCRIBE_DEPTH);
        cc_buf_puts(&b, " is there");
    } else if (in->op == TAPE_RCALL) {
        put_operation(&b, t, in);
        cc_buf_puts(&b, in->alt ? " goes on or ends as before" : "");
    } else {
        cc_buf_puts(&b, in->op == TAPE_EXIT ? cc_reason_text((CcReason)in->aux)
                                            : tape_row_info[in->op].name);
    }
    text = b.failed ? PyErr_NoMemory()
                    : PyUnicode_DecodeUTF8(cc_buf_text(&b), (Py_ssize_t)b.len, "replace");
    cc_buf_fini(&b);
    return text;
}
