/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text to a module in neutral IR: the order of things. */
#include <llvm-c/Transforms/PassBuilder.h>
#include <string.h>

#include "frontend/frontend.h"
#include "frontend/ptx/lift.h"
#include "frontend/ptx/lift_internal.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

void ptx_lift_start(struct ptx_lift *l, LLVMContextRef context, LLVMModuleRef module)
{
	l->context = context;
	l->module = module;
	l->builder = LLVMCreateBuilderInContext(context);
	l->entry_builder = LLVMCreateBuilderInContext(context);
	l->i1 = LLVMInt1TypeInContext(context);
	l->i8 = LLVMInt8TypeInContext(context);
	l->i16 = LLVMInt16TypeInContext(context);
	l->i32 = LLVMInt32TypeInContext(context);
	l->i64 = LLVMInt64TypeInContext(context);
	l->f16 = LLVMHalfTypeInContext(context);
	l->bf16 = LLVMBFloatTypeInContext(context);
	l->f32 = LLVMFloatTypeInContext(context);
	l->f64 = LLVMDoubleTypeInContext(context);
}

void ptx_lift_end(struct ptx_lift *l)
{
	LLVMDisposeBuilder(l->builder);
	LLVMDisposeBuilder(l->entry_builder);
}

/*
 * A 64-bit parameter that is an address by its uses becomes a pointer of the kernel: the same bytes
 * in the parameter buffer, and LLVM knows what it points into.
 */
static void mark_pointers(struct ptx_function *f)
{
	for (struct ptx_statement *s = f->first; s; s = s->next) {
		const struct ptx_operand *d, *m;
		struct ptx_symbol *base;
		if (s->kind != PTX_S_INSTRUCTION)
			continue;
		if (!strcmp(s->name, "ld") && ptx_has(s, "param") && s->operands == 2 &&
		    s->type[0] && ptx_type_bits(s->type[0]) == 64) {
			d = s->operand[0];
			m = s->operand[1];
			if (d->kind == PTX_O_NAME && d->symbol && m->kind == PTX_O_MEMORY &&
			    m->symbol && m->symbol->space == PTX_PARAM && !m->bits &&
			    !m->symbol->is_array && m->symbol->vector == 1)
				d->symbol->from = m->symbol;
			continue;
		}
		for (unsigned i = 0; i < s->operands; i++) {
			const struct ptx_operand *o = s->operand[i];
			bool address = o->kind == PTX_O_MEMORY ||
				       (!strcmp(s->name, "cvta") && ptx_has(s, "to") && i == 1);
			base = address ? o->symbol : NULL;
			if (base && base->kind == PTX_VARIABLE && base->from)
				base->from->is_pointer = true;
		}
	}
}

static bool declare(struct ptx_lift *l)
{
	for (struct ptx_function *f = l->ptx->functions; f; f = f->next) {
		if (!f->has_body)
			continue;
		if (f->is_entry)
			mark_pointers(f);
		else /* calls pass what the prototype says: integers */
			for (struct ptx_symbol *p = f->parameters; p; p = p->next)
				p->is_pointer = false;
		if (!ptx_declare_function(l, f))
			return false;
	}
	for (struct ptx_alias *a = l->ptx->aliases; a; a = a->next) {
		struct ptx_symbol *target = ptx_find(l->ptx, a->target, strlen(a->target));
		if (!target || target->kind != PTX_FUNCTION || !target->value)
			return ptx_fail_at(l, a->line, a->column,
					   "alias of '%s', which is no function of this file",
					   a->target);
		a->alias->function = target->function;
		a->alias->value = target->value;
	}
	for (struct ptx_symbol *s = l->ptx->variables; s; s = s->next)
		if (!ptx_declare_variable(l, s))
			return false;
	for (struct ptx_symbol *s = l->ptx->variables; s; s = s->next)
		if (!ptx_initialise_variable(l, s))
			return false;
	return true;
}

static bool run_passes(LLVMModuleRef module, const char *passes, struct tally_error *error)
{
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef failed = LLVMRunPasses(module, passes, NULL, options);
	char *message;

	LLVMDisposePassBuilderOptions(options);
	if (!failed)
		return true;
	message = LLVMGetErrorMessage(failed);
	tally_fail(error, "LLVM: %s", message);
	LLVMDisposeErrorMessage(message);
	return false;
}

static bool is_flush(LLVMValueRef v)
{
	const char *name = LLVMIsACallInst(v) ? tally_called_name(v) : NULL;

	return name && !strcmp(name, "tally.ftz.f32");
}

/* What was flushed already is not flushed again: most operands of .ftz code are results of it, and
 * those of one statement, whose flushes follow each other, may be the same value. */
static bool drop_second_flush(LLVMValueRef i, void *data)
{
	LLVMValueRef value, before = i;

	if (!is_flush(i))
		return true;
	value = LLVMGetOperand(i, 0);
	if (is_flush(value)) {
		tally_replace(i, value);
		return true;
	}
	while ((before = LLVMGetPreviousInstruction(before)) && is_flush(before))
		if (LLVMGetOperand(before, 0) == value) {
			tally_replace(i, before);
			return true;
		}
	return true;
}

/* The verifier takes a twentieth of all time, and finds faults of the lifter alone. */
#ifdef TALLY_CHECKED
enum { CHECKED = 1 };
#else
enum { CHECKED = 0 };
#endif

bool ptx_lift_finish(LLVMModuleRef module, bool verify, struct tally_error *error)
{
	if ((CHECKED || verify) && !tally_verify_ir(module, "reading PTX", error))
		return false;
	/* Nearly all registers are whole variables: the simple pass first takes a third of the
	 * time. */
	if (!run_passes(module, "function(mem2reg,sroa)", error))
		return false;
	TALLY_EACH_FUNCTION (module, f)
		if (!LLVMIsDeclaration(f)) {
			ptx_restore_pointers(f);
			tally_visit_instructions(f, drop_second_flush, NULL);
		}
	if (!run_passes(module, "function(sroa,simplifycfg)", error))
		return false;
	ptx_places_end(module);
	if (!run_passes(module, "function(adce)", error))
		return false;
	tally_propagate_locks(module);
	return true;
}

static bool lift_module(struct ptx_lift *l)
{
	ptx_debug_start(l);
	ptx_places_start(l);
	if (!declare(l))
		return false;
	for (struct ptx_function *f = l->ptx->functions; f; f = f->next)
		if (f->has_body && !ptx_lift_function(l, f))
			return false;
	return true;
}

LLVMModuleRef tally_ptx_lift(LLVMContextRef context, const char *text, size_t size,
			     const struct tally_lift_options *options, struct tally_error *error)
{
	const char *file = options && options->file ? options->file : "<ptx>";
	struct ptx_module ptx = {0};
	struct ptx_lift l = {.ptx = &ptx, .file = file, .error = error};
	bool ok = ptx_parse(&ptx, file, text, size, options ? options->part : NULL, error);

	if (ok) {
		ptx_lift_start(&l, context, tally_module_create(file, context));
		ok = lift_module(&l);
		ptx_debug_end(&l);
		ptx_lift_end(&l);
		ok = ok && ptx_lift_finish(l.module, options && options->verify, error);
		if (!ok)
			LLVMDisposeModule(l.module);
	}
	ptx_module_free(&ptx);
	if (!ok && error && !tally_failed(error))
		tally_fail_at(error, file, 0, 0, "the PTX could not be lifted");
	return ok ? l.module : NULL;
}
