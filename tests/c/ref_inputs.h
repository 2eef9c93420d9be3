/* tests/c/ref_inputs.h - seeded inputs for a graph's parameters. */
#ifndef CC_REF_INPUTS_H
#define CC_REF_INPUTS_H

#include "ref_eval.h"

static inline uint64_t
ref_random(uint64_t *state)             /* xorshift64*; state is never 0 */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static inline double
ref_uniform(uint64_t *state, double lo, double hi)
{
    return lo + (hi - lo) * ((double)(ref_random(state) >> 11) * 0x1p-53);
}

/* One array per parameter: floats uniform in lo..hi, integers in ilo..ihi, bools either. Symbol k
 * has the value k + 1, also where a scalar binds it. */
static inline RefArray *
ref_inputs(const CcGraph *g, uint64_t *state, double lo, double hi, int64_t ilo, int64_t ihi)
{
    RefArray *in = calloc(g->nparam + 1u, sizeof(*in));
    int64_t sym[CC_MAX_SYM];

    for (int64_t k = 0; k < CC_MAX_SYM; k++) {
        sym[k] = k + 1;
    }
    for (uint32_t k = 0; k < g->nparam; k++) {
        CcRef r = g->param[k].node;
        in[k].dt = (CcDtype)g->node[r].dtype;
        in[k].ndim = g->node[r].ndim;
        for (uint32_t i = 0; i < in[k].ndim; i++) {
            in[k].dim[i] = cc_dim_eval(g, cc_dim_canon(g, cc_shape(g, r)[i]), sym);
        }
        ref_alloc(&in[k]);
        for (int64_t i = 0; i < in[k].n; i++) {
            if (cc_dtype_is_float(in[k].dt)) {
                ref_set(&in[k], i, ref_uniform(state, lo, hi));
            }
            else {
                int64_t span = ihi - ilo + 1;
                int64_t v = ilo + (int64_t)(ref_random(state) >> 33) % span;
                in[k].e[i] = cc_const_from_i64(in[k].dt, in[k].dt == CC_DTYPE_BOOL ? v & 1 : v);
            }
        }
        if (g->param[k].sym != 0) {
            in[k].e[0] = (uint64_t)sym[g->param[k].sym];
        }
    }
    return in;
}

static inline void
ref_inputs_free(const CcGraph *g, RefArray *in)
{
    for (uint32_t k = 0; k < g->nparam; k++) {
        free(in[k].e);
    }
    free(in);
}

#endif
