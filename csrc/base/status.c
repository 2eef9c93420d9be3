#include "status.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    CcReasonKind kind;
    const char *name, *text, *hint;
} reason_row[CC_REASON__COUNT] = {
#define CC_REASON(name, kind, text, hint) [CC_REASON_##name] = {CC_KIND_##kind, #name, text, hint},
#include "reason.def"
#undef CC_REASON
};

bool
cc_fail(CcStatus *st, CcReason reason, const char *fmt, ...)
{
    va_list ap;

    st->reason = reason;
    va_start(ap, fmt);
    vsnprintf(st->detail, sizeof(st->detail), fmt, ap);
    va_end(ap);
    return false;
}

const char *
cc_reason_name(CcReason reason)
{
    return reason_row[reason].name;
}

const char *
cc_reason_text(CcReason reason)
{
    return reason_row[reason].text;
}

const char *
cc_reason_hint(CcReason reason)
{
    return reason_row[reason].hint;
}

CcReasonKind
cc_reason_kind(CcReason reason)
{
    return reason_row[reason].kind;
}
