/* SPDX-License-Identifier: Apache-2.0 */
/* Divergence and post-dominators of one function (flow.h). */
#include "ir_passes/flow.h"

#include <stdlib.h>
#include <string.h>

#include "ir_passes/ir.h"

size_t tally_flow_index(const struct tally_flow *flow, LLVMBasicBlockRef block)
{
	return tally_numbers_find(&flow->numbers, block);
}

unsigned tally_flow_successors(const struct tally_flow *flow, size_t block)
{
	return LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(flow->blocks[block]));
}

size_t tally_flow_successor(const struct tally_flow *flow, size_t block, unsigned s)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[block]);

	return tally_flow_index(flow, LLVMGetSuccessor(end, s));
}

static bool list_predecessors(struct tally_flow *flow)
{
	size_t edges = 0, *next = calloc(flow->count + 1, sizeof *next);

	flow->from = calloc(flow->count + 1, sizeof *flow->from);
	if (!next || !flow->from) {
		free(next);
		return false;
	}
	for (size_t b = 0; b < flow->count; b++)
		for (unsigned s = 0; s < tally_flow_successors(flow, b); s++, edges++)
			flow->from[tally_flow_successor(flow, b, s) + 1]++;
	for (size_t b = 0; b < flow->count; b++)
		flow->from[b + 1] += flow->from[b];
	memcpy(next, flow->from, (flow->count + 1) * sizeof *next);
	flow->preds = calloc(edges + 1, sizeof *flow->preds);
	for (size_t b = 0; flow->preds && b < flow->count; b++)
		for (unsigned s = 0; s < tally_flow_successors(flow, b); s++)
			flow->preds[next[tally_flow_successor(flow, b, s)]++] = b;
	free(next);
	return flow->preds != NULL;
}

struct order {
	size_t *list;  /* blocks in post-order of the walk from the end against the flow */
	size_t *place; /* in the list, by block; TALLY_NOWHERE: does not reach the end */
	size_t count;
};

static void visit_backwards(struct tally_flow *flow, struct order *order, size_t root,
			    size_t *cursor)
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
static size_t place_of(const struct tally_flow *flow, const struct order *order, size_t b)
{
	return b == flow->count ? order->count : order->place[b];
}

static size_t intersect(const struct tally_flow *flow, const struct order *order, size_t a,
			size_t b)
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
static void iterate(struct tally_flow *flow, const struct order *order)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = order->count; i-- > 0;) {
			size_t b = order->list[i], after = TALLY_NOWHERE;
			unsigned n = tally_flow_successors(flow, b);

			if (!n)
				after = flow->count;
			for (unsigned s = 0; s < n; s++) {
				size_t next = tally_flow_successor(flow, b, s);

				if (flow->after[next] == TALLY_NOWHERE)
					continue;
				after = after == TALLY_NOWHERE
						? next
						: intersect(flow, order, after, next);
			}
			changed |= flow->after[b] != after;
			flow->after[b] = after;
		}
	}
}

static bool find_post_dominators(struct tally_flow *flow)
{
	struct order order = {.count = 0};
	size_t *cursor = calloc(flow->count + 1, sizeof *cursor);
	bool ok;

	order.list = calloc(flow->count + 1, sizeof *order.list);
	order.place = calloc(flow->count + 1, sizeof *order.place);
	ok = cursor && order.list && order.place;
	for (size_t b = 0; ok && b < flow->count; b++) {
		order.place[b] = TALLY_NOWHERE;
		flow->after[b] = TALLY_NOWHERE;
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

bool tally_flow_open(LLVMValueRef function, const struct tally_flow_rules *rules,
		     struct tally_flow *flow)
{
	size_t count = LLVMCountBasicBlocks(function);

	*flow = (struct tally_flow){.function = function, .rules = rules};
	flow->blocks = calloc(count, sizeof(LLVMBasicBlockRef));
	flow->meets = calloc(count, sizeof *flow->meets);
	flow->apart = calloc(count, sizeof *flow->apart);
	flow->after = calloc(count, sizeof *flow->after);
	flow->seen = calloc(count, 1);
	flow->stack = calloc(count * 2 + 1, sizeof *flow->stack);
	if (!flow->blocks || !flow->meets || !flow->apart || !flow->after || !flow->seen ||
	    !flow->stack || !tally_numbers_open(&flow->numbers, count))
		return false;
	TALLY_EACH_BLOCK (function, block) {
		tally_numbers_set(&flow->numbers, block, flow->count);
		flow->blocks[flow->count++] = block;
	}
	for (size_t b = 0; b < flow->count; b++)
		flow->meets[b] = rules->meets(flow->blocks[b]);
	return list_predecessors(flow) && find_post_dominators(flow);
}

void tally_flow_close(struct tally_flow *flow)
{
	free(flow->blocks);
	tally_numbers_close(&flow->numbers);
	free(flow->meets);
	free(flow->apart);
	free(flow->after);
	free(flow->from);
	free(flow->preds);
	free(flow->seen);
	free(flow->stack);
	tally_set_free(&flow->divergent);
	*flow = (struct tally_flow){0};
}

bool tally_flow_differs(const struct tally_flow *flow, LLVMValueRef value)
{
	if (LLVMIsAArgument(value))
		return flow->rules->argument(flow, value);
	return LLVMIsAInstruction(value) && tally_set_has(&flow->divergent, value);
}

bool tally_flow_pure_intrinsic(LLVMValueRef call)
{
	unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
	LLVMValueRef callee = tally_called_function(call);
	LLVMAttributeRef memory;

	if (!callee || strncmp(tally_name(callee), "llvm.", 5))
		return false;
	memory = LLVMGetEnumAttributeAtIndex(callee, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
					     kind);
	return memory && !LLVMGetEnumAttributeValue(memory);
}

static enum tally_flow_source source_of(const struct tally_flow *flow, LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMLoad:
		return flow->rules->load(flow, i);
	case LLVMCall:
		return flow->rules->call(flow, i);
	case LLVMAlloca:
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
	case LLVMVAArg:
		return TALLY_FLOW_DIVERGENT;
	default:
		return TALLY_FLOW_OPERANDS;
	}
}

static bool becomes_divergent(const struct tally_flow *flow, LLVMValueRef i)
{
	enum tally_flow_source source = source_of(flow, i);

	if (source != TALLY_FLOW_OPERANDS)
		return source == TALLY_FLOW_DIVERGENT;
	for (int k = 0; k < LLVMGetNumOperands(i); k++)
		if (tally_flow_differs(flow, LLVMGetOperand(i, (unsigned)k)))
			return true;
	return false;
}

/* Marks in `seen` what threads can do on their own after a divergent branch: all that comes before
 * the place where they are together again. */
static void walk_apart(struct tally_flow *flow, size_t branch)
{
	size_t depth = 0, end = flow->after[branch];

	memset(flow->seen, 0, flow->count);
	flow->stack[depth++] = branch;
	while (depth) {
		size_t b = flow->stack[--depth];

		for (unsigned s = 0; s < tally_flow_successors(flow, b); s++) {
			size_t next = tally_flow_successor(flow, b, s);

			if (next == end || flow->seen[next])
				continue;
			flow->seen[next] = 1;
			flow->stack[depth++] = next;
		}
	}
}

static bool is_divergent_branch(const struct tally_flow *flow, size_t block)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(flow->blocks[block]);

	if (LLVMGetNumSuccessors(end) < 2)
		return false;
	return tally_flow_differs(flow, LLVMGetOperand(end, 0));
}

static bool add_phis(struct tally_flow *flow, size_t block)
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
static bool spread(struct tally_flow *flow, size_t branch)
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

bool tally_flow_diverge(struct tally_flow *flow)
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
	for (size_t b = 0; b < flow->count; b++) {
		if (!is_divergent_branch(flow, b))
			continue;
		walk_apart(flow, b);
		for (size_t k = 0; k < flow->count; k++)
			flow->apart[k] |= flow->seen[k];
	}
	return !flow->divergent.failed;
}

bool tally_flow_together(const struct tally_flow *flow)
{
	for (size_t b = 0; b < flow->count; b++)
		if (flow->meets[b] && flow->apart[b])
			return false;
	return true;
}
