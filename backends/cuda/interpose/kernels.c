/* SPDX-License-Identifier: Apache-2.0 */
/* From a kernel handle to its guarded variant; see kernels.h. */
#include "backends/cuda/interpose/kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"
#include "ir_passes/launch_abi.h"

#define BUCKETS 1024
#define SUFFIX	"$slice_guard"

enum { UNKNOWN, GUARDED, OPAQUE };

/* Records are never freed: a launch reads them without a lock, and a program has few kernels. One
 * that is gone has no handle. */
static _Atomic(struct tally_kernel *) buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct module {
	struct module *next;
	void *owner;
	void *parent; /* the library that this module was got from, or NULL */
	void *image;  /* freed with the module, or NULL */
};
static struct module *modules;

void tally_kernels_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(buckets, 0, sizeof buckets);
	modules = NULL;
}

static _Atomic(struct tally_kernel *) *bucket(const void *handle)
{
	uintptr_t n = (uintptr_t)handle;

	return &buckets[(n >> 4 ^ n >> 14) % BUCKETS];
}

struct tally_kernel *tally_kernel_find(const void *handle)
{
	struct tally_kernel *k = atomic_load_explicit(bucket(handle), memory_order_acquire);

	while (k && atomic_load_explicit(&k->handle, memory_order_relaxed) != handle)
		k = k->next;
	return k;
}

void tally_kernel_add(void *handle, struct tally_kernel_origin origin, const char *name)
{
	struct tally_kernel *k;

	pthread_mutex_lock(&lock);
	if (!tally_kernel_find(handle) && (k = calloc(1, sizeof *k))) {
		k->owner = origin.owner;
		k->in_library = origin.in_library;
		k->is_kernel = origin.is_kernel;
		k->name = strdup(name);
		atomic_store(&k->handle, handle);
		k->next = atomic_load(bucket(handle));
		if (k->name)
			atomic_store_explicit(bucket(handle), k, memory_order_release);
		else
			free(k);
	}
	pthread_mutex_unlock(&lock);
}

static const struct module *find_module(const void *owner)
{
	const struct module *m = modules;

	while (m && m->owner != owner)
		m = m->next;
	return m;
}

bool tally_module_transformed(const void *owner)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = find_module(owner) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

void tally_module_add(void *owner, void *parent, void *image)
{
	struct module *m = calloc(1, sizeof *m);

	pthread_mutex_lock(&lock);
	if (m && !find_module(owner)) {
		*m = (struct module){modules, owner, parent, image};
		modules = m;
		m = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(m);
}

static void forget_kernels(const void *owner)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct tally_kernel *k = atomic_load(&buckets[i]); k; k = k->next)
			if (k->owner == owner)
				atomic_store(&k->handle, NULL);
}

void *tally_module_forget(void *owner)
{
	void *image = NULL;

	pthread_mutex_lock(&lock);
	for (struct module **p = &modules; *p;) {
		struct module *m = *p;

		if (m->owner != owner && m->parent != owner) {
			p = &m->next;
			continue;
		}
		forget_kernels(m->owner);
		image = m->image ? m->image : image;
		*p = m->next;
		free(m);
	}
	pthread_mutex_unlock(&lock);
	return image;
}

/* The variant's handle, of the same type as the kernel's own; NULL when there is none. */
static void *find_variant(const struct tally_kernel *k)
{
	char name[4096];
	CUfunction function = NULL;
	CUkernel kernel = NULL;

	if (snprintf(name, sizeof name, "%s" SUFFIX, k->name) >= (int)sizeof name)
		return NULL;
	if (k->in_library) {
		if (TALLY_DRIVER(cuLibraryGetKernel)(&kernel, k->owner, name))
			return NULL;
		if (k->is_kernel)
			return kernel;
		return TALLY_DRIVER(cuKernelGetFunction)(&function, kernel) ? NULL : function;
	}
	return TALLY_DRIVER(cuModuleGetFunction)(&function, k->owner, name) ? NULL : function;
}

static bool parameter(const struct tally_kernel *k, void *handle, unsigned i,
		      struct tally_parameter *p)
{
	if (k->is_kernel)
		return !TALLY_DRIVER(cuKernelGetParamInfo)(handle, i, &p->offset, &p->size);
	return !TALLY_DRIVER(cuFuncGetParamInfo)(handle, i, &p->offset, &p->size);
}

/* The layout of the kernel's parameters; the variant has to have the same and one more. */
static bool read_parameters(struct tally_kernel *k, void *variant)
{
	struct tally_parameter *list = NULL, p, of_variant;
	unsigned count = 0, capacity = 0;
	size_t bytes = 0;

	while (parameter(k, atomic_load(&k->handle), count, &p)) {
		if (count == capacity) {
			struct tally_parameter *more;

			capacity = capacity ? 2 * capacity : 8;
			more = realloc(list, capacity * sizeof *list);
			if (!more)
				break;
			list = more;
		}
		if (!parameter(k, variant, count, &of_variant) || of_variant.offset != p.offset ||
		    of_variant.size != p.size)
			break;
		list[count++] = p;
		if (p.offset + p.size > bytes)
			bytes = p.offset + p.size;
	}
	if (!parameter(k, variant, count, &of_variant) ||
	    of_variant.size != sizeof(struct tally_launch) ||
	    parameter(k, variant, count + 1, &of_variant)) {
		free(list);
		return false;
	}
	k->parameters = list;
	k->count = count;
	k->bytes = bytes;
	return true;
}

bool tally_kernel_guarded(struct tally_kernel *k)
{
	int state = atomic_load_explicit(&k->state, memory_order_acquire);
	void *variant;

	if (state != UNKNOWN)
		return state == GUARDED;
	pthread_mutex_lock(&lock);
	state = atomic_load(&k->state);
	if (state == UNKNOWN) {
		variant = find_variant(k);
		state = variant && read_parameters(k, variant) ? GUARDED : OPAQUE;
		k->variant = variant;
		/* Without being asked a kernel may have 48 KB. */
		atomic_store(&k->shared, 48 * 1024);
		atomic_store_explicit(&k->state, state, memory_order_release);
	}
	pthread_mutex_unlock(&lock);
	return state == GUARDED;
}

void tally_kernel_allow_shared(struct tally_kernel *k, unsigned bytes)
{
	CUfunction_attribute limit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	void *handle = atomic_load(&k->handle);
	CUdevice device;
	int allowed = 0;

	if (k->is_kernel) {
		if (TALLY_DRIVER(cuCtxGetDevice)(&device) ||
		    TALLY_DRIVER(cuKernelGetAttribute)(&allowed, limit, handle, device) ||
		    allowed < (int)bytes ||
		    TALLY_DRIVER(cuKernelSetAttribute)(limit, allowed, k->variant, device))
			return;
	} else if (TALLY_DRIVER(cuFuncGetAttribute)(&allowed, limit, handle) ||
		   allowed < (int)bytes ||
		   TALLY_DRIVER(cuFuncSetAttribute)(k->variant, limit, allowed)) {
		return;
	}
	atomic_store(&k->shared, (unsigned)allowed);
}
