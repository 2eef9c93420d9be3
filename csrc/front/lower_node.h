/* front/lower_node.h - what the files lower*.c share: the graph being built, values, operands.
 *
 * A function returns false (or 0) when the row is no kernel; `why` then has the reason. NumPy
 * itself is asked for the dtypes of ufuncs, so promotion has one source. */
#ifndef FRONT_LOWER_NODE_H
#define FRONT_LOWER_NODE_H

#include "../ir/build.h"
#include "lower.h"

enum { FRONT_NO_ORDER = 0 }; /* of a row stretched along other axes: ufuncs do not look at it */

/* What a register holds while its run is lowered. */
typedef struct {
    CcRef ref; /* 0: a Python number, which becomes a node with its dtype */
    TapeRef src;                        /* Python numbers: where it is */
    uint8_t form;                       /* TapeForm; NONE = not known here */
    uint8_t order; /* LAYOUT_C or _F: as it would lie in memory; _STRIDED: unknown */
    int16_t dtype;                      /* NumPy type number */
    bool fresh;                         /* memory of its own for all sizes: may be a result */
    bool inside;                        /* computed by a row of this run */
    bool wrapped;                       /* fresh, and a view of memory that nobody else sees */
} FrontValue;

enum { FRONT_MAX_GRADIENTS = 8, FRONT_MAX_LEAVES = 200 };

/* A tuple of gradients: its register, its nodes in Lower.gref, and all nodes made for it. */
typedef struct {
    uint32_t reg, first, n;
    CcRef from, to;
} FrontGradient;

typedef struct {
    const Trace *t;
    FrontGraph *fg;
    CcGraph *g;
    FrontValue *val;                    /* by register */
    int64_t sym[CC_MAX_SYM];            /* example sizes */
    uint32_t nsym;                      /* symbols 1 .. nsym - 1 are in use */
    const TapeIns *in;
    PyObject *np;
    const char *why;
    bool work;                          /* the run computes more than numbers and views */
    FrontGradient grad[FRONT_MAX_GRADIENTS];
    CcRef *gref;                        /* owned */
    uint32_t ngrad, ngref, cap_gref;
    CcStatus st;
} Lower;

static inline bool
front_no(Lower *L, const char *why)
{
    L->why = why;
    return false;
}

/* -- lower_value.c ---------------------------------------------------------------------- */

/* The dtype of kernels for a NumPy type number; NONE when there is none. */
CcDtype front_dtype(int typenum);
int front_typenum(CcDtype dt);

/* The value of an operand; registers from outside become parameters. */
bool front_value(Lower *L, TapeRef ref, FrontValue *out);

bool front_array(Lower *L, TapeRef ref, FrontValue *v);     /* one that is an array */

/* Copy the dims of a node; how many. */
uint8_t front_dims(const Lower *L, CcRef r, CcDim *dim);

/* It as a node of this dtype; 0 = no kernel. */
CcRef front_as(Lower *L, const FrontValue *v, CcDtype dt);

/* The Python object of a constant operand, borrowed; NULL when it is none. */
PyObject *front_const(const Lower *L, TapeRef ref);

/* A constant Python int (no bool). */
bool front_const_int(const Lower *L, TapeRef ref, int64_t *out);

/* Refs of the items of a virtual tuple or list; -1 when it is none or longer than `max`. */
int front_items(const Lower *L, TapeRef ref, TapeRef *item, int max);

/* A constant axis or tuple of axes as a mask that is not empty. */
bool front_axes(Lower *L, TapeRef ref, uint8_t ndim, uint64_t *axes);

/* A constant operand or a tuple, list or slice of such as an object: new reference; NULL = it is
 * not constant, no exception. */
PyObject *front_object(const Lower *L, TapeRef ref);

/* A size that is a constant or, if it is a Python int at run time, a symbol; 0 = none. `example` is
 * its value while recording. */
CcDim front_size(Lower *L, TapeRef ref, int64_t example);

/* A Python int at run time, not negative, as a symbol; 0 = none. */
CcDim front_bound(Lower *L, TapeRef ref);

/* `a op constant` */
CcDim front_dim(Lower *L, CcDimKind op, CcDim a, int64_t b);

/* Axes that have more than one element, at all sizes. */
uint32_t front_wide_axes(const Lower *L, CcRef r);

/* Memory order of the result of a ufunc, which NumPy lays out like its operands. */
uint8_t front_order(const Lower *L, const FrontValue *v, uint32_t n);

/* That of a copy of v with order="K", or of what is made from one. */
uint8_t front_copy_order(const Lower *L, const FrontValue *v);

/* An unknown size whose example is not small must stay so. */
bool front_need_dims(Lower *L, CcRef r);
bool front_need(Lower *L, CcDim d, int64_t min);

/* The row in the trace that sets this register; NULL = none (an input). */
const TapeIns *front_row_of(const Lower *L, TapeRef ref);

/* The type number of a dtype operand: a constant, or `.dtype` of an array; -1 = not known. */
int front_dtype_operand(const Lower *L, TapeRef ref);

/* Dims of a shape operand: a size, a tuple of them, or `.shape` of an array. `example` has the
 * sizes while recording, `ndim` of them. False = not known. */
bool front_shape(Lower *L, TapeRef ref, uint8_t ndim, const int64_t *example, CcDim *dim);

/* A result: dtype from its node. */
bool front_give(Lower *L, CcRef r, uint8_t order, bool fresh, FrontValue *out);

/* Dtypes of the loop that NumPy picks for ufunc `name`: n operands, then the result. */
bool front_resolve(Lower *L, const char *name, const FrontValue *v, uint32_t n, CcDtype *dt);

/* -- Arguments of calls -------------------------------------------------------------------- */

enum { FRONT_MAX_ARGS = 12 };

/* Operands of a DO_CALL by the parameter names of `names` (blank separated); TAPE_NULL = not given.
 * Fails for a keyword that is not there. */
bool front_args(Lower *L, const char *names, TapeRef *arg);

/* -- The rules, one per kind of row ---------------------------------------------------------- */

bool front_lower_row(Lower *L, FrontValue *out);                /* lower_row.c */

bool front_lower_ufunc(Lower *L, const char *name, const TapeRef *arg, uint32_t n, FrontValue *out);
bool front_lower_operator(Lower *L, FrontValue *out);           /* BINARY UNARY COMPARE */
bool front_lower_binary(Lower *L, const TapeRef *arg, FrontValue *out); /* the row's BINARY_OP */
bool front_lower_truth(Lower *L, TapeRef a, FrontValue *out);
bool front_lower_number(Lower *L, TapeRef a, uint8_t form,
                        FrontValue *out); /* float(x), x.item() */
bool front_lower_cast(Lower *L, TapeRef a, int typenum, bool copy, FrontValue *out);
bool front_lower_where(Lower *L, FrontValue *out);
bool front_lower_clip(Lower *L, FrontValue *out);

/* lower_reduce.c: true in *mine when the name is one of its functions. */
bool front_lower_reduction(Lower *L, const char *name, bool *mine, FrontValue *out);

/* lower_shape.c, lower_index.c */
bool front_lower_shaping(Lower *L, const char *name, bool *mine, FrontValue *out);
bool front_lower_reshape_to(Lower *L, const FrontValue *v, PyObject *shape, FrontValue *out);
bool front_lower_attribute(Lower *L, FrontValue *out);
bool front_lower_getitem(Lower *L, FrontValue *out);
/* Shape of x[key] as an array: an element has no axes. */
bool front_part_shape(Lower *L, CcRef x, TapeRef key, uint8_t *ndim, CcDim *dim);
bool front_lower_take(Lower *L, FrontValue *out);
bool front_lower_matmul(Lower *L, TapeRef a, TapeRef b, bool dot, FrontValue *out);

bool front_axis(Lower *L, TapeRef ref, uint8_t ndim, uint8_t *axis); /* one constant axis */

/* lower_arrange.c: whole arrays repeated, joined, masked by place */
bool front_lower_arranged(Lower *L, const char *name, bool *mine, FrontValue *out);

/* lower_product.c: sums of products */
bool front_lower_product(Lower *L, const char *name, bool *mine, FrontValue *out);

/* lower_make.c: arrays from numbers, parts put together */
bool front_lower_making(Lower *L, const char *name, bool *mine, FrontValue *out);
bool front_lower_composed(Lower *L, const char *name, bool *mine, FrontValue *out);

/* lower_grad.c: a call of a Backward, an item of what it gave, nodes that report no errors */
bool front_lower_gradient(Lower *L, FrontValue *out);
bool front_is_gradient(const Lower *L, TapeRef ref);
bool front_lower_gradient_item(Lower *L, FrontValue *out);
bool front_is_quiet(const Lower *L, CcRef r);

/* lower_update.c: INPLACE ASSIGN STORE INTO */
bool front_lower_update(Lower *L, FrontValue *out);

/* lower_nn.c: a function of ccompile.nn.functional */
bool front_lower_nn(Lower *L, const char *name, FrontValue *out);

#endif
