/* base/config.h - the values of all options and environment variables (the rows of config.def).
 *
 * A CcConfig is plain data: copy it by assignment. Reading the environment goes through a function
 * that the caller gives, so nothing here has state. A bad value never changes the field it was
 * meant for. */
#ifndef CC_CONFIG_H
#define CC_CONFIG_H

#include "buf.h"
#include "dump.h"
#include "status.h"

#include <stdint.h>

enum { CC_CONFIG_TEXT_SIZE = 1024 };    /* of a TEXT value, with its NUL */

typedef bool CcConfigBOOL;
typedef int64_t CcConfigINT;
typedef int64_t CcConfigSIZE;
typedef struct { char text[CC_CONFIG_TEXT_SIZE]; } CcConfigTEXT;
typedef uint32_t CcConfigLOGS;
typedef CcDump CcConfigDUMP;
typedef CcStress CcConfigSTRESS;

typedef struct {
#define CC_CONFIG(name, env, scope, type, value, min, max, doc) CcConfig##type name;
#include "config.def"
#undef CC_CONFIG
} CcConfig;

typedef enum {
    CC_CONFIG_BOOL,
    CC_CONFIG_INT,
    CC_CONFIG_SIZE,
    CC_CONFIG_TEXT,
    CC_CONFIG_LOGS,
    CC_CONFIG_DUMP,
    CC_CONFIG_STRESS,
    CC_CONFIG__TYPES
} CcConfigType;

typedef struct {
    const char *name, *env, *value, *doc;       /* value = the default in text form */
    CcConfigType type;
    bool callable;                      /* also an option of one callable */
    int64_t min, max;
    uint32_t offset;                    /* of the field in CcConfig */
} CcConfigRow;

const CcConfigRow *cc_config_rows(uint32_t *count);
const CcConfigRow *cc_config_find(const char *name);    /* NULL = no such option */
const char *cc_config_type_name(CcConfigType type);     /* "int" */

void cc_config_init(CcConfig *c);       /* the defaults */

/* Set the option from its text form. */
bool cc_config_set(CcConfig *c, const char *name, const char *text, CcStatus *st);

/* Set every option whose variable `get` knows (NULL = not set). All are read; false when one was
 * bad, and the status then has the first such message, with the variable's name. An empty text =
 * the default. */
bool cc_config_read(CcConfig *c, const char *(*get)(const char *env), CcStatus *st);

/* Append the option's value in a form that cc_config_set() takes. */
void cc_config_print(const CcConfig *c, const CcConfigRow *row, CcBuf *out);

#endif
