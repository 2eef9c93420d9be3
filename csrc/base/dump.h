/* base/dump.h - the comma lists of CCOMPILE_DUMP, CCOMPILE_LOGS and CCOMPILE_STRESS as bit sets.
 *
 * A list is "item,item:argument"; blanks and empty items are skipped, "all" stands for every item
 * that needs no argument (not in stress lists). The items are the rows of dump.def. Nothing here
 * prints. */
#ifndef CC_DUMP_H
#define CC_DUMP_H

#include "status.h"

/* dump.def holds four lists; a reader defines the macro of the one it wants. */
#define CC_DUMP(name, text, argument, doc) CC_DUMP_##name,
typedef enum {
#include "dump.def"
    CC_DUMP__COUNT
} CcDumpItem;
#undef CC_DUMP
#define CC_LOG(name, text, argument, doc) CC_LOG_##name,
typedef enum {
#include "dump.def"
    CC_LOG__COUNT
} CcLogItem;
#undef CC_LOG
#define CC_STRESS(name, text, argument, doc) CC_STRESS_##name,
typedef enum {
#include "dump.def"
    CC_STRESS__COUNT
} CcStressItem;
#undef CC_STRESS
#define CC_DROP(name, text, argument, doc) CC_DROP_##name,
typedef enum {
#include "dump.def"
    CC_DROP__COUNT
} CcDropItem;
#undef CC_DROP

typedef struct {
    uint32_t bits;                      /* 1 << CcDumpItem */
    char passes[120];                   /* ",fuse,cse,": ir after these passes; "" = after all */
} CcDump;

typedef struct {
    uint32_t bits;                      /* 1 << CcStressItem */
    uint32_t drop;                      /* 1 << CcDropItem */
    uint32_t exit_every;                /* 0 = never */
    uint32_t alloc_at;                  /* 0 = never */
} CcStress;

/* On failure the output is untouched and the status names the item. */
bool cc_dump_parse(const char *text, CcDump *out, CcStatus *st);
bool cc_logs_parse(const char *text, uint32_t *bits, CcStatus *st);
bool cc_stress_parse(const char *text, CcStress *out, CcStatus *st);

/* Does the dump want the graph after this pass? */
bool cc_dump_wants_pass(const CcDump *dump, const char *pass);

/* -- The tables, for help texts --------------------------------------------- */

typedef enum { CC_ARG_NONE, CC_ARG_NUMBER, CC_ARG_NAME } CcSwitchArg;
typedef enum {
    CC_LIST_DUMP,
    CC_LIST_LOGS,
    CC_LIST_STRESS,
    CC_LIST_DROP,
    CC_LIST__COUNT
} CcSwitchList;

typedef struct {
    const char *text;
    CcSwitchArg argument;
    const char *doc;
} CcSwitchRow;

const char *cc_switch_list_name(CcSwitchList list);     /* "dump", "logs", "stress", "drop" */
const CcSwitchRow *cc_switch_rows(CcSwitchList list, uint32_t *count);

#endif
