/* ir/print.c - the text form, one line per guard, node and list of outputs:
 *
 *     guard n1 == n2
 *     %1 = PARAM[c] f64[n1,n2]
 *     %2 = PARAM[scalar n3] i64[]
 *     %3 = CONST f64[] 1.0
 *     %4 = SUM[axes=0,1]! f64[] %1
 *     out %4:scalar %1:order=1,0
 *
 * Complete and canonical: dims print their canonical rows (a PARAM's own symbols excepted, since
 * they say what is bound where), so parse gives the same graph and print the same text again. */
#include "graph.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- Dims -------------------------------------------------------------------------- */

static int
dim_level(CcDimKind kind)               /* how tightly it binds: 1 sums, 2 products, 3 the rest */
{
    return kind == CC_DIM_ADD || kind == CC_DIM_SUB        ? 1
         : kind == CC_DIM_MUL || kind == CC_DIM_FLOORDIV   ? 2
                                                           : 3;
}

static void
print_dim_row(const CcGraph *g, CcDim d, int level, CcBuf *out)
{
    static const char *const sign[] = {[CC_DIM_ADD] = "+", [CC_DIM_SUB] = "-", [CC_DIM_MUL] = "*",
                                       [CC_DIM_FLOORDIV] = "//"};
    const CcDimRow *row = &g->dims.row[d];
    int own = dim_level((CcDimKind)row->kind);

    switch (row->kind) {
    case CC_DIM_NONE:
        cc_buf_puts(out, "?");
        return;
    case CC_DIM_CONST:
        cc_buf_printf(out, "%lld", (long long)row->value);
        return;
    case CC_DIM_SYM:
        cc_buf_printf(out, "n%lld", (long long)row->value);
        return;
    case CC_DIM_MAX:
    case CC_DIM_MIN:
        cc_buf_puts(out, row->kind == CC_DIM_MAX ? "max(" : "min(");
        print_dim_row(g, row->a, 0, out);
        cc_buf_puts(out, ",");
        print_dim_row(g, row->b, 0, out);
        cc_buf_puts(out, ")");
        return;
    default:
        cc_buf_puts(out, own < level ? "(" : "");
        print_dim_row(g, row->a, own, out);
        cc_buf_puts(out, sign[row->kind]);
        print_dim_row(g, row->b, own + 1, out);
        cc_buf_puts(out, own < level ? ")" : "");
        return;
    }
}

void
cc_dim_print(const CcGraph *g, CcDim d, CcBuf *out)
{
    if (d == 0 || d >= g->dims.len) {
        cc_buf_puts(out, "?");
        return;
    }
    print_dim_row(g, cc_dim_canon(g, d), 0, out);
}

/* -- Constants ----------------------------------------------------------------------- */

/* The shortest of a few decimal forms that reads back to the same bits, always with a mark of being
 * a float, whatever the locale's decimal point. */
static void
print_float(CcDtype dt, uint64_t bits, CcBuf *out)
{
    double value = cc_const_f64(dt, bits);
    char text[64];

    if (value != value) {
        cc_buf_printf(out, "nan(0x%llx)", (unsigned long long)bits);
        return;
    }
    if (value - value != 0) {
        cc_buf_puts(out, value < 0 ? "-inf" : "inf");
        return;
    }
    for (int digits = dt == CC_DTYPE_F32 ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        double back = dt == CC_DTYPE_F32 ? (double)strtof(text, NULL) : strtod(text, NULL);
        if (cc_const_from_f64(dt, back) == bits) {
            break;
        }
    }
    const char *point = localeconv()->decimal_point;
    char *at = strstr(text, point);
    if (at != NULL) {
        cc_buf_put(out, text, (size_t)(at - text));
        cc_buf_puts(out, ".");
        cc_buf_puts(out, at + strlen(point));
        return;
    }
    cc_buf_puts(out, text);
    cc_buf_puts(out, strchr(text, 'e') == NULL ? ".0" : "");
}

static void
print_const(CcDtype dt, uint64_t bits, CcBuf *out)
{
    if (cc_dtype_is_float(dt)) {
        print_float(dt, bits, out);
    }
    else if (dt == CC_DTYPE_BOOL) {
        cc_buf_puts(out, bits ? "True" : "False");
    }
    else if (cc_dtype_info[dt].cls == CC_DCLASS_UINT) {
        cc_buf_printf(out, "%llu", (unsigned long long)bits);
    }
    else {
        cc_buf_printf(out, "%lld", (long long)bits);
    }
}

/* -- Nodes --------------------------------------------------------------------------- */

static void
print_axes(uint64_t mask, CcBuf *out)
{
    const char *comma = "";

    for (uint32_t i = 0; i < 64; i++) {
        if ((mask >> i & 1) != 0) {
            cc_buf_printf(out, "%s%u", comma, i);
            comma = ",";
        }
    }
}

static void
print_attrs(const CcGraph *g, CcRef r, CcBuf *out)
{
    const CcNode *nd = &g->node[r];
    uint8_t ndim0 = nd->narg > 0 ? g->node[cc_arg(g, r, 0)].ndim : 0;
    const char *at = NULL, *open = "[";
    CcAttrSpec spec = {0};

    while (cc_attr_next((CcOp)nd->op, ndim0, &at, &spec)) {
        cc_buf_printf(out, "%s%.*s=", open, spec.namelen, spec.name);
        for (uint32_t i = 0; i < spec.count && spec.first + i < nd->nattr; i++) {
            int64_t value = cc_attrs(g, r)[spec.first + i];
            cc_buf_puts(out, i > 0 ? "," : "");
            if (spec.kind == 'm') {
                print_axes((uint64_t)value, out);
            }
            else if (spec.kind == 'd' || spec.kind == 'D') {
                cc_dim_print(g, (CcDim)value, out);
            }
            else {
                cc_buf_printf(out, "%lld", (long long)value);
            }
        }
        open = " ";
    }
    cc_buf_puts(out, open[0] == ' ' ? "]" : "");
}

static void
print_param(const CcGraph *g, CcRef r, CcBuf *out)
{
    static const char *const layout[CC_LAYOUT__COUNT] = {"c", "f", "strided", "scalar"};
    const CcParam *param = NULL;

    for (uint32_t k = 0; k < g->nparam; k++) {
        if (g->param[k].node == r) {
            param = &g->param[k];
            break;
        }
    }
    if (param == NULL || param->layout >= CC_LAYOUT__COUNT) {
        cc_buf_puts(out, "[?]");
        return;
    }
    cc_buf_printf(out, "[%s", layout[param->layout]);
    if (param->sym != 0) {
        cc_buf_printf(out, " n%u", param->sym);
    }
    cc_buf_puts(out, "]");
}

void
cc_node_print(const CcGraph *g, CcRef r, CcBuf *out)
{
    const CcNode *nd = &g->node[r];

    if (nd->op >= CC_OP__COUNT || nd->dtype >= CC_DTYPE__COUNT) {
        cc_buf_printf(out, "%%%u = ?", r);
        return;
    }
    cc_buf_printf(out, "%%%u = %s", r, cc_op_info[nd->op].name);
    if (nd->op == CC_OP_PARAM) {
        print_param(g, r, out);
    }
    print_attrs(g, r, out);
    cc_buf_printf(out, "%s %s[", nd->flags & CC_NODE_FAULT ? "!" : "",
                  cc_dtype_info[nd->dtype].text);
    for (uint32_t i = 0; i < nd->ndim; i++) {
        CcDim d = cc_shape(g, r)[i];
        cc_buf_puts(out, i > 0 ? "," : "");
        if (nd->op == CC_OP_PARAM && d < g->dims.len && g->dims.row[d].kind == CC_DIM_SYM) {
            print_dim_row(g, d, 0, out);
        }
        else {
            cc_dim_print(g, d, out);
        }
    }
    cc_buf_puts(out, "]");
    for (uint32_t i = 0; i < nd->narg; i++) {
        cc_buf_printf(out, " %%%u", cc_arg(g, r, i));
    }
    if (nd->op == CC_OP_CONST) {
        cc_buf_puts(out, " ");
        print_const((CcDtype)nd->dtype, nd->bits, out);
    }
}

void
cc_graph_print(const CcGraph *g, CcBuf *out)
{
    for (uint32_t i = 0; i < g->dims.nguard; i++) {
        cc_buf_puts(out, "guard ");
        print_dim_row(g, g->dims.guard[i].a, 0, out);
        cc_buf_puts(out, " == ");
        print_dim_row(g, g->dims.guard[i].b, 0, out);
        cc_buf_puts(out, "\n");
    }
    for (CcRef r = 1; r < g->len; r++) {
        cc_node_print(g, r, out);
        cc_buf_puts(out, "\n");
    }
    cc_buf_puts(out, "out");
    for (uint32_t i = 0; i < g->nout; i++) {
        const CcOutput *o = &g->out[i];
        cc_buf_printf(out, " %%%u%s", o->node, o->kind == CC_OUT_SCALAR ? ":scalar" : "");
        for (uint32_t k = 0; o->ordered && k < g->node[o->node].ndim; k++) {
            cc_buf_printf(out, "%s%u", k > 0 ? "," : ":order=", o->perm[k]);
        }
    }
    cc_buf_puts(out, "\n");
}
