/* SPDX-License-Identifier: Apache-2.0 */
/* Reads off a kernel's code how its blocks and warps depend on each other. */
#include "ir_passes/classify.h"

#include <string.h>

#include "ir_passes/hazards.h"
#include "ir_passes/ir.h"

const struct tally_class_text tally_class_texts[TALLY_CLASSES] = {
	[TALLY_CLASS_COOPERATIVE] = {"cooperative",
				     "it synchronises its whole grid (cooperative launch)"},
	[TALLY_CLASS_CLUSTER] = {"cluster", "its blocks work together in clusters"},
	[TALLY_CLASS_DEPENDENT] = {"dependent launch", "it orders itself with the next launch "
						       "(programmatic dependent launch)"},
	[TALLY_CLASS_LAUNCHES] = {"device launch", "it launches kernels itself"},
	[TALLY_CLASS_WAITS] = {"look-back", "it waits for other blocks of its grid"},
	[TALLY_CLASS_SPECIALISED] = {"warp-specialised", "its warps meet at barriers of their own"},
};

/* A barrier of some warps, or one at which some arrive without waiting. */
static bool is_partial_barrier(LLVMValueRef i)
{
	const char *name = tally_meeting(i);

	return name && !strncmp(name, "tally.barrier", 13) && !tally_is_whole_barrier(i);
}

static unsigned of_instruction(LLVMValueRef i)
{
	LLVMValueRef callee = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
	const struct tally_asm_sign *sign;
	const char *text;
	size_t length;

	if (!callee)
		return 0;
	if (tally_meets_grid(i))
		return 1u << TALLY_CLASS_COOPERATIVE;
	if (!LLVMIsAInlineAsm(callee))
		return is_partial_barrier(i) ? 1u << TALLY_CLASS_SPECIALISED : 0;
	text = LLVMGetInlineAsmAsmString(callee, &length);
	sign = tally_asm_sign(text, length);
	return sign ? 1u << sign->class : 0;
}

bool tally_classify(LLVMValueRef kernel, unsigned *set)
{
	struct tally_set reach = {0};
	bool ok = true, waits;

	*set = tally_attribute(kernel, TALLY_ATTR_CLUSTER) ? 1u << TALLY_CLASS_CLUSTER : 0;
	tally_reach(&reach, kernel);
	TALLY_EACH_FUNCTION (LLVMGetGlobalParent(kernel), function) {
		if (!ok || LLVMIsDeclaration(function) || !tally_set_has(&reach, function))
			continue;
		TALLY_EACH_BLOCK (function, block)
			TALLY_EACH_INSTRUCTION (block, i)
				*set |= of_instruction(i);
		ok = tally_waits_for_blocks(function, &waits);
		if (ok && waits)
			*set |= 1u << TALLY_CLASS_WAITS;
	}
	ok = ok && !reach.failed;
	tally_set_free(&reach);
	return ok;
}
