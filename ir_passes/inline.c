/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pass `inline`: makes every device function that reads a block id or the grid's size part of its
 * kernels, so that the next pass finds all such reads in the kernels themselves. For `persist` the
 * same, where it can be, with all functions.
 */
#include <stdio.h>
#include <string.h>

#include <llvm-c/Transforms/PassBuilder.h>

#include "ir_passes/ir.h"
#include "ir_passes/pass_util.h"
#include "ir_passes/passes.h"
#include "ir_passes/reach.h"

/* The functions that read a block id or the grid's size, themselves or through what they call. */
static void find_readers(LLVMModuleRef module, struct tally_set *readers)
{
	for (int k = 0; k < TALLY_BODY_OPERATIONS; k++) {
		LLVMValueRef operation = LLVMGetNamedFunction(module, tally_body_operations[k]);

		if (operation)
			tally_add_callers(readers, operation);
	}
}

static bool is_recursive(LLVMValueRef function)
{
	struct tally_set reach = {0};
	bool found = false;

	/* What the function reaches without starting from itself. */
	TALLY_EACH_BLOCK (function, block) {
		TALLY_EACH_INSTRUCTION (block, i) {
			LLVMValueRef callee = tally_called_function(i);

			if (callee)
				tally_reach(&reach, callee);
		}
	}
	found = tally_set_has(&reach, function);
	tally_set_free(&reach);
	return found;
}

/* Refuses the kernels that reach `function`. */
static bool refuse_users(LLVMModuleRef module, LLVMValueRef function, const char *why,
			 const struct tally_pass_options *options, struct tally_error *error)
{
	size_t length;
	char reason[512];
	bool ok = true;

	snprintf(reason, sizeof reason,
		 "device function '%s' reads a block id or the grid's size and %s",
		 LLVMGetValueName2(function, &length), why);
	TALLY_EACH_FUNCTION (module, kernel) {
		struct tally_set reach = {0};

		if (!ok || !tally_is_kernel(kernel) || tally_attribute(kernel, TALLY_ATTR_REFUSE))
			continue;
		tally_reach(&reach, kernel);
		if (tally_set_has(&reach, function))
			ok = tally_refuse(kernel, reason, options, error);
		tally_set_free(&reach);
	}
	return ok;
}

static bool run_always_inline(LLVMModuleRef module, struct tally_error *error)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef failure = LLVMRunPasses(module, "always-inline", NULL, options);

	LLVMDisposePassBuilderOptions(options);
	if (failure) {
		char *message = LLVMGetErrorMessage(failure);

		tally_fail(error, "inlining failed: %s", message);
		LLVMDisposeErrorMessage(message);
		return false;
	}
	return true;
}

/* Marks the readers always-inline, or refuses their kernels. Returns how many there are, -1 for an
 * error. */
static int mark_readers(LLVMModuleRef module, const struct tally_set *readers,
			const struct tally_pass_options *options, struct tally_error *error)
{
	int marked = 0;

	TALLY_EACH_FUNCTION (module, function) {
		const char *why = NULL;

		if (!tally_set_has(readers, function) || tally_is_kernel(function))
			continue;
		if (is_recursive(function))
			why = "calls itself";
		else if (tally_address_taken(function))
			why = "is called through a pointer";
		if (why && !refuse_users(module, function, why, options, error))
			return -1;
		if (why)
			continue;
		tally_add_attribute(function, "alwaysinline", 0);
		marked++;
	}
	return marked;
}

/* For workers: every function that can be inlined. Returns how many. */
static int mark_all(LLVMModuleRef module)
{
	int marked = 0;

	TALLY_EACH_FUNCTION (module, function) {
		if (LLVMIsDeclaration(function) || tally_is_kernel(function) ||
		    is_recursive(function) || tally_address_taken(function))
			continue;
		tally_add_attribute(function, "alwaysinline", 0);
		marked++;
	}
	return marked;
}

/* A reader that is still called was not inlined (it takes a label's address, say). */
static bool check_gone(LLVMModuleRef module, const struct tally_pass_options *options,
		       struct tally_error *error)
{
	struct tally_set readers = {0};
	bool ok = true;

	find_readers(module, &readers);
	TALLY_EACH_FUNCTION (module, function)
		if (ok && tally_set_has(&readers, function) && !tally_is_kernel(function) &&
		    LLVMGetFirstUse(function))
			ok = refuse_users(module, function, "cannot be inlined", options, error);
	tally_set_free(&readers);
	return ok;
}

bool tally_pass_inline(LLVMModuleRef module, const struct tally_pass_options *options,
		       struct tally_error *error)
{
	struct tally_set readers = {0};
	int marked;

	if (!options->transforms)
		return true;
	find_readers(module, &readers);
	marked = mark_readers(module, &readers, options, error);
	tally_set_free(&readers);
	if (marked < 0)
		return false;
	if (options->transforms & TALLY_PERSIST)
		marked += mark_all(module);
	if (!marked)
		return true;
	return run_always_inline(module, error) && check_gone(module, options, error);
}
