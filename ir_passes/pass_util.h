/* SPDX-License-Identifier: Apache-2.0 */
/* What the transforms share and nobody else needs. */
#ifndef TALLY_IR_PASSES_PASS_UTIL_H
#define TALLY_IR_PASSES_PASS_UTIL_H

#include <llvm-c/Core.h>
#include <stdbool.h>

#include "ir_passes/passes.h"

/* A body's extra parameters, after the kernel's own: block id x, y, z, grid size x, y, z as i32,
 * and as i1 whether another block follows in the same threads. */
enum {
	TALLY_BODY_BLOCK = 0,
	TALLY_BODY_GRID = 3,
	TALLY_BODY_OPERATIONS = 6,
	TALLY_BODY_PERSISTENT = 6,
	TALLY_BODY_EXTRA
};

/* The operations that the first of those parameters replace, in their order. */
extern const char *const tally_body_operations[TALLY_BODY_OPERATIONS];

/* `kernel`'s name with `suffix` behind it, of any length; the caller frees it. NULL: no memory. */
char *tally_name_with(LLVMValueRef kernel, const char *suffix);

/* What stands behind the name of a kernel's body, and of its variant by a set of transforms: slice,
 * guard, both, or persist alone. */
#define TALLY_BODY_SUFFIX ".body"
const char *tally_variant_suffix(unsigned transforms);

/* The body of a kernel that has one (`K.body`), or NULL. */
LLVMValueRef tally_body_of(LLVMModuleRef module, LLVMValueRef kernel);

/*
 * Makes kernel `name` with the attributes and parameters of `kernel` and, when `launch`, one
 * `struct tally_launch` more. It has no blocks yet. Where the body has debug lines the wrapper gets
 * a subprogram of its own, so that they survive inlining.
 */
LLVMValueRef tally_wrapper_create(LLVMModuleRef module, LLVMValueRef kernel, const char *name,
				  bool launch);

/* Builds the call of `body` from `wrapper` with its parameters and these values. */
void tally_wrapper_call(LLVMBuilderRef builder, LLVMValueRef wrapper, LLVMValueRef body,
			LLVMValueRef extra[TALLY_BODY_EXTRA]);

/* Makes `body` one after which its threads can run another block, where it is no such body yet.
 * `meet`: its threads may miss each other at barriers, and have to end with tally.persist.finish.
 * False with the reason when it cannot be one, or with an error (no reason) out of memory. */
bool tally_make_persistent(LLVMValueRef body, bool *meet, const char **reason,
			   struct tally_error *error);

/* What has a name that a body or variant of `kernel` by these transforms would have, or NULL. */
LLVMValueRef tally_taken_name(LLVMModuleRef module, LLVMValueRef kernel, unsigned transforms);

/* Whether a variant of `kernel` may have a parameter more: see tally_launch_fits(). */
bool tally_has_room(LLVMModuleRef module, LLVMValueRef kernel, const unsigned *limits);

/* Whether a worker's own word in shared memory fits beside the variables that `body` reaches,
 * within `limit` bytes (0: any number). Ones without a size say nothing: what they get is said at
 * each launch. */
bool tally_has_shared_room(LLVMModuleRef module, LLVMValueRef body, unsigned limit);

/* Marks `kernel` as not to be transformed; an error when the options require all. */
bool tally_refuse(LLVMValueRef kernel, const char *reason, const struct tally_pass_options *options,
		  struct tally_error *error);

#endif
