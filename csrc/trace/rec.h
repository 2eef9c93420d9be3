/* trace/rec.h - the recorder: runs real frames in C and writes what they do to a tape.
 *
 * Every local, cell and stack slot of the frames on the recording has a shadow, a TapeRef that says
 * where its value comes from: a register, a constant, or a virtual object (whose ref holds its
 * identity number, not a version). Real values and shadows move together, in rec_push, rec_pop and
 * rec_set_local only.
 *
 * A handler runs check -> emit -> run -> commit: until it has called the program's own operation it
 * may stop (REC_STOP) and nothing has happened; after that it cannot fail. Rows are emitted before
 * the stack changes, since a transaction that opens takes its snapshot from the slots as they are.
 * Running out of memory only sets `broken`: the program runs on, the recording is thrown away. */
#ifndef TRACE_REC_H
#define TRACE_REC_H

#include "../base/dump.h"
#include "../front/front.h"
#include "../tape/tape.h"

typedef enum { REC_OK, REC_STOP, REC_ERROR, REC_DONE } RecStatus;

enum {
    REC_MAX_FRAMES = 64,
    REC_MAX_LOOPS = 8,
    REC_MAX_ANCHORS = 16,
    REC_MAX_CARRIED = 64,
    REC_MAX_LATE = 32,
    REC_MAX_OVER = FRONT_MAX_EXTENTS
};

typedef struct {
    uint32_t trace_limit, inline_depth, unroll;
    bool fullgraph;
    PyObject *is_compiling, *graph_break;       /* our own functions, borrowed; known by identity */
    PyObject *break_type;               /* exception class for `fullgraph`, borrowed */
    bool (*is_disabled)(PyObject *);    /* a callable that must run as plain Python */
    PyObject *grad_hooks;               /* tuple of _gradtape.py, borrowed; NULL: not loaded */
    bool stress_txn;                    /* a transaction for every instruction */
    uint32_t drop;                      /* 1 << CcDropItem: rules that are not kept, for tests */
} RecOptions;

/* What is known about a register. Facts about things that a program can change hold for one epoch;
 * whatever may run foreign code begins a new one. */
typedef struct {
    PyTypeObject *type;                 /* exact type, NULL = not known; kept alive by a pin */
    uint32_t type_epoch;                /* of a heap type, whose instances can change class */
    uint32_t txn;                       /* transaction that defines it */
    uint8_t phase;                      /* PHASE_PRE, PHASE_NODE or PHASE_FLOAT (= post) */
    bool foreign;                       /* result of a residual call: its death may run code */
    bool priv;                          /* made on this tape and never shown to foreign code */
    int16_t dtype, ndim;                /* arrays: known from a guard or a result check, else -1 */
    uint32_t arr_epoch, func_epoch, len_epoch, pure_epoch;      /* 0 = not guarded */
    int32_t len;
    /* memory of arrays, update.c */
    TapeRef root;                       /* register in whose memory it lies; NULL = its own */
    uint32_t root_epoch;                /* when that was so */
    bool own;                           /* memory made on this tape that no other root can reach */
    bool viewed;                        /* other registers lie in its memory */
    FrontExtent extent;                 /* while recording */
    TapeRef part_of, part_key;          /* it is the part of that array under that key */
    uint32_t part_epoch;
} RecReg;

/* An array that this transaction writes when nothing can fail any more. */
typedef struct {
    TapeRef target, value;
    uint32_t opnd;                      /* where its WRITE row has the value */
    bool element;                       /* of the target, not all of it */
} RecWrite;

typedef struct {
    uint8_t kind;
    TapeRef *field;
    uint32_t nfields, cap;
    TapeRef real;                       /* register, once it has been built */
    uint32_t row, row_gen;              /* its row in the trace and when that was true */
    uint32_t mark; /* of the last walk that met it; descriptions can be cyclic */
    bool building;
} RecVirt;

typedef struct {
    uint8_t op, sub;
    TapeRef a0, a1, res;
    uint32_t aux, epoch;
} RecLoad;

typedef struct {
    int head;                           /* unit */
    uint32_t anchor;                    /* index + 1 once placed */
    uint32_t turns;
} RecLoop;

typedef struct {
    PyLive live;                        /* `next` and `cont` are valid while it is suspended */
    PyCodeObject *co;
    PyObject *bytes;                    /* owned: keeps `code` */
    const uint8_t *code;
    uint32_t code_k;
    PyObject **slot;
    TapeRef *sh;                        /* owned; parallel to slot */
    int nlocals, sp;
    int start;                          /* where the current instruction may be resumed */
    int unit, next;                     /* of the current instruction */
    TapeRef func, extra;
    PyObject *kwnames; /* borrowed from the code's constants, between KW_NAMES and CALL */
    int kw_start;
    RecLoop loop[REC_MAX_LOOPS];
    int nloops;
} RecFrame;

typedef struct {
    TapeIns *row;
    uint32_t n, cap;
} RecRows;

typedef struct {
    CcReason reason;
    uint32_t place;
    char detail[80];
} RecBreak;

/* An ancestor's loop head that a side trace may jump to. */
typedef struct {
    Trace *trace;
    uint32_t anchor, up;
} RecTarget;

/* A call: callable, then arguments, as they stand on the stack. */
enum { REC_CALL_MAX = 62 };
typedef struct {
    PyObject *real[REC_CALL_MAX + 2];
    TapeRef ref[REC_CALL_MAX + 2];
    Py_ssize_t n;                       /* arguments, keyword ones included */
    PyObject *kwnames;
    int pop;                            /* slots that the instruction takes */
    PyObject *star_real[3]; /* f(*args, **kwargs): the callable and the two as they stand */
    TapeRef star_ref[3];
    uint32_t nstar;
} RecCall;

typedef struct RecGrad RecGrad;         /* grad.c: a differentiated function is being recorded */

typedef struct {
    PyThreadState *ts;
    RecOptions opt;
    RecFrame frame[REC_MAX_FRAMES];
    int nframes;

    Trace *t;
    uint32_t cap_ins, cap_opnd, cap_konst, cap_virt, cap_snap, cap_frame, cap_anchor, cap_chk,
        cap_arr, cap_place, cap_meta, cap_grad;
    RecReg *reg;
    uint32_t cap_reg;
    RecVirt *virt;
    uint32_t nvirt, cap_virtobj, virt_gen, walk;
    struct {
        TapeRef cell, content;
    } late[REC_MAX_LATE]; /* cells to fill when all is built */
    int nlate;
    RecLoad *load;
    uint32_t nload, cap_load;
    RecBreak *brk;
    uint32_t nbrk, cap_brk;
    uint32_t *drop;                     /* registers whose last slot went in this instruction */
    uint32_t ndrop, cap_drop;

    bool open;                          /* a transaction is open */
    uint32_t txn, txn_snap, txn_icount; /* serial number, snapshot, instruction that it began at */
    RecRows pre, node, post, write;
    RecWrite *pending;                  /* of the open transaction, in order */
    uint32_t npending, cap_pending;
    struct {
        TapeRef ref;
        bool written;
    } over[REC_MAX_OVER];               /* arrays that it guards to share no memory */
    uint32_t nover;
    uint32_t epoch, icount;
    bool broken;
    bool raised_break;                  /* `fullgraph`: the program was given a GraphBreak */
    bool need_open; /* a residual row was last: a snapshot at the next instruction */
    bool want_poll;
    bool ran_foreign;                   /* in this instruction: signals are served behind it */
    CcReason stop;
    char stop_detail[80];
    RecTarget target[REC_MAX_ANCHORS];
    int ntargets;
    RecGrad *grad;                      /* owned; NULL = none */
    uint64_t ops_node, ops_residual;    /* array operations seen */
    PyObject *result;                   /* of the outermost frame, when recorded to its end */
} Recorder;

/* -- rec.c: the loop ------------------------------------------------------------ */

/* Record the chain of frames in r->frame and run the program to the end of the outermost frame (in
 * C as long as it can be recorded, then by CPython). Returns its result; the trace is in r->t, or
 * NULL if there is none worth keeping. */
PyObject *rec_run(Recorder *r);

Recorder *rec_new(PyThreadState *ts, const RecOptions *opt);
void rec_free(Recorder *r);

/* Make `f` the innermost frame of the recording. `sh` gets room for all slots, all NULL. -1 no
 * memory. */
int rec_add_frame(Recorder *r, const PyLive *live, TapeRef func);

RecStatus rec_stop(Recorder *r, CcReason reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A residual operation that interrupts the graph follows: REC_OK to go on with it; REC_STOP under
 * `fullgraph`, where it must not run. */
RecStatus rec_break(Recorder *r, CcReason reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* -- shadow.c: refs, registers, virtual objects ------------------------------------ */

static inline RecFrame *
rec_top(Recorder *r)
{
    return &r->frame[r->nframes - 1];
}

TapeRef rec_ref(Recorder *r, TapeRef ref);      /* a virtual object that was built: its register */
TapeRef rec_const(Recorder *r, PyObject *obj);
TapeRef rec_const_int(Recorder *r, Py_ssize_t value);
void rec_note_meta(Recorder *r, TapeRef ref, PyObject *real);    /* what the register held */
TapeRef rec_newreg(Recorder *r, TapePhase phase);
static inline RecReg *
rec_reg(Recorder *r, TapeRef ref)
{
    return &r->reg[TAPE_INDEX(ref)];
}
PyObject *rec_konst_borrow(Recorder *r, TapeRef ref);

/* depth 0 = top of the stack of the innermost frame */
TapeRef rec_peek(Recorder *r, int depth);
PyObject *rec_real(Recorder *r, int depth);
void rec_push_steal(Recorder *r, PyObject *real, TapeRef ref);
void rec_pop(Recorder *r, int n);
void rec_pop_moved(Recorder *r, int n); /* as rec_pop, for values that a new frame holds now */
void rec_frame_died(Recorder *r, const RecFrame *fr);   /* its slots are gone */
void rec_replace_steal(Recorder *r, int n, PyObject *real, TapeRef ref);      /* pop n, push one */
void rec_set_slot_steal(Recorder *r, int index, PyObject *real, TapeRef ref); /* a local or cell */

TapeRef rec_virt(Recorder *r, VirtKind kind, const TapeRef *field, uint32_t n);
RecVirt *rec_virt_of(Recorder *r, TapeRef ref); /* NULL unless it is (still) virtual */
bool rec_is_virt(Recorder *r, TapeRef ref, VirtKind kind);
void rec_virt_append(Recorder *r, RecVirt *v, TapeRef field);
void rec_virt_touch(Recorder *r, RecVirt *v);   /* its fields were changed */
TapeRef rec_materialise(Recorder *r,
                        TapeRef ref); /* a register or constant for it; NULL stays NULL */
uint32_t rec_virt_row(Recorder *r, uint32_t id);
bool rec_reaches(Recorder *r, TapeRef from, TapeRef to);        /* through virtual objects */
void rec_lost(Recorder *r, TapeRef ref);        /* a virtual object holds it no more */
void rec_foreign_ref(Recorder *r, TapeRef ref); /* foreign code can reach it now */

/* -- emit.c: rows, transactions, snapshots ------------------------------------------- */

TapeIns rec_ins(TapeOp op, uint8_t sub, uint32_t aux);
/* Append a row with operands to the open transaction (opening or closing one as its phase wants).
 */
TapeRef rec_emit(Recorder *r, TapeIns ins, const TapeRef *a, uint32_t n, bool result);
void rec_close(Recorder *r);            /* end the open transaction */
uint32_t
rec_open_here(Recorder *r); /* a transaction that begins at this very instruction; its snapshot */
uint32_t rec_snapshot(Recorder *r);
void rec_anchor(Recorder *r, const bool *stored, const TapeRef *init,
                uint32_t n); /* ANCHOR; slots hold the carried registers */
TapeRef rec_emit_alone(Recorder *r, TapeIns ins, const TapeRef *a, uint32_t n, bool result);
TapeRef rec_emit_behind(Recorder *r, TapeRef tuple,
                        uint32_t index); /* LDITEM behind the last residual row */
void rec_end(Recorder *r, TapeIns last, const TapeRef *a,
             uint32_t n); /* the last row of the tape */
void rec_new_epoch(Recorder *r);
uint32_t rec_check_of(Recorder *r, PyObject *real);     /* result check that `real` passes */
uint32_t rec_place(Recorder *r);
bool rec_finish(Recorder *r);           /* lifetimes; false: no trace */

/* -- guard_make.c ----------------------------------------------------------------------- */

void rec_need_pre(Recorder *r, TapeRef ref);    /* so that a guard may use it */
void rec_guard_type(Recorder *r, TapeRef ref, PyObject *real);
void rec_guard_is(Recorder *r, TapeRef a, TapeRef b, bool same);
void rec_guard_truth(Recorder *r, TapeRef ref, bool outcome);
void rec_guard_len(Recorder *r, TapeRef ref, PyObject *real);
bool rec_guard_keys(Recorder *r, TapeRef ref,
                    PyObject *dict); /* false: not all keys are exact str */
void rec_guard_func(Recorder *r, TapeRef ref, PyObject *func);
void rec_guard_array(Recorder *r, TapeRef ref, PyObject *real);
void rec_guard_pure(Recorder *r, TapeRef ref, PyObject *real);
TapeRef rec_fix(Recorder *r, TapeRef ref,
                PyObject *real); /* guard by value where the kind of object wants it */
TapeRef rec_fix_value(Recorder *r, TapeRef ref,
                      PyObject *real); /* guard an int, str ... by value */
/* the same for numbers and for tuples of such, item by item */
TapeRef rec_fix_tree(Recorder *r, TapeRef ref, PyObject *real);
TapeRef rec_load(Recorder *r, TapeOp op, uint8_t sub, TapeRef a0, TapeRef a1, uint32_t aux,
                 PyObject *real);
/* `value` is what such a load gave, and nothing has changed since: storing it there does nothing. */
bool rec_loaded(Recorder *r, TapeOp op, TapeRef a0, TapeRef a1, uint32_t aux, TapeRef value);
/* What the class holds under `name` is guarded to be `found` (NULL: nothing), a constant or an
 * object read again. */
void rec_guard_type_attr(Recorder *r, PyTypeObject *type, PyObject *name, PyObject *found);
TapeRef rec_load_type_attr(Recorder *r, PyTypeObject *type, PyObject *name, PyObject *found);
void rec_guard_no_attr(Recorder *r, TapeRef obj, PyObject *name);

/* -- grad.c: calls of value_and_grad objects -------------------------------------------------

 * The function is recorded on plain arrays and every snapshot meanwhile is the one before the call:
 * nothing in it has an effect, so an exit repeats the call. What has one, or cannot be recorded or
 * differentiated, abandons the recording of this call, which then is a residual operation. */

/* Begin with the function of such a call; false: it is none, or has to run in eager mode. */
bool rec_grad_begin(Recorder *r, const RecCall *c, RecStatus *st);
bool rec_grad_returns(const Recorder *r);       /* the innermost frame is the function's own */
RecStatus rec_grad_end(Recorder *r, PyObject *value, TapeRef ref);      /* steals value */
RecStatus rec_grad_abandon(Recorder *r);
void rec_grad_free(Recorder *r);
uint32_t rec_grad_snapshot(const Recorder *r);
/* The shadow of an attribute that was read: a parameter is its leaf. */
TapeRef rec_grad_attr(Recorder *r, PyObject *owner, PyObject *name, PyObject *real, TapeRef ref);
void rec_grad_note(Recorder *r, TapeRef ref, PyObject *real);   /* what a register holds */
/* A virtual object that is older than the call, and so must not change in it. */
bool rec_grad_fixed(Recorder *r, TapeRef ref);

/* -- update.c: arrays changed in place, and who shares memory with whom --------------------------

 * New contents are computed apart; a WRITE row copies them when the transaction commits. Until then
 * a read of the very array reads the new contents; a read of what may share memory with it ends the
 * transaction first. */

/* An operation that changes an array in place (front_update). As rec_operate. */
RecStatus rec_update(Recorder *r, const FrontUpdate *up, CallKind kind, uint32_t oparg,
                     PyObject *const *real, const TapeRef *ref, uint32_t n, PyObject *kwnames,
                     int pop, PyObject **res, TapeRef *out);
/* Array work of a NODE row is about to read operands; those with new contents are replaced. */
void rec_memory_read(Recorder *r, CallKind kind, PyObject *const *real, TapeRef *a, uint32_t n,
                     PyObject *kwnames, PyObject *res);
/* Whose memory its result is; `a` are the operands before rec_memory_read. */
void rec_memory_note(Recorder *r, TapeRef out, CallKind kind, PyObject *const *real,
                     const TapeRef *a, uint32_t n, PyObject *kwnames, PyObject *res);
void rec_memory_shown(Recorder *r, TapeRef ref);        /* other registers may come to name it */
/* `value` is what target[key] gave: storing it there changes nothing. */
bool rec_is_own_part(Recorder *r, TapeRef target, TapeRef key, TapeRef value);
void rec_memory_flush(Recorder *r);     /* the transaction ends: its guard, nothing is pending */

/* -- ops_super.c ------------------------------------------------------------------------- */

/* An attribute of a virtual super object; `pop` operands of the instruction go. */
RecStatus rec_super_attr(Recorder *r, PyObject *obj, TapeRef obj_ref, PyObject *name, bool method,
                         int pop);
/* super(...) as a virtual object; `handled` false: not possible. */
RecStatus rec_super_call(Recorder *r, PyObject *const *real, const TapeRef *ref, Py_ssize_t n,
                         int pop, bool *handled);

/* -- instance.c -------------------------------------------------------------------------- */

bool rec_has_dict(PyTypeObject *tp);    /* ops_attr.c: its instances have a dict */
void rec_guard_special(Recorder *r, PyTypeObject *tp, const char *special);
/* An instance of an ordinary class, its __init__ inlined; `handled` false: not possible. */
RecStatus rec_instance_make(Recorder *r, const RecCall *c, bool *handled);
/* Store into a virtual instance; `raw`: as object.__setattr__ does. The operands stay. */
RecStatus rec_instance_store(Recorder *r, PyObject *obj, TapeRef ref, PyObject *name,
                             PyObject *value, TapeRef vref, bool raw, bool *handled);
/* The own attribute (or, without name, the slot at the offset) of a virtual instance. */
bool rec_instance_get(Recorder *r, TapeRef obj, PyObject *name, Py_ssize_t offset, TapeRef *res);

/* -- operations -------------------------------------------------------------------------- */

/* A pure operation on these operands (PCALL or NODE by phase): runs it, gives value and ref. */
RecStatus rec_pure(Recorder *r, TapeOp op, CallKind kind, uint32_t oparg, PyObject *const *real,
                   const TapeRef *ref, uint32_t n, PyObject *kwnames, int pop, PyObject **res,
                   TapeRef *out);
/* A residual operation; `pop` operands leave the stack first. The caller then replaces them by the
 * result. */
RecStatus rec_residual(Recorder *r, CallKind kind, uint32_t oparg, PyObject *const *real,
                       const TapeRef *ref, uint32_t n, PyObject *kwnames, int pop, int flags,
                       PyObject **res, TapeRef *out);
/* The items of the exact tuple that the residual row just emitted gave, loaded before its state
 * ends. */
void rec_residual_items(Recorder *r, TapeRef tuple, PyObject *items, TapeRef *item);
/* Run array work as a replay runs it: 0 and a result, 1 = a floating-point error that the program
 * would hear of (no exception is set), -1 an exception. */
int rec_run_node(CallKind kind, uint32_t oparg, PyObject *const *real, uint32_t n,
                 PyObject *kwnames, PyObject **res);
/* Whichever of the two fits. */
RecStatus rec_operate(Recorder *r, CallKind kind, uint32_t oparg, PyObject *const *real,
                      const TapeRef *ref, uint32_t n, PyObject *kwnames, int pop, PyObject **res,
                      TapeRef *out);

/* ops_call.c, for grad.c: method and object calls as those of functions; a frame for an inlined
 * function (1 done, 0 not possible, -1 an exception) that leaves `pop` operands. */
void rec_call_resolve(Recorder *r, RecCall *c);
RecStatus rec_call_residual(Recorder *r, const RecCall *c);      /* its result replaces the operands */
bool rec_call_may_inline(Recorder *r, const RecCall *c);
int rec_call_push(Recorder *r, const RecCall *c, int pop, FrameCont cont);
void rec_call_insert(RecCall *c, PyObject *self, TapeRef ref);  /* in front of the arguments */
RecStatus rec_call(Recorder *r, int nargs, PyObject *kwnames,
                   int extra_pop); /* the stack holds callable and arguments in CPython's order */
RecStatus rec_call_function(Recorder *r, PyObject *func, TapeRef func_ref, PyObject *const *real,
                            const TapeRef *ref, Py_ssize_t n, PyObject *kwnames, int pop,
                            FrameCont cont, int cont_arg);
RecStatus rec_builtin(Recorder *r, PyObject *callable, PyObject *const *real, const TapeRef *ref,
                      Py_ssize_t n, PyObject *kwnames, int pop, bool *handled);
/* The ref of item i of a dict whose keys are guarded or whose fields are known. */
TapeRef rec_dict_item(Recorder *r, PyObject *dict, TapeRef ref, PyDictPart part, Py_ssize_t i);
enum { REC_JOIN_MAX = 4 };              /* iterables of a zip that is not a call of its own */
/* A virtual iterator over something whose items are known, TAPE_NULL if there is none. */
TapeRef rec_known_iter(Recorder *r, PyObject *real, TapeRef ref);
bool rec_keys_known(Recorder *r, TapeRef ref, PyObject *dict);
RecStatus rec_attr(Recorder *r, PyObject *name, bool method);
/* What getattr(obj, name) would find: FOUND gives a new reference (NULL with an exception) and a
 * ref. */
typedef enum { REC_ATTR_UNKNOWN, REC_ATTR_FOUND, REC_ATTR_ABSENT } RecAttr;
RecAttr rec_attr_look(Recorder *r, PyObject *obj, TapeRef ref, PyObject *name, PyObject **real,
                      TapeRef *out);
RecStatus rec_branch(Recorder *r, bool *outcome); /* truth of the top of the stack, which stays */
RecStatus rec_backward(Recorder *r, int target);        /* a jump back to a loop head */
RecStatus rec_at_head(Recorder *r);     /* before an instruction: is it an ancestor's loop head? */
RecStatus rec_poll(Recorder *r);        /* serve what waits, where an instruction does */
bool rec_inlineable(PyObject *func);
bool rec_is_user(PyObject *obj); /* of a class of the program's or of a library's: unknown code */
bool rec_is_inert(PyObject *obj);        /* its death runs no Python code */

/* Results of a handler's real operation that is not on the frames' own stack. */
typedef RecStatus (*RecHandler)(Recorder *r, int oparg);
extern const RecHandler rec_handler[256];       /* by opcode of this version */
CcReason rec_stop_reason(int op);       /* why the recording ends at an opcode without handler */

typedef struct {
    const char *name;
    const char *handler;                /* NULL = none: the recording stops there */
    int op;
} RecOpcode;

const RecOpcode *rec_opcodes(uint32_t *count);  /* the rows of this version's bytecode.def */

#endif
