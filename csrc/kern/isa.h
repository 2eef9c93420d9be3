/* kern/isa.h - names of symbols that exist once per ISA level.
 *
 * A file with "isa: multi" in its first line is compiled once per level with -DCC_ISA=base, v3 or
 * v4 and the matching -march; everything in it is static but what KERN_SYM() names. The build says
 * CC_HAVE_ISA_V3 and CC_HAVE_ISA_V4 to every file where the compiler knows those levels. */
#ifndef CC_KERN_ISA_H
#define CC_KERN_ISA_H

#include "kern.h"

#define KERN_JOIN_(name, isa) name##_##isa
#define KERN_JOIN(name, isa) KERN_JOIN_(name, isa)
#ifdef CC_ISA
#define KERN_SYM(name) KERN_JOIN(name, CC_ISA)
#endif

extern const KernFloat kern_f32_base, kern_f64_base;
#ifdef CC_HAVE_ISA_V3
extern const KernFloat kern_f32_v3, kern_f64_v3;
#endif
#ifdef CC_HAVE_ISA_V4
extern const KernFloat kern_f32_v4, kern_f64_v4;
#endif

#endif
