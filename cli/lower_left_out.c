/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower --keep-going: kernels that the target refuses are left out, the others lowered. */
#include <stdio.h>
#include <string.h>

#include "cli/lower.h"
#include "ir_passes/ir.h"
#include "ir_passes/reach.h"

/* The kernel that this one is a variant of, or its own name. */
static const char *original(LLVMValueRef kernel)
{
	const char *of = tally_attribute(kernel, TALLY_ATTR_OF);

	return of ? of : tally_name(kernel);
}

/* Keeps the kernel of that name and its variants, or with NULL those that are not `left_out`. */
static void keep(LLVMModuleRef module, const char *name, bool (*left_out)(LLVMValueRef kernel))
{
	struct tally_set set = {0};

	TALLY_EACH_FUNCTION (module, kernel)
		if (tally_is_kernel(kernel) &&
		    (name ? !strcmp(original(kernel), name) : !left_out(kernel)))
			tally_reach(&set, kernel);
	TALLY_EACH_GLOBAL (module, global)
		if (LLVMGetLinkage(global) == LLVMExternalLinkage)
			tally_reach(&set, global);
	if (!set.failed)
		tally_erase_others(module, &set);
	tally_set_free(&set);
}

#define LEFT_OUT "tally.left-out"

static bool is_left_out(LLVMValueRef kernel)
{
	return tally_attribute(kernel, LEFT_OUT) != NULL;
}

/* Lowers one kernel of `module` by itself, to learn whether it can be. */
static bool try_one(LLVMModuleRef module, const struct tally_lowering *lowering,
		    const struct tally_lower_options *options, const char *name,
		    struct tally_error *error)
{
	LLVMModuleRef copy = LLVMCloneModule(module);
	struct tally_buffer out = {0};
	bool ok;

	keep(copy, name, NULL);
	ok = lowering->lower(copy, options, &out, error) && !tally_failed(error);
	LLVMDisposeModule(copy);
	tally_buffer_free(&out);
	return ok;
}

bool lower_keep_going(LLVMModuleRef module, const struct tally_lowering *lowering,
		      const struct tally_lower_options *options, struct tally_buffer *out,
		      struct tally_error *error)
{
	LLVMModuleRef whole = LLVMCloneModule(module);
	size_t before = out->size;
	unsigned kept = 0, left_out = 0;
	struct tally_buffer warnings = {0};
	struct tally_error first;
	bool ok;

	if (lowering->lower(module, options, out, error) && !tally_failed(error))
		return true;
	first = *error;
	TALLY_EACH_FUNCTION (whole, kernel) {
		if (!tally_is_kernel(kernel) || tally_attribute(kernel, TALLY_ATTR_OF))
			continue;
		/* LLVM's diagnostics go to this error too. */
		*error = (struct tally_error){0};
		if (try_one(whole, lowering, options, tally_name(kernel), error)) {
			kept++;
			continue;
		}
		left_out++;
		tally_buffer_print(&warnings, "tally-lower: warning: kernel '%s' left out: %s\n",
				   tally_name(kernel), error->message);
		TALLY_EACH_FUNCTION (whole, variant)
			if (tally_is_kernel(variant) &&
			    !strcmp(original(variant), tally_name(kernel)))
				tally_attribute_set(variant, LEFT_OUT, "");
	}
	/* None can be, or only together they cannot. */
	*error = kept && left_out ? (struct tally_error){0} : first;
	if (tally_failed(error))
		return false;
	fputs(warnings.data, stderr);
	tally_buffer_free(&warnings);
	keep(whole, NULL, is_left_out);
	out->size = before;
	ok = lowering->lower(whole, options, out, error) && !tally_failed(error);
	LLVMDisposeModule(whole);
	return ok;
}
