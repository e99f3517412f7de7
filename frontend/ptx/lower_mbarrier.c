/* SPDX-License-Identifier: Apache-2.0 */
/* mbarrier objects in shared memory (PTX ISA 9.7.13.15). */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"

/* The address, in shared memory even where the instruction names no space. */
static LLVMValueRef object(struct ptx_lift *l, const struct ptx_statement *s, unsigned index)
{
	LLVMTypeRef shared = LLVMPointerTypeInContext(l->context, TALLY_AS_SHARED);
	LLVMValueRef p = ptx_pointer(l, s, s->operand[index], ptx_space_of(s));

	return LLVMTypeOf(p) == shared ? p : LLVMBuildAddrSpaceCast(l->builder, p, shared, "");
}

/* cp.async.mbarrier.arrive: an arrival when all copies of this thread so far are complete. */
static bool copied(struct ptx_lift *l, const struct ptx_statement *s)
{
	ptx_operation(l, ptx_has(s, "noinc") ? "tally.copy.arrive.own" : "tally.copy.arrive", 1,
		      object(l, s, 0), NULL, NULL, NULL);
	return !l->failed;
}

/* arrive_drop.expect_tx: more bytes are expected, then one thread arrives and leaves. */
static bool drop_expecting(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef p = object(l, s, 1), one = LLVMConstInt(l->i32, 1, 0);

	ptx_operation(l, "tally.mbarrier.expect", 2, p, ptx_source(l, s, 2, PTX_b32), NULL, NULL);
	return ptx_result(l, s,
			  ptx_operation(l, "tally.mbarrier.arrive.drop", 2, p, one, NULL, NULL),
			  PTX_b64);
}

/* {d,} [object] {, count, state or parity}; without a count: 1. */
bool ptx_lower_mbarrier(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool memory_first = s->operand[0]->kind == PTX_O_MEMORY;
	LLVMValueRef address, second = NULL, v;
	LLVMTypeRef type;
	char name[48];
	unsigned at = memory_first ? 0 : 1;

	if (!strcmp(s->row->operation, "copied"))
		return copied(l, s);
	if (!strcmp(s->row->operation, "arrive.drop.expect"))
		return drop_expecting(l, s);
	snprintf(name, sizeof name, "tally.mbarrier.%s", s->row->operation);
	if (!strcmp(s->row->operation, "pending.count"))
		return ptx_result(
			l, s,
			ptx_operation(l, name, 1, ptx_source(l, s, 1, PTX_b64), NULL, NULL, NULL),
			PTX_b32);
	address = object(l, s, at);
	type = LLVMGlobalGetValueType(tally_operation_declare(l->module, name));
	if (LLVMCountParamTypes(type) == 2) {
		LLVMTypeRef parameter[2];

		LLVMGetParamTypes(type, parameter);
		second = s->operands <= at + 1
				 ? LLVMConstInt(l->i32, 1, 0)
				 : ptx_source(l, s, at + 1,
					      parameter[1] == l->i64 ? PTX_b64 : PTX_b32);
	}
	if (l->failed)
		return false;
	v = ptx_operation(l, name, second ? 2 : 1, address, second, NULL, NULL);
	return memory_first || ptx_result(l, s, v, LLVMTypeOf(v) == l->i1 ? PTX_pred : PTX_b64);
}
