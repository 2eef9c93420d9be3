/* base/check.h - asserts of debug builds (CCOMPILE_BUILD=debug or asan). Release builds check
 * invariants with the verify functions, which report a reason of kind BUG instead of aborting. */
#ifndef CC_CHECK_H
#define CC_CHECK_H

#ifdef CCOMPILE_DEBUG
#include <assert.h>
#define CC_ASSERT(cond) assert(cond)
#else
#define CC_ASSERT(cond) ((void)sizeof(cond))
#endif

#endif
