/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds files, and every shortened and bit-flipped form of them, to a libFuzzer target. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of its own size, so that a read past the end is seen by the sanitizer. */
static void feed(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void feed_damaged(uint8_t *data, size_t size)
{
	for (size_t n = 0; n <= size; n++)
		feed(data, n);
	for (size_t i = 0; i < size; i++) {
		uint8_t kept = data[i];
		const uint8_t others[] = {0x00, 0xff, kept ^ 0x01, kept ^ 0x80};

		for (size_t k = 0; k < sizeof(others); k++) {
			data[i] = others[k];
			feed(data, size);
		}
		data[i] = kept;
	}
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s FILE...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		struct tally_buffer file = {0};
		struct tally_error error = {0};

		if (!tally_file_read(argv[i], &file, &error)) {
			tally_error_print(&error, argv[0]);
			return 1;
		}
		feed_damaged((uint8_t *)file.data, file.size);
		tally_buffer_free(&file);
	}
	printf("%d files\n", argc - 1);
	return 0;
}
