/* trace/ops.h - the handlers, named after their opcodes; py/v3XX/bytecode.def maps opcodes to them.
 */
#ifndef TRACE_OPS_H
#define TRACE_OPS_H

#include "rec.h"

#define REC_OP(name) RecStatus rec_op_##name(Recorder *r, int oparg);
#include "handlers.def"
#undef REC_OP

#endif
