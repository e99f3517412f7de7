/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which values and branches are the same for all threads of a block, and whether that makes all
 * threads come to the same barriers together. Values are divergent that depend on who the thread
 * is, on memory that somebody may write, or on which way a thread came.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"

static int by_address(const void *a, const void *b)
{
	LLVMBasicBlockRef x = *(const LLVMBasicBlockRef *)a, y = *(const LLVMBasicBlockRef *)b;

	return (x > y) - (x < y);
}

size_t cpu_flow_index(const struct cpu_flow *flow, LLVMBasicBlockRef block)
{
	LLVMBasicBlockRef *found =
		bsearch(&block, flow->blocks, flow->count, sizeof *flow->blocks, by_address);

	return (size_t)(found - flow->blocks);
}

static unsigned successors(const struct cpu_flow *flow, size_t block)
{
	return LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(flow->blocks[block]));
}

static size_t successor(const struct cpu_flow *flow, size_t block, unsigned s)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[block]);

	return cpu_flow_index(flow, LLVMGetSuccessor(end, s));
}

static bool ends_in_barrier(LLVMBasicBlockRef block)
{
	LLVMValueRef before = LLVMGetPreviousInstruction(LLVMGetBasicBlockTerminator(block));
	const char *name = before ? tally_called_name(before) : NULL;

	return name && (!strcmp(name, "tally.cpu.meet") || !strcmp(name, "tally.cpu.suspend"));
}

static bool list_predecessors(struct cpu_flow *flow)
{
	size_t edges = 0, *next = calloc(flow->count + 1, sizeof *next);

	flow->from = calloc(flow->count + 1, sizeof *flow->from);
	if (!next || !flow->from) {
		free(next);
		return false;
	}
	for (size_t b = 0; b < flow->count; b++)
		for (unsigned s = 0; s < successors(flow, b); s++, edges++)
			flow->from[successor(flow, b, s) + 1]++;
	for (size_t b = 0; b < flow->count; b++)
		flow->from[b + 1] += flow->from[b];
	memcpy(next, flow->from, (flow->count + 1) * sizeof *next);
	flow->preds = calloc(edges + 1, sizeof *flow->preds);
	for (size_t b = 0; flow->preds && b < flow->count; b++)
		for (unsigned s = 0; s < successors(flow, b); s++)
			flow->preds[next[successor(flow, b, s)]++] = b;
	free(next);
	return flow->preds != NULL;
}

struct order {
	size_t *list;  /* blocks in post-order of the walk from the end against the flow */
	size_t *place; /* in the list, by block; CPU_NOWHERE: does not reach the end */
	size_t count;
};

static void visit_backwards(struct cpu_flow *flow, struct order *order, size_t root, size_t *cursor)
{
	size_t depth = 0;

	flow->stack[depth++] = root;
	flow->seen[root] = 1;
	cursor[root] = flow->from[root];
	while (depth) {
		size_t b = flow->stack[depth - 1];

		if (cursor[b] < flow->from[b + 1]) {
			size_t p = flow->preds[cursor[b]++];

			if (flow->seen[p])
				continue;
			flow->seen[p] = 1;
			cursor[p] = flow->from[p];
			flow->stack[depth++] = p;
		} else {
			order->place[b] = order->count;
			order->list[order->count++] = b;
			depth--;
		}
	}
}

/* The end of the function has the highest place of all. */
static size_t place_of(const struct cpu_flow *flow, const struct order *order, size_t b)
{
	return b == flow->count ? order->count : order->place[b];
}

static size_t intersect(const struct cpu_flow *flow, const struct order *order, size_t a, size_t b)
{
	while (a != b) {
		while (place_of(flow, order, a) < place_of(flow, order, b))
			a = flow->after[a];
		while (place_of(flow, order, b) < place_of(flow, order, a))
			b = flow->after[b];
	}
	return a;
}

/* Immediate post-dominators of blocks that reach a return (traps and assertions end the whole
 * block: nobody waits for their threads), by Cooper, Harvey and Kennedy's iteration. */
static void iterate(struct cpu_flow *flow, const struct order *order)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = order->count; i-- > 0;) {
			size_t b = order->list[i], after = CPU_NOWHERE;
			unsigned n = successors(flow, b);

			if (!n)
				after = flow->count;
			for (unsigned s = 0; s < n; s++) {
				size_t next = successor(flow, b, s);

				if (flow->after[next] == CPU_NOWHERE)
					continue;
				after = after == CPU_NOWHERE ? next
							     : intersect(flow, order, after, next);
			}
			changed |= flow->after[b] != after;
			flow->after[b] = after;
		}
	}
}

static bool find_post_dominators(struct cpu_flow *flow)
{
	struct order order = {.count = 0};
	size_t *cursor = calloc(flow->count + 1, sizeof *cursor);
	bool ok;

	order.list = calloc(flow->count + 1, sizeof *order.list);
	order.place = calloc(flow->count + 1, sizeof *order.place);
	ok = cursor && order.list && order.place;
	for (size_t b = 0; ok && b < flow->count; b++) {
		order.place[b] = CPU_NOWHERE;
		flow->after[b] = CPU_NOWHERE;
		flow->seen[b] = 0;
	}
	for (size_t b = 0; ok && b < flow->count; b++)
		if (LLVMIsAReturnInst(LLVMGetBasicBlockTerminator(flow->blocks[b])))
			visit_backwards(flow, &order, b, cursor);
	if (ok)
		iterate(flow, &order);
	free(cursor);
	free(order.list);
	free(order.place);
	return ok;
}

bool cpu_flow_open(struct cpu_lowering *l, LLVMValueRef function, struct cpu_flow *flow)
{
	size_t count = LLVMCountBasicBlocks(function);

	*flow = (struct cpu_flow){.function = function};
	flow->blocks = calloc(count, sizeof(LLVMBasicBlockRef));
	flow->meets = calloc(count, sizeof *flow->meets);
	flow->after = calloc(count, sizeof *flow->after);
	flow->seen = calloc(count, 1);
	flow->stack = calloc(count * 2 + 1, sizeof *flow->stack);
	if (!flow->blocks || !flow->meets || !flow->after || !flow->seen || !flow->stack)
		return tally_fail(l->error, "out of memory");
	TALLY_EACH_BLOCK (function, block)
		flow->blocks[flow->count++] = block;
	qsort(flow->blocks, flow->count, sizeof(LLVMBasicBlockRef), by_address);
	for (size_t b = 0; b < flow->count; b++)
		flow->meets[b] = ends_in_barrier(flow->blocks[b]);
	return (list_predecessors(flow) && find_post_dominators(flow)) ||
	       tally_fail(l->error, "out of memory");
}

void cpu_flow_close(struct cpu_flow *flow)
{
	free(flow->blocks);
	free(flow->meets);
	free(flow->after);
	free(flow->from);
	free(flow->preds);
	free(flow->seen);
	free(flow->stack);
	tally_set_free(&flow->divergent);
	*flow = (struct cpu_flow){0};
}

static bool is_divergent(const struct cpu_flow *flow, LLVMValueRef value)
{
	if (LLVMIsAArgument(value))
		return value != LLVMGetParam(flow->function, CPU_PARAMS) &&
		       value != LLVMGetParam(flow->function, CPU_BLOCK);
	return LLVMIsAInstruction(value) && tally_set_has(&flow->divergent, value);
}

/* Loads of what nobody writes while the kernel runs, from the same place for all. */
static bool is_uniform_load(const struct cpu_flow *flow, LLVMValueRef i)
{
	LLVMValueRef pointer = LLVMGetOperand(i, 0);
	unsigned kind = LLVMGetMDKindIDInContext(
		LLVMGetModuleContext(LLVMGetGlobalParent(flow->function)), "invariant.load", 14);

	if (cpu_record_field(flow->function, pointer) == offsetof(struct tally_cpu_thread, result))
		return true; /* of a barrier's count */
	if (LLVMGetVolatile(i) || LLVMIsAtomic(i) || is_divergent(flow, pointer))
		return false;
	return LLVMGetMetadata(i, kind) ||
	       LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == TALLY_AS_CONSTANT;
}

/* Calls whose result depends on nothing but their arguments. */
static bool is_pure_call(LLVMValueRef i)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
	LLVMValueRef callee = tally_called_function(i);
	const char *name = tally_called_name(i);
	LLVMAttributeRef memory;

	if (!callee)
		return false;
	if (!strcmp(name, "tally.cpu.count"))
		return true;
	if (strncmp(name, "llvm.", 5))
		return false;
	memory = LLVMGetEnumAttributeAtIndex(callee, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
					     kind);
	return memory && !LLVMGetEnumAttributeValue(memory);
}

static bool becomes_divergent(const struct cpu_flow *flow, LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMLoad:
		return !is_uniform_load(flow, i);
	case LLVMCall:
		if (!is_pure_call(i))
			return true;
		break;
	case LLVMAlloca:
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
	case LLVMVAArg:
		return true;
	default:
		break;
	}
	for (int k = 0; k < LLVMGetNumOperands(i); k++)
		if (is_divergent(flow, LLVMGetOperand(i, (unsigned)k)))
			return true;
	return false;
}

/* Marks in `seen` what threads can do on their own after a divergent branch: all that comes before
 * the place where they are together again. */
static void walk_apart(struct cpu_flow *flow, size_t branch)
{
	size_t depth = 0, end = flow->after[branch];

	memset(flow->seen, 0, flow->count);
	flow->stack[depth++] = branch;
	while (depth) {
		size_t b = flow->stack[--depth];

		for (unsigned s = 0; s < successors(flow, b); s++) {
			size_t next = successor(flow, b, s);

			if (next == end || flow->seen[next])
				continue;
			flow->seen[next] = 1;
			flow->stack[depth++] = next;
		}
	}
}

static bool is_divergent_branch(const struct cpu_flow *flow, size_t block)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[block]);

	if (LLVMGetNumSuccessors(end) < 2)
		return false;
	return is_divergent(flow, LLVMGetOperand(end, 0));
}

static bool add_phis(struct cpu_flow *flow, size_t block)
{
	bool changed = false;

	TALLY_EACH_INSTRUCTION (flow->blocks[block], i) {
		if (!LLVMIsAPHINode(i))
			break;
		changed |= tally_set_add(&flow->divergent, i);
	}
	return changed;
}

/* What a divergent branch makes divergent: values that depend on the way taken, and all values of a
 * loop that threads leave at different times. */
static bool spread(struct cpu_flow *flow, size_t branch)
{
	bool changed = false, loop;

	walk_apart(flow, branch);
	loop = flow->seen[branch];
	for (size_t b = 0; b < flow->count; b++) {
		if (!flow->seen[b])
			continue;
		changed |= add_phis(flow, b);
		if (loop)
			TALLY_EACH_INSTRUCTION (flow->blocks[b], i)
				changed |= tally_set_add(&flow->divergent, i);
	}
	if (flow->after[branch] < flow->count)
		changed |= add_phis(flow, flow->after[branch]);
	return changed;
}

bool cpu_flow_diverge(struct cpu_flow *flow)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t b = 0; b < flow->count; b++)
			TALLY_EACH_INSTRUCTION (flow->blocks[b], i)
				if (becomes_divergent(flow, i))
					changed |= tally_set_add(&flow->divergent, i);
		for (size_t b = 0; b < flow->count; b++)
			if (is_divergent_branch(flow, b))
				changed |= spread(flow, b);
	}
	if (flow->divergent.failed)
		return false;
	for (size_t b = 0; b < flow->count; b++) {
		if (!is_divergent_branch(flow, b))
			continue;
		walk_apart(flow, b);
		for (size_t k = 0; k < flow->count; k++)
			if (flow->seen[k] && flow->meets[k])
				return false;
	}
	return true;
}

void cpu_flow_reach(struct cpu_flow *flow, LLVMBasicBlockRef block)
{
	size_t start = cpu_flow_index(flow, block), depth = 0;

	memset(flow->seen, 0, flow->count);
	flow->stack[depth++] = start * 2;
	while (depth) {
		size_t at = flow->stack[--depth], b = at / 2, crossed = at % 2 || flow->meets[b];

		for (unsigned s = 0; s < successors(flow, b); s++) {
			size_t next = successor(flow, b, s);
			unsigned char bit = (unsigned char)(1u << crossed);

			if (flow->seen[next] & bit)
				continue;
			flow->seen[next] |= bit;
			if (next != start)
				flow->stack[depth++] = next * 2 + crossed;
		}
	}
}

bool cpu_flow_crosses(const struct cpu_flow *flow, LLVMValueRef value, LLVMUseRef use)
{
	LLVMValueRef user = LLVMGetUser(use);
	LLVMBasicBlockRef home = LLVMGetInstructionParent(value);

	if (!LLVMIsAPHINode(user)) {
		LLVMBasicBlockRef block = LLVMGetInstructionParent(user);

		return block != home && flow->seen[cpu_flow_index(flow, block)] & 2;
	}
	for (unsigned k = 0; k < LLVMCountIncoming(user); k++) {
		LLVMBasicBlockRef block = LLVMGetIncomingBlock(user, k);

		if (LLVMGetIncomingValue(user, k) == value && block != home &&
		    flow->seen[cpu_flow_index(flow, block)] & 2)
			return true;
	}
	return false;
}
