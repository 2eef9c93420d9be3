/* tests/c/test_config.c - every row's default, each type's text form, and the environment. */
#include "base/config.h"
#include "t.h"

#include <string.h>

static void
test_defaults(void)
{
    CcConfig c;

    cc_config_init(&c);
    T_CHECK(c.recompile_limit == 8 && c.side_limit == 8 && c.side_total == 32);
    T_CHECK(c.trace_limit == 20000 && c.inline_depth == 40 && c.unroll == 16);
    T_CHECK(c.cache_size == INT64_C(1) << 30);
    T_CHECK(c.dump.bits == 0 && c.logs == 0 && c.stress.bits == 0 && c.cache_dir.text[0] == '\0');
}

static void
test_every_row_reads_its_default_and_prints_back(void)
{
    uint32_t count;
    const CcConfigRow *row = cc_config_rows(&count);

    for (uint32_t i = 0; i < count; i++) {
        CcConfig c, again;
        CcStatus st = {0};
        CcBuf out;

        cc_config_init(&c);
        cc_config_init(&again);
        T_CHECK(cc_config_set(&c, row[i].name, row[i].value, &st));
        T_CHECK(memcmp(&c, &again, sizeof(c)) == 0);
        T_CHECK(strlen(row[i].doc) > 0 && cc_config_type_name(row[i].type) != NULL);
        T_CHECK(cc_config_find(row[i].name) == &row[i]);
        cc_buf_init(&out);
        cc_config_print(&c, &row[i], &out);
        T_CHECK(cc_config_set(&again, row[i].name, cc_buf_text(&out), &st));
        T_CHECK(memcmp(&c, &again, sizeof(c)) == 0);
        cc_buf_fini(&out);
    }
}

static void
check_print(const char *name, const char *text, const char *want)
{
    CcConfig c;
    CcStatus st = {0};
    CcBuf out;

    cc_config_init(&c);
    cc_buf_init(&out);
    T_CHECK(cc_config_set(&c, name, text, &st));
    cc_config_print(&c, cc_config_find(name), &out);
    T_CHECK(strcmp(cc_buf_text(&out), want) == 0);
    cc_buf_fini(&out);
}

static void
test_values_print_in_one_form(void)
{
    check_print("cache_size", "64k", "65536");
    check_print("cache_size", "3M", "3145728");
    check_print("cache_dir", "/var/tmp/x y", "/var/tmp/x y");
    check_print("num_threads", " 4", "4");
    check_print("logs", "guards, graph_breaks", "graph_breaks,guards");
    check_print("dump", "ir:fuse,ir:cse", "ir:fuse,ir:cse");
    check_print("dump", "ir:fuse,tape,c", "tape,c,ir:fuse");
    check_print("dump", "plan,ir", "ir,plan");
    check_print("stress", "alloc:5,drop:txn,snap,exit:3,drop:flush",
                "snap,exit:3,alloc:5,drop:flush,drop:txn");
    check_print("stress", "exit", "exit:1");
}

static void
test_bad_values_change_nothing(void)
{
    static const struct { const char *name, *text, *detail; } bad[] = {
        {"unrolls", "4", "no option 'unrolls'"},
        {"unroll", "four", "unroll: 'four' is not a whole number"},
        {"unroll", "", "unroll: '' is not a whole number"},
        {"unroll", "4k", "unroll: '4k' is not a whole number"},
        {"unroll", "-1", "unroll: -1 is not in 0..1000000"},
        {"unroll", "99999999999999999999", "unroll: '99999999999999999999' is not a whole number"},
        {"cache_size", "1T", "cache_size: '1T' is not a number of bytes (k, M, G allowed)"},
        {"cache_size", "9999999999999G",
         "cache_size: '9999999999999G' is not a number of bytes (k, M, G allowed)"},
        {"dump", "nothing", "dump: no item 'nothing' in the list dump"},
        {"stress", "drop:nothing", "stress: no item 'nothing' in the list drop"},
    };
    char longer[2000];
    CcConfig c, same;
    CcStatus st;

    cc_config_init(&c);
    cc_config_init(&same);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        T_CHECK(!cc_config_set(&c, bad[i].name, bad[i].text, &st));
        T_CHECK(st.reason == CC_REASON_BAD_OPTION && strcmp(st.detail, bad[i].detail) == 0);
    }
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    T_CHECK(!cc_config_set(&c, "cache_dir", longer, &st));
    T_CHECK(memcmp(&c, &same, sizeof(c)) == 0);
}

static const char *
fake_env(const char *name)
{
    return strcmp(name, "CCOMPILE_UNROLL") == 0       ? "3"
           : strcmp(name, "CCOMPILE_CACHE_SIZE") == 0 ? "lots"
           : strcmp(name, "CCOMPILE_SIDE_TOTAL") == 0 ? "none"
           : strcmp(name, "CCOMPILE_SIDE_LIMIT") == 0 ? "5"
           : strcmp(name, "CCOMPILE_DUMP") == 0       ? ""
                                                      : NULL;
}

static const char *
no_env(const char *name)
{
    (void)name;
    return NULL;
}

static void
test_environment_is_read_past_a_bad_value(void)
{
    CcConfig c;
    CcStatus st = {0};

    cc_config_init(&c);
    T_CHECK(cc_config_read(&c, no_env, &st) && c.unroll == 16);
    T_CHECK(!cc_config_read(&c, fake_env, &st));
    T_CHECK(c.unroll == 3 && c.side_limit == 5);
    T_CHECK(c.side_total == 32 && c.cache_size == INT64_C(1) << 30 && c.dump.bits == 0);
    T_CHECK(strncmp(st.detail, "CCOMPILE_CACHE_SIZE: 'lots'", 27) == 0);
}

int
main(void)
{
    test_defaults();
    test_every_row_reads_its_default_and_prints_back();
    test_values_print_in_one_form();
    test_bad_values_change_nothing();
    test_environment_is_read_past_a_bad_value();
    return t_failed != 0;
}
