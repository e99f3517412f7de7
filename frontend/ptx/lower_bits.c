/* SPDX-License-Identifier: Apache-2.0 */
/* Bit instructions, logic and shifts (PTX ISA 9.7.1, 9.7.8, prmt). */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"

static LLVMValueRef number(struct ptx_lift *l, unsigned n)
{
	return LLVMConstInt(l->i32, n, 0);
}

/* popc and clz answer in 32 bits, whatever they count. */
bool ptx_lower_popcount(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool clz = !strcmp(s->name, "clz");
	LLVMValueRef v =
		ptx_intrinsic(l, s->row->operation, clz ? 2 : 1, ptx_source(l, s, 1, s->type[0]),
			      LLVMConstInt(l->i1, 0, 0), NULL);
	return ptx_result(l, s, ptx_as(l, v, l->i32, false), PTX_u32);
}

/* Operations of the contract with the instruction's own name: bfe, bfi, bfind, bmsk, fns. */
bool ptx_lower_op_bits(struct ptx_lift *l, const struct ptx_statement *s)
{
	char name[48];
	const char *op = s->row->operation;
	bool value = !strcmp(op, "bfe") || !strcmp(op, "bfi") || !strcmp(op, "bfind");
	bool find = !strcmp(op, "bfind"), insert = !strcmp(op, "bfi");
	LLVMValueRef a[4] = {0};

	if (!strcmp(op, "fns"))
		snprintf(name, sizeof name, "tally.fns");
	else if (!strcmp(op, "bmsk"))
		snprintf(name, sizeof name, "tally.bmsk.%s", ptx_has(s, "wrap") ? "wrap" : "clamp");
	else
		snprintf(name, sizeof name, "tally.%s%s.%s", op,
			 ptx_has(s, "shiftamt") ? ".shiftamt" : "", ptx_type_name(s->type[0]));
	for (unsigned i = 1; i < s->operands; i++)
		a[i - 1] = ptx_source(
			l, s, i, value && (i == 1 || (insert && i == 2)) ? s->type[0] : PTX_u32);
	return ptx_result(l, s, ptx_operation(l, name, s->operands - 1, a[0], a[1], a[2], a[3]),
			  find || !value ? PTX_u32 : s->type[0]);
}

/* Keeps the low n bits of a and extends them; n = 0 gives 0, clamped n of 32 and more gives a. */
bool ptx_lower_szext(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool sign = s->type[0] == PTX_s32;
	LLVMValueRef a = ptx_source(l, s, 1, s->type[0]), n = ptx_source(l, s, 2, PTX_u32);
	LLVMValueRef shift, v, none;

	if (ptx_has(s, "wrap"))
		n = LLVMBuildAnd(l->builder, n, number(l, 31), "");
	else
		n = ptx_intrinsic(l, "llvm.umin", 2, n, number(l, 32), NULL);
	none = LLVMBuildICmp(l->builder, LLVMIntEQ, n, number(l, 0), "");
	/* For n = 0 the shift would be 32: any other will do, the select takes 0 then. */
	shift = LLVMBuildAnd(l->builder, LLVMBuildSub(l->builder, number(l, 32), n, ""),
			     number(l, 31), "");
	v = LLVMBuildShl(l->builder, a, shift, "");
	v = sign ? LLVMBuildAShr(l->builder, v, shift, "")
		 : LLVMBuildLShr(l->builder, v, shift, "");
	return ptx_result(l, s, LLVMBuildSelect(l->builder, none, number(l, 0), v, ""), s->type[0]);
}

bool ptx_lower_cnot(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMTypeRef type = ptx_llvm_type(l, s->type[0]);
	LLVMValueRef zero = LLVMBuildICmp(l->builder, LLVMIntEQ, ptx_source(l, s, 1, s->type[0]),
					  LLVMConstNull(type), "");
	return ptx_result(l, s, LLVMBuildZExt(l->builder, zero, type, ""), s->type[0]);
}

/* Truth tables of two inputs, bit 2*x+y: what one or two operations give. */
static LLVMValueRef table2(struct ptx_lift *l, LLVMValueRef x, LLVMValueRef y, unsigned t)
{
	LLVMBuilderRef b = l->builder;

	if (t >= 8) /* f(1,1) = 1: the complement of a table below */
		return LLVMBuildNot(b, table2(l, x, y, 15 - t), "");
	switch (t) {
	case 0:
		return number(l, 0);
	case 1:
		return LLVMBuildNot(b, LLVMBuildOr(b, x, y, ""), "");
	case 2:
		return LLVMBuildAnd(b, LLVMBuildNot(b, x, ""), y, "");
	case 3:
		return LLVMBuildNot(b, x, "");
	case 4:
		return LLVMBuildAnd(b, x, LLVMBuildNot(b, y, ""), "");
	case 5:
		return LLVMBuildNot(b, y, "");
	case 6:
		return LLVMBuildXor(b, x, y, "");
	default:
		return LLVMBuildNot(b, LLVMBuildAnd(b, x, y, ""), "");
	}
}

/* Splits on a: where a is set the upper half of the table holds, elsewhere the lower. */
static LLVMValueRef table3(struct ptx_lift *l, LLVMValueRef a, LLVMValueRef x, LLVMValueRef y,
			   unsigned t)
{
	unsigned low = t & 15, high = t >> 4;
	LLVMBuilderRef b = l->builder;
	LLVMValueRef not_a;

	if (low == high)
		return table2(l, x, y, low);
	if (low == 15 - high)
		return LLVMBuildXor(b, a, table2(l, x, y, low), "");
	if (low == 0)
		return LLVMBuildAnd(b, a, table2(l, x, y, high), "");
	if (high == 15)
		return LLVMBuildOr(b, a, table2(l, x, y, low), "");
	not_a = LLVMBuildNot(b, a, "");
	if (high == 0)
		return LLVMBuildAnd(b, not_a, table2(l, x, y, low), "");
	if (low == 15)
		return LLVMBuildOr(b, not_a, table2(l, x, y, high), "");
	return LLVMBuildOr(b, LLVMBuildAnd(b, a, table2(l, x, y, high), ""),
			   LLVMBuildAnd(b, not_a, table2(l, x, y, low), ""), "");
}

bool ptx_lower_lop3(struct ptx_lift *l, const struct ptx_statement *s)
{
	uint64_t table = s->operand[4]->bits;
	LLVMValueRef v, p, q;

	if (table > 255)
		return ptx_fail(l, s, "the table %llu is not from 0 to 255",
				(unsigned long long)table);
	v = table3(l, ptx_source(l, s, 1, PTX_b32), ptx_source(l, s, 2, PTX_b32),
		   ptx_source(l, s, 3, PTX_b32), (unsigned)table);
	if (!ptx_result(l, s, v, PTX_b32))
		return false;
	if (s->operands < 6)
		return true;
	q = ptx_source(l, s, 5, PTX_pred);
	p = LLVMBuildICmp(l->builder, LLVMIntNE, v, number(l, 0), "");
	p = ptx_has(s, "and")  ? LLVMBuildAnd(l->builder, p, q, "")
	    : ptx_has(s, "or") ? LLVMBuildOr(l->builder, p, q, "")
			       : LLVMBuildXor(l->builder, p, q, "");
	if (!s->operand[0]->second)
		return ptx_fail(l, s, "the predicate destination is missing");
	return ptx_assign_to(l, s, s->operand[0]->second, p, PTX_pred);
}

/* Shift amounts are 32-bit and clamped: everything is shifted out. */
bool ptx_lower_shift(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0];
	unsigned bits = ptx_type_bits(type);
	LLVMTypeRef t = ptx_int_type(l, bits);
	LLVMValueRef a = ptx_source(l, s, 1, type), n = ptx_source(l, s, 2, PTX_u32), in, v;
	bool left = !strcmp(s->row->operation, "shl"), sign = ptx_type_kind(type) == PTX_SIGNED;

	if (sign && !left) {
		n = ptx_intrinsic(l, "llvm.umin", 2, n, number(l, bits - 1), NULL);
		return ptx_result(l, s, LLVMBuildAShr(l->builder, a, ptx_as(l, n, t, false), ""),
				  type);
	}
	in = LLVMBuildICmp(l->builder, LLVMIntULT, n, number(l, bits), "");
	n = ptx_as(l, n, t, false);
	v = left ? LLVMBuildShl(l->builder, a, n, "") : LLVMBuildLShr(l->builder, a, n, "");
	return ptx_result(l, s, LLVMBuildSelect(l->builder, in, v, LLVMConstNull(t), ""), type);
}

/* shf: 32 bits out of the 64 of {b, a}; a shift by 32 gives the other word. */
bool ptx_lower_funnel(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool left = ptx_has(s, "l");
	LLVMValueRef a = ptx_source(l, s, 1, PTX_b32), b = ptx_source(l, s, 2, PTX_b32);
	LLVMValueRef n = ptx_source(l, s, 3, PTX_u32);
	LLVMValueRef v = ptx_intrinsic(l, left ? "llvm.fshl" : "llvm.fshr", 3, b, a, n);

	if (ptx_has(s, "clamp"))
		v = LLVMBuildSelect(l->builder,
				    LLVMBuildICmp(l->builder, LLVMIntUGE, n, number(l, 32), ""),
				    left ? a : b, v, "");
	return ptx_result(l, s, v, PTX_b32);
}

/* The modes of prmt: the selector that each value of c[1:0] stands for. */
bool ptx_lower_prmt(struct ptx_lift *l, const struct ptx_statement *s)
{
	static const struct {
		const char *mode;
		unsigned selector[4];
	} modes[] = {
		{"f4e", {0x3210, 0x4321, 0x5432, 0x6543}},
		{"b4e", {0x5670, 0x6701, 0x7012, 0x0123}},
		{"rc8", {0x0000, 0x1111, 0x2222, 0x3333}},
		{"ecl", {0x3210, 0x3211, 0x3222, 0x3333}},
		{"ecr", {0x0000, 0x1110, 0x2210, 0x3210}},
		{"rc16", {0x1010, 0x3232, 0x1010, 0x3232}},
	};
	const char *mode = ptx_pick(s, "prmt");
	LLVMValueRef a = ptx_source(l, s, 1, PTX_b32), b = ptx_source(l, s, 2, PTX_b32);
	LLVMValueRef c = ptx_source(l, s, 3, PTX_b32);

	for (size_t i = 0; mode && i < sizeof modes / sizeof *modes; i++) {
		LLVMValueRef low, selector = number(l, modes[i].selector[0]);
		if (strcmp(modes[i].mode, mode))
			continue;
		low = LLVMBuildAnd(l->builder, c, number(l, 3), "");
		for (unsigned k = 1; k < 4; k++)
			selector = LLVMBuildSelect(
				l->builder,
				LLVMBuildICmp(l->builder, LLVMIntEQ, low, number(l, k), ""),
				number(l, modes[i].selector[k]), selector, "");
		c = selector;
		break;
	}
	return ptx_result(l, s, ptx_operation(l, "tally.prmt", 3, a, b, c, NULL), PTX_b32);
}
