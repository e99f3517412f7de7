/* SPDX-License-Identifier: Apache-2.0 */
/* Files without a name, made in processes that are not ours: see each call's limits. */
#ifndef TALLY_BASE_MEMORY_FILE_H
#define TALLY_BASE_MEMORY_FILE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A memory file of `size` bytes, all zero, close-on-exec; `flags` are memfd_create()'s. Its
 * descriptor is the caller's, and never 0, 1 or 2, even where the program has closed those. -1 with
 * errno: EFBIG where tally_within_file_limit() says no.
 */
int tally_memory_file(const char *name, unsigned flags, uint64_t size);

/* Whether RLIMIT_FSIZE allows a file so large. To exceed it kills the process by SIGXFSZ, unless
 * the program has thought of that: whoever writes in somebody else's process asks first. */
bool tally_within_file_limit(uint64_t size);

#endif
