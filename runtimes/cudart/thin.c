/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are one call of the driver: streams, events, device questions, pools, libraries,
 * captured graphs. Handles have the same type in both interfaces, and flags and enumerations the
 * same numbers. */
#include "runtimes/cudart/internal.h"

#include <assert.h>
#include <cuda_profiler_api.h>
#include <stdlib.h>

static_assert((int)cudaStreamNonBlocking == CU_STREAM_NON_BLOCKING &&
		      (int)cudaEventDisableTiming == CU_EVENT_DISABLE_TIMING &&
		      (int)cudaEventInterprocess == CU_EVENT_INTERPROCESS,
	      "flags");
static_assert((int)cudaHostRegisterMapped == CU_MEMHOSTREGISTER_DEVICEMAP &&
		      (int)cudaHostAllocMapped == CU_MEMHOSTALLOC_DEVICEMAP &&
		      (int)cudaMemAttachGlobal == CU_MEM_ATTACH_GLOBAL,
	      "flags");
static_assert((int)cudaLimitStackSize == (int)CU_LIMIT_STACK_SIZE &&
		      (int)cudaLimitPersistingL2CacheSize == (int)CU_LIMIT_PERSISTING_L2_CACHE_SIZE,
	      "limits");
static_assert((int)cudaDevAttrMaxThreadsPerBlock ==
			      (int)CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK &&
		      (int)cudaDevAttrCooperativeLaunch ==
			      (int)CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH &&
		      (int)cudaDevAttrMemoryPoolsSupported ==
			      (int)CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
	      "device attributes");
static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue), "stream attributes");
static_assert((int)cudaStreamCaptureModeRelaxed == (int)CU_STREAM_CAPTURE_MODE_RELAXED,
	      "capture modes");
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edges of graphs");

/* With a context; with a context and a `stream`, in both variants; with the driver alone. */
#define CUDART_THIN(name, params, call)                                                            \
	cudaError_t CUDARTAPI name params                                                          \
	{                                                                                          \
		CUDART_ENTER();                                                                    \
		return cudart_result(cudart_driver.call);                                          \
	}
#define CUDART_THIN_STREAM(name, params, call)                                                     \
	CUDART_THIN(name, params, call)                                                            \
	cudaError_t CUDARTAPI name##_ptsz params;                                                  \
	cudaError_t CUDARTAPI name##_ptsz params                                                   \
	{                                                                                          \
		CUDART_ENTER();                                                                    \
		stream = cudart_own_stream(stream);                                                \
		return cudart_result(cudart_driver.call);                                          \
	}
#define CUDART_THIN_DRIVER(name, params, call)                                                     \
	cudaError_t CUDARTAPI name params                                                          \
	{                                                                                          \
		CUDART_START();                                                                    \
		return cudart_result(cudart_driver.call);                                          \
	}
#include "runtimes/cudart/thin.h"

/* A callback of cudaStreamAddCallback() wants the runtime's kind of error. */
struct callback {
	cudaStreamCallback_t function;
	void *data;
};

static void CUDA_CB call_back(CUstream stream, CUresult result, void *data)
{
	struct callback callback = *(struct callback *)data;

	free(data);
	callback.function(stream, cudart_error(result), callback.data);
}

cudaError_t CUDARTAPI cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function,
					    void *data, unsigned flags)
{
	struct callback *callback;
	CUresult result;

	CUDART_REQUIRE(function);
	CUDART_ENTER();
	callback = malloc(sizeof(*callback));
	if (!callback)
		return cudart_fail(cudaErrorMemoryAllocation);
	*callback = (struct callback){function, data};
	result = cudart_driver.cuStreamAddCallback(stream, call_back, callback, flags);
	if (result != CUDA_SUCCESS)
		free(callback);
	return cudart_result(result);
}

CUDART_PTSZ(cudaStreamAddCallback,
	    (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags),
	    (stream, function, data, flags))

cudaError_t CUDARTAPI cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from)
{
	CUDART_ENTER();
	return cudart_result(cudart_driver.cuStreamCopyAttributes(to, from));
}

cudaError_t CUDARTAPI cudaStreamCopyAttributes_ptsz(cudaStream_t, cudaStream_t);
cudaError_t CUDARTAPI cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from)
{
	return cudaStreamCopyAttributes(cudart_own_stream(to), cudart_own_stream(from));
}

cudaError_t CUDARTAPI cudaStreamGetDevice(cudaStream_t stream, int *device)
{
	CUdevice handle;
	CUresult result;

	CUDART_REQUIRE(device);
	CUDART_ENTER();
	result = cudart_driver.cuStreamGetDevice(stream, &handle);
	if (result == CUDA_SUCCESS)
		*device = handle;
	return cudart_result(result);
}

CUDART_PTSZ(cudaStreamGetDevice, (cudaStream_t stream, int *device), (stream, device))

cudaError_t CUDARTAPI cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library,
					   const char *name)
{
	CUresult result;

	CUDART_REQUIRE(kernel && name);
	CUDART_ENTER();
	result = cudart_driver.cuLibraryGetKernel(kernel, library, name);
	if (result != CUDA_SUCCESS)
		return cudart_result(result);
	return cudart_fail(cudart_remember_kernel(*kernel, library));
}

cudaError_t CUDARTAPI cudaLibraryUnload(cudaLibrary_t library)
{
	CUresult result;

	CUDART_ENTER();
	result = cudart_driver.cuLibraryUnload(library);
	if (result == CUDA_SUCCESS)
		cudart_forget_library(library);
	return cudart_result(result);
}

cudaError_t CUDARTAPI cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned count,
						  cudaLibrary_t library)
{
	CUresult result;

	CUDART_REQUIRE(kernels || !count);
	CUDART_ENTER();
	for (unsigned i = 0; i < count; i++)
		kernels[i] = NULL;
	result = cudart_driver.cuLibraryEnumerateKernels(kernels, count, library);
	if (result != CUDA_SUCCESS)
		return cudart_result(result);
	for (unsigned i = 0; i < count; i++) {
		cudaError_t error =
			kernels[i] ? cudart_remember_kernel(kernels[i], library) : cudaSuccess;

		if (error != cudaSuccess)
			return cudart_fail(error);
	}
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
						    unsigned long long flags)
{
	CUDART_ENTER();
	return cudart_result(cudart_driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
					   unsigned long long flags)
{
	return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

struct cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(int x, int y, int z, int w,
							     enum cudaChannelFormatKind kind)
{
	return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
