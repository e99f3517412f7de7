/* SPDX-License-Identifier: Apache-2.0 */
/* The whole way from a file to neutral IR: container, choice of an image, lift, verification. */
#include "frontend/frontend.h"

#include <llvm-c/Linker.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

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

/* The best image of a module, or NULL when it has none that can be lifted. */
static const struct tally_image *choose(const struct tally_images *images, unsigned module,
					const char *target)
{
	const struct tally_image *best = NULL;

	for (size_t i = 0; i < images->count; i++) {
		const struct tally_image *image = &images->image[i];

		if (image->module == module && kinds[image->kind].liftable &&
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

	/* "NVIDIA machine code for sm_80, sm_90, AMD machine code for gfx90a": a fat binary of many
	 * modules names each chip once. */
	for (size_t i = 0; i < images->count && n < sizeof(list) - 96; i++) {
		const struct tally_image *image = &images->image[i];
		bool kind_seen = false, seen = false;

		amd |= image->kind == TALLY_IMAGE_HSACO;
		for (size_t k = 0; k < i; k++) {
			bool same = images->image[k].kind == image->kind;

			kind_seen |= same;
			seen |= same && !strcmp(images->image[k].arch, image->arch);
		}
		if (!seen)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s%s%s", n ? ", " : "",
					      kind_seen ? "" : kinds[image->kind].name,
					      image->arch[0] && !kind_seen ? " for " : "",
					      image->arch);
	}
	tally_fail_at(error, path, 0, 0,
		      "no PTX and no LLVM bitcode in it, only %s; compile with %s", list,
		      amd ? "--cuda-device-only -emit-llvm, or embed bitcode (-fgpu-rdc "
			    "-foffload-lto -Xlinker --embed-bitcode)"
			  : "-gencode arch=compute_80,code=compute_80 (PTX), or with clang "
			    "-emit-llvm");
}

LLVMModuleRef tally_frontend_lift_image(LLVMContextRef context, const char *path,
					const struct tally_image *image,
					const struct tally_lift_options *options,
					struct tally_error *error)
{
	struct tally_lift_options named = *options;
	LLVMModuleRef module;

	/* Inside a container a line number needs the image's name to mean something. */
	if (strcmp(image->origin, path))
		named.file = image->origin;
	else if (!named.file)
		named.file = path;
	if (image->kind == TALLY_IMAGE_PTX)
		module = tally_ptx_lift(context, (const char *)image->data, image->size, &named,
					error);
	else
		module = tally_bitcode_lift(context, image->data, image->size,
					    image->kind == TALLY_IMAGE_IR, &named, error);
	if (module && !tally_contract_verify(module, error)) {
		LLVMDisposeModule(module);
		module = NULL;
	}
	return module;
}

static bool has_kernel(LLVMModuleRef module, const char *name)
{
	LLVMValueRef function = LLVMGetNamedFunction(module, name);

	return function && tally_is_kernel(function);
}

/* Two modules of one program are two programs to the device: names that both have stay apart, which
 * one module cannot say. Returns such a name or NULL. */
static const char *shared_name(LLVMModuleRef a, LLVMModuleRef b)
{
	size_t length;

	TALLY_EACH_FUNCTION (b, function) {
		const char *name = LLVMGetValueName2(function, &length);
		LLVMValueRef other = LLVMGetNamedFunction(a, name);

		if (LLVMGetLinkage(function) == LLVMExternalLinkage &&
		    !LLVMIsDeclaration(function) && other && !LLVMIsDeclaration(other))
			return name;
	}
	TALLY_EACH_GLOBAL (b, global) {
		const char *name = LLVMGetValueName2(global, &length);
		LLVMValueRef other = LLVMGetNamedGlobal(a, name);

		if (LLVMGetLinkage(global) == LLVMExternalLinkage && LLVMGetInitializer(global) &&
		    other && LLVMGetInitializer(other))
			return name;
	}
	return NULL;
}

/* Puts `next` into `*whole`. Both are consumed when it fails. */
static bool join(LLVMModuleRef *whole, LLVMModuleRef next, const char *path,
		 struct tally_error *error)
{
	const char *name = *whole ? shared_name(*whole, next) : NULL;
	bool ok = true;

	if (!*whole) {
		*whole = next;
		return true;
	}
	if (name) {
		ok = tally_fail_at(error, path, 0, 0,
				   "several of its modules have '%s': name the kernel that is "
				   "wanted (--kernel)",
				   name);
		LLVMDisposeModule(next);
	} else if (LLVMLinkModules2(*whole, next)) {
		ok = tally_fail_at(error, path, 0, 0, "its modules cannot be put into one");
	}
	if (!ok) {
		LLVMDisposeModule(*whole);
		*whole = NULL;
	}
	return ok;
}

/* The first module that defines the kernel. */
static LLVMModuleRef lift_with_kernel(LLVMContextRef context, const char *path,
				      const struct tally_images *images,
				      const struct tally_lift_options *options,
				      struct tally_error *error)
{
	unsigned last = images->image[images->count - 1].module;
	struct tally_error first = {0};

	for (unsigned m = 0; m <= last; m++) {
		const struct tally_image *image = choose(images, m, options->target);
		struct tally_error own = {0};
		LLVMModuleRef module;

		if (!image)
			continue;
		module = tally_frontend_lift_image(context, path, image, options, &own);
		if (module && has_kernel(module, options->kernel))
			return module;
		if (module)
			LLVMDisposeModule(module);
		else if (!tally_failed(&first))
			first = own;
	}
	/* It may have been in a module that could not be lifted: that says more. */
	if (tally_failed(&first))
		*error = first;
	else
		tally_fail_at(error, path, 0, 0, "there is no kernel '%s' in it", options->kernel);
	return NULL;
}

static LLVMModuleRef lift_all(LLVMContextRef context, const char *path,
			      const struct tally_images *images,
			      const struct tally_lift_options *options, struct tally_error *error)
{
	unsigned last = images->image[images->count - 1].module;
	LLVMModuleRef whole = NULL;

	for (unsigned m = 0; m <= last; m++) {
		const struct tally_image *image = choose(images, m, options->target);
		LLVMModuleRef module;

		if (!image)
			continue;
		module = tally_frontend_lift_image(context, path, image, options, error);
		if (!module) {
			if (whole)
				LLVMDisposeModule(whole);
			return NULL;
		}
		if (!join(&whole, module, path, error))
			return NULL;
	}
	return whole;
}

static unsigned count_liftable(const struct tally_images *images)
{
	unsigned last = images->image[images->count - 1].module, count = 0;

	for (unsigned m = 0; m <= last; m++)
		count += choose(images, m, NULL) != NULL;
	return count;
}

const struct tally_image *tally_frontend_only(const struct tally_images *images, const char *target)
{
	unsigned last = images->count ? images->image[images->count - 1].module : 0;

	if (!images->count || count_liftable(images) != 1)
		return NULL;
	for (unsigned m = 0; m < last; m++)
		if (choose(images, m, target))
			return choose(images, m, target);
	return choose(images, last, target);
}

LLVMModuleRef tally_frontend_lift_images(LLVMContextRef context, const char *path,
					 const struct tally_images *images,
					 const struct tally_lift_options *options,
					 struct tally_error *error)
{
	unsigned count = count_liftable(images);

	if (!count)
		fail_not_liftable(path, images, error);
	else if (count > 1 && options->kernel)
		return lift_with_kernel(context, path, images, options, error);
	return count ? lift_all(context, path, images, options, error) : NULL;
}

LLVMModuleRef tally_frontend_lift(LLVMContextRef context, const char *path, const void *data,
				  size_t size, const struct tally_lift_options *options,
				  struct tally_error *error)
{
	struct tally_error ignored = {0};
	struct tally_images images;
	LLVMModuleRef module;

	if (!error)
		error = &ignored;
	if (!tally_container_read(path, data, size, &images, error))
		return NULL;
	module = tally_frontend_lift_images(context, path, &images, options, error);
	tally_images_free(&images);
	return module;
}
