/* pass/run.c - pass.def as a table, and the loop over a list of names. Knows needs, makes and
 * breaks; the passes know nothing of each other. */
#include "pass.h"

#include <string.h>
#include <time.h>

const PassInfo pass_info[PASS__COUNT] = {
#define PASS(name, needs, makes, breaks) {#name, pass_##name, needs, makes, breaks},
#include "pass.def"
#undef PASS
};

const char pass_default[] = "infer decompose algebra cse algebra dce";

static uint64_t
run_clock(void)
{
    struct timespec now;

    return timespec_get(&now, TIME_UTC) == TIME_UTC
               ? (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec
               : 0;
}

static const PassInfo *
run_find(const char *name, size_t len)
{
    for (int i = 0; i < PASS__COUNT; i++) {
        if (strlen(pass_info[i].name) == len && memcmp(pass_info[i].name, name, len) == 0) {
            return &pass_info[i];
        }
    }
    return NULL;
}

bool
pass_run(CcGraph *g, const char *names, uint32_t have, const PassOptions *opt, CcStatus *st)
{
    static const PassOptions nothing;

    opt = opt != NULL ? opt : &nothing;
    for (const char *s = names + strspn(names, " "); *s != '\0'; s += strspn(s, " ")) {
        size_t len = strcspn(s, " ");
        const PassInfo *pass = run_find(s, len);
        if (pass == NULL) {
            return cc_fail(st, CC_REASON_BAD_TEXT, "no pass named %.*s", (int)len, s);
        }
        if ((pass->needs & ~have) != 0) {
            return cc_fail(st, CC_REASON_BAD_GRAPH, "pass %s: needs 0x%x, has 0x%x", pass->name,
                           pass->needs, have);
        }
        uint64_t start = run_clock();
        if (!pass->run(g, st)) {
            return false;
        }
        uint64_t ns = run_clock() - start;
        have = (have & ~pass->breaks) | pass->makes;
        if (opt->verify && !cc_graph_verify(g, st)) {
            return false;
        }
        if (opt->hook != NULL) {
            opt->hook(opt->ctx, pass->name, g, ns);
        }
        s += len;
    }
    return true;
}
