/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation where the runtime's rules differ from the driver's: empty allocations, null pointers,
 * pitches, questions about a pointer, pools. */
#include "runtimes/cudart/internal.h"

#include <assert.h>
#include <string.h>

cudaError_t CUDARTAPI cudaMalloc(void **pointer, size_t bytes)
{
	CUDART_REQUIRE(pointer);
	CUDART_ENTER();
	*pointer = NULL;
	if (!bytes)
		return cudaSuccess;
	return cudart_result(cudart_driver.cuMemAlloc((CUdeviceptr *)pointer, bytes));
}

cudaError_t CUDARTAPI cudaFree(void *pointer)
{
	CUDART_ENTER();
	if (!pointer)
		return cudaSuccess;
	return cudart_result(cudart_driver.cuMemFree((CUdeviceptr)pointer));
}

cudaError_t CUDARTAPI cudaHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
	CUDART_REQUIRE(pointer);
	CUDART_ENTER();
	*pointer = NULL;
	if (!bytes)
		return cudaSuccess;
	return cudart_result(cudart_driver.cuMemHostAlloc(pointer, bytes, flags));
}

cudaError_t CUDARTAPI cudaMallocHost(void **pointer, size_t bytes)
{
	return cudaHostAlloc(pointer, bytes, cudaHostAllocPortable);
}

cudaError_t CUDARTAPI cudaFreeHost(void *pointer)
{
	CUDART_ENTER();
	if (!pointer)
		return cudaSuccess;
	return cudart_result(cudart_driver.cuMemFreeHost(pointer));
}

cudaError_t CUDARTAPI cudaMallocManaged(void **pointer, size_t bytes, unsigned flags)
{
	CUDART_REQUIRE(pointer && bytes);
	CUDART_ENTER();
	return cudart_result(cudart_driver.cuMemAllocManaged((CUdeviceptr *)pointer, bytes, flags));
}

/* Bytes of the widest access that rows are aligned for; the driver takes 4, 8 or 16. */
#define PITCH_ELEMENT 16

cudaError_t CUDARTAPI cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
	CUDART_REQUIRE(pointer && pitch);
	CUDART_ENTER();
	*pointer = NULL;
	*pitch = 0;
	if (!width || !height)
		return cudaSuccess;
	return cudart_result(cudart_driver.cuMemAllocPitch((CUdeviceptr *)pointer, pitch, width,
							   height, PITCH_ELEMENT));
}

cudaError_t CUDARTAPI cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
	cudaError_t error;
	size_t rows;

	CUDART_REQUIRE(pitched && !__builtin_mul_overflow(extent.height, extent.depth, &rows));
	error = cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width, rows);
	pitched->xsize = extent.width;
	pitched->ysize = extent.height;
	return error;
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
					       const void *pointer)
{
	CUdeviceptr address = (CUdeviceptr)pointer;
	unsigned type = 0, managed = 0;
	int device = 0;

	CUDART_REQUIRE(attributes);
	CUDART_ENTER();
	memset(attributes, 0, sizeof(*attributes));
	/* The driver knows nothing of ordinary host memory, and that is no error here. */
	if (cudart_driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) !=
	    CUDA_SUCCESS) {
		attributes->type = cudaMemoryTypeUnregistered;
		attributes->device = cudaInvalidDeviceId;
		attributes->hostPointer = (void *)pointer;
		return cudaSuccess;
	}
	cudart_driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
	if (cudart_driver.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
						address) != CUDA_SUCCESS)
		device = cudart_device();
	attributes->type = managed			? cudaMemoryTypeManaged
			   : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
							: cudaMemoryTypeDevice;
	attributes->device = device;
	if (cudart_driver.cuPointerGetAttribute(&attributes->devicePointer,
						CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
						address) != CUDA_SUCCESS)
		attributes->devicePointer = NULL;
	if (attributes->type == cudaMemoryTypeDevice ||
	    cudart_driver.cuPointerGetAttribute(&attributes->hostPointer,
						CU_POINTER_ATTRIBUTE_HOST_POINTER,
						address) != CUDA_SUCCESS)
		attributes->hostPointer = NULL;
	return cudaSuccess;
}

static cudaError_t malloc_async(void **pointer, size_t bytes, cudaMemPool_t pool, bool from_pool,
				cudaStream_t stream)
{
	CUDART_REQUIRE(pointer);
	CUDART_ENTER();
	*pointer = NULL;
	if (!bytes)
		return cudaSuccess;
	return cudart_result(
		from_pool ? cudart_driver.cuMemAllocFromPoolAsync((CUdeviceptr *)pointer, bytes,
								  pool, stream)
			  : cudart_driver.cuMemAllocAsync((CUdeviceptr *)pointer, bytes, stream));
}

cudaError_t CUDARTAPI cudaMallocAsync(void **pointer, size_t bytes, cudaStream_t stream)
{
	return malloc_async(pointer, bytes, NULL, false, stream);
}

CUDART_PTSZ(cudaMallocAsync, (void **pointer, size_t bytes, cudaStream_t stream),
	    (pointer, bytes, stream))

cudaError_t CUDARTAPI cudaMallocFromPoolAsync(void **pointer, size_t bytes, cudaMemPool_t pool,
					      cudaStream_t stream)
{
	return malloc_async(pointer, bytes, pool, true, stream);
}

CUDART_PTSZ(cudaMallocFromPoolAsync,
	    (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
	    (pointer, bytes, pool, stream))

cudaError_t CUDARTAPI cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	CUDART_ENTER();
	if (!pointer)
		return cudaSuccess;
	return cudart_result(cudart_driver.cuMemFreeAsync((CUdeviceptr)pointer, stream));
}

CUDART_PTSZ(cudaFreeAsync, (void *pointer, cudaStream_t stream), (pointer, stream))

static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps) &&
		      offsetof(struct cudaMemPoolProps, maxSize) ==
			      offsetof(CUmemPoolProps, maxSize) &&
		      offsetof(struct cudaMemPoolProps, usage) == offsetof(CUmemPoolProps, usage),
	      "pool properties have one layout");
static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc) &&
		      sizeof(struct cudaMemLocation) == sizeof(CUmemLocation),
	      "access descriptions have one layout");
static_assert((int)cudaMemPoolAttrReleaseThreshold == (int)CU_MEMPOOL_ATTR_RELEASE_THRESHOLD &&
		      (int)cudaMemPoolAttrUsedMemHigh == (int)CU_MEMPOOL_ATTR_USED_MEM_HIGH,
	      "pool attributes have one numbering");

cudaError_t CUDARTAPI cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	CUmemPoolProps driver;

	CUDART_REQUIRE(pool && props);
	CUDART_ENTER();
	memcpy(&driver, props, sizeof(driver));
	return cudart_result(cudart_driver.cuMemPoolCreate(pool, &driver));
}

cudaError_t CUDARTAPI cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
					   size_t count)
{
	CUDART_ENTER();
	return cudart_result(
		cudart_driver.cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)list, count));
}

cudaError_t CUDARTAPI cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
					   struct cudaMemLocation *location)
{
	CUDART_ENTER();
	return cudart_result(cudart_driver.cuMemPoolGetAccess((CUmemAccess_flags *)flags, pool,
							      (CUmemLocation *)location));
}

static CUmemLocation driver_location(struct cudaMemLocation location)
{
	CUmemLocation driver;

	memcpy(&driver, &location, sizeof(driver));
	return driver;
}

cudaError_t CUDARTAPI cudaMemPrefetchAsync(const void *pointer, size_t bytes,
					   struct cudaMemLocation location, unsigned flags,
					   cudaStream_t stream)
{
	CUDART_ENTER();
	return cudart_result(cudart_driver.cuMemPrefetchAsync(
		(CUdeviceptr)pointer, bytes, driver_location(location), flags, stream));
}

CUDART_PTSZ(cudaMemPrefetchAsync,
	    (const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned flags,
	     cudaStream_t stream),
	    (pointer, bytes, location, flags, stream))

cudaError_t CUDARTAPI cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
				    struct cudaMemLocation location)
{
	CUDART_ENTER();
	return cudart_result(cudart_driver.cuMemAdvise(
		(CUdeviceptr)pointer, bytes, (CUmem_advise)advice, driver_location(location)));
}
