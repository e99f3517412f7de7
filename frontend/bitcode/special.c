/* SPDX-License-Identifier: Apache-2.0 */
/* Intrinsics that no table row can say: their meaning hangs on operands, or their name on types. */
#include <stdio.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

/* ---- __nvvm_reflect("NAME"): a constant of the compilation ---- */

const char *bitcode_constant_string(LLVMValueRef value, size_t *length)
{
	while (LLVMIsAConstantExpr(value))
		value = LLVMGetOperand(value, 0);
	if (!LLVMIsAGlobalVariable(value) || !LLVMGetInitializer(value))
		return NULL;
	value = LLVMGetInitializer(value);
	if (LLVMIsAConstantDataArray(value) && LLVMIsConstantString(value))
		return LLVMGetAsString(value, length);
	return NULL;
}

static bool fold_reflect(struct lift *lift, LLVMValueRef call)
{
	const struct {
		const char *name;
		unsigned value;
	} answers[] = {
		{"__CUDA_ARCH", lift->arch},
		{"__CUDA_FTZ", bitcode_module_flag(lift, "nvvm-reflect-ftz", 0)},
		{"__CUDA_PREC_DIV", 1},
		{"__CUDA_PREC_SQRT", 1},
	};
	size_t length = 0;
	const char *name = bitcode_constant_string(LLVMGetOperand(call, 0), &length);
	unsigned value = 0; /* what NVIDIA's compiler answers for names it does not know */

	if (!name)
		return bitcode_fail(lift, call, "__nvvm_reflect of something that is no constant");
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (length && !strncmp(name, answers[i].name, length) &&
		    strlen(answers[i].name) == strnlen(name, length))
			value = answers[i].value;
	tally_replace(call, LLVMConstInt(LLVMTypeOf(call), value, 0));
	return true;
}

/* ---- llvm.nvvm.atomic.OP.gen.{i,f}.{cta,sys}.TYPE.POINTER: relaxed, with a scope ---- */

static const struct {
	const char *op;
	bool floating;
	LLVMAtomicRMWBinOp code;
} atomics[] = {
	{"add.gen.i", false, LLVMAtomicRMWBinOpAdd},
	{"add.gen.f", true, LLVMAtomicRMWBinOpFAdd},
	{"and.gen.i", false, LLVMAtomicRMWBinOpAnd},
	{"or.gen.i", false, LLVMAtomicRMWBinOpOr},
	{"xor.gen.i", false, LLVMAtomicRMWBinOpXor},
	{"max.gen.i", false, LLVMAtomicRMWBinOpMax},
	{"min.gen.i", false, LLVMAtomicRMWBinOpMin},
	{"exch.gen.i", false, LLVMAtomicRMWBinOpXchg},
	{"inc.gen.i", false, LLVMAtomicRMWBinOpUIncWrap},
	{"dec.gen.i", false, LLVMAtomicRMWBinOpUDecWrap},
};

static bool lift_atomic(struct lift *lift, LLVMValueRef call)
{
	const char *name = tally_called_name(call) + strlen("llvm.nvvm.atomic.");
	bool block = strstr(name, ".cta.") != NULL;
	const char *scope = block ? "block" : "";
	unsigned id = LLVMGetSyncScopeID(lift->context, scope, strlen(scope));
	LLVMValueRef pointer = LLVMGetOperand(call, 0), value = LLVMGetOperand(call, 1), made;

	LLVMPositionBuilderBefore(lift->builder, call);
	if (!strncmp(name, "cas.gen.i.", 10)) {
		made = LLVMBuildAtomicCmpXchgSyncScope(
			lift->builder, pointer, value, LLVMGetOperand(call, 2),
			LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingMonotonic, id);
		tally_replace(call, LLVMBuildExtractValue(lift->builder, made, 0, ""));
		return true;
	}
	for (size_t i = 0; i < sizeof(atomics) / sizeof(*atomics); i++) {
		size_t n = strlen(atomics[i].op);

		if (strncmp(name, atomics[i].op, n) || name[n] != '.')
			continue;
		made = LLVMBuildAtomicRMWSyncScope(lift->builder, atomics[i].code, pointer, value,
						   LLVMAtomicOrderingMonotonic, id);
		tally_replace(call, made);
		return true;
	}
	return bitcode_fail(lift, call, "unknown intrinsic '%s'", tally_called_name(call));
}

/* ---- llvm.nvvm.ldu.global.*: a load that may use another cache ---- */

static bool lift_ldu(struct lift *lift, LLVMValueRef call)
{
	LLVMValueRef load;

	LLVMPositionBuilderBefore(lift->builder, call);
	load = LLVMBuildLoad2(lift->builder, LLVMTypeOf(call), LLVMGetOperand(call, 0), "");
	LLVMSetAlignment(load, (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(call, 1)));
	tally_replace(call, load);
	return true;
}

/* ---- llvm.amdgcn.mbcnt.{lo,hi}(mask, n): n + bits of `mask` below this lane ---- */

static bool lift_mbcnt(struct lift *lift, LLVMValueRef call)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(lift->context);
	bool high = strstr(tally_called_name(call), ".hi") != NULL;
	LLVMValueRef mask = LLVMGetOperand(call, 0), lane, shift, below, bits, outside;

	LLVMPositionBuilderBefore(lift->builder, call);
	if (high && !lift->wave64) { /* there are no lanes above 31 */
		tally_replace(call, LLVMGetOperand(call, 1));
		return true;
	}
	lane = tally_build_operation(lift->builder, lift->module, "tally.lane.id", NULL, 0);
	shift = LLVMBuildAnd(lift->builder, lane, LLVMConstInt(i32, 31, 0), "");
	below = LLVMBuildNot(lift->builder,
			     LLVMBuildShl(lift->builder, LLVMConstAllOnes(i32), shift, ""), "");
	if (lift->wave64) {
		/* Of lanes in the other half: all bits for the upper, none for the lower. */
		outside = LLVMBuildICmp(lift->builder, high ? LLVMIntULT : LLVMIntUGT, lane,
					LLVMConstInt(i32, high ? 32 : 31, 0), "");
		below = LLVMBuildSelect(lift->builder, outside,
					high ? LLVMConstNull(i32) : LLVMConstAllOnes(i32), below,
					"");
	}
	below = LLVMBuildAnd(lift->builder, below, mask, "");
	bits = tally_build_intrinsic(lift->builder, lift->module, "llvm.ctpop", &i32, 1, &below, 1);
	tally_replace(call, LLVMBuildAdd(lift->builder, bits, LLVMGetOperand(call, 1), ""));
	return true;
}

/* ---- llvm.amdgcn.{icmp,fcmp}.iN.T(a, b, predicate): a ballot of a comparison ---- */

static bool lift_compare(struct lift *lift, LLVMValueRef call)
{
	bool floating = strstr(tally_called_name(call), ".fcmp.") != NULL;
	LLVMValueRef a = LLVMGetOperand(call, 0), b = LLVMGetOperand(call, 1), arguments[2], bits;
	unsigned long long predicate = LLVMConstIntGetZExtValue(LLVMGetOperand(call, 2));

	if (lift->wave64)
		return true; /* stays, and locks */
	LLVMPositionBuilderBefore(lift->builder, call);
	arguments[0] =
		tally_build_operation(lift->builder, lift->module, "tally.active.mask", NULL, 0);
	arguments[1] =
		floating ? LLVMBuildFCmp(lift->builder, (LLVMRealPredicate)predicate, a, b, "")
			 : LLVMBuildICmp(lift->builder, (LLVMIntPredicate)predicate, a, b, "");
	bits = tally_build_operation(lift->builder, lift->module, "tally.vote.ballot", arguments,
				     2);
	tally_replace(call, LLVMBuildIntCast2(lift->builder, bits, LLVMTypeOf(call), 0, ""));
	return true;
}

/* ---- llvm.amdgcn.class(x, mask), whose mask has the bits of llvm.is.fpclass ---- */

static bool lift_class(struct lift *lift, LLVMValueRef call)
{
	LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(call, 0));
	LLVMValueRef arguments[2] = {LLVMGetOperand(call, 0), LLVMGetOperand(call, 1)};

	if (!LLVMIsAConstantInt(arguments[1]))
		return true;
	LLVMPositionBuilderBefore(lift->builder, call);
	tally_replace(call, tally_build_intrinsic(lift->builder, lift->module, "llvm.is.fpclass",
						  &type, 1, arguments, 2));
	return true;
}

/* ---- __atomic_work_item_fence(what, order, scope): OpenCL's fence, as HIP's headers call it ----
 */

static bool lift_fence(struct lift *lift, LLVMValueRef call)
{
	static const LLVMAtomicOrdering orders[] = {
		[2] = LLVMAtomicOrderingAcquire,
		[3] = LLVMAtomicOrderingRelease,
		[4] = LLVMAtomicOrderingAcquireRelease,
		[5] = LLVMAtomicOrderingSequentiallyConsistent,
	};
	static const char *const scopes[] = {"singlethread", "block", "device", "", "block"};
	LLVMValueRef order = LLVMGetOperand(call, 1), scope = LLVMGetOperand(call, 2);
	unsigned long long o = 5, s = 3; /* not constant: the strongest */

	if (LLVMIsAConstantInt(order) && LLVMConstIntGetZExtValue(order) <= 5)
		o = LLVMConstIntGetZExtValue(order);
	if (LLVMIsAConstantInt(scope) && LLVMConstIntGetZExtValue(scope) <= 4)
		s = LLVMConstIntGetZExtValue(scope);
	LLVMPositionBuilderBefore(lift->builder, call);
	if (o >= 2) /* relaxed orders nothing */
		LLVMBuildFenceSyncScope(
			lift->builder, orders[o],
			LLVMGetSyncScopeID(lift->context, scopes[s], strlen(scopes[s])), "");
	LLVMInstructionEraseFromParent(call);
	return true;
}

static bool same_value(struct lift *lift, LLVMValueRef call)
{
	(void)lift;
	tally_replace(call, LLVMGetOperand(call, 0));
	return true;
}

/* By the beginning of the name; a name without a trailing dot has to be equal. */
static const struct {
	const char *name;
	bool (*lift)(struct lift *lift, LLVMValueRef call);
} specials[] = {
	{"__nvvm_reflect", fold_reflect},	 {"llvm.nvvm.reflect", fold_reflect},
	{"llvm.nvvm.atomic.", lift_atomic},	 {"llvm.nvvm.ldu.global.", lift_ldu},
	{"llvm.nvvm.mma.", bitcode_matrix},	 {"llvm.nvvm.wmma.", bitcode_matrix},
	{"llvm.nvvm.ldmatrix.", bitcode_matrix}, {"llvm.nvvm.stmatrix.", bitcode_matrix},
	{"llvm.nvvm.move.ptr.", same_value},	 {"llvm.amdgcn.mbcnt.", lift_mbcnt},
	{"llvm.amdgcn.icmp.", lift_compare},	 {"llvm.amdgcn.fcmp.", lift_compare},
	{"llvm.amdgcn.class.", lift_class},	 {"__atomic_work_item_fence", lift_fence},
};

static bool lift_special(LLVMValueRef instruction, void *data)
{
	struct lift *lift = data;
	const char *name = tally_called_name(instruction);

	for (size_t i = 0; name && i < sizeof(specials) / sizeof(*specials); i++) {
		size_t n = strlen(specials[i].name);

		if (specials[i].name[n - 1] == '.' ? strncmp(name, specials[i].name, n) == 0
						   : strcmp(name, specials[i].name) == 0)
			return specials[i].lift(lift, instruction);
	}
	return true;
}

bool bitcode_special(struct lift *lift)
{
	TALLY_EACH_FUNCTION (lift->module, function)
		if (!tally_visit_instructions(function, lift_special, lift))
			return false;
	return true;
}
