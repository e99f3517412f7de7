/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers of a part of the block. The machine has one barrier, for the whole block; warps that
 * are waves of their own can wait at words of shared memory (barriers.ll). What cannot be done so
 * becomes a call of an operation that is refused by its name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/lower/hip_lower.h"
#include "ir_passes/ir.h"
#include "ir_passes/reach.h"

#define BARRIER "tally.barrier"
#define PART	"tally.amd.part"
#define REFUSED "tally.amd.refused.a barrier of a part of the block "

enum { BARRIERS = 16 };

struct barriers {
	const struct tally_hip_shape *shape;
	LLVMModuleRef module;
	bool whole[BARRIERS]; /* numbers at which all threads of the block meet */
	bool any_part;
};

/* The number or count that a call gives, or `otherwise` where it is known at run time only. */
static unsigned long long constant(LLVMValueRef call, unsigned operand,
				   unsigned long long otherwise)
{
	LLVMValueRef value = LLVMGetOperand(call, operand);

	return LLVMIsAConstantInt(value) ? LLVMConstIntGetZExtValue(value) : otherwise;
}

static bool is_barrier(LLVMValueRef instruction)
{
	const char *called = tally_called_name(instruction);

	return called && !strncmp(called, BARRIER, strlen(BARRIER));
}

static bool is_part(LLVMValueRef call)
{
	return constant(call, 1, 1) != 0;
}

static bool note_whole(LLVMValueRef instruction, void *data)
{
	struct barriers *b = data;

	if (is_barrier(instruction) && !is_part(instruction))
		b->whole[constant(instruction, 0, 0) % BARRIERS] = true;
	return true;
}

/* What is called instead: bodies of ours, or why there are none. */
static const char *replacement(struct barriers *b, LLVMValueRef call)
{
	unsigned long long number = constant(call, 0, BARRIERS);

	if (b->shape->wave != 32)
		return REFUSED "(two warps share a wave there and cannot wait apart)";
	if (!LLVMGetCallSiteStringAttribute(call, LLVMAttributeFunctionIndex, TALLY_ATTR_ALIGNED,
					    strlen(TALLY_ATTR_ALIGNED)))
		return REFUSED "to which lanes may come one by one (barrier without aligned)";
	/* One number, two mechanisms: they would not see each other's arrivals. */
	for (unsigned k = 1; k < BARRIERS; k++)
		if (b->whole[k] && (number == k || number == BARRIERS))
			return REFUSED "with the number of one for the whole block";
	if (b->whole[0] && number == 0)
		return REFUSED "with the number of one for the whole block";
	return NULL;
}

static bool replace_part(LLVMValueRef instruction, void *data)
{
	struct barriers *b = data;
	LLVMValueRef callee, other;
	const char *name;
	char own[64];

	if (!is_barrier(instruction) || !is_part(instruction))
		return true;
	callee = LLVMGetCalledValue(instruction);
	name = replacement(b, instruction);
	if (!name) {
		snprintf(own, sizeof own, PART "%s", tally_name(callee) + strlen("tally"));
		name = own;
		b->any_part = true;
	}
	other = LLVMGetNamedFunction(b->module, name);
	if (!other || LLVMGlobalGetValueType(other) != LLVMGlobalGetValueType(callee))
		other = LLVMAddFunction(b->module, name, LLVMGlobalGetValueType(callee));
	tally_add_attribute(other, "convergent", 0);
	LLVMSetOperand(instruction, (unsigned)LLVMGetNumOperands(instruction) - 1, other);
	return true;
}

/* Shared memory holds anything when a block begins. */
static void clear_at_entry(LLVMModuleRef module, LLVMValueRef kernel)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	LLVMBuilderRef builder;
	LLVMValueRef clear;
	LLVMTypeRef type;
	struct tally_set reach = {0};
	bool uses = false;

	tally_reach(&reach, kernel);
	TALLY_EACH_FUNCTION (module, function)
		uses |= !strncmp(tally_name(function), PART ".", strlen(PART ".")) &&
			tally_set_has(&reach, function);
	tally_set_free(&reach);
	if (!uses)
		return;
	type = LLVMFunctionType(LLVMVoidTypeInContext(context), NULL, 0, 0);
	clear = LLVMGetNamedFunction(module, PART ".clear");
	if (!clear)
		clear = LLVMAddFunction(module, PART ".clear", type);
	tally_add_attribute(clear, "convergent", 0);
	builder = LLVMCreateBuilderInContext(context);
	LLVMPositionBuilderBefore(builder, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(kernel)));
	LLVMBuildCall2(builder, type, clear, NULL, 0, "");
	LLVMDisposeBuilder(builder);
}

bool tally_hip_barriers(LLVMModuleRef module, const struct tally_hip_shape *shape,
			struct tally_error *error)
{
	struct barriers b = {.shape = shape, .module = module};
	bool ok = true;

	TALLY_EACH_FUNCTION (module, function)
		ok = ok && tally_visit_instructions(function, note_whole, &b);
	TALLY_EACH_FUNCTION (module, function)
		ok = ok && tally_visit_instructions(function, replace_part, &b);
	if (b.any_part)
		TALLY_EACH_FUNCTION (module, function)
			if (tally_is_kernel(function))
				clear_at_entry(module, function);
	return ok || tally_fail(error, "out of memory");
}
