/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5). No fma is made or undone here; the one
 * fast-math flag that is set is `contract`, where PTX leaves the same choice open.
 */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"

LLVMValueRef ptx_splat(LLVMTypeRef type, double value)
{
	LLVMValueRef elements[2];

	if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
		return LLVMConstReal(type, value);
	elements[0] = elements[1] = LLVMConstReal(LLVMGetElementType(type), value);
	return LLVMConstVector(elements, 2);
}

static bool is_f32(enum ptx_type type)
{
	return type == PTX_f32 || type == PTX_f32x2;
}

static LLVMValueRef each_of_two(struct ptx_lift *l, LLVMValueRef v,
				LLVMValueRef (*apply)(struct ptx_lift *, LLVMValueRef))
{
	LLVMValueRef result = LLVMGetPoison(LLVMTypeOf(v));

	for (unsigned i = 0; i < 2; i++) {
		LLVMValueRef index = LLVMConstInt(l->i32, i, 0);
		LLVMValueRef e = LLVMBuildExtractElement(l->builder, v, index, "");
		result = LLVMBuildInsertElement(l->builder, result, apply(l, e), index, "");
	}
	return result;
}

static LLVMValueRef flush_f32(struct ptx_lift *l, LLVMValueRef v)
{
	return ptx_operation(l, "tally.ftz.f32", 1, v, NULL, NULL, NULL);
}

/* A half below the smallest normal number becomes a zero of its sign. */
static LLVMValueRef flush_half(struct ptx_lift *l, LLVMValueRef v, double smallest)
{
	LLVMValueRef size = ptx_intrinsic(l, "llvm.fabs", 1, v, NULL, NULL);
	LLVMValueRef zero =
		ptx_intrinsic(l, "llvm.copysign", 2, ptx_splat(LLVMTypeOf(v), 0), v, NULL);
	LLVMValueRef small = LLVMBuildFCmp(l->builder, LLVMRealOLT, size,
					   ptx_splat(LLVMTypeOf(v), smallest), "");
	return LLVMBuildSelect(l->builder, small, zero, v, "");
}

LLVMValueRef ptx_flush(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v,
		       enum ptx_type type)
{
	bool ftz = ptx_has(s, "ftz");

	if (is_f32(type))
		*(ftz ? &l->f32_ftz : &l->f32_plain) += 1;
	if (!ftz)
		return v;
	if (type == PTX_f32x2)
		return each_of_two(l, v, flush_f32);
	if (type == PTX_f32)
		return flush_f32(l, v);
	if (ptx_type_kind(type) == PTX_FLOATING && ptx_type_bits(type) == 64)
		return v;
	return flush_half(l, v, type == PTX_f16 || type == PTX_f16x2 ? 0x1p-14 : 0x1p-126);
}

/* .sat clamps to [0, 1] with NaN becoming +0; .relu clamps below, with NaN staying (canonical). */
LLVMValueRef ptx_saturate(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v)
{
	LLVMValueRef zero = ptx_splat(LLVMTypeOf(v), 0), one = ptx_splat(LLVMTypeOf(v), 1);

	if (ptx_has(s, "sat")) {
		v = ptx_intrinsic(l, "llvm.maximumnum", 2, v, zero, NULL);
		v = ptx_intrinsic(l, "llvm.minimumnum", 2, v, one, NULL);
	}
	if (ptx_has(s, "relu"))
		v = ptx_intrinsic(l, "llvm.maximum", 2, v, zero, NULL);
	return v;
}

static const char *direction(const struct ptx_statement *s)
{
	const char *rounding = ptx_pick(s, "rnd");

	return rounding && strcmp(rounding, "rn") ? rounding : NULL;
}

/* Without a rounding modifier an addition and a multiplication may become one fma later on. */
static LLVMValueRef contractable(LLVMValueRef v, bool named)
{
	if (!named && LLVMIsAInstruction(v))
		LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
	return v;
}

static LLVMValueRef plain(struct ptx_lift *l, const struct ptx_statement *s, const char *op,
			  LLVMValueRef *a)
{
	bool named = ptx_pick(s, "rnd") != NULL;

	if (!strcmp(op, "add"))
		return contractable(LLVMBuildFAdd(l->builder, a[0], a[1], ""), named);
	if (!strcmp(op, "sub"))
		return contractable(LLVMBuildFSub(l->builder, a[0], a[1], ""), named);
	if (!strcmp(op, "mul"))
		return contractable(LLVMBuildFMul(l->builder, a[0], a[1], ""), named);
	if (!strcmp(op, "div"))
		return LLVMBuildFDiv(l->builder, a[0], a[1], "");
	if (!strcmp(op, "rcp"))
		return LLVMBuildFDiv(l->builder, ptx_splat(LLVMTypeOf(a[0]), 1), a[0], "");
	if (!strcmp(op, "sqrt"))
		return ptx_intrinsic(l, "llvm.sqrt", 1, a[0], NULL, NULL);
	return ptx_intrinsic(l, "llvm.fma", 3, a[0], a[1], a[2]);
}

static LLVMValueRef directed(struct ptx_lift *l, const char *op, const char *rounding,
			     enum ptx_type type, LLVMValueRef *a, unsigned count)
{
	char name[48];

	snprintf(name, sizeof name, "tally.round.%s.%s.%s", op, rounding, ptx_type_name(type));
	return ptx_operation(l, name, count, a[0], a[1], a[2], NULL);
}

/* add, sub, mul, fma, div, rcp, sqrt: plain IR to nearest, an operation in other directions. */
bool ptx_lower_farith(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0];
	const char *rounding = direction(s);
	LLVMValueRef a[3] = {0}, v;

	for (unsigned i = 1; i < s->operands; i++)
		a[i - 1] = ptx_flush(l, s, ptx_source(l, s, i, type), type);
	v = rounding ? directed(l, s->row->operation, rounding, type, a, s->operands - 1)
		     : plain(l, s, s->row->operation, a);
	v = ptx_flush(l, s, v, type);
	return ptx_result(l, s, ptx_saturate(l, s, v), type);
}

/* Two f32 side by side: directed rounding goes one at a time. */
bool ptx_lower_fpair(struct ptx_lift *l, const struct ptx_statement *s)
{
	const char *rounding = direction(s);
	LLVMValueRef a[3] = {0}, v;

	if (!rounding)
		return ptx_lower_farith(l, s);
	for (unsigned i = 1; i < s->operands; i++)
		a[i - 1] = ptx_flush(l, s, ptx_source(l, s, i, PTX_f32x2), PTX_f32x2);
	v = LLVMGetPoison(ptx_llvm_type(l, PTX_f32x2));
	for (unsigned k = 0; k < 2; k++) {
		LLVMValueRef index = LLVMConstInt(l->i32, k, 0), e[3] = {0};
		for (unsigned i = 0; i + 1 < s->operands; i++)
			e[i] = LLVMBuildExtractElement(l->builder, a[i], index, "");
		e[0] = directed(l, s->row->operation, rounding, PTX_f32, e, s->operands - 1);
		v = LLVMBuildInsertElement(l->builder, v, e[0], index, "");
	}
	return ptx_result(l, s, ptx_flush(l, s, v, PTX_f32x2), PTX_f32x2);
}

/* add, sub, fma of f32 with half operands: those are widened first, which is exact. */
bool ptx_lower_fmixed(struct ptx_lift *l, const struct ptx_statement *s)
{
	const char *rounding = direction(s);
	unsigned last = s->operands - 1;
	LLVMValueRef a[3] = {0}, v;

	for (unsigned i = 1; i <= last; i++) {
		a[i - 1] = ptx_source(l, s, i, i == last ? PTX_f32 : s->type[1]);
		if (i != last)
			a[i - 1] = LLVMBuildFPExt(l->builder, a[i - 1], l->f32, "");
	}
	l->f32_plain++;
	v = rounding ? directed(l, s->row->operation, rounding, PTX_f32, a, last)
		     : plain(l, s, s->row->operation, a);
	return ptx_result(l, s, ptx_saturate(l, s, v), PTX_f32);
}

static LLVMValueRef approximate(struct ptx_lift *l, const char *name, LLVMValueRef a,
				LLVMValueRef b)
{
	return ptx_operation(l, name, b ? 2 : 1, a, b, NULL, NULL);
}

/* The .approx forms; halves go through f32, one at a time. */
bool ptx_lower_fapprox(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0];
	const char *name = s->row->operation;
	LLVMValueRef a = ptx_flush(l, s, ptx_source(l, s, 1, type), type), b = NULL, v;
	LLVMTypeRef t = LLVMTypeOf(a);

	if (s->operands == 3)
		b = ptx_flush(l, s, ptx_source(l, s, 2, type), type);
	if (type == PTX_f64 || type == PTX_f32) {
		v = approximate(l, name, a, b);
		if (type == PTX_f32)
			v = ptx_flush(l, s, v, type);
		return ptx_result(l, s, v, type);
	}
	if (LLVMGetTypeKind(t) != LLVMVectorTypeKind) {
		v = approximate(l, name, LLVMBuildFPExt(l->builder, a, l->f32, ""), NULL);
		v = LLVMBuildFPTrunc(l->builder, v, t, "");
		return ptx_result(l, s, ptx_flush(l, s, v, type), type);
	}
	v = LLVMGetPoison(t);
	for (unsigned i = 0; i < 2; i++) {
		LLVMValueRef index = LLVMConstInt(l->i32, i, 0);
		LLVMValueRef e = LLVMBuildExtractElement(l->builder, a, index, "");
		e = approximate(l, name, LLVMBuildFPExt(l->builder, e, l->f32, ""), NULL);
		e = LLVMBuildFPTrunc(l->builder, e, LLVMGetElementType(t), "");
		v = LLVMBuildInsertElement(l->builder, v, e, index, "");
	}
	return ptx_result(l, s, ptx_flush(l, s, v, type), type);
}

/* The sign of the result is the exclusive or of the operands' signs (.xorsign.abs). */
static LLVMValueRef with_xor_sign(struct ptx_lift *l, LLVMValueRef v, LLVMValueRef a,
				  LLVMValueRef b, enum ptx_type type)
{
	LLVMTypeRef bits = ptx_int_type(l, ptx_type_bits(type)), t = LLVMTypeOf(v);
	LLVMValueRef sign = LLVMBuildXor(l->builder, LLVMBuildBitCast(l->builder, a, bits, ""),
					 LLVMBuildBitCast(l->builder, b, bits, ""), "");
	return ptx_intrinsic(l, "llvm.copysign", 2, v, LLVMBuildBitCast(l->builder, sign, t, ""),
			     NULL);
}

/* A NaN operand loses against a number, but with .NaN it wins; -0 is below +0. */
bool ptx_lower_fminmax(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0];
	bool max = !strcmp(s->row->operation, "max");
	bool xorsign = ptx_has(s, "xorsign"), absolute = ptx_has(s, "abs");
	const char *name = ptx_has(s, "NaN") ? (max ? "llvm.maximum" : "llvm.minimum")
					     : (max ? "llvm.maximumnum" : "llvm.minimumnum");
	LLVMValueRef a[3] = {0}, size[3] = {0}, v;

	for (unsigned i = 0; i + 1 < s->operands; i++) {
		a[i] = ptx_flush(l, s, ptx_source(l, s, i + 1, type), type);
		size[i] = absolute ? ptx_intrinsic(l, "llvm.fabs", 1, a[i], NULL, NULL) : a[i];
	}
	v = ptx_intrinsic(l, name, 2, size[0], size[1], NULL);
	if (s->operands == 4)
		v = ptx_intrinsic(l, name, 2, v, size[2], NULL);
	if (xorsign)
		v = with_xor_sign(l, v, a[0], a[1], type);
	return ptx_result(l, s, v, type);
}

bool ptx_lower_fsign(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0];
	LLVMValueRef a = ptx_flush(l, s, ptx_source(l, s, 1, type), type);
	LLVMValueRef v = !strcmp(s->row->operation, "neg")
				 ? LLVMBuildFNeg(l->builder, a, "")
				 : ptx_intrinsic(l, "llvm.fabs", 1, a, NULL, NULL);
	return ptx_result(l, s, v, type);
}

/* copysign d, a, b: the sign of a with the size of b. */
bool ptx_lower_copysign(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMValueRef a = ptx_source(l, s, 1, s->type[0]), b = ptx_source(l, s, 2, s->type[0]);

	return ptx_result(l, s, ptx_intrinsic(l, "llvm.copysign", 2, b, a, NULL), s->type[0]);
}

/* testp.op: the class masks of llvm.is.fpclass. A zero is a normal number here (PTX ISA 9.7.3.1).
 */
bool ptx_lower_testp(struct ptx_lift *l, const struct ptx_statement *s)
{
	static const struct {
		const char *name;
		unsigned mask;
	} tests[] = {
		{"notanumber", 0x003}, {"infinite", 0x204}, {"normal", 0x168},
		{"subnormal", 0x090},  {"finite", 0x1f8},   {"number", 0x3fc},
	};
	const char *test = ptx_pick(s, "testp");
	size_t i = 0;

	while (strcmp(tests[i].name, test))
		i++;
	return ptx_result(l, s,
			  ptx_intrinsic(l, "llvm.is.fpclass", 2, ptx_source(l, s, 1, s->type[0]),
					LLVMConstInt(l->i32, tests[i].mask, 0), NULL),
			  PTX_pred);
}
