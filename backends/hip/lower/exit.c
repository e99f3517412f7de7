/* SPDX-License-Identifier: Apache-2.0 */
/* tally.exit on machines that can only end whole waves: a return from the kernel. */
#include <string.h>

#include "backends/hip/lower/hip_lower.h"
#include "ir_passes/ir.h"
#include "ir_passes/reach.h"

/* In a kernel: the block ends here, with a return. False for an exit that code follows. */
static bool replace_exit(LLVMValueRef instruction, void *data)
{
	const char *called = tally_called_name(instruction);

	(void)data;
	if (called && !strcmp(called, "tally.exit"))
		return LLVMIsAUnreachableInst(LLVMGetNextInstruction(instruction)) != NULL;
	tally_exit_to_return(instruction);
	return true;
}

static bool refuse(LLVMValueRef function, struct tally_error *error)
{
	return tally_fail(error,
			  "device function '%s' ends its thread and %s: AMD machines can only "
			  "return from the kernel, so it would have to be inlined",
			  tally_name(function),
			  tally_address_taken(function) ? "is called through a pointer"
							: "calls itself");
}

bool tally_hip_exit(LLVMModuleRef module, struct tally_error *error)
{
	LLVMValueRef operation = LLVMGetNamedFunction(module, "tally.exit");
	struct tally_set callers = {0};

	if (!operation || !LLVMGetFirstUse(operation))
		return true;
	tally_add_callers(&callers, operation);
	TALLY_EACH_FUNCTION (module, function)
		if (tally_set_has(&callers, function) && !tally_is_kernel(function))
			tally_add_attribute(function, "alwaysinline", 0);
	tally_set_free(&callers);
	/* simplifycfg leaves nothing but `unreachable` behind a call that does not return. */
	if (!tally_lower_run_pipeline(module, "always-inline,globaldce,simplifycfg", NULL, error))
		return false;
	TALLY_EACH_FUNCTION (module, function)
		if (tally_is_kernel(function) &&
		    !tally_visit_instructions(function, replace_exit, NULL))
			return tally_fail(error, "kernel '%s': an exit is followed by code",
					  tally_name(function));
	TALLY_EACH_USE (operation, use) {
		LLVMValueRef user = LLVMGetUser(use);

		if (LLVMIsAInstruction(user))
			return refuse(LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)),
				      error);
	}
	return true;
}
