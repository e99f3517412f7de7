/* SPDX-License-Identifier: Apache-2.0 */
/* The recording driver: a table of functions, each of which is one line of log. */
#include "tests/cudart/recorder.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct recorder recorder = {.version = 13000, .devices = 2};

static __thread CUcontext current;

static CUresult note(const char *format, ...)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	CUresult result;
	va_list arguments;
	size_t used;

	pthread_mutex_lock(&lock);
	used = strlen(recorder.log);
	result = recorder.next;
	va_start(arguments, format);
	vsnprintf(recorder.log + used, sizeof(recorder.log) - used, format, arguments);
	va_end(arguments);
	strncat(recorder.log, "\n", sizeof(recorder.log) - strlen(recorder.log) - 1);
	recorder.next = CUDA_SUCCESS;
	pthread_mutex_unlock(&lock);
	return result;
}

static CUresult CUDAAPI init(unsigned flags)
{
	return note("cuInit %u", flags);
}

static CUresult CUDAAPI version(int *value)
{
	*value = recorder.version;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI device_count(int *count)
{
	*count = recorder.devices;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI device_get(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return ordinal < recorder.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult CUDAAPI retain(CUcontext *context, CUdevice device)
{
	*context = (CUcontext)(uintptr_t)(0x1000 + device);
	return note("cuDevicePrimaryCtxRetain %d", device);
}

static CUresult CUDAAPI release(CUdevice device)
{
	return note("cuDevicePrimaryCtxRelease %d", device);
}

static CUresult CUDAAPI reset(CUdevice device)
{
	return note("cuDevicePrimaryCtxReset %d", device);
}

static CUresult CUDAAPI get_current(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI set_current(CUcontext context)
{
	current = context;
	return note("cuCtxSetCurrent %p", (void *)context);
}

static CUresult CUDAAPI get_device(CUdevice *device)
{
	*device = (int)((uintptr_t)current & 0xfff);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI synchronize(void)
{
	return note("cuCtxSynchronize");
}

static CUresult CUDAAPI load(CUlibrary *library, const void *code, CUjit_option *options,
			     void **values, unsigned count, CUlibraryOption *library_options,
			     void **library_values, unsigned library_count)
{
	*library = (CUlibrary)0x2000;
	return note("cuLibraryLoadData %s", (const char *)code);
}

static CUresult CUDAAPI unload(CUlibrary library)
{
	return note("cuLibraryUnload %p", (void *)library);
}

static CUresult CUDAAPI get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	*kernel = (CUkernel)0x3000;
	return note("cuLibraryGetKernel %s", name);
}

static CUresult CUDAAPI get_global(CUdeviceptr *address, size_t *bytes, CUlibrary library,
				   const char *name)
{
	*address = 0x4000;
	*bytes = 16;
	return note("cuLibraryGetGlobal %s", name);
}

static CUresult CUDAAPI launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
			       unsigned bx, unsigned by, unsigned bz, unsigned shared,
			       CUstream stream, void **arguments, void **extra)
{
	return note("cuLaunchKernel %p %u,%u,%u %u,%u,%u %u stream %p", (void *)function, gx, gy,
		    gz, bx, by, bz, shared, (void *)stream);
}

static CUresult CUDAAPI launch_ex(const CUlaunchConfig *config, CUfunction function,
				  void **arguments, void **extra)
{
	return note("cuLaunchKernelEx %p %u %u %u stream %p attributes %u of %d", (void *)function,
		    config->gridDimX, config->blockDimX, config->sharedMemBytes,
		    (void *)config->hStream, config->numAttrs,
		    config->numAttrs ? (int)config->attrs[0].id : -1);
}

static CUresult CUDAAPI alloc(CUdeviceptr *pointer, size_t bytes)
{
	*pointer = 0x5000;
	return note("cuMemAlloc %zu", bytes);
}

static CUresult CUDAAPI copy_to(CUdeviceptr to, const void *from, size_t bytes)
{
	return note("cuMemcpyHtoD %#llx %zu", (unsigned long long)to, bytes);
}

static CUresult CUDAAPI copy_to_async(CUdeviceptr to, const void *from, size_t bytes,
				      CUstream stream)
{
	return note("cuMemcpyHtoDAsync %#llx %zu stream %p", (unsigned long long)to, bytes,
		    (void *)stream);
}

static CUresult CUDAAPI copy_any(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return note("cuMemcpy %zu", bytes);
}

static void note_plane(char *line, size_t size, const CUDA_MEMCPY2D *copy)
{
	snprintf(line, size, "from %d %#llx pitch %zu to %d %#llx pitch %zu, %zux%zu",
		 copy->srcMemoryType,
		 copy->srcMemoryType == CU_MEMORYTYPE_HOST ? (unsigned long long)copy->srcHost
							   : copy->srcDevice,
		 copy->srcPitch, copy->dstMemoryType,
		 copy->dstMemoryType == CU_MEMORYTYPE_HOST ? (unsigned long long)copy->dstHost
							   : copy->dstDevice,
		 copy->dstPitch, copy->WidthInBytes, copy->Height);
}

static CUresult CUDAAPI copy_plane(const CUDA_MEMCPY2D *copy)
{
	char line[256];

	note_plane(line, sizeof(line), copy);
	return note("cuMemcpy2DUnaligned %s", line);
}

static CUresult CUDAAPI copy_plane_async(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	char line[256];

	note_plane(line, sizeof(line), copy);
	return note("cuMemcpy2DAsync %s stream %p", line, (void *)stream);
}

static CUresult CUDAAPI fill_plane(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
				   size_t height)
{
	return note("cuMemsetD2D8 %#llx pitch %zu %u %zux%zu", (unsigned long long)to, pitch, value,
		    width, height);
}

static CUresult CUDAAPI stream_synchronize(CUstream stream)
{
	return note("cuStreamSynchronize %p", (void *)stream);
}

static CUresult CUDAAPI event_record(CUevent event, CUstream stream)
{
	return note("cuEventRecord stream %p", (void *)stream);
}

static CUresult CUDAAPI host_function(CUstream stream, CUhostFn function, void *data)
{
	return note("cuLaunchHostFunc stream %p", (void *)stream);
}

static const struct {
	const char *name;
	int version;
	void *function;
} functions[] = {
	{"cuInit", 2000, init},
	{"cuDriverGetVersion", 2020, version},
	{"cuDeviceGetCount", 2000, device_count},
	{"cuDeviceGet", 2000, device_get},
	{"cuDevicePrimaryCtxRetain", 7000, retain},
	{"cuDevicePrimaryCtxRelease", 11000, release},
	{"cuDevicePrimaryCtxReset", 11000, reset},
	{"cuCtxGetCurrent", 4000, get_current},
	{"cuCtxSetCurrent", 4000, set_current},
	{"cuCtxGetDevice", 2000, get_device},
	{"cuCtxSynchronize", 2000, synchronize},
	{"cuLibraryLoadData", 12000, load},
	{"cuLibraryUnload", 12000, unload},
	{"cuLibraryGetKernel", 12000, get_kernel},
	{"cuLibraryGetGlobal", 12000, get_global},
	{"cuLaunchKernel", 4000, launch},
	{"cuLaunchKernelEx", 11060, launch_ex},
	{"cuMemAlloc", 3020, alloc},
	{"cuMemcpyHtoD", 3020, copy_to},
	{"cuMemcpyHtoDAsync", 3020, copy_to_async},
	{"cuMemcpy", 4000, copy_any},
	{"cuMemcpy2DUnaligned", 3020, copy_plane},
	{"cuMemcpy2DAsync", 3020, copy_plane_async},
	{"cuMemsetD2D8", 3020, fill_plane},
	{"cuStreamSynchronize", 2000, stream_synchronize},
	{"cuEventRecord", 2000, event_record},
	{"cuLaunchHostFunc", 10000, host_function},
};

/* The only name besides `recorder` that anybody looks up. */
CUresult CUDAAPI cuGetProcAddress_v2(const char *symbol, void **function, int wanted,
				     cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	recorder.requests++;
	*function = NULL;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (!strcmp(functions[i].name, symbol) && functions[i].version <= wanted &&
		    (!recorder.missing || strcmp(recorder.missing, symbol)))
			*function = functions[i].function;
	if (status)
		*status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
				    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
