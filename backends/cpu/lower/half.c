/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 16-bit floating point that x86 lacks: narrowing that would be a call of a compiler's runtime
 * library or flush denormals, bfloat arithmetic (done in float and rounded once, which is exact for
 * + - * / and sqrt), and fused multiply-add of both kinds (done in double). Vectors are taken
 * apart.
 */
#include <string.h>

#include "backends/cpu/lower/internal.h"

static LLVMTypeKind scalar_kind(LLVMTypeRef type)
{
	LLVMTypeKind kind = LLVMGetTypeKind(type);

	return kind == LLVMVectorTypeKind ? LLVMGetTypeKind(LLVMGetElementType(type)) : kind;
}

/* A helper of cpu/lower/library.ll, declared where it is missing. */
static LLVMValueRef call_helper(struct cpu_lowering *l, const char *name, LLVMTypeRef result,
				LLVMValueRef *arguments, unsigned count)
{
	LLVMTypeRef types[3], type;
	LLVMValueRef function = LLVMGetNamedFunction(l->module, name);

	for (unsigned i = 0; i < count; i++)
		types[i] = LLVMTypeOf(arguments[i]);
	type = LLVMFunctionType(result, types, count, 0);
	if (!function)
		function = LLVMAddFunction(l->module, name, type);
	return LLVMBuildCall2(l->builder, type, function, arguments, count, "");
}

static LLVMValueRef narrow(struct cpu_lowering *l, LLVMValueRef value, LLVMTypeRef type)
{
	bool wide = LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMDoubleTypeKind;
	const char *name = LLVMGetTypeKind(type) == LLVMHalfTypeKind ? "tally.cpu.half.f64"
			   : wide				     ? "tally.cpu.bfloat.f64"
								     : "tally.cpu.bfloat";

	if (LLVMGetTypeKind(type) == LLVMHalfTypeKind && !wide)
		return LLVMBuildFPTrunc(l->builder, value, type, "");
	return call_helper(l, name, type, &value, 1);
}

static LLVMValueRef fused(struct cpu_lowering *l, LLVMTypeRef type, LLVMValueRef *operands)
{
	LLVMTypeRef wide = LLVMDoubleTypeInContext(l->context);
	LLVMValueRef arguments[3];

	for (unsigned i = 0; i < 3; i++)
		arguments[i] = LLVMBuildFPExt(l->builder, operands[i], wide, "");
	return narrow(l, call_helper(l, "tally.cpu.fma", wide, arguments, 3), type);
}

/* Any other intrinsic over bfloat: over float, then narrowed. */
static LLVMValueRef widened_intrinsic(struct cpu_lowering *l, LLVMValueRef i, LLVMTypeRef type,
				      LLVMValueRef *operands, unsigned count)
{
	LLVMTypeRef single = LLVMFloatTypeInContext(l->context);
	LLVMValueRef arguments[4], function;

	for (unsigned k = 0; k < count; k++)
		arguments[k] = LLVMTypeOf(operands[k]) == type
				       ? LLVMBuildFPExt(l->builder, operands[k], single, "")
				       : operands[k];
	function = LLVMGetIntrinsicDeclaration(l->module, LLVMGetIntrinsicID(LLVMGetCalledValue(i)),
					       &single, 1);
	return narrow(l,
		      LLVMBuildCall2(l->builder, LLVMGlobalGetValueType(function), function,
				     arguments, count, ""),
		      type);
}

/* What stands for `i` on scalar operands. */
static LLVMValueRef build(struct cpu_lowering *l, LLVMValueRef i, LLVMTypeRef type,
			  LLVMValueRef *operands, unsigned count)
{
	LLVMTypeRef wide = LLVMDoubleTypeInContext(l->context);
	LLVMTypeRef single = LLVMFloatTypeInContext(l->context);
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	LLVMValueRef value;

	switch (opcode) {
	case LLVMFPTrunc:
		return narrow(l, operands[0], type);
	case LLVMSIToFP:
		return narrow(l, LLVMBuildSIToFP(l->builder, operands[0], wide, ""), type);
	case LLVMUIToFP:
		return narrow(l, LLVMBuildUIToFP(l->builder, operands[0], wide, ""), type);
	case LLVMCall:
		return strncmp(tally_called_name(i), "llvm.fma.", 9)
			       ? widened_intrinsic(l, i, type, operands, count)
			       : fused(l, type, operands);
	default:
		value = LLVMBuildBinOp(l->builder, opcode,
				       LLVMBuildFPExt(l->builder, operands[0], single, ""),
				       LLVMBuildFPExt(l->builder, operands[1], single, ""), "");
		return narrow(l, value, type);
	}
}

/* The intrinsics over bfloat that are bit operations, which x86 has. */
static bool moves_bits(const char *name)
{
	return !strncmp(name, "llvm.fabs.", 10) || !strncmp(name, "llvm.copysign.", 14);
}

static bool needs_help(LLVMValueRef i)
{
	LLVMTypeKind kind = scalar_kind(LLVMTypeOf(i));
	const char *callee;

	if (kind != LLVMHalfTypeKind && kind != LLVMBFloatTypeKind)
		return false;
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMFPTrunc:
		return kind == LLVMBFloatTypeKind ||
		       scalar_kind(LLVMTypeOf(LLVMGetOperand(i, 0))) == LLVMDoubleTypeKind;
	case LLVMFAdd:
	case LLVMFSub:
	case LLVMFMul:
	case LLVMFDiv:
	case LLVMFRem:
	case LLVMSIToFP:
	case LLVMUIToFP:
		return kind == LLVMBFloatTypeKind;
	case LLVMCall:
		callee = tally_called_name(i);
		if (!callee || strncmp(callee, "llvm.", 5))
			return false;
		return !strncmp(callee, "llvm.fma.", 9) ||
		       (kind == LLVMBFloatTypeKind && !moves_bits(callee));
	default:
		return false;
	}
}

static unsigned operand_count(LLVMValueRef i)
{
	return LLVMIsACallInst(i) ? LLVMGetNumArgOperands(i) : (unsigned)LLVMGetNumOperands(i);
}

static LLVMValueRef element(struct cpu_lowering *l, LLVMValueRef value, unsigned lane)
{
	if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMVectorTypeKind)
		return value;
	return LLVMBuildExtractElement(l->builder, value, LLVMConstInt(l->i32, lane, 0), "");
}

/* atomicrmw on bfloat becomes narrowing only in code generation: too late to be helped. */
static bool replace_atomic(struct cpu_lowering *l, LLVMValueRef i)
{
	LLVMTypeRef type = LLVMTypeOf(i);
	LLVMValueRef arguments[2] = {LLVMGetOperand(i, 0), LLVMGetOperand(i, 1)};
	bool pair = LLVMGetTypeKind(type) == LLVMVectorTypeKind;

	if (scalar_kind(type) != LLVMBFloatTypeKind ||
	    LLVMGetAtomicRMWBinOp(i) != LLVMAtomicRMWBinOpFAdd)
		return true;
	if (pair && LLVMGetVectorSize(type) != 2)
		return tally_fail(l->error,
				  "atomic addition of %u bfloats: the CPU device has 1 and 2",
				  LLVMGetVectorSize(type));
	LLVMPositionBuilderBefore(l->builder, i);
	if (LLVMGetPointerAddressSpace(LLVMTypeOf(arguments[0])))
		arguments[0] = LLVMBuildAddrSpaceCast(l->builder, arguments[0], l->ptr, "");
	tally_replace(i,
		      call_helper(l, pair ? "tally.cpu.atomic.bfloat2" : "tally.cpu.atomic.bfloat",
				  type, arguments, 2));
	return true;
}

static bool help(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;
	LLVMTypeRef type = LLVMTypeOf(i);
	unsigned count, lanes = 1;
	LLVMValueRef operands[4], result = NULL;

	if (LLVMIsAAtomicRMWInst(i))
		return replace_atomic(l, i);
	if (!needs_help(i))
		return true;
	count = operand_count(i);
	if (count > 4)
		return true;
	LLVMPositionBuilderBefore(l->builder, i);
	if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) {
		lanes = LLVMGetVectorSize(type);
		result = LLVMGetPoison(type);
	}
	for (unsigned lane = 0; lane < lanes; lane++) {
		LLVMValueRef value;

		for (unsigned k = 0; k < count; k++)
			operands[k] = element(l, LLVMGetOperand(i, k), lane);
		value = build(l, i, result ? LLVMGetElementType(type) : type, operands, count);
		result = result ? LLVMBuildInsertElement(l->builder, result, value,
							 LLVMConstInt(l->i32, lane, 0), "")
				: value;
	}
	tally_replace(i, result);
	return true;
}

static bool has_bfloat(LLVMValueRef i, void *data)
{
	bool *found = data;

	*found |= scalar_kind(LLVMTypeOf(i)) == LLVMBFloatTypeKind;
	for (int k = 0; k < LLVMGetNumOperands(i) && !*found; k++)
		*found = scalar_kind(LLVMTypeOf(LLVMGetOperand(i, (unsigned)k))) ==
			 LLVMBFloatTypeKind;
	return !*found;
}

/* To nearest even, once: from a double by way of a float that keeps whether it is inexact. */
static const char runtime[] = "define hidden bfloat @__truncsfbf2(float %x) nounwind {\n"
			      "  %bits = bitcast float %x to i32\n"
			      "  %size = and i32 %bits, 2147483647\n"
			      "  %nan = icmp ugt i32 %size, 2139095040\n"
			      "  %high = lshr i32 %bits, 16\n"
			      "  %odd = and i32 %high, 1\n"
			      "  %up = add i32 %odd, 32767\n"
			      "  %sum = add i32 %bits, %up\n"
			      "  %number = lshr i32 %sum, 16\n"
			      "  %quiet = or i32 %high, 64\n"
			      "  %r = select i1 %nan, i32 %quiet, i32 %number\n"
			      "  %short = trunc i32 %r to i16\n"
			      "  %b = bitcast i16 %short to bfloat\n"
			      "  ret bfloat %b\n"
			      "}\n"
			      "declare double @llvm.fabs.f64(double)\n"
			      "define hidden bfloat @__truncdfbf2(double %x) nounwind {\n"
			      "  %f = fptrunc double %x to float\n"
			      "  %bits = bitcast float %f to i32\n"
			      "  %back = fpext float %f to double\n"
			      "  %inexact = fcmp one double %back, %x\n"
			      "  %a = call double @llvm.fabs.f64(double %back)\n"
			      "  %b = call double @llvm.fabs.f64(double %x)\n"
			      "  %above = fcmp ogt double %a, %b\n"
			      "  %less = sub i32 %bits, 1\n"
			      "  %toward = select i1 %above, i32 %less, i32 %bits\n"
			      "  %sticky = or i32 %toward, 1\n"
			      "  %kept = select i1 %inexact, i32 %sticky, i32 %bits\n"
			      "  %g = bitcast i32 %kept to float\n"
			      "  %r = call bfloat @__truncsfbf2(float %g)\n"
			      "  ret bfloat %r\n"
			      "}\n";

/*
 * The optimiser narrows operations on widened bfloats again, and code generation then calls the
 * compiler's runtime library: its functions, for modules that have bfloats at all.
 */
bool cpu_define_runtime(struct cpu_lowering *l)
{
	bool bfloat = false;

	TALLY_EACH_FUNCTION (l->module, function)
		if (!bfloat && LLVMCountBasicBlocks(function))
			tally_visit_instructions(function, has_bfloat, &bfloat);
	return !bfloat || cpu_link_text(l, runtime);
}

bool cpu_prepare_half(struct cpu_lowering *l)
{
	TALLY_EACH_FUNCTION (l->module, function)
		if (LLVMCountBasicBlocks(function) && !tally_visit_instructions(function, help, l))
			return tally_failed(l->error) ? false
						      : tally_fail(l->error, "out of memory");
	return true;
}
