/* core/dump.c - the text forms that the option `dump` asks for, one trace at a time.
 *
 * They go to sys.stderr under a line that names the stage and the function, or to a file each in
 * the folder `dump_dir`: NUMBER-PID-STAGE.txt. Written when the trace is ready, since writing runs
 * code of the program. Short of memory, or where a file cannot be made, a line says so. */
#include "state.h"

#include "base/mem.h"
#include "front/lower.h"
#include "gen/gen.h"
#include "pass/fuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool
wants(const CoreDump *d, CcDumpItem item)
{
    return (d->want->bits >> item & 1) != 0;
}

/* -- While the passes run ----------------------------------------------------------------------- */

static void
after_pass(void *ctx, const char *pass, const CcGraph *g, uint64_t ns)
{
    CoreDump *d = ctx;

    if (cc_dump_wants_pass(d->want, pass)) {
        cc_buf_printf(&d->ir, "after %s (%.1f us):\n", pass, (double)ns * 1e-3);
        cc_graph_print(g, &d->ir);
    }
}

void
core_dump_init(CoreDump *d, const CcConfig *config)
{
    *d = (CoreDump){.want = &config->dump, .dir = config->dump_dir.text};
    cc_buf_init(&d->ir);
    if (wants(d, CC_DUMP_IR)) {
        d->watch.hook = after_pass;
        d->watch.ctx = d;
    }
}

/* -- One stage ------------------------------------------------------------------------------------ */

static void
say_failed(const char *what, const char *why)
{
    PySys_WriteStderr("ccompile dump: %.200s: %.200s\n", what, why);
}

static void
put_file(const CoreDump *d, uint32_t number, const char *stage, const char *head, const char *text)
{
    CcBuf path, all;

    cc_buf_init(&path);
    cc_buf_init(&all);
    cc_buf_printf(&path, "%s/%05u-%ld-%s.txt", d->dir, number, (long)getpid(), stage);
    cc_buf_printf(&all, "%s\n%s", head, text);
    FILE *f = path.failed || all.failed ? NULL : fopen(cc_buf_text(&path), "w");
    bool good = f != NULL && fwrite(cc_buf_text(&all), 1, all.len, f) == all.len;
    if (f == NULL || fclose(f) != 0 || !good) {
        say_failed(path.failed ? d->dir : cc_buf_text(&path), strerror(errno));
    }
    cc_buf_fini(&path);
    cc_buf_fini(&all);
}

/* text: NULL = no memory; "" = there is nothing to say, as where no array work is. */
static void
put_stage(const CoreDump *d, uint32_t number, CcDumpItem item, const char *where, const char *text)
{
    uint32_t count;
    const char *stage = cc_switch_rows(CC_LIST_DUMP, &count)[item].text;
    CcBuf head;

    if (text != NULL && text[0] == '\0') {
        return;
    }
    cc_buf_init(&head);
    cc_buf_printf(&head, "== %s %u: %s", stage, number, where);
    if (text == NULL || head.failed) {
        say_failed(stage, "no memory");
    } else if (d->dir[0] != '\0') {
        put_file(d, number, stage, cc_buf_text(&head), text);
    } else {
        PySys_FormatStderr("%s\n%s", cc_buf_text(&head), text);
    }
    cc_buf_fini(&head);
    PyErr_Clear();
}

/* -- What the stages say -------------------------------------------------------------------------- */

static void
guards_text(const Trace *t, CcBuf *out)
{
    PyObject *list = core_trace_guards(t);

    for (Py_ssize_t i = 0; list != NULL && i < PyList_GET_SIZE(list); i++) {
        PyObject *row = PyList_GET_ITEM(list, i);
        PyObject *line = PyUnicode_FromFormat("%U:%S: %U\n", PyTuple_GET_ITEM(row, 1),
                                              PyTuple_GET_ITEM(row, 2), PyTuple_GET_ITEM(row, 0));
        const char *text = line == NULL ? NULL : PyUnicode_AsUTF8(line);
        cc_buf_puts(out, text != NULL ? text : "a guard without text\n");
        Py_XDECREF(line);
    }
    Py_XDECREF(list);
    PyErr_Clear();
}

static void
plans_text(const Trace *t, CcBuf *out)
{
    const FrontPlans *plans = front_plans(t);

    for (uint32_t i = 0; plans != NULL && i < plans->nstep; i++) {
        const FrontStep *s = &plans->step[i];
        if (s->graph == NULL) {
            cc_buf_printf(out, "step %u: %u rows by the framework: %s\n", i, s->n, s->why);
        } else {
            cc_buf_printf(out, "step %u: %u rows\n", i, s->n);
            pass_fuse_print(&s->graph->g, rt_plan_groups(s->graph->plan), out);
        }
    }
}

static void
loops_text(const Trace *t, CcBuf *out)
{
    const FrontPlans *plans = front_plans(t);

    for (uint32_t i = 0; plans != NULL && i < plans->nstep; i++) {
        const CcPlan *plan = plans->step[i].graph == NULL ? NULL : plans->step[i].graph->plan;
        for (uint32_t k = 0; plan != NULL && k < rt_plan_ngroups(plan); k++) {
            const GenLoop *loop = rt_plan_loop(plan, k);
            if (loop != NULL) {
                cc_buf_printf(out, "/* step %u, group %u */\n", i, k);
                gen_loop(out, "loop", &loop->prog, loop->mask_flat);
            }
        }
    }
}

static void
put_buf(const CoreDump *d, uint32_t number, CcDumpItem item, const char *where, const CcBuf *text)
{
    put_stage(d, number, item, where, text->failed ? NULL : cc_buf_text(text));
}

static void
put_tape(const CoreDump *d, uint32_t number, const char *where, const Trace *t)
{
    PyObject *str = tape_print(t);
    const char *text = str == NULL ? NULL : PyUnicode_AsUTF8(str);

    PyErr_Clear();
    put_stage(d, number, CC_DUMP_TAPE, where, text);
    Py_XDECREF(str);
}

/* -- A trace -------------------------------------------------------------------------------------- */

void
core_dump_end(CoreDump *d, CoreState *state, const Trace *t)
{
    static void (*const stage[CC_DUMP__COUNT])(const Trace *, CcBuf *) = {
        [CC_DUMP_GUARD] = guards_text, [CC_DUMP_PLAN] = plans_text, [CC_DUMP_C] = loops_text,
    };
    const CcDump want = *d->want;               /* writing may change the options */

    if (want.bits == 0) {
        cc_buf_fini(&d->ir);
        return;
    }
    d->want = &want;
    PyCodeObject *code = (PyCodeObject *)t->konst[t->frame[0].code];
    PyObject *name = PyUnicode_FromFormat("%U (%U:%d)", code->co_qualname, code->co_filename,
                                          code->co_firstlineno);
    const char *utf8 = name == NULL ? NULL : PyUnicode_AsUTF8(name), *where = utf8 ? utf8 : "?";
    uint32_t number = state->ndumped++;

    PyErr_Clear();
    if (wants(d, CC_DUMP_TAPE)) {
        put_tape(d, number, where, t);
    }
    if (wants(d, CC_DUMP_IR)) {
        put_buf(d, number, CC_DUMP_IR, where, &d->ir);
    }
    for (int item = 0; item < CC_DUMP__COUNT; item++) {
        CcBuf text;
        if (stage[item] != NULL && wants(d, (CcDumpItem)item)) {
            cc_buf_init(&text);
            stage[item](t, &text);
            put_buf(d, number, (CcDumpItem)item, where, &text);
            cc_buf_fini(&text);
        }
    }
    Py_XDECREF(name);
    cc_buf_fini(&d->ir);
}
