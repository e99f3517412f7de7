/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that end only when memory changes (waits.h). */
#include "ir_passes/waits.h"

#include <stdlib.h>

#include "ir_passes/ir.h"

/* The walk that finds the parts of the quiet blocks' graph in which every block reaches every other
 * (Tarjan). */
struct rings {
	const struct tally_flow *flow;
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

static bool is_quiet(const struct tally_wait_rules *rules, LLVMBasicBlockRef block)
{
	TALLY_EACH_INSTRUCTION (block, i)
		if (!rules->quiet(i))
			return false;
	return true;
}

static bool find_rings(const struct tally_flow *flow, const struct tally_wait_rules *rules,
		       size_t *ring)
{
	size_t n = flow->count;
	struct rings r = {
		.flow = flow,
		.ring = ring,
		.order = calloc(n, sizeof *r.order),
		.low = calloc(n, sizeof *r.low),
		.open = calloc(n, sizeof *r.open),
		.work = calloc(n, sizeof *r.work),
		.next = calloc(n, sizeof *r.next),
		.quiet = calloc(n, sizeof *r.quiet),
	};
	bool ok = r.order && r.low && r.open && r.work && r.next && r.quiet;

	for (size_t b = 0; ok && b < n; b++)
		r.quiet[b] = is_quiet(rules, flow->blocks[b]);
	for (size_t b = 0; ok && b < n; b++)
		if (r.quiet[b] && !r.order[b])
			walk(&r, b);
	free(r.order);
	free(r.low);
	free(r.open);
	free(r.work);
	free(r.next);
	free(r.quiet);
	return ok;
}

bool tally_wait_turns(const struct tally_waits *waits, LLVMValueRef value, LLVMValueRef with)
{
	size_t here = tally_flow_index(waits->flow, LLVMGetInstructionParent(with));

	return LLVMIsAInstruction(value) &&
	       waits->ring[tally_flow_index(waits->flow, LLVMGetInstructionParent(value))] ==
		       waits->ring[here];
}

/* Whether `value` follows from a look in the ring. */
static bool follows(const struct tally_waits *w, size_t ring, LLVMValueRef value,
		    struct tally_set *visited)
{
	if (!LLVMIsAInstruction(value) ||
	    w->ring[tally_flow_index(w->flow, LLVMGetInstructionParent(value))] != ring ||
	    !tally_set_add(visited, value))
		return false;
	if (w->rules->look(w, value))
		return true;
	/* What an address was computed from decides where to look, not what is seen. */
	if (LLVMIsALoadInst(value) || LLVMIsAAtomicRMWInst(value) ||
	    LLVMIsAAtomicCmpXchgInst(value))
		return false;
	for (int k = 0; k < LLVMGetNumOperands(value); k++)
		if (follows(w, ring, LLVMGetOperand(value, (unsigned)k), visited))
			return true;
	return false;
}

/* Whether the branch that ends `block` leaves its ring because of what was seen in it. */
static bool leaves_on_look(const struct tally_waits *w, size_t block, struct tally_set *visited)
{
	LLVMValueRef end = LLVMGetBasicBlockTerminator(w->flow->blocks[block]);
	bool stays = false, leaves = false;

	if (!w->ring[block] || LLVMGetNumSuccessors(end) < 2)
		return false;
	for (unsigned s = 0; s < LLVMGetNumSuccessors(end); s++) {
		size_t next = tally_flow_successor(w->flow, block, s);

		stays |= w->ring[next] == w->ring[block];
		leaves |= w->ring[next] != w->ring[block];
	}
	return stays && leaves && follows(w, w->ring[block], LLVMGetOperand(end, 0), visited);
}

bool tally_waits_open(const struct tally_flow *flow, const struct tally_wait_rules *rules,
		      struct tally_waits *waits)
{
	bool ok;

	waits->flow = flow;
	waits->rules = rules;
	waits->ring = calloc(flow->count, sizeof *waits->ring);
	waits->leaves = calloc(flow->count, sizeof *waits->leaves);
	ok = waits->ring && waits->leaves && find_rings(flow, rules, waits->ring);
	for (size_t b = 0; ok && b < flow->count; b++) {
		struct tally_set visited = {0};

		waits->leaves[b] = leaves_on_look(waits, b, &visited);
		ok = !visited.failed;
		tally_set_free(&visited);
	}
	return ok;
}

void tally_waits_close(struct tally_waits *waits)
{
	free(waits->ring);
	free(waits->leaves);
}
