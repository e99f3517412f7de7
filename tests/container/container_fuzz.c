/* SPDX-License-Identifier: Apache-2.0 */
/* The container reader as libFuzzer calls it: any bytes give images that are whole, or one error.
 */
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_images images;
	struct tally_error error = {0};

	if (tally_container_read("fuzz", data, size, &images, &error)) {
		if (tally_failed(&error) || !images.count)
			abort();
		for (size_t i = 0; i < images.count; i++) {
			struct tally_image *image = &images.image[i];

			/* Readable to the last byte, and text ends in a NUL. */
			if (image->data[image->size] != 0 && image->kind == TALLY_IMAGE_PTX)
				abort();
			if (strlen(image->origin) >= sizeof(image->origin))
				abort();
		}
	} else if (!tally_failed(&error) || images.count) {
		abort();
	}
	tally_images_free(&images);
	return 0;
}
