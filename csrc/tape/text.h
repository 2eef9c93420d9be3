/* tape/text.h - what the printers of a tape share. */
#ifndef TAPE_TEXT_H
#define TAPE_TEXT_H

#include "tape.h"

#include "../base/buf.h"

void tape_put_object(CcBuf *b,
                     PyObject *obj); /* a constant: short repr, or <name>; NULL is "NULL" */

#endif
