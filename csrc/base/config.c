#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SCOPE_PROCESS false
#define SCOPE_CALLABLE true
static const CcConfigRow config_row[] = {
#define CC_CONFIG(name, env, scope, type, value, min, max, doc) \
    {#name, env, value, doc, CC_CONFIG_##type, SCOPE_##scope, min, max, offsetof(CcConfig, name)},
#include "config.def"
#undef CC_CONFIG
};
enum { CONFIG_COUNT = sizeof(config_row) / sizeof(config_row[0]) };

static const char *const type_name[CC_CONFIG__TYPES] = {
    [CC_CONFIG_BOOL] = "bool", [CC_CONFIG_INT] = "int",   [CC_CONFIG_SIZE] = "size",
    [CC_CONFIG_TEXT] = "text", [CC_CONFIG_LOGS] = "logs", [CC_CONFIG_DUMP] = "dump",
    [CC_CONFIG_STRESS] = "stress",
};

const CcConfigRow *
cc_config_rows(uint32_t *count)
{
    *count = CONFIG_COUNT;
    return config_row;
}

const CcConfigRow *
cc_config_find(const char *name)
{
    for (uint32_t i = 0; i < CONFIG_COUNT; i++) {
        if (strcmp(config_row[i].name, name) == 0) {
            return &config_row[i];
        }
    }
    return NULL;
}

const char *
cc_config_type_name(CcConfigType type)
{
    return type_name[type];
}

/* -- One value -------------------------------------------------------------- */

/* "20000", "1G": the multiplier of a SIZE suffix, 0 = not one. */
static int64_t
suffix_scale(const char *suffix, CcConfigType type)
{
    static const char letter[] = "kMG";

    if (*suffix == '\0') {
        return 1;
    }
    const char *found = type == CC_CONFIG_SIZE ? strchr(letter, *suffix) : NULL;
    return found == NULL || suffix[1] != '\0' ? 0 : INT64_C(1) << (10 * (found - letter + 1));
}

static bool
set_number(int64_t *field, const CcConfigRow *row, const char *text, CcStatus *st)
{
    char *end;

    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    int64_t scale = suffix_scale(end, row->type);
    if (end == text || errno != 0 || scale == 0 || __builtin_mul_overflow(value, scale, &value)) {
        bool size = row->type == CC_CONFIG_SIZE;

        return cc_fail(st, CC_REASON_BAD_OPTION, "'%.40s' is not a %s", text,
                       size ? "number of bytes (k, M, G allowed)" : "whole number");
    }
    if (value < row->min || value > row->max) {
        return cc_fail(st, CC_REASON_BAD_OPTION, "%" PRId64 " is not in %" PRId64 "..%" PRId64,
                       value, row->min, row->max);
    }
    *field = value;
    return true;
}

static bool
set_bool(bool *field, const char *text, CcStatus *st)
{
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
        return cc_fail(st, CC_REASON_BAD_OPTION, "'%.40s' is not 0 or 1", text);
    }
    *field = text[0] == '1';
    return true;
}

static bool
set_text(CcConfigTEXT *field, const char *text, CcStatus *st)
{
    if (strlen(text) >= sizeof(field->text)) {
        return cc_fail(st, CC_REASON_BAD_OPTION, "the text is longer than %d bytes",
                       CC_CONFIG_TEXT_SIZE - 1);
    }
    memcpy(field->text, text, strlen(text) + 1);
    return true;
}

static bool
set_row(CcConfig *c, const CcConfigRow *row, const char *text, CcStatus *st)
{
    void *field = (char *)c + row->offset;

    switch (row->type) {
    case CC_CONFIG_BOOL:
        return set_bool(field, text, st);
    case CC_CONFIG_INT:
    case CC_CONFIG_SIZE:
        return set_number(field, row, text, st);
    case CC_CONFIG_TEXT:
        return set_text(field, text, st);
    case CC_CONFIG_LOGS:
        return cc_logs_parse(text, field, st);
    case CC_CONFIG_DUMP:
        return cc_dump_parse(text, field, st);
    case CC_CONFIG_STRESS:
        return cc_stress_parse(text, field, st);
    case CC_CONFIG__TYPES:
        break;
    }
    return false;
}

/* Put the name of the option or variable before a message. */
static bool
name_it(CcStatus *st, const char *name)
{
    CcStatus inner = *st;

    return cc_fail(st, inner.reason, "%s: %.120s", name, inner.detail);
}

/* -- All of them ------------------------------------------------------------ */

void
cc_config_init(CcConfig *c)
{
    CcStatus st;

    memset(c, 0, sizeof(*c));
    for (uint32_t i = 0; i < CONFIG_COUNT; i++) {
        (void)set_row(c, &config_row[i], config_row[i].value, &st); /* a test reads every default */
    }
}

bool
cc_config_set(CcConfig *c, const char *name, const char *text, CcStatus *st)
{
    const CcConfigRow *row = cc_config_find(name);

    if (row == NULL) {
        return cc_fail(st, CC_REASON_BAD_OPTION, "no option '%.40s'", name);
    }
    return set_row(c, row, text, st) || name_it(st, row->name);
}

bool
cc_config_read(CcConfig *c, const char *(*get)(const char *env), CcStatus *st)
{
    bool good = true;

    for (uint32_t i = 0; i < CONFIG_COUNT; i++) {
        const CcConfigRow *row = &config_row[i];
        const char *text = row->env[0] ? get(row->env) : NULL;
        CcStatus mine;

        if (text == NULL || set_row(c, row, *text ? text : row->value, &mine)) {
            continue;
        }
        if (good) {
            name_it(&mine, row->env);
            *st = mine;
        }
        good = false;
    }
    return good;
}

/* -- Printing --------------------------------------------------------------- */

static void
print_bits(CcBuf *out, CcSwitchList list, uint32_t bits)
{
    uint32_t count;
    const CcSwitchRow *row = cc_switch_rows(list, &count);
    const char *comma = "";

    for (uint32_t i = 0; i < count; i++) {
        if (bits >> i & 1) {
            cc_buf_printf(out, "%s%s", comma, row[i].text);
            comma = ",";
        }
    }
}

static void
print_dump(CcBuf *out, const CcDump *dump)
{
    const char *comma = "";

    if (dump->passes[0] == '\0') {
        print_bits(out, CC_LIST_DUMP, dump->bits);
        return;
    }
    print_bits(out, CC_LIST_DUMP, dump->bits & ~(UINT32_C(1) << CC_DUMP_IR));
    comma = dump->bits == UINT32_C(1) << CC_DUMP_IR ? "" : ",";
    for (const char *at = dump->passes + 1; *at != '\0';) {
        int len = (int)strcspn(at, ",");

        cc_buf_printf(out, "%sir:%.*s", comma, len, at);
        comma = ",";
        at += len + 1;
    }
}

static void
print_stress(CcBuf *out, const CcStress *stress)
{
    static const uint32_t plain = UINT32_C(1) << CC_STRESS_SNAP | UINT32_C(1) << CC_STRESS_TXN |
                                  UINT32_C(1) << CC_STRESS_ARENA;
    uint32_t start = out->len, count;
    const CcSwitchRow *rule = cc_switch_rows(CC_LIST_DROP, &count);

    print_bits(out, CC_LIST_STRESS, stress->bits & plain);
    if (stress->exit_every) {
        cc_buf_printf(out, "%sexit:%" PRIu32, out->len > start ? "," : "", stress->exit_every);
    }
    if (stress->alloc_at) {
        cc_buf_printf(out, "%salloc:%" PRIu32, out->len > start ? "," : "", stress->alloc_at);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (stress->drop >> i & 1) {
            cc_buf_printf(out, "%sdrop:%s", out->len > start ? "," : "", rule[i].text);
        }
    }
}

void
cc_config_print(const CcConfig *c, const CcConfigRow *row, CcBuf *out)
{
    const void *field = (const char *)c + row->offset;

    switch (row->type) {
    case CC_CONFIG_BOOL:
        cc_buf_puts(out, *(const bool *)field ? "1" : "0");
        break;
    case CC_CONFIG_INT:
    case CC_CONFIG_SIZE:
        cc_buf_printf(out, "%" PRId64, *(const int64_t *)field);
        break;
    case CC_CONFIG_TEXT:
        cc_buf_puts(out, ((const CcConfigTEXT *)field)->text);
        break;
    case CC_CONFIG_LOGS:
        print_bits(out, CC_LIST_LOGS, *(const uint32_t *)field);
        break;
    case CC_CONFIG_DUMP:
        print_dump(out, field);
        break;
    case CC_CONFIG_STRESS:
        print_stress(out, field);
        break;
    case CC_CONFIG__TYPES:
        break;
    }
}
