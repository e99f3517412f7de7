/* SPDX-License-Identifier: Apache-2.0 */
/* Another preloaded library, as profilers are: stands in front of getppid, dlsym's caller semantics
 * and two driver functions, and goes on with RTLD_NEXT or, the hard way, by the driver's handle. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

unsigned chain_calls;

__attribute__((visibility("default"))) pid_t getppid(void)
{
	pid_t (*next)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "getppid");

	chain_calls++;
	return next && next != getppid ? next() : -1;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	CUresult (*next)(CUdeviceptr) = (CUresult (*)(CUdeviceptr))dlsym(RTLD_NEXT, "cuMemFree_v2");

	chain_calls++;
	return next && next != cuMemFree_v2 ? next(pointer) : CUDA_ERROR_UNKNOWN;
}

/* With this library after Tally's, asking by handle answers Tally's own function. */
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	CUresult (*next)(CUdeviceptr, unsigned char, size_t) =
		(CUresult (*)(CUdeviceptr, unsigned char, size_t))dlsym(driver, "cuMemsetD8_v2");

	chain_calls++;
	return chain_calls < 100 && next ? next(to, value, count) : CUDA_ERROR_UNKNOWN;
}
