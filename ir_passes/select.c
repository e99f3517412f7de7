/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `select`: keeps the kernels that were asked for and what they reach. */
#include <string.h>

#include "base/buffer.h"
#include "ir_passes/ir.h"
#include "ir_passes/passes.h"
#include "ir_passes/reach.h"

static bool fail_unknown(LLVMModuleRef module, const char *kernel, struct tally_error *error)
{
	struct tally_buffer names = {0};
	size_t length;

	TALLY_EACH_FUNCTION (module, function)
		if (tally_is_kernel(function))
			tally_buffer_print(&names, "%s%s", names.size ? ", " : "",
					   LLVMGetValueName2(function, &length));
	tally_fail(error, "no kernel '%s' (there %s: %s)", kernel,
		   names.size && !strchr(names.data, ',') ? "is" : "are",
		   names.size ? names.data : "none");
	tally_buffer_free(&names);
	return false;
}

bool tally_pass_select(LLVMModuleRef module, const struct tally_pass_options *options,
		       struct tally_error *error)
{
	struct tally_set keep = {0};
	bool found = false, complete;
	size_t length;

	if (!options->kernel)
		return true;
	TALLY_EACH_FUNCTION (module, function) {
		if (!tally_is_kernel(function) ||
		    strcmp(LLVMGetValueName2(function, &length), options->kernel))
			continue;
		found = true;
		tally_reach(&keep, function);
	}
	complete = !keep.failed;
	if (found && complete)
		tally_erase_others(module, &keep);
	tally_set_free(&keep);
	if (!found)
		return fail_unknown(module, options->kernel, error);
	return complete || tally_fail(error, "out of memory");
}
