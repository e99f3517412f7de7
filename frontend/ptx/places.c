/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of the source stay blocks while lifted code is simplified.
 *
 * Where the code branches, and to what, was chosen by its compiler. ptxas goes by it: copies that
 * stood in a block of their own and now stand in front of the branch, or a second exit of a loop
 * that became a condition, cost registers and unrolling (docs/lowering.md). The small blocks that
 * the lifter itself makes for predicated instructions are to go, though. So the others hold a call
 * that no pass may move, copy or leave out, until that is done.
 */
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/ir.h"

static const char name[] = "ptx.place";

void ptx_places_start(struct ptx_lift *l)
{
	static const char *const attributes[] = {"nounwind", "willreturn", "noduplicate",
						 "convergent"};
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(l->context), NULL, 0, 0);

	l->place = LLVMAddFunction(l->module, name, type);
	for (size_t k = 0; k < sizeof attributes / sizeof *attributes; k++)
		tally_add_attribute(l->place, attributes[k], 0);
}

void ptx_keep_place(struct ptx_lift *l)
{
	if (l->place)
		LLVMBuildCall2(l->builder, LLVMGlobalGetValueType(l->place), l->place, NULL, 0, "");
}

void ptx_drop_place(struct ptx_lift *l)
{
	LLVMValueRef only = LLVMGetFirstInstruction(LLVMGetInsertBlock(l->builder));

	if (l->place && only && !LLVMGetNextInstruction(only) &&
	    tally_called_function(only) == l->place)
		LLVMInstructionEraseFromParent(only);
}

void ptx_places_end(LLVMModuleRef module)
{
	LLVMValueRef place = LLVMGetNamedFunction(module, name);

	if (!place)
		return;
	TALLY_EACH_USE (place, use)
		LLVMInstructionEraseFromParent(LLVMGetUser(use));
	LLVMDeleteFunction(place);
}
