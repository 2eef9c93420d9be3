/* tests/c/test_ir_shape.c - symbolic dims: normal form, equality classes, evaluation. */
#include "base/mem.h"
#include "ir/graph.h"
#include "ref_inputs.h"
#include "t.h"

/* Both texts of dims parse to known-equal dims. */
static bool
same(const char *a, const char *b)
{
    char text[256];
    CcStatus st = {0};
    CcGraph g;

    snprintf(text, sizeof(text), "%%1 = PARAM f64[%s,%s]", a, b);
    if (!cc_graph_parse(&g, text, &st)) {
        printf("%s: %s\n", text, st.detail);
        return false;
    }
    bool equal = cc_dim_same(&g, cc_shape(&g, 1)[0], cc_shape(&g, 1)[1]);
    cc_graph_fini(&g);
    return equal;
}

static void
test_normal_form(void)
{
    T_CHECK(same("n1+n2", "n2+n1"));
    T_CHECK(same("n1-1+1", "n1"));
    T_CHECK(same("2*(n1+3)-6", "n1+n1"));
    T_CHECK(same("(n1+n2)*(n1-n2)", "n1*n1-n2*n2"));
    T_CHECK(same("n1*n2//n2", "n1"));
    T_CHECK(same("(4*n1+8)//4", "n1+2"));
    T_CHECK(same("(n1+2*2-5)//1+1", "n1"));
    T_CHECK(same("max(n1,n2)", "max(n2,n1)"));
    T_CHECK(same("max(n1,0)", "n1"));
    T_CHECK(same("min(n1,n1)", "n1"));
    T_CHECK(same("7//2", "3"));
    T_CHECK(same("-7//2", "-4"));
    T_CHECK(same("n1-n1", "0"));
    T_CHECK(!same("n1//2*2", "n1"));
    T_CHECK(!same("n1", "n2"));
    T_CHECK(!same("max(n1-1,0)", "n1-1"));
    T_CHECK(!same("min(n1,n2)", "max(n1,n2)"));
}

static void
test_constructors_fail(void)
{
    CcStatus st = {0};
    CcGraph g;

    cc_graph_init(&g);
    CcDim big = cc_dim_const(&g, INT64_MAX, &st), one = cc_dim_const(&g, 1, &st);
    CcDim zero = cc_dim_const(&g, 0, &st), n = cc_dim_sym(&g, 1, &st);
    T_CHECK(cc_dim_make(&g, CC_DIM_ADD, big, one, &st) == 0);
    T_CHECK(st.reason == CC_REASON_BAD_OPERANDS);
    T_CHECK(cc_dim_make(&g, CC_DIM_FLOORDIV, n, zero, &st) == 0);
    T_CHECK(cc_dim_make(&g, CC_DIM_ADD, n, 0, &st) == 0);
    T_CHECK(cc_dim_sym(&g, 0, &st) == 0 && cc_dim_sym(&g, CC_MAX_SYM, &st) == 0);
    T_CHECK(cc_dim_sym(&g, CC_MAX_SYM - 1, &st) != 0);
    T_CHECK(cc_graph_nsym(&g) == CC_MAX_SYM);
    cc_graph_fini(&g);
}

static CcDim
sym(CcGraph *g, uint32_t k, CcStatus *st)
{
    return cc_dim_sym(g, k, st);
}

static void
test_equalities(void)
{
    CcStatus st = {0};
    CcGraph g;
    int64_t value[5] = {0, 6, 6, 3, 3};

    cc_graph_init(&g);
    CcDim n1 = sym(&g, 1, &st), n2 = sym(&g, 2, &st), n3 = sym(&g, 3, &st);
    CcDim two = cc_dim_const(&g, 2, &st), three = cc_dim_const(&g, 3, &st);
    CcDim half1 = cc_dim_make(&g, CC_DIM_FLOORDIV, n1, two, &st);
    CcDim half2 = cc_dim_make(&g, CC_DIM_FLOORDIV, n2, two, &st);
    T_CHECK(!cc_dim_same(&g, half1, half2));
    T_CHECK(cc_graph_require_eq(&g, n2, n1, &st) && g.dims.nguard == 1);
    T_CHECK(cc_dim_canon(&g, n2) == n1);        /* the smaller symbol, whoever came first */
    T_CHECK(cc_dim_same(&g, half1, half2));
    T_CHECK(cc_graph_require_eq(&g, half2, half1, &st) && g.dims.nguard == 1);
    T_CHECK(cc_graph_require_eq(&g, half1, n3, &st) && g.dims.nguard == 2);
    T_CHECK(cc_dim_canon(&g, half2) == n3);
    T_CHECK(cc_graph_require_eq(&g, n3, three, &st));
    T_CHECK(cc_dim_equals(&g, half1, 3) && !cc_dim_equals(&g, n1, 6));
    T_CHECK(cc_graph_guards_hold(&g, value, NULL));
    value[2] = 7;
    uint32_t bad = 99;
    T_CHECK(!cc_graph_guards_hold(&g, value, &bad) && bad == 0);
    /* a contradiction records nothing */
    T_CHECK(!cc_graph_require_eq(&g, half2, two, &st));
    T_CHECK(st.reason == CC_REASON_BAD_OPERANDS && g.dims.nguard == 3);
    /* also when it only follows: n1 == 4 would make n1 // 2 both 3 and 2 */
    CcDim four = cc_dim_const(&g, 4, &st);
    T_CHECK(!cc_graph_require_eq(&g, n1, four, &st) && g.dims.nguard == 3);
    T_CHECK(cc_dim_canon(&g, n2) == n1 && cc_dim_equals(&g, half1, 3));
    cc_graph_drop_guards(&g, 1);
    T_CHECK(cc_dim_canon(&g, n3) == n3 && cc_dim_same(&g, half1, half2));
    cc_graph_drop_guards(&g, 0);
    T_CHECK(!cc_dim_same(&g, n1, n2) && !cc_dim_same(&g, half1, half2));
    cc_graph_fini(&g);
}

/* -- Random expressions: the normal form has the value of the expression ----------------------- */

typedef struct {
    CcDim dim;
    int64_t value;
} Pair;

static int64_t
floor_of(int64_t a, int64_t b)
{
    double q = floor((double)a / (double)b);
    return (int64_t)q;
}

static void
test_random_values(void)
{
    uint64_t seed = 77;
    int64_t value[5] = {0, 2, 3, 7, 11};

    for (int round = 0; round < 300; round++) {
        CcStatus st = {0};
        CcGraph g;
        Pair pool[24];
        uint32_t n = 0;
        cc_graph_init(&g);
        for (uint32_t k = 1; k < 5; k++) {
            pool[n++] = (Pair){cc_dim_sym(&g, k, &st), value[k]};
        }
        for (int64_t c = -1; c < 3; c++) {
            pool[n++] = (Pair){cc_dim_const(&g, c, &st), c};
        }
        while (n < 24) {
            Pair a = pool[ref_random(&seed) % n], b = pool[ref_random(&seed) % n];
            CcDimKind kind = (CcDimKind)(CC_DIM_ADD + ref_random(&seed) % 6);
            if (a.value > 10000 || a.value < -10000 || b.value > 10000 || b.value < -10000
                || (kind == CC_DIM_FLOORDIV && b.value == 0)) {
                continue;
            }
            int64_t want = kind == CC_DIM_ADD ? a.value + b.value
                         : kind == CC_DIM_SUB ? a.value - b.value
                         : kind == CC_DIM_MUL ? a.value * b.value
                         : kind == CC_DIM_FLOORDIV ? floor_of(a.value, b.value)
                         : (kind == CC_DIM_MAX) == (a.value > b.value) ? a.value : b.value;
            CcDim d = cc_dim_make(&g, kind, a.dim, b.dim, &st);
            if (d == 0) {               /* divided by what is 0 for every value of the symbols */
                T_CHECK(st.reason == CC_REASON_BAD_OPERANDS && kind == CC_DIM_FLOORDIV);
                continue;
            }
            T_CHECK(cc_dim_eval(&g, d, value) == want);
            pool[n++] = (Pair){d, want};
        }
        cc_graph_fini(&g);
    }
}

/* The same, with text in between: parse(print(d)) is d. */
static void
test_random_text(void)
{
    uint64_t seed = 78;

    for (int round = 0; round < 200; round++) {
        CcStatus st = {0};
        CcGraph g, back;
        CcDim dim[4] = {0};
        CcBuf text, again;
        cc_graph_init(&g);
        cc_buf_init(&text);
        cc_buf_init(&again);
        dim[0] = cc_dim_sym(&g, 1, &st);
        dim[1] = cc_dim_sym(&g, 2, &st);
        dim[2] = cc_dim_const(&g, -2 + (int64_t)(ref_random(&seed) % 5), &st);
        dim[3] = cc_dim_sym(&g, 3, &st);
        for (int i = 0; i < 8; i++) {
            CcDimKind kind = (CcDimKind)(CC_DIM_ADD + ref_random(&seed) % 6);
            CcDim d = cc_dim_make(&g, kind, dim[ref_random(&seed) % 4], dim[ref_random(&seed) % 4],
                                  &st);
            dim[ref_random(&seed) % 4] = d != 0 ? d : dim[0];
        }
        if (round % 3 == 0) {
            cc_graph_require_eq(&g, dim[0], dim[1], &st);
        }
        CcRef r = cc_graph_push_param(&g, &(CcSpec){.op = CC_OP_PARAM, .dtype = CC_DTYPE_F32,
                                                    .ndim = 4, .shape = dim}, CC_LAYOUT_C, 0, &st);
        T_CHECK(r != 0);
        cc_graph_print(&g, &text);
        T_CHECK(cc_graph_parse(&back, cc_buf_text(&text), &st));
        cc_graph_print(&back, &again);
        if (strcmp(cc_buf_text(&text), cc_buf_text(&again)) != 0) {
            printf("%s%s", cc_buf_text(&text), cc_buf_text(&again));
            T_CHECK(false);
        }
        cc_graph_fini(&g);
        cc_graph_fini(&back);
        cc_buf_fini(&text);
        cc_buf_fini(&again);
    }
}

static void
test_no_memory(void)
{
    for (long n = 0;; n++) {
        CcStatus st = {0};
        CcGraph g;
        cc_graph_init(&g);
        cc_mem_fail_after(n);
        CcDim d = cc_dim_sym(&g, 1, &st);
        CcDim e = d == 0 ? 0 : cc_dim_const(&g, 3, &st);
        for (uint32_t k = 2; e != 0 && k < 30; k++) {
            CcDim s = cc_dim_sym(&g, k, &st);
            CcDim t = s == 0 ? 0 : cc_dim_make(&g, CC_DIM_FLOORDIV, s, e, &st);
            e = t == 0 || !cc_graph_require_eq(&g, t, d, &st) ? 0 : e;
        }
        int fired = cc_mem_failed();
        cc_mem_fail_after(-1);
        T_CHECK((e == 0) == (fired != 0));
        T_CHECK(e != 0 || st.reason == CC_REASON_NO_MEMORY);
        cc_graph_fini(&g);
        if (!fired) {
            break;
        }
    }
}

int
main(void)
{
    test_normal_form();
    test_constructors_fail();
    test_equalities();
    test_random_values();
    test_random_text();
    test_no_memory();
    return t_failed != 0;
}
