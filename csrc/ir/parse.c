/* ir/parse.c - inverse of print.c, and a little more: `#` starts a comment, `;` ends a line too,
 * operands may be separated by commas, references may be any numbers (they are renumbered), a
 * node's type may be left out where its row infers it. Recursive descent. */
#include "build.h"

#include "../base/vec.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define PARSE_ATTRS (2 * CC_MAX_NDIM + 16)
#define PARSE_NODES (1 << 22)           /* numbers of nodes in a text are below this */

typedef struct {
    CcGraph *g;
    CcStatus *st;
    const char *at;
    uint32_t line;
    CcRef *name;                        /* owned: number in the text -> ref; 0 = not defined */
    uint32_t nname, capname;
    CcRef *arg;                         /* owned: operands of the node being read */
    uint32_t narg, caparg;
    int depth;                          /* of nested dim expressions */
} Parser;

/* -- Tokens -------------------------------------------------------------------------- */

static bool
parse_fail(Parser *p, const char *what)
{
    return cc_fail(p->st, CC_REASON_BAD_TEXT, "line %u: %s at \"%.20s\"", p->line, what, p->at);
}

static void
skip_blanks(Parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r') {
        p->at++;
    }
    if (*p->at == '#') {
        p->at += strcspn(p->at, "\n");
    }
}

static bool
accept(Parser *p, const char *token)
{
    skip_blanks(p);
    size_t len = strlen(token);
    if (strncmp(p->at, token, len) != 0) {
        return false;
    }
    p->at += len;
    return true;
}

static bool
expect(Parser *p, const char *token)
{
    if (accept(p, token)) {
        return true;
    }
    char what[32] = "expected ";
    strncat(what, token, sizeof(what) - strlen(what) - 1);
    return parse_fail(p, what);
}

static uint32_t
word_length(const char *s)
{
    uint32_t n = 0;

    while ((s[n] >= 'A' && s[n] <= 'Z') || (s[n] >= 'a' && s[n] <= 'z') || s[n] == '_'
           || (n > 0 && s[n] >= '0' && s[n] <= '9')) {
        n++;
    }
    return n;
}

static bool
parse_int(Parser *p, int64_t *value)
{
    char *end;

    skip_blanks(p);
    if (*p->at != '-' && (*p->at < '0' || *p->at > '9')) {
        return parse_fail(p, "expected a number");
    }
    errno = 0;
    long long v = strtoll(p->at, &end, 10);
    if (end == p->at || errno != 0) {
        return parse_fail(p, "bad number");
    }
    p->at = end;
    *value = v;
    return true;
}

static bool
parse_small(Parser *p, int64_t limit, uint32_t *value)
{
    int64_t v;

    if (!parse_int(p, &v)) {
        return false;
    }
    if (v < 0 || v >= limit) {
        return parse_fail(p, "number out of range before");
    }
    *value = (uint32_t)v;
    return true;
}

/* -- Dims ---------------------------------------------------------------------------- */

static CcDim parse_dim_sum(Parser *p);

static CcDim
parse_dim_make(Parser *p, CcDimKind kind, CcDim a, CcDim b)
{
    return a == 0 || b == 0 ? 0 : cc_dim_make(p->g, kind, a, b, p->st);
}

static CcDim
parse_dim_atom(Parser *p)
{
    int64_t value;
    uint32_t number = 0;
    CcDim d;

    if (accept(p, "(")) {
        d = parse_dim_sum(p);
        return d != 0 && expect(p, ")") ? d : 0;
    }
    if (strncmp(p->at, "max(", 4) == 0 || strncmp(p->at, "min(", 4) == 0) {
        CcDimKind kind = p->at[1] == 'a' ? CC_DIM_MAX : CC_DIM_MIN;
        p->at += 4;
        d = parse_dim_sum(p);
        d = d != 0 && expect(p, ",") ? parse_dim_make(p, kind, d, parse_dim_sum(p)) : 0;
        return d != 0 && expect(p, ")") ? d : 0;
    }
    if (*p->at == 'n') {
        p->at++;
        return parse_small(p, CC_MAX_SYM, &number) ? cc_dim_sym(p->g, number, p->st) : 0;
    }
    return parse_int(p, &value) ? cc_dim_const(p->g, value, p->st) : 0;
}

static CcDim
parse_dim_product(Parser *p)
{
    CcDim d = parse_dim_atom(p);

    while (d != 0) {
        if (accept(p, "//")) {
            d = parse_dim_make(p, CC_DIM_FLOORDIV, d, parse_dim_atom(p));
        }
        else if (accept(p, "*")) {
            d = parse_dim_make(p, CC_DIM_MUL, d, parse_dim_atom(p));
        }
        else {
            break;
        }
    }
    return d;
}

static CcDim
parse_dim_sum(Parser *p)
{
    if (p->depth == 64) {
        parse_fail(p, "expression too deep");
        return 0;
    }
    p->depth++;
    CcDim d = parse_dim_product(p);
    while (d != 0) {
        if (accept(p, "+")) {
            d = parse_dim_make(p, CC_DIM_ADD, d, parse_dim_product(p));
        }
        else if (accept(p, "-")) {
            d = parse_dim_make(p, CC_DIM_SUB, d, parse_dim_product(p));
        }
        else {
            break;
        }
    }
    p->depth--;
    return d;
}

/* -- Constants ------------------------------------------------------------------------- */

/* strtod with '.' as decimal point in every locale. */
static double
parse_decimal(const char *text, CcDtype dt, const char **end)
{
    const char *point = localeconv()->decimal_point;
    char copy[80];
    size_t n = strspn(text, "0123456789.eE+-inf"), k = 0;

    for (size_t i = 0; i < n && k + strlen(point) + 1 < sizeof(copy); i++) {
        if (text[i] == '.') {
            memcpy(copy + k, point, strlen(point));
            k += strlen(point);
        }
        else {
            copy[k++] = text[i];
        }
    }
    copy[k] = '\0';
    char *stop;
    double value = dt == CC_DTYPE_F32 ? (double)strtof(copy, &stop) : strtod(copy, &stop);
    *end = *stop == '\0' && k > 0 ? text + n : text;
    return value;
}

static bool
parse_const(Parser *p, CcDtype dt, uint64_t *bits)
{
    const char *end;
    char *stop;

    skip_blanks(p);
    if (dt == CC_DTYPE_BOOL) {
        *bits = accept(p, "True");
        return *bits != 0 || expect(p, "False");
    }
    if (!cc_dtype_is_float(dt)) {
        bool is_unsigned = cc_dtype_info[dt].cls == CC_DCLASS_UINT;
        errno = 0;
        *bits = is_unsigned ? strtoull(p->at, &stop, 10) : (uint64_t)strtoll(p->at, &stop, 10);
        if (stop == p->at || errno != 0
            || cc_const_from_i64(dt, (int64_t)*bits) != *bits) {
            return parse_fail(p, "bad constant");
        }
        p->at = stop;
        return true;
    }
    if (accept(p, "nan(0x")) {
        *bits = strtoull(p->at, &stop, 16);
        p->at = stop;
        return expect(p, ")");
    }
    *bits = cc_const_from_f64(dt, parse_decimal(p->at, dt, &end));
    if (end == p->at) {
        return parse_fail(p, "bad constant");
    }
    p->at = end;
    return true;
}

/* -- Nodes ----------------------------------------------------------------------------- */

/* %7 -> the ref it names */
static bool
parse_ref(Parser *p, CcRef *r)
{
    uint32_t number = 0;

    if (!expect(p, "%") || !parse_small(p, PARSE_NODES, &number)) {
        return false;
    }
    if (number >= p->nname || p->name[number] == 0) {
        return parse_fail(p, "node is not defined before");
    }
    *r = p->name[number];
    return true;
}

static bool
parse_define(Parser *p, uint32_t number, CcRef r)
{
    if (number >= p->nname) {
        uint32_t more = number + 1 - p->nname;
        if (!CC_GROW(p->name, p->nname, p->capname, more)) {
            return cc_fail(p->st, CC_REASON_NO_MEMORY, "names of %u nodes", number);
        }
        memset(p->name + p->nname, 0, more * sizeof(*p->name));
        p->nname = number + 1;
    }
    if (p->name[number] != 0) {
        return parse_fail(p, "node is defined twice before");
    }
    p->name[number] = r;
    return true;
}

/* Attribute values of one node, read once operand 0 is known: `list` is the text behind '['. */
static bool
parse_attrs(Parser *p, const char *list, CcOp op, uint8_t ndim0, int64_t *attr)
{
    const char *resume = p->at, *step = NULL;
    CcAttrSpec spec = {0};

    p->at = list;
    while (cc_attr_next(op, ndim0, &step, &spec)) {
        skip_blanks(p);
        if (strncmp(p->at, spec.name, spec.namelen) != 0 || p->at[spec.namelen] != '=') {
            return parse_fail(p, "unexpected attribute");
        }
        p->at += spec.namelen + 1;
        attr[spec.first] = 0;           /* an empty mask */
        bool empty = spec.kind == 'm' && (*p->at < '0' || *p->at > '9');
        for (uint32_t i = 0; spec.kind == 'm' ? !empty : i < spec.count; i++) {
            if (spec.kind != 'm' && i > 0 && !expect(p, ",")) {
                return false;
            }
            if (spec.kind == 'm') {
                uint32_t axis = 0;
                if (!parse_small(p, CC_MAX_NDIM, &axis)) {
                    return false;
                }
                attr[spec.first] |= INT64_C(1) << axis;
                empty = !accept(p, ",");
            }
            else if (spec.kind == 'd' || spec.kind == 'D') {
                CcDim d = parse_dim_sum(p);
                if (d == 0) {
                    return false;
                }
                attr[spec.first + i] = d;
            }
            else if (!parse_int(p, &attr[spec.first + i])) {
                return false;
            }
        }
    }
    if (!expect(p, "]")) {
        return false;
    }
    p->at = resume;
    return true;
}

/* f64[n1,2*n2] */
static bool
parse_type(Parser *p, CcDtype *dt, uint8_t *ndim, CcDim *dim)
{
    uint32_t len = word_length(p->at);

    *dt = cc_dtype_from_text(p->at, len);
    if (*dt == CC_DTYPE_NONE) {
        return parse_fail(p, "expected a dtype");
    }
    p->at += len;
    if (!expect(p, "[")) {
        return false;
    }
    *ndim = 0;
    while (!accept(p, "]")) {
        if (*ndim == CC_MAX_NDIM) {
            return parse_fail(p, "too many axes");
        }
        if ((*ndim > 0 && !expect(p, ",")) || (dim[*ndim] = parse_dim_sum(p)) == 0) {
            return false;
        }
        (*ndim)++;
    }
    return true;
}

static bool
parse_param(Parser *p, const char *list, CcSpec *spec, CcRef *r)
{
    static const char *const layout[CC_LAYOUT__COUNT] = {"c", "f", "strided", "scalar"};
    const char *resume = p->at;
    uint32_t sym = 0, k = 0;

    if (list == NULL) {                 /* the short form: C contiguous */
        *r = cc_graph_push_param(p->g, spec, CC_LAYOUT_C, 0, p->st);
        return *r != 0;
    }
    p->at = list;
    uint32_t len = word_length(p->at);
    while (k < CC_LAYOUT__COUNT
           && (strlen(layout[k]) != len || memcmp(layout[k], p->at, len) != 0)) {
        k++;
    }
    if (k == CC_LAYOUT__COUNT) {
        return parse_fail(p, "unknown layout");
    }
    p->at += len;
    if (accept(p, "n") && !parse_small(p, CC_MAX_SYM, &sym)) {
        return false;
    }
    if (!expect(p, "]")) {
        return false;
    }
    p->at = resume;
    if (sym != 0 && cc_dim_sym(p->g, sym, p->st) == 0) {
        return false;
    }
    *r = cc_graph_push_param(p->g, spec, (CcLayout)k, sym, p->st);
    return *r != 0;
}

static bool
parse_operands(Parser *p)
{
    p->narg = 0;
    skip_blanks(p);
    while (*p->at == '%') {
        if (!CC_GROW(p->arg, p->narg, p->caparg, 1)) {
            return cc_fail(p->st, CC_REASON_NO_MEMORY, "operands");
        }
        if (p->narg == UINT16_MAX) {
            return parse_fail(p, "too many operands");
        }
        if (!parse_ref(p, &p->arg[p->narg])) {
            return false;
        }
        p->narg++;
        accept(p, ",");
        skip_blanks(p);
    }
    return true;
}

/* `ADD[attrs]! f64[n1] %1 %2`, what stands behind `%3 =` */
static bool
parse_node(Parser *p, CcRef *r)
{
    int64_t attr[PARSE_ATTRS];
    CcDim dim[CC_MAX_NDIM];
    CcSpec spec = {.attr = attr, .shape = dim};
    const char *list = NULL;
    bool typed = false;

    skip_blanks(p);
    uint32_t len = word_length(p->at);
    spec.op = cc_op_from_name(p->at, len);
    if (spec.op == CC_OP__COUNT) {
        return parse_fail(p, "unknown op");
    }
    p->at += len;
    if (*p->at == '[') {
        list = ++p->at;
        p->at += strcspn(p->at, "]\n");
        if (!expect(p, "]")) {
            return false;
        }
    }
    spec.flags = accept(p, "!") ? CC_NODE_FAULT : 0;
    skip_blanks(p);
    if (word_length(p->at) > 0) {
        typed = true;
        if (!parse_type(p, &spec.dtype, &spec.ndim, dim)) {
            return false;
        }
    }
    if (!parse_operands(p)) {
        return false;
    }
    spec.narg = (uint16_t)p->narg;
    spec.arg = p->arg;
    if (spec.op == CC_OP_PARAM) {
        return typed ? parse_param(p, list, &spec, r) : parse_fail(p, "a parameter needs a type");
    }
    if (spec.op == CC_OP_CONST
        && !(typed ? parse_const(p, spec.dtype, &spec.bits) : parse_fail(p, "no type"))) {
        return false;
    }
    uint8_t ndim0 = p->narg > 0 ? p->g->node[p->arg[0]].ndim : 0;
    spec.nattr = cc_op_nattr(spec.op, ndim0);
    if ((list != NULL) != (spec.nattr > 0 || cc_op_info[spec.op].attrs[0] != '\0')) {
        return parse_fail(p, "attributes missing or not expected before");
    }
    if (list != NULL && !parse_attrs(p, list, spec.op, ndim0, attr)) {
        return false;
    }
    *r = typed ? cc_graph_push(p->g, &spec, p->st) : cc_build(p->g, &spec, p->st);
    return *r != 0;
}

/* -- Lines ----------------------------------------------------------------------------- */

static bool
parse_guard(Parser *p)
{
    CcDim a = parse_dim_sum(p);
    CcDim b = a != 0 && expect(p, "==") ? parse_dim_sum(p) : 0;

    return b != 0 && cc_graph_require_eq(p->g, a, b, p->st);
}

static bool
parse_outputs(Parser *p)
{
    skip_blanks(p);
    while (*p->at == '%') {
        CcOutKind kind = CC_OUT_ARRAY;
        uint8_t perm[CC_MAX_NDIM];
        bool ordered = false;
        CcRef r = 0;
        if (!parse_ref(p, &r)) {
            return false;
        }
        while (*p->at == ':') {
            if (accept(p, ":scalar")) {
                kind = CC_OUT_SCALAR;
                continue;
            }
            if (!expect(p, ":order=")) {
                return false;
            }
            ordered = true;
            for (uint32_t k = 0; k < p->g->node[r].ndim; k++) {
                uint32_t axis = 0;
                if ((k > 0 && !expect(p, ",")) || !parse_small(p, CC_MAX_NDIM, &axis)) {
                    return false;
                }
                perm[k] = (uint8_t)axis;
            }
        }
        if (!cc_graph_add_output(p->g, r, kind, ordered ? perm : NULL, p->st)) {
            return false;
        }
        accept(p, ",");
        skip_blanks(p);
    }
    return true;
}

static bool
parse_line(Parser *p)
{
    uint32_t number = 0;
    CcRef r = 0;

    skip_blanks(p);
    if (*p->at == '%') {
        p->at++;
        if (!parse_small(p, PARSE_NODES, &number) || !expect(p, "=") || !parse_node(p, &r)
            || !parse_define(p, number, r)) {
            return false;
        }
    }
    else if (accept(p, "guard ")) {
        if (!parse_guard(p)) {
            return false;
        }
    }
    else if (strncmp(p->at, "out", 3) == 0 && word_length(p->at) == 3) {
        p->at += 3;
        if (!parse_outputs(p)) {
            return false;
        }
    }
    skip_blanks(p);
    return *p->at == '\n' || *p->at == ';' || *p->at == '\0' || parse_fail(p, "unexpected text");
}

bool
cc_graph_parse(CcGraph *g, const char *text, CcStatus *st)
{
    Parser p = {.g = g, .st = st, .at = text, .line = 1};
    bool ok = true;

    cc_graph_init(g);
    while (ok && *p.at != '\0') {
        ok = parse_line(&p);
        if (ok && *p.at != '\0') {
            p.line += *p.at == '\n';
            p.at++;
        }
    }
    cc_free(p.name);
    cc_free(p.arg);
    if (!ok) {
        cc_graph_fini(g);
    }
    return ok;
}
