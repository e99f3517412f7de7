/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One region of a kernel: what a thread does from one barrier to the next, as a function. Code that
 * can be reached from several barriers is in several regions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"

enum {
	REGION_PARAMS,
	REGION_BLOCK,
	REGION_CONTEXT,
	REGION_IN,
	REGION_OUT,
	REGION_THREADS,
	REGION_X,
	REGION_Y,
	REGION_Z,
	REGION_LINEAR,
	REGION_PARAM_COUNT
};

struct pair {
	LLVMValueRef from, to;
};

struct region {
	struct cpu_lowering *l;
	struct tally_flow *flow;
	const struct cpu_context_layout *layout;
	LLVMValueRef function;
	LLVMBasicBlockRef *copies;    /* by block of the flow; NULL: not in the region */
	const unsigned *next;	      /* by block of the flow */
	struct pair *map;	      /* instructions and their copies */
	struct tally_numbers numbers; /* places in `map` */
	size_t count;
	LLVMValueRef *places; /* by slot: here, NULL when the region does not name it */
	bool *written;	      /* by slot */
};

static LLVMValueRef copy_of(const struct region *r, LLVMValueRef value)
{
	static const unsigned params[CPU_THREAD_PARAMS] = {
		[CPU_PARAMS] = REGION_PARAMS, [CPU_BLOCK] = REGION_BLOCK,
		[CPU_X] = REGION_X,	      [CPU_Y] = REGION_Y,
		[CPU_Z] = REGION_Z,	      [CPU_LINEAR] = REGION_LINEAR,
	};
	size_t found;

	if (LLVMIsAArgument(value)) {
		for (unsigned p = 0; p < CPU_THREAD_PARAMS; p++)
			if (value == LLVMGetParam(r->flow->function, p))
				return LLVMGetParam(r->function, params[p]);
		return value;
	}
	if (!LLVMIsAInstruction(value))
		return value;
	found = tally_numbers_find(&r->numbers, value);
	return found == TALLY_NO_NUMBER ? value : r->map[found].to;
}

/* The blocks of the region get empty copies. Returns how many instructions they have. */
static size_t find_blocks(struct region *r, size_t start)
{
	size_t depth = 0, instructions = 0;

	memset(r->flow->seen, 0, r->flow->count);
	r->flow->seen[start] = 1;
	r->flow->stack[depth++] = start;
	while (depth) {
		size_t b = r->flow->stack[--depth];
		LLVMValueRef end = LLVMGetBasicBlockTerminator(r->flow->blocks[b]);

		for (unsigned s = 0; !r->flow->meets[b] && s < LLVMGetNumSuccessors(end); s++) {
			size_t n = tally_flow_index(r->flow, LLVMGetSuccessor(end, s));

			if (!r->flow->seen[n]) {
				r->flow->seen[n] = 1;
				r->flow->stack[depth++] = n;
			}
		}
	}
	TALLY_EACH_BLOCK (r->flow->function, block) {
		size_t b = tally_flow_index(r->flow, block);

		if (!r->flow->seen[b])
			continue;
		r->copies[b] = LLVMAppendBasicBlockInContext(r->l->context, r->function, "");
		TALLY_EACH_INSTRUCTION (block, i)
			instructions++;
	}
	return instructions;
}

/* Which slots the region names, and which it writes. */
static void find_slots(struct region *r, bool *named)
{
	for (size_t s = 0; s < r->layout->count; s++) {
		LLVMValueRef variable = r->layout->slots[s].variable;

		TALLY_EACH_USE (variable, use) {
			LLVMValueRef user = LLVMGetUser(use);
			size_t b = tally_flow_index(r->flow, LLVMGetInstructionParent(user));

			if (LLVMIsAPHINode(user))
				named[s] = true;
			if (!r->copies[b])
				continue;
			named[s] = true;
			r->written[s] |= LLVMIsAStoreInst(user) != NULL;
		}
	}
}

/* Where a slot is kept between regions. */
static LLVMValueRef slot_address(struct region *r, const struct cpu_slot *slot, unsigned once)
{
	LLVMBuilderRef b = r->l->builder;
	LLVMTypeRef i64 = r->l->i64;
	LLVMValueRef offset = LLVMConstInt(i64, slot->offset, 0), base, index;

	if (slot->once)
		return LLVMBuildInBoundsGEP2(b, r->l->i8, LLVMGetParam(r->function, once), &offset,
					     1, "");
	offset = LLVMBuildNUWMul(b, LLVMGetParam(r->function, REGION_THREADS), offset, "");
	base = LLVMBuildInBoundsGEP2(b, r->l->i8, LLVMGetParam(r->function, REGION_CONTEXT),
				     &offset, 1, "");
	index = LLVMBuildZExt(b, LLVMGetParam(r->function, REGION_LINEAR), i64, "");
	if (!slot->own)
		return LLVMBuildInBoundsGEP2(b, slot->type, base, &index, 1, "");
	index = LLVMBuildNUWMul(b, index, LLVMConstInt(i64, slot->bytes, 0), "");
	return LLVMBuildInBoundsGEP2(b, r->l->i8, base, &index, 1, "");
}

/* At the start of the region: its own copy of each slot that it names. */
static void open_slots(struct region *r, const bool *named)
{
	LLVMBuilderRef b = r->l->builder;

	for (size_t s = 0; s < r->layout->count; s++) {
		const struct cpu_slot *slot = &r->layout->slots[s];
		LLVMValueRef value;

		if (!named[s])
			continue;
		if (slot->own) {
			r->places[s] = slot_address(r, slot, REGION_IN);
			if (LLVMTypeOf(r->places[s]) != LLVMTypeOf(slot->variable))
				r->places[s] = LLVMBuildAddrSpaceCast(
					b, r->places[s], LLVMTypeOf(slot->variable), "");
			continue;
		}
		r->places[s] = LLVMBuildAlloca(b, slot->type, "");
		value = LLVMBuildLoad2(b, slot->type, slot_address(r, slot, REGION_IN), "");
		LLVMBuildStore(b, value, r->places[s]);
	}
}

/* At an end of the region. */
static void close_slots(struct region *r)
{
	LLVMBuilderRef b = r->l->builder;

	for (size_t s = 0; s < r->layout->count; s++) {
		const struct cpu_slot *slot = &r->layout->slots[s];

		if (r->written[s] && !slot->own)
			LLVMBuildStore(b, LLVMBuildLoad2(b, slot->type, r->places[s], ""),
				       slot_address(r, slot, REGION_OUT));
	}
}

/* Counts this thread in a barrier that asks how many. All accesses of this kind depend on each
 * other: they are volatile until accesses are marked (regions.c takes that away). */
static void arrive(struct region *r, LLVMValueRef meet)
{
	LLVMBuilderRef b = r->l->builder;
	LLVMValueRef place = LLVMGetParam(r->function, REGION_OUT), count;
	LLVMValueRef add = copy_of(r, LLVMGetOperand(meet, 0));

	if (LLVMIsAConstantInt(add) && !LLVMConstIntGetZExtValue(add))
		return;
	count = LLVMBuildLoad2(b, r->l->i32, place, "");
	LLVMSetVolatile(count, 1);
	LLVMSetVolatile(LLVMBuildStore(b, LLVMBuildAdd(b, count, add, ""), place), 1);
}

static void add_pair(struct region *r, LLVMValueRef from, LLVMValueRef to)
{
	tally_numbers_set(&r->numbers, from, r->count);
	r->map[r->count++] = (struct pair){from, to};
}

static void copy_instruction(struct region *r, LLVMValueRef i)
{
	LLVMBuilderRef b = r->l->builder;
	const char *name = tally_called_name(i);
	LLVMValueRef copy;

	if (LLVMIsAAllocaInst(i))
		return;
	if (LLVMIsAPHINode(i)) {
		copy = LLVMBuildPhi(b, LLVMTypeOf(i), "");
	} else if (name && !strcmp(name, "tally.cpu.count")) {
		copy = LLVMBuildLoad2(b, r->l->i32, LLVMGetParam(r->function, REGION_IN), "");
	} else {
		copy = LLVMInstructionClone(i);
		LLVMInsertIntoBuilder(b, copy);
	}
	add_pair(r, i, copy);
}

/* First all copies, then what they name: a phi names later instructions. The ends of blocks come
 * with the second. */
static void copy_block(struct region *r, size_t index)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(r->flow->blocks[index]);

	LLVMPositionBuilderAtEnd(r->l->builder, r->copies[index]);
	TALLY_EACH_INSTRUCTION (r->flow->blocks[index], i) {
		const char *name = tally_called_name(i);

		if (i != end && !(name && !strcmp(name, "tally.cpu.meet")))
			copy_instruction(r, i);
	}
}

static void connect_phi(struct region *r, LLVMValueRef i, LLVMValueRef copy)
{
	for (unsigned k = 0; k < LLVMCountIncoming(i); k++) {
		LLVMBasicBlockRef from =
			r->copies[tally_flow_index(r->flow, LLVMGetIncomingBlock(i, k))];
		LLVMValueRef value = copy_of(r, LLVMGetIncomingValue(i, k));

		if (from)
			LLVMAddIncoming(copy, &value, &from, 1);
	}
}

static void connect(struct region *r, LLVMValueRef i, LLVMValueRef copy)
{
	for (int k = 0; k < LLVMGetNumOperands(i); k++) {
		LLVMValueRef operand = LLVMGetOperand(i, (unsigned)k);

		if (LLVMIsAInstruction(operand) || LLVMIsAArgument(operand))
			LLVMSetOperand(copy, (unsigned)k, copy_of(r, operand));
	}
}

static void end_block(struct region *r, size_t index)
{
	LLVMBasicBlockRef block = r->flow->blocks[index];
	LLVMValueRef end = LLVMGetBasicBlockTerminator(block), copy;
	LLVMBuilderRef b = r->l->builder;
	unsigned next = 0;

	LLVMPositionBuilderAtEnd(b, r->copies[index]);
	if (r->flow->meets[index] || LLVMIsAReturnInst(end)) {
		if (r->flow->meets[index]) {
			arrive(r, LLVMGetPreviousInstruction(end));
			next = r->next[tally_flow_index(r->flow, LLVMGetSuccessor(end, 0))];
		}
		close_slots(r);
		LLVMBuildRet(b, LLVMConstInt(r->l->i32, next, 0));
		return;
	}
	copy = LLVMInstructionClone(end);
	LLVMInsertIntoBuilder(b, copy);
	connect(r, end, copy);
	for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++)
		LLVMSetSuccessor(copy, s,
				 r->copies[tally_flow_index(r->flow, LLVMGetSuccessor(end, s))]);
}

static void copy_blocks(struct region *r)
{
	struct pair *pairs;

	for (size_t b = 0; b < r->flow->count; b++)
		if (r->copies[b])
			copy_block(r, b);
	for (size_t s = 0; s < r->layout->count; s++)
		if (r->places[s])
			add_pair(r, r->layout->slots[s].variable, r->places[s]);
	pairs = r->map;
	for (size_t p = 0; p < r->count; p++) {
		if (LLVMIsAPHINode(pairs[p].from))
			connect_phi(r, pairs[p].from, pairs[p].to);
		else if (!LLVMIsAAllocaInst(pairs[p].from) && LLVMIsACallInst(pairs[p].from) &&
			 LLVMIsALoadInst(pairs[p].to))
			continue; /* a barrier's count */
		else if (!LLVMIsAAllocaInst(pairs[p].from))
			connect(r, pairs[p].from, pairs[p].to);
	}
	for (size_t b = 0; b < r->flow->count; b++)
		if (r->copies[b])
			end_block(r, b);
}

static bool fill(struct region *r, size_t start)
{
	LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(r->l->context, r->function, "");
	bool *named = calloc(r->layout->count + 1, sizeof *named);
	size_t most;

	r->copies = calloc(r->flow->count, sizeof(LLVMBasicBlockRef));
	r->places = calloc(r->layout->count + 1, sizeof(LLVMValueRef));
	r->written = calloc(r->layout->count + 1, sizeof *r->written);
	if (!named || !r->copies || !r->places || !r->written) {
		free(named);
		return false;
	}
	most = find_blocks(r, start) + r->layout->count;
	r->map = calloc(most + 1, sizeof *r->map);
	if (r->map && tally_numbers_open(&r->numbers, most)) {
		find_slots(r, named);
		LLVMPositionBuilderAtEnd(r->l->builder, entry);
		open_slots(r, named);
		LLVMBuildBr(r->l->builder, r->copies[start]);
		copy_blocks(r);
	}
	free(named);
	return r->map && r->numbers.slots;
}

LLVMValueRef cpu_make_region(struct cpu_lowering *l, struct cpu_kernel *kernel,
			     struct tally_flow *flow, const struct cpu_context_layout *layout,
			     size_t start, const unsigned *next, unsigned index)
{
	LLVMTypeRef params[REGION_PARAM_COUNT] = {l->ptr, l->ptr, l->ptr, l->ptr, l->ptr,
						  l->i64, l->i32, l->i32, l->i32, l->i32};
	struct region r = {.l = l, .flow = flow, .layout = layout, .next = next};
	char name[64];
	bool ok;

	snprintf(name, sizeof name, "k%u.r%u", kernel->index, index);
	r.function = LLVMAddFunction(l->module, name,
				     LLVMFunctionType(l->i32, params, REGION_PARAM_COUNT, 0));
	tally_add_attribute(r.function, "nounwind", 0);
	tally_add_attribute(r.function, "alwaysinline", 0);
	ok = fill(&r, start);
	free(r.copies);
	free(r.places);
	free(r.written);
	free(r.map);
	tally_numbers_close(&r.numbers);
	return ok ? r.function : NULL;
}
