/* kern/visa.h - the vector engine's symbols that exist once per ISA level.
 *
 * A file with "isa: multi" in its first line is compiled once per level with -DCC_ISA=base, v3 or
 * v4 and the matching -march; everything in it is static but what KERN_V_SYM() names. v3 and v4
 * give the same bits; base has no fused multiply-add and may differ in the last ones. */
#ifndef CC_KERN_VISA_H
#define CC_KERN_VISA_H

#include "../rt/reduce.h"
#include "../rt/vprog.h"

#define KERN_V_JOIN_(name, isa) name##_##isa
#define KERN_V_JOIN(name, isa) KERN_V_JOIN_(name, isa)
#ifdef CC_ISA
#define KERN_V_SYM(name) KERN_V_JOIN(name, CC_ISA)
#endif

void kern_interp_base(CcBody *b, cc_i64 n);
extern const RtReduceTable kern_reduce_base;
#if defined(CC_HAVE_ISA_V3)
void kern_interp_v3(CcBody *b, cc_i64 n);
extern const RtReduceTable kern_reduce_v3;
#endif
#if defined(CC_HAVE_ISA_V4)
void kern_interp_v4(CcBody *b, cc_i64 n);
extern const RtReduceTable kern_reduce_v4;
#endif

#endif
