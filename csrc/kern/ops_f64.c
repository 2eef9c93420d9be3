/* isa: multi
 * kern/ops_f64.c - the heavy double operations of one ISA level (CC_ISA, -march). */
#define KERN_F64
#include "isa.h"
#include "conv_t.h"
#include "pool_t.h"

const KernFloat KERN_SYM(kern_f64) = {
    .gemm = gemm_plan,
    .conv = conv_plan,
    .conv_dx = conv_plan_dx,
    .conv_dw = conv_plan_dw,
    .pool = pool_plan,
    .pool_dx = pool_plan_dx,
};
