#include "vprog.h"

#include "../base/vec.h"

#include <string.h>

const CcVOpInfo cc_vop_info[CC_VOP__COUNT] = {
#define RES_T false
#define RES_M true
#define FLT__ false
#define FLT_F true
#define VOP(name, n, res, set, flt) [CC_VOP_##name] = {#name, n, RES_##res, FLT_##flt},
#include "interp.def"
#undef VOP
};

const char *const cc_vtype_name[CC_VT__COUNT] = {
#define F(t) [CC_VT_##t] = #t,
    CC_VTYPES(F)
#undef F
};

const uint8_t cc_vtype_size[CC_VT__COUNT] = {
    [CC_VT_f64] = 8, [CC_VT_f32] = 4,
    [CC_VT_i64] = 8, [CC_VT_i32] = 4, [CC_VT_i16] = 2, [CC_VT_i8] = 1,
    [CC_VT_u64] = 8, [CC_VT_u32] = 4, [CC_VT_u16] = 2, [CC_VT_u8] = 1,
    [CC_VT_m64] = 8, [CC_VT_m32] = 4, [CC_VT_m16] = 2, [CC_VT_m8] = 1,
};

void
rt_vprog_init(CcVProg *p)
{
    memset(p, 0, sizeof(*p));
}

void
rt_vprog_fini(CcVProg *p)
{
    cc_free(p->ins);
    rt_vprog_init(p);
}

uint16_t
rt_vprog_push(CcVProg *p, CcVIns ins, CcStatus *st)
{
    if (p->len >= CC_VPROG_MAX_INS) {
        cc_fail(st, CC_REASON_NO_LOWERING, "a fused loop of more than %d steps", CC_VPROG_MAX_INS);
        return CC_V_NONE;
    }
    if (!CC_GROW(p->ins, p->len, p->cap, 1)) {
        cc_fail(st, CC_REASON_NO_MEMORY, "a fused loop of %u steps", p->len);
        return CC_V_NONE;
    }
    p->ins[p->len] = ins;
    return (uint16_t)p->len++;
}

/* True when the result is kept in a chunk register: neither memory itself nor one vector. */
static bool
vprog_in_chunk(const CcVIns *in)
{
    return !in->uniform && in->op != CC_V_LOAD && in->op != CC_V_STORE && in->op != CC_V_STOREM;
}

/* Linear scan. An instruction may write over an operand that dies in it when both have the same
 * width; conversions and loads of bools move lanes, so they may not. */
bool
rt_vprog_finish(CcVProg *p, CcStatus *st)
{
    uint16_t free_reg[CC_VPROG_MAX_INS], nfree = 0;
    uint16_t *last = cc_calloc(p->len, sizeof(*last));

    if (last == NULL) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "a fused loop of %u steps", p->len);
    }
    p->min_size = 8;
    for (uint32_t i = 0; i < p->len; i++) {
        const CcVIns *in = &p->ins[i];
        for (int k = 0; k < 3; k++) {
            if (in->arg[k] != CC_V_NONE) {
                last[in->arg[k]] = (uint16_t)i;
            }
        }
        if (cc_vtype_size[in->type] < p->min_size) {
            p->min_size = cc_vtype_size[in->type];
        }
    }
    p->nreg = p->nuni = 0;
    for (uint32_t i = 0; i < p->len; i++) {
        CcVIns *in = &p->ins[i];
        bool moves = in->op == CC_V_CVT || in->op == CC_V_LOADM;
        uint16_t dying = 0, freed[3];
        for (int k = 0; k < 3; k++) {
            uint16_t a = in->arg[k];
            bool again = k > 0 && (a == in->arg[0] || (k == 2 && a == in->arg[1]));
            if (a != CC_V_NONE && !again && last[a] == i && vprog_in_chunk(&p->ins[a])) {
                freed[dying++] = p->ins[a].reg;
            }
        }
        for (uint16_t k = 0; k < dying && !moves; k++) {
            free_reg[nfree++] = freed[k];
        }
        if (in->op == CC_V_LOAD || in->op == CC_V_LOADM) {
            in->bits = p->nuni++;
        }
        if (vprog_in_chunk(in)) {
            in->reg = nfree > 0 ? free_reg[--nfree] : p->nreg++;
            if (last[i] == 0) {
                free_reg[nfree++] = in->reg;            /* nobody reads it */
            }
        } else if (in->uniform) {
            in->reg = p->nuni++;
        }
        for (uint16_t k = 0; k < dying && moves; k++) {
            free_reg[nfree++] = freed[k];
        }
    }
    cc_free(last);
    return true;
}

cc_i64
rt_vprog_scratch(const CcVProg *p)
{
    cc_i64 values = ((cc_i64)p->len * 16 + 63) & ~(cc_i64)63;

    return values + (cc_i64)p->nuni * 64 + (cc_i64)p->nmem * CC_VTAIL_BYTES
         + (cc_i64)p->nreg * CC_VREG_BYTES;
}
