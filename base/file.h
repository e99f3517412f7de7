/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in, whole files out: a reader never sees a half-written file of ours. */
#ifndef TALLY_BASE_FILE_H
#define TALLY_BASE_FILE_H

#include "base/buffer.h"
#include "base/error.h"

/* Reads all of `path` ("-" is stdin) and appends it to `out`. False with an error that names the
 * path when it cannot be opened or read, or is a directory. */
bool tally_file_read(const char *path, struct tally_buffer *out, struct tally_error *error);

/*
 * Writes `path` ("-" is stdout) so that it holds either what it held before or all of `size` bytes:
 * a temporary file in the same folder, then rename. Special files that cannot be replaced
 * (/dev/null, pipes) are written in place. False with an error that names the path; nothing is left
 * behind then.
 */
bool tally_file_write(const char *path, const void *data, size_t size, struct tally_error *error);

/* Whether tally_file_write() would begin: for programs that work for long before they write. False
 * with its error. Nothing of `path` changes, and nothing is left behind. */
bool tally_file_may_write(const char *path, struct tally_error *error);

/* Writes `size` bytes to a descriptor, however many calls that takes. False with errno set. */
bool tally_write_all(int fd, const void *data, size_t size);

/* Makes folder `path` with its parents, mode 0700 for those that are new. */
bool tally_make_folders(const char *path, struct tally_error *error);

#endif
