/* py/frame.h - every question we ask a frame, a code object or a thread, the same for all versions.
 *
 * Implemented once per Python version in py/v3XX/ (setup.py compiles exactly one); nobody outside
 * py/ includes an internal header of CPython or tests PY_VERSION_HEX. "unit" is the index of a
 * 2-byte code unit, caches included. A frame is LINKED when it is the thread's current frame (or
 * below it); the functions say which state they want.
 *
 * Ownership of frames: a frame that py_frame_push made is OURS: whoever pushed it ends it with
 * py_frame_clear_pop or py_frame_eval(ours = true). A frame that the PEP 523 hook received is the
 * caller's on 3.11 and ours on 3.12+: the hook ends it with py_hook_frame_done or
 * py_frame_eval(ours = false). */
#ifndef PY_FRAME_H
#define PY_FRAME_H

#include "py.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct _PyInterpreterFrame PyIFrame;

/* -- Module set-up ---------------------------------------------------------- */

/* Call once at import: finds what the version needs (poll function, vectorcall of functions).
 * -1 with an exception. `module_globals` is a dict for the poll function's globals. */
int py_frame_setup(PyObject *module_globals);

/* -- Thread ----------------------------------------------------------------- */

PyIFrame *py_current_frame(PyThreadState *ts);          /* may be NULL */
/* settrace, setprofile or a monitoring tool with global events is active */
bool py_tracing(PyThreadState *ts);
/* a monitoring tool set events for this code object alone */
bool py_code_monitored(PyCodeObject *co);
/* a signal, GC request, GIL request or pending call waits */
bool py_breaker_set(PyThreadState *ts);
int py_poll(PyThreadState *ts);         /* serve what waits; -1 with the exception of a handler */
/* ts->exc_info's value, NULL or None = none */
PyObject *py_handled_exc_borrow(PyThreadState *ts);
void py_set_handled_exc_steal(PyThreadState *ts, PyObject *exc);

/* Recursion accounting of one Python-level call. enter: -1 with RecursionError. */
int py_recursion_enter(PyThreadState *ts);
void py_recursion_leave(PyThreadState *ts);

/* -- The PEP 523 hook ------------------------------------------------------- */

/* What runs for the armed frame. The frame is not linked. The callee owns the frame as the head
 * comment says and returns the call's result (NULL = exception set). */
typedef PyObject *(*PyHookFn)(PyThreadState *ts, PyIFrame *f, void *ctx);

/* Call `callable` with its arguments while a one-shot hook waits for a frame of `func` on this
 * thread. `hook` runs for the first such frame and is disarmed before; other frames (other thread,
 * other function, generators) go to the evaluator that was installed before us. */
PyObject *py_call_hooked(PyThreadState *ts, PyObject *callable, PyObject *const *args,
                         size_t nargsf, PyObject *kwnames, PyFunctionObject *func, PyHookFn hook,
                         void *ctx);

/* End a hook frame whose bytecode we ran to RETURN or to an unhandled exception ourselves
 * (stack and locals are still in it; stacktop is set). Not linked. A pending exception stays. */
void py_hook_frame_done(PyThreadState *ts, PyIFrame *f);

/* -- Reading a frame -------------------------------------------------------- */

PyCodeObject *py_frame_code_borrow(const PyIFrame *f);
PyFunctionObject *py_frame_func_borrow(const PyIFrame *f);
PyObject *py_frame_globals_borrow(const PyIFrame *f);
PyObject *py_frame_builtins_borrow(const PyIFrame *f);
/* localsplus: locals, cells, free variables, then the stack */
PyObject **py_frame_slots(PyIFrame *f);
/* index into slots of the first free one; -1 while running */
int py_frame_stacktop(const PyIFrame *f);
void py_frame_set_stacktop(PyIFrame *f, int top);
/* a frame object exists: somebody may look inside */
bool py_frame_has_object(const PyIFrame *f);
/* past its prologue: visible to sys._getframe */
bool py_frame_is_complete(const PyIFrame *f);

/* -- Position --------------------------------------------------------------- */

int py_frame_next(const PyIFrame *f);                   /* unit to run next; frame not running */
void py_frame_set_next(PyIFrame *f, int unit);
/* `unit` is being executed: f_lineno, tracebacks */
void py_frame_set_running(PyIFrame *f, int unit);
/* in a call whose instruction ends before unit `next` */
void py_frame_set_suspended(PyIFrame *f, int next);

/* -- Life ------------------------------------------------------------------- */

/* New frame for `func` on the data stack, all localsplus NULL, at unit 0, stack empty, not linked.
 * Takes its own reference to func. NULL with MemoryError. */
PyIFrame *py_frame_push(PyThreadState *ts, PyFunctionObject *func);
/* topmost frame of the data stack, unlinked, stacktop set */
void py_frame_clear_pop(PyThreadState *ts, PyIFrame *f);

void py_frame_link(PyThreadState *ts, PyIFrame *f);     /* previous = current; current = f */
void py_frame_unlink(PyThreadState *ts, PyIFrame *f);   /* current = f's previous */

/* CPython runs the frame to its end from `next` (stacktop set, not linked, not counted in the
 * recursion depth). The frame is gone afterwards by the rule of `ours`. NULL = exception. */
PyObject *py_frame_eval(PyThreadState *ts, PyIFrame *f, bool ours);

/* -- Errors ----------------------------------------------------------------- */

/* An exception is set and frame `f` (linked, stacktop set) was executing `unit`: add the traceback
 * entry, find the handler, drop the stack to its depth, push lasti and the exception, and return
 * the handler's unit with no exception set. -1: no handler; the value stack is dropped, the
 * exception still set. The frame's position becomes `unit`. */
int py_unwind(PyThreadState *ts, PyIFrame *f, int unit);

/* The same for an exception that is raised again (RERAISE, a bare `raise`): no new traceback entry,
 * and lasti is the position the frame has, which RERAISE with an argument set back to the original
 * one; `unit` only finds the handler. */
int py_unwind_raised(PyThreadState *ts, PyIFrame *f, int unit);

/* the current exception, normalised, with traceback; new reference; clears it */
PyObject *py_exc_take(void);
void py_exc_give_steal(PyObject *exc);  /* make it current again */

/* -- Code objects ----------------------------------------------------------- */

PyObject *py_code_bytes(PyCodeObject *co);      /* new reference to co_code: deopted, caches zero */
int py_caches(int opcode);              /* inline cache units behind an instruction */
bool py_code_handler(PyCodeObject *co, int unit, int *depth, int *handler, bool *lasti);
int py_code_line(PyCodeObject *co, int unit);
const char *py_opcode_name(int opcode); /* "LOAD_FAST"; "" for a hole */

/* -- What an argument means (the same instruction differs between versions) -- */

/* 1: stack is NULL, callable, args or method, self, args; 0: callable, NULL|self, args */
enum { PY_CALL_NULL_FIRST =
#if PY_VERSION_HEX < 0x030D0000
    1
#else
    0
#endif
};
void py_arg_compare(int oparg, int *op, bool *to_bool);
void py_arg_load_global(int oparg, int *name, bool *push_null);
void py_arg_load_attr(int oparg, int *name, bool *method);
/* where FOR_ITER jumps; the iterator is popped there */
/* Locals that an instruction stores or deletes: how many, and which. */
int py_stored_locals(int opcode, int oparg, int *a, int *b);
typedef enum {
    PY_INTRINSIC_OTHER,
    PY_INTRINSIC_LIST_TO_TUPLE,
    PY_INTRINSIC_UNARY_POSITIVE
} PyIntrinsic;
PyIntrinsic py_intrinsic_1(int oparg);  /* what CALL_INTRINSIC_1 does */
int py_for_iter_exhausted(int next, int oparg);

/* -- Functions and their arguments ------------------------------------------ */

/* Bind a call to the slots of `func`'s code: co_argcount + co_kwonlyargcount + *args + **kwargs new
 * references, none NULL. `args` holds `nargs` positionals, then the values of `kwnames`. 1 bound;
 * 0 the call is wrong: plain Python must raise (no exception set); -1 MemoryError. Never runs
 * Python code: a keyword that is no exact str, or keyword defaults with keys that are no strings,
 * give 0 as well. After 0 and -1 all slots are NULL. */
int py_bind(PyFunctionObject *func, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
            PyObject **slots);
int py_nparams(PyCodeObject *co);       /* how many slots py_bind fills */

/* As MAKE_FUNCTION of the version, without its attributes; qualname NULL = the code's own. */
PyObject *py_make_function(PyObject *code, PyObject *globals, PyObject *qualname);
/* exact function whose vectorcall is CPython's own */
bool py_plain_function(PyObject *callable);

/* -- Dicts and types -------------------------------------------------------- */

/* What an iterator or view gives of a dict; the order of this list is also that of the tables. */
typedef enum { PY_DICT_KEYS, PY_DICT_VALUES, PY_DICT_ITEMS } PyDictPart;
bool py_dict_part(PyObject *view, PyDictPart *part);    /* false: no view of an exact dict */
PyObject *py_dict_of_view_borrow(PyObject *view);
PyObject *py_dict_of_iter_borrow(PyObject *it); /* NULL: used up */
PyObject *py_dict_view(PyObject *dict, PyDictPart part);
/* An iterator that began when the dict had `used` items and has given `skip`. */
PyObject *py_dict_iter(PyObject *dict, PyDictPart part, Py_ssize_t skip, Py_ssize_t used);

/* Changes with every change of the dict's contents, not with reads or stores of the same object.
 * For exact dicts of modules and of programs only: on 3.13 `obj.x = v` changes the __dict__ of an
 * object with inline values without a new tag. */
uint64_t py_dict_tag(PyObject *dict);

/* Changes when the class or a base changes, never repeats; 0 = no tag to be had (3.13 gives a class
 * up after 1000 changes). Costs a read while nothing changed; else the class gets a new tag. */
unsigned py_type_tag(PyTypeObject *type);

/* The attribute `name` in the instance's own attributes (dict or inline values), borrowed, without
 * running code, making the dict or setting an exception; NULL = absent, or no instance dict, or
 * `name` is no exact str. A key that only its own __eq__ would call equal to it is not found. */
PyObject *py_instance_attr_borrow(PyObject *obj, PyObject *name);

#endif
