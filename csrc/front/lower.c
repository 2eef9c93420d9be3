/* front/lower.c - one pass over a finished trace: which rows of each launch become graphs.
 *
 * A run is the longest row of nodes that lower. What of it is read from outside must be memory of
 * its own, laid out as foreseen; where it is not (a view), the run ends before that row, which the
 * framework does. A shorter run has more results, so this repeats until it holds. */
#include "npy.h"

#include "../base/mem.h"
#include "../base/vec.h"
#include "../pass/pass.h"
#include "lower_node.h"

#include <string.h>

typedef struct {
    Trace *t;
    FrontPlans *plans;
    uint32_t *uses;                     /* by register: reads anywhere in the trace */
    uint32_t *inner;                    /* by register: reads in the current run */
    uint32_t *writes;                   /* by register: WRITE rows that copy it */
    Lower L;
    uint32_t *seen, stamp;              /* by virtual object: last count that met it */
    bool lost;                          /* no memory */
    const PassOptions *watch;
    const char *why;                    /* of the row that ended the last run */
} LowerTrace;

/* -- Graphs ------------------------------------------------------------------------------------ */

static void
graph_free(FrontGraph *fg)
{
    if (fg == NULL) {
        return;
    }
    rt_plan_free(fg->plan);
    rt_binding_fini(&fg->binding);
    cc_graph_fini(&fg->g);
    cc_free(fg->in);
    cc_free(fg->out);
    cc_free(fg->need);
    cc_free(fg->arg);
    cc_free(fg->result);
    cc_free(fg->number);
    cc_free(fg->made);
    cc_free(fg);
}

static FrontGraph *
graph_new(void)
{
    FrontGraph *fg = cc_calloc(1, sizeof(*fg));

    if (fg != NULL) {
        cc_graph_init(&fg->g);
        rt_binding_init(&fg->binding);
    }
    return fg;
}

static void
plans_free(void *owner)
{
    FrontPlans *plans = owner;

    for (uint32_t i = 0; i < plans->nstep; i++) {
        graph_free(plans->step[i].graph);
    }
    for (uint32_t i = 0; i < plans->pool.n; i++) {
        Py_DECREF(plans->pool.block[i]);
    }
    cc_free(plans->step);
    cc_free(plans);
}

/* -- Uses of registers ---------------------------------------------------------------------------
 */

/* Registers of a ref, each virtual object once: they can be cyclic. */
static void
count_in(LowerTrace *lt, uint32_t *count, TapeRef ref)
{
    uint32_t i = TAPE_INDEX(ref);

    if (TAPE_KIND(ref) == TAPE_REG) {
        count[i]++;
    } else if (TAPE_KIND(ref) == TAPE_VIRT && lt->seen[i] != lt->stamp) {
        const TapeVirt *v = &lt->t->virt[i];
        lt->seen[i] = lt->stamp;
        for (uint32_t k = 0; k < v->nfields; k++) {
            count_in(lt, count, lt->t->opnd[v->first + k]);
        }
    }
}

static void
count_ref(LowerTrace *lt, uint32_t *count, TapeRef ref)
{
    lt->stamp++;
    count_in(lt, count, ref);
}

static void
count_row(LowerTrace *lt, uint32_t *count, const TapeIns *in)
{
    for (uint32_t i = 0; i < in->n; i++) {
        count_ref(lt, count, lt->t->opnd[in->arg + i]);
    }
}

static void
count_all(LowerTrace *lt)
{
    const Trace *t = lt->t;

    for (uint32_t pc = 0; pc < t->nins; pc++) {
        const TapeIns *in = &t->ins[pc];
        if (in->op != TAPE_COMMIT) {
            count_row(lt, lt->uses, in);
        }
        if (in->op == TAPE_WRITE) {
            count_ref(lt, lt->writes, t->opnd[in->arg + 1]);
        }
    }
    for (uint32_t i = 0; i < t->nframe; i++) {
        const TapeFrame *f = &t->frame[i];
        count_ref(lt, lt->uses, f->func);
        count_ref(lt, lt->uses, f->extra);
        for (uint32_t k = 0; k < f->nlocals + f->nstack; k++) {
            count_ref(lt, lt->uses, t->opnd[f->slot + k]);
        }
    }
}

/* -- A run
 * ------------------------------------------------------------------------------------------ */

/* Lower rows from pc on into a new graph; how many did. */
static uint32_t
build_rows(LowerTrace *lt, uint32_t pc, uint32_t n)
{
    Lower *L = &lt->L;
    uint32_t done = 0;

    graph_free(L->fg);
    L->fg = graph_new();
    if (L->fg == NULL) {
        lt->lost = true;
        return 0;
    }
    L->g = &L->fg->g;
    L->nsym = 1;
    L->work = false;
    L->ngrad = L->ngref = 0;
    memset(L->val, 0, (lt->t->nreg + 1) * sizeof(*L->val));
    while (done < n) {
        FrontValue out;
        L->in = &lt->t->ins[pc + done];
        L->why = NULL;
        if (!front_lower_row(L, &out)) {
            lt->why = L->why;
            break;
        }
        out.inside = true;
        L->val[L->in->dst - 1] = out;
        done++;
    }
    return done;
}

static void
count_inner(LowerTrace *lt, uint32_t pc, uint32_t n)
{
    memset(lt->inner, 0, (lt->t->nreg + 1) * sizeof(*lt->inner));
    for (uint32_t i = 0; i < n; i++) {
        count_row(lt, lt->inner, &lt->t->ins[pc + i]);
    }
}

static bool
visible(const LowerTrace *lt, const TapeIns *in)
{
    return lt->uses[in->dst - 1] > lt->inner[in->dst - 1];
}

/* The first row whose result is seen but must not be ours; n = none. */
static uint32_t
first_unfit(LowerTrace *lt, uint32_t pc, uint32_t n)
{
    count_inner(lt, pc, n);
    for (uint32_t i = 0; i < n; i++) {
        const TapeIns *in = &lt->t->ins[pc + i];
        if (visible(lt, in) && !lt->L.val[in->dst - 1].fresh) {
            lt->why = "a view, or an order in memory that is not known";
            return i;
        }
    }
    return n;
}

static bool
add_output(LowerTrace *lt, uint32_t reg)
{
    FrontGraph *fg = lt->L.fg;
    const FrontValue *v = &lt->L.val[reg];
    const CcNode *node = &fg->g.node[v->ref];
    bool array = v->form == META_ARRAY;
    uint8_t perm[CC_MAX_NDIM];

    for (uint32_t i = 0; i < node->ndim; i++) {
        perm[i] = (uint8_t)(node->ndim - 1 - i);
    }
    if (!CC_GROW(fg->out, fg->nout, fg->capout, 1)) {
        return false;
    }
    fg->out[fg->nout++] = (FrontOut){
        .reg = reg,
        .form = v->form,
        .order = v->order,
        .wrapped = v->wrapped,
        .dtype = v->dtype,
        .hidden = array && lt->uses[reg] == lt->inner[reg] + lt->writes[reg],
    };
    return cc_graph_add_output(&fg->g, v->ref, array ? CC_OUT_ARRAY : CC_OUT_SCALAR,
                               v->order == LAYOUT_F ? perm : NULL, &lt->L.st);
}

/* A float that has no place in an integer gives what the library's own instructions make of it. */
static bool
is_wild_cast(const CcGraph *g, CcRef r)
{
    if (g->node[r].op != CC_OP_CAST || cc_dtype_is_float((CcDtype)g->node[r].dtype)) {
        return false;
    }
    return g->node[r].dtype != CC_DTYPE_BOOL
        && cc_dtype_is_float((CcDtype)g->node[cc_args(g, r)[0]].dtype);
}

/* Every node that could raise is wanted for its flags. */
static uint32_t
mark_faults(const Lower *L, CcGraph *g)
{
    uint32_t strict = 0;

    for (CcRef r = 1; r < g->len; r++) {
        if (cc_node_faults(g, r) != 0 && !front_is_quiet(L, r)) {
            g->node[r].flags |= CC_NODE_FAULT;
            strict |= is_wild_cast(g, r) ? CC_FAULT_INVALID : 0;
        }
    }
    return strict;
}

static bool
make_plan(const Lower *L, FrontGraph *fg, const PassOptions *watch, CcStatus *st)
{
    PassOptions opt = *watch;

#ifdef CCOMPILE_DEBUG
    opt.verify = true;
#endif
    fg->strict = mark_faults(L, &fg->g);
    if (!pass_run(&fg->g, pass_default, 0, &opt, st)) {
        return false;
    }
    fg->plan = rt_plan_new(&fg->g, st);
    fg->arg = cc_calloc(fg->nin + 1, sizeof(*fg->arg));
    fg->result = cc_calloc(fg->nout, sizeof(*fg->result));
    fg->number = cc_calloc(fg->nout, sizeof(*fg->number));
    fg->made = cc_calloc(fg->nout, sizeof(*fg->made));
    return fg->plan && fg->arg && fg->result && fg->number && fg->made;
}

/* The graph of rows pc .. pc + n - 1, all of which lower; NULL = not worth it or not possible. */
static FrontGraph *
finish_run(LowerTrace *lt, uint32_t pc, uint32_t n)
{
    FrontGraph *fg = lt->L.fg;
    bool ok = lt->L.work;

    lt->why = "numbers and views only";
    for (uint32_t i = 0; ok && i < n; i++) {
        const TapeIns *in = &lt->t->ins[pc + i];
        ok = !visible(lt, in) || add_output(lt, in->dst - 1);
    }
    if (!ok || fg->nout == 0) {
        return NULL;
    }
    if (!make_plan(&lt->L, fg, lt->watch, &lt->L.st)) {
        lt->why = "the graph has no plan";
        return NULL;
    }
    lt->L.fg = NULL;
    return fg;
}

/* Rows of the longest run at pc; 0: its first row is the framework's. */
static uint32_t
find_run(LowerTrace *lt, uint32_t pc, uint32_t max)
{
    uint32_t n = max;

    while (n > 0 && !lt->lost) {
        uint32_t done = build_rows(lt, pc, n);
        if (done == n) {
            done = first_unfit(lt, pc, n);
            if (done == n) {
                return n;
            }
        }
        n = done;
    }
    return 0;
}

static bool
push_step(LowerTrace *lt, uint32_t n, FrontGraph *graph)
{
    FrontPlans *p = lt->plans;

    if (!CC_GROW(p->step, p->nstep, p->capstep, 1)) {
        graph_free(graph);
        lt->lost = true;
        return false;
    }
    if (graph != NULL) {
        graph->pool = &p->pool;
    }
    p->step[p->nstep++] = (FrontStep){n, graph, graph == NULL ? lt->why : NULL};
    return true;
}

static void
lower_launch(LowerTrace *lt, uint32_t pc)
{
    uint32_t n = lt->t->ins[pc].aux, at = 0;

    lt->t->ins[pc].check = lt->plans->nstep + 1;
    while (at < n && !lt->lost) {
        uint32_t len = find_run(lt, pc + 1 + at, n - at);
        FrontGraph *fg = len == 0 ? NULL : finish_run(lt, pc + 1 + at, len);
        len = len == 0 ? 1 : len;
        if (!push_step(lt, len, fg)) {
            return;
        }
        at += len;
    }
}

/* -- A trace
 * ------------------------------------------------------------------------------------------ */

static bool
begin(LowerTrace *lt, Trace *t)
{
    memset(lt, 0, sizeof(*lt));
    lt->t = t;
    lt->L.t = t;
    lt->plans = cc_calloc(1, sizeof(*lt->plans));
    lt->uses = cc_calloc(t->nreg + 1, sizeof(*lt->uses));
    lt->inner = cc_calloc(t->nreg + 1, sizeof(*lt->inner));
    lt->writes = cc_calloc(t->nreg + 1, sizeof(*lt->writes));
    lt->seen = cc_calloc(t->nvirt + 1, sizeof(*lt->seen));
    lt->L.val = cc_calloc(t->nreg + 1, sizeof(*lt->L.val));
    lt->L.np = PyImport_ImportModule("numpy");
    return lt->plans && lt->uses && lt->inner && lt->writes && lt->seen && lt->L.val && lt->L.np;
}

static void
finish(LowerTrace *lt)
{
    Trace *t = lt->t;

    graph_free(lt->L.fg);
    cc_free(lt->uses);
    cc_free(lt->inner);
    cc_free(lt->writes);
    cc_free(lt->seen);
    cc_free(lt->L.val);
    cc_free(lt->L.gref);
    Py_XDECREF(lt->L.np);
    if (!lt->lost) {
        cc_free(t->meta);               /* served its purpose */
        t->meta = NULL;
        t->plan_owner = lt->plans;
        t->plan_free = plans_free;
        return;
    }
    for (uint32_t pc = 0; pc < t->nins; pc++) {
        if (t->ins[pc].op == TAPE_LAUNCH) {
            t->ins[pc].check = 0;
        }
    }
    if (lt->plans != NULL) {
        plans_free(lt->plans);
    }
}

void
front_lower(Trace *t, const PassOptions *watch)
{
    LowerTrace *lt = cc_calloc(1, sizeof(*lt));

    if (lt == NULL || t->meta == NULL) {
        cc_free(lt);
        return;
    }
    lt->lost = !begin(lt, t);
    lt->watch = watch;
    if (!lt->lost) {
        count_all(lt);
    }
    for (uint32_t pc = 0; pc < t->nins && !lt->lost; pc++) {
        if (t->ins[pc].op == TAPE_LAUNCH) {
            lower_launch(lt, pc);
        }
    }
    finish(lt);
    cc_free(lt);
    PyErr_Clear();
}

static int
list_steps(const Trace *t, PyObject *list)
{
    const FrontPlans *plans = front_plans(t);
    int err = 0;

    for (uint32_t i = 0; plans != NULL && i < plans->nstep && err == 0; i++) {
        const FrontStep *step = &plans->step[i];
        CcBuf text;
        cc_buf_init(&text);
        if (step->graph != NULL) {
            cc_graph_print(&step->graph->g, &text);
        } else {
            cc_buf_puts(&text, step->why == NULL ? "" : step->why);
        }
        PyObject *row = Py_BuildValue("(IsO)", step->n, cc_buf_text(&text),
                                      step->graph != NULL ? Py_True : Py_False);
        err = row == NULL || text.failed ? -1 : PyList_Append(list, row);
        Py_XDECREF(row);
        cc_buf_fini(&text);
    }
    for (uint32_t i = 0; i < t->nsnap && err == 0; i++) {
        for (uint32_t k = 0; k < t->exit[i].nside && err == 0; k++) {
            err = list_steps(t->exit[i].side[k], list);
        }
    }
    return err;
}

PyObject *
front_plans_list(const Trace *t)
{
    PyObject *list = PyList_New(0);

    if (list != NULL && list_steps(t, list) < 0) {
        Py_CLEAR(list);
    }
    return list == NULL && !PyErr_Occurred() ? PyErr_NoMemory() : list;
}
