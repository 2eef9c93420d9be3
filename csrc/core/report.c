/* core/report.c - what explain() and the logs tell: traces, guards and breaks as Python values.
 *
 * Called when no recording is under way in this callable's data: it reads, and writes text. Log
 * lines go to sys.stderr from the calling thread and keep an exception that is set. */
#include "state.h"

#include "base/mem.h"

#include <stdarg.h>
#include <string.h>

/* -- Places ------------------------------------------------------------------------- */

/* (file, line) of a place of the trace; ("?", 0) when it is not known. */
static PyObject *
place_pair(const Trace *t, uint32_t where)
{
    if (where >= t->nplace) {
        return Py_BuildValue("(si)", "?", 0);
    }
    PyCodeObject *co = (PyCodeObject *)t->konst[t->place[where].code];
    return Py_BuildValue("(Oi)", co->co_filename, py_code_line(co, t->place[where].unit));
}

/* Append a new reference; false with an exception when there is none or no memory. */
static bool
append_steal(PyObject *list, PyObject *item)
{
    bool ok = item != NULL && PyList_Append(list, item) == 0;

    Py_XDECREF(item);
    return ok;
}

static bool
put_steal(PyObject *dict, const char *key, PyObject *value)
{
    bool ok = value != NULL && PyDict_SetItemString(dict, key, value) == 0;

    Py_XDECREF(value);
    return ok;
}

/* -- A trace ------------------------------------------------------------------------ */

/* (text, file, line) of a row */
static PyObject *
described(const Trace *t, uint32_t pc)
{
    PyObject *text = tape_describe(t, pc), *place = place_pair(t, t->ins[pc].where), *row = NULL;

    if (text != NULL && place != NULL) {
        row = PyTuple_Pack(3, text, PyTuple_GET_ITEM(place, 0), PyTuple_GET_ITEM(place, 1));
    }
    Py_XDECREF(text);
    Py_XDECREF(place);
    return row;
}

PyObject *
core_trace_guards(const Trace *t)
{
    PyObject *list = PyList_New(0);

    for (uint32_t pc = 0; list != NULL && pc < t->nins; pc++) {
        if (tape_is_guard(&t->ins[pc]) && !append_steal(list, described(t, pc))) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* A list of array operations for each launch. */
static PyObject *
trace_graphs(const Trace *t)
{
    PyObject *list = PyList_New(0);

    for (uint32_t pc = 0; list != NULL && pc < t->nins; pc++) {
        if (t->ins[pc].op != TAPE_LAUNCH) {
            continue;
        }
        PyObject *ops = PyList_New(0);
        for (uint32_t i = 1; ops != NULL && i <= t->ins[pc].aux && pc + i < t->nins; i++) {
            if (t->ins[pc + i].op == TAPE_NODE && !append_steal(ops, described(t, pc + i))) {
                Py_CLEAR(ops);
            }
        }
        if (!append_steal(list, ops)) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *trace_dict(const Trace *t);

/* Where the trace was left: (file, line, times, side traces, closed). */
static PyObject *
trace_exits(const Trace *t, PyObject *sides)
{
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < t->nsnap; i++) {
        const TapeExit *ex = &t->exit[i];
        const TapeFrame *f = &t->frame[t->snap[i].frame + t->snap[i].nframes - 1];
        PyCodeObject *co = (PyCodeObject *)t->konst[f->code];
        bool ok = true;

        for (uint32_t k = 0; ok && k < ex->nside; k++) {
            ok = append_steal(sides, trace_dict(ex->side[k]));
        }
        if (ok && (ex->exits > 0 || ex->nside > 0)) {
            PyObject *row = Py_BuildValue("(OiIIO)", co->co_filename, py_code_line(co, f->unit),
                                          ex->exits, ex->nside, ex->closed ? Py_True : Py_False);
            ok = append_steal(list, row);
        }
        if (!ok) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *
trace_end(const Trace *t)
{
    PyObject *place, *res;

    if (t->end == CC_REASON_NONE) {
        return Py_NewRef(Py_None);
    }
    place = place_pair(t, t->end_place);
    res = place == NULL ? NULL : Py_BuildValue("(sN)", cc_reason_name(t->end), place);
    return res;
}

static PyObject *
trace_dict(const Trace *t)
{
    PyCodeObject *co = (PyCodeObject *)t->konst[t->frame[t->snap[0].frame].code];
    PyObject *d = PyDict_New(), *sides = PyList_New(0);
    uint32_t residual = 0;

    for (uint32_t pc = 0; pc < t->nins; pc++) {
        residual += t->ins[pc].op == TAPE_RCALL;
    }
    if (d == NULL || sides == NULL || !put_steal(d, "function", Py_NewRef(co->co_qualname))
            || !put_steal(d, "file", Py_NewRef(co->co_filename))
            || !put_steal(d, "line", PyLong_FromLong(co->co_firstlineno))
            || !put_steal(d, "rows", PyLong_FromUnsignedLong(t->nins))
            || !put_steal(d, "residual", PyLong_FromUnsignedLong(residual))
            || !put_steal(d, "loops", PyLong_FromUnsignedLong(t->nanchor))
            || !put_steal(d, "entered", PyLong_FromUnsignedLongLong(t->entered))
            || !put_steal(d, "completed", PyLong_FromUnsignedLongLong(t->completed))
            || !put_steal(d, "guards", core_trace_guards(t))
            || !put_steal(d, "graphs", trace_graphs(t))
            || !put_steal(d, "exits", trace_exits(t, sides))
            || !put_steal(d, "end", trace_end(t))) {
        Py_XDECREF(sides);
        Py_XDECREF(d);
        return NULL;
    }
    if (!put_steal(d, "sides", sides)) {
        Py_CLEAR(d);
    }
    return d;
}

PyObject *
core_report_traces(const CoreOwner *own)
{
    PyObject *list = PyList_New(0);

    for (uint32_t i = 0; list != NULL && i < own->ntraces; i++) {
        for (uint32_t k = own->traces[i]->nroot; list != NULL && k-- > 0;) {
            if (!append_steal(list, trace_dict(own->traces[i]->root[k]))) {
                Py_CLEAR(list);
            }
        }
    }
    return list;
}

/* -- Breaks ---------------------------------------------------------------------------- */

static bool
is_known(const CoreOwner *own, CcReason reason, PyObject *code, int unit)
{
    for (uint32_t i = 0; i < own->nbrk; i++) {
        if (own->brk[i].reason == reason && own->brk[i].code == code && own->brk[i].unit == unit) {
            return true;
        }
    }
    return false;
}

/* A report, not a log: each place once, and not without end. */
static const CoreBreak *
add_break(CoreOwner *own, const Trace *t, CcReason reason, uint32_t place, const char *detail)
{
    if (place >= t->nplace || own->nbrk >= 256) {
        return NULL;
    }
    PyObject *code = t->konst[t->place[place].code];
    if (is_known(own, reason, code, t->place[place].unit)) {
        return NULL;
    }
    CoreBreak *grown = cc_realloc(own->brk, (own->nbrk + 1) * sizeof(*grown));
    if (grown == NULL) {
        return NULL;
    }
    own->brk = grown;
    CoreBreak *b = &grown[own->nbrk++];
    b->reason = reason;
    b->code = Py_NewRef(code);
    b->unit = t->place[place].unit;
    memcpy(b->detail, detail, sizeof(b->detail));
    return b;
}

static void
log_break(CoreOwner *own, const CoreBreak *b)
{
    PyCodeObject *co = (PyCodeObject *)b->code;
    bool residual = cc_reason_kind(b->reason) == CC_KIND_RESIDUAL;
    const char *hint = cc_reason_hint(b->reason);

    core_log(own, residual ? CC_LOG_GRAPH_BREAKS : CC_LOG_STOPS, "%U:%d: %s%s%s%s [%s]%s%s",
             co->co_filename, py_code_line(co, b->unit), cc_reason_text(b->reason),
             b->detail[0] ? " (" : "", b->detail, b->detail[0] ? ")" : "",
             cc_reason_name(b->reason), hint[0] ? "; hint: " : "", hint);
}

void
core_report_recording(CoreOwner *own, const Recorder *r)
{
    uint32_t first = own->nbrk;

    for (uint32_t i = 0; i < r->nbrk; i++) {
        add_break(own, r->t, r->brk[i].reason, r->brk[i].place, r->brk[i].detail);
    }
    if (r->stop != CC_REASON_NONE) {
        add_break(own, r->t, r->stop, r->t->end_place, r->stop_detail);
    }
    for (uint32_t i = first; i < own->nbrk; i++) {      /* a stream of the program's may reset us */
        CoreBreak b = own->brk[i];
        Py_INCREF(b.code);
        log_break(own, &b);
        Py_DECREF(b.code);
    }
}

/* -- Logs ------------------------------------------------------------------------------ */

void
core_log(CoreOwner *own, CcLogItem item, const char *fmt, ...)
{
    uint32_t count;
    va_list ap;

    if (!(own->state->config.logs & 1u << item)) {
        return;
    }
    PyObject *exc = PyErr_Occurred() ? py_exc_take() : NULL;
    va_start(ap, fmt);
    PyObject *text = PyUnicode_FromFormatV(fmt, ap);
    va_end(ap);
    if (text != NULL) {
        const char *name = cc_switch_rows(CC_LIST_LOGS, &count)[item].text;
        PySys_FormatStderr("ccompile %s: %U\n", name, text);
        Py_DECREF(text);
    }
    PyErr_Clear();
    if (exc != NULL) {
        py_exc_give_steal(exc);
    }
}

void
core_log_guards(CoreOwner *own, const Trace *t)
{
    if (!(own->state->config.logs & 1u << CC_LOG_GUARDS)) {
        return;
    }
    PyObject *list = core_trace_guards(t);
    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(list); i++) {
        PyObject *row = PyList_GET_ITEM(list, i);
        core_log(own, CC_LOG_GUARDS, "%U:%S: %U", PyTuple_GET_ITEM(row, 1),
                 PyTuple_GET_ITEM(row, 2), PyTuple_GET_ITEM(row, 0));
    }
    Py_XDECREF(list);
    PyErr_Clear();
}

PyObject *
core_exit_text(const CoreOwner *own, const Trace *t, uint32_t snap)
{
    const TapeFrame *f = &t->frame[t->snap[snap].frame + t->snap[snap].nframes - 1];
    PyCodeObject *co = (PyCodeObject *)t->konst[f->code];

    if (!(own->state->config.logs & 1u << CC_LOG_EXITS)) {
        return NULL;
    }
    PyObject *why = tape_describe(t, t->failed);
    PyObject *text = why == NULL ? NULL
                   : PyUnicode_FromFormat("%U:%d: the trace was left, not so: %U", co->co_filename,
                                          py_code_line(co, f->unit), why);
    Py_XDECREF(why);
    PyErr_Clear();
    return text;
}

void
core_log_side_limit(CoreOwner *own, const Trace *t, uint32_t snap)
{
    const TapeFrame *f = &t->frame[t->snap[snap].frame + t->snap[snap].nframes - 1];
    PyCodeObject *co = (PyCodeObject *)t->konst[f->code];

    core_log(own, CC_LOG_RECOMPILES,
             "%U:%d: side_limit %lld or side_total %lld is reached; plain Python goes on from here",
             co->co_filename, py_code_line(co, f->unit), (long long)own->config.side_limit,
             (long long)own->config.side_total);
}

PyObject *
core_log_exit_steal(CoreOwner *own, PyObject *text, PyObject *result)
{
    if (text != NULL) {
        core_log(own, CC_LOG_EXITS, "%U", text);
        Py_DECREF(text);
    }
    return result;
}

/* -- Misses ------------------------------------------------------------------------------ */

enum { REPORT_MISSES = 64 };

/* Why none of the roots fitted: a line for each. Keeps an exception that is set. */
void
core_report_miss(CoreOwner *own, const CodeTraces *ct)
{
    PyObject *lines = PyList_New(0);

    if (own->misses == NULL) {
        own->misses = PyList_New(0);
    }
    for (uint32_t i = 0; lines != NULL && own->misses != NULL && i < ct->nroot; i++) {
        const Trace *t = ct->root[i];
        PyObject *row = described(t, t->failed);
        PyObject *text = row == NULL ? NULL
                       : PyUnicode_FromFormat("%U (%U:%d): trace %u did not fit: %U",
                                              ct->code->co_qualname, ct->code->co_filename,
                                              ct->code->co_firstlineno, ct->nroot - i,
                                              PyTuple_GET_ITEM(row, 0));
        bool keep = PyList_GET_SIZE(own->misses) < REPORT_MISSES;
        Py_XDECREF(row);
        if (text == NULL || PyList_Append(lines, text) < 0
                || (keep && PyList_Append(own->misses, text) < 0)) {
            PyErr_Clear();
        }
        Py_XDECREF(text);
    }
    for (Py_ssize_t i = 0; lines != NULL && i < PyList_GET_SIZE(lines); i++) {
        core_log(own, CC_LOG_RECOMPILES, "%U", PyList_GET_ITEM(lines, i));
    }
    Py_XDECREF(lines);
    PyErr_Clear();
}
