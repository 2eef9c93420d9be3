/* ir/op.c - op.def as a table, and what is read out of its text columns. */
#include "graph.h"

#include <string.h>

/* The letters that op.def uses in its flag and fault columns. */
enum {
    _ = 0,
    C = CC_OPF_COMMUTATIVE,
    I = CC_OPF_IDEMPOTENT,
    T = CC_OPF_TRUTH,
    G = CC_OPF_GIVEN_SHAPE,
    D = CC_FAULT_DIVIDE,
    O = CC_FAULT_OVERFLOW,
    U = CC_FAULT_UNDERFLOW,
    V = CC_FAULT_INVALID,
    N = CC_FAULT_ERROR,
    X = CC_FAULT_ANY
};

/* V also stands for "variable" in the operand count column. */
#define ARGS_0 0
#define ARGS_1 1
#define ARGS_2 2
#define ARGS_3 3
#define ARGS_V CC_ARGS_VARIABLE

const CcOpInfo cc_op_info[CC_OP__COUNT] = {
#define CC_OP(name, n, cls, flags, dtype, shape, attrs, exact, ff, fi, fixed, vjp, text)          \
    [CC_OP_##name] = {#name,        ARGS_##n, CC_CLASS_##cls,    flags, CC_DT_##dtype,            \
                      CC_SH_##shape, CC_EXACT_##exact, ff, fi, attrs, fixed, #vjp, text},
#include "op.def"
#undef CC_OP
};

_Static_assert((int)CC_OP__COUNT <= 255, "CcNode.op is one byte");

CcOp
cc_op_from_name(const char *name, uint32_t len)
{
    int op = 0;

    while (op < CC_OP__COUNT
           && (strlen(cc_op_info[op].name) != len || memcmp(cc_op_info[op].name, name, len) != 0)) {
        op++;
    }
    return (CcOp)op;
}

bool
cc_attr_next(CcOp op, uint8_t ndim0, const char **at, CcAttrSpec *spec)
{
    const char *s = *at;

    if (s == NULL) {
        s = cc_op_info[op].attrs;
        spec->first = spec->count = 0;
    }
    while (*s == ' ') {
        s++;
    }
    if (*s == '\0') {
        return false;
    }
    const char *colon = strchr(s, ':');
    spec->name = s;
    spec->namelen = (uint8_t)(colon - s);
    spec->kind = colon[1];
    spec->first = (uint16_t)(spec->first + spec->count);
    switch (spec->kind) {
    case '2':
        spec->count = 2;
        break;
    case '4':
        spec->count = 4;
        break;
    case 'I':
    case 'D':
        spec->count = ndim0;
        break;
    default:
        spec->count = 1;
        break;
    }
    *at = colon + 2;
    return true;
}

uint16_t
cc_op_nattr(CcOp op, uint8_t ndim0)
{
    const char *at = NULL;
    CcAttrSpec spec = {0};

    while (cc_attr_next(op, ndim0, &at, &spec)) {
    }
    return (uint16_t)(spec.first + spec.count);
}

bool
cc_op_wants_fixed(CcOp op, uint32_t operand, uint32_t axis)
{
    const char *s = cc_op_info[op].fixed;

    for (; operand > 0; operand--) {
        s = strchr(s, ',');
        if (s == NULL) {
            return false;
        }
        s++;
    }
    for (; *s != '\0' && *s != ','; s++) {
        if ((uint32_t)(*s - '0') == axis) {
            return true;
        }
    }
    return false;
}
