/* SPDX-License-Identifier: Apache-2.0 */
/* What a function reaches: the sets of functions and globals that the passes ask for. */
#include "ir_passes/reach.h"

#include <stdint.h>
#include <stdlib.h>

#include "ir_passes/ir.h"

void tally_set_free(struct tally_set *set)
{
	free(set->slots);
	*set = (struct tally_set){0};
}

/* The slot of `value`, or the empty one where it belongs. `capacity` is a power of two. */
static size_t find_slot(const struct tally_set *set, LLVMValueRef value)
{
	size_t k = (size_t)((uintptr_t)value * 0x9e3779b97f4a7c15u >> 20) & (set->capacity - 1);

	while (set->slots[k] && set->slots[k] != value)
		k = (k + 1) & (set->capacity - 1);
	return k;
}

bool tally_set_has(const struct tally_set *set, LLVMValueRef value)
{
	return set->capacity && set->slots[find_slot(set, value)];
}

static bool grow(struct tally_set *set)
{
	struct tally_set larger = {.capacity = set->capacity ? set->capacity * 2 : 64,
				   .count = set->count};

	larger.slots = calloc(larger.capacity, sizeof *larger.slots);
	if (!larger.slots)
		return false;
	for (size_t k = 0; k < set->capacity; k++)
		if (set->slots[k])
			larger.slots[find_slot(&larger, set->slots[k])] = set->slots[k];
	free(set->slots);
	set->slots = larger.slots;
	set->capacity = larger.capacity;
	return true;
}

bool tally_set_add(struct tally_set *set, LLVMValueRef value)
{
	size_t slot;

	if (set->count * 2 >= set->capacity && !grow(set)) {
		set->failed = true;
		return false;
	}
	slot = find_slot(set, value);
	if (set->slots[slot])
		return false;
	set->slots[slot] = value;
	set->count++;
	return true;
}

static void reach_operands(struct tally_set *set, LLVMValueRef user);

static void reach_value(struct tally_set *set, LLVMValueRef value)
{
	if (!value || !LLVMIsAConstant(value))
		return;
	if (LLVMIsAGlobalValue(value))
		tally_reach(set, value);
	/* Numbers and null have no operands; expressions may share parts, so each counts once. */
	else if (LLVMGetNumOperands(value) > 0 && tally_set_add(set, value))
		reach_operands(set, value);
}

static void reach_operands(struct tally_set *set, LLVMValueRef user)
{
	int count = LLVMGetNumOperands(user);

	for (int k = 0; k < count; k++)
		reach_value(set, LLVMGetOperand(user, k));
}

void tally_reach(struct tally_set *set, LLVMValueRef root)
{
	if (!tally_set_add(set, root))
		return;
	if (LLVMIsAGlobalVariable(root)) {
		reach_value(set, LLVMGetInitializer(root));
		return;
	}
	if (!LLVMIsAFunction(root))
		return;
	TALLY_EACH_BLOCK (root, block)
		TALLY_EACH_INSTRUCTION (block, i)
			reach_operands(set, i);
}

void tally_add_callers(struct tally_set *set, LLVMValueRef member)
{
	TALLY_EACH_USE (member, use) {
		LLVMValueRef user = LLVMGetUser(use), caller;

		if (!LLVMIsAInstruction(user))
			continue;
		caller = LLVMGetBasicBlockParent(LLVMGetInstructionParent(user));
		if (tally_set_add(set, caller))
			tally_add_callers(set, caller);
	}
}

bool tally_address_taken(LLVMValueRef function)
{
	TALLY_EACH_USE (function, use) {
		LLVMValueRef user = LLVMGetUser(use);
		unsigned count;

		if (!LLVMIsACallInst(user) || LLVMGetCalledValue(user) != function)
			return true;
		count = LLVMGetNumArgOperands(user);
		for (unsigned k = 0; k < count; k++)
			if (LLVMGetOperand(user, k) == function)
				return true;
	}
	return false;
}

void tally_erase_others(LLVMModuleRef module, const struct tally_set *keep)
{
	/* What goes may refer to what goes: cut all references first. */
	TALLY_EACH_FUNCTION (module, function)
		if (!tally_set_has(keep, function))
			LLVMReplaceAllUsesWith(function, LLVMGetPoison(LLVMTypeOf(function)));
	TALLY_EACH_GLOBAL (module, global)
		if (!tally_set_has(keep, global))
			LLVMReplaceAllUsesWith(global, LLVMGetPoison(LLVMTypeOf(global)));
	TALLY_EACH_FUNCTION (module, function)
		if (!tally_set_has(keep, function))
			LLVMDeleteFunction(function);
	TALLY_EACH_GLOBAL (module, global)
		if (!tally_set_has(keep, global))
			LLVMDeleteGlobal(global);
}
