/* ir/graph.h - the array-op graph of one segment: nodes in SSA order, named by index.
 *
 * Includes base/ only. Written by front/ (through build.h) and pass/, read by gen/, rt/ and tape/,
 * never by exec/. A graph owns its memory; everything inside is named by index, so a graph can be
 * copied, printed, parsed and compared. No function here has state outside its graph.
 *
 * Invariants (cc_graph_verify checks them and names the first bad node):
 *   operands of node r are < r, so one forward walk sees every definition before its uses;
 *   dtype, shape, attributes and operands of a node obey its row in op.def: EW operands have equal
 *   dtype and equal shape, there is no implicit promotion or broadcast;
 *   param[k].node is the k-th PARAM node in SSA order;
 *   a symbol that occurs in a shape, an attribute or a guard is bound by a parameter.
 * Whoever runs a graph has compared the guards, and the axes that carry a symbol bound before.
 *
 * Python scalars enter as PARAM nodes of layout SCALAR (int -> i64, float -> f64, bool); the front
 * end decides what NEP 50 makes of them and says so with CAST nodes. */
#ifndef CC_GRAPH_H
#define CC_GRAPH_H

#include "../base/buf.h"
#include "../base/status.h"
#include "dtype.h"
#include "shape.h"

/* -- Ops ------------------------------------------------------------------- */

typedef enum {
#define CC_OP(name, n, cls, flags, dtype, shape, attrs, exact, ff, fi, fixed, vjp, text) \
    CC_OP_##name,
#include "op.def"
#undef CC_OP
    CC_OP__COUNT
} CcOp;

typedef enum {
    CC_CLASS_LEAF,
    CC_CLASS_EW,
    CC_CLASS_RED,
    CC_CLASS_SCAN,
    CC_CLASS_MOVE,
    CC_CLASS_INDEX,
    CC_CLASS_HEAVY,
    CC_CLASS_COMP,
    CC_CLASS_EXT
} CcOpClass;

typedef enum { CC_EXACT_EXACT, CC_EXACT_ULP, CC_EXACT_TOL } CcExact;

enum {                                  /* CcOpInfo.flags, letters in op.def */
    CC_OPF_COMMUTATIVE = 1,             /* C */
    CC_OPF_IDEMPOTENT = 2,              /* I */
    CC_OPF_TRUTH = 4,                   /* T */
    CC_OPF_GIVEN_SHAPE = 8              /* G */
};

enum {                                  /* fault bits; the first four equal NumPy's NPY_FPE_* */
    CC_FAULT_DIVIDE = 1,
    CC_FAULT_OVERFLOW = 2,
    CC_FAULT_UNDERFLOW = 4,
    CC_FAULT_INVALID = 8,
    CC_FAULT_ERROR = 16,                /* an error whatever the errstate: IndexError, ... */
    CC_FAULT_ANY = 32                   /* EXTERN: whatever the framework does */
};

#define CC_ARGS_VARIABLE 255            /* CcOpInfo.nargs of ops with any number of operands */

typedef struct {
    const char *name;
    uint8_t nargs;
    uint8_t cls;                        /* CcOpClass */
    uint8_t flags;                      /* CC_OPF_* */
    uint8_t dtype_rule, shape_rule;     /* CcDtypeRule, CcShapeRule */
    uint8_t exact;                      /* CcExact */
    uint8_t float_faults, int_faults;   /* CC_FAULT_* */
    const char *attrs;                  /* "axes:m ddof:i" */
    const char *fixed;
    const char *vjp;                    /* "none", "zero" or the rule's name */
    const char *text;
} CcOpInfo;

extern const CcOpInfo cc_op_info[CC_OP__COUNT];

typedef enum {
    CC_DT_GIVEN, CC_DT_SAME, CC_DT_NUM, CC_DT_FLOAT, CC_DT_BITS, CC_DT_INT, CC_DT_BOOL, CC_DT_FBOOL,
    CC_DT_COND, CC_DT_ARG, CC_DT_CAST, CC_DT_INDEX, CC_DT_EXT
} CcDtypeRule;

typedef enum {
    CC_SH_GIVEN, CC_SH_IOTA, CC_SH_EW, CC_SH_RED, CC_SH_SCAN, CC_SH_RESHAPE, CC_SH_TRANSPOSE,
    CC_SH_BROADCAST, CC_SH_SLICE, CC_SH_UPDATE, CC_SH_CONCAT, CC_SH_PAD, CC_SH_GATHER,
    CC_SH_SCATTER, CC_SH_MATMUL, CC_SH_CONV2D, CC_SH_CONV2D_DX, CC_SH_CONV2D_DW, CC_SH_MAXPOOL2D,
    CC_SH_POOL_DX, CC_SH_EXTERN, CC_SH_EXTERN_GET
} CcShapeRule;

/* The op with this name; CC_OP__COUNT when there is none. */
CcOp cc_op_from_name(const char *name, uint32_t len);

/* One step through a row's attribute list: call with *at = 0, then until false. */
typedef struct {
    const char *name;
    uint8_t namelen;
    char kind;                          /* 'i' 'd' 'm' '2' '4' 'I' 'D', see op.def */
    uint16_t first, count;              /* place in the node's attributes */
} CcAttrSpec;

bool cc_attr_next(CcOp op, uint8_t ndim0, const char **at, CcAttrSpec *spec);

/* Number of attributes of an op whose operand 0 has ndim0 axes. */
uint16_t cc_op_nattr(CcOp op, uint8_t ndim0);

/* True when kernels want this axis of this operand constant (column `fixed`). */
bool cc_op_wants_fixed(CcOp op, uint32_t operand, uint32_t axis);

/* -- Nodes ----------------------------------------------------------------- */

typedef uint32_t CcRef;                 /* index of a node; 0 = no node */

enum {                                  /* CcNode.flags */
    CC_NODE_FAULT = 1                   /* fault root, `!` in text: its flags are wanted, so it is
                                           alive even when its value is not */
};

typedef struct {
    uint8_t op;                         /* CcOp */
    uint8_t dtype;                      /* CcDtype */
    uint8_t ndim;
    uint8_t flags;                      /* CC_NODE_* */
    uint16_t narg, nattr;
    uint32_t arg;                       /* first operand in CcGraph.opnd */
    uint32_t attr;                      /* first attribute in CcGraph.attr */
    uint32_t shape;                     /* first dim in CcGraph.shape; outer axis first */
    uint32_t where;                     /* maker's source position, 0 none; not printed or hashed */
    uint64_t bits;                      /* CONST: the element, see cc_const_* below; else 0 */
} CcNode;

typedef enum {
    CC_LAYOUT_C,                        /* C contiguous */
    CC_LAYOUT_F,                        /* Fortran contiguous */
    CC_LAYOUT_STRIDED,                  /* any strides, passed at run time */
    CC_LAYOUT_SCALAR,                   /* Python scalar: 0-d, i64, f64 or bool, passed by value */
    CC_LAYOUT__COUNT
} CcLayout;

typedef struct {
    CcRef node;                         /* the PARAM node */
    uint8_t layout;                     /* CcLayout */
    uint32_t sym;                       /* SCALAR i64 only: number of the symbol it binds, 0 none */
} CcParam;

/* Every output is memory of its own: when two rows name one node, or a row names a PARAM, the
 * program gets separate arrays. */
typedef enum { CC_OUT_ARRAY, CC_OUT_SCALAR } CcOutKind;

typedef struct {
    CcRef node;
    uint8_t kind;                       /* CcOutKind; SCALAR: 0-d, wanted as a number */
    uint8_t ordered;                    /* 0: C order, perm unused */
    uint8_t perm[CC_MAX_NDIM];          /* memory order: perm[0] is the outermost axis in memory */
} CcOutput;

struct CcGraph {
    CcNode *node;                       /* owned, as all below; node[0] is the null node */
    uint32_t len, cap;
    CcRef *opnd;
    uint32_t nopnd, capopnd;
    int64_t *attr;
    uint32_t nattr, capattr;
    CcDim *shape;
    uint32_t nshape, capshape;
    CcParam *param;
    uint32_t nparam, capparam;
    CcOutput *out;
    uint32_t nout, capout;
    CcDimTable dims;
};

void cc_graph_init(CcGraph *g);
void cc_graph_fini(CcGraph *g);

/* dst (not initialised) becomes a copy of src; on failure dst is empty. */
bool cc_graph_clone(CcGraph *dst, const CcGraph *src, CcStatus *st);

/* Everything a new node says about itself. Pointers are read, not kept; they must not point into
 * the graph's own pools. */
typedef struct {
    CcOp op;
    CcDtype dtype;
    uint8_t flags;
    uint8_t ndim;
    uint16_t narg, nattr;
    const CcDim *shape;                 /* ndim dims */
    const CcRef *arg;
    const int64_t *attr;
    uint64_t bits;
    uint32_t where;
} CcSpec;

/* Append a node as it is, unchecked (cc_build() in build.h is the checked way). 0 = no memory, the
 * graph is unchanged. PARAM nodes: cc_graph_push_param(). */
CcRef cc_graph_push(CcGraph *g, const CcSpec *spec, CcStatus *st);

/* Append a PARAM node and its row. spec->op must be PARAM. */
CcRef cc_graph_push_param(CcGraph *g, const CcSpec *spec, CcLayout layout, uint32_t sym,
                          CcStatus *st);

/* Append an output. perm: ndim axes or NULL for C order. */
bool cc_graph_add_output(CcGraph *g, CcRef node, CcOutKind kind, const uint8_t *perm, CcStatus *st);

/* -- Reading nodes (pointers are valid until the graph grows) --------------- */

static inline const CcRef *
cc_args(const CcGraph *g, CcRef r)
{
    return g->opnd + g->node[r].arg;
}

static inline CcRef
cc_arg(const CcGraph *g, CcRef r, uint32_t i)
{
    return g->opnd[g->node[r].arg + i];
}

static inline const int64_t *
cc_attrs(const CcGraph *g, CcRef r)
{
    return g->attr + g->node[r].attr;
}

/* The node's dims as they were made; compare with cc_dim_same(). */
static inline const CcDim *
cc_shape(const CcGraph *g, CcRef r)
{
    return g->shape + g->node[r].shape;
}

static inline const CcOpInfo *
cc_info(const CcGraph *g, CcRef r)
{
    return &cc_op_info[g->node[r].op];
}

/* True when two nodes have the same number of axes and equal dims. */
bool cc_same_shape(const CcGraph *g, CcRef a, CcRef b);

/* Product of the dims, as a dim; 0 = failed. */
CcDim cc_numel(CcGraph *g, CcRef r, CcStatus *st);

/* The faults node r can raise, by its row and its operand's dtype class. */
uint8_t cc_node_faults(const CcGraph *g, CcRef r);

/* CONST elements are 64 bits: floats as their own bit pattern (f32 in the low half), signed
 * integers sign-extended, unsigned and bool zero-extended. from_f64 rounds to f32 and truncates
 * to integers. */
uint64_t cc_const_from_f64(CcDtype dt, double value);
uint64_t cc_const_from_i64(CcDtype dt, int64_t value);
double cc_const_f64(CcDtype dt, uint64_t bits);
int64_t cc_const_i64(CcDtype dt, uint64_t bits);

/* -- Rewriting: build dst from src node by node, then swap ------------------- */

/* dst (not initialised) starts with src's dim table and no nodes; dims keep their indexes. */
bool cc_graph_rewrite_begin(CcGraph *dst, const CcGraph *src, CcStatus *st);

/* Append a copy of src's node r to dst, operands through map (src ref -> dst ref). PARAM nodes take
 * their row along. 0 = failed. */
CcRef cc_graph_rewrite_copy(CcGraph *dst, const CcGraph *src, CcRef r, const CcRef *map,
                            CcStatus *st);

/* Append src's outputs through map, free src's content and move dst into it. On failure both graphs
 * stay valid (finish dst with cc_graph_fini). */
bool cc_graph_rewrite_end(CcGraph *src, CcGraph *dst, const CcRef *map, CcStatus *st);

/* -- Whole graphs ----------------------------------------------------------- */

/* Check every invariant above. Only the dim table may grow (interning). Run after each pass in
 * debug builds. Reason BAD_GRAPH, detail starts with the node: "%7: ...". */
bool cc_graph_verify(CcGraph *g, CcStatus *st);

/* Text form; failed memory is in out->failed. Complete: two graphs with equal text are equal. */
void cc_graph_print(const CcGraph *g, CcBuf *out);

/* One node's line without indent and newline ("%3 = ADD f64[n1] %1 %2"). */
void cc_node_print(const CcGraph *g, CcRef r, CcBuf *out);
void cc_dim_print(const CcGraph *g, CcDim d, CcBuf *out);

/* Inverse of print. g (not initialised) is empty on failure; reason BAD_TEXT with the line, or that
 * of inference for a node whose type is left out. The result is not verified. */
bool cc_graph_parse(CcGraph *g, const char *text, CcStatus *st);

/* 128-bit content hash: of the text form, so it covers everything but CcNode.where. Deterministic
 * over processes and machines. For caches, not against an adversary. */
bool cc_graph_hash(const CcGraph *g, uint64_t out[2], CcStatus *st);

#endif
