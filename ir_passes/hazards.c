/* SPDX-License-Identifier: Apache-2.0 */
/* Whether threads can run one block after another, and whether they wait for other blocks. */
#include "ir_passes/hazards.h"

#include <stdlib.h>
#include <string.h>

#include "ir_passes/ir.h"

/* What ends the question at once, whoever comes to it. */
static const struct {
	const char *prefix, *reason;
} never[] = {
	{"tally.mbarrier.", "its mbarrier objects would be made twice"},
	{"tally.barrier.arrive", "threads arrive at a barrier without waiting in it"},
	{"tally.guard.", "it asks for its block itself"},
	{"tally.exit", "a part of it that ends its threads is not inlined"},
};

static const char *reason_of(const struct tally_flow *flow, LLVMValueRef i, bool *divergent)
{
	const char *name = tally_called_name(i);
	size_t block = tally_flow_index(flow, LLVMGetInstructionParent(i));

	if (!LLVMIsACallInst(i))
		return NULL;
	if (!name) /* what a pointer leads to is looked at with the callees */
		return LLVMIsAInlineAsm(LLVMGetCalledValue(i))
			       ? "it holds instructions whose meetings are not known"
			       : NULL;
	if (!strncmp(name, "llvm.", 5))
		return tally_is_machine_intrinsic(name)
			       ? "it holds instructions whose meetings are not known"
			       : NULL;
	for (size_t k = 0; k < sizeof never / sizeof *never; k++)
		if (!strncmp(name, never[k].prefix, strlen(never[k].prefix)))
			return never[k].reason;
	if (!tally_meeting(i) || !flow->apart[block])
		return NULL;
	*divergent = true;
	return tally_is_plain_barrier(i) ? NULL
	       : !strncmp(name, "tally.barrier", 13)
		       ? "threads may end before a barrier that counts them"
		       : "lanes may end before others exchange values with them";
}

/*
 * Calls that stay. Threads may meet or end in them; and on an sm_90 the workers of a kernel around
 * a recursive function did not end though nothing met in it (driver 580; the cause is not known).
 */
static const char *reason_in_callees(LLVMValueRef body)
{
	struct tally_set reach = {0};
	const char *reason = NULL;

	tally_reach(&reach, body);
	TALLY_EACH_FUNCTION (LLVMGetGlobalParent(body), function) {
		if (!tally_set_has(&reach, function))
			continue;
		if (function != body && !LLVMIsDeclaration(function))
			reason = "it calls a function that cannot be inlined";
		else if (tally_calls_through_pointer(function))
			reason = "it calls functions through pointers";
	}
	if (reach.failed)
		reason = "out of memory";
	tally_set_free(&reach);
	return reason;
}

bool tally_persistence_of(LLVMValueRef body, enum tally_persistence *how, const char **reason)
{
	struct tally_flow flow;
	bool divergent = false, waits = false;
	bool ok = tally_flow_open(body, &tally_thread_rules, &flow) && tally_flow_diverge(&flow) &&
		  tally_waits_for_blocks(body, &waits);

	*reason = waits ? "it waits for other blocks of its grid" : NULL;
	for (size_t b = 0; ok && !*reason && b < flow.count; b++)
		TALLY_EACH_INSTRUCTION (flow.blocks[b], i)
			if (!*reason)
				*reason = reason_of(&flow, i, &divergent);
	if (ok && !*reason)
		*reason = reason_in_callees(body);
	tally_flow_close(&flow);
	*how = *reason	   ? TALLY_PERSIST_NEVER
	       : divergent ? TALLY_PERSIST_MEET
			   : TALLY_PERSIST_SIMPLE;
	return ok;
}

/* A read of memory that another block can change while this one looks. */
static bool is_look(LLVMValueRef i)
{
	unsigned space;

	if (!LLVMIsALoadInst(i) || !(LLVMGetVolatile(i) || LLVMIsAtomic(i)))
		return false;
	space = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0)));
	return space == TALLY_AS_GENERIC || space == TALLY_AS_GLOBAL;
}

static bool has_look(LLVMValueRef function)
{
	TALLY_EACH_BLOCK (function, block)
		TALLY_EACH_INSTRUCTION (block, i)
			if (is_look(i))
				return true;
	return false;
}

/* Whether a block changes nothing that another block of the grid could see. */
static bool is_quiet(LLVMBasicBlockRef block)
{
	TALLY_EACH_INSTRUCTION (block, i) {
		const char *name = tally_called_name(i);
		unsigned space;

		switch (LLVMGetInstructionOpcode(i)) {
		case LLVMAtomicRMW:
		case LLVMAtomicCmpXchg:
			return false;
		case LLVMStore:
			space = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 1)));
			if (space == TALLY_AS_GENERIC || space == TALLY_AS_GLOBAL)
				return false;
			break;
		case LLVMCall:
			/* Not known: an own function, or a vendor's instruction. */
			if (!name || (strncmp(name, "llvm.", 5) && strncmp(name, "tally.", 6)))
				return false;
			break;
		default:
			break;
		}
	}
	return true;
}

/* The parts of the quiet blocks' graph in which every block reaches every other (Tarjan). */
struct rings {
	struct tally_flow *flow;
	size_t *ring;	     /* by block: the number of its part, from 1; 0: not quiet */
	size_t *order, *low; /* by block: when it was met, from 1; the least it comes back to */
	size_t *open, *work; /* blocks without a part yet; the walk's own stack */
	unsigned *next;	     /* by block: the next successor to look at */
	bool *quiet;
	size_t met, opened, found;
};

static void close_ring(struct rings *r, size_t root)
{
	size_t b;

	r->found++;
	do {
		b = r->open[--r->opened];
		r->ring[b] = r->found;
	} while (b != root);
}

static void walk(struct rings *r, size_t start)
{
	size_t depth = 0;

	r->work[depth++] = start;
	while (depth) {
		size_t b = r->work[depth - 1];

		if (!r->order[b]) {
			r->order[b] = r->low[b] = ++r->met;
			r->open[r->opened++] = b;
		}
		if (r->next[b] < tally_flow_successors(r->flow, b)) {
			size_t s = tally_flow_successor(r->flow, b, r->next[b]++);

			if (r->quiet[s] && !r->order[s])
				r->work[depth++] = s;
			else if (r->quiet[s] && !r->ring[s] && r->order[s] < r->low[b])
				r->low[b] = r->order[s];
			continue;
		}
		depth--;
		if (depth && r->low[b] < r->low[r->work[depth - 1]])
			r->low[r->work[depth - 1]] = r->low[b];
		if (r->low[b] == r->order[b])
			close_ring(r, b);
	}
}

static bool find_rings(struct rings *r)
{
	size_t n = r->flow->count;

	r->ring = calloc(n, sizeof *r->ring);
	r->order = calloc(n, sizeof *r->order);
	r->low = calloc(n, sizeof *r->low);
	r->open = calloc(n, sizeof *r->open);
	r->work = calloc(n, sizeof *r->work);
	r->next = calloc(n, sizeof *r->next);
	r->quiet = calloc(n, sizeof *r->quiet);
	if (!r->ring || !r->order || !r->low || !r->open || !r->work || !r->next || !r->quiet)
		return false;
	for (size_t b = 0; b < n; b++)
		r->quiet[b] = is_quiet(r->flow->blocks[b]);
	for (size_t b = 0; b < n; b++)
		if (r->quiet[b] && !r->order[b])
			walk(r, b);
	return true;
}

static void free_rings(struct rings *r)
{
	free(r->ring);
	free(r->order);
	free(r->low);
	free(r->open);
	free(r->work);
	free(r->next);
	free(r->quiet);
}

/* Whether `value` follows from a look in the ring. */
static bool follows(const struct rings *r, size_t ring, LLVMValueRef value,
		    struct tally_set *visited)
{
	if (!LLVMIsAInstruction(value) ||
	    r->ring[tally_flow_index(r->flow, LLVMGetInstructionParent(value))] != ring ||
	    !tally_set_add(visited, value))
		return false;
	if (is_look(value))
		return true;
	/* What an address was computed from decides where to look, not what is seen. */
	if (LLVMIsALoadInst(value))
		return false;
	for (int k = 0; k < LLVMGetNumOperands(value); k++)
		if (follows(r, ring, LLVMGetOperand(value, (unsigned)k), visited))
			return true;
	return false;
}

/* Whether the branch that ends `block` leaves its ring because of what was seen in it. */
static bool leaves_on_look(const struct rings *r, size_t block, struct tally_set *visited)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(r->flow->blocks[block]);
	bool stays = false, leaves = false;

	if (!r->ring[block] || LLVMGetNumSuccessors(end) < 2)
		return false;
	for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++) {
		size_t next = tally_flow_successor(r->flow, block, s);

		stays |= r->ring[next] == r->ring[block];
		leaves |= r->ring[next] != r->ring[block];
	}
	return stays && leaves && follows(r, r->ring[block], LLVMGetOperand(end, 0), visited);
}

bool tally_waits_for_blocks(LLVMValueRef function, bool *waits)
{
	struct tally_flow flow = {0};
	struct tally_set visited = {0};
	struct rings rings = {.flow = &flow};
	bool ok;

	*waits = false;
	if (!has_look(function))
		return true;
	ok = tally_flow_open(function, &tally_thread_rules, &flow) && find_rings(&rings);
	for (size_t b = 0; ok && !*waits && b < flow.count; b++) {
		*waits = leaves_on_look(&rings, b, &visited);
		ok = !visited.failed;
		tally_set_free(&visited);
	}
	free_rings(&rings);
	tally_flow_close(&flow);
	return ok;
}
