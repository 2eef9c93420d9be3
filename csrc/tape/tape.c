/* tape/tape.c - tables, life and garbage collection of traces. */
#include "tape.h"

#include "../base/mem.h"

const TapeRowInfo tape_row_info[TAPE__COUNT] = {
#define FAIL_N false
#define FAIL_T true
#define FAIL_X false
#define TAPE_ROW(name, phase, fail, text) [TAPE_##name] = {#name, PHASE_##phase, FAIL_##fail},
#include "tape.def"
#undef TAPE_ROW
};

const char *const tape_call_name[DO__COUNT] = {
#define CALL_KIND(name, text) [DO_##name] = #name,
#include "call.def"
#undef CALL_KIND
};

static void
exit_free(TapeExit *ex)
{
    for (uint32_t i = 0; i < ex->nside; i++) {
        tape_free(ex->side[i]);
    }
    cc_free(ex->side);
}

void
tape_free(Trace *t)
{
    if (t == NULL) {
        return;
    }
    if (t->exit != NULL) {
        for (uint32_t i = 0; i < t->nsnap; i++) {
            exit_free(&t->exit[i]);
        }
    }
    if (t->plan_free != NULL) {
        t->plan_free(t->plan_owner);
    }
    if (t->body_free != NULL) {
        t->body_free(t->body_owner);
    }
    /* The pins go last and from a local: dropping a class may run code that looks at us. */
    PyObject **konst = t->konst;
    uint32_t nkonst = t->nkonst;
    cc_free(t->ins);
    cc_free(t->opnd);
    cc_free(t->virt);
    cc_free(t->snap);
    cc_free(t->frame);
    cc_free(t->anchor);
    cc_free(t->chk);
    cc_free(t->arr);
    cc_free(t->meta);
    cc_free(t->place);
    cc_free(t->grad);
    cc_free(t->exit);
    cc_free(t->keep);
    cc_free(t);
    for (uint32_t i = 0; i < nkonst; i++) {
        Py_XDECREF(konst[i]);
    }
    cc_free(konst);
}

int
tape_traverse(Trace *t, visitproc visit, void *arg)
{
    for (uint32_t i = 0; i < t->nkonst; i++) {
        Py_VISIT(t->konst[i]);
    }
    for (uint32_t i = 0; i < t->nsnap; i++) {
        for (uint32_t k = 0; k < t->exit[i].nside; k++) {
            int err = tape_traverse(t->exit[i].side[k], visit, arg);
            if (err) {
                return err;
            }
        }
    }
    return 0;
}

uint32_t
tape_count(const Trace *t)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < t->nsnap; i++) {
        for (uint32_t k = 0; k < t->exit[i].nside; k++) {
            n += tape_count(t->exit[i].side[k]);
        }
    }
    return n;
}
