/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes a module a part of a larger PTX file: variables are the file's, so they are declared
 * only, and what nobody outside sees has a name that no other part gives.
 */
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "base/buffer.h"
#include "ir_passes/ir.h"

static bool is_internal(LLVMValueRef value)
{
	return LLVMGetLinkage(value) == LLVMInternalLinkage ||
	       LLVMGetLinkage(value) == LLVMPrivateLinkage;
}

static bool rename_value(LLVMValueRef value, const char *suffix)
{
	struct tally_buffer name = {0};
	bool ok;

	tally_buffer_print(&name, "%s%s", tally_name(value), suffix);
	ok = !name.failed;
	if (ok)
		LLVMSetValueName2(value, name.data, name.size);
	tally_buffer_free(&name);
	return ok;
}

bool tally_cuda_part(LLVMModuleRef module, const char *suffix, struct tally_error *error)
{
	bool ok = true;

	TALLY_EACH_FUNCTION (module, function)
		if (!LLVMIsDeclaration(function) && is_internal(function))
			ok &= rename_value(function, suffix);
	TALLY_EACH_GLOBAL (module, global) {
		if (LLVMIsDeclaration(global))
			continue;
		if (is_internal(global)) {
			ok &= rename_value(global, suffix);
			continue;
		}
		LLVMSetInitializer(global, NULL);
		LLVMSetLinkage(global, LLVMExternalLinkage);
	}
	return ok || tally_fail(error, "out of memory");
}
