/* ir/shape.c - the dim table: interning, the polynomial normal form, equality classes.
 *
 * Never changes a row but for `rep` (classes only grow) and appends rows; an index stays valid. */
#include "shape.h"

#include "../base/vec.h"
#include "graph.h"

#include <string.h>

/* A polynomial in atoms (rows that are no CONST, ADD, SUB, MUL). Terms are distinct and sorted by
 * poly_order(), factors of a term by dim_order(); no coefficient is 0. */
#define POLY_TERMS 24
#define POLY_FACTORS 8
#define POLY_DEPTH 64

typedef struct {
    int64_t coef;
    uint32_t n;
    CcDim factor[POLY_FACTORS];
} Term;

typedef struct {
    uint32_t n;
    Term term[POLY_TERMS];
} Poly;

typedef enum { POLY_OK, POLY_LARGE, POLY_OVERFLOW } PolyResult;

/* -- Rows ------------------------------------------------------------------- */

static const CcDimRow *
dim_row(const CcGraph *g, CcDim d)
{
    return &g->dims.row[d];
}

CcDim
cc_dim_canon(const CcGraph *g, CcDim d)
{
    while (d != 0 && dim_row(g, d)->rep != d) {
        d = dim_row(g, d)->rep;
    }
    return d;
}

/* The row with this content, new when there is none. Tables are small (tens of rows), so the
 * search is linear. */
static CcDim
dim_intern(CcGraph *g, CcDimKind kind, CcDim a, CcDim b, int64_t value, CcStatus *st)
{
    CcDimTable *t = &g->dims;

    for (CcDim d = 1; d < t->len; d++) {
        const CcDimRow *row = &t->row[d];
        if (row->kind == kind && row->value == value && row->a == a && row->b == b) {
            return d;
        }
    }
    if (!CC_GROW(t->row, t->len, t->cap, 2)) {
        cc_fail(st, CC_REASON_NO_MEMORY, "%u dims", t->len);
        return 0;
    }
    if (t->len == 0) {
        t->row[t->len++] = (CcDimRow){0};
    }
    uint64_t size = 1 + (uint64_t)t->row[a].size + t->row[b].size;
    size = size > UINT32_MAX ? UINT32_MAX : size;
    t->row[t->len] = (CcDimRow){.kind = (uint8_t)kind, .a = a, .b = b, .rep = t->len,
                                .value = value, .size = (uint32_t)size};
    return t->len++;
}

CcDim
cc_dim_const(CcGraph *g, int64_t value, CcStatus *st)
{
    return dim_intern(g, CC_DIM_CONST, 0, 0, value, st);
}

CcDim
cc_dim_sym(CcGraph *g, uint32_t number, CcStatus *st)
{
    if (number == 0 || number >= CC_MAX_SYM) {
        cc_fail(st, CC_REASON_BAD_OPERANDS, "symbol number %u", number);
        return 0;
    }
    return dim_intern(g, CC_DIM_SYM, 0, 0, number, st);
}

/* A total order that depends only on structure: small rows first, constants before symbols. */
static int
dim_order(const CcGraph *g, CcDim a, CcDim b)
{
    const CcDimRow *x = dim_row(g, a), *y = dim_row(g, b);

    if (a == b) {
        return 0;
    }
    if (x->size != y->size) {
        return x->size < y->size ? -1 : 1;
    }
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->value != y->value) {
        return x->value < y->value ? -1 : 1;
    }
    int c = dim_order(g, x->a, y->a);
    return c != 0 ? c : dim_order(g, x->b, y->b);
}

/* -- Normal form ------------------------------------------------------------ */

/* Higher degree first, so the constant term is last. */
static int
poly_order(const CcGraph *g, const Term *x, const Term *y)
{
    if (x->n != y->n) {
        return x->n > y->n ? -1 : 1;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        int c = dim_order(g, x->factor[i], y->factor[i]);
        if (c != 0) {
            return c;
        }
    }
    return 0;
}

static PolyResult
poly_add_term(const CcGraph *g, Poly *p, const Term *term)
{
    uint32_t at = 0;

    while (at < p->n && poly_order(g, &p->term[at], term) < 0) {
        at++;
    }
    if (at < p->n && poly_order(g, &p->term[at], term) == 0) {
        if (__builtin_add_overflow(p->term[at].coef, term->coef, &p->term[at].coef)) {
            return POLY_OVERFLOW;
        }
        if (p->term[at].coef == 0) {
            p->n--;
            memmove(&p->term[at], &p->term[at + 1], (p->n - at) * sizeof(Term));
        }
        return POLY_OK;
    }
    if (term->coef == 0) {
        return POLY_OK;
    }
    if (p->n == POLY_TERMS) {
        return POLY_LARGE;
    }
    memmove(&p->term[at + 1], &p->term[at], (p->n - at) * sizeof(Term));
    p->term[at] = *term;
    p->n++;
    return POLY_OK;
}

/* *out = x * y */
static PolyResult
term_mul(const CcGraph *g, const Term *x, const Term *y, Term *out)
{
    uint32_t i = 0, j = 0;

    if (x->n + y->n > POLY_FACTORS) {
        return POLY_LARGE;
    }
    if (__builtin_mul_overflow(x->coef, y->coef, &out->coef)) {
        return POLY_OVERFLOW;
    }
    out->n = x->n + y->n;
    for (uint32_t k = 0; k < out->n; k++) {
        bool left = j == y->n || (i < x->n && dim_order(g, x->factor[i], y->factor[j]) <= 0);
        out->factor[k] = left ? x->factor[i++] : y->factor[j++];
    }
    return POLY_OK;
}

static PolyResult
poly_combine(const CcGraph *g, CcDimKind kind, CcDim x, CcDim y, int depth, Poly *out);

static PolyResult
poly_of(const CcGraph *g, CcDim d, int depth, Poly *out)
{
    d = cc_dim_canon(g, d);
    const CcDimRow *row = dim_row(g, d);
    Term term = {.coef = 1, .n = 1, .factor = {d}};

    if (row->kind == CC_DIM_ADD || row->kind == CC_DIM_SUB || row->kind == CC_DIM_MUL) {
        return poly_combine(g, (CcDimKind)row->kind, row->a, row->b, depth, out);
    }
    out->n = 0;
    if (row->kind == CC_DIM_CONST) {
        term = (Term){.coef = row->value};
    }
    return poly_add_term(g, out, &term);
}

/* *out = x + y, x - y or x * y */
static PolyResult
poly_combine(const CcGraph *g, CcDimKind kind, CcDim x, CcDim y, int depth, Poly *out)
{
    Poly a, b;
    PolyResult res = depth < POLY_DEPTH ? poly_of(g, x, depth + 1, &a) : POLY_LARGE;

    res = res == POLY_OK ? poly_of(g, y, depth + 1, &b) : res;
    if (res != POLY_OK) {
        return res;
    }
    out->n = 0;
    if (kind != CC_DIM_MUL) {
        *out = a;
    }
    for (uint32_t j = 0; j < b.n && res == POLY_OK; j++) {
        Term term = b.term[j];
        if (kind == CC_DIM_SUB && __builtin_sub_overflow(0, term.coef, &term.coef)) {
            return POLY_OVERFLOW;
        }
        if (kind != CC_DIM_MUL) {
            res = poly_add_term(g, out, &term);
            continue;
        }
        for (uint32_t i = 0; i < a.n && res == POLY_OK; i++) {
            res = term_mul(g, &a.term[i], &b.term[j], &term);
            res = res == POLY_OK ? poly_add_term(g, out, &term) : res;
        }
    }
    return res;
}

/* coef * factors as a row; coef is the term's or its negation. */
static CcDim
term_dim(CcGraph *g, const Term *term, int64_t coef, CcStatus *st)
{
    CcDim d = 0;

    if (coef != 1 || term->n == 0) {
        d = cc_dim_const(g, coef, st);
        if (d == 0) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < term->n; i++) {
        d = d == 0 ? term->factor[i] : dim_intern(g, CC_DIM_MUL, d, term->factor[i], 0, st);
        if (d == 0) {
            return 0;
        }
    }
    return d;
}

/* Terms with a positive coefficient first, the others are subtracted: n1-1, not -1+n1. */
static CcDim
poly_dim(CcGraph *g, const Poly *p, CcStatus *st)
{
    CcDim sum = 0;

    if (p->n == 0) {
        return cc_dim_const(g, 0, st);
    }
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (uint32_t i = 0; i < p->n; i++) {
            int64_t coef = p->term[i].coef;
            if ((coef > 0) != (sign > 0)) {
                continue;
            }
            bool minus = sum != 0 && sign < 0 && coef != INT64_MIN;
            CcDim d = term_dim(g, &p->term[i], minus ? -coef : coef, st);
            if (d != 0 && sum != 0) {
                d = dim_intern(g, minus ? CC_DIM_SUB : CC_DIM_ADD, sum, d, 0, st);
            }
            if (d == 0) {
                return 0;
            }
            sum = d;
        }
    }
    return sum;
}

/* p / q when q is one term that divides every term of p. */
static bool
poly_divide(const Poly *p, const Poly *q, Poly *out)
{
    if (q->n != 1 || p->n == 0) {
        return false;
    }
    const Term *by = &q->term[0];
    out->n = p->n;
    for (uint32_t i = 0; i < p->n; i++) {
        const Term *from = &p->term[i];
        Term *to = &out->term[i];
        uint32_t j = 0;
        if (by->coef == -1 || from->coef % by->coef != 0) {
            return false;
        }
        to->coef = from->coef / by->coef;
        to->n = 0;
        for (uint32_t k = 0; k < from->n; k++) {
            if (j < by->n && from->factor[k] == by->factor[j]) {
                j++;
            } else {
                to->factor[to->n++] = from->factor[k];
            }
        }
        if (j != by->n) {
            return false;
        }
    }
    return true;
}

static int64_t
floordiv(int64_t a, int64_t b)
{
    if (b == 0) {
        return 0;
    }
    if (b == -1) {
        return (int64_t)(0 - (uint64_t)a);
    }
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static CcDim
dim_floordiv(CcGraph *g, CcDim a, CcDim b, CcStatus *st)
{
    const CcDimRow *x = dim_row(g, a), *y = dim_row(g, b);
    Poly p, q, quotient;

    if (y->kind == CC_DIM_CONST) {
        if (y->value == 0) {
            cc_fail(st, CC_REASON_BAD_OPERANDS, "a dim divided by 0");
            return 0;
        }
        if (y->value == 1) {
            return a;
        }
        if (x->kind == CC_DIM_CONST) {
            return cc_dim_const(g, floordiv(x->value, y->value), st);
        }
    }
    if (poly_of(g, a, 0, &p) == POLY_OK && poly_of(g, b, 0, &q) == POLY_OK
        && poly_divide(&p, &q, &quotient)) {
        return poly_dim(g, &quotient, st);
    }
    return dim_intern(g, CC_DIM_FLOORDIV, a, b, 0, st);
}

static CcDim
dim_minmax(CcGraph *g, CcDimKind kind, CcDim a, CcDim b, CcStatus *st)
{
    if (dim_order(g, a, b) > 0) {
        CcDim swap = a;
        a = b;
        b = swap;
    }
    const CcDimRow *x = dim_row(g, a), *y = dim_row(g, b);
    if (a == b) {
        return a;
    }
    if (x->kind == CC_DIM_CONST && y->kind == CC_DIM_CONST) {
        return (x->value < y->value) == (kind == CC_DIM_MIN) ? a : b;
    }
    if (x->kind == CC_DIM_CONST && x->value <= 0 && y->kind == CC_DIM_SYM) {
        /* symbols are >= 0 */
        return kind == CC_DIM_MIN ? a : b;
    }
    return dim_intern(g, kind, a, b, 0, st);
}

/* The canonical row of `a kind b`, where a and b are canonical. */
static CcDim
dim_normal(CcGraph *g, CcDimKind kind, CcDim a, CcDim b, CcStatus *st)
{
    if (kind == CC_DIM_FLOORDIV) {
        return dim_floordiv(g, a, b, st);
    }
    if (kind == CC_DIM_MAX || kind == CC_DIM_MIN) {
        return dim_minmax(g, kind, a, b, st);
    }
    Poly p;
    PolyResult res = poly_combine(g, kind, a, b, 0, &p);
    if (res == POLY_OVERFLOW) {
        cc_fail(st, CC_REASON_BAD_OPERANDS, "a dim overflows 64 bits");
        return 0;
    }
    return res == POLY_OK ? poly_dim(g, &p, st) : dim_intern(g, kind, a, b, 0, st);
}

CcDim
cc_dim_make(CcGraph *g, CcDimKind kind, CcDim a, CcDim b, CcStatus *st)
{
    if (a == 0 || b == 0 || kind < CC_DIM_ADD) {
        cc_fail(st, CC_REASON_BAD_OPERANDS, "dim of kind %d without operands", (int)kind);
        return 0;
    }
    CcDim d = dim_normal(g, kind, cc_dim_canon(g, a), cc_dim_canon(g, b), st);
    return cc_dim_canon(g, d);
}

/* -- Equality --------------------------------------------------------------- */

bool
cc_dim_same(const CcGraph *g, CcDim a, CcDim b)
{
    return cc_dim_canon(g, a) == cc_dim_canon(g, b);
}

bool
cc_dim_is_const(const CcGraph *g, CcDim d, int64_t *value)
{
    d = cc_dim_canon(g, d);
    if (d == 0 || dim_row(g, d)->kind != CC_DIM_CONST) {
        return false;
    }
    *value = dim_row(g, d)->value;
    return true;
}

bool
cc_dim_equals(const CcGraph *g, CcDim d, int64_t value)
{
    int64_t have;

    return cc_dim_is_const(g, d, &have) && have == value;
}

/* One class out of two. The smaller row in dim_order() stays canonical: then a chain of
 * "representative, then operand of it" only gets smaller, so poly_of() ends. */
static bool
dim_union(CcGraph *g, CcDim a, CcDim b, CcStatus *st)
{
    CcDimTable *t = &g->dims;
    const CcDimRow *x = dim_row(g, a), *y = dim_row(g, b);

    if (x->kind == CC_DIM_CONST && y->kind == CC_DIM_CONST) {
        return cc_fail(st, CC_REASON_BAD_OPERANDS, "sizes %lld and %lld differ",
                       (long long)x->value, (long long)y->value);
    }
    if (!CC_GROW(t->joined, t->njoined, t->capjoined, 1)) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "%u equal dims", t->njoined);
    }
    CcDim keep = dim_order(g, a, b) < 0 ? a : b, join = keep == a ? b : a;
    t->row[join].rep = keep;
    t->joined[t->njoined++] = join;
    return true;
}

/* Rows whose operands' classes have changed may now equal other rows. Ends: every round but the
 * last merges two classes. */
static bool
dim_close(CcGraph *g, CcStatus *st)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (CcDim d = 1; d < g->dims.len; d++) {
            CcDimRow row = g->dims.row[d];
            if (row.kind < CC_DIM_ADD) {
                continue;
            }
            CcDim now = cc_dim_make(g, (CcDimKind)row.kind, row.a, row.b, st);
            CcDim was = cc_dim_canon(g, d);
            if (now == 0 || (now != was && !dim_union(g, was, now, st))) {
                return false;
            }
            changed = changed || now != was;
        }
    }
    return true;
}

bool
cc_graph_require_eq(CcGraph *g, CcDim a, CcDim b, CcStatus *st)
{
    CcDimTable *t = &g->dims;

    a = cc_dim_canon(g, a);
    b = cc_dim_canon(g, b);
    if (a == b) {
        return true;
    }
    if (!CC_GROW(t->guard, t->nguard, t->capguard, 1)) {
        return cc_fail(st, CC_REASON_NO_MEMORY, "%u dim guards", t->nguard);
    }
    t->guard[t->nguard++] = (CcDimGuard){a, b, t->njoined};
    if (!dim_union(g, a, b, st) || !dim_close(g, st)) {
        cc_graph_drop_guards(g, t->nguard - 1);
        return false;
    }
    return true;
}

void
cc_graph_drop_guards(CcGraph *g, uint32_t keep)
{
    CcDimTable *t = &g->dims;

    if (keep >= t->nguard) {
        return;
    }
    while (t->njoined > t->guard[keep].first) {
        CcDim d = t->joined[--t->njoined];
        t->row[d].rep = d;
    }
    t->nguard = keep;
}

/* -- Run time --------------------------------------------------------------- */

int64_t
cc_dim_eval(const CcGraph *g, CcDim d, const int64_t *sym)
{
    const CcDimRow *row = dim_row(g, d);

    if (row->kind == CC_DIM_CONST) {
        return row->value;
    }
    if (row->kind == CC_DIM_SYM) {
        return sym[row->value];
    }
    int64_t a = cc_dim_eval(g, row->a, sym), b = cc_dim_eval(g, row->b, sym);
    switch (row->kind) {
    case CC_DIM_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case CC_DIM_SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case CC_DIM_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case CC_DIM_FLOORDIV:
        return floordiv(a, b);
    case CC_DIM_MAX:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}

bool
cc_graph_guards_hold(const CcGraph *g, const int64_t *sym, uint32_t *bad)
{
    for (uint32_t i = 0; i < g->dims.nguard; i++) {
        const CcDimGuard *guard = &g->dims.guard[i];
        if (cc_dim_eval(g, guard->a, sym) != cc_dim_eval(g, guard->b, sym)) {
            if (bad != NULL) {
                *bad = i;
            }
            return false;
        }
    }
    return true;
}

uint32_t
cc_graph_nsym(const CcGraph *g)
{
    int64_t max = 0;

    for (CcDim d = 1; d < g->dims.len; d++) {
        const CcDimRow *row = dim_row(g, d);
        max = row->kind == CC_DIM_SYM && row->value > max ? row->value : max;
    }
    return (uint32_t)max + 1;
}
