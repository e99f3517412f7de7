/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the fuzz target over the kept corpus, and over damaged copies of each of its files. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "fuzz_ptx.h"

/* Cuts, flips and repeats parts of the file: always the same ones, by a small generator. */
static void damage(const struct tally_buffer *file, unsigned rounds)
{
	uint64_t seed = 88172645463325252ull;
	uint8_t *copy = malloc(file->size + 1);

	for (unsigned i = 0; copy && i < rounds; i++) {
		size_t size = file->size;
		memcpy(copy, file->data, size);
		for (int k = 0; k < 4; k++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			if (seed & 1 && size > 1)
				size -= seed / 64 % size / 4;
			copy[seed / 1024 % file->size] = (uint8_t)(seed >> 40);
		}
		LLVMFuzzerTestOneInput(copy, size);
	}
	free(copy);
}

int main(int argc, char **argv)
{
	struct tally_error error = {0};
	struct dirent *entry;
	DIR *folder = argc > 1 ? opendir(argv[1]) : NULL;
	unsigned files = 0;

	if (!folder) {
		fprintf(stderr, "usage: fuzz_replay FOLDER\n");
		return 1;
	}
	while ((entry = readdir(folder))) {
		char path[4096];
		struct tally_buffer file = {0};
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
		if (!tally_file_read(path, &file, &error)) {
			tally_error_print(&error, "fuzz_replay");
			return 1;
		}
		LLVMFuzzerTestOneInput((const uint8_t *)file.data, file.size);
		if (file.size)
			damage(&file, 100);
		tally_buffer_free(&file);
		files++;
	}
	closedir(folder);
	printf("%u files\n", files);
	return files == 0;
}
