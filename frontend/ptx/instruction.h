/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instruction table: one row for each instruction form of PTX. PTX text and inline assembly are
 * read through it alike; a form that it lacks is an error that names it.
 */
#ifndef TALLY_FRONTEND_PTX_INSTRUCTION_H
#define TALLY_FRONTEND_PTX_INSTRUCTION_H

#include "frontend/ptx/ptx.h"

struct ptx_lift;

/* Builds the IR of one statement at the lifter's builder. False with the lifter's error set. */
typedef bool ptx_lower(struct ptx_lift *lift, const struct ptx_statement *s);

struct ptx_row {
	const char *name;      /* "add" */
	const char *modifiers; /* see instructions.def */
	const char *operands;  /* see instructions.def */
	ptx_lower *lower;      /* NULL: the vendor's, stays as inline assembly */
	const char *operation; /* what `lower` is to build, where it serves several rows */
	const char *section;   /* of the PTX ISA, release 9.0 */
};

/*
 * Finds the row of a statement and puts it into s->row. False with an error at the statement that
 * says whether the name, the modifiers or the operands are what the table does not have.
 */
bool ptx_match(struct ptx_statement *s, const char *file, const char *function, bool is_entry,
	       struct tally_error *error);

/* The table by index, NULL after its end: for tests that walk all of it. */
const struct ptx_row *ptx_row_at(size_t index);

/* Whether the row's name and modifiers admit those of `s`, whatever its operands. */
bool ptx_row_has_form(const struct ptx_row *row, const struct ptx_statement *s);

/* What a name in a row's modifiers (`length` bytes) stands for: the words of a group, with bars
 * between them, or the types of a list, with commas; NULL for any other word. */
const char *ptx_words_of(const char *name, size_t length);

/* The modifier of `s` that belongs to a named group ("rnd", "scope"), or NULL. */
const char *ptx_pick(const struct ptx_statement *s, const char *group);

/* clang-format off */
#define PTX_LOWERINGS(L) \
	L(binary) \
	L(divide) \
	L(unary) \
	L(carry) \
	L(multiply) \
	L(multiply24) \
	L(minmax) \
	L(popcount) \
	L(szext) \
	L(sad) \
	L(dot) \
	L(op_bits) \
	L(lop3) \
	L(shift) \
	L(funnel) \
	L(prmt) \
	L(cnot) \
	L(farith) \
	L(fapprox) \
	L(fminmax) \
	L(fsign) \
	L(copysign) \
	L(testp) \
	L(fmixed) \
	L(fpair) \
	L(setp) \
	L(set) \
	L(selp) \
	L(slct) \
	L(mov) \
	L(mov_vector) \
	L(cvt) \
	L(cvt_pack) \
	L(narrow) \
	L(cvta) \
	L(isspacep) \
	L(load) \
	L(store) \
	L(nothing) \
	L(policy) \
	L(copy_async) \
	L(copy_group) \
	L(atom) \
	L(cas) \
	L(red) \
	L(fence) \
	L(barrier) \
	L(barrier_reduce) \
	L(warp_sync) \
	L(shuffle) \
	L(vote) \
	L(match) \
	L(redux) \
	L(active_mask) \
	L(elect) \
	L(branch) \
	L(branch_index) \
	L(call) \
	L(exit) \
	L(trap) \
	L(nanosleep) \
	L(brkpt) \
	L(video) \
	L(video_shift) \
	L(video_mad) \
	L(simd) \
	L(matrix) \
	L(mbarrier)
/* clang-format on */

#define L(name) ptx_lower ptx_lower_##name;
PTX_LOWERINGS(L)
#undef L

#endif
