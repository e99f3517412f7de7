/* SPDX-License-Identifier: Apache-2.0 */
/* Whether threads can run one block after another, and whether they wait for other blocks. */
#include "ir_passes/hazards.h"

#include <stdlib.h>
#include <string.h>

#include "ir_passes/ir.h"
#include "ir_passes/waits.h"

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
static bool is_look(const struct tally_waits *waits, LLVMValueRef i)
{
	unsigned space;

	(void)waits;
	if (!LLVMIsALoadInst(i) || !(LLVMGetVolatile(i) || LLVMIsAtomic(i)))
		return false;
	space = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0)));
	return space == TALLY_AS_GENERIC || space == TALLY_AS_GLOBAL;
}

static bool has_look(LLVMValueRef function)
{
	TALLY_EACH_BLOCK (function, block)
		TALLY_EACH_INSTRUCTION (block, i)
			if (is_look(NULL, i))
				return true;
	return false;
}

/* Whether an instruction changes nothing that another block of the grid could see. */
static bool is_quiet(LLVMValueRef i)
{
	const char *name = tally_called_name(i);
	unsigned space;

	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg:
		return false;
	case LLVMStore:
		space = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 1)));
		return space != TALLY_AS_GENERIC && space != TALLY_AS_GLOBAL;
	case LLVMCall:
		/* Not known: an own function, or a vendor's instruction. */
		return name && (!strncmp(name, "llvm.", 5) || !strncmp(name, "tally.", 6));
	default:
		return true;
	}
}

static const struct tally_wait_rules rules = {.look = is_look, .quiet = is_quiet};

bool tally_waits_for_blocks(LLVMValueRef function, bool *waits)
{
	struct tally_flow flow = {0};
	struct tally_waits found = {0};
	bool ok;

	*waits = false;
	if (!has_look(function))
		return true;
	ok = tally_flow_open(function, &tally_thread_rules, &flow) &&
	     tally_waits_open(&flow, &rules, &found);
	for (size_t b = 0; ok && b < flow.count; b++)
		*waits |= found.leaves[b];
	tally_waits_close(&found);
	tally_flow_close(&flow);
	return ok;
}
