/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device functions. All are inlined into their kernels but those that cannot be: recursive ones and
 * those whose address is taken. These get one parameter more, the thread's record, from which they
 * know who they run for. They cannot be suspended, so none may reach a barrier or warp operation.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"
#include "base/grow.h"
#include "ir_passes/reach.h"

/* Whether `function` can come to call itself through direct calls. */
static bool is_recursive(LLVMValueRef function)
{
	struct tally_set seen = {0};
	LLVMValueRef *stack = NULL;
	size_t depth = 0;
	bool recursive = false;

	for (LLVMValueRef at = function; at && !recursive; at = depth ? stack[--depth] : NULL) {
		TALLY_EACH_BLOCK (at, block)
			TALLY_EACH_INSTRUCTION (block, i) {
				LLVMValueRef callee = tally_called_function(i);

				if (!callee || !LLVMCountBasicBlocks(callee))
					continue;
				recursive |= callee == function;
				if (!tally_set_add(&seen, callee))
					continue;
				if (TALLY_GROW(stack, depth))
					stack[depth++] = callee;
			}
	}
	free(stack);
	tally_set_free(&seen);
	return recursive;
}

/* The functions that inlining leaves over. */
static bool is_kept(struct cpu_lowering *l, LLVMValueRef function)
{
	if (!LLVMCountBasicBlocks(function) || cpu_kernel_of(l, function))
		return false;
	for (size_t i = 0; i < l->kernel_count; i++)
		if (l->kernels[i].function == function)
			return false;
	return true;
}

static bool refuse_kept(struct cpu_lowering *l, LLVMValueRef function)
{
	static const struct {
		const char *operation, *text;
	} cannot[] = {
		{"tally.cpu.suspend", "reaches a barrier or warp operation"},
		{"tally.exit", "ends its thread"},
	};
	size_t length;
	const char *name = LLVMGetValueName2(function, &length);

	for (size_t i = 0; i < sizeof cannot / sizeof *cannot; i++)
		if (cpu_calls(function, cannot[i].operation))
			return tally_fail(l->error,
					  "device function '%s' is %s and %s: the CPU device "
					  "cannot suspend it; make it inlinable",
					  name,
					  tally_address_taken(function) ? "called through a pointer"
									: "recursive",
					  cannot[i].text);
	return true;
}

bool cpu_inline(struct cpu_lowering *l)
{
	TALLY_EACH_FUNCTION (l->module, function) {
		if (!is_kept(l, function))
			continue;
		LLVMSetLinkage(function, LLVMInternalLinkage);
		tally_remove_attribute(function, "noinline");
		if (tally_address_taken(function) || is_recursive(function))
			tally_remove_attribute(function, "alwaysinline");
		else
			tally_add_attribute(function, "alwaysinline", 0);
	}
	if (!tally_lower_run_pipeline(l->module, "always-inline,globaldce,function(simplifycfg)",
				      l->machine, l->error))
		return false;
	TALLY_EACH_FUNCTION (l->module, function)
		if (is_kept(l, function) && !refuse_kept(l, function))
			return false;
	return true;
}

/* `type` with a pointer more at its end. */
static LLVMTypeRef with_context(struct cpu_lowering *l, LLVMTypeRef type)
{
	unsigned count = LLVMCountParamTypes(type);
	LLVMTypeRef *params = calloc(count + 1, sizeof *params), result;

	if (!params)
		return NULL;
	LLVMGetParamTypes(type, params);
	params[count] = l->ptr;
	result = LLVMFunctionType(LLVMGetReturnType(type), params, count + 1, 0);
	free(params);
	return result;
}

static bool add_parameter(struct cpu_lowering *l, LLVMValueRef function)
{
	LLVMTypeRef type = with_context(l, LLVMGlobalGetValueType(function));
	LLVMValueRef replacement;
	size_t length;
	const char *name = LLVMGetValueName2(function, &length);

	if (!type)
		return tally_fail(l->error, "out of memory");
	replacement = LLVMAddFunction(l->module, "", type);
	LLVMSetLinkage(replacement, LLVMInternalLinkage);
	tally_copy_attributes(function, replacement, LLVMCountParams(function));
	tally_move_body(function, replacement);
	LLVMReplaceAllUsesWith(function, replacement);
	LLVMSetValueName2(replacement, name, length);
	LLVMDeleteFunction(function);
	return true;
}

/* Whether a call goes to a device function: one of those kept, or through a pointer other than one
 * of the executor's services. */
static bool is_device_call(LLVMValueRef i)
{
	LLVMValueRef callee, function;

	if (!LLVMIsACallInst(i))
		return false;
	callee = LLVMGetCalledValue(i);
	function = tally_called_function(i);
	if (function)
		return LLVMCountBasicBlocks(function) != 0;
	if (LLVMIsAInlineAsm(callee))
		return false;
	return !LLVMGetCallSiteStringAttribute(i, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
					       "tally.service", 13);
}

static bool pass_context(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;
	LLVMValueRef context, *arguments, call;
	LLVMTypeRef type;
	unsigned count;

	if (!is_device_call(i))
		return true;
	count = LLVMGetNumArgOperands(i);
	type = with_context(l, LLVMGetCalledFunctionType(i));
	arguments = calloc(count + 1, sizeof *arguments);
	if (!type || !arguments) {
		free(arguments);
		return false;
	}
	for (unsigned k = 0; k < count; k++)
		arguments[k] = LLVMGetOperand(i, k);
	LLVMPositionBuilderBefore(l->builder, i);
	/* In a kernel the record is still the primitive: it has no such parameter yet. */
	context = LLVMBuildCall2(l->builder, LLVMFunctionType(l->ptr, NULL, 0, 0),
				 LLVMGetNamedFunction(l->module, "tally.cpu.thread"), NULL, 0, "");
	arguments[count] = context;
	call = LLVMBuildCall2(l->builder, type, LLVMGetCalledValue(i), arguments, count + 1, "");
	LLVMSetInstructionCallConv(call, LLVMGetInstructionCallConv(i));
	for (unsigned k = 0; k <= count; k++) {
		LLVMAttributeRef list[32];
		unsigned n = LLVMGetCallSiteAttributeCount(i, k);

		if (n > 32)
			continue;
		LLVMGetCallSiteAttributes(i, k, list);
		for (unsigned a = 0; a < n; a++)
			LLVMAddCallSiteAttribute(call, k, list[a]);
	}
	free(arguments);
	LLVMReplaceAllUsesWith(i, call);
	LLVMInstructionEraseFromParent(i);
	return true;
}

bool cpu_thread_contexts(struct cpu_lowering *l)
{
	LLVMValueRef last;

	if (!LLVMGetNamedFunction(l->module, "tally.cpu.thread"))
		LLVMAddFunction(l->module, "tally.cpu.thread",
				LLVMFunctionType(l->ptr, NULL, 0, 0));
	/* Calls first, while they can be told from calls that have the parameter. */
	TALLY_EACH_FUNCTION (l->module, function)
		if (LLVMCountBasicBlocks(function) &&
		    !tally_visit_instructions(function, pass_context, l))
			return tally_fail(l->error, "out of memory");
	/* Replacements are added behind the last: they are not to be replaced again. */
	last = LLVMGetLastFunction(l->module);
	TALLY_EACH_FUNCTION (l->module, function) {
		bool end = function == last;

		if (is_kept(l, function) && !add_parameter(l, function))
			return false;
		if (end)
			break;
	}
	return true;
}
