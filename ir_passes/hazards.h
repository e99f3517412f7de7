/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel does that decides how its blocks may be run: meetings of threads that some may
 * miss, waiting for other blocks, groups of blocks that belong together. Pass `persist` and
 * `tally-lower --classify` ask.
 */
#ifndef TALLY_IR_PASSES_HAZARDS_H
#define TALLY_IR_PASSES_HAZARDS_H

#include <llvm-c/Core.h>
#include <stdbool.h>

#include "ir_passes/flow.h"

/* The rules for kernels and bodies in neutral IR. */
extern const struct tally_flow_rules tally_thread_rules;

/* A barrier of all threads of the block without a result. */
bool tally_is_plain_barrier(LLVMValueRef instruction);

/* A barrier of all threads of the block, with or without a result, which is the same for all. */
bool tally_is_whole_barrier(LLVMValueRef instruction);

/* The operation in which threads meet that this instruction is, or NULL. */
const char *tally_meeting(LLVMValueRef instruction);

/* Asks for what the blocks of a cooperative launch meet in. */
bool tally_meets_grid(LLVMValueRef instruction);

/* How the blocks of one body can follow each other in the same threads. */
enum tally_persistence {
	TALLY_PERSIST_NEVER,  /* see `reason` */
	TALLY_PERSIST_SIMPLE, /* all threads come to every meeting */
	TALLY_PERSIST_MEET,   /* threads may return while others come to plain barriers */
};

/* Looks at `body`, in which all that meets has been inlined. False when memory ran out. */
bool tally_persistence_of(LLVMValueRef body, enum tally_persistence *how, const char **reason);

/*
 * Whether a loop of `function` ends only when memory outside the block changes: it reads a volatile
 * or atomic value again and again. A loop around a compare-and-swap is none: it waits for nobody
 * who has not started. False when memory ran out, which is no answer.
 */
bool tally_waits_for_blocks(LLVMValueRef function, bool *waits);

#endif
