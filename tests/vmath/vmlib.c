/* Array loops over every function of kern/vmath.h, for the Python tests: each returns the IEEE
 * flags it raised (1 divide, 2 overflow, 8 invalid). Built once per width and instruction set. */
#include "kern/vmath.h"

#include <fenv.h>
#include <stddef.h>

static int
raised(void)
{
    int f = fetestexcept(FE_ALL_EXCEPT);

    return (f & FE_DIVBYZERO ? 1 : 0) | (f & FE_OVERFLOW ? 2 : 0) | (f & FE_INVALID ? 8 : 0);
}

#define LANES(type) (sizeof(type) / sizeof(((type){0})[0]))

/* v from p[0..left), lanes past the end are copies of the last element. */
#define LOAD(type, v, p, left)                              \
    for (size_t j = 0; j < LANES(type); j++) {              \
        (v)[j] = (p)[j < (left) ? j : (left) - 1];          \
    }
#define STORE(type, v, p, left)                             \
    for (size_t j = 0; j < LANES(type) && j < (left); j++) { \
        (p)[j] = (v)[j];                                    \
    }

#define LOOP1(fn, type, elem)                               \
    int t_##fn(const elem *x, elem *out, size_t n);         \
    int t_##fn(const elem *x, elem *out, size_t n)          \
    {                                                       \
        feclearexcept(FE_ALL_EXCEPT);                       \
        for (size_t i = 0; i < n; i += LANES(type)) {       \
            type a, r;                                      \
            LOAD(type, a, x + i, n - i)                     \
            r = fn(a);                                      \
            STORE(type, r, out + i, n - i)                  \
        }                                                   \
        return raised();                                    \
    }

#define LOOP2(fn, type, elem)                               \
    int t_##fn(const elem *x, const elem *y, elem *out, size_t n); \
    int t_##fn(const elem *x, const elem *y, elem *out, size_t n)  \
    {                                                       \
        feclearexcept(FE_ALL_EXCEPT);                       \
        for (size_t i = 0; i < n; i += LANES(type)) {       \
            type a, b, r;                                   \
            LOAD(type, a, x + i, n - i)                     \
            LOAD(type, b, y + i, n - i)                     \
            r = fn(a, b);                                   \
            STORE(type, r, out + i, n - i)                  \
        }                                                   \
        return raised();                                    \
    }

#define VM_FN1(name, f64, f32)                              \
    LOOP1(vm_##name##_f64, vm_f64, double)                  \
    LOOP1(vm_##name##_f32, vm_f32, float)
#define VM_FN2(name, f64, f32)                              \
    LOOP2(vm_##name##_f64, vm_f64, double)                  \
    LOOP2(vm_##name##_f32, vm_f32, float)
#include "kern/vmath.def"
