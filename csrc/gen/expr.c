/* gen/expr.c - one instruction of a vector program as C.
 *
 * A value computed once per call is u<i>, one vector. A value of the block is x<i>_<k>, k < the
 * number of vectors that a block of its type has: the narrowest type in use has one. */
#include "gen.h"

static unsigned
expr_vectors(const CcVProg *p, unsigned type)
{
    return cc_vtype_size[type] / p->min_size;
}

static void
expr_ref(CcBuf *out, const bool *hoist, uint16_t v, unsigned k)
{
    if (hoist[v]) {
        cc_buf_printf(out, "u%u", v);
    } else {
        cc_buf_printf(out, "x%u_%u", v, k);
    }
}

static void
expr_call(CcBuf *out, const bool *hoist, const CcVIns *in, unsigned k)
{
    const CcVOpInfo *info = &cc_vop_info[in->op];

    cc_buf_printf(out, "vop_%s_%s(", info->name, cc_vtype_name[in->in]);
    for (unsigned a = 0; a < info->n; a++) {
        cc_buf_puts(out, a > 0 ? ", " : "");
        expr_ref(out, hoist, in->arg[a], k);
    }
    cc_buf_puts(out, info->fault ? ", &fault);\n" : ");\n");
}

/* Bits in every lane, through the unsigned type of the same width. */
static void
expr_bits(CcBuf *out, const CcVIns *in)
{
    unsigned size = cc_vtype_size[in->type];
    uint64_t bits = size == 8 ? in->bits : in->bits & (((uint64_t)1 << (8 * size)) - 1);

    cc_buf_printf(out, "(v_%s)vop_splat_u%u(0x%llxu)", cc_vtype_name[in->type], 8 * size,
                  (unsigned long long)bits);
}

static void
expr_scalar(CcBuf *out, const CcVIns *in)
{
    const char *type = cc_vtype_name[in->type];

    if (in->type >= CC_VT_m64) {
        cc_buf_printf(out, "vop_splat_%s(b->scalar[%u].i != 0 ? -1 : 0)", type, in->slot);
    } else {
        cc_buf_printf(out, "vop_splat_%s(b->scalar[%u].%s)", type, in->slot,
                      in->type == CC_VT_f64 ? "d" : "i");
    }
}

void
gen_expr_once(CcBuf *out, const CcVProg *p, const bool *hoist, uint32_t i)
{
    const CcVIns *in = &p->ins[i];
    const char *type = cc_vtype_name[in->type];

    if (in->op == CC_V_CVT) {           /* less than a vector, perhaps: spread it */
        cc_buf_printf(out, "    char w%u[8 * CC_VB];\n    vop_cvt_%s_%s(w%u, &u%u);\n", i,
                      cc_vtype_name[in->in], type, i, in->arg[0]);
        cc_buf_printf(out, "    v_%s u%u = vop_splat_%s(*(const y_%s *)w%u);\n", type, i, type,
                      type, i);
        return;
    }
    cc_buf_printf(out, "    v_%s u%u = ", type, i);
    switch (in->op) {
    case CC_V_CONST:
        expr_bits(out, in);
        break;
    case CC_V_SCALAR:
        expr_scalar(out, in);
        break;
    case CC_V_LOAD:
        cc_buf_printf(out, "vop_splat_%s(*(const y_%s *)p%u)", type, type, in->slot);
        break;
    case CC_V_LOADM:
        cc_buf_printf(out, "vop_splat_%s(*p%u != 0 ? -1 : 0)", type, in->slot);
        break;
    default:
        expr_call(out, hoist, in, 0);
        return;
    }
    cc_buf_puts(out, ";\n");
}

/* Vector k of the wider type goes with a part of a vector of the narrower one. */
static void
expr_cvt(CcBuf *out, const CcVProg *p, const CcVIns *in, uint32_t i)
{
    const char *from = cc_vtype_name[in->in], *to = cc_vtype_name[in->type];
    unsigned sf = cc_vtype_size[in->in], st = cc_vtype_size[in->type];
    unsigned wide = sf > st ? sf : st, ratio = wide / (sf < st ? sf : st);

    for (unsigned k = 0; k < expr_vectors(p, in->type); k++) {
        cc_buf_printf(out, "            v_%s x%u_%u;\n", to, i, k);
    }
    for (unsigned k = 0; k < wide / p->min_size; k++) {
        unsigned part = k / ratio, at = k % ratio;
        cc_buf_printf(out, "            vop_cvt_%s_%s((char *)&x%u_%u + %u * CC_VB / %u, ", from,
                      to, i, st < sf ? part : k, st < sf ? at : 0, ratio);
        cc_buf_printf(out, "(const char *)&x%u_%u + %u * CC_VB / %u);\n", in->arg[0],
                      st < sf ? k : part, st < sf ? 0 : at, ratio);
    }
}

static void
expr_store(CcBuf *out, const CcVProg *p, const bool *hoist, const CcVIns *in)
{
    unsigned size = cc_vtype_size[in->type];

    for (unsigned k = 0; k < expr_vectors(p, in->type); k++) {
        if (in->op == CC_V_STOREM) {
            cc_buf_printf(out, "            vop_storem_%s(p%u + i + %u * CC_VB / %u, &",
                          cc_vtype_name[in->type], in->slot, k, size);
            expr_ref(out, hoist, in->arg[0], k);
            cc_buf_puts(out, ");\n");
        } else {
            cc_buf_printf(out, "            *(x_%s *)(p%u + i * %u + %u * CC_VB) = ",
                          cc_vtype_name[in->type], in->slot, size, k);
            expr_ref(out, hoist, in->arg[0], k);
            cc_buf_puts(out, ";\n");
        }
    }
}

void
gen_expr_block(CcBuf *out, const CcVProg *p, const bool *hoist, uint32_t i)
{
    const CcVIns *in = &p->ins[i];
    const char *type = cc_vtype_name[in->type];

    if (in->op == CC_V_STORE || in->op == CC_V_STOREM) {
        expr_store(out, p, hoist, in);
        return;
    }
    if (in->op == CC_V_CVT) {
        expr_cvt(out, p, in, i);
        return;
    }
    for (unsigned k = 0; k < expr_vectors(p, in->type); k++) {
        if (in->op == CC_V_LOADM) {
            cc_buf_printf(out, "            v_%s x%u_%u;\n", type, i, k);
            cc_buf_printf(out, "            vop_loadm_%s(&x%u_%u, p%u + i + %u * CC_VB / %u);\n",
                          type, i, k, in->slot, k, cc_vtype_size[in->type]);
            continue;
        }
        cc_buf_printf(out, "            v_%s x%u_%u = ", type, i, k);
        if (in->op == CC_V_LOAD) {
            cc_buf_printf(out, "*(const x_%s *)(p%u + i * %u + %u * CC_VB);\n", type, in->slot,
                          cc_vtype_size[in->type], k);
        } else {
            expr_call(out, hoist, in, k);
        }
    }
}
