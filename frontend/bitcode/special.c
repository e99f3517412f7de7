/* SPDX-License-Identifier: Apache-2.0 */
/* Intrinsics that no table row can say: their meaning hangs on operands, or their name on types. */
#include <stdio.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

/* ---- __nvvm_reflect("NAME"): a constant of the compilation ---- */

/* The string that a constant points to, or NULL. */
static const char *constant_string(LLVMValueRef value, size_t *length)
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

static unsigned flag_ftz(struct lift *lift)
{
	LLVMMetadataRef flag = LLVMGetModuleFlag(lift->module, "nvvm-reflect-ftz", 16);
	LLVMValueRef value = flag ? LLVMMetadataAsValue(lift->context, flag) : NULL;

	if (!value || !LLVMIsAConstantInt(LLVMIsAMDNode(value) ? LLVMGetOperand(value, 0) : value))
		return 0;
	return (unsigned)LLVMConstIntGetZExtValue(LLVMIsAMDNode(value) ? LLVMGetOperand(value, 0)
								       : value);
}

static bool fold_reflect(struct lift *lift, LLVMValueRef call)
{
	const struct {
		const char *name;
		unsigned value;
	} answers[] = {
		{"__CUDA_ARCH", lift->arch},
		{"__CUDA_FTZ", flag_ftz(lift)},
		{"__CUDA_PREC_DIV", 1},
		{"__CUDA_PREC_SQRT", 1},
	};
	size_t length = 0;
	const char *name = constant_string(LLVMGetOperand(call, 0), &length);
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
	{"__nvvm_reflect", fold_reflect},    {"llvm.nvvm.reflect", fold_reflect},
	{"llvm.nvvm.atomic.", lift_atomic},  {"llvm.nvvm.ldu.global.", lift_ldu},
	{"llvm.nvvm.move.ptr.", same_value},
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
