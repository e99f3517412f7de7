/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to IR between the optimiser and NVPTX's instruction selection.
 *
 * LLVM's own pipeline for NVPTX runs a second optimiser there (straight-line and loop strength
 * reduction, reassociation, code generation's preparation). It is made for code that nobody has
 * optimised yet; on what nvcc, Triton or clang have arranged it makes more instructions (a stencil
 * or convolution 5 to 30 % more in SASS, up to three times as many where it spoils the pattern of a
 * wide multiplication) and it takes more than half of the whole time. So only the passes that
 * lower something run, and LLVM starts behind the others.
 */
#include <stdio.h>
#include <string.h>

#include <llvm-c/Support.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "base/buffer.h"
#include "ir_passes/contract.h"
#include "ir_passes/ir.h"

/* Wider than LLVM selects: expanded by a pass that runs in LLVM's whole pipeline only. */
enum { WIDEST = 64 };

static bool is_wide(LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v);

	if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
		type = LLVMGetElementType(type);
	return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) > WIDEST;
}

/* False for an instruction that only LLVM's whole pipeline takes apart. */
static bool is_selectable(LLVMValueRef i)
{
	switch (LLVMGetInstructionOpcode(i)) {
	case LLVMUDiv:
	case LLVMSDiv:
	case LLVMURem:
	case LLVMSRem:
	case LLVMFPToSI:
	case LLVMFPToUI:
		return !is_wide(i);
	case LLVMSIToFP:
	case LLVMUIToFP:
		return !is_wide(LLVMGetOperand(i, 0));
	case LLVMAtomicRMW:
	case LLVMAtomicCmpXchg: /* of memory that only this thread has */
		return LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) !=
		       TALLY_AS_PRIVATE;
	default:
		return true;
	}
}

static bool look(LLVMValueRef i, void *data)
{
	return *(bool *)data = is_selectable(i);
}

static bool all_selectable(LLVMModuleRef module)
{
	bool selectable = true;

	TALLY_EACH_FUNCTION (module, function)
		if (selectable)
			tally_visit_instructions(function, look, &selectable);
	return selectable;
}

/* Local stack slots are told to be local, so that accesses are and not generic ones. */
static bool localise(LLVMValueRef slot, void *data)
{
	LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(slot));
	LLVMTypeRef generic = LLVMPointerTypeInContext(context, TALLY_AS_GENERIC);
	LLVMTypeRef local = LLVMPointerTypeInContext(context, TALLY_AS_PRIVATE);
	LLVMBuilderRef builder = data;
	LLVMValueRef to, back;

	if (!LLVMIsAAllocaInst(slot) || LLVMTypeOf(slot) != generic)
		return true;
	LLVMPositionBuilderBefore(builder, LLVMGetNextInstruction(slot));
	to = LLVMBuildAddrSpaceCast(builder, slot, local, "");
	back = LLVMBuildAddrSpaceCast(builder, to, generic, "");
	LLVMReplaceAllUsesWith(slot, back);
	LLVMSetOperand(to, 0, slot);
	return true;
}

/* PTX has no '.' and '@' in names: what nobody outside sees is renamed. */
static bool rename_value(LLVMValueRef value, struct tally_error *error)
{
	struct tally_buffer name = {0};
	const char *old = tally_name(value);

	if (LLVMGetLinkage(value) == LLVMExternalLinkage || !strpbrk(old, ".@"))
		return true;
	for (; *old; old++)
		tally_buffer_print(&name, *old == '.' || *old == '@' ? "_$_" : "%c", *old);
	if (!name.failed)
		LLVMSetValueName2(value, name.data, name.size);
	else
		tally_fail(error, "out of memory");
	tally_buffer_free(&name);
	return !tally_failed(error);
}

static bool rename_all(LLVMModuleRef module, struct tally_error *error)
{
	TALLY_EACH_FUNCTION (module, function)
		if (!LLVMIsDeclaration(function) && !rename_value(function, error))
			return false;
	TALLY_EACH_GLOBAL (module, global)
		if (!rename_value(global, error))
			return false;
	return true;
}

/* LLVM reads options once for the process, which lowers for one target (backend.h). */
static void parse(const char *const *options, int count)
{
	LLVMParseCommandLineOptions(count, options, NULL);
}

static bool is_near(LLVMTypeRef type)
{
	unsigned space;

	if (LLVMGetTypeKind(type) != LLVMPointerTypeKind)
		return false;
	space = LLVMGetPointerAddressSpace(type);
	return space == TALLY_AS_SHARED || space == TALLY_AS_CONSTANT || space == TALLY_AS_PRIVATE;
}

/* Whether a variable of the type holds such a pointer. */
static bool holds_pointer(LLVMTypeRef type)
{
	switch (LLVMGetTypeKind(type)) {
	case LLVMArrayTypeKind:
	case LLVMVectorTypeKind:
		return holds_pointer(LLVMGetElementType(type));
	case LLVMStructTypeKind:
		for (unsigned k = 0; k < LLVMCountStructElementTypes(type); k++)
			if (holds_pointer(LLVMStructGetTypeAtIndex(type, k)))
				return true;
		return false;
	default:
		return is_near(type);
	}
}

/* Whether somebody outside would see how wide pointers to near memory are. */
static bool is_seen(LLVMModuleRef module)
{
	TALLY_EACH_FUNCTION (module, function)
		for (unsigned k = 0; tally_is_kernel(function) && k < LLVMCountParams(function);
		     k++)
			if (is_near(LLVMTypeOf(LLVMGetParam(function, k))))
				return true;
	TALLY_EACH_GLOBAL (module, global)
		if (holds_pointer(LLVMGlobalGetValueType(global)))
			return true;
	return false;
}

static bool holds_near(LLVMModuleRef module)
{
	TALLY_EACH_GLOBAL (module, global)
		if (is_near(LLVMTypeOf(global)))
			return true;
	return false;
}

void tally_cuda_options(LLVMModuleRef module)
{
	static const char *const narrow[] = {"tally-lower", "-nvptx-short-ptr"};
	static bool is_narrow;

	if (!is_narrow && holds_near(module) && !is_seen(module)) {
		parse(narrow, sizeof narrow / sizeof *narrow);
		is_narrow = true;
	}
}

static void skip_optimiser(void)
{
	static const char *const options[] = {
		"tally-lower",
		/* Behind an early-cse that has no option of its own: it keeps over the whole kernel
		 * what each block computes for itself (spills, up to 50 registers more), and from
		 * one product it makes of those of several blocks ptxas computes anew inside of
		 * loops. And behind unreachableblockelim (branches.c). */
		"-start-before=callbrprepare",
		"-disable-lsr",
		"-disable-cgp",
		/* Code stays in the block that its compiler put it in: a value that waits for its
		 * use holds one register, its operands more (a matrix product: 18). */
		"-disable-machine-sink",
		"-disable-block-placement",
		/* Within one function ptxas does what these do. */
		"-disable-machine-cse",
		"-disable-peephole",
		"-disable-branch-fold",
		"-disable-copyprop",
		"-disable-nvptx-load-store-vectorizer",
		"-disable-machine-licm",
		"-disable-early-taildup",
	};
	static bool done;

	if (!done)
		parse(options, sizeof options / sizeof *options);
	done = true;
}

bool tally_cuda_select(LLVMModuleRef module, void *machine, struct tally_error *error)
{
	LLVMBuilderRef builder;

	if (!all_selectable(module))
		return true;
	builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
	TALLY_EACH_FUNCTION (module, function)
		tally_visit_instructions(function, localise, builder);
	LLVMDisposeBuilder(builder);
	if (!tally_lower_run_pipeline(
		    module,
		    "pre-isel-intrinsic-lowering,generic-to-nvvm,function("
		    "nvptx-lower-args,infer-address-spaces,atomic-expand,scalarize-masked-mem-"
		    "intrin,expand-reductions,nvptx-tag-invariant-loads,nvptx-ir-peephole),"
		    "expand-variadics",
		    machine, error) ||
	    !rename_all(module, error))
		return false;
	tally_cuda_branches(module);
	skip_optimiser();
	return true;
}
