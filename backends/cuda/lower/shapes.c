/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes that LLVM's optimiser and instruction selection prefer and ptxas does not know as well as
 * those it was given: each is one instruction of a machine, and comes out as several. Found on the
 * corpus (docs/lowering.md).
 */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "ir_passes/ir.h"

static bool is_constant(LLVMValueRef v, unsigned long long value)
{
	return LLVMIsAConstantInt(v) && LLVMConstIntGetZExtValue(v) == value;
}

static unsigned width_of(LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v);

	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

static bool is_op(LLVMValueRef v, LLVMOpcode opcode)
{
	return LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == opcode;
}

/* The bit that `compare` asks for: (x & bit) != 0 or == bit. 0: something else. Bit 0 stays LLVM's,
 * which needs no shift for it. */
static unsigned long long asked_bit(LLVMValueRef compare, LLVMValueRef *x)
{
	LLVMValueRef masked = LLVMGetOperand(compare, 0), other = LLVMGetOperand(compare, 1);
	LLVMIntPredicate predicate = LLVMGetICmpPredicate(compare);
	unsigned long long bit;

	if (!is_op(masked, LLVMAnd) || (width_of(masked) != 32 && width_of(masked) != 64) ||
	    !LLVMIsAConstantInt(LLVMGetOperand(masked, 1)))
		return 0;
	*x = LLVMGetOperand(masked, 0);
	bit = LLVMConstIntGetZExtValue(LLVMGetOperand(masked, 1));
	if (bit < 2 || bit & (bit - 1))
		return 0;
	return (predicate == LLVMIntNE && is_constant(other, 0)) ||
			       (predicate == LLVMIntEQ && is_constant(other, bit))
		       ? bit
		       : 0;
}

/* One LOP3 that gives a predicate. Selection makes a shift, a mask and a compare of it. */
static bool test_bit(LLVMValueRef compare, LLVMBuilderRef builder)
{
	LLVMTypeRef i1 = LLVMTypeOf(compare);
	LLVMValueRef x;
	unsigned long long bit = asked_bit(compare, &x);
	unsigned width;
	char text[128];

	if (!bit)
		return true;
	width = width_of(x);
	snprintf(text, sizeof text,
		 "{ .reg .b%u %%tb; and.b%u %%tb, $1, %llu; setp.ne.b%u $0, %%tb, 0; }", width,
		 width, bit, width);
	LLVMPositionBuilderBefore(builder, compare);
	x = tally_cuda_build_assembly(builder, i1, &x, 1, text, strlen(text), false);
	if (x)
		tally_replace(compare, x);
	return x != NULL;
}

/* x ^ (p ? -1 : 0), which `@p not` became: a choice again, of which ptxas makes one instruction. */
static void choose_complement(LLVMValueRef exclusive, LLVMBuilderRef builder)
{
	for (unsigned k = 0; k < 2; k++) {
		LLVMValueRef mask = LLVMGetOperand(exclusive, k);
		LLVMValueRef x = LLVMGetOperand(exclusive, 1 - k);

		if (!is_op(mask, LLVMSExt) || width_of(LLVMGetOperand(mask, 0)) != 1 ||
		    width_of(x) < 32)
			continue;
		LLVMPositionBuilderBefore(builder, exclusive);
		tally_replace(exclusive, LLVMBuildSelect(builder, LLVMGetOperand(mask, 0),
							 LLVMBuildNot(builder, x, ""), x, ""));
		return;
	}
}

/* zext(low) | zext(high) << 16: one PRMT, as `mov.b32 d, {low, high}`. */
static void pack_halves(LLVMValueRef either, LLVMBuilderRef builder)
{
	LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(either));
	LLVMTypeRef pair = LLVMVectorType(LLVMInt16TypeInContext(context), 2);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(context);

	for (unsigned k = 0; k < 2 && width_of(either) == 32; k++) {
		LLVMValueRef low = LLVMGetOperand(either, k), v;
		LLVMValueRef high = LLVMGetOperand(either, 1 - k);

		if (!is_op(high, LLVMShl) || !is_constant(LLVMGetOperand(high, 1), 16))
			continue;
		high = LLVMGetOperand(high, 0);
		if (!is_op(low, LLVMZExt) || width_of(LLVMGetOperand(low, 0)) != 16 ||
		    !is_op(high, LLVMZExt) || width_of(LLVMGetOperand(high, 0)) != 16)
			continue;
		LLVMPositionBuilderBefore(builder, either);
		v = LLVMBuildInsertElement(builder, LLVMGetPoison(pair), LLVMGetOperand(low, 0),
					   LLVMConstInt(i32, 0, 0), "");
		v = LLVMBuildInsertElement(builder, v, LLVMGetOperand(high, 0),
					   LLVMConstInt(i32, 1, 0), "");
		tally_replace(either, LLVMBuildBitCast(builder, v, i32, ""));
		return;
	}
}

static bool visit(LLVMValueRef instruction, void *data)
{
	switch (LLVMGetInstructionOpcode(instruction)) {
	case LLVMICmp:
		return test_bit(instruction, data);
	case LLVMXor:
		choose_complement(instruction, data);
		return true;
	case LLVMOr:
		pack_halves(instruction, data);
		return true;
	default:
		return true;
	}
}

bool tally_cuda_shapes(LLVMModuleRef module, struct tally_error *error)
{
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
	bool ok = true;

	TALLY_EACH_FUNCTION (module, function)
		ok = ok && tally_visit_instructions(function, visit, builder);
	LLVMDisposeBuilder(builder);
	return ok || tally_fail(error, "out of memory");
}

/*
 * Conversions that clamp. The machine's do so by themselves; LLVM's operation gives 0 for a NaN,
 * the machine 0 or, where 64 bits are on either side, the bit of the sign alone.
 */
static const struct {
	const char *operation, *machine;
	bool zero; /* the machine gives 0 for a NaN */
} conversions[] = {
	{"llvm.fptosi.sat.i32.f32", "llvm.nvvm.f2i.rz", true},
	{"llvm.fptoui.sat.i32.f32", "llvm.nvvm.f2ui.rz", true},
	{"llvm.fptosi.sat.i64.f32", "llvm.nvvm.f2ll.rz", false},
	{"llvm.fptoui.sat.i64.f32", "llvm.nvvm.f2ull.rz", false},
	{"llvm.fptosi.sat.i32.f64", "llvm.nvvm.d2i.rz", false},
	{"llvm.fptoui.sat.i32.f64", "llvm.nvvm.d2ui.rz", false},
	{"llvm.fptosi.sat.i64.f64", "llvm.nvvm.d2ll.rz", false},
	{"llvm.fptoui.sat.i64.f64", "llvm.nvvm.d2ull.rz", false},
};

/* `isnan(x) ? sign bit : call`, the only user of `call`: what the machine gives. Or NULL. */
static LLVMValueRef asked_sign(LLVMValueRef call, LLVMValueRef x)
{
	LLVMUseRef use = LLVMGetFirstUse(call);
	LLVMValueRef user = use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL, test;

	if (!user || !is_op(user, LLVMSelect) || LLVMGetOperand(user, 2) != call ||
	    !is_constant(LLVMGetOperand(user, 1), 1ull << (width_of(call) - 1)))
		return NULL;
	test = LLVMGetOperand(user, 0);
	return is_op(test, LLVMFCmp) && LLVMGetFCmpPredicate(test) == LLVMRealUNO &&
			       LLVMGetOperand(test, 0) == x && LLVMGetOperand(test, 1) == x
		       ? user
		       : NULL;
}

static void convert(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef call,
		    const char *name, bool zero)
{
	LLVMValueRef x = LLVMGetOperand(call, 0), result, sign, function;
	LLVMTypeRef in = LLVMTypeOf(x), type = LLVMFunctionType(LLVMTypeOf(call), &in, 1, 0);

	function = LLVMGetNamedFunction(module, name);
	if (!function)
		function = LLVMAddFunction(module, name, type);
	LLVMPositionBuilderBefore(builder, call);
	result = LLVMBuildCall2(builder, type, function, &x, 1, "");
	sign = zero ? NULL : asked_sign(call, x);
	if (sign) {
		LLVMReplaceAllUsesWith(sign, result);
		return;
	}
	if (!zero)
		result = LLVMBuildSelect(builder, LLVMBuildFCmp(builder, LLVMRealUNO, x, x, ""),
					 LLVMConstNull(LLVMTypeOf(call)), result, "");
	LLVMReplaceAllUsesWith(call, result);
}

void tally_cuda_conversions(LLVMModuleRef module)
{
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));

	for (size_t k = 0; k < sizeof conversions / sizeof *conversions; k++) {
		LLVMValueRef function = LLVMGetNamedFunction(module, conversions[k].operation);

		if (!function)
			continue;
		TALLY_EACH_USE (function, use)
			if (LLVMIsACallInst(LLVMGetUser(use)))
				convert(module, builder, LLVMGetUser(use), conversions[k].machine,
					conversions[k].zero);
	}
	LLVMDisposeBuilder(builder);
}
