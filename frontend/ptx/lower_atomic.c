/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic operations, reductions and fences (PTX ISA 9.7.13). */
#include <string.h>

#include "frontend/ptx/lift.h"

enum { MAX_LANES = 8 };

static bool choose(const struct ptx_statement *s, LLVMAtomicRMWBinOp *op)
{
	enum ptx_kind kind = ptx_type_kind(s->type[0]);
	bool real = kind == PTX_FLOATING || kind == PTX_PACKED, sign = kind == PTX_SIGNED;
	const struct {
		const char *name;
		LLVMAtomicRMWBinOp op;
	} table[] = {
		{"and", LLVMAtomicRMWBinOpAnd},
		{"or", LLVMAtomicRMWBinOpOr},
		{"xor", LLVMAtomicRMWBinOpXor},
		{"exch", LLVMAtomicRMWBinOpXchg},
		{"add", real ? LLVMAtomicRMWBinOpFAdd : LLVMAtomicRMWBinOpAdd},
		{"inc", LLVMAtomicRMWBinOpUIncWrap},
		{"dec", LLVMAtomicRMWBinOpUDecWrap},
		{"min", real   ? LLVMAtomicRMWBinOpFMin
			: sign ? LLVMAtomicRMWBinOpMin
			       : LLVMAtomicRMWBinOpUMin},
		{"max", real   ? LLVMAtomicRMWBinOpFMax
			: sign ? LLVMAtomicRMWBinOpMax
			       : LLVMAtomicRMWBinOpUMax},
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (ptx_has(s, table[i].name)) {
			*op = table[i].op;
			return true;
		}
	return false;
}

/* One element's operation; the value before it. Vector forms are atomic by element. */
static LLVMValueRef modify(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef pointer,
			   const struct ptx_operand *operand, unsigned scope)
{
	LLVMAtomicRMWBinOp op;
	LLVMValueRef v = ptx_value(l, s, operand, s->type[0]), rmw;

	if (!choose(s, &op)) {
		ptx_fail(l, s, "no atomic operation is named");
		return v;
	}
	rmw = LLVMBuildAtomicRMWSyncScope(l->builder, op, pointer, v, ptx_order(s), scope);
	LLVMSetAlignment(rmw, ptx_type_bits(s->type[0]) / 8);
	return rmw;
}

static bool atomic(struct ptx_lift *l, const struct ptx_statement *s,
		   const struct ptx_operand *result, unsigned memory)
{
	const struct ptx_operand *source[MAX_LANES], *destination[MAX_LANES];
	unsigned n = ptx_elements(l, s, s->operand[memory + 1], source, MAX_LANES);
	unsigned bytes = ptx_type_bits(s->type[0]) / 8;
	LLVMValueRef pointer, old[MAX_LANES];
	unsigned scope;

	if (ptx_has(s, "shared::cluster"))
		return ptx_lower_vendor(l, s);
	pointer = ptx_pointer(l, s, s->operand[memory], ptx_space_of(s));
	scope = ptx_scope(l, s, "gpu");
	if (result && ptx_elements(l, s, result, destination, MAX_LANES) != n)
		return ptx_fail(l, s, "the destination has another number of elements");
	for (unsigned i = 0; i < n && !l->failed; i++) {
		LLVMValueRef offset = LLVMConstInt(l->i64, (uint64_t)i * bytes, 0), place = pointer;
		if (i)
			place = LLVMBuildGEP2(l->builder, l->i8, pointer, &offset, 1, "");
		old[i] = modify(l, s, place, source[i], scope);
	}
	if (!l->failed && n > 1) /* a vector is aligned as a whole */
		LLVMSetAlignment(old[0], n * bytes);
	for (unsigned i = 0; result && i < n && !l->failed; i++)
		ptx_assign_to(l, s, destination[i], old[i], s->type[0]);
	return !l->failed;
}

bool ptx_lower_atom(struct ptx_lift *l, const struct ptx_statement *s)
{
	return atomic(l, s, s->operand[0], 1);
}

bool ptx_lower_red(struct ptx_lift *l, const struct ptx_statement *s)
{
	return atomic(l, s, NULL, 0);
}

bool ptx_lower_cas(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMAtomicOrdering order = ptx_order(s), failure = order;
	LLVMTypeRef t = ptx_int_type(l, ptx_type_bits(s->type[0]));
	LLVMValueRef pointer, v;

	if (ptx_has(s, "shared::cluster"))
		return ptx_lower_vendor(l, s);
	pointer = ptx_pointer(l, s, s->operand[1], ptx_space_of(s));
	if (order == LLVMAtomicOrderingAcquireRelease)
		failure = LLVMAtomicOrderingAcquire;
	else if (order == LLVMAtomicOrderingRelease)
		failure = LLVMAtomicOrderingMonotonic;
	v = LLVMBuildAtomicCmpXchgSyncScope(l->builder, pointer,
					    ptx_as(l, ptx_source(l, s, 2, s->type[0]), t, false),
					    ptx_as(l, ptx_source(l, s, 3, s->type[0]), t, false),
					    order, failure, ptx_scope(l, s, "gpu"));
	LLVMSetAlignment(v, ptx_type_bits(s->type[0]) / 8);
	return ptx_result(l, s, LLVMBuildExtractValue(l->builder, v, 0, ""), s->type[0]);
}

/* membar is fence.sc with the old names of the scopes; a fence without an order is .acq_rel. */
bool ptx_lower_fence(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMAtomicOrdering order = ptx_order(s);

	if (!strcmp(s->row->operation, "sc"))
		order = LLVMAtomicOrderingSequentiallyConsistent;
	else if (order == LLVMAtomicOrderingMonotonic)
		order = LLVMAtomicOrderingAcquireRelease;
	LLVMBuildFenceSyncScope(l->builder, order, ptx_scope(l, s, ptx_has(s, "gl") ? "gl" : "sys"),
				"");
	return !l->failed;
}
