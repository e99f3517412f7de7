/* SPDX-License-Identifier: Apache-2.0 */
/* Content hashes: the names of compiled kernels in the code cache and in the profile store. */
#ifndef TALLY_BASE_HASH_H
#define TALLY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 128-bit XXH3 of `data` as 32 lower-case hex digits and a NUL. Not cryptographic: it names content
 * that one user produced for itself. */
struct tally_hash {
	char hex[33];
};

struct tally_hash tally_hash_bytes(const void *data, size_t size);

/* 64-bit XXH3 of `data`: for tables, and where 128 bits would be too long. Pure. */
uint64_t tally_hash_64(const void *data, size_t size);

/* The same of what comes in pieces: `hash` is that of the pieces before. Where the pieces end
 * counts. */
uint64_t tally_hash_64_on(uint64_t hash, const void *data, size_t size);

/* Folds a second text (options, versions) into a hash: equal only when both are. */
struct tally_hash tally_hash_extend(struct tally_hash hash, const char *text);

#endif
