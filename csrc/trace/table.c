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
