/* SPDX-License-Identifier: Apache-2.0 */
/* Video instructions (PTX ISA 9.7.18): scalar ones on parts of registers, SIMD ones on their lanes.
 */
#include <string.h>

#include "frontend/ptx/lift.h"

static bool is_signed(enum ptx_type type)
{
	return ptx_type_kind(type) == PTX_SIGNED;
}

/* A number, or a vector of it as wide as `type`. */
static LLVMValueRef all(LLVMTypeRef type, int64_t value)
{
	LLVMValueRef e[4];
	unsigned n;

	if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
		return LLVMConstInt(type, (uint64_t)value, 1);
	n = LLVMGetVectorSize(type);
	for (unsigned i = 0; i < n; i++)
		e[i] = LLVMConstInt(LLVMGetElementType(type), (uint64_t)value, 1);
	return LLVMConstVector(e, n);
}

/* Clamps to what `bits` of a signed or an unsigned number hold. */
static LLVMValueRef saturate(struct ptx_lift *l, LLVMValueRef v, unsigned bits, bool sign)
{
	int64_t low = sign ? -((int64_t)1 << (bits - 1)) : 0;
	int64_t high = ((int64_t)1 << (bits - sign)) - 1;

	v = ptx_intrinsic(l, "llvm.smax", 2, v, all(LLVMTypeOf(v), low), NULL);
	return ptx_intrinsic(l, "llvm.smin", 2, v, all(LLVMTypeOf(v), high), NULL);
}

/* Both wide enough that nothing overflows. */
static LLVMValueRef operate(struct ptx_lift *l, const char *op, LLVMValueRef a, LLVMValueRef b)
{
	if (!strcmp(op, "add"))
		return LLVMBuildAdd(l->builder, a, b, "");
	if (!strcmp(op, "min"))
		return ptx_intrinsic(l, "llvm.smin", 2, a, b, NULL);
	if (!strcmp(op, "max"))
		return ptx_intrinsic(l, "llvm.smax", 2, a, b, NULL);
	if (!strcmp(op, "avrg")) { /* half the sum, to the nearest and away from zero */
		LLVMValueRef sum = LLVMBuildAdd(l->builder, a, b, "");
		LLVMValueRef up = LLVMBuildICmp(l->builder, LLVMIntSGE, sum,
						LLVMConstNull(LLVMTypeOf(sum)), "");
		sum = LLVMBuildAdd(l->builder, sum,
				   LLVMBuildZExt(l->builder, up, LLVMTypeOf(sum), ""), "");
		return LLVMBuildAShr(l->builder, sum, all(LLVMTypeOf(sum), 1), "");
	}
	a = LLVMBuildSub(l->builder, a, b, "");
	if (!strcmp(op, "sub"))
		return a;
	return ptx_intrinsic(l, "llvm.abs", 2, a, LLVMConstInt(l->i1, 0, 0), NULL);
}

/* 1 or 0 (in each lane) of a comparison of wide signed numbers. */
static LLVMValueRef compare(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef a,
			    LLVMValueRef b)
{
	static const struct {
		const char *name;
		LLVMIntPredicate predicate;
	} table[] = {
		{"eq", LLVMIntEQ},  {"ne", LLVMIntNE},	{"lt", LLVMIntSLT},
		{"le", LLVMIntSLE}, {"gt", LLVMIntSGT}, {"ge", LLVMIntSGE},
	};
	size_t i = 0;

	while (!ptx_has(s, table[i].name))
		i++;
	return LLVMBuildZExt(l->builder, LLVMBuildICmp(l->builder, table[i].predicate, a, b, ""),
			     LLVMTypeOf(a), "");
}

/* ---------------------------------------------------------------- scalar */

/* The part of a register that a selector names: .b2, .h1. */
struct part {
	unsigned shift, bits;
};

static struct part part_of(const struct ptx_operand *o)
{
	unsigned bits = !o->selector ? 32 : *o->selector == 'b' ? 8 : 16;

	return (struct part){o->selector ? (unsigned)(o->selector[1] - '0') * bits % 32 : 0, bits};
}

/* A source's part, with the sign that its type asks for, in 64 bits; without a minus before it. */
static LLVMValueRef source(struct ptx_lift *l, const struct ptx_statement *s, unsigned index,
			   enum ptx_type type)
{
	struct ptx_operand o = *s->operand[index];
	struct part p = part_of(&o);
	LLVMValueRef v;

	o.negated = false;
	v = ptx_value(l, s, &o, PTX_b32);
	v = LLVMBuildLShr(l->builder, v, LLVMConstInt(l->i32, p.shift, 0), "");
	v = LLVMBuildTrunc(l->builder, v, ptx_int_type(l, p.bits), "");
	return is_signed(type) ? LLVMBuildSExt(l->builder, v, l->i64, "")
			       : LLVMBuildZExt(l->builder, v, l->i64, "");
}

/* The result in a part of the destination, the rest of it from c; or combined with c; or alone. */
static bool finish(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v,
		   enum ptx_type type)
{
	static const char *const second[] = {"add", "min", "max"};
	struct part p = part_of(s->operand[0]);
	uint32_t mask = p.bits < 32 ? ((1u << p.bits) - 1) << p.shift : 0xffffffff;
	LLVMValueRef c;

	if (ptx_has(s, "sat"))
		v = saturate(l, v, p.bits, is_signed(type));
	for (size_t i = 0; i < sizeof second / sizeof *second; i++)
		if (ptx_has(s, second[i])) {
			v = LLVMBuildTrunc(l->builder, v, l->i32, "");
			v = is_signed(type) ? LLVMBuildSExt(l->builder, v, l->i64, "")
					    : LLVMBuildZExt(l->builder, v, l->i64, "");
			v = operate(l, second[i], v, source(l, s, 3, type));
		}
	v = LLVMBuildTrunc(l->builder, v, l->i32, "");
	if (p.bits == 32)
		return ptx_result(l, s, v, PTX_b32);
	if (s->operands < 4)
		return ptx_fail(l, s, "a part of the destination needs a third source");
	v = LLVMBuildAnd(l->builder,
			 LLVMBuildShl(l->builder, v, LLVMConstInt(l->i32, p.shift, 0), ""),
			 LLVMConstInt(l->i32, mask, 0), "");
	c = LLVMBuildAnd(l->builder, ptx_source(l, s, 3, PTX_b32), LLVMConstInt(l->i32, ~mask, 0),
			 "");
	return ptx_result(l, s, LLVMBuildOr(l->builder, v, c, ""), PTX_b32);
}

bool ptx_lower_video(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool set = !strcmp(s->row->operation, "set");
	enum ptx_type at = s->type[set ? 0 : 1], bt = s->type[set ? 1 : 2];
	LLVMValueRef a = source(l, s, 1, at), b = source(l, s, 2, bt);

	return finish(l, s, set ? compare(l, s, a, b) : operate(l, s->row->operation, a, b),
		      set ? PTX_u32 : s->type[0]);
}

/* By at most 32, or by the low five bits. */
bool ptx_lower_video_shift(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef a = source(l, s, 1, s->type[1]), b = source(l, s, 2, PTX_u32), v;

	if (ptx_has(s, "wrap"))
		b = LLVMBuildAnd(l->builder, b, LLVMConstInt(l->i64, 31, 0), "");
	else
		b = ptx_intrinsic(l, "llvm.umin", 2, b, LLVMConstInt(l->i64, 32, 0), NULL);
	v = !strcmp(s->row->operation, "shl") ? LLVMBuildShl(l->builder, a, b, "")
					      : LLVMBuildAShr(l->builder, a, b, "");
	return finish(l, s, v, s->type[0]);
}

/* (a * b + c) >> scale; minus signs as complements with a carry, .po: one more. */
bool ptx_lower_video_mad(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool product = s->operand[1]->negated != s->operand[2]->negated;
	bool minus = s->operand[3]->negated, sign = is_signed(s->type[1]) || is_signed(s->type[2]);
	unsigned shift = ptx_has(s, "shr7") ? 7 : ptx_has(s, "shr15") ? 15 : 0;
	LLVMTypeRef wide = ptx_int_type(l, 128);
	LLVMValueRef a = LLVMBuildSExt(l->builder, source(l, s, 1, s->type[1]), wide, "");
	LLVMValueRef b = LLVMBuildSExt(l->builder, source(l, s, 2, s->type[2]), wide, "");
	LLVMValueRef v = LLVMBuildMul(l->builder, a, b, ""), c;

	sign |= product || minus;
	c = source(l, s, 3, sign ? PTX_s32 : PTX_u32);
	if (product)
		v = LLVMBuildNot(l->builder, v, "");
	else if (minus && !ptx_has(s, "po"))
		c = LLVMBuildNot(l->builder, c, "");
	v = LLVMBuildAdd(l->builder, v, LLVMBuildSExt(l->builder, c, wide, ""), "");
	if (ptx_has(s, "po") || product || minus)
		v = LLVMBuildAdd(l->builder, v, LLVMConstInt(wide, 1, 0), "");
	v = LLVMBuildAShr(l->builder, v, LLVMConstInt(wide, shift, 0), "");
	if (ptx_has(s, "sat"))
		v = saturate(l, v, 32, sign);
	return ptx_result(l, s, LLVMBuildTrunc(l->builder, v, l->i32, ""), PTX_b32);
}

/* ---------------------------------------------------------------- SIMD */

/*
 * The lanes of a source, widened: those that its selector names out of the lanes of a and, above
 * them, of b (.h31: the upper half of b, then that of a); by default its own in order.
 */
static LLVMValueRef lanes(struct ptx_lift *l, const struct ptx_statement *s, unsigned index,
			  enum ptx_type type, unsigned count)
{
	LLVMTypeRef narrow = LLVMVectorType(ptx_int_type(l, 32 / count), count);
	LLVMTypeRef wide = LLVMVectorType(l->i32, count);
	const char *selector = s->operand[index]->selector;
	struct ptx_operand plain[2] = {*s->operand[1], *s->operand[2]};
	LLVMValueRef v[2], order[4];

	for (unsigned i = 0; i < 2; i++) {
		plain[i].selector = NULL;
		v[i] = LLVMBuildBitCast(l->builder, ptx_value(l, s, &plain[i], PTX_b32), narrow,
					"");
	}
	if (selector && strlen(selector) != count + 1) {
		ptx_fail(l, s, "selector '%s' does not name %u lanes", selector, count);
		selector = NULL;
	}
	for (unsigned i = 0; i < count; i++)
		order[i] =
			LLVMConstInt(l->i32,
				     selector ? (unsigned)(selector[count - i] - '0') % (2 * count)
					      : i + (index - 1) * count,
				     0);
	v[0] = LLVMBuildShuffleVector(l->builder, v[0], v[1], LLVMConstVector(order, count), "");
	return is_signed(type) ? LLVMBuildSExt(l->builder, v[0], wide, "")
			       : LLVMBuildZExt(l->builder, v[0], wide, "");
}

/* Whether the destination's mask holds the lane: .h1, .b310; all without one. */
static bool in_mask(const struct ptx_operand *o, unsigned lane)
{
	return !o->selector || strchr(o->selector + 1, (int)('0' + lane));
}

/* v{op}{2,4}.dtype.atype.btype{.sat} d, a, b, c and, with .add, the sum of the lanes and c. */
bool ptx_lower_simd(struct ptx_lift *l, const struct ptx_statement *s)
{
	unsigned count = (unsigned)(s->name[strlen(s->name) - 1] - '0'), bits = 32 / count;
	bool set = !strcmp(s->row->operation, "set"), add = ptx_has(s, "add");
	LLVMTypeRef narrow = LLVMVectorType(ptx_int_type(l, bits), count);
	LLVMValueRef a = lanes(l, s, 1, s->type[set ? 0 : 1], count);
	LLVMValueRef b = lanes(l, s, 2, s->type[set ? 1 : 2], count);
	LLVMValueRef v = set ? compare(l, s, a, b) : operate(l, s->row->operation, a, b), rest;

	if (ptx_has(s, "sat"))
		v = saturate(l, v, bits, is_signed(s->type[0]));
	if (!add)
		v = LLVMBuildTrunc(l->builder, v, narrow, "");
	rest = LLVMBuildBitCast(l->builder, ptx_source(l, s, 3, PTX_b32), narrow, "");
	for (unsigned i = 0; i < count; i++) {
		LLVMValueRef index = LLVMConstInt(l->i32, i, 0), other;
		if (in_mask(s->operand[0], i))
			continue;
		other = add ? LLVMConstInt(l->i32, 0, 0)
			    : LLVMBuildExtractElement(l->builder, rest, index, "");
		v = LLVMBuildInsertElement(l->builder, v, other, index, "");
	}
	if (add) {
		v = ptx_intrinsic(l, "llvm.vector.reduce.add", 1, v, NULL, NULL);
		v = LLVMBuildAdd(l->builder, v, ptx_source(l, s, 3, PTX_b32), "");
	}
	return ptx_result(l, s, ptx_as(l, v, l->i32, false), PTX_b32);
}
