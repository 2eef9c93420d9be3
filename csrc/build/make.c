#include "make.h"

#include "../base/mem.h"

#include <string.h>

enum { MAKE_STRIPES = 64 };

/* -- From the cache -------------------------------------------------------------------- */

/* The object of a key, NULL = miss. What does not load is dropped. */
static BuildObject *
make_cached(BuildCache *c, const BuildKey *key)
{
    CcStatus st;
    size_t size;
    void *bytes = build_cache_get(c, BUILD_OBJECT, key, &size);
    BuildObject *o = bytes == NULL ? NULL : build_object_load(c, bytes, size, &st);

    if (bytes != NULL && o == NULL && st.reason == CC_REASON_LOAD_FAILED) {
        build_cache_drop(c, BUILD_OBJECT, key);
    }
    cc_free(bytes);
    return o;
}

bool
build_make_known(BuildCache *c, const BuildKey *key, BuildObject **object, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        object[i] = make_cached(c, &key[i]);
        if (object[i] == NULL) {
            while (i > 0) {
                build_object_unref(object[--i]);
                object[i] = NULL;
            }
            return false;
        }
    }
    return true;
}

/* Look all missing units up; the number that is still missing. */
static uint32_t
make_look(BuildCache *c, BuildUnit *unit, uint32_t n)
{
    uint32_t missing = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (unit[i].object == NULL) {
            unit[i].object = make_cached(c, &unit[i].key);
            missing += unit[i].object == NULL;
        }
    }
    return missing;
}

/* -- Compiling ------------------------------------------------------------------------------ */

/* Take the locks of the missing units, in ascending order, each once. */
static bool
make_lock(BuildCache *c, const BuildUnit *unit, uint32_t n, int lock[MAKE_STRIPES],
          const BuildRun *run, CcStatus *st)
{
    bool wanted[MAKE_STRIPES] = {false};

    for (uint32_t i = 0; i < n; i++) {
        wanted[build_lock_stripe(&unit[i].key)] |= unit[i].object == NULL;
    }
    for (int s = 0; s < MAKE_STRIPES; s++) {
        if (wanted[s] && !build_lock_take(c, (uint8_t)s, run, &lock[s], st)) {
            return false;
        }
    }
    return true;
}

/* Compile, keep and load what is missing. `text` has room for n. */
static bool
make_missing(BuildCache *c, const BuildToolchain *tc, BuildUnit *unit, uint32_t n, BuildText *text,
             const BuildRun *run, CcStatus *st)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (unit[i].object == NULL) {
            text[count++] = (BuildText){.source = unit[i].source, .size = unit[i].size};
        }
    }
    bool good = build_toolchain_compile(tc, c, text, count, run, st);
    for (uint32_t i = 0, k = 0; i < n; i++) {
        if (unit[i].object != NULL) {
            continue;
        }
        BuildText *t = &text[k++];
        if (t->object != NULL) {
            build_cache_put(c, BUILD_OBJECT, &unit[i].key, t->object, t->object_size);
            unit[i].compiled = true;
        }
        if (t->object != NULL && good) {
            unit[i].object = build_object_load(c, t->object, t->object_size, st);
            good = unit[i].object != NULL;
        }
        cc_free(t->object);
    }
    return good;
}

bool
build_make(BuildCache *c, const BuildToolchain *tc, BuildUnit *unit, uint32_t n,
           const BuildRun *run, CcStatus *st)
{
    int lock[MAKE_STRIPES];
    bool good = true;

    for (uint32_t i = 0; i < n; i++) {
        BuildKeyMaker m;
        build_key_init(&m, c, BUILD_OBJECT);
        build_key_add(&m, &tc->identity, sizeof(tc->identity));
        build_key_add(&m, unit[i].source, unit[i].size);
        unit[i].key = build_key_end(&m);
        unit[i].object = NULL;
        unit[i].compiled = false;
    }
    if (make_look(c, unit, n) == 0) {
        return true;
    }
    for (int s = 0; s < MAKE_STRIPES; s++) {
        lock[s] = -1;
    }
    BuildText *text = cc_calloc(n, sizeof(*text));
    if (text == NULL) {
        good = cc_fail(st, CC_REASON_NO_MEMORY, "compiling");
    }
    good = good && make_lock(c, unit, n, lock, run, st);
    if (good && make_look(c, unit, n) > 0) {    /* another process may have been first */
        good = make_missing(c, tc, unit, n, text, run, st);
    }
    for (int s = 0; s < MAKE_STRIPES; s++) {
        build_lock_drop(lock[s]);
    }
    for (uint32_t i = 0; i < n && !good; i++) {
        build_object_unref(unit[i].object);
        unit[i].object = NULL;
    }
    cc_free(text);
    return good;
}
