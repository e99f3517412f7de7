/* SPDX-License-Identifier: Apache-2.0 */
/* Calls (PTX ISA 7.1, 9.7.12): parameters through .param space or registers, indirect calls, and
 * the functions that CUDA's runtime gives device code. */
#include <string.h>

#include "frontend/ptx/lift.h"
#include "ir_passes/ir.h"

enum { MAX_ARGUMENTS = 256 };

/* A structure is returned as an array of the widest integers that divide it. */
static LLVMTypeRef result_type(struct ptx_lift *l, const struct ptx_symbol *r)
{
	uint64_t bytes = r->elements * r->vector * ptx_type_bits(r->type) / 8;
	unsigned unit = r->align >= 8 && bytes % 8 == 0	  ? 8
			: r->align >= 4 && bytes % 4 == 0 ? 4
							  : 1;

	if (!r->is_array && r->vector == 1)
		return ptx_storage_type(l, r->type);
	return LLVMArrayType2(ptx_int_type(l, unit * 8), bytes / unit);
}

LLVMTypeRef ptx_parameter_type(struct ptx_lift *l, const struct ptx_symbol *p)
{
	if (p->is_array || p->vector > 1 || (p->is_pointer && ptx_type_bits(p->type) == 64))
		return LLVMPointerTypeInContext(l->context, 0);
	return ptx_storage_type(l, p->type);
}

LLVMTypeRef ptx_function_type(struct ptx_lift *l, const struct ptx_function *f)
{
	LLVMTypeRef types[MAX_ARGUMENTS], result = LLVMVoidTypeInContext(l->context);
	unsigned n = 0;

	for (const struct ptx_symbol *p = f->parameters; p; p = p->next) {
		if (n == MAX_ARGUMENTS) {
			ptx_fail_at(l, f->line, f->column, "function '%s' has too many parameters",
				    f->name);
			break;
		}
		types[n++] = ptx_parameter_type(l, p);
	}
	if (f->results && f->results->next)
		ptx_fail_at(l, f->results->line, f->results->column,
			    "function '%s' returns more than one value", f->name);
	else if (f->results)
		result = result_type(l, f->results);
	return LLVMFunctionType(result, types, n, 0);
}

/* One argument: a .param variable's contents (or its address, for structures), or a value. */
static LLVMValueRef argument(struct ptx_lift *l, const struct ptx_statement *s,
			     const struct ptx_symbol *formal, const struct ptx_operand *o)
{
	LLVMTypeRef want = ptx_parameter_type(l, formal), storage = want;
	bool by_value = formal->is_array || formal->vector > 1;
	LLVMValueRef place, v;

	if (!o->symbol || o->symbol->space != PTX_PARAM) {
		if (by_value)
			ptx_fail(l, s, "a structure argument has to be a .param variable");
		v = ptx_value(l, s, o, formal->type);
		return l->failed || LLVMGetTypeKind(want) == LLVMPointerTypeKind
			       ? LLVMGetPoison(want)
			       : ptx_as(l, v, want, false);
	}
	place = ptx_place(l, o->symbol);
	if (!place) {
		ptx_fail(l, s, "'%s' cannot be used here", o->name);
		return LLVMGetPoison(want);
	}
	if (by_value)
		return place;
	v = LLVMBuildLoad2(l->builder, storage, place, "");
	LLVMSetAlignment(v, ptx_type_bits(formal->type) / 8);
	return v;
}

static void byval_attribute(struct ptx_lift *l, LLVMValueRef value, bool call, unsigned index,
			    const struct ptx_symbol *p)
{
	unsigned size = ptx_type_bits(p->type) / 8 * p->vector;
	unsigned align = p->align > size ? p->align : size;
	LLVMTypeRef t = LLVMArrayType2(ptx_storage_type(l, p->type), p->elements * p->vector);
	LLVMAttributeRef attributes[] = {
		LLVMCreateTypeAttribute(l->context, LLVMGetEnumAttributeKindForName("byval", 5), t),
		LLVMCreateEnumAttribute(l->context, LLVMGetEnumAttributeKindForName("align", 5),
					align),
	};

	for (unsigned i = 0; i < 2; i++)
		if (call)
			LLVMAddCallSiteAttribute(value, index + 1, attributes[i]);
		else
			LLVMAddAttributeAtIndex(value, index + 1, attributes[i]);
}

/*
 * byval and its alignment on every structure parameter of a function or a call of it. Not on the
 * list of variable length: its size is the caller's alone to know, so the callee reads it where the
 * caller has put it (nobody may write to it).
 */
static void byval_attributes(struct ptx_lift *l, LLVMValueRef value, bool call,
			     const struct ptx_function *f)
{
	unsigned i = 0;

	for (const struct ptx_symbol *p = f->parameters; p; p = p->next, i++)
		if (p->is_array ? p->elements : p->vector > 1)
			byval_attribute(l, value, call, i, p);
}

bool ptx_declare_function(struct ptx_lift *l, struct ptx_function *f)
{
	LLVMTypeRef type;

	if (LLVMGetNamedFunction(l->module, f->name) || LLVMGetNamedGlobal(l->module, f->name))
		return ptx_fail_at(l, f->line, f->column, "'%s' is defined twice", f->name);
	if (!strncmp(f->name, "tally.", 6) || !strncmp(f->name, "llvm.", 5))
		return ptx_fail_at(l, f->line, f->column, "'%s' is a reserved name", f->name);
	type = ptx_function_type(l, f);
	if (l->failed)
		return false;
	f->symbol->value = LLVMAddFunction(l->module, f->name, type);
	tally_add_attribute(f->symbol->value, "nounwind", 0);
	byval_attributes(l, f->symbol->value, false, f);
	if (f->is_entry)
		return true;
	LLVMSetLinkage(f->symbol->value, LLVMInternalLinkage);
	/* It may reach a barrier; LLVM takes this off again where it does not. */
	tally_add_attribute(f->symbol->value, "convergent", 0);
	return true;
}

void ptx_build_return(struct ptx_lift *l)
{
	struct ptx_symbol *r = l->function->results;
	LLVMValueRef v;

	if (!r || l->function->is_entry) {
		LLVMBuildRetVoid(l->builder);
		return;
	}
	v = LLVMBuildLoad2(l->builder, result_type(l, r), ptx_place(l, r), "");
	LLVMSetAlignment(v, r->is_array && !r->align ? 1 : ptx_type_bits(r->type) / 8);
	LLVMBuildRet(l->builder, v);
}

struct call {
	const struct ptx_operand *results, *callee, *arguments, *prototype;
};

static bool store_result(struct ptx_lift *l, const struct ptx_statement *s, const struct call *c,
			 const struct ptx_symbol *formal, LLVMValueRef v)
{
	const struct ptx_operand *o = c->results ? c->results->first : NULL;

	if (!o || o->kind == PTX_O_SINK)
		return !l->failed;
	if (!formal)
		return ptx_fail(l, s, "'%s' returns nothing", c->callee->name);
	if (o->symbol && o->symbol->space == PTX_PARAM && ptx_place(l, o->symbol)) {
		LLVMSetAlignment(LLVMBuildStore(l->builder, v, ptx_place(l, o->symbol)),
				 ptx_type_bits(formal->type) / 8);
		return !l->failed;
	}
	return ptx_assign_to(l, s, o, v, formal->type);
}

static LLVMValueRef as_pointer(struct ptx_lift *l, LLVMValueRef v)
{
	return LLVMBuildIntToPtr(l->builder, v, LLVMPointerTypeInContext(l->context, 0), "");
}

/* What CUDA's device runtime answers; `signature` as in the operation table (arguments only). */
static const struct builtin {
	const char *name, *operation;
	unsigned arguments; /* that the operation takes: the first of the call's */
	unsigned pointers;  /* bit set: which of them are addresses */
	bool is_pointer, ends;
} builtins[] = {
	{"vprintf", "tally.printf", 2, 3, false, false},
	{"__assertfail", "tally.assert.fail", 4, 11, false, true},
	{"malloc", "tally.malloc", 1, 0, true, false},
	{"free", "tally.free", 1, 1, false, false},
};

static bool call_builtin(struct ptx_lift *l, const struct ptx_statement *s, const struct call *c,
			 const struct ptx_function *f, const struct builtin *b)
{
	const struct ptx_operand *o = c->arguments ? c->arguments->first : NULL;
	const struct ptx_symbol *formal = f->parameters;
	LLVMValueRef a[4] = {0}, v;

	for (unsigned i = 0; i < b->arguments; i++, o = o->next, formal = formal->next) {
		bool pointer = b->pointers >> i & 1, wide = pointer || b->is_pointer;
		if (!o || !formal || ptx_type_bits(formal->type) != (wide ? 64 : 32))
			return ptx_fail(l, s, "'%s' has other parameters than CUDA's", f->name);
		a[i] = argument(l, s, formal, o);
		if (pointer && !l->failed)
			a[i] = as_pointer(l, a[i]);
	}
	if (l->failed)
		return false;
	v = ptx_operation(l, b->operation, b->arguments, a[0], a[1], a[2], a[3]);
	if (b->is_pointer)
		v = LLVMBuildPtrToInt(l->builder, v, l->i64, "");
	if (b->ends)
		LLVMBuildUnreachable(l->builder);
	return b->ends || store_result(l, s, c, f->results, v);
}

static bool call_function(struct ptx_lift *l, const struct ptx_statement *s, const struct call *c,
			  const struct ptx_function *f, LLVMValueRef callee)
{
	LLVMValueRef a[MAX_ARGUMENTS], v;
	const struct ptx_operand *o = c->arguments ? c->arguments->first : NULL;
	LLVMTypeRef type = ptx_function_type(l, f);
	unsigned n = 0;

	for (const struct ptx_symbol *p = f->parameters; p && !l->failed; p = p->next) {
		if (!o || n == MAX_ARGUMENTS)
			return ptx_fail(l, s, "'%s' is called with too few arguments", f->name);
		a[n++] = argument(l, s, p, o);
		o = o->next;
	}
	if (l->failed)
		return false;
	if (o)
		return ptx_fail(l, s, "'%s' is called with too many arguments", f->name);
	v = LLVMBuildCall2(l->builder, type, callee, a, n, "");
	byval_attributes(l, v, true, f);
	LLVMAddCallSiteAttribute(
		v, LLVMAttributeFunctionIndex,
		LLVMCreateEnumAttribute(l->context,
					LLVMGetEnumAttributeKindForName("convergent", 10), 0));
	return store_result(l, s, c, f->results, v);
}

static bool call_direct(struct ptx_lift *l, const struct ptx_statement *s, const struct call *c)
{
	const struct ptx_symbol *symbol = c->callee->symbol;
	const struct ptx_function *f = symbol->function;

	for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
		if (!f->has_body && !strcmp(builtins[i].name, f->name))
			return call_builtin(l, s, c, f, &builtins[i]);
	if (f->is_entry)
		return ptx_fail(l, s, "kernel '%s' is called", f->name);
	if (!f->has_body || !symbol->value)
		return ptx_fail(l, s, "function '%s' is not defined in this file", f->name);
	return call_function(l, s, c, f, symbol->value);
}

/* What an indirect call takes and gives: its prototype, or any of the functions that it may reach
 * (a list of .calltargets, or the table that holds their addresses). */
static const struct ptx_function *shape_of(struct ptx_lift *l, const struct ptx_symbol *s)
{
	const struct ptx_value *v = s && s->kind == PTX_VARIABLE ? s->initialiser : NULL;

	if (v && v->kind == PTX_V_LIST)
		v = v->first;
	if (v && v->kind == PTX_V_ADDRESS)
		s = ptx_find(l->ptx, v->name, strlen(v->name));
	if (s && s->kind == PTX_TARGETS && s->targets)
		s = s->target[0];
	return s && (s->kind == PTX_PROTOTYPE || s->kind == PTX_FUNCTION) ? s->function : NULL;
}

/* call (results), callee, (arguments), prototype: all but the callee may be missing. */
bool ptx_lower_call(struct ptx_lift *l, const struct ptx_statement *s)
{
	struct call c = {0};
	unsigned i = 0;
	struct ptx_symbol *symbol;
	const struct ptx_function *shape;

	if (i < s->operands && s->operand[i]->kind == PTX_O_LIST)
		c.results = s->operand[i++];
	if (i == s->operands || s->operand[i]->kind != PTX_O_NAME)
		return ptx_fail(l, s, "the callee is missing");
	c.callee = s->operand[i++];
	if (i < s->operands && s->operand[i]->kind == PTX_O_LIST)
		c.arguments = s->operand[i++];
	if (i < s->operands)
		c.prototype = s->operand[i++];
	symbol = c.callee->symbol;
	if (!symbol)
		return ptx_fail(l, s, "function '%s' is not declared", c.callee->name);
	if (symbol->kind == PTX_FUNCTION && symbol->function)
		return call_direct(l, s, &c);
	if (symbol->kind != PTX_VARIABLE || symbol->space != PTX_REG)
		return ptx_fail(l, s, "'%s' is no function", c.callee->name);
	shape = c.prototype ? shape_of(l, c.prototype->symbol) : NULL;
	if (!shape)
		return ptx_fail(l, s,
				"an indirect call needs a .callprototype, .calltargets or a table "
				"of functions");
	return call_function(l, s, &c, shape, as_pointer(l, ptx_value(l, s, c.callee, PTX_b64)));
}
