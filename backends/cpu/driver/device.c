/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device says of itself. Its compute capability is 9.0: the newest that programs
 * and libraries of today know everywhere, so that their choice among kernels finds one; the kernels
 * come from PTX or bitcode, so nothing depends on it. A worker counts as a multiprocessor and runs
 * one block at a time. Textures and surfaces are not there, and the attributes say so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/driver/driver.h"
#include "base/file.h"

/* A number from a file, or `otherwise`. */
static uint64_t number_in(const char *path, uint64_t otherwise)
{
	struct tally_buffer text = {0};
	struct tally_error ignored = {0};
	char *end = NULL;
	uint64_t value = otherwise;

	if (tally_file_read(path, &text, &ignored) && text.data) {
		value = strtoull(text.data, &end, 10);
		if (end == text.data)
			value = otherwise;
	}
	tally_buffer_free(&text);
	return value;
}

/* An equal part of the machine's memory, or of what the control group allows. */
uint64_t device_memory_bytes(void)
{
	static _Atomic uint64_t known;
	uint64_t bytes = atomic_load(&known);

	if (bytes)
		return bytes;
	bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t allowed = number_in("/sys/fs/cgroup/memory.max", bytes);
	if (allowed && allowed < bytes)
		bytes = allowed;
	bytes /= (unsigned)device_count();
	atomic_store(&known, bytes);
	return bytes;
}

static int workers(void)
{
	return (int)engine.workers;
}

static int clock_khz(void)
{
	return (int)number_in("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", 2000000);
}

static int cache_bytes(void)
{
	long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);

	return bytes > 0 && bytes < INT32_MAX ? (int)bytes : 1 << 20;
}

/* Whatever is not named here is 0: not supported, or none. */
#define IS(name, number)    {CU_DEVICE_ATTRIBUTE_##name, number, NULL}
#define ASK(name, function) {CU_DEVICE_ATTRIBUTE_##name, 0, function}
static const struct {
	CUdevice_attribute attribute;
	int value;
	int (*ask)(void);
} attributes[] = {
	IS(MAX_THREADS_PER_BLOCK, BLOCK_THREADS),
	IS(MAX_BLOCK_DIM_X, 1024),
	IS(MAX_BLOCK_DIM_Y, 1024),
	IS(MAX_BLOCK_DIM_Z, 64),
	IS(MAX_GRID_DIM_X, INT32_MAX),
	IS(MAX_GRID_DIM_Y, 65535),
	IS(MAX_GRID_DIM_Z, 65535),
	IS(MAX_SHARED_MEMORY_PER_BLOCK, SHARED_DEFAULT),
	IS(TOTAL_CONSTANT_MEMORY, 65536),
	IS(WARP_SIZE, 32),
	IS(MAX_PITCH, INT32_MAX),
	IS(MAX_REGISTERS_PER_BLOCK, 65536),
	ASK(CLOCK_RATE, clock_khz),
	IS(TEXTURE_ALIGNMENT, 512),
	IS(GPU_OVERLAP, 1),
	ASK(MULTIPROCESSOR_COUNT, workers),
	IS(INTEGRATED, 1),
	IS(CAN_MAP_HOST_MEMORY, 1),
	IS(COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT),
	IS(SURFACE_ALIGNMENT, 512),
	IS(CONCURRENT_KERNELS, 1),
	ASK(MEMORY_CLOCK_RATE, clock_khz),
	IS(GLOBAL_MEMORY_BUS_WIDTH, 64),
	ASK(L2_CACHE_SIZE, cache_bytes),
	IS(MAX_THREADS_PER_MULTIPROCESSOR, BLOCK_THREADS),
	ASK(ASYNC_ENGINE_COUNT, workers),
	IS(UNIFIED_ADDRESSING, 1),
	IS(COOPERATIVE_LAUNCH, 1),
	IS(IPC_EVENT_SUPPORTED, 1),
	IS(TEXTURE_PITCH_ALIGNMENT, 32),
	IS(COMPUTE_CAPABILITY_MAJOR, COMPUTE_MAJOR),
	IS(COMPUTE_CAPABILITY_MINOR, COMPUTE_MINOR),
	IS(STREAM_PRIORITIES_SUPPORTED, 1),
	IS(GLOBAL_L1_CACHE_SUPPORTED, 1),
	IS(LOCAL_L1_CACHE_SUPPORTED, 1),
	IS(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, SHARED_OPTIN),
	IS(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
	IS(MANAGED_MEMORY, 1),
	IS(HOST_NATIVE_ATOMIC_SUPPORTED, 1),
	IS(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2),
	IS(PAGEABLE_MEMORY_ACCESS, 1),
	IS(CONCURRENT_MANAGED_ACCESS, 1),
	IS(COMPUTE_PREEMPTION_SUPPORTED, 1),
	IS(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1),
	IS(CAN_USE_STREAM_MEM_OPS_V1, 1),
	IS(CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1),
	IS(CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1),
	IS(CAN_USE_64_BIT_STREAM_MEM_OPS, 1),
	IS(CAN_USE_STREAM_WAIT_VALUE_NOR, 1),
	IS(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, SHARED_OPTIN),
	IS(CAN_FLUSH_REMOTE_WRITES, 1),
	IS(HOST_REGISTER_SUPPORTED, 1),
	IS(PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 1),
	IS(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 1),
	IS(MAX_BLOCKS_PER_MULTIPROCESSOR, 1),
	IS(READ_ONLY_HOST_REGISTER_SUPPORTED, 1),
	IS(MEMORY_POOLS_SUPPORTED, 1),
	IS(MEM_SYNC_DOMAIN_COUNT, 1),
};

CUresult cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pi || attrib < 1 || attrib >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = attrib == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? dev : 0;
	for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
		if (attributes[i].attribute == attrib)
			*pi = attributes[i].ask ? attributes[i].ask() : attributes[i].value;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "Tally CPU device");
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = device_memory_bytes();
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = COMPUTE_MAJOR;
	*minor = COMPUTE_MINOR;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = BLOCK_THREADS,
		.maxThreadsDim = {1024, 1024, 64},
		.maxGridSize = {INT32_MAX, 65535, 65535},
		.sharedMemPerBlock = SHARED_DEFAULT,
		.totalConstantMemory = 65536,
		.SIMDWidth = 32,
		.memPitch = INT32_MAX,
		.regsPerBlock = 65536,
		.clockRate = clock_khz(),
		.textureAlign = 512,
	};
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pi)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = 0;
	return CUDA_SUCCESS;
}

/* Everything that the host or a kernel wrote is where it belongs. */
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
				    CUflushGPUDirectRDMAWritesScope scope)
{
	struct context *context;

	return context_current(&context, false);
}
