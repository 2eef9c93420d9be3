/* tests/c/test_ir_text.c - print, parse, verify, hash. */
#include "base/mem.h"
#include "ir/build.h"
#include "t.h"

#include <string.h>

static const char all_forms[] =
    "guard n1 == n4\n"
    "guard 2*n2 == n5\n"
    "%1 = PARAM[c] f64[n1,n2]\n"
    "%2 = PARAM[f] f32[n4,3]\n"
    "%3 = PARAM[strided] bool[n5]\n"
    "%4 = PARAM[scalar n3] i64[]\n"
    "%5 = PARAM[scalar] f64[]\n"
    "%6 = CONST f64[] 0.1\n"
    "%7 = CONST f32[] 0.1\n"
    "%8 = CONST f64[] -0.0\n"
    "%9 = CONST f64[] inf\n"
    "%10 = CONST f32[] -inf\n"
    "%11 = CONST f64[] nan(0x7ff8000000000001)\n"
    "%12 = CONST f64[] 4.94065645841247e-324\n"
    "%13 = CONST f64[] 1e+300\n"
    "%14 = CONST i8[] -128\n"
    "%15 = CONST u64[] 18446744073709551615\n"
    "%16 = CONST i64[] -9223372036854775808\n"
    "%17 = CONST bool[] True\n"
    "%18 = SUM[axes=0,1]! f64[] %1\n"
    "%19 = SUM[axes=] f64[n1,n2] %1\n"
    "%20 = SLICE[start=0,n3 step=1,-2] f64[n1,max(0,n2-n3)//2] %1\n"
    "%21 = EXTERN[id=12] opaque[] %1 %2\n"
    "%22 = EXTERN_GET[k=1] f32[3] %21\n"
    "%23 = EXTERN[id=13] opaque[]\n"
    "%24 = RESHAPE f64[n1*n2] %1\n"
    "%25 = SIZE[dim=n1*n2] i64[]\n"
    "%26 = TRANSPOSE[perm=] f64[] %18\n"
    "out %18:scalar %24 %1:order=1,0 %22\n";

static void
check_round_trip(const char *text)
{
    CcStatus st = {0};
    CcGraph g, back;
    CcBuf out;
    uint64_t h1[2], h2[2];

    cc_buf_init(&out);
    if (!cc_graph_parse(&g, text, &st)) {
        printf("%s\n", st.detail);
        T_CHECK(false);
        return;
    }
    T_CHECK(cc_graph_verify(&g, &st));
    cc_graph_print(&g, &out);
    if (strcmp(cc_buf_text(&out), text) != 0) {
        printf("%s", cc_buf_text(&out));
        T_CHECK(false);
    }
    T_CHECK(cc_graph_clone(&back, &g, &st));
    T_CHECK(cc_graph_hash(&g, h1, &st) && cc_graph_hash(&back, h2, &st));
    T_CHECK(h1[0] == h2[0] && h1[1] == h2[1]);
    back.node[back.len - 1].where = 7;
    T_CHECK(cc_graph_hash(&back, h2, &st) && h1[0] == h2[0] && h1[1] == h2[1]);
    back.node[18].flags = 0;
    T_CHECK(cc_graph_hash(&back, h2, &st) && h1[0] != h2[0] && h1[1] != h2[1]);
    cc_graph_fini(&g);
    cc_graph_fini(&back);
    cc_buf_fini(&out);
}

/* The value is fixed: caches outlive a build of the library. */
static void
test_hash_is_fixed(void)
{
    CcStatus st = {0};
    CcGraph g;
    uint64_t h[2];

    T_CHECK(cc_graph_parse(&g, "%1 = PARAM f64[n1]\n%2 = NEG %1\nout %2", &st));
    T_CHECK(cc_graph_hash(&g, h, &st));
    T_CHECK(h[0] == UINT64_C(0x121ecfab9b42e989) && h[1] == UINT64_C(0xde87f111f836b820));
    cc_graph_fini(&g);
}

static void
test_freedom_of_the_text(void)
{
    CcStatus st = {0};
    CcGraph g;
    CcBuf out;

    cc_buf_init(&out);
    T_CHECK(cc_graph_parse(&g, "# comment\n%7 = PARAM f32[ n2 , 3 ]  # short form\n\n"
                               "%9=CONST f32[] 2; %10 = BROADCAST f32[n2,3] %9\r\n"
                               "%11 = MUL %7, %10; out %11, %7", &st));
    cc_graph_print(&g, &out);
    T_CHECK(strcmp(cc_buf_text(&out), "%1 = PARAM[c] f32[n2,3]\n%2 = CONST f32[] 2.0\n"
                                      "%3 = BROADCAST f32[n2,3] %2\n"
                                      "%4 = MUL f32[n2,3] %1 %3\nout %4 %1\n") == 0);
    cc_graph_fini(&g);
    cc_buf_fini(&out);
    T_CHECK(cc_graph_parse(&g, "", &st) && g.len == 0 && cc_graph_verify(&g, &st));
    cc_graph_fini(&g);
}

static void
test_bad_text(void)
{
    static const char *const bad[] = {
        "%1 = NOSUCH f64[] ", "%1 = ADD f64[] %2 %3", "%1 = PARAM f64", "%1 = PARAM f65[]",
        "%1 = PARAM[d] f64[]", "%1 = PARAM f64[n0]", "%1 = PARAM f64[n5000]", "%1 = PARAM f64[n1+]",
        "%1 = CONST f64[] x", "%1 = CONST i8[] 128", "%1 = CONST u8[] -1", "%1 = CONST bool[] 1",
        "%1 = PARAM f64[]\n%1 = NEG %1", "%1 = PARAM f64[]\n%2 = NEG[axes=1] %1",
        "%1 = PARAM f64[n1]\n%2 = SUM %1", "%1 = PARAM f64[n1]\n%2 = SUM[axis=0] %1",
        "%1 = PARAM f64[n1]\n%2 = SUM[axes=77] %1", "%1 = PARAM f64[n1]\n%2 = SUM[axes=0 %1",
        "%1 = PARAM f64[1//0]", "out %1", "what", "%1 = PARAM f64[] junk",
        "%99999999 = CONST f64[] 1",
        "%1 = PARAM f64[9223372036854775807+1]", "%1 = PARAM f64[99999999999999999999]",
        "guard n1 = n2", "guard 1 == 2", "%1 = PARAM f64[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
        "%1 = PARAM f64[((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((n1",
        "%1 = PARAM f64[]\nout %1:order", "%1 = PARAM f64[n1]\nout %1:order=", "%", "%1", "%1 =",
        "%1 = SLICE[start=0", "%1 = CONST f64[] nan(0x", "%1 = PARAM f64[max(n1]",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CcStatus st = {0};
        CcGraph g;
        if (cc_graph_parse(&g, bad[i], &st)) {
            printf("parsed: %s\n", bad[i]);
            T_CHECK(false);
            cc_graph_fini(&g);
            continue;
        }
        T_CHECK(st.reason == CC_REASON_BAD_TEXT || st.reason == CC_REASON_BAD_OPERANDS);
        T_CHECK(g.node == NULL && st.detail[0] != '\0');
    }
}

/* Every prefix and every single wrong byte: fails or parses, never reads outside or hangs. */
static void
test_damaged_text(void)
{
    char text[sizeof(all_forms)];

    for (size_t i = 0; i < sizeof(all_forms); i++) {
        for (int how = 0; how < 3; how++) {
            CcStatus st = {0};
            CcGraph g;
            memcpy(text, all_forms, sizeof(text));
            text[i] = (char)(how == 0 ? '\0' : how == 1 ? '9' : ']');
            text[sizeof(text) - 1] = '\0';
            if (cc_graph_parse(&g, text, &st)) {
                cc_graph_verify(&g, &st);
                cc_graph_fini(&g);
            }
        }
    }
}

/* -- Verify names the bad node --------------------------------------------------------------- */

static const char sound[] = "%1 = PARAM f64[n1,n2]\n%2 = PARAM[scalar] i64[]\n"
                            "%3 = CONST f32[] 1.0\n%4 = NEG %1\n%5 = SUM[axes=1] %4\n"
                            "%6 = SLICE[start=0 step=1] f64[n1] %5\nout %6 %4:order=1,0";

typedef void (*Damage)(CcGraph *g);

static void unknown_op(CcGraph *g) { g->node[4].op = 255; }
static void later_operand(CcGraph *g) { g->opnd[g->node[4].arg] = 5; }
static void no_operand(CcGraph *g) { g->opnd[g->node[4].arg] = 0; }
static void far_operand(CcGraph *g) { g->node[4].arg = 1000; }
static void wrong_dtype(CcGraph *g) { g->node[4].dtype = CC_DTYPE_F32; }
static void no_dtype(CcGraph *g) { g->node[1].dtype = CC_DTYPE_NONE; }
static void wrong_size(CcGraph *g) { g->shape[g->node[4].shape] = cc_shape(g, 4)[1]; }
static void no_dim(CcGraph *g) { g->shape[g->node[4].shape + 1] = 9999; }
static void wrong_axes(CcGraph *g) { g->attr[g->node[5].attr] = 1; }
static void far_axes(CcGraph *g) { g->attr[g->node[5].attr] = 4; }
static void zero_step(CcGraph *g) { g->attr[g->node[6].attr + 1] = 0; }
static void lost_attr(CcGraph *g) { g->node[6].nattr = 1; }
static void strange_flag(CcGraph *g) { g->node[4].flags = 0x80; }
static void wide_const(CcGraph *g) { g->node[3].bits |= UINT64_C(1) << 40; }
static void value_elsewhere(CcGraph *g) { g->node[4].bits = 1; }
static void param_row(CcGraph *g) { g->param[1].node = 1; }
static void param_scalar(CcGraph *g) { g->param[0].layout = CC_LAYOUT_SCALAR; }
static void param_symbol(CcGraph *g) { g->param[0].sym = 3; }
static void too_many_params(CcGraph *g) { g->node[2].op = CC_OP_IOTA; }
static void output_none(CcGraph *g) { g->out[0].node = 0; }
static void output_scalar(CcGraph *g) { g->out[0].kind = CC_OUT_SCALAR; }
static void output_order(CcGraph *g) { g->out[1].perm[0] = 0; }

static void
unbound_symbol(CcGraph *g)
{
    CcStatus st = {0};
    g->shape[g->node[1].shape] = cc_dim_const(g, 4, &st);
    g->shape[g->node[4].shape] = cc_dim_const(g, 4, &st);
    g->shape[g->node[5].shape] = cc_dim_const(g, 4, &st);
}

static void
test_verify(void)
{
    static const struct {
        Damage damage;
        const char *says;
    } row[] = {
        {unknown_op, "%4: unknown op"}, {later_operand, "%4: operand is not defined before"},
        {no_operand, "%4: operand is not"}, {far_operand, "%4: outside the pools"},
        {wrong_dtype, "%4: NEG is f64, not f32"}, {no_dtype, "%1: PARAM: no result dtype"},
        {wrong_size, "%4: wrong size of axis 0"}, {no_dim, "%4: dim is no row"},
        {wrong_axes, "%5: wrong size"}, {far_axes, "%5: SUM: axis out of range"},
        {zero_step, "%6: SLICE: bad start or step"}, {lost_attr, "%6: SLICE: wrong number of attr"},
        {strange_flag, "%4: unknown flags"}, {wide_const, "%3: value does not fit"},
        {value_elsewhere, "%4: a value that is no constant"},
        {param_row, "%2: parameter has no row"},
        {param_scalar, "%1: a scalar parameter is"}, {param_symbol, "%1: only an i64 scalar"},
        {too_many_params, "%2: IOTA: wrong number"}, {output_none, "output 0: no node"},
        {output_scalar, "output 0: wrong kind"}, {output_order, "output 1: order"},
        {unbound_symbol, "%6: a symbol of the shape is not bound"},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        CcStatus st = {0};
        CcGraph g;
        T_CHECK(cc_graph_parse(&g, sound, &st) && cc_graph_verify(&g, &st));
        row[i].damage(&g);
        bool ok = cc_graph_verify(&g, &st);
        if (ok || strncmp(st.detail, row[i].says, strlen(row[i].says)) != 0) {
            printf("says \"%s\", not \"%s\"\n", ok ? "fine" : st.detail, row[i].says);
            T_CHECK(false);
        }
        T_CHECK(ok || st.reason == CC_REASON_BAD_GRAPH);
        cc_graph_fini(&g);
    }
}

static void
test_no_memory(void)
{
    for (long n = 0;; n++) {
        CcStatus st = {0};
        CcGraph g, copy;
        uint64_t h[2];
        cc_mem_fail_after(n);
        bool ok = cc_graph_parse(&g, all_forms, &st);
        if (ok) {
            ok = cc_graph_verify(&g, &st) && cc_graph_hash(&g, h, &st);
            if (ok && (ok = cc_graph_clone(&copy, &g, &st))) {
                cc_graph_fini(&copy);
            }
            cc_graph_fini(&g);
        }
        int fired = cc_mem_failed();
        cc_mem_fail_after(-1);
        T_CHECK(ok == !fired);
        T_CHECK(ok || st.reason == CC_REASON_NO_MEMORY);
        if (!fired) {
            break;
        }
    }
}

int
main(void)
{
    check_round_trip(all_forms);
    test_hash_is_fixed();
    test_freedom_of_the_text();
    test_bad_text();
    test_damaged_text();
    test_verify();
    test_no_memory();
    return t_failed != 0;
}
