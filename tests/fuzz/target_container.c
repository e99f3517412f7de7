/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a container give images that are whole, or one error; what the preload library looks
 * at stays inside the image. */
#include <stdlib.h>
#include <string.h>

#include "cache/cache.h"
#include "frontend/frontend.h"
#include "tests/fuzz/fuzz.h"

void fuzz_run_container(const uint8_t *data, size_t size)
{
	struct tally_images images;
	struct tally_error error = {0};
	bool ok = tally_container_read("fuzz", data, size, &images, &error);

	fuzz_check(ok, &error);
	if (ok == !images.count)
		abort();
	for (size_t i = 0; i < images.count; i++) {
		struct tally_image *image = &images.image[i];

		/* Readable to the last byte, and text ends in a NUL. */
		if (image->data[image->size] != 0 && image->kind == TALLY_IMAGE_PTX)
			abort();
		if (strlen(image->origin) >= sizeof image->origin)
			abort();
	}
	tally_images_free(&images);
}

/* What libtally.so looks at in machine code before and after it is patched. */
static void look_at_machine_code(const uint8_t *data, size_t size)
{
	struct tally_cubin_facts facts = tally_cubin_look(data, size);
	void *part;
	size_t part_size;

	if ((unsigned)facts.variables > TALLY_MAYBE || (unsigned)facts.constants > TALLY_MAYBE ||
	    (facts.variables != TALLY_YES && facts.variable[0]))
		abort();
	if (tally_image_machine_code(data, size, 90, &part, &part_size)) {
		if (!part_size || part_size > size)
			abort();
		free(part);
	}
}

void fuzz_run_image(const uint8_t *data, size_t size)
{
	struct tally_image_facts facts = tally_image_peek(data, size);
	const void *start;
	size_t measured;
	char *text;

	if ((unsigned)facts.variables > TALLY_MAYBE)
		abort();
	look_at_machine_code(data, size);
	/* Only texts say where they end; the others are trusted by the driver API itself. */
	text = calloc(1, size + 8);
	if (!text)
		abort();
	memcpy(text, data, size);
	if (size && strchr(" \t\r\n/.", text[0]) && tally_image_size(text, &start, &measured) &&
	    (start != text || measured > size))
		abort();
	free(text);
}
