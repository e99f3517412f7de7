/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over its kept corpus, and over damaged copies of each file. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tests/fuzz/fuzz.h"

static uint64_t seed = 88172645463325252u;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* A copy of its own size, so that a read past the end is seen by a sanitizer. */
static void feed(const struct fuzz_target *target, const char *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	target->run(copy, size);
	free(copy);
}

/* Cuts the file short and changes bytes of it: always the same ones. */
static void damage(const struct fuzz_target *target, const struct tally_buffer *file,
		   unsigned rounds)
{
	char *copy = malloc(file->size + 1);

	for (unsigned i = 0; copy && file->size && i < rounds; i++) {
		size_t size = file->size;

		memcpy(copy, file->data, size);
		if (next() & 1)
			size -= next() % size / 4;
		for (unsigned k = (unsigned)next() % 4; k > 0; k--)
			copy[next() % file->size] = (char)next();
		feed(target, copy, size);
	}
	free(copy);
}

static bool replay_file(const struct fuzz_target *target, const char *path, unsigned rounds)
{
	struct tally_buffer file = {0};
	struct tally_error error = {0};

	if (!tally_file_read(path, &file, &error)) {
		tally_error_print(&error, "fuzz_replay");
		return false;
	}
	feed(target, file.data ? file.data : "", file.size);
	damage(target, &file, rounds);
	tally_buffer_free(&file);
	return true;
}

int main(int argc, char **argv)
{
	const struct fuzz_target *target = argc > 2 ? fuzz_target_find(argv[1]) : NULL;
	unsigned rounds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 20, files = 0;
	DIR *folder = target ? opendir(argv[2]) : NULL;

	if (!folder) {
		fprintf(stderr, "usage: fuzz_replay TARGET FOLDER [ROUNDS]\n");
		return 2;
	}
	for (struct dirent *entry; (entry = readdir(folder));) {
		char path[4096];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", argv[2], entry->d_name);
		if (!replay_file(target, path, rounds))
			return 1;
		files++;
	}
	closedir(folder);
	printf("%s: %u files\n", target->name, files);
	return files == 0;
}
