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
	struct tally_buffer text, before, after; /* the instruction; predicates in and out */
	unsigned outputs, inputs, predicates, first_input;
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
		return LLVMGetIntTypeWidth(type) == 64	 ? 'l'
		       : LLVMGetIntTypeWidth(type) == 32 ? 'r'
							 : 'h';
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
	bool predicate = is_register(o) && o->symbol->type == PTX_pred;

	if (o->kind == PTX_O_SINK) {
		tally_buffer_print(&v->text, "_");
		return;
	}
	if (!is_register(o) || v->outputs == MAX_VALUES) {
		ptx_fail(v->l, v->s, "an operand has a form that does not fit");
		return;
	}
	v->output[v->outputs] = o;
	v->output_type[v->outputs] =
		predicate ? v->l->i32 : ptx_storage_type(v->l, o->symbol->type);
	if (predicate) {
		tally_buffer_print(&v->text, "%%tp%u", v->predicates);
		tally_buffer_print(&v->before, ".reg .pred %%tp%u; ", v->predicates);
		tally_buffer_print(&v->after, " selp.u32 $%u, 1, 0, %%tp%u;", v->outputs,
				   v->predicates++);
	} else {
		tally_buffer_print(&v->text, "$%u", v->outputs);
		print_selector(v, o);
	}
	v->outputs++;
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

static void print_predicate(struct vendor *v, const struct ptx_operand *o)
{
	struct ptx_lift *l = v->l;
	LLVMValueRef value = LLVMBuildZExt(l->builder, ptx_value(l, v->s, o, PTX_pred), l->i32, "");
	unsigned n = add_input(v, value, -1);

	tally_buffer_print(&v->before, ".reg .pred %%tp%u; setp.ne.u32 %%tp%u, $%u, 0; ",
			   v->predicates, v->predicates, n);
	tally_buffer_print(&v->text, "%%tp%u", v->predicates++);
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
	if (o->name) {
		tally_buffer_print(&v->text, "$%u",
				   add_input(v, ptx_value(v->l, v->s, &base, type), -1));
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
		if (is_register(o) && o->symbol->type == PTX_pred)
			print_predicate(v, o);
		else
			tally_buffer_print(
				&v->text, "$%u",
				add_input(v,
					  ptx_value(v->l, v->s, o,
						    is_register(o) ? o->symbol->type : PTX_b64),
					  -1));
		print_selector(v, o);
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
	struct tally_buffer constraints = {0}, whole = {0};
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
	tally_buffer_print(&whole, "{ %s%s;%s }", v->before.data ? v->before.data : "",
			   v->text.data ? v->text.data : "", v->after.data ? v->after.data : "");
	if (constraints.failed || whole.failed || v->text.failed) {
		ptx_fail(l, v->s, "out of memory");
	} else {
		type = LLVMFunctionType(result, types, v->inputs, 0);
		code = LLVMGetInlineAsm(type, whole.data, whole.size, constraints.data,
					constraints.size, 1, 0, LLVMInlineAsmDialectATT, 0);
		call = LLVMBuildCall2(l->builder, type, code, v->input, v->inputs, "");
		LLVMAddCallSiteAttribute(
			call, LLVMAttributeFunctionIndex,
			LLVMCreateEnumAttribute(
				l->context, LLVMGetEnumAttributeKindForName("convergent", 10), 0));
	}
	tally_buffer_free(&constraints);
	tally_buffer_free(&whole);
	return call;
}

static void store_outputs(struct vendor *v, LLVMValueRef call)
{
	for (unsigned i = 0; i < v->outputs; i++) {
		const struct ptx_operand *o = v->output[i];
		LLVMValueRef value =
			v->outputs == 1 ? call : LLVMBuildExtractValue(v->l->builder, call, i, "");
		if (o->symbol->type == PTX_pred)
			value = LLVMBuildTrunc(v->l->builder, value, v->l->i1, "");
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
	call = l->failed ? NULL : build(&v);
	if (call) {
		store_outputs(&v, call);
		ptx_lock(l, s, s->opcode);
	}
	tally_buffer_free(&v.text);
	tally_buffer_free(&v.before);
	tally_buffer_free(&v.after);
	return !l->failed;
}
