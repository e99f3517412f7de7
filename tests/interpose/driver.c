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

/* What images_test loads: every image has two kernels and their stoppable forms. The linker makes
 * "machine code" of whatever it is given. */
const void *driver_loaded; /* the last image */

static char module;
static const char *const functions[] = {"one", "one$slice_guard", "two", "two$slice_guard"};
static struct {
	unsigned char head[64];
	char text[32];
} linked = {{0x7f, 'E', 'L', 'F', 2, 1, 1}, "machine code"};

CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	*value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *loaded, const void *image)
{
	driver_loaded = image;
	*loaded = (CUmodule)&module;
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule loaded)
{
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule of)
{
	*count = 4;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *list, unsigned int count, CUmodule of)
{
	for (unsigned i = 0; i < count && i < 4; i++)
		list[i] = (CUfunction)&functions[i];
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	*name = *(const char *const *)function;
	return CUDA_SUCCESS;
}

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values,
			 CUlinkState *state)
{
	*state = (CUlinkState)&linked;
	return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
			  const char *name, unsigned int count, CUjit_option *options,
			  void **values)
{
	return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **code, size_t *size)
{
	/* A cubin: ELF64, e_machine 190, nothing but its header. */
	linked.head[18] = 190;
	linked.head[52] = 64;
	*code = &linked;
	*size = sizeof linked.head;
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	return CUDA_SUCCESS;
}
