/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lives across a barrier of a kernel that runs as regions. A value that follows in a few steps
 * from who the thread is and from what is the same for the block is computed again, which keeps
 * addresses plain to the vectoriser; one that is the same for all threads is kept once; any other
 * is kept for each thread. Kept values are variables here; region.c gives them their places.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/lower/internal.h"
#include "base/grow.h"

enum { MOST_STEPS = 12 };

struct context {
	struct cpu_lowering *l;
	struct tally_flow *flow;
	struct cpu_context_layout *layout;
	bool failed;
};

static bool is_divergent(const struct context *c, LLVMValueRef value)
{
	return tally_set_has(&c->flow->divergent, value);
}

static bool is_cheap(LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMAdd:
	case LLVMSub:
	case LLVMMul:
	case LLVMShl:
	case LLVMLShr:
	case LLVMAShr:
	case LLVMAnd:
	case LLVMOr:
	case LLVMXor:
	case LLVMICmp:
	case LLVMSelect:
	case LLVMZExt:
	case LLVMSExt:
	case LLVMTrunc:
	case LLVMGetElementPtr:
	case LLVMPtrToInt:
	case LLVMIntToPtr:
	case LLVMBitCast:
	case LLVMAddrSpaceCast:
		return true;
	default:
		return false;
	}
}

/* Whether `value` can be had again in at most `steps` steps. Private variables are in place
 * everywhere. */
static bool can_repeat(const struct context *c, LLVMValueRef value, int *steps)
{
	if (!LLVMIsAInstruction(value) || LLVMIsAAllocaInst(value) || !is_divergent(c, value))
		return true;
	if (!is_cheap(value) || --*steps < 0)
		return false;
	for (int k = 0; k < LLVMGetNumOperands(value); k++)
		if (!can_repeat(c, LLVMGetOperand(value, (unsigned)k), steps))
			return false;
	return true;
}

/* Computes `value` again at the builder's place. */
static LLVMValueRef repeat(struct context *c, LLVMValueRef value)
{
	LLVMValueRef again;

	if (!LLVMIsAInstruction(value) || LLVMIsAAllocaInst(value) || !is_divergent(c, value))
		return value;
	again = LLVMInstructionClone(value);
	for (int k = 0; k < LLVMGetNumOperands(value); k++)
		LLVMSetOperand(again, (unsigned)k, repeat(c, LLVMGetOperand(value, (unsigned)k)));
	LLVMInsertIntoBuilder(c->l->builder, again);
	tally_set_add(&c->flow->divergent, again);
	return again;
}

/* Puts the builder where a use takes its value, and says how to give it another. */
static void at_use(struct context *c, LLVMValueRef user, LLVMBasicBlockRef block)
{
	if (LLVMIsAPHINode(user))
		LLVMPositionBuilderBefore(c->l->builder, LLVMGetBasicBlockTerminator(block));
	else
		LLVMPositionBuilderBefore(c->l->builder, user);
}

/* Replaces in `user` (and for a phi: where it comes from `block`) `value` by what `make` builds. */
static void replace_use(struct context *c, LLVMValueRef user, LLVMValueRef value,
			LLVMValueRef (*make)(struct context *c, LLVMValueRef from),
			LLVMValueRef from)
{
	if (!LLVMIsAPHINode(user)) {
		LLVMValueRef other;

		at_use(c, user, NULL);
		other = make(c, from);
		for (int k = 0; k < LLVMGetNumOperands(user); k++)
			if (LLVMGetOperand(user, (unsigned)k) == value)
				LLVMSetOperand(user, (unsigned)k, other);
		return;
	}
	for (unsigned k = 0; k < LLVMCountIncoming(user); k++) {
		LLVMBasicBlockRef block = LLVMGetIncomingBlock(user, k);
		LLVMValueRef other = NULL;

		if (LLVMGetIncomingValue(user, k) != value)
			continue;
		/* One value for all edges from one block. */
		for (unsigned before = 0; before < k; before++)
			if (LLVMGetIncomingBlock(user, before) == block)
				other = LLVMGetIncomingValue(user, before);
		if (!other) {
			at_use(c, user, block);
			other = make(c, from);
		}
		LLVMSetOperand(user, k, other);
	}
}

/* The users of `value` past a barrier, each once. */
static LLVMValueRef *crossing_users(struct context *c, LLVMValueRef value, size_t *count)
{
	struct tally_set seen = {0};
	LLVMValueRef *users;
	size_t most = 0;

	*count = 0;
	TALLY_EACH_USE (value, use)
		most++;
	users = calloc(most + 1, sizeof *users);
	if (!users) {
		c->failed = true;
		return NULL;
	}
	TALLY_EACH_USE (value, use)
		if (cpu_flow_crosses(c->flow, value, use) && tally_set_add(&seen, LLVMGetUser(use)))
			users[(*count)++] = LLVMGetUser(use);
	c->failed |= seen.failed;
	tally_set_free(&seen);
	return users;
}

static bool add_slot(struct context *c, LLVMValueRef variable, LLVMTypeRef type, bool once,
		     bool own)
{
	struct cpu_context_layout *layout = c->layout;
	LLVMTargetDataRef data = LLVMGetModuleDataLayout(c->l->module);
	struct cpu_slot slot = {variable, type, once, own, 0, 0};
	uint64_t align = LLVMABIAlignmentOfType(data, type);

	if (!TALLY_GROW(layout->slots, layout->count))
		return false;
	if (own && LLVMGetAlignment(variable) > align)
		align = LLVMGetAlignment(variable);
	slot.bytes = (LLVMABISizeOfType(data, type) + align - 1) / align * align;
	if (once) {
		slot.offset = (layout->once_bytes + align - 1) / align * align;
		layout->once_bytes = slot.offset + slot.bytes;
	} else {
		/* Multiplied by a multiple of 64 threads, every place is aligned to 64. */
		slot.offset = layout->thread_bytes;
		layout->thread_bytes += slot.bytes;
	}
	layout->slots[layout->count++] = slot;
	return true;
}

static LLVMValueRef load_slot(struct context *c, LLVMValueRef variable)
{
	return LLVMBuildLoad2(c->l->builder, LLVMGetAllocatedType(variable), variable, "");
}

/* A truth value lies in memory as a byte: loops over bits are not vectorised. */
static LLVMValueRef load_truth(struct context *c, LLVMValueRef variable)
{
	return LLVMBuildTrunc(c->l->builder, load_slot(c, variable), c->l->i1, "");
}

static void keep(struct context *c, LLVMValueRef value, LLVMValueRef *users, size_t count)
{
	struct cpu_lowering *l = c->l;
	bool truth = LLVMTypeOf(value) == l->i1;
	LLVMTypeRef type = truth ? l->i8 : LLVMTypeOf(value);
	LLVMValueRef variable, place = LLVMGetNextInstruction(value), kept = value;

	LLVMPositionBuilderBefore(
		l->builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(c->flow->function)));
	variable = LLVMBuildAlloca(l->builder, type, "");
	for (size_t u = 0; u < count; u++)
		replace_use(c, users[u], value, truth ? load_truth : load_slot, variable);
	while (LLVMIsAPHINode(place))
		place = LLVMGetNextInstruction(place);
	LLVMPositionBuilderBefore(l->builder, place);
	if (truth)
		kept = LLVMBuildZExt(l->builder, value, l->i8, "");
	LLVMBuildStore(l->builder, kept, variable);
	c->failed |= !add_slot(c, variable, type, !is_divergent(c, value), false);
}

static bool handle(LLVMValueRef i, struct context *c, bool repeating)
{
	int steps = MOST_STEPS;
	LLVMValueRef *users;
	size_t count;

	if (!LLVMGetFirstUse(i) || LLVMIsAAllocaInst(i) ||
	    (repeating && (!is_divergent(c, i) || !can_repeat(c, i, &steps))))
		return true;
	cpu_flow_reach(c->flow, LLVMGetInstructionParent(i));
	users = crossing_users(c, i, &count);
	if (users && count) {
		if (!repeating)
			keep(c, i, users, count);
		for (size_t u = 0; repeating && u < count; u++)
			replace_use(c, users[u], i, repeat, i);
	}
	free(users);
	return !c->failed;
}

static bool handle_repeat(LLVMValueRef i, void *data)
{
	return handle(i, data, true);
}

static bool handle_keep(LLVMValueRef i, void *data)
{
	return handle(i, data, false);
}

static bool add_own(LLVMValueRef i, void *data)
{
	struct context *c = data;

	if (!LLVMIsAAllocaInst(i))
		return true;
	cpu_drop_lifetimes(i);
	return add_slot(c, i, LLVMGetAllocatedType(i), false, true);
}

bool cpu_make_context(struct cpu_lowering *l, struct tally_flow *flow,
		      struct cpu_context_layout *layout)
{
	struct context c = {l, flow, layout, false};

	layout->once_bytes = CPU_ONCE_ARRIVED;
	return (tally_visit_instructions(flow->function, add_own, &c) &&
		tally_visit_instructions(flow->function, handle_repeat, &c) &&
		tally_visit_instructions(flow->function, handle_keep, &c) && !c.failed) ||
	       tally_fail(l->error, "out of memory");
}
