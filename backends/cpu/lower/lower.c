/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Neutral IR to an x86-64 shared object (backends/cpu/kernel_abi.h).
 *
 * Target "x86-64" means the CPU of this host, with all that it can do: compiled code is made where
 * it runs, and the code cache's key holds the CPU. "x86-64-v2", "-v3" and "-v4" are the fixed
 * levels of the psABI. Half precision needs F16C (v3).
 *
 * Kernels that meet no other thread become a loop nest over the block's threads, x innermost, which
 * LLVM vectorises; those that meet only in barriers of the whole block one such nest between any
 * two barriers; the others become coroutines, one for each thread, which the executor resumes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>

#include "backends/cpu/lower/internal.h"
#include "backends/library.h"

TALLY_EMBEDDED(tally_cpu_library);
TALLY_EMBEDDED(tally_cpu_vector);

static const char *const targets[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", NULL};

bool cpu_link_text(struct cpu_lowering *l, const char *text)
{
	LLVMMemoryBufferRef buffer =
		LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "template");
	LLVMModuleRef module = NULL;
	char *message = NULL;

	if (LLVMParseIRInContext(l->context, buffer, &module, &message)) {
		tally_fail(l->error, "template: %s", message);
		LLVMDisposeMessage(message);
		return false;
	}
	LLVMSetTarget(module, LLVMGetTarget(l->module));
	LLVMSetDataLayout(module, LLVMGetDataLayoutStr(l->module));
	if (LLVMLinkModules2(l->module, module))
		return tally_fail(l->error, "a template does not link");
	return true;
}

LLVMValueRef cpu_load_field(struct cpu_lowering *l, LLVMTypeRef type, LLVMValueRef base,
			    size_t offset, const char *name)
{
	LLVMValueRef index = LLVMConstInt(l->i64, offset, 0), value;

	value = LLVMBuildLoad2(l->builder, type,
			       LLVMBuildInBoundsGEP2(l->builder, l->i8, base, &index, 1, ""), name);
	LLVMSetAlignment(value, LLVMGetTypeKind(type) == LLVMIntegerTypeKind &&
						LLVMGetIntTypeWidth(type) == 32
					? 4
					: 8);
	LLVMSetMetadata(value, LLVMGetMDKindIDInContext(l->context, "invariant.load", 14),
			LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0)));
	return value;
}

bool cpu_calls(LLVMValueRef function, const char *name)
{
	LLVMValueRef callee = LLVMGetNamedFunction(LLVMGetGlobalParent(function), name);

	if (!callee)
		return false;
	TALLY_EACH_USE (callee, use) {
		LLVMValueRef user = LLVMGetUser(use);

		if (LLVMIsAInstruction(user) &&
		    LLVMGetBasicBlockParent(LLVMGetInstructionParent(user)) == function)
			return true;
	}
	return false;
}

struct cpu_kernel *cpu_kernel_of(struct cpu_lowering *l, LLVMValueRef function)
{
	for (size_t i = 0; i < l->kernel_count; i++)
		if (l->kernels[i].thread == function)
			return &l->kernels[i];
	return NULL;
}

LLVMValueRef cpu_context(struct cpu_lowering *l, LLVMValueRef function)
{
	if (cpu_kernel_of(l, function))
		return LLVMGetParam(function, CPU_THREAD);
	return LLVMGetParam(function, LLVMCountParams(function) - 1);
}

LLVMValueRef cpu_block(struct cpu_lowering *l, LLVMValueRef function)
{
	if (cpu_kernel_of(l, function))
		return LLVMGetParam(function, CPU_BLOCK);
	return cpu_load_field(l, l->ptr, cpu_context(l, function),
			      offsetof(struct tally_cpu_thread, block), "block");
}

/* Ours first: a definition that is there already wins. What the portable library brings may again
 * need operations that are ours. */
static bool link_libraries(struct cpu_lowering *l)
{
	static const struct tally_library own = TALLY_LIBRARY(tally_cpu_library,
							      "cpu/lower/library.ll"),
					  vector = TALLY_LIBRARY(tally_cpu_vector,
								 "cpu/lower/vector.ll");

	return tally_lower_link_library(l->module, &vector, l->error) &&
	       tally_lower_link_library(l->module, &own, l->error) && cpu_resolve_math(l, false) &&
	       tally_lower_link_portable(l->module, l->error) &&
	       tally_lower_link_library(l->module, &own, l->error) && cpu_resolve_math(l, true);
}

static bool check_vendor(struct cpu_lowering *l)
{
	return tally_lower_check_vendor(l->module, "cpu", l->options->target, l->error);
}

/* The optimiser's view of one thread, before loops and coroutines are made of it: private variables
 * in registers, straight address arithmetic. */
static bool simplify(struct cpu_lowering *l)
{
	return tally_lower_run_pipeline(
		l->module,
		"function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)",
		l->machine, l->error);
}

static bool set_layout(struct cpu_lowering *l)
{
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(l->machine);
	char *triple = LLVMGetTargetMachineTriple(l->machine);

	/* Debug lines would need a scope in each of the functions made here, and nothing on the CPU
	 * device reads them. */
	LLVMStripModuleDebugInfo(l->module);
	LLVMSetModuleDataLayout(l->module, layout);
	LLVMSetTarget(l->module, triple);
	LLVMDisposeTargetData(layout);
	LLVMDisposeMessage(triple);
	return true;
}

static bool has_private_memory(LLVMValueRef thread)
{
	TALLY_EACH_INSTRUCTION (LLVMGetEntryBasicBlock(thread), i)
		if (LLVMIsAAllocaInst(i))
			return true;
	return false;
}

/* Loops that all threads go through together are taken apart where that makes vectors of them. */
static bool make_seams(struct cpu_lowering *l, struct cpu_kernel *kernel, bool *any)
{
	*any = false;
	if (l->options->coroutines || l->options->optimise <= 1 ||
	    has_private_memory(kernel->thread) || cpu_no_regions(kernel->thread))
		return true;
	return cpu_hoist_fields(l, kernel) && cpu_make_seams(l, kernel, any);
}

static bool make_entry(struct cpu_lowering *l, struct cpu_kernel *kernel)
{
	bool seams;

	cpu_mark_params(l, kernel);
	if (!make_seams(l, kernel, &seams))
		return false;
	if (seams) {
		if (!cpu_make_regions(l, kernel))
			return false;
		if (!kernel->reason)
			return true;
		kernel->reason = NULL;
		if (!cpu_remove_seams(l, kernel))
			return false;
	}
	if (!cpu_is_coroutine(kernel)) {
		cpu_clear_addresses(l, kernel->thread);
		return cpu_make_loop(l, kernel);
	}
	if (!cpu_make_regions(l, kernel))
		return false;
	if (!kernel->reason)
		return true;
	kernel->record.flags |= TALLY_CPU_COROUTINE;
	return cpu_make_coroutine(l, kernel);
}

/* How each kernel runs, and why: for --stats. */
static void report_entry(const struct cpu_lowering *l, const struct cpu_kernel *kernel)
{
	if (!l->options->stats)
		return;
	if (kernel->reason)
		fprintf(stderr, "%s: coroutines: %s\n", kernel->name, kernel->reason);
	else if (kernel->regions)
		fprintf(stderr, "%s: %u regions\n", kernel->name, kernel->regions);
	else
		fprintf(stderr, "%s: loop\n", kernel->name);
}

static bool make_entries(struct cpu_lowering *l)
{
	for (size_t i = 0; i < l->kernel_count; i++) {
		if (!make_entry(l, &l->kernels[i]))
			return false;
		report_entry(l, &l->kernels[i]);
	}
	return true;
}

static bool optimise(struct cpu_lowering *l)
{
	/* Before the standard passes: coroutines are split as they are (coroutine.c); decisions
	 * that are the same for all threads of a block (the guard's range, bounds of the grid)
	 * leave the loops over threads, whatever they cost. */
	static const char first[] =
		"always-inline,coro-early,cgscc(coro-split),coro-cleanup,globaldce,"
		"function(simplifycfg,instcombine<no-verify-fixpoint>,loop-simplify,lcssa,"
		"loop-mssa(licm,simple-loop-unswitch<nontrivial;trivial>))";
	static const char *const levels[] = {"default<O1>", "default<O1>", "default<O2>",
					     "default<O3>"};
	int level = l->options->optimise < 0   ? 0
		    : l->options->optimise > 3 ? 3
					       : l->options->optimise;

	return tally_lower_run_pipeline(l->module, first, l->machine, l->error) &&
	       tally_lower_run_pipeline(l->module, levels[level], l->machine, l->error);
}

static const struct {
	const char *name;
	bool (*run)(struct cpu_lowering *l);
} steps[] = {
	{"vendor", check_vendor},
	{"machine", cpu_create_machine},
	{"kernels", cpu_find_kernels},
	{"layout", set_layout},
	{"variables", cpu_open_variables},
	{"numerics", cpu_prepare_numerics},
	{"half", cpu_prepare_half},
	{"matrix", cpu_make_matrix},
	{"libraries", link_libraries},
	{"inline", cpu_inline},
	{"contexts", cpu_thread_contexts},
	{"threads", cpu_make_threads},
	{"simplify", simplify},
	{"polls", cpu_yield_in_polls},
	{"local", cpu_place_local},
	{"shared", cpu_place_shared},
	{"entries", make_entries},
	{"table", cpu_make_table},
	{"runtime", cpu_define_runtime},
	{"optimise", optimise},
};

static bool run_steps(struct cpu_lowering *l, struct tally_buffer *out)
{
	bool ok = true;

	tally_lower_stats(l->options, NULL);
	for (size_t i = 0; ok && i < sizeof steps / sizeof *steps; i++) {
		ok = steps[i].run(l);
		tally_lower_stats(l->options, steps[i].name);
	}
	return ok;
}

static bool lower(LLVMModuleRef module, const struct tally_lower_options *options,
		  struct tally_buffer *out, struct tally_error *error)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	struct cpu_lowering l = {
		.module = module,
		.context = context,
		.builder = LLVMCreateBuilderInContext(context),
		.void_type = LLVMVoidTypeInContext(context),
		.ptr = LLVMPointerTypeInContext(context, 0),
		.i1 = LLVMInt1TypeInContext(context),
		.i8 = LLVMInt8TypeInContext(context),
		.i32 = LLVMInt32TypeInContext(context),
		.i64 = LLVMInt64TypeInContext(context),
		.options = options,
		.error = error,
	};
	bool ok = run_steps(&l, out) && tally_verify_ir(module, "the CPU lowering", error) &&
		  cpu_emit(&l, out);

	tally_lower_stats(options, "emit");
	for (size_t i = 0; i < l.kernel_count; i++)
		free(l.kernels[i].params), free(l.kernels[i].name);
	free(l.kernels);
	if (l.machine)
		LLVMDisposeTargetMachine(l.machine);
	LLVMDisposeBuilder(l.builder);
	return ok;
}

const struct tally_lowering tally_lowering_cpu = {
	.vendor = "cpu",
	.targets = targets,
	.emits = 1u << TALLY_EMIT_DEFAULT | 1u << TALLY_EMIT_ASM | 1u << TALLY_EMIT_OBJ |
		 1u << TALLY_EMIT_IR,
	.lower = lower,
};
