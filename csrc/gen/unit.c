/* gen/unit.c - a whole C file: the headers' texts, then the functions. */
#include "gen.h"

#include "../kern/vtext.h"

#include <stdio.h>
#include <string.h>

enum { UNIT_TEXTS = 32 };

/* Append a header, once; lines that include one of ours are replaced by its text. */
static void
unit_header(CcBuf *out, const char *name, size_t len, bool *done)
{
    static const char include[] = "#include \"";

    for (size_t k = 0; k < kern_nvtext; k++) {
        const char *at = kern_vtext[k].text, *end = kern_vtext[k].end;
        if (strlen(kern_vtext[k].name) != len || memcmp(kern_vtext[k].name, name, len) != 0
            || done[k]) {
            continue;
        }
        done[k] = true;
        while (at < end) {
            const char *eol = memchr(at, '\n', (size_t)(end - at));
            size_t line = (size_t)((eol != NULL ? eol + 1 : end) - at);
            if (line > sizeof(include) && memcmp(at, include, sizeof(include) - 1) == 0) {
                const char *base = at + sizeof(include) - 1, *quote = base;
                while (*quote != '"' && *quote != '\n') {
                    base = *quote == '/' ? quote + 1 : base;
                    quote++;
                }
                unit_header(out, base, (size_t)(quote - base), done);
            } else {
                cc_buf_put(out, at, line);
            }
            at += line;
        }
        return;
    }
}

void
gen_prelude(CcBuf *out)
{
    bool done[UNIT_TEXTS] = {false};

    unit_header(out, "vop.h", 5, done);
}

bool
gen_has_row(const GenLoop *loop)
{
    return loop->mask_row != loop->mask_flat;
}

bool
gen_unit(CcBuf *out, const GenLoop *const *loop, uint32_t n, CcStatus *st)
{
    char name[24];

    gen_prelude(out);
    for (uint32_t k = 0; k < n; k++) {
        snprintf(name, sizeof(name), "cc_flat_%u", k);
        gen_loop(out, name, &loop[k]->prog, loop[k]->mask_flat);
        if (gen_has_row(loop[k])) {
            snprintf(name, sizeof(name), "cc_row_%u", k);
            gen_loop(out, name, &loop[k]->prog, loop[k]->mask_row);
        }
    }
    return !out->failed || cc_fail(st, CC_REASON_NO_MEMORY, "a C text of %u bytes", out->len);
}
