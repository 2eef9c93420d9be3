/* build/selftest.h - the text with which a compiler shows that it can be trusted.
 *
 * Every number comes from a volatile, so that the compiler's arithmetic at compile time proves
 * nothing. main() returns BUILD_SELFTEST_GOOD, or the number of the check that failed;
 * cc_selftest() is what the shared object shows. main() first sets the floating-point state that
 * kernels get from the team: start-up code may have set another one (crtfastmath.o). No includes,
 * like the kernels. */
#ifndef CC_BUILD_SELFTEST_H
#define CC_BUILD_SELFTEST_H

enum { BUILD_SELFTEST_GOOD = 42 };

/* clang-format off */
static const char build_selftest[] =
"typedef float F __attribute__((vector_size(32)));\n"
"typedef int I __attribute__((vector_size(32)));\n"
"typedef float Fu __attribute__((vector_size(32), aligned(4), may_alias));\n"
"typedef double D __attribute__((vector_size(64)));\n"
"typedef long long L __attribute__((vector_size(64)));\n"
"volatile float one = 1, three = 3, big = 1e8f, tiny = 1e-38f, near = 1 + 0x1p-12f, zero = 0;\n"
"volatile double dnear = 1 + 0x1p-27;\n"
"volatile int most = __INT_MAX__;\n"
"float mem[20];\n"
"static int vectors(void)\n"
"{\n"
"    F a, b, c;\n"
"    I m, n;\n"
"    D d;\n"
"    L l;\n"
"    int i;\n"
"    if (sizeof(F) != 32 || sizeof(I) != 32 || sizeof(D) != 64) return 1;\n"
"    for (i = 0; i < 8; i++) { a[i] = one * i; b[i] = three; }\n"
"    c = a * b + 1;\n"
"    m = a < b;\n"
"    n = ((I)c & m) | ((I)a & ~m);\n"
"    for (i = 0; i < 8; i++) {\n"
"        if (c[i] != 3 * i + 1) return 2;\n"
"        if (m[i] != (i < 3 ? -1 : 0)) return 3;\n"
"        if (((F)n)[i] != (i < 3 ? 3 * i + 1 : i)) return 4;\n"
"    }\n"
"    *(Fu *)(mem + 3) = c;\n"
"    for (i = 0; i < 20; i++) if (mem[i] != (i < 3 || i > 10 ? 0 : 3 * (i - 3) + 1)) return 5;\n"
"    for (i = 0; i < 8; i++) { d[i] = dnear * i; l[i] = most; }\n"
"    l = (l + l) >> 1;\n"
"    l = (d == d) & l;\n"
"    for (i = 0; i < 8; i++) if (l[i] != __INT_MAX__ || d[i] != dnear * i) return 6;\n"
"    return 0;\n"
"}\n"
"static int numbers(void)\n"
"{\n"
"    float x = near, y = 1 + 0x1p-11f, nan = zero / zero, b = big, o = one, t = three, s;\n"
"    double u = dnear, w = 1 + 0x1p-26;\n"
"    F v, r;\n"
"    D q;\n"
"    int i, k = most;\n"
"    if (x * x - y != 0 || u * u - w != 0) return 10;                      /* contraction */\n"
"    for (i = 0; i < 8; i++) { v[i] = x; q[i] = u; }\n"
"    r = v * v - y;\n"
"    q = q * q - w;\n"
"    for (i = 0; i < 8; i++) if (r[i] != 0 || q[i] != 0) return 11;\n"
"    if (nan == nan || !(nan != nan) || nan < one || nan >= one) return 12;\n"
"    s = zero * -one;\n"
"    if (one / (s + zero) < 0 || one / s > 0 || one / (zero - s) < 0) return 13;   /* -0.0 */\n"
"    if ((b + o) - b != 0) return 14;                               /* reassociation */\n"
"    if (o / t != 0x1.555556p-2f || y / t != 0x1.558p-2f || b / t != 0x1.fca056p+24f) return 15;\n"
"    if (tiny / 2 == 0 || tiny / 2 * 2 != tiny) return 16;                /* denormals */\n"
"    for (i = 0, s = 0; i < 4; i++) s += i == 0 ? b : i == 3 ? -b : o;\n"
"    if (s != 0) return 17;                                               /* order of a sum */\n"
"    if (k + 1 > k || k + 1 != -k - 1) return 18;                         /* wrapping */\n"
"    if (__builtin_sqrtf(one + one) != 0x1.6a09e6p+0f) return 19;\n"
"    if ((float)(tiny + one) != 1 || (int)(three * one + 0.75f) != 3) return 20;\n"
"    return 0;\n"
"}\n"
"int cc_selftest(int x) { F v = {x, 2, 3}; I m = v > 2; return (int)v[0] * 3 + m[2]; }\n"
"int main(void)\n"
"{\n"
"    int bad;\n"
"#if defined(__x86_64__)\n"
"    __builtin_ia32_ldmxcsr(0x1f80);\n"
"#elif defined(__aarch64__)\n"
"    __asm__ volatile(\"msr fpcr, %0\" : : \"r\"(0ul));\n"
"#endif\n"
"    bad = vectors();\n"
"    if (bad == 0) bad = numbers();\n"
"    return bad == 0 ? 42 : bad;\n"
"}\n";
/* clang-format on */

#endif
