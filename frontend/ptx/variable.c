/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of a PTX file as LLVM globals and allocas, with their initialisers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"

/* The initialiser of more elements than this is not spelt out by any compiler. */
enum { MAX_SPELT = 1 << 26 };

static LLVMTypeRef variable_type(struct ptx_lift *l, const struct ptx_symbol *s)
{
	LLVMTypeRef element = ptx_storage_type(l, s->type);

	/* A vector variable is laid out like an array of its elements. */
	if (s->is_array || s->vector > 1)
		return LLVMArrayType2(element, s->elements * s->vector);
	return element;
}

static unsigned natural_align(const struct ptx_symbol *s)
{
	unsigned size = (ptx_type_bits(s->type) + 7) / 8 * s->vector;

	return s->align > size ? s->align : size;
}

static unsigned address_space(enum ptx_space space)
{
	return space == PTX_SHARED  ? TALLY_AS_SHARED
	       : space == PTX_CONST ? TALLY_AS_CONSTANT
				    : TALLY_AS_GLOBAL;
}

static bool dynamic_shared(const struct ptx_symbol *s)
{
	return s->space == PTX_SHARED && s->is_extern && s->is_array && !s->elements;
}

static bool is_masked(const struct ptx_symbol *s)
{
	const struct ptx_value *v =
		s->initialiser && s->initialiser->kind == PTX_V_LIST ? s->initialiser->first : NULL;

	while (v && !v->mask)
		v = v->next;
	return v != NULL;
}

/* Whether the eight bytes of one address stand here, in order. */
static bool whole_address(const struct ptx_value *v)
{
	const struct ptx_value *first = v;

	for (unsigned k = 0; k < 8; k++, v = v->next)
		if (!v || v->kind != PTX_V_ADDRESS || v->mask != (uint64_t)0xff << 8 * k ||
		    strcmp(v->name, first->name) || v->bits != first->bits ||
		    v->generic != first->generic)
			return false;
	return true;
}

static LLVMValueRef address(struct ptx_lift *l, const struct ptx_value *v, LLVMTypeRef type);

/*
 * An array of bytes some of which are an address's, one by one (pointers in packed structures): a
 * packed structure of bytes and addresses. `values` NULL: its type alone.
 */
static LLVMTypeRef masked(struct ptx_lift *l, const struct ptx_symbol *s, LLVMValueRef *value)
{
	const struct ptx_value *v = s->initialiser->first;
	LLVMTypeRef *types = calloc(s->elements + 1, sizeof *types), type = NULL;
	LLVMValueRef *values = calloc(s->elements + 1, sizeof *values);
	unsigned n = 0;

	for (uint64_t i = 0; types && values && i < s->elements; n++) {
		bool whole = v && v->mask && s->elements - i >= 8 && whole_address(v);
		types[n] = whole ? l->i64 : l->i8;
		if (v && !whole && v->kind != PTX_V_INT) {
			ptx_fail_at(l, v->line, v->column,
				    "initialiser: the bytes of an address do not stand in order");
			break;
		}
		if (value)
			values[n] = whole ? address(l, v, l->i64)
					  : LLVMConstInt(l->i8, v ? v->bits : 0, 0);
		i += whole ? 8 : 1;
		for (unsigned k = 0; v && k < (whole ? 8u : 1u); k++)
			v = v->next;
	}
	if (types && values && !l->failed)
		type = LLVMStructTypeInContext(l->context, types, n, 1);
	if (type && value)
		*value = LLVMConstStructInContext(l->context, values, n, 1);
	free(types);
	free(values);
	return type;
}

/* A texture, sampler or surface: 64 bits that stand for it, and what it is. */
static void declare_opaque(struct ptx_lift *l, const struct ptx_symbol *s)
{
	const char *type = ptx_type_name(s->type), *fields = s->fields ? s->fields : "";
	LLVMMetadataRef part[] = {LLVMValueAsMetadata(s->value),
				  LLVMMDStringInContext2(l->context, type, strlen(type)),
				  LLVMMDStringInContext2(l->context, fields, strlen(fields))};

	LLVMAddNamedMetadataOperand(
		l->module, TALLY_MD_OPAQUE,
		LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, part, 3)));
	if (l->ptx->independent)
		LLVMGetOrInsertNamedMetadata(l->module, TALLY_MD_INDEPENDENT,
					     strlen(TALLY_MD_INDEPENDENT));
}

bool ptx_declare_variable(struct ptx_lift *l, struct ptx_symbol *s)
{
	char name[300];
	LLVMTypeRef type =
		is_masked(s) && s->elements <= MAX_SPELT ? masked(l, s, NULL) : variable_type(l, s);

	if (!type)
		return l->failed ? false : ptx_fail_at(l, s->line, s->column, "out of memory");
	if (s->space == PTX_LOCAL || s->space == PTX_PARAM) {
		if (!l->function)
			return ptx_fail_at(l, s->line, s->column,
					   "variable '%s': this space is for functions only",
					   s->name);
		s->value = ptx_alloca(l, type, natural_align(s), s->name);
		return true;
	}
	if (s->is_extern && !s->initialiser && !dynamic_shared(s))
		return ptx_fail_at(l, s->line, s->column,
				   "variable '%s' is declared but not defined in this file",
				   s->name);
	/* Shared variables of functions may share a name with another function's. */
	if (l->function)
		snprintf(name, sizeof name, "%.140s.%.140s", l->function->name, s->name);
	else
		snprintf(name, sizeof name, "%s", s->name);
	s->value = LLVMAddGlobalInAddressSpace(
		l->module, type, strlen(s->name) < 140 && l->function ? name : s->name,
		address_space(s->space));
	LLVMSetAlignment(s->value, natural_align(s));
	if (s->space == PTX_SHARED && !dynamic_shared(s)) {
		LLVMSetInitializer(s->value, LLVMGetUndef(type));
		LLVMSetLinkage(s->value, LLVMInternalLinkage);
	}
	if (s->space == PTX_SHARED)
		return true;
	LLVMSetInitializer(s->value, LLVMConstNull(type));
	/* .const may be written by the host between launches: not an LLVM constant. Nobody outside
	 * of the function names one that is declared in its body. */
	LLVMSetLinkage(s->value, l->function ? LLVMInternalLinkage : LLVMExternalLinkage);
	if (ptx_type_is_opaque(s->type))
		declare_opaque(l, s);
	return true;
}

static LLVMValueRef address(struct ptx_lift *l, const struct ptx_value *v, LLVMTypeRef type)
{
	struct ptx_symbol *s = ptx_find(l->ptx, v->name, strlen(v->name));
	LLVMValueRef pointer = s ? s->value : NULL;

	if (!pointer || (s->kind != PTX_VARIABLE && s->kind != PTX_FUNCTION)) {
		ptx_fail_at(l, v->line, v->column,
			    "initialiser: '%s' is no variable or function of this file", v->name);
		return LLVMGetPoison(type);
	}
	if (v->generic)
		pointer = LLVMConstAddrSpaceCast(pointer, LLVMPointerTypeInContext(l->context, 0));
	if (v->bits) {
		LLVMValueRef offset = LLVMConstInt(l->i64, v->bits, 0);
		pointer = LLVMConstGEP2(l->i8, pointer, &offset, 1);
	}
	if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) != 64) {
		ptx_fail_at(l, v->line, v->column, "initialiser: an address needs 64 bits");
		return LLVMGetPoison(type);
	}
	return LLVMConstPtrToInt(pointer, type);
}

static LLVMValueRef scalar(struct ptx_lift *l, const struct ptx_value *v, enum ptx_type type)
{
	LLVMTypeRef want = ptx_storage_type(l, type);

	switch (v->kind) {
	case PTX_V_ADDRESS:
		return address(l, v, want);
	case PTX_V_INT:
		if (type == PTX_f32 || type == PTX_f64)
			return LLVMConstReal(want, (double)(int64_t)v->bits);
		return LLVMConstInt(want, v->bits, 0);
	case PTX_V_FLOAT:
		if (type == PTX_f32 || type == PTX_f64)
			return LLVMConstReal(want, v->real);
		return LLVMConstInt(want, v->bits, 0);
	case PTX_V_LIST:
		break;
	}
	ptx_fail_at(l, v->line, v->column, "initialiser: more braces than dimensions");
	return LLVMGetPoison(want);
}

/* The elements of one variable's initialiser, in memory order. */
struct elements {
	const struct ptx_symbol *symbol;
	uint64_t size[PTX_MAX_DIMENSIONS + 1]; /* of the dimensions, a vector's last */
	unsigned dimensions;
	LLVMValueRef *value;
};

/*
 * The list of dimension `d` into `room` elements from `at` on: its members are lists of the next
 * dimension, or the elements. Missing ones stay zero, as in C (PTX ISA 5.4.4).
 */
static bool fill(struct ptx_lift *l, const struct elements *e, const struct ptx_value *list,
		 unsigned d, uint64_t at, uint64_t room)
{
	uint64_t part = e->size[d] ? room / e->size[d] : 0, n = 0;

	for (const struct ptx_value *v = list->first; v; v = v->next, n++) {
		if (n == e->size[d])
			return ptx_fail_at(l, v->line, v->column,
					   "initialiser of '%s' has more than %llu elements in "
					   "dimension %u",
					   e->symbol->name, (unsigned long long)n, d + 1);
		if (d + 1 == e->dimensions)
			e->value[at + n] = scalar(l, v, e->symbol->type);
		else if (v->kind != PTX_V_LIST)
			return ptx_fail_at(l, v->line, v->column,
					   "initialiser of '%s' needs braces for dimension %u",
					   e->symbol->name, d + 2);
		else if (!fill(l, e, v, d + 1, at + n * part, part))
			return false;
	}
	return !l->failed;
}

bool ptx_initialise_variable(struct ptx_lift *l, struct ptx_symbol *s)
{
	const struct ptx_value *v = s->initialiser;
	LLVMTypeRef element = ptx_storage_type(l, s->type);
	uint64_t elements = s->elements * s->vector;
	struct elements e = {.symbol = s};

	if (!v || !s->value)
		return true;
	if (v->kind != PTX_V_LIST) {
		if (s->is_array || s->vector > 1)
			return ptx_fail_at(l, v->line, v->column,
					   "initialiser of array '%s' needs braces", s->name);
		LLVMSetInitializer(s->value, scalar(l, v, s->type));
		return !l->failed;
	}
	if (is_masked(s)) {
		LLVMValueRef value = NULL;

		if (masked(l, s, &value) && value)
			LLVMSetInitializer(s->value, value);
		return !l->failed;
	}
	if (elements > MAX_SPELT)
		return ptx_fail_at(l, v->line, v->column, "initialised variable '%s' is too large",
				   s->name);
	memcpy(e.size, s->dimension, sizeof s->dimension);
	e.dimensions = s->dimensions;
	if (s->vector > 1)
		e.size[e.dimensions++] = s->vector;
	if (!e.dimensions)
		return ptx_fail_at(l, v->line, v->column,
				   "initialiser of '%s': more braces than dimensions", s->name);
	e.value = calloc(elements ? elements : 1, sizeof *e.value);
	if (!e.value)
		return ptx_fail_at(l, v->line, v->column, "out of memory");
	if (fill(l, &e, v, 0, 0, elements)) {
		for (uint64_t i = 0; i < elements; i++)
			if (!e.value[i])
				e.value[i] = LLVMConstNull(element);
		LLVMSetInitializer(s->value, LLVMConstArray2(element, e.value, elements));
	}
	free(e.value);
	return !l->failed;
}
