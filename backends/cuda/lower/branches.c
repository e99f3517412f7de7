/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches go where the IR says they go: `br p, a, b` as "@p bra a; bra.uni b".
 *
 * Where `a` is the next block, LLVM's selection asks the opposite and goes to `b`: a second
 * comparison where `p` is asked elsewhere as well, and a branch that is taken where its compiler's
 * was not. ptxas orders blocks and schedules by that: a radix sort of pairs took 92 registers
 * instead of 80, the loops of two histograms were nested one deeper. Selection looks at the next
 * block of the function, so one that nothing reaches is put between; it is gone before anything is
 * written. The pass that takes such blocks out has run before (tally_cuda_select() starts LLVM
 * behind it), and with it the one that ends the thread where code cannot go on, which is done here.
 */
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/ir.h"

/* ptxas takes what stands behind a call that does not return for its way on. */
static void end_thread(LLVMValueRef unreachable, LLVMBuilderRef builder)
{
	static const char text[] = "exit;";
	LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(unreachable));
	LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
	LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), "", 0, true, false,
					     LLVMInlineAsmDialectATT, false);

	LLVMPositionBuilderBefore(builder, unreachable);
	LLVMBuildCall2(builder, type, code, NULL, 0, "");
}

/* NVPTX writes "trap; exit;". */
static bool is_trap(LLVMValueRef i)
{
	const char *name = i ? tally_called_name(i) : NULL;

	return name && !strcmp(name, "llvm.trap");
}

static void keep_direction(LLVMBasicBlockRef block, LLVMBuilderRef builder)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
	LLVMBasicBlockRef next = LLVMGetNextBasicBlock(block), between;

	if (LLVMIsAUnreachableInst(end)) {
		if (!is_trap(LLVMGetPreviousInstruction(end)))
			end_thread(end, builder);
		return;
	}
	if (!next || !LLVMIsABranchInst(end) || !LLVMIsConditional(end) ||
	    LLVMGetSuccessor(end, 0) != next)
		return;
	between = LLVMInsertBasicBlockInContext(LLVMGetTypeContext(LLVMTypeOf(end)), next, "");
	LLVMPositionBuilderAtEnd(builder, between);
	LLVMBuildUnreachable(builder);
}

void tally_cuda_branches(LLVMModuleRef module)
{
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));

	TALLY_EACH_FUNCTION (module, function)
		TALLY_EACH_BLOCK (function, block)
			keep_direction(block, builder);
	LLVMDisposeBuilder(builder);
}
