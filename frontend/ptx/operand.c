/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of PTX instructions as LLVM values: registers, constants, addresses, vectors. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"

bool ptx_fail_at(struct ptx_lift *l, unsigned line, unsigned column, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	l->failed = true;
	return tally_fail_at(l->error, l->file, line, column, "%s", message);
}

bool ptx_fail(struct ptx_lift *l, const struct ptx_statement *s, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	return ptx_fail_at(l, s->line, s->column, "%s '%s': instruction '%s': %s",
			   l->function->is_entry ? "kernel" : "function", l->function->name,
			   s->opcode, message);
}

LLVMTypeRef ptx_int_type(struct ptx_lift *l, unsigned bits)
{
	return LLVMIntTypeInContext(l->context, bits);
}

LLVMTypeRef ptx_llvm_type(struct ptx_lift *l, enum ptx_type type)
{
	switch (type) {
	case PTX_f16:
		return l->f16;
	case PTX_bf16:
		return l->bf16;
	case PTX_f32:
		return l->f32;
	case PTX_f64:
		return l->f64;
	case PTX_f16x2:
		return LLVMVectorType(l->f16, 2);
	case PTX_bf16x2:
		return LLVMVectorType(l->bf16, 2);
	case PTX_f32x2:
		return LLVMVectorType(l->f32, 2);
	case PTX_u16x2:
	case PTX_s16x2:
		return LLVMVectorType(l->i16, 2);
	default:
		return ptx_int_type(l, ptx_type_bits(type) ? ptx_type_bits(type) : 32);
	}
}

LLVMTypeRef ptx_storage_type(struct ptx_lift *l, enum ptx_type type)
{
	if (type == PTX_f32 || type == PTX_f64)
		return ptx_llvm_type(l, type);
	return ptx_int_type(l, ptx_type_bits(type));
}

static unsigned bits_of(LLVMTypeRef type)
{
	switch (LLVMGetTypeKind(type)) {
	case LLVMHalfTypeKind:
	case LLVMBFloatTypeKind:
		return 16;
	case LLVMFloatTypeKind:
		return 32;
	case LLVMDoubleTypeKind:
		return 64;
	case LLVMVectorTypeKind:
		return LLVMGetVectorSize(type) * bits_of(LLVMGetElementType(type));
	case LLVMPointerTypeKind:
		return 64;
	default:
		return LLVMGetIntTypeWidth(type);
	}
}

LLVMValueRef ptx_as(struct ptx_lift *l, LLVMValueRef v, LLVMTypeRef to, bool sign)
{
	LLVMTypeRef from = LLVMTypeOf(v);
	unsigned have, want;

	if (from == to)
		return v;
	if (LLVMGetTypeKind(from) == LLVMPointerTypeKind) {
		v = LLVMBuildPtrToInt(l->builder, v, l->i64, "");
		from = l->i64;
	}
	have = bits_of(from);
	want = bits_of(to);
	if (LLVMGetTypeKind(from) != LLVMIntegerTypeKind)
		v = LLVMBuildBitCast(l->builder, v, ptx_int_type(l, have), "");
	if (have > want)
		v = LLVMBuildTrunc(l->builder, v, ptx_int_type(l, want), "");
	else if (have < want && sign && have > 1)
		v = LLVMBuildSExt(l->builder, v, ptx_int_type(l, want), "");
	else if (have < want)
		v = LLVMBuildZExt(l->builder, v, ptx_int_type(l, want), "");
	return LLVMTypeOf(v) == to ? v : LLVMBuildBitCast(l->builder, v, to, "");
}

LLVMValueRef ptx_alloca(struct ptx_lift *l, LLVMTypeRef type, unsigned align, const char *name)
{
	LLVMValueRef place = LLVMBuildAlloca(l->entry_builder, type, name);

	if (align)
		LLVMSetAlignment(place, align);
	return place;
}

LLVMValueRef ptx_place(struct ptx_lift *l, struct ptx_symbol *symbol)
{
	if (!symbol->value && symbol->space == PTX_REG)
		symbol->value = ptx_alloca(l, ptx_storage_type(l, symbol->type), 0, symbol->name);
	return symbol->value;
}

/* The address of a variable or function, as PTX's `mov` gives it: an integer in its own space. */
static LLVMValueRef address_value(struct ptx_lift *l, const struct ptx_statement *s,
				  const struct ptx_operand *o, LLVMTypeRef type)
{
	struct ptx_symbol *symbol = o->symbol;
	LLVMValueRef pointer = NULL;

	if (symbol->kind == PTX_FUNCTION && symbol->function) {
		if (!symbol->function->has_body)
			ptx_fail(l, s, "the address of '%s', which this file does not define",
				 symbol->name);
		else if (symbol->function->is_entry)
			ptx_fail(l, s, "the address of kernel '%s'", symbol->name);
		else
			pointer = symbol->value;
	} else if (symbol->kind == PTX_VARIABLE && ptx_type_is_opaque(symbol->type)) {
		return ptx_as(l, ptx_opaque_address(l, s, symbol->name), type, false);
	} else if (symbol->kind == PTX_VARIABLE) {
		pointer = ptx_place(l, symbol);
	}
	if (!pointer) {
		if (!l->failed)
			ptx_fail(l, s, "'%s' is no value", symbol->name);
		return LLVMGetPoison(type);
	}
	if (symbol->space == PTX_LOCAL && type == l->i32)
		pointer = LLVMBuildAddrSpaceCast(
			l->builder, pointer, LLVMPointerTypeInContext(l->context, TALLY_AS_PRIVATE),
			"");
	return LLVMBuildPtrToInt(l->builder, ptx_element(l, s, o, pointer), type, "");
}

static LLVMValueRef name_value(struct ptx_lift *l, const struct ptx_statement *s,
			       const struct ptx_operand *o, enum ptx_type type)
{
	LLVMTypeRef want = ptx_llvm_type(l, type), storage;
	struct ptx_symbol *symbol = o->symbol;
	LLVMValueRef v;

	if (!symbol && ptx_special(l, s, o->name, &v))
		return ptx_as(l, v, want, false);
	if (!symbol) {
		ptx_fail_at(l, o->line, o->column,
			    "%s '%s': instruction '%s': '%s' is not declared",
			    l->function->is_entry ? "kernel" : "function", l->function->name,
			    s->opcode, o->name);
		return LLVMGetPoison(want);
	}
	if (symbol->kind != PTX_VARIABLE || symbol->space != PTX_REG)
		return ptx_as(l,
			      address_value(l, s, o, ptx_type_bits(type) == 32 ? l->i32 : l->i64),
			      want, false);
	if (symbol->vector > 1) {
		ptx_fail(l, s, "vector registers ('%s') are not supported", symbol->name);
		return LLVMGetPoison(want);
	}
	if ((symbol->type == PTX_pred) != (type == PTX_pred)) {
		ptx_fail(l, s, "register '%s' is of type .%s", symbol->name,
			 ptx_type_name(symbol->type));
		return LLVMGetPoison(want);
	}
	storage = ptx_storage_type(l, symbol->type);
	v = LLVMBuildLoad2(l->builder, storage, ptx_place(l, symbol), "");
	return ptx_as(l, v, want, ptx_type_kind(symbol->type) == PTX_SIGNED);
}

/* Integer constants are bits for bit and half types, numbers for f32 and f64. */
static LLVMValueRef constant_value(struct ptx_lift *l, const struct ptx_operand *o,
				   enum ptx_type type)
{
	LLVMTypeRef want = ptx_llvm_type(l, type);
	bool single = type == PTX_f32, real = single || type == PTX_f64;

	if (o->kind == PTX_O_INT && real)
		return LLVMConstReal(want, (double)(int64_t)o->bits);
	if (o->kind == PTX_O_INT)
		return ptx_as(l, LLVMConstInt(l->i64, o->bits, 0), want, false);
	/* Through the bits, so that NaN payloads stay. */
	if (single && !o->single)
		return LLVMConstReal(want, (double)(float)o->real);
	if (type == PTX_f64 && o->single)
		return LLVMConstReal(want, o->real);
	return ptx_as(l, LLVMConstInt(o->single ? l->i32 : l->i64, o->bits, 0), want, false);
}

LLVMValueRef ptx_value(struct ptx_lift *l, const struct ptx_statement *s,
		       const struct ptx_operand *o, enum ptx_type type)
{
	LLVMValueRef v;

	switch (o->kind) {
	case PTX_O_NAME:
		v = name_value(l, s, o, type);
		break;
	case PTX_O_INT:
	case PTX_O_FLOAT:
		v = constant_value(l, o, type);
		break;
	default:
		ptx_fail(l, s, "an operand has a form that does not fit");
		v = LLVMGetPoison(ptx_llvm_type(l, type));
	}
	return o->negated ? LLVMBuildNot(l->builder, v, "") : v;
}

LLVMValueRef ptx_source(struct ptx_lift *l, const struct ptx_statement *s, unsigned index,
			enum ptx_type type)
{
	return ptx_value(l, s, s->operand[index], type);
}

bool ptx_assign_to(struct ptx_lift *l, const struct ptx_statement *s, const struct ptx_operand *o,
		   LLVMValueRef value, enum ptx_type type)
{
	struct ptx_symbol *symbol = o->symbol;
	LLVMTypeRef storage;

	if (l->failed)
		return false;
	if (o->kind == PTX_O_SINK)
		return true;
	if (o->kind != PTX_O_NAME || !symbol || symbol->kind != PTX_VARIABLE ||
	    symbol->space != PTX_REG)
		return ptx_fail(l, s, "the destination%s%s is no register", o->name ? " " : "",
				o->name ? o->name : "");
	if (symbol->vector > 1)
		return ptx_fail(l, s, "vector registers ('%s') are not supported", symbol->name);
	if ((symbol->type == PTX_pred) != (LLVMTypeOf(value) == l->i1))
		return ptx_fail(l, s, "register '%s' is of type .%s", symbol->name,
				ptx_type_name(symbol->type));
	storage = ptx_storage_type(l, symbol->type);
	value = ptx_as(l, value, storage, ptx_type_kind(type) == PTX_SIGNED);
	LLVMBuildStore(l->builder, value, ptx_place(l, symbol));
	return true;
}

bool ptx_result(struct ptx_lift *l, const struct ptx_statement *s, LLVMValueRef value,
		enum ptx_type type)
{
	return ptx_assign_to(l, s, s->operand[0], value, type);
}

unsigned ptx_elements(struct ptx_lift *l, const struct ptx_statement *s,
		      const struct ptx_operand *o, const struct ptx_operand **out, unsigned limit)
{
	unsigned n = 0;

	if (o->kind != PTX_O_VECTOR) {
		out[0] = o;
		return 1;
	}
	for (const struct ptx_operand *e = o->first; e; e = e->next) {
		if (n == limit) {
			ptx_fail(l, s, "a vector operand has too many elements");
			return limit;
		}
		out[n++] = e;
	}
	if (!n)
		ptx_fail(l, s, "a vector operand is empty");
	return n;
}
