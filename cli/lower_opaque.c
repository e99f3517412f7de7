/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower --transform opaque: a guard put into machine code, without lifting it. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/sass/patch.h"
#include "cli/lower.h"
#include "frontend/frontend.h"

/* The image of the container that the driver would take; NULL with an error where there is none, or
 * where there are several modules and no kernel was named. */
static const struct tally_image *choose(const struct lower_options *options,
					const struct tally_images *images,
					struct tally_error *error)
{
	const char *kernel = options->passes.kernel;
	const struct tally_image *best = NULL;
	unsigned best_fit = 0, modules = 0;

	for (size_t k = 0; k < images->count; k++) {
		const struct tally_image *image = &images->image[k];
		unsigned fit =
			image->kind == TALLY_IMAGE_CUBIN
				? tally_sass_fit(image->data, image->size, options->target, kernel)
				: 0;

		if (!fit)
			continue;
		modules += !best || best->module != image->module;
		if (!best || (best->module == image->module && fit > best_fit)) {
			best = image;
			best_fit = fit;
		}
	}
	if (best && (modules == 1 || kernel))
		return best;
	if (best)
		tally_fail_at(error, options->input, 0, 0,
			      "%u of its modules have machine code for %s: name the kernel that is "
			      "wanted (--kernel)",
			      modules, options->target);
	else if (kernel)
		tally_fail_at(error, options->input, 0, 0,
			      "no machine code of a kernel '%s' for %s in it (see --list)", kernel,
			      options->target);
	else
		tally_fail_at(error, options->input, 0, 0,
			      "no machine code with a kernel for %s in it (see --list)",
			      options->target);
	return NULL;
}

static void warn(const struct tally_sass_report *report)
{
	for (size_t k = 0; k < report->count; k++)
		if (report->kernel[k].reason && report->kernel[k].reason != TALLY_SASS_OTHER)
			fprintf(stderr, "tally-lower: warning: kernel '%s' stays whole: %s\n",
				report->kernel[k].name,
				tally_sass_reason_text(report->kernel[k].reason));
}

/* Without --keep-going every kernel that was asked for has to take it. */
static bool check_all(const struct lower_options *options, const struct tally_sass_report *report,
		      const char *origin, struct tally_error *error)
{
	for (size_t k = 0; !options->keep_going && k < report->count; k++)
		if (report->kernel[k].reason && report->kernel[k].reason != TALLY_SASS_OTHER)
			return tally_fail_at(error, origin, 0, 0, "kernel '%s' takes no guard: %s",
					     report->kernel[k].name,
					     tally_sass_reason_text(report->kernel[k].reason));
	return true;
}

bool lower_opaque(const struct lower_options *options, const struct tally_buffer *input,
		  struct tally_buffer *out, struct tally_error *error)
{
	struct tally_images images = {0};
	struct tally_sass_report report = {0};
	const struct tally_image *image;
	bool ok;

	lower_step(LOWER_STEP_READ);
	tally_lower_stats(&options->lower, NULL);
	if (!tally_container_read(options->input, input->data, input->size, &images, error))
		return false;
	tally_lower_stats(&options->lower, "read");
	/* Alone, it says best itself what is wrong with it. */
	image = images.count == 1 && images.image->kind == TALLY_IMAGE_CUBIN
			? images.image
			: choose(options, &images, error);
	ok = image != NULL;
	if (ok) {
		lower_step("transforming");
		ok = tally_sass_patch(image->data, image->size, options->target,
				      options->passes.kernel, out, &report, error) &&
		     check_all(options, &report, image->origin, error);
		if (!ok)
			snprintf(error->file, sizeof error->file, "%s", image->origin);
		tally_lower_stats(&options->lower, "transform");
	}
	if (ok)
		warn(&report);
	tally_sass_report_free(&report);
	tally_images_free(&images);
	return ok;
}
