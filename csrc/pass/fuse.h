/* pass/fuse.h - a graph cut into groups: one kernel each, in execution order.
 *
 * Needs a verified, decomposed graph (no COMP nodes). Changes nothing in it.
 *
 * What becomes of a node:
 *   LEAF      PARAM and CONST are operands; IOTA is an operand without memory.
 *   view      RESHAPE TRANSPOSE BROADCAST SLICE: another way to read a buffer, no work.
 *   uniform   an EW node without axes, computed anew by each loop that reads it (the same in every
 *             lane, so once per call of a loop body).
 *   the rest  is in exactly one group.
 * Rules of LOOP groups:
 *   1  All EW nodes of a group have its shape; an operand that is no EW node of the group is read
 *      from memory. So nothing is computed twice, and a view of a value ends its group.
 *   2  A node joins the last group that has its shape, does not run before an operand is there,
 *      and holds an operand or shares one; else it starts a new group at the end.
 *   3  Reductions of one group reduce the same axes of its shape; their results are read by later
 *      groups only.
 *   4  A value read outside of its group, or by two groups, is stored once.
 *   5  At most CC_FUSE_LOADS operands and `limit` nodes, so that a group fits a vector program. */
#ifndef CC_FUSE_H
#define CC_FUSE_H

#include "../ir/graph.h"

typedef enum {
    CC_GROUP_LOOP,                      /* fused loop; a copy when it holds no nodes */
    CC_GROUP_MOVE,                      /* UPDATE CONCAT PAD */
    CC_GROUP_SCAN,
    CC_GROUP_INDEX,
    CC_GROUP_HEAVY,
    CC_GROUP_EXTERN
} CcGroupKind;

enum { CC_FUSE_LOADS = 24, CC_FUSE_NODES = 96, CC_FUSE_MEM = 48, CC_FUSE_REDS = 8 };

/* A place for a value: the caller's output or memory of the arena, in C order of ref's shape. */
typedef struct {
    CcRef ref;
    int32_t out;                        /* number of the output, -1 = arena, -2 = nobody reads it */
    uint32_t first, last;               /* groups that write it first and use it last */
} CcBuffer;

typedef struct {
    CcRef value;
    uint32_t buffer;
} CcStore;

typedef struct {
    uint8_t kind;                       /* CcGroupKind */
    uint8_t nred;
    CcRef space;                        /* LOOP: a node of the iteration shape; else the node */
    uint64_t axes;                      /* LOOP with reductions: reduced axes */
    uint32_t node, nnode;               /* EW and RED nodes in CcGroups.node, SSA order */
    uint32_t store, nstore;             /* in CcGroups.store */
} CcGroup;

typedef struct {
    CcGroup *group;                     /* owned, as all below */
    uint32_t ngroup, capgroup;
    CcRef *node;
    uint32_t nnode, capnode;
    CcStore *store;
    uint32_t nstore, capstore;
    CcBuffer *buffer;                   /* row 0 unused */
    uint32_t nbuffer, capbuffer;
    uint32_t *buffer_of;                /* by ref; 0 = none */
    int32_t *group_of;                  /* by ref; -1 = none */
} CcGroups;

bool pass_fuse(const CcGraph *g, CcGroups *out, CcStatus *st);
void pass_fuse_fini(CcGroups *s);

/* RESHAPE TRANSPOSE BROADCAST SLICE. */
bool pass_fuse_is_view(const CcGraph *g, CcRef r);

/* The node without axes that r is everywhere, through views; 0 = r has several values. */
CcRef pass_fuse_uniform(const CcGraph *g, CcRef r);

/* An EW node without axes. */
bool pass_fuse_is_inline(const CcGraph *g, CcRef r);

/* Text of the groups, for dumps and goldens. */
void pass_fuse_print(const CcGraph *g, const CcGroups *s, CcBuf *out);

#endif
