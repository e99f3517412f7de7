/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seams: barriers that the program has not asked for, at the end of loops that all threads of a
 * block go through together. Between two of them lies one turn of the loop for all threads, which
 * LLVM vectorises over the threads as it would straight code; the loop itself can seldom be (its
 * turns depend on each other). Where the threads' accesses are not side by side, it is left alone.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"

/* Instructions for each value that a thread has to keep from turn to turn, at least. */
enum { WORTH = 3, DEEPEST = 24, MOST_TERMS = 16 };
/* What LLVM unrolls, instructions of all turns: then it is straight code already. */
enum { UNROLLED = 256 };

static const char seam_mark[] = "tally.seam";

struct seams {
	struct cpu_lowering *l;
	struct tally_flow flow;
	LLVMBasicBlockRef block; /* the loop that is looked at */
	bool split;		 /* a divergent induction has become a uniform one */
};

/* How a value grows from thread to thread in x: a factor, or not known. */
struct growth {
	bool known;
	long long by;
};

static struct growth grows(const struct seams *s, LLVMValueRef value, int depth);

static struct growth same(void)
{
	return (struct growth){true, 0};
}

static struct growth unknown(void)
{
	return (struct growth){false, 0};
}

static struct growth plus(struct growth a, struct growth b, int sign)
{
	return (struct growth){a.known && b.known, a.by + sign * b.by};
}

static struct growth times(struct growth a, LLVMValueRef factor)
{
	if (a.known && !a.by)
		return a;
	if (!LLVMIsAConstantInt(factor))
		return unknown();
	return (struct growth){a.known, a.by * LLVMConstIntGetSExtValue(factor)};
}

static struct growth grows_pointer(const struct seams *s, LLVMValueRef i, int depth)
{
	LLVMTargetDataRef layout = LLVMGetModuleDataLayout(s->l->module);
	struct growth base = grows(s, LLVMGetOperand(i, 0), depth), index;

	if (LLVMGetNumOperands(i) != 2)
		return unknown();
	index = grows(s, LLVMGetOperand(i, 1), depth);
	index.by *= (long long)LLVMABISizeOfType(layout, LLVMGetGEPSourceElementType(i));
	return plus(base, index, 1);
}

/* The same for all neighbours when all operands are. */
static struct growth of_operands(const struct seams *s, LLVMValueRef i, int depth)
{
	for (int k = 0; k < LLVMGetNumOperands(i); k++) {
		LLVMValueRef operand = LLVMGetOperand(i, (unsigned)k);
		struct growth g = grows(s, operand, depth);

		if ((LLVMIsAInstruction(operand) || LLVMIsAArgument(operand)) && (!g.known || g.by))
			return unknown();
	}
	return same();
}

static struct growth grows_instruction(const struct seams *s, LLVMValueRef i, int depth)
{
	struct growth a, b;

	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMAdd:
	case LLVMSub:
	case LLVMOr:
		if (LLVMGetInstructionOpcode(i) == LLVMOr && !LLVMGetIsDisjoint(i))
			return of_operands(s, i, depth);
		a = grows(s, LLVMGetOperand(i, 0), depth);
		b = grows(s, LLVMGetOperand(i, 1), depth);
		return plus(a, b, LLVMGetInstructionOpcode(i) == LLVMSub ? -1 : 1);
	case LLVMMul:
		a = grows(s, LLVMGetOperand(i, 0), depth);
		b = grows(s, LLVMGetOperand(i, 1), depth);
		return a.known && b.known && !a.by && !b.by ? same()
							    : times(a, LLVMGetOperand(i, 1));
	case LLVMShl:
		a = grows(s, LLVMGetOperand(i, 0), depth);
		if (a.known && a.by && LLVMIsAConstantInt(LLVMGetOperand(i, 1)))
			return (struct growth){
				true,
				a.by << (LLVMConstIntGetZExtValue(LLVMGetOperand(i, 1)) & 31)};
		return of_operands(s, i, depth);
	case LLVMSExt:
	case LLVMZExt:
	case LLVMTrunc:
	case LLVMPtrToInt:
	case LLVMIntToPtr:
	case LLVMBitCast:
	case LLVMAddrSpaceCast:
		return grows(s, LLVMGetOperand(i, 0), depth);
	case LLVMGetElementPtr:
		return grows_pointer(s, i, depth);
	case LLVMPHI:
	case LLVMAlloca:
	case LLVMCall:
		return unknown();
	default:
		return of_operands(s, i, depth);
	}
}

static struct growth grows(const struct seams *s, LLVMValueRef value, int depth)
{
	LLVMValueRef thread = s->flow.function;

	if (value == LLVMGetParam(thread, CPU_X) || value == LLVMGetParam(thread, CPU_LINEAR))
		return (struct growth){true, 1};
	if (!LLVMIsAInstruction(value))
		return same();
	if (!tally_flow_differs(&s->flow, value))
		return same();
	return depth ? grows_instruction(s, value, depth - 1) : unknown();
}

/* Whether neighbours access the same place, or places side by side. */
static bool is_side_by_side(const struct seams *s, LLVMValueRef i)
{
	bool store = LLVMIsAStoreInst(i);
	LLVMValueRef pointer = LLVMGetOperand(i, store ? 1 : 0);
	LLVMTypeRef type = store ? LLVMTypeOf(LLVMGetOperand(i, 0)) : LLVMTypeOf(i);
	long long size = (long long)LLVMABISizeOfType(LLVMGetModuleDataLayout(s->l->module), type);
	struct growth g = grows(s, pointer, DEEPEST);

	if (LLVMGetVolatile(i) || LLVMIsAtomic(i) || LLVMGetTypeKind(type) == LLVMVectorTypeKind)
		return false;
	return g.known && (g.by == size || (!store && !g.by));
}

/* Arithmetic that has vector instructions. */
static bool is_vector_call(LLVMValueRef i)
{
	static const char *const names[] = {"llvm.fma.",    "llvm.sqrt.",   "llvm.fabs.",
					    "llvm.minnum.", "llvm.maxnum.", "llvm.smin.",
					    "llvm.smax.",   "llvm.umin.",   "llvm.umax.",
					    "llvm.abs.",    "llvm.fmuladd."};
	const char *name = tally_called_name(i);

	for (size_t k = 0; name && k < sizeof names / sizeof *names; k++)
		if (!strncmp(name, names[k], strlen(names[k])))
			return true;
	return false;
}

static bool is_fit(const struct seams *s, LLVMValueRef i)
{
	if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i))
		return is_side_by_side(s, i);
	if (LLVMIsACallInst(i))
		return is_vector_call(i);
	return !LLVMIsAAtomicRMWInst(i) && !LLVMIsAAtomicCmpXchgInst(i) && !LLVMIsAFenceInst(i) &&
	       !LLVMIsAAllocaInst(i);
}

/* The terms of a sum that has `phi` in it once and otherwise what is the same for all threads. */
struct step {
	LLVMValueRef phi, terms[MOST_TERMS];
	bool minus[MOST_TERMS];
	unsigned long long scale[MOST_TERMS]; /* bytes, of an index into memory */
	unsigned count, found;
};

static bool add_term(const struct seams *s, struct step *step, LLVMValueRef value, bool minus,
		     unsigned long long scale)
{
	if (tally_flow_differs(&s->flow, value) || step->count == MOST_TERMS)
		return false;
	step->terms[step->count] = value;
	step->minus[step->count] = minus;
	step->scale[step->count++] = scale;
	return true;
}

static bool add_terms(const struct seams *s, struct step *step, LLVMValueRef value, bool minus);

/* A pointer and a number of bytes. */
static bool add_index(const struct seams *s, struct step *step, LLVMValueRef i)
{
	LLVMTargetDataRef layout = LLVMGetModuleDataLayout(s->l->module);

	return LLVMGetNumOperands(i) == 2 && LLVMTypeOf(LLVMGetOperand(i, 1)) == s->l->i64 &&
	       add_terms(s, step, LLVMGetOperand(i, 0), false) &&
	       add_term(s, step, LLVMGetOperand(i, 1), false,
			LLVMABISizeOfType(layout, LLVMGetGEPSourceElementType(i)));
}

static bool add_terms(const struct seams *s, struct step *step, LLVMValueRef value, bool minus)
{
	LLVMOpcode opcode;

	if (value == step->phi)
		return !minus && !step->found++;
	if (!tally_flow_differs(&s->flow, value))
		return add_term(s, step, value, minus, 1);
	if (LLVMIsAGetElementPtrInst(value))
		return add_index(s, step, value);
	if (!LLVMIsABinaryOperator(value))
		return false;
	opcode = LLVMGetInstructionOpcode(value);
	if (opcode != LLVMAdd && opcode != LLVMSub)
		return false;
	return add_terms(s, step, LLVMGetOperand(value, 0), minus) &&
	       add_terms(s, step, LLVMGetOperand(value, 1), minus != (opcode == LLVMSub));
}

/* A divergent value that grows by the same for all in each turn is what it was at first, and a sum
 * that the block keeps once. */
static bool split_induction(LLVMValueRef phi, void *data)
{
	struct seams *s = data;
	LLVMBuilderRef b = s->l->builder;
	bool pointer = LLVMGetTypeKind(LLVMTypeOf(phi)) == LLVMPointerTypeKind;
	LLVMTypeRef type = pointer ? s->l->i64 : LLVMTypeOf(phi);
	LLVMValueRef incoming[2], sum, next, start, term;
	LLVMBasicBlockRef blocks[2];
	struct step step = {.phi = phi};
	unsigned back;

	if (!LLVMIsAPHINode(phi) || LLVMGetInstructionParent(phi) != s->block ||
	    LLVMCountIncoming(phi) != 2 || LLVMGetTypeKind(type) != LLVMIntegerTypeKind ||
	    !tally_flow_differs(&s->flow, phi))
		return true;
	back = LLVMGetIncomingBlock(phi, 1) == s->block;
	if (LLVMGetIncomingBlock(phi, back) != s->block ||
	    !add_terms(s, &step, LLVMGetIncomingValue(phi, back), false) || step.found != 1)
		return true;
	start = LLVMGetIncomingValue(phi, !back);
	LLVMPositionBuilderBefore(b, phi);
	sum = LLVMBuildPhi(b, type, "");
	LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(s->block));
	next = sum;
	for (unsigned t = 0; t < step.count; t++) {
		term = step.terms[t];
		if (step.scale[t] != 1)
			term = LLVMBuildMul(b, term, LLVMConstInt(type, step.scale[t], 0), "");
		next = step.minus[t] ? LLVMBuildSub(b, next, term, "")
				     : LLVMBuildAdd(b, next, term, "");
	}
	incoming[back] = next;
	incoming[!back] = LLVMConstNull(type);
	blocks[back] = s->block;
	blocks[!back] = LLVMGetIncomingBlock(phi, !back);
	LLVMAddIncoming(sum, incoming, blocks, 2);
	next = LLVMGetNextInstruction(phi);
	while (LLVMIsAPHINode(next))
		next = LLVMGetNextInstruction(next);
	LLVMPositionBuilderBefore(b, next);
	tally_replace(phi, pointer ? LLVMBuildGEP2(b, s->l->i8, start, &sum, 1, "")
				   : LLVMBuildAdd(b, start, sum, ""));
	s->split = true;
	return true;
}

/* Whether the loop of one block `index` is gone through by all threads together. */
static bool is_common_loop(const struct seams *s, size_t index)
{
	LLVMBasicBlockRef block = s->flow.blocks[index];
	LLVMValueRef end = LLVMGetBasicBlockTerminator(block);

	return LLVMIsABranchInst(end) && LLVMIsConditional(end) && !s->flow.apart[index] &&
	       (LLVMGetSuccessor(end, 0) == block) != (LLVMGetSuccessor(end, 1) == block) &&
	       !tally_flow_differs(&s->flow, LLVMGetCondition(end));
}

/* `value` plus a constant, or 0. */
static long long constant_step(LLVMValueRef next, LLVMValueRef value)
{
	if (!LLVMIsABinaryOperator(next) || LLVMGetInstructionOpcode(next) != LLVMAdd ||
	    LLVMGetOperand(next, 0) != value || !LLVMIsAConstantInt(LLVMGetOperand(next, 1)))
		return 0;
	return LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1));
}

/* Whether a comparison with a constant goes on with `value`, which counts up from 0 or more. */
static bool goes_on(LLVMIntPredicate predicate, long long value, long long limit)
{
	switch (predicate) {
	case LLVMIntNE:
		return value != limit;
	case LLVMIntULT:
	case LLVMIntSLT:
		return value < limit;
	case LLVMIntULE:
	case LLVMIntSLE:
		return value <= limit;
	default:
		return true;
	}
}

/* Whether the loop's turns are a constant number, and `most` at most. */
static bool is_short(const struct seams *s, unsigned most)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(s->block), test = LLVMGetCondition(end);
	LLVMValueRef tested, phi = NULL;
	long long value = -1, step = 0, limit;
	bool negated = LLVMGetSuccessor(end, 0) != s->block;

	if (!LLVMIsAICmpInst(test) || !LLVMIsAConstantInt(LLVMGetOperand(test, 1)))
		return false;
	tested = LLVMGetOperand(test, 0);
	limit = LLVMConstIntGetSExtValue(LLVMGetOperand(test, 1));
	TALLY_EACH_INSTRUCTION (s->block, i) {
		unsigned back;

		if (!LLVMIsAPHINode(i) || LLVMCountIncoming(i) != 2 || phi)
			continue;
		back = LLVMGetIncomingBlock(i, 1) == s->block;
		step = constant_step(LLVMGetIncomingValue(i, back), i);
		if (step <= 0 || !LLVMIsAConstantInt(LLVMGetIncomingValue(i, !back)) ||
		    (tested != i && tested != LLVMGetIncomingValue(i, back)))
			continue;
		phi = i;
		value = LLVMConstIntGetSExtValue(LLVMGetIncomingValue(i, !back));
	}
	if (!phi || value < 0 || limit < 0)
		return false;
	if (negated && LLVMGetICmpPredicate(test) != LLVMIntEQ)
		return false;
	for (unsigned turn = 1; turn <= most; turn++, value += step) {
		const long long now = tested == phi ? value : value + step;

		if (negated ? now == limit : !goes_on(LLVMGetICmpPredicate(test), now, limit))
			return true;
	}
	return false;
}

static bool is_worth_it(const struct seams *s)
{
	unsigned kept = 0, work = 0, reads = 0;

	TALLY_EACH_INSTRUCTION (s->block, i) {
		if (LLVMIsAPHINode(i)) {
			kept += tally_flow_differs(&s->flow, i);
			continue;
		}
		if (!is_fit(s, i))
			return false;
		work++;
		reads += LLVMIsALoadInst(i) != NULL;
	}
	return reads && work >= kept * WORTH && !is_short(s, UNROLLED / (work + 1));
}

static bool open_flow(struct seams *s, LLVMValueRef thread)
{
	return tally_flow_open(thread, &cpu_flow_rules, &s->flow) && tally_flow_diverge(&s->flow);
}

/* Splits inductions of all such loops, whether they get a seam or not: it costs an addition. */
static bool split_inductions(struct seams *s, LLVMValueRef thread)
{
	for (size_t k = 0; k < s->flow.count; k++) {
		s->block = s->flow.blocks[k];
		if (is_common_loop(s, k) && !tally_visit_instructions(thread, split_induction, s))
			return false;
	}
	if (!s->split)
		return true;
	tally_flow_close(&s->flow);
	return open_flow(s, thread);
}

static void put_seam(struct seams *s, LLVMValueRef thread)
{
	struct cpu_lowering *l = s->l;
	LLVMValueRef call;

	LLVMPositionBuilderBefore(l->builder, LLVMGetBasicBlockTerminator(s->block));
	call = cpu_build_suspension(l, thread, TALLY_CPU_BARRIER);
	LLVMSetMetadata(call, LLVMGetMDKindIDInContext(l->context, seam_mark, sizeof seam_mark - 1),
			LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0)));
}

bool cpu_make_seams(struct cpu_lowering *l, struct cpu_kernel *kernel, bool *any)
{
	struct seams s = {.l = l};
	bool ok = open_flow(&s, kernel->thread) && split_inductions(&s, kernel->thread);

	*any = false;
	for (size_t k = 0; ok && k < s.flow.count; k++) {
		s.block = s.flow.blocks[k];
		if (!is_common_loop(&s, k) || !is_worth_it(&s))
			continue;
		put_seam(&s, kernel->thread);
		*any = true;
	}
	tally_flow_close(&s.flow);
	return ok || tally_fail(l->error, "out of memory");
}

static bool remove_seam(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;
	unsigned kind = LLVMGetMDKindIDInContext(l->context, seam_mark, sizeof seam_mark - 1);

	if (LLVMIsACallInst(i) && LLVMGetMetadata(i, kind))
		LLVMInstructionEraseFromParent(i);
	return true;
}

bool cpu_remove_seams(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	return tally_visit_instructions(kernel->thread, remove_seam, l) ||
	       tally_fail(l->error, "out of memory");
}
