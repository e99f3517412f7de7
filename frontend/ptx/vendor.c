/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions without neutral meaning: kept as inline assembly with register constraints, and the
 * function is locked to its vendor by name and place.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"

enum { MAX_VALUES = 300 };

struct vendor {
	struct ptx_lift *l;
	const struct ptx_statement *s;
	struct tally_buffer text, before;
	unsigned outputs, inputs, first_input;
	const struct ptx_operand *output[MAX_VALUES];
	LLVMTypeRef output_type[MAX_VALUES];
	LLVMValueRef input[MAX_VALUES];
	int tied[MAX_VALUES]; /* input: the output that it shares a register with, or -1 */
};

void ptx_lock(struct ptx_lift *l, const struct ptx_statement *s, const char *what)
{
	char place[512];

	if (tally_attribute(l->value, TALLY_ATTR_VENDOR))
		return;
	snprintf(place, sizeof place, "%.120s at %.300s:%u:%u", what, l->file, s->line, s->column);
	tally_attribute_set(l->value, TALLY_ATTR_VENDOR, "nvidia");
	tally_attribute_set(l->value, TALLY_ATTR_LOCKED, place);
}

static char constraint(LLVMTypeRef type)
{
	switch (LLVMGetTypeKind(type)) {
	case LLVMFloatTypeKind:
		return 'f';
	case LLVMDoubleTypeKind:
		return 'd';
	default:
		switch (LLVMGetIntTypeWidth(type)) {
		case 1:
			return 'b';
		case 32:
			return 'r';
		case 64:
			return 'l';
		case 128:
			return 'q';
		default:
			return 'h';
		}
	}
}

static bool is_register(const struct ptx_operand *o)
{
	return o->kind == PTX_O_NAME && o->symbol && o->symbol->kind == PTX_VARIABLE &&
	       o->symbol->space == PTX_REG;
}

static void print_selector(struct vendor *v, const struct ptx_operand *o)
{
	if (o->selector)
		tally_buffer_print(&v->text, ".%s", o->selector);
}

static void add_output(struct vendor *v, const struct ptx_operand *o)
{
	if (o->kind == PTX_O_SINK) {
		tally_buffer_print(&v->text, "_");
		return;
	}
	if (!is_register(o) || v->outputs == MAX_VALUES) {
		ptx_fail(v->l, v->s, "an operand has a form that does not fit");
		return;
	}
	v->output[v->outputs] = o;
	v->output_type[v->outputs] = ptx_storage_type(v->l, o->symbol->type);
	tally_buffer_print(&v->text, "$%u", v->outputs++);
	print_selector(v, o);
}

/* Inputs are numbered after all outputs, whose number is known by then. */
static unsigned add_input(struct vendor *v, LLVMValueRef value, int tied)
{
	if (v->inputs == MAX_VALUES) {
		ptx_fail(v->l, v->s, "too many operands");
		return 0;
	}
	v->input[v->inputs] = value;
	v->tied[v->inputs] = tied;
	return v->first_input + v->inputs++;
}

static void print_text(struct vendor *v, const char *text, size_t length)
{
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	for (size_t i = 0; i < length; i++)
		tally_buffer_print(&v->text, text[i] == '$' ? "$$" : "%c", text[i]);
}

static void print_source(struct vendor *v, const struct ptx_operand *o);

static void print_list(struct vendor *v, const struct ptx_operand *o)
{
	for (; o; o = o->next) {
		print_source(v, o);
		if (o->next)
			tally_buffer_print(&v->text, ", ");
	}
}

/* A variable's address is as wide as the instruction says: mapa.u32. */
static enum ptx_type value_type(const struct ptx_statement *s, const struct ptx_operand *o)
{
	if (is_register(o))
		return o->symbol->type;
	return s->type[0] && ptx_type_bits(s->type[0]) == 32 ? PTX_b32 : PTX_b64;
}

/* A texture, sampler or surface is named: in independent mode no register may stand for it (PTX ISA
 * 5.3). */
static bool print_opaque(struct vendor *v, const struct ptx_operand *o)
{
	if (!o->symbol || o->symbol->kind != PTX_VARIABLE || !ptx_type_is_opaque(o->symbol->type))
		return false;
	print_text(v, o->name, strlen(o->name));
	return true;
}

/* A register, or the address of a variable. */
static void print_value(struct vendor *v, const struct ptx_operand *o)
{
	struct ptx_operand plain = *o;

	if (print_opaque(v, o))
		return;
	plain.negated = false;
	if (o->negated)
		tally_buffer_print(&v->text, o->symbol && o->symbol->type == PTX_pred ? "!" : "-");
	tally_buffer_print(&v->text, "$%u",
			   add_input(v, ptx_value(v->l, v->s, &plain, value_type(v->s, o)), -1));
	print_selector(v, o);
}

/* Questions about textures and surfaces take the handle in a register of type .u64 alone. */
static bool is_query(const struct ptx_statement *s)
{
	return !strcmp(s->name, "txq") || !strcmp(s->name, "suq");
}

static void print_memory(struct vendor *v, const struct ptx_operand *o)
{
	struct ptx_operand base = *o;
	enum ptx_type type = PTX_b64;

	base.kind = PTX_O_NAME;
	base.bits = 0;
	base.negated = false;
	if (is_register(&base) && ptx_type_bits(base.symbol->type) == 32)
		type = PTX_b32;
	tally_buffer_print(&v->text, "[");
	if (o->name && print_opaque(v, o)) {
		/* by its name */
	} else if (o->name) {
		unsigned n = add_input(v, ptx_value(v->l, v->s, &base, type), -1);

		if (is_query(v->s)) {
			tally_buffer_print(&v->before, "{ .reg .u64 %%th; mov.b64 %%th, $%u; ", n);
			tally_buffer_print(&v->text, "%%th");
		} else {
			tally_buffer_print(&v->text, "$%u", n);
		}
		/* A tensor map or a texture takes no offset, not even 0. */
		if (o->bits)
			tally_buffer_print(&v->text, "+%lld", (long long)o->bits);
	} else {
		tally_buffer_print(&v->text, "%lld", (long long)o->bits);
	}
	if (o->first)
		tally_buffer_print(&v->text, ", ");
	print_list(v, o->first);
	tally_buffer_print(&v->text, "]");
}

static void print_source(struct vendor *v, const struct ptx_operand *o)
{
	switch (o->kind) {
	case PTX_O_VECTOR:
		tally_buffer_print(&v->text, "{");
		print_list(v, o->first);
		tally_buffer_print(&v->text, "}");
		return;
	case PTX_O_MEMORY:
		print_memory(v, o);
		return;
	case PTX_O_NAME:
		print_value(v, o);
		return;
	case PTX_O_LIST:
		ptx_fail(v->l, v->s, "an operand has a form that does not fit");
		return;
	default:
		print_text(v, o->text, o->length);
	}
}

/* The first operand is written, unless the instruction has none such. wgmma adds to it. */
static bool has_destination(const struct ptx_statement *s)
{
	const struct ptx_operand *o = s->operands ? s->operand[0] : NULL;

	if (!o || (!strcmp(s->name, "tcgen05") && !ptx_has(s, "ld")))
		return false;
	return is_register(o) || o->kind == PTX_O_VECTOR || o->kind == PTX_O_SINK;
}

static void print_destination(struct vendor *v)
{
	const struct ptx_operand *o = v->s->operand[0];

	if (o->kind != PTX_O_VECTOR) {
		add_output(v, o);
	} else {
		tally_buffer_print(&v->text, "{");
		for (const struct ptx_operand *e = o->first; e; e = e->next) {
			add_output(v, e);
			if (e->next)
				tally_buffer_print(&v->text, ", ");
		}
		tally_buffer_print(&v->text, "}");
	}
	if (o->second) {
		tally_buffer_print(&v->text, "|");
		add_output(v, o->second);
	}
	v->first_input = v->outputs;
	if (!strcmp(v->s->name, "wgmma"))
		for (unsigned i = 0; i < v->outputs; i++)
			add_input(v,
				  ptx_value(v->l, v->s, v->output[i], v->output[i]->symbol->type),
				  (int)i);
}

static LLVMValueRef build(struct vendor *v)
{
	struct ptx_lift *l = v->l;
	struct tally_buffer constraints = {0};
	LLVMTypeRef types[MAX_VALUES], result, type;
	LLVMValueRef code, call = NULL;

	result = v->outputs == 0 ? LLVMVoidTypeInContext(l->context)
		 : v->outputs == 1
			 ? v->output_type[0]
			 : LLVMStructTypeInContext(l->context, v->output_type, v->outputs, 0);
	for (unsigned i = 0; i < v->outputs; i++)
		tally_buffer_print(&constraints, "=%c,", constraint(v->output_type[i]));
	for (unsigned i = 0; i < v->inputs; i++) {
		types[i] = LLVMTypeOf(v->input[i]);
		if (v->tied[i] >= 0)
			tally_buffer_print(&constraints, "%d,", v->tied[i]);
		else
			tally_buffer_print(&constraints, "%c,", constraint(types[i]));
	}
	tally_buffer_print(&constraints, "~{memory}");
	tally_buffer_print(&v->text, "%s", *v->text.data == '{' ? "; }" : ";");
	if (constraints.failed || v->text.failed) {
		ptx_fail(l, v->s, "out of memory");
	} else {
		type = LLVMFunctionType(result, types, v->inputs, 0);
		code = LLVMGetInlineAsm(type, v->text.data, v->text.size, constraints.data,
					constraints.size, 1, 0, LLVMInlineAsmDialectATT, 0);
		call = LLVMBuildCall2(l->builder, type, code, v->input, v->inputs, "");
		LLVMAddCallSiteAttribute(
			call, LLVMAttributeFunctionIndex,
			LLVMCreateEnumAttribute(
				l->context, LLVMGetEnumAttributeKindForName("convergent", 10), 0));
	}
	tally_buffer_free(&constraints);
	return call;
}

static void store_outputs(struct vendor *v, LLVMValueRef call)
{
	for (unsigned i = 0; i < v->outputs; i++) {
		const struct ptx_operand *o = v->output[i];
		LLVMValueRef value =
			v->outputs == 1 ? call : LLVMBuildExtractValue(v->l->builder, call, i, "");
		ptx_assign_to(v->l, v->s, o, value, o->symbol->type);
	}
}

bool ptx_lower_vendor(struct ptx_lift *l, const struct ptx_statement *s)
{
	struct vendor v = {.l = l, .s = s};
	bool destination = has_destination(s);
	LLVMValueRef call;

	tally_buffer_print(&v.text, "%s", s->opcode);
	for (unsigned i = 0; i < s->operands && !l->failed; i++) {
		tally_buffer_print(&v.text, i ? ", " : " ");
		if (i == 0 && destination)
			print_destination(&v);
		else
			print_source(&v, s->operand[i]);
	}
	if (v.before.size) {
		tally_buffer_print(&v.before, "%s", v.text.data ? v.text.data : "");
		tally_buffer_free(&v.text);
		v.text = v.before;
		v.before = (struct tally_buffer){0};
	}
	call = l->failed ? NULL : build(&v);
	if (call) {
		store_outputs(&v, call);
		ptx_lock(l, s, s->opcode);
	}
	tally_buffer_free(&v.text);
	tally_buffer_free(&v.before);
	return !l->failed;
}

LLVMValueRef ptx_opaque_address(struct ptx_lift *l, const struct ptx_statement *s, const char *name)
{
	struct tally_buffer text = {0};
	LLVMTypeRef type = LLVMFunctionType(l->i64, NULL, 0, 0);
	LLVMValueRef code;

	tally_buffer_print(&text, "mov.u64 $0, ");
	for (; *name; name++)
		tally_buffer_print(&text, *name == '$' ? "$$" : "%c", *name);
	tally_buffer_print(&text, ";");
	if (text.failed) {
		ptx_fail(l, s, "out of memory");
		return LLVMGetPoison(l->i64);
	}
	code = LLVMGetInlineAsm(type, text.data, text.size, "=l", 2, 0, 0, LLVMInlineAsmDialectATT,
				0);
	tally_buffer_free(&text);
	ptx_lock(l, s, s->opcode);
	return LLVMBuildCall2(l->builder, type, code, NULL, 0, "");
}
