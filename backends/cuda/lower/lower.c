/* SPDX-License-Identifier: Apache-2.0 */
/* Neutral IR to PTX, with LLVM's NVPTX backend. */
#include <stdio.h>
#include <string.h>

#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

#include "backends/cuda/lower/cuda_lower.h"
#include "backends/library.h"
#include "ir_passes/ir.h"

TALLY_EMBEDDED(tally_cuda_library_ll);
TALLY_EMBEDDED(tally_cuda_arithmetic_ll);
TALLY_EMBEDDED(tally_cuda_library_sm75_ll);
TALLY_EMBEDDED(tally_cuda_library_sm80_ll);
TALLY_EMBEDDED(tally_cuda_library_sm90_ll);

#define MANY_PARAMETERS 81u /* the PTX version that takes more of them */

#define TRIPLE "nvptx64-nvidia-cuda"

static const struct tally_cuda_target *find_target(const char *name)
{
	for (const struct tally_cuda_target *t = tally_cuda_targets; t->name; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

/* A module that holds the vendor's own instructions may need any PTX version; so do narrow formats
 * and what came late among the matrix products and atomics. */
static bool needs_newest(LLVMModuleRef module)
{
	static const char *const late[] = {".e4m3", ".e5m2", ".kind.", ".ordered_metadata."};

	if (tally_lower_wide_atomics(module))
		return true;
	TALLY_EACH_FUNCTION (module, function) {
		const char *name = tally_name(function);

		if (tally_attribute(function, TALLY_ATTR_VENDOR) ||
		    !strncmp(name, "tally.narrow.", 13))
			return true;
		for (size_t i = 0; i < sizeof late / sizeof *late; i++)
			if (!strncmp(name, "tally.mma.", 10) && strstr(name, late[i]))
				return true;
	}
	return tally_cuda_has_atomic_vectors(module);
}

/* False with an error for a kernel whose parameters no version takes, or not `wanted` (0: any).
 * `*many`: they want a version that takes many. */
static bool check_parameters(LLVMModuleRef module, unsigned wanted, bool *many,
			     struct tally_error *error)
{
	const unsigned *limits = tally_cuda_parameter_limits;

	*many = false;
	TALLY_EACH_FUNCTION (module, kernel) {
		unsigned long long bytes =
			tally_is_kernel(kernel) ? tally_params_size(module, kernel) : 0;

		if (bytes <= limits[0])
			continue;
		*many = true;
		if (bytes > limits[1])
			return tally_fail(error,
					  "kernel '%s' has %llu bytes of parameters; NVIDIA's "
					  "machines take %u",
					  tally_name(kernel), bytes, limits[1]);
		if (wanted && wanted < MANY_PARAMETERS)
			return tally_fail(error,
					  "kernel '%s' has %llu bytes of parameters; PTX %u.%u "
					  "takes %u, 8.1 takes %u",
					  tally_name(kernel), bytes, wanted / 10, wanted % 10,
					  limits[0], limits[1]);
	}
	return true;
}

/* Of the target, or newer for an instruction that the target has and its oldest version does not.
 */
static unsigned usual_ptx(const struct tally_cuda_target *target, LLVMModuleRef module, bool many)
{
	unsigned least = many ? MANY_PARAMETERS : 0;

	if (target->sm >= 90 && least < TALLY_CUDA_ELECT_PTX &&
	    LLVMGetNamedFunction(module, "tally.elect"))
		least = TALLY_CUDA_ELECT_PTX;
	return target->ptx < least ? least : target->ptx;
}

/* The version that the user asks for, or the oldest that has what the module needs; 0: an error. */
static unsigned ptx_version(const struct tally_cuda_target *target, LLVMModuleRef module,
			    unsigned wanted, struct tally_error *error)
{
	const unsigned *known = tally_cuda_ptx_versions;
	bool many;

	if (!check_parameters(module, wanted, &many, error))
		return 0;
	if (!wanted && needs_newest(module))
		return TALLY_CUDA_NEWEST_PTX;
	if (!wanted)
		return usual_ptx(target, module, many);
	while (*known && *known != wanted)
		known++;
	if (!*known)
		tally_fail(error, "PTX %u.%u is none that can be written (6.0 to %u.%u)",
			   wanted / 10, wanted % 10, TALLY_CUDA_NEWEST_PTX / 10,
			   TALLY_CUDA_NEWEST_PTX % 10);
	else if (wanted < target->oldest)
		tally_fail(error, "target %s came with PTX %u.%u; %u.%u does not know it",
			   target->name, target->oldest / 10, target->oldest % 10, wanted / 10,
			   wanted % 10);
	return tally_failed(error) ? 0 : wanted;
}

static LLVMTargetMachineRef create_machine(const struct tally_cuda_target *target, unsigned ptx,
					   int optimise, struct tally_error *error)
{
	LLVMTargetMachineRef machine;
	LLVMTargetRef llvm;
	char *message = NULL, features[16];

	LLVMInitializeNVPTXTargetInfo();
	LLVMInitializeNVPTXTarget();
	LLVMInitializeNVPTXTargetMC();
	LLVMInitializeNVPTXAsmPrinter();
	if (LLVMGetTargetFromTriple(TRIPLE, &llvm, &message)) {
		tally_fail(error, "%s", message);
		LLVMDisposeMessage(message);
		return NULL;
	}
	snprintf(features, sizeof features, "+ptx%u", ptx);
	machine = LLVMCreateTargetMachine(llvm, TRIPLE, target->name, features,
					  optimise == 0	  ? LLVMCodeGenLevelNone
					  : optimise == 2 ? LLVMCodeGenLevelLess
							  : LLVMCodeGenLevelDefault,
					  LLVMRelocDefault, LLVMCodeModelDefault);
	if (!machine)
		tally_fail(error, "LLVM has no machine for %s", target->name);
	return machine;
}

static void set_machine(LLVMModuleRef module, LLVMTargetMachineRef machine)
{
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);

	LLVMSetTarget(module, TRIPLE);
	LLVMSetModuleDataLayout(module, layout);
	LLVMDisposeTargetData(layout);
}

/* Kernel attributes of the contract as NVPTX spells them. */
static const struct {
	const char *neutral, *own;
} attributes[] = {
	{TALLY_ATTR_MAXNTID, "nvvm.maxntid"},	   {TALLY_ATTR_REQNTID, "nvvm.reqntid"},
	{TALLY_ATTR_MINCTAPERSM, "nvvm.minctasm"}, {TALLY_ATTR_MAXNREG, "nvvm.maxnreg"},
	{TALLY_ATTR_CLUSTER, "nvvm.cluster_dim"},  {TALLY_ATTR_MAXCLUSTER, "nvvm.maxclusterrank"},
};

static bool prepare_kernel(LLVMValueRef kernel, const struct tally_cuda_target *target,
			   struct tally_error *error)
{
	const char *warp = tally_attribute(kernel, TALLY_ATTR_WARP);
	size_t length;

	if (warp && strcmp(warp, "32"))
		return tally_fail(error,
				  "kernel '%s' means warps of %s lanes; those of target %s have 32",
				  LLVMGetValueName2(kernel, &length), warp, target->name);
	LLVMSetFunctionCallConv(kernel, LLVMPTXKernelCallConv);
	for (size_t k = 0; k < sizeof attributes / sizeof *attributes; k++) {
		const char *value = tally_attribute(kernel, attributes[k].neutral);

		if (value)
			tally_attribute_set(kernel, attributes[k].own, value);
	}
	return true;
}

static bool link_own(LLVMModuleRef module, const struct tally_cuda_target *target,
		     struct tally_error *error)
{
	static const struct {
		struct tally_library library;
		unsigned since;
	} parts[] = {
		{TALLY_LIBRARY(tally_cuda_library_ll, "cuda/library.ll"), 0},
		{TALLY_LIBRARY(tally_cuda_arithmetic_ll, "cuda/arithmetic.ll"), 0},
		{TALLY_LIBRARY(tally_cuda_library_sm75_ll, "cuda/library_sm75.ll"), 75},
		/* What is defined already stays: newest first. */
		{TALLY_LIBRARY(tally_cuda_library_sm90_ll, "cuda/library_sm90.ll"), 90},
		{TALLY_LIBRARY(tally_cuda_library_sm80_ll, "cuda/library_sm80.ll"), 80},
	};

	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
		if (target->sm >= parts[k].since &&
		    !tally_lower_link_library(module, &parts[k].library, error))
			return false;
	return true;
}

/* What NVPTX selects exactly among the intrinsics that backends/maths.c knows: none of them. */
static bool link_all(LLVMModuleRef module, const struct tally_cuda_target *target,
		     const struct tally_lower_options *options, struct tally_error *error)
{
	if (!link_own(module, target, error) || !tally_lower_link_portable(module, error))
		return false;
	tally_cuda_aligned(module); /* guards have a barrier, too */
	return link_own(module, target, error) && tally_lower_maths(module, NULL, error) &&
	       tally_lower_link_portable(module, error) &&
	       tally_cuda_maths(module, options->libdevice, error) &&
	       tally_lower_check_complete(module, target->name, error);
}

/*
 * ptxas optimises again what it reads, and nearly all inputs were optimised by their own compiler.
 * Level 2 only makes lifted code, library bodies and wrappers one: registers that were memory, what
 * is a constant, pointers that turn out to be global. Measured on the corpus (docs/lowering.md):
 * each further pass of default<O2> costs time and makes other code than the first compiler weighed.
 * Blocks stay (simplifycfg moves copies in front of branches). instcombine alone gives 1 % of the
 * instructions back in the mean, and takes more from some: blocks that fit on an SM, 5 to 10 % of
 * instructions in products, scans, attention. nvvm-reflect answers libdevice's questions (no
 * flushing of denormals) before anything else.
 */
static const char *const pipelines[] = {
	"nvvm-reflect,always-inline,globaldce",
	"nvvm-reflect,always-inline,globaldce,default<O1>",
	"nvvm-reflect,always-inline,globaldce,function(sroa,instsimplify,infer-address-spaces)",
	"nvvm-reflect,always-inline,globaldce,default<O3>",
};

/*
 * A module with places of the source becomes ".target sm_90, debug", which tells ptxas and the
 * driver not to optimise at all (code of Triton three to six times as long). The .loc lines need no
 * such word.
 */
static void drop_debug_word(struct tally_buffer *out, size_t from)
{
	static const char target[] = "\n.target ", word[] = ", debug\n";
	char *line = memmem(out->data + from, out->size - from, target, strlen(target)), *end;

	end = line ? memchr(line + 1, '\n', (size_t)(out->data + out->size - line) - 1) : NULL;
	if (!end || (size_t)(end - line) < strlen(word) ||
	    memcmp(end + 1 - strlen(word), word, strlen(word)))
		return;
	memmove(end + 1 - strlen(word), end, (size_t)(out->data + out->size - end));
	out->size -= strlen(word) - 1;
}

/*
 * LLVM compares for equality without a sign, nvcc with one. It is the same question, but ptxas
 * takes what is asked so for an unsigned counter of a loop, and then counts the rounds in another
 * way before it unrolls them.
 */
static void give_sign(struct tally_buffer *out, size_t from)
{
	static const char *const words[] = {"setp.eq.b", "setp.ne.b"};
	const size_t length = strlen(words[0]);

	for (size_t k = 0; k < sizeof words / sizeof *words; k++)
		for (char *at = out->data + from, *end = out->data + out->size;
		     (at = memmem(at, (size_t)(end - at), words[k], length));) {
			at += length; /* a size follows: not the b of bf16 */
			if (at < end && *at >= '1' && *at <= '6')
				at[-1] = 's';
		}
}

static bool emit(LLVMModuleRef module, LLVMTargetMachineRef machine,
		 const struct tally_cuda_target *target, const struct tally_lower_options *options,
		 struct tally_buffer *out, struct tally_error *error)
{
	size_t from = out->size;

	if ((options->optimise == 2 && !tally_cuda_shifts(module, error)) ||
	    !tally_lower_run_pipeline(module, pipelines[options->optimise & 3], machine, error) ||
	    !tally_cuda_atomic_vectors(module, target, error) ||
	    !tally_cuda_atomics(module, target, error))
		return false;
	tally_lower_stats(options, "optimise");
	if (options->emit == TALLY_EMIT_IR) {
		tally_lower_print(module, out);
		return true;
	}
	if (options->part && !tally_cuda_part(module, options->part, error))
		return false;
	if ((options->optimise == 2 &&
	     (!tally_cuda_carries(module, error) || !tally_cuda_shapes(module, error) ||
	      !tally_cuda_select(module, machine, error))) ||
	    !tally_cuda_names(module, error) ||
	    !tally_lower_emit(module, machine, false, out, error))
		return false;
	drop_debug_word(out, from);
	tally_cuda_texture_text(module, out, from);
	if (options->optimise == 2)
		give_sign(out, from);
	tally_cuda_names_text(out, from);
	tally_lower_stats(options, "codegen");
	return true;
}

static bool lower(LLVMModuleRef module, const struct tally_lower_options *options,
		  struct tally_buffer *out, struct tally_error *error)
{
	const struct tally_cuda_target *target = find_target(options->target);
	LLVMTargetMachineRef machine;
	unsigned ptx;
	bool ok;

	if (!target)
		return tally_fail(error, "unknown CUDA target '%s'", options->target);
	tally_lower_stats(options, NULL);
	if (!tally_lower_check_vendor(module, "nvidia", target->name, error))
		return false;
	if (target->sm < 90 && !tally_lower_refuse_wide_atomics(module, target->name, error))
		return false;
	TALLY_EACH_FUNCTION (module, function)
		if (tally_is_kernel(function) && !prepare_kernel(function, target, error))
			return false;
	ptx = ptx_version(target, module, options->ptx, error);
	tally_cuda_options(module);
	machine = ptx ? create_machine(target, ptx, options->optimise, error) : NULL;
	if (!machine)
		return false;
	set_machine(module, machine);
	tally_cuda_textures(module);
	tally_cuda_aligned(module);
	ok = tally_cuda_flush(module, error) && tally_lower_matrix(module, target->sm, error) &&
	     tally_cuda_matrix(module, target, error) &&
	     tally_cuda_instructions(module, target, ptx, error) &&
	     link_all(module, target, options, error);
	if (ok) {
		tally_cuda_conversions(module);
		tally_lower_internalise(module);
		tally_lower_stats(options, "link");
		ok = emit(module, machine, target, options, out, error);
	}
	LLVMDisposeTargetMachine(machine);
	return ok;
}

const struct tally_lowering tally_lowering_cuda = {
	.vendor = "nvidia",
	.targets = tally_cuda_target_names,
	.emits = 1u << TALLY_EMIT_DEFAULT | 1u << TALLY_EMIT_PTX | 1u << TALLY_EMIT_ASM |
		 1u << TALLY_EMIT_IR,
	.parameter_limits = tally_cuda_parameter_limits,
	.shared_limit = 48 << 10,
	.lower = lower,
};
