/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms on neutral IR, and the table that orders them. */
#ifndef TALLY_IR_PASSES_PASSES_H
#define TALLY_IR_PASSES_PASSES_H

#include <llvm-c/Core.h>
#include <stdbool.h>

#include "base/error.h"
#include "ir_passes/contract.h"

enum tally_transform {
	TALLY_SLICE = 1,
	TALLY_GUARD = 2,
	TALLY_PERSIST = 4, /* a variant of its own beside that of the others */
};

struct tally_pass_options {
	unsigned transforms;	 /* set of enum tally_transform: one variant of slice and guard
				    per kernel, one of persist */
	const char *kernel;	 /* only this kernel, or NULL for all: the others are dropped */
	const char *print_after; /* pass name, or NULL: its output goes to stderr as text */
	bool verify;		 /* run the verifier after each pass */
	/* What the parameters of a kernel may take on the machines it is for, in bytes: oldest
	 * machines first, 0 at the end; NULL: no limit. */
	const unsigned *parameter_limits;
	/* What its shared variables of known size may take there; 0: no limit. */
	unsigned shared_limit;
	bool required; /* a kernel that cannot be transformed is an error; otherwise
			  it stays as it is, without a variant */
};

/* Every pass: true when it worked (whether or not it changed anything); false with an error. */
typedef bool tally_pass(LLVMModuleRef module, const struct tally_pass_options *options,
			struct tally_error *error);

tally_pass tally_pass_select;  /* keeps only options->kernel and what it reaches */
tally_pass tally_pass_refuse;  /* marks kernels that must run whole ("tally.refuse") */
tally_pass tally_pass_inline;  /* device functions that read block ids into their kernels */
tally_pass tally_pass_body;    /* kernel -> body + plain wrapper */
tally_pass tally_pass_variant; /* adds K$slice, K$guard or K$slice_guard; K$persist */

struct tally_pass_entry {
	const char *name; /* for --print-after */
	tally_pass *run;
};
extern const struct tally_pass_entry tally_passes[]; /* ends with a NULL name */

/* Runs all passes of the table in order. */
bool tally_passes_run(LLVMModuleRef module, const struct tally_pass_options *options,
		      struct tally_error *error);

/* Whether a kernel with `bytes` of parameters may have a struct tally_launch behind them: the
 * variant may not want machines of later steps of `limits` (as above) than the kernel itself does.
 */
bool tally_launch_fits(unsigned long long bytes, const unsigned *limits);

/* Why not. */
#define TALLY_NO_ROOM "its parameters leave no room for another"

/* After the passes: leaves the variants and what they need, each with its body in it where no other
 * has it. False when memory ran out. */
bool tally_keep_variants(LLVMModuleRef module);

/* Parses "slice,guard" (or "none", "") into a set. */
bool tally_transforms_parse(const char *text, unsigned *set, struct tally_error *error);

#endif
