/* ir/shape.h - symbolic dimensions: integer expressions over the sizes bound at run time.
 *
 * A CcDim is an index into its graph's dim table. Rows are hash-consed in a normal form (sums of
 * products with integer coefficients; FLOORDIV, MAX and MIN are opaque factors of it), so two
 * expressions that are equal as polynomials have the same index. Operands of a row have smaller
 * indexes. Row 0 is the null row, "no dim".
 *
 * Symbols are numbered by the caller from 1 (`n1` in text). At run time the value of symbol k comes
 * from the first array parameter and axis whose dim is exactly that symbol, or from the scalar
 * parameter that names it (CcParam.sym). Values of symbols are >= 0; a divisor is never 0.
 * Dims are also used for starts of slices, so an expression may be negative.
 *
 * Equalities that a graph needs but that are no polynomial identities (n1 == n2 because the program
 * adds two arrays) are guards: cc_graph_require_eq() records one and from then on both sides have
 * one canonical row: the smaller expression, then the first in a structural order, so the choice
 * does not depend on who came first. Compare dims with cc_dim_same(), never with ==. */
#ifndef CC_SHAPE_H
#define CC_SHAPE_H

#include "../base/status.h"

typedef struct CcGraph CcGraph;
typedef uint32_t CcDim;                 /* index of a row of the dim table; 0 = none */

#define CC_MAX_NDIM 16                  /* axes of an array; more is NO_LOWERING, not an error */
#define CC_MAX_SYM 4096                 /* symbol numbers are below this */

typedef enum {
    CC_DIM_NONE,
    CC_DIM_CONST,                       /* value */
    CC_DIM_SYM,                         /* value = number of the symbol, >= 1 */
    CC_DIM_ADD,                         /* the rest: a, b */
    CC_DIM_SUB,
    CC_DIM_MUL,
    CC_DIM_FLOORDIV,                    /* rounds to minus infinity, as Python's // */
    CC_DIM_MAX,
    CC_DIM_MIN
} CcDimKind;

typedef struct {
    uint8_t kind;                       /* CcDimKind */
    CcDim a, b;                         /* operands, smaller than this row's index */
    CcDim rep;                          /* row this one is known equal to; itself when canonical */
    uint32_t size;                      /* rows of the expression tree, saturating */
    int64_t value;
} CcDimRow;

typedef struct {
    CcDim a, b;                         /* to be compared before the graph runs */
    uint32_t first;                     /* CcDimTable.joined had this length when it was recorded */
} CcDimGuard;

typedef struct {
    CcDimRow *row;                      /* owned; row[0] is the null row once anything was added */
    uint32_t len, cap;
    CcDimGuard *guard;                  /* owned */
    uint32_t nguard, capguard;
    CcDim *joined;                      /* owned: rows that got another rep, oldest first */
    uint32_t njoined, capjoined;
} CcDimTable;

/* Constructors. 0 = failed: no memory, 64-bit overflow or division by the constant 0 (st filled).
 * Operands are replaced by their canonical rows first. */
CcDim cc_dim_const(CcGraph *g, int64_t value, CcStatus *st);
CcDim cc_dim_sym(CcGraph *g, uint32_t number, CcStatus *st);
CcDim cc_dim_make(CcGraph *g, CcDimKind kind, CcDim a, CcDim b, CcStatus *st);

/* Record that a and b are equal at run time. No guard when they are known equal already.
 * Fails with BAD_OPERANDS when they are known to differ; then nothing is recorded. */
bool cc_graph_require_eq(CcGraph *g, CcDim a, CcDim b, CcStatus *st);

/* Forget all guards but the first `keep`, and what followed from them. For whoever recorded them on
 * the way to a failure: dims that were made meanwhile stay, nodes must not rely on them. */
void cc_graph_drop_guards(CcGraph *g, uint32_t keep);

/* The canonical row of d; always valid, 0 for 0. */
CcDim cc_dim_canon(const CcGraph *g, CcDim d);

/* True when a and b are known equal (as polynomials or by guards). */
bool cc_dim_same(const CcGraph *g, CcDim a, CcDim b);

/* True when d is a known constant (also through a guard); *value gets it. */
bool cc_dim_is_const(const CcGraph *g, CcDim d, int64_t *value);

/* True when the constant of d is known and equals value. */
bool cc_dim_equals(const CcGraph *g, CcDim d, int64_t value);

/* Value of d for symbol values sym[number] (sym[0] is not read). Arithmetic wraps; // 0 gives 0. */
int64_t cc_dim_eval(const CcGraph *g, CcDim d, const int64_t *sym);

/* True when every guard holds for these symbol values; else *bad (may be NULL) = its index. */
bool cc_graph_guards_hold(const CcGraph *g, const int64_t *sym, uint32_t *bad);

/* 1 + the largest symbol number in the table: the length of `sym` above. */
uint32_t cc_graph_nsym(const CcGraph *g);

#endif
