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

bool front_is_array(PyObject *obj); /* exact ndarray of a plain dtype (bool, int, float, complex) */
bool front_is_scalar(PyObject *obj);    /* NumPy scalar of a plain dtype */
bool front_is_pure(PyObject *obj); /* arrays, scalars, numbers, str, None, slices, dtypes; tuples
                                      and lists of these */
bool
front_is_constant(PyObject *obj); /* ufunc, dispatcher, dtype, scalar type: fixed for the process */

FrontKind front_classify(CallKind kind, uint32_t oparg, PyObject *const *a, uint32_t n,
                         PyObject *kwnames);

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
