#include "fuse.h"

#include "../base/vec.h"

#include <string.h>

typedef struct {
    const CcGraph *g;
    CcGroups *s;
    CcStatus *st;
    uint32_t limit;
    uint32_t *avail;                    /* by ref: first group that may read it from memory */
    CcRef (*load)[CC_FUSE_LOADS];       /* by group: operands from memory */
    uint32_t *nload, capload, capnload;
    uint32_t *size;                     /* nodes of each group */
    uint32_t capsize;
} Fuse;

/* -- Questions about nodes --------------------------------------------------------------------- */

bool
pass_fuse_is_view(const CcGraph *g, CcRef r)
{
    uint8_t op = g->node[r].op;

    return op == CC_OP_RESHAPE || op == CC_OP_TRANSPOSE || op == CC_OP_BROADCAST
        || op == CC_OP_SLICE;
}

bool
pass_fuse_is_inline(const CcGraph *g, CcRef r)
{
    return cc_info(g, r)->cls == CC_CLASS_EW && g->node[r].ndim == 0;
}

CcRef
pass_fuse_uniform(const CcGraph *g, CcRef r)
{
    while (g->node[r].ndim > 0 && pass_fuse_is_view(g, r) && g->node[r].op != CC_OP_SLICE) {
        r = cc_arg(g, r, 0);
    }
    return g->node[r].ndim == 0 || g->node[r].op == CC_OP_CONST ? r : 0;
}

static CcRef
fuse_root(const CcGraph *g, CcRef r)
{
    while (pass_fuse_is_view(g, r)) {
        r = cc_arg(g, r, 0);
    }
    return r;
}

/* Does RESHAPE r only add or drop axes of size 1? */
static bool
fuse_keeps_axes(const CcGraph *g, CcRef r)
{
    CcRef a = cc_arg(g, r, 0);
    uint32_t i = 0, k = 0, ni = g->node[r].ndim, nk = g->node[a].ndim;

    for (;;) {
        while (i < ni && cc_dim_equals(g, cc_shape(g, r)[i], 1)) {
            i++;
        }
        while (k < nk && cc_dim_equals(g, cc_shape(g, a)[k], 1)) {
            k++;
        }
        if (i == ni || k == nk) {
            return i == ni && k == nk;
        }
        if (!cc_dim_same(g, cc_shape(g, r)[i++], cc_shape(g, a)[k++])) {
            return false;
        }
    }
}

/* Is what r reads certain to lie in C order? */
static bool
fuse_is_packed(const CcGraph *g, CcRef r)
{
    while (g->node[r].op == CC_OP_RESHAPE) {
        r = cc_arg(g, r, 0);
    }
    if (pass_fuse_is_view(g, r) || g->node[r].op == CC_OP_IOTA) {
        return false;
    }
    for (uint32_t k = 0; k < g->nparam; k++) {
        if (g->param[k].node == r) {
            return g->param[k].layout == CC_LAYOUT_C || g->param[k].layout == CC_LAYOUT_SCALAR;
        }
    }
    return true;                        /* the arena's, or an output's: see fuse_output_of() */
}

/* -- Groups ---------------------------------------------------------------- */

static bool
fuse_no_memory(Fuse *f)
{
    return cc_fail(f->st, CC_REASON_NO_MEMORY, "fusing a graph of %u nodes", f->g->len);
}

static bool
fuse_new(Fuse *f, CcGroupKind kind, CcRef space)
{
    CcGroups *s = f->s;

    if (!CC_GROW(s->group, s->ngroup, s->capgroup, 1)
        || !CC_GROW(f->load, s->ngroup, f->capload, 1)
        || !CC_GROW(f->nload, s->ngroup, f->capnload, 1)
        || !CC_GROW(f->size, s->ngroup, f->capsize, 1)) {
        return fuse_no_memory(f);
    }
    f->nload[s->ngroup] = f->size[s->ngroup] = 0;
    s->group[s->ngroup++] = (CcGroup){.kind = (uint8_t)kind, .space = space};
    return true;
}

static bool
fuse_loads(const Fuse *f, uint32_t group, CcRef r)
{
    for (uint32_t k = 0; k < f->nload[group]; k++) {
        if (f->load[group][k] == r) {
            return true;
        }
    }
    return false;
}

/* Put r, whose operands are available, into the group. */
static void
fuse_join(Fuse *f, uint32_t group, CcRef r)
{
    const CcNode *nd = &f->g->node[r];

    for (uint32_t k = 0; k < nd->narg; k++) {
        CcRef a = cc_arg(f->g, r, k);
        if (f->s->group_of[a] != (int32_t)group && !fuse_loads(f, group, a)) {
            f->load[group][f->nload[group]++] = a;
        }
    }
    f->s->group_of[r] = (int32_t)group;
    f->avail[r] = group + 1;
    f->size[group]++;
    if (cc_info(f->g, r)->cls == CC_CLASS_RED) {
        f->s->group[group].axes = (uint64_t)cc_attrs(f->g, r)[0];
        f->s->group[group].nred++;
    }
}

/* May r, which loops over the shape of `space`, join the group? *near: they share an operand. */
static bool
fuse_may_join(const Fuse *f, uint32_t group, CcRef r, CcRef space, bool *near)
{
    const CcGraph *g = f->g;
    const CcGroup *gr = &f->s->group[group];
    uint32_t more = 0;
    bool red = cc_info(g, r)->cls == CC_CLASS_RED;

    *near = false;
    if (gr->kind != CC_GROUP_LOOP || !cc_same_shape(g, gr->space, space)
        || f->size[group] >= f->limit) {
        return false;
    }
    if (red && gr->nred > 0
        && (gr->axes != (uint64_t)cc_attrs(g, r)[0] || gr->nred >= CC_FUSE_REDS)) {
        return false;
    }
    for (uint32_t k = 0; k < g->node[r].narg; k++) {
        CcRef a = cc_arg(g, r, k);
        bool inside = f->s->group_of[a] == (int32_t)group && cc_info(g, a)->cls == CC_CLASS_EW;
        bool loaded = fuse_loads(f, group, a);
        if (!inside && f->avail[a] > group) {
            return false;
        }
        *near |= inside || loaded;
        more += !inside && !loaded;
    }
    return f->nload[group] + more <= CC_FUSE_LOADS;
}

static bool
fuse_loop_node(Fuse *f, CcRef r)
{
    CcRef space = cc_info(f->g, r)->cls == CC_CLASS_RED ? cc_arg(f->g, r, 0) : r;
    uint32_t n = f->s->ngroup;

    for (uint32_t back = 0; back < n && back < 32; back++) {
        bool near;
        if (fuse_may_join(f, n - 1 - back, r, space, &near) && near) {
            fuse_join(f, n - 1 - back, r);
            return true;
        }
    }
    if (!fuse_new(f, CC_GROUP_LOOP, space)) {
        return false;
    }
    fuse_join(f, n, r);
    return true;
}

/* -- Buffers --------------------------------------------------------------- */

static bool
fuse_add_buffer(Fuse *f, CcRef r, int32_t out, uint32_t group)
{
    CcGroups *s = f->s;

    if (!CC_GROW(s->buffer, s->nbuffer, s->capbuffer, 1)) {
        return fuse_no_memory(f);
    }
    s->buffer[s->nbuffer] = (CcBuffer){.ref = r, .out = out, .first = group, .last = group};
    /* A computed value lives where its own group puts it; other groups make copies of it. */
    if (s->buffer_of[r] == 0 && (s->group_of[r] < 0 || s->group_of[r] == (int32_t)group)) {
        s->buffer_of[r] = s->nbuffer;
    }
    s->nbuffer++;
    return true;
}

/* A group of its own that stores value r: a copy of a view, or a uniform value. */
static bool
fuse_store_group(Fuse *f, CcRef r, int32_t out)
{
    CcGroups *s = f->s;
    uint32_t group = s->ngroup;

    if (!fuse_new(f, CC_GROUP_LOOP, r) || !fuse_add_buffer(f, r, out, group)
        || !CC_GROW(s->store, s->nstore, s->capstore, 1)) {
        return fuse_no_memory(f);
    }
    s->group[group].store = s->nstore;
    s->group[group].nstore = 1;
    s->store[s->nstore++] = (CcStore){r, s->nbuffer - 1};
    f->avail[r] = group + 1;
    return true;
}

/* r is read by something that reads memory only. */
static bool
fuse_need_memory(Fuse *f, CcRef r)
{
    CcRef root = fuse_root(f->g, r);
    uint8_t op = f->g->node[root].op;
    bool copy = op == CC_OP_CONST || op == CC_OP_IOTA || pass_fuse_is_inline(f->g, root);

    if (copy && f->s->buffer_of[root] == 0) {
        if (!fuse_store_group(f, root, -1)) {
            return false;
        }
        for (CcRef v = r; v != root; v = cc_arg(f->g, v, 0)) {
            f->avail[v] = f->avail[root];
        }
    }
    return true;
}

/* Every operand of r is in memory before the group that comes next. */
static bool
fuse_need_all(Fuse *f, CcRef r)
{
    for (uint32_t k = 0; k < f->g->node[r].narg; k++) {
        if (!fuse_need_memory(f, cc_arg(f->g, r, k))) {
            return false;
        }
    }
    return true;
}

static uint32_t
fuse_avail_of_args(const Fuse *f, CcRef r)
{
    uint32_t avail = 0;

    for (uint32_t k = 0; k < f->g->node[r].narg; k++) {
        CcRef a = cc_arg(f->g, r, k);
        avail = f->avail[a] > avail ? f->avail[a] : avail;
    }
    return avail;
}

static bool
fuse_node(Fuse *f, CcRef r)
{
    const CcGraph *g = f->g;
    static const uint8_t kind_of[] = {
        [CC_CLASS_SCAN] = CC_GROUP_SCAN, [CC_CLASS_MOVE] = CC_GROUP_MOVE,
        [CC_CLASS_INDEX] = CC_GROUP_INDEX, [CC_CLASS_HEAVY] = CC_GROUP_HEAVY,
        [CC_CLASS_EXT] = CC_GROUP_EXTERN,
    };
    uint8_t cls = cc_info(g, r)->cls, op = g->node[r].op;

    if (cls == CC_CLASS_LEAF) {
        for (uint32_t k = 0; k < g->node[r].narg; k++) {        /* an iota's start and step */
            if (cc_info(g, cc_arg(g, r, k))->cls != CC_CLASS_LEAF
                && !fuse_need_memory(f, cc_arg(g, r, k))) {
                return false;
            }
        }
        f->avail[r] = fuse_avail_of_args(f, r);
        return true;
    }
    if (op == CC_OP_RESHAPE && pass_fuse_uniform(g, r) == 0 && !fuse_keeps_axes(g, r)
        && !fuse_is_packed(g, cc_arg(g, r, 0)) && f->s->buffer_of[cc_arg(g, r, 0)] == 0) {
        CcRef a = cc_arg(g, r, 0);
        if (f->avail[a] > f->s->ngroup || !fuse_store_group(f, a, -1)) {
            return false;
        }
    }
    if (pass_fuse_is_view(g, r) || op == CC_OP_EXTERN_GET || pass_fuse_is_inline(g, r)) {
        f->avail[r] = fuse_avail_of_args(f, r);
        if (op == CC_OP_EXTERN_GET) {                   /* written by the call's group */
            f->s->group_of[r] = f->s->group_of[cc_arg(g, r, 0)];
        }
        return true;
    }
    if (cls == CC_CLASS_EW || cls == CC_CLASS_RED) {
        return fuse_loop_node(f, r);
    }
    if (cls == CC_CLASS_COMP) {
        return cc_fail(f->st, CC_REASON_BAD_GRAPH, "%%%u: %s was not decomposed", r,
                       cc_info(g, r)->name);
    }
    uint32_t group;
    if (!fuse_need_all(f, r) || !fuse_new(f, (CcGroupKind)kind_of[cls], r)) {
        return false;
    }
    group = f->s->ngroup - 1;
    f->s->group_of[r] = (int32_t)group;
    f->avail[r] = group + 1;
    return true;
}

/* -- What is stored where -------------------------------------------------- */

static bool
fuse_is_reshaped(const CcGraph *g, CcRef r)
{
    for (CcRef v = r + 1; v < g->len; v++) {
        if (g->node[v].op == CC_OP_RESHAPE && cc_arg(g, v, 0) == r) {
            return true;
        }
    }
    return false;
}

/* The output whose memory r may live in: the first (what is reshaped: in C order); or -1. */
static int32_t
fuse_output_of(const CcGraph *g, CcRef r)
{
    for (uint32_t k = 0; k < g->nout; k++) {
        if (g->out[k].node == r && !(g->out[k].ordered && fuse_is_reshaped(g, r))) {
            return (int32_t)k;
        }
    }
    return -1;
}

/* What the readers of a value ask for. */
enum {
    SEEN_MEMORY = 1,                    /* another group reads it, or an output shows it */
    SEEN_LOOP = 2,                      /* its own loop reads it, and so computes it: the reader is
                                           stored, or read in turn */
};

/* Mark in `seen` what a reader of r outside of `group` needs from memory. */
static void
fuse_mark(const Fuse *f, CcRef r, int32_t group, uint8_t *seen)
{
    const CcGraph *g = f->g;
    CcRef root = fuse_root(g, r);

    if (f->s->buffer_of[r] != 0 && root != r) {
        return;                                         /* a copied view */
    }
    if (group >= 0 && f->s->group[group].kind == CC_GROUP_LOOP && pass_fuse_is_inline(g, root)) {
        for (uint32_t k = 0; k < g->node[root].narg; k++) {
            fuse_mark(f, cc_arg(g, root, k), group, seen);
        }
    } else if (f->s->group_of[root] >= 0
               && (f->s->group_of[root] != group || cc_info(g, root)->cls != CC_CLASS_EW
                   || root != r)) {
        seen[root] |= SEEN_MEMORY;
    } else if (f->s->group_of[root] >= 0) {
        seen[root] |= SEEN_LOOP;
    }
}

static bool
fuse_place_outputs(Fuse *f)
{
    const CcGraph *g = f->g;

    for (uint32_t k = 0; k < g->nout; k++) {
        CcRef r = g->out[k].node;
        bool own = f->s->group_of[r] >= 0 && fuse_output_of(g, r) == (int32_t)k;
        if (!own && !fuse_store_group(f, r, (int32_t)k)) {
            return false;
        }
    }
    for (CcRef r = 1; r < g->len; r++) {                /* faults of numbers that nobody stores */
        if (pass_fuse_is_inline(g, r) && (g->node[r].flags & CC_NODE_FAULT)
            && f->s->buffer_of[r] == 0 && !fuse_store_group(f, r, -2)) {
            return false;
        }
    }
    return true;
}

static bool
fuse_place_values(Fuse *f, const uint8_t *seen)
{
    const CcGraph *g = f->g;
    CcGroups *s = f->s;

    for (CcRef r = 1; r < g->len; r++) {
        int32_t group = s->group_of[r], out = fuse_output_of(g, r);
        if (group < 0 || g->node[r].dtype == CC_DTYPE_OPAQUE) {
            continue;
        }
        bool loop = s->group[group].kind == CC_GROUP_LOOP;
        bool unread = g->node[r].flags & CC_NODE_FAULT && !(seen[r] & SEEN_LOOP);
        if (out >= 0 || seen[r] & SEEN_MEMORY || !loop) {
            if (!fuse_add_buffer(f, r, out, (uint32_t)group)) {
                return false;
            }
        } else if ((unread || cc_info(g, r)->cls == CC_CLASS_RED)
                   && !fuse_add_buffer(f, r, -2, (uint32_t)group)) {
            return false;
        }
    }
    return true;
}

/* Lists of nodes and stores of each group. */
static bool
fuse_list(Fuse *f)
{
    CcGroups *s = f->s;

    for (uint32_t k = 0; k < s->ngroup; k++) {
        CcGroup *gr = &s->group[k];
        bool store = gr->nstore == 0;
        gr->node = s->nnode;
        if (store) {
            gr->store = s->nstore;
        }
        for (CcRef r = 1; f->size[k] > 0 && r < f->g->len; r++) {
            if (s->group_of[r] != (int32_t)k) {
                continue;
            }
            if (!CC_GROW(s->node, s->nnode, s->capnode, 1)
                || !CC_GROW(s->store, s->nstore, s->capstore, 1)) {
                return fuse_no_memory(f);
            }
            s->node[s->nnode++] = r;
            if (store && s->buffer_of[r] != 0) {
                s->store[s->nstore++] = (CcStore){r, s->buffer_of[r]};
                gr->nstore++;
            }
        }
        gr->nnode = s->nnode - gr->node;
    }
    return true;
}

static void
fuse_use(const Fuse *f, CcRef r, uint32_t group)
{
    const CcGraph *g = f->g;

    for (;;) {
        uint32_t b = f->s->buffer_of[r];
        if (b != 0 && f->s->buffer[b].last < group) {
            f->s->buffer[b].last = group;
        }
        if (b != 0 && f->s->buffer[b].ref != r) {
            return;
        }
        if (pass_fuse_is_inline(g, r) || g->node[r].op == CC_OP_IOTA) {
            for (uint32_t k = 0; k < g->node[r].narg; k++) {
                fuse_use(f, cc_arg(g, r, k), group);
            }
            return;
        }
        if (!pass_fuse_is_view(g, r)) {
            return;
        }
        r = cc_arg(g, r, 0);
    }
}

static void
fuse_lifetimes(const Fuse *f)
{
    const CcGroups *s = f->s;

    for (CcRef r = 1; r < f->g->len; r++) {
        for (uint32_t k = 0; s->group_of[r] >= 0 && k < f->g->node[r].narg; k++) {
            fuse_use(f, cc_arg(f->g, r, k), (uint32_t)s->group_of[r]);
        }
    }
    for (uint32_t k = 0; k < s->ngroup; k++) {
        for (uint32_t i = 0; i < s->group[k].nstore; i++) {
            fuse_use(f, s->store[s->group[k].store + i].value, k);
        }
    }
}

static bool
fuse_run(Fuse *f)
{
    const CcGraph *g = f->g;
    uint8_t *seen = cc_calloc(g->len, 1);
    bool ok = seen != NULL || fuse_no_memory(f);

    for (CcRef r = 1; ok && r < g->len; r++) {
        ok = fuse_node(f, r);
    }
    ok = ok && fuse_place_outputs(f);
    for (CcRef r = 1; ok && r < g->len; r++) {
        for (uint32_t k = 0; f->s->group_of[r] >= 0 && k < g->node[r].narg; k++) {
            fuse_mark(f, cc_arg(g, r, k), f->s->group_of[r], seen);
        }
        if (g->node[r].op == CC_OP_IOTA) {
            fuse_mark(f, cc_arg(g, r, 0), -1, seen);
            fuse_mark(f, cc_arg(g, r, 1), -1, seen);
        }
    }
    for (uint32_t k = 0; ok && k < f->s->ngroup; k++) {
        const CcGroup *gr = &f->s->group[k];
        for (uint32_t i = 0; i < gr->nstore; i++) {
            CcRef value = f->s->store[gr->store + i].value, root = fuse_root(g, value);
            if (pass_fuse_is_inline(g, root)) {
                fuse_mark(f, root, (int32_t)k, seen);
            } else if (f->s->group_of[root] >= 0) {
                seen[root] |= SEEN_MEMORY;
            }
        }
    }
    ok = ok && fuse_place_values(f, seen) && fuse_list(f);
    if (ok) {
        fuse_lifetimes(f);
    }
    cc_free(seen);
    return ok;
}

static bool
fuse_fits(const Fuse *f)
{
    for (uint32_t k = 0; k < f->s->ngroup; k++) {
        if (f->nload[k] + f->s->group[k].nstore > CC_FUSE_MEM) {
            return false;
        }
    }
    return true;
}

void
pass_fuse_fini(CcGroups *s)
{
    cc_free(s->group);
    cc_free(s->node);
    cc_free(s->store);
    cc_free(s->buffer);
    cc_free(s->buffer_of);
    cc_free(s->group_of);
    memset(s, 0, sizeof(*s));
}

bool
pass_fuse(const CcGraph *g, CcGroups *out, CcStatus *st)
{
    static const uint32_t limits[] = {CC_FUSE_NODES, CC_FUSE_MEM - CC_FUSE_LOADS};
    bool ok = false, fits = false;

    memset(out, 0, sizeof(*out));
    for (int attempt = 0; attempt < 2 && !fits; attempt++) {
        Fuse f = {.g = g, .s = out, .st = st, .limit = limits[attempt]};
        pass_fuse_fini(out);
        out->buffer_of = cc_calloc(g->len, sizeof(*out->buffer_of));
        out->group_of = cc_calloc(g->len, sizeof(*out->group_of));
        f.avail = cc_calloc(g->len, sizeof(*f.avail));
        ok = out->buffer_of != NULL && out->group_of != NULL && f.avail != NULL
          && CC_GROW(out->buffer, 0, out->capbuffer, 1);
        if (ok) {
            out->buffer[out->nbuffer++] = (CcBuffer){.out = -2};
            memset(out->group_of, 0xff, g->len * sizeof(*out->group_of));
            ok = fuse_run(&f);
            fits = !ok || fuse_fits(&f);        /* the second limit always fits */
        } else {
            fits = true;
            fuse_no_memory(&f);
        }
        cc_free(f.avail);
        cc_free(f.load);
        cc_free(f.nload);
        cc_free(f.size);
    }
    if (!ok) {
        pass_fuse_fini(out);
    }
    return ok;
}

/* -- Text ------------------------------------------------------------------ */

void
pass_fuse_print(const CcGraph *g, const CcGroups *s, CcBuf *out)
{
    static const char *const kind[] = {"loop", "move", "scan", "index", "heavy", "extern"};

    (void)g;
    for (uint32_t k = 0; k < s->ngroup; k++) {
        const CcGroup *gr = &s->group[k];
        cc_buf_printf(out, "%u %s %%%u:", k, kind[gr->kind], gr->space);
        for (uint32_t i = 0; i < gr->nnode; i++) {
            cc_buf_printf(out, " %%%u", s->node[gr->node + i]);
        }
        cc_buf_puts(out, " ->");
        for (uint32_t i = 0; i < gr->nstore; i++) {
            const CcStore *st = &s->store[gr->store + i];
            cc_buf_printf(out, " %%%u", st->value);
            if (s->buffer[st->buffer].out >= 0) {
                cc_buf_printf(out, "=out%d", s->buffer[st->buffer].out);
            } else if (s->buffer[st->buffer].out < -1) {
                cc_buf_puts(out, "=none");
            }
        }
        cc_buf_puts(out, "\n");
    }
}
