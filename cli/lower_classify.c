/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower --classify: how each kernel can be run, and why not otherwise. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lower.h"
#include "ir_passes/classify.h"
#include "ir_passes/ir.h"

struct kernel {
	char *name;
	unsigned classes;
};

static void print(LLVMModuleRef module, const struct kernel *k)
{
	LLVMValueRef kernel = LLVMGetNamedFunction(module, k->name);
	const char *refused = tally_attribute(kernel, TALLY_ATTR_REFUSE);
	const char *whole = tally_attribute(kernel, TALLY_ATTR_WHOLE);
	const char *locked = tally_attribute(kernel, TALLY_ATTR_LOCKED);

	printf("kernel %s\n", k->name);
	printf("    transforms: %s\n", refused ? "none"
				       : whole ? "slice, guard"
					       : "slice, guard, persist");
	if (refused)
		printf("    runs whole: %s\n", refused);
	else if (whole)
		printf("    no persist: %s\n", whole);
	for (unsigned c = 0; c < TALLY_CLASSES; c++)
		if (k->classes >> c & 1)
			printf("    %s: %s\n", tally_class_texts[c].name,
			       tally_class_texts[c].reason);
	if (locked)
		printf("    only %s: %s\n", tally_attribute(kernel, TALLY_ATTR_VENDOR), locked);
}

bool lower_classify(LLVMModuleRef module, const struct tally_lowering *lowering,
		    struct tally_error *error)
{
	struct tally_pass_options passes = {
		.transforms = TALLY_SLICE | TALLY_GUARD | TALLY_PERSIST,
		.parameter_limits = (lowering ? lowering : &tally_lowering_cuda)->parameter_limits};
	struct kernel *kernels = NULL;
	size_t count = 0;
	bool ok = true;

	TALLY_EACH_FUNCTION (module, function)
		count += tally_is_kernel(function);
	kernels = calloc(count, sizeof *kernels);
	count = 0;
	TALLY_EACH_FUNCTION (module, function) {
		struct kernel *k = kernels ? &kernels[count] : NULL;

		if (!ok || !tally_is_kernel(function))
			continue;
		ok = k && (k->name = strdup(tally_name(function))) &&
		     tally_classify(function, &k->classes);
		count += ok;
	}
	if (!ok)
		tally_fail(error, "out of memory");
	ok = ok && tally_passes_run(module, &passes, error);
	for (size_t i = 0; i < count; i++) {
		if (ok)
			print(module, &kernels[i]);
		free(kernels[i].name);
	}
	free(kernels);
	return ok;
}
