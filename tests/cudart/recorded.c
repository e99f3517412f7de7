/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime asks of the driver, call by call: nothing before it is needed, contexts once,
 * code at first use, the right stream, memory kinds, errors and resets. One process a case, since a
 * runtime starts once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtimes/cudart/registration.h"
#include "tests/cudart/recorder.h"

static struct recorder *driver;

/* The log since the last look is exactly this. */
static void expect_calls(const char *log)
{
	assert_string_equal(driver->log, log);
	driver->log[0] = '\0';
}

#define START "cuInit 0\ncuDevicePrimaryCtxRetain 0\ncuCtxSetCurrent 0x1000\n"

static struct {
	unsigned magic, version;
	const void *data;
	void *prelinked;
} wrapper = {0x466243b1, 1, "the code", NULL};
static char kernel_stub, variable_stub;

static void test_lazy(void **state)
{
	void **image = __cudaRegisterFatBinary(&wrapper), *address, *arguments[] = {NULL};
	cudaKernel_t kernel;

	__cudaRegisterFunction(image, &kernel_stub, NULL, "K", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(image, &variable_stub, NULL, "V", 0, 16, 0, 0);
	__cudaRegisterFatBinaryEnd(image);
	assert_int_equal(driver->requests, 0);
	expect_calls("");
	assert_int_equal(__cudaGetKernel(&kernel, &kernel_stub), cudaSuccess);
	expect_calls(START "cuLibraryLoadData the code\ncuLibraryGetKernel K\n");
	assert_int_equal(__cudaLaunchKernel(kernel, (dim3){2, 3, 4}, (dim3){5, 6, 7}, arguments, 8,
					    (cudaStream_t)0x77),
			 cudaSuccess);
	expect_calls("cuLaunchKernel 0x3000 2,3,4 5,6,7 8 stream 0x77\n");
	assert_int_equal(cudaLaunchKernel(&kernel_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments,
					  0, NULL),
			 cudaSuccess);
	expect_calls("cuLaunchKernel 0x3000 1,1,1 1,1,1 0 stream (nil)\n");
	assert_int_equal(cudaGetSymbolAddress(&address, &variable_stub), cudaSuccess);
	assert_ptr_equal(address, (void *)0x4000);
	expect_calls("cuLibraryGetGlobal V\n");
	__cudaUnregisterFatBinary(image);
	expect_calls("cuLibraryUnload 0x2000\n");
	assert_int_equal(cudaLaunchKernel(&kernel_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments,
					  0, NULL),
			 cudaErrorInvalidDeviceFunction);
	expect_calls("");
}

static void *first_user(void *unused)
{
	for (int i = 0; i < 50; i++)
		if (cudaLaunchKernel(&kernel_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0,
				     NULL) != cudaSuccess)
			return NULL;
	return "good";
}

static unsigned occurrences(const char *text)
{
	unsigned count = 0;

	for (const char *at = driver->log; (at = strstr(at, text)); at++)
		count++;
	return count;
}

/* Many threads at once use a runtime, a device and an image for the first time, while others come.
 */
static void test_threads(void **state)
{
	enum { THREADS = 8, IMAGES = 50 };
	static char keys[IMAGES][20];
	void **image = __cudaRegisterFatBinary(&wrapper), **images[IMAGES], *result;
	pthread_t threads[THREADS];

	__cudaRegisterFunction(image, &kernel_stub, NULL, "K", -1, NULL, NULL, NULL, NULL, NULL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, first_user, NULL), 0);
	for (int i = 0; i < IMAGES; i++) {
		images[i] = __cudaRegisterFatBinary(&wrapper);
		for (int f = 0; f < 20; f++)
			__cudaRegisterFunction(images[i], &keys[i][f], NULL, "L", -1, NULL, NULL,
					       NULL, NULL, NULL);
	}
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_non_null(result);
	}
	assert_int_equal(occurrences("cuInit"), 1);
	assert_int_equal(occurrences("cuDevicePrimaryCtxRetain"), 1);
	assert_int_equal(occurrences("cuLibraryLoadData"), 1);
	assert_int_equal(occurrences("cuLaunchKernel"), THREADS * 50);
	for (int i = 0; i < IMAGES; i++)
		__cudaUnregisterFatBinary(images[i]);
	__cudaUnregisterFatBinary(image);
	assert_int_equal(occurrences("cuLibraryUnload"), 1);
}

static void test_failed_load(void **state)
{
	void **image = __cudaRegisterFatBinary(&wrapper);
	cudaKernel_t kernel = NULL;

	__cudaRegisterFunction(image, &kernel_stub, NULL, "K", -1, NULL, NULL, NULL, NULL, NULL);
	assert_int_equal(cudaFree(NULL), cudaSuccess);
	driver->next = CUDA_ERROR_NO_BINARY_FOR_GPU;
	assert_int_equal(__cudaGetKernel(&kernel, &kernel_stub), cudaErrorNoKernelImageForDevice);
	/* nvcc's code launches the null handle that is left: the reason has to survive. */
	assert_int_equal(
		__cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL),
		cudaErrorNoKernelImageForDevice);
	assert_int_equal(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
	assert_int_equal(
		cudaLaunchKernel(&kernel_stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL),
		cudaErrorNoKernelImageForDevice);
	expect_calls(START "cuLibraryLoadData the code\n");
	__cudaUnregisterFatBinary(image);
}

/* Declared by no header for C: what the compiler makes of the names with a per-thread stream. */
cudaError_t cudaMemcpy_ptds(void *, const void *, size_t, enum cudaMemcpyKind);
cudaError_t cudaMemcpyAsync_ptsz(void *, const void *, size_t, enum cudaMemcpyKind, cudaStream_t);
cudaError_t cudaEventRecord_ptsz(cudaEvent_t, cudaStream_t);
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t, cudaHostFn_t, void *);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *, const void *, void **);

static void test_own_streams(void **state)
{
	void **image = __cudaRegisterFatBinary(&wrapper);
	char host[8];
	cudaLaunchAttribute attribute = {.id = cudaLaunchAttributePriority};
	cudaLaunchConfig_t config = {.gridDim = {9, 1, 1},
				     .blockDim = {32, 1, 1},
				     .dynamicSmemBytes = 64,
				     .attrs = &attribute,
				     .numAttrs = 1};

	__cudaRegisterFunction(image, &kernel_stub, NULL, "K", -1, NULL, NULL, NULL, NULL, NULL);
	assert_int_equal(cudaFree(NULL), cudaSuccess);
	expect_calls(START);
	cudaMemcpyAsync((void *)0x9, host, 8, cudaMemcpyHostToDevice, NULL);
	expect_calls("cuMemcpyHtoDAsync 0x9 8 stream (nil)\n");
	cudaMemcpyAsync_ptsz((void *)0x9, host, 8, cudaMemcpyHostToDevice, NULL);
	expect_calls("cuMemcpyHtoDAsync 0x9 8 stream 0x2\n");
	cudaMemcpyAsync_ptsz((void *)0x9, host, 8, cudaMemcpyHostToDevice, (cudaStream_t)0x55);
	expect_calls("cuMemcpyHtoDAsync 0x9 8 stream 0x55\n");
	cudaMemcpy((void *)0x9, host, 8, cudaMemcpyHostToDevice);
	expect_calls("cuMemcpyHtoD 0x9 8\n");
	cudaMemcpy_ptds((void *)0x9, host, 8, cudaMemcpyHostToDevice);
	expect_calls("cuMemcpyHtoDAsync 0x9 8 stream 0x2\ncuStreamSynchronize 0x2\n");
	cudaEventRecord_ptsz(NULL, NULL);
	cudaEventRecord(NULL, cudaStreamLegacy);
	cudaLaunchHostFunc_ptsz(NULL, NULL, NULL);
	__cudaLaunchKernel_ptsz((cudaKernel_t)0x3000, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0,
				NULL);
	expect_calls("cuEventRecord stream 0x2\ncuEventRecord stream 0x1\n"
		     "cuLaunchHostFunc stream 0x2\n"
		     "cuLaunchKernel 0x3000 1,1,1 1,1,1 0 stream 0x2\n");
	cudaLaunchKernelExC(&config, &kernel_stub, NULL);
	cudaLaunchKernelExC_ptsz(&config, &kernel_stub, NULL);
	expect_calls("cuLibraryLoadData the code\ncuLibraryGetKernel K\n"
		     "cuLaunchKernelEx 0x3000 9 32 64 stream (nil) attributes 1 of 8\n"
		     "cuLaunchKernelEx 0x3000 9 32 64 stream 0x2 attributes 1 of 8\n");
	__cudaUnregisterFatBinary(image);
}

static void test_copies(void **state)
{
	char host[64];
	void *to = (void *)0x10;
	struct cudaPitchedPtr box = {(void *)0x100, 64, 20, 4};

	assert_int_equal(cudaFree(NULL), cudaSuccess);
	expect_calls(START);
	cudaMemcpy2D(to, 32, (void *)0x20, 16, 8, 4, cudaMemcpyHostToDevice);
	cudaMemcpy2D(to, 32, (void *)0x20, 16, 8, 4, cudaMemcpyDefault);
	cudaMemcpy2DAsync(to, 32, (void *)0x20, 16, 8, 4, cudaMemcpyDeviceToHost,
			  (cudaStream_t)0x5);
	expect_calls("cuMemcpy2DUnaligned from 1 0x20 pitch 16 to 2 0x10 pitch 32, 8x4\n"
		     "cuMemcpy2DUnaligned from 4 0x20 pitch 16 to 4 0x10 pitch 32, 8x4\n"
		     "cuMemcpy2DAsync from 2 0x20 pitch 16 to 1 0x10 pitch 32, 8x4 stream 0x5\n");
	assert_int_equal(cudaMemcpy2D(to, 32, host, 7, 8, 4, cudaMemcpyHostToDevice),
			 cudaErrorInvalidPitchValue);
	assert_int_equal(cudaMemcpy(host, host, 0, cudaMemcpyHostToHost), cudaSuccess);
	expect_calls("");
	assert_int_equal(cudaMemcpy(host, host, 3, cudaMemcpyHostToHost), cudaSuccess);
	assert_int_equal(cudaMemcpy(to, to, 4, cudaMemcpyDefault), cudaSuccess);
	expect_calls("cuMemcpy 3\ncuMemcpy 4\n");
	/* Whole planes are one; otherwise one each, a slice of the box apart. */
	cudaMemset3D(box, 0x1ff, (struct cudaExtent){20, 4, 3});
	cudaMemset3D(box, 7, (struct cudaExtent){20, 2, 2});
	expect_calls("cuMemsetD2D8 0x100 pitch 64 255 20x12\n"
		     "cuMemsetD2D8 0x100 pitch 64 7 20x2\ncuMemsetD2D8 0x200 pitch 64 7 20x2\n");
}

static void *in_thread(void *unused)
{
	int device = -1;

	assert_int_equal(cudaGetDevice(&device), cudaSuccess);
	assert_int_equal(device, 0);
	assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
	return NULL;
}

static void test_contexts(void **state)
{
	PFN_cuCtxSetCurrent_v4000 set = NULL;
	enum cudaDriverEntryPointQueryResult found;
	pthread_t thread;
	int device;

	/* Questions about devices need no context. */
	assert_int_equal(cudaGetDeviceCount(&device), cudaSuccess);
	assert_int_equal(device, 2);
	assert_int_equal(cudaGetDevice(&device), cudaSuccess);
	expect_calls("cuInit 0\n");
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	expect_calls("cuDevicePrimaryCtxRetain 1\ncuCtxSetCurrent 0x1001\n");
	assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
	assert_int_equal(cudaGetDevice(&device), cudaSuccess);
	assert_int_equal(device, 1);
	assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
	expect_calls("cuCtxSynchronize\n");

	/* A new thread starts with device 0. */
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	expect_calls("cuDevicePrimaryCtxRetain 0\ncuCtxSetCurrent 0x1000\ncuCtxSynchronize\n");

	/* A context that the application made current is not touched. */
	assert_int_equal(cudaGetDriverEntryPointByVersion("cuCtxSetCurrent", (void **)&set, 4000,
							  cudaEnableDefault, &found),
			 cudaSuccess);
	set((CUcontext)0x8001);
	assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
	expect_calls("cuCtxSetCurrent 0x8001\ncuCtxSynchronize\n");
	set((CUcontext)0x1001);
	driver->log[0] = '\0';

	/* After a reset the context is retained anew, by every thread that had it. */
	assert_int_equal(cudaDeviceReset(), cudaSuccess);
	expect_calls("cuDevicePrimaryCtxReset 1\ncuDevicePrimaryCtxRelease 1\n"
		     "cuCtxSetCurrent (nil)\n");
	assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
	expect_calls("cuDevicePrimaryCtxRetain 1\ncuCtxSetCurrent 0x1001\ncuCtxSynchronize\n");
}

static void test_errors(void **state)
{
	void *memory;

	assert_int_equal(cudaFree(NULL), cudaSuccess);
	driver->next = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(cudaMalloc(&memory, 4), cudaErrorMemoryAllocation);
	assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	driver->next = (CUresult)98765; /* of a driver from the future */
	assert_int_equal(cudaMalloc(&memory, 4), cudaErrorUnknown);
	cudaGetLastError();
	driver->next = CUDA_ERROR_INVALID_VALUE; /* what a driver says of a block of no threads */
	assert_int_equal(__cudaLaunchKernel((cudaKernel_t)0x3000, (dim3){1, 1, 1}, (dim3){0, 1, 1},
					    NULL, 0, NULL),
			 cudaErrorInvalidConfiguration);
	cudaGetLastError();
	/* A broken context stays broken until it is reset. */
	driver->next = CUDA_ERROR_ILLEGAL_ADDRESS;
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
	assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
	assert_int_equal(cudaDeviceReset(), cudaSuccess);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void test_fork(void **state)
{
	int status;
	pid_t pid;

	/* Before its start a runtime may be taken into a child. */
	pid = fork();
	if (!pid)
		_exit(cudaFree(NULL) == cudaSuccess ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_calls("");
	assert_int_equal(cudaFree(NULL), cudaSuccess);
	pid = fork();
	if (!pid)
		_exit(cudaFree(NULL) == cudaErrorInitializationError && !strcmp(driver->log, START)
			      ? 0
			      : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
}

static void test_old_driver(void **state)
{
	int version, count;

	driver->version = 12080;
	assert_int_equal(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
	assert_int_equal(cudaDriverGetVersion(&version), cudaSuccess);
	assert_int_equal(version, 12080);
	expect_calls("");
}

static void test_missing_function(void **state)
{
	void *memory;

	driver->missing = "cuMemAlloc";
	assert_int_equal(cudaMalloc(&memory, 4), cudaErrorNotSupported);
	assert_int_equal(cudaMalloc(&memory, 4), cudaErrorNotSupported);
	expect_calls(START);
}

static void test_no_device(void **state)
{
	int count;

	driver->next = CUDA_ERROR_NO_DEVICE;
	assert_int_equal(cudaGetDeviceCount(&count), cudaErrorNoDevice);
	assert_int_equal(count, 0);
	assert_int_equal(cudaFree(NULL), cudaErrorNoDevice);
	expect_calls("cuInit 0\n");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lazy),
		cmocka_unit_test(test_failed_load),
		cmocka_unit_test(test_own_streams),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_old_driver),
		cmocka_unit_test(test_missing_function),
		cmocka_unit_test(test_no_device),
		cmocka_unit_test(test_threads),
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int failed = 0, status;

	driver = library ? dlsym(library, "recorder") : NULL;
	if (!driver) {
		fprintf(stderr, "no recording driver in LD_LIBRARY_PATH\n");
		return 1;
	}
	/* One process each. */
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		pid_t pid = fork();

		if (!pid)
			exit(_cmocka_run_group_tests(tests[i].name, &tests[i], 1, NULL, NULL) != 0);
		failed += pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
	}
	return failed != 0;
}
