/* tests/c/test_ir_build.c - builders and inference; the op and dtype tables are complete. */
#include "base/mem.h"
#include "ir/build.h"
#include "pass/pass.h"
#include "t.h"

#include <string.h>

/* -- Tables ------------------------------------------------------------------------------------ */

static void
test_op_table(void)
{
    for (int op = 0; op < CC_OP__COUNT; op++) {
        const CcOpInfo *info = &cc_op_info[op];
        T_CHECK(cc_op_from_name(info->name, (uint32_t)strlen(info->name)) == (CcOp)op);
        T_CHECK(info->vjp[0] != '\0');
        /* operands of a C text are those of the row */
        for (const char *s = strchr(info->text, '$'); s != NULL; s = strchr(s + 1, '$')) {
            T_CHECK(s[1] >= '0' && s[1] < '0' + info->nargs);
        }
        T_CHECK(info->text[0] == '\0' || info->cls == CC_CLASS_EW);
        T_CHECK((info->flags & CC_OPF_COMMUTATIVE) == 0 || info->nargs == 2);
        const char *at = NULL;
        CcAttrSpec spec = {0};
        while (cc_attr_next((CcOp)op, 3, &at, &spec)) {
            T_CHECK(strchr("idm24ID", spec.kind) != NULL && spec.namelen > 0);
        }
        T_CHECK(cc_op_nattr((CcOp)op, 3) == spec.first + spec.count);
    }
    T_CHECK(cc_op_from_name("AD", 2) == CC_OP__COUNT);
    T_CHECK(cc_op_nattr(CC_OP_SLICE, 3) == 6 && cc_op_nattr(CC_OP_CONV2D, 4) == 9);
    T_CHECK(cc_op_wants_fixed(CC_OP_CONV2D, 0, 1) && !cc_op_wants_fixed(CC_OP_CONV2D, 0, 0));
    T_CHECK(cc_op_wants_fixed(CC_OP_CONV2D, 1, 3) && !cc_op_wants_fixed(CC_OP_CONV2D, 2, 0));
    T_CHECK(!cc_op_wants_fixed(CC_OP_ADD, 1, 0));
}

static void
test_dtype_table(void)
{
    for (int dt = 1; dt < CC_DTYPE__COUNT; dt++) {
        const CcDtypeInfo *info = &cc_dtype_info[dt];
        T_CHECK(cc_dtype_from_text(info->text, (uint32_t)strlen(info->text)) == (CcDtype)dt);
        T_CHECK(info->npchar == '\0' || cc_dtype_from_npchar(info->npchar) == (CcDtype)dt);
    }
    T_CHECK(cc_dtype_from_npchar('\0') == CC_DTYPE_NONE);
    T_CHECK(cc_dtype_from_npchar('e') == CC_DTYPE_NONE);
    T_CHECK(!cc_dtype_is_int(CC_DTYPE_BOOL) && cc_dtype_is_int(CC_DTYPE_U64));
}

static void
test_constants(void)
{
    T_CHECK(cc_const_from_i64(CC_DTYPE_I8, 200) == UINT64_C(0xffffffffffffffc8));
    T_CHECK(cc_const_from_i64(CC_DTYPE_U8, -1) == 255);
    T_CHECK(cc_const_from_i64(CC_DTYPE_BOOL, 6) == 1);
    T_CHECK(cc_const_from_f64(CC_DTYPE_F32, 1.0) == 0x3f800000);
    T_CHECK(cc_const_from_f64(CC_DTYPE_I32, -2.9) == (uint64_t)-2);
    T_CHECK(cc_const_from_f64(CC_DTYPE_U64, 0x1p63) == UINT64_C(1) << 63);
    T_CHECK(cc_const_f64(CC_DTYPE_U64, UINT64_MAX) == 0x1p64);
    T_CHECK(cc_const_f64(CC_DTYPE_I16, cc_const_from_i64(CC_DTYPE_I16, -3)) == -3.0);
    T_CHECK(cc_const_i64(CC_DTYPE_F64, cc_const_from_f64(CC_DTYPE_F64, 7.5)) == 7);
    /* one rounding on the way from 64-bit integers to f32 */
    T_CHECK(cc_const_from_i64(CC_DTYPE_F32, (INT64_C(1) << 54) + (INT64_C(1) << 30) + 1)
            == cc_const_from_f64(CC_DTYPE_F32, 0x1.000002p54));
}

/* -- Builders ---------------------------------------------------------------------------------- */

typedef struct {
    CcGraph g;
    CcStatus st;
    CcDim n1, n2, n3, one, zero;
    CcRef a, b, row, i, flag;           /* f64[n1,n2] f64[n1,n2] f64[n3] i64[n3] bool[n1,n2] */
} Bench;

static void
bench_init(Bench *t)
{
    memset(t, 0, sizeof(*t));
    cc_graph_init(&t->g);
    t->n1 = cc_dim_sym(&t->g, 1, &t->st);
    t->n2 = cc_dim_sym(&t->g, 2, &t->st);
    t->n3 = cc_dim_sym(&t->g, 3, &t->st);
    t->one = cc_dim_const(&t->g, 1, &t->st);
    t->zero = cc_dim_const(&t->g, 0, &t->st);
    CcDim dim[2] = {t->n1, t->n2};
    t->a = cc_build_param(&t->g, CC_DTYPE_F64, 2, dim, CC_LAYOUT_C, &t->st);
    t->b = cc_build_param(&t->g, CC_DTYPE_F64, 2, dim, CC_LAYOUT_F, &t->st);
    t->row = cc_build_param(&t->g, CC_DTYPE_F64, 1, &t->n3, CC_LAYOUT_STRIDED, &t->st);
    t->i = cc_build_param(&t->g, CC_DTYPE_I64, 1, &t->n3, CC_LAYOUT_C, &t->st);
    t->flag = cc_build_param(&t->g, CC_DTYPE_BOOL, 2, dim, CC_LAYOUT_C, &t->st);
}

static void
test_broadcast_pair(void)
{
    Bench t;
    bench_init(&t);
    CcRef a = t.a, row = t.row;
    T_CHECK(cc_build_broadcast_pair(&t.g, &a, &row, &t.st));
    T_CHECK(a == t.a && t.g.node[row].op == CC_OP_BROADCAST);
    T_CHECK(t.g.dims.nguard == 1 && cc_same_shape(&t.g, a, row));
    CcRef sum = cc_build_binary(&t.g, CC_OP_ADD, a, row, &t.st);
    T_CHECK(sum != 0 && cc_dim_same(&t.g, cc_shape(&t.g, sum)[1], t.n3));
    CcDim dim[2] = {t.n1, t.one};
    CcRef column = cc_build_param(&t.g, CC_DTYPE_F64, 2, dim, CC_LAYOUT_C, &t.st), r2 = t.row;
    T_CHECK(cc_build_broadcast_pair(&t.g, &column, &r2, &t.st) && t.g.dims.nguard == 1);
    T_CHECK(cc_same_shape(&t.g, column, t.a));
    T_CHECK(cc_graph_verify(&t.g, &t.st));
    cc_graph_fini(&t.g);
}

/* A build that fails leaves no node, no guard and a reason. */
static void
test_misfits(void)
{
    Bench t;
    bench_init(&t);
    CcGraph *g = &t.g;
    CcStatus *st = &t.st;
    CcRef len = g->len;
    CcDim start[2] = {t.zero, t.zero}, size[2] = {t.n1, t.n2}, five = cc_dim_const(g, 5, st);
    int64_t step[2] = {1, 0};
    CcConv conv = {{1, 1}, {0, 0, 0, 0}, {1, 1}, 1};
    const CcRef results[] = {
        cc_build_binary(g, CC_OP_ADD, t.a, t.row, st),
        cc_build_binary(g, CC_OP_ADD, t.a, t.flag, st),
        cc_build_binary(g, CC_OP_SHL, t.a, t.b, st),
        cc_build_unary(g, CC_OP_SQRT, t.i, st),
        cc_build_unary(g, CC_OP_ADD, t.a, st),
        cc_build_where(g, t.a, t.a, t.b, st),
        cc_build_reduce(g, CC_OP_SUM, t.a, 4, false, st),
        cc_build_reduce(g, CC_OP_SUM, t.flag, 1, false, st),
        cc_build_along(g, CC_OP_CUMSUM, t.a, 2, st),
        cc_build_slice(g, t.a, start, step, size, st),
        cc_build_gather(g, t.a, t.row, 0, st),
        cc_build_scatter(g, CC_OP_SCATTER, t.a, t.i, t.b, 2, st),
        cc_build_matmul(g, t.a, t.row, false, false, st),
        cc_build_conv2d(g, t.a, t.b, 0, &conv, st),
        cc_build_extern_get(g, t.a, 0, CC_DTYPE_F64, 0, NULL, st),
        cc_build_cast(g, t.a, CC_DTYPE_OPAQUE, st),
        cc_build_iota(g, t.row, t.row, five, st),
        cc_build_pad(g, t.a, t.row, start, start, st),
        cc_build_binary(g, CC_OP_ADD, 99, t.a, st),
        cc_build_scalar_param(g, CC_DTYPE_F32, 0, st),
        cc_build_scalar_param(g, CC_DTYPE_F64, 1, st),
        cc_build_concat(g, &t.a, 0, 0, st),
        cc_build_expand(g, t.row, 4, st),
    };
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        if (results[i] != 0) {
            printf("result %zu\n", i);
        }
        T_CHECK(results[i] == 0);
    }
    T_CHECK(st->reason == CC_REASON_BAD_OPERANDS);
    T_CHECK(g->len == len && g->dims.nguard == 0);
    /* the batch dims get a guard before the inner dims fail */
    CcDim da[3] = {t.n1, t.n2, five}, db[3] = {t.n2, t.one, t.n3};
    CcRef p = cc_build_param(g, CC_DTYPE_F64, 3, da, CC_LAYOUT_C, st);
    CcRef q = cc_build_param(g, CC_DTYPE_F64, 3, db, CC_LAYOUT_C, st);
    T_CHECK(cc_build_matmul(g, p, q, false, false, st) == 0);
    T_CHECK(g->dims.nguard == 0 && !cc_dim_same(g, t.n1, t.n2));
    T_CHECK(cc_graph_verify(g, st));
    cc_graph_fini(g);
}

static void
test_shapes(void)
{
    Bench t;
    bench_init(&t);
    CcGraph *g = &t.g;
    CcStatus *st = &t.st;
    CcRef kept = cc_build_reduce(g, CC_OP_MAX, t.a, 2, true, st);
    T_CHECK(g->node[kept].ndim == 2 && cc_dim_equals(g, cc_shape(g, kept)[1], 1));
    CcRef back = cc_build_flip(g, cc_build_flip(g, t.a, 2, st), 2, st);
    T_CHECK(back != 0 && cc_same_shape(g, back, t.a));
    CcRef taken = cc_build_gather(g, t.a, t.i, 1, st);
    T_CHECK(cc_dim_same(g, cc_shape(g, taken)[1], t.n3) && g->dims.nguard == 0);
    CcRef put = cc_build_scatter(g, CC_OP_SCATTER_ADD, t.a, t.i, taken, 1, st);
    T_CHECK(cc_same_shape(g, put, t.a));
    CcRef product = cc_build_matmul(g, t.a, t.b, true, false, st);
    T_CHECK(cc_dim_same(g, cc_shape(g, product)[0], t.n2) && g->dims.nguard == 0);
    CcDim flat = cc_numel(g, t.a, st);
    CcRef line = cc_build_reshape(g, t.a, 1, &flat, st);
    T_CHECK(line != 0 && cc_build_reshape(g, line, 1, &flat, st) == line && g->dims.nguard == 0);
    CcRef size = cc_build_size(g, flat, CC_DTYPE_F32, st);
    T_CHECK(g->node[size].op == CC_OP_CAST && g->node[size].dtype == CC_DTYPE_F32);
    CcRef known = cc_build_size(g, t.one, CC_DTYPE_F32, st);
    T_CHECK(g->node[known].op == CC_OP_CONST);
    T_CHECK(cc_const_f64(CC_DTYPE_F32, g->node[known].bits) == 1);
    CcRef call = cc_build_extern(g, 4, &t.a, 1, st);
    CcRef got = cc_build_extern_get(g, call, 1, CC_DTYPE_I64, 1, &t.n3, st);
    T_CHECK(g->node[got].dtype == CC_DTYPE_I64);
    CcRef scalar = cc_build_scalar_param(g, CC_DTYPE_I64, 9, st);
    T_CHECK(scalar != 0 && g->param[g->nparam - 1].sym == 9 && cc_graph_nsym(g) == 10);
    T_CHECK(cc_node_faults(g, product)
            == (CC_FAULT_OVERFLOW | CC_FAULT_UNDERFLOW | CC_FAULT_INVALID));
    CcRef narrow = cc_build_cast(g, t.a, CC_DTYPE_F32, st);
    T_CHECK(cc_node_faults(g, narrow) == (CC_FAULT_OVERFLOW | CC_FAULT_UNDERFLOW));
    T_CHECK(cc_node_faults(g, cc_build_cast(g, t.a, CC_DTYPE_I8, st)) == CC_FAULT_INVALID);
    T_CHECK(cc_node_faults(g, cc_build_cast(g, t.i, CC_DTYPE_I8, st)) == 0);
    T_CHECK(cc_node_faults(g, cc_build_binary(g, CC_OP_FLOORDIV, t.i, t.i, st))
            == (CC_FAULT_DIVIDE | CC_FAULT_OVERFLOW));
    T_CHECK(cc_graph_verify(g, st));
    cc_graph_fini(g);
}

/* A failure of memory in any builder leaves a graph that verifies. */
static void
test_no_memory(void)
{
    for (long n = 0;; n++) {
        Bench t;
        bench_init(&t);
        cc_mem_fail_after(n);
        CcRef a = t.a, row = t.row, r = 0;
        if (cc_build_broadcast_pair(&t.g, &a, &row, &t.st)) {
            r = cc_build_binary(&t.g, CC_OP_MUL, a, row, &t.st);
            for (int i = 0; r != 0 && i < 20; i++) {
                CcRef part[2] = {r, t.a};
                r = cc_build_concat(&t.g, part, 2, 1, &t.st);
                r = cc_build_flip(&t.g, r, 3, &t.st);
                r = cc_build_moment(&t.g, CC_OP_VAR, r, 2, 1, true, &t.st);
                r = r == 0 ? 0 : cc_build_broadcast(&t.g, r, 2, (CcDim[2]){t.n1, t.n2}, &t.st);
            }
        }
        int fired = cc_mem_failed();
        cc_mem_fail_after(-1);
        T_CHECK((r == 0) == (fired != 0));
        T_CHECK(r != 0 || t.st.reason == CC_REASON_NO_MEMORY);
        T_CHECK(cc_graph_verify(&t.g, &t.st));
        cc_graph_fini(&t.g);
        if (!fired) {
            break;
        }
    }
}

int
main(void)
{
    test_op_table();
    test_dtype_table();
    test_constants();
    test_broadcast_pair();
    test_misfits();
    test_shapes();
    test_no_memory();
    return t_failed != 0;
}
