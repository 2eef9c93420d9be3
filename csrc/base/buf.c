#include "buf.h"

#include "vec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
cc_buf_init(CcBuf *b)
{
    memset(b, 0, sizeof(*b));
}

void
cc_buf_fini(CcBuf *b)
{
    cc_free(b->text);
    cc_buf_init(b);
}

static bool
buf_reserve(CcBuf *b, size_t more)
{
    if (!b->failed && more < UINT32_MAX / 2) {
        b->failed = !CC_GROW(b->text, b->len, b->cap, (uint32_t)more + 1);
    } else {
        b->failed = true;
    }
    return !b->failed;
}

void
cc_buf_put(CcBuf *b, const char *text, size_t len)
{
    if (buf_reserve(b, len)) {
        memcpy(b->text + b->len, text, len);
        b->len += (uint32_t)len;
        b->text[b->len] = '\0';
    }
}

void
cc_buf_puts(CcBuf *b, const char *text)
{
    cc_buf_put(b, text, strlen(text));
}

void
cc_buf_printf(CcBuf *b, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    int len = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (len < 0 || !buf_reserve(b, (size_t)len)) {
        b->failed = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(b->text + b->len, (size_t)len + 1, fmt, ap);
    va_end(ap);
    b->len += (uint32_t)len;
}

const char *
cc_buf_text(const CcBuf *b)
{
    return b->text == NULL ? "" : b->text;
}
