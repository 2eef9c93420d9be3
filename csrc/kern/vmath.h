/* kern/vmath.h - mathematical functions on whole vectors, for binary64 and binary32.
 *
 * Included by generated C, by the interpreter's loops and by prebuilt kernels; the same source
 * everywhere is why they agree bit for bit. No header is needed, system or other.
 *
 *     vm_f64 vm_exp_f64(vm_f64 x);                 VM_D doubles
 *     vm_f32 vm_pow_f32(vm_f32 x, vm_f32 y);       VM_W floats
 *
 * kern/vmath.def lists the functions and their largest errors. Defined before inclusion, or from
 * the target's macros:
 *     VM_W    floats per vector: 4, 8 or 16; doubles are half as many (VM_D)
 *     VM_FMA  1 = fused multiply-add, needs the instruction; 0 = multiply and add
 *
 * Results: a lane's result is a function of that lane's arguments and of VM_FMA alone. Width,
 * index, length, alignment and neighbours do not matter. Compile with -ffp-contract=off, without
 * -ffast-math. Rounding to nearest and no flush-to-zero are assumed.
 *
 * Flags: the functions raise divide, overflow and invalid in hardware exactly when the result
 * of some lane does, as C99 Annex F has it: log(0) divide, log(-1) and sin(inf) invalid,
 * exp(1000) overflow, a quiet NaN nothing. (floor_divide, remainder, fmod and logaddexp: what
 * NumPy's own loops raise.) So the caller clears the flags, runs, and reads
 * them; lanes past the end of an array must hold copies of an element, or they raise
 * flags of their own. Underflow and inexact mean nothing here: they may be set or missing. A
 * caller whose errstate does not ignore underflow must not use this file. */
#ifndef VM_VMATH_H
#define VM_VMATH_H

#include "vmath_core.h"
#include "vmath_exp.h"
#include "vmath_log.h"
#include "vmath_trig.h"
#include "vmath_pow.h"
#include "vmath_f32.h"
#include "vmath_round.h"

#endif
