/* SPDX-License-Identifier: Apache-2.0 */
/* The modules and kernels that the program has, by handle; see kernels.h. */
#include "backends/cuda/interpose/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/kernel_table.h"
#include "backends/cuda/interpose/opaque.h"
#include "backends/cuda/interpose/profile.h"
#include "backends/cuda/interpose/resolve.h"
#include "base/hash.h"

#define BUCKETS 1024

/* Records are never freed, for a launch walks these lists without a lock. One that is gone has no
 * handle, and becomes another kernel's in the same place when that is safe. */
static _Atomic(struct tally_kernel *) buckets[BUCKETS];
pthread_mutex_t tally_kernels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tally_module *modules, *unused; /* that are loaded; records for others */

void tally_kernels_forked(void)
{
	pthread_mutex_init(&tally_kernels_lock, NULL);
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

void tally_kernels_each(void (*see)(struct tally_kernel *, void *), void *user)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct tally_kernel *k = atomic_load(&buckets[i]); k; k = k->next)
			see(k, user);
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
	atomic_store(&k->layout, TALLY_LAYOUT_UNASKED);
	atomic_store(&k->state, TALLY_FORM_UNKNOWN);
	atomic_store(&k->barred, 0);
	atomic_store(&k->shared, 0);
	atomic_store(&k->clusters, 0);
	atomic_store(&k->block_ps, 0);
	atomic_store(&k->ran, 0);
	return k;
}

void tally_kernel_add(void *handle, struct tally_module *module, bool is_kernel, const char *name)
{
	struct tally_kernel *k;
	char *copy = strdup(name);

	pthread_mutex_lock(&tally_kernels_lock);
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
	pthread_mutex_unlock(&tally_kernels_lock);
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

	pthread_mutex_lock(&tally_kernels_lock);
	for (m = modules; m && atomic_load(&m->handle) != handle; m = m->next)
		;
	pthread_mutex_unlock(&tally_kernels_lock);
	return m;
}

struct tally_module *tally_module_add(void *handle, bool library, struct tally_module *parent)
{
	struct tally_module *m = tally_module_find(handle);
	CUcontext context = library ? NULL : current();

	if (m)
		return m;
	pthread_mutex_lock(&tally_kernels_lock);
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
	pthread_mutex_unlock(&tally_kernels_lock);
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
	pthread_mutex_lock(&tally_kernels_lock);
	forget_modules(&gone, module, NULL);
	pthread_mutex_unlock(&tally_kernels_lock);
	return gone;
}

struct tally_gone tally_modules_forget(CUcontext context)
{
	struct tally_gone gone = {0};

	pthread_mutex_lock(&tally_kernels_lock);
	forget_modules(&gone, NULL, context);
	/* Functions of libraries, which outlive it, and of modules that came by other ways. */
	forget_kernels(&gone, NULL, context);
	pthread_mutex_unlock(&tally_kernels_lock);
	return gone;
}

void tally_gone_release(struct tally_gone *gone)
{
	struct tally_module *m;

	/* Measurements that are not over yet know their kernels. */
	if (gone->kernels)
		tally_samples_forget_gone();
	pthread_mutex_lock(&tally_kernels_lock);
	for (struct tally_kernel *k = gone->kernels; k; k = k->gone)
		k->free = true;
	while ((m = gone->modules)) {
		gone->modules = m->next;
		free(m->image);
		tally_opaque_forget(m->machine_code);
		m->next = unused;
		unused = m;
	}
	pthread_mutex_unlock(&tally_kernels_lock);
	gone->kernels = NULL;
}
