/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels' attributes and occupancy. A CUkernel and a CUfunction are one handle here. */
#include "backends/cpu/driver/module.h"

/* Compiled code keeps registers to itself: the number says nothing, but programs divide by it. */
#define REGISTERS 32

static CUresult function_attribute(const struct function *function, CUfunction_attribute attribute,
				   int *value)
{
	const struct tally_cpu_kernel *kernel = function->kernel;
	const struct {
		CUfunction_attribute attribute;
		int value;
	} table[] = {
		{CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (int)kernel->max_threads},
		{CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, (int)kernel->shared_bytes},
		{CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, (int)kernel->local_bytes},
		{CU_FUNC_ATTRIBUTE_NUM_REGS, REGISTERS},
		{CU_FUNC_ATTRIBUTE_PTX_VERSION, COMPUTE_MAJOR * 10 + COMPUTE_MINOR},
		{CU_FUNC_ATTRIBUTE_BINARY_VERSION, COMPUTE_MAJOR * 10 + COMPUTE_MINOR},
		{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)function->dynamic_shared},
		{CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, function->carveout},
	};

	if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*value = 0;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (table[i].attribute == attribute)
			*value = table[i].value;
	return CUDA_SUCCESS;
}

static CUresult set_attribute(struct function *function, CUfunction_attribute attribute, int value)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || (unsigned)value + function->kernel->shared_bytes > SHARED_OPTIN)
			return CUDA_ERROR_INVALID_VALUE;
		function->dynamic_shared = (unsigned)value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		function->carveout = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return CUDA_SUCCESS; /* hints about clusters, of which there are none */
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	struct function *function;
	CUresult error = function_check(hfunc, &function);

	return error ? error : function_attribute(function, attrib, pi);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	struct function *function;
	CUresult error = function_check(hfunc, &function);

	return error ? error : set_attribute(function, attrib, value);
}

CUresult cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev)
{
	struct function *function;
	CUresult error = function_check_on(kernel, dev, &function);

	return error ? error : function_attribute(function, attrib, pi);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev)
{
	struct function *function;
	CUresult error = function_check_on(kernel, dev, &function);

	return error ? error : set_attribute(function, attrib, val);
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	struct function *function;
	CUresult error = function_check(hfunc, &function);

	if (!error)
		function->cache_config = config;
	return error;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev)
{
	struct function *function;
	CUresult error = function_check_on(kernel, dev, &function);

	if (!error)
		function->cache_config = config;
	return error;
}

CUresult cuFuncSetSharedMemConfig(CUfunction hfunc, CUsharedconfig config)
{
	struct function *function;

	return function_check(hfunc, &function);
}

CUresult cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct function *function;
	CUresult error = function_check(hfunc, &function);

	if (!error && !hmod)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*hmod = (CUmodule)function->module;
	return error;
}

CUresult cuFuncGetName(const char **name, CUfunction hfunc)
{
	struct function *function;
	CUresult error = function_check(hfunc, &function);

	if (!error && !name)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*name = function->kernel->name;
	return error;
}

CUresult cuKernelGetName(const char **name, CUkernel hfunc)
{
	return cuFuncGetName(name, (CUfunction)hfunc);
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset,
			    size_t *paramSize)
{
	struct function *function;
	CUresult error = function_check(func, &function);

	if (error)
		return error;
	/* The end of the list is told by the error. */
	if (!paramOffset || paramIndex >= function->kernel->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*paramOffset = function->kernel->params[paramIndex].offset;
	if (paramSize)
		*paramSize = function->kernel->params[paramIndex].bytes;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t *paramOffset,
			      size_t *paramSize)
{
	return cuFuncGetParamInfo((CUfunction)kernel, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct function *which;
	CUresult error = function_check(function, &which);

	if (!error && !state)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return error;
}

CUresult cuFuncLoad(CUfunction function)
{
	struct function *which;

	return function_check(function, &which);
}

CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
	struct context *context;
	struct function *function;
	CUresult error = function_check(kernel, &function);

	if (!error)
		error = context_current(&context, false);
	if (!error && !pFunc)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*pFunc = (CUfunction)function;
	return error;
}

CUresult cuKernelGetLibrary(CUlibrary *pLib, CUkernel kernel)
{
	struct function *function;
	CUresult error = function_check(kernel, &function);

	if (!error && !pLib)
		error = CUDA_ERROR_INVALID_VALUE;
	if (error)
		return error;
	struct module *library =
		function->module->owner ? function->module->owner : function->module;
	if (!library->library)
		return CUDA_ERROR_INVALID_HANDLE;
	*pLib = (CUlibrary)library;
	return CUDA_SUCCESS;
}

/* --- occupancy: a worker runs one block at a time --- */

/* Blocks of `threads` that fit at once for each worker: 1 or 0. */
static int function_fits(const struct function *function, int threads, size_t dynamic)
{
	return threads >= 1 && (unsigned)threads <= function->kernel->max_threads &&
	       dynamic <= SHARED_OPTIN && dynamic + function->kernel->shared_bytes <= SHARED_OPTIN;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
							      int blockSize, size_t dynamicSMemSize,
							      unsigned int flags)
{
	struct function *function;
	CUresult error = function_check(func, &function);

	if (!error && (!numBlocks || blockSize <= 0 || flags > 1))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*numBlocks = function_fits(function, blockSize, dynamicSMemSize);
	return error;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
						     size_t dynamicSMemSize)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
								    dynamicSMemSize, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize,
						   CUfunction func,
						   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
						   size_t dynamicSMemSize, int blockSizeLimit,
						   unsigned int flags)
{
	struct function *function;
	CUresult error = function_check(func, &function);
	int size;

	if (!error && (!minGridSize || !blockSize || blockSizeLimit < 0 || flags > 1))
		error = CUDA_ERROR_INVALID_VALUE;
	if (error)
		return error;
	size = (int)function->kernel->max_threads;
	if (blockSizeLimit && blockSizeLimit < size)
		size = blockSizeLimit;
	/* The largest that fits, by whole warps. */
	for (; size > 0; size = size % 32 ? size - size % 32 : size - 32) {
		size_t dynamic = blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(size)
							    : dynamicSMemSize;
		if (function_fits(function, size, dynamic))
			break;
	}
	*blockSize = size > 0 ? size : 0;
	*minGridSize = size > 0 ? (int)engine.workers : 0;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
					  CUoccupancyB2DSize blockSizeToDynamicSMemSize,
					  size_t dynamicSMemSize, int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
							 blockSizeToDynamicSMemSize,
							 dynamicSMemSize, blockSizeLimit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *dynamicSmemSize, CUfunction func,
						 int numBlocks, int blockSize)
{
	struct function *function;
	CUresult error = function_check(func, &function);

	if (!error && (!dynamicSmemSize || numBlocks < 1 || blockSize < 1))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*dynamicSmemSize = numBlocks == 1 && function_fits(function, blockSize, 0)
					   ? SHARED_OPTIN - function->kernel->shared_bytes
					   : 0;
	return error;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
					    const CUlaunchConfig *config)
{
	struct function *function;
	CUresult error = function_check(func, &function);

	if (!error && (!clusterSize || !config))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*clusterSize = 1;
	return error;
}
