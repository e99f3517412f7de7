/* SPDX-License-Identifier: Apache-2.0 */
/* What a context is asked and told: its device, flags, limits, caches. */
#include <string.h>

#include "backends/cpu/driver/driver.h"

static const size_t default_limits[LIMITS] = {
	[CU_LIMIT_STACK_SIZE] = 1024,
	[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
	[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
	[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
	[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
	[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

void context_default_limits(struct context *context)
{
	memcpy(context->limits, default_limits, sizeof default_limits);
}

static bool limit_known(CUlimit limit)
{
	return (unsigned)limit < LIMITS &&
	       (default_limits[limit] || limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	struct context *context;
	CUresult result = context_check(ctx, &context);

	if (!result && !device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*device = context->device;
	return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	return cuCtxGetDevice_v2(device, NULL);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct context *context;
	CUresult result = context_current(&context, false);

	if (!result && !flags)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*flags = context->flags;
	return result;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	struct context *context;
	CUresult result = context_current(&context, false);

	if (!result)
		context->flags = flags;
	return result;
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *ctxId)
{
	struct context *context;
	CUresult result = context_check(ctx, &context);

	if (!result && !ctxId)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*ctxId = context->id;
	return result;
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	struct context *context;
	CUresult result = context_check(ctx, &context);

	if (!result && !version)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*version = 3020;
	return result;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct context *context;
	CUresult result = context_current(&context, false);

	if (result)
		return result;
	if (!limit_known(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	engine_lock();
	context->limits[limit] = value;
	engine_unlock();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	struct context *context;
	CUresult result = context_current(&context, false);

	if (result)
		return result;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	if (!limit_known(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	engine_lock();
	*pvalue = context->limits[limit];
	engine_unlock();
	return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	struct context *context;

	return context_current(&context, false);
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *pconfig)
{
	struct context *context;
	CUresult result = context_current(&context, false);

	if (!result && !pconfig)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pconfig = context->cache_config;
	return result;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct context *context;
	CUresult result = context_current(&context, false);

	if (!result)
		context->cache_config = config;
	return result;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *pConfig)
{
	struct context *context;
	CUresult result = context_current(&context, false);

	if (!result && !pConfig)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return result;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct context *context;

	return context_current(&context, false);
}

CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
	struct context *context;
	CUresult result = context_current(&context, false);

	if (result)
		return result;
	if (leastPriority)
		*leastPriority = 0;
	if (greatestPriority)
		*greatestPriority = 1 - LEVELS;
	return CUDA_SUCCESS;
}
