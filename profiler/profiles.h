/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What earlier runs measured, as tallyd hands it to a program that joins: a sealed read-only memfd
 * with a hash table of rows, for one device, driver and compiler. The program's side is libc only.
 */
#ifndef TALLY_PROFILER_PROFILES_H
#define TALLY_PROFILER_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "profiler/row.h"

#define TALLY_PROFILES_KIND    2	   /* among what tallyd gives */
#define TALLY_PROFILES_MAGIC   0x666f7250u /* "Prof" */
#define TALLY_PROFILES_VERSION 1	   /* of this layout, row.h's with it */
#define TALLY_PROFILES_MAX     4096	   /* rows */

/* What measurements are valid for: another device, driver or compiler has its own. No padding,
 * zeros after each NUL, so that it compares as bytes. */
struct tally_origin {
	char device[64], driver[32], transform[32];
};

/* Fills an origin; NULL is "". Cut where a field ends, control characters replaced. */
struct tally_origin tally_origin_of(const char *device, const char *driver, const char *transform);

struct tally_profiles {
	uint32_t magic, version;
	uint64_t size; /* bytes of all */
	struct tally_origin origin;
	uint32_t rows, places; /* places: a power of two */
	/* uint32_t index[places]: number of the row + 1, or 0; then struct tally_row [rows] */
};

/* Maps the profiles in `fd`, which stays the caller's; NULL with an error when it holds none of
 * this version, or others than those of `origin`. */
const struct tally_profiles *tally_profiles_map(int fd, const struct tally_origin *origin,
						struct tally_error *error);
void tally_profiles_unmap(const struct tally_profiles *profiles); /* NULL is allowed */

/* The row of a kernel, or NULL; `profiles` may be NULL. Any thread, some 10 ns. */
const struct tally_row *tally_profiles_find(const struct tally_profiles *profiles,
					    const struct tally_row_key *key);

/* Makes the memfd: a descriptor (close-on-exec, the caller's) and its size, or -1 with an error.
 * Of two rows with one key the first counts; at most TALLY_PROFILES_MAX rows are taken. */
int tally_profiles_make(const struct tally_origin *origin, const struct tally_row *rows,
			size_t count, uint64_t *size, struct tally_error *error);

#endif
