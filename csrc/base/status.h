/* base/status.h - how a fallible function says why it failed. No Python.h here.
 *
 * A function that can fail returns bool (or a pointer, NULL = failed) and fills
 * the CcStatus it was given. Nobody prints, aborts or longjmps. */
#ifndef CC_STATUS_H
#define CC_STATUS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
#define CC_REASON(name, kind, text, hint) CC_REASON_##name,
#include "reason.def"
#undef CC_REASON
    CC_REASON__COUNT
} CcReason;

typedef enum {
    CC_KIND_RESIDUAL,
    CC_KIND_EXIT,
    CC_KIND_STOP,
    CC_KIND_BUG,
    CC_KIND_ENV
} CcReasonKind;

typedef struct {
    CcReason reason;
    char detail[160];
} CcStatus;

/* Fill `st` and return false, so that `return cc_fail(...)` reads as one line. */
bool cc_fail(CcStatus *st, CcReason reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

const char *cc_reason_name(CcReason reason);
const char *cc_reason_text(CcReason reason);
const char *cc_reason_hint(CcReason reason);
CcReasonKind cc_reason_kind(CcReason reason);

#endif
