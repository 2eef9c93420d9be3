#include "plan.h"

#include "../base/mem.h"
#include "../gen/gen.h"
#include "../kern/kern.h"
#include "plan_heavy.h"
#include "team.h"

#include <stdio.h>
#include <string.h>

struct CcPlan {
    const CcGraph *g;
    CcGroups groups;
    GenLoop *loop;                      /* by group; prog.len == 0 for other kinds */
    struct {
        CcBodyFn flat, row;
    } *body;                            /* by group */
    uint32_t *mask;                     /* by group: faults (ir) that its roots ask for */
    CcRef *root;                        /* by group: its first fault root */
    uint32_t *param_of;                 /* by ref: parameter + 1 */
    const RtVecTable *vec;
};

/* -- Making ---------------------------------------------------------------- */

/* What the errstate may want to know of node r and the uniform nodes below it. */
static void
plan_faults_of(CcPlan *p, uint32_t group, CcRef r)
{
    const CcGraph *g = p->g;
    uint32_t can = cc_node_faults(g, r);
    bool root = g->node[r].flags & CC_NODE_FAULT;

    p->mask[group] |= root ? can : can & CC_FAULT_ERROR;
    if (root && p->root[group] == 0) {
        p->root[group] = r;
    }
    for (uint32_t k = 0; pass_fuse_is_inline(g, r) && k < g->node[r].narg; k++) {
        CcRef a = pass_fuse_uniform(g, cc_arg(g, r, k));
        if (a != 0 && pass_fuse_is_inline(g, a)) {
            plan_faults_of(p, group, a);
        }
    }
}

static bool
plan_fill(CcPlan *p, CcStatus *st)
{
    const CcGraph *g = p->g;
    uint32_t n = p->groups.ngroup;

    p->loop = cc_calloc(n, sizeof(*p->loop));
    p->body = cc_calloc(n, sizeof(*p->body));
    p->mask = cc_calloc(n, sizeof(*p->mask));
    p->root = cc_calloc(n, sizeof(*p->root));
    p->param_of = cc_calloc(g->len, sizeof(*p->param_of));
    if (p->loop == NULL || p->body == NULL || p->mask == NULL || p->root == NULL
        || p->param_of == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "a plan of %u groups", n);
    }
    for (uint32_t k = 0; k < g->nparam; k++) {
        p->param_of[g->param[k].node] = k + 1;
    }
    for (uint32_t k = 0; k < n; k++) {
        const CcGroup *gr = &p->groups.group[k];
        if (gr->kind == CC_GROUP_LOOP && !gen_lower(g, &p->groups, k, &p->loop[k], st)) {
            return false;
        }
        for (uint32_t i = 0; i < gr->nnode; i++) {
            plan_faults_of(p, k, p->groups.node[gr->node + i]);
        }
        if (gr->nnode == 0) {
            plan_faults_of(p, k, gr->space);
        }
    }
    return true;
}

CcPlan *
rt_plan_new(const CcGraph *g, CcStatus *st)
{
    CcPlan *p = cc_calloc(1, sizeof(*p));

    if (p == NULL) {
        cc_fail(st, CC_REASON_NO_MEMORY, "a plan");
        return NULL;
    }
    p->g = g;
    p->vec = kern_vec_table();
    if (!pass_fuse(g, &p->groups, st) || !plan_fill(p, st)) {
        rt_plan_free(p);
        return NULL;
    }
    return p;
}

void
rt_plan_free(CcPlan *p)
{
    if (p == NULL) {
        return;
    }
    for (uint32_t k = 0; p->loop != NULL && k < p->groups.ngroup; k++) {
        gen_lower_fini(&p->loop[k]);
    }
    pass_fuse_fini(&p->groups);
    cc_free(p->loop);
    cc_free(p->body);
    cc_free(p->mask);
    cc_free(p->root);
    cc_free(p->param_of);
    cc_free(p);
}

const CcGroups *
rt_plan_groups(const CcPlan *p)
{
    return &p->groups;
}

uint32_t
rt_plan_ngroups(const CcPlan *p)
{
    return p->groups.ngroup;
}

const CcGroup *
rt_plan_group(const CcPlan *p, uint32_t group)
{
    return &p->groups.group[group];
}

const GenLoop *
rt_plan_loop(const CcPlan *p, uint32_t group)
{
    bool loop = p->groups.group[group].kind == CC_GROUP_LOOP;

    return loop && !p->loop[group].copies ? &p->loop[group] : NULL;
}

void
rt_plan_set_body(CcPlan *p, uint32_t group, CcBodyFn flat, CcBodyFn row)
{
    p->body[group].flat = flat;
    p->body[group].row = row != NULL ? row : flat;
}

bool
rt_plan_source(const CcPlan *p, CcBuf *out, CcStatus *st)
{
    uint32_t n = 0;
    const GenLoop **loop = cc_calloc(p->groups.ngroup, sizeof(*loop));
    bool ok;

    if (loop == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "the C of %u groups", p->groups.ngroup);
    }
    for (uint32_t k = 0; k < p->groups.ngroup; k++) {
        if (rt_plan_loop(p, k) != NULL) {
            loop[n++] = rt_plan_loop(p, k);
        }
    }
    ok = n == 0 || gen_unit(out, loop, n, st);
    cc_free(loop);
    return ok;
}

bool
rt_plan_link(CcPlan *p, CcFindFn find, void *ctx)
{
    for (int set = 0; set < 2; set++) {                 /* look all up before one is set */
        uint32_t n = 0;
        for (uint32_t k = 0; k < p->groups.ngroup; k++) {
            const GenLoop *loop = rt_plan_loop(p, k);
            char name[24];
            if (loop == NULL) {
                continue;
            }
            snprintf(name, sizeof(name), "cc_flat_%u", n);
            CcBodyFn flat = find(ctx, name), row = flat;
            if (gen_has_row(loop)) {
                snprintf(name, sizeof(name), "cc_row_%u", n);
                row = find(ctx, name);
            }
            if (flat == NULL || row == NULL) {
                return false;
            }
            if (set) {
                rt_plan_set_body(p, k, flat, row);
            }
            n++;
        }
    }
    return true;
}

/* -- Binding --------------------------------------------------------------- */

void
rt_binding_init(CcBinding *b)
{
    memset(b, 0, sizeof(*b));
}

static void
binding_drop_arrays(CcBinding *b)
{
    cc_free(b->out);
    cc_free(b->sym);
    cc_free(b->dim);
    cc_free(b->offset);
    cc_free(b->scalar);
    b->out = NULL;
    b->sym = b->dim = b->offset = NULL;
    b->scalar = NULL;
    b->plan = NULL;
}

void
rt_binding_fini(CcBinding *b)
{
    binding_drop_arrays(b);
    cc_free(b->loop);
    cc_free(b->raw_arena);
    cc_free(b->raw_work);
    rt_binding_init(b);
}

static bool
binding_fit(const CcPlan *p, CcBinding *b, CcStatus *st)
{
    const CcGraph *g = p->g;

    if (b->plan == p) {
        return true;
    }
    binding_drop_arrays(b);
    b->out = cc_calloc(g->nout, sizeof(*b->out));
    b->sym = cc_calloc(cc_graph_nsym(g), sizeof(*b->sym));
    b->dim = cc_calloc(g->dims.len, sizeof(*b->dim));
    b->offset = cc_calloc(p->groups.nbuffer, sizeof(*b->offset));
    b->scalar = cc_calloc(g->nparam, sizeof(*b->scalar));
    if (b->loop == NULL) {
        b->loop = cc_calloc(1, sizeof(*b->loop));
    }
    if (b->out == NULL || b->sym == NULL || b->dim == NULL || b->offset == NULL
        || b->scalar == NULL || b->loop == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "binding a plan");
    }
    b->plan = p;
    return true;
}

/* Symbols are bound by the first parameter axis that is one, or by a scalar parameter. */
static void
bind_symbols(const CcGraph *g, const CcArgIn *params, CcBinding *b)
{
    uint32_t nsym = cc_graph_nsym(g);

    for (uint32_t k = g->nparam; k-- > 0;) {            /* backwards: the first one stays */
        CcRef r = g->param[k].node;
        b->scalar[k] = params[k].scalar;
        if (g->param[k].sym != 0 && g->param[k].sym < nsym) {
            b->sym[g->param[k].sym] = params[k].scalar.i;
        }
        for (uint32_t d = g->node[r].ndim; d-- > 0;) {
            const CcDimRow *row = &g->dims.row[cc_shape(g, r)[d]];
            if (row->kind == CC_DIM_SYM) {
                b->sym[row->value] = params[k].dims[d];
            }
        }
    }
    for (uint32_t d = 1; d < g->dims.len; d++) {
        b->dim[d] = cc_dim_eval(g, d, b->sym);
    }
}

/* Parameters must have the sizes that the graph says, and all guards must hold. */
static bool
bind_check(const CcGraph *g, const CcArgIn *params, const CcBinding *b, CcStatus *st)
{
    uint32_t bad;

    for (uint32_t k = 0; k < g->nparam; k++) {
        CcRef r = g->param[k].node;
        for (uint32_t d = 0; d < g->node[r].ndim; d++) {
            if (params[k].dims[d] != b->dim[cc_shape(g, r)[d]]) {
                return cc_fail(st, CC_REASON_BAD_OPERANDS, "parameter %u: axis %u is %lld", k, d,
                               (long long)params[k].dims[d]);
            }
        }
    }
    if (!cc_graph_guards_hold(g, b->sym, &bad)) {
        return cc_fail(st, CC_REASON_BAD_OPERANDS, "guard %u on sizes", bad);
    }
    return true;
}

static int64_t
plan_bytes(const CcPlan *p, const CcBinding *b, CcRef r)
{
    int64_t n = cc_dtype_info[p->g->node[r].dtype].size;

    for (uint32_t d = 0; d < p->g->node[r].ndim; d++) {
        n *= b->dim[cc_shape(p->g, r)[d]];
    }
    return (n + 127) & ~(int64_t)63;                    /* never 0, a vector to spare */
}

/* Results of reductions need memory even when nobody reads them: their loops write there. */
static bool
plan_in_arena(const CcPlan *p, const CcBuffer *b)
{
    return b->out == -1 || (b->out == -2 && cc_info(p->g, b->ref)->cls == CC_CLASS_RED);
}

/* First fit: each buffer takes the lowest place that no buffer alive at the same time has. */
static void
bind_arena(const CcPlan *p, CcBinding *b)
{
    const CcGroups *s = &p->groups;

    b->arena_need = 0;
    for (uint32_t i = 1; i < s->nbuffer; i++) {
        const CcBuffer *me = &s->buffer[i];
        int64_t at = 0, size;
        if (!plan_in_arena(p, me)) {
            continue;
        }
        size = plan_bytes(p, b, me->ref);
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t k = 1; k < i; k++) {
                const CcBuffer *o = &s->buffer[k];
                bool alive = plan_in_arena(p, o) && o->first <= me->last && me->first <= o->last;
                int64_t end = alive ? b->offset[k] + plan_bytes(p, b, o->ref) : 0;
                if (alive && b->offset[k] < at + size && at < end) {
                    at = end;
                    moved = true;
                }
            }
        }
        b->offset[i] = at;
        b->arena_need = at + size > b->arena_need ? at + size : b->arena_need;
    }
}

static void
bind_outputs(const CcGraph *g, CcBinding *b)
{
    for (uint32_t k = 0; k < g->nout; k++) {
        const CcOutput *o = &g->out[k];
        const CcNode *nd = &g->node[o->node];
        int64_t step = cc_dtype_info[nd->dtype].size;
        b->out[k].ndim = nd->ndim;
        b->out[k].dtype = nd->dtype;
        for (uint32_t i = nd->ndim; i-- > 0;) {
            uint32_t d = o->ordered ? o->perm[i] : i;
            b->out[k].dim[d] = b->dim[cc_shape(g, o->node)[d]];
            b->out[k].stride[d] = step;
            step *= b->out[k].dim[d];
        }
    }
}

bool
rt_plan_bind(const CcPlan *p, const CcArgIn *params, CcBinding *b, CcStatus *st)
{
    if (!binding_fit(p, b, st)) {
        return false;
    }
    bind_symbols(p->g, params, b);
    if (!bind_check(p->g, params, b, st)) {
        return false;
    }
    bind_arena(p, b);
    bind_outputs(p->g, b);
    return true;
}

/* -- Where values are ------------------------------------------------------ */

static bool
run_grow(char **block, char **raw, int64_t *have, int64_t need, CcStatus *st)
{
    if (need <= *have && *raw != NULL) {
        return true;
    }
    cc_free(*raw);
    *have = 0;
    *raw = cc_realloc(NULL, (size_t)need + 64);
    if (*raw == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "%lld bytes of arena", (long long)need);
    }
    *block = *raw + (64 - (uintptr_t)*raw % 64);
    *have = need;
    return true;
}

bool
rt_plan_work(PlanRun *run, int64_t need, char **out)
{
    CcBinding *b = run->b;
    bool ok = run_grow(&b->work, &b->raw_work, &b->work_size, need, run->st);

    *out = b->work;
    return ok;
}

static void
view_shape(const PlanRun *run, CcRef r, CcView *v)
{
    const CcNode *nd = &run->p->g->node[r];

    *v = (CcView){.size = cc_dtype_info[nd->dtype].size, .dtype = nd->dtype, .ndim = nd->ndim};
    for (uint32_t d = 0; d < nd->ndim; d++) {
        v->dim[d] = run->b->dim[cc_shape(run->p->g, r)[d]];
    }
    rt_view_pack(v);
}

void
rt_plan_buffer_view(const PlanRun *run, uint32_t buffer, CcView *v)
{
    const CcBuffer *bf = &run->p->groups.buffer[buffer];

    view_shape(run, bf->ref, v);
    if (bf->out >= 0) {
        v->data = run->outs[bf->out].data;
        for (uint32_t d = 0; d < v->ndim; d++) {
            v->stride[d] = run->outs[bf->out].strides[d];
        }
    } else {
        v->data = run->b->arena + run->b->offset[buffer];
    }
}

/* Strides of `v` (another shape of the same elements) where `a` lies as it lies. */
static bool
view_reshape(const CcView *a, CcView *v)
{
    unsigned i = 0, k = 0;

    if (rt_view_packed(a)) {
        return true;                    /* v is packed already */
    }
    for (;;) {                          /* axes of size 1 come and go */
        for (; i < v->ndim && v->dim[i] == 1; i++) {
            v->stride[i] = 0;
        }
        for (; k < a->ndim && a->dim[k] == 1; k++) {
        }
        if (i == v->ndim || k == a->ndim) {
            return i == v->ndim && k == a->ndim;
        }
        if (v->dim[i] != a->dim[k]) {
            return false;
        }
        v->stride[i++] = a->stride[k++];
    }
}

static bool
view_of_view(const PlanRun *run, CcRef r, const CcView *a, CcView *v)
{
    const CcGraph *g = run->p->g;
    const int64_t *attr = cc_attrs(g, r);

    v->data = a->data;
    v->iota = a->iota;
    v->origin = a->origin;
    switch (g->node[r].op) {
    case CC_OP_TRANSPOSE:
        for (unsigned d = 0; d < v->ndim; d++) {
            v->stride[d] = a->stride[attr[d]];
        }
        return true;
    case CC_OP_BROADCAST:
        for (unsigned d = 0; d < v->ndim; d++) {
            int from = (int)d - (v->ndim - a->ndim);
            v->stride[d] = from >= 0 && a->dim[from] == v->dim[d] ? a->stride[from] : 0;
        }
        return true;
    case CC_OP_SLICE:
        rt_plan_slice(run, attr, a, v);
        return true;
    default:
        return view_reshape(a, v)
            || cc_fail(run->st, CC_REASON_BAD_GRAPH, "%%%u: its operand is not in C order", r);
    }
}

/* v gets start and strides of the SLICE with these attributes of a; its dims are set. */
void
rt_plan_slice(const PlanRun *run, const int64_t *attr, const CcView *a, CcView *v)
{
    cc_i64 at = 0;

    for (unsigned d = 0; d < v->ndim; d++) {
        at += run->b->dim[attr[d]] * a->stride[d];
        v->stride[d] = a->stride[d] * attr[a->ndim + d];
    }
    if (v->iota) {
        v->origin = a->origin + at;
    } else {
        v->data = a->data + at;
    }
}

bool
rt_plan_view(const PlanRun *run, CcRef r, CcView *v)
{
    const CcPlan *p = run->p;
    uint32_t buffer = p->groups.buffer_of[r], param = p->param_of[r];
    const CcBuffer *bf = &p->groups.buffer[buffer];
    CcView a;

    /* A copy of a view is there once its group has run; until then the view is read. */
    if (buffer != 0 && bf->out != -2 && (p->groups.group_of[r] >= 0 || bf->first < run->group)) {
        rt_plan_buffer_view(run, buffer, v);
        return true;
    }
    view_shape(run, r, v);
    if (param != 0 && p->g->param[param - 1].layout == CC_LAYOUT_SCALAR) {
        v->data = (char *)&run->b->scalar[param - 1];
        return true;
    }
    if (param != 0) {
        v->data = run->params[param - 1].data;
        for (uint32_t d = 0; d < v->ndim; d++) {
            v->stride[d] = run->params[param - 1].strides[d];
        }
        return true;
    }
    if (p->g->node[r].op == CC_OP_CONST) {
        v->data = (char *)(uintptr_t)&p->g->node[r].bits;
        memset(v->stride, 0, sizeof(v->stride));
        return true;
    }
    if (p->g->node[r].op == CC_OP_SIZE) {
        v->data = (char *)&run->b->dim[cc_attrs(p->g, r)[0]];
        return true;
    }
    if (p->g->node[r].op == CC_OP_IOTA) {
        v->iota = true;
        v->stride[0] = 1;
        return true;
    }
    if (pass_fuse_is_view(p->g, r)) {
        return rt_plan_view(run, cc_arg(p->g, r, 0), &a) && view_of_view(run, r, &a, v);
    }
    return cc_fail(run->st, CC_REASON_BAD_GRAPH, "%%%u is not in memory", r);
}

/* -- Running loops --------------------------------------------------------- */

bool
rt_plan_phases(PlanRun *run, const CcPhase *phase, uint32_t n, const void *args)
{
    CcKernel k = {.phase = phase, .nphase = n, .args = args, .fault = &run->fault};

    return n == 0 || rt_team_run(&k, run->opt->threads, run->opt->stop, run->st);
}

/* The value of an iota's operand, which is a constant, a scalar parameter or in memory. */
static bool
loop_number(const PlanRun *run, CcRef r, CcScalar *out)
{
    CcVType t = gen_vtype((CcDtype)run->p->g->node[r].dtype);
    CcView v;
    float f;

    out->u = 0;
    if (!rt_plan_view(run, r, &v)) {
        return false;
    }
    if (t == CC_VT_f32) {
        memcpy(&f, v.data, sizeof(f));
        out->d = (double)f;
    } else {
        memcpy(out, v.data, v.size);
    }
    return true;
}

static bool
loop_operand(const PlanRun *run, const uint8_t *order, unsigned k, const GenLoop *gl, RtOperand *op)
{
    const CcGraph *g = run->p->g;
    const GenOperand *from = &gl->operand[k];
    CcView v;

    op->size = gl->prog.mem[k].size;
    op->out = gl->prog.mem[k].out;
    op->iota = false;
    op->data = NULL;
    if (op->out && from->buffer == 0) {
        memset(op->stride, 0, sizeof(op->stride));
        return true;
    }
    if (op->out) {
        rt_plan_buffer_view(run, from->buffer, &v);
    } else if (!rt_plan_view(run, from->ref, &v)) {
        return false;
    }
    op->data = v.data;
    for (unsigned d = 0; d < run->b->loop->ndim; d++) {
        op->stride[d] = v.ndim > 0 ? v.stride[order[d]] : 0;
    }
    if (v.iota) {
        CcRef root = from->ref;
        while (g->node[root].op != CC_OP_IOTA) {
            root = cc_arg(g, root, 0);
        }
        op->iota = true;
        op->origin = v.origin;
        op->type = (uint8_t)gen_vtype((CcDtype)v.dtype);
        return loop_number(run, cc_arg(g, root, 0), &op->start)
            && loop_number(run, cc_arg(g, root, 1), &op->step);
    }
    return true;
}

/* MAX and its like over no elements. */
static void
loop_empty_fault(PlanRun *run, const GenLoop *gl)
{
    const RtLoop *l = run->b->loop;
    cc_i64 keep = 1, red = 1;

    for (unsigned d = 0; d < l->ndim; d++) {
        *(d < l->nkeep ? &keep : &red) *= l->dim[d];
    }
    for (unsigned i = 0; i < gl->nred; i++) {
        if (red == 0 && keep > 0 && gl->red[i].red >= RT_RED_MAX
            && gl->red[i].red <= RT_RED_ARGMIN) {
            run->fault |= CC_FAULT_INDEX;
        }
    }
}

static bool
run_loop(PlanRun *run, uint32_t group)
{
    const CcPlan *p = run->p;
    const CcGroup *gr = &p->groups.group[group];
    const GenLoop *gl = &p->loop[group];
    const CcNode *space = &p->g->node[gr->space];
    uint8_t order[CC_MAX_NDIM], n = 0;
    RtLoop *l = run->b->loop;
    CcPhase phase[2];
    uint32_t nphase;
    cc_i64 partial;
    CcView v;

    for (uint8_t pass = 0; pass < 2; pass++) {          /* kept axes first */
        for (uint8_t d = 0; d < space->ndim; d++) {
            if ((gr->nred > 0 && (gr->axes >> d & 1)) == pass) {
                l->dim[n] = run->b->dim[cc_shape(p->g, gr->space)[d]];
                order[n++] = d;
            }
        }
        l->nkeep = pass == 0 ? n : l->nkeep;
    }
    l->ndim = n;
    l->nop = (uint8_t)gl->prog.nmem;
    l->nred = gl->nred;
    l->no_body = gl->no_body;
    l->flat = p->body[group].flat != NULL ? p->body[group].flat : p->vec->interp;
    l->row = p->body[group].row;
    l->prog = p->body[group].flat != NULL ? NULL : &gl->prog;
    l->mask_flat = gl->mask_flat;
    l->mask_row = gl->mask_row;
    l->scalar = run->b->scalar;
    l->vec = p->vec;
    l->cost = gl->cost;
    l->fault = &run->fault;
    for (unsigned k = 0; k < l->nop; k++) {
        if (!loop_operand(run, order, k, gl, &l->op[k])) {
            return false;
        }
    }
    for (unsigned i = 0; i < gl->nred; i++) {
        RtLoopRed *r = &l->red[i];
        rt_plan_buffer_view(run, gl->red[i].buffer, &v);
        r->red = gl->red[i].red;
        r->type = gl->red[i].type;
        r->mem = gl->red[i].mem;
        r->size = v.size;
        r->out = v.data;
        memset(r->stride, 0, sizeof(r->stride));
        memcpy(r->stride, v.stride, v.ndim * sizeof(*v.stride));
    }
    loop_empty_fault(run, gl);
    rt_loop_plan(l, phase, &nphase, &partial);
    return (partial == 0 || rt_plan_work(run, partial, &l->partial))
        && rt_plan_phases(run, phase, nphase, l);
}

/* -- Running --------------------------------------------------------------- */

static uint32_t
run_fault_bits(uint32_t rt)
{
    return (rt & (CC_FAULT_DIV | CC_FAULT_INTDIV) ? CC_FAULT_DIVIDE : 0)
         | (rt & (CC_FAULT_OVER | CC_FAULT_INTOVER) ? CC_FAULT_OVERFLOW : 0)
         | (rt & CC_FAULT_UNDER ? CC_FAULT_UNDERFLOW : 0)
         | (rt & CC_FAULT_INVALID ? CC_FAULT_INVALID : 0)
         | (rt & (CC_FAULT_INDEX | CC_FAULT_INTPOW) ? CC_FAULT_ERROR : 0);
}

bool
rt_plan_run(const CcPlan *p, const CcArgIn *params, const CcArgIn *outs, CcBinding *b,
            const CcRunOptions *opt, CcFaults *faults, CcStatus *st)
{
    static const CcRunOptions none = {0};
    PlanRun run = {.p = p, .g = p->g, .groups = &p->groups, .params = params, .outs = outs, .b = b,
                   .opt = opt != NULL ? opt : &none, .st = st};

    *faults = (CcFaults){0};
    if (!run_grow(&b->arena, &b->raw_arena, &b->arena_size, b->arena_need, st)) {
        return false;
    }
    for (uint32_t k = 0; k < p->groups.ngroup; k++) {
        run.fault = 0;
        run.group = k;
        if (!(p->groups.group[k].kind == CC_GROUP_LOOP ? run_loop(&run, k)
                                                       : rt_plan_run_other(&run, k))) {
            return false;
        }
        uint32_t bits = run_fault_bits(run.fault) & p->mask[k];
        if (bits != 0 && faults->node == 0) {
            faults->node = p->root[k] != 0 ? p->root[k] : p->groups.group[k].space;
        }
        faults->bits |= bits;
    }
    return true;
}
