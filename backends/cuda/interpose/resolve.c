/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the driver's functions; see resolve.h. */
#include "backends/cuda/interpose/resolve.h"

#include <dlfcn.h>

#define DRIVER_LIBRARY "libcuda.so.1"

_Atomic(void *) tally_next_table[TALLY_DRIVER_COUNT];
_Atomic(void *) tally_driver_table[TALLY_DRIVER_COUNT];
__thread unsigned tally_inside __attribute__((tls_model("initial-exec")));

static _Atomic(void *) driver_handle;

static CUresult missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

void *(*tally_next_dlsym(void))(void *, const char *)
{
	static _Atomic(void *) found;
	void *p = atomic_load_explicit(&found, memory_order_relaxed);

	/* glibc up to 2.33 has dlsym in libdl as GLIBC_2.2.5; later ones keep that name for old
	 * programs. Asking for it by version cannot find our own, which comes before RTLD_NEXT. */
	if (!p) {
		p = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		atomic_store_explicit(&found, p, memory_order_relaxed);
	}
	return (void *(*)(void *, const char *))p;
}

static void *library(bool load)
{
	void *handle = atomic_load_explicit(&driver_handle, memory_order_acquire), *none = NULL;

	if (handle)
		return handle;
	handle = dlopen(DRIVER_LIBRARY, RTLD_LAZY | RTLD_LOCAL | (load ? 0 : RTLD_NOLOAD));
	/* Kept open for good: the program may close its own handle and ask again later. */
	if (handle && !atomic_compare_exchange_strong(&driver_handle, &none, handle))
		dlclose(handle);
	return handle;
}

bool tally_driver_loaded(void)
{
	return library(false) != NULL;
}

void *tally_driver_lookup(const char *symbol)
{
	void *handle = library(true);

	return handle ? tally_next_dlsym()(handle, symbol) : NULL;
}

void *tally_resolve_driver(enum tally_hook function)
{
	void *p = tally_driver_lookup(tally_driver_symbol(function));

	if (!p)
		p = (void *)missing;
	atomic_store_explicit(&tally_driver_table[function], p, memory_order_relaxed);
	return p;
}

void *tally_resolve_next(enum tally_hook function)
{
	/* Called from here, RTLD_NEXT means: after libtally.so. */
	void *p = tally_next_dlsym()(RTLD_NEXT, tally_driver_symbol(function));

	if (!p)
		p = tally_resolve_driver(function);
	atomic_store_explicit(&tally_next_table[function], p, memory_order_relaxed);
	return p;
}

bool tally_driver_has(enum tally_hook function)
{
	void *p = atomic_load_explicit(&tally_driver_table[function], memory_order_relaxed);

	return (p ? p : tally_resolve_driver(function)) != (void *)missing;
}
