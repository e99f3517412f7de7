/* SPDX-License-Identifier: Apache-2.0 */
/* Shows what the driver says before and after cuInit: device, contexts, errors, functions by name.
 */
#include "driver_tests.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void nothing_works_before_init(void **state)
{
	int count, version;
	CUdeviceptr memory;
	CUcontext current;
	CUstream stream;
	void *function;
	CUdriverProcAddressQueryResult found;

	assert_int_equal(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuMemAlloc(&memory, 4), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuCtxGetCurrent(&current), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
	OK(cuDriverGetVersion(&version));
	assert_true(version >= 13000);
	OK(cuGetProcAddress("cuInit", &function, 13000, 0, &found));
	assert_int_equal(found, CU_GET_PROC_ADDRESS_SUCCESS);
	assert_int_equal(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	OK(cuInit(0));
	OK(cuInit(0));
	assert_int_equal(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
}

static void device_describes_itself(void **state)
{
	static const struct {
		CUdevice_attribute attribute;
		int value;
	} expected[] = {
		{CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
		{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
		{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
		{CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 0},
	};
	CUdevice device, again;
	CUuuid uuid, same, none = {{0}};
	char name[64], bus[32];
	int value, count;

	OK(cuDeviceGetCount(&count));
	assert_int_equal(count, 1);
	OK(cuDeviceGet(&device, 0));
	assert_int_equal(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetName(name, sizeof name, 0));
	assert_string_equal(name, "Tally CPU device");
	OK(cuDeviceGetName(name, 6, 0));
	assert_string_equal(name, "Tally");
	OK(cuDeviceGetUuid(&uuid, 0));
	OK(cuDeviceGetUuid(&same, 0));
	assert_memory_equal(&uuid, &same, 16);
	assert_memory_not_equal(&uuid, &none, 16);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		OK(cuDeviceGetAttribute(&value, expected[i].attribute, 0));
		assert_int_equal(value, expected[i].value);
	}
	for (int a = 1; a < CU_DEVICE_ATTRIBUTE_MAX; a++)
		OK(cuDeviceGetAttribute(&value, (CUdevice_attribute)a, 0));
	assert_int_equal(cuDeviceGetAttribute(&value, (CUdevice_attribute)9999, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1),
			 CUDA_ERROR_INVALID_DEVICE);
	OK(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
	OK(cuDeviceGetByPCIBusId(&again, bus));
	assert_int_equal(cuDeviceGetByPCIBusId(&again, "0000:01:00.0"), CUDA_ERROR_INVALID_DEVICE);
}

static void number_of_workers_can_be_set(void **state)
{
	pid_t child = fork();
	int status;

	if (!child) {
		/* This process has begun with another number: only a new one reads it. */
		setenv("TALLY_CPU_WORKERS", "7", 1);
		execl("/proc/self/exe", "core_test", "workers", NULL);
		_exit(99);
	}
	waitpid(child, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void contexts_form_a_stack(void **state)
{
	CUcontext primary, a, b, current, popped;
	unsigned flags, version;
	unsigned long long id_a, id_b;
	int active;
	CUdevice device;

	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 0);
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	assert_int_equal(active, 1);
	OK(cuCtxSetCurrent(primary));
	OK(cuCtxCreate(&a, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
	OK(cuCtxGetFlags(&flags));
	assert_int_equal(flags, CU_CTX_SCHED_BLOCKING_SYNC);
	OK(cuCtxCreate(&b, NULL, 0, 0));
	OK(cuCtxGetId(a, &id_a));
	OK(cuCtxGetId(b, &id_b));
	assert_true(id_a != id_b);
	OK(cuCtxGetApiVersion(b, &version));
	OK(cuCtxGetDevice(&device));
	OK(cuCtxPopCurrent(&popped));
	assert_ptr_equal(popped, b);
	OK(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, a);
	OK(cuCtxPushCurrent(b));
	OK(cuCtxDestroy(b));
	OK(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, a);
	assert_int_equal(cuCtxPushCurrent(b), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxDestroy(a));
	OK(cuCtxGetCurrent(&current));
	assert_ptr_equal(current, primary);
	assert_int_equal(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuDevicePrimaryCtxRelease(0));
	assert_int_equal(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(NULL));
	assert_int_equal(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
}

static void *use_destroyed(void *argument)
{
	CUdeviceptr memory;

	OK(cuCtxSetCurrent(((CUcontext *)argument)[0]));
	((_Atomic bool *)((CUcontext *)argument)[1])[0] = true;
	while (((_Atomic bool *)((CUcontext *)argument)[1])[0])
		sleep_ms(1);
	assert_int_equal(cuMemAlloc(&memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	return NULL;
}

static void other_threads_learn_of_a_destroyed_context(void **state)
{
	CUcontext doomed;
	_Atomic bool ready = false;
	pthread_t thread;

	OK(cuCtxCreate(&doomed, NULL, 0, 0));
	void *arguments[] = {doomed, &ready};
	pthread_create(&thread, NULL, use_destroyed, arguments);
	while (!ready)
		sleep_ms(1);
	OK(cuCtxDestroy(doomed));
	ready = false;
	pthread_join(thread, NULL);
}

static void limits_and_settings(void **state)
{
	CUcontext own;
	size_t value;
	CUfunc_cache cache;

	OK(cuCtxCreate(&own, NULL, 0, 0));
	OK(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
	assert_int_equal(value, 1 << 20);
	OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20));
	OK(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
	assert_int_equal(value, 2 << 20);
	assert_int_equal(cuCtxGetLimit(&value, (CUlimit)15), CUDA_ERROR_UNSUPPORTED_LIMIT);
	OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
	OK(cuCtxGetCacheConfig(&cache));
	assert_int_equal(cache, CU_FUNC_CACHE_PREFER_L1);
	OK(cuCtxDestroy(own));
}

static void errors_have_names(void **state)
{
	const char *text;

	OK(cuGetErrorName(CUDA_ERROR_NOT_READY, &text));
	assert_string_equal(text, "CUDA_ERROR_NOT_READY");
	OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	assert_string_equal(text, "out of memory");
	OK(cuGetErrorString(CUDA_SUCCESS, &text));
	assert_string_equal(text, "no error");
	OK(cuGetErrorString(CUDA_ERROR_STREAM_CAPTURE_MERGE, &text));
	assert_string_equal(text, "stream capture merge");
	assert_int_equal(cuGetErrorName((CUresult)123456, &text), CUDA_ERROR_INVALID_VALUE);
	assert_null(text);
}

/* The function that (name, version, flags) leads to, by the name under which it is exported. */
static void finds(const char *name, int version, cuuint64_t flags, const char *exported)
{
	void *function = (void *)1;
	CUdriverProcAddressQueryResult found;

	OK(cuGetProcAddress(name, &function, version, flags, &found));
	assert_int_equal(found, CU_GET_PROC_ADDRESS_SUCCESS);
	assert_non_null(function);
	assert_ptr_equal(function, dlsym(RTLD_DEFAULT, exported));
}

static void functions_by_name_and_version(void **state)
{
	const cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
			 legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
	void *function = (void *)1;
	CUdriverProcAddressQueryResult found;

	finds("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
	finds("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
	finds("cuMemAlloc", 3010, 0, "cuMemAlloc");
	finds("cuCtxCreate", 12040, 0, "cuCtxCreate_v3");
	finds("cuCtxCreate", 13000, 0, "cuCtxCreate_v4");
	finds("cuLaunchKernel", 13000, legacy, "cuLaunchKernel");
	finds("cuLaunchKernel", 13000, own, "cuLaunchKernel_ptsz");
	finds("cuMemcpyHtoD", 13000, own, "cuMemcpyHtoD_v2_ptds");
	finds("cuMemFree", 13000, own, "cuMemFree_v2");
	finds("cuStreamGetCaptureInfo", 11040, own, "cuStreamGetCaptureInfo_v2_ptsz");
	finds("cuGetProcAddress", 13000, 0, "cuGetProcAddress_v2");
	finds("cuLinkCreate", 13000, 0, "cuLinkCreate_v2");
	finds("cuProfilerStart", 13000, 0, "cuProfilerStart");
	/* What the device does not do is there and says so. */
	finds("cuGraphCreate", 13000, 0, "cuGraphCreate");
	OK(cuGetProcAddress("cuNothing", &function, 13000, 0, &found));
	assert_int_equal(found, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	assert_null(function);
	OK(cuGetProcAddress("cuLibraryLoadData", &function, 11000, 0, &found));
	assert_int_equal(found, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	assert_int_equal(cuGetProcAddress("cuInit", &function, 13000, 8, &found),
			 CUDA_ERROR_INVALID_VALUE);
}

static void what_is_not_there_is_named_once(void **state)
{
	char path[] = "/tmp/tally-driver-XXXXXX", text[512] = "";
	int file = mkstemp(path), saved = dup(STDERR_FILENO);

	setenv("TALLY_LOG", "1", 1);
	dup2(file, STDERR_FILENO);
	CUresult first = cuTexObjectDestroy(0), second = cuTexObjectDestroy(0);
	dup2(saved, STDERR_FILENO);
	close(saved);
	unsetenv("TALLY_LOG");
	assert_true(pread(file, text, sizeof text - 1, 0) > 0);
	close(file);
	unlink(path);
	assert_int_equal(first, CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(second, CUDA_ERROR_NOT_SUPPORTED);
	assert_string_equal(text, "tally: the CPU device does not do cuTexObjectDestroy: "
				  "CUDA_ERROR_NOT_SUPPORTED\n");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_works_before_init),
		cmocka_unit_test(device_describes_itself),
		cmocka_unit_test(number_of_workers_can_be_set),
		cmocka_unit_test(contexts_form_a_stack),
		cmocka_unit_test(other_threads_learn_of_a_destroyed_context),
		cmocka_unit_test(limits_and_settings),
		cmocka_unit_test(errors_have_names),
		cmocka_unit_test(functions_by_name_and_version),
		cmocka_unit_test(what_is_not_there_is_named_once),
	};

	if (argc > 1) {
		int count = -1;
		if (cuInit(0) ||
		    cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0))
			return 98;
		return count;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
