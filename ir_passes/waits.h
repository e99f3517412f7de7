/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that end only when memory changes: a ring of blocks that changes nothing itself, left
 * because of what was read in it. What counts as a read that somebody else makes come out
 * otherwise, and as no change, is said by rules: another block of the grid, or another thread of
 * this one.
 */
#ifndef TALLY_IR_PASSES_WAITS_H
#define TALLY_IR_PASSES_WAITS_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>

#include "ir_passes/flow.h"

struct tally_waits;

struct tally_wait_rules {
	bool (*look)(const struct tally_waits *waits, LLVMValueRef instruction);
	bool (*quiet)(LLVMValueRef instruction);
};

struct tally_waits {
	const struct tally_flow *flow;
	const struct tally_wait_rules *rules;
	size_t *ring; /* by block: the number of its ring, from 1; 0: it changes something */
	bool *leaves; /* by block: its branch ends a wait, or goes round once more */
};

/* Start as `{0}`. False when memory ran out; close it all the same. */
bool tally_waits_open(const struct tally_flow *flow, const struct tally_wait_rules *rules,
		      struct tally_waits *waits);
void tally_waits_close(struct tally_waits *waits);

/* For rules: whether `value` is computed in the ring of `with`, so that it may change with every
 * turn. */
bool tally_wait_turns(const struct tally_waits *waits, LLVMValueRef value, LLVMValueRef with);

#endif
