/* SPDX-License-Identifier: Apache-2.0 */
/* profiles.db as it may lie there: whatever it holds is read, or put aside and begun anew. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dirent.h>

#include "base/file.h"
#include "profiler/store.h"
#include "tests/fuzz/fuzz.h"

struct change {
	uint16_t offset;
	uint8_t value[4];
};

static char folder[64], path[128];
static struct tally_buffer whole;

static void clear_folder(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

static void leave(void)
{
	clear_folder();
	rmdir(folder);
	tally_buffer_free(&whole);
}

static bool put(struct tally_store *s, unsigned n, struct tally_error *error)
{
	const struct tally_origin origin = tally_origin_of("device", "driver", "transform");
	struct tally_row row = {.key = {.kernel = n, .grid = {1, 1, 1}, .block = {1, 1, 1}},
				.name = "k"};

	row.level[0].launches = n + 1;
	row.level[1].ns = 5;
	return tally_store_begin(s, error) && tally_store_put(s, n % 3, 1, &origin, &row, error) &&
	       tally_store_commit(s, error);
}

/* A store with some rows, as bytes. */
static void start(void)
{
	struct tally_error error = {0};
	struct tally_store *s;
	char note[256];

	strcpy(folder,
	       access("/dev/shm", W_OK) ? "/tmp/tally-fuzz-XXXXXX" : "/dev/shm/tally-fuzz-XXXXXX");
	if (!mkdtemp(folder))
		abort();
	atexit(leave);
	snprintf(path, sizeof path, "%s/" TALLY_STORE_FILE, folder);
	s = tally_store_open(folder, note, &error);
	for (unsigned i = 0; i < 12; i++)
		if (!s || !put(s, i, &error))
			abort();
	tally_store_close(s);
	if (!tally_file_read(path, &whole, &error) || !whole.size)
		abort();
}

static bool count(void *context, const struct tally_stored *stored)
{
	if (!memchr(stored->row.name, 0, sizeof stored->row.name) ||
	    (unsigned)stored->row.choice.level >= TALLY_LEVELS)
		abort();
	return ++*(unsigned *)context < 1000;
}

static bool origin(void *context, const struct tally_origin *of)
{
	(void)of;
	return ++*(unsigned *)context < 1000;
}

static void use(struct tally_store *s, bool writes)
{
	struct tally_error error = {0};
	unsigned n = 0, alive;

	tally_store_each(s, NULL, count, &n, &error);
	tally_store_origins(s, origin, &n, &error);
	if (!writes)
		return;
	error = (struct tally_error){0};
	if (!put(s, 5, &error))
		tally_store_rollback(s);
	tally_store_end_orphans(s, &alive, &error);
	tally_store_trim(s, &error);
	tally_store_reset(s, "dev", &n, &error);
}

void fuzz_run_store(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct tally_error error = {0};
	struct tally_store *s;
	struct change c;
	char *copy, note[256];
	bool absent;

	if (!whole.size)
		start();
	copy = malloc(whole.size);
	if (!copy)
		abort();
	memcpy(copy, whole.data, whole.size);
	while (fuzz_take(&input, &c.offset, 2) && fuzz_take(&input, c.value, 4))
		memcpy(copy + c.offset % (whole.size - 3), c.value, 4);
	clear_folder();
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (fd < 0 || write(fd, copy, whole.size - input.size % whole.size) < 0)
		abort();
	close(fd);
	free(copy);
	s = tally_store_read(folder, &absent, &error);
	fuzz_check(s, &error);
	if (s)
		use(s, false);
	tally_store_close(s);
	error = (struct tally_error){0};
	s = tally_store_open(folder, note, &error);
	fuzz_check(s, &error);
	if (s)
		use(s, true);
	tally_store_close(s);
}
