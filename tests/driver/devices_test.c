/* SPDX-License-Identifier: Apache-2.0 */
/* Several devices: told apart, each with its own context, variables, pools; and each other's peers.
 */
#include "tests/driver/driver_tests.h"

#include <sys/wait.h>
#include <unistd.h>

enum { DEVICES = 3 };

static CUcontext contexts[DEVICES];

static int start_devices(void **state)
{
	OK(cuInit(0));
	for (int i = 0; i < DEVICES; i++)
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
	OK(cuCtxSetCurrent(contexts[0]));
	return 0;
}

static void they_are_told_apart(void **state)
{
	CUuuid uuids[DEVICES];
	int count;

	OK(cuDeviceGetCount(&count));
	assert_int_equal(count, DEVICES);
	for (int i = 0; i < DEVICES; i++) {
		CUdevice device, by_bus;
		char bus[16];
		int number;
		size_t total, first;

		OK(cuDeviceGet(&device, i));
		assert_int_equal(device, i);
		OK(cuDeviceGetUuid_v2(&uuids[i], i));
		OK(cuDeviceGetPCIBusId(bus, sizeof bus, i));
		OK(cuDeviceGetByPCIBusId(&by_bus, bus));
		assert_int_equal(by_bus, i);
		OK(cuDeviceGetAttribute(&number, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i));
		assert_int_equal(number, i);
		OK(cuDeviceTotalMem(&total, i));
		OK(cuDeviceTotalMem(&first, 0));
		assert_int_equal(total, first);
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(&uuids[i], &uuids[j], sizeof *uuids);
	}
	CUdevice none;
	assert_int_equal(cuDeviceGet(&none, DEVICES), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGet(&none, -1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGetByPCIBusId(&none, "0000:03:00.0"), CUDA_ERROR_INVALID_DEVICE);
}

static void each_has_its_contexts(void **state)
{
	for (int i = 0; i < DEVICES; i++) {
		CUcontext own, current;
		CUstream stream;
		CUdevice device;
		int active;
		unsigned flags;

		assert_true(contexts[i] != contexts[(i + 1) % DEVICES]);
		OK(cuCtxSetCurrent(contexts[i]));
		OK(cuCtxGetDevice(&device));
		assert_int_equal(device, i);
		OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		OK(cuStreamGetDevice(stream, &device));
		assert_int_equal(device, i);
		OK(cuStreamDestroy(stream));
		OK(cuCtxCreate(&own, NULL, 0, i));
		OK(cuCtxGetDevice(&device));
		assert_int_equal(device, i);
		OK(cuCtxDestroy(own));
		OK(cuCtxGetCurrent(&current));
		OK(cuDevicePrimaryCtxGetState(i, &flags, &active));
		assert_int_equal(active, 1);
	}
	OK(cuCtxSetCurrent(contexts[0]));
}

static size_t free_on(int device)
{
	size_t free, total;

	OK(cuCtxSetCurrent(contexts[device]));
	OK(cuMemGetInfo(&free, &total));
	return free;
}

static void memory_is_a_device_s(void **state)
{
	size_t before[DEVICES];
	CUdeviceptr mine;
	CUmemoryPool pools[DEVICES], own, got;
	const size_t bytes = 1 << 20;
	int ordinal;

	for (int i = 0; i < DEVICES; i++) {
		before[i] = free_on(i);
		OK(cuDeviceGetDefaultMemPool(&pools[i], i));
		OK(cuDeviceGetMemPool(&got, i));
		assert_ptr_equal(got, pools[i]);
		assert_true(!i || pools[i] != pools[i - 1]);
	}
	OK(cuCtxSetCurrent(contexts[1]));
	OK(cuMemAlloc(&mine, bytes));
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, mine));
	assert_int_equal(ordinal, 1);
	assert_int_equal(before[1] - free_on(1), bytes);
	assert_int_equal(before[2], free_on(2));
	OK(cuCtxSetCurrent(contexts[1]));
	OK(cuMemFree(mine));

	/* From the pool of the stream's device, and from another device's when asked for it. */
	OK(cuMemAllocAsync(&mine, bytes, NULL));
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, mine));
	assert_int_equal(ordinal, 1);
	OK(cuMemFreeAsync(mine, NULL));
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {CU_MEM_LOCATION_TYPE_DEVICE, 2}};
	OK(cuMemPoolCreate(&own, &props));
	assert_int_equal(cuDeviceSetMemPool(1, own), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceSetMemPool(2, own));
	OK(cuMemAllocFromPoolAsync(&mine, bytes, own, NULL));
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, mine));
	assert_int_equal(ordinal, 2);
	assert_int_equal(before[2] - free_on(2), bytes);
	OK(cuMemFreeAsync(mine, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemPoolDestroy(own));
	OK(cuDeviceGetMemPool(&got, 2));
	assert_ptr_equal(got, pools[2]);
	props.location.id = DEVICES;
	assert_int_equal(cuMemPoolCreate(&own, &props), CUDA_ERROR_INVALID_DEVICE);
	OK(cuCtxSetCurrent(contexts[0]));
}

static uint32_t first_word(CUlibrary library)
{
	CUdeviceptr address;
	uint32_t word;
	size_t bytes;

	OK(cuLibraryGetGlobal(&address, &bytes, library, "variable"));
	OK(cuMemcpyDtoH(&word, address, sizeof word));
	return word;
}

/* One library handle and one kernel handle, but the variables are there once for each device. */
static void libraries_have_their_variables_on_each(void **state)
{
	CUlibrary library, owner;
	CUkernel k;
	CUfunction functions[DEVICES];
	CUmodule inside, other;
	int value;

	OK(cuLibraryLoadFromFile(&library, TALLY_BUILD_DIR "/tests/driver_kernels.so", NULL, NULL,
				 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&k, library, "variable"));
	for (int i = 0; i < DEVICES; i++) {
		OK(cuCtxSetCurrent(contexts[i]));
		for (int n = 0; n < i; n++)
			OK(cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		OK(cuKernelGetFunction(&functions[i], k));
		OK(cuLaunchKernel(functions[i], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		OK(cuCtxSynchronize());
		OK(cuKernelGetLibrary(&owner, k));
		assert_ptr_equal(owner, library);
	}
	for (int i = 0; i < DEVICES; i++) {
		OK(cuCtxSetCurrent(contexts[i]));
		assert_int_equal(first_word(library), 1 + 100 * (i + 1));
		assert_true(!i || functions[i] != functions[i - 1]);
	}
	OK(cuCtxSetCurrent(contexts[0]));
	OK(cuLibraryGetModule(&inside, library));
	OK(cuCtxSetCurrent(contexts[2]));
	OK(cuLibraryGetModule(&other, library));
	assert_ptr_not_equal(inside, other);

	/* A kernel's settings are a device's. */
	OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, k, 1));
	OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 1));
	assert_int_equal(value, 50000);
	OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
	assert_int_not_equal(value, 50000);
	assert_int_equal(cuKernelGetAttribute(&value,
					      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k,
					      DEVICES),
			 CUDA_ERROR_INVALID_DEVICE);
	OK(cuLibraryUnload(library));
	/* What it was on the others went with it. */
	assert_int_equal(cuModuleUnload(other), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuLaunchKernel(functions[2], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
			 CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSetCurrent(contexts[0]));
}

static void peers(void **state)
{
	int can;

	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	assert_int_equal(can, 1);
	OK(cuDeviceCanAccessPeer(&can, 1, 1));
	assert_int_equal(can, 0);
	OK(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 2));
	assert_int_equal(can, 1);
	assert_int_equal(
		cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
		CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceCanAccessPeer(&can, 0, DEVICES), CUDA_ERROR_INVALID_DEVICE);

	assert_int_equal(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxEnablePeerAccess(contexts[1], 0));
	assert_int_equal(cuCtxEnablePeerAccess(contexts[1], 0),
			 CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	OK(cuCtxEnablePeerAccess(contexts[2], 0));
	OK(cuCtxDisablePeerAccess(contexts[1]));
	OK(cuCtxDisablePeerAccess(contexts[2]));
	assert_int_equal(cuCtxDisablePeerAccess(contexts[2]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	assert_int_equal(cuCtxEnablePeerAccess(contexts[1], 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
	CUcontext second;
	OK(cuCtxCreate(&second, NULL, 0, 0));
	assert_int_equal(cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	OK(cuCtxDestroy(second));

	/* A reset forgets them. */
	OK(cuCtxSetCurrent(contexts[2]));
	OK(cuCtxEnablePeerAccess(contexts[1], 0));
	OK(cuDevicePrimaryCtxReset_v2(2));
	assert_int_equal(cuCtxDisablePeerAccess(contexts[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxSetCurrent(contexts[0]));
}

/* A copy from one to the other, ordered behind work of both by events. */
static void copies_and_events_between_them(void **state)
{
	CUdeviceptr from, to;
	CUstream streams[2];
	CUevent filled, copied;
	uint32_t got[64];

	for (int i = 0; i < 2; i++) {
		OK(cuCtxSetCurrent(contexts[i]));
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(i ? &to : &from, sizeof got));
		OK(cuEventCreate(i ? &copied : &filled, CU_EVENT_DISABLE_TIMING));
	}
	for (uint32_t round = 1; round <= 200; round++) {
		OK(cuMemsetD32Async(from, round, 64, streams[0]));
		OK(cuEventRecord(filled, streams[0]));
		OK(cuStreamWaitEvent(streams[1], filled, 0));
		OK(cuMemcpyPeerAsync(to, contexts[1], from, contexts[0], sizeof got, streams[1]));
		OK(cuEventRecord(copied, streams[1]));
		OK(cuStreamWaitEvent(streams[0], copied, 0));
		OK(cuMemsetD32Async(from, 0, 64, streams[0]));
		OK(cuStreamSynchronize(streams[1]));
		OK(cuMemcpyDtoH(got, to, sizeof got));
		for (unsigned i = 0; i < 64; i++)
			assert_int_equal(got[i], round);
	}
	OK(cuStreamSynchronize(streams[0]));
	OK(cuMemcpyPeer(to, contexts[1], from, contexts[0], sizeof got));
	OK(cuMemcpyDtoH(got, to, sizeof got));
	assert_int_equal(got[63], 0);
	OK(cuMemFree(from));
	OK(cuMemFree(to));
	OK(cuEventDestroy(filled));
	OK(cuEventDestroy(copied));
	OK(cuStreamDestroy(streams[0]));
	OK(cuStreamDestroy(streams[1]));
	OK(cuCtxSetCurrent(contexts[0]));
}

/* An error stays with the device that it happened on. */
static void errors_stay_where_they_are(void **state)
{
	CUmodule kernels;
	CUfunction trap;
	CUdeviceptr memory;

	OK(cuCtxSetCurrent(contexts[1]));
	OK(cuModuleLoad(&kernels, TALLY_BUILD_DIR "/tests/driver_kernels.so"));
	OK(cuModuleGetFunction(&trap, kernels, "trap"));
	OK(cuLaunchKernel(trap, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuCtxSetCurrent(contexts[0]));
	OK(cuCtxSynchronize());
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemFree(memory));
	OK(cuDevicePrimaryCtxReset_v2(1));
	OK(cuCtxSetCurrent(contexts[1]));
	OK(cuCtxSynchronize());
	OK(cuCtxSetCurrent(contexts[0]));
}

/* A number that makes no sense is said, and there is one. */
static void a_bad_number_means_one(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("TALLY_CPU_DEVICES", "17", 1);
		execl("/proc/self/exe", "devices_test", "count", NULL);
		_exit(99);
	}
	waitpid(child, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_told_apart),
		cmocka_unit_test(each_has_its_contexts),
		cmocka_unit_test(memory_is_a_device_s),
		cmocka_unit_test(libraries_have_their_variables_on_each),
		cmocka_unit_test(peers),
		cmocka_unit_test(copies_and_events_between_them),
		cmocka_unit_test(errors_stay_where_they_are),
		cmocka_unit_test(a_bad_number_means_one),
	};
	int count = 0;

	if (argc > 1)
		return cuInit(0) || cuDeviceGetCount(&count) ? 98 : count;
	setenv("TALLY_CPU_DEVICES", "3", 1);
	return cmocka_run_group_tests_name("devices", tests, start_devices, NULL);
}
