/* SPDX-License-Identifier: Apache-2.0 */
/* The table of profiles that a program is given: taken whole, or not at all. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/profiles.h"
#include "tests/fuzz/fuzz.h"

/*
 * The first two bytes say how many rows and places, so that the size is right; all else comes from
 * the input as it is, again and again until it is large enough.
 */
static int make_table(const uint8_t *data, size_t size, const struct tally_origin *origin)
{
	struct tally_profiles header = {.magic = TALLY_PROFILES_MAGIC,
					.version = TALLY_PROFILES_VERSION,
					.origin = *origin,
					.rows = data[0] % 8,
					.places = 1u << data[1] % 5};
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t left = header.places * sizeof(uint32_t) + header.rows * sizeof(struct tally_row);

	header.size = sizeof header + left;
	if (fd < 0 || write(fd, &header, sizeof header) != (ssize_t)sizeof header)
		abort();
	while (left) {
		size_t part = size - 2 < left ? size - 2 : left;

		if (write(fd, data + 2, part) != (ssize_t)part)
			abort();
		left -= part;
	}
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	return fd;
}

void fuzz_run_profiles(const uint8_t *data, size_t size)
{
	const struct tally_origin origin = tally_origin_of("d", "r", "t");
	struct tally_row_key key = {.kernel = size};
	struct tally_error error = {0};
	const struct tally_profiles *p;
	int fd;

	if (size < 3)
		return;
	fd = make_table(data, size, &origin);
	p = tally_profiles_map(fd, &origin, &error);
	fuzz_check(p, &error);
	for (unsigned i = 0; p && i < 16; i++) {
		const struct tally_row *row;

		if (i < size / sizeof key)
			memcpy(&key, data + i * sizeof key, sizeof key);
		key.grid[0] += i;
		row = tally_profiles_find(p, &key);
		if (row && (!memchr(row->name, 0, sizeof row->name) ||
			    (unsigned)row->choice.level >= TALLY_LEVELS))
			abort(); /* who reads it uses both */
	}
	tally_profiles_unmap(p);
	close(fd);
}
