/* SPDX-License-Identifier: Apache-2.0 */
/* See device.h. */
#include "device.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka.h"

size_t device_wrong;

#define DRIVER(X)                                                                                  \
	X(cuInit, (unsigned))                                                                      \
	X(cuDeviceGet, (CUdevice *, int))                                                          \
	X(cuDeviceGetAttribute, (int *, CUdevice_attribute, CUdevice))                             \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
	X(cuCtxSetCurrent, (CUcontext))                                                            \
	X(cuModuleLoadData, (CUmodule *, const void *))                                            \
	X(cuModuleUnload, (CUmodule))                                                              \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
	X(cuMemFree_v2, (CUdeviceptr))                                                             \
	X(cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                                     \
	X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                    \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                          \
	X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			   unsigned, CUstream, void **, void **))

#define MEMBER(name, arguments) CUresult(*name) arguments;
static struct {
	DRIVER(MEMBER)
} driver;

static unsigned capability;
static char target[16];

static void start(void)
{
	const char *path = getenv("TALLY_TEST_DRIVER");
	void *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
	int major = 0, minor = 0;
	CUcontext context;
	CUdevice device;
	bool ok;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
#define LOAD(name, arguments)                                                                      \
	*(void **)&driver.name = dlsym(library, #name);                                            \
	if (!driver.name) {                                                                        \
		fprintf(stderr, "the driver has no " #name "\n");                                  \
		exit(1);                                                                           \
	}
	DRIVER(LOAD)
	ok = !driver.cuInit(0) && !driver.cuDeviceGet(&device, 0) &&
	     !driver.cuDevicePrimaryCtxRetain(&context, device) &&
	     !driver.cuCtxSetCurrent(context) &&
	     !driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
					  device) &&
	     !driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
					  device);
	if (!ok) {
		fprintf(stderr, "no device\n");
		exit(1);
	}
	capability = path ? 200 : (unsigned)(major * 10 + minor);
	snprintf(target, sizeof target, "sm_%ua", path ? 120 : capability);
}

unsigned device_capability(void)
{
	if (!capability)
		start();
	return capability;
}

const char *device_target(void)
{
	device_capability();
	return target;
}

void *device_load(const char *text)
{
	CUmodule module;

	device_capability();
	return driver.cuModuleLoadData(&module, text) ? NULL : module;
}

void device_unload(void *module)
{
	driver.cuModuleUnload(module);
}

bool device_launch(void *module, const char *kernel, unsigned threads, const void *in,
		   size_t in_bytes, void *out, size_t out_bytes)
{
	CUdeviceptr from = 0, to = 0;
	void *parameters[] = {&from, &to};
	CUfunction function;
	bool ok;

	ok = !driver.cuModuleGetFunction(&function, module, kernel) &&
	     !driver.cuMemAlloc_v2(&from, in_bytes) && !driver.cuMemAlloc_v2(&to, out_bytes) &&
	     !driver.cuMemcpyHtoD_v2(from, in, in_bytes) &&
	     !driver.cuMemsetD8_v2(to, 0, out_bytes) &&
	     !driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL) &&
	     !driver.cuMemcpyDtoH_v2(out, to, out_bytes);
	if (from)
		driver.cuMemFree_v2(from);
	if (to)
		driver.cuMemFree_v2(to);
	return ok;
}

void device_run(const char *text, const char *kernel, unsigned threads, const uint64_t *in,
		uint64_t *out, size_t bytes)
{
	void *module = device_load(text);

	if (!module || !device_launch(module, kernel, threads, in, bytes, out, bytes)) {
		fprintf(stderr, "does not load or run:\n%s", text);
		device_wrong++;
	}
	if (module)
		device_unload(module);
}
