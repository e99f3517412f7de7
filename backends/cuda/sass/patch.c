/* SPDX-License-Identifier: Apache-2.0 */
/* A whole image: see patch.h. */
#include "backends/cuda/sass/patch.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/sass/kernel.h"
#include "base/grow.h"

const char *tally_sass_reason_text(enum tally_sass_reason reason)
{
	static const char *const texts[] = {
#define X(name, text) text,
		TALLY_SASS_REASONS(X)
#undef X
	};

	return texts[reason];
}

void tally_sass_report_free(struct tally_sass_report *report)
{
	free(report->kernel);
	*report = (struct tally_sass_report){0};
}

/* NULL where there is none for that chip. */
static const struct sass_prelude *find_prelude(unsigned arch)
{
	for (const struct sass_prelude *prelude = sass_preludes; prelude->arch; prelude++)
		if (prelude->arch == arch)
			return prelude;
	return NULL;
}

/* "sm_90a" as 90; 0 for what is no chip. */
static unsigned arch_number(const char *arch)
{
	return !strncmp(arch, "sm_", 3) ? (unsigned)strtoul(arch + 3, NULL, 10) : 0;
}

/* The same major version and not older; the very chip where it is made for one alone. */
static bool runs_on(const struct sass_image *image, unsigned target)
{
	return image->specific ? image->arch == target
			       : image->arch / 10 == target / 10 && image->arch <= target;
}

static bool is_kernel(const struct sass_image *image, unsigned symbol)
{
	return ELF64_ST_TYPE(image->symbol[symbol].st_info) == STT_FUNC &&
	       (image->symbol[symbol].st_other & SASS_KERNEL);
}

unsigned tally_sass_fit(const void *cubin, size_t size, const char *target, const char *kernel)
{
	struct tally_error ignored = {0};
	struct sass_image image;
	unsigned fit = 0;

	if (sass_image_read(&image, cubin, size, &ignored) && runs_on(&image, arch_number(target)))
		for (unsigned k = 1; !fit && k < image.symbols; k++)
			if (is_kernel(&image, k) &&
			    (!kernel || !strcmp(sass_symbol_name(&image, k), kernel)))
				fit = 2 * image.arch + image.specific;
	sass_image_free(&image);
	return fit;
}

static bool check_image(const struct sass_image *image, const char *target,
			const struct sass_prelude **prelude, struct tally_error *error)
{
	unsigned wanted = arch_number(target);

	if (!runs_on(image, wanted))
		return tally_fail(error, "is machine code for sm_%u%s, which %s does not run",
				  image->arch, image->specific ? "a" : "", target);
	if (image->mercury && image->arch != wanted)
		return tally_fail(error,
				  "is machine code for sm_%u, which the driver makes anew for %s "
				  "from a form that takes no guard",
				  image->arch, target);
	*prelude = find_prelude(image->arch);
	return *prelude ||
	       tally_fail(error, "no guard for machine code of sm_%u in this build", image->arch);
}

static bool report_add(struct tally_sass_report *report, const char *name,
		       enum tally_sass_reason reason, struct tally_error *error)
{
	if (!TALLY_GROW(report->kernel, report->count))
		return tally_fail(error, "out of memory");
	report->kernel[report->count++] = (struct tally_sass_kernel){name, reason};
	report->patched += reason == TALLY_SASS_PATCHED;
	return true;
}

static bool patch_kernels(struct sass_index *index, const char *only,
			  struct tally_sass_report *report, struct tally_error *error)
{
	const struct sass_image *image = index->image;

	for (unsigned k = 1; k < image->symbols; k++) {
		enum tally_sass_reason reason = TALLY_SASS_OTHER;
		const char *name = sass_symbol_name(image, k);

		if (!is_kernel(image, k))
			continue;
		if ((!only || !strcmp(name, only)) && !sass_kernel_patch(index, k, &reason, error))
			return false;
		if (!report_add(report, name, reason, error))
			return false;
	}
	return true;
}

/* Nothing was patched: why not the one that was asked for, or the first. */
static bool fail_unpatched(const struct tally_sass_report *report, const char *only,
			   struct tally_error *error)
{
	const struct tally_sass_kernel *first = NULL;

	for (size_t k = 0; !first && k < report->count; k++)
		if (report->kernel[k].reason != TALLY_SASS_OTHER)
			first = &report->kernel[k];
	if (first)
		return tally_fail(error, "%skernel '%s' takes no guard: %s",
				  report->count > 1 && !only ? "none of its kernels does; " : "",
				  first->name, tally_sass_reason_text(first->reason));
	if (only && report->count)
		return tally_fail(error, "there is no kernel '%s' in it", only);
	return tally_fail(error, "holds no kernel");
}

bool tally_sass_patch(const void *cubin, size_t size, const char *target, const char *only,
		      struct tally_buffer *out, struct tally_sass_report *report,
		      struct tally_error *error)
{
	const struct sass_prelude *prelude = NULL;
	struct sass_index index = {0};
	struct sass_image image;
	bool ok;

	*report = (struct tally_sass_report){0};
	ok = sass_image_read(&image, cubin, size, error) &&
	     check_image(&image, target, &prelude, error) &&
	     sass_index_make(&index, &image, prelude, error) &&
	     patch_kernels(&index, only, report, error) &&
	     (report->patched || fail_unpatched(report, only, error)) &&
	     sass_image_write(&image, out, error);
	sass_index_free(&index);
	sass_image_free(&image);
	return ok;
}
