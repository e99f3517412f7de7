/* SPDX-License-Identifier: Apache-2.0 */
/* tally-lower: what its files share. */
#ifndef TALLY_CLI_LOWER_H
#define TALLY_CLI_LOWER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "frontend/frontend.h"
#include "ir_passes/passes.h"

struct lower_options {
	const char *input, *output; /* "-": stdin, stdout; output may be NULL */
	const char *target;	    /* NULL when none was named */
	const char *print_after;
	struct tally_pass_options passes;
	struct tally_lower_options lower;
	bool variants_only; /* what came is written as it came: kernels without a variant go */
	unsigned jobs;	    /* processes at once */
	bool list, classify, keep_going, lift;
	uint32_t given;	  /* which options, by their numbers: lower_options.h */
	bool opaque;	  /* --transform opaque: machine code, nothing is lifted */
	unsigned timeout; /* seconds; 0: none */
	unsigned memory;  /* MiB; 0: no limit */
};

/* lower_options.c: false with an error for a command line that makes no sense; `*done` when the
 * program has nothing more to do (--help, --version). */
bool lower_options_parse(int argc, char **argv, struct lower_options *options, bool *done,
			 struct tally_error *error);

/*
 * lower_module.c. A context whose errors go to `error`; a kernel, or a variable that the host can
 * name; and all that happens to a lifted module: transforms, then `lowering` (NULL: none, its IR is
 * printed if that was asked for) into `out`.
 */
LLVMContextRef lower_context(struct tally_error *error);
bool lower_holds_something(LLVMModuleRef module);
bool lower_module(LLVMModuleRef module, struct lower_options *options,
		  const struct tally_lowering *lowering, struct tally_buffer *out,
		  struct tally_error *error);

/* lower_parts.c: PTX to PTX in parts, in several processes. `*done` says whether that was a way for
 * this input; when not, nothing happened. False with the error of the first part that has one. */
bool lower_in_parts(struct lower_options *options, const struct tally_lowering *lowering,
		    const struct tally_images *images, const char *path, struct tally_buffer *out,
		    bool *done, struct tally_error *error);

/* lower_list.c: prints what is inside an input, and which kernels. */
bool lower_list(const char *path, const void *data, size_t size, struct tally_error *error);

/* lower_keep.c: where the bodies of PTX can stay as they are, appends the text with its variants to
 * `out`; otherwise false, without an error: it goes through IR. */
bool lower_keep(const struct lower_options *options, const struct tally_lowering *lowering,
		const struct tally_images *images, struct tally_buffer *out);

/* lower_classify.c: prints of each kernel which transforms it takes and what its blocks and warps
 * need of each other. `lowering` is of the target, NULL: NVIDIA's machines. Transforms the module.
 */
bool lower_classify(LLVMModuleRef module, const struct tally_lowering *lowering,
		    struct tally_error *error);

/* lower_opaque.c: appends the machine code for the target that `input` holds, with guards in its
 * kernels. */
bool lower_opaque(const struct lower_options *options, const struct tally_buffer *input,
		  struct tally_buffer *out, struct tally_error *error);

/*
 * lower_left_out.c: lowers `module` (consumed) into `out`; where the target refuses it, without the
 * kernels that it refuses, each with a warning. False with the error where none is left. `error` is
 * the one that LLVM's diagnostics of the context go to.
 */
bool lower_keep_going(LLVMModuleRef module, const struct tally_lowering *lowering,
		      const struct tally_lower_options *options, struct tally_buffer *out,
		      struct tally_error *error);

/*
 * lower_crash.c: from here on a crash inside LLVM, LLVM's own fatal errors and running longer than
 * `timeout` seconds (0: for ever) end the process with one line and status 1. `input` is named in
 * the line. lower_step() says what is being done, for that line.
 */
void lower_crash_install(const char *input, unsigned timeout);
#define LOWER_STEP_READ "reading the input"
void lower_step(const char *what);

/* From here on more than so many MiB of memory (of the linker that is run, too) end the process in
 * the same way. LOWER_MEMORY_BY_SIZE: far more than an input of `size` bytes takes. 0: no limit. */
#define LOWER_MEMORY_BY_SIZE UINT_MAX
void lower_limit_memory(unsigned mib, size_t size);

/* lower_registers.c: `--stats`: registers and memory of each kernel, from the vendor's own tool
 * where it is installed; silent where it is not. */
void lower_registers(const char *vendor, const struct tally_lower_options *options,
		     const struct tally_buffer *code);

#endif
