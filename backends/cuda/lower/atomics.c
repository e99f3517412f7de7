/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-modify-write with the order and scope that the IR asks for. LLVM's NVPTX backend writes
 * every native atomicrmw as a relaxed one at GPU scope; whatever means more than that becomes the
 * PTX instruction itself here. What PTX has no instruction for is left: LLVM expands it to a loop
 * over compare-and-swap, whose order and scope it keeps. Loads and stores of 128 bits are
 * instructions too; LLVM would make them of compare-and-swap, which writes.
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/ir.h"

/* An operation of atom. by operator and type: "add" with ".u32", register class "r". */
static const struct native {
	LLVMAtomicRMWBinOp operator;
	LLVMTypeKind kind; /* of an element */
	unsigned bits;	   /* of all of them */
	const char *name, *type, *constraint;
	unsigned sm; /* the oldest machine that has it */
} natives[] = {
	{LLVMAtomicRMWBinOpAdd, LLVMIntegerTypeKind, 32, "add", "u32", "r", 0},
	{LLVMAtomicRMWBinOpAdd, LLVMIntegerTypeKind, 64, "add", "u64", "l", 0},
	{LLVMAtomicRMWBinOpAnd, LLVMIntegerTypeKind, 32, "and", "b32", "r", 0},
	{LLVMAtomicRMWBinOpAnd, LLVMIntegerTypeKind, 64, "and", "b64", "l", 0},
	{LLVMAtomicRMWBinOpOr, LLVMIntegerTypeKind, 32, "or", "b32", "r", 0},
	{LLVMAtomicRMWBinOpOr, LLVMIntegerTypeKind, 64, "or", "b64", "l", 0},
	{LLVMAtomicRMWBinOpXor, LLVMIntegerTypeKind, 32, "xor", "b32", "r", 0},
	{LLVMAtomicRMWBinOpXor, LLVMIntegerTypeKind, 64, "xor", "b64", "l", 0},
	{LLVMAtomicRMWBinOpXchg, LLVMIntegerTypeKind, 32, "exch", "b32", "r", 0},
	{LLVMAtomicRMWBinOpXchg, LLVMIntegerTypeKind, 64, "exch", "b64", "l", 0},
	{LLVMAtomicRMWBinOpXchg, LLVMIntegerTypeKind, 128, "exch", "b128", "q", 90},
	{LLVMAtomicRMWBinOpMax, LLVMIntegerTypeKind, 32, "max", "s32", "r", 0},
	{LLVMAtomicRMWBinOpMax, LLVMIntegerTypeKind, 64, "max", "s64", "l", 0},
	{LLVMAtomicRMWBinOpMin, LLVMIntegerTypeKind, 32, "min", "s32", "r", 0},
	{LLVMAtomicRMWBinOpMin, LLVMIntegerTypeKind, 64, "min", "s64", "l", 0},
	{LLVMAtomicRMWBinOpUMax, LLVMIntegerTypeKind, 32, "max", "u32", "r", 0},
	{LLVMAtomicRMWBinOpUMax, LLVMIntegerTypeKind, 64, "max", "u64", "l", 0},
	{LLVMAtomicRMWBinOpUMin, LLVMIntegerTypeKind, 32, "min", "u32", "r", 0},
	{LLVMAtomicRMWBinOpUMin, LLVMIntegerTypeKind, 64, "min", "u64", "l", 0},
	{LLVMAtomicRMWBinOpUIncWrap, LLVMIntegerTypeKind, 32, "inc", "u32", "r", 0},
	{LLVMAtomicRMWBinOpUDecWrap, LLVMIntegerTypeKind, 32, "dec", "u32", "r", 0},
	{LLVMAtomicRMWBinOpFAdd, LLVMFloatTypeKind, 32, "add", "f32", "f", 0},
	{LLVMAtomicRMWBinOpFAdd, LLVMDoubleTypeKind, 64, "add", "f64", "d", 0},
	{LLVMAtomicRMWBinOpFAdd, LLVMHalfTypeKind, 16, "add.noftz", "f16", "h", 70},
	{LLVMAtomicRMWBinOpFAdd, LLVMBFloatTypeKind, 16, "add.noftz", "bf16", "h", 90},
	{LLVMAtomicRMWBinOpFAdd, LLVMHalfTypeKind, 32, "add.noftz", "f16x2", "r", 60},
	{LLVMAtomicRMWBinOpFAdd, LLVMBFloatTypeKind, 32, "add.noftz", "bf16x2", "r", 90},
};

struct rewrite {
	LLVMContextRef context;
	LLVMBuilderRef builder;
	unsigned sm;
	unsigned device; /* sync scope number of this context */
};

static bool is_vector(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

static unsigned bits_of(LLVMTypeRef type)
{
	switch (LLVMGetTypeKind(type)) {
	case LLVMVectorTypeKind:
		return LLVMGetVectorSize(type) * bits_of(LLVMGetElementType(type));
	case LLVMIntegerTypeKind:
		return LLVMGetIntTypeWidth(type);
	case LLVMHalfTypeKind:
	case LLVMBFloatTypeKind:
		return 16;
	case LLVMFloatTypeKind:
		return 32;
	default:
		return 64;
	}
}

static const struct native *find_native(const struct rewrite *r, LLVMAtomicRMWBinOp operator,
					LLVMTypeRef type)
{
	LLVMTypeKind kind = LLVMGetTypeKind(is_vector(type) ? LLVMGetElementType(type) : type);

	for (size_t k = 0; k < sizeof natives / sizeof *natives; k++)
		if (natives[k].operator == operator && natives[k].kind == kind &&
		    natives[k].bits == bits_of(type) && r->sm >= natives[k].sm)
			return &natives[k];
	return NULL;
}

const char *tally_cuda_scope(LLVMContextRef context, unsigned scope)
{
	return scope == LLVMGetSyncScopeID(context, "block", 5)	   ? "cta"
	       : scope == LLVMGetSyncScopeID(context, "device", 6) ? "gpu"
								   : "sys";
}

const char *tally_cuda_order(LLVMAtomicOrdering order)
{
	switch (order) {
	case LLVMAtomicOrderingAcquire:
	case LLVMAtomicOrderingSequentiallyConsistent: /* behind a fence.sc */
		return "acquire";
	case LLVMAtomicOrderingRelease:
		return "release";
	case LLVMAtomicOrderingAcquireRelease:
		return "acq_rel";
	default:
		return "relaxed";
	}
}

static const char *space_text(unsigned space)
{
	return space == TALLY_AS_GLOBAL ? ".global" : space == TALLY_AS_SHARED ? ".shared" : "";
}

/* The bits of 16-bit floats travel in integer registers. */
static LLVMTypeRef register_type(struct rewrite *r, const struct native *native, LLVMTypeRef type)
{
	return native->kind == LLVMHalfTypeKind || native->kind == LLVMBFloatTypeKind
		       ? LLVMIntTypeInContext(r->context, native->bits)
		       : type;
}

static LLVMValueRef build_atom(struct rewrite *r, const struct native *native, LLVMValueRef rmw)
{
	LLVMValueRef pointer = LLVMGetOperand(rmw, 0), value = LLVMGetOperand(rmw, 1);
	LLVMTypeRef type = LLVMTypeOf(value), in = register_type(r, native, type);
	LLVMTypeRef i64 = LLVMInt64TypeInContext(r->context), parameters[2] = {i64, in}, function;
	LLVMValueRef assembly, arguments[2], result;
	char text[96], constraints[48];
	int text_length, constraint_length;

	text_length = snprintf(text, sizeof text, "atom.%s.%s%s.%s.%s $0, [$1], $2;",
			       tally_cuda_order(LLVMGetOrdering(rmw)),
			       tally_cuda_scope(r->context, LLVMGetAtomicSyncScopeID(rmw)),
			       space_text(LLVMGetPointerAddressSpace(LLVMTypeOf(pointer))),
			       native->name, native->type);
	constraint_length = snprintf(constraints, sizeof constraints, "=%s,l,%s,~{memory}",
				     native->constraint, native->constraint);
	function = LLVMFunctionType(in, parameters, 2, 0);
	assembly = LLVMGetInlineAsm(function, text, (size_t)text_length, constraints,
				    (size_t)constraint_length, 1, 0, LLVMInlineAsmDialectATT, 0);
	arguments[0] = LLVMBuildPtrToInt(r->builder, pointer, i64, "");
	arguments[1] = LLVMBuildBitCast(r->builder, value, in, "");
	result = LLVMBuildCall2(r->builder, function, assembly, arguments, 2, "");
	return LLVMBuildBitCast(r->builder, result, type, "");
}

static bool is_wide(LLVMTypeRef type)
{
	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 128;
}

static LLVMValueRef call_wide(struct rewrite *r, const char *text, LLVMTypeRef result,
			      LLVMValueRef *arguments, unsigned count)
{
	static const char *const constraints[] = {"l,q", "=q,l", "=q,l,q", "=q,l,q,q"};
	bool store = LLVMGetTypeKind(result) == LLVMVoidTypeKind;
	char all[32];
	LLVMTypeRef types[3], function;
	LLVMValueRef assembly;

	snprintf(all, sizeof all, "%s,~{memory}", constraints[store ? 0 : count]);
	arguments[0] =
		LLVMBuildPtrToInt(r->builder, arguments[0], LLVMInt64TypeInContext(r->context), "");
	for (unsigned i = 0; i < count; i++)
		types[i] = LLVMTypeOf(arguments[i]);
	function = LLVMFunctionType(result, types, count, 0);
	assembly = LLVMGetInlineAsm(function, text, strlen(text), all, strlen(all), 1, 0,
				    LLVMInlineAsmDialectATT, 0);
	return LLVMBuildCall2(r->builder, function, assembly, arguments, count, "");
}

/* Loads, stores and compare-and-swap of 128 bits at once. */
static bool visit_wide(struct rewrite *r, LLVMValueRef instruction)
{
	static const struct {
		LLVMOpcode opcode;
		unsigned pointer, value;
		const char *name, *operation, *operands;
	} table[] = {
		{LLVMLoad, 0, 0, "ld", "", "$0, [$1]"},
		{LLVMStore, 1, 0, "st", "", "[$0], $1"},
		{LLVMAtomicCmpXchg, 0, 1, "atom", ".cas", "$0, [$1], $2, $3"},
	};
	LLVMOpcode opcode = LLVMGetInstructionOpcode(instruction);
	unsigned i = opcode == LLVMLoad ? 0 : opcode == LLVMStore ? 1 : 2;
	LLVMValueRef pointer = LLVMGetOperand(instruction, table[i].pointer), v, both;
	LLVMTypeRef type = i ? LLVMTypeOf(LLVMGetOperand(instruction, table[i].value))
			     : LLVMTypeOf(instruction);
	LLVMValueRef arguments[3] = {pointer};
	LLVMAtomicOrdering order;
	char text[96];

	if (!is_wide(type))
		return true;
	order = i == 2 ? LLVMGetCmpXchgSuccessOrdering(instruction) : LLVMGetOrdering(instruction);
	if (order == LLVMAtomicOrderingNotAtomic)
		return true;
	snprintf(text, sizeof text, "%s.%s.%s%s%s.b128 %s;", table[i].name, tally_cuda_order(order),
		 tally_cuda_scope(r->context, LLVMGetAtomicSyncScopeID(instruction)),
		 space_text(LLVMGetPointerAddressSpace(LLVMTypeOf(pointer))), table[i].operation,
		 table[i].operands);
	LLVMPositionBuilderBefore(r->builder, instruction);
	if (order == LLVMAtomicOrderingSequentiallyConsistent)
		LLVMBuildFenceSyncScope(r->builder, order, LLVMGetAtomicSyncScopeID(instruction),
					"");
	for (unsigned k = 1; k <= i && i; k++)
		arguments[k] = LLVMGetOperand(instruction, table[i].value + k - 1);
	v = call_wide(r, text, i == 1 ? LLVMVoidTypeInContext(r->context) : type, arguments,
		      i == 2 ? 3 : i + 1);
	if (i < 2) {
		tally_replace(instruction, i ? NULL : v);
		return true;
	}
	both = LLVMBuildInsertValue(r->builder, LLVMGetPoison(LLVMTypeOf(instruction)), v, 0, "");
	v = LLVMBuildICmp(r->builder, LLVMIntEQ, v, LLVMGetOperand(instruction, 1), "");
	tally_replace(instruction, LLVMBuildInsertValue(r->builder, both, v, 1, ""));
	return true;
}

static bool visit(LLVMValueRef instruction, void *data)
{
	struct rewrite *r = data;
	LLVMAtomicOrdering order;
	const struct native *native;
	LLVMTypeRef type;
	unsigned scope;

	if (LLVMIsALoadInst(instruction) || LLVMIsAStoreInst(instruction) ||
	    LLVMIsAAtomicCmpXchgInst(instruction))
		return visit_wide(r, instruction);
	if (LLVMGetInstructionOpcode(instruction) != LLVMAtomicRMW)
		return true;
	order = LLVMGetOrdering(instruction);
	scope = LLVMGetAtomicSyncScopeID(instruction);
	type = LLVMTypeOf(LLVMGetOperand(instruction, 1));
	/* LLVM knows these itself, but for pairs and 128 bits. */
	if (order == LLVMAtomicOrderingMonotonic && scope == r->device && !is_vector(type) &&
	    !is_wide(type))
		return true;
	native = find_native(r, LLVMGetAtomicRMWBinOp(instruction), type);
	if (!native)
		return true;
	LLVMPositionBuilderBefore(r->builder, instruction);
	if (order == LLVMAtomicOrderingSequentiallyConsistent)
		LLVMBuildFenceSyncScope(r->builder, order, scope, "");
	tally_replace(instruction, build_atom(r, native, instruction));
	return true;
}

bool tally_cuda_atomics(LLVMModuleRef module, const struct tally_cuda_target *target,
			struct tally_error *error)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	struct rewrite r = {.context = context,
			    .builder = LLVMCreateBuilderInContext(context),
			    .sm = target->sm,
			    .device = LLVMGetSyncScopeID(context, "device", 6)};
	bool ok = true;

	TALLY_EACH_FUNCTION (module, function)
		ok = ok && tally_visit_instructions(function, visit, &r);
	LLVMDisposeBuilder(r.builder);
	return ok || tally_fail(error, "out of memory");
}
