/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One PTX function to LLVM IR: registers become allocas (promoted to values afterwards), parameters
 * places that ld.param reads, predicated instructions small branches.
 */
#include <stdio.h>
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

LLVMBasicBlockRef ptx_new_block(struct ptx_lift *l, const char *name)
{
	return LLVMAppendBasicBlockInContext(l->context, l->value, name);
}

static bool terminated(struct ptx_lift *l)
{
	return LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(l->builder)) != NULL;
}

static bool lift_instruction(struct ptx_lift *l, const struct ptx_statement *s)
{
	LLVMBasicBlockRef then, after;
	LLVMValueRef p;

	if (terminated(l)) /* code that nothing reaches */
		LLVMPositionBuilderAtEnd(l->builder, ptx_new_block(l, "dead"));
	if (!s->guard || s->row->lower == ptx_lower_branch)
		return s->row->lower ? s->row->lower(l, s) : ptx_lower_vendor(l, s);
	p = ptx_value(l, s, s->guard, PTX_pred);
	then = ptx_new_block(l, "then");
	after = ptx_new_block(l, "after");
	LLVMBuildCondBr(l->builder, p, then, after);
	LLVMPositionBuilderAtEnd(l->builder, then);
	if (!(s->row->lower ? s->row->lower(l, s) : ptx_lower_vendor(l, s)))
		return false;
	if (!terminated(l))
		LLVMBuildBr(l->builder, after);
	LLVMPositionBuilderAtEnd(l->builder, after);
	return true;
}

static void lift_label(struct ptx_lift *l, struct ptx_symbol *label)
{
	LLVMBasicBlockRef block = ptx_label_block(l, label);

	label->lifted = true;
	if (!terminated(l))
		LLVMBuildBr(l->builder, block);
	LLVMMoveBasicBlockAfter(block, LLVMGetLastBasicBlock(l->value));
	LLVMPositionBuilderAtEnd(l->builder, block);
	ptx_keep_place(l);
}

bool ptx_lift_statements(struct ptx_lift *l, struct ptx_function *f)
{
	for (struct ptx_statement *s = f->first; s && !l->failed; s = s->next) {
		switch (s->kind) {
		case PTX_S_LOC:
			ptx_debug_line(l, s);
			break;
		case PTX_S_LABEL:
			lift_label(l, s->label);
			break;
		case PTX_S_INSTRUCTION:
			if (!s->row && !ptx_match(s, l->file, f->name, f->is_entry, l->error))
				l->failed = true;
			else if (!lift_instruction(l, s))
				l->failed = true;
			break;
		}
	}
	return !l->failed;
}

/* A parameter's place: the structure's own memory, or an alloca that holds the argument. */
static void place_parameter(struct ptx_lift *l, struct ptx_symbol *p, LLVMValueRef argument)
{
	unsigned align =
		p->align > ptx_type_bits(p->type) / 8 ? p->align : ptx_type_bits(p->type) / 8;

	LLVMSetValueName2(argument, p->name, strlen(p->name));
	if (p->is_array || p->vector > 1) {
		p->value = argument;
		return;
	}
	if (p->space == PTX_REG)
		align = 0;
	p->value = ptx_alloca(l, LLVMTypeOf(argument), align, p->name);
	LLVMSetAlignment(LLVMBuildStore(l->entry_builder, argument, p->value),
			 LLVMGetAlignment(p->value));
}

static void size_attribute(struct ptx_lift *l, const char *name, const unsigned *size)
{
	char text[48];

	if (!size[0])
		return;
	snprintf(text, sizeof text, "%u,%u,%u", size[0], size[1], size[2]);
	tally_attribute_set(l->value, name, text);
}

static void number_attribute(struct ptx_lift *l, const char *name, unsigned number)
{
	char text[16];

	snprintf(text, sizeof text, "%u", number);
	if (number)
		tally_attribute_set(l->value, name, text);
}

static void kernel_attributes(struct ptx_lift *l, const struct ptx_function *f)
{

	tally_attribute_set(l->value, TALLY_ATTR_KERNEL, "");
	tally_attribute_set(l->value, TALLY_ATTR_WARP, "32");
	size_attribute(l, TALLY_ATTR_MAXNTID, f->maxntid);
	size_attribute(l, TALLY_ATTR_REQNTID, f->reqntid);
	size_attribute(l, TALLY_ATTR_CLUSTER, f->cluster);
	number_attribute(l, TALLY_ATTR_MINCTAPERSM, f->minctapersm);
	number_attribute(l, TALLY_ATTR_MAXNREG, f->maxnreg);
	number_attribute(l, TALLY_ATTR_MAXCLUSTER, f->maxclusterrank);
}

/*
 * Where all f32 arithmetic of a function flushes denormals, LLVM is told so as well: a GPU backend
 * then picks its flushing instructions and may drop the flushes that the IR spells out.
 */
static void denormal_attribute(struct ptx_lift *l)
{
	if (l->f32_ftz && !l->f32_plain)
		tally_attribute_set(l->value, "denormal-fp-math-f32",
				    "preserve-sign,preserve-sign");
}

bool ptx_lift_function(struct ptx_lift *l, struct ptx_function *f)
{
	LLVMBasicBlockRef entry, body;
	unsigned i = 0;

	l->function = f;
	l->value = f->symbol->value;
	l->carry = NULL;
	l->f32_ftz = l->f32_plain = 0;
	entry = ptx_new_block(l, "entry");
	body = ptx_new_block(l, "body");
	LLVMPositionBuilderAtEnd(l->entry_builder, entry);
	LLVMPositionBuilderAtEnd(l->builder, body);
	ptx_debug_function(l, f);
	for (struct ptx_symbol *p = f->parameters; p; p = p->next)
		place_parameter(l, p, LLVMGetParam(l->value, i++));
	if (f->results && !f->is_entry) {
		struct ptx_symbol *r = f->results;
		if (r->space == PTX_REG)
			ptx_place(l, r);
		else if (!ptx_declare_variable(l, r))
			return false;
	}
	for (struct ptx_symbol *v = f->variables; v; v = v->next)
		if (!ptx_declare_variable(l, v) || !ptx_initialise_variable(l, v))
			return false;
	if (!ptx_lift_statements(l, f))
		return false;
	if (!terminated(l))
		ptx_build_return(l);
	LLVMBuildBr(l->entry_builder, body);
	if (f->is_entry)
		kernel_attributes(l, f);
	denormal_attribute(l);
	l->function = NULL;
	return !l->failed;
}
