/* SPDX-License-Identifier: Apache-2.0 */
/* Neutral IR to PTX: what the files of this folder share. */
#ifndef TALLY_BACKENDS_CUDA_LOWER_H
#define TALLY_BACKENDS_CUDA_LOWER_H

#include <stdbool.h>

#include "backends/backend.h"

/* One machine. PTX versions are LLVM's numbers: 80 is PTX 8.0. */
struct tally_cuda_target {
	const char *name; /* "sm_80", as LLVM and ptxas know it */
	unsigned sm;	  /* 80 */
	unsigned ptx;	  /* the oldest PTX version that has all we write for it */
	unsigned oldest;  /* the PTX version that it came with */
};

extern const struct tally_cuda_target tally_cuda_targets[]; /* ends with a NULL name */
extern const char *const tally_cuda_target_names[];	    /* the same, NULL-terminated */

/* The PTX versions that LLVM writes, ascending, 0 after the last. */
extern const unsigned tally_cuda_parameter_limits[];
extern const unsigned tally_cuda_ptx_versions[];

/* The newest of them: for modules that hold a vendor's own instructions; the first with elect.sync.
 */
enum { TALLY_CUDA_NEWEST_PTX = 90, TALLY_CUDA_ELECT_PTX = 80 };

/*
 * Gives bodies to tally.math.*: renames them to libdevice's functions and links those. False with
 * an error that names a function and kernel, and the package to install, when libdevice is missing.
 */
bool tally_cuda_maths(LLVMModuleRef module, const char *libdevice, struct tally_error *error);

/* Gives bodies to the matrix operations that the target has; others stay without one. */
bool tally_cuda_matrix(LLVMModuleRef module, const struct tally_cuda_target *target,
		       struct tally_error *error);

/*
 * One asm string of `inputs` with the results of `result` (a type or a struct of types): $0 ... are
 * the results, the inputs follow. Without `effects` it may be merged, moved and dropped. NULL when
 * memory is short.
 */
LLVMValueRef tally_cuda_build_assembly(LLVMBuilderRef builder, LLVMTypeRef result,
				       LLVMValueRef *inputs, unsigned count, const char *text,
				       size_t size, bool effects);

/* Gives `function` a body that is such a string of its parameters, inlined everywhere. */
bool tally_cuda_assembly(LLVMValueRef function, const char *text, size_t size, bool effects);

/* Gives bodies to operations that are named after one instruction with modifiers: asynchronous
 * copies, cache policies. Those that the target or the version of PTX lacks stay without one. */
bool tally_cuda_instructions(LLVMModuleRef module, const struct tally_cuda_target *target,
			     unsigned ptx, struct tally_error *error);

/* Flushing and saturating arithmetic as single instructions: before anything is linked. */
bool tally_cuda_flush(LLVMModuleRef module, struct tally_error *error);

/* Barriers that are aligned as such: before the library that has them is linked. */
void tally_cuda_aligned(LLVMModuleRef module);

/* Conversions of floating-point numbers to integers that clamp, as the machine's own: after
 * linking.
 */
void tally_cuda_conversions(LLVMModuleRef module);

/* Shifts that clamp, as the machine's own: before the optimiser sees them. */
bool tally_cuda_shifts(LLVMModuleRef module, struct tally_error *error);

/* Sums and differences of many words as add.cc and addc, sub.cc and subc: after optimisation. */
bool tally_cuda_carries(LLVMModuleRef module, struct tally_error *error);

/* After optimisation, where nothing but selection follows: shapes that ptxas knows better than
 * those LLVM made of them. */
bool tally_cuda_shapes(LLVMModuleRef module, struct tally_error *error);

/* After optimisation: atomicrmw with the order and scope that the IR asks for. */
bool tally_cuda_atomics(LLVMModuleRef module, const struct tally_cuda_target *target,
			struct tally_error *error);

/* As PTX spells them: "gpu" for a sync scope of `context`, "acq_rel" for an order. */
const char *tally_cuda_scope(LLVMContextRef context, unsigned scope);
const char *tally_cuda_order(LLVMAtomicOrdering order);

/* Before tally_cuda_atomics(): neighbouring additions as one, where the target has that. */
bool tally_cuda_atomic_vectors(LLVMModuleRef module, const struct tally_cuda_target *target,
			       struct tally_error *error);
/* Whether there are some: they need a newer PTX version than the first that knew the target. */
bool tally_cuda_has_atomic_vectors(LLVMModuleRef module);

/*
 * Before the machine is made: options of LLVM for what `module` holds. Pointers to shared, constant
 * and local memory get 32 bits, as the ISA has them and as compilers compute them, unless a
 * parameter or a variable shows their width. Changes LLVM's options for the rest of the process.
 */
void tally_cuda_options(LLVMModuleRef module);

/* Right before selection: branches keep their directions, threads end where code does. The module
 * holds blocks then that nothing reaches. */
void tally_cuda_branches(LLVMModuleRef module);

/* Before tally_cuda_select(), for a part of a file (`part` of struct tally_lower_options): makes
 * variables declarations and puts `suffix` behind the names of what is internal. */
bool tally_cuda_part(LLVMModuleRef module, const char *suffix, struct tally_error *error);

/* Before instructions are selected: tells LLVM which variables are textures, samplers and surfaces.
 * After: the text from `from` on gets their fields and the texturing mode of the source. */
void tally_cuda_textures(LLVMModuleRef module);
void tally_cuda_texture_text(LLVMModuleRef module, struct tally_buffer *out, size_t from);

/*
 * Last, before instructions are selected with `machine` (LLVM's target machine): lowers what LLVM's
 * own pipeline would lower there, and tells LLVM to leave out the optimiser that runs in between.
 * Changes LLVM's options for the rest of the process.
 */
bool tally_cuda_select(LLVMModuleRef module, void *machine, struct tally_error *error);

/* Names that LLVM does not write, those with a percent sign in front: before the code generator,
 * and in its text from `from` on. False with an error for one that would be taken for a register.
 */
bool tally_cuda_names(LLVMModuleRef module, struct tally_error *error);
void tally_cuda_names_text(struct tally_buffer *out, size_t from);

#endif
