/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads suspend themselves (tally.cpu.suspend, with what for in their record): whether all
 * of it is barriers of the whole block, and what those become between regions (regions.c). */
#include <string.h>

#include "backends/cpu/kernel_abi.h"
#include "backends/cpu/lower/internal.h"

size_t cpu_record_field(LLVMValueRef thread, LLVMValueRef pointer)
{
	LLVMValueRef record = LLVMGetParam(thread, CPU_THREAD), index;

	if (!LLVMIsAGetElementPtrInst(pointer) || LLVMGetOperand(pointer, 0) != record ||
	    LLVMGetNumOperands(pointer) != 2)
		return SIZE_MAX;
	index = LLVMGetOperand(pointer, 1);
	return LLVMIsAConstantInt(index) ? LLVMConstIntGetZExtValue(index) : SIZE_MAX;
}

/* The store to a field of the record that comes before the suspension `call` in its block. */
static LLVMValueRef stored_before(LLVMValueRef thread, LLVMValueRef call, size_t field)
{
	LLVMValueRef i = call;

	while ((i = LLVMGetPreviousInstruction(i))) {
		const char *name = tally_called_name(i);

		if (name && !strcmp(name, "tally.cpu.suspend"))
			return NULL;
		if (LLVMIsAStoreInst(i) && cpu_record_field(thread, LLVMGetOperand(i, 1)) == field)
			return i;
	}
	return NULL;
}

static const char *check_suspension(LLVMValueRef thread, LLVMValueRef call)
{
	LLVMValueRef head =
		stored_before(thread, call, offsetof(struct tally_cpu_thread, operation));
	uint64_t word;

	if (!head || !LLVMIsAConstantInt(LLVMGetOperand(head, 0)))
		return "a barrier or warp operation with a run-time id, count or mask";
	word = LLVMConstIntGetZExtValue(LLVMGetOperand(head, 0));
	if ((word & 0xff) == TALLY_CPU_YIELD)
		return "a pause, or a loop that waits for memory that its block may write";
	if ((word & 0xff) >= TALLY_CPU_ACTIVE_MASK)
		return "a warp operation";
	if ((word & 0xff) == TALLY_CPU_BARRIER_ARRIVE)
		return "tally.barrier.arrive";
	if (word > 0xff)
		return "a barrier of part of the block";
	if (word != TALLY_CPU_BARRIER &&
	    !stored_before(thread, call, offsetof(struct tally_cpu_thread, value)))
		return "a barrier with a value that is not beside it";
	return NULL;
}

bool cpu_is_suspension(LLVMValueRef i)
{
	const char *name = tally_called_name(i);

	return name && !strcmp(name, "tally.cpu.suspend");
}

/* The suspension whose result is read, which is the last before it; NULL when it is elsewhere. */
static LLVMValueRef suspension_before(LLVMValueRef load)
{
	LLVMBasicBlockRef block = LLVMGetInstructionParent(load);
	LLVMValueRef i = load;

	while (i && !cpu_is_suspension(i))
		i = LLVMGetPreviousInstruction(i);
	if (i)
		return i;
	/* Or it ends the one block that comes before. */
	TALLY_EACH_USE (LLVMBasicBlockAsValue(block), use) {
		LLVMValueRef end = LLVMGetUser(use);

		if (!LLVMIsAInstruction(end) || !LLVMIsATerminatorInst(end) || i)
			return NULL;
		i = end;
	}
	i = i ? LLVMGetPreviousInstruction(i) : NULL;
	return i && cpu_is_suspension(i) ? i : NULL;
}

/* Whether the thread's record is used for nothing but barriers. */
static bool is_plain_record(LLVMValueRef thread)
{
	TALLY_EACH_USE (LLVMGetParam(thread, CPU_THREAD), use) {
		LLVMValueRef user = LLVMGetUser(use);
		size_t field = cpu_record_field(thread, user);

		if (field != offsetof(struct tally_cpu_thread, operation) &&
		    field != offsetof(struct tally_cpu_thread, value) &&
		    field != offsetof(struct tally_cpu_thread, result))
			return false;
		TALLY_EACH_USE (user, access) {
			LLVMValueRef i = LLVMGetUser(access);

			if (field == offsetof(struct tally_cpu_thread, result)
				    ? !LLVMIsALoadInst(i) || !suspension_before(i)
				    : !LLVMIsAStoreInst(i))
				return false;
		}
	}
	return true;
}

const char *cpu_no_regions(LLVMValueRef thread)
{
	const char *reason = NULL;

	TALLY_EACH_BLOCK (thread, at)
		TALLY_EACH_INSTRUCTION (at, i) {
			if (cpu_is_suspension(i) && !reason)
				reason = check_suspension(thread, i);
			if (LLVMIsAAllocaInst(i) &&
			    (at != LLVMGetEntryBasicBlock(thread) ||
			     !LLVMIsAConstantInt(LLVMGetOperand(i, 0)) ||
			     LLVMConstIntGetZExtValue(LLVMGetOperand(i, 0)) != 1 ||
			     LLVMGetAlignment(i) > 64))
				reason =
					"a private variable of run-time size or of large alignment";
			if (LLVMIsAIndirectBrInst(i) || LLVMIsAInvokeInst(i))
				reason = "an indirect branch";
		}
	if (!reason && !is_plain_record(thread))
		reason = "a function that cannot be inlined, or a result far from its barrier";
	return reason;
}

/* The result that was asked for, from how many threads came with a true value. */
static LLVMValueRef barrier_result(struct cpu_lowering *l, LLVMValueRef thread, uint64_t kind)
{
	LLVMTypeRef type = LLVMFunctionType(l->i32, NULL, 0, 0);
	LLVMValueRef count = LLVMGetNamedFunction(l->module, "tally.cpu.count"), threads;

	if (!count)
		count = LLVMAddFunction(l->module, "tally.cpu.count", type);
	count = LLVMBuildCall2(l->builder, type, count, NULL, 0, "");
	threads = cpu_load_field(l, l->i32, LLVMGetParam(thread, CPU_BLOCK),
				 offsetof(struct tally_cpu_block, threads), "");
	if (kind == TALLY_CPU_BARRIER_AND)
		count = LLVMBuildICmp(l->builder, LLVMIntEQ, count, threads, "");
	else if (kind == TALLY_CPU_BARRIER_OR)
		count = LLVMBuildICmp(l->builder, LLVMIntNE, count, LLVMConstNull(l->i32), "");
	return LLVMBuildZExt(l->builder, count, l->i64, "");
}

bool cpu_replace_result(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;
	LLVMValueRef thread = LLVMGetBasicBlockParent(LLVMGetInstructionParent(i)), head;

	if (!LLVMIsALoadInst(i) || cpu_record_field(thread, LLVMGetOperand(i, 0)) !=
					   offsetof(struct tally_cpu_thread, result))
		return true;
	head = stored_before(thread, suspension_before(i),
			     offsetof(struct tally_cpu_thread, operation));
	LLVMPositionBuilderBefore(l->builder, i);
	tally_replace(i,
		      barrier_result(l, thread, LLVMConstIntGetZExtValue(LLVMGetOperand(head, 0))));
	return true;
}

bool cpu_replace_suspension(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;
	LLVMTypeRef type = LLVMFunctionType(l->void_type, &l->i32, 1, 0);
	LLVMValueRef thread, head, value, counted, meet;

	if (!cpu_is_suspension(i))
		return true;
	thread = LLVMGetBasicBlockParent(LLVMGetInstructionParent(i));
	head = stored_before(thread, i, offsetof(struct tally_cpu_thread, operation));
	value = stored_before(thread, i, offsetof(struct tally_cpu_thread, value));
	meet = LLVMGetNamedFunction(l->module, "tally.cpu.meet");
	if (!meet)
		meet = LLVMAddFunction(l->module, "tally.cpu.meet", type);
	LLVMPositionBuilderBefore(l->builder, i);
	counted = LLVMConstNull(l->i32);
	if (LLVMConstIntGetZExtValue(LLVMGetOperand(head, 0)) != TALLY_CPU_BARRIER)
		counted = LLVMBuildTrunc(l->builder, LLVMGetOperand(value, 0), l->i32, "");
	LLVMBuildCall2(l->builder, type, meet, &counted, 1, "");
	LLVMInstructionEraseFromParent(i);
	LLVMInstructionEraseFromParent(head);
	if (value)
		LLVMInstructionEraseFromParent(value);
	return true;
}
