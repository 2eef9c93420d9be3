/* ir/dtype.h - element types, from dtype.def. Includes nothing of ours. */
#ifndef CC_DTYPE_H
#define CC_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    CC_DTYPE_NONE,                      /* not inferred yet; never in a verified graph */
#define CC_DTYPE(name, text, size, cls, ctype, npchar) CC_DTYPE_##name,
#include "dtype.def"
#undef CC_DTYPE
    CC_DTYPE__COUNT
} CcDtype;

typedef enum {
    CC_DCLASS_NONE,
    CC_DCLASS_BOOL,
    CC_DCLASS_INT,
    CC_DCLASS_UINT,
    CC_DCLASS_FLOAT,
    CC_DCLASS_OPAQUE
} CcDtypeClass;

typedef struct {
    const char *text;
    uint8_t size;
    uint8_t cls;                        /* CcDtypeClass */
    const char *ctype;
    char npchar;
} CcDtypeInfo;

extern const CcDtypeInfo cc_dtype_info[CC_DTYPE__COUNT];

static inline bool
cc_dtype_is_float(CcDtype dt)
{
    return cc_dtype_info[dt].cls == CC_DCLASS_FLOAT;
}

/* Signed and unsigned integers; bool is not one. */
static inline bool
cc_dtype_is_int(CcDtype dt)
{
    return cc_dtype_info[dt].cls == CC_DCLASS_INT || cc_dtype_info[dt].cls == CC_DCLASS_UINT;
}

/* The dtype with this text ("f64") or NumPy character ('d'); CC_DTYPE_NONE when there is none. */
CcDtype cc_dtype_from_text(const char *text, uint32_t len);
CcDtype cc_dtype_from_npchar(char c);

#endif
