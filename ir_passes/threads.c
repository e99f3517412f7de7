/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of flow.h for neutral IR: what differs from thread to thread of one block. */
#include <string.h>

#include "ir_passes/hazards.h"
#include "ir_passes/ir.h"

/* Pure operations that tell the threads of a block apart. */
static const char *const personal[] = {
	"tally.thread.id.",
	"tally.lane.id",
	"tally.lanemask.",
	"tally.warp.id",
};

/* The first argument of an operation is 0: all threads of the block meet. */
static bool whole_block(LLVMValueRef call)
{
	for (unsigned k = 0; k < 2; k++) {
		LLVMValueRef argument = LLVMGetOperand(call, k);

		if (!LLVMIsAConstantInt(argument) || LLVMConstIntGetZExtValue(argument))
			return false;
	}
	return true;
}

bool tally_is_plain_barrier(LLVMValueRef instruction)
{
	const char *name = tally_called_name(instruction);

	return name && !strcmp(name, "tally.barrier") && whole_block(instruction);
}

bool tally_is_whole_barrier(LLVMValueRef instruction)
{
	const char *name = tally_called_name(instruction);

	return name && !strncmp(name, "tally.barrier", 13) &&
	       strcmp(name, "tally.barrier.arrive") != 0 && whole_block(instruction);
}

bool tally_meets_grid(LLVMValueRef instruction)
{
	const char *name = tally_called_name(instruction);

	return name && !strcmp(name, "tally.grid.workspace");
}

const char *tally_meeting(LLVMValueRef instruction)
{
	const char *name = tally_called_name(instruction);
	const struct tally_operation *operation = name ? tally_operation_find(name) : NULL;

	return operation && operation->kind == TALLY_OP_CONVERGENT ? name : NULL;
}

static bool meets(LLVMBasicBlockRef block)
{
	TALLY_EACH_INSTRUCTION (block, i)
		if (tally_meeting(i))
			return true;
	return false;
}

/* A kernel's own parameters and what replaced its block's id are the same for all. */
static bool argument_differs(const struct tally_flow *flow, LLVMValueRef argument)
{
	(void)flow;
	(void)argument;
	return false;
}

/* Whether nobody can write where `pointer` points: constants, and a kernel's parameters. */
static bool is_read_only(const struct tally_flow *flow, LLVMValueRef pointer)
{
	if (LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == TALLY_AS_CONSTANT)
		return true;
	while (LLVMIsAGetElementPtrInst(pointer) || LLVMIsAAddrSpaceCastInst(pointer))
		pointer = LLVMGetOperand(pointer, 0);
	if (!LLVMIsAArgument(pointer))
		return false;
	for (unsigned k = 0; k < LLVMCountParams(flow->function); k++)
		if (LLVMGetParam(flow->function, k) == pointer)
			return tally_param_attribute(flow->function, k, "readonly") ||
			       tally_param_byval(flow->function, k);
	return false;
}

static enum tally_flow_source load_source(const struct tally_flow *flow, LLVMValueRef i)
{
	LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(flow->function));
	unsigned invariant = LLVMGetMDKindIDInContext(context, "invariant.load", 14);

	if (LLVMGetVolatile(i) || LLVMIsAtomic(i))
		return TALLY_FLOW_DIVERGENT;
	return LLVMGetMetadata(i, invariant) || is_read_only(flow, LLVMGetOperand(i, 0))
		       ? TALLY_FLOW_OPERANDS
		       : TALLY_FLOW_DIVERGENT;
}

static enum tally_flow_source call_source(const struct tally_flow *flow, LLVMValueRef i)
{
	const char *name = tally_called_name(i);
	const struct tally_operation *operation = name ? tally_operation_find(name) : NULL;

	(void)flow;
	if (tally_flow_pure_intrinsic(i))
		return TALLY_FLOW_OPERANDS;
	if (!operation)
		return TALLY_FLOW_DIVERGENT;
	if (tally_is_whole_barrier(i))
		return TALLY_FLOW_UNIFORM;
	if (operation->kind != TALLY_OP_PURE)
		return TALLY_FLOW_DIVERGENT;
	for (size_t k = 0; k < sizeof personal / sizeof *personal; k++)
		if (!strncmp(name, personal[k], strlen(personal[k])))
			return TALLY_FLOW_DIVERGENT;
	return TALLY_FLOW_OPERANDS;
}

const struct tally_flow_rules tally_thread_rules = {
	.meets = meets,
	.argument = argument_differs,
	.load = load_source,
	.call = call_source,
};
