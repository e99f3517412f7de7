/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inline PTX of clang's bitcode through the instruction table: each asm string becomes a small
 * always-inline function of its operands, so that its branches need no surgery in the caller.
 */
#include <ctype.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/hash.h"
#include "frontend/frontend.h"
#include "frontend/ptx/lift_internal.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

enum { MAX_OPERANDS = 128 };

struct operand {
	bool output;
	int tied; /* an input in the register of that output, or -1 */
	LLVMTypeRef type;
	LLVMValueRef constant; /* of an "n" or "i" input: goes into the text */
	unsigned argument;     /* of the call; of outputs: member of the result */
	struct ptx_symbol *symbol;
};

struct assembly {
	LLVMValueRef call;
	struct operand operand[MAX_OPERANDS];
	unsigned operands, outputs, arguments;
	struct tally_buffer text;
};

/* Where the call stands in the source, for messages. */
struct place {
	char file[256];
	unsigned line, column;
};

static struct place place_of(LLVMValueRef call, const struct tally_lift_options *options)
{
	struct place p = {0};
	const char *file;
	size_t length;

	snprintf(p.file, sizeof p.file, "%s", options && options->file ? options->file : "<asm>");
	if (tally_instruction_place(call, &file, &length, &p.line, &p.column) && length)
		snprintf(p.file, sizeof p.file, "%.*s", (int)length, file);
	return p;
}

/* Leaves the call as it is and locks its function to the vendor. */
static bool leave(struct assembly *a, const struct place *p, const char *what)
{
	LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(a->call));
	char text[512], where[32] = "";

	if (p->line)
		snprintf(where, sizeof where, ":%u:%u", p->line, p->column);
	snprintf(text, sizeof text, "%.120s at %.250s%s", what, p->file, where);
	if (!tally_attribute(function, TALLY_ATTR_VENDOR)) {
		tally_attribute_set(function, TALLY_ATTR_VENDOR, "nvidia");
		tally_attribute_set(function, TALLY_ATTR_LOCKED, text);
	}
	return true;
}

static enum ptx_type register_type(LLVMTypeRef type)
{
	switch (LLVMGetTypeKind(type)) {
	case LLVMFloatTypeKind:
		return PTX_f32;
	case LLVMDoubleTypeKind:
		return PTX_f64;
	case LLVMHalfTypeKind:
	case LLVMBFloatTypeKind:
		return PTX_b16;
	case LLVMPointerTypeKind:
		return PTX_b64;
	case LLVMIntegerTypeKind:
		switch (LLVMGetIntTypeWidth(type)) {
		case 8:
			return PTX_b8;
		case 16:
			return PTX_b16;
		case 32:
			return PTX_b32;
		case 64:
			return PTX_b64;
		}
		return PTX_NO_TYPE;
	case LLVMVectorTypeKind:
		if (LLVMGetVectorSize(type) == 2 &&
		    (LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMHalfTypeKind ||
		     LLVMGetTypeKind(LLVMGetElementType(type)) == LLVMBFloatTypeKind))
			return PTX_b32;
		return PTX_NO_TYPE;
	default:
		return PTX_NO_TYPE;
	}
}

static LLVMTypeRef output_type(LLVMTypeRef result, unsigned index)
{
	return LLVMGetTypeKind(result) == LLVMStructTypeKind
		       ? LLVMStructGetTypeAtIndex(result, index)
		       : result;
}

/* One constraint: "=r", "=&l", "r", "0", "n". Clobbers are skipped. False: a form that stays. */
static bool constraint(struct assembly *a, LLVMTypeRef type, const char *c, size_t length)
{
	struct operand *o = &a->operand[a->operands];
	LLVMValueRef value;

	if (length && *c == '~')
		return true;
	if (a->operands == MAX_OPERANDS || memchr(c, '*', length) || memchr(c, '{', length))
		return false;
	o->tied = -1;
	a->operands++;
	if (length && *c == '=') {
		o->output = true;
		o->argument = a->outputs;
		o->type = output_type(LLVMGetReturnType(type), a->outputs++);
		return register_type(o->type) != PTX_NO_TYPE;
	}
	if (a->arguments == LLVMGetNumArgOperands(a->call))
		return false;
	o->argument = a->arguments++;
	value = LLVMGetOperand(a->call, o->argument);
	o->type = LLVMTypeOf(value);
	if (length == 1 && (*c == 'n' || *c == 'i')) {
		o->constant = value;
		return LLVMIsAConstantInt(value) && LLVMGetIntTypeWidth(o->type) <= 64;
	}
	if (length && isdigit((unsigned char)*c))
		o->tied = *c - '0' + (length > 1 ? (*c - '0') * 9 + c[1] - '0' : 0);
	return register_type(o->type) != PTX_NO_TYPE && o->tied < (int)a->operands;
}

static bool constraints(struct assembly *a, LLVMValueRef code)
{
	size_t length;
	const char *c = LLVMGetInlineAsmConstraintString(code, &length), *end = c + length;
	LLVMTypeRef type = LLVMGetInlineAsmFunctionType(code);

	while (c < end) {
		const char *stop = memchr(c, ',', (size_t)(end - c));
		size_t n = (size_t)((stop ? stop : end) - c);
		if (!constraint(a, type, c, n))
			return false;
		c += n + 1;
	}
	return true;
}

/* $$ is a dollar; $0 and ${0:x} name operands: registers of that name, or constants' values. */
static bool expand(struct assembly *a, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		bool braces = i + 1 < length && text[i + 1] == '{';
		size_t at = i + 1 + braces;
		unsigned n = 0;

		if (text[i] != '$') {
			tally_buffer_append(&a->text, &text[i], 1);
			continue;
		}
		if (at < length && text[at] == '$') {
			tally_buffer_append(&a->text, "$", 1);
			i++;
			continue;
		}
		if (at >= length || !isdigit((unsigned char)text[at]))
			return false;
		while (at < length && isdigit((unsigned char)text[at]) && n < MAX_OPERANDS)
			n = n * 10 + (unsigned)(text[at++] - '0');
		while (braces && at < length && text[at] != '}')
			at++;
		if (n >= a->operands)
			return false;
		if (a->operand[n].constant)
			tally_buffer_print(&a->text, "%lld",
					   LLVMConstIntGetSExtValue(a->operand[n].constant));
		else
			tally_buffer_print(&a->text, "$%u", n);
		i = braces ? at : at - 1;
	}
	return !a->text.failed;
}

/* The operands as registers named $0, $1 ... of the module's outermost scope. */
static bool add_registers(struct assembly *a, struct ptx_module *ptx)
{
	char name[16];

	for (unsigned i = 0; i < a->operands; i++) {
		struct ptx_symbol *s;
		snprintf(name, sizeof name, "$%u", i);
		s = ptx_add(ptx, name, strlen(name), PTX_VARIABLE, 0);
		if (!s)
			return false;
		s->space = PTX_REG;
		s->type = register_type(a->operand[i].type);
		a->operand[i].symbol = s;
	}
	return true;
}

/*
 * The statement that cannot be lifted, or NULL: a vendor's, an unknown one, or one whose carry flag
 * comes from another asm string or goes to one.
 */
static const struct ptx_statement *obstacle(struct ptx_function *f, const char *file)
{
	const struct ptx_statement *writer = NULL;
	struct tally_error ignored = {0};
	bool written = false;

	for (struct ptx_statement *s = f->first; s; s = s->next) {
		bool writes = s->kind == PTX_S_INSTRUCTION && ptx_has(s, "cc");
		bool reads = s->kind == PTX_S_INSTRUCTION &&
			     (!strcmp(s->name, "addc") || !strcmp(s->name, "subc") ||
			      !strcmp(s->name, "madc"));
		if (s->kind != PTX_S_INSTRUCTION)
			continue;
		if (!ptx_match(s, file, f->name, false, &ignored) || !s->row->lower)
			return s;
		if (reads && !written)
			return s;
		written |= writes;
		writer = writes ? s : reads ? NULL : writer;
	}
	return writer;
}

static void store_arguments(struct ptx_lift *l, struct assembly *a)
{
	for (unsigned i = 0; i < a->operands; i++) {
		struct operand *o = &a->operand[i];
		struct ptx_symbol *s = o->symbol;
		LLVMTypeRef storage = ptx_storage_type(l, s->type);
		LLVMValueRef v;
		if (o->output) {
			LLVMBuildStore(l->entry_builder, LLVMConstNull(storage), ptx_place(l, s));
			continue;
		}
		if (o->constant)
			continue;
		v = ptx_as(l, LLVMGetParam(l->value, o->argument), storage, false);
		LLVMBuildStore(l->builder, v, ptx_place(l, s));
		if (o->tied >= 0)
			LLVMBuildStore(l->builder,
				       ptx_as(l, v,
					      ptx_storage_type(l, a->operand[o->tied].symbol->type),
					      false),
				       ptx_place(l, a->operand[o->tied].symbol));
	}
}

static LLVMValueRef load_output(struct ptx_lift *l, const struct operand *o)
{
	LLVMTypeRef storage = ptx_storage_type(l, o->symbol->type);
	LLVMValueRef v = LLVMBuildLoad2(l->builder, storage, ptx_place(l, o->symbol), "");

	if (LLVMGetTypeKind(o->type) == LLVMPointerTypeKind)
		return LLVMBuildIntToPtr(l->builder, v, o->type, "");
	return ptx_as(l, v, o->type, false);
}

static void build_result(struct ptx_lift *l, const struct assembly *a, LLVMTypeRef result)
{
	LLVMValueRef v = a->outputs ? LLVMGetPoison(result) : NULL;

	if (!a->outputs) {
		LLVMBuildRetVoid(l->builder);
		return;
	}
	for (unsigned i = 0; i < a->operands; i++) {
		LLVMValueRef e;
		if (!a->operand[i].output)
			continue;
		e = load_output(l, &a->operand[i]);
		v = LLVMGetTypeKind(result) == LLVMStructTypeKind
			    ? LLVMBuildInsertValue(l->builder, v, e, a->operand[i].argument, "")
			    : e;
	}
	LLVMBuildRet(l->builder, v);
}

/* `ret` inside an asm string would leave the caller: there is no such code, and it is not lifted.
 */
static bool leaves_function(const struct ptx_function *f)
{
	for (const struct ptx_statement *s = f->first; s; s = s->next)
		if (s->kind == PTX_S_INSTRUCTION && !strcmp(s->name, "ret"))
			return true;
	return false;
}

static bool build_body(struct ptx_lift *l, struct assembly *a, struct ptx_function *f)
{
	LLVMBasicBlockRef entry, body;

	l->function = f;
	entry = ptx_new_block(l, "entry");
	body = ptx_new_block(l, "body");
	LLVMPositionBuilderAtEnd(l->entry_builder, entry);
	LLVMPositionBuilderAtEnd(l->builder, body);
	store_arguments(l, a);
	for (struct ptx_symbol *v = f->variables; v; v = v->next)
		if (!ptx_declare_variable(l, v))
			return false;
	if (!ptx_lift_statements(l, f))
		return false;
	if (!LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(l->builder)))
		build_result(l, a, LLVMGetReturnType(LLVMGlobalGetValueType(l->value)));
	LLVMBuildBr(l->entry_builder, body);
	return !l->failed;
}

static void promote(LLVMValueRef function)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef error = LLVMRunPassesOnFunction(function, "sroa", NULL, options);

	if (error)
		LLVMConsumeError(error);
	LLVMDisposePassBuilderOptions(options);
	ptx_restore_pointers(function);
}

static void replace_call(struct assembly *a, LLVMValueRef function, LLVMContextRef context)
{
	LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
	LLVMValueRef arguments[MAX_OPERANDS], v;

	LLVMPositionBuilderBefore(builder, a->call);
	for (unsigned i = 0; i < a->arguments; i++)
		arguments[i] = LLVMGetOperand(a->call, i);
	v = LLVMBuildCall2(builder, LLVMGlobalGetValueType(function), function, arguments,
			   a->arguments, "");
	LLVMInstructionSetDebugLoc(v, LLVMInstructionGetDebugLoc(a->call));
	LLVMDisposeBuilder(builder);
	tally_replace(a->call, a->outputs ? v : NULL);
}

/* The name of the helper: equal strings with equal operands share one. */
static void helper_name(const struct assembly *a, LLVMValueRef code, char *name, size_t size)
{
	size_t length;
	char *type = LLVMPrintTypeToString(LLVMGetInlineAsmFunctionType(code));
	struct tally_hash hash = tally_hash_bytes(a->text.data, a->text.size);

	hash = tally_hash_extend(hash, LLVMGetInlineAsmConstraintString(code, &length));
	hash = tally_hash_extend(hash, type);
	LLVMDisposeMessage(type);
	snprintf(name, size, "ptx.asm.%s", hash.hex);
}

/* NULL when some part stays the vendor's: `what` names it then. */
static LLVMValueRef build_helper(struct assembly *a, struct ptx_module *ptx, struct ptx_function *f,
				 LLVMModuleRef module, const char *name, char what[128])
{
	const char *locked;
	struct tally_error ignored = {0};
	struct ptx_lift l = {.ptx = ptx, .file = ptx->file, .error = &ignored};
	LLVMTypeRef type = LLVMGetInlineAsmFunctionType(LLVMGetCalledValue(a->call));
	LLVMValueRef function = LLVMAddFunction(module, name, type);
	bool ok;

	LLVMSetLinkage(function, LLVMInternalLinkage);
	tally_add_attribute(function, "alwaysinline", 0);
	tally_add_attribute(function, "nounwind", 0);
	tally_add_attribute(function, "convergent", 0);
	ptx_lift_start(&l, LLVMGetModuleContext(module), module);
	l.value = function;
	ok = build_body(&l, a, f);
	ptx_lift_end(&l);
	locked = tally_attribute(function, TALLY_ATTR_LOCKED);
	if (ok && !locked) {
		promote(function);
		return function;
	}
	snprintf(what, 128, "%s", locked ? locked : f->first ? f->first->opcode : "inline asm");
	what[strcspn(what, " ")] = '\0';
	LLVMDeleteFunction(function);
	return NULL;
}

static bool lift(struct assembly *a, LLVMModuleRef module, struct ptx_module *ptx,
		 const struct place *p, struct tally_error *error)
{
	LLVMValueRef code = LLVMGetCalledValue(a->call), function;
	struct ptx_function f = {.name = "inline asm"};
	const struct ptx_statement *stop;
	struct tally_error inner = {0};
	size_t length;
	const char *text = LLVMGetInlineAsmAsmString(code, &length);
	char name[64], what[128];

	if (!constraints(a, code) || !expand(a, text, length))
		return leave(a, p, "inline asm with an operand of another kind");
	ptx->arena.limit = 1 << 20;
	if (!add_registers(a, ptx))
		return tally_fail(error, "out of memory");
	if (!ptx_parse_body(ptx, &f, p->file, a->text.data ? a->text.data : "", a->text.size,
			    &inner))
		return tally_fail_at(error, p->file, p->line, p->column, "inline asm, %u:%u: %s",
				     inner.line, inner.column, inner.message);
	stop = obstacle(&f, p->file);
	if (stop)
		return leave(a, p, stop->opcode);
	if (leaves_function(&f))
		return leave(a, p, "ret");
	helper_name(a, code, name, sizeof name);
	function = LLVMGetNamedFunction(module, name);
	if (!function)
		function = build_helper(a, ptx, &f, module, name, what);
	if (!function)
		return leave(a, p, what);
	replace_call(a, function, LLVMGetModuleContext(module));
	return true;
}

/* Whether the results are all that the call has: it is not volatile, and writes no memory (code
 * that clobbers memory is kept by LLVM for that alone). */
static bool only_computes(LLVMValueRef code)
{
	size_t length;
	const char *text = LLVMGetInlineAsmConstraintString(code, &length);

	return !LLVMGetInlineAsmHasSideEffects(code) && !strstr(text, "~{memory}");
}

bool tally_ptx_lift_asm(LLVMModuleRef module, LLVMValueRef call,
			const struct tally_lift_options *options, struct tally_error *error)
{
	LLVMValueRef code = LLVMGetCalledValue(call);
	struct assembly *a = calloc(1, sizeof *a);
	struct ptx_module *ptx = calloc(1, sizeof *ptx);
	struct place p = place_of(call, options);
	bool ok = a && ptx;

	if (ok && !LLVMGetFirstUse(call) && only_computes(code)) {
		tally_replace(call, NULL); /* nobody asks for its results */
	} else if (ok) {
		a->call = call;
		ptx->file = p.file;
		ok = lift(a, module, ptx, &p, error);
		tally_buffer_free(&a->text);
		ptx_module_free(ptx);
	} else {
		tally_fail(error, "out of memory");
	}
	free(ptx);
	free(a);
	return ok;
}
