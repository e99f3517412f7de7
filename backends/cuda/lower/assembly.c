/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of operations that are one PTX instruction: inline assembly of the function's parameters.
 */
#include "backends/cuda/lower/cuda_lower.h"
#include "base/buffer.h"
#include "ir_passes/ir.h"

enum { MAX_RESULTS = 16 };

/* The register class of a type; half floats travel in integer registers. */
static char letter(LLVMTypeRef type)
{
	switch (LLVMGetTypeKind(type)) {
	case LLVMFloatTypeKind:
		return 'f';
	case LLVMDoubleTypeKind:
		return 'd';
	case LLVMHalfTypeKind:
	case LLVMBFloatTypeKind:
		return 'h';
	default:
		switch (LLVMGetIntTypeWidth(type)) {
		case 1:
			return 'b';
		case 16:
			return 'h';
		case 64:
			return 'l';
		case 128:
			return 'q';
		default:
			return 'r';
		}
	}
}

static LLVMTypeRef register_type(LLVMContextRef context, LLVMTypeRef type)
{
	return letter(type) == 'h' ? LLVMInt16TypeInContext(context) : type;
}

/* A parameter as it stands in a register: shared addresses have 32 bits, as the source had them. */
static LLVMValueRef input(LLVMBuilderRef builder, LLVMContextRef context, LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v);

	if (LLVMGetTypeKind(type) != LLVMPointerTypeKind)
		return LLVMBuildBitCast(builder, v, register_type(context, type), "");
	return LLVMBuildPtrToInt(builder, v,
				 LLVMGetPointerAddressSpace(type) == TALLY_AS_SHARED
					 ? LLVMInt32TypeInContext(context)
					 : LLVMInt64TypeInContext(context),
				 "");
}

LLVMValueRef tally_cuda_build_assembly(LLVMBuilderRef builder, LLVMTypeRef result,
				       LLVMValueRef *inputs, unsigned count, const char *text,
				       size_t size, bool effects)
{
	LLVMContextRef context = LLVMGetTypeContext(result);
	struct tally_buffer constraints = {0};
	bool is_struct = LLVMGetTypeKind(result) == LLVMStructTypeKind;
	bool is_void = LLVMGetTypeKind(result) == LLVMVoidTypeKind;
	LLVMTypeRef types[TALLY_OPERATION_ARGUMENTS], results[MAX_RESULTS], type;
	LLVMValueRef code, call = NULL;
	unsigned n = is_struct ? LLVMCountStructElementTypes(result) : !is_void;

	for (unsigned k = 0; k < n && k < MAX_RESULTS; k++) {
		results[k] = is_struct ? LLVMStructGetTypeAtIndex(result, k)
				       : register_type(context, result);
		tally_buffer_print(&constraints, "%s=%c", k ? "," : "", letter(results[k]));
	}
	for (unsigned k = 0; k < count; k++) {
		inputs[k] = input(builder, context, inputs[k]);
		types[k] = LLVMTypeOf(inputs[k]);
		tally_buffer_print(&constraints, "%s%c", constraints.size ? "," : "",
				   letter(types[k]));
	}
	if (effects)
		tally_buffer_print(&constraints, "%s~{memory}", constraints.size ? "," : "");
	if (!constraints.failed) {
		type = LLVMFunctionType(n == 1 && !is_struct ? results[0] : result, types, count,
					0);
		code = LLVMGetInlineAsm(type, text, size, constraints.data ? constraints.data : "",
					constraints.size, effects, 0, LLVMInlineAsmDialectATT, 0);
		call = LLVMBuildCall2(builder, type, code, inputs, count, "");
		if (n == 1 && !is_struct && results[0] != result)
			call = LLVMBuildBitCast(builder, call, result, "");
	}
	tally_buffer_free(&constraints);
	return call;
}

bool tally_cuda_assembly(LLVMValueRef function, const char *text, size_t size, bool effects)
{
	LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(function));
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
	LLVMTypeRef result = LLVMGetReturnType(LLVMGlobalGetValueType(function));
	LLVMValueRef inputs[TALLY_OPERATION_ARGUMENTS], call;

	LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, ""));
	for (unsigned k = 0; k < LLVMCountParams(function); k++)
		inputs[k] = LLVMGetParam(function, k);
	call = tally_cuda_build_assembly(builder, result, inputs, LLVMCountParams(function), text,
					 size, effects);
	if (call && LLVMIsACallInst(call) && tally_has_attribute(function, "convergent"))
		LLVMAddCallSiteAttribute(
			call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
			LLVMCreateEnumAttribute(
				context, LLVMGetEnumAttributeKindForName("convergent", 10), 0));
	if (LLVMGetTypeKind(result) == LLVMVoidTypeKind)
		LLVMBuildRetVoid(builder);
	else if (call)
		LLVMBuildRet(builder, call);
	tally_add_attribute(function, "alwaysinline", 0);
	LLVMDisposeBuilder(builder);
	return call != NULL;
}
