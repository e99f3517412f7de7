/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what the container reader finds in a file, one image a line; with -x N writes image N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "frontend/frontend.h"

static const char *const kinds[] = {"unknown", "ptx", "bitcode", "ir", "cubin", "ltoir", "hsaco"};

int main(int argc, char **argv)
{
	struct tally_buffer file = {0};
	struct tally_error error = {0};
	struct tally_images images = {0};
	bool extract = argc == 4 && !strcmp(argv[1], "-x");
	bool ok;

	if (argc != 2 && !extract)
		return 2;
	ok = tally_file_read(argv[argc - 1], &file, &error) &&
	     tally_container_read(argv[argc - 1], file.data, file.size, &images, &error);
	if (!ok) {
		tally_error_print(&error, argv[0]);
		return 1;
	}
	for (size_t i = 0; i < images.count; i++) {
		struct tally_image *image = &images.image[i];

		if (extract && i == strtoul(argv[2], NULL, 10))
			fwrite(image->data, 1, image->size, stdout);
		else if (!extract)
			printf("%s arch=%s compression=%s size=%zu origin=%s\n", kinds[image->kind],
			       image->arch, image->compression, image->size, image->origin);
	}
	tally_images_free(&images);
	tally_buffer_free(&file);
	return 0;
}
