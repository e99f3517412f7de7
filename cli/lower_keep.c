/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX for NVIDIA's own machines needs no way through IR when all that is wanted stands in front of
 * a body: its text stays as its compiler wrote it, and so do registers, schedule and every
 * instruction that no table of ours knows. What stands round it is made once, from a kernel without
 * a body, by the same passes and the same lowering as any other variant.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/IRReader.h>

#include "base/embed.h"
#include "cli/lower.h"
#include "frontend/frontend.h"
#include "frontend/ptx/outline.h"
#include "ir_passes/ir.h"

TALLY_EMBEDDED(tally_lower_keep_ll);

static bool is_wanted(const struct lower_options *o, const struct tally_lowering *lowering)
{
	const unsigned in_front = TALLY_SLICE | TALLY_GUARD;

	return lowering && !strcmp(lowering->vendor, "nvidia") && !o->lift && !o->print_after &&
	       !o->passes.kernel && o->lower.optimise == 2 && o->lower.emit != TALLY_EMIT_IR &&
	       o->passes.transforms && !(o->passes.transforms & ~in_front);
}

/* Whether a machine runs code that was written for another: PTX ISA 11.1, ".target". */
static bool runs_on(const char *code, const char *machine)
{
	char *suffix;
	unsigned long of_code, of_machine;

	if (strncmp(code, "sm_", 3) || strncmp(machine, "sm_", 3))
		return false;
	of_code = strtoul(code + 3, &suffix, 10);
	of_machine = strtoul(machine + 3, NULL, 10);
	return *suffix == 'a'	? of_code == of_machine
	       : *suffix == 'f' ? of_code <= of_machine && of_code / 10 == of_machine / 10
				: of_code <= of_machine;
}

static bool suits(const struct ptx_outline *outline, const struct lower_options *options)
{
	if (!outline->entries || outline->ours || !runs_on(outline->target, options->target) ||
	    (options->lower.ptx && outline->version > options->lower.ptx))
		return false;
	/* Somebody has to be told: the way through IR does that. */
	for (size_t k = 0; options->passes.required && k < outline->entries; k++)
		if (outline->entry[k].reason)
			return false;
	return true;
}

/* Kernels whose copies could not have their parameter. */
static void refuse_full(struct ptx_outline *outline, const struct tally_lowering *lowering)
{
	for (size_t k = 0; k < outline->entries; k++) {
		struct ptx_entry *e = &outline->entry[k];

		if (!e->reason &&
		    !tally_launch_fits(e->parameter_bytes, lowering->parameter_limits))
			e->reason = TALLY_NO_ROOM;
	}
}

/* What stands round the bodies, for the machine and version that the text names. */
static bool make_frame(const struct ptx_outline *outline, const struct lower_options *options,
		       const struct tally_lowering *lowering, struct ptx_frame *frame,
		       struct tally_error *error)
{
	const unsigned newest = 90; /* that LLVM writes: later versions have it all */
	struct tally_lower_options lower = options->lower;
	LLVMContextRef context = LLVMContextCreate();
	struct tally_buffer text = {0};
	LLVMMemoryBufferRef buffer;
	LLVMModuleRef module;
	char *message = NULL;
	bool ok;

	lower.target = outline->target;
	lower.ptx = outline->version < newest ? outline->version : newest;
	lower.stats = false;
	buffer = LLVMCreateMemoryBufferWithMemoryRange(
		tally_lower_keep_ll, (size_t)(tally_lower_keep_ll_end - tally_lower_keep_ll),
		"lower_keep.ll", 1);
	if (LLVMParseIRInContext(context, buffer, &module, &message)) {
		tally_fail(error, "lower_keep.ll: %s", message);
		LLVMDisposeMessage(message);
		return false;
	}
	ok = tally_passes_run(module, &options->passes, error) &&
	     lowering->lower(module, &lower, &text, error) &&
	     ptx_frame_cut(frame, text.data, text.size, "tally_frame");
	LLVMDisposeModule(module);
	LLVMContextDispose(context);
	tally_buffer_free(&text);
	return ok;
}

static void warn_whole(const struct ptx_outline *outline)
{
	for (size_t k = 0; k < outline->entries; k++) {
		const struct ptx_entry *e = &outline->entry[k];

		if (e->reason)
			fprintf(stderr, "tally-lower: warning: kernel '%.*s' stays whole: %s\n",
				(int)e->name_length, outline->text + e->name, e->reason);
	}
}

static bool keep(const struct tally_image *image, const struct lower_options *options,
		 const struct tally_lowering *lowering, struct tally_buffer *out)
{
	const char *text = (const char *)image->data;
	struct tally_error ignored = {0};
	struct ptx_outline outline;
	struct ptx_frame frame = {0};
	bool ok;

	ok = ptx_outline(&outline, text, strnlen(text, image->size));
	refuse_full(&outline, lowering);
	ok = ok && suits(&outline, options);
	tally_lower_stats(&options->lower, "read");
	ok = ok && make_frame(&outline, options, lowering, &frame, &ignored);
	if (ok) {
		ptx_keep(&outline, &frame, options->passes.transforms & TALLY_SLICE, out);
		warn_whole(&outline);
		tally_lower_stats(&options->lower, "copy");
	}
	ptx_frame_free(&frame);
	ptx_outline_free(&outline);
	return ok;
}

bool lower_keep(const struct lower_options *options, const struct tally_lowering *lowering,
		const struct tally_images *images, struct tally_buffer *out)
{
	const struct tally_image *image = NULL;

	if (is_wanted(options, lowering))
		image = tally_frontend_only(images, options->target);
	return image && image->kind == TALLY_IMAGE_PTX && keep(image, options, lowering, out);
}
