/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix operations of a warp on the CPU device: a thread puts its registers into a record, waits
 * until the warp's other lanes are there too, and the executor carries the operation out on all.
 */
#include <string.h>

#include "backends/cpu/lower/internal.h"
#include "ir_passes/contract.h"
#include "ir_passes/matrix.h"

/* A register as the record has it: 64 bits, the upper ones zero. */
static LLVMValueRef to_word(struct cpu_lowering *l, LLVMValueRef v)
{
	switch (LLVMGetTypeKind(LLVMTypeOf(v))) {
	case LLVMPointerTypeKind:
		return LLVMBuildPtrToInt(l->builder, v, l->i64, "");
	case LLVMFloatTypeKind:
		v = LLVMBuildBitCast(l->builder, v, l->i32, "");
		return LLVMBuildZExt(l->builder, v, l->i64, "");
	case LLVMDoubleTypeKind:
		return LLVMBuildBitCast(l->builder, v, l->i64, "");
	default:
		return LLVMBuildZExt(l->builder, v, l->i64, "");
	}
}

static LLVMValueRef load_result(struct cpu_lowering *l, LLVMValueRef record, LLVMTypeRef type,
				unsigned index)
{
	LLVMValueRef offset =
		LLVMConstInt(l->i64, offsetof(struct tally_cpu_matrix, result) + index * 8, 0);
	LLVMValueRef at = LLVMBuildGEP2(l->builder, l->i8, record, &offset, 1, "");
	LLVMValueRef v = LLVMBuildLoad2(l->builder, type, at, "");

	LLVMSetAlignment(v, 8);
	return v;
}

static void call(struct cpu_lowering *l, const char *name, LLVMValueRef *arguments, unsigned count)
{
	LLVMValueRef function = LLVMGetNamedFunction(l->module, name);
	LLVMTypeRef types[2], type;

	for (unsigned i = 0; i < count; i++)
		types[i] = LLVMTypeOf(arguments[i]);
	type = LLVMFunctionType(l->void_type, types, count, 0);
	if (!function)
		function = LLVMAddFunction(l->module, name, type);
	LLVMBuildCall2(l->builder, type, function, arguments, count, "");
}

static void return_results(struct cpu_lowering *l, LLVMValueRef record, LLVMTypeRef type)
{
	LLVMValueRef v;

	if (LLVMGetTypeKind(type) == LLVMVoidTypeKind) {
		LLVMBuildRetVoid(l->builder);
		return;
	}
	if (LLVMGetTypeKind(type) != LLVMStructTypeKind) {
		LLVMBuildRet(l->builder, load_result(l, record, type, 0));
		return;
	}
	v = LLVMGetPoison(type);
	for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
		v = LLVMBuildInsertValue(
			l->builder, v, load_result(l, record, LLVMStructGetTypeAtIndex(type, i), i),
			i, "");
	LLVMBuildRet(l->builder, v);
}

static void make_body(struct cpu_lowering *l, LLVMValueRef function, unsigned index)
{
	LLVMTypeRef record_type = LLVMArrayType2(l->i64, sizeof(struct tally_cpu_matrix) / 8);
	LLVMValueRef record, arguments[2];

	LLVMPositionBuilderAtEnd(l->builder,
				 LLVMAppendBasicBlockInContext(l->context, function, ""));
	record = LLVMBuildAlloca(l->builder, record_type, "");
	LLVMSetAlignment(record, 8);
	for (unsigned i = 0; i < LLVMCountParams(function); i++) {
		LLVMValueRef offset =
			LLVMConstInt(l->i64, offsetof(struct tally_cpu_matrix, source) + i * 8, 0);
		LLVMValueRef at = LLVMBuildGEP2(l->builder, l->i8, record, &offset, 1, "");

		LLVMSetAlignment(
			LLVMBuildStore(l->builder, to_word(l, LLVMGetParam(function, i)), at), 8);
	}
	arguments[0] = LLVMBuildPtrToInt(l->builder, record, l->i64, "");
	call(l, "tally.cpu.value", arguments, 1);
	arguments[0] = LLVMConstInt(l->i32, TALLY_CPU_MATRIX | index << 8, 0);
	arguments[1] = LLVMConstAllOnes(l->i32);
	call(l, "tally.cpu.wait", arguments, 2);
	return_results(l, record, LLVMGetReturnType(LLVMGlobalGetValueType(function)));
	LLVMSetLinkage(function, LLVMInternalLinkage);
	tally_add_attribute(function, "alwaysinline", 0);
}

bool cpu_make_matrix(struct cpu_lowering *l)
{
	TALLY_EACH_FUNCTION (l->module, function) {
		size_t length;
		unsigned index;

		if (LLVMIsDeclaration(function) &&
		    tally_matrix_find(LLVMGetValueName2(function, &length), &index))
			make_body(l, function, index);
	}
	return true;
}
