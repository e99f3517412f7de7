/* SPDX-License-Identifier: Apache-2.0 */
/* Modules and kernel handles of the program, and what Tally knows about each. */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_KERNELS_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_KERNELS_H

#include <stdatomic.h>
#include <stdint.h>

#include "backends/cuda/interpose/hooks.h"
#include "profiler/level.h"

#define TALLY_SUFFIX "$slice_guard" /* of a kernel's stoppable form */

struct tally_configuration;

/* Whether a module's kernels can be had in a stoppable form. MACHINE_CODE becomes COMPILING when
 * somebody asks, COMPILING one of the others; STOPPABLE becomes WHOLE when the program gets hold of
 * constants that the second image has twice. */
enum tally_module_form {
	TALLY_MODULE_WHOLE,	   /* no: `barred` says why */
	TALLY_MODULE_MACHINE_CODE, /* perhaps: nobody asked (opaque.h) */
	TALLY_MODULE_COMPILING,	   /* not yet */
	TALLY_MODULE_STOPPABLE,	   /* they are in `variants` */
};

/* A module or library that the program loaded. Records are never freed, for a launch reads them
 * without a lock; those of modules that are gone become those of later ones. */
struct tally_module {
	struct tally_module *next;
	_Atomic(void *) handle; /* CUmodule or CUlibrary; NULL: gone */
	bool library;
	CUcontext context;	     /* in which it was loaded; NULL: a library */
	struct tally_module *parent; /* the library that this module was got from, or NULL */
	void *image;		     /* what was loaded instead: freed with the module; or NULL */
	uint64_t hash[2];	     /* of the content, for the profile; 0: not worth knowing */

	_Atomic int form;	  /* enum tally_module_form */
	_Atomic int barred;	  /* enum tally_reason */
	_Atomic(void *) variants; /* `handle`, or a second module that is loaded beside it */
	_Atomic bool asked;	  /* the program has the address of one of its variables */

	struct tally_machine_code *machine_code; /* NULL: it can be lifted, or not be stopped */
};

/* One launch as the program asked for it. */
struct tally_dimensions {
	unsigned grid[3], block[3], shared; /* dynamic shared memory, bytes */
};

struct tally_parameter {
	size_t offset, size; /* in the packed parameters */
};

struct tally_kernel {
	_Atomic(void *) handle;	     /* CUfunction or CUkernel as the program has it; NULL: gone */
	struct tally_module *module; /* NULL: it came by a way that nobody knows */
	bool is_kernel;		     /* handle is a CUkernel */
	CUcontext context;	     /* that a CUfunction belongs to */
	char *name;
	uint64_t hash;		   /* of the name */
	struct tally_kernel *next; /* never changes */
	struct tally_kernel *gone; /* of struct tally_gone */
	bool free;		   /* it may become another kernel's; the table's lock */

	/* Found out at the first launch after the module's form is known, then read-only. */
	_Atomic int state;
	_Atomic int barred; /* enum tally_reason: why there is no stoppable form */
	void *variant;	    /* NAME$slice_guard, or NAME in the patched image; same type */
	bool opaque;	    /* the latter: it is launched with its own grid, and */
	unsigned cluster;   /* its blocks come in clusters of so many, whatever the launch says */
	/* The layout of the program's own parameters, once `layout` says that it is known. */
	_Atomic int layout;
	unsigned count;
	struct tally_parameter *parameters; /* `count` of them */
	size_t bytes;			    /* packed size without the launch */
	_Atomic unsigned shared;	    /* dynamic shared memory that the variant may use */
	_Atomic unsigned clusters;	    /* how large its clusters may be */

	/* profile.c: the launch configurations that were met, and the last one. */
	_Atomic(struct tally_configuration *) configurations, last;
	_Atomic unsigned configuration_count;
	_Atomic uint64_t block_ps; /* of the last that was timed: picoseconds for a block */
	_Atomic uint32_t ran;	   /* in which forms one was timed: TALLY_LEVEL_BIT()s */
};

/* The record, or NULL. Lock-free. */
struct tally_kernel *tally_kernel_find(const void *handle);

/* The same, made when it is not there: the driver is asked where the handle came from. NULL out of
 * memory. */
struct tally_kernel *tally_kernel_of(void *handle);

/* Remembers that `handle` is kernel `name` of `module`. */
void tally_kernel_add(void *handle, struct tally_module *module, bool is_kernel, const char *name);

/* The packed parameters that cuLaunchKernel's `extra` (may be NULL) points to, or NULL. */
static inline const void *tally_packed_parameters(void **extra)
{
	for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2)
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			return extra[1];
	return NULL;
}

/* Whether the kernel has a stoppable form; finds out when first asked. A context is current. */
bool tally_kernel_stoppable(struct tally_kernel *kernel);

/* Whether the layout of its parameters is known; asks the driver when first asked itself, which
 * older ones do not answer. */
bool tally_kernel_layout(struct tally_kernel *kernel);

/* The module whose `machine_code` the kernel is of, and which nobody has asked for yet; or NULL. */
struct tally_module *tally_kernel_unasked(const struct tally_kernel *kernel);

/* Whether it is, or would be, stopped as machine code. */
bool tally_kernel_opaque(const struct tally_kernel *kernel);

/* The program got the address of one of the module's variables: whoever has it may write there at
 * any time, so what was loaded beside the module is not used any more. */
void tally_module_asked(struct tally_module *module);

/* Why not. */
enum tally_reason tally_kernel_barred(const struct tally_kernel *kernel);

/* Lets the variant use as much dynamic shared memory as the program allowed the kernel. */
void tally_kernel_allow_shared(struct tally_kernel *kernel, unsigned bytes);

/* Lets it have clusters as large as the program allowed the kernel. */
void tally_kernel_allow_clusters(struct tally_kernel *kernel, unsigned blocks);

/* Remembers a module (or library) that was loaded; `parent` as above. The caller fills in the rest
 * and then says its form. NULL out of memory. A handle that is known stays what it is. */
struct tally_module *tally_module_add(void *handle, bool library, struct tally_module *parent);
struct tally_module *tally_module_find(const void *handle);

static inline void tally_module_is(struct tally_module *m, enum tally_module_form form,
				   enum tally_reason barred)
{
	atomic_store_explicit(&m->barred, (int)barred, memory_order_relaxed);
	atomic_store_explicit(&m->form, (int)form, memory_order_release);
}

/* Records that nobody finds any more, and that are not yet for others to have. */
struct tally_gone {
	struct tally_module *modules; /* one that was named comes first */
	struct tally_kernel *kernels;
};

/* Makes a module, what was got from it and their kernels unknown: before it is unloaded, when no
 * launch of them is in a log. `modules` is NULL where the handle is none that is known. */
struct tally_gone tally_module_forget(void *handle);

/* The same for all modules and functions of a context that ends. */
struct tally_gone tally_modules_forget(CUcontext context);

/* When the driver has forgotten them too, and nothing is compiled for them any more: gives the
 * records back. Takes the devices' locks. */
void tally_gone_release(struct tally_gone *gone);

/* In a forked child: process.c says what becomes of all that the parent knew. */
void tally_kernels_forked(void);

#endif
