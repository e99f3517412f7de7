/* SPDX-License-Identifier: Apache-2.0 */
/* A table of rows in sealed memory: see profiles.h. */
#include "profiler/profiles.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profiler/report.h"

struct tally_origin tally_origin_of(const char *device, const char *driver, const char *transform)
{
	struct tally_origin o = {0};

	tally_report_text(o.device, sizeof o.device, device);
	tally_report_text(o.driver, sizeof o.driver, driver);
	tally_report_text(o.transform, sizeof o.transform, transform);
	return o;
}

static const uint32_t *index_of(const struct tally_profiles *p)
{
	return (const uint32_t *)(p + 1);
}

static const struct tally_row *rows_of(const struct tally_profiles *p)
{
	return (const struct tally_row *)(index_of(p) + p->places);
}

static uint64_t size_of(uint64_t rows, uint64_t places)
{
	return sizeof(struct tally_profiles) + places * sizeof(uint32_t) +
	       rows * sizeof(struct tally_row);
}

/* Sealed against writing too: what is checked here stays so. A search needs a free place to end. */
static bool whole(const struct tally_profiles *p, uint64_t size)
{
	if (p->magic != TALLY_PROFILES_MAGIC || p->version != TALLY_PROFILES_VERSION ||
	    p->size != size || p->rows > TALLY_PROFILES_MAX || p->places < 2 ||
	    (p->places & (p->places - 1)) || p->places <= p->rows ||
	    p->places > 4 * TALLY_PROFILES_MAX || size_of(p->rows, p->places) != size)
		return false;
	bool has_end = false;
	for (uint32_t i = 0; i < p->places; i++) {
		if (index_of(p)[i] > p->rows)
			return false;
		has_end |= !index_of(p)[i];
	}
	return has_end;
}

/* Whether what is in the row may be used as it is: the rows are too many to look at all of them
 * when the table comes. */
static const struct tally_row *usable(const struct tally_row *row)
{
	bool ok = memchr(row->name, '\0', sizeof row->name) &&
		  (unsigned)row->choice.level < TALLY_LEVELS &&
		  (unsigned)row->choice.reason < TALLY_REASON_COUNT;

	return ok ? row : NULL;
}

const struct tally_profiles *tally_profiles_map(int fd, const struct tally_origin *origin,
						struct tally_error *error)
{
	int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, seals = fcntl(fd, F_GET_SEALS);
	off_t size = seals < 0 ? 0 : lseek(fd, 0, SEEK_END);
	struct tally_profiles *p;

	if (seals < 0 || (seals & wanted) != wanted || size < (off_t)sizeof *p) {
		tally_fail(error, "not profiles of this version");
		return NULL;
	}
	p = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		tally_fail(error, "cannot map profiles: %s", strerror(errno));
		return NULL;
	}
	if (whole(p, (uint64_t)size) && !memcmp(&p->origin, origin, sizeof *origin))
		return p;
	munmap(p, (size_t)size);
	tally_fail(error, "not profiles of this device, driver and version");
	return NULL;
}

void tally_profiles_unmap(const struct tally_profiles *p)
{
	if (p)
		munmap((void *)p, p->size);
}

const struct tally_row *tally_profiles_find(const struct tally_profiles *p,
					    const struct tally_row_key *key)
{
	uint32_t place, number;

	if (!p)
		return NULL;
	place = (uint32_t)tally_key_hash(key) & (p->places - 1);
	while ((number = index_of(p)[place])) {
		if (tally_key_equal(&rows_of(p)[number - 1].key, key))
			return usable(&rows_of(p)[number - 1]);
		place = (place + 1) & (p->places - 1);
	}
	return NULL;
}

/* More places than rows: a search always ends at a free one. */
static void fill(struct tally_profiles *p, const struct tally_row *rows)
{
	uint32_t *places = (uint32_t *)(p + 1);
	struct tally_row *to = (struct tally_row *)rows_of(p);

	for (uint32_t i = 0; i < p->rows; i++) {
		uint32_t place = (uint32_t)tally_key_hash(&rows[i].key) & (p->places - 1);

		to[i] = rows[i];
		while (places[place] && !tally_key_equal(&to[places[place] - 1].key, &rows[i].key))
			place = (place + 1) & (p->places - 1);
		if (!places[place])
			places[place] = i + 1;
	}
}

int tally_profiles_make(const struct tally_origin *origin, const struct tally_row *rows,
			size_t count, uint64_t *size, struct tally_error *error)
{
	struct tally_profiles *p = MAP_FAILED;
	uint32_t n = count < TALLY_PROFILES_MAX ? (uint32_t)count : TALLY_PROFILES_MAX, places = 2;
	int fd = memfd_create("tally-profiles", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	while (places < 2 * n)
		places *= 2;
	*size = size_of(n, places);
	if (fd >= 0 && !ftruncate(fd, (off_t)*size))
		p = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		goto fail;
	*p = (struct tally_profiles){.magic = TALLY_PROFILES_MAGIC,
				     .version = TALLY_PROFILES_VERSION,
				     .size = *size,
				     .origin = *origin,
				     .rows = n,
				     .places = places};
	fill(p, rows);
	munmap(p, *size);
	if (!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return fd;
fail:
	tally_fail(error, "cannot make the table of profiles: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}
