/* SPDX-License-Identifier: Apache-2.0 */
/* Moves between registers and address spaces (PTX ISA 9.7.9). */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"

enum { MAX_LANES = 8 };

/* mov.b32 d, {a, b}: the first element has the lowest bits. */
static LLVMValueRef pack(struct ptx_lift *l, const struct ptx_statement *s)
{
	const struct ptx_operand *e[MAX_LANES];
	unsigned n = ptx_elements(l, s, s->operand[1], e, MAX_LANES);
	unsigned bits = ptx_type_bits(s->type[0]);
	unsigned lane = n ? bits / n : bits;
	LLVMTypeRef t = ptx_int_type(l, bits);
	LLVMValueRef v = LLVMConstNull(t);
	enum ptx_type type = lane == 8	  ? PTX_b8
			     : lane == 16 ? PTX_b16
			     : lane == 32 ? PTX_b32
					  : PTX_b64;

	if (lane != ptx_type_bits(type)) {
		ptx_fail(l, s, "the vector does not have the size of the type");
		return v;
	}
	for (unsigned i = 0; i < n; i++) {
		LLVMValueRef x = ptx_as(l, ptx_value(l, s, e[i], type), t, false);
		x = LLVMBuildShl(l->builder, x, LLVMConstInt(t, (uint64_t)i * lane, 0), "");
		v = LLVMBuildOr(l->builder, v, x, "");
	}
	return v;
}

static bool unpack(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v)
{
	const struct ptx_operand *e[MAX_LANES];
	unsigned n = ptx_elements(l, s, s->operand[0], e, MAX_LANES);
	unsigned bits = ptx_type_bits(s->type[0]);
	LLVMTypeRef t = ptx_int_type(l, bits);

	if (l->failed)
		return false;
	if (bits % n || bits / n < 8)
		return ptx_fail(l, s, "the vector does not have the size of the type");
	v = ptx_as(l, v, t, false);
	for (unsigned i = 0; i < n; i++) {
		LLVMValueRef x = LLVMBuildLShr(l->builder, v,
					       LLVMConstInt(t, (uint64_t)i * bits / n, 0), "");
		x = LLVMBuildTrunc(l->builder, x, ptx_int_type(l, bits / n), "");
		if (!ptx_assign_to(l, s, e[i], x, PTX_b32))
			return false;
	}
	return true;
}

bool ptx_lower_mov(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef v =
		s->operand[1]->kind == PTX_O_VECTOR ? pack(l, s) : ptx_source(l, s, 1, s->type[0]);

	if (s->operand[0]->kind == PTX_O_VECTOR)
		return unpack(l, s, v);
	return ptx_result(l, s, v, s->type[0]);
}

/* Element `i` of %tid, %ntid, %ctaid ... without a suffix, which is a vector of four. */
static bool special_element(struct ptx_lift *l, const struct ptx_statement *s,
			    const struct ptx_operand *o, unsigned i, LLVMValueRef *v)
{
	char name[80];

	snprintf(name, sizeof name, "%.70s.%c", o->name, "xyzw"[i % 4]);
	return ptx_special(l, s, name, v);
}

/* mov.v4.u32 {a, b, c, d}, V: element by element. */
bool ptx_lower_mov_vector(struct ptx_lift *l, const struct ptx_statement *s)
{
	const struct ptx_operand *to[MAX_LANES], *from[MAX_LANES], *o = s->operand[1];
	unsigned want = (unsigned)(ptx_pick(s, "vec")[1] - '0');
	bool special = o->kind == PTX_O_NAME && !o->symbol && want == 4;
	unsigned n = ptx_elements(l, s, s->operand[0], to, MAX_LANES);
	unsigned given = special ? 4 : ptx_elements(l, s, o, from, MAX_LANES);
	LLVMValueRef v[MAX_LANES];

	if (l->failed)
		return false;
	if (n != want || given != want)
		return ptx_fail(l, s, "%u elements where %u are moved", n != want ? n : given,
				want);
	for (unsigned i = 0; i < n; i++)
		if (!special)
			v[i] = ptx_value(l, s, from[i], s->type[0]);
		else if (!special_element(l, s, o, i, &v[i]))
			return ptx_fail(l, s, "'%s' is not declared", o->name);
	for (unsigned i = 0; i < n; i++)
		ptx_assign_to(l, s, to[i], v[i], s->type[0]);
	return !l->failed;
}

static unsigned space_number(struct ptx_lift *l, const struct ptx_statement *s)
{
	switch (ptx_space_of(s)) {
	case PTX_SHARED:
		return TALLY_AS_SHARED;
	case PTX_CONST:
		return TALLY_AS_CONSTANT;
	case PTX_GLOBAL:
	case PTX_LOCAL: /* the IR's local addresses are generic ones */
	case PTX_PARAM:
		return TALLY_AS_GENERIC;
	default:
		ptx_fail(l, s, "the state space is missing");
		return TALLY_AS_GENERIC;
	}
}

/*
 * Addresses of one space as generic ones and back. Global and local addresses are generic addresses
 * already (variables of .local are allocas, in address space 0 of the IR).
 */
bool ptx_lower_cvta(struct ptx_lift *l, const struct ptx_statement *s)
{
	unsigned space = space_number(l, s);
	bool to = !strcmp(s->row->operation, "to");
	LLVMTypeRef pointer = LLVMPointerTypeInContext(l->context, space);
	LLVMTypeRef generic = LLVMPointerTypeInContext(l->context, TALLY_AS_GENERIC);
	LLVMValueRef v = ptx_source(l, s, 1, s->type[0]);

	if (space != TALLY_AS_GENERIC) {
		v = LLVMBuildIntToPtr(l->builder, v, to ? generic : pointer, "");
		v = LLVMBuildAddrSpaceCast(l->builder, v, to ? pointer : generic, "");
		v = LLVMBuildPtrToInt(l->builder, v, ptx_llvm_type(l, s->type[0]), "");
	}
	return ptx_result(l, s, v, s->type[0]);
}

bool ptx_lower_isspacep(struct ptx_lift *l, const struct ptx_statement *s)
{
	static const struct {
		const char *space, *operation;
	} spaces[] = {
		{"global", "tally.is.global"},	    {"shared", "tally.is.shared"},
		{"shared::cta", "tally.is.shared"}, {"const", "tally.is.constant"},
		{"local", "tally.is.local"},
	};
	const char *space = ptx_pick(s, "space");
	LLVMValueRef v = LLVMBuildIntToPtr(l->builder, ptx_source(l, s, 1, PTX_u64),
					   LLVMPointerTypeInContext(l->context, 0), "");

	for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
		if (!strcmp(spaces[i].space, space))
			return ptx_result(
				l, s, ptx_operation(l, spaces[i].operation, 1, v, NULL, NULL, NULL),
				PTX_pred);
	/* Kernel parameters are never reached by a generic address made elsewhere. */
	if (!strncmp(space, "param", 5))
		return ptx_result(l, s, LLVMConstInt(l->i1, 0, 0), PTX_pred);
	return ptx_lower_vendor(l, s);
}

/* Prefetches and hints. */
bool ptx_lower_nothing(struct ptx_lift *l, const struct ptx_statement *s)
{
	return !l->failed && s != NULL;
}
