/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, and what a program asks about a kernel before it launches one. */
#include "runtimes/cudart/internal.h"
#include "runtimes/cudart/registration.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* Arguments of a kernel may launch kernels themselves, so configurations nest. */
#define MAX_NESTED 16
static __thread struct {
	struct configuration {
		dim3 grid, block;
		size_t shared;
		cudaStream_t stream;
	} stack[MAX_NESTED];
	unsigned depth;
} pending;

unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
					       cudaStream_t stream)
{
	if (pending.depth == MAX_NESTED) {
		cudart_fail(cudaErrorLaunchMaxDepthExceeded);
		return 1;
	}
	pending.stack[pending.depth++] = (struct configuration){grid, block, shared, stream};
	return 0;
}

cudaError_t CUDARTAPI __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
						 void *stream)
{
	const struct configuration *top;

	if (!pending.depth)
		return cudart_fail(cudaErrorMissingConfiguration);
	top = &pending.stack[--pending.depth];
	*grid = top->grid;
	*block = top->block;
	*shared = top->shared;
	*(cudaStream_t *)stream = top->stream;
	return cudaSuccess;
}

/* The driver calls a grid or block that cannot be an invalid value. */
static cudaError_t launch_result(CUresult result)
{
	if (result == CUDA_ERROR_INVALID_VALUE)
		return cudart_fail(cudaErrorInvalidConfiguration);
	return cudart_result(result);
}

/* The arguments that every launch has. */
#define LAUNCH_PARAMS	 dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream
#define LAUNCH_ARGUMENTS grid, block, arguments, shared, stream

static cudaError_t launch(CUkernel kernel, LAUNCH_PARAMS)
{
	if (shared > UINT_MAX)
		return cudart_fail(cudaErrorInvalidConfiguration);
	return launch_result(cudart_driver.cuLaunchKernel(
		(CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
		(unsigned)shared, stream, arguments, NULL));
}

static cudaError_t launch_cooperative(CUkernel kernel, LAUNCH_PARAMS)
{
	if (shared > UINT_MAX)
		return cudart_fail(cudaErrorInvalidConfiguration);
	return launch_result(cudart_driver.cuLaunchCooperativeKernel(
		(CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
		(unsigned)shared, stream, arguments));
}

cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, LAUNCH_PARAMS)
{
	CUDART_ENTER();
	if (!kernel)
		return cudart_fail(cudart_no_kernel());
	return launch(kernel, LAUNCH_ARGUMENTS);
}

cudaError_t CUDARTAPI __cudaLaunchKernel_ptsz(cudaKernel_t kernel, LAUNCH_PARAMS)
{
	stream = cudart_own_stream(stream);
	return __cudaLaunchKernel(kernel, LAUNCH_ARGUMENTS);
}

#define LAUNCH(name, function)                                                                     \
	cudaError_t CUDARTAPI name(const void *symbol, LAUNCH_PARAMS)                              \
	{                                                                                          \
		CUkernel kernel;                                                                   \
                                                                                                   \
		CUDART_ENTER();                                                                    \
		CUDART_TRY(cudart_kernel(symbol, &kernel));                                        \
		return function(kernel, LAUNCH_ARGUMENTS);                                         \
	}                                                                                          \
	CUDART_PTSZ(name, (const void *symbol, LAUNCH_PARAMS), (symbol, LAUNCH_ARGUMENTS))
LAUNCH(cudaLaunchKernel, launch)
LAUNCH(cudaLaunchCooperativeKernel, launch_cooperative)

/* Launch attributes have one layout and one numbering in both interfaces. */
static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "launch attributes");
static_assert(offsetof(cudaLaunchAttribute, val) == offsetof(CUlaunchAttribute, value),
	      "launch attributes");
static_assert((int)cudaLaunchAttributeClusterDimension ==
			      (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
		      (int)cudaLaunchAttributePriority == (int)CU_LAUNCH_ATTRIBUTE_PRIORITY &&
		      (int)cudaLaunchAttributeMemSyncDomain ==
			      (int)CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
	      "launch attributes");

static CUlaunchConfig driver_config(const cudaLaunchConfig_t *config, cudaStream_t stream)
{
	return (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = (unsigned)config->dynamicSmemBytes,
		.hStream = stream,
		.attrs = (CUlaunchAttribute *)config->attrs,
		.numAttrs = config->numAttrs,
	};
}

static cudaError_t launch_with_config(const cudaLaunchConfig_t *config, const void *symbol,
				      void **arguments, cudaStream_t stream)
{
	CUlaunchConfig driver;
	CUkernel kernel;

	CUDART_REQUIRE(config);
	CUDART_ENTER();
	CUDART_TRY(cudart_kernel(symbol, &kernel));
	if (config->dynamicSmemBytes > UINT_MAX)
		return cudart_fail(cudaErrorInvalidConfiguration);
	driver = driver_config(config, stream);
	return launch_result(
		cudart_driver.cuLaunchKernelEx(&driver, (CUfunction)kernel, arguments, NULL));
}

cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *symbol,
					  void **arguments)
{
	return launch_with_config(config, symbol, arguments, config ? config->stream : NULL);
}

cudaError_t CUDARTAPI cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *, const void *, void **);
cudaError_t CUDARTAPI cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *symbol,
					       void **arguments)
{
	return launch_with_config(config, symbol, arguments,
				  cudart_own_stream(config ? config->stream : NULL));
}

cudaError_t CUDARTAPI cudaFuncGetAttributes(struct cudaFuncAttributes *attributes,
					    const void *symbol)
{
	CUfunction function;

	CUDART_REQUIRE(attributes);
	CUDART_ENTER();
	CUDART_TRY(cudart_function(symbol, &function));
	memset(attributes, 0, sizeof(*attributes));

	struct {
		CUfunction_attribute attribute;
		int *number;
		size_t *size;
	} const map[] = {
		{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, NULL, &attributes->sharedSizeBytes},
		{CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, NULL, &attributes->constSizeBytes},
		{CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, NULL, &attributes->localSizeBytes},
		{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &attributes->maxThreadsPerBlock, NULL},
		{CU_FUNC_ATTRIBUTE_NUM_REGS, &attributes->numRegs, NULL},
		{CU_FUNC_ATTRIBUTE_PTX_VERSION, &attributes->ptxVersion, NULL},
		{CU_FUNC_ATTRIBUTE_BINARY_VERSION, &attributes->binaryVersion, NULL},
		{CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &attributes->cacheModeCA, NULL},
		{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		 &attributes->maxDynamicSharedSizeBytes, NULL},
		{CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
		 &attributes->preferredShmemCarveout, NULL},
		{CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &attributes->clusterDimMustBeSet,
		 NULL},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &attributes->requiredClusterWidth, NULL},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &attributes->requiredClusterHeight,
		 NULL},
		{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &attributes->requiredClusterDepth, NULL},
		{CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
		 &attributes->clusterSchedulingPolicyPreference, NULL},
		{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
		 &attributes->nonPortableClusterSizeAllowed, NULL},
	};

	for (size_t i = 0; i < sizeof(map) / sizeof(*map); i++) {
		int value = 0;
		CUresult result =
			cudart_driver.cuFuncGetAttribute(&value, map[i].attribute, function);

		/* Invalid: the driver is older than the attribute, which stays 0. */
		if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE)
			return cudart_result(result);
		if (map[i].size)
			*map[i].size = (size_t)value;
		else
			*map[i].number = value;
	}
	return cudaSuccess;
}

/* Bank sizes have had no effect since Kepler; the toolkit's own runtime accepts and ignores them.
 */
cudaError_t CUDARTAPI cudaFuncSetSharedMemConfig(const void *symbol,
						 enum cudaSharedMemConfig config)
{
	CUkernel kernel;

	CUDART_ENTER();
	return cudart_fail(cudart_kernel(symbol, &kernel));
}

cudaError_t CUDARTAPI cudaFuncGetName(const char **name, const void *symbol)
{
	CUkernel kernel;

	CUDART_REQUIRE(name);
	CUDART_ENTER();
	CUDART_TRY(cudart_kernel(symbol, &kernel));
	return cudart_result(cudart_driver.cuKernelGetName(name, kernel));
}

/* What a kernel is asked or told by one call of the driver; `it` is its handle there. */
#define ASK(name, type, find, parameters, call)                                                    \
	cudaError_t CUDARTAPI name parameters                                                      \
	{                                                                                          \
		type it;                                                                           \
                                                                                                   \
		CUDART_ENTER();                                                                    \
		CUDART_TRY(find(symbol, &it));                                                     \
		return cudart_result(cudart_driver.call);                                          \
	}
#define ASK_FUNCTION(name, parameters, call)                                                       \
	ASK(name, CUfunction, cudart_function, parameters, call)
#define ASK_KERNEL(name, parameters, call) ASK(name, CUkernel, cudart_kernel, parameters, call)

ASK_KERNEL(cudaFuncGetParamInfo, (const void *symbol, size_t index, size_t *offset, size_t *size),
	   cuKernelGetParamInfo(it, index, offset, size))
ASK_FUNCTION(cudaFuncSetAttribute,
	     (const void *symbol, enum cudaFuncAttribute attribute, int value),
	     cuFuncSetAttribute(it, (CUfunction_attribute)attribute, value))
ASK_FUNCTION(cudaFuncSetCacheConfig, (const void *symbol, enum cudaFuncCache config),
	     cuFuncSetCacheConfig(it, (CUfunc_cache)config))
ASK_FUNCTION(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	     (int *blocks, const void *symbol, int block_size, size_t shared, unsigned flags),
	     cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, it, block_size, shared,
								  flags))
ASK_FUNCTION(cudaOccupancyAvailableDynamicSMemPerBlock,
	     (size_t *bytes, const void *symbol, int blocks, int block_size),
	     cuOccupancyAvailableDynamicSMemPerBlock(bytes, it, blocks, block_size))

cudaError_t CUDARTAPI cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *symbol,
								    int block_size, size_t shared)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, symbol, block_size,
								      shared, 0);
}

#define CLUSTERS(question)                                                                         \
	cudaError_t CUDARTAPI cudaOccupancy##question(int *answer, const void *symbol,             \
						      const cudaLaunchConfig_t *config)            \
	{                                                                                          \
		CUlaunchConfig driver;                                                             \
		CUfunction function;                                                               \
                                                                                                   \
		CUDART_REQUIRE(config);                                                            \
		CUDART_ENTER();                                                                    \
		CUDART_TRY(cudart_function(symbol, &function));                                    \
		driver = driver_config(config, config->stream);                                    \
		return cudart_result(                                                              \
			cudart_driver.cuOccupancy##question(answer, function, &driver));           \
	}
CLUSTERS(MaxPotentialClusterSize)
CLUSTERS(MaxActiveClusters)
