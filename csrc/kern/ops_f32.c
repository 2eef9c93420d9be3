/* isa: multi
 * kern/ops_f32.c - the heavy float operations of one ISA level (CC_ISA, -march). */
#include "isa.h"
#include "conv_t.h"
#include "pool_t.h"

const KernFloat KERN_SYM(kern_f32) = {
    .gemm = gemm_plan,
    .conv = conv_plan,
    .conv_dx = conv_plan_dx,
    .conv_dw = conv_plan_dw,
    .pool = pool_plan,
    .pool_dx = pool_plan_dx,
};
