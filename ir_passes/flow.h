/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flow of one function as the threads of a block go through it: which values and branches are
 * the same for all of them, and which blocks some threads may run while others do not. What makes a
 * value differ is said by rules, because a module has other names for a thread's id and a barrier
 * before and after it was made for a machine.
 */
#ifndef TALLY_IR_PASSES_FLOW_H
#define TALLY_IR_PASSES_FLOW_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir_passes/numbers.h"
#include "ir_passes/reach.h"

struct tally_flow;

/* Where an instruction's value comes from. */
enum tally_flow_source {
	TALLY_FLOW_OPERANDS,  /* differs where an operand differs */
	TALLY_FLOW_DIVERGENT, /* may differ from thread to thread */
	TALLY_FLOW_UNIFORM,   /* the same for all, whatever the operands */
};

struct tally_flow_rules {
	/* Whether the block holds what threads have to come to together. */
	bool (*meets)(LLVMBasicBlockRef block);
	/* Whether a parameter of the function may differ. */
	bool (*argument)(const struct tally_flow *flow, LLVMValueRef argument);
	/* Loads and calls only; all else is known. */
	enum tally_flow_source (*load)(const struct tally_flow *flow, LLVMValueRef load);
	enum tally_flow_source (*call)(const struct tally_flow *flow, LLVMValueRef call);
};

struct tally_flow {
	LLVMValueRef function;
	const struct tally_flow_rules *rules;
	LLVMBasicBlockRef *blocks; /* all of the function, in its order */
	size_t count;
	struct tally_numbers numbers; /* places in `blocks` */
	bool *meets;		      /* by the rules */
	bool *apart;	      /* some threads may run it while others do not, or more often */
	size_t *after;	      /* immediate post-dominator; count: the end; TALLY_NOWHERE: none */
	size_t *from, *preds; /* block b's predecessors: preds[from[b]] to preds[from[b + 1]] */
	unsigned char *seen;  /* free for walks of the caller */
	size_t *stack;	      /* the same: 2 * count + 1 places */
	struct tally_set divergent; /* values that may differ from thread to thread */
};
#define TALLY_NOWHERE SIZE_MAX

/* False when memory ran out; close it all the same. The function must not change meanwhile. */
bool tally_flow_open(LLVMValueRef function, const struct tally_flow_rules *rules,
		     struct tally_flow *flow);
void tally_flow_close(struct tally_flow *flow);

size_t tally_flow_index(const struct tally_flow *flow, LLVMBasicBlockRef block);
unsigned tally_flow_successors(const struct tally_flow *flow, size_t block);
size_t tally_flow_successor(const struct tally_flow *flow, size_t block, unsigned s);

/* Whether a value was found to differ; before tally_flow_diverge() an answer for what is known so
 * far, which is what rules ask. */
bool tally_flow_differs(const struct tally_flow *flow, LLVMValueRef value);

/* A call of one of LLVM's intrinsics whose result depends on nothing but its arguments. */
bool tally_flow_pure_intrinsic(LLVMValueRef call);

/* Finds the divergent values and the blocks that are run apart. False when memory ran out. */
bool tally_flow_diverge(struct tally_flow *flow);

/* After that: whether all threads come to the same meetings in the same order. */
bool tally_flow_together(const struct tally_flow *flow);

#endif
