/* trace/table.c - the handlers by opcode of the running version. */
#include "ops.h"

#include <opcode.h>

const RecHandler rec_handler[256] = {
#define BYTECODE(name, handler) [name] = rec_op_##handler,
#define BYTECODE_STOP(name) [name] = NULL,
#include "bytecode.def"
#undef BYTECODE
#undef BYTECODE_STOP
};

static const RecOpcode opcode_row[] = {
#define BYTECODE(name, handler) {#name, #handler, name},
#define BYTECODE_STOP(name) {#name, NULL, name},
#include "bytecode.def"
#undef BYTECODE
#undef BYTECODE_STOP
};

const RecOpcode *
rec_opcodes(uint32_t *count)
{
    *count = sizeof(opcode_row) / sizeof(opcode_row[0]);
    return opcode_row;
}

CcReason
rec_stop_reason(int op)
{
    return op == RAISE_VARARGS || op == RERAISE ? CC_REASON_EXCEPTION : CC_REASON_BYTECODE;
}
