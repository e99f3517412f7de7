/* SPDX-License-Identifier: Apache-2.0 */
/* cvt (PTX ISA 9.7.9): every pair of integer and floating-point types, with rounding, .sat, .ftz.
 */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/ir.h"

static bool is_float(enum ptx_type type)
{
	return ptx_type_kind(type) == PTX_FLOATING;
}

static bool is_signed(enum ptx_type type)
{
	return ptx_type_kind(type) == PTX_SIGNED;
}

/* Clamps integer `v` of type `from` to the range of `to`, within v's own width. */
static LLVMValueRef clamp(struct ptx_lift *l, LLVMValueRef v, enum ptx_type from, enum ptx_type to)
{
	unsigned have = ptx_type_bits(from), want = ptx_type_bits(to);
	LLVMTypeRef t = ptx_int_type(l, have);
	bool sign = is_signed(from);
	/* The bits of a non-negative number that the target holds. */
	unsigned room = want - is_signed(to), source_room = have - sign;
	uint64_t top = room >= 64 ? UINT64_MAX : ((uint64_t)1 << room) - 1;

	if (sign && !is_signed(to))
		v = ptx_intrinsic(l, "llvm.smax", 2, v, LLVMConstNull(t), NULL);
	else if (sign && want < have)
		v = ptx_intrinsic(l, "llvm.smax", 2, v, LLVMConstInt(t, ~top, 1), NULL);
	if (room < source_room)
		v = ptx_intrinsic(l, sign ? "llvm.smin" : "llvm.umin", 2, v,
				  LLVMConstInt(t, top, 0), NULL);
	return v;
}

static LLVMValueRef integer_to_integer(struct ptx_lift *l, const struct ptx_statement *s,
				       LLVMValueRef v)
{
	enum ptx_type to = s->type[0], from = s->type[1];

	if (ptx_has(s, "sat"))
		v = clamp(l, v, from, to);
	return ptx_as(l, v, ptx_llvm_type(l, to), is_signed(from));
}

/* Rounds to an integral value in floating point: .rni .rzi .rmi .rpi */
static LLVMValueRef to_integral(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v)
{
	static const struct {
		const char *name, *intrinsic;
	} modes[] = {
		{"rni", "llvm.roundeven"},
		{"rzi", "llvm.trunc"},
		{"rmi", "llvm.floor"},
		{"rpi", "llvm.ceil"},
	};
	const char *mode = ptx_pick(s, "irnd");

	for (size_t i = 0; mode && i < sizeof modes / sizeof *modes; i++)
		if (!strcmp(modes[i].name, mode))
			return ptx_intrinsic(l, modes[i].intrinsic, 1, v, NULL, NULL);
	return v;
}

/* Out of range is clamped, whether or not .sat is written; NaN becomes 0, or the bit of the sign
 * alone where one side has 64 bits. */
static LLVMValueRef float_to_integer(struct ptx_lift *l, const struct ptx_statement *s,
				     LLVMValueRef v)
{
	enum ptx_type to = s->type[0];
	const char *mode = ptx_pick(s, "irnd");
	LLVMTypeRef types[2] = {ptx_llvm_type(l, to), LLVMTypeOf(v)};
	LLVMValueRef argument;

	v = ptx_flush(l, s, v, s->type[1]);
	if (mode && strcmp(mode, "rzi")) /* the conversion itself truncates */
		v = to_integral(l, s, v);
	argument = v;
	v = tally_build_intrinsic(l->builder, l->module,
				  is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", types, 2,
				  &argument, 1);
	if (ptx_type_bits(to) < 64 && s->type[1] != PTX_f64)
		return v;
	return LLVMBuildSelect(l->builder,
			       LLVMBuildFCmp(l->builder, LLVMRealUNO, argument, argument, ""),
			       LLVMConstInt(types[0], 1ull << (ptx_type_bits(to) - 1), 0), v, "");
}

static const char *direction(const struct ptx_statement *s)
{
	const char *rounding = ptx_pick(s, "rnd");

	return rounding && strcmp(rounding, "rn") ? rounding : NULL;
}

static LLVMValueRef convert_operation(struct ptx_lift *l, const char *rounding, const char *to,
				      const char *from, LLVMValueRef v)
{
	char name[48];

	snprintf(name, sizeof name, "tally.cvt.%s.%s.%s", rounding, to, from);
	return ptx_operation(l, name, 1, v, NULL, NULL, NULL);
}

/* f32 to a half in a given direction. */
static LLVMValueRef to_half(struct ptx_lift *l, const char *rounding, enum ptx_type to,
			    LLVMValueRef v)
{
	if (!rounding)
		return LLVMBuildFPTrunc(l->builder, v, ptx_llvm_type(l, to), "");
	return convert_operation(l, rounding, ptx_type_name(to), "f32", v);
}

/*
 * Directed conversions to halves go through f32 in the same direction: rounding twice the same way
 * is rounding once.
 */
static LLVMValueRef integer_to_float(struct ptx_lift *l, const struct ptx_statement *s,
				     LLVMValueRef v)
{
	enum ptx_type to = s->type[0];
	const char *rounding = direction(s);
	bool sign = is_signed(s->type[1]), half = ptx_type_bits(to) == 16;
	unsigned bits = ptx_type_bits(s->type[1]);
	char from[16];

	if (!rounding || (to == PTX_f64 && bits < 64)) {
		LLVMTypeRef type = ptx_llvm_type(l, to);
		return sign ? LLVMBuildSIToFP(l->builder, v, type, "")
			    : LLVMBuildUIToFP(l->builder, v, type, "");
	}
	bits = bits < 32 ? 32 : bits;
	v = ptx_as(l, v, ptx_int_type(l, bits), sign);
	snprintf(from, sizeof from, "%c%u", sign ? 'i' : 'u', bits);
	v = convert_operation(l, rounding, half ? "f32" : ptx_type_name(to), from, v);
	return half ? to_half(l, rounding, to, v) : v;
}

static LLVMValueRef narrow(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v)
{
	enum ptx_type to = s->type[0], from = s->type[1];
	const char *rounding = direction(s);

	if (!rounding)
		return LLVMBuildFPTrunc(l->builder, v, ptx_llvm_type(l, to), "");
	if (from == PTX_f64)
		v = convert_operation(l, rounding, "f32", "f64", v);
	return to == PTX_f32 ? v : to_half(l, rounding, to, v);
}

/* Of the same size: an integral rounding, a change of half format, or a plain copy. */
static LLVMValueRef same_size(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef v)
{
	if (s->type[0] == s->type[1])
		return to_integral(l, s, v);
	v = LLVMBuildFPExt(l->builder, v, l->f32, "");
	return to_half(l, direction(s), s->type[0], v);
}

static LLVMValueRef float_to_float(struct ptx_lift *l, const struct ptx_statement *s,
				   LLVMValueRef v)
{
	enum ptx_type to = s->type[0], from = s->type[1];
	unsigned have = ptx_type_bits(from), want = ptx_type_bits(to);

	if (from == PTX_f32)
		v = ptx_flush(l, s, v, from);
	if (want > have)
		v = LLVMBuildFPExt(l->builder, v, ptx_llvm_type(l, to), "");
	else if (want < have)
		v = narrow(l, s, v);
	else
		v = same_size(l, s, v);
	if (to == PTX_f32)
		v = ptx_flush(l, s, v, to);
	return ptx_saturate(l, s, v);
}

/* .satfinite: what exceeds the format is its largest finite number; NaN stays NaN. */
static LLVMValueRef saturate_finite(struct ptx_lift *l, const struct ptx_statement *s,
				    LLVMValueRef v, enum ptx_type to)
{
	double largest = to == PTX_f16 || to == PTX_f16x2 ? 65504.0 : 0x1.fep127;

	if (!ptx_has(s, "satfinite"))
		return v;
	v = ptx_intrinsic(l, "llvm.minimum", 2, v, ptx_splat(LLVMTypeOf(v), largest), NULL);
	return ptx_intrinsic(l, "llvm.maximum", 2, v, ptx_splat(LLVMTypeOf(v), -largest), NULL);
}

/* cvt.rna.tf32.f32: to 10 bits of mantissa, ties away from zero; the low bits become 0. */
static LLVMValueRef to_tf32(struct ptx_lift *l, LLVMValueRef v)
{
	LLVMValueRef bits = LLVMBuildBitCast(l->builder, v, l->i32, "");
	LLVMValueRef finite =
		ptx_intrinsic(l, "llvm.is.fpclass", 2, v, LLVMConstInt(l->i32, 0x1f8, 0), NULL);
	LLVMValueRef rounded = LLVMBuildAdd(l->builder, bits, LLVMConstInt(l->i32, 0x1000, 0), "");
	rounded = LLVMBuildAnd(l->builder, rounded, LLVMConstInt(l->i32, 0xffffe000, 0), "");
	return LLVMBuildSelect(l->builder, finite, rounded, bits, "");
}

bool ptx_lower_cvt(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type to = s->type[0], from = s->type[1];
	LLVMValueRef v = ptx_source(l, s, 1, from);

	if (to == PTX_tf32)
		return ptx_result(l, s, to_tf32(l, v), PTX_b32);
	if (!is_float(to) && !is_float(from)) {
		v = integer_to_integer(l, s, v);
	} else if (!is_float(to)) {
		v = float_to_integer(l, s, v);
	} else if (!is_float(from)) {
		v = ptx_saturate(l, s, integer_to_float(l, s, v));
	} else {
		v = saturate_finite(l, s, v, to);
		v = float_to_float(l, s, v);
	}
	return ptx_result(l, s, v, to);
}

/* cvt.f16x2.f32 d, a, b: a becomes the upper half, b the lower. */
bool ptx_lower_cvt_pack(struct ptx_lift *l, const struct ptx_statement *s)
{
	enum ptx_type type = s->type[0], half = type == PTX_f16x2 ? PTX_f16 : PTX_bf16;
	LLVMValueRef v = LLVMGetPoison(ptx_llvm_type(l, type));

	for (unsigned i = 0; i < 2; i++) {
		LLVMValueRef e = ptx_source(l, s, 2 - i, PTX_f32);
		e = to_half(l, direction(s), half, saturate_finite(l, s, e, half));
		e = ptx_saturate(l, s, e);
		v = LLVMBuildInsertElement(l->builder, v, e, LLVMConstInt(l->i32, i, 0), "");
	}
	return ptx_result(l, s, v, type);
}

/* Numbers that one conversion takes. */
enum { MAX_NUMBERS = 4 };

static LLVMValueRef number(struct ptx_lift *l, const struct ptx_statement *s,
			   const struct ptx_operand *o, enum ptx_type type)
{
	unsigned bits = ptx_type_bits(type);

	if (type == PTX_f32)
		return ptx_value(l, s, o, PTX_f32);
	type = bits == 8 ? PTX_b8 : bits == 16 ? PTX_b16 : PTX_b32;
	return ptx_as(l, ptx_value(l, s, o, type), bits == 32 ? l->i32 : l->i16, false);
}

/* Narrow formats: the operation of the same words, in one order whatever the text's is. */
bool ptx_lower_narrow(struct ptx_lift *l, const struct ptx_statement *s)
{
	static const char *const words[] = {"rn",   "rz",  "rp",	"rs",  "rna",
					    "pack", "sat", "satfinite", "relu"};
	const struct ptx_operand *e[MAX_NUMBERS];
	char name[96] = "tally.narrow";
	size_t n = strlen(name);
	LLVMValueRef a[MAX_NUMBERS + 1];
	unsigned count = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (ptx_has(s, words[i]))
			n += (size_t)snprintf(name + n, sizeof name - n, ".%s", words[i]);
	for (unsigned i = 0; i < 4 && s->type[i]; i++)
		n += (size_t)snprintf(name + n, sizeof name - n, ".%s", ptx_type_name(s->type[i]));
	for (unsigned i = 1; i < s->operands; i++) {
		bool random = ptx_has(s, "rs") && i + 1 == s->operands;
		enum ptx_type type = random ? PTX_b32 : i == 3 ? s->type[2] : s->type[1];
		unsigned numbers = ptx_elements(l, s, s->operand[i], e, MAX_NUMBERS);

		for (unsigned k = 0; k < numbers && count <= MAX_NUMBERS; k++)
			a[count++] = number(l, s, e[k], type);
	}
	if (l->failed)
		return false;
	if (count !=
	    LLVMCountParamTypes(tally_operation_type(l->context, tally_operation_find(name))))
		return ptx_fail(l, s, "%u numbers are given", count);
	return ptx_result(l, s, tally_build_operation(l->builder, l->module, name, a, count),
			  PTX_b32);
}
