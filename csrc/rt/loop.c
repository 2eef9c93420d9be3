#include "loop.h"

#include <string.h>

enum {
    LOOP_EACH,                          /* elementwise */
    LOOP_ROWS,                          /* reduce the inner axes: one result after the other */
    LOOP_COLUMNS                        /* reduce the outer axes: results side by side */
};

enum {
    SUPER_BLOCKS = 8,                   /* blocks of rows per parallel part */
    PART = 64 * CC_RED_BLOCK,           /* elements of a row per parallel part, at most */
    FOLD_ROWS = 512,                    /* rows added one after the other in LOOP_COLUMNS, as NumPy
                                         * adds all of them; more in a tree, for the error's sake */
    TREE_LEVELS = 48,
    RESULT_BYTES = 16                   /* of a partial result: value, element (ARG) */
};

/* -- Copies ---------------------------------------------------------------- */

static void
copy_run(char *o, cc_i64 so, const char *p, cc_i64 sp, unsigned size, cc_i64 n)
{
    if (so == size && sp == size) {
        memcpy(o, p, (size_t)n * size);
        return;
    }
    switch (size) {
#define RUN(bytes)                                                                                \
    case bytes:                                                                                   \
        for (cc_i64 i = 0; i < n; i++, o += so, p += sp) {                                        \
            memcpy(o, p, bytes);                                                                  \
        }                                                                                         \
        break;
    RUN(1)
    RUN(2)
    RUN(4)
    RUN(8)
#undef RUN
    default:
        break;
    }
}

/* Rows of few elements: o and p have the distances of rows first, then of elements. */
static void
copy_rows(char *o, const cc_i64 so[2], const char *p, const cc_i64 sp[2], unsigned size,
          cc_i64 rows, cc_i64 n)
{
    switch (size) {
#define RUN(bytes)                                                                                \
    case bytes:                                                                                   \
        for (cc_i64 r = 0; r < rows; r++, o += so[0], p += sp[0]) {                               \
            for (cc_i64 i = 0; i < n; i++) {                                                      \
                memcpy(o + i * so[1], p + i * sp[1], bytes);                                      \
            }                                                                                     \
        }                                                                                         \
        break;
    RUN(1)
    RUN(2)
    RUN(4)
    RUN(8)
#undef RUN
    default:
        break;
    }
}

/* Walk n elements of a space from element `first`: calls are made per run of the last axis. */
typedef struct {
    unsigned nd;
    const cc_i64 *dim, *stride;
    cc_i64 index[RT_LOOP_DIMS];
    cc_i64 offset;
} Walk;

static void
walk_init(Walk *w, unsigned nd, const cc_i64 *dim, const cc_i64 *stride, cc_i64 first)
{
    w->nd = nd;
    w->dim = dim;
    w->stride = stride;
    w->offset = 0;
    for (unsigned k = nd; k-- > 0;) {
        w->index[k] = dim[k] > 0 ? first % dim[k] : 0;
        first = dim[k] > 0 ? first / dim[k] : 0;
        w->offset += w->index[k] * stride[k];
    }
}

/* Elements left in the current run, at most n; then move past m of them. */
static cc_i64
walk_run(const Walk *w, cc_i64 n)
{
    cc_i64 left = w->nd > 0 ? w->dim[w->nd - 1] - w->index[w->nd - 1] : 1;

    return left < n ? left : n;
}

/* Move by m along axis k, behind which the walk is at the first element. */
static void
walk_over(Walk *w, unsigned k, cc_i64 m)
{
    w->index[k] += m;
    w->offset += m * w->stride[k];
    while (k > 0 && w->index[k] >= w->dim[k]) {
        w->offset += w->stride[k - 1] - w->dim[k] * w->stride[k];
        w->index[k] = 0;
        w->index[--k]++;
    }
}

static void
walk_on(Walk *w, cc_i64 m)
{
    if (w->nd > 0) {
        walk_over(w, w->nd - 1, m);
    }
}

/* Whole rows that begin here and are too short for a run each, at most n elements; 0 = none. */
static cc_i64
walk_rows(const Walk *w, cc_i64 n)
{
    enum { SHORT = 16 };
    unsigned k = w->nd;

    if (k < 2 || w->index[k - 1] != 0 || w->dim[k - 1] >= SHORT || n < 2 * w->dim[k - 1]) {
        return 0;
    }
    cc_i64 rows = n / w->dim[k - 1], left = w->dim[k - 2] - w->index[k - 2];
    return rows < left ? rows : left;
}

/* The same elements in the same order with as few axes as will do. */
static unsigned
walk_merge(unsigned nd, const cc_i64 *dim, const cc_i64 *stride, cc_i64 *dim_out,
           cc_i64 *stride_out)
{
    unsigned m = 0;

    for (unsigned k = 0; k < nd; k++) {
        if (dim[k] == 1) {
            continue;
        }
        if (m > 0 && stride_out[m - 1] == dim[k] * stride[k]) {
            dim_out[m - 1] *= dim[k];
            stride_out[m - 1] = stride[k];
        } else {
            dim_out[m] = dim[k];
            stride_out[m++] = stride[k];
        }
    }
    return m;
}

/* Between packed memory and a space: one element after the other. */
static void
walk_copy(char *packed, char *data, bool gather, unsigned size, unsigned nd, const cc_i64 *dim,
          const cc_i64 *stride, cc_i64 first, cc_i64 n)
{
    cc_i64 d[RT_LOOP_DIMS], s[RT_LOOP_DIMS];
    Walk w;

    nd = walk_merge(nd, dim, stride, d, s);
    walk_init(&w, nd, d, s, first);
    while (n > 0) {
        cc_i64 m, rows = walk_rows(&w, n);
        char *at = data + w.offset;
        if (rows > 0) {
            cc_i64 tight[2] = {d[nd - 1] * size, size}, loose[2] = {s[nd - 2], s[nd - 1]};
            m = rows * d[nd - 1];
            copy_rows(gather ? packed : at, gather ? tight : loose, gather ? at : packed,
                      gather ? loose : tight, size, rows, d[nd - 1]);
            walk_over(&w, nd - 2, rows);
        } else {
            cc_i64 step = nd > 0 ? s[nd - 1] : size;
            m = walk_run(&w, n);
            copy_run(gather ? packed : at, gather ? size : step, gather ? at : packed,
                     gather ? step : size, size, m);
            walk_on(&w, m);
        }
        packed += m * size;
        n -= m;
    }
}

void
rt_gather(char *out, const char *in, unsigned size, unsigned nd, const cc_i64 *dim,
          const cc_i64 *stride, cc_i64 first, cc_i64 n)
{
    walk_copy(out, (char *)in, true, size, nd, dim, stride, first, n);
}

void
rt_scatter(char *out, const char *in, unsigned size, unsigned nd, const cc_i64 *dim,
           const cc_i64 *stride, cc_i64 first, cc_i64 n)
{
    walk_copy((char *)in, out, false, size, nd, dim, stride, first, n);
}

/* n elements of an iota, from element i on, `by` apart. Element i is start + i * step: integers
 * wrap, floats round twice, as NumPy's. */
static void
iota_run(char *out, const RtOperand *op, cc_u64 i, cc_u64 by, cc_i64 n)
{
    cc_u64 v = op->start.u + i * op->step.u;

    switch (op->type == CC_VT_f64 || op->type == CC_VT_f32 ? (int)op->type : -(int)op->size) {
    case CC_VT_f64:
        for (; n > 0; n--, i += by, out += 8) {
            double x = op->start.d + (double)(cc_i64)i * op->step.d;
            memcpy(out, &x, 8);
        }
        break;
    case CC_VT_f32:
        for (; n > 0; n--, i += by, out += 4) {
            float x = (float)op->start.d + (float)(cc_i64)i * (float)op->step.d;
            memcpy(out, &x, 4);
        }
        break;
#define RUN(bytes, T)                                                                             \
    case -bytes:                                                                                  \
        for (by *= op->step.u; n > 0; n--, v += by, out += bytes) {                               \
            T x = (T)v;                                                                           \
            memcpy(out, &x, bytes);                                                               \
        }                                                                                         \
        break;
    RUN(1, cc_u8)
    RUN(2, cc_u16)
    RUN(4, cc_u32)
    RUN(8, cc_u64)
#undef RUN
    default:
        break;
    }
}

static void
iota_fill(char *out, const RtOperand *op, unsigned nd, const cc_i64 *dim, const cc_i64 *stride,
          cc_i64 origin, cc_i64 first, cc_i64 n)
{
    Walk w;

    walk_init(&w, nd, dim, stride, first);
    while (n > 0) {
        cc_i64 m = walk_run(&w, n);
        iota_run(out, op, (cc_u64)(origin + w.offset), nd > 0 ? (cc_u64)stride[nd - 1] : 0, m);
        walk_on(&w, m);
        out += m * op->size;
        n -= m;
    }
}

/* -- One piece of an inner space ------------------------------------------- */

enum { PIECE_LINEAR, PIECE_ONE, PIECE_STAGED };

/* The inner space is axes [lo, hi); `at` are the operands' offsets from the outer axes. */
typedef struct {
    const RtLoop *l;
    unsigned lo, hi;
    bool use_row, staged;
    uint8_t how[CC_VPROG_MAX_MEM];
    cc_i64 at[CC_VPROG_MAX_MEM];
    char *ptr[CC_VPROG_MAX_MEM];        /* of the piece in work */
    char *stage;
    CcBody body;
} Piece;

static bool
loop_linear(const RtLoop *l, const RtOperand *op, unsigned lo, unsigned hi)
{
    cc_i64 step = op->size;

    for (unsigned k = hi; k-- > lo;) {
        if (op->stride[k] != step) {
            return false;
        }
        step *= l->dim[k];
    }
    return true;
}

static bool
loop_still(const RtOperand *op, unsigned lo, unsigned hi)
{
    for (unsigned k = lo; k < hi; k++) {
        if (op->stride[k] != 0) {
            return false;
        }
    }
    return true;
}

static cc_i64
loop_body_scratch(const RtLoop *l)
{
    return (cc_i64)l->nop * CC_VREG_BYTES + (l->prog != NULL ? rt_vprog_scratch(l->prog) : 0);
}

static void
piece_init(Piece *p, const RtLoop *l, unsigned lo, unsigned hi, char *scratch)
{
    cc_u64 still = 0, mask;

    p->l = l;
    p->lo = lo;
    p->hi = hi;
    p->staged = false;
    for (unsigned k = 0; k < l->nop; k++) {
        still |= (cc_u64)(!l->op[k].iota && !l->op[k].out && loop_still(&l->op[k], lo, hi)) << k;
    }
    /* The interpreter takes any operand as one element, compiled bodies those they know. */
    p->use_row = l->prog == NULL && (l->mask_row & ~still) == 0;
    mask = l->prog != NULL ? still : p->use_row ? l->mask_row : l->mask_flat & still;
    for (unsigned k = 0; k < l->nop; k++) {
        const RtOperand *op = &l->op[k];
        bool memory = op->data != NULL;
        p->at[k] = op->iota ? op->origin : 0;
        p->how[k] = mask >> k & 1 ? PIECE_ONE
                  : memory && loop_linear(l, op, lo, hi) ? PIECE_LINEAR : PIECE_STAGED;
        p->staged |= p->how[k] == PIECE_STAGED;
    }
    p->stage = scratch;
    p->body = (CcBody){.ptr = p->ptr, .scalar = l->scalar, .self = l->prog, .bcast = mask,
                       .scratch = scratch + (cc_i64)l->nop * CC_VREG_BYTES};
}

/* Elements [first, first + n) of the inner space; n <= CC_VCHUNK when something is staged. */
static void
piece_run(Piece *p, cc_i64 first, cc_i64 n)
{
    const RtLoop *l = p->l;
    unsigned nd = p->hi - p->lo;

    for (unsigned k = 0; k < l->nop; k++) {
        const RtOperand *op = &l->op[k];
        char *buffer = p->stage + (cc_i64)k * CC_VREG_BYTES;
        if (p->how[k] != PIECE_STAGED) {
            p->ptr[k] = op->data + p->at[k] + (p->how[k] == PIECE_LINEAR ? first * op->size : 0);
            continue;
        }
        p->ptr[k] = buffer;
        if (op->iota) {
            iota_fill(buffer, op, nd, l->dim + p->lo, op->stride + p->lo, p->at[k], first, n);
        } else if (!op->out) {
            rt_gather(buffer, op->data + p->at[k], op->size, nd, l->dim + p->lo,
                      op->stride + p->lo, first, n);
        }
    }
    if (!l->no_body) {
        (p->use_row ? l->row : l->flat)(&p->body, n);
    }
    for (unsigned k = 0; k < l->nop; k++) {
        const RtOperand *op = &l->op[k];
        if (op->out && op->data != NULL && p->how[k] == PIECE_STAGED) {
            rt_scatter(op->data + p->at[k], p->ptr[k], op->size, nd, l->dim + p->lo,
                       op->stride + p->lo, first, n);
        }
    }
}

/* Offsets of all operands at element `index` of the axes [lo, hi), which are not inner. */
static void
piece_move(Piece *p, unsigned lo, unsigned hi, cc_i64 index)
{
    const RtLoop *l = p->l;

    for (unsigned k = 0; k < l->nop; k++) {
        p->at[k] = l->op[k].iota ? l->op[k].origin : 0;
    }
    for (unsigned d = hi; d-- > lo;) {
        cc_i64 i = index % l->dim[d];
        index /= l->dim[d];
        for (unsigned k = 0; k < l->nop; k++) {
            p->at[k] += i * l->op[k].stride[d];
        }
    }
}

/* -- Elementwise ----------------------------------------------------------- */

static void
loop_each(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const RtLoop *l = args;
    Piece p;
    cc_i64 row = 1;

    piece_init(&p, l, l->lo, l->ndim, scratch);
    for (unsigned d = l->lo; d < l->ndim; d++) {
        row *= l->dim[d];
    }
    while (begin < end) {
        cc_i64 first = begin % row, n = row - first < end - begin ? row - first : end - begin;
        piece_move(&p, 0, l->lo, begin / row);
        if (p.staged && n > CC_VCHUNK) {
            n = CC_VCHUNK;
        }
        piece_run(&p, first, n);
        begin += n;
    }
    cc_fault_or(l->fault, p.body.fault);
}

/* -- Trees of partial results ---------------------------------------------- */

/* A binary counter of partial results of `width` elements: level k holds 2^k blocks. */
typedef struct {
    const RtLoop *l;
    const RtLoopRed *r;
    cc_i64 width;
    cc_u64 count;
    char *level[TREE_LEVELS];
} Tree;

static void
tree_merge(const Tree *t, char *left, const char *right)
{
    t->l->vec->reduce->fold((RtRed)t->r->red, (CcVType)t->r->type, left, right, t->width);
}

/* Add the block in `block` (kept as the caller's). */
static void
tree_push(Tree *t, const char *block)
{
    unsigned k = 0;

    for (; t->count >> k & 1; k++) {
        tree_merge(t, t->level[k], block);
        block = t->level[k];
    }
    if (block != t->level[k]) {
        memcpy(t->level[k], block, (size_t)t->width * cc_vtype_size[t->r->type]);
    }
    t->count++;
}

/* The sum of all, in `out`: from the few last blocks to the many first ones. */
static void
tree_finish(Tree *t, char *out)
{
    char *have = NULL;

    for (unsigned k = 0; t->count >> k != 0; k++) {
        if (t->count >> k & 1) {
            if (have != NULL) {
                tree_merge(t, t->level[k], have);
            }
            have = t->level[k];
        }
    }
    memcpy(out, have, (size_t)t->width * cc_vtype_size[t->r->type]);
    t->count = 0;
}

static bool
red_is_arg(const RtLoopRed *r)
{
    return r->red == RT_RED_ARGMAX || r->red == RT_RED_ARGMIN;
}

/* -- Reducing rows --------------------------------------------------------- */

/* Running results of one row, for each reduction. */
typedef struct {
    Tree tree[RT_LOOP_REDS];
    char value[RT_LOOP_REDS][TREE_LEVELS][8];
    char best[RT_LOOP_REDS][8];         /* ARG: the element and its place */
    cc_i64 place[RT_LOOP_REDS];
} Rows;

static double
red_number(CcVType t, const char *p, bool *nan)
{
    double d = 0;
    float f;

    *nan = false;
    if (t == CC_VT_f64) {
        memcpy(&d, p, sizeof(d));
        *nan = d != d;
    } else if (t == CC_VT_f32) {
        memcpy(&f, p, sizeof(f));
        d = f;
        *nan = d != d;
    }
    return d;
}

/* Does `now` beat `old` as an extreme: strictly, so that the first of equals stays? */
static bool
red_beats(const RtLoopRed *r, const char *now, const char *old)
{
    CcVType t = (CcVType)r->type;
    bool max = r->red == RT_RED_ARGMAX, nan_now, nan_old;
    unsigned size = cc_vtype_size[t];

    if (t == CC_VT_f64 || t == CC_VT_f32) {
        double a = red_number(t, now, &nan_now), b = red_number(t, old, &nan_old);
        return !nan_old && (nan_now || (max ? a > b : a < b));
    }
    cc_u64 a = 0, b = 0;
    memcpy(&a, now, size);
    memcpy(&b, old, size);
    if (t >= CC_VT_i64 && t <= CC_VT_i8) {              /* order of signed numbers */
        a ^= (cc_u64)1 << (8 * size - 1);
        b ^= (cc_u64)1 << (8 * size - 1);
    }
    return max ? a > b : a < b;
}

static void
rows_init(Rows *w, const RtLoop *l)
{
    for (unsigned i = 0; i < l->nred; i++) {
        w->tree[i] = (Tree){.l = l, .r = &l->red[i], .width = 1};
        for (unsigned k = 0; k < TREE_LEVELS; k++) {
            w->tree[i].level[k] = w->value[i][k];
        }
    }
}

static void
rows_add(Rows *w, unsigned i, const char *value, cc_i64 place)
{
    Tree *t = &w->tree[i];

    if (!red_is_arg(t->r)) {
        tree_push(t, value);
    } else if (t->count++ == 0 || red_beats(t->r, value, w->best[i])) {
        memcpy(w->best[i], value, 8);
        w->place[i] = place;
    }
}

/* RESULT_BYTES of reduction i: the value, or place and element. */
static void
rows_result(Rows *w, unsigned i, char *out)
{
    if (red_is_arg(w->tree[i].r)) {
        memcpy(out, &w->place[i], 8);
        memcpy(out + 8, w->best[i], 8);
        w->tree[i].count = 0;
    } else {
        tree_finish(&w->tree[i], out);
    }
}

/* Write n results; a float sum starts from +0.0, as NumPy's. */
static void
red_write(const RtLoop *l, unsigned i, cc_i64 keep, char *value, cc_i64 n)
{
    const RtLoopRed *r = &l->red[i];

    if (r->red == RT_RED_SUM && (r->type == CC_VT_f64 || r->type == CC_VT_f32)) {
        char zero[CC_VREG_BYTES];
        memset(zero, 0, (size_t)n * r->size);
        l->vec->reduce->fold(RT_RED_SUM, (CcVType)r->type, value, zero, n);
    }
    rt_scatter(r->out, value, r->size, l->nkeep, l->dim, r->stride, keep, n);
}

/* Where blocks end does not matter to a result: all but sums and products of floats. */
static bool
red_any_order(const RtLoopRed *r)
{
    bool adds = r->red == RT_RED_SUM || r->red == RT_RED_PROD;

    return !adds || (r->type != CC_VT_f64 && r->type != CC_VT_f32);
}

/* Elements per block: longer ones where the operands are read where they lie. */
static cc_i64
rows_block(const Piece *p)
{
    enum { LONG = 16 };
    const RtLoop *l = p->l;
    bool plain = l->no_body && !p->staged;

    for (unsigned i = 0; plain && i < l->nred; i++) {
        plain = red_any_order(&l->red[i]) && p->how[l->red[i].mem] == PIECE_LINEAR;
    }
    return plain ? LONG * CC_RED_BLOCK : CC_RED_BLOCK;
}

/* The only reduction of a loop without a body is known: a true for ANY, a false for ALL. */
static bool
rows_settled(const RtLoop *l, const char *value)
{
    bool truth = *value != 0;

    return l->nred == 1 && l->no_body
        && ((l->red[0].red == RT_RED_ANY && truth) || (l->red[0].red == RT_RED_ALL && !truth));
}

/* A value for each reduction; those of ARG are kept in Rows instead. */
typedef char RowsValues[RT_LOOP_REDS][8];

/* Elements [first, first + n), a block; `origin` is the place in the row of the piece's element 0.
 * False: nothing that follows can change the result. */
static bool
rows_block_run(Piece *p, Rows *w, cc_i64 first, cc_i64 n, cc_i64 origin, RowsValues value)
{
    const RtLoop *l = p->l;

    piece_run(p, first, n);
    for (unsigned i = 0; i < l->nred; i++) {
        const RtLoopRed *r = &l->red[i];
        char best[8] = {0}, spread[CC_VREG_BYTES];
        const char *in = p->ptr[r->mem];
        if (p->how[r->mem] == PIECE_ONE) {              /* the same element again and again */
            copy_run(spread, l->op[r->mem].size, in, 0, l->op[r->mem].size, n);
            in = spread;
        }
        l->vec->reduce->block((RtRed)r->red, (CcVType)r->type, in, n, value[i], best);
        if (red_is_arg(r)) {
            cc_i64 place;
            memcpy(&place, value[i], 8);
            rows_add(w, i, best, origin + first + place);
        }
    }
    return !rows_settled(l, value[0]);
}

/* A node of the tree of sums (rt/reduce.h) over blocks of at most `block` elements. */
static bool
rows_node(Piece *p, Rows *w, cc_i64 first, cc_i64 n, cc_i64 origin, cc_i64 block,
          RowsValues value)
{
    const RtLoop *l = p->l;
    RowsValues right;

    if (n <= block) {
        return rows_block_run(p, w, first, n, origin, value);
    }
    cc_i64 half = rt_sum_split(n);
    if (!rows_node(p, w, first, half, origin, block, value)) {
        return false;
    }
    bool more = rows_node(p, w, first + half, n - half, origin, block, right);
    for (unsigned i = 0; i < l->nred; i++) {
        if (!red_is_arg(&l->red[i])) {
            tree_merge(&w->tree[i], value[i], right[i]);
        }
    }
    return more;
}

/* Elements [first, end) of the axes of the piece. */
static void
rows_range(Piece *p, Rows *w, cc_i64 first, cc_i64 end, cc_i64 origin)
{
    RowsValues value;

    rows_node(p, w, first, end - first, origin, rows_block(p), value);
    for (unsigned i = 0; i < p->l->nred; i++) {
        if (!red_is_arg(&p->l->red[i])) {
            rows_add(w, i, value[i], 0);
        }
    }
}

/* The piece for rows: over all reduced axes, or over the last one alone, where that is long and
 * spares copies. The choice depends on sizes and strides only. Returns its length. */
static cc_i64
rows_piece(Piece *p, const RtLoop *l, char *scratch)
{
    enum { LONG_ROW = 128 };
    unsigned last = l->ndim - 1u;

    piece_init(p, l, l->nkeep, l->ndim, scratch);
    if (p->staged && l->nkeep + 1u < l->ndim && l->dim[last] >= LONG_ROW) {
        piece_init(p, l, last, l->ndim, scratch);
        if (!p->staged) {
            return l->dim[last];
        }
        piece_init(p, l, l->nkeep, l->ndim, scratch);
    }
    return l->total_red;
}

/* Elements [first, last) of the reduced axes of one result. */
static void
rows_part(Piece *p, Rows *w, cc_i64 keep, cc_i64 first, cc_i64 last, cc_i64 row)
{
    cc_i64 rows = p->l->total_red / row;

    while (first < last) {
        cc_i64 j = first / row, at = first % row;
        cc_i64 n = row - at < last - first ? row - at : last - first;
        piece_move(p, 0, p->lo, keep * rows + j);
        rows_range(p, w, at, at + n, j * row);
        first += n;
    }
}

/* Parts of a row: the nodes of its tree of sums at one depth, a power of two of them. */
static cc_i64
rows_parts(cc_i64 total)
{
    cc_i64 parts = 1;

    for (cc_i64 largest = total; largest > PART; largest -= rt_sum_split(largest)) {
        parts *= 2;
    }
    return parts;
}

/* Elements [first, last) of a part: the way down from the root is in the bits of its number. */
static void
rows_part_range(const RtLoop *l, cc_i64 part, cc_i64 *first, cc_i64 *last)
{
    cc_i64 n = l->total_red;

    *first = 0;
    for (cc_i64 bit = l->nsuper / 2; bit > 0; bit /= 2) {
        cc_i64 half = rt_sum_split(n);
        bool right = (part & bit) != 0;
        *first += right ? half : 0;
        n = right ? n - half : half;
    }
    *last = *first + n;
}

static void
loop_rows(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const RtLoop *l = args;
    Piece p;
    Rows w;
    cc_i64 row = rows_piece(&p, l, scratch);

    rows_init(&w, l);
    for (cc_i64 unit = begin; unit < end; unit++) {
        cc_i64 keep = unit / l->nsuper, first, last;
        rows_part_range(l, unit % l->nsuper, &first, &last);
        rows_part(&p, &w, keep, first, last, row);
        for (unsigned i = 0; i < l->nred; i++) {
            char result[RESULT_BYTES];
            rows_result(&w, i, result);
            if (l->nsuper > 1) {
                memcpy(l->partial + (unit * l->nred + i) * RESULT_BYTES, result, RESULT_BYTES);
            } else {
                red_write(l, i, keep, result, 1);
            }
        }
    }
    cc_fault_or(l->fault, p.body.fault);
}

/* Second phase: the parts of each row, in order. A part is a whole subtree. */
static void
loop_rows_join(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const RtLoop *l = args;
    Rows w;

    (void)scratch;
    rows_init(&w, l);
    for (cc_i64 keep = begin; keep < end; keep++) {
        for (unsigned i = 0; i < l->nred; i++) {
            char result[RESULT_BYTES];
            for (cc_i64 s = 0; s < l->nsuper; s++) {
                const char *part =
                    l->partial + ((keep * l->nsuper + s) * l->nred + i) * RESULT_BYTES;
                cc_i64 place;
                memcpy(&place, part, 8);
                rows_add(&w, i, red_is_arg(&l->red[i]) ? part + 8 : part, place);
            }
            rows_result(&w, i, result);
            red_write(l, i, keep, result, 1);
        }
    }
}

/* -- Reducing columns ------------------------------------------------------ */

static cc_i64
columns_chunks(const RtLoop *l)
{
    return (l->total_keep + CC_VCHUNK - 1) / CC_VCHUNK;
}

/* Scratch of one reduction: the tree's levels and the running block. */
static cc_i64
columns_levels(const RtLoop *l)
{
    cc_i64 rows = l->nsuper > 1 ? (cc_i64)SUPER_BLOCKS * FOLD_ROWS : l->total_red, levels = 4;

    for (cc_i64 blocks = rows / FOLD_ROWS; blocks > 0; blocks /= 2) {
        levels++;
    }
    for (cc_i64 parts = l->nsuper; parts > 1; parts /= 2) {
        levels++;
    }
    return levels;
}

static void
columns_init(const RtLoop *l, Tree *tree, char **block, char *scratch, cc_i64 width)
{
    cc_i64 levels = columns_levels(l);

    for (unsigned i = 0; i < l->nred; i++) {
        char *at = scratch + i * (levels + 1) * CC_VREG_BYTES;
        tree[i] = (Tree){.l = l, .r = &l->red[i], .width = width};
        for (cc_i64 k = 0; k < levels; k++) {
            tree[i].level[k] = at + k * CC_VREG_BYTES;
        }
        block[i] = at + levels * CC_VREG_BYTES;
    }
}

/* The first row of a block is copied; ANY and ALL make it 0 or 1 first. */
static void
columns_start(const RtLoop *l, const RtLoopRed *r, char *block, const char *row, cc_i64 n)
{
    if (r->red == RT_RED_ANY || r->red == RT_RED_ALL) {
        memset(block, r->red == RT_RED_ALL, (size_t)n);
        l->vec->reduce->fold((RtRed)r->red, (CcVType)r->type, block, row, n);
    } else {
        memcpy(block, row, (size_t)n * cc_vtype_size[r->type]);
    }
}

/* The next row of a block, the `done`-th of its part. */
static void
columns_row(Piece *p, char **block, cc_i64 done, cc_i64 row, cc_i64 first, cc_i64 n)
{
    const RtLoop *l = p->l;

    piece_move(p, l->nkeep, l->ndim, row);
    piece_run(p, first, n);
    for (unsigned i = 0; i < l->nred; i++) {
        const RtLoopRed *r = &l->red[i];
        const char *in = p->ptr[r->mem];
        char spread[CC_VREG_BYTES];
        if (p->how[r->mem] == PIECE_ONE) {
            copy_run(spread, l->op[r->mem].size, in, 0, l->op[r->mem].size, n);
            in = spread;
        }
        if (done % FOLD_ROWS == 0) {
            columns_start(l, r, block[i], in, n);
        } else {
            l->vec->reduce->fold((RtRed)r->red, (CcVType)r->type, block[i], in, n);
        }
    }
}

/* Four rows of a block at once, in the order of single ones; false: they are not there, or do not
 * lie in memory as they are. */
static bool
columns_four(Piece *p, char **block, cc_i64 done, cc_i64 row, cc_i64 last, cc_i64 first, cc_i64 n)
{
    const RtLoop *l = p->l;
    cc_i64 inner = l->ndim > l->nkeep ? l->dim[l->ndim - 1] : 1, at = done % FOLD_ROWS;

    if (!l->no_body || p->staged || at == 0 || at + 4 > FOLD_ROWS || row + 4 > last
            || row % inner + 4 > inner) {
        return false;
    }
    for (unsigned i = 0; i < l->nred; i++) {
        if (p->how[l->red[i].mem] != PIECE_LINEAR) {
            return false;
        }
    }
    piece_move(p, l->nkeep, l->ndim, row);
    piece_run(p, first, n);
    for (unsigned i = 0; i < l->nred; i++) {
        const RtLoopRed *r = &l->red[i];
        l->vec->reduce->fold4((RtRed)r->red, (CcVType)r->type, block[i], p->ptr[r->mem],
                              l->op[r->mem].stride[l->ndim - 1], n);
    }
    return true;
}

/* The first RT_SUM_LANES rows, joined in pairs as a leaf's running sums are; how many that is. */
static cc_i64
columns_lanes(Piece *p, Tree *tree, char **block, cc_i64 row, cc_i64 first, cc_i64 n)
{
    for (cc_i64 k = 0; k < RT_SUM_LANES; k++) {
        columns_row(p, block, 0, row + k, first, n);
        for (unsigned i = 0; i < p->l->nred; i++) {
            tree_push(&tree[i], block[i]);
        }
    }
    for (unsigned i = 0; i < p->l->nred; i++) {
        tree_finish(&tree[i], block[i]);
    }
    return RT_SUM_LANES;
}

static void
loop_columns(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const RtLoop *l = args;
    const cc_i64 super = (cc_i64)SUPER_BLOCKS * FOLD_ROWS, chunks = columns_chunks(l);
    char *trees = (char *)scratch + loop_body_scratch(l), *block[RT_LOOP_REDS];
    Tree tree[RT_LOOP_REDS];
    Piece p;

    piece_init(&p, l, 0, l->nkeep, scratch);
    for (cc_i64 unit = begin; unit < end; unit++) {
        cc_i64 first = unit % chunks * CC_VCHUNK, row = unit / chunks * super;
        cc_i64 last = l->nsuper > 1 && row + super < l->total_red ? row + super : l->total_red;
        cc_i64 n = l->total_keep - first < CC_VCHUNK ? l->total_keep - first : CC_VCHUNK;
        columns_init(l, tree, block, trees, n);
        cc_i64 done = l->lanes ? columns_lanes(&p, tree, block, row, first, n) : 0;
        for (row += done; row < last;) {
            bool four = columns_four(&p, block, done, row, last, first, n);
            if (!four) {
                columns_row(&p, block, done, row, first, n);
            }
            done += four ? 4 : 1;
            row += four ? 4 : 1;
            for (unsigned i = 0; i < l->nred && done % FOLD_ROWS == 0 && row < last; i++) {
                tree_push(&tree[i], block[i]);
            }
        }
        for (unsigned i = 0; i < l->nred; i++) {
            tree_push(&tree[i], block[i]);
        }
        for (unsigned i = 0; i < l->nred; i++) {
            tree_finish(&tree[i], block[i]);
            if (l->nsuper > 1) {
                memcpy(l->partial + (unit * l->nred + i) * CC_VREG_BYTES, block[i],
                       (size_t)n * cc_vtype_size[l->red[i].type]);
            } else {
                red_write(l, i, first, block[i], n);
            }
        }
    }
    cc_fault_or(l->fault, p.body.fault);
}

static void
loop_columns_join(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const RtLoop *l = args;
    const cc_i64 chunks = columns_chunks(l);
    char *block[RT_LOOP_REDS];
    Tree tree[RT_LOOP_REDS];

    for (cc_i64 chunk = begin; chunk < end; chunk++) {
        cc_i64 first = chunk * CC_VCHUNK;
        cc_i64 n = l->total_keep - first < CC_VCHUNK ? l->total_keep - first : CC_VCHUNK;
        columns_init(l, tree, block, scratch, n);
        for (unsigned i = 0; i < l->nred; i++) {
            for (cc_i64 s = 0; s < l->nsuper; s++) {
                cc_i64 unit = s * chunks + chunk;
                tree_push(&tree[i], l->partial + (unit * l->nred + i) * CC_VREG_BYTES);
            }
            tree_finish(&tree[i], block[i]);
            red_write(l, i, first, block[i], n);
        }
    }
}

/* -- Planning -------------------------------------------------------------- */

static cc_i64 *
loop_stride(RtLoop *l, unsigned which)          /* the strides of operands, then of results */
{
    return which < l->nop ? l->op[which].stride : l->red[which - l->nop].stride;
}

/* Drop axis d. */
static void
loop_drop(RtLoop *l, unsigned d)
{
    for (unsigned i = 0; i < (unsigned)l->nop + l->nred; i++) {
        cc_i64 *s = loop_stride(l, i);
        memmove(s + d, s + d + 1, (l->ndim - 1u - d) * sizeof(*s));
    }
    memmove(l->dim + d, l->dim + d + 1, (l->ndim - 1u - d) * sizeof(*l->dim));
    l->ndim--;
    l->nkeep -= d < l->nkeep;
}

/* Merge axis d + 1 into axis d where every operand allows it. */
static void
loop_merge(RtLoop *l)
{
    for (unsigned d = l->ndim; d-- > 0;) {
        if (l->dim[d] == 1) {
            loop_drop(l, d);
        }
    }
    for (unsigned d = l->ndim; d-- > 1;) {
        bool ok = d != l->nkeep;
        for (unsigned i = 0; ok && i < (unsigned)l->nop + l->nred; i++) {
            const cc_i64 *s = loop_stride(l, i);
            ok = s[d - 1] == s[d] * l->dim[d];
        }
        if (ok) {
            for (unsigned i = 0; i < (unsigned)l->nop + l->nred; i++) {
                loop_stride(l, i)[d - 1] = loop_stride(l, i)[d];
            }
            l->dim[d - 1] *= l->dim[d];
            loop_drop(l, d);
        }
    }
}

static cc_i64
magnitude(cc_i64 x)
{
    return x < 0 ? -x : x;
}

/* Sort the axes [lo, hi) so that the operand moves least along the last one. */
static void
loop_sort(RtLoop *l, unsigned lo, unsigned hi, const RtOperand *lead)
{
    for (unsigned a = lo; a < hi; a++) {
        for (unsigned b = hi - 1; b > a; b--) {
            if (magnitude(lead->stride[b - 1]) < magnitude(lead->stride[b])) {
                for (unsigned i = 0; i < (unsigned)l->nop + l->nred; i++) {
                    cc_i64 *s = loop_stride(l, i), t = s[b];
                    s[b] = s[b - 1];
                    s[b - 1] = t;
                }
                cc_i64 t = l->dim[b];
                l->dim[b] = l->dim[b - 1];
                l->dim[b - 1] = t;
            }
        }
    }
}

/* The operand that moves along most axes; outputs of an elementwise loop move along all. */
static const RtOperand *
loop_lead(const RtLoop *l)
{
    const RtOperand *lead = NULL;
    unsigned most = 0;

    for (unsigned k = 0; k < l->nop; k++) {
        unsigned moves = 0;
        for (unsigned d = 0; d < l->ndim; d++) {
            moves += l->op[k].stride[d] != 0;
        }
        if (l->op[k].data != NULL && (moves > most || (moves == most && lead && l->op[k].out))) {
            lead = &l->op[k];
            most = moves;
        }
    }
    return lead;
}

static void
loop_choose(RtLoop *l)
{
    const RtOperand *lead = loop_lead(l);
    bool arg = false;

    for (unsigned i = 0; i < l->nred; i++) {
        arg |= red_is_arg(&l->red[i]);
    }
    if (lead != NULL) {
        loop_sort(l, 0, l->nkeep, lead);
        if (!arg) {                     /* places count in the program's order */
            loop_sort(l, l->nkeep, l->ndim, lead);
        }
    }
    loop_merge(l);
    l->total_keep = l->total_red = 1;
    for (unsigned d = 0; d < l->ndim; d++) {
        *(d < l->nkeep ? &l->total_keep : &l->total_red) *= l->dim[d];
    }
    l->mode = LOOP_EACH;
    l->lo = 0;
    if (l->nred > 0) {
        bool inner = lead == NULL || l->nkeep == 0 || l->nkeep == l->ndim
            || lead->stride[l->nkeep - 1] == 0
            || (lead->stride[l->ndim - 1] != 0
                && magnitude(lead->stride[l->ndim - 1]) < magnitude(lead->stride[l->nkeep - 1]));
        bool thin = l->total_red < 2 * RT_SUM_LANES && l->total_keep >= 64;
        bool wide = l->total_keep >= 16 || (l->total_keep > 1 && l->total_red <= FOLD_ROWS);
        l->mode = !arg && wide && (thin || !inner) ? LOOP_COLUMNS : LOOP_ROWS;
        l->lanes = l->mode == LOOP_COLUMNS && inner && l->total_red >= RT_SUM_LANES;
        return;
    }
    if (l->ndim > 1 && l->dim[l->ndim - 1] >= 64) {
        for (unsigned k = 0; k < l->nop; k++) {
            if (!loop_linear(l, &l->op[k], 0, l->ndim) && !loop_still(&l->op[k], 0, l->ndim)) {
                l->lo = (uint8_t)(l->ndim - 1);
            }
        }
    }
}

/* Sums over no elements are 0, products 1, ALL is true. (MAX and ARG over none: bind's fault.) */
static void
loop_empty(const RtLoop *l)
{
    for (unsigned i = 0; i < l->nred; i++) {
        const RtLoopRed *r = &l->red[i];
        char one[8] = {0};
        if (r->red == RT_RED_PROD && (r->type == CC_VT_f64 || r->type == CC_VT_f32)) {
            double d = 1;
            float f = 1;
            memcpy(one, r->type == CC_VT_f64 ? (void *)&d : (void *)&f, r->size);
        } else {
            one[0] = r->red == RT_RED_PROD || r->red == RT_RED_ALL;
        }
        for (cc_i64 k = 0; k < l->total_keep; k++) {
            rt_scatter(r->out, one, r->size, l->nkeep, l->dim, r->stride, k, 1);
        }
    }
}

void
rt_loop_plan(RtLoop *l, CcPhase *phase, uint32_t *nphase, cc_i64 *partial)
{
    cc_i64 body = loop_body_scratch(l);

    *nphase = 0;
    *partial = 0;
    loop_choose(l);
    l->nsuper = 1;
    if (l->total_keep == 0 || l->total_red == 0) {
        if (l->total_keep > 0) {
            loop_empty(l);
        }
        return;
    }
    double work = (double)l->total_keep * (double)l->total_red * l->cost;
    if (l->mode == LOOP_EACH) {
        phase[(*nphase)++] = (CcPhase){loop_each, l->total_keep, 1024, body, work};
    } else if (l->mode == LOOP_ROWS) {
        cc_i64 grain = l->total_red < 4096 ? 4096 / l->total_red : 1;
        l->nsuper = rows_parts(l->total_red);
        phase[(*nphase)++] =
            (CcPhase){loop_rows, l->total_keep * l->nsuper, grain, body, work};
        if (l->nsuper > 1) {
            *partial = l->total_keep * l->nsuper * l->nred * RESULT_BYTES;
            phase[(*nphase)++] = (CcPhase){loop_rows_join, l->total_keep, 1, 0,
                                           (double)(l->total_keep * l->nsuper) * 10};
        }
    } else {
        cc_i64 super = (cc_i64)SUPER_BLOCKS * FOLD_ROWS, chunks = columns_chunks(l);
        l->nsuper = (l->total_red + super - 1) / super;
        cc_i64 trees = l->nred * (columns_levels(l) + 1) * CC_VREG_BYTES;
        phase[(*nphase)++] =
            (CcPhase){loop_columns, chunks * l->nsuper, 1, body + trees, work};
        if (l->nsuper > 1) {
            *partial = chunks * l->nsuper * l->nred * CC_VREG_BYTES;
            phase[(*nphase)++] = (CcPhase){loop_columns_join, chunks, 1, trees,
                                           (double)(l->total_keep * l->nsuper)};
        }
    }
}
