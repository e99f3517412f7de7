/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body after which its threads can run another block: nobody leaves for good, and threads that
 * have returned keep answering at the barriers of those who have not.
 */
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "ir_passes/hazards.h"
#include "ir_passes/ir.h"
#include "ir_passes/pass_util.h"

/* In a body whose calls are inlined: a thread that ends returns. An exit that code follows stays,
 * and is found to be in the way. */
static bool replace_exit(LLVMValueRef instruction, void *data)
{
	(void)data;
	tally_exit_to_return(instruction);
	return true;
}

/* A plain barrier asks "has everybody returned?" where another block follows. */
static bool replace_barrier(LLVMValueRef instruction, void *data)
{
	LLVMValueRef body = data, persistent;
	LLVMBuilderRef builder;

	if (!tally_is_plain_barrier(instruction))
		return true;
	persistent = LLVMGetParam(body,
				  LLVMCountParams(body) - TALLY_BODY_EXTRA + TALLY_BODY_PERSISTENT);
	builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(instruction)));
	LLVMPositionBuilderBefore(builder, instruction);
	LLVMSetCurrentDebugLocation2(builder, LLVMInstructionGetDebugLoc(instruction));
	tally_build_operation(builder, LLVMGetGlobalParent(body), "tally.persist.meet", &persistent,
			      1);
	LLVMDisposeBuilder(builder);
	LLVMInstructionEraseFromParent(instruction);
	return true;
}

bool tally_make_persistent(LLVMValueRef body, bool *meet, const char **reason,
			   struct tally_error *error)
{
	enum tally_persistence how;

	*reason = NULL;
	if (!tally_visit_instructions(body, replace_exit, NULL) ||
	    !tally_persistence_of(body, &how, reason)) {
		*reason = NULL;
		return tally_fail(error, "out of memory");
	}
	*meet = how == TALLY_PERSIST_MEET;
	if (*meet && !tally_visit_instructions(body, replace_barrier, body))
		return tally_fail(error, "out of memory");
	return how != TALLY_PERSIST_NEVER;
}
