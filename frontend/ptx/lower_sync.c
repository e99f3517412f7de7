/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers, and the operations of a warp (PTX ISA 9.7.9.6, 9.7.13). */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"

/* bar is barrier.aligned (PTX ISA 9.7.13.1): the lanes of a warp meet it together. */
static LLVMValueRef note_alignment(struct ptx_lift *l, const struct ptx_statement *s,
				   LLVMValueRef call)
{
	static const char aligned[] = TALLY_ATTR_ALIGNED;

	if (LLVMIsACallInst(call) && (!strcmp(s->name, "bar") || ptx_has(s, "aligned")))
		LLVMAddCallSiteAttribute(
			call, LLVMAttributeFunctionIndex,
			LLVMCreateStringAttribute(l->context, aligned, strlen(aligned), "", 0));
	return call;
}

bool ptx_lower_barrier(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef id = ptx_source(l, s, 0, PTX_u32);
	LLVMValueRef count =
		s->operands > 1 ? ptx_source(l, s, 1, PTX_u32) : LLVMConstInt(l->i32, 0, 0);

	note_alignment(l, s,
		       ptx_operation(l,
				     !strcmp(s->row->operation, "sync") ? "tally.barrier"
									: "tally.barrier.arrive",
				     2, id, count, NULL, NULL));
	return !l->failed;
}

/* bar.red d, a{, b}, {!}c */
bool ptx_lower_barrier_reduce(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool popc = !strcmp(s->row->operation, "popc");
	LLVMValueRef id = ptx_source(l, s, 1, PTX_u32);
	LLVMValueRef count =
		s->operands > 3 ? ptx_source(l, s, 2, PTX_u32) : LLVMConstInt(l->i32, 0, 0);
	LLVMValueRef p = ptx_source(l, s, s->operands - 1, PTX_pred);
	const char *name = popc		       ? "tally.barrier.popc"
			   : ptx_has(s, "and") ? "tally.barrier.and"
					       : "tally.barrier.or";
	LLVMValueRef call = ptx_operation(l, name, 3, id, count, p, NULL);

	return ptx_result(l, s, note_alignment(l, s, call), popc ? PTX_u32 : PTX_pred);
}

bool ptx_lower_warp_sync(struct ptx_lift *l, const struct ptx_statement *s)
{
	ptx_operation(l, "tally.warp.sync", 1, ptx_source(l, s, 0, PTX_b32), NULL, NULL, NULL);
	return !l->failed;
}

/* {i32, i1} results go to d and, when it is given, |p. */
static bool pair_result(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v)
{
	const struct ptx_operand *second = s->operand[0]->second;

	if (!ptx_result(l, s, LLVMBuildExtractValue(l->builder, v, 0, ""), PTX_b32))
		return false;
	return !second ||
	       ptx_assign_to(l, s, second, LLVMBuildExtractValue(l->builder, v, 1, ""), PTX_pred);
}

/*
 * The lanes that take part: operand `index`, or, without .sync, those that have come here together,
 * which is all that text for machines before sm_70 can mean (PTX ISA 9.7.9.5, 9.7.13.8).
 */
static LLVMValueRef lanes(struct ptx_lift *l, const struct ptx_statement *s, unsigned index)
{
	const struct ptx_module *m = l->ptx;

	if (strcmp(s->row->operation, "active"))
		return ptx_source(l, s, index, PTX_b32);
	if (!m->version || (m->version >= 64 && m->machine >= 70))
		ptx_fail(l, s, "taken out of PTX 6.4 for sm_70 and later: write .sync and a mask");
	return ptx_operation(l, "tally.active.mask", 0, NULL, NULL, NULL, NULL);
}

bool ptx_lower_shuffle(struct ptx_lift *l, const struct ptx_statement *s)
{
	const char *name = ptx_has(s, "up")	? "tally.shuffle.up"
			   : ptx_has(s, "down") ? "tally.shuffle.down"
			   : ptx_has(s, "bfly") ? "tally.shuffle.xor"
						: "tally.shuffle.idx";
	LLVMValueRef mask = lanes(l, s, 4);

	return pair_result(l, s,
			   ptx_operation(l, name, 4, mask, ptx_source(l, s, 1, PTX_b32),
					 ptx_source(l, s, 2, PTX_b32),
					 ptx_source(l, s, 3, PTX_b32)));
}

bool ptx_lower_vote(struct ptx_lift *l, const struct ptx_statement *s)
{
	const char *name = ptx_has(s, "all")   ? "tally.vote.all"
			   : ptx_has(s, "any") ? "tally.vote.any"
			   : ptx_has(s, "uni") ? "tally.vote.uni"
					       : "tally.vote.ballot";
	LLVMValueRef p = ptx_source(l, s, 1, PTX_pred), mask = lanes(l, s, 2);

	return ptx_result(l, s, ptx_operation(l, name, 2, mask, p, NULL, NULL), s->type[0]);
}

bool ptx_lower_match(struct ptx_lift *l, const struct ptx_statement *s)
{
	char name[32];
	LLVMValueRef v = ptx_source(l, s, 1, s->type[0]), mask = ptx_source(l, s, 2, PTX_b32);

	snprintf(name, sizeof name, "tally.match.%s.i%u", s->row->operation,
		 ptx_type_bits(s->type[0]));
	v = ptx_operation(l, name, 2, mask, v, NULL, NULL);
	return ptx_has(s, "all") ? pair_result(l, s, v) : ptx_result(l, s, v, PTX_b32);
}

bool ptx_lower_redux(struct ptx_lift *l, const struct ptx_statement *s)
{
	static const char *const operations[] = {"add", "min", "max", "and", "or", "xor"};
	char name[32];
	size_t i = 0;
	bool ordered;

	while (!ptx_has(s, operations[i]))
		i++;
	ordered = operations[i][0] == 'm';
	if (s->type[0] == PTX_f32) {
		snprintf(name, sizeof name, "tally.reduce.%s%s%s.f32", operations[i],
			 ptx_has(s, "abs") ? ".abs" : "", ptx_has(s, "NaN") ? ".NaN" : "");
		return ptx_result(l, s,
				  ptx_operation(l, name, 2, ptx_source(l, s, 2, PTX_b32),
						ptx_source(l, s, 1, PTX_f32), NULL, NULL),
				  PTX_f32);
	}
	snprintf(name, sizeof name, "tally.reduce.%s%s",
		 ordered && s->type[0] == PTX_u32 ? "u" : "", operations[i]);
	return ptx_result(l, s,
			  ptx_operation(l, name, 2, ptx_source(l, s, 2, PTX_b32),
					ptx_source(l, s, 1, PTX_b32), NULL, NULL),
			  s->type[0]);
}

bool ptx_lower_active_mask(struct ptx_lift *l, const struct ptx_statement *s)
{
	return ptx_result(l, s, ptx_operation(l, "tally.active.mask", 0, NULL, NULL, NULL, NULL),
			  PTX_b32);
}

bool ptx_lower_elect(struct ptx_lift *l, const struct ptx_statement *s)
{
	return pair_result(
		l, s,
		ptx_operation(l, "tally.elect", 1, ptx_source(l, s, 1, PTX_b32), NULL, NULL, NULL));
}

bool ptx_lower_nanosleep(struct ptx_lift *l, const struct ptx_statement *s)
{
	ptx_operation(l, "tally.nanosleep", 1, ptx_source(l, s, 0, PTX_u32), NULL, NULL, NULL);
	return !l->failed;
}

bool ptx_lower_brkpt(struct ptx_lift *l, const struct ptx_statement *s)
{
	ptx_operation(l, "tally.breakpoint", 0, NULL, NULL, NULL, NULL);
	return !l->failed && s != NULL;
}
