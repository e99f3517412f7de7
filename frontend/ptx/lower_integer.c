/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic (PTX ISA 9.7.1, 9.7.2): plain IR, wide multiplies, and the carry flag. */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/ir.h"

LLVMValueRef ptx_intrinsic(struct ptx_lift *l, const char *name, unsigned count, LLVMValueRef a,
			   LLVMValueRef b, LLVMValueRef c)
{
	LLVMValueRef arguments[] = {a, b, c};
	LLVMTypeRef type = LLVMTypeOf(a);

	return tally_build_intrinsic(l->builder, l->module, name, &type, 1, arguments, count);
}

LLVMValueRef ptx_operation(struct ptx_lift *l, const char *name, unsigned count, LLVMValueRef a,
			   LLVMValueRef b, LLVMValueRef c, LLVMValueRef d)
{
	LLVMValueRef arguments[] = {a, b, c, d};

	return tally_build_operation(l->builder, l->module, name, arguments, count);
}

static bool is_signed(enum ptx_type type)
{
	return ptx_type_kind(type) == PTX_SIGNED || type == PTX_s16x2;
}

bool ptx_lower_binary(struct ptx_lift *l, const struct ptx_statement *s)
{
	static const struct {
		const char *name;
		LLVMOpcode opcode;
	} table[] = {
		{"add", LLVMAdd}, {"sub", LLVMSub}, {"and", LLVMAnd},
		{"or", LLVMOr},	  {"xor", LLVMXor},
	};
	LLVMValueRef a = ptx_source(l, s, 1, s->type[0]), b = ptx_source(l, s, 2, s->type[0]);
	size_t i = 0;

	while (strcmp(table[i].name, s->row->operation))
		i++;
	return ptx_result(l, s, LLVMBuildBinOp(l->builder, table[i].opcode, a, b, ""), s->type[0]);
}

/* Intrinsics of one or two operands, and the negations. */
bool ptx_lower_unary(struct ptx_lift *l, const struct ptx_statement *s)
{
	const char *name = s->row->operation;
	LLVMValueRef a = ptx_source(l, s, 1, s->type[0]), v;

	if (!strcmp(name, "neg"))
		v = LLVMBuildNeg(l->builder, a, "");
	else if (!strcmp(name, "not"))
		v = LLVMBuildNot(l->builder, a, "");
	else if (!strcmp(name, "llvm.abs"))
		v = ptx_intrinsic(l, name, 2, a, LLVMConstInt(l->i1, 0, 0), NULL);
	else if (s->operands == 3)
		v = ptx_intrinsic(l, name, 2, a, ptx_source(l, s, 2, s->type[0]), NULL);
	else
		v = ptx_intrinsic(l, name, 1, a, NULL, NULL);
	return ptx_result(l, s, v, s->type[0]);
}

/*
 * PTX leaves a division by zero unspecified; LLVM calls it undefined and the CPU traps. The values
 * here are those of NVIDIA's hardware; constant divisors fold them away.
 */
bool ptx_lower_divide(struct ptx_lift *l, const struct ptx_statement *s)
{
	bool sign = is_signed(s->type[0]), quotient = !strcmp(s->row->operation, "div");
	LLVMTypeRef type = ptx_llvm_type(l, s->type[0]);
	LLVMValueRef a = ptx_source(l, s, 1, s->type[0]), b = ptx_source(l, s, 2, s->type[0]);
	LLVMValueRef zero = LLVMConstNull(type), ones = LLVMConstAllOnes(type);
	LLVMValueRef is_zero = LLVMBuildICmp(l->builder, LLVMIntEQ, b, zero, ""), unsafe = is_zero;
	LLVMValueRef is_minus = NULL, safe, v;

	if (sign) {
		is_minus = LLVMBuildICmp(l->builder, LLVMIntEQ, b, ones, "");
		unsafe = LLVMBuildOr(l->builder, is_zero, is_minus, "");
	}
	safe = LLVMBuildSelect(l->builder, unsafe, LLVMConstInt(type, 1, 0), b, "");
	v = LLVMBuildBinOp(l->builder,
			   quotient ? (sign ? LLVMSDiv : LLVMUDiv) : (sign ? LLVMSRem : LLVMURem),
			   a, safe, "");
	if (sign && quotient)
		v = LLVMBuildSelect(l->builder, is_minus, LLVMBuildNeg(l->builder, a, ""), v, "");
	v = LLVMBuildSelect(l->builder, is_zero, quotient ? ones : a, v, "");
	return ptx_result(l, s, v, s->type[0]);
}

static LLVMValueRef widen(struct ptx_lift *l, LLVMValueRef v, unsigned bits, bool sign)
{
	LLVMTypeRef type = ptx_int_type(l, bits);

	return sign ? LLVMBuildSExt(l->builder, v, type, "")
		    : LLVMBuildZExt(l->builder, v, type, "");
}

static LLVMValueRef high_half(struct ptx_lift *l, LLVMValueRef a, LLVMValueRef b, bool sign)
{
	LLVMTypeRef type = LLVMTypeOf(a);
	unsigned bits = LLVMGetIntTypeWidth(type);
	LLVMValueRef product = LLVMBuildMul(l->builder, widen(l, a, bits * 2, sign),
					    widen(l, b, bits * 2, sign), "");
	product =
		LLVMBuildLShr(l->builder, product, LLVMConstInt(LLVMTypeOf(product), bits, 0), "");
	return LLVMBuildTrunc(l->builder, product, type, "");
}

static LLVMValueRef add_maybe_saturated(struct ptx_lift *l, const struct ptx_statement *s,
					LLVMValueRef v, LLVMValueRef c)
{
	if (ptx_has(s, "sat"))
		return ptx_intrinsic(l, "llvm.sadd.sat", 2, v, c, NULL);
	return LLVMBuildAdd(l->builder, v, c, "");
}

bool ptx_lower_multiply(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0], wide = type;
	unsigned bits = ptx_type_bits(type);
	bool sign = is_signed(type);
	LLVMValueRef a = ptx_source(l, s, 1, type), b = ptx_source(l, s, 2, type), v;

	if (ptx_has(s, "wide")) {
		if (bits == 64)
			return ptx_fail(l, s, ".wide of 64-bit operands");
		wide = bits == 16 ? (sign ? PTX_s32 : PTX_u32) : (sign ? PTX_s64 : PTX_u64);
		v = LLVMBuildMul(l->builder, widen(l, a, bits * 2, sign),
				 widen(l, b, bits * 2, sign), "");
	} else if (ptx_has(s, "hi")) {
		v = high_half(l, a, b, sign);
	} else {
		v = LLVMBuildMul(l->builder, a, b, "");
	}
	if (s->operands == 4)
		v = add_maybe_saturated(l, s, v, ptx_source(l, s, 3, wide));
	return ptx_result(l, s, v, wide);
}

/* The product of the low 24 bits: 48 bits, of which .lo gives the low and .hi the high 32. */
bool ptx_lower_multiply24(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0];
	bool sign = is_signed(type);
	LLVMTypeRef i24 = ptx_int_type(l, 24);
	LLVMValueRef factor[2], v;

	for (unsigned i = 0; i < 2; i++)
		factor[i] =
			widen(l, LLVMBuildTrunc(l->builder, ptx_source(l, s, 1 + i, type), i24, ""),
			      64, sign);
	v = LLVMBuildMul(l->builder, factor[0], factor[1], "");
	if (ptx_has(s, "hi"))
		v = LLVMBuildLShr(l->builder, v, LLVMConstInt(l->i64, 16, 0), "");
	v = LLVMBuildTrunc(l->builder, v, l->i32, "");
	if (s->operands == 4)
		v = add_maybe_saturated(l, s, v, ptx_source(l, s, 3, type));
	return ptx_result(l, s, v, type);
}

bool ptx_lower_minmax(struct ptx_lift *l, const struct ptx_statement *s)
{
	char name[16];
	bool sign = is_signed(s->type[0]);
	LLVMValueRef a = ptx_source(l, s, 1, s->type[0]), b = ptx_source(l, s, 2, s->type[0]);

	snprintf(name, sizeof name, "llvm.%c%s", sign ? 's' : 'u', s->row->operation);
	a = ptx_intrinsic(l, name, 2, a, b, NULL);
	if (ptx_has(s, "relu"))
		a = ptx_intrinsic(l, "llvm.smax", 2, a, LLVMConstNull(LLVMTypeOf(a)), NULL);
	return ptx_result(l, s, a, s->type[0]);
}

/* d = c + |a - b| */
bool ptx_lower_sad(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0];
	LLVMValueRef a = ptx_source(l, s, 1, type), b = ptx_source(l, s, 2, type);
	LLVMValueRef less =
		LLVMBuildICmp(l->builder, is_signed(type) ? LLVMIntSLT : LLVMIntULT, a, b, "");
	LLVMValueRef d = LLVMBuildSelect(l->builder, less, LLVMBuildSub(l->builder, b, a, ""),
					 LLVMBuildSub(l->builder, a, b, ""), "");
	return ptx_result(l, s, LLVMBuildAdd(l->builder, d, ptx_source(l, s, 3, type), ""), type);
}

/* dp4a.atype.btype, dp2a.mode.atype.btype: the operation's name says the signs. */
bool ptx_lower_dot(struct ptx_lift *l, const struct ptx_statement *s)
{
	char name[32];
	const char *mode = ptx_has(s, "lo") ? ".lo" : ptx_has(s, "hi") ? ".hi" : "";

	snprintf(name, sizeof name, "%s%s.%c%c", s->row->operation, mode,
		 ptx_type_name(s->type[0])[0], ptx_type_name(s->type[1])[0]);
	return ptx_result(l, s,
			  ptx_operation(l, name, 3, ptx_source(l, s, 1, PTX_b32),
					ptx_source(l, s, 2, PTX_b32), ptx_source(l, s, 3, PTX_b32),
					NULL),
			  PTX_b32);
}

static LLVMValueRef carry_place(struct ptx_lift *l)
{
	if (!l->carry) {
		l->carry = ptx_alloca(l, l->i1, 0, "CC.CF");
		LLVMBuildStore(l->entry_builder, LLVMConstInt(l->i1, 0, 0), l->carry);
	}
	return l->carry;
}

/*
 * add.cc, addc, sub.cc, subc, mad.cc, madc: one more bit than the operands have holds the sum and
 * its carry (or the difference and its borrow).
 */
bool ptx_lower_carry(struct ptx_lift *l, const struct ptx_statement *s)
{
	const char *op = s->row->operation;
	enum ptx_type type = s->type[0];
	unsigned bits = ptx_type_bits(type);
	bool mad = op[0] == 'm', subtract = op[0] == 's', in = op[3] == 'c';
	LLVMTypeRef wide = ptx_int_type(l, bits + 1);
	LLVMValueRef a = ptx_source(l, s, 1, type), b = ptx_source(l, s, 2, type), v;

	if (mad) {
		a = ptx_has(s, "hi") ? high_half(l, a, b, is_signed(type))
				     : LLVMBuildMul(l->builder, a, b, "");
		b = ptx_source(l, s, 3, type);
	}
	a = LLVMBuildZExt(l->builder, a, wide, "");
	b = LLVMBuildZExt(l->builder, b, wide, "");
	v = subtract ? LLVMBuildSub(l->builder, a, b, "") : LLVMBuildAdd(l->builder, a, b, "");
	if (in) {
		LLVMValueRef c = LLVMBuildLoad2(l->builder, l->i1, carry_place(l), "");
		c = LLVMBuildZExt(l->builder, c, wide, "");
		v = subtract ? LLVMBuildSub(l->builder, v, c, "")
			     : LLVMBuildAdd(l->builder, v, c, "");
	}
	if (ptx_has(s, "cc")) {
		LLVMValueRef c = LLVMBuildLShr(l->builder, v, LLVMConstInt(wide, bits, 0), "");
		LLVMBuildStore(l->builder, LLVMBuildTrunc(l->builder, c, l->i1, ""),
			       carry_place(l));
	}
	return ptx_result(l, s, LLVMBuildTrunc(l->builder, v, ptx_int_type(l, bits), ""), type);
}
