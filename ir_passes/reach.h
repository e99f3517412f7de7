/* SPDX-License-Identifier: Apache-2.0 */
/* What a function reaches: the sets of functions and globals that the passes ask for. */
#ifndef TALLY_IR_PASSES_REACH_H
#define TALLY_IR_PASSES_REACH_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>

/* A set of values. Start as `{0}`, end with tally_set_free(). Not shared between threads. */
struct tally_set {
	LLVMValueRef *slots;
	size_t capacity, count;
	bool failed; /* memory ran out: the set is not complete */
};

/* Leaves the set empty, with nothing failed. */
void tally_set_free(struct tally_set *set);
bool tally_set_has(const struct tally_set *set, LLVMValueRef value);
/* False when it was there already (or memory ran out). */
bool tally_set_add(struct tally_set *set, LLVMValueRef value);

/* Adds `root` and every function and variable that it names, calls, or reaches through those;
 * initialisers of variables count too. */
void tally_reach(struct tally_set *set, LLVMValueRef root);

/* Adds the functions whose instructions call or name `member`, and theirs, again and again. */
void tally_add_callers(struct tally_set *set, LLVMValueRef member);

/* Whether a function is used otherwise than as the callee of a call. */
bool tally_address_taken(LLVMValueRef function);

/* Erases the functions and variables of `module` that `keep` does not hold. */
void tally_erase_others(LLVMModuleRef module, const struct tally_set *keep);

#endif
