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

static LLVMModuleRef lift(const struct lower_options *options, const struct tally_images *images,
			  const char *path, struct tally_error *error)
{
	struct tally_lift_options lift_options = {.file = path,
						  .target = options->target,
						  .kernel = options->passes.kernel,
						  .verify = options->passes.verify};
	LLVMModuleRef module;

	module = tally_frontend_lift_images(lower_context(error), path, images, &lift_options,
					    error);
	if (!module)
		return NULL;
	tally_lower_stats(&options->lower, "read");
	if (!lower_holds_something(module)) {
		tally_fail_at(error, path, 0, 0, "holds no kernel");
		return NULL;
	}
	return module;
}

static bool compile_whole(struct lower_options *options, const struct tally_lowering *lowering,
			  const struct tally_images *images, const char *path,
			  struct tally_buffer *out, struct tally_error *error)
{
	LLVMModuleRef module = lift(options, images, path, error);

	if (!module)
		return false;
	return options->classify ? lower_classify(module, lowering, error)
				 : lower_module(module, options, lowering, out, error);
}

/* Whether the PTX in it may have been transformed before. Names that are there already are seen in
 * the whole module alone, not in its text and not in its parts. */
static bool may_be_own_output(const struct lower_options *options,
			      const struct tally_images *images)
{
	static const char *const marks[] = {"$slice", "$guard", "$persist"};

	for (size_t k = 0; options->passes.transforms && k < images->count; k++)
		for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
			if (images->image[k].kind == TALLY_IMAGE_PTX &&
			    memmem(images->image[k].data, images->image[k].size, marks[m],
				   strlen(marks[m])))
				return true;
	return false;
}

/* Lifted, transformed, lowered: the bytes to write. The input is freed as soon as it is read. */
static bool compile(struct lower_options *options, struct tally_buffer *input,
		    struct tally_buffer *out, struct tally_error *error)
{
	const struct tally_lowering *lowering = NULL;
	const char *path = strcmp(options->input, "-") ? options->input : "<stdin>";
	struct tally_images images = {0};
	bool done = false, ok;

	if (options->target)
		lowering = tally_lowering_find(options->target, error);
	tally_lower_stats(&options->lower, NULL);
	if (!tally_container_read(path, input->data, input->size, &images, error))
		return false;
	tally_buffer_free(input);
	ok = !lowering || may_be_own_output(options, &images) ||
	     (done = lower_keep(options, lowering, &images, out)) ||
	     lower_in_parts(options, lowering, &images, path, out, &done, error);
	if (!done)
		ok = compile_whole(options, lowering, &images, path, out, error);
	tally_images_free(&images);
	ok &= !out->failed || tally_fail(error, "out of memory");
	if (ok && lowering && options->lower.stats)
		lower_registers(lowering->vendor, &options->lower, out);
	return ok;
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

	/* Before the work, which may take minutes. */
	if (options->output && !tally_file_may_write(options->output, error))
		return false;
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
