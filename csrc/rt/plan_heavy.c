/* rt/plan_heavy.c - the groups of a plan that are no loops: moves, scans, indexing, the heavy
 * operations of kern/, the framework's own functions. Fills parameter structs from views. */
#include "plan_heavy.h"

#include "../kern/kern.h"

#include <string.h>

/* -- Moves ----------------------------------------------------------------- */

static bool
move_copy(PlanRun *run, const CcView *out, const CcView *in, bool fill)
{
    RtCopy c = {.out = *out, .in = *in, .fill = fill};
    CcPhase phase;

    return !rt_copy_plan(&c, &phase) || rt_plan_phases(run, &phase, 1, &c);
}

static bool
run_update(PlanRun *run, CcRef r, const CcView *out)
{
    CcView base, value, place;

    if (!rt_plan_view(run, cc_arg(run->g, r, 0), &base)
        || !rt_plan_view(run, cc_arg(run->g, r, 1), &value)
        || !move_copy(run, out, &base, false)) {
        return false;
    }
    place = *out;
    memcpy(place.dim, value.dim, sizeof(place.dim));
    rt_plan_slice(run, cc_attrs(run->g, r), out, &place);
    return move_copy(run, &place, &value, false);
}

static bool
run_concat(PlanRun *run, CcRef r, const CcView *out)
{
    unsigned axis = (unsigned)cc_attrs(run->g, r)[0];
    CcView place = *out, part;

    for (uint32_t k = 0; k < run->g->node[r].narg; k++) {
        if (!rt_plan_view(run, cc_arg(run->g, r, k), &part)) {
            return false;
        }
        place.dim[axis] = part.dim[axis];
        if (!move_copy(run, &place, &part, false)) {
            return false;
        }
        place.data += part.dim[axis] * place.stride[axis];
    }
    return true;
}

static bool
run_pad(PlanRun *run, CcRef r, const CcView *out)
{
    const int64_t *lo = cc_attrs(run->g, r);
    CcView in, value, place = *out;

    if (!rt_plan_view(run, cc_arg(run->g, r, 0), &in)
        || !rt_plan_view(run, cc_arg(run->g, r, 1), &value)
        || !move_copy(run, out, &value, true)) {
        return false;
    }
    for (unsigned d = 0; d < out->ndim; d++) {
        place.data += run->b->dim[lo[d]] * out->stride[d];
        place.dim[d] = in.dim[d];
    }
    return move_copy(run, &place, &in, false);
}

/* -- Scans, indexing ------------------------------------------------------- */

static bool
run_scan(PlanRun *run, CcRef r, const CcView *out)
{
    RtScan s = {.out = *out, .axis = (uint8_t)cc_attrs(run->g, r)[0],
                .type = (uint8_t)gen_vtype((CcDtype)out->dtype),
                .product = run->g->node[r].op == CC_OP_CUMPROD};
    CcPhase phase;

    return rt_plan_view(run, cc_arg(run->g, r, 0), &s.in)
        && (!rt_scan_plan(&s, &phase) || rt_plan_phases(run, &phase, 1, &s));
}

static bool
run_index(PlanRun *run, CcRef r, const CcView *out)
{
    RtIndex x = {.out = *out, .axis = (uint8_t)cc_attrs(run->g, r)[0],
                 .type = (uint8_t)gen_vtype((CcDtype)out->dtype),
                 .scatter = run->g->node[r].op != CC_OP_GATHER,
                 .add = run->g->node[r].op == CC_OP_SCATTER_ADD, .fault = &run->fault};
    CcPhase phase;

    if (!rt_plan_view(run, cc_arg(run->g, r, 0), &x.base)
        || !rt_plan_view(run, cc_arg(run->g, r, 1), &x.index)
        || (x.scatter && (!rt_plan_view(run, cc_arg(run->g, r, 2), &x.value)
                          || !move_copy(run, out, &x.base, false)))) {
        return false;
    }
    return !rt_index_plan(&x, &phase) || rt_plan_phases(run, &phase, 1, &x);
}

/* -- Heavy operations ------------------------------------------------------ */

static bool
heavy_run(PlanRun *run, const KernPlan *plan, const void *args, void **shared)
{
    char *work = NULL;

    if (plan->shared > 0 && !rt_plan_work(run, (int64_t)plan->shared, &work)) {
        return false;
    }
    if (shared != NULL) {
        *shared = work;
    }
    return rt_plan_phases(run, plan->phase, plan->nphase, args);
}

static const KernFloat *
heavy_table(uint8_t dtype)
{
    return dtype == CC_DTYPE_F64 ? kern_table()->f64 : kern_table()->f32;
}

/* Elements of strides in bytes. */
static void
heavy_strides(const CcView *v, int64_t out[4])
{
    for (unsigned d = 0; d < 4; d++) {
        out[d] = v->stride[d] / v->size;
    }
}

static KernInt
heavy_int(uint8_t dtype)
{
    static const uint8_t of[CC_DTYPE__COUNT] = {
        [CC_DTYPE_I8] = KERN_I8, [CC_DTYPE_I16] = KERN_I16, [CC_DTYPE_I32] = KERN_I32,
        [CC_DTYPE_I64] = KERN_I64, [CC_DTYPE_U8] = KERN_U8, [CC_DTYPE_U16] = KERN_U16,
        [CC_DTYPE_U32] = KERN_U32, [CC_DTYPE_U64] = KERN_U64, [CC_DTYPE_BOOL] = KERN_BOOL,
    };

    return (KernInt)of[dtype];
}

/* One batch of C = A B; strides of rows and columns and of the last batch axis in elements. */
static bool
matmul_run(PlanRun *run, const CcView *a, const CcView *b, const CcView *c, bool ta, bool tb,
           cc_i64 nbatch, const cc_i64 at[3])
{
    unsigned n = c->ndim, lead = n > 2 ? n - 3 : 0;
    cc_i64 size = c->size, batch[3] = {0, 0, 0};
    cc_i64 k = ta ? a->dim[n - 2] : a->dim[n - 1];
    KernPlan plan;

    if (n > 2) {
        batch[0] = a->stride[lead] / size;
        batch[1] = b->stride[lead] / size;
        batch[2] = c->stride[lead] / size;
    }
    cc_i64 ar = a->stride[ta ? n - 1 : n - 2] / size, ac = a->stride[ta ? n - 2 : n - 1] / size;
    cc_i64 br = b->stride[tb ? n - 1 : n - 2] / size, bc = b->stride[tb ? n - 2 : n - 1] / size;
    cc_i64 cr = c->stride[n - 2] / size, cw = c->stride[n - 1] / size;
    if (c->dtype == CC_DTYPE_F32 || c->dtype == CC_DTYPE_F64) {
        KernGemm g = {.nbatch = nbatch, .m = c->dim[n - 2], .n = c->dim[n - 1], .k = k,
                      .a_batch = batch[0], .a_row = ar, .a_col = ac, .b_batch = batch[1],
                      .b_row = br, .b_col = bc, .c_batch = batch[2], .c_row = cr, .c_col = cw,
                      .a = a->data + at[0], .b = b->data + at[1], .c = c->data + at[2]};
        heavy_table(c->dtype)->gemm(&g, &plan);
        return heavy_run(run, &plan, &g, &g.shared);
    }
    KernIntMm g = {.type = heavy_int(c->dtype), .nbatch = nbatch, .m = c->dim[n - 2],
                   .n = c->dim[n - 1], .k = k, .a_batch = batch[0], .a_row = ar, .a_col = ac,
                   .b_batch = batch[1], .b_row = br, .b_col = bc, .c_batch = batch[2], .c_row = cr,
                   .c_col = cw, .a = a->data + at[0], .b = b->data + at[1], .c = c->data + at[2]};
    kern_intmm_plan(&g, &plan);
    return heavy_run(run, &plan, &g, NULL);
}

static bool
run_matmul(PlanRun *run, CcRef r, const CcView *out)
{
    const int64_t *attr = cc_attrs(run->g, r);
    CcView a, b;
    unsigned n = out->ndim;
    cc_i64 inner = n > 2 ? out->dim[n - 3] : 1, outer = 1;

    if (!rt_plan_view(run, cc_arg(run->g, r, 0), &a)
        || !rt_plan_view(run, cc_arg(run->g, r, 1), &b)) {
        return false;
    }
    if (rt_view_count(out) == 0) {
        return true;
    }
    for (unsigned d = 0; d + 3 < n; d++) {
        outer *= out->dim[d];
    }
    for (cc_i64 i = 0; i < outer; i++) {
        cc_i64 at[3] = {0, 0, 0}, left = i;
        for (unsigned d = n > 3 ? n - 3 : 0; d-- > 0;) {
            cc_i64 j = left % out->dim[d];
            left /= out->dim[d];
            at[0] += j * a.stride[d];
            at[1] += j * b.stride[d];
            at[2] += j * out->stride[d];
        }
        if (!matmul_run(run, &a, &b, out, attr[0] != 0, attr[1] != 0, inner, at)) {
            return false;
        }
    }
    return true;
}

/* Have the kernel add the bias; one whose elements are not side by side is copied to the end of the
 * work memory. */
static bool
conv_bias(PlanRun *run, CcRef bias, KernConv *c, KernPlan *plan)
{
    CcView v;

    if (!rt_plan_view(run, bias, &v)) {
        return false;
    }
    if (!rt_view_packed(&v)) {
        CcView packed = v;
        size_t end = (plan->shared + 63) / 64 * 64;
        plan->shared = end + (size_t)(v.dim[0] * v.size);
        if (!rt_plan_work(run, (int64_t)plan->shared, &packed.data)) {
            return false;
        }
        packed.data += end;
        rt_view_pack(&packed);
        if (!move_copy(run, &packed, &v, false)) {
            return false;
        }
        v = packed;
    }
    c->epi = KERN_EPI_BIAS;
    c->bias = v.data;
    return true;
}

static bool
run_conv(PlanRun *run, CcRef r, const CcView *out)
{
    const int64_t *attr = cc_attrs(run->g, r);
    uint8_t op = run->g->node[r].op;
    CcView p, q, x, w, y;
    KernPlan plan;

    if (!rt_plan_view(run, cc_arg(run->g, r, 0), &p)
        || !rt_plan_view(run, cc_arg(run->g, r, 1), &q)) {
        return false;
    }
    x = op == CC_OP_CONV2D ? p : op == CC_OP_CONV2D_DX ? *out : q;
    w = op == CC_OP_CONV2D_DW ? *out : q;
    y = op == CC_OP_CONV2D ? *out : p;
    KernConv c = {.n = x.dim[0], .c = x.dim[1], .h = x.dim[2], .w = x.dim[3], .oc = w.dim[0],
                  .kh = w.dim[2], .kw = w.dim[3], .stride_h = attr[0], .stride_w = attr[1],
                  .pad_top = attr[2], .pad_bottom = attr[3], .pad_left = attr[4],
                  .pad_right = attr[5], .dil_h = attr[6], .dil_w = attr[7], .groups = attr[8],
                  .x = x.data, .wt = w.data, .y = y.data};
    heavy_strides(&x, c.xs);
    heavy_strides(&w, c.ws);
    heavy_strides(&y, c.ys);
    const KernFloat *t = heavy_table(out->dtype);
    (op == CC_OP_CONV2D ? t->conv : op == CC_OP_CONV2D_DX ? t->conv_dx : t->conv_dw)(&c, &plan);
    if (run->g->node[r].narg == 3 && !conv_bias(run, cc_arg(run->g, r, 2), &c, &plan)) {
        return false;
    }
    return heavy_run(run, &plan, &c, &c.shared);
}

/* What all three operations on a window share; `y` has the output's sizes. */
static KernPool
pool_of(const int64_t *attr, const CcView *x, const CcView *y)
{
    KernPool k = {.n = x->dim[0], .c = x->dim[1], .h = x->dim[2], .w = x->dim[3],
                  .oh = y->dim[2], .ow = y->dim[3], .kh = attr[0], .kw = attr[1],
                  .stride_h = attr[2], .stride_w = attr[3], .pad_h = attr[4], .pad_w = attr[6],
                  .dil_h = 1, .dil_w = 1, .x = x->data, .y = y->data};

    heavy_strides(x, k.xs);
    heavy_strides(y, k.ys);
    return k;
}

static bool
run_pool(PlanRun *run, CcRef r, const CcView *out)
{
    CcView x;
    KernPlan plan;

    if (!rt_plan_view(run, cc_arg(run->g, r, 0), &x)) {
        return false;
    }
    KernPool k = pool_of(cc_attrs(run->g, r), &x, out);
    heavy_table(x.dtype)->pool(&k, &plan);
    return rt_plan_phases(run, plan.phase, plan.nphase, &k);
}

/* The kernel makes the maxima in any case and wants a packed index: both go to the work memory. */
static bool
run_pool_arg(PlanRun *run, CcRef r, const CcView *out)
{
    CcView x, y = *out, index = *out;
    KernPlan plan;
    char *work = NULL;

    if (!rt_plan_view(run, cc_arg(run->g, r, 0), &x)) {
        return false;
    }
    y.size = x.size;
    rt_view_pack(&y);
    rt_view_pack(&index);
    if (!rt_plan_work(run, rt_view_count(&y) * (x.size + 8) + 8, &work)) {
        return false;
    }
    index.data = work;
    y.data = work + rt_view_count(&y) * 8;
    KernPool k = pool_of(cc_attrs(run->g, r), &x, &y);
    k.index = (int64_t *)(void *)work;
    heavy_table(x.dtype)->pool(&k, &plan);
    return rt_plan_phases(run, plan.phase, plan.nphase, &k) && move_copy(run, out, &index, false);
}

static bool
run_pool_dx(PlanRun *run, CcRef r, const CcView *out)
{
    CcView dy, x;
    KernPlan plan;

    if (!rt_plan_view(run, cc_arg(run->g, r, 0), &dy)
        || !rt_plan_view(run, cc_arg(run->g, r, 1), &x)) {
        return false;
    }
    KernPool k = pool_of(cc_attrs(run->g, r), &x, &dy);
    k.dx = out->data;
    heavy_strides(out, k.dxs);
    heavy_table(out->dtype)->pool_dx(&k, &plan);
    return rt_plan_phases(run, plan.phase, plan.nphase, &k);
}

/* -- The framework's own functions ----------------------------------------- */

enum { EXTERN_VIEWS = 64 };

static bool
run_extern(PlanRun *run, CcRef call)
{
    const CcGraph *g = run->g;
    CcView arg[EXTERN_VIEWS], result[EXTERN_VIEWS];
    uint32_t narg = g->node[call].narg, nresult = 0;

    if (run->opt->external == NULL || narg > EXTERN_VIEWS) {
        return cc_fail(run->st, CC_REASON_NO_LOWERING, "%%%u: nobody to call", call);
    }
    for (uint32_t k = 0; k < narg; k++) {
        if (!rt_plan_view(run, cc_arg(g, call, k), &arg[k])) {
            return false;
        }
    }
    for (CcRef r = call + 1; r < g->len; r++) {
        if (g->node[r].op != CC_OP_EXTERN_GET || cc_arg(g, r, 0) != call) {
            continue;
        }
        uint32_t at = (uint32_t)cc_attrs(g, r)[0];
        if (at >= EXTERN_VIEWS) {
            return cc_fail(run->st, CC_REASON_NO_LOWERING, "%%%u: result %u", call, at);
        }
        for (; nresult <= at; nresult++) {              /* results nobody reads have no memory */
            memset(&result[nresult], 0, sizeof(result[nresult]));
        }
        rt_plan_buffer_view(run, run->groups->buffer_of[r], &result[at]);
    }
    return run->opt->external(run->opt->ctx, cc_attrs(g, call)[0], arg, narg, result, nresult,
                              run->st);
}

bool
rt_plan_run_other(PlanRun *run, uint32_t group)
{
    CcRef r = run->groups->group[group].space;
    CcView out;

    if (run->g->node[r].op == CC_OP_EXTERN) {
        return run_extern(run, r);
    }
    rt_plan_buffer_view(run, run->groups->buffer_of[r], &out);
    switch (run->g->node[r].op) {
    case CC_OP_UPDATE:
        return run_update(run, r, &out);
    case CC_OP_CONCAT:
        return run_concat(run, r, &out);
    case CC_OP_PAD:
        return run_pad(run, r, &out);
    case CC_OP_CUMSUM:
    case CC_OP_CUMPROD:
        return run_scan(run, r, &out);
    case CC_OP_GATHER:
    case CC_OP_SCATTER:
    case CC_OP_SCATTER_ADD:
        return run_index(run, r, &out);
    case CC_OP_MATMUL:
        return run_matmul(run, r, &out);
    case CC_OP_CONV2D:
    case CC_OP_CONV2D_DX:
    case CC_OP_CONV2D_DW:
        return run_conv(run, r, &out);
    case CC_OP_MAXPOOL2D:
        return run_pool(run, r, &out);
    case CC_OP_MAXPOOL2D_ARG:
        return run_pool_arg(run, r, &out);
    case CC_OP_MAXPOOL2D_DX:
        return run_pool_dx(run, r, &out);
    default:
        return cc_fail(run->st, CC_REASON_NO_LOWERING, "%%%u: %s", r, cc_info(run->g, r)->name);
    }
}
