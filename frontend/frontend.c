/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way from a file to neutral IR: container, choice of an image, lift, verification. */
#include "frontend/frontend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir_passes/contract.h"

static const struct {
	const char *name;
	bool liftable;
	int rank; /* which kind to take first */
} kinds[] = {
	[TALLY_IMAGE_UNKNOWN] = {"unknown", false, 0},
	[TALLY_IMAGE_PTX] = {"PTX", true, 1},
	[TALLY_IMAGE_BITCODE] = {"LLVM bitcode", true, 3},
	[TALLY_IMAGE_IR] = {"LLVM IR", true, 2},
	[TALLY_IMAGE_CUBIN] = {"NVIDIA machine code", false, 0},
	[TALLY_IMAGE_LTOIR] = {"NVIDIA LTO-IR", false, 0},
	[TALLY_IMAGE_HSACO] = {"AMD machine code", false, 0},
};

/* "sm_90a" -> 90, "gfx90a" -> 0x90a: only ever compared within one vendor. */
static unsigned arch_number(const char *arch)
{
	if (!strncmp(arch, "sm_", 3) || !strncmp(arch, "compute_", 8))
		return (unsigned)strtoul(strchr(arch, '_') + 1, NULL, 10);
	if (!strncmp(arch, "gfx", 3))
		return (unsigned)strtoul(arch + 3, NULL, 16);
	return 0;
}

/* How well an image suits a target: bitcode before text before PTX; the target's own vendor first;
 * among those the newest that the target can run, then the oldest of the others. */
static unsigned long score(const struct tally_image *image, const char *target)
{
	unsigned have = arch_number(image->arch), want = target ? arch_number(target) : 0;
	unsigned long same_vendor = target && want && have && image->arch[0] == target[0];
	unsigned long arch = have;

	if (same_vendor && have > want)
		arch = 0;
	return ((unsigned long)kinds[image->kind].rank << 32 | same_vendor << 31) + arch;
}

static const struct tally_image *choose(const struct tally_images *images, const char *target)
{
	const struct tally_image *best = NULL;

	for (size_t i = 0; i < images->count; i++) {
		const struct tally_image *image = &images->image[i];

		if (kinds[image->kind].liftable &&
		    (!best || score(image, target) > score(best, target)))
			best = image;
	}
	return best;
}

/* Says what there is and how to get what can be lifted. */
static void fail_not_liftable(const char *path, const struct tally_images *images,
			      struct tally_error *error)
{
	bool amd = false;
	char list[512] = "";
	size_t n = 0;

	for (size_t i = 0; i < images->count && n < sizeof(list) - 64; i++) {
		const struct tally_image *image = &images->image[i];

		amd |= image->kind == TALLY_IMAGE_HSACO;
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s%s%s", n ? ", " : "",
				      kinds[image->kind].name, image->arch[0] ? " for " : "",
				      image->arch);
	}
	tally_fail_at(error, path, 0, 0,
		      "no PTX and no LLVM bitcode in it, only %s; compile with %s", list,
		      amd ? "--cuda-device-only -emit-llvm, or embed bitcode (-fgpu-rdc "
			    "-foffload-lto -Xlinker --embed-bitcode)"
			  : "-gencode arch=compute_80,code=compute_80 (PTX), or with clang "
			    "-emit-llvm");
}

static LLVMModuleRef lift_image(LLVMContextRef context, const struct tally_image *image,
				const struct tally_lift_options *options, struct tally_error *error)
{
	if (image->kind == TALLY_IMAGE_PTX)
		return tally_ptx_lift(context, (const char *)image->data, image->size, options,
				      error);
	return tally_bitcode_lift(context, image->data, image->size, image->kind == TALLY_IMAGE_IR,
				  options, error);
}

LLVMModuleRef tally_frontend_lift(LLVMContextRef context, const char *path, const void *data,
				  size_t size, const struct tally_lift_options *options,
				  struct tally_error *error)
{
	struct tally_lift_options named = *options;
	const struct tally_image *image;
	struct tally_images images;
	LLVMModuleRef module = NULL;

	if (!tally_container_read(path, data, size, &images, error))
		return NULL;
	image = choose(&images, options->target);
	if (image) {
		/* Inside a container a line number needs the image's name to mean something. */
		if (strcmp(image->origin, path))
			named.file = image->origin;
		else if (!named.file)
			named.file = path;
		module = lift_image(context, image, &named, error);
	} else {
		fail_not_liftable(path, &images, error);
	}
	if (module && !tally_contract_verify(module, error)) {
		LLVMDisposeModule(module);
		module = NULL;
	}
	tally_images_free(&images);
	return module;
}
