/* SPDX-License-Identifier: Apache-2.0 */
/* Neutral IR to AMDGCN code objects, with LLVM's AMDGPU backend and lld. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "backends/hip/lower/hip_lower.h"
#include "backends/library.h"
#include "backends/program.h"
#include "ir_passes/ir.h"

TALLY_EMBEDDED(tally_hip_library_ll);
TALLY_EMBEDDED(tally_hip_barriers_ll);
TALLY_EMBEDDED(tally_hip_printf_ll);
TALLY_EMBEDDED(tally_hip_lanes_ll);
TALLY_EMBEDDED(tally_hip_wave32_ll);
TALLY_EMBEDDED(tally_hip_wave64_ll);
TALLY_EMBEDDED(tally_hip_warp64_ll);

#define TRIPLE "amdgcn-amd-amdhsa"
enum { CODE_OBJECT_VERSION = 500 };

/* One lowering on its way. */
struct hip_lowering {
	LLVMModuleRef module;
	LLVMTargetMachineRef machine;
	const struct tally_hip_target *target;
	const struct tally_lower_options *options;
	struct tally_hip_shape shape;
	struct tally_error *error;
};

static const struct tally_hip_target *find_target(const char *name)
{
	for (const struct tally_hip_target *t = tally_hip_targets; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

static bool create_machine(struct hip_lowering *l)
{
	LLVMTargetRef llvm;
	char *message = NULL;
	const char *features = "";

	LLVMInitializeAMDGPUTargetInfo();
	LLVMInitializeAMDGPUTarget();
	LLVMInitializeAMDGPUTargetMC();
	LLVMInitializeAMDGPUAsmPrinter();
	LLVMInitializeAMDGPUAsmParser(); /* inline assembly that a kernel brings, and ockl's */
	if (LLVMGetTargetFromTriple(TRIPLE, &llvm, &message)) {
		tally_fail(l->error, "%s", message);
		LLVMDisposeMessage(message);
		return false;
	}
	if (l->target->both)
		features = l->shape.wave == 64 ? "+wavefrontsize64" : "+wavefrontsize32";
	l->machine = LLVMCreateTargetMachine(llvm, TRIPLE, l->target->name, features,
					     l->options->optimise ? LLVMCodeGenLevelDefault
								  : LLVMCodeGenLevelNone,
					     LLVMRelocPIC, LLVMCodeModelDefault);
	return l->machine || tally_fail(l->error, "LLVM has no machine for %s", l->target->name);
}

static void set_machine(struct hip_lowering *l)
{
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(l->machine);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetModuleContext(l->module));
	const char *flag = "amdhsa_code_object_version";

	LLVMSetTarget(l->module, TRIPLE);
	LLVMSetModuleDataLayout(l->module, layout);
	LLVMDisposeTargetData(layout);
	if (!LLVMGetModuleFlag(l->module, flag, strlen(flag)))
		LLVMAddModuleFlag(l->module, LLVMModuleFlagBehaviorError, flag, strlen(flag),
				  LLVMValueAsMetadata(LLVMConstInt(i32, CODE_OBJECT_VERSION, 0)));
}

static bool link_own(struct hip_lowering *l)
{
	const struct part {
		struct tally_library library;
		bool wanted;
	} parts[] = {
		{TALLY_LIBRARY(tally_hip_library_ll, "hip/library.ll"), true},
		{TALLY_LIBRARY(tally_hip_printf_ll, "hip/printf.ll"), true},
		{TALLY_LIBRARY(tally_hip_barriers_ll, "hip/barriers.ll"), l->shape.wave == 32},
		{TALLY_LIBRARY(tally_hip_lanes_ll, "hip/lanes.ll"), l->shape.warp == 32},
		{TALLY_LIBRARY(tally_hip_wave32_ll, "hip/wave32.ll"), l->shape.wave == 32},
		{TALLY_LIBRARY(tally_hip_wave64_ll, "hip/wave64.ll"),
		 l->shape.wave == 64 && l->shape.warp == 32},
		{TALLY_LIBRARY(tally_hip_warp64_ll, "hip/warp64.ll"), l->shape.warp == 64},
	};

	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
		if (parts[k].wanted &&
		    !tally_lower_link_library(l->module, &parts[k].library, l->error))
			return false;
	return true;
}

/* AMDGPU computes these itself as exactly as ocml would; sin, cos and pow it does not. */
static bool selectable(const char *name, LLVMTypeRef type)
{
	static const char *const in_float[] = {"exp", "exp2", "exp10", "log", "log2", "log10"};

	if (!strcmp(name, "ldexp"))
		return true;
	if (LLVMGetTypeKind(type) != LLVMFloatTypeKind && LLVMGetTypeKind(type) != LLVMHalfTypeKind)
		return false;
	for (size_t k = 0; k < sizeof in_float / sizeof *in_float; k++)
		if (!strcmp(name, in_float[k]))
			return true;
	return false;
}

static bool link_all(struct hip_lowering *l)
{
	return link_own(l) && tally_lower_link_portable(l->module, l->error) && link_own(l) &&
	       tally_lower_maths(l->module, selectable, l->error) &&
	       tally_lower_link_portable(l->module, l->error) &&
	       tally_hip_libraries(l->module, l->target, &l->shape, l->options->rocm_device_libs,
				   l->error) &&
	       link_own(l);
}

/* What the debug build's lld is called, newest first. */
static bool link_object(const struct tally_buffer *object, struct tally_buffer *out,
			struct tally_error *error)
{
	static const char *const linkers[] = {"ld.lld-22", TALLY_LLVM_BIN "/ld.lld", "ld.lld"};
	const char *argv[] = {NULL, "-shared", "--no-undefined", TALLY_PROGRAM_INPUT, "-o",
			      "-",  NULL};

	for (size_t k = 0; k < sizeof linkers / sizeof *linkers; k++) {
		struct tally_error own = {0};
		size_t before = out->size;

		argv[0] = linkers[k];
		if (tally_program_run(argv, object, out, NULL, &own))
			return true;
		out->size = before;
		if (strncmp(own.message, "cannot run", strlen("cannot run"))) {
			*error = own;
			return false;
		}
	}
	return tally_fail(error, "no ld.lld to link a code object with: install package lld-22");
}

static bool emit(struct hip_lowering *l, struct tally_buffer *out)
{
	enum tally_emit form = l->options->emit;
	struct tally_buffer object = {0};
	bool ok;

	if (form == TALLY_EMIT_IR) {
		tally_lower_print(l->module, out);
		return true;
	}
	if (form != TALLY_EMIT_DEFAULT) {
		ok = tally_lower_emit(l->module, l->machine, form == TALLY_EMIT_OBJ, out, l->error);
		tally_lower_stats(l->options, "codegen");
		return ok;
	}
	ok = tally_lower_emit(l->module, l->machine, true, &object, l->error);
	tally_lower_stats(l->options, "codegen");
	ok = ok && link_object(&object, out, l->error);
	tally_lower_stats(l->options, "lld");
	tally_buffer_free(&object);
	return ok;
}

static bool run(struct hip_lowering *l, struct tally_buffer *out)
{
	set_machine(l);
	if (!tally_hip_exit(l->module, l->error) ||
	    !tally_hip_barriers(l->module, &l->shape, l->error) ||
	    !tally_lower_matrix(l->module, 0, l->error) || !link_all(l) ||
	    !tally_hip_kernels(l->module, l->error))
		return false;
	tally_lower_internalise(l->module);
	tally_lower_stats(l->options, "link");
	if (!tally_lower_run_pipeline(l->module, tally_lower_pipeline(l->options->optimise),
				      l->machine, l->error) ||
	    !tally_lower_check_complete(l->module, l->target->name, l->error))
		return false;
	tally_lower_stats(l->options, "optimise");
	return emit(l, out);
}

static bool lower(LLVMModuleRef module, const struct tally_lower_options *options,
		  struct tally_buffer *out, struct tally_error *error)
{
	struct hip_lowering l = {.module = module,
				 .target = find_target(options->target),
				 .options = options,
				 .error = error};
	bool ok;

	if (!l.target)
		return tally_fail(error, "unknown HIP target '%s'", options->target);
	tally_lower_stats(options, NULL);
	if (!tally_lower_check_vendor(module, "amd", l.target->name, error) ||
	    !tally_lower_refuse_wide_atomics(module, l.target->name, error) ||
	    !tally_hip_shape(module, l.target, &l.shape, error) || !create_machine(&l))
		return false;
	ok = run(&l, out);
	LLVMDisposeTargetMachine(l.machine);
	return ok;
}

const struct tally_lowering tally_lowering_hip = {
	.vendor = "amd",
	.targets = tally_hip_target_names,
	.emits = 1u << TALLY_EMIT_DEFAULT | 1u << TALLY_EMIT_ASM | 1u << TALLY_EMIT_OBJ |
		 1u << TALLY_EMIT_IR,
	.shared_limit = 64 << 10,
	.lower = lower,
};
