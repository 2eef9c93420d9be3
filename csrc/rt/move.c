/* rt/move.c - kernels that move, scan or index elements. */
#include "view.h"

#include <string.h>

cc_i64
rt_view_count(const CcView *v)
{
    cc_i64 n = 1;

    for (unsigned d = 0; d < v->ndim; d++) {
        n *= v->dim[d];
    }
    return n;
}

bool
rt_view_packed(const CcView *v)
{
    cc_i64 step = v->size;

    for (unsigned d = v->ndim; d-- > 0;) {
        if (v->dim[d] != 1 && v->stride[d] != step) {
            return false;
        }
        step *= v->dim[d];
    }
    return !v->iota;
}

void
rt_view_pack(CcView *v)
{
    cc_i64 step = v->size;

    for (unsigned d = v->ndim; d-- > 0;) {
        v->stride[d] = step;
        step *= v->dim[d];
    }
}

/* -- Copies ---------------------------------------------------------------- */

static void
copy_range(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const RtCopy *c = args;
    const CcView *o = &c->out, *i = &c->in;
    bool in_packed = rt_view_packed(i), out_packed = rt_view_packed(o);

    if (!c->fill && out_packed) {
        rt_gather(o->data + begin * o->size, i->data, o->size, i->ndim, i->dim, i->stride, begin,
                  end - begin);
        return;
    }
    if (!c->fill && in_packed) {
        rt_scatter(o->data, i->data + begin * o->size, o->size, o->ndim, o->dim, o->stride, begin,
                   end - begin);
        return;
    }
    for (cc_i64 n; begin < end; begin += n) {
        n = end - begin < CC_VCHUNK ? end - begin : CC_VCHUNK;
        if (c->fill) {
            cc_i64 zero = 0;
            rt_gather(scratch, i->data, o->size, 1, &n, &zero, 0, n);
        } else {
            rt_gather(scratch, i->data, o->size, i->ndim, i->dim, i->stride, begin, n);
        }
        rt_scatter(o->data, scratch, o->size, o->ndim, o->dim, o->stride, begin, n);
    }
}

bool
rt_copy_plan(RtCopy *c, CcPhase *phase)
{
    cc_i64 n = rt_view_count(&c->out);

    *phase = (CcPhase){copy_range, n, 4096, CC_VREG_BYTES, (double)n * 0.7};
    return n > 0;
}

/* -- Scans ----------------------------------------------------------------- */

#define SCAN_RUN(T, OP)                                                                           \
    do {                                                                                          \
        T acc = 0, x;                                                                             \
        for (cc_i64 k = 0; k < n; k++, p += sp, o += so) {                                        \
            memcpy(&x, p, sizeof(T));                                                             \
            acc = k == 0 ? x : (T)OP;                                                             \
            memcpy(o, &acc, sizeof(T));                                                           \
        }                                                                                         \
    } while (0)

/* Integers wrap; the sign of the type does not matter. */
static void
scan_line(const RtScan *s, char *o, cc_i64 so, const char *p, cc_i64 sp, cc_i64 n)
{
    switch (s->type) {
    case CC_VT_f64:
        if (s->product) {
            SCAN_RUN(double, (acc * x));
        } else {
            SCAN_RUN(double, (acc + x));
        }
        break;
    case CC_VT_f32:
        if (s->product) {
            SCAN_RUN(float, (acc * x));
        } else {
            SCAN_RUN(float, (acc + x));
        }
        break;
    default:
        switch (cc_vtype_size[s->type]) {
#define SCAN_INT(bytes, T)                                                                        \
        case bytes:                                                                               \
            if (s->product) {                                                                     \
                SCAN_RUN(T, ((cc_u64)acc * (cc_u64)x));                                           \
            } else {                                                                              \
                SCAN_RUN(T, ((cc_u64)acc + (cc_u64)x));                                           \
            }                                                                                     \
            break;
        SCAN_INT(8, cc_u64)
        SCAN_INT(4, cc_u32)
        SCAN_INT(2, cc_u16)
        SCAN_INT(1, cc_u8)
#undef SCAN_INT
        default:
            break;
        }
    }
}

/* One line per index of the other axes. */
static void
scan_range(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const RtScan *s = args;

    (void)scratch;
    for (cc_i64 line = begin; line < end; line++) {
        cc_i64 left = line, in = 0, out = 0;
        for (unsigned d = s->in.ndim; d-- > 0;) {
            if (d != s->axis) {
                cc_i64 i = left % s->in.dim[d];
                left /= s->in.dim[d];
                in += i * s->in.stride[d];
                out += i * s->out.stride[d];
            }
        }
        scan_line(s, s->out.data + out, s->out.stride[s->axis], s->in.data + in,
                  s->in.stride[s->axis], s->in.dim[s->axis]);
    }
}

bool
rt_scan_plan(RtScan *s, CcPhase *phase)
{
    cc_i64 n = rt_view_count(&s->in);

    if (n == 0) {
        return false;
    }
    cc_i64 axis = s->in.dim[s->axis];
    *phase = (CcPhase){scan_range, n / axis, axis < 4096 ? 4096 / axis : 1, 0, (double)n * 1.3};
    return true;
}

/* -- Indexing -------------------------------------------------------------- */

static cc_i64
index_offset(const CcView *v, unsigned lo, unsigned hi, cc_i64 flat)
{
    cc_i64 at = 0;

    for (unsigned d = hi; d-- > lo;) {
        at += flat % v->dim[d] * v->stride[d];
        flat /= v->dim[d];
    }
    return at;
}

static cc_i64
index_span(const CcView *v, unsigned lo, unsigned hi)
{
    cc_i64 n = 1;

    for (unsigned d = lo; d < hi; d++) {
        n *= v->dim[d];
    }
    return n;
}

static void
index_add(const RtIndex *x, char *o, cc_i64 so, const char *p, cc_i64 sp, cc_i64 n)
{
#define ADD_RUN(T, U)                                                                             \
    for (cc_i64 k = 0; k < n; k++, o += so, p += sp) {                                            \
        T a, b;                                                                                   \
        memcpy(&a, o, sizeof(T));                                                                 \
        memcpy(&b, p, sizeof(T));                                                                 \
        a = (T)((U)a + (U)b);                                                                     \
        memcpy(o, &a, sizeof(T));                                                                 \
    }
    if (x->type == CC_VT_f64) {
        ADD_RUN(double, double)
    } else if (x->type == CC_VT_f32) {
        ADD_RUN(float, float)
    } else if (x->out.size == 8) {
        ADD_RUN(cc_u64, cc_u64)
    } else if (x->out.size == 4) {
        ADD_RUN(cc_u32, cc_u64)
    } else if (x->out.size == 2) {
        ADD_RUN(cc_u16, cc_u64)
    } else {
        ADD_RUN(cc_u8, cc_u64)
    }
#undef ADD_RUN
}

/* n elements, `so` and `sp` bytes apart. */
static void
index_move(char *o, cc_i64 so, const char *p, cc_i64 sp, cc_i64 n, unsigned size)
{
#define MOVE_RUN(bytes)                                                                           \
    for (cc_i64 k = 0; k < n; k++, o += so, p += sp) {                                            \
        memcpy(o, p, bytes);                                                                      \
    }
    if (so == size && sp == size) {
        memcpy(o, p, (size_t)n * size);
    } else if (size == 8) {
        MOVE_RUN(8)
    } else if (size == 4) {
        MOVE_RUN(4)
    } else if (size == 2) {
        MOVE_RUN(2)
    } else {
        MOVE_RUN(1)
    }
#undef MOVE_RUN
}

/* The whole array has the axes [before][indexed axis][after], the small one (the result of GATHER,
 * the value of SCATTER) [before][axes of index][after]. A unit is one element of `before`. */
static void
index_unit(const RtIndex *x, cc_i64 unit, cc_u32 *fault)
{
    const CcView *whole = x->scatter ? &x->out : &x->base;
    const CcView *small = x->scatter ? &x->value : &x->out;
    unsigned a = x->axis, b = a + x->index.ndim;
    cc_i64 nindex = rt_view_count(&x->index), len = whole->dim[a];
    cc_i64 after = index_span(whole, a + 1, whole->ndim);
    cc_i64 wbase = index_offset(whole, 0, a, unit), sbase = index_offset(small, 0, a, unit);
    cc_i64 inner = whole->ndim > a + 1 ? whole->dim[whole->ndim - 1] : 1;
    cc_i64 ws = whole->ndim > a + 1 ? whole->stride[whole->ndim - 1] : 0;
    cc_i64 ss = small->ndim > b ? small->stride[small->ndim - 1] : 0;

    for (cc_i64 k = 0; k < nindex; k++) {
        cc_i64 at;
        memcpy(&at, x->index.data + index_offset(&x->index, 0, x->index.ndim, k), sizeof(at));
        at += at < 0 ? len : 0;
        if (at < 0 || at >= len) {
            *fault |= CC_FAULT_INDEX;
            continue;
        }
        for (cc_i64 j = 0; j < after; j += inner) {
            char *w = whole->data + wbase + at * whole->stride[a]
                    + index_offset(whole, a + 1, whole->ndim, j);
            char *s = small->data + sbase + index_offset(small, a, b, k)
                    + index_offset(small, b, small->ndim, j);
            if (x->add) {
                index_add(x, w, ws, s, ss, inner);
            } else if (x->scatter) {
                index_move(w, ws, s, ss, inner, x->out.size);
            } else {
                index_move(s, ss, w, ws, inner, x->out.size);
            }
        }
    }
}

static void
index_range(const void *args, cc_i64 begin, cc_i64 end, void *scratch)
{
    const RtIndex *x = args;
    cc_u32 fault = 0;

    (void)scratch;
    for (cc_i64 unit = begin; unit < end; unit++) {
        index_unit(x, unit, &fault);
    }
    cc_fault_or(x->fault, fault);
}

bool
rt_index_plan(RtIndex *x, CcPhase *phase)
{
    const CcView *whole = x->scatter ? &x->out : &x->base;
    const CcView *small = x->scatter ? &x->value : &x->out;
    cc_i64 units = index_span(whole, 0, x->axis), n = rt_view_count(small);

    *phase = (CcPhase){index_range, units, 1, 0, (double)n * 2.0};
    return n > 0;
}
