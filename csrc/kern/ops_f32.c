/* isa: multi
 * kern/ops_f32.c - the heavy float operations of one ISA level (CC_ISA, -march). */
#include "isa.h"
#include "gemm_t.h"

const KernFloat KERN_SYM(kern_f32) = {
    .gemm = gemm_plan,
};
