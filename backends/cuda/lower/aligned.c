/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers that the lanes of a warp meet together ("tally.aligned" at the call) as the instructions
 * that say so. They are cheaper, and ptxas knows from them that the warp is whole again: without
 * them each vote and shuffle that follows is wrapped into a collective of its own.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

static bool align(LLVMValueRef call, void *data)
{
	const char *name = tally_called_name(call);
	LLVMValueRef callee, aligned;
	char text[64];

	if (!name || strncmp(name, "tally.barrier", strlen("tally.barrier")) ||
	    !LLVMGetCallSiteStringAttribute(call, LLVMAttributeFunctionIndex, TALLY_ATTR_ALIGNED,
					    strlen(TALLY_ATTR_ALIGNED)))
		return true;
	callee = LLVMGetCalledValue(call);
	snprintf(text, sizeof text, "tally.aligned.%s", name + strlen("tally."));
	aligned = LLVMGetNamedFunction(data, text);
	if (!aligned)
		aligned = LLVMAddFunction(data, text, LLVMGlobalGetValueType(callee));
	tally_add_attribute(aligned, "convergent", 0);
	LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, aligned);
	return true;
}

void tally_cuda_aligned(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function)
		if (!LLVMIsDeclaration(function))
			tally_visit_instructions(function, align, module);
}
