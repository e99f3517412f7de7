/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower: what happens to a lifted module, on its way to the bytes that are written. */
#include <stdio.h>
#include <string.h>

#include "cli/lower.h"
#include "cli/targets.h"
#include "ir_passes/ir.h"
#include "ir_passes/reach.h"

static const char *name_of(LLVMValueRef value)
{
	size_t length;

	return LLVMGetValueName2(value, &length);
}

/* LLVM's own diagnostics while it reads: the first error is ours, warnings are nobody's. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
	char *text;

	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
		return;
	text = LLVMGetDiagInfoDescription(info);
	text[strcspn(text, "\n")] = '\0';
	tally_fail(data, "%s", text);
	LLVMDisposeMessage(text);
}

LLVMContextRef lower_context(struct tally_error *error)
{
	LLVMContextRef context = LLVMContextCreate();

	LLVMContextSetDiagnosticHandler(context, on_diagnostic, error);
	return context;
}

/* --keep-going: leaves out the kernels that only another vendor's machines can run. */
static void drop_locked(LLVMModuleRef module, const char *vendor)
{
	struct tally_set keep = {0};
	bool dropped = false;

	TALLY_EACH_FUNCTION (module, kernel) {
		const char *own = tally_attribute(kernel, TALLY_ATTR_VENDOR);

		if (!tally_is_kernel(kernel))
			continue;
		if (!own || !strcmp(own, vendor)) {
			tally_reach(&keep, kernel);
			continue;
		}
		dropped = true;
		fprintf(stderr, "tally-lower: warning: kernel '%s' left out: only %s has '%s'\n",
			name_of(kernel), own, tally_attribute(kernel, TALLY_ATTR_LOCKED));
	}
	TALLY_EACH_GLOBAL (module, global)
		if (LLVMGetLinkage(global) == LLVMExternalLinkage)
			tally_reach(&keep, global);
	if (dropped && !keep.failed)
		tally_erase_others(module, &keep);
	tally_set_free(&keep);
}

static void warn_refused(LLVMModuleRef module, const struct lower_options *options)
{
	if (!options->keep_going || !options->passes.transforms)
		return;
	TALLY_EACH_FUNCTION (module, kernel) {
		const char *reason = tally_attribute(kernel, TALLY_ATTR_REFUSE);

		if (tally_is_kernel(kernel) && reason)
			fprintf(stderr, "tally-lower: warning: kernel '%s' stays whole: %s\n",
				name_of(kernel), reason);
	}
}

bool lower_holds_something(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function)
		if (tally_is_kernel(function))
			return true;
	TALLY_EACH_GLOBAL (module, global)
		if (LLVMGetLinkage(global) == LLVMExternalLinkage && !LLVMIsDeclaration(global))
			return true;
	return false;
}

static bool transform(LLVMModuleRef module, struct lower_options *options,
		      const struct tally_lowering *lowering, struct tally_error *error)
{
	lower_step("transforming");
	if (options->print_after && !strcmp(options->print_after, "lift")) {
		char *text = LLVMPrintModuleToString(module);

		fprintf(stderr, "; after lift\n%s", text);
		LLVMDisposeMessage(text);
	} else {
		options->passes.print_after = options->print_after;
	}
	if (lowering) {
		options->passes.parameter_limits = lowering->parameter_limits;
		options->passes.shared_limit = lowering->shared_limit;
	}
	if (!tally_passes_run(module, &options->passes, error))
		return false;
	warn_refused(module, options);
	if (options->variants_only && !tally_keep_variants(module))
		return tally_fail(error, "out of memory");
	tally_lower_stats(&options->lower, "transform");
	return true;
}

bool lower_module(LLVMModuleRef module, struct lower_options *options,
		  const struct tally_lowering *lowering, struct tally_buffer *out,
		  struct tally_error *error)
{
	if (lowering && options->keep_going)
		drop_locked(module, lowering->vendor);
	if (!transform(module, options, lowering, error))
		return false;
	if (options->variants_only && !LLVMGetFirstFunction(module))
		return true; /* all kernels stay whole */
	lower_step("lowering");
	if (lowering && options->keep_going)
		return lower_keep_going(module, lowering, &options->lower, out, error);
	if (lowering)
		return lowering->lower(module, &options->lower, out, error) && !tally_failed(error);
	if (options->lower.emit == TALLY_EMIT_IR)
		tally_lower_print(module, out);
	return !tally_failed(error);
}
