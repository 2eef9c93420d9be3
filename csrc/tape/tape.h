/* tape/tape.h - the data format that trace/ writes and exec/ reads; they share nothing else.
 *
 * A tape is a row of transactions. Each begins with TXN, whose snapshot is the program's exact
 * state there; then PRE rows, one LAUNCH with its NODE rows, POST rows, COMMIT; or PRE rows and one
 * ALONE row. Whatever fails before COMMIT is thrown away and the program is at the snapshot.
 * A register holds an owned object and is written once per pass over it (carried registers of a
 * loop: by ANCHOR, BACK and JUMP). Everything is named by index, so it can be printed and compared.
 * A trace is read-only when it is ready, except counters, inline caches and side links. */
#ifndef TAPE_TAPE_H
#define TAPE_TAPE_H

#include "../base/dump.h"
#include "../py/chain.h"

/* -- References --------------------------------------------------------------- */

typedef uint32_t TapeRef; /* kind in the top 4 bits, index below; 0 = NULL, an unbound slot */
enum { TAPE_NULL = 0, TAPE_REG = 1, TAPE_CONST = 2, TAPE_VIRT = 3 };
#define TAPE_REF(kind, index) ((TapeRef)(kind) << 28 | (TapeRef)(index))
#define TAPE_KIND(ref) ((ref) >> 28)
#define TAPE_INDEX(ref) ((ref) & 0x0fffffffu)

/* -- Rows --------------------------------------------------------------------- */

typedef enum {
#define TAPE_ROW(name, phase, fail, text) TAPE_##name,
#include "tape.def"
#undef TAPE_ROW
    TAPE__COUNT
} TapeOp;

typedef enum {
#define CALL_KIND(name, text) DO_##name,
#include "call.def"
#undef CALL_KIND
    DO__COUNT
} CallKind;

typedef enum { PHASE_EDGE, PHASE_PRE, PHASE_FLOAT, PHASE_NODE, PHASE_WRITE, PHASE_ALONE } TapePhase;

typedef struct {
    const char *name;
    TapePhase phase;
    bool can_fail;                      /* T: may leave to the snapshot of its transaction */
} TapeRowInfo;

extern const TapeRowInfo tape_row_info[TAPE__COUNT];
extern const char *const tape_call_name[DO__COUNT];

enum {
    TAPE_FUNC_CLOSURE,
    TAPE_FUNC_DEFAULT,
    TAPE_FUNC_KWDEFAULT,
    TAPE_FUNC_GLOBALS
}; /* sub of LDFUNC */

/* RCALL flags, in `flags` */
enum { TAPE_NOFRAME = 1,                /* the operation cannot look at frames or run Python code */
       TAPE_ARRAYS = 4,                 /* it works on arrays: counted */
       TAPE_BEHIND = 2 };               /* a load that follows its residual row and cannot fail */

typedef struct {
    uint8_t op, sub;
    uint8_t flags;
    uint8_t pop; /* RCALL: operands that leave the stack of the innermost frame */
    uint16_t n;                         /* operands */
    uint16_t kw;                        /* calls: constant index of kwnames, 0 = none */
    uint32_t dst;                       /* register + 1; 0 = none */
    uint32_t arg, aux;
    uint32_t check;                     /* calls: index of the result check, 0 = none */
    uint32_t unit; /* RCALL: unit of the instruction, behind its EXTENDED_ARGs */
    uint32_t alt;  /* RCALL.NEXT: snapshot + 1 of the outcome that was not recorded */
    uint32_t where;                     /* index of the place, for reports */
    uint64_t cache;                     /* inline cache; the only part written after READY */
} TapeIns;

/* What the result of a pure call must be, else the row fails. */
typedef struct {
    uint32_t type;                      /* constant: exact type */
    int16_t dtype, ndim;                /* arrays: type number and rank; -1 = not an array */
} TapeCheck;

/* Sizes of an array on which a guard insists: 0 and 1 exactly, others are free (at least 2). */
enum { TAPE_MAX_NDIM = 8 };
typedef enum { LAYOUT_C = 1, LAYOUT_F = 2, LAYOUT_STRIDED = 4 } TapeLayout;
typedef struct {
    int16_t dtype;
    uint8_t ndim, layout;
    int8_t dim[TAPE_MAX_NDIM];          /* 0, 1, or 2 = any size above 1 */
    bool writeable;
} TapeArr;

/* What a register held while recording, for whoever makes kernels of the array work. Sizes are
 * examples: guards fix only what TapeArr and TapeCheck say. */
typedef enum { META_NONE, META_ARRAY, META_SCALAR, META_INT, META_FLOAT, META_BOOL } TapeForm;
typedef struct {
    uint8_t form; /* TapeForm; SCALAR: a NumPy scalar; INT FLOAT BOOL: Python's */
    uint8_t ndim, layout;               /* TapeLayout, arrays only */
    uint8_t order; /* LAYOUT_C or _F: axes from far to near in memory, or back */
    bool view;                          /* of memory that another object owns */
    int16_t dtype;                      /* NumPy type number; arrays and scalars */
    int64_t dim[TAPE_MAX_NDIM]; /* INT: dim[0] is the number, INT64_MIN when it is too big */
} TapeMeta;

/* -- Virtual objects ----------------------------------------------------------- */

typedef enum {
    VIRT_TUPLE,
    VIRT_LIST,
    VIRT_DICT, /* dict: key, value, key, value ... */
    VIRT_SLICE,
    VIRT_CELL,      /* cell: one field, may be NULL */
    VIRT_METHOD,    /* function, self */
    VIRT_FUNCTION,  /* code, globals, qualname, defaults, kwdefaults, annotations, closure */
    VIRT_OBJECT,    /* class, then where (name; int: offset of a slot) and value of each attribute */
    VIRT_SUPER,     /* class, instance */
    VIRT_DICTVIEW,  /* exact dict, what of it (constant, PyDictPart) */
    VIRT_SEQITER,   /* container, next index (constant): of an exact list or tuple */
    VIRT_RANGEITER, /* start, stop, step (constants) */
    VIRT_CALLITER,  /* virtual list of all items, next index (constant), callable, its arguments:
                       zip, enumerate, reversed of known items */
    VIRT_DICTITER,  /* exact dict, next index, PyDictPart, size at the start (constants) */
    VIRT_JOINITER,  /* zip, virtual iterators; or enumerate, one of them, next number (constant) */
    VIRT__COUNT
} VirtKind;

/* One row per version; equal `id` is the same object, fields change by adding a row. */
typedef struct {
    uint8_t kind;
    uint32_t id;
    uint32_t nfields, first;            /* fields in opnd */
} TapeVirt;

/* -- Snapshots ------------------------------------------------------------------ */

typedef struct {
    uint32_t code;                      /* constant */
    TapeRef func, extra;
    int32_t unit, next; /* innermost: unit = next to run; outer: suspended in unit..next */
    uint8_t cont, cont_arg;             /* FrameCont of py/chain.h */
    uint32_t nlocals, nstack,
        slot; /* slots in opnd: all of localsplus, then the stack from the bottom */
} TapeFrame;

typedef struct {
    uint32_t frame, nframes;            /* outermost first */
} TapeSnap;

typedef struct {
    uint32_t pc;                        /* of its ANCHOR row */
    uint32_t snap;                      /* state at the head, in carried registers */
    uint32_t ncarried, first;           /* register indexes in opnd */
} TapeAnchor;

typedef struct {
    uint32_t code;                      /* constant */
    int32_t unit;
} TapePlace;

/* -- Gradients ------------------------------------------------------------------------ */

/* A NODE that calls a Backward object: the derivative of what the listed rows compute. Its `aux` is
 * the index + 1. Registers are in opnd: the leaves, then the results of the operations between. */
typedef struct {
    uint32_t loss;                      /* register */
    uint32_t first, nleaves, nops;
} TapeGrad;

/* -- Trace ------------------------------------------------------------------------ */

typedef struct Trace Trace;

/* Side traces and counts of one snapshot. */
typedef struct {
    Trace **side;                       /* owned */
    uint32_t nside;
    uint32_t exits;
    uint8_t closed;                     /* no further side trace is made here */
} TapeExit;

struct Trace {
    TapeIns *ins;
    TapeRef *opnd;
    PyObject **konst;                   /* pins; konst[0] = NULL */
    TapeVirt *virt;
    TapeSnap *snap;
    TapeFrame *frame;
    TapeAnchor *anchor;
    TapeCheck *chk;                     /* chk[0] unused */
    TapeArr *arr;
    TapeMeta *meta;                     /* by register; NULL once plans were made */
    TapePlace *place;
    TapeGrad *grad;
    TapeExit *exit;                     /* one per snapshot */
    uint32_t nins, nopnd, nkonst, nvirt, nsnap, nframe, nanchor, nchk, narr, nplace,
        ngrad;
    uint32_t nreg, ninputs;             /* registers 0 .. ninputs-1 are set at entry */
    uint32_t nids;                      /* identity numbers of virtual objects */
    uint32_t max_image;                 /* most objects of any snapshot: slots, 2 per frame */
    Trace *parent;                      /* borrowed; NULL for a root */
    uint32_t parent_snap;
    CcReason end;                       /* why the recording ended; NONE = at RET, BACK or JUMP */
    uint32_t end_place;
    uint64_t entered, completed, faults;
    uint32_t failed;                    /* row that failed last, for reports */
    uint32_t running;                   /* activations that are in it */
    bool dead;                          /* unlinked: freed when the last activation ends */
    uint32_t drop;                      /* rules that a test wants broken: 1 << CcDropItem */
    uint8_t *keep; /* by register: needed at an anchor while a side trace runs; NULL = none */
    void *plan_owner;                   /* compiled plans; freed by the hook below */
    void (*plan_free)(void *);
    void *body_owner;                   /* code that the plans point into; freed after them */
    void (*body_free)(void *);
};

/* A test wants this rule broken, to see that another one notices. */
static inline bool
tape_drops(const Trace *t, CcDropItem rule)
{
    return t->drop >> rule & 1;
}

void tape_free(Trace *t);               /* the trace and its side traces */
int tape_traverse(Trace *t, visitproc visit, void *arg);
uint32_t tape_count(const Trace *t);    /* itself and all side traces below */

/* -- Operations --------------------------------------------------------------------- */

/* Do one operation of call.def. New reference, NULL with an exception. Operations that have no
 * result give None. NEXT at the end gives tape_end_borrow(). */
PyObject *tape_call(CallKind kind, uint32_t oparg, PyObject *const *a, uint32_t n,
                    PyObject *kwnames);
int tape_call_setup(void);              /* interned names, the END object; once at import */
PyObject *tape_end_borrow(void);

/* -- Text ---------------------------------------------------------------------------- */

PyObject *tape_print(const Trace *t);   /* str, the form of docs/tape.md */

/* What a row checks or does, in the program's words: str. */
PyObject *tape_describe(const Trace *t, uint32_t pc);
bool tape_is_guard(const TapeIns *in);

/* Check the structure; false with a reason of kind BUG. */
bool tape_verify(const Trace *t, CcStatus *st);

#endif
