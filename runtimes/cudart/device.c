/* SPDX-License-Identifier: Apache-2.0 */
/* What a device is: its properties, made of the driver's attributes, and the choice by properties.
 */
#include "runtimes/cudart/internal.h"

#include <string.h>

/* A field of cudaDeviceProp that is one attribute of the driver. */
static const struct {
	unsigned short offset, size;
	CUdevice_attribute attribute;
} fields[] = {
#define FIELD(field, attribute)                                                                    \
	{offsetof(struct cudaDeviceProp, field), sizeof(((struct cudaDeviceProp *)0)->field),      \
	 CU_DEVICE_ATTRIBUTE_##attribute}
	FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
	FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
	FIELD(warpSize, WARP_SIZE),
	FIELD(memPitch, MAX_PITCH),
	FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
	FIELD(maxThreadsDim[0], MAX_BLOCK_DIM_X),
	FIELD(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
	FIELD(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
	FIELD(maxGridSize[0], MAX_GRID_DIM_X),
	FIELD(maxGridSize[1], MAX_GRID_DIM_Y),
	FIELD(maxGridSize[2], MAX_GRID_DIM_Z),
	FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY),
	FIELD(major, COMPUTE_CAPABILITY_MAJOR),
	FIELD(minor, COMPUTE_CAPABILITY_MINOR),
	FIELD(textureAlignment, TEXTURE_ALIGNMENT),
	FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
	FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT),
	FIELD(integrated, INTEGRATED),
	FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY),
	FIELD(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
	FIELD(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
	FIELD(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
	FIELD(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
	FIELD(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
	FIELD(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
	FIELD(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
	FIELD(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
	FIELD(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH),
	FIELD(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH),
	FIELD(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
	FIELD(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
	FIELD(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
	FIELD(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
	FIELD(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
	FIELD(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
	FIELD(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
	FIELD(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
	FIELD(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
	FIELD(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
	FIELD(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
	FIELD(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
	FIELD(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
	FIELD(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
	FIELD(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
	FIELD(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
	FIELD(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH),
	FIELD(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT),
	FIELD(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH),
	FIELD(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT),
	FIELD(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH),
	FIELD(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH),
	FIELD(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS),
	FIELD(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH),
	FIELD(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
	FIELD(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS),
	FIELD(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
	FIELD(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
	FIELD(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
	FIELD(surfaceAlignment, SURFACE_ALIGNMENT),
	FIELD(concurrentKernels, CONCURRENT_KERNELS),
	FIELD(ECCEnabled, ECC_ENABLED),
	FIELD(pciBusID, PCI_BUS_ID),
	FIELD(pciDeviceID, PCI_DEVICE_ID),
	FIELD(pciDomainID, PCI_DOMAIN_ID),
	FIELD(tccDriver, TCC_DRIVER),
	FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT),
	FIELD(unifiedAddressing, UNIFIED_ADDRESSING),
	FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
	FIELD(l2CacheSize, L2_CACHE_SIZE),
	FIELD(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
	FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
	FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
	FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
	FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
	FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
	FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
	FIELD(managedMemory, MANAGED_MEMORY),
	FIELD(isMultiGpuBoard, MULTI_GPU_BOARD),
	FIELD(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
	FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
	FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
	FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
	FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
	FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
	FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH),
	FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
	FIELD(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
	FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
	FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
	FIELD(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
	FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
	FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
	FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
	FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
	FIELD(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
	FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
	FIELD(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
	FIELD(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
	FIELD(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
	FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
	FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
	FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED),
	FIELD(clusterLaunch, CLUSTER_LAUNCH),
	FIELD(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
	FIELD(deviceNumaConfig, NUMA_CONFIG),
	FIELD(deviceNumaId, NUMA_ID),
	FIELD(mpsEnabled, MPS_ENABLED),
	FIELD(hostNumaId, HOST_NUMA_ID),
	FIELD(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
#undef FIELD
};

cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp *properties, int ordinal)
{
	CUdevice device;
	CUresult result;

	CUDART_REQUIRE(properties);
	CUDART_START();
	if (ordinal < 0 || cudart_driver.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS)
		return cudart_fail(cudaErrorInvalidDevice);
	memset(properties, 0, sizeof(*properties));
	result = cudart_driver.cuDeviceGetName(properties->name, sizeof(properties->name), device);
	if (result == CUDA_SUCCESS)
		result = cudart_driver.cuDeviceGetUuid((CUuuid *)&properties->uuid, device);
	if (result == CUDA_SUCCESS)
		result = cudart_driver.cuDeviceTotalMem(&properties->totalGlobalMem, device);
	if (result != CUDA_SUCCESS)
		return cudart_result(result);
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		char *field = (char *)properties + fields[i].offset;
		int value = 0;

		/* An attribute that the driver does not know stays 0. */
		cudart_driver.cuDeviceGetAttribute(&value, fields[i].attribute, device);
		if (fields[i].size == sizeof(size_t))
			memcpy(field, &(size_t){(size_t)value}, sizeof(size_t));
		else
			memcpy(field, &value, sizeof(value));
	}
	return cudaSuccess;
}

/* How many of the wishes a device fulfils; a wish of 0 is none. */
static int score(const struct cudaDeviceProp *wanted, const struct cudaDeviceProp *device)
{
	int points = 0;

	if (wanted->name[0])
		points += !strcmp(wanted->name, device->name);
	if (wanted->major)
		points += device->major > wanted->major ||
			  (device->major == wanted->major && device->minor >= wanted->minor);
	if (wanted->totalGlobalMem)
		points += device->totalGlobalMem >= wanted->totalGlobalMem;
	if (wanted->sharedMemPerBlock)
		points += device->sharedMemPerBlock >= wanted->sharedMemPerBlock;
	if (wanted->maxThreadsPerBlock)
		points += device->maxThreadsPerBlock >= wanted->maxThreadsPerBlock;
	if (wanted->multiProcessorCount)
		points += device->multiProcessorCount >= wanted->multiProcessorCount;
	if (wanted->concurrentKernels)
		points += device->concurrentKernels != 0;
	if (wanted->managedMemory)
		points += device->managedMemory != 0;
	if (wanted->cooperativeLaunch)
		points += device->cooperativeLaunch != 0;
	return points;
}

cudaError_t CUDARTAPI cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted)
{
	int count, best = -1;
	cudaError_t error;

	CUDART_REQUIRE(device && wanted);
	error = cudaGetDeviceCount(&count);
	for (int i = 0; i < count && error == cudaSuccess; i++) {
		struct cudaDeviceProp properties;

		error = cudaGetDeviceProperties(&properties, i);
		if (error == cudaSuccess && score(wanted, &properties) > best) {
			best = score(wanted, &properties);
			*device = i;
		}
	}
	return error;
}

/* Bank sizes have had no effect since Kepler. */
cudaError_t CUDARTAPI cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
	CUDART_REQUIRE(config);
	CUDART_ENTER();
	*config = cudaSharedMemBankSizeFourByte;
	return cudaSuccess;
}

cudaError_t CUDARTAPI cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	CUDART_ENTER();
	return cudaSuccess;
}
