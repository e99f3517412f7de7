/* SPDX-License-Identifier: Apache-2.0 */
/* Stream-ordered allocation. Memory is made when it is asked for and freed when its stream comes to
 * the freeing; pools only count and keep what was set. */
#include <stdlib.h>

#include "backends/cpu/driver/capture.h"

struct pool {
	CUdevice device;
	int reuse[4]; /* the three switches, by CUmemPool_attribute */
	cuuint64_t threshold;
	_Atomic cuuint64_t used, high;
	_Atomic unsigned allocations; /* a destroyed pool lives as long as it has any */
	atomic_bool destroyed;
};

static struct pool default_pools[MOST_DEVICES]; /* by device, as is */
static struct pool *_Atomic current_pools[MOST_DEVICES];

static void set_up(struct pool *pool, CUdevice device)
{
	pool->device = device;
	for (int i = 1; i < 4; i++)
		pool->reuse[i] = 1;
}

void pools_start(void)
{
	for (CUdevice i = 0; i < device_count(); i++) {
		set_up(&default_pools[i], i);
		atomic_store(&current_pools[i], &default_pools[i]);
	}
}

CUdevice pool_device(const struct pool *pool)
{
	return pool->device;
}

static bool is_default(const struct pool *pool)
{
	return pool >= default_pools && pool < default_pools + device_count();
}

static CUresult check(CUmemoryPool handle, struct pool **pool)
{
	REQUIRE_INIT();
	*pool = (struct pool *)handle;
	return is_default(*pool) || handle_is(handle, HANDLE_POOL) ? CUDA_SUCCESS
								   : CUDA_ERROR_INVALID_VALUE;
}

static void free_if_unused(struct pool *pool)
{
	if (!is_default(pool) && atomic_load(&pool->destroyed) && !atomic_load(&pool->allocations))
		free(pool);
}

/*
 * Memory of an allocation node has one address for as long as a graph knows the node, and is there
 * all that time: the nodes that allocate and free it have nothing to do.
 */
CUresult graph_memory_make(struct graph_memory **result, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct graph_memory *memory = calloc(1, sizeof *memory);
	struct context *context;
	CUresult error = context_current(&context, true);

	if (!error && !memory)
		error = CUDA_ERROR_OUT_OF_MEMORY;
	if (!error)
		error = memory_new(params->bytesize, REGION_DEVICE, REGION_OF_GRAPH, context, NULL,
				   &memory->address);
	if (error) {
		free(memory);
		return error;
	}
	memory->references = 1;
	memory->as_asked = *params;
	memory->as_asked.dptr = memory->address;
	memory->as_asked.accessDescs = NULL;
	memory->as_asked.accessDescCount = 0;
	*result = memory;
	return CUDA_SUCCESS;
}

static CUresult capture_allocation(struct stream *stream, size_t bytes, CUdeviceptr *result)
{
	const CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = bytes,
	};
	struct work work = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	CUresult error = graph_memory_make(&work.memory, &params);

	if (error)
		return error;
	*result = work.memory->address;
	return capture_work(stream, &work);
}

/* `pool` NULL: the current one of the stream's device. */
static CUresult allocate(CUdeviceptr *result, size_t bytes, struct pool *pool, CUstream handle)
{
	struct stream *stream;
	uintptr_t address;
	bool captured;
	CUresult error = stream_resolve(handle, &stream);

	if (!error && !result)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = capture_admit(stream, &captured);
	if (!error && captured)
		return capture_allocation(stream, bytes, result);
	if (!error && !pool)
		pool = atomic_load(&current_pools[stream->context->device]);
	if (!error)
		error = context_error(stream->context);
	if (!error)
		error = memory_new(bytes, REGION_DEVICE, 0, stream->context, pool, &address);
	if (error)
		return error;
	atomic_fetch_add(&pool->allocations, 1);
	cuuint64_t used = atomic_fetch_add(&pool->used, bytes) + bytes;
	cuuint64_t high = atomic_load(&pool->high);
	while (used > high && !atomic_compare_exchange_weak(&pool->high, &high, used))
		;
	*result = address;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	return allocate(dptr, bytesize, NULL, hStream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
				 CUstream hStream)
{
	struct pool *from;
	CUresult error = check(pool, &from);

	return error ? error : allocate(dptr, bytesize, from, hStream);
}

static bool run_free(struct operation *operation)
{
	const uintptr_t *address = operation->data;
	struct region region;

	if (memory_remove(*address, 1u << REGION_DEVICE, &region) && region.pool) {
		atomic_fetch_sub(&region.pool->used, region.size);
		if (atomic_fetch_sub(&region.pool->allocations, 1) == 1)
			free_if_unused(region.pool);
	}
	return true;
}

static const struct operation_class free_class = {
	.name = "free",
	.start = START_UNLOCKED,
	.always = true,
	.run = run_free,
};

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream)
{
	struct work work = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .freed = dptr};
	struct stream *stream;
	struct region region;
	bool captured;

	REQUIRE_INIT();
	if (!memory_find(dptr, &region) || region.base != dptr || region.kind != REGION_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult error = capture_stream(hStream, &stream, &captured);
	if (error)
		return error;
	if (captured)
		return capture_work(stream, &work);
	if (region.flags & REGION_OF_GRAPH)
		return CUDA_SUCCESS; /* it stays until the graph goes */
	struct operation *operation = operation_new(&free_class, sizeof(uintptr_t));
	if (!operation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(uintptr_t *)operation->data = dptr;
	return stream_submit(stream, operation, (struct point){0});
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pool_out)
		return CUDA_ERROR_INVALID_VALUE;
	*pool_out = (CUmemoryPool)&default_pools[dev];
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	*pool = (CUmemoryPool)atomic_load(&current_pools[dev]);
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	struct pool *to;
	CUresult error = check(pool, &to);

	if (!error && (!device_valid(dev) || to->device != dev))
		error = CUDA_ERROR_INVALID_DEVICE;
	if (!error)
		atomic_store(&current_pools[dev], to);
	return error;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps)
{
	static atomic_bool said;

	REQUIRE_INIT();
	if (!pool || !poolProps || poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(poolProps->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return driver_unsupported("memory pools for several processes", &said);
	struct pool *made = calloc(1, sizeof *made);
	if (!made || !handle_add(made, HANDLE_POOL)) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	set_up(made, poolProps->location.id);
	*pool = (CUmemoryPool)made;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	struct pool *gone, *expected;
	CUresult error = check(pool, &gone);

	if (error)
		return error;
	if (is_default(gone))
		return CUDA_ERROR_INVALID_VALUE;
	expected = gone;
	atomic_compare_exchange_strong(&current_pools[gone->device], &expected,
				       &default_pools[gone->device]);
	handle_remove(gone, HANDLE_POOL);
	atomic_store(&gone->destroyed, true);
	free_if_unused(gone);
	return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep)
{
	struct pool *which;

	return check(pool, &which); /* nothing is kept */
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct pool *p;
	CUresult error = check(pool, &p);

	if (error)
		return error;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->reuse[attr] = *(int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p->threshold = *(cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(cuuint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE; /* cuda.h: reset to 0 only */
		atomic_store(&p->high, atomic_load(&p->used));
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value)
{
	struct pool *p;
	CUresult error = check(pool, &p);

	if (error)
		return error;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = p->reuse[attr];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = p->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = atomic_load(&p->used);
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = atomic_load(&p->high);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Every device reaches everything. */

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count)
{
	struct pool *which;
	CUresult error = check(pool, &which);

	for (size_t i = 0; i < count && !error; i++)
		if (!map || map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    !device_valid(map[i].location.id))
			error = CUDA_ERROR_INVALID_DEVICE;
	return error;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location)
{
	struct pool *which;
	CUresult error = check(memPool, &which);

	if (!error && (!flags || !location))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		*flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return error;
}
