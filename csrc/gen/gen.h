/* gen/gen.h - C for the bodies of LOOP groups.
 *
 * The text follows from the programs alone, without names of files, addresses or times: it is the
 * key of the compile cache. It needs no header and no OpenMP. */
#ifndef CC_GEN_GEN_H
#define CC_GEN_GEN_H

#include "lower.h"

/* One function `void name(CcBody *b, cc_i64 n)`; operands of `mask` are single elements. */
void gen_loop(CcBuf *out, const char *name, const CcVProg *p, cc_u64 mask);

/* Statements of instruction i: once per call, before the loop. `hoist` says which are such. */
void gen_expr_once(CcBuf *out, const CcVProg *p, const bool *hoist, uint32_t i);

/* The same in the loop, for the vectors of one block. */
void gen_expr_block(CcBuf *out, const CcVProg *p, const bool *hoist, uint32_t i);

/* The texts of rt/kernel.h, kern/vmath.h and kern/vop.h as one. */
void gen_prelude(CcBuf *out);

/* A whole file: prelude, then for each loop cc_flat_<k> and, when the masks differ, cc_row_<k>.
 * False: NO_MEMORY. */
bool gen_unit(CcBuf *out, const GenLoop *const *loop, uint32_t n, CcStatus *st);

/* Does loop k have a cc_row_<k>? */
bool gen_has_row(const GenLoop *loop);

#endif
