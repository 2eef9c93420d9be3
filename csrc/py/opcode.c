/* py/opcode.c - small questions about instructions whose answer depends on the version. */
#include "internal.h"

#include <opcode.h>
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_intrinsics.h>
#endif

int
py_stored_locals(int op, int oparg, int *a, int *b)
{
    switch (op) {
    case STORE_FAST:
    case DELETE_FAST:
#if PY_VERSION_HEX >= 0x030C0000
    case LOAD_FAST_AND_CLEAR:
#endif
        *a = oparg;
        return 1;
#if PY_VERSION_HEX >= 0x030D0000
    case STORE_FAST_LOAD_FAST:
        *a = oparg >> 4;
        return 1;
    case STORE_FAST_STORE_FAST:
        *a = oparg >> 4;
        *b = oparg & 15;
        return 2;
#endif
    default:
        (void)b;
        return 0;
    }
}

PyIntrinsic
py_intrinsic_1(int oparg)
{
#if PY_VERSION_HEX >= 0x030C0000
    return oparg == INTRINSIC_LIST_TO_TUPLE ? PY_INTRINSIC_LIST_TO_TUPLE
         : oparg == INTRINSIC_UNARY_POSITIVE ? PY_INTRINSIC_UNARY_POSITIVE : PY_INTRINSIC_OTHER;
#else
    (void)oparg;
    return PY_INTRINSIC_OTHER;
#endif
}
