/* SPDX-License-Identifier: Apache-2.0 */
/* From a kernel handle to its stoppable form; see kernels.h. */
#include "backends/cuda/interpose/kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/profile.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "base/hash.h"
#include "ir_passes/launch_abi.h"

#define BUCKETS 1024

enum { UNKNOWN, STOPPABLE, WHOLE };
enum { UNASKED, KNOWN, NOT_TOLD }; /* layout */

/* Records are never freed, for a launch walks these lists without a lock. One that is gone has no
 * handle, and becomes another kernel's in the same place when that is safe. */
static _Atomic(struct tally_kernel *) buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally_module *modules, *unused; /* that are loaded; records for others */

void tally_kernels_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(buckets, 0, sizeof buckets);
	modules = unused = NULL;
}

static _Atomic(struct tally_kernel *) *bucket(const void *handle)
{
	uintptr_t n = (uintptr_t)handle;

	return &buckets[(n >> 4 ^ n >> 14) % BUCKETS];
}

struct tally_kernel *tally_kernel_find(const void *handle)
{
	struct tally_kernel *k = atomic_load_explicit(bucket(handle), memory_order_acquire);

	/* Acquire: the record may have been another kernel's before. */
	while (k && atomic_load_explicit(&k->handle, memory_order_acquire) != handle)
		k = k->next;
	return k;
}

static CUcontext current(void)
{
	CUcontext context = NULL;

	return TALLY_DRIVER(cuCtxGetCurrent)(&context) ? NULL : context;
}

/* A record that nobody uses, in the bucket of `handle`: one of before, emptied, or a new one. Lock
 * held. */
static struct tally_kernel *take(const void *handle)
{
	struct tally_kernel *k = atomic_load(bucket(handle));

	while (k && !k->free)
		k = k->next;
	if (!k) {
		k = calloc(1, sizeof *k);
		if (!k)
			return NULL;
		k->next = atomic_load(bucket(handle));
		atomic_store_explicit(bucket(handle), k, memory_order_release);
		return k;
	}
	tally_configurations_free(k);
	free(k->name);
	free(k->parameters);
	k->free = false;
	k->variant = NULL;
	k->opaque = false;
	k->cluster = 0;
	k->name = NULL;
	k->parameters = NULL;
	k->count = 0;
	k->bytes = 0;
	atomic_store(&k->layout, UNASKED);
	atomic_store(&k->state, UNKNOWN);
	atomic_store(&k->barred, 0);
	atomic_store(&k->shared, 0);
	atomic_store(&k->clusters, 0);
	atomic_store(&k->block_ps, 0);
	return k;
}

void tally_kernel_add(void *handle, struct tally_module *module, bool is_kernel, const char *name)
{
	struct tally_kernel *k;
	char *copy = strdup(name);

	pthread_mutex_lock(&lock);
	if (copy && !tally_kernel_find(handle) && (k = take(handle))) {
		k->module = module;
		k->is_kernel = is_kernel;
		k->context = is_kernel			 ? NULL
			     : module && module->context ? module->context
							 : current();
		k->hash = tally_hash_64(name, strlen(name));
		k->name = copy;
		copy = NULL;
		atomic_store_explicit(&k->handle, handle, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	free(copy);
}

/* Some libraries get their functions in ways of their own; the driver knows where from. */
struct tally_kernel *tally_kernel_of(void *handle)
{
	struct tally_kernel *k = tally_kernel_find(handle);
	struct tally_module *module = NULL;
	const char *name = NULL;
	CUmodule owner = NULL;
	CUlibrary library = NULL;
	bool is_kernel = false;

	if (k || !handle)
		return k;
	if (!TALLY_DRIVER(cuFuncGetModule)(&owner, handle)) {
		module = tally_module_find(owner);
	} else if (!TALLY_DRIVER(cuKernelGetLibrary)(&library, handle)) {
		/* A launch takes a kernel of a library for a function. */
		module = tally_module_find(library);
		is_kernel = true;
	}
	if ((is_kernel ? TALLY_DRIVER(cuKernelGetName)(&name, handle)
		       : TALLY_DRIVER(cuFuncGetName)(&name, handle)) ||
	    !name)
		name = "(unknown)";
	tally_kernel_add(handle, module, is_kernel, name);
	return tally_kernel_find(handle);
}

struct tally_module *tally_module_find(const void *handle)
{
	struct tally_module *m;

	pthread_mutex_lock(&lock);
	for (m = modules; m && atomic_load(&m->handle) != handle; m = m->next)
		;
	pthread_mutex_unlock(&lock);
	return m;
}

struct tally_module *tally_module_add(void *handle, bool library, struct tally_module *parent)
{
	struct tally_module *m = tally_module_find(handle);
	CUcontext context = library ? NULL : current();

	if (m)
		return m;
	pthread_mutex_lock(&lock);
	m = unused;
	if (m) {
		unused = m->next;
		*m = (struct tally_module){0};
	} else {
		m = calloc(1, sizeof *m);
	}
	if (m) {
		atomic_store(&m->handle, handle);
		m->library = library;
		m->context = context;
		m->parent = parent;
		m->next = modules;
		modules = m;
	}
	pthread_mutex_unlock(&lock);
	return m;
}

/* Of `module`, or (NULL) of `context`. Lock held. */
static void forget_kernels(struct tally_gone *gone, const struct tally_module *module,
			   CUcontext context)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct tally_kernel *k = atomic_load(&buckets[i]); k; k = k->next)
			if (atomic_load(&k->handle) &&
			    (module ? k->module == module : k->context == context)) {
				atomic_store(&k->handle, NULL);
				k->gone = gone->kernels;
				gone->kernels = k;
			}
}

/* Of `module` and what was got from it, or (NULL) of `context`. Lock held. */
static void forget_modules(struct tally_gone *gone, const struct tally_module *module,
			   CUcontext context)
{
	for (struct tally_module **p = &modules; *p;) {
		struct tally_module *m = *p;

		if (module ? m != module && m->parent != module : m->context != context) {
			p = &m->next;
			continue;
		}
		forget_kernels(gone, m, NULL);
		atomic_store(&m->handle, NULL);
		*p = m->next;
		/* What was got from a module lies in front of it in the list. */
		m->next = gone->modules;
		gone->modules = m;
	}
}

struct tally_gone tally_module_forget(void *handle)
{
	struct tally_module *module = tally_module_find(handle);
	struct tally_gone gone = {0};

	if (!module)
		return gone;
	pthread_mutex_lock(&lock);
	forget_modules(&gone, module, NULL);
	pthread_mutex_unlock(&lock);
	return gone;
}

struct tally_gone tally_modules_forget(CUcontext context)
{
	struct tally_gone gone = {0};

	pthread_mutex_lock(&lock);
	forget_modules(&gone, NULL, context);
	/* Functions of libraries, which outlive it, and of modules that came by other ways. */
	forget_kernels(&gone, NULL, context);
	pthread_mutex_unlock(&lock);
	return gone;
}

void tally_gone_release(struct tally_gone *gone)
{
	struct tally_module *m;

	/* Measurements that are not over yet know their kernels. */
	if (gone->kernels)
		tally_samples_forget_gone();
	pthread_mutex_lock(&lock);
	for (struct tally_kernel *k = gone->kernels; k; k = k->gone)
		k->free = true;
	while ((m = gone->modules)) {
		gone->modules = m->next;
		free(m->image);
		tally_opaque_forget(m->machine_code);
		m->next = unused;
		unused = m;
	}
	pthread_mutex_unlock(&lock);
	gone->kernels = NULL;
}

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
	unsigned count = 0, capacity = 0;
	size_t bytes = 0;
	CUresult result;

	while (!(result = parameter(k, atomic_load(&k->handle), count, &p))) {
		if (count == capacity) {
			struct tally_parameter *more;

			capacity = capacity ? 2 * capacity : 8;
			more = realloc(list, capacity * sizeof *list);
			if (!more)
				break;
			list = more;
		}
		list[count++] = p;
		if (p.offset + p.size > bytes)
			bytes = p.offset + p.size;
	}
	/* Behind the last one the index is invalid. Anything else is a driver that does not tell.
	 */
	if (result != CUDA_ERROR_INVALID_VALUE) {
		free(list);
		return NOT_TOLD;
	}
	k->parameters = list;
	k->count = count;
	k->bytes = bytes;
	return KNOWN;
}

/* Lock held. */
static bool layout_known(struct tally_kernel *k)
{
	int layout = atomic_load(&k->layout);

	if (layout == UNASKED) {
		layout = read_layout(k);
		atomic_store_explicit(&k->layout, layout, memory_order_release);
	}
	return layout == KNOWN;
}

bool tally_kernel_layout(struct tally_kernel *k)
{
	int layout = atomic_load_explicit(&k->layout, memory_order_acquire);
	bool known;

	if (layout != UNASKED)
		return layout == KNOWN;
	pthread_mutex_lock(&lock);
	known = layout_known(k);
	pthread_mutex_unlock(&lock);
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
		return WHOLE;
	}
	if (from && atomic_load(&from->form) == TALLY_MODULE_WHOLE) {
		atomic_store(&k->barred, atomic_load(&from->barred));
		return WHOLE;
	}
	if (from)
		variant = find_variant(k, from);
	if (!variant ||
	    !same_parameters(k, variant, opaque ? OPAQUE_LAUNCH : sizeof(struct tally_launch))) {
		atomic_store(&k->barred, opaque ? TALLY_WHY_NOT_PATCHED
					 : from ? TALLY_WHY_NOT_COMPILED
						: TALLY_WHY_NO_CODE);
		return WHOLE;
	}
	k->variant = variant;
	k->opaque = opaque;
	k->cluster = opaque ? cluster_of(k) : 1;
	/* Without being asked a kernel may have 48 KB. */
	atomic_store(&k->shared, 48 * 1024);
	atomic_store(&k->clusters, 8);
	return STOPPABLE;
}

bool tally_kernel_stoppable(struct tally_kernel *k)
{
	int state = atomic_load_explicit(&k->state, memory_order_acquire);
	const struct tally_module *from;
	int form;

	if (state != UNKNOWN)
		return state == STOPPABLE;
	from = root(k);
	form = from ? atomic_load_explicit(&from->form, memory_order_acquire) : TALLY_MODULE_WHOLE;
	if (form == TALLY_MODULE_COMPILING || form == TALLY_MODULE_MACHINE_CODE)
		return false;
	pthread_mutex_lock(&lock);
	state = atomic_load(&k->state);
	if (state == UNKNOWN) {
		state = find_out(k, from);
		atomic_store_explicit(&k->state, state, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return state == STOPPABLE;
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
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct tally_kernel *k = atomic_load(&buckets[i]); k; k = k->next)
			if (root(k) == m) {
				atomic_store(&k->barred, TALLY_WHY_SHARED);
				atomic_store_explicit(&k->state, WHOLE, memory_order_release);
			}
	pthread_mutex_unlock(&lock);
}

enum tally_reason tally_kernel_barred(const struct tally_kernel *k)
{
	int state = atomic_load_explicit(&k->state, memory_order_acquire);

	return state == UNKNOWN ? TALLY_WHY_COMPILING : (enum tally_reason)atomic_load(&k->barred);
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
