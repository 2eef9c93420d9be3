#include "dump.h"

#include <stdlib.h>
#include <string.h>

#define ROW(name, text, argument, doc) {text, CC_ARG_##argument, doc},

#define CC_DUMP ROW
static const CcSwitchRow dump_row[] = {
#include "dump.def"
};
#undef CC_DUMP
#define CC_LOG ROW
static const CcSwitchRow log_row[] = {
#include "dump.def"
};
#undef CC_LOG
#define CC_STRESS ROW
static const CcSwitchRow stress_row[] = {
#include "dump.def"
};
#undef CC_STRESS
#define CC_DROP ROW
static const CcSwitchRow drop_row[] = {
#include "dump.def"
};
#undef CC_DROP
#undef ROW

_Static_assert(CC_DUMP__COUNT <= 32 && CC_LOG__COUNT <= 32, "a list is a 32-bit set");
_Static_assert(CC_STRESS__COUNT <= 32 && CC_DROP__COUNT <= 32, "a list is a 32-bit set");

static const struct {
    const char *name;
    const CcSwitchRow *row;
    uint32_t count;
} list_row[CC_LIST__COUNT] = {
    [CC_LIST_DUMP] = {"dump", dump_row, CC_DUMP__COUNT},
    [CC_LIST_LOGS] = {"logs", log_row, CC_LOG__COUNT},
    [CC_LIST_STRESS] = {"stress", stress_row, CC_STRESS__COUNT},
    [CC_LIST_DROP] = {"drop", drop_row, CC_DROP__COUNT},
};

const char *
cc_switch_list_name(CcSwitchList list)
{
    return list_row[list].name;
}

const CcSwitchRow *
cc_switch_rows(CcSwitchList list, uint32_t *count)
{
    *count = list_row[list].count;
    return list_row[list].row;
}

/* -- Reading a list --------------------------------------------------------- */

typedef struct {
    char name[32];
    char arg[32];
    bool has_arg;
} Item;

/* Trim [begin, end) into a buffer of 32; false when it does not fit. */
static bool
item_copy(char *to, const char *begin, const char *end)
{
    while (begin < end && strchr(" \t", *begin) != NULL) {
        begin++;
    }
    while (begin < end && strchr(" \t", end[-1]) != NULL) {
        end--;
    }
    size_t len = (size_t)(end - begin);
    if (len >= 32) {
        return false;
    }
    memcpy(to, begin, len);
    to[len] = '\0';
    return true;
}

/* Read the item at *at and move behind its comma. 1 item, 0 end of the list, -1 too long. */
static int
item_next(const char **at, Item *item)
{
    while (**at != '\0') {
        const char *begin = *at, *end = begin + strcspn(begin, ",");
        const char *colon = memchr(begin, ':', (size_t)(end - begin));

        *at = *end == ',' ? end + 1 : end;
        item->has_arg = colon != NULL;
        item->arg[0] = '\0';
        if (!item_copy(item->name, begin, colon ? colon : end) ||
            (colon && !item_copy(item->arg, colon + 1, end))) {
            return -1;
        }
        if (item->name[0] != '\0' || item->has_arg) {
            return 1;
        }
    }
    return 0;
}

/* The row that an item names, with its argument checked for presence; -1 and a status when there is
 * none. */
static int
item_find(CcSwitchList list, const Item *item, CcStatus *st)
{
    for (uint32_t i = 0; i < list_row[list].count; i++) {
        const CcSwitchRow *row = &list_row[list].row[i];

        if (strcmp(row->text, item->name) != 0) {
            continue;
        }
        if (row->argument == CC_ARG_NONE && item->has_arg) {
            cc_fail(st, CC_REASON_BAD_OPTION, "%s takes no argument, got '%s'", row->text,
                    item->arg);
            return -1;
        }
        return (int)i;
    }
    cc_fail(st, CC_REASON_BAD_OPTION, "no item '%s' in the list %s", item->name,
            list_row[list].name);
    return -1;
}

static bool
item_number(const Item *item, uint32_t *out, CcStatus *st)
{
    char *end;

    if (!item->has_arg) {
        *out = 1;
        return true;
    }
    unsigned long value = strtoul(item->arg, &end, 10);
    bool digits = item->arg[0] >= '0' && item->arg[0] <= '9' && *end == '\0';
    if (!digits || value < 1 || value > INT32_MAX) {
        return cc_fail(st, CC_REASON_BAD_OPTION, "%s:%s is not a number of at least 1", item->name,
                       item->arg);
    }
    *out = (uint32_t)value;
    return true;
}

static bool
item_too_long(CcSwitchList list, CcStatus *st)
{
    return cc_fail(st, CC_REASON_BAD_OPTION, "an item of the list %s is too long",
                   list_row[list].name);
}

/* Every item that works without an argument. */
static uint32_t
list_all(CcSwitchList list)
{
    return (uint32_t)((UINT64_C(1) << list_row[list].count) - 1);
}

/* -- The three lists -------------------------------------------------------- */

bool
cc_logs_parse(const char *text, uint32_t *bits, CcStatus *st)
{
    uint32_t got = 0;
    Item item;
    int more;

    while ((more = item_next(&text, &item)) == 1) {
        if (strcmp(item.name, "all") == 0) {
            got = list_all(CC_LIST_LOGS);
            continue;
        }
        int row = item_find(CC_LIST_LOGS, &item, st);
        if (row < 0) {
            return false;
        }
        got |= UINT32_C(1) << row;
    }
    if (more < 0) {
        return item_too_long(CC_LIST_LOGS, st);
    }
    *bits = got;
    return true;
}

/* Append "fuse," to ",cse,". */
static bool
passes_add(CcDump *dump, const char *pass, CcStatus *st)
{
    size_t len = strlen(dump->passes), more = strlen(pass);

    if (more == 0) {
        return cc_fail(st, CC_REASON_BAD_OPTION, "ir: needs the name of a pass");
    }
    if (len == 0) {
        dump->passes[len++] = ',';
    }
    if (len + more + 2 > sizeof(dump->passes)) {
        return cc_fail(st, CC_REASON_BAD_OPTION, "too many passes in the list dump");
    }
    memcpy(dump->passes + len, pass, more);
    dump->passes[len + more] = ',';
    dump->passes[len + more + 1] = '\0';
    return true;
}

bool
cc_dump_parse(const char *text, CcDump *out, CcStatus *st)
{
    CcDump got = {0};
    bool every_pass = false;
    Item item;
    int more;

    while ((more = item_next(&text, &item)) == 1) {
        if (strcmp(item.name, "all") == 0) {
            got.bits = list_all(CC_LIST_DUMP);
            every_pass = true;
            continue;
        }
        int row = item_find(CC_LIST_DUMP, &item, st);
        if (row < 0 || (item.has_arg && !passes_add(&got, item.arg, st))) {
            return false;
        }
        every_pass |= row == CC_DUMP_IR && !item.has_arg;
        got.bits |= UINT32_C(1) << row;
    }
    if (more < 0) {
        return item_too_long(CC_LIST_DUMP, st);
    }
    if (every_pass) {
        got.passes[0] = '\0';
    }
    *out = got;
    return true;
}

bool
cc_dump_wants_pass(const CcDump *dump, const char *pass)
{
    char word[36];
    size_t len = strlen(pass);

    if (!(dump->bits >> CC_DUMP_IR & 1)) {
        return false;
    }
    if (dump->passes[0] == '\0') {
        return true;
    }
    if (len + 3 > sizeof(word)) {
        return false;
    }
    word[0] = ',';
    memcpy(word + 1, pass, len);
    memcpy(word + 1 + len, ",", 2);
    return strstr(dump->passes, word) != NULL;
}

static bool
drop_add(CcStress *stress, const Item *item, CcStatus *st)
{
    Item rule = {.has_arg = false};

    memcpy(rule.name, item->arg, sizeof(rule.name));
    int row = item_find(CC_LIST_DROP, &rule, st);
    if (row >= 0) {
        stress->drop |= UINT32_C(1) << row;
    }
    return row >= 0;
}

bool
cc_stress_parse(const char *text, CcStress *out, CcStatus *st)
{
    CcStress got = {0};
    Item item;
    int more;

    while ((more = item_next(&text, &item)) == 1) {
        int row = item_find(CC_LIST_STRESS, &item, st);
        if (row < 0 || (row == CC_STRESS_EXIT && !item_number(&item, &got.exit_every, st)) ||
            (row == CC_STRESS_ALLOC && !item_number(&item, &got.alloc_at, st)) ||
            (row == CC_STRESS_DROP && !drop_add(&got, &item, st))) {
            return false;
        }
        got.bits |= UINT32_C(1) << row;
    }
    if (more < 0) {
        return item_too_long(CC_LIST_STRESS, st);
    }
    *out = got;
    return true;
}
