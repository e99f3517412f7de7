/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower --list: what is inside a container, and the kernels of what can be lifted or guarded.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/sass/patch.h"
#include "cli/lower.h"
#include "frontend/frontend.h"
#include "ir_passes/ir.h"

static const struct {
	const char *name;
	bool liftable;
} kinds[] = {
	[TALLY_IMAGE_UNKNOWN] = {"unknown", false},   [TALLY_IMAGE_PTX] = {"ptx", true},
	[TALLY_IMAGE_BITCODE] = {"bitcode", true},    [TALLY_IMAGE_IR] = {"ir", true},
	[TALLY_IMAGE_CUBIN] = {"cubin", false},	      [TALLY_IMAGE_LTOIR] = {"lto-ir", false},
	[TALLY_IMAGE_HSACO] = {"code object", false},
};

static void print_kernels(const struct tally_image *image)
{
	LLVMContextRef context = LLVMContextCreate();
	struct tally_error error = {0};
	LLVMModuleRef module =
		tally_frontend_lift(context, image->origin, image->data, image->size,
				    &(struct tally_lift_options){.file = image->origin}, &error);
	size_t length;

	if (!module) {
		printf("    cannot be lifted: ");
		if (error.line)
			printf("%u:%u: ", error.line, error.column);
		printf("%s\n", error.message);
	} else {
		TALLY_EACH_FUNCTION (module, function) {
			const char *locked = tally_attribute(function, TALLY_ATTR_LOCKED);

			if (!tally_is_kernel(function))
				continue;
			printf("    kernel %s", LLVMGetValueName2(function, &length));
			if (locked)
				printf(" (only %s: %s)",
				       tally_attribute(function, TALLY_ATTR_VENDOR), locked);
			putchar('\n');
		}
		LLVMDisposeModule(module);
	}
	LLVMContextDispose(context);
}

/* Of machine code: what --transform opaque says of each. */
static void print_guardable(const struct tally_image *image)
{
	struct tally_sass_report report;
	struct tally_buffer out = {0};
	struct tally_error error = {0};

	if (!tally_sass_patch(image->data, image->size, image->arch, NULL, &out, &report, &error) &&
	    !report.count)
		printf("    takes no guard: %s\n", error.message);
	for (size_t k = 0; k < report.count; k++)
		if (report.kernel[k].reason)
			printf("    kernel %s (takes no guard: %s)\n", report.kernel[k].name,
			       tally_sass_reason_text(report.kernel[k].reason));
		else
			printf("    kernel %s\n", report.kernel[k].name);
	tally_sass_report_free(&report);
	tally_buffer_free(&out);
}

bool lower_list(const char *path, const void *data, size_t size, struct tally_error *error)
{
	struct tally_images images = {0};

	if (!tally_container_read(path, data, size, &images, error))
		return false;
	for (size_t k = 0; k < images.count; k++) {
		const struct tally_image *image = &images.image[k];

		printf("%-11s %-9s %-5s %9zu  %s\n", kinds[image->kind].name,
		       image->arch[0] ? image->arch : "-",
		       image->compression[0] ? image->compression : "-", image->size,
		       image->origin);
		if (kinds[image->kind].liftable)
			print_kernels(image);
		else if (image->kind == TALLY_IMAGE_CUBIN)
			print_guardable(image);
	}
	tally_images_free(&images);
	return true;
}
