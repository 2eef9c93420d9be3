/* front/front.h - what the recorder and the executor ask about an array library.
 *
 * NumPy through its C API; torch comes as a second front end. Nothing here runs Python code
 * except front_setup and front_fp_ignored (NumPy's own getter, when the error state changed). */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#include "../tape/tape.h"

/* What an operation on these real operands is. */
typedef enum {
    FRONT_FOREIGN, /* not ours: effects, unknown code, object arrays, subclasses */
    FRONT_ARRAY,   /* pure array work: a node */
    FRONT_META,    /* a pure question about an array, contents not read */
} FrontKind;

int front_setup(void); /* import NumPy's C API and resolve the tables; once at import */

/* Make a Python function of ours an array function: pure, known by identity and run whole, never
 * inlined for array operands. -1 with an exception. */
int front_register(PyObject *function);
bool front_is_registered(PyObject *obj);
bool front_runs_whole(PyObject *obj); /* such a function, or one of the library's in Python */

bool front_is_array(PyObject *obj); /* exact ndarray of a plain dtype (bool, int, float, complex) */
bool front_is_scalar(PyObject *obj);    /* NumPy scalar of a plain dtype */
bool front_is_pure(PyObject *obj); /* arrays, scalars, numbers, str, None, slices, dtypes; tuples
                                      and lists of these */
bool
front_is_constant(PyObject *obj); /* ufunc, dispatcher, dtype, scalar type: fixed for the process */

FrontKind front_classify(CallKind kind, uint32_t oparg, PyObject *const *a, uint32_t n,
                         PyObject *kwnames);

/* Whose memory the result of pure array work is. */
typedef enum {
    FRONT_MEM_OWN,                      /* its own, or it has none */
    FRONT_MEM_VIEW,                     /* the first operand's, whose contents are not read */
    FRONT_MEM_ANY,                      /* its own or an operand's */
} FrontMem;

FrontMem front_memory(CallKind kind, PyObject *const *a, uint32_t n, PyObject *kwnames,
                      PyObject *res);

/* -- update.c: operations that change an array in place ------------------------------------- */

/* The same as pure work: operation `kind` on the same operands gives the new contents. */
typedef struct {
    CallKind kind;                      /* INPLACE ASSIGN STORE INTO */
    uint32_t oparg, target;             /* target: operand that changes */
    bool part;                          /* ASSIGN: only the VIEW of operands 0 and 1 changes */
    bool reads;                         /* the new contents depend on the old */
    bool gives_target;                  /* the result is the target itself, else None */
    bool element;                       /* a0[a1] of ASSIGN is one element */
} FrontUpdate;

/* An operation that front_classify calls foreign: is it such a one? */
bool front_update(CallKind kind, uint32_t oparg, PyObject *const *a, uint32_t n, PyObject *kwnames,
                  FrontUpdate *up);
/* It is given an array to write to, by name or by position. `a`: the arguments, self first. */
bool front_has_out(PyObject *callable, PyObject *const *a, uint32_t n, PyObject *kwnames);
bool front_key_is_basic(PyObject *key); /* ints, slices, None, ... and tuples of these */

/* Copy the contents of one array to another; of the same shape and dtype, and they share no memory:
 * `fits` says so. Cannot fail. */
bool front_write_fits(PyObject *target, PyObject *contents);
void front_write(PyObject *target, PyObject *contents);

/* array[index...] = value, a number that needs no conversion which could warn or fail, or the very
 * dtype's scalar; false: it cannot be done so, nothing has changed. Cannot fail where it would have
 * succeeded with `write` off. */
bool front_element(PyObject *array, PyObject *const *index, uint32_t n, PyObject *value,
                   bool write);

/* Bounds of an array's memory, lo == hi when it has none. */
typedef struct {
    uintptr_t lo, hi;
} FrontExtent;
bool front_extent(PyObject *array, FrontExtent *out);   /* false: no plain array */

/* The first nwritten of the arrays share no memory with each other and with the rest, by their
 * bounds. At most FRONT_MAX_EXTENTS arrays. */
enum { FRONT_MAX_EXTENTS = 500 };
bool front_apart(PyObject *const *array, uint32_t nwritten, uint32_t n);

/* The callable itself is one that the front end knows by identity. */
bool front_knows(PyObject *callable);

void front_describe(PyObject *array,
                    TapeArr *out); /* false layouts of rank > 8: see front_is_array */
bool front_matches(PyObject *array, const TapeArr *want);
uint8_t front_layout(PyObject *array);  /* TapeLayout */
uint8_t front_memory_order(
    PyObject *array); /* how its axes lie: LAYOUT_C from far to near, _F, or _STRIDED */
void front_meta(PyObject *obj, TapeMeta *out);  /* form NONE for what is no number and no array */
bool front_is_float(int16_t dtype);     /* real floating NumPy type numbers */
bool front_is_complex(int16_t dtype);
void front_result(PyObject *obj, int16_t *dtype, int16_t *ndim); /* -1, -1 when not an array */

/* Array work outside frames: of the program's own error state, what it ignores stays ignored and
 * everything else raises FloatingPointError, so that nothing is reported at the wrong place. */
typedef struct {
    PyObject *token;                    /* owned */
} FrontFp;
int front_fp_begin(FrontFp *fp);        /* -1 with an exception */
void front_fp_end(FrontFp *fp);         /* keeps an exception that is set */
int front_fp_ignored(void); /* what is ignored, as CC_FAULT_* bits; -1 with an exception */

#endif
