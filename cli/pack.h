/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, compressed as their name says. */
#ifndef TALLY_CLI_PACK_H
#define TALLY_CLI_PACK_H

#include "base/buffer.h"
#include "base/error.h"

/* Writes `path` as tally_file_write() does: as a gzip file where the name ends in .gz, a Zstandard
 * one where it ends in .zst, else as it is. */
bool tally_pack_write(const char *path, const struct tally_buffer *text, struct tally_error *error);

#endif
