/* SPDX-License-Identifier: Apache-2.0 */
/* What every lowering does in the same way: link libraries, optimise, emit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "backends/backend.h"
#include "backends/library.h"
#include "base/clock.h"
#include "ir_passes/ir.h"
#include "ir_passes/reach.h"

TALLY_EMBEDDED(tally_guard_ll);
TALLY_EMBEDDED(tally_library_ll);
TALLY_EMBEDDED(tally_integer_ll);
TALLY_EMBEDDED(tally_rounding_ll);
TALLY_EMBEDDED(tally_copies_ll);
TALLY_EMBEDDED(tally_narrow_ll);
TALLY_EMBEDDED(tally_narrow_more_ll);

bool tally_lower_link_portable(LLVMModuleRef module, struct tally_error *error)
{
	static const struct tally_library libraries[] = {
		TALLY_LIBRARY(tally_guard_ll, "guard.ll"),
		TALLY_LIBRARY(tally_copies_ll, "copies.ll"),
		TALLY_LIBRARY(tally_narrow_ll, "narrow.ll"),
		TALLY_LIBRARY(tally_library_ll, "library.ll"),
		/* Behind it: reductions of floats are made of integers', which vendors may have. */
		TALLY_LIBRARY(tally_narrow_more_ll, "narrow_more.ll"),
		TALLY_LIBRARY(tally_integer_ll, "integer.ll"),
		TALLY_LIBRARY(tally_rounding_ll, "rounding.ll"),
	};

	for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++)
		if (!tally_lower_link_library(module, &libraries[k], error))
			return false;
	return true;
}

bool tally_lower_link_bitcode(LLVMModuleRef module, const char *path, struct tally_error *error)
{
	LLVMMemoryBufferRef buffer;
	LLVMModuleRef library;
	char *message = NULL;

	if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &message)) {
		tally_fail_at(error, path, 0, 0, "%s", message);
		LLVMDisposeMessage(message);
		return false;
	}
	/* Lazily: only the functions that the linker takes are read. It owns the buffer. */
	if (LLVMGetBitcodeModuleInContext2(LLVMGetModuleContext(module), buffer, &library)) {
		LLVMDisposeMemoryBuffer(buffer);
		return tally_fail_at(error, path, 0, 0, "is no bitcode that LLVM reads");
	}
	return tally_lower_link_module(module, library, false, path, error);
}

void tally_lower_internalise(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function) {
		if (LLVMIsDeclaration(function))
			continue;
		tally_add_attribute(function, "convergent", 0);
		if (!tally_is_kernel(function))
			LLVMSetLinkage(function, LLVMInternalLinkage);
	}
	TALLY_EACH_GLOBAL (module, global)
		if (!LLVMIsDeclaration(global) && LLVMGetLinkage(global) != LLVMExternalLinkage &&
		    LLVMGetLinkage(global) != LLVMAppendingLinkage)
			LLVMSetLinkage(global, LLVMInternalLinkage);
}

/* A kernel that reaches `function`, for messages. */
static const char *kernel_of(LLVMModuleRef module, LLVMValueRef function)
{
	TALLY_EACH_FUNCTION (module, kernel) {
		struct tally_set reach = {0};
		bool found;

		if (!tally_is_kernel(kernel))
			continue;
		tally_reach(&reach, kernel);
		found = tally_set_has(&reach, function);
		tally_set_free(&reach);
		if (found)
			return tally_name(kernel);
	}
	return NULL;
}

/* "tally.amd.refused.a.barrier.of.a.part" is what a library calls where a form does not exist: its
 * own words for it. Any other operation is called by its name. */
static void describe(const char *name, char *text, size_t size)
{
	static const char refused[] = ".refused.";
	const char *words = strstr(name, refused);

	snprintf(text, size, "%s", words ? words + strlen(refused) : name);
	for (char *p = text; words && *p; p++)
		if (*p == '.')
			*p = ' ';
}

bool tally_lower_check_complete(LLVMModuleRef module, const char *target, struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, function) {
		const char *kernel;
		char text[128];

		if (!LLVMIsDeclaration(function) || strncmp(tally_name(function), "tally.", 6) ||
		    !LLVMGetFirstUse(function))
			continue;
		kernel = kernel_of(module, function);
		if (!kernel)
			continue;
		describe(tally_name(function), text, sizeof text);
		return tally_fail(error, "kernel '%s' uses %s, which target %s does not have",
				  kernel, text, target);
	}
	return true;
}

/* Whether `i` is an atomic access of 128 bits at once. */
static bool is_wide_atomic(LLVMValueRef i)
{
	LLVMTypeRef type;

	if (LLVMIsALoadInst(i))
		type = LLVMTypeOf(i);
	else if (LLVMIsAStoreInst(i))
		type = LLVMTypeOf(LLVMGetOperand(i, 0));
	else if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i))
		type = LLVMTypeOf(LLVMGetOperand(i, 1));
	else
		return false;
	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 128 &&
	       (LLVMIsAAtomicCmpXchgInst(i) || LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic);
}

const char *tally_lower_wide_atomics(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function)
		TALLY_EACH_BLOCK (function, block)
			TALLY_EACH_INSTRUCTION (block, i)
				if (is_wide_atomic(i) && kernel_of(module, function))
					return kernel_of(module, function);
	return NULL;
}

bool tally_lower_refuse_wide_atomics(LLVMModuleRef module, const char *target,
				     struct tally_error *error)
{
	const char *kernel = tally_lower_wide_atomics(module);

	return !kernel || tally_fail(error,
				     "kernel '%s' uses atomics of 128 bits, which target %s does "
				     "not have",
				     kernel, target);
}

bool tally_lower_run_pipeline(LLVMModuleRef module, const char *pipeline, void *machine,
			      struct tally_error *error)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef failure = LLVMRunPasses(module, pipeline, machine, options);
	char *message;

	LLVMDisposePassBuilderOptions(options);
	if (!failure)
		return true;
	message = LLVMGetErrorMessage(failure);
	tally_fail(error, "pass pipeline '%s': %s", pipeline, message);
	LLVMDisposeErrorMessage(message);
	return false;
}

const char *tally_lower_pipeline(int optimise)
{
	static const char *const pipelines[] = {
		"always-inline,globaldce",
		"always-inline,globaldce,default<O1>",
		"always-inline,globaldce,default<O2>",
		"always-inline,globaldce,default<O3>",
	};

	return pipelines[optimise < 0 ? 0 : optimise > 3 ? 3 : optimise];
}

/* "INSTRUCTION at FILE:LINE:COL" into its parts; `file` is "" when there is no place. */
struct lock {
	char instruction[256], file[256];
	unsigned line, column;
};

static struct lock parse_lock(const char *text)
{
	struct lock lock = {0};
	const char *at = NULL, *next = text, *colon;
	unsigned line, column;

	while ((next = strstr(next, " at ")))
		at = next++;
	snprintf(lock.instruction, sizeof lock.instruction, "%.*s",
		 (int)(at ? at - text : (long)strlen(text)), text);
	if (!at)
		return lock;
	at += strlen(" at ");
	colon = strrchr(at, ':');
	while (colon && colon > at && colon[-1] != ':')
		colon--;
	if (colon && colon > at && sscanf(colon - 1, ":%u:%u", &line, &column) == 2) {
		lock.line = line;
		lock.column = column;
		snprintf(lock.file, sizeof lock.file, "%.*s", (int)(colon - 1 - at), at);
	} else {
		snprintf(lock.file, sizeof lock.file, "%s", at);
	}
	return lock;
}

bool tally_lower_check_vendor(LLVMModuleRef module, const char *vendor, const char *target,
			      struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, kernel) {
		const char *own = tally_attribute(kernel, TALLY_ATTR_VENDOR);
		const char *locked = tally_attribute(kernel, TALLY_ATTR_LOCKED);
		struct lock lock;

		if (!tally_is_kernel(kernel) || !own || !strcmp(own, vendor))
			continue;
		lock = parse_lock(locked ? locked : "inline asm");
		return tally_fail_at(error, lock.file[0] ? lock.file : NULL, lock.line, lock.column,
				     "kernel '%s' is locked to %s by '%s'; target %s has no such "
				     "instruction",
				     tally_name(kernel), own, lock.instruction, target);
	}
	return true;
}

/* The first error that LLVM reports while it emits. */
static void collect_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
	char *text;

	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
		return;
	text = LLVMGetDiagInfoDescription(info);
	for (char *p = text; *p; p++)
		if (*p == '\n')
			*p = ' ';
	tally_fail(data, "%s", text);
	LLVMDisposeMessage(text);
}

bool tally_lower_emit(LLVMModuleRef module, void *machine, bool object, struct tally_buffer *out,
		      struct tally_error *error)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	LLVMDiagnosticHandler old = LLVMContextGetDiagnosticHandler(context);
	void *old_data = LLVMContextGetDiagnosticContext(context);
	struct tally_error reported = {0};
	LLVMMemoryBufferRef buffer = NULL;
	char *message = NULL;
	bool failed;

	LLVMContextSetDiagnosticHandler(context, collect_diagnostic, &reported);
	failed = LLVMTargetMachineEmitToMemoryBuffer(
		machine, module, object ? LLVMObjectFile : LLVMAssemblyFile, &message, &buffer);
	LLVMContextSetDiagnosticHandler(context, old, old_data);
	if (failed)
		tally_fail(error, "%s", message ? message : "LLVM cannot emit the module");
	else if (tally_failed(&reported))
		tally_fail(error, "%s", reported.message);
	else
		tally_buffer_append(out, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
	if (message)
		LLVMDisposeMessage(message);
	if (buffer)
		LLVMDisposeMemoryBuffer(buffer);
	if (out->failed)
		tally_fail(error, "out of memory");
	return !failed && !tally_failed(&reported) && !out->failed;
}

void tally_lower_print(LLVMModuleRef module, struct tally_buffer *out)
{
	char *text = LLVMPrintModuleToString(module);

	tally_buffer_append(out, text, strlen(text));
	LLVMDisposeMessage(text);
}

void tally_lower_stats(const struct tally_lower_options *options, const char *what)
{
	static uint64_t last; /* one lowering per process at a time */

	if (!options->stats)
		return;
	uint64_t now = tally_now();
	if (what)
		fprintf(stderr, "%-12s %8.2f ms\n", what, (double)(now - last) / 1e6);
	last = now;
}
