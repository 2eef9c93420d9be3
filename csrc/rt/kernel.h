/* rt/kernel.h - the kernel ABI: what generated C, prebuilt kernels, the team and the plan agree on.
 *
 * Needs no header, system or own, so that generated C may include it anywhere.
 *
 * A kernel is 1..k phases over one argument block. The team runs the phases in order, with a
 * barrier between, inside one parallel region; in a phase it cuts [0, size) into ranges whose
 * ends are multiples of `grain` (or `size`) and calls fn once per range. Threads may get any
 * number of ranges, in any order.
 *
 * Invariants
 *   - The result of a phase does not depend on how its range was cut: no chunking of a
 *     reduction may follow from begin and end, only from sizes.
 *   - fn never allocates, never blocks, never calls Python; it cannot fail. What may go wrong
 *     is a bit of CC_FAULT_*.
 *   - IEEE flags: the team clears them on each thread before its first range of a kernel and
 *     ORs what is set after its last one into CcKernel.fault, in CC_FAULT_* bits, the caller's
 *     thread included (whose own flags are then as before the kernel). Faults found by
 *     software are OR-ed by fn itself into the word its arguments name, with
 *     cc_fault_or(): one call per range at most. */
#ifndef CC_KERNEL_H
#define CC_KERNEL_H

typedef __INT8_TYPE__ cc_i8;
typedef __INT16_TYPE__ cc_i16;
typedef __INT32_TYPE__ cc_i32;
typedef __INT64_TYPE__ cc_i64;
typedef __UINT8_TYPE__ cc_u8;
typedef __UINT16_TYPE__ cc_u16;
typedef __UINT32_TYPE__ cc_u32;
typedef __UINT64_TYPE__ cc_u64;

/* -- Faults ------------------------------------------------------------------- */

#define CC_FAULT_DIV 1u         /* IEEE division by zero */
#define CC_FAULT_OVER 2u        /* IEEE overflow */
#define CC_FAULT_UNDER 4u       /* IEEE underflow */
#define CC_FAULT_INVALID 8u     /* IEEE invalid operation */
#define CC_FAULT_INDEX 16u      /* an index out of bounds; the element was not touched */
#define CC_FAULT_INTDIV 32u     /* integer division by zero; its result is 0 */
#define CC_FAULT_INTOVER 64u    /* INT_MIN / -1; its result is INT_MIN */
#define CC_FAULT_INTPOW 128u    /* integer to a negative integer power */

static inline void
cc_fault_or(cc_u32 *word, cc_u32 bits)
{
    if (bits != 0) {
        __atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
    }
}

/* -- Phases: what the team runs ------------------------------------------------- */

/* `scratch` is 64-byte aligned, private to the thread, of the phase's size, not cleared. */
typedef void (*CcPhaseFn)(const void *args, cc_i64 begin, cc_i64 end, void *scratch);

typedef struct {
    CcPhaseFn fn;
    cc_i64 size;                /* 0: fn is not called */
    cc_i64 grain;               /* >= 1 */
    cc_i64 scratch;             /* bytes per thread, 0 = none (fn gets NULL) */
    double work;                /* about how many nanoseconds the phase takes on one thread;
                                 * the team stays serial when that cannot pay */
} CcPhase;

typedef struct {
    const CcPhase *phase;
    cc_u32 nphase;
    const void *args;           /* passed to each fn */
    cc_u32 *fault;              /* never NULL; the plan clears it */
} CcKernel;

/* -- Arguments ------------------------------------------------------------------- */

/* An operand in memory. Strides are in bytes, of any sign, 0 = broadcast. */
typedef struct {
    char *data;
    const cc_i64 *dims;
    const cc_i64 *strides;
} CcArray;

/* The bits of a scalar: integers and bools in i (sign- or zero-extended), floats in d. */
typedef union {
    cc_i64 i;
    cc_u64 u;
    double d;
} CcScalar;

/* -- Loop bodies: what gen/ emits and rt/interp.c imitates ------------------------ */

/* The elementwise work on n elements of a fused loop. ptr[k] belongs to the k-th operand:
 * n elements side by side, or one element when the body was made with the k-th operand as
 * broadcast. Inputs come first, outputs last. An output may be the very memory of an input,
 * never a shifted part of it. Lanes past n may be computed from copies of element n - 1, so
 * that they set no flags which the elements do not set. */
typedef struct {
    char *const *ptr;
    const CcScalar *scalar;     /* numbers that change between calls */
    const void *self;           /* the interpreter's program; NULL for compiled C */
    void *scratch;              /* the interpreter's registers; NULL for compiled C */
    cc_u32 fault;               /* bits found by software, this thread only */
} CcBody;

typedef void (*CcBodyFn)(CcBody *b, cc_i64 n);

#endif
