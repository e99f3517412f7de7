/* SPDX-License-Identifier: Apache-2.0 */
/* What a variant adds to a kernel, and whether there is room for it: names, a parameter, a
 * worker's word of shared memory. */
#include <stdlib.h>

#include <llvm-c/Target.h>

#include "ir_passes/ir.h"
#include "ir_passes/launch_abi.h"
#include "ir_passes/pass_util.h"
#include "ir_passes/reach.h"

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

bool tally_has_shared_room(LLVMModuleRef module, LLVMValueRef body, unsigned limit)
{
	const unsigned own = 8, aligned = 8; /* tally.persist.place in library.ll */
	LLVMTargetDataRef layout = LLVMGetModuleDataLayout(module);
	unsigned long long bytes = own + aligned - 1;
	struct tally_set reach = {0};

	tally_reach(&reach, body);
	TALLY_EACH_GLOBAL (module, global)
		if (LLVMGetPointerAddressSpace(LLVMTypeOf(global)) == TALLY_AS_SHARED &&
		    tally_set_has(&reach, global))
			bytes += LLVMABISizeOfType(layout, LLVMGlobalGetValueType(global));
	tally_set_free(&reach);
	return !limit || bytes <= limit;
}
