/* ir/hash.c - 128-bit hash of a graph's text: two lanes of multiply and rotate over 8-byte words.
 * Words are read byte by byte, so the value does not depend on the machine. */
#include "graph.h"

static uint64_t
rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t
finish(uint64_t x)                      /* every input bit reaches every output bit */
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

bool
cc_graph_hash(const CcGraph *g, uint64_t out[2], CcStatus *st)
{
    uint64_t a = UINT64_C(0x243f6a8885a308d3), b = UINT64_C(0x13198a2e03707344);
    CcBuf text;

    cc_buf_init(&text);
    cc_graph_print(g, &text);
    bool ok = !text.failed;
    for (uint32_t i = 0; ok && i < text.len; i += 8) {
        uint64_t word = 0;
        for (uint32_t k = 0; k < 8 && i + k < text.len; k++) {
            word |= (uint64_t)(uint8_t)text.text[i + k] << 8 * k;
        }
        a = (rotate(a, 29) ^ finish(word)) * UINT64_C(0x9e3779b97f4a7c15);
        b = rotate(b + word, 41) * UINT64_C(0xc2b2ae3d27d4eb4f) ^ a;
    }
    out[0] = finish(a ^ text.len);
    out[1] = finish(b + out[0]);
    cc_buf_fini(&text);
    return ok || cc_fail(st, CC_REASON_NO_MEMORY, "text of a graph of %u nodes", g->len);
}
