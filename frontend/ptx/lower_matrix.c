/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix operations of a warp (PTX ISA 9.7.14): the operation that is named as the instruction. */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"
#include "ir_passes/matrix.h"

/* The selector of mma.sp: the constant behind the metadata. */
enum { SPARSE_SELECTOR = 5, NAME = 160 };

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Where a modifier of mma stands in an operation's name, as ptxas takes them in any order. */
static unsigned rank(const char *m)
{
	static const char *const order[] = {"sp",	 "m8n",	   "m16n",	  "row",
					    "col",	 "rz",	   "rm",	  "rp",
					    "satfinite", "kind::", "block_scale", "scale_vec::"};
	enum { LAYOUT = 3, AFTER = sizeof order / sizeof *order };

	if (ptx_type_find(m, strlen(m)))
		return AFTER;
	for (unsigned i = 0; i < AFTER; i++)
		if (starts(m, order[i]))
			return i == LAYOUT + 1 ? LAYOUT : i;
	return starts(m, "ue") ? AFTER + 1 : AFTER + 2; /* .xor.popc */
}

/* ".kind.mxf4": `::` is no part of a name. */
static size_t append(char *name, size_t n, const char *word)
{
	n += (size_t)snprintf(name + n, n < NAME ? NAME - n : 0, ".");
	for (; *word && n < NAME - 1; word += word[0] == ':' && word[1] == ':' ? 2 : 1)
		name[n++] = *word == ':' ? '.' : *word;
	name[n < NAME ? n : NAME - 1] = '\0';
	return n;
}

/* "tally." and the opcode without .sync.aligned and .rn; for mma in one order, with the size of
 * blocks that .kind implies, and the selector. */
static void name_mma(const struct ptx_statement *s, char *name)
{
	size_t n = (size_t)snprintf(name, NAME, "tally.mma");
	const char *implied = NULL;
	bool sparse = false;

	for (unsigned i = 0; i < s->modifiers; i++) {
		sparse |= rank(s->modifier[i]) == 0;
		if (!strcmp(s->modifier[i], "block_scale"))
			implied = implied ? implied : "scale_vec::2X";
		if (!strcmp(s->modifier[i], "kind::mxf8f6f4"))
			implied = "scale_vec::1X";
	}
	for (unsigned i = 0; i < s->modifiers; i++)
		if (starts(s->modifier[i], "scale_vec::"))
			implied = NULL;
	for (unsigned r = 0; r < 16; r++) {
		for (unsigned i = 0; i < s->modifiers && n < NAME; i++) {
			const char *m = s->modifier[i];

			if (rank(m) == r && strcmp(m, "sync") && strcmp(m, "aligned") &&
			    strcmp(m, "rn"))
				n = append(name, n, m);
		}
		if (implied && r == rank("scale_vec::"))
			n = append(name, n, implied);
	}
	if (sparse && s->operands > SPARSE_SELECTOR &&
	    s->operand[SPARSE_SELECTOR]->kind == PTX_O_INT && n < NAME)
		snprintf(name + n, NAME - n, ".%u", (unsigned)s->operand[SPARSE_SELECTOR]->bits);
}

/* The other instructions come as they are written; .shared only where other spaces are possible. */
static void name_other(const struct ptx_statement *s, char *name)
{
	size_t n = (size_t)snprintf(name, NAME, "tally.%s", s->name);
	bool wmma = !strcmp(s->name, "wmma");

	for (unsigned i = 0; i < s->modifiers && n < NAME; i++) {
		const char *m = s->modifier[i];

		if (!strcmp(m, "sync") || !strcmp(m, "aligned") || !strcmp(m, "rn"))
			continue;
		if (!strcmp(m, "shared::cta"))
			m = "shared";
		if (wmma || strcmp(m, "shared"))
			n = append(name, n, m);
	}
}

static const struct tally_matrix_form *find_form(const struct ptx_statement *s)
{
	char name[NAME];

	if (!strcmp(s->name, "mma"))
		name_mma(s, name);
	else
		name_other(s, name);
	return tally_matrix_find(name, NULL);
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
			      : type == l->i16 ? PTX_b16
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

		if (f->kind == TALLY_MATRIX_SPARSE && i == SPARSE_SELECTOR)
			continue;
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
