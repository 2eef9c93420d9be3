/* gen/loop.c - a vector program as a C function: what does not change, the loop over blocks, and
 * the same loop once more over padded copies of the last elements. */
#include "gen.h"

/* Which values are the same in every lane of a call: uniform ones, operands of `mask`, and what is
 * made of such alone. (The interpreter computes the last kind in every lane: the same bits.) */
static void
loop_hoist(const CcVProg *p, cc_u64 mask, bool *hoist)
{
    for (uint32_t i = 0; i < p->len; i++) {
        const CcVIns *in = &p->ins[i];
        bool load = in->op == CC_V_LOAD || in->op == CC_V_LOADM;
        bool all = in->op != CC_V_STORE && in->op != CC_V_STOREM && !load;
        for (int k = 0; k < 3; k++) {
            all = all && (in->arg[k] == CC_V_NONE || hoist[in->arg[k]]);
        }
        hoist[i] = load ? mask >> in->slot & 1 : all;
    }
}

static bool
loop_vector(cc_u64 mask, unsigned k)
{
    return !(mask >> k & 1);
}

/* Second time round: inputs become padded copies, outputs go to buffers. */
static void
loop_tail(CcBuf *out, const CcVProg *p, cc_u64 mask)
{
    cc_buf_puts(out, "        if (rest == 0) {\n            break;\n        }\n"
                     "        if (padded) {\n");
    for (unsigned k = 0; k < p->nmem; k++) {
        if (p->mem[k].out) {
            cc_buf_printf(out, "            vop_unpad(b->ptr[%u] + (n - rest) * %u, ", k,
                          p->mem[k].size);
            cc_buf_printf(out, "t%u, rest, %u);\n", k, p->mem[k].size);
        }
    }
    cc_buf_puts(out, "            break;\n        }\n        padded = 1;\n");
    for (unsigned k = 0; k < p->nmem; k++) {
        if (!loop_vector(mask, k)) {
            continue;
        }
        if (!p->mem[k].out) {
            cc_buf_printf(out, "        vop_pad(t%u, p%u + (n - rest) * %u, rest, %u, lanes);\n", k,
                          k, p->mem[k].size, p->mem[k].size);
        }
        cc_buf_printf(out, "        p%u = t%u;\n", k, k);
    }
    cc_buf_puts(out, "        i = 0;\n        end = lanes;\n");
}

void
gen_loop(CcBuf *out, const char *name, const CcVProg *p, cc_u64 mask)
{
    bool hoist[CC_VPROG_MAX_INS];

    loop_hoist(p, mask, hoist);
    cc_buf_printf(out, "\nvoid\n%s(CcBody *b, cc_i64 n)\n{\n", name);
    cc_buf_printf(out, "    enum { lanes = CC_VB / %u };\n", p->min_size);
    cc_buf_puts(out, "    cc_i64 i = 0, rest = n % lanes, end = n - rest;\n"
                     "    cc_u32 fault = 0;\n    int padded = 0;\n");
    for (unsigned k = 0; k < p->nmem; k++) {
        cc_buf_printf(out, "    char *p%u = b->ptr[%u];\n", k, k);
        if (loop_vector(mask, k)) {
            cc_buf_printf(out, "    char t%u[lanes * %u] __attribute__((aligned(64)));\n", k,
                          p->mem[k].size);
        }
    }
    for (uint32_t i = 0; i < p->len; i++) {
        if (hoist[i]) {
            gen_expr_once(out, p, hoist, i);
        }
    }
    cc_buf_puts(out, "    for (;;) {\n        for (; i < end; i += lanes) {\n");
    for (uint32_t i = 0; i < p->len; i++) {
        if (!hoist[i]) {
            gen_expr_block(out, p, hoist, i);
        }
    }
    cc_buf_puts(out, "        }\n");
    loop_tail(out, p, mask);
    cc_buf_puts(out, "    }\n    b->fault |= fault;\n}\n");
}
