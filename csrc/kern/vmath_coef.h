/* kern/vmath_coef.h - polynomials and split constants of kern/vmath.h.
 * Made by scripts/vmath/generate.py; own minimax fits. Never edited by hand. */
#ifndef VM_COEF_H
#define VM_COEF_H

#define VM_LN2_1 0x1.62e42fefa3800p-1
#define VM_LN2_2 0x1.ef35793c76730p-45
#define VM_LN2F_1 0x1.62e42fefa39efp-1
#define VM_LN2F_2 0x1.abc9e3b39803fp-56
#define VM_LN2S_1 0x1.62e4000000000p-1
#define VM_LN2S_2 0x1.7f7d1c0000000p-20
#define VM_LOG2E_1 0x1.7154768000000p+0
#define VM_LOG2E_2 -0x1.6a3e80f444178p-27
#define VM_LOG10E_1 0x1.bcb7b18000000p-2
#define VM_LOG10E_2 -0x1.6c8d78e6acaa4p-29
#define VM_LG2_1 0x1.34413509f7800p-2
#define VM_LG2_2 0x1.fef311f12b358p-46
#define VM_PIO2_1 0x1.921fb54442d18p+0
#define VM_PIO2_2 0x1.1a62633145c07p-54
#define VM_PIO2_3 -0x1.f1976b7ed8fbcp-110
#define VM_PIO2S_1 0x1.921fb54400000p+0
#define VM_PIO2S_2 0x1.0b4611a600000p-34
#define VM_PIO2S_3 0x1.3198a2e000000p-69
#define VM_PIO2S_4 0x1.b839a252049c1p-104
#define VM_PIO2H_1 0x1.921fb54400000p+0
#define VM_PIO2H_2 0x1.0b4611a626331p-34
#define VM_PIO4_1 0x1.921fb54442d18p-1
#define VM_PIO4_2 0x1.1a62633145c07p-55
#define VM_LOG2E 0x1.71547652b82fep+0
#define VM_TWO_OVER_PI 0x1.45f306dc9c883p-1
#define VM_CBRT_HALF 0x1.965fea53d6e3dp-1
#define VM_CBRT_QUARTER 0x1.428a2f98d728bp-1

/* (e^r - 1 - r - r^2/2) / r^3 on [-0.34692, 0.34692]: minimax 2^-57.35, rounded 2^-57.19 */
VM_TABLE(double, VM_EXPQ, 9) = {
    0x1.5555555555500p-3,
    0x1.55555555531c5p-5,
    0x1.1111111128b4cp-7,
    0x1.6c16c17cda68ap-10,
    0x1.a01a011b64af3p-13,
    0x1.a019aadd0326fp-16,
    0x1.71df565396efep-19,
    0x1.289fe1553fc67p-22,
    0x1.ad1f71f245340p-26,
};

/* the same, for small results of e^r - 1 on [-0.34692, 0.34692]: minimax 2^-61.67, rounded 2^-59.05 */
VM_TABLE(double, VM_EXPM1Q, 10) = {
    0x1.5555555555559p-3,
    0x1.5555555555548p-5,
    0x1.111111110f7b9p-7,
    0x1.6c16c16c1cdbap-10,
    0x1.a01a01af8cffdp-13,
    0x1.a01a0182d43a2p-16,
    0x1.71ddf911beafdp-19,
    0x1.27e52b682583cp-22,
    0x1.af5d9eeb292a2p-26,
    0x1.1ef516afeec9cp-29,
};

/* (log1p(r) - r + r^2/2) / r^3 on [-0.00796875, 0.00796875]: minimax 2^-65.71, rounded 2^-65.68 */
VM_TABLE(double, VM_LOGP, 6) = {
    0x1.55555555555b3p-2,
    -0x1.00000000000bbp-2,
    0x1.999999887ae3fp-3,
    -0x1.5555553d4ff2ep-3,
    0x1.2499636480a8cp-3,
    -0x1.0007bfb95f44ep-3,
};

/* (sin(r) - r) / r^3 in r^2 on [0.0, 0.618085]: minimax 2^-57.99, rounded 2^-56.83 */
VM_TABLE(double, VM_SINS, 6) = {
    -0x1.5555555555549p-3,
    0x1.111111110f842p-7,
    -0x1.a01a019c0a296p-13,
    0x1.71de3570fd9a2p-19,
    -0x1.ae5e60c47e432p-26,
    0x1.5d915e00563dap-33,
};

/* (cos(r) - 1 + r^2/2) / r^4 in r^2 on [0.0, 0.618085]: minimax 2^-64.2, rounded 2^-59.54 */
VM_TABLE(double, VM_COSC, 6) = {
    0x1.555555555554cp-5,
    -0x1.6c16c16c15140p-10,
    0x1.a01a019cab743p-16,
    -0x1.27e4f80533801p-22,
    0x1.1ee9e8906e453p-29,
    -0x1.8facd125cbf8ep-37,
};

/* (atan(r) - r) / r^3 in r^2 on [0.0, 0.171744]: minimax 2^-64.24, rounded 2^-58.41 */
VM_TABLE(double, VM_ATANP, 12) = {
    -0x1.5555555555554p-2,
    0x1.9999999999652p-3,
    -0x1.2492492475993p-3,
    0x1.c71c71b75b623p-4,
    -0x1.745d14bba7473p-4,
    0x1.3b136e50a3166p-4,
    -0x1.110c74664201cp-4,
    0x1.e1721843abd45p-5,
    -0x1.ab7df5990f2b9p-5,
    0x1.70ee9b32e03eep-5,
    -0x1.1239bba0ff4ddp-5,
    0x1.f1ecd54ecc5f4p-7,
};

/* u^(-1/3) on [1.0, 2.0]: minimax 2^-17.41, rounded 2^-17.41 */
VM_TABLE(double, VM_RCBRT, 6) = {
    0x1.c7f37d59ff81fp+0,
    -0x1.90e7961b030fep+0,
    0x1.3e692f9719008p+0,
    -0x1.321d011b802b5p-1,
    0x1.3fa345a8c53e2p-3,
    -0x1.16d7db8ae6496p-6,
};

/* (e^r - 1 - r) / r^2, in binary32 on [-0.34692, 0.34692]: minimax 2^-28.28, rounded 2^-27.76 */
VM_TABLE(float, VM_EXPS, 5) = {
    0x1.fffffc0000000p-2f,
    0x1.5554900000000p-3f,
    0x1.5558f40000000p-5f,
    0x1.123a6c0000000p-7f,
    0x1.6a234a0000000p-10f,
};

/* (e^r - 1) / r, for float results of exp on [-0.34692, 0.34692]: minimax 2^-28.91, rounded 2^-28.91 */
VM_TABLE(double, VM_EXPF, 6) = {
    0x1.0000008af5490p+0,
    0x1.fffffc172c005p-2,
    0x1.555418221746fp-3,
    0x1.55582522c700ap-5,
    0x1.12682f37ce806p-7,
    0x1.6ae68f293ef44p-10,
};

/* (e^r - 1) / r, for float results of tanh on [-0.34692, 0.34692]: minimax 2^-31.99, rounded 2^-31.99 */
VM_TABLE(double, VM_EXPM1F, 7) = {
    0x1.0000000022950p+0,
    0x1.00000028509adp-1,
    0x1.555554c52f55cp-3,
    0x1.5554ad0a91f55p-5,
    0x1.1111a70bdc684p-7,
    0x1.6d75337c9fb5ap-10,
    0x1.a019ea2026c35p-13,
};

/* (log1p(f) - f + f^2/2) / f^3, in binary32 on [-0.292893, 0.414214]: minimax 2^-30.31, rounded 2^-28.21 */
VM_TABLE(float, VM_LOGS, 9) = {
    0x1.5555480000000p-2f,
    -0x1.0000060000000p-2f,
    0x1.99a4b60000000p-3f,
    -0x1.555c4e0000000p-3f,
    0x1.2337680000000p-3f,
    -0x1.fc21fc0000000p-4f,
    0x1.e6f05e0000000p-4f,
    -0x1.de3c4e0000000p-4f,
    0x1.1458020000000p-4f,
};

/* as SINS, for float results on [0.0, 0.618085]: minimax 2^-28.04, rounded 2^-28.04 */
VM_TABLE(double, VM_SINF, 3) = {
    -0x1.555545812c7d8p-3,
    0x1.1107566bdc2f8p-7,
    -0x1.994b3e73f9274p-13,
};

/* as COSC, for float results on [0.0, 0.618085]: minimax 2^-33.27, rounded 2^-33.27 */
VM_TABLE(double, VM_COSF, 3) = {
    0x1.55554aa3b369ep-5,
    -0x1.6c0c814cb7e2cp-10,
    0x1.99ff401b70e00p-16,
};

/* (log2((1+s)/(1-s)) - 2 s/ln2) / s^3 in s^2, for float results of pow on [0.0, 0.0294667]: minimax 2^-37.07, rounded 2^-37.07 */
VM_TABLE(double, VM_LOG2F, 4) = {
    0x1.ec709d448dc96p-1,
    0x1.277767d1c8f87p-1,
    0x1.a596144c63e29p-2,
    0x1.5c679eb64c5b1p-2,
};

/* 2^r, for float results on [-0.501, 0.501]: minimax 2^-34.51, rounded 2^-34.51 */
VM_TABLE(double, VM_EXP2F, 8) = {
    0x1.ffffffffaa678p-1,
    0x1.62e42ff11c1ccp-1,
    0x1.ebfbe0a6ce86ep-3,
    0x1.c6b08aa6d064ap-5,
    0x1.3b29da8201b9fp-7,
    0x1.5d8a756acf3afp-10,
    0x1.446b888f744e1p-13,
    0x1.fe15ea75e551ap-17,
};

#endif
