/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies and cache policies (PTX ISA 9.7.9.25, 9.7.9.18). */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/ir.h"

/* cp.async with ignore-src copies no byte when the predicate holds: the rest is zero. */
static LLVMValueRef given_bytes(struct ptx_lift *l, const struct ptx_statement *s, unsigned size)
{
	const struct ptx_operand *o = s->operand[3];
	bool is_register = o->kind == PTX_O_NAME && o->symbol && o->symbol->space == PTX_REG;
	LLVMValueRef whole = LLVMConstInt(l->i32, size, 0);

	if (is_register && o->symbol->type == PTX_pred)
		return LLVMBuildSelect(l->builder, ptx_source(l, s, 3, PTX_pred),
				       LLVMConstInt(l->i32, 0, 0), whole, "");
	return ptx_source(l, s, 3, PTX_u32);
}

/* cp.async.{ca,cg} [to], [from], size{, given or ignored}{, policy}; policies are hints. */
bool ptx_lower_copy_async(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef to = ptx_pointer(l, s, s->operand[0], PTX_SHARED);
	LLVMValueRef from = ptx_pointer(l, s, s->operand[1], PTX_GLOBAL), given = NULL;
	const char *prefetch = ptx_pick(s, "prefetch");
	unsigned size = (unsigned)s->operand[2]->bits;
	bool hint = ptx_has(s, "L2::cache_hint"), global = ptx_has(s, "cg");
	char name[64];

	if (l->failed)
		return false;
	if (size != 16 && (global || (size != 4 && size != 8)))
		return ptx_fail(l, s, "the size is not %s", global ? "16" : "4, 8 or 16");
	if (s->operands > 3u + hint)
		given = given_bytes(l, s, size);
	snprintf(name, sizeof name, "tally.copy.async.%s.%u%s%.*s%s", global ? "cg" : "ca", size,
		 prefetch ? "." : "", prefetch ? (int)strcspn(prefetch + 4, "B") : 0,
		 prefetch ? prefetch + 4 : "", given ? ".part" : "");
	ptx_operation(l, name, given ? 3 : 2, to, from, given, NULL);
	return !l->failed;
}

/* commit_group, wait_group and wait_all */
bool ptx_lower_copy_group(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool number = s->operands > 0;
	LLVMValueRef n = number ? ptx_source(l, s, 0, PTX_u32) : NULL;

	ptx_operation(l, s->row->operation, number, n, NULL, NULL, NULL);
	return !l->failed;
}

/* createpolicy: the operation of the same words; without a share all accesses have the policy. */
bool ptx_lower_policy(struct ptx_lift *l, const struct ptx_statement *s)
{
	const char *kind = s->row->operation;
	bool range = !strcmp(kind, "range");
	char name[96];
	size_t n = (size_t)snprintf(name, sizeof name, "tally.cache.policy.%s", kind);
	LLVMValueRef a, b = NULL, c = NULL;

	for (unsigned i = 0; i < s->modifiers && n < sizeof name; i++)
		if (!strncmp(s->modifier[i], "L2::", 4))
			n += (size_t)snprintf(name + n, sizeof name - n, ".%s", s->modifier[i] + 4);
	if (!strcmp(kind, "cvt")) {
		a = ptx_source(l, s, 1, PTX_b64);
	} else if (!range) {
		a = s->operands > 1 ? ptx_source(l, s, 1, PTX_f32) : ptx_splat(l->f32, 1);
	} else {
		a = ptx_pointer(l, s, s->operand[1],
				ptx_has(s, "global") ? PTX_GLOBAL : PTX_GENERIC);
		a = LLVMBuildAddrSpaceCast(l->builder, a, LLVMPointerTypeInContext(l->context, 0),
					   "");
		b = ptx_source(l, s, 2, PTX_u32);
		c = ptx_source(l, s, 3, PTX_u32);
	}
	if (!l->failed && !tally_operation_declare(l->module, name))
		return ptx_fail(l, s, "there is no such policy");
	return ptx_result(l, s, ptx_operation(l, name, range ? 3 : 1, a, b, c, NULL), PTX_b64);
}
