/* gen/lower.h - from a LOOP group to a vector program and the operands it reads and writes.
 *
 * The program is what both engines run: rt/ interprets it, gen/ prints it as C. */
#ifndef CC_GEN_LOWER_H
#define CC_GEN_LOWER_H

#include "../pass/fuse.h"
#include "../rt/vprog.h"

typedef struct {
    CcRef ref;                          /* what is read, or the value that is written */
    uint32_t buffer;                    /* outputs: where to; 0 = a buffer that is thrown away */
} GenOperand;

typedef struct {
    CcRef ref;                          /* the RED node */
    uint32_t buffer;
    uint8_t red;                        /* RtRed */
    uint8_t type;                       /* CcVType of the reduced elements in memory */
    uint8_t mem;                        /* operand that holds them */
} GenRed;

typedef struct {
    CcVProg prog;
    GenOperand operand[CC_VPROG_MAX_MEM];   /* prog.nmem */
    GenRed red[CC_FUSE_REDS];
    uint8_t nred;
    bool no_body;                       /* nothing to compute or store but the reductions */
    bool copies;                        /* loads and stores only: not worth compiling */
    cc_u64 mask_flat;                   /* operands that are one element everywhere */
    cc_u64 mask_row;                    /* and those that are along the inner (or reduced) axes */
    double cost;                        /* nanoseconds per element, about */
} GenLoop;

/* Scalars of a program are numbered by parameter (CcGraph.param). */
bool gen_lower(const CcGraph *g, const CcGroups *s, uint32_t group, GenLoop *out, CcStatus *st);
void gen_lower_fini(GenLoop *l);

/* The register type of numbers of this dtype; bool's is u8, its type in memory. */
CcVType gen_vtype(CcDtype dt);

#endif
