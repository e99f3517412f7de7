/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `refuse`: marks the kernels that must run whole, and says why. */
#include "ir_passes/hazards.h"
#include "ir_passes/ir.h"
#include "ir_passes/pass_util.h"
#include "ir_passes/passes.h"
#include "ir_passes/reach.h"

static const char *reason_in(LLVMValueRef function)
{
	TALLY_EACH_BLOCK (function, block) {
		TALLY_EACH_INSTRUCTION (block, i) {
			LLVMValueRef callee = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
			const char *text;
			size_t length;

			if (tally_meets_grid(i))
				return tally_class_texts[TALLY_CLASS_COOPERATIVE].reason;
			if (!callee || !LLVMIsAInlineAsm(callee))
				continue;
			text = LLVMGetInlineAsmAsmString(callee, &length);
			const struct tally_asm_sign *sign = tally_asm_sign(text, length);
			if (sign && sign->whole)
				return tally_class_texts[sign->class].reason;
		}
	}
	return NULL;
}

/* The reason of the first function of `kernel`'s reach that has one, or NULL. */
static const char *find_reason(LLVMModuleRef module, LLVMValueRef kernel)
{
	struct tally_set reach = {0};
	const char *reason = NULL;

	if (tally_attribute(kernel, TALLY_ATTR_CLUSTER))
		return tally_class_texts[TALLY_CLASS_CLUSTER].reason;
	if (tally_attribute(kernel, TALLY_ATTR_VARIANT))
		return "it is transformed already";
	tally_reach(&reach, kernel);
	TALLY_EACH_FUNCTION (module, function)
		if (!reason && tally_set_has(&reach, function))
			reason = reason_in(function);
	tally_set_free(&reach);
	return reason;
}

bool tally_refuse(LLVMValueRef kernel, const char *reason, const struct tally_pass_options *options,
		  struct tally_error *error)
{
	size_t length;

	if (options->required)
		return tally_fail(error, "kernel '%s' cannot be transformed: %s",
				  LLVMGetValueName2(kernel, &length), reason);
	tally_attribute_set(kernel, TALLY_ATTR_REFUSE, reason);
	return true;
}

bool tally_pass_refuse(LLVMModuleRef module, const struct tally_pass_options *options,
		       struct tally_error *error)
{
	if (!options->transforms)
		return true;
	TALLY_EACH_FUNCTION (module, kernel) {
		const char *reason;

		if (!tally_is_kernel(kernel))
			continue;
		reason = tally_attribute(kernel, TALLY_ATTR_REFUSE);
		if (!reason)
			reason = find_reason(module, kernel);
		if (reason && !tally_refuse(kernel, reason, options, error))
			return false;
	}
	return true;
}
