/* base/buf.h - text that grows: printers, generated C, reports.
 *
 * A failed append sets `failed` and later appends do nothing, so a printer
 * checks once at its end. cc_buf_text() is NUL-terminated and never NULL. */
#ifndef CC_BUF_H
#define CC_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *text;                         /* owned */
    uint32_t len, cap;
    bool failed;
} CcBuf;

void cc_buf_init(CcBuf *b);
void cc_buf_fini(CcBuf *b);
void cc_buf_put(CcBuf *b, const char *text, size_t len);
void cc_buf_puts(CcBuf *b, const char *text);
void cc_buf_printf(CcBuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *cc_buf_text(const CcBuf *b);

#endif
