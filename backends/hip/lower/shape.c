/* SPDX-License-Identifier: Apache-2.0 */
/* Warps of the kernels and waves of the machine: which of each, and what does not fit. */
#include <stdlib.h>
#include <string.h>

#include "backends/hip/lower/hip_lower.h"
#include "ir_passes/ir.h"
#include "ir_passes/reach.h"

/* Operations over lanes whose masks, in the contract, have 32 bits; those on matrices mean 32 lanes
 * too. */
static bool has_lane_mask(const char *name)
{
	static const char *const prefixes[] = {
		"tally.vote.",	    "tally.shuffle.",  "tally.match.",	    "tally.reduce.",
		"tally.elect",	    "tally.warp.sync", "tally.active.mask", "tally.lanemask.",
		"tally.mma.",	    "tally.wmma.",     "tally.ldmatrix.",   "tally.stmatrix.",
		"tally.movmatrix.",
	};

	for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
		if (!strncmp(name, prefixes[k], strlen(prefixes[k])))
			return true;
	return false;
}

/* Warps of 64 lanes cannot use what has masks of 32. */
static bool check_masks(LLVMModuleRef module, struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, kernel) {
		struct tally_set reach = {0};
		LLVMValueRef found = NULL;

		if (!tally_is_kernel(kernel))
			continue;
		tally_reach(&reach, kernel);
		TALLY_EACH_FUNCTION (module, function)
			if (LLVMIsDeclaration(function) && has_lane_mask(tally_name(function)) &&
			    tally_set_has(&reach, function))
				found = function;
		tally_set_free(&reach);
		if (found)
			return tally_fail(error,
					  "kernel '%s' means warps of 64 lanes and uses %s, whose "
					  "mask has 32",
					  tally_name(kernel), tally_name(found));
	}
	return true;
}

/* Whether a kernel can tell how many lanes its warps have. */
static bool sees_lanes(LLVMModuleRef module, LLVMValueRef kernel)
{
	struct tally_set reach = {0};
	bool sees = false;

	tally_reach(&reach, kernel);
	TALLY_EACH_FUNCTION (module, function) {
		const char *name = tally_name(function);

		if (LLVMIsDeclaration(function) && tally_set_has(&reach, function))
			sees |= has_lane_mask(name) || !strncmp(name, "tally.lane.", 11) ||
				!strncmp(name, "tally.warp.", 11);
	}
	tally_set_free(&reach);
	return sees;
}

bool tally_hip_shape(LLVMModuleRef module, const struct tally_hip_target *target,
		     struct tally_hip_shape *shape, struct tally_error *error)
{
	LLVMValueRef first = NULL;

	shape->warp = 32;
	TALLY_EACH_FUNCTION (module, kernel) {
		const char *warp = tally_attribute(kernel, TALLY_ATTR_WARP);
		unsigned lanes = warp ? (unsigned)strtoul(warp, NULL, 10) : 32;

		if (!tally_is_kernel(kernel))
			continue;
		/* One that says 32, which every target has, but never looks runs with any width. */
		if (lanes == 32 && !sees_lanes(module, kernel))
			continue;
		if (first && lanes != shape->warp)
			return tally_fail(error,
					  "kernels '%s' and '%s' mean warps of %u and %u lanes: "
					  "lower them apart, with --kernel",
					  tally_name(first), tally_name(kernel), shape->warp,
					  lanes);
		first = kernel;
		shape->warp = lanes;
	}
	/* Warps of 32 lanes run in waves of 32 where the machine has them, else in halves. */
	shape->wave = shape->warp == 64 ? 64 : target->wave;
	if (shape->wave == 64 && target->wave == 32 && !target->both)
		return tally_fail(error, "kernel '%s' means warps of 64 lanes; %s has 32",
				  tally_name(first), target->name);
	return shape->warp == 32 || check_masks(module, error);
}
