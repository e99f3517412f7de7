/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `refuse`: marks the kernels that must run whole, and says why. */
#include "base/buffer.h"
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

/* Names that are taken: by what this compiler made of the kernel before, which is an error as they
 * would be made twice and nobody could tell which is which; or by something else, which is a reason
 * that is put into `text`. */
static bool check_names(LLVMModuleRef module, LLVMValueRef kernel, unsigned transforms,
			struct tally_buffer *text, struct tally_error *error)
{
	LLVMValueRef taken = tally_taken_name(module, kernel, transforms);

	if (taken && LLVMIsAFunction(taken) && tally_is_kernel(taken))
		return tally_fail(error,
				  "kernel '%s' exists already: was this transformed before? Take "
				  "what it was made from",
				  tally_name(taken));
	if (taken)
		tally_buffer_print(text, "the name '%s' is taken", tally_name(taken));
	return !text->failed || tally_fail(error, "out of memory");
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
		struct tally_buffer text = {0};
		const char *reason;
		bool ok;

		if (!tally_is_kernel(kernel))
			continue;
		ok = check_names(module, kernel, options->transforms, &text, error);
		reason = tally_attribute(kernel, TALLY_ATTR_REFUSE);
		if (!reason)
			reason = text.data;
		if (!reason && !tally_has_room(module, kernel, options->parameter_limits))
			reason = TALLY_NO_ROOM;
		if (!reason)
			reason = find_reason(module, kernel);
		ok = ok && (!reason || tally_refuse(kernel, reason, options, error));
		tally_buffer_free(&text);
		if (!ok)
			return false;
	}
	return true;
}
