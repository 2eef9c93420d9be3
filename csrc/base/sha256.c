#include "sha256.h"

#include <string.h>

/* First 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t
sha256_rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* One round; letter k of the standard (a = 0 .. h = 7) stands in v[(at + k) % 8]. */
static inline void
sha256_round(uint32_t v[8], int at, uint32_t word)
{
    uint32_t a = v[at % 8], b = v[(at + 1) % 8], c = v[(at + 2) % 8];
    uint32_t e = v[(at + 4) % 8], f = v[(at + 5) % 8], g = v[(at + 6) % 8];
    uint32_t t = v[(at + 7) % 8] + word + ((e & f) ^ (~e & g)) +
                 (sha256_rotr(e, 6) ^ sha256_rotr(e, 11) ^ sha256_rotr(e, 25));

    v[(at + 3) % 8] += t;
    v[(at + 7) % 8] = t + ((a & b) ^ (a & c) ^ (b & c)) +
                      (sha256_rotr(a, 2) ^ sha256_rotr(a, 13) ^ sha256_rotr(a, 22));
}

static void
sha256_block(uint32_t state[8], const uint8_t *p)
{
    uint32_t w[64], v[8];

    for (int i = 0; i < 16; i++, p += 4) {
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (sha256_rotr(a, 7) ^ sha256_rotr(a, 18) ^ a >> 3) + w[i - 7] +
               (sha256_rotr(b, 17) ^ sha256_rotr(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof(v));        /* the letters move through v[] instead of being copied */
    for (int i = 0; i < 64; i += 8) {
        for (int j = 0; j < 8; j++) {
            sha256_round(v, 8 - j, w[i + j] + sha256_k[i + j]);
        }
    }
    for (int i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

void
cc_sha256_init(CcSha256 *s)
{
    /* First 32 bits of the fractions of the square roots of the first 8 primes. */
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    memcpy(s->state, start, sizeof(start));
    s->len = 0;
}

void
cc_sha256_add(CcSha256 *s, const void *data, size_t len)
{
    const uint8_t *p = data;
    size_t fill = s->len % 64;

    s->len += len;
    if (fill > 0) {
        size_t take = len < 64 - fill ? len : 64 - fill;
        if (take > 0) {
            memcpy(s->block + fill, p, take);
        }
        p += take;
        len -= take;
        if (fill + take < 64) {
            return;
        }
        sha256_block(s->state, s->block);
    }
    for (; len >= 64; p += 64, len -= 64) {
        sha256_block(s->state, p);
    }
    if (len > 0) {
        memcpy(s->block, p, len);
    }
}

void
cc_sha256_end(CcSha256 *s, uint8_t digest[CC_SHA256_SIZE])
{
    static const uint8_t pad[64] = {0x80};
    uint64_t bits = s->len * 8;
    uint8_t tail[8];

    for (int i = 0; i < 8; i++) {
        tail[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    cc_sha256_add(s, pad, 1 + (119 - s->len % 64) % 64);    /* up to 8 bytes before a block's end */
    cc_sha256_add(s, tail, sizeof(tail));
    for (int i = 0; i < 32; i++) {
        digest[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void
cc_sha256_hex(const uint8_t digest[CC_SHA256_SIZE], char text[CC_SHA256_HEX])
{
    for (int i = 0; i < CC_SHA256_SIZE; i++) {
        text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    text[2 * CC_SHA256_SIZE] = '\0';
}
