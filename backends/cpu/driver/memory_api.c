/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, host memory and questions about pointers. */
#include <string.h>

#include "backends/cpu/driver/capture.h"

static CUresult allocate(CUdeviceptr *result, size_t bytes, enum region_kind kind, unsigned flags)
{
	struct context *context;
	uintptr_t address;
	CUresult error = context_current(&context, true);

	if (!error && !result)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = capture_forbids_unsafe();
	if (!error)
		error = memory_new(bytes, kind, flags, context, NULL, &address);
	if (!error)
		*result = address;
	return error;
}

/* Freed memory may still be in use by what was launched before: as on a GPU, freeing waits. */
static CUresult release(uintptr_t address, unsigned kinds)
{
	struct context *context;
	struct region region;
	CUresult error = context_current(&context, false);

	if (error || !address)
		return error;
	error = capture_forbids_unsafe();
	if (error)
		return error;
	/* Memory of a graph's node stays until the graph goes. */
	if (memory_find(address, &region) && region.base == address && kinds & 1u << region.kind &&
	    region.flags & REGION_OF_GRAPH)
		return CUDA_SUCCESS;
	contexts_quiesce();
	if (!memory_remove(address, kinds, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	return context_error(context);
}

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	return allocate(dptr, bytesize, REGION_DEVICE, 0);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height,
			    unsigned int ElementSizeBytes)
{
	size_t pitch, bytes;

	if (!pPitch || !WidthInBytes || !Height ||
	    (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16) ||
	    __builtin_add_overflow(WidthInBytes, 511, &pitch) ||
	    __builtin_mul_overflow(pitch & ~(size_t)511, Height, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	*pPitch = pitch & ~(size_t)511;
	return cuMemAlloc_v2(dptr, bytes);
}

CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	return release(dptr, 1u << REGION_DEVICE | 1u << REGION_MANAGED);
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return allocate(dptr, bytesize, REGION_MANAGED, flags);
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP |
			       CU_MEMHOSTALLOC_WRITECOMBINED;
	CUdeviceptr address;

	if (!pp || Flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	/* All host memory is mapped, whether asked for or not. */
	CUresult error =
		allocate(&address, bytesize, REGION_HOST, Flags | CU_MEMHOSTALLOC_DEVICEMAP);
	if (!error)
		*pp = (void *)address;
	return error;
}

CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	return cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void *p)
{
	return release((uintptr_t)p, 1u << REGION_HOST);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
			       CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
	struct region region = {
		.base = (uintptr_t)p, .size = bytesize, .kind = REGION_REGISTERED, .flags = Flags};
	CUresult error = context_current(&region.context, true);

	if (error)
		return error;
	region.device = region.context->device;
	if (!p || !bytesize || Flags & ~known || !memory_valid(region.base, bytesize))
		return CUDA_ERROR_INVALID_VALUE;
	return memory_add(&region) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuMemHostUnregister(void *p)
{
	struct region region;

	REQUIRE_INIT();
	if (!memory_find((uintptr_t)p, &region) || region.kind != REGION_REGISTERED)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	return release((uintptr_t)p, 1u << REGION_REGISTERED);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct region region;

	REQUIRE_INIT();
	if (!pdptr || Flags || !memory_find((uintptr_t)p, &region) ||
	    (region.kind != REGION_HOST && region.kind != REGION_REGISTERED))
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = (CUdeviceptr)p;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct region region;

	REQUIRE_INIT();
	if (!pFlags || !memory_find((uintptr_t)p, &region) ||
	    (region.kind != REGION_HOST && region.kind != REGION_REGISTERED))
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = region.flags;
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	struct context *context;
	CUresult error = context_current(&context, false);

	if (error)
		return error;
	if (free)
		*free = device_memory_bytes() - memory_used(context->device);
	if (total)
		*total = device_memory_bytes();
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct context *context;
	struct region region;
	CUresult error = context_current(&context, false);

	if (error)
		return error;
	if (!memory_find(dptr, &region))
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = region.base;
	if (psize)
		*psize = region.size;
	return CUDA_SUCCESS;
}

/* --- attributes of pointers --- */

static bool on_host(const struct region *region)
{
	return region->kind == REGION_HOST || region->kind == REGION_REGISTERED;
}

/* One answer, as a number of so many bytes (little-endian, as everything here). */
struct answer {
	CUpointer_attribute attribute;
	unsigned bytes;
	bool known_only; /* no answer for memory that the driver has not made */
	uint64_t value;
};

/* `region` is NULL for memory that the driver does not know. False: no such attribute. */
static bool find_answer(CUpointer_attribute attribute, CUdeviceptr address,
			const struct region *region, struct answer *answer)
{
	static const struct region nothing = {.kind = REGION_DEVICE};
	const struct region *r = region ? region : &nothing;
	const struct answer answers[] = {
		{CU_POINTER_ATTRIBUTE_CONTEXT, 8, true, (uintptr_t)r->context},
		{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4, true,
		 on_host(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE},
		{CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 8, true, address},
		{CU_POINTER_ATTRIBUTE_HOST_POINTER, 8, true, address},
		{CU_POINTER_ATTRIBUTE_BUFFER_ID, 8, true, r->id},
		{CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4, false, 0},
		{CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4, false,
		 region && r->kind == REGION_DEVICE && !r->pool && !(r->flags & REGION_OF_GRAPH)},
		{CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 4, false, 0},
		{CU_POINTER_ATTRIBUTE_IS_MANAGED, 4, false, r->kind == REGION_MANAGED},
		/* cuda.h: -2 for memory that is not the driver's */
		{CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4, false,
		 region ? (uint32_t)r->device : (uint32_t)-2},
		{CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8, false, r->base},
		{CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8, false, r->size},
		{CU_POINTER_ATTRIBUTE_MAPPED, 4, false, region != NULL},
		{CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 8, false, 0},
		{CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4, false,
		 CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE},
		{CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 8, false, (uintptr_t)r->pool},
	};

	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
		if (answers[i].attribute == attribute) {
			*answer = answers[i];
			return true;
		}
	return false;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct region region;
	struct answer answer;

	REQUIRE_INIT();
	if (!data || !ptr)
		return CUDA_ERROR_INVALID_VALUE;
	bool known = memory_find(ptr, &region);
	if (!find_answer(attribute, ptr, known ? &region : NULL, &answer))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (answer.known_only && !known)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data, &answer.value, answer.bytes);
	return CUDA_SUCCESS;
}

/* Unlike the single question, unknown memory is no error: its attributes are null. */
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes,
				void **data, CUdeviceptr ptr)
{
	struct region region;
	struct answer answer;

	REQUIRE_INIT();
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	bool known = memory_find(ptr, &region);
	for (unsigned i = 0; i < numAttributes; i++) {
		if (!find_answer(attributes[i], ptr, known ? &region : NULL, &answer))
			return CUDA_ERROR_NOT_SUPPORTED;
		if (answer.known_only && !known)
			answer.value = 0;
		memcpy(data[i], &answer.value, answer.bytes);
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct region region;

	REQUIRE_INIT();
	if (!value || !memory_find(ptr, &region))
		return CUDA_ERROR_INVALID_VALUE;
	/* Copies are synchronous enough already. */
	return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS
							     : CUDA_ERROR_NOT_SUPPORTED;
}

/* --- managed memory: it is in one place, where everybody reaches it --- */

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
			CUmemLocation location)
{
	REQUIRE_INIT();
	return count && memory_valid(devPtr, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	REQUIRE_INIT();
	return count && memory_valid(devPtr, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
			       unsigned int flags, CUstream hStream)
{
	struct stream *stream;
	CUresult error = stream_resolve(hStream, &stream);

	if (error)
		return error;
	return count && memory_valid(devPtr, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return cuMemPrefetchAsync_v2(devPtr, count, (CUmemLocation){0}, 0, hStream);
}

CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
				CUdeviceptr devPtr, size_t count)
{
	REQUIRE_INIT();
	if (!data || dataSize < 4 || !memory_valid(devPtr, count))
		return CUDA_ERROR_INVALID_VALUE;
	memset(data, 0, dataSize);
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION ||
	    attribute == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION)
		*(int *)data = CU_DEVICE_INVALID;
	return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
				 size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
	CUresult error = numAttributes && data && dataSizes && attributes
				 ? CUDA_SUCCESS
				 : CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < numAttributes && !error; i++)
		error = cuMemRangeGetAttribute(data[i], dataSizes[i], attributes[i], devPtr, count);
	return error;
}
