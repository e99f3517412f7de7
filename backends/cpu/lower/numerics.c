/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes arithmetic mean one thing: the bits that the IR says, in every variant of a kernel and in
 * a C reference built without contraction; and no trap where a GPU has none (division).
 */
#include <string.h>

#include "backends/cpu/lower/internal.h"

/* LLVM's fixed sync scopes. */
enum { SCOPE_SINGLE_THREAD = 0, SCOPE_SYSTEM = 1 };

/*
 * x86 orders what it has to only for the system scope. A fence for the block alone orders the
 * threads of a block, which run on one thread of the host.
 */
static void widen_scope(struct cpu_lowering *l, LLVMValueRef i)
{
	unsigned scope;

	if (!LLVMIsAtomic(i))
		return;
	scope = LLVMGetAtomicSyncScopeID(i);
	if (scope == SCOPE_SINGLE_THREAD || scope == SCOPE_SYSTEM)
		return;
	if (LLVMIsAFenceInst(i) && scope == LLVMGetSyncScopeID(l->context, "block", 5))
		LLVMSetAtomicSyncScopeID(i, SCOPE_SINGLE_THREAD);
	else
		LLVMSetAtomicSyncScopeID(i, SCOPE_SYSTEM);
}

/* Whether a divisor is a constant that cannot trap. */
static bool harmless(LLVMValueRef divisor)
{
	return LLVMIsAConstantInt(divisor) && !LLVMIsNull(divisor) &&
	       LLVMConstIntGetSExtValue(divisor) != -1;
}

/*
 * x86 traps where the divisor is zero and where the quotient overflows. GPUs give: all ones for a
 * quotient by zero, the dividend for a remainder by zero, the wrapped quotient.
 */
static void guard_division(struct cpu_lowering *l, LLVMValueRef i)
{
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
	bool is_signed = opcode == LLVMSDiv || opcode == LLVMSRem;
	LLVMValueRef n = LLVMGetOperand(i, 0), d = LLVMGetOperand(i, 1), zero, safe, minus = NULL;
	LLVMTypeRef type = LLVMTypeOf(d);
	LLVMBuilderRef b = l->builder;
	LLVMValueRef quotient, next = LLVMGetNextInstruction(i);

	if (harmless(d))
		return;
	LLVMPositionBuilderBefore(b, i);
	zero = LLVMBuildICmp(b, LLVMIntEQ, d, LLVMConstNull(type), "by.zero");
	safe = zero;
	if (is_signed) {
		minus = LLVMBuildICmp(b, LLVMIntEQ, d, LLVMConstAllOnes(type), "by.minus");
		safe = LLVMBuildOr(b, zero, minus, "");
	}
	LLVMSetOperand(i, 1, LLVMBuildSelect(b, safe, LLVMConstNeg(LLVMConstAllOnes(type)), d, ""));
	LLVMPositionBuilderBefore(b, next);
	/* The selects below use the result, so its other uses are moved first, by way of a value
	 * that stands in for it. */
	quotient = LLVMBuildFreeze(b, LLVMGetUndef(LLVMTypeOf(i)), "");
	LLVMReplaceAllUsesWith(i, quotient);
	if (opcode == LLVMUDiv || opcode == LLVMSDiv) {
		LLVMValueRef value = i;

		if (minus)
			value = LLVMBuildSelect(b, minus, LLVMBuildNeg(b, n, ""), value, "");
		tally_replace(quotient,
			      LLVMBuildSelect(b, zero, LLVMConstAllOnes(type), value, ""));
	} else {
		tally_replace(quotient, LLVMBuildSelect(b, zero, n, i, ""));
	}
}

/* llvm.fmuladd may be fused or not: never, here. */
static void split_fmuladd(struct cpu_lowering *l, LLVMValueRef i)
{
	LLVMValueRef product;

	LLVMPositionBuilderBefore(l->builder, i);
	product = LLVMBuildFMul(l->builder, LLVMGetOperand(i, 0), LLVMGetOperand(i, 1), "");
	tally_replace(i, LLVMBuildFAdd(l->builder, product, LLVMGetOperand(i, 2), ""));
}

/* llvm.powi is a call of a compiler's runtime library on x86. */
static void replace_powi(struct cpu_lowering *l, LLVMValueRef i)
{
	LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(i));
	LLVMValueRef arguments[2] = {LLVMGetOperand(i, 0), LLVMGetOperand(i, 1)};

	if (kind != LLVMFloatTypeKind && kind != LLVMDoubleTypeKind)
		return;
	LLVMPositionBuilderBefore(l->builder, i);
	tally_replace(i, tally_build_operation(l->builder, l->module,
					       kind == LLVMFloatTypeKind ? "tally.math.powi.f32"
									 : "tally.math.powi.f64",
					       arguments, 2));
}

static LLVMValueRef rebuild_phi(struct cpu_lowering *l, LLVMValueRef i)
{
	LLVMValueRef phi = LLVMBuildPhi(l->builder, LLVMTypeOf(i), "");

	for (unsigned k = 0; k < LLVMCountIncoming(i); k++) {
		LLVMValueRef value = LLVMGetIncomingValue(i, k);
		LLVMBasicBlockRef block = LLVMGetIncomingBlock(i, k);

		LLVMAddIncoming(phi, &value, &block, 1);
	}
	return phi;
}

static LLVMValueRef rebuild_call(struct cpu_lowering *l, LLVMValueRef i)
{
	unsigned count = LLVMGetNumArgOperands(i);
	LLVMValueRef arguments[8];

	if (count > 8)
		return NULL;
	for (unsigned k = 0; k < count; k++)
		arguments[k] = LLVMGetOperand(i, k);
	return LLVMBuildCall2(l->builder, LLVMGetCalledFunctionType(i), LLVMGetCalledValue(i),
			      arguments, count, "");
}

/*
 * The same instruction without fast-math flags, or NULL for one where they mean nothing. It has to
 * be built anew: LLVM's C interface can add flags, not take them away.
 */
static LLVMValueRef rebuild(struct cpu_lowering *l, LLVMValueRef i)
{
	LLVMValueRef a = LLVMGetNumOperands(i) ? LLVMGetOperand(i, 0) : NULL;
	LLVMOpcode opcode = LLVMGetInstructionOpcode(i);

	switch (opcode) {
	case LLVMFAdd:
	case LLVMFSub:
	case LLVMFMul:
	case LLVMFDiv:
	case LLVMFRem:
		return LLVMBuildBinOp(l->builder, opcode, a, LLVMGetOperand(i, 1), "");
	case LLVMFNeg:
		return LLVMBuildFNeg(l->builder, a, "");
	case LLVMFCmp:
		return LLVMBuildFCmp(l->builder, LLVMGetFCmpPredicate(i), a, LLVMGetOperand(i, 1),
				     "");
	case LLVMFPTrunc:
	case LLVMFPExt:
		return LLVMBuildCast(l->builder, opcode, a, LLVMTypeOf(i), "");
	case LLVMSelect:
		return LLVMBuildSelect(l->builder, a, LLVMGetOperand(i, 1), LLVMGetOperand(i, 2),
				       "");
	case LLVMPHI:
		return rebuild_phi(l, i);
	case LLVMCall:
		return tally_called_function(i) ? rebuild_call(l, i) : NULL;
	default:
		return NULL;
	}
}

static bool drop_flags(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;
	LLVMValueRef plain;

	if (!LLVMCanValueUseFastMathFlags(i) || LLVMGetFastMathFlags(i) == LLVMFastMathNone)
		return true;
	LLVMPositionBuilderBefore(l->builder, i);
	plain = rebuild(l, i);
	if (plain)
		tally_replace(i, plain);
	return true;
}

static bool prepare(LLVMValueRef i, void *data)
{
	struct cpu_lowering *l = data;
	const char *callee = tally_called_name(i);

	widen_scope(l, i);
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMUDiv:
	case LLVMSDiv:
	case LLVMURem:
	case LLVMSRem:
		guard_division(l, i);
		break;
	default:
		if (callee && !strncmp(callee, "llvm.fmuladd.", 13))
			split_fmuladd(l, i);
		else if (callee && !strncmp(callee, "llvm.powi.", 10))
			replace_powi(l, i);
	}
	return true;
}

bool cpu_prepare_numerics(struct cpu_lowering *l)
{
	TALLY_EACH_FUNCTION (l->module, function) {
		/* What LLVM says of its own operations (that they touch no memory, above all) stays
		 * true, and no loop that calls one is vectorised without it. */
		if (LLVMGetIntrinsicID(function))
			continue;
		tally_strip_target_attributes(function);
		LLVMRemoveStringAttributeAtIndex(function, LLVMAttributeFunctionIndex,
						 "denormal-fp-math", 16);
		LLVMRemoveStringAttributeAtIndex(function, LLVMAttributeFunctionIndex,
						 "denormal-fp-math-f32", 20);
		LLVMRemoveStringAttributeAtIndex(function, LLVMAttributeFunctionIndex,
						 "unsafe-fp-math", 14);
		if (!tally_visit_instructions(function, drop_flags, l) ||
		    !tally_visit_instructions(function, prepare, l))
			return tally_fail(l->error, "out of memory");
	}
	return true;
}
