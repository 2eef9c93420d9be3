/* tests/c/test_dump.c - the comma lists: what they mean, what they refuse, and that a refusal changes nothing. */
#include "base/dump.h"
#include "t.h"

#include <string.h>

#define BIT(item) (UINT32_C(1) << (item))

static void
test_dump_list(void)
{
    CcStatus st = {0};
    CcDump d;

    T_CHECK(cc_dump_parse("", &d, &st) && d.bits == 0);
    T_CHECK(cc_dump_parse(" tape ,, plan ", &d, &st));
    T_CHECK(d.bits == (BIT(CC_DUMP_TAPE) | BIT(CC_DUMP_PLAN)));
    T_CHECK(!cc_dump_wants_pass(&d, "algebra"));
    T_CHECK(cc_dump_parse("ir", &d, &st) && cc_dump_wants_pass(&d, "algebra"));
    T_CHECK(cc_dump_parse("ir:algebra,ir:cse,c", &d, &st));
    T_CHECK(d.bits == (BIT(CC_DUMP_IR) | BIT(CC_DUMP_C)));
    T_CHECK(cc_dump_wants_pass(&d, "algebra") && cc_dump_wants_pass(&d, "cse"));
    T_CHECK(!cc_dump_wants_pass(&d, "dce") && !cc_dump_wants_pass(&d, "algebr"));
    T_CHECK(!cc_dump_wants_pass(&d, "a_name_that_is_longer_than_any_item_can_be"));
    T_CHECK(cc_dump_parse("ir:algebra,ir", &d, &st) && cc_dump_wants_pass(&d, "dce"));
    T_CHECK(cc_dump_parse("all", &d, &st) && d.bits == BIT(CC_DUMP__COUNT) - 1);
    T_CHECK(cc_dump_wants_pass(&d, "dce"));
}

static void
test_logs_list(void)
{
    CcStatus st = {0};
    uint32_t bits;

    T_CHECK(cc_logs_parse("graph_breaks,guards", &bits, &st));
    T_CHECK(bits == (BIT(CC_LOG_GRAPH_BREAKS) | BIT(CC_LOG_GUARDS)));
    T_CHECK(cc_logs_parse("all", &bits, &st) && bits == BIT(CC_LOG__COUNT) - 1);
}

static void
test_stress_list(void)
{
    CcStatus st = {0};
    CcStress s;

    T_CHECK(cc_stress_parse("exit:3,snap,txn,alloc:5,drop:flush,drop:fault", &s, &st));
    T_CHECK(s.exit_every == 3 && s.alloc_at == 5);
    T_CHECK(s.drop == (BIT(CC_DROP_FLUSH) | BIT(CC_DROP_FAULT)));
    T_CHECK(s.bits == (BIT(CC_STRESS_EXIT) | BIT(CC_STRESS_SNAP) | BIT(CC_STRESS_TXN) |
                       BIT(CC_STRESS_ALLOC) | BIT(CC_STRESS_DROP)));
    T_CHECK(cc_stress_parse("exit", &s, &st) && s.exit_every == 1 && s.drop == 0);
}

static void
test_refusals_name_the_item(void)
{
    static const struct { CcSwitchList list; const char *text, *detail; } bad[] = {
        {CC_LIST_DUMP, "tape,tapes", "no item 'tapes' in the list dump"},
        {CC_LIST_DUMP, "tape:1", "tape takes no argument, got '1'"},
        {CC_LIST_DUMP, "ir:", "ir: needs the name of a pass"},
        {CC_LIST_DUMP, "an_item_of_more_than_thirty_one_characters", "an item of the list dump is too long"},
        {CC_LIST_LOGS, "trace", "no item 'trace' in the list logs"},
        {CC_LIST_LOGS, ":", "no item '' in the list logs"},
        {CC_LIST_STRESS, "all", "no item 'all' in the list stress"},
        {CC_LIST_STRESS, "exit:0", "exit:0 is not a number of at least 1"},
        {CC_LIST_STRESS, "exit:-1", "exit:-1 is not a number of at least 1"},
        {CC_LIST_STRESS, "alloc:3x", "alloc:3x is not a number of at least 1"},
        {CC_LIST_STRESS, "alloc:99999999999999999999", "alloc:99999999999999999999 is not a number of at least 1"},
        {CC_LIST_STRESS, "drop:everything", "no item 'everything' in the list drop"},
        {CC_LIST_STRESS, "drop", "no item '' in the list drop"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CcStatus st = {0};
        CcDump d = {.bits = 77};
        CcStress s = {.bits = 77};
        uint32_t bits = 77;
        bool good = bad[i].list == CC_LIST_DUMP   ? cc_dump_parse(bad[i].text, &d, &st)
                    : bad[i].list == CC_LIST_LOGS ? cc_logs_parse(bad[i].text, &bits, &st)
                                                  : cc_stress_parse(bad[i].text, &s, &st);

        T_CHECK(!good && st.reason == CC_REASON_BAD_OPTION);
        T_CHECK(strcmp(st.detail, bad[i].detail) == 0);
        T_CHECK(d.bits == 77 && s.bits == 77 && bits == 77);
    }
}

static void
test_too_many_passes_is_an_error(void)
{
    char text[600] = "";
    CcStatus st = {0};
    CcDump d = {.bits = 77};

    for (int i = 0; i < 20; i++) {
        strcat(text, "ir:a_pass_with_a_name,");
    }
    T_CHECK(!cc_dump_parse(text, &d, &st) && d.bits == 77);
    T_CHECK(strcmp(st.detail, "too many passes in the list dump") == 0);
}

static void
test_tables_are_complete(void)
{
    for (int list = 0; list < CC_LIST__COUNT; list++) {
        uint32_t count;
        const CcSwitchRow *row = cc_switch_rows((CcSwitchList)list, &count);

        T_CHECK(cc_switch_list_name((CcSwitchList)list)[0] != '\0' && count > 0);
        for (uint32_t i = 0; i < count; i++) {
            T_CHECK(strlen(row[i].text) < 32 && strlen(row[i].doc) > 0);
            T_CHECK(strpbrk(row[i].text, ",: \t") == NULL);
            for (uint32_t j = 0; j < i; j++) {
                T_CHECK(strcmp(row[i].text, row[j].text) != 0);
            }
        }
    }
}

int
main(void)
{
    test_dump_list();
    test_logs_list();
    test_stress_list();
    test_refusals_name_the_item();
    test_too_many_passes_is_an_error();
    test_tables_are_complete();
    return t_failed != 0;
}
