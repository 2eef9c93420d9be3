/* tests/c/test_gen_text.c - groups and generated C as text, compared with tests/gen/loop.golden.
 * Runs in the root of the repository. */
#include "gen/gen.h"
#include "rt/plan.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char path[] = "tests/gen/loop.golden";

static char *
read_all(void)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);

    if (f != NULL && text != NULL) {
        text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
        fclose(f);
        return text;
    }
    free(text);
    return NULL;
}

/* Groups, then the loops. */
static bool
describe(const char *graph, CcBuf *out)
{
    CcGraph g;
    CcStatus st = {0};
    CcGroups s = {0};
    bool ok = cc_graph_parse(&g, graph, &st) && cc_graph_verify(&g, &st) && pass_fuse(&g, &s, &st);

    if (ok) {
        pass_fuse_print(&g, &s, out);
        cc_buf_puts(out, "c:\n");
    }
    for (uint32_t k = 0; ok && k < s.ngroup; k++) {
        GenLoop l;
        char name[32];
        if (s.group[k].kind != CC_GROUP_LOOP) {
            continue;
        }
        ok = gen_lower(&g, &s, k, &l, &st);
        if (ok && !l.copies) {
            snprintf(name, sizeof(name), "group_%u", k);
            gen_loop(out, name, &l.prog, gen_has_row(&l) ? l.mask_row : l.mask_flat);
        }
        gen_lower_fini(&l);
    }
    if (!ok) {
        printf("%s: %s\n%s\n", cc_reason_name(st.reason), st.detail, graph);
    }
    pass_fuse_fini(&s);
    cc_graph_fini(&g);
    return ok;
}

/* Copy the file to `out` with every part after `fuse:` made anew. */
static void
renew(char *text, CcBuf *out)
{
    char *at = text;

    for (;;) {
        char *in = strstr(at, "\nin:\n"), *fuse = in != NULL ? strstr(in, "\nfuse:\n") : NULL;
        if (fuse == NULL) {
            cc_buf_puts(out, at);
            return;
        }
        cc_buf_put(out, at, (size_t)(fuse + 7 - at));
        fuse[1] = '\0';
        T_CHECK(describe(in + 5, out));
        fuse[1] = 'f';
        at = strstr(fuse, "\n=== ");
        if (at == NULL) {
            return;
        }
        at++;
    }
}

int
main(void)
{
    char *text = read_all();
    CcBuf now;

    T_CHECK(text != NULL);
    if (text == NULL) {
        return 1;
    }
    cc_buf_init(&now);
    renew(text, &now);
    bool equal = !now.failed && strcmp(text, cc_buf_text(&now)) == 0;
    if (!equal && getenv("UPDATE_GOLDEN") != NULL) {
        FILE *f = fopen(path, "wb");
        T_CHECK(f != NULL && fwrite(cc_buf_text(&now), 1, now.len, f) == now.len);
        T_CHECK(f == NULL || fclose(f) == 0);
    } else {
        T_CHECK(equal);
        if (!equal) {
            printf("%s differs; UPDATE_GOLDEN=1 writes it anew\n", path);
        }
    }
    cc_buf_fini(&now);
    free(text);
    return t_failed != 0;
}
