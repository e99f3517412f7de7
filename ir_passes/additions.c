/* SPDX-License-Identifier: Apache-2.0 */
/* What a variant adds to a kernel, and whether there is room for it: names and a parameter. */
#include <stdlib.h>

#include "ir_passes/ir.h"
#include "ir_passes/launch_abi.h"
#include "ir_passes/pass_util.h"

/* What has `kernel`'s name with `suffix` behind it, or NULL. */
static LLVMValueRef namesake(LLVMModuleRef module, LLVMValueRef kernel, const char *suffix)
{
	char *name = tally_name_with(kernel, suffix);
	LLVMValueRef found = NULL;

	if (!name)
		return NULL; /* making it again says so */
	found = LLVMGetNamedFunction(module, name);
	if (!found)
		found = LLVMGetNamedGlobal(module, name);
	free(name);
	return found;
}

LLVMValueRef tally_taken_name(LLVMModuleRef module, LLVMValueRef kernel, unsigned transforms)
{
	const unsigned blocks = transforms & (TALLY_SLICE | TALLY_GUARD),
		       persist = transforms & TALLY_PERSIST;
	const char *const suffixes[] = {blocks ? tally_variant_suffix(blocks) : NULL,
					persist ? tally_variant_suffix(persist) : NULL,
					TALLY_BODY_SUFFIX};
	LLVMValueRef found = NULL;

	for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes && !found; k++)
		if (suffixes[k])
			found = namesake(module, kernel, suffixes[k]);
	return found;
}

bool tally_launch_fits(unsigned long long bytes, const unsigned *limits)
{
	const unsigned align = _Alignof(struct tally_launch);
	const unsigned long long end =
		(bytes + align - 1) / align * align + sizeof(struct tally_launch);

	if (!limits)
		return true;
	while (*limits && *limits < bytes)
		limits++;
	return end <= *limits;
}

bool tally_has_room(LLVMModuleRef module, LLVMValueRef kernel, const unsigned *limits)
{
	return tally_launch_fits(tally_params_size(module, kernel), limits);
}
