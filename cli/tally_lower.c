/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower: any kernel container in, code for any target out, sliceable and stoppable. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/lower.h"
#include "cli/targets.h"
#include "frontend/frontend.h"
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

/* Something to compile: a kernel, or a variable that the host can name. */
static bool holds_something(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function)
		if (tally_is_kernel(function))
			return true;
	TALLY_EACH_GLOBAL (module, global)
		if (LLVMGetLinkage(global) == LLVMExternalLinkage && !LLVMIsDeclaration(global))
			return true;
	return false;
}

static LLVMModuleRef lift(LLVMContextRef context, const struct lower_options *options,
			  const struct tally_buffer *input, struct tally_error *error)
{
	struct tally_lift_options lift_options = {
		.file = strcmp(options->input, "-") ? options->input : "<stdin>",
		.target = options->target,
		.kernel = options->passes.kernel};
	LLVMModuleRef module;

	lower_step(LOWER_STEP_READ);
	module = tally_frontend_lift(context, lift_options.file, input->data, input->size,
				     &lift_options, error);
	if (!module)
		return NULL;
	tally_lower_stats(&options->lower, "read");
	if (!holds_something(module)) {
		tally_fail_at(error, lift_options.file, 0, 0, "holds no kernel");
		return NULL;
	}
	return module;
}

static bool transform(LLVMModuleRef module, struct lower_options *options,
		      struct tally_error *error)
{
	lower_step("transforming");
	if (options->print_after && !strcmp(options->print_after, "lift")) {
		char *text = LLVMPrintModuleToString(module);

		fprintf(stderr, "; after lift\n%s", text);
		LLVMDisposeMessage(text);
	} else {
		options->passes.print_after = options->print_after;
	}
	if (!tally_passes_run(module, &options->passes, error))
		return false;
	warn_refused(module, options);
	tally_lower_stats(&options->lower, "transform");
	return true;
}

/* Lifted, transformed, lowered: the bytes to write. */
static bool compile(struct lower_options *options, const struct tally_buffer *input,
		    struct tally_buffer *out, struct tally_error *error)
{
	const struct tally_lowering *lowering = NULL;
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module;

	LLVMContextSetDiagnosticHandler(context, on_diagnostic, error);
	if (options->target)
		lowering = tally_lowering_find(options->target, error);
	tally_lower_stats(&options->lower, NULL);
	if (lower_keep(options, lowering, input, out)) {
		if (options->lower.stats)
			lower_registers(lowering->vendor, &options->lower, out);
		return !out->failed || tally_fail(error, "out of memory");
	}
	module = lift(context, options, input, error);
	if (!module)
		return false;
	if (options->classify)
		return lower_classify(module, error);
	if (lowering && options->keep_going)
		drop_locked(module, lowering->vendor);
	if (!transform(module, options, error))
		return false;
	lower_step("lowering");
	if (!lowering) {
		if (options->lower.emit == TALLY_EMIT_IR)
			tally_lower_print(module, out);
		return !tally_failed(error);
	}
	if (!lowering->lower(module, &options->lower, out, error) || tally_failed(error))
		return false;
	if (options->lower.stats)
		lower_registers(lowering->vendor, &options->lower, out);
	return true;
}

static bool is_text(const struct tally_buffer *out)
{
	return !out->size || !memchr(out->data, '\0', out->size);
}

static bool write_output(const struct lower_options *options, const struct tally_buffer *out,
			 struct tally_error *error)
{
	const char *path = options->output ? options->output : "-";

	if (options->classify || (!options->target && options->lower.emit != TALLY_EMIT_IR))
		return true; /* --verify alone */
	if (!strcmp(path, "-") && !is_text(out) && isatty(STDOUT_FILENO))
		return tally_fail(error, "machine code for a terminal: name a file with -o");
	return tally_file_write(path, out->data, out->size, error);
}

static bool run(struct lower_options *options, struct tally_error *error)
{
	struct tally_buffer input = {0}, out = {0};

	if (!tally_file_read(options->input, &input, error))
		return false;
	/* A driver's image ends in a NUL or not; text readers want one. */
	if (input.failed || !input.size)
		return input.failed ? tally_fail(error, "out of memory")
				    : tally_fail_at(error, options->input, 0, 0, "is empty");
	lower_limit_memory(options->memory, input.size);
	lower_step(LOWER_STEP_READ);
	if (options->list)
		return lower_list(options->input, input.data, input.size, error);
	if (options->opaque ? !lower_opaque(options, &input, &out, error)
			    : !compile(options, &input, &out, error))
		return false;
	return write_output(options, &out, error);
}

int main(int argc, char **argv)
{
	struct lower_options options;
	struct tally_error error = {0};
	bool done, ok;

	ok = lower_options_parse(argc, argv, &options, &done, &error);
	if (ok && !done) {
		lower_crash_install(options.input, options.timeout);
		ok = run(&options, &error);
	}
	if (!ok)
		tally_error_print(&error, "tally-lower");
	if (fflush(stdout) || ferror(stdout)) {
		if (ok)
			fprintf(stderr, "<stdout>: error: cannot write: %s\n", strerror(errno));
		ok = false;
	}
	/* The process ends here: taking LLVM's data apart piece by piece would only cost time. */
	_exit(ok ? 0 : 1);
}
