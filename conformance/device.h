/* SPDX-License-Identifier: Apache-2.0 */
/* The driver API, from whichever library the runner was given. */
#ifndef TALLY_CONFORMANCE_DEVICE_H
#define TALLY_CONFORMANCE_DEVICE_H

#include <cuda.h>
#include <stdbool.h>

#include "base/error.h"

/* One list: name in the library, name here, parameters. */
#define DRIVER_FUNCTIONS(X)                                                                        \
	X(cuInit, init, (unsigned))                                                                \
	X(cuGetErrorName, error_name, (CUresult, const char **))                                   \
	X(cuDeviceGet, device_get, (CUdevice *, int))                                              \
	X(cuDeviceGetName, device_name, (char *, int, CUdevice))                                   \
	X(cuDevicePrimaryCtxRetain, context_retain, (CUcontext *, CUdevice))                       \
	X(cuDevicePrimaryCtxRelease_v2, context_release, (CUdevice))                               \
	X(cuCtxSetCurrent, context_set, (CUcontext))                                               \
	X(cuCtxSynchronize, synchronize, (void))                                                   \
	X(cuModuleLoadData, module_load, (CUmodule *, const void *))                               \
	X(cuModuleUnload, module_unload, (CUmodule))                                               \
	X(cuModuleGetFunction, module_function, (CUfunction *, CUmodule, const char *))            \
	X(cuModuleGetGlobal_v2, module_global, (CUdeviceptr *, size_t *, CUmodule, const char *))  \
	X(cuMemAlloc_v2, allocate, (CUdeviceptr *, size_t))                                        \
	X(cuMemFree_v2, release, (CUdeviceptr))                                                    \
	X(cuMemHostAlloc, host_allocate, (void **, size_t, unsigned))                              \
	X(cuMemFreeHost, host_release, (void *))                                                   \
	X(cuMemHostGetDevicePointer_v2, host_device_pointer, (CUdeviceptr *, void *, unsigned))    \
	X(cuMemcpyHtoD_v2, to_device, (CUdeviceptr, const void *, size_t))                         \
	X(cuMemcpyDtoH_v2, to_host, (void *, CUdeviceptr, size_t))                                 \
	X(cuStreamCreateWithPriority, stream_create, (CUstream *, unsigned, int))                  \
	X(cuStreamDestroy_v2, stream_destroy, (CUstream))                                          \
	X(cuStreamSynchronize, stream_synchronize, (CUstream))                                     \
	X(cuStreamQuery, stream_query, (CUstream))                                                 \
	X(cuCtxGetStreamPriorityRange, priority_range, (int *, int *))                             \
	X(cuStreamWriteValue32_v2, write32, (CUstream, CUdeviceptr, cuuint32_t, unsigned))         \
	X(cuFuncSetAttribute, function_set, (CUfunction, CUfunction_attribute, int))               \
	X(cuLaunchKernel, launch,                                                                  \
	  (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,       \
	   CUstream, void **, void **))

struct driver {
#define X(name, member, parameters) CUresult(*member) parameters;
	DRIVER_FUNCTIONS(X)
#undef X
	char device[128];
};
extern struct driver driver;

/* Loads `library`, makes the first device's context current. */
bool device_open(const char *library, struct tally_error *error);
/* True for CUDA_SUCCESS; else false with an error that names the call and the code. */
bool device_ok(CUresult result, const char *what, struct tally_error *error);

#endif
