/* SPDX-License-Identifier: Apache-2.0 */
/* What cuGetProcAddress answers: our interposers for the names of the table. */
#include <string.h>

#include "backends/cuda/interpose/graphs.h"
#include "backends/cuda/interpose/resolve.h"

/* The address to hand out where the driver answered a cuGetProcAddress with `address`. */
static void *interposed(const char *name, void *address, enum tally_hook hook)
{
	if (hook == TALLY_HOOK_COUNT)
		hook = tally_hook_by_symbol(name);
	if (hook == TALLY_HOOK_COUNT) {
		/* A way to change what an executable graph does. */
		if (!strncmp(name, "cuGraphExec", 11) && strcmp(name, "cuGraphExecGetFlags"))
			tally_graphs_unseen();
		return address;
	}
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
