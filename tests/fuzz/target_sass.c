/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as machine code: guarded and whole again, or one error and nothing written. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/sass/image.h"
#include "backends/cuda/sass/patch.h"
#include "tests/fuzz/fuzz.h"

void fuzz_run_sass(const uint8_t *data, size_t size)
{
	/* The chip that the image names, where it names one. */
	unsigned flags = size > 52 ? (unsigned)(data[48] | data[49] << 8) : 0;
	unsigned chip = size > 52 && data[EI_ABIVERSION] >= 8 ? flags >> 8 : flags & 0xff;
	struct tally_sass_report report;
	struct tally_buffer out = {0};
	struct tally_error error = {0};
	struct sass_image image;
	char target[16];

	snprintf(target, sizeof target, "sm_%u", chip);
	bool ok = tally_sass_patch(data, size, target, NULL, &out, &report, &error);

	fuzz_check(ok, &error);
	if (ok != (out.size > size) || (ok && !report.patched) || report.patched > report.count)
		abort();
	for (size_t k = 0; k < report.count; k++)
		if ((const uint8_t *)report.kernel[k].name < data ||
		    (const uint8_t *)report.kernel[k].name >= data + size)
			abort();
	/* What was written is an image with the same parts. */
	if (ok) {
		struct sass_image before;

		if (!sass_image_read(&image, out.data, out.size, &error) ||
		    !sass_image_read(&before, data, size, &error) ||
		    image.sections != before.sections || image.symbols != before.symbols)
			abort();
		sass_image_free(&image);
		sass_image_free(&before);
	}
	tally_sass_report_free(&report);
	tally_buffer_free(&out);
}
