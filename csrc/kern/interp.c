/* isa: multi */
/* kern/interp.c - run a vector program without a compiler: each instruction is one tight loop over
 * a chunk of elements that stays in the L1 cache.
 *
 * Imitates what gen/ emits, with the same vop_ functions in the same order, so the bits are equal.
 * Loads and stores of numbers are no copies: instructions read the operand's memory itself. The
 * elements of the last, incomplete vector go through padded buffers (kernel.h, CcBodyFn). */
#include "visa.h"
#include "vop.h"

#include <string.h>

typedef struct {
    char *p;
    cc_i64 step;                        /* bytes to the next vector; 0 = always this one */
} InterpVal;

typedef void (*InterpLoop)(char *o, const InterpVal *a, const InterpVal *b, const InterpVal *c,
                           cc_i64 n, cc_u32 *fault);

/* -- One loop per instruction and type ------------------------------------------------------ */

#define AT(val, t) (*(const x_##t *)(val))
#define LOOP_HEAD(name, t)                                                                        \
    static void loop_##name##_##t(char *o, const InterpVal *a, const InterpVal *b,                \
                                  const InterpVal *c, cc_i64 n, cc_u32 *fault)
#define LOOP_1(name, t, rt, mt, FLT)                                                              \
    LOOP_HEAD(name, t)                                                                            \
    {                                                                                             \
        const char *pa = a->p;                                                                    \
        cc_i64 sa = a->step;                                                                      \
        (void)b, (void)c, (void)fault;                                                            \
        for (cc_i64 i = 0; i < n; i++, pa += sa, o += CC_VB) {                                    \
            *(x_##rt *)o = vop_##name##_##t(AT(pa, t) FLT);                                       \
        }                                                                                         \
    }
#define LOOP_2(name, t, rt, mt, FLT)                                                              \
    LOOP_HEAD(name, t)                                                                            \
    {                                                                                             \
        const char *pa = a->p, *pb = b->p;                                                        \
        cc_i64 sa = a->step, sb = b->step;                                                        \
        (void)c, (void)fault;                                                                     \
        for (cc_i64 i = 0; i < n; i++, pa += sa, pb += sb, o += CC_VB) {                          \
            *(x_##rt *)o = vop_##name##_##t(AT(pa, t), AT(pb, t) FLT);                            \
        }                                                                                         \
    }
#define LOOP_3(name, t, rt, mt, FLT)                                                              \
    LOOP_HEAD(name, t)                                                                            \
    {                                                                                             \
        const char *pa = a->p, *pb = b->p, *pc = c->p;                                            \
        cc_i64 sa = a->step, sb = b->step, sc = c->step;                                          \
        (void)fault;                                                                              \
        for (cc_i64 i = 0; i < n; i++, pa += sa, pb += sb, pc += sc, o += CC_VB) {                \
            *(x_##rt *)o = vop_##name##_##t(AT(pa, mt), AT(pb, t), AT(pc, t) FLT);                \
        }                                                                                         \
    }

/* interp.def gives (name, operands, result, set, fault): for each type of the set, one loop. */
#define FLT__
#define FLT_F , fault
#define RES_T(t, m) t
#define RES_M(t, m) m
#define MAKE(n, name, t, rt, m, flt) LOOP_##n(name, t, rt, m, FLT_##flt)
#define MAKE_(n, name, t, rt, m, flt) MAKE(n, name, t, rt, m, flt)
#define EACH_FLT(X, ...) X(f64, m64, __VA_ARGS__) X(f32, m32, __VA_ARGS__)
#define EACH_INT(X, ...)                                                                          \
    X(i64, m64, __VA_ARGS__) X(i32, m32, __VA_ARGS__) X(i16, m16, __VA_ARGS__)                    \
    X(i8, m8, __VA_ARGS__) X(u64, m64, __VA_ARGS__) X(u32, m32, __VA_ARGS__)                      \
    X(u16, m16, __VA_ARGS__) X(u8, m8, __VA_ARGS__)
#define EACH_MSK(X, ...)                                                                          \
    X(m64, m64, __VA_ARGS__) X(m32, m32, __VA_ARGS__) X(m16, m16, __VA_ARGS__)                    \
    X(m8, m8, __VA_ARGS__)
#define EACH_ALL(X, ...) EACH_FLT(X, __VA_ARGS__) EACH_INT(X, __VA_ARGS__)

#define LOOP_ROW(t, m, name, n, res, flt) MAKE_(n, name, t, RES_##res(t, m), m, flt)
#define VOP(name, n, res, set, flt) EACH_##set(LOOP_ROW, name, n, res, flt)
#include "../rt/interp.def"
#undef VOP

static const InterpLoop interp_loop[CC_VOP__COUNT][CC_VT__COUNT] = {
#define TABLE_ROW(t, m, name) [CC_VOP_##name][CC_VT_##t] = loop_##name##_##t,
#define VOP(name, n, res, set, flt) EACH_##set(TABLE_ROW, name)
#include "../rt/interp.def"
#undef VOP
};

/* -- Conversions: n granules ------------------------------------------------------------------- */

typedef void (*InterpMove)(char *o, const char *a, cc_i64 n);

#define MOVE_LOOP(name, call, out_bytes, in_bytes)                                                \
    static void name(char *o, const char *a, cc_i64 n)                                            \
    {                                                                                             \
        for (cc_i64 i = 0; i < n; i++, o += (out_bytes), a += (in_bytes)) {                       \
            call(o, a);                                                                           \
        }                                                                                         \
    }
#define CVT_LOOP(f, t)                                                                            \
    MOVE_LOOP(move_##f##_##t, vop_cvt_##f##_##t, VOP_LANES(f, t) * VOP_SIZE_##t,                  \
              VOP_LANES(f, t) * VOP_SIZE_##f)
VOP_CONVERSIONS(CVT_LOOP)
#define BOOL_LOOPS(t, T, m, u, s)                                                                 \
    MOVE_LOOP(loadm_##t, vop_loadm_##t, CC_VB, CC_VB / s)                                         \
    MOVE_LOOP(storem_##t, vop_storem_##t, CC_VB / s, CC_VB)
VOP_SET_MSK(BOOL_LOOPS)

static const InterpMove interp_cvt[CC_VT__COUNT][CC_VT__COUNT] = {
#define CVT_ROW(f, t) [CC_VT_##f][CC_VT_##t] = move_##f##_##t,
    VOP_CONVERSIONS(CVT_ROW)
};

static const InterpMove interp_loadm[CC_VT__COUNT] = {
#define LOADM_ROW(t, T, m, u, s) [CC_VT_##t] = loadm_##t,
    VOP_SET_MSK(LOADM_ROW)
};

static const InterpMove interp_storem[CC_VT__COUNT] = {
#define STOREM_ROW(t, T, m, u, s) [CC_VT_##t] = storem_##t,
    VOP_SET_MSK(STOREM_ROW)
};

/* -- Running ----------------------------------------------------------------------------------- */

typedef struct {
    const CcVProg *prog;
    CcBody *body;
    InterpVal *val;                     /* by instruction */
    char *uni, *reg, *tail;
} Interp;

static void
interp_fill(char *o, const void *element, unsigned size)
{
    for (unsigned at = 0; at < CC_VB; at += size) {
        memcpy(o + at, element, size);
    }
}

/* A scalar comes as i64, f64 or a bool. */
static void
interp_scalar(char *o, const CcVIns *in, const CcScalar *s)
{
    cc_i64 bits = in->type >= CC_VT_m64 ? -(cc_i64)(s->i != 0) : s->i;

    interp_fill(o, &bits, cc_vtype_size[in->type]);
}

/* One element of memory in every lane. */
static void
interp_splat(char *o, const CcVIns *in, const char *element)
{
    if (in->op == CC_V_LOADM) {
        cc_i64 bits = -(cc_i64)(*element != 0);
        interp_fill(o, &bits, cc_vtype_size[in->type]);
    } else {
        interp_fill(o, element, cc_vtype_size[in->type]);
    }
}

/* Compute instruction i for m lanes (one vector when it is uniform) into `o`. */
static void
interp_compute(Interp *it, uint32_t i, char *o, cc_i64 m)
{
    const CcVIns *in = &it->prog->ins[i];
    const InterpVal *a = in->arg[0] != CC_V_NONE ? &it->val[in->arg[0]] : NULL;
    const InterpVal *b = in->arg[1] != CC_V_NONE ? &it->val[in->arg[1]] : NULL;
    const InterpVal *c = in->arg[2] != CC_V_NONE ? &it->val[in->arg[2]] : NULL;
    unsigned size = cc_vtype_size[in->type], from = cc_vtype_size[in->in];

    if (in->op == CC_V_CVT) {
        unsigned lanes = CC_VB / (size > from ? size : from);
        if (in->uniform || a->step == 0) {
            char one[CC_VB * 8];        /* a granule may be less than a vector: spread it */
            interp_cvt[in->in][in->type](one, a->p, 1);
            interp_fill(o, one, size);
            for (cc_i64 k = 1; !in->uniform && k < m * size / CC_VB; k++) {
                memcpy(o + k * CC_VB, o, CC_VB);
            }
        } else {
            interp_cvt[in->in][in->type](o, a->p, m / lanes);
        }
    } else {
        cc_i64 n = in->uniform ? 1 : m * from / CC_VB;
        interp_loop[in->op][in->in](o, a, b, c, n, &it->body->fault);
    }
}

/* What does not change in a call: constants, scalars, single elements, and all made from them. */
static void
interp_uniform(Interp *it)
{
    const CcVProg *p = it->prog;
    const CcBody *b = it->body;

    for (uint32_t i = 0; i < p->len; i++) {
        const CcVIns *in = &p->ins[i];
        char *o = it->uni + (size_t)in->reg * CC_VB;
        bool load = in->op == CC_V_LOAD || in->op == CC_V_LOADM;
        if (load && (b->bcast >> in->slot & 1)) {
            o = it->uni + (size_t)in->bits * CC_VB;
            interp_splat(o, in, b->ptr[in->slot]);
        } else if (!in->uniform || in->op == CC_V_STORE || in->op == CC_V_STOREM) {
            continue;
        } else if (in->op == CC_V_CONST) {
            interp_fill(o, &in->bits, cc_vtype_size[in->type]);
        } else if (in->op == CC_V_SCALAR) {
            interp_scalar(o, in, &b->scalar[in->slot]);
        } else {
            interp_compute(it, i, o, 0);
        }
        it->val[i] = (InterpVal){o, 0};
    }
}

static void
interp_store(const CcVIns *in, const InterpVal *a, char *o, cc_i64 m)
{
    unsigned size = cc_vtype_size[in->type];
    cc_i64 n = m * size / CC_VB;
    const char *p = a->p;

    if (in->op == CC_V_STOREM && a->step != 0) {
        interp_storem[in->type](o, p, n);
        return;
    }
    if (in->op == CC_V_STOREM) {
        memset(o, *p & 1, (size_t)m);
        return;
    }
    for (cc_i64 k = 0; k < n; k++, p += a->step, o += CC_VB) {
        memcpy(o, p, CC_VB);
    }
}

/* m lanes, a multiple of the lanes of the narrowest type; mem[k] is operand k's memory. */
static void
interp_run(Interp *it, char *const *mem, cc_i64 m)
{
    const CcVProg *p = it->prog;
    const CcVIns *end = p->ins + p->len - 1;
    bool direct = end->op == CC_V_STORE && end->arg[0] == p->len - 2;

    for (uint32_t i = 0; i < p->len; i++) {
        const CcVIns *in = &p->ins[i];
        char *o = it->reg + (size_t)in->reg * CC_VREG_BYTES;
        if (in->op == CC_V_STORE || in->op == CC_V_STOREM) {
            if (it->val[in->arg[0]].p != mem[in->slot] || in->op == CC_V_STOREM) {
                interp_store(in, &it->val[in->arg[0]], mem[in->slot], m);
            }
            continue;
        }
        if (in->uniform || ((in->op == CC_V_LOAD || in->op == CC_V_LOADM) &&
                            (it->body->bcast >> in->slot & 1))) {
            continue;
        }
        if (in->op == CC_V_LOAD) {
            it->val[i] = (InterpVal){mem[in->slot], CC_VB};
            continue;
        }
        if (in->op == CC_V_LOADM) {
            interp_loadm[in->type](o, mem[in->slot], m * cc_vtype_size[in->type] / CC_VB);
        } else {
            o = direct && i == p->len - 2 ? mem[end->slot] : o;
            interp_compute(it, i, o, m);
        }
        it->val[i] = (InterpVal){o, CC_VB};
    }
}

/* The last r lanes, fewer than a vector of the narrowest type: through buffers of q lanes. */
static void
interp_tail(Interp *it, char *const *mem, cc_i64 r, cc_i64 q)
{
    const CcVProg *p = it->prog;
    char *padded[CC_VPROG_MAX_MEM];

    for (unsigned k = 0; k < p->nmem; k++) {
        size_t size = p->mem[k].size;
        padded[k] = it->tail + (size_t)k * CC_VTAIL_BYTES;
        if (!p->mem[k].out && !(it->body->bcast >> k & 1)) {
            memcpy(padded[k], mem[k], (size_t)r * size);
            for (cc_i64 i = r; i < q; i++) {
                memcpy(padded[k] + i * (cc_i64)size, mem[k] + (r - 1) * (cc_i64)size, size);
            }
        }
    }
    interp_run(it, padded, q);
    for (unsigned k = 0; k < p->nmem; k++) {
        if (p->mem[k].out) {
            memcpy(mem[k], padded[k], (size_t)r * p->mem[k].size);
        }
    }
}

void
KERN_V_SYM(kern_interp)(CcBody *b, cc_i64 n)
{
    const CcVProg *p = b->self;
    cc_i64 q = CC_VB / p->min_size;
    char *at = b->scratch, *mem[CC_VPROG_MAX_MEM];
    Interp it = {.prog = p, .body = b};

    it.val = (InterpVal *)(void *)at;
    it.uni = at + ((p->len * sizeof(InterpVal) + 63) & ~(size_t)63);
    it.tail = it.uni + (size_t)p->nuni * 64;
    it.reg = it.tail + (size_t)p->nmem * CC_VTAIL_BYTES;
    interp_uniform(&it);
    for (cc_i64 i = 0; i < n; i += CC_VCHUNK) {
        cc_i64 m = n - i < CC_VCHUNK ? n - i : CC_VCHUNK, r = m % q;
        for (unsigned k = 0; k < p->nmem; k++) {
            mem[k] = b->ptr[k] + (b->bcast >> k & 1 ? 0 : i * p->mem[k].size);
        }
        if (m > r) {
            interp_run(&it, mem, m - r);
        }
        if (r > 0) {
            for (unsigned k = 0; k < p->nmem; k++) {
                mem[k] += b->bcast >> k & 1 ? 0 : (m - r) * p->mem[k].size;
            }
            interp_tail(&it, mem, r, q);
        }
    }
}
