/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison and selection (PTX ISA 9.7.6, 9.7.7). */
#include <string.h>

#include "frontend/ptx/lift.h"

/* Which comparisons are for which integers (PTX ISA 9.7.6.1). */
enum { OF_BITS = 1, OF_UNSIGNED = 2, OF_SIGNED = 4 };

static LLVMValueRef compare_integer(struct ptx_lift *l, const struct ptx_statement *s,
				    LLVMValueRef a, LLVMValueRef b, enum ptx_type type)
{
	static const struct {
		const char *name;
		unsigned of;
		LLVMIntPredicate with_sign, without;
	} table[] = {
		{"eq", OF_BITS | OF_UNSIGNED | OF_SIGNED, LLVMIntEQ, LLVMIntEQ},
		{"ne", OF_BITS | OF_UNSIGNED | OF_SIGNED, LLVMIntNE, LLVMIntNE},
		{"lt", OF_UNSIGNED | OF_SIGNED, LLVMIntSLT, LLVMIntULT},
		{"le", OF_UNSIGNED | OF_SIGNED, LLVMIntSLE, LLVMIntULE},
		{"gt", OF_UNSIGNED | OF_SIGNED, LLVMIntSGT, LLVMIntUGT},
		{"ge", OF_UNSIGNED | OF_SIGNED, LLVMIntSGE, LLVMIntUGE},
		{"lo", OF_UNSIGNED, LLVMIntULT, LLVMIntULT},
		{"ls", OF_UNSIGNED, LLVMIntULE, LLVMIntULE},
		{"hi", OF_UNSIGNED, LLVMIntUGT, LLVMIntUGT},
		{"hs", OF_UNSIGNED, LLVMIntUGE, LLVMIntUGE},
	};
	const char *name = ptx_pick(s, "cmp");
	bool sign = ptx_type_kind(type) == PTX_SIGNED;
	unsigned kind = sign ? OF_SIGNED : ptx_type_kind(type) == PTX_BITS ? OF_BITS : OF_UNSIGNED;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, name) && table[i].of & kind)
			return LLVMBuildICmp(
				l->builder, sign ? table[i].with_sign : table[i].without, a, b, "");
	ptx_fail(l, s, "comparison .%s is not for operands of type .%s", name, ptx_type_name(type));
	return LLVMGetPoison(l->i1);
}

LLVMValueRef ptx_compare_float(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef a,
			       LLVMValueRef b)
{
	static const struct {
		const char *name;
		LLVMRealPredicate predicate;
	} table[] = {
		{"eq", LLVMRealOEQ},  {"ne", LLVMRealONE},  {"lt", LLVMRealOLT},
		{"le", LLVMRealOLE},  {"gt", LLVMRealOGT},  {"ge", LLVMRealOGE},
		{"equ", LLVMRealUEQ}, {"neu", LLVMRealUNE}, {"ltu", LLVMRealULT},
		{"leu", LLVMRealULE}, {"gtu", LLVMRealUGT}, {"geu", LLVMRealUGE},
		{"num", LLVMRealORD}, {"nan", LLVMRealUNO},
	};
	const char *name = ptx_pick(s, "cmp");

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, name))
			return LLVMBuildFCmp(l->builder, table[i].predicate, a, b, "");
	ptx_fail(l, s, "comparison .%s is not for operands of type .%s", name,
		 ptx_type_name(s->type[1] ? s->type[1] : s->type[0]));
	return LLVMGetPoison(l->i1);
}

/* The comparison of operands 1 and 2, of the type that stands last. */
static LLVMValueRef compare(struct ptx_lift *l, const struct ptx_statement *s, enum ptx_type type)
{
	LLVMValueRef a = ptx_source(l, s, 1, type), b = ptx_source(l, s, 2, type);

	if (!strcmp(s->row->operation, "int"))
		return compare_integer(l, s, a, b, type);
	return ptx_compare_float(l, s, ptx_flush(l, s, a, type), ptx_flush(l, s, b, type));
}

/* .and .or .xor with the predicate operand c, when there is one. */
static LLVMValueRef combine(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v)
{
	const char *op = ptx_pick(s, "bool");
	LLVMValueRef c;

	if (!op || s->operands < 4)
		return v;
	c = ptx_source(l, s, 3, PTX_pred);
	return !strcmp(op, "and")  ? LLVMBuildAnd(l->builder, v, c, "")
	       : !strcmp(op, "or") ? LLVMBuildOr(l->builder, v, c, "")
				   : LLVMBuildXor(l->builder, v, c, "");
}

/* One lane of a packed comparison. */
static LLVMValueRef lane(struct ptx_lift *l, LLVMValueRef v, unsigned i)
{
	return LLVMBuildExtractElement(l->builder, v, LLVMConstInt(l->i32, i, 0), "");
}

/* setp of packed halves gives one predicate a half: p|q. */
static bool setp_pair(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef v = compare(l, s, s->type[0]);

	if (l->failed || !s->operand[0]->second)
		return ptx_fail(l, s, "packed halves need two predicate destinations");
	return ptx_result(l, s, combine(l, s, lane(l, v, 0)), PTX_pred) &&
	       ptx_assign_to(l, s, s->operand[0]->second, combine(l, s, lane(l, v, 1)), PTX_pred);
}

bool ptx_lower_setp(struct ptx_lift *l, const struct ptx_statement *s)
{
	const struct ptx_operand *second = s->operand[0]->second;
	LLVMValueRef v, q;

	if (ptx_type_kind(s->type[0]) == PTX_PACKED)
		return setp_pair(l, s);
	if (second && (s->type[0] == PTX_f16 || s->type[0] == PTX_bf16))
		return ptx_fail(l, s, "a comparison of one half has one destination");
	v = compare(l, s, s->type[0]);
	q = second ? combine(l, s, LLVMBuildNot(l->builder, v, "")) : NULL;
	return ptx_result(l, s, combine(l, s, v), PTX_pred) &&
	       (!second || ptx_assign_to(l, s, second, q, PTX_pred));
}

/* Packed set: each half 1.0 or 0 (or all ones for integer destinations). */
static bool set_pair(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef c = compare(l, s, s->type[1]), v = LLVMGetPoison(LLVMVectorType(l->i1, 2));

	for (unsigned i = 0; i < 2 && !l->failed; i++)
		v = LLVMBuildInsertElement(l->builder, v, combine(l, s, lane(l, c, i)),
					   LLVMConstInt(l->i32, i, 0), "");
	if (ptx_type_kind(s->type[0]) == PTX_PACKED)
		v = LLVMBuildUIToFP(l->builder, v, ptx_llvm_type(l, s->type[0]), "");
	else
		v = LLVMBuildSExt(l->builder, v, LLVMVectorType(l->i16, 2), "");
	return ptx_result(l, s, ptx_as(l, v, l->i32, false), PTX_b32);
}

bool ptx_lower_set(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMTypeRef type = ptx_llvm_type(l, s->type[0]);
	LLVMValueRef v;

	if (!strcmp(s->row->operation, "pair"))
		return set_pair(l, s);
	v = combine(l, s, compare(l, s, s->type[1]));
	v = ptx_type_kind(s->type[0]) == PTX_FLOATING ? LLVMBuildUIToFP(l->builder, v, type, "")
						      : LLVMBuildSExt(l->builder, v, type, "");
	return ptx_result(l, s, v, s->type[0]);
}

bool ptx_lower_selp(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef a = ptx_source(l, s, 1, s->type[0]), b = ptx_source(l, s, 2, s->type[0]);
	LLVMValueRef c = ptx_source(l, s, 3, PTX_pred);

	return ptx_result(l, s, LLVMBuildSelect(l->builder, c, a, b, ""), s->type[0]);
}

/* d = c >= 0 ? a : b; -0 counts as 0, NaN chooses b. */
bool ptx_lower_slct(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef a = ptx_source(l, s, 1, s->type[0]), b = ptx_source(l, s, 2, s->type[0]);
	LLVMValueRef c = ptx_source(l, s, 3, s->type[1]), zero = LLVMConstNull(LLVMTypeOf(c));

	if (s->type[1] == PTX_f32)
		c = LLVMBuildFCmp(l->builder, LLVMRealOGE, ptx_flush(l, s, c, PTX_f32), zero, "");
	else
		c = LLVMBuildICmp(l->builder, LLVMIntSGE, c, zero, "");
	return ptx_result(l, s, LLVMBuildSelect(l->builder, c, a, b, ""), s->type[0]);
}
