/* SPDX-License-Identifier: Apache-2.0 */
/* From a kernel's record to its stoppable form, and to what that may have; see kernels.h. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/interpose/kernel_table.h"
#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "base/grow.h"
#include "ir_passes/launch_abi.h"

/* The record that says what form there is: a library's for the modules that were got from it. */
static struct tally_module *root(const struct tally_kernel *k)
{
	return k->module && k->module->parent ? k->module->parent : k->module;
}

/* The variant's handle, of the same type as the kernel's own; NULL when there is none. */
static void *find_variant(const struct tally_kernel *k, const struct tally_module *from)
{
	const char *suffix = from->machine_code ? "" : TALLY_SUFFIX;
	void *variants = atomic_load(&from->variants);
	CUfunction function = NULL;
	CUkernel kernel = NULL;
	CUresult error;
	char *name;

	/* Names of templates may be longer than any limit that one would think of. */
	if (asprintf(&name, "%s%s", k->name, suffix) < 0)
		return NULL;
	error = from->library ? TALLY_DRIVER(cuLibraryGetKernel)(&kernel, variants, name)
			      : TALLY_DRIVER(cuModuleGetFunction)(&function, variants, name);
	free(name);
	if (error || !from->library)
		return error ? NULL : function;
	if (k->is_kernel)
		return kernel;
	return TALLY_DRIVER(cuKernelGetFunction)(&function, kernel) ? NULL : function;
}

static CUresult parameter(const struct tally_kernel *k, void *handle, unsigned i,
			  struct tally_parameter *p)
{
	if (k->is_kernel)
		return TALLY_DRIVER(cuKernelGetParamInfo)(handle, i, &p->offset, &p->size);
	return TALLY_DRIVER(cuFuncGetParamInfo)(handle, i, &p->offset, &p->size);
}

/* Lock held. */
static int read_layout(struct tally_kernel *k)
{
	struct tally_parameter *list = NULL, p;
	unsigned count = 0;
	size_t bytes = 0;
	CUresult result;

	while (!(result = parameter(k, atomic_load(&k->handle), count, &p))) {
		if (!TALLY_GROW(list, count))
			break;
		list[count++] = p;
		if (p.offset + p.size > bytes)
			bytes = p.offset + p.size;
	}
	/* Behind the last one the index is invalid. Anything else is a driver that does not tell.
	 */
	if (result != CUDA_ERROR_INVALID_VALUE) {
		free(list);
		return TALLY_LAYOUT_NOT_TOLD;
	}
	k->parameters = list;
	k->count = count;
	k->bytes = bytes;
	return TALLY_LAYOUT_KNOWN;
}

/* Lock held. */
static bool layout_known(struct tally_kernel *k)
{
	int layout = atomic_load(&k->layout);

	if (layout == TALLY_LAYOUT_UNASKED) {
		layout = read_layout(k);
		atomic_store_explicit(&k->layout, layout, memory_order_release);
	}
	return layout == TALLY_LAYOUT_KNOWN;
}

bool tally_kernel_layout(struct tally_kernel *k)
{
	int layout = atomic_load_explicit(&k->layout, memory_order_acquire);
	bool known;

	if (layout != TALLY_LAYOUT_UNASKED)
		return layout == TALLY_LAYOUT_KNOWN;
	pthread_mutex_lock(&tally_kernels_lock);
	known = layout_known(k);
	pthread_mutex_unlock(&tally_kernels_lock);
	return known;
}

/* Patched code knows its own grid: of struct tally_launch it takes what comes before that. */
#define OPAQUE_LAUNCH offsetof(struct tally_launch, grid)

/* Whether the variant has the kernel's parameters and one more, of size `last`. Lock held. */
static bool same_parameters(struct tally_kernel *k, void *variant, size_t last)
{
	struct tally_parameter p;

	if (!layout_known(k))
		return false;
	for (unsigned i = 0; i < k->count; i++)
		if (parameter(k, variant, i, &p) || p.offset != k->parameters[i].offset ||
		    p.size != k->parameters[i].size)
			return false;
	return !parameter(k, variant, k->count, &p) && p.size == last &&
	       parameter(k, variant, k->count + 1, &p);
}

/* How many blocks a cluster of the kernel has if it was compiled for that, else 1. */
static unsigned cluster_of(const struct tally_kernel *k)
{
	static const CUfunction_attribute edges[] = {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
						     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
						     CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
	CUdevice device = 0;
	unsigned blocks = 1;

	TALLY_DRIVER(cuCtxGetDevice)(&device);
	for (unsigned i = 0; i < 3; i++) {
		int edge = 0;

		if (k->is_kernel)
			TALLY_DRIVER(cuKernelGetAttribute)(&edge, edges[i], k->variant, device);
		else
			TALLY_DRIVER(cuFuncGetAttribute)(&edge, edges[i], k->variant);
		blocks *= edge > 0 ? (unsigned)edge : 1;
	}
	return blocks;
}

static int find_out(struct tally_kernel *k, const struct tally_module *from)
{
	bool opaque = from && from->machine_code;
	void *variant = NULL;

	if (tally_opaque_collective(k->name)) {
		atomic_store(&k->barred, TALLY_WHY_COLLECTIVE);
		return TALLY_FORM_WHOLE;
	}
	if (from && atomic_load(&from->form) == TALLY_MODULE_WHOLE) {
		atomic_store(&k->barred, atomic_load(&from->barred));
		return TALLY_FORM_WHOLE;
	}
	if (from)
		variant = find_variant(k, from);
	if (!variant ||
	    !same_parameters(k, variant, opaque ? OPAQUE_LAUNCH : sizeof(struct tally_launch))) {
		atomic_store(&k->barred, opaque ? TALLY_WHY_NOT_PATCHED
					 : from ? TALLY_WHY_NOT_COMPILED
						: TALLY_WHY_NO_CODE);
		return TALLY_FORM_WHOLE;
	}
	k->variant = variant;
	k->opaque = opaque;
	k->cluster = opaque ? cluster_of(k) : 1;
	/* Without being asked a kernel may have 48 KB. */
	atomic_store(&k->shared, 48 * 1024);
	atomic_store(&k->clusters, 8);
	return TALLY_FORM_STOPPABLE;
}

bool tally_kernel_stoppable(struct tally_kernel *k)
{
	int state = atomic_load_explicit(&k->state, memory_order_acquire);
	const struct tally_module *from;
	int form;

	if (state != TALLY_FORM_UNKNOWN)
		return state == TALLY_FORM_STOPPABLE;
	from = root(k);
	form = from ? atomic_load_explicit(&from->form, memory_order_acquire) : TALLY_MODULE_WHOLE;
	if (form == TALLY_MODULE_COMPILING || form == TALLY_MODULE_MACHINE_CODE)
		return false;
	pthread_mutex_lock(&tally_kernels_lock);
	state = atomic_load(&k->state);
	if (state == TALLY_FORM_UNKNOWN) {
		state = find_out(k, from);
		atomic_store_explicit(&k->state, state, memory_order_release);
	}
	pthread_mutex_unlock(&tally_kernels_lock);
	return state == TALLY_FORM_STOPPABLE;
}

struct tally_module *tally_kernel_unasked(const struct tally_kernel *k)
{
	struct tally_module *from = root(k);

	return from &&
			       atomic_load_explicit(&from->form, memory_order_acquire) ==
				       TALLY_MODULE_MACHINE_CODE &&
			       !tally_opaque_collective(k->name)
		       ? from
		       : NULL;
}

bool tally_kernel_opaque(const struct tally_kernel *k)
{
	const struct tally_module *from = root(k);

	return from && from->machine_code;
}

static void bar_shared(struct tally_kernel *k, void *module)
{
	if (root(k) != module)
		return;
	atomic_store(&k->barred, TALLY_WHY_SHARED);
	atomic_store_explicit(&k->state, TALLY_FORM_WHOLE, memory_order_release);
}

void tally_module_asked(struct tally_module *m)
{
	bool given_up;

	if (m->parent)
		m = m->parent;
	atomic_store(&m->asked, true);
	if (!m->machine_code)
		return;
	/* What is not loaded yet will be looked at then. */
	tally_compile_pause();
	given_up = atomic_load(&m->form) == TALLY_MODULE_STOPPABLE &&
		   m->machine_code->constants != TALLY_NO;
	if (given_up)
		tally_module_is(m, TALLY_MODULE_WHOLE, TALLY_WHY_SHARED);
	tally_compile_resume(NULL);
	if (!given_up)
		return;
	pthread_mutex_lock(&tally_kernels_lock);
	tally_kernels_each(bar_shared, m);
	pthread_mutex_unlock(&tally_kernels_lock);
}

enum tally_reason tally_kernel_barred(const struct tally_kernel *k)
{
	int state = atomic_load_explicit(&k->state, memory_order_acquire);

	return state == TALLY_FORM_UNKNOWN ? TALLY_WHY_COMPILING
					   : (enum tally_reason)atomic_load(&k->barred);
}

/* Allows the variant what the program allowed the kernel; false where that is not `least`. */
static bool allow(struct tally_kernel *k, CUfunction_attribute what, int least, int *allowed)
{
	void *handle = atomic_load(&k->handle);
	CUdevice device;

	*allowed = 0;
	if (k->is_kernel)
		return !TALLY_DRIVER(cuCtxGetDevice)(&device) &&
		       !TALLY_DRIVER(cuKernelGetAttribute)(allowed, what, handle, device) &&
		       *allowed >= least &&
		       !TALLY_DRIVER(cuKernelSetAttribute)(what, *allowed, k->variant, device);
	return !TALLY_DRIVER(cuFuncGetAttribute)(allowed, what, handle) && *allowed >= least &&
	       !TALLY_DRIVER(cuFuncSetAttribute)(k->variant, what, *allowed);
}

void tally_kernel_allow_shared(struct tally_kernel *k, unsigned bytes)
{
	int allowed;

	if (allow(k, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes, &allowed))
		atomic_store(&k->shared, (unsigned)allowed);
}

void tally_kernel_allow_clusters(struct tally_kernel *k, unsigned blocks)
{
	int allowed;

	if (allow(k, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, &allowed))
		atomic_store(&k->clusters, blocks);
}
