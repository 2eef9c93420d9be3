/* tests/c/gen_run.h - compile the loops of plans with the system's compiler, for test_gen.c. */
#ifndef CC_GEN_RUN_H
#define CC_GEN_RUN_H

#include "plan_run.h"

#include "build/make.h"
#include "gen/gen.h"

#include <stdio.h>

typedef struct {
    BuildCache cache;
    BuildToolchain tool;
    char dir[64];
    bool ready;
} GrTools;

static inline bool
gr_open(GrTools *t)
{
    CcStatus st = {0};

    memset(t, 0, sizeof(*t));
    strcpy(t->dir, "/tmp/ccompile-test-XXXXXX");
    if (mkdtemp(t->dir) == NULL || !build_cache_open(&t->cache, t->dir, 0, "test", &st)) {
        return false;
    }
    t->ready = build_toolchain_find(&t->tool, &t->cache, NULL, &(BuildRun){0}, &st);
    if (!t->ready) {
        printf("no compiler: %s\n", st.detail);
        build_cache_close(&t->cache);
    }
    return t->ready;
}

static inline void
gr_close(GrTools *t)
{
    char command[100];

    if (t->ready) {
        build_toolchain_fini(&t->tool);
        build_cache_close(&t->cache);
    }
    snprintf(command, sizeof(command), "rm -rf %s", t->dir);
    if (system(command) != 0) {
        printf("%s is left over\n", t->dir);
    }
}

/* Compile every loop of the plans as one unit and give the plans their bodies. NULL = failed. */
static inline BuildObject *
gr_compile(GrTools *t, PrRun *run, uint32_t n)
{
    const GenLoop *loop[1024];
    uint32_t nloop = 0, at = 0;
    CcStatus st = {0};
    CcBuf text;
    BuildUnit unit;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < rt_plan_ngroups(run[i].plan); k++) {
            if (rt_plan_loop(run[i].plan, k) != NULL && nloop < 1024) {
                loop[nloop++] = rt_plan_loop(run[i].plan, k);
            }
        }
    }
    cc_buf_init(&text);
    unit = (BuildUnit){0};
    if (gen_unit(&text, loop, nloop, &st)) {
        unit = (BuildUnit){.source = cc_buf_text(&text), .size = text.len};
        if (!build_make(&t->cache, &t->tool, &unit, 1, &(BuildRun){0}, &st)) {
            printf("compile: %s\n", st.detail);
        }
    }
    cc_buf_fini(&text);
    for (uint32_t i = 0; unit.object != NULL && i < n; i++) {
        for (uint32_t k = 0; k < rt_plan_ngroups(run[i].plan); k++) {
            const GenLoop *l = rt_plan_loop(run[i].plan, k);
            char name[32];
            BuildFn row = NULL;
            if (l == NULL) {
                continue;
            }
            snprintf(name, sizeof(name), "cc_flat_%u", at);
            BuildFn flat = build_object_find(unit.object, name, &st);
            if (gen_has_row(l)) {
                snprintf(name, sizeof(name), "cc_row_%u", at);
                row = build_object_find(unit.object, name, &st);
            }
            T_CHECK(flat != NULL);
            rt_plan_set_body(run[i].plan, k, (CcBodyFn)flat, (CcBodyFn)row);
            at++;
        }
    }
    return unit.object;
}

#endif
