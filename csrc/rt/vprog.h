/* rt/vprog.h - a fused loop's work on one element, as a straight line of vector instructions.
 *
 * Made by gen/lower.c from a LOOP group, run by kern/interp.c, printed as C by gen/. Values are
 * named by the index of their instruction; operands of instruction i are < i. Types are those of
 * registers: bools are masks, as wide as the numbers they were made from, and are converted where
 * another width is needed; in memory a bool is a byte.
 *
 * Invariant: stores come last, so an operand of memory may be input and output. */
#ifndef CC_VPROG_H
#define CC_VPROG_H

#include "../base/status.h"
#include "kernel.h"

#define CC_VTYPES(F) F(f64) F(f32) F(i64) F(i32) F(i16) F(i8) F(u64) F(u32) F(u16) F(u8) \
    F(m64) F(m32) F(m16) F(m8)

typedef enum {
#define F(t) CC_VT_##t,
    CC_VTYPES(F)
#undef F
    CC_VT__COUNT
} CcVType;

typedef enum {
#define VOP(name, n, res, set, flt) CC_VOP_##name,
#include "interp.def"
#undef VOP
    CC_VOP__COUNT,
    CC_V_CONST = CC_VOP__COUNT,         /* bits in every lane */
    CC_V_SCALAR,                        /* scalar `slot` in every lane; i64, f64 or a mask */
    CC_V_LOAD,                          /* memory operand `slot` */
    CC_V_LOADM,                         /* memory operand `slot`, a bool */
    CC_V_CVT,                           /* a, of another type */
    CC_V_STORE,                         /* a to memory operand `slot` */
    CC_V_STOREM                         /* a, a mask, to the bool operand `slot` */
} CcVOp;

typedef struct {
    const char *name;
    uint8_t n;                          /* operands */
    bool mask, fault;                   /* result is a mask; may report a fault */
} CcVOpInfo;

extern const CcVOpInfo cc_vop_info[CC_VOP__COUNT];
extern const char *const cc_vtype_name[CC_VT__COUNT];
extern const uint8_t cc_vtype_size[CC_VT__COUNT];

#define CC_V_NONE 0xffffu

typedef struct {
    uint8_t op;                         /* CcVOp */
    uint8_t type;                       /* CcVType of the result; of the stored value */
    uint8_t in;                         /* CcVType of the (last) operand */
    bool uniform;                       /* the same in every lane of a call */
    uint16_t arg[3];                    /* CC_V_NONE = none */
    uint16_t slot;
    uint16_t reg;                       /* register of chunk or uniform value: rt_vprog_finish() */
    uint64_t bits;                      /* CONST; LOAD, LOADM: register for use as one element */
} CcVIns;

typedef struct {
    uint8_t size;                       /* bytes of one element in memory */
    bool is_bool, out;
} CcVMem;

enum { CC_VPROG_MAX_MEM = 48, CC_VPROG_MAX_INS = 512 };

typedef struct {
    CcVIns *ins;                        /* owned */
    uint32_t len, cap;
    CcVMem mem[CC_VPROG_MAX_MEM];
    uint16_t nmem;
    uint16_t nreg;                      /* chunk registers */
    uint16_t nuni;                      /* one-vector registers of uniform values */
    uint8_t min_size;                   /* smallest register type in use */
} CcVProg;

/* Bytes of one padded operand of a tail: a vector's lanes of the narrowest type, 8 bytes each. */
enum { CC_VTAIL_BYTES = 64 * 8 };

/* Elements that the interpreter works on at a time, and bytes of one chunk register. */
enum { CC_VCHUNK = 512, CC_VREG_BYTES = CC_VCHUNK * 8 };

void rt_vprog_init(CcVProg *p);
void rt_vprog_fini(CcVProg *p);

/* Append; the value's index, or CC_V_NONE: NO_MEMORY, or the program is full: NO_LOWERING. */
uint16_t rt_vprog_push(CcVProg *p, CcVIns ins, CcStatus *st);

/* Assign registers and find min_size; the last step. */
bool rt_vprog_finish(CcVProg *p, CcStatus *st);

/* Scratch bytes that the interpreter needs for p. */
cc_i64 rt_vprog_scratch(const CcVProg *p);

typedef struct RtReduceTable RtReduceTable;

/* -- Engines, one per ISA level -------------------------------------------- */

typedef struct {
    const char *name;
    CcBodyFn interp;                    /* CcBody.self is the CcVProg, .scratch the registers */
    const RtReduceTable *reduce;        /* rt/reduce.h */
} RtVecTable;

/* The engine of the best level this CPU runs, the one that C compiled for this CPU agrees with
 * (kern/vselect.c). */
const RtVecTable *kern_vec_table(void);

#endif
