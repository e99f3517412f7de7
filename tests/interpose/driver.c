/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcuda.so.1 of a dozen functions for the tests of hooks and lookups alone: each answers with a
 * number of its own, so that a test sees where a call ended. Everything that runs kernels is tested
 * on the CPU device instead.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <string.h>

#define ANSWER(number) ((CUresult)(number))

CUresult cuInit(unsigned int flags)
{
	return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
	return ANSWER(5001);
}

CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, size_t count)
{
	return ANSWER(5002);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	return ANSWER(5003);
}

/* A driver that calls its own exported function, which the preload stands in front of. */
CUresult cuMemFreeHost(void *pointer)
{
	return cuMemFree_v2((CUdeviceptr)pointer);
}

/* Of two versions only one is there. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
	return ANSWER(5004);
}

/* Not in Tally's table: passes through. */
CUresult cuDeviceGetCount(int *count)
{
	*count = 0;
	return ANSWER(5005);
}

/* A version of a function of the table that came after the table was written. */
static CUresult future(void)
{
	return ANSWER(5006);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status)
{
	int per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

	*function = NULL;
	if (!strcmp(symbol, "cuMemsetD8"))
		*function = per_thread ? (void *)cuMemsetD8_v2_ptds : (void *)cuMemsetD8_v2;
	else if (!strcmp(symbol, "cuMemFree"))
		*function = version >= 15000 ? (void *)future : (void *)cuMemFree_v2;
	else if (!strcmp(symbol, "cuStreamDestroy") && version >= 4000)
		*function = (void *)cuStreamDestroy_v2;
	else if (!strcmp(symbol, "cuDeviceGetCount"))
		*function = (void *)cuDeviceGetCount;
	else if (!strcmp(symbol, "cuGetProcAddress"))
		*function = (void *)cuGetProcAddress_v2;
	if (status)
		*status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
				    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
