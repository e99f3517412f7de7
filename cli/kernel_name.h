/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernels for people: demangled, and cut so that what tells them apart stays. */
#ifndef TALLY_CLI_KERNEL_NAME_H
#define TALLY_CLI_KERNEL_NAME_H

#include <stdbool.h>

#include "base/buffer.h"

/*
 * Appends the kernel's name as its source has it, without parameters (template arguments stay).
 * `symbol` may be cut anywhere: then its qualified name is all that can be told, and "<...>" says
 * that more came. A name that is not mangled is appended as it is.
 */
void tally_kernel_name(struct tally_buffer *out, const char *symbol);

/* Columns that UTF-8 `text` takes on a screen; bytes that are no UTF-8 count one each. */
unsigned tally_text_columns(const char *text);

/* Appends `text` and blanks up to `columns`, or as much of its beginning as fits; characters as
 * tally_text_fit(). */
void tally_text_cut(struct tally_buffer *out, const char *text, unsigned columns, bool utf8);

/*
 * Appends `text` and blanks up to `columns`, or as much of it as fits: leading namespaces go first,
 * then the middle, where "..." (one character where `utf8`) stands; of a template the name stays as
 * long as it can, of others the longer end. No character is cut in half; where `utf8` is false
 * those that are not ASCII become '?'.
 */
void tally_text_fit(struct tally_buffer *out, const char *text, unsigned columns, bool utf8);

#endif
