#include "cpu.h"

#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__x86_64__) || defined(__i386__)

void
build_cpu(uint32_t word[BUILD_CPU_WORDS])
{
    uint32_t a, b, c, d;

    memset(word, 0, BUILD_CPU_WORDS * sizeof(*word));
    if (__get_cpuid(0, &a, &b, &c, &d)) {               /* vendor */
        word[0] = b;
        word[1] = c;
        word[2] = d;
    }
    if (__get_cpuid(1, &a, &b, &c, &d)) {               /* not b: it holds the core's number */
        word[3] = a;
        word[4] = c;
        word[5] = d;
        if (c & bit_OSXSAVE) {                          /* registers that the system saves */
            __asm__ volatile("xgetbv" : "=a"(word[6]), "=d"(word[7]) : "c"(0));
        }
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        word[8] = b;
        word[9] = c;
        word[10] = d;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
        word[11] = a;
        word[12] = d;
    }
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) {
        word[13] = c;
        word[14] = d;
    }
}

#else

void
build_cpu(uint32_t word[BUILD_CPU_WORDS])
{
    memset(word, 0, BUILD_CPU_WORDS * sizeof(*word));
#ifdef __linux__
    unsigned long cap = getauxval(AT_HWCAP), cap2 = getauxval(AT_HWCAP2);
    memcpy(word, &cap, sizeof(cap));
    memcpy(word + 4, &cap2, sizeof(cap2));
#endif
}

#endif
