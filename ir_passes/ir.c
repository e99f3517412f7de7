/* SPDX-License-Identifier: Apache-2.0 */
/* Small helpers over LLVM's C API that the frontends, the passes and the lowerings share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Target.h>

#include "base/grow.h"
#include "ir_passes/ir.h"

/* Every instruction of a function in order; the caller frees the list, also when memory ran out. */
static bool list_instructions(LLVMValueRef function, LLVMValueRef **list, size_t *count)
{
	TALLY_EACH_BLOCK (function, block) {
		TALLY_EACH_INSTRUCTION (block, i) {
			if (!TALLY_GROW(*list, *count))
				return false;
			(*list)[(*count)++] = i;
		}
	}
	return true;
}

bool tally_visit_instructions(LLVMValueRef function, bool (*visit)(LLVMValueRef i, void *data),
			      void *data)
{
	LLVMValueRef *list = NULL;
	size_t count = 0;
	bool ok = list_instructions(function, &list, &count);

	for (size_t k = 0; ok && k < count; k++)
		ok = visit(list[k], data);
	free(list);
	return ok;
}

LLVMValueRef tally_called_function(LLVMValueRef instruction)
{
	if (!LLVMIsACallInst(instruction))
		return NULL;
	return LLVMIsAFunction(LLVMGetCalledValue(instruction));
}

const char *tally_called_name(LLVMValueRef instruction)
{
	LLVMValueRef function = tally_called_function(instruction);
	size_t length;

	return function ? LLVMGetValueName2(function, &length) : NULL;
}

LLVMValueRef tally_build_operation(LLVMBuilderRef builder, LLVMModuleRef module, const char *name,
				   LLVMValueRef *arguments, unsigned count)
{
	LLVMValueRef function = tally_operation_declare(module, name), call;

	if (!function)
		return NULL;
	call = LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, arguments, count,
			      "");
	return call;
}

LLVMValueRef tally_build_intrinsic(LLVMBuilderRef builder, LLVMModuleRef module, const char *name,
				   LLVMTypeRef *types, unsigned type_count, LLVMValueRef *arguments,
				   unsigned count)
{
	unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
	LLVMValueRef function;

	if (!id)
		return NULL;
	function = LLVMGetIntrinsicDeclaration(module, id, types, type_count);
	return LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, arguments, count,
			      "");
}

void tally_replace(LLVMValueRef instruction, LLVMValueRef value)
{
	if (value)
		LLVMReplaceAllUsesWith(instruction, value);
	LLVMInstructionEraseFromParent(instruction);
}

static unsigned attribute_kind(const char *name)
{
	return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

static LLVMContextRef context_of(LLVMValueRef value)
{
	return LLVMGetTypeContext(LLVMTypeOf(value));
}

void tally_add_attribute(LLVMValueRef function, const char *name, unsigned long long value)
{
	LLVMAddAttributeAtIndex(
		function, LLVMAttributeFunctionIndex,
		LLVMCreateEnumAttribute(context_of(function), attribute_kind(name), value));
}

void tally_remove_attribute(LLVMValueRef function, const char *name)
{
	LLVMRemoveEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex, attribute_kind(name));
}

bool tally_has_attribute(LLVMValueRef function, const char *name)
{
	return LLVMGetEnumAttributeAtIndex(function, LLVMAttributeFunctionIndex,
					   attribute_kind(name)) != NULL;
}

LLVMAttributeRef tally_param_attribute(LLVMValueRef function, unsigned index, const char *name)
{
	return LLVMGetEnumAttributeAtIndex(function, index + 1, attribute_kind(name));
}

LLVMTypeRef tally_param_byval(LLVMValueRef function, unsigned index)
{
	LLVMAttributeRef attribute = tally_param_attribute(function, index, "byval");

	return attribute ? LLVMGetTypeAttributeValue(attribute) : NULL;
}

static LLVMTypeRef param_type(LLVMValueRef function, unsigned index)
{
	LLVMTypeRef type = tally_param_byval(function, index);

	return type ? type : LLVMTypeOf(LLVMGetParam(function, index));
}

unsigned tally_param_alignment(LLVMModuleRef module, LLVMValueRef function, unsigned index)
{
	LLVMAttributeRef align = NULL;

	if (tally_param_byval(function, index))
		align = tally_param_attribute(function, index, "align");
	if (align)
		return (unsigned)LLVMGetEnumAttributeValue(align);
	return LLVMABIAlignmentOfType(LLVMGetModuleDataLayout(module), param_type(function, index));
}

unsigned long long tally_param_size(LLVMModuleRef module, LLVMValueRef function, unsigned index)
{
	return LLVMABISizeOfType(LLVMGetModuleDataLayout(module), param_type(function, index));
}

unsigned long long tally_params_size(LLVMModuleRef module, LLVMValueRef function)
{
	unsigned long long bytes = 0;

	for (unsigned k = 0; k < LLVMCountParams(function); k++) {
		unsigned align = tally_param_alignment(module, function, k);

		bytes = (bytes + align - 1) / align * align + tally_param_size(module, function, k);
	}
	return bytes;
}

void tally_copy_attributes(LLVMValueRef from, LLVMValueRef to, unsigned params)
{
	for (unsigned k = 0; k <= params + 1; k++) {
		LLVMAttributeIndex index =
			k == params + 1 ? (LLVMAttributeIndex)LLVMAttributeFunctionIndex : k;
		unsigned count = LLVMGetAttributeCountAtIndex(from, index);
		LLVMAttributeRef *list = calloc(count + 1, sizeof *list);

		if (!list)
			return;
		LLVMGetAttributesAtIndex(from, index, list);
		for (unsigned a = 0; a < count; a++)
			LLVMAddAttributeAtIndex(to, index, list[a]);
		free(list);
	}
}

void tally_strip_target_attributes(LLVMValueRef function)
{
	static const char *const enums[] = {"noinline", "optnone",	"memory",
					    "ssp",	"sspreq",	"sspstrong",
					    "uwtable",	"mustprogress", "norecurse"};

	/* An intrinsic's attributes are its meaning: LLVM's passes crash on one that may touch
	 * memory. */
	if (LLVMGetIntrinsicID(function))
		return;
	for (const char *const *name = tally_machine_attributes; *name; name++)
		LLVMRemoveStringAttributeAtIndex(function, LLVMAttributeFunctionIndex, *name,
						 strlen(*name));
	for (size_t k = 0; k < sizeof enums / sizeof *enums; k++)
		tally_remove_attribute(function, enums[k]);
}

void tally_move_body(LLVMValueRef from, LLVMValueRef to)
{
	unsigned shared = LLVMCountParams(from), count = LLVMCountParams(to);
	/* A block can only be moved behind another one: this one stands in until the first moved.
	 */
	LLVMBasicBlockRef place = LLVMAppendBasicBlockInContext(context_of(to), to, ""),
			  first = place;

	TALLY_EACH_BLOCK (from, block) {
		LLVMMoveBasicBlockAfter(block, place);
		place = block;
	}
	LLVMDeleteBasicBlock(first);
	for (unsigned k = 0; k < shared && k < count; k++) {
		LLVMValueRef old = LLVMGetParam(from, k), new = LLVMGetParam(to, k);
		size_t length;
		const char *name = LLVMGetValueName2(old, &length);

		LLVMReplaceAllUsesWith(old, new);
		LLVMSetValueName2(new, name, length);
	}
}

const char *tally_instruction_text(LLVMValueRef instruction, char *text, size_t size)
{
	char *full = LLVMPrintValueToString(instruction), *from = full, *end;

	while (*from == ' ')
		from++;
	end = strstr(from, ", !dbg");
	if (end)
		*end = '\0';
	end = strchr(from, '\n');
	if (end)
		*end = '\0';
	snprintf(text, size, "%s", from);
	LLVMDisposeMessage(full);
	return text;
}

bool tally_instruction_place(LLVMValueRef instruction, const char **file, size_t *length,
			     unsigned *line, unsigned *column)
{
	LLVMMetadataRef location = LLVMInstructionGetDebugLoc(instruction), scope;
	unsigned size = 0;

	if (!location)
		return false;
	scope = LLVMDILocationGetScope(location);
	scope = scope ? LLVMDIScopeGetFile(scope) : NULL;
	if (!scope)
		return false;
	*file = LLVMDIFileGetFilename(scope, &size);
	*length = size;
	*line = LLVMDILocationGetLine(location);
	*column = LLVMDILocationGetColumn(location);
	return *line != 0;
}

bool tally_verify_ir(LLVMModuleRef module, const char *what, struct tally_error *error)
{
	char *message = NULL;
	bool bad = LLVMVerifyModule(module, LLVMReturnStatusAction, &message) != 0;

	if (bad) {
		/* LLVM says what is wrong in its first line and shows the instruction after it. */
		for (char *p = message; *p; p++)
			if (*p == '\n')
				*p = ' ';
		tally_fail(error, "invalid IR after %s: %s", what, message);
	}
	LLVMDisposeMessage(message);
	return !bad;
}

bool tally_calls_through_pointer(LLVMValueRef function)
{
	TALLY_EACH_BLOCK (function, block)
		TALLY_EACH_INSTRUCTION (block, i)
			if (LLVMIsACallInst(i) && !LLVMIsAFunction(LLVMGetCalledValue(i)) &&
			    !LLVMIsAInlineAsm(LLVMGetCalledValue(i)))
				return true;
	return false;
}

void tally_exit_to_return(LLVMValueRef instruction)
{
	LLVMValueRef call = LLVMGetPreviousInstruction(instruction);
	const char *called;
	LLVMBuilderRef builder;

	if (!LLVMIsAUnreachableInst(instruction) || !call)
		return;
	called = tally_called_name(call);
	if (!called || strcmp(called, "tally.exit"))
		return;
	builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(call)));
	LLVMPositionBuilderBefore(builder, instruction);
	LLVMBuildRetVoid(builder);
	LLVMDisposeBuilder(builder);
	LLVMInstructionEraseFromParent(instruction);
	LLVMInstructionEraseFromParent(call);
}
