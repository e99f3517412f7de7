/* SPDX-License-Identifier: Apache-2.0 */
/* What a vendor's folder offers the compiler: one documented table. */
#ifndef TALLY_BACKENDS_BACKEND_H
#define TALLY_BACKENDS_BACKEND_H

#include <llvm-c/Core.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

enum tally_emit {
	TALLY_EMIT_DEFAULT, /* what the driver loads: PTX, AMDGCN code object, shared object */
	TALLY_EMIT_PTX,
	TALLY_EMIT_ASM,
	TALLY_EMIT_OBJ, /* relocatable object (not for NVPTX) */
	TALLY_EMIT_IR,	/* the optimised IR of the target, as text */
};

struct tally_lower_options {
	const char *target; /* one of the lowering's `targets` */
	enum tally_emit emit;
	int optimise;	 /* 0 to 3, default 2 */
	unsigned ptx;	 /* NVIDIA: PTX version as 86 for 8.6; 0: chosen by target */
	bool stats;	 /* report time per step to stderr */
	bool coroutines; /* CPU: all kernels with barriers, for tests and comparisons */
	/* NVIDIA: not NULL for one part of a file that backends/cuda/lower/join.h puts together:
	 * variables are declared only, and this stands behind each name of the part's own. */
	const char *part;
	const char *libdevice; /* path of libdevice.10.bc or NULL: look in the usual places */
	const char *rocm_device_libs; /* folder of ocml.bc …, or NULL: look in the usual places */
};

struct tally_lowering {
	const char *vendor; /* "nvidia", "amd", "cpu": what "tally.vendor" is compared with */
	const char *const *targets;	  /* NULL-terminated */
	unsigned emits;			  /* bit set of 1u << enum tally_emit */
	const unsigned *parameter_limits; /* tally_pass_options.parameter_limits */
	unsigned shared_limit;		  /* tally_pass_options.shared_limit */

	/*
	 * Turns neutral `module` (verified; the callee may change it as it likes, the caller
	 * disposes of it) into bytes appended to `out`. False with an error that names kernel,
	 * instruction and place where the target cannot do what the module asks. One call per
	 * process at a time.
	 */
	bool (*lower)(LLVMModuleRef module, const struct tally_lower_options *options,
		      struct tally_buffer *out, struct tally_error *error);
};

extern const struct tally_lowering tally_lowering_cuda, tally_lowering_hip, tally_lowering_cpu;

/* What every lowering does in the same way (backends/lower.c); see each for its use. */

/* ir_passes/library.ll, copies.ll, integer.ll and rounding.ll: portable bodies of the operations
 * that the backend's own library left open. They use operations that only the backend has: link its
 * own library once more afterwards. */
bool tally_lower_link_portable(LLVMModuleRef module, struct tally_error *error);

/*
 * Bodies over shuffles for the matrix operations of a warp that came after compute capability `sm`
 * (0: all of them; wmma, whose fragments are the device's own, all or none), but for sparse and
 * block-scaled ones and the narrowest floats, which stay declared. Their results are the CPU
 * device's. Link the backend's own library afterwards.
 */
bool tally_lower_matrix(LLVMModuleRef module, unsigned sm, struct tally_error *error);

/* Links a bitcode file of a vendor (libdevice, ocml): what `module` declares and what that needs,
 * discardable. False with an error that names the path when it cannot be read. */
bool tally_lower_link_bitcode(LLVMModuleRef module, const char *path, struct tally_error *error);

/* After linking: makes everything but kernels and external variables internal, everything
 * convergent until the optimiser knows better. */
void tally_lower_internalise(LLVMModuleRef module);

/* A kernel that reaches an atomic access of 128 bits, or NULL; false with an error that names it.
 */
const char *tally_lower_wide_atomics(LLVMModuleRef module);
bool tally_lower_refuse_wide_atomics(LLVMModuleRef module, const char *target,
				     struct tally_error *error);

/* After optimisation: false with an error that names the first tally.* operation that still has no
 * body, and a kernel that reaches it. A library calls an undefined `tally.VENDOR.refused.WORDS`
 * where a form of an operation does not exist: the error then says those words. */
bool tally_lower_check_complete(LLVMModuleRef module, const char *target,
				struct tally_error *error);

/*
 * Maths that a target cannot select. Calls of LLVM's maths intrinsics become calls of
 * `tally.math.NAME.T` (vectors one element at a time, half and bfloat through float) unless
 * `selectable` says that the target does NAME itself in that type; `frem` becomes
 * `tally.math.fmod.T`. Afterwards the backend gives bodies to tally.math.*.
 */
bool tally_lower_maths(LLVMModuleRef module, bool (*selectable)(const char *name, LLVMTypeRef type),
		       struct tally_error *error);

/* How every name of that family begins. */
#define TALLY_MATHS "tally.math."

/* Turns each declared tally.math.NAME.T into a declaration of the function of the vendor's library
 * that `name` writes for it (at most `size` bytes with the NUL). Returns how many there were. */
unsigned tally_lower_rename_maths(LLVMModuleRef module,
				  void (*name)(const char *operation, char *text, size_t size));

/* Runs an LLVM pass pipeline ("default<O2>"); `machine` may be NULL. */
bool tally_lower_run_pipeline(LLVMModuleRef module, const char *pipeline, void *machine,
			      struct tally_error *error);

/* The pipeline of an optimisation level: the library's bodies inlined first. */
const char *tally_lower_pipeline(int optimise);

/* Refuses kernels locked to another vendor, naming kernel, instruction and place. */
bool tally_lower_check_vendor(LLVMModuleRef module, const char *vendor, const char *target,
			      struct tally_error *error);

/* Emits assembly text or an object file; LLVM's diagnostics become the error. */
bool tally_lower_emit(LLVMModuleRef module, void *machine, bool object, struct tally_buffer *out,
		      struct tally_error *error);

/* Appends the module as text (TALLY_EMIT_IR). */
void tally_lower_print(LLVMModuleRef module, struct tally_buffer *out);

/* `--stats`: prints the time since the last call as step `what` to stderr; NULL starts anew. */
void tally_lower_stats(const struct tally_lower_options *options, const char *what);

#endif
