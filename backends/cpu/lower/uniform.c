/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which values and branches are the same for all threads of a block, and whether that makes all
 * threads come to the same barriers together. Values are divergent that depend on who the thread
 * is, on memory that somebody may write, or on which way a thread came.
 */
#include <string.h>

#include "backends/cpu/lower/internal.h"

static bool ends_in_barrier(LLVMBasicBlockRef block)
{
	LLVMValueRef before = LLVMGetPreviousInstruction(LLVMGetBasicBlockTerminator(block));
	const char *name = before ? tally_called_name(before) : NULL;

	return name && (!strcmp(name, "tally.cpu.meet") || !strcmp(name, "tally.cpu.suspend"));
}

static bool argument_differs(const struct tally_flow *flow, LLVMValueRef argument)
{
	return argument != LLVMGetParam(flow->function, CPU_PARAMS) &&
	       argument != LLVMGetParam(flow->function, CPU_BLOCK);
}

/* Loads of what nobody writes while the kernel runs, from the same place for all, are the same. */
static enum tally_flow_source load_source(const struct tally_flow *flow, LLVMValueRef i)
{
	LLVMValueRef pointer = LLVMGetOperand(i, 0);
	unsigned kind = LLVMGetMDKindIDInContext(
		LLVMGetModuleContext(LLVMGetGlobalParent(flow->function)), "invariant.load", 14);

	if (cpu_record_field(flow->function, pointer) == offsetof(struct tally_cpu_thread, result))
		return TALLY_FLOW_UNIFORM; /* of a barrier's count */
	if (LLVMGetVolatile(i) || LLVMIsAtomic(i))
		return TALLY_FLOW_DIVERGENT;
	return LLVMGetMetadata(i, kind) ||
			       LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == TALLY_AS_CONSTANT
		       ? TALLY_FLOW_OPERANDS
		       : TALLY_FLOW_DIVERGENT;
}

static enum tally_flow_source call_source(const struct tally_flow *flow, LLVMValueRef i)
{
	const char *name = tally_called_name(i);

	(void)flow;
	return tally_flow_pure_intrinsic(i) || (name && !strcmp(name, "tally.cpu.count"))
		       ? TALLY_FLOW_OPERANDS
		       : TALLY_FLOW_DIVERGENT;
}

const struct tally_flow_rules cpu_flow_rules = {
	.meets = ends_in_barrier,
	.argument = argument_differs,
	.load = load_source,
	.call = call_source,
};

void cpu_flow_reach(struct tally_flow *flow, LLVMBasicBlockRef block)
{
	size_t start = tally_flow_index(flow, block), depth = 0;

	memset(flow->seen, 0, flow->count);
	flow->stack[depth++] = start * 2;
	while (depth) {
		size_t at = flow->stack[--depth], b = at / 2, crossed = at % 2 || flow->meets[b];

		for (unsigned s = 0; s < tally_flow_successors(flow, b); s++) {
			size_t next = tally_flow_successor(flow, b, s);
			unsigned char bit = (unsigned char)(1u << crossed);

			if (flow->seen[next] & bit)
				continue;
			flow->seen[next] |= bit;
			if (next != start)
				flow->stack[depth++] = next * 2 + crossed;
		}
	}
}

bool cpu_flow_crosses(const struct tally_flow *flow, LLVMValueRef value, LLVMUseRef use)
{
	LLVMValueRef user = LLVMGetUser(use);
	LLVMBasicBlockRef home = LLVMGetInstructionParent(value);

	if (!LLVMIsAPHINode(user)) {
		LLVMBasicBlockRef block = LLVMGetInstructionParent(user);

		return block != home && flow->seen[tally_flow_index(flow, block)] & 2;
	}
	for (unsigned k = 0; k < LLVMCountIncoming(user); k++) {
		LLVMBasicBlockRef block = LLVMGetIncomingBlock(user, k);

		if (LLVMGetIncomingValue(user, k) == value && block != home &&
		    flow->seen[tally_flow_index(flow, block)] & 2)
			return true;
	}
	return false;
}
