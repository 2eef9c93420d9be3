/* kern/vtext.c - the headers as bytes. The assembler reads them: the compiler runs in the root of
 * the repository. They are included as well, so that this file is made again when one changes. */
#include "vtext.h"

#include "vop.h"

#define VTEXT_FILES(F)                                                                            \
    F(kernel, "csrc/rt/kernel.h", "kernel.h")                                                     \
    F(vmath, "csrc/kern/vmath.h", "vmath.h")                                                      \
    F(core, "csrc/kern/vmath_core.h", "vmath_core.h")                                             \
    F(coef, "csrc/kern/vmath_coef.h", "vmath_coef.h")                                             \
    F(tables, "csrc/kern/vmath_tables.h", "vmath_tables.h")                                       \
    F(exp, "csrc/kern/vmath_exp.h", "vmath_exp.h")                                                \
    F(log, "csrc/kern/vmath_log.h", "vmath_log.h")                                                \
    F(trig, "csrc/kern/vmath_trig.h", "vmath_trig.h")                                             \
    F(pow, "csrc/kern/vmath_pow.h", "vmath_pow.h")                                                \
    F(f32, "csrc/kern/vmath_f32.h", "vmath_f32.h")                                                \
    F(round, "csrc/kern/vmath_round.h", "vmath_round.h")                                          \
    F(vop, "csrc/kern/vop.h", "vop.h")

#define VTEXT_BYTES(id, path, name)                                                               \
    __asm__(".section .rodata\n"                                                                  \
            ".global kern_vtext_" #id "\n.hidden kern_vtext_" #id "\nkern_vtext_" #id ":\n"       \
            ".incbin \"" path "\"\n"                                                              \
            ".global kern_vtext_" #id "_end\n.hidden kern_vtext_" #id "_end\n"                    \
            "kern_vtext_" #id "_end:\n.byte 0\n.previous\n");                                     \
    extern const char kern_vtext_##id[], kern_vtext_##id##_end[];
VTEXT_FILES(VTEXT_BYTES)

const KernText kern_vtext[] = {
#define VTEXT_ROW(id, path, name) {name, kern_vtext_##id, kern_vtext_##id##_end},
    VTEXT_FILES(VTEXT_ROW)
};

const size_t kern_nvtext = sizeof(kern_vtext) / sizeof(kern_vtext[0]);
