/* ir/dtype.c - dtype.def as a table. */
#include "dtype.h"

#include <string.h>

const CcDtypeInfo cc_dtype_info[CC_DTYPE__COUNT] = {
    [CC_DTYPE_NONE] = {"none", 0, CC_DCLASS_NONE, "", '\0'},
#define CC_DTYPE(name, text, size, cls, ctype, npchar)                                            \
    [CC_DTYPE_##name] = {text, size, CC_DCLASS_##cls, ctype, npchar},
#include "dtype.def"
#undef CC_DTYPE
};

CcDtype
cc_dtype_from_text(const char *text, uint32_t len)
{
    for (int dt = 1; dt < CC_DTYPE__COUNT; dt++) {
        const char *s = cc_dtype_info[dt].text;
        if (strlen(s) == len && memcmp(s, text, len) == 0) {
            return (CcDtype)dt;
        }
    }
    return CC_DTYPE_NONE;
}

CcDtype
cc_dtype_from_npchar(char c)
{
    for (int dt = 1; dt < CC_DTYPE__COUNT; dt++) {
        if (c != '\0' && cc_dtype_info[dt].npchar == c) {
            return (CcDtype)dt;
        }
    }
    return CC_DTYPE_NONE;
}
