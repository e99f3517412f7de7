/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix operations of a warp (PTX ISA 9.7.14): the operation that is named as the instruction. */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"
#include "ir_passes/matrix.h"

/* "tally." and the opcode without .sync.aligned and .rn; .shared only where other spaces are
 * possible. */
static const struct tally_matrix_form *find_form(const struct ptx_statement *s)
{
	char name[128];
	size_t n = (size_t)snprintf(name, sizeof name, "tally.%s", s->name);
	bool wmma = !strcmp(s->name, "wmma");

	for (unsigned i = 0; i < s->modifiers && n < sizeof name; i++) {
		const char *m = s->modifier[i];

		if (!strcmp(m, "sync") || !strcmp(m, "aligned") || !strcmp(m, "rn"))
			continue;
		if (!strcmp(m, "shared::cta"))
			m = "shared";
		if (!wmma && !strcmp(m, "shared"))
			continue;
		n += (size_t)snprintf(name + n, sizeof name - n, ".%s", m);
	}
	return n < sizeof name ? tally_matrix_find(name, NULL) : NULL;
}

/* What the operands of the statement give for the operation's parameters. */
struct registers {
	LLVMValueRef value[TALLY_OPERATION_ARGUMENTS];
	LLVMTypeRef type[TALLY_OPERATION_ARGUMENTS];
	unsigned count, given;
};

static void add_value(struct ptx_lift *l, const struct ptx_statement *s, struct registers *r,
		      const struct ptx_operand *o)
{
	LLVMTypeRef type = r->given < r->count ? r->type[r->given] : NULL;
	LLVMValueRef v;

	if (!type) {
		ptx_fail(l, s, "too many registers");
		return;
	}
	if (o->kind == PTX_O_MEMORY) {
		v = ptx_pointer(l, s, o, ptx_space_of(s));
		if (!l->failed && LLVMTypeOf(v) != type)
			v = LLVMBuildAddrSpaceCast(l->builder, v, type, "");
	} else if (LLVMGetTypeKind(type) == LLVMPointerTypeKind) {
		ptx_fail(l, s, "an operand has a form that does not fit");
		return;
	} else {
		v = ptx_value(l, s, o,
			      type == l->f32   ? PTX_f32
			      : type == l->f64 ? PTX_f64
					       : PTX_b32);
	}
	r->value[r->given++] = v;
}

/* Without a stride the matrix lies dense: a row, or with .col a column, after the other. */
static unsigned dense_stride(const struct tally_matrix_form *f)
{
	bool down = f->flags & TALLY_MATRIX_TRANSPOSED;

	switch (f->kind) {
	case TALLY_MATRIX_WMMA_A:
		return down ? f->m : f->k;
	case TALLY_MATRIX_WMMA_B:
		return down ? f->k : f->n;
	default:
		return down ? f->m : f->n;
	}
}

/* Registers of the destination vector, in the order of the results. */
static bool take_results(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef call,
			 LLVMTypeRef type)
{
	const struct ptx_operand *e[TALLY_OPERATION_RESULTS];
	bool single = LLVMGetTypeKind(type) != LLVMStructTypeKind;
	unsigned n = ptx_elements(l, s, s->operand[0], e, TALLY_OPERATION_RESULTS);
	unsigned want = single ? 1 : LLVMCountStructElementTypes(type);

	if (!l->failed && n != want)
		return ptx_fail(l, s, "%u registers where %u are given", n, want);
	for (unsigned i = 0; i < n && !l->failed; i++)
		ptx_assign_to(l, s, e[i],
			      single ? call : LLVMBuildExtractValue(l->builder, call, i, ""),
			      PTX_b32);
	return !l->failed;
}

bool ptx_lower_matrix(struct ptx_lift *l, const struct ptx_statement *s)
{
	const struct tally_matrix_form *f = find_form(s);
	const struct ptx_operand *e[TALLY_OPERATION_ARGUMENTS];
	struct registers r = {0};
	LLVMValueRef function, call;
	LLVMTypeRef type, result;

	/* A combination that the ISA does not have, or the table: ptxas is to judge it. */
	if (!f)
		return ptx_lower_vendor(l, s);
	function = tally_operation_declare(l->module, f->name);
	type = LLVMGlobalGetValueType(function);
	result = LLVMGetReturnType(type);
	r.count = LLVMCountParamTypes(type);
	LLVMGetParamTypes(type, r.type);
	for (unsigned i = result != LLVMVoidTypeInContext(l->context); i < s->operands; i++) {
		unsigned n = ptx_elements(l, s, s->operand[i], e, TALLY_OPERATION_ARGUMENTS);

		for (unsigned k = 0; k < n && !l->failed; k++)
			add_value(l, s, &r, e[k]);
	}
	if (l->failed)
		return false;
	if (r.given + 1 == r.count && f->kind >= TALLY_MATRIX_WMMA_A &&
	    f->kind <= TALLY_MATRIX_WMMA_D)
		r.value[r.given++] = LLVMConstInt(l->i32, dense_stride(f), 0);
	if (r.given != r.count)
		return ptx_fail(l, s, "%u registers where %u are taken", r.given, r.count);
	call = LLVMBuildCall2(l->builder, type, function, r.value, r.count, "");
	return result == LLVMVoidTypeInContext(l->context) || take_results(l, s, call, result);
}
