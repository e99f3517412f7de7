/* SPDX-License-Identifier: Apache-2.0 */
/* clang's device bitcode to neutral IR: parsing, and the steps in their order. */
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/bitcode/bitcode.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

const char *bitcode_name(LLVMValueRef value)
{
	size_t length;

	return LLVMGetValueName2(value, &length);
}

LLVMValueRef bitcode_function_of(LLVMValueRef instruction)
{
	return LLVMGetBasicBlockParent(LLVMGetInstructionParent(instruction));
}

bool bitcode_fail(struct lift *lift, LLVMValueRef instruction, const char *format, ...)
{
	const char *file = NULL;
	unsigned line = 0, column = 0;
	char text[700], place[256];
	size_t length = 0;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (tally_instruction_place(instruction, &file, &length, &line, &column))
		snprintf(place, sizeof(place), "%.*s", (int)length, file);
	else
		snprintf(place, sizeof(place), "%s", lift->options->file);
	return tally_fail_at(lift->error, place, line, column, "function '%s': %s",
			     bitcode_name(bitcode_function_of(instruction)), text);
}

void bitcode_lock(struct lift *lift, LLVMValueRef call, const char *what)
{
	LLVMValueRef function = bitcode_function_of(call);
	const char *file;
	unsigned line, column;
	size_t length;
	char text[512];

	if (tally_attribute(function, TALLY_ATTR_VENDOR))
		return;
	if (tally_instruction_place(call, &file, &length, &line, &column))
		snprintf(text, sizeof(text), "%s at %.*s:%u:%u", what, (int)length, file, line,
			 column);
	else
		snprintf(text, sizeof(text), "%s in function %s", what, bitcode_name(function));
	tally_attribute_set(function, TALLY_ATTR_VENDOR, lift->locks);
	tally_attribute_set(function, TALLY_ATTR_LOCKED, text);
}

unsigned bitcode_module_flag(struct lift *lift, const char *name, unsigned otherwise)
{
	LLVMMetadataRef flag = LLVMGetModuleFlag(lift->module, name, strlen(name));
	LLVMValueRef value = NULL;

	/* A constant as metadata is no node, but answers as one with the constant in it. */
	if (flag && LLVMGetMetadataKind(flag) == LLVMConstantAsMetadataMetadataKind)
		LLVMGetMDNodeOperands(LLVMMetadataAsValue(lift->context, flag), &value);
	return value && LLVMIsAConstantInt(value) ? (unsigned)LLVMConstIntGetZExtValue(value)
						  : otherwise;
}

/* Runs an LLVM pass pipeline without a target. */
static bool run_passes(struct lift *lift, const char *pipeline)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef failed = LLVMRunPasses(lift->module, pipeline, NULL, options);
	char *message;

	LLVMDisposePassBuilderOptions(options);
	if (!failed)
		return true;
	message = LLVMGetErrorMessage(failed);
	tally_fail_at(lift->error, lift->options->file, 0, 0, "internal: passes '%s': %s", pipeline,
		      message);
	LLVMDisposeErrorMessage(message);
	return false;
}

/* LLVM says what is wrong through the context's handler; without one it exits. */
static void take_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
	struct lift *lift = data;
	char *text;

	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
		return;
	text = LLVMGetDiagInfoDescription(info);
	tally_fail_at(lift->error, lift->options->file, 0, 0, "%s", text);
	LLVMDisposeMessage(text);
}

/* "NAME:LINE:COLUMN: error: TEXT\n…" as LLVM's parser prints it. */
static bool fail_at_parse(struct lift *lift, const char *message)
{
	const char *text = strstr(message, "error: ");
	unsigned line = 0, column = 0;

	for (const char *p = text; p && p > message; p--)
		if (sscanf(p, ":%u:%u: error", &line, &column) == 2 && p[1] > '0')
			if (p == message || p[-1] < '0' || p[-1] > '9')
				break;
	text = text ? text + strlen("error: ") : message;
	return tally_fail_at(lift->error, lift->options->file, line, column, "%.*s",
			     (int)strcspn(text, "\n"), text);
}

static bool parse_module(struct lift *lift, LLVMMemoryBufferRef memory, bool text)
{
	char *message = NULL;
	bool failed;

	if (text) {
		/* Takes the buffer whether it fails or not. */
		if (!LLVMParseIRInContext(lift->context, memory, &lift->module, &message))
			return true;
		lift->module = NULL;
		fail_at_parse(lift, message ? message : "not LLVM IR");
		LLVMDisposeMessage(message);
		return false;
	}
	failed = LLVMParseBitcodeInContext2(lift->context, memory, &lift->module);
	LLVMDisposeMemoryBuffer(memory);
	if (!failed)
		return true;
	lift->module = NULL;
	return tally_fail_at(lift->error, lift->options->file, 0, 0, "damaged LLVM bitcode");
}

/* Parses and verifies; sets lift->module. Damaged input is an error, not the end of the process, as
 * far as LLVM's reader allows. */
static bool parse(struct lift *lift, const void *data, size_t size, bool text)
{
	LLVMMemoryBufferRef memory =
		LLVMCreateMemoryBufferWithMemoryRangeCopy(data, size, lift->options->file);
	char *message = NULL;

	if (!parse_module(lift, memory, text))
		return false;
	if (LLVMVerifyModule(lift->module, LLVMReturnStatusAction, &message))
		tally_fail_at(lift->error, lift->options->file, 0, 0, "broken LLVM module: %.*s",
			      (int)strcspn(message, "\n"), message);
	LLVMDisposeMessage(message);
	return !tally_failed(lift->error);
}

/* Triples of device code, and what they make of the lift. */
static const struct {
	const char *prefix;
	enum bitcode_vendor vendor;
	const char *locks;
} triples[] = {
	{"nvptx64-", BITCODE_NVIDIA, "nvidia"},
	{"amdgcn-", BITCODE_AMD, "amd"},
	{"amdgpu-", BITCODE_AMD, "amd"},
};

static bool find_vendor(struct lift *lift)
{
	const char *triple = LLVMGetTarget(lift->module);

	if (!*triple && !strcmp(LLVMGetDataLayoutStr(lift->module), TALLY_DATA_LAYOUT))
		return true; /* our own --emit of neutral IR */
	for (size_t i = 0; i < sizeof(triples) / sizeof(*triples); i++) {
		if (strncmp(triple, triples[i].prefix, strlen(triples[i].prefix)))
			continue;
		lift->vendor = triples[i].vendor;
		lift->locks = triples[i].locks;
		return true;
	}
	return tally_fail_at(lift->error, lift->options->file, 0, 0,
			     "LLVM IR for '%s', not for a GPU (nvptx64 or amdgcn): compile with "
			     "--cuda-device-only",
			     *triple ? triple : "no target");
}

/* "sm_90a" of any function with a body -> 900. */
static unsigned cuda_arch(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function) {
		const char *cpu = LLVMIsDeclaration(function)
					  ? NULL
					  : tally_attribute(function, "target-cpu");
		unsigned sm;

		if (cpu && sscanf(cpu, "sm_%u", &sm) == 1)
			return sm * 10;
	}
	return 800;
}

/* Whether AMD code means wavefronts of 64: what its features say, or the default of its chip. */
static bool amd_wave64(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function) {
		const char *features, *cpu;

		if (LLVMIsDeclaration(function))
			continue;
		features = tally_attribute(function, "target-features");
		cpu = tally_attribute(function, "target-cpu");
		if (features && strstr(features, "+wavefrontsize32"))
			return false;
		if (features && strstr(features, "+wavefrontsize64"))
			return true;
		/* gfx10 and later, whose numbers have four digits: 32 */
		if (cpu)
			return strncmp(cpu, "gfx1", 4) != 0 || strlen(cpu) < 7;
	}
	return true;
}

/* Facts about the source that get lost when its attributes are dropped. */
static void find_facts(struct lift *lift)
{
	if (lift->vendor == BITCODE_NVIDIA)
		lift->arch = cuda_arch(lift->module);
	if (lift->vendor == BITCODE_AMD) {
		lift->wave64 = amd_wave64(lift->module);
		lift->code_object =
			bitcode_module_flag(lift, "amdhsa_code_object_version", 500) / 100;
	}
}

/* What no kernel reaches is not lifted: device libraries come whole, with more than there is. */
static bool drop_unreached(struct lift *lift)
{
	return run_passes(lift, "globaldce");
}

static bool neutral_layout(struct lift *lift)
{
	size_t length;

	LLVMGetModuleInlineAsm(lift->module, &length);
	if (length)
		return tally_fail_at(lift->error, lift->options->file, 0, 0,
				     "module-level assembly cannot be lifted");
	find_facts(lift);
	LLVMSetTarget(lift->module, "");
	LLVMSetDataLayout(lift->module, TALLY_DATA_LAYOUT);
	return true;
}

/* The tables' rows and lifted assembly are small functions until here. */
static bool inline_rows(struct lift *lift)
{
	return run_passes(lift, "always-inline,globaldce");
}

static bitcode_step *const steps[] = {
	neutral_layout,	   bitcode_drop_libraries, bitcode_globals,    bitcode_kernels,
	bitcode_functions, drop_unreached,	   bitcode_amd_memory, bitcode_amd_printf,
	bitcode_special,   bitcode_map_calls,	   bitcode_asm,	       bitcode_locks,
	inline_rows,	   bitcode_leftovers,	   bitcode_warps,
};

static bool run_steps(struct lift *lift)
{
	if (lift->vendor == BITCODE_NEUTRAL)
		return true;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		if (!steps[i](lift))
			return false;
	return true;
}

LLVMModuleRef tally_bitcode_lift(LLVMContextRef context, const void *data, size_t size, bool text,
				 const struct tally_lift_options *options,
				 struct tally_error *error)
{
	LLVMDiagnosticHandler handler = LLVMContextGetDiagnosticHandler(context);
	void *handler_data = LLVMContextGetDiagnosticContext(context);
	struct tally_error ignored = {0};
	struct lift lift = {
		.context = context,
		.options = options,
		.error = error ? error : &ignored,
		.vendor = BITCODE_NEUTRAL,
		.builder = LLVMCreateBuilderInContext(context),
	};
	bool ok;

	LLVMContextSetDiagnosticHandler(context, take_diagnostic, &lift);
	ok = parse(&lift, data, size, text) && find_vendor(&lift) && run_steps(&lift);
	/* An error may have come through the handler alone. */
	if ((!ok || tally_failed(lift.error)) && lift.module) {
		LLVMDisposeModule(lift.module);
		lift.module = NULL;
	}
	if (!lift.module)
		tally_fail_at(lift.error, options->file, 0, 0, "cannot be read as LLVM bitcode");
	LLVMContextSetDiagnosticHandler(context, handler, handler_data);
	LLVMDisposeBuilder(lift.builder);
	return lift.module;
}
