/* kern/vtext.h - the text of the headers that generated C is made of, part of the program itself,
 * so that a unit is a complete C text wherever it is compiled. */
#ifndef CC_KERN_VTEXT_H
#define CC_KERN_VTEXT_H

#include <stddef.h>

typedef struct {
    const char *name;                   /* without folder: "vop.h" */
    const char *text, *end;
} KernText;

extern const KernText kern_vtext[];
extern const size_t kern_nvtext;

#endif
