/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that poll memory. On a GPU the block's other threads go on meanwhile; here they run on
 * the same thread of the host, so a loop that waits for one of them has to let them. Each turn of
 * such a loop ends in a suspension, which makes coroutines of the kernel's threads. A loop that no
 * thread of the block can be meant for (nobody else writes memory between the barriers around it)
 * waits for other blocks: it only gives the processor away now and then.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"
#include "ir_passes/waits.h"

enum { ZERO_X = 1, ZERO_Y = 2, ZERO_Z = 4, THREAD_ZERO = 7 };

/* Of a block: its part before its first suspension, and that after its last; without one both are
 * all of it. */
enum { HEAD = 1, TAIL = 2, WHOLE = 3 };

/* What is done about a block that may go round another time. */
enum way { NOT_A_WAIT, FOR_THIS_BLOCK, FOR_OTHER_BLOCKS };

struct polls {
	struct cpu_lowering *l;
	struct cpu_kernel *kernel;
	struct tally_flow flow;
	struct tally_waits waits;
	unsigned char *zero; /* by block: thread ids that are 0 in whoever runs it */
	unsigned char *near; /* by block: parts between the same barriers as the wait in question */
	enum way *way;	     /* by block */
	bool *first_stays;   /* by block: whether its first successor is the way round */
};

static bool is_in_variable(LLVMValueRef pointer)
{
	while (LLVMIsAGetElementPtrInst(pointer) || LLVMIsAAddrSpaceCastInst(pointer))
		pointer = LLVMGetOperand(pointer, 0);
	return LLVMIsAAllocaInst(pointer) != NULL;
}

static bool is_private(LLVMValueRef pointer)
{
	return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == TALLY_AS_PRIVATE ||
	       is_in_variable(pointer);
}

/* Whether an atomic operation leaves memory as it found it when it comes a second time, so that
 * asking again is all that the loop does. */
static bool is_question(const struct tally_waits *waits, LLVMValueRef i)
{
	LLVMValueRef value = LLVMGetOperand(i, 1);

	if (tally_wait_turns(waits, LLVMGetOperand(i, 0), i) || tally_wait_turns(waits, value, i))
		return false;
	if (LLVMIsAAtomicCmpXchgInst(i))
		return !tally_wait_turns(waits, LLVMGetOperand(i, 2), i);
	switch (LLVMGetAtomicRMWBinOp(i)) {
	case LLVMAtomicRMWBinOpAdd:
	case LLVMAtomicRMWBinOpSub:
	case LLVMAtomicRMWBinOpXor:
		return LLVMIsNull(value);
	case LLVMAtomicRMWBinOpXchg:
	case LLVMAtomicRMWBinOpAnd:
	case LLVMAtomicRMWBinOpOr:
	case LLVMAtomicRMWBinOpMax:
	case LLVMAtomicRMWBinOpMin:
	case LLVMAtomicRMWBinOpUMax:
	case LLVMAtomicRMWBinOpUMin:
		return true;
	default:
		return false;
	}
}

static bool is_look(const struct tally_waits *waits, LLVMValueRef i)
{
	if (LLVMIsALoadInst(i))
		return (LLVMGetVolatile(i) || LLVMIsAtomic(i)) && !is_private(LLVMGetOperand(i, 0));
	return (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i)) && is_question(waits, i);
}

/* Functions that are not inlined may do anything, and a suspension has let the others run. */
static bool is_quiet(LLVMValueRef i)
{
	const char *name = tally_called_name(i);

	if (LLVMIsAStoreInst(i))
		return is_private(LLVMGetOperand(i, 1));
	return !LLVMIsACallInst(i) || (name && !strncmp(name, "llvm.", 5));
}

static const struct tally_wait_rules rules = {.look = is_look, .quiet = is_quiet};

/* Adds to `bits` the thread ids that a sum holds, each counted once and with the same sign. */
static bool sum_of_ids(LLVMValueRef thread, LLVMValueRef value, int sign, int *bits, int *signs)
{
	unsigned bit = value == LLVMGetParam(thread, CPU_X)	   ? ZERO_X
		       : value == LLVMGetParam(thread, CPU_Y)	   ? ZERO_Y
		       : value == LLVMGetParam(thread, CPU_Z)	   ? ZERO_Z
		       : value == LLVMGetParam(thread, CPU_LINEAR) ? THREAD_ZERO
								   : 0;

	if (bit) {
		bool once = !(*bits & (int)bit) && (!*signs || *signs == sign);

		*bits |= (int)bit;
		*signs = sign;
		return once;
	}
	if (LLVMIsAConstantInt(value))
		return LLVMIsNull(value);
	if (LLVMIsAZExtInst(value))
		return sum_of_ids(thread, LLVMGetOperand(value, 0), sign, bits, signs);
	if (!LLVMIsABinaryOperator(value))
		return false;
	switch (LLVMGetInstructionOpcode(value)) {
	case LLVMAdd:
	case LLVMOr:
		return sum_of_ids(thread, LLVMGetOperand(value, 0), sign, bits, signs) &&
		       sum_of_ids(thread, LLVMGetOperand(value, 1), sign, bits, signs);
	case LLVMSub:
		return sum_of_ids(thread, LLVMGetOperand(value, 0), sign, bits, signs) &&
		       sum_of_ids(thread, LLVMGetOperand(value, 1), -sign, bits, signs);
	default:
		return false;
	}
}

/* The thread ids that must be 0 for a condition to come out as `wanted`. Sums of them are small:
 * they are 0 only when all are. */
static int zeros_of(LLVMValueRef thread, LLVMValueRef condition, bool wanted)
{
	int bits = 0, signs = 0;

	if (LLVMIsAICmpInst(condition)) {
		LLVMIntPredicate predicate = LLVMGetICmpPredicate(condition);

		if (predicate != (wanted ? LLVMIntEQ : LLVMIntNE) ||
		    !sum_of_ids(thread, LLVMGetOperand(condition, 0), 1, &bits, &signs) ||
		    !sum_of_ids(thread, LLVMGetOperand(condition, 1), -1, &bits, &signs))
			return 0;
		return bits;
	}
	if (LLVMIsABinaryOperator(condition) &&
	    LLVMGetInstructionOpcode(condition) == (wanted ? LLVMAnd : LLVMOr))
		return zeros_of(thread, LLVMGetOperand(condition, 0), wanted) |
		       zeros_of(thread, LLVMGetOperand(condition, 1), wanted);
	return 0;
}

/* Gives `bits` to all blocks to which every way leads over one edge. */
static void mark_behind(struct polls *p, size_t from, unsigned edge, int bits)
{
	struct tally_flow *flow = &p->flow;
	size_t depth = 0, entry = tally_flow_index(flow, LLVMGetEntryBasicBlock(flow->function));

	memset(flow->seen, 0, flow->count);
	flow->seen[entry] = 1;
	flow->stack[depth++] = entry;
	while (depth) {
		size_t b = flow->stack[--depth];

		for (unsigned s = 0; s < tally_flow_successors(flow, b); s++) {
			size_t next = tally_flow_successor(flow, b, s);

			if ((b != from || s != edge) && !flow->seen[next]++)
				flow->stack[depth++] = next;
		}
	}
	for (size_t b = 0; b < flow->count; b++)
		if (!flow->seen[b])
			p->zero[b] |= (unsigned char)bits;
}

/* Finds the blocks that thread 0 alone runs. */
static void find_alone(struct polls *p)
{
	const uint32_t *required = p->kernel->record.required;
	int always = (required[0] == 1 ? ZERO_X : 0) | (required[1] == 1 ? ZERO_Y : 0) |
		     (required[2] == 1 ? ZERO_Z : 0);

	memset(p->zero, always, p->flow.count);
	for (size_t b = 0; b < p->flow.count; b++) {
		LLVMValueRef end = LLVMGetBasicBlockTerminator(p->flow.blocks[b]);

		if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end))
			continue;
		for (unsigned edge = 0; edge < 2; edge++) {
			int bits = zeros_of(p->kernel->thread, LLVMGetCondition(end), !edge);

			if (bits)
				mark_behind(p, b, edge, bits);
		}
	}
}

/* Marks what runs between the same barriers as block `at`: back to those before it, and from there
 * as far as the next. */
static void find_near(struct polls *p, size_t at)
{
	struct tally_flow *flow = &p->flow;
	size_t depth = 0;

	memset(p->near, 0, flow->count);
	p->near[at] = WHOLE;
	flow->stack[depth++] = at;
	while (depth) {
		size_t b = flow->stack[--depth];

		for (size_t k = flow->from[b]; k < flow->from[b + 1]; k++) {
			size_t before = flow->preds[k];

			if (!p->near[before] && !flow->meets[before])
				flow->stack[depth++] = before;
			p->near[before] |= flow->meets[before] ? TAIL : WHOLE;
		}
	}
	for (size_t b = 0; b < flow->count; b++)
		if (p->near[b])
			flow->stack[depth++] = b;
	while (depth) {
		size_t b = flow->stack[--depth];

		for (unsigned s = 0; s < tally_flow_successors(flow, b); s++) {
			size_t next = tally_flow_successor(flow, b, s);

			if (!p->near[next] && !flow->meets[next])
				flow->stack[depth++] = next;
			p->near[next] |= flow->meets[next] ? HEAD : WHOLE;
		}
	}
}

static bool is_suspension(LLVMValueRef i)
{
	const char *name = tally_called_name(i);

	return name && !strcmp(name, "tally.cpu.suspend");
}

/* Whether the instruction may write what other threads see. */
static bool writes(LLVMValueRef i)
{
	const char *name = tally_called_name(i);

	if (LLVMIsAStoreInst(i))
		return !is_private(LLVMGetOperand(i, 1)) &&
		       !(LLVMIsAGetElementPtrInst(LLVMGetOperand(i, 1)) &&
			 LLVMIsAArgument(LLVMGetOperand(LLVMGetOperand(i, 1), 0)));
	if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i))
		return true;
	if (!LLVMIsACallInst(i))
		return false;
	/* Writes private memory, or others' as a store does. */
	return !name || (strncmp(name, "tally.cpu.", 10) && strncmp(name, "llvm.lifetime", 13) &&
			 !tally_flow_pure_intrinsic(i));
}

/* Whether the part of a block writes. */
static bool part_writes(LLVMBasicBlockRef block, bool head, bool tail)
{
	LLVMValueRef last = LLVMGetLastInstruction(block);

	while (last && !is_suspension(last))
		last = LLVMGetPreviousInstruction(last);
	TALLY_EACH_INSTRUCTION (block, i) {
		if (is_suspension(i))
			head = false;
		if ((head || (tail && !last)) && writes(i))
			return true;
		if (i == last)
			last = NULL;
	}
	return false;
}

/* Whether what the wait in block `at` looks at may be written by another thread of the block while
 * it waits. */
static bool may_be_answered_here(struct polls *p, size_t at)
{
	find_near(p, at);
	for (size_t b = 0; b < p->flow.count; b++)
		if (!(p->zero[at] == THREAD_ZERO && p->zero[b] == THREAD_ZERO) &&
		    part_writes(p->flow.blocks[b], p->near[b] & HEAD, p->near[b] & TAIL))
			return true;
	return false;
}

static void build_rest(struct cpu_lowering *l, LLVMValueRef thread)
{
	LLVMTypeRef type = LLVMFunctionType(l->void_type, &l->ptr, 1, 0);
	LLVMValueRef block = LLVMGetParam(thread, CPU_BLOCK), services, rest;

	services = cpu_load_field(l, l->ptr, block, offsetof(struct tally_cpu_block, services), "");
	rest = cpu_load_field(l, l->ptr, services, offsetof(struct tally_cpu_services, rest), "");
	LLVMBuildCall2(l->builder, type, rest, &block, 1, "");
}

/* Gives way in front of another turn of the loop that `block` may leave. The block's end stays
 * where its successors' phis know it. */
static void give_way(struct polls *p, size_t index)
{
	struct cpu_lowering *l = p->l;
	LLVMBasicBlockRef tail = p->flow.blocks[index], first, way;
	LLVMValueRef end = LLVMGetBasicBlockTerminator(tail), thread = p->kernel->thread;

	first = cpu_split_before(l, end);
	way = LLVMInsertBasicBlockInContext(l->context, tail, "");
	LLVMPositionBuilderAtEnd(l->builder, first);
	if (!LLVMIsABranchInst(end))
		LLVMBuildBr(l->builder, way);
	else
		LLVMBuildCondBr(l->builder, LLVMGetCondition(end),
				p->first_stays[index] ? way : tail,
				p->first_stays[index] ? tail : way);
	LLVMPositionBuilderAtEnd(l->builder, way);
	if (p->way[index] == FOR_THIS_BLOCK)
		cpu_build_suspension(l, thread, TALLY_CPU_YIELD);
	else
		build_rest(l, thread);
	LLVMBuildBr(l->builder, tail);
}

static bool find(struct polls *p)
{
	struct tally_flow *flow = &p->flow;

	if (!tally_flow_open(p->kernel->thread, &cpu_flow_rules, flow) ||
	    !tally_waits_open(flow, &rules, &p->waits))
		return false;
	p->zero = calloc(flow->count, sizeof *p->zero);
	p->near = calloc(flow->count, sizeof *p->near);
	p->way = calloc(flow->count, sizeof *p->way);
	p->first_stays = calloc(flow->count, sizeof *p->first_stays);
	if (!p->zero || !p->near || !p->way || !p->first_stays)
		return false;
	for (size_t b = 0; b < flow->count; b++) {
		flow->meets[b] = false;
		TALLY_EACH_INSTRUCTION (flow->blocks[b], i)
			flow->meets[b] |= is_suspension(i);
	}
	find_alone(p);
	for (size_t b = 0; b < flow->count; b++) {
		if (!p->waits.leaves[b])
			continue;
		p->way[b] = may_be_answered_here(p, b) ? FOR_THIS_BLOCK : FOR_OTHER_BLOCKS;
		p->first_stays[b] =
			p->waits.ring[tally_flow_successor(flow, b, 0)] == p->waits.ring[b];
	}
	return true;
}

static bool let_others_run(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	struct polls p = {.l = l, .kernel = kernel};
	bool ok = find(&p);

	for (size_t b = 0; ok && b < p.flow.count; b++)
		if (p.way[b] != NOT_A_WAIT)
			give_way(&p, b);
	free(p.zero);
	free(p.near);
	free(p.way);
	free(p.first_stays);
	tally_waits_close(&p.waits);
	tally_flow_close(&p.flow);
	return ok;
}

bool cpu_yield_in_polls(struct cpu_lowering *l)
{
	for (size_t i = 0; i < l->kernel_count; i++)
		if (!let_others_run(l, &l->kernels[i]))
			return tally_fail(l->error, "out of memory");
	return true;
}
