/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Additions to neighbouring elements that were one instruction (atom.add.v4.f32, PTX ISA 9.7.13.5)
 * are that again: neutral IR has one atomicrmw for each element, the first aligned as the whole
 * was. Memory serves the vector as one access, the elements as so many.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "base/buffer.h"
#include "ir_passes/ir.h"

enum { MOST = 8, SINCE_SM = 90 };

/* Elements that vectors are made of. */
static const struct element {
	LLVMTypeKind kind;
	unsigned count, bytes;
	const char *type; /* of PTX; with .noftz where it is no .f32 */
	unsigned most;	  /* of them in a vector */
} elements[] = {
	{LLVMFloatTypeKind, 1, 4, "f32", 4},	 {LLVMHalfTypeKind, 1, 2, "f16", 8},
	{LLVMBFloatTypeKind, 1, 2, "bf16", 8},	 {LLVMHalfTypeKind, 2, 4, "f16x2", 4},
	{LLVMBFloatTypeKind, 2, 4, "bf16x2", 4},
};

struct group {
	const struct element *element;
	LLVMValueRef member[MOST];
	unsigned count, wanted;
	LLVMValueRef root;
	unsigned long long offset;
};

static const struct element *element_of(LLVMValueRef rmw)
{
	LLVMTypeRef type = LLVMTypeOf(rmw);
	bool vector = LLVMGetTypeKind(type) == LLVMVectorTypeKind;
	unsigned count = vector ? LLVMGetVectorSize(type) : 1;
	LLVMTypeKind kind = LLVMGetTypeKind(vector ? LLVMGetElementType(type) : type);

	for (size_t k = 0; k < sizeof elements / sizeof *elements; k++)
		if (elements[k].kind == kind && elements[k].count == count)
			return &elements[k];
	return NULL;
}

static bool is_addition(LLVMValueRef i)
{
	return LLVMGetInstructionOpcode(i) == LLVMAtomicRMW &&
	       LLVMGetOrdering(i) != LLVMAtomicOrderingSequentiallyConsistent &&
	       LLVMGetAtomicRMWBinOp(i) == LLVMAtomicRMWBinOpFAdd && !LLVMGetVolatile(i) &&
	       LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) == TALLY_AS_GLOBAL;
}

/* How many elements the alignment of the first promises; 0: it is no first one. */
static unsigned promised(LLVMValueRef i)
{
	const struct element *e = is_addition(i) ? element_of(i) : NULL;
	unsigned count = e ? LLVMGetAlignment(i) / e->bytes : 0;

	return e && count > 1 && count <= e->most ? count : 0;
}

bool tally_cuda_has_atomic_vectors(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function)
		TALLY_EACH_BLOCK (function, block)
			TALLY_EACH_INSTRUCTION (block, i)
				if (promised(i))
					return true;
	return false;
}

/* A pointer as a root and a number of bytes behind it. */
static LLVMValueRef root_of(LLVMValueRef pointer, unsigned long long *offset)
{
	*offset = 0;
	while (LLVMIsAGetElementPtrInst(pointer) && LLVMGetNumOperands(pointer) == 2 &&
	       LLVMIsAConstantInt(LLVMGetOperand(pointer, 1)) &&
	       LLVMGetTypeKind(LLVMGetGEPSourceElementType(pointer)) == LLVMIntegerTypeKind &&
	       LLVMGetIntTypeWidth(LLVMGetGEPSourceElementType(pointer)) == 8) {
		*offset += (unsigned long long)LLVMConstIntGetSExtValue(LLVMGetOperand(pointer, 1));
		pointer = LLVMGetOperand(pointer, 0);
	}
	return pointer;
}

/* Whether `i` is the group's next element. */
static bool joins(const struct group *g, LLVMValueRef i)
{
	LLVMValueRef first = g->member[0];
	unsigned long long offset;

	return is_addition(i) && LLVMTypeOf(i) == LLVMTypeOf(first) &&
	       LLVMGetOrdering(i) == LLVMGetOrdering(first) &&
	       LLVMGetAtomicSyncScopeID(i) == LLVMGetAtomicSyncScopeID(first) &&
	       root_of(LLVMGetOperand(i, 0), &offset) == g->root &&
	       offset == g->offset + g->count * g->element->bytes;
}

static bool uses_member(const struct group *g, LLVMValueRef i)
{
	for (int k = 0; k < LLVMGetNumOperands(i); k++)
		for (unsigned m = 0; m < g->count; m++)
			if (LLVMGetOperand(i, (unsigned)k) == g->member[m])
				return true;
	return false;
}

/* What may stand between two members: neither memory nor anything that waits for one of them. */
static bool may_stand_between(const struct group *g, LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMGetElementPtr:
	case LLVMBitCast:
	case LLVMExtractElement:
	case LLVMExtractValue:
	case LLVMTrunc:
	case LLVMLShr:
		return !uses_member(g, i);
	default:
		return false;
	}
}

static bool collect(struct group *g, LLVMValueRef first)
{
	*g = (struct group){.element = element_of(first),
			    .member = {first},
			    .count = 1,
			    .wanted = promised(first)};
	g->root = root_of(LLVMGetOperand(first, 0), &g->offset);
	for (LLVMValueRef i = LLVMGetNextInstruction(first); i && g->count < g->wanted;
	     i = LLVMGetNextInstruction(i)) {
		if (joins(g, i))
			g->member[g->count++] = i;
		else if (!may_stand_between(g, i))
			return false;
	}
	return g->count == g->wanted;
}

static void list(struct tally_buffer *text, unsigned from, unsigned count)
{
	for (unsigned k = 0; k < count; k++)
		tally_buffer_print(text, "%s$%u", k ? ", " : "{", from + k);
	tally_buffer_print(text, "}");
}

/* Elements as they stand in registers: 16-bit floats as integers. */
static LLVMTypeRef register_of(const struct element *e, LLVMContextRef context, LLVMTypeRef type)
{
	return e->kind == LLVMFloatTypeKind ? type : LLVMIntTypeInContext(context, 8 * e->bytes);
}

static bool build(struct group *g, LLVMBuilderRef builder, const char *scope, const char *order)
{
	const struct element *e = g->element;
	LLVMTypeRef type = LLVMTypeOf(g->member[0]), in, types[MOST];
	LLVMContextRef context = LLVMGetTypeContext(type);
	LLVMValueRef inputs[MOST + 1], last = g->member[g->count - 1], all;
	struct tally_buffer text = {0};

	in = register_of(e, context, type);
	LLVMPositionBuilderBefore(builder, last);
	inputs[0] = LLVMGetOperand(g->member[0], 0);
	for (unsigned k = 0; k < g->count; k++) {
		types[k] = in;
		inputs[k + 1] = LLVMBuildBitCast(builder, LLVMGetOperand(g->member[k], 1), in, "");
	}
	tally_buffer_print(&text, "atom.%s.%s.global.add%s.v%u.%s ", order, scope,
			   e->kind == LLVMFloatTypeKind ? "" : ".noftz", g->count, e->type);
	list(&text, 0, g->count);
	tally_buffer_print(&text, ", [$%u], ", g->count);
	list(&text, g->count + 1, g->count);
	tally_buffer_print(&text, ";");
	all = text.failed ? NULL
			  : tally_cuda_build_assembly(
				    builder, LLVMStructTypeInContext(context, types, g->count, 0),
				    inputs, g->count + 1, text.data, text.size, true);
	tally_buffer_free(&text);
	for (unsigned k = 0; all && k < g->count; k++)
		tally_replace(g->member[k],
			      LLVMBuildBitCast(builder, LLVMBuildExtractValue(builder, all, k, ""),
					       type, ""));
	return all != NULL;
}

/* The first of a group in `function` that has not been made one instruction, or NULL. */
static bool find_group(LLVMValueRef function, struct group *g)
{
	TALLY_EACH_BLOCK (function, block)
		TALLY_EACH_INSTRUCTION (block, i)
			if (promised(i) && collect(g, i))
				return true;
	return false;
}

bool tally_cuda_atomic_vectors(LLVMModuleRef module, const struct tally_cuda_target *target,
			       struct tally_error *error)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
	struct group g;
	bool ok = true;

	TALLY_EACH_FUNCTION (module, function)
		while (ok && target->sm >= SINCE_SM && find_group(function, &g))
			ok = build(&g, builder,
				   tally_cuda_scope(context, LLVMGetAtomicSyncScopeID(g.member[0])),
				   tally_cuda_order(LLVMGetOrdering(g.member[0])));
	LLVMDisposeBuilder(builder);
	return ok || tally_fail(error, "out of memory");
}
