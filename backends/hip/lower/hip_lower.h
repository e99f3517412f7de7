/* SPDX-License-Identifier: Apache-2.0 */
/* Neutral IR to AMDGCN code objects: what the files of this folder share. */
#ifndef TALLY_BACKENDS_HIP_LOWER_H
#define TALLY_BACKENDS_HIP_LOWER_H

#include <stdbool.h>

#include "backends/backend.h"

/* One machine. */
struct tally_hip_target {
	const char *name; /* "gfx90a", as LLVM knows it */
	unsigned wave;	  /* lanes of a wave unless a kernel asks for another width: 32 or 64 */
	bool both;	  /* runs waves of either width */
	unsigned isa;	  /* the number by which ocml knows it */
};

extern const struct tally_hip_target tally_hip_targets[]; /* ends with a NULL name */
extern const char *const tally_hip_target_names[];	  /* the same, NULL-terminated */

/* What this module's kernels mean, on this target. */
struct tally_hip_shape {
	unsigned warp; /* lanes of the kernels' warps: 32 or 64 */
	unsigned wave; /* lanes of the waves that run them */
};

/* The one shape of all kernels; false with an error that names a kernel that has none here. */
bool tally_hip_shape(LLVMModuleRef module, const struct tally_hip_target *target,
		     struct tally_hip_shape *shape, struct tally_error *error);

/*
 * Kernels in AMDGPU's form: calling convention, pointers to global memory, byref arguments in the
 * kernel argument segment, size attributes; private allocas and sync scopes as the target names
 * them; device variables visible. The module has the target's data layout already.
 */
bool tally_hip_kernels(LLVMModuleRef module, struct tally_error *error);

/* tally.exit ends a thread, the machine's endpgm a wave: makes it a return from the kernel. False
 * with an error that names a function where that cannot be done. */
bool tally_hip_exit(LLVMModuleRef module, struct tally_error *error);

/* Barriers of a part of the block: ours where the warps are waves of their own, else refused by
 * name. Before the libraries are linked. */
bool tally_hip_barriers(LLVMModuleRef module, const struct tally_hip_shape *shape,
			struct tally_error *error);

/* Gives bodies to tally.math.* (ocml's functions) and to what printf calls (ockl's), from `folder`
 * or the usual places. False with an error that names a function, and the package to install, when
 * the library is missing. */
bool tally_hip_libraries(LLVMModuleRef module, const struct tally_hip_target *target,
			 const struct tally_hip_shape *shape, const char *folder,
			 struct tally_error *error);

#endif
