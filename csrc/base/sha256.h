/* base/sha256.h - SHA-256 (FIPS 180-4): names and content checks of the disk cache.
 *
 * Includes nothing of ours, allocates nothing, cannot fail. Input beyond 2^61 bytes is not
 * supported. */
#ifndef CC_SHA256_H
#define CC_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { CC_SHA256_SIZE = 32, CC_SHA256_HEX = 65 };    /* bytes of a digest; of its text with NUL */

typedef struct {
    uint32_t state[8];
    uint64_t len;                       /* bytes taken so far */
    uint8_t block[64];                  /* the last len % 64 of them */
} CcSha256;

void cc_sha256_init(CcSha256 *s);
void cc_sha256_add(CcSha256 *s, const void *data, size_t len);

/* Write the digest; `s` is used up. */
void cc_sha256_end(CcSha256 *s, uint8_t digest[CC_SHA256_SIZE]);

/* Lower-case hexadecimal text of a digest. */
void cc_sha256_hex(const uint8_t digest[CC_SHA256_SIZE], char text[CC_SHA256_HEX]);

#endif
