/* base/sha256: the standard's vectors, and that the cut of the input does not matter. */
#include "../../csrc/base/sha256.h"

#include "t.h"

#include <string.h>

static const char *
digest_of(const char *text, size_t len, size_t step)
{
    static char hex[CC_SHA256_HEX];
    uint8_t digest[CC_SHA256_SIZE];
    CcSha256 s;

    cc_sha256_init(&s);
    for (size_t i = 0; i < len; i += step) {
        cc_sha256_add(&s, text + i, len - i < step ? len - i : step);
    }
    cc_sha256_end(&s, digest);
    cc_sha256_hex(digest, hex);
    return hex;
}

static void
test_standard_vectors(void)
{
    static const struct {
        const char *text, *hex;
    } row[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
         "klmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        T_CHECK(strcmp(digest_of(row[i].text, strlen(row[i].text), 1000), row[i].hex) == 0);
    }
}

static void
test_a_million_letters(void)
{
    static char text[1000000];

    memset(text, 'a', sizeof(text));
    T_CHECK(strcmp(digest_of(text, sizeof(text), 4097),
                   "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0") == 0);
}

static void
test_every_length_in_every_cut(void)
{
    char text[200], whole[CC_SHA256_HEX];

    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)(i * 7);
    }
    for (size_t len = 0; len <= sizeof(text); len++) {
        strcpy(whole, digest_of(text, len, sizeof(text)));
        for (size_t step = 1; step <= 130; step += 43) {
            T_CHECK(strcmp(digest_of(text, len, step), whole) == 0);
        }
    }
}

int
main(void)
{
    test_standard_vectors();
    test_a_million_letters();
    test_every_length_in_every_cut();
    return t_failed != 0;
}
