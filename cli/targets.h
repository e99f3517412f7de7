/* SPDX-License-Identifier: Apache-2.0 */
/* The table of lowerings that tally-lower offers: one line a vendor. */
#ifndef TALLY_CLI_TARGETS_H
#define TALLY_CLI_TARGETS_H

#include "backends/backend.h"

extern const struct tally_lowering *const tally_lowerings[]; /* NULL-terminated */

/* The lowering that has `target` and sets `*name` to the table's own copy of it. NULL with an error
 * that lists all known targets. */
const struct tally_lowering *tally_lowering_find(const char *target, struct tally_error *error);

/* Appends the known targets, `separator` between them. */
void tally_targets_print(struct tally_buffer *out, const char *separator);

#endif
