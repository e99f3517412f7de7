/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a coroutine keeps across a suspension. LLVM would rather compute a value again after it than
 * keep it, and keep all operands instead: an unrolled sum of products becomes twice as many loads
 * in the frame. A `freeze` is something that it keeps. One step on a constant may be computed
 * again.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"

struct walk {
	LLVMBasicBlockRef *blocks; /* all of the function, in its order */
	struct tally_numbers numbers;
	unsigned char *seen; /* bit 0: reached, bit 1: reached past a suspension */
	size_t *stack;
	size_t count;
};

static size_t index_of(const struct walk *walk, LLVMBasicBlockRef block)
{
	return tally_numbers_find(&walk->numbers, block);
}

static bool ends_in_suspension(LLVMBasicBlockRef block)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(block), before;
	const char *name;

	before = end ? LLVMGetPreviousInstruction(end) : NULL;
	name = before ? tally_called_name(before) : NULL;
	return name && !strcmp(name, "llvm.coro.suspend");
}

/* Marks the blocks that can be reached from the end of `from` without coming through it again, and
 * whether a suspension lies between. */
static void reach(struct walk *walk, LLVMBasicBlockRef from)
{
	size_t start = index_of(walk, from), depth = 0;

	for (size_t i = 0; i < walk->count; i++)
		walk->seen[i] = 0;
	walk->stack[depth++] = start * 2;
	while (depth) {
		size_t at = walk->stack[--depth];
		LLVMBasicBlockRef block = walk->blocks[at / 2];
		size_t crossed = at % 2 || ends_in_suspension(block);
		LLVMValueRef end = LLVMGetBasicBlockTerminator(block);

		for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++) {
			size_t next = index_of(walk, LLVMGetSuccessor(end, s));
			unsigned char bit = (unsigned char)(1u << crossed);

			if (walk->seen[next] & bit)
				continue;
			walk->seen[next] |= bit;
			if (next != start)
				walk->stack[depth++] = next * 2 + crossed;
		}
	}
}

/* Whether LLVM would compute it again, and that is dearer than keeping it. */
static bool is_dear(LLVMValueRef i)
{
	bool constant = LLVMGetNumOperands(i) == 2 && (LLVMIsAConstant(LLVMGetOperand(i, 0)) ||
						       LLVMIsAConstant(LLVMGetOperand(i, 1)));

	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMFAdd:
	case LLVMFSub:
	case LLVMFMul:
	case LLVMFDiv:
	case LLVMFRem:
	case LLVMSelect:
	case LLVMICmp:
	case LLVMFCmp:
	case LLVMSIToFP:
	case LLVMUIToFP:
	case LLVMFPToSI:
	case LLVMFPToUI:
		return true;
	case LLVMGetElementPtr:
		return !constant;
	default:
		return LLVMIsABinaryOperator(i) && !constant;
	}
}

static bool crosses(const struct walk *walk, LLVMValueRef i)
{
	TALLY_EACH_USE (i, use) {
		LLVMValueRef user = LLVMGetUser(use);

		if (LLVMIsAPHINode(user)) {
			for (unsigned k = 0; k < LLVMCountIncoming(user); k++)
				if (LLVMGetIncomingValue(user, k) == i &&
				    walk->seen[index_of(walk, LLVMGetIncomingBlock(user, k))] & 2)
					return true;
		} else if (walk->seen[index_of(walk, LLVMGetInstructionParent(user))] & 2) {
			return true;
		}
	}
	return false;
}

static void keep(struct cpu_lowering *l, LLVMValueRef i)
{
	LLVMValueRef stand_in, kept;

	LLVMPositionBuilderBefore(l->builder, LLVMGetNextInstruction(i));
	/* Its uses are moved to a value that stands in, so that the freeze's own stays. */
	stand_in = LLVMBuildFreeze(l->builder, LLVMGetPoison(LLVMTypeOf(i)), "");
	LLVMReplaceAllUsesWith(i, stand_in);
	kept = LLVMBuildFreeze(l->builder, i, "");
	tally_replace(stand_in, kept);
}

static void keep_values(struct cpu_lowering *l, LLVMValueRef function, struct walk *walk)
{
	TALLY_EACH_BLOCK (function, block) {
		bool walked = false;

		TALLY_EACH_INSTRUCTION (block, i) {
			if (!is_dear(i) || !LLVMGetFirstUse(i))
				continue;
			if (!walked)
				reach(walk, block);
			walked = true;
			if (crosses(walk, i))
				keep(l, i);
		}
	}
}

bool cpu_keep_values(struct cpu_lowering *l, LLVMValueRef function)
{
	struct walk walk = {.count = 0};
	size_t count = LLVMCountBasicBlocks(function);
	bool ok;

	walk.blocks = calloc(count, sizeof(LLVMBasicBlockRef));
	walk.seen = calloc(count, 1);
	walk.stack = calloc(count * 2 + 1, sizeof *walk.stack);
	ok = walk.blocks && walk.seen && walk.stack && tally_numbers_open(&walk.numbers, count);
	if (ok) {
		TALLY_EACH_BLOCK (function, block) {
			tally_numbers_set(&walk.numbers, block, walk.count);
			walk.blocks[walk.count++] = block;
		}
		keep_values(l, function, &walk);
	}
	free(walk.blocks);
	tally_numbers_close(&walk.numbers);
	free(walk.seen);
	free(walk.stack);
	return ok || tally_fail(l->error, "out of memory");
}
