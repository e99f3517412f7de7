/* SPDX-License-Identifier: Apache-2.0 */
/* Variants without their kernels: for a file that has the kernels themselves already. */
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "ir_passes/ir.h"
#include "ir_passes/passes.h"
#include "ir_passes/reach.h"

/* The one call of `body`, when it stands alone at the end of a block of a kernel. */
static LLVMValueRef only_call(LLVMValueRef body)
{
	LLVMUseRef use = LLVMGetFirstUse(body);
	LLVMValueRef call = use ? LLVMGetUser(use) : NULL, end;

	if (!use || LLVMGetNextUse(use) || !LLVMIsACallInst(call) ||
	    LLVMGetCalledValue(call) != body || !LLVMIsABranchInst(LLVMGetNextInstruction(call)))
		return NULL;
	end = LLVMGetBasicBlockTerminator(LLVMGetSuccessor(LLVMGetNextInstruction(call), 0));
	return LLVMGetNumSuccessors(LLVMGetNextInstruction(call)) == 1 && LLVMIsAReturnInst(end) &&
			       LLVMGetFirstInstruction(LLVMGetInstructionParent(end)) == end
		       ? call
		       : NULL;
}

/* Stack slots belong to the first block, or LLVM takes them for dynamic ones. */
static void move_slots(LLVMBasicBlockRef from, LLVMBasicBlockRef to, LLVMBuilderRef builder)
{
	LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(to));
	TALLY_EACH_INSTRUCTION (from, i) {
		if (!LLVMIsAAllocaInst(i))
			continue;
		LLVMInstructionRemoveFromParent(i);
		LLVMInsertIntoBuilder(builder, i);
	}
}

/* What inlining does, for a body that nobody else calls: its blocks become the caller's, none is
 * copied. Both return nothing, so the body's returns are the caller's. */
static void splice(LLVMValueRef call, LLVMValueRef body)
{
	LLVMBasicBlockRef block = LLVMGetInstructionParent(call),
			  entry = LLVMGetFirstBasicBlock(body), place = block;
	LLVMValueRef caller = LLVMGetBasicBlockParent(block);
	LLVMMetadataRef places = LLVMGetSubprogram(body);
	LLVMBuilderRef builder =
		LLVMCreateBuilderInContext(LLVMGetModuleContext(LLVMGetGlobalParent(body)));

	for (unsigned k = 0; k < LLVMCountParams(body); k++)
		LLVMReplaceAllUsesWith(LLVMGetParam(body, k), LLVMGetOperand(call, k));
	LLVMInstructionEraseFromParent(LLVMGetNextInstruction(call));
	LLVMInstructionEraseFromParent(call);
	TALLY_EACH_BLOCK (body, moved) {
		LLVMMoveBasicBlockAfter(moved, place);
		place = moved;
	}
	LLVMPositionBuilderAtEnd(builder, block);
	LLVMBuildBr(builder, entry);
	move_slots(entry, LLVMGetFirstBasicBlock(caller), builder);
	LLVMDisposeBuilder(builder);
	LLVMSetSubprogram(body, NULL);
	LLVMSetSubprogram(caller, places);
	LLVMDeleteFunction(body);
}

bool tally_keep_variants(LLVMModuleRef module)
{
	struct tally_set keep = {0};
	bool complete;

	TALLY_EACH_FUNCTION (module, kernel)
		if (tally_is_kernel(kernel) && tally_attribute(kernel, TALLY_ATTR_VARIANT))
			tally_reach(&keep, kernel);
	complete = !keep.failed;
	if (complete)
		tally_erase_others(module, &keep);
	tally_set_free(&keep);
	TALLY_EACH_FUNCTION (module, body) {
		const char *suffix = strrchr(tally_name(body), '.');
		LLVMValueRef call = suffix && !strcmp(suffix, ".body") ? only_call(body) : NULL;

		if (call && LLVMCountBasicBlocks(body))
			splice(call, body);
	}
	return complete;
}
