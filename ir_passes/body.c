/* SPDX-License-Identifier: Apache-2.0 */
/* Pass `body`: moves a kernel's blocks into an internal body that its wrappers call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "ir_passes/ir.h"
#include "ir_passes/launch_abi.h"
#include "ir_passes/pass_util.h"
#include "ir_passes/passes.h"

const char *const tally_body_operations[TALLY_BODY_OPERATIONS] = {
	"tally.block.id.x",  "tally.block.id.y",  "tally.block.id.z",
	"tally.grid.size.x", "tally.grid.size.y", "tally.grid.size.z",
};

static LLVMContextRef context_of(LLVMModuleRef module)
{
	return LLVMGetModuleContext(module);
}

char *tally_name_with(LLVMValueRef kernel, const char *suffix)
{
	const char *name = tally_name(kernel);
	size_t length = strlen(name), size = strlen(suffix) + 1;
	char *text = malloc(length + size);

	if (text) {
		memcpy(text, name, length);
		memcpy(text + length, suffix, size);
	}
	return text;
}

/* As LLVM's functions, without a name when memory ran out: the lookup then finds nothing. */
LLVMValueRef tally_body_of(LLVMModuleRef module, LLVMValueRef kernel)
{
	char *name = tally_name_with(kernel, TALLY_BODY_SUFFIX);
	LLVMValueRef body = name ? LLVMGetNamedFunction(module, name) : NULL;

	free(name);
	return body;
}

/* The types of `kernel`'s parameters with `extra` free places behind; the caller frees it. */
static LLVMTypeRef *param_types(LLVMValueRef kernel, unsigned extra)
{
	LLVMTypeRef *types = calloc(LLVMCountParams(kernel) + extra + 1, sizeof *types);

	if (types)
		LLVMGetParamTypes(LLVMGlobalGetValueType(kernel), types);
	return types;
}

/* What belongs to an entry and not to a body: only locks stay on both. */
static void strip_entry_attributes(LLVMValueRef body)
{
	static const char *const names[] = {
		TALLY_ATTR_KERNEL,     TALLY_ATTR_WARP,	       TALLY_ATTR_MAXNTID,
		TALLY_ATTR_REQNTID,    TALLY_ATTR_MINCTAPERSM, TALLY_ATTR_MAXNREG,
		TALLY_ATTR_MAXCLUSTER, TALLY_ATTR_CLUSTER,
	};

	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		LLVMRemoveStringAttributeAtIndex(body, LLVMAttributeFunctionIndex, names[k],
						 strlen(names[k]));
}

static LLVMValueRef create_body(LLVMModuleRef module, LLVMValueRef kernel)
{
	unsigned count = LLVMCountParams(kernel);
	LLVMTypeRef *types = param_types(kernel, TALLY_BODY_EXTRA), type;
	char *name = tally_name_with(kernel, TALLY_BODY_SUFFIX);
	LLVMValueRef body;

	if (!types || !name) {
		free(types);
		free(name);
		return NULL;
	}
	for (unsigned k = 0; k < TALLY_BODY_OPERATIONS; k++)
		types[count + k] = LLVMInt32TypeInContext(context_of(module));
	types[count + TALLY_BODY_PERSISTENT] = LLVMInt1TypeInContext(context_of(module));
	type = LLVMFunctionType(LLVMVoidTypeInContext(context_of(module)), types,
				count + TALLY_BODY_EXTRA, 0);
	free(types);
	body = LLVMAddFunction(module, name, type);
	free(name);
	LLVMSetLinkage(body, LLVMInternalLinkage);
	tally_copy_attributes(kernel, body, count);
	/* The entry's byval bytes are already a copy that nobody writes to. */
	for (unsigned k = 0; k < count; k++)
		LLVMRemoveEnumAttributeAtIndex(body, k + 1,
					       LLVMGetEnumAttributeKindForName("byval", 5));
	strip_entry_attributes(body);
	tally_add_attribute(body, "alwaysinline", 0);
	return body;
}

struct substitution {
	LLVMValueRef body;
	unsigned first; /* index of the first extra parameter */
};

static bool substitute(LLVMValueRef instruction, void *data)
{
	const struct substitution *s = data;
	const char *name = tally_called_name(instruction);

	for (unsigned k = 0; name && k < TALLY_BODY_OPERATIONS; k++)
		if (!strcmp(name, tally_body_operations[k])) {
			tally_replace(instruction, LLVMGetParam(s->body, s->first + k));
			break;
		}
	return true;
}

/* A wrapper's own subprogram: the body's debug places are inlined into something then. */
static void add_debug(LLVMModuleRef module, LLVMValueRef wrapper, LLVMMetadataRef of)
{
	LLVMMetadataRef file = LLVMDIScopeGetFile(of), type, unit, subprogram;
	unsigned line = LLVMDISubprogramGetLine(of);
	LLVMDIBuilderRef builder;
	const char *name;
	size_t length;

	if (!file)
		return;
	builder = LLVMCreateDIBuilder(module);
	unit = LLVMDIBuilderCreateCompileUnit(
		builder, LLVMDWARFSourceLanguageC_plus_plus_14, file, "tally", 5, 1, "", 0, 0, "",
		0, LLVMDWARFEmissionLineTablesOnly, 0, 0, 0, "", 0, "", 0);
	type = LLVMDIBuilderCreateSubroutineType(builder, file, NULL, 0, LLVMDIFlagZero);
	name = LLVMGetValueName2(wrapper, &length);
	subprogram = LLVMDIBuilderCreateFunction(builder, unit, name, length, name, length, file,
						 line, type, 0, 1, line, LLVMDIFlagArtificial, 1);
	LLVMSetSubprogram(wrapper, subprogram);
	LLVMDIBuilderFinalize(builder);
	LLVMDisposeDIBuilder(builder);
}

LLVMValueRef tally_wrapper_create(LLVMModuleRef module, LLVMValueRef kernel, const char *name,
				  bool launch)
{
	LLVMContextRef context = context_of(module);
	unsigned count = LLVMCountParams(kernel);
	LLVMTypeRef *types = param_types(kernel, 1), i32 = LLVMInt32TypeInContext(context);
	LLVMTypeRef fields[] = {LLVMInt64TypeInContext(context), i32, i32, LLVMArrayType2(i32, 3),
				i32};
	LLVMValueRef wrapper, body = tally_body_of(module, kernel);
	LLVMMetadataRef subprogram = LLVMGetSubprogram(body ? body : kernel);
	LLVMTypeRef type = LLVMStructTypeInContext(context, fields, 5, 0);

	if (!types)
		return NULL;
	types[count] = LLVMPointerTypeInContext(context, TALLY_AS_GENERIC);
	wrapper = LLVMAddFunction(module, name,
				  LLVMFunctionType(LLVMVoidTypeInContext(context), types,
						   count + (launch ? 1 : 0), 0));
	free(types);
	tally_copy_attributes(kernel, wrapper, count);
	if (launch) {
		unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
		unsigned align = LLVMGetEnumAttributeKindForName("align", 5);

		LLVMAddAttributeAtIndex(wrapper, count + 1,
					LLVMCreateTypeAttribute(context, byval, type));
		LLVMAddAttributeAtIndex(wrapper, count + 1,
					LLVMCreateEnumAttribute(context, align, 8));
		LLVMSetValueName2(LLVMGetParam(wrapper, count), "launch", 6);
	}
	for (unsigned k = 0; k < count; k++) {
		size_t length;
		const char *param =
			LLVMGetValueName2(LLVMGetParam(body ? body : kernel, k), &length);

		LLVMSetValueName2(LLVMGetParam(wrapper, k), param, length);
	}
	if (subprogram)
		add_debug(module, wrapper, subprogram);
	return wrapper;
}

void tally_wrapper_call(LLVMBuilderRef builder, LLVMValueRef wrapper, LLVMValueRef body,
			LLVMValueRef extra[TALLY_BODY_EXTRA])
{
	unsigned count = LLVMCountParams(body), own = count - TALLY_BODY_EXTRA;
	LLVMValueRef *arguments = calloc(count, sizeof *arguments), call;
	LLVMMetadataRef subprogram = LLVMGetSubprogram(wrapper);
	LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(body));

	if (!arguments)
		return;
	for (unsigned k = 0; k < own; k++)
		arguments[k] = LLVMGetParam(wrapper, k);
	memcpy(arguments + own, extra, TALLY_BODY_EXTRA * sizeof *extra);
	call = LLVMBuildCall2(builder, LLVMGlobalGetValueType(body), body, arguments, count, "");
	if (subprogram)
		LLVMInstructionSetDebugLoc(
			call, LLVMDIBuilderCreateDebugLocation(context,
							       LLVMDISubprogramGetLine(subprogram),
							       0, subprogram, NULL));
	free(arguments);
}

/* Moves the blocks, then makes the kernel anew as the plain wrapper. */
static bool split_kernel(LLVMModuleRef module, LLVMValueRef kernel, struct tally_error *error)
{
	LLVMValueRef body = create_body(module, kernel), plain, extra[TALLY_BODY_EXTRA];
	struct substitution s = {.body = body, .first = LLVMCountParams(kernel)};
	char *name = tally_name_with(kernel, "");
	LLVMBuilderRef builder;

	if (!body || !name) {
		free(name);
		return tally_fail(error, "out of memory");
	}
	tally_move_body(kernel, body);
	if (LLVMGetSubprogram(kernel)) {
		LLVMSetSubprogram(body, LLVMGetSubprogram(kernel));
		LLVMSetSubprogram(kernel, NULL);
	}
	plain = tally_visit_instructions(body, substitute, &s)
			? tally_wrapper_create(module, kernel, "", false)
			: NULL;
	if (!plain) {
		free(name);
		return tally_fail(error, "out of memory");
	}
	builder = LLVMCreateBuilderInContext(context_of(module));
	LLVMPositionBuilderAtEnd(builder,
				 LLVMAppendBasicBlockInContext(context_of(module), plain, "entry"));
	for (unsigned k = 0; k < TALLY_BODY_OPERATIONS; k++)
		extra[k] =
			tally_build_operation(builder, module, tally_body_operations[k], NULL, 0);
	extra[TALLY_BODY_PERSISTENT] = LLVMConstNull(LLVMInt1TypeInContext(context_of(module)));
	tally_wrapper_call(builder, plain, body, extra);
	LLVMBuildRetVoid(builder);
	LLVMDisposeBuilder(builder);

	LLVMDeleteFunction(kernel);
	LLVMSetValueName2(plain, name, strlen(name));
	free(name);
	return true;
}

bool tally_pass_body(LLVMModuleRef module, const struct tally_pass_options *options,
		     struct tally_error *error)
{
	if (!options->transforms)
		return true;
	TALLY_EACH_FUNCTION (module, kernel)
		if (tally_is_kernel(kernel) && !tally_attribute(kernel, TALLY_ATTR_REFUSE) &&
		    !tally_body_of(module, kernel) && !split_kernel(module, kernel, error))
			return false;
	return true;
}
