/* tests/c/test_pass.c - the runner, and passes over random graphs: values stay bit-equal, graphs
 * verify, text round-trips, fault roots survive, memory may run out anywhere. */
#include "base/mem.h"
#include "pass/pass.h"
#include "random_graph.h"
#include "t.h"

#define ROUNDS 400

/* -- The runner -------------------------------------------------------------- */

typedef struct {
    char text[256];
    uint32_t calls;
} Log;

static void
log_hook(void *ctx, const char *pass, const CcGraph *g, uint64_t ns)
{
    Log *log = ctx;

    T_CHECK(g->len > 0 && ns < UINT64_C(60000000000));
    strcat(strcat(log->text, pass), " ");
    log->calls++;
}

static void
test_runner(void)
{
    CcStatus st = {0};
    CcGraph g;
    Log log = {{0}, 0};
    PassOptions opt = {.verify = true, .hook = log_hook, .ctx = &log};

    T_CHECK(cc_graph_parse(&g, "%1 = PARAM f64[n1]\n%2 = MEAN[axes=0] %1\nout %2", &st));
    T_CHECK(!pass_run(&g, "decompose", 0, &opt, &st) && st.reason == CC_REASON_BAD_GRAPH);
    T_CHECK(!pass_run(&g, "infer nonsense", 0, &opt, &st) && st.reason == CC_REASON_BAD_TEXT);
    log.text[0] = '\0';
    T_CHECK(pass_run(&g, "  infer decompose  algebra cse dce ", 0, &opt, &st));
    T_CHECK(strcmp(log.text, "infer decompose algebra cse dce ") == 0);
    T_CHECK(pass_run(&g, "", 0, NULL, &st));
    T_CHECK(pass_run(&g, pass_default, 0, NULL, &st));
    for (CcRef r = 1; r < g.len; r++) {
        T_CHECK(cc_info(&g, r)->cls != CC_CLASS_COMP);
    }
    /* a graph that is broken is noticed behind the pass */
    g.node[1].dtype = CC_DTYPE_F32;
    T_CHECK(!pass_run(&g, "dce", 0, &opt, &st) && st.reason == CC_REASON_BAD_GRAPH);
    cc_graph_fini(&g);
    /* a framework call has no pieces, an unbound symbol is left to verify */
    T_CHECK(cc_graph_parse(&g, "%1 = EXTERN[id=1]\n%2 = EXTERN_GET[k=0] f64[n1] %1\nout %2", &st));
    T_CHECK(!pass_run(&g, "infer", 0, &opt, &st) && strstr(st.detail, "not bound") != NULL);
    cc_graph_fini(&g);
}

/* -- Random graphs ----------------------------------------------------------- */

static uint32_t
count_roots(const CcGraph *g)
{
    uint32_t n = 0;

    for (CcRef r = 1; r < g->len; r++) {
        n += (g->node[r].flags & CC_NODE_FAULT) != 0;
    }
    return n;
}

/* parse(print(g)) is g, and verifies. */
static void
check_text(CcGraph *g)
{
    CcStatus st = {0};
    CcGraph back;
    CcBuf text, again;

    cc_buf_init(&text);
    cc_buf_init(&again);
    cc_graph_print(g, &text);
    bool ok = cc_graph_parse(&back, cc_buf_text(&text), &st);
    if (!ok || !cc_graph_verify(&back, &st)) {
        printf("%s%s\n", cc_buf_text(&text), st.detail);
        T_CHECK(false);
    }
    if (ok) {
        cc_graph_print(&back, &again);
        T_CHECK(strcmp(cc_buf_text(&text), cc_buf_text(&again)) == 0);
        T_CHECK(back.len == g->len && back.nparam == g->nparam && back.nout == g->nout);
        cc_graph_fini(&back);
    }
    cc_buf_fini(&text);
    cc_buf_fini(&again);
}

/* Outputs of the graph after `names` have the bits they had before. */
static void
check_passes(const CcGraph *before, const RefRun *want, const RefArray *in, const char *names,
             uint64_t round)
{
    PassOptions opt = {.verify = true};
    CcStatus st = {0};
    CcGraph g;
    RefRun run;

    T_CHECK(cc_graph_clone(&g, before, &st));
    if (!pass_run(&g, names, PASS_P_TYPED | PASS_P_PRIMITIVE, &opt, &st)) {
        printf("round %llu, %s: %s\n", (unsigned long long)round, names, st.detail);
        T_CHECK(false);
        cc_graph_fini(&g);
        return;
    }
    bool ok = ref_eval(&run, &g, in);
    for (uint32_t i = 0; ok && i < g.nout; i++) {
        ok = ref_equal(&run.val[g.out[i].node], &want->val[before->out[i].node]);
    }
    T_CHECK(g.nparam == before->nparam && g.nout == before->nout);
    if (!ok) {
        CcBuf text;
        cc_buf_init(&text);
        cc_graph_print(before, &text);
        cc_graph_print(&g, &text);
        printf("round %llu, %s changes a value\n%s", (unsigned long long)round, names,
               cc_buf_text(&text));
        T_CHECK(false);
        cc_buf_fini(&text);
    }
    ref_fini(&run);
    cc_graph_fini(&g);
}

static void
test_random_graphs(void)
{
    uint64_t seed = 20240;

    for (uint64_t round = 0; round < ROUNDS && t_failed == 0; round++) {
        CcStatus st = {0};
        CcGraph g, plain;
        RefRun run;
        random_graph(&g, &seed, 30);
        T_CHECK(cc_graph_verify(&g, &st));
        T_CHECK(g.dims.nguard == 0);
        check_text(&g);
        RefArray *in = ref_inputs(&g, &seed, -2, 2, -3, 3);
        T_CHECK(ref_eval(&run, &g, in));
        check_passes(&g, &run, in, "infer", round);
        check_passes(&g, &run, in, "dce", round);
        check_passes(&g, &run, in, "cse", round);
        check_passes(&g, &run, in, "algebra", round);
        check_passes(&g, &run, in, "algebra cse dce algebra cse dce", round);
        /* composites have other roundings than their pieces: compare from the pieces on */
        T_CHECK(cc_graph_clone(&plain, &g, &st) && pass_decompose(&plain, &st));
        T_CHECK(cc_graph_verify(&plain, &st));
        ref_fini(&run);
        T_CHECK(ref_eval(&run, &plain, in));
        check_text(&plain);
        check_passes(&plain, &run, in, pass_default, round);
        ref_fini(&run);
        ref_inputs_free(&g, in);
        cc_graph_fini(&g);
        cc_graph_fini(&plain);
    }
}

/* Composites and their pieces agree to rounding. */
static void
test_decompose_values(void)
{
    static const char *const text[] = {
        "%1 = PARAM f64[n2,n3]\n%2 = MEAN[axes=0] %1\nout %2",
        "%1 = PARAM f64[n2,n3]\n%2 = VAR[axes=0,1 ddof=1] %1\nout %2",
        "%1 = PARAM f64[n2,n3]\n%2 = STD[axes=1 ddof=0] %1\nout %2",
        "%1 = PARAM f64[n2,n3]\n%2 = SOFTMAX[axis=0] %1\nout %2",
        "%1 = PARAM f64[n2,n3]\n%2 = LOGSOFTMAX[axis=1] %1\nout %2",
        "%1 = PARAM f64[n2,n3]\n%2 = GELU %1\nout %2",
    };
    uint64_t seed = 5;

    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
        CcStatus st = {0};
        CcGraph g;
        RefRun whole, pieces;
        T_CHECK(cc_graph_parse(&g, text[i], &st));
        RefArray *in = ref_inputs(&g, &seed, -700, 700, 0, 0);
        T_CHECK(ref_eval(&whole, &g, in));
        RefArray want = whole.val[2];
        CcGraph d;
        T_CHECK(cc_graph_clone(&d, &g, &st) && pass_decompose(&d, &st));
        T_CHECK(ref_eval(&pieces, &d, in));
        const RefArray *have = &pieces.val[d.out[0].node];
        T_CHECK(have->n == want.n);
        for (int64_t k = 0; k < want.n; k++) {
            double x = ref_get(&want, k), y = ref_get(have, k);
            T_CHECK(fabs(x - y) <= 1e-12 * (fabs(x) + 1e-200));
        }
        ref_fini(&whole);
        ref_fini(&pieces);
        ref_inputs_free(&g, in);
        cc_graph_fini(&g);
        cc_graph_fini(&d);
    }
}

/* dce keeps every root; cse joins only equal ones; algebra drops only what folds away. */
static void
test_fault_roots(void)
{
    uint64_t seed = 31;

    for (int round = 0; round < 50; round++) {
        CcStatus st = {0};
        CcGraph g;
        random_graph(&g, &seed, 30);
        uint32_t roots = count_roots(&g);
        T_CHECK(pass_dce(&g, &st) && count_roots(&g) == roots);
        T_CHECK(pass_cse(&g, &st) && count_roots(&g) <= roots);
        uint32_t left = count_roots(&g);
        T_CHECK(pass_dce(&g, &st) && count_roots(&g) == left);
        cc_graph_fini(&g);
    }
}

/* -- Memory ------------------------------------------------------------------ */

static void
test_no_memory(void)
{
    for (int pass = 0; pass < PASS__COUNT; pass++) {
        uint64_t seed = 99;
        CcGraph made;
        random_graph(&made, &seed, 40);
        for (long n = 0;; n++) {
            CcStatus st = {0};
            CcGraph g;
            T_CHECK(cc_graph_clone(&g, &made, &st));
            cc_mem_fail_after(n);
            bool ok = pass_info[pass].run(&g, &st);
            int fired = cc_mem_failed();
            cc_mem_fail_after(-1);
            T_CHECK(ok == !fired);
            T_CHECK(ok || st.reason == CC_REASON_NO_MEMORY);
            T_CHECK(cc_graph_verify(&g, &st));
            T_CHECK(ok || (g.nout == made.nout && g.nparam == made.nparam));
            cc_graph_fini(&g);
            if (!fired) {
                break;
            }
        }
        cc_graph_fini(&made);
    }
}

int
main(void)
{
    test_runner();
    test_random_graphs();
    test_decompose_values();
    test_fault_roots();
    test_no_memory();
    return t_failed != 0;
}
