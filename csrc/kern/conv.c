/* kern/conv.c - sizes of convolutions, the same at every ISA level. */
#include "kern.h"

int64_t
kern_conv_out(int64_t size, int64_t kernel, int64_t stride, int64_t dil, int64_t pad)
{
    int64_t room = size + pad - (kernel - 1) * dil - 1;

    return room < 0 ? 0 : room / stride + 1;
}
