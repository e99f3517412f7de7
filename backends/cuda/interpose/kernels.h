/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel handles of the program, and what Tally knows about each. */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_KERNELS_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_KERNELS_H

#include <stdatomic.h>
#include <stdint.h>

#include "backends/cuda/interpose/hooks.h"

struct tally_parameter {
	size_t offset, size; /* in the packed parameters */
};

struct tally_kernel {
	_Atomic(void *) handle; /* CUfunction or CUkernel as the program has it; NULL: gone */
	void *owner;		/* CUmodule or CUlibrary */
	bool in_library;	/* owner is a CUlibrary */
	bool is_kernel;		/* handle is a CUkernel */
	char *name;
	struct tally_kernel *next;

	/* Found out at the first launch (tally_kernel_guarded), then read-only. */
	_Atomic int state;
	void *variant; /* NAME$slice_guard, a handle of the same type */
	unsigned count;
	struct tally_parameter *parameters; /* `count` of them */
	size_t bytes;			    /* packed size without the launch */
	_Atomic unsigned shared;	    /* dynamic shared memory that the variant may use */

	_Atomic uint64_t block_ps; /* measured: picoseconds of the device for a block; 0 unknown */
};

/* Remembers that `handle` is kernel `name` of the transformed module or library `owner`. */
struct tally_kernel_origin {
	void *owner;
	bool in_library, is_kernel;
};
void tally_kernel_add(void *handle, struct tally_kernel_origin origin, const char *name);

/* The record, or NULL: a kernel of an image that was not transformed. Lock-free. */
struct tally_kernel *tally_kernel_find(const void *handle);

/* Whether the kernel has a guarded variant; finds out when first asked. A context is current. */
bool tally_kernel_guarded(struct tally_kernel *kernel);

/* Lets the variant use as much dynamic shared memory as the program allowed the kernel. */
void tally_kernel_allow_shared(struct tally_kernel *kernel, unsigned bytes);

/*
 * Modules and libraries that were loaded from a transformed image. `parent` is the library that a
 * module was got from, or NULL; `image` is kept for as long as the owner.
 */
void tally_module_add(void *owner, void *parent, void *image);
bool tally_module_transformed(const void *owner);

/* Makes the kernels of `owner` unknown: before it is unloaded. Returns its image, to be freed after
 * that, or NULL. */
void *tally_module_forget(void *owner);

void tally_kernels_forked(void);

#endif
