/* SPDX-License-Identifier: Apache-2.0 */
/* What dlsym (dlsym.S) and cuGetProcAddress answer: our interposers for the names of the table. */
#include <dlfcn.h>
#include <string.h>

#include "backends/cuda/interpose/resolve.h"

struct tally_answer {
	void *address;
	void *go_on; /* the dlsym to jump to instead, or NULL: `address` is the answer */
};

struct tally_answer tally_dlsym_answer(void *handle, const char *name);

static bool is_driver(const void *address)
{
	Dl_info info;
	const char *slash;

	if (!dladdr(address, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	return !strncmp(slash ? slash + 1 : info.dli_fname, "libcuda.so", 10);
}

struct tally_answer tally_dlsym_answer(void *handle, const char *name)
{
	void *(*next)(void *, const char *) = tally_next_dlsym();
	struct tally_answer on = {NULL, (void *)next};
	enum tally_hook hook;
	void *found;

	if (!name || name[0] != 'c' || name[1] != 'u' || handle == RTLD_NEXT)
		return on;
	hook = tally_hook_by_symbol(name);
	if (hook == TALLY_HOOK_COUNT)
		return on;
	if (handle == RTLD_DEFAULT) {
		/* The global scope holds our own symbol even in a program without CUDA, which may
		 * be asking whether there is any: then the honest answer is the one (and the
		 * dlerror) that it would have got without us. */
		if (tally_driver_loaded())
			return on;
		return (struct tally_answer){next(RTLD_NEXT, name), NULL};
	}
	found = next(handle, name);
	if (found == tally_hook_rows[hook].interposer && !tally_driver_loaded())
		found = next(RTLD_NEXT, name);
	if (found && is_driver(found))
		found = tally_hook_rows[hook].interposer;
	return (struct tally_answer){found, NULL};
}

/* The address to hand out where the driver answered a cuGetProcAddress with `address`. */
static void *interposed(const char *name, void *address, enum tally_hook hook)
{
	if (hook == TALLY_HOOK_COUNT)
		hook = tally_hook_by_symbol(name);
	if (hook == TALLY_HOOK_COUNT)
		return address;
	/* Where the library does not export what it hands out, this is the only way to it. */
	if (!tally_driver_has(hook)) {
		atomic_store(&tally_driver_table[hook], address);
		atomic_store(&tally_next_table[hook], address);
	}
	return tally_hook_rows[hook].interposer;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *symbolStatus)
{
	CUresult result;
	void *known = NULL;

	tally_enter();
	result = TALLY_REAL(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);
	if (!result && symbol && pfn && *pfn) {
		/* A program newer than our table: a version of the function that came later has
		 * another prototype, so only what did not change since is ours. */
		if (cudaVersion > TALLY_HOOKS_CUDA_VERSION)
			TALLY_REAL(cuGetProcAddress_v2)
		(symbol, &known, TALLY_HOOKS_CUDA_VERSION, flags, NULL);
		else known = *pfn;
		if (known == *pfn)
			*pfn = interposed(symbol, *pfn,
					  tally_hook_by_request(symbol, cudaVersion, flags));
	}
	tally_leave();
	return result;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	CUresult result;
	void *known = NULL;

	tally_enter();
	result = TALLY_REAL(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);
	if (!result && symbol && pfn && *pfn) {
		if (cudaVersion > TALLY_HOOKS_CUDA_VERSION)
			TALLY_REAL(cuGetProcAddress)
		(symbol, &known, TALLY_HOOKS_CUDA_VERSION, flags);
		else known = *pfn;
		if (known == *pfn)
			*pfn = interposed(symbol, *pfn,
					  tally_hook_by_request(symbol, cudaVersion, flags));
	}
	tally_leave();
	return result;
}
