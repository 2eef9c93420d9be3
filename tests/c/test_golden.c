/* tests/c/test_golden.c - text in, passes, text out: runs all .golden files of tests/pass.
 *
 *     === name of the case
 *     pass: algebra dce
 *     in:
 *       %1 = PARAM f64[n1]
 *       out %1
 *     out:
 *       ...
 *
 * Lines before the first case are a comment. `grad` in a pass list differentiates the first output
 * with respect to every float array parameter and appends the gradients as outputs. A failure
 * prints `error: REASON detail`. Run from the root of the repository, or give its path; with
 * --update-golden the `out:` parts are rewritten: review the diff. */
#include "ir/build.h"
#include "pass/pass.h"
#include "t.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WRT 32

static char *
read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    CcBuf text;
    char chunk[4096];
    size_t n;

    cc_buf_init(&text);
    while (f != NULL && (n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        cc_buf_put(&text, chunk, n);
    }
    if (f != NULL) {
        fclose(f);
    }
    return text.text;
}

static bool
run_grad(CcGraph *g, CcStatus *st)
{
    CcRef wrt[MAX_WRT], grad[MAX_WRT];
    uint32_t n = 0;

    for (uint32_t k = 0; k < g->nparam && n < MAX_WRT; k++) {
        CcRef r = g->param[k].node;
        if (cc_dtype_is_float((CcDtype)g->node[r].dtype)
            && g->param[k].layout != CC_LAYOUT_SCALAR) {
            wrt[n++] = r;
        }
    }
    if (g->nout == 0 || !pass_grad(g, g->out[0].node, wrt, n, grad, st)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!cc_graph_add_output(g, grad[i], CC_OUT_ARRAY, NULL, st)) {
            return false;
        }
    }
    return cc_graph_verify(g, st);
}

static bool
run_passes(CcGraph *g, char *list, CcStatus *st)
{
    PassOptions opt = {.verify = true};
    uint32_t have = PASS_P_TYPED | PASS_P_PRIMITIVE | PASS_P_LIVE;

    for (char *name = strtok(list, " "); name != NULL; name = strtok(NULL, " ")) {
        bool ok = strcmp(name, "grad") == 0 ? run_grad(g, st) : pass_run(g, name, have, &opt, st);
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* What the case prints, two blanks before each line. */
static void
run_case(char *list, const char *in, CcBuf *out)
{
    CcStatus st = {0};
    CcGraph g;
    CcBuf text;

    cc_buf_init(&text);
    bool ok = cc_graph_parse(&g, in, &st);
    if (ok && run_passes(&g, list, &st)) {
        cc_graph_print(&g, &text);
    }
    else {
        cc_buf_printf(&text, "error: %s %s\n", cc_reason_name(st.reason), st.detail);
    }
    for (const char *s = cc_buf_text(&text); *s != '\0';) {
        size_t len = strcspn(s, "\n");
        cc_buf_puts(out, "  ");
        cc_buf_put(out, s, len);
        cc_buf_puts(out, "\n");
        s += len + (s[len] == '\n');
    }
    cc_buf_fini(&text);
    if (ok) {
        cc_graph_fini(&g);
    }
}

/* The text between `from` and `to`, both found behind *at; *at moves to `to`. NULL: not there. */
static char *
section(char **at, const char *from, const char *to)
{
    char *start = strstr(*at, from), *end = start == NULL ? NULL : strstr(start + 1, to);

    if (start == NULL) {
        return NULL;
    }
    start += strlen(from);
    end = end == NULL ? start + strlen(start) : end + 1;
    char *copy = calloc(1, (size_t)(end - start) + 1);
    memcpy(copy, start, (size_t)(end - start));
    *at = end;
    return copy;
}

static int
run_file(const char *path, bool update)
{
    char *all = read_file(path), *at;
    CcBuf fresh;
    int ncase = 0;

    cc_buf_init(&fresh);
    at = all == NULL ? NULL : strstr(all, "=== ");
    T_CHECK(at != NULL);
    if (at != NULL) {
        cc_buf_put(&fresh, all, (size_t)(at - all));
    }
    while (at != NULL && *at != '\0') {
        char *name = section(&at, "=== ", "\npass: "), *list = section(&at, "pass: ", "\nin:\n");
        char *in = section(&at, "in:\n", "\nout:\n"), *want = section(&at, "out:\n", "\n=== ");
        T_CHECK(name != NULL && list != NULL && in != NULL && want != NULL);
        if (want == NULL) {
            break;
        }
        list[strcspn(list, "\n")] = '\0';
        name[strcspn(name, "\n")] = '\0';
        cc_buf_printf(&fresh, "=== %s\npass: %s\nin:\n%sout:\n", name, list, in);
        CcBuf have;
        cc_buf_init(&have);
        run_case(list, in, &have);
        cc_buf_puts(&fresh, cc_buf_text(&have));
        if (!update && strcmp(cc_buf_text(&have), want) != 0) {
            printf("%s: %s\n%s", path, name, cc_buf_text(&have));
            T_CHECK(false);
        }
        ncase++;
        cc_buf_fini(&have);
        free(name);
        free(list);
        free(in);
        free(want);
    }
    if (update && strcmp(cc_buf_text(&fresh), all) != 0) {
        FILE *f = fopen(path, "wb");
        T_CHECK(f != NULL && fwrite(fresh.text, 1, fresh.len, f) == fresh.len);
        T_CHECK(f == NULL || fclose(f) == 0);
    }
    cc_buf_fini(&fresh);
    free(all);
    return ncase;
}

int
main(int argc, char **argv)
{
    const char *root = ".";
    bool update = false;
    int ncase = 0;
    char path[1024];

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--update-golden") == 0) {
            update = true;
        }
        else {
            root = argv[i];
        }
    }
    snprintf(path, sizeof(path), "%s/tests/pass", root);
    DIR *dir = opendir(path);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry != NULL; entry = readdir(dir)) {
        size_t len = strlen(entry->d_name);
        if (len > 7 && strcmp(entry->d_name + len - 7, ".golden") == 0) {
            snprintf(path, sizeof(path), "%s/tests/pass/%s", root, entry->d_name);
            ncase += run_file(path, update);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    T_CHECK(ncase > 0);
    return t_failed != 0;
}
