/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime library does without a driver: errors by name, versions, launch configurations,
 * the last error of each thread, functions that are not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtimes/cudart/registration.h"

/* Every enumerator of the toolkit's header, by number and by name. */
static void test_error_names(void **state)
{
	FILE *header = fopen(CUDA_INCLUDE "/driver_types.h", "r");
	char line[1024], name[128];
	int code, count = 0;

	assert_non_null(header);
	while (fgets(line, sizeof(line), header)) {
		if (sscanf(line, " cuda%100[A-Za-z0-9] = %d", name, &code) != 2 ||
		    (strncmp(name, "Error", 5) && strcmp(name, "Success")))
			continue;
		memmove(name + 4, name, strlen(name) + 1);
		memcpy(name, "cuda", 4);
		if (!strcmp(name, "cudaErrorApiFailureBase")) /* a base to add to, no error */
			continue;
		assert_string_equal(cudaGetErrorName(code), name);
		assert_true(strlen(cudaGetErrorString(code)) > 4);
		assert_string_not_equal(cudaGetErrorString(code), "unrecognized error code");
		count++;
	}
	fclose(header);
	assert_true(count > 100);
	assert_string_equal(cudaGetErrorName(12345), "unrecognized error code");
	assert_string_equal(cudaGetErrorString(-1), "unrecognized error code");
	assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
}

static void test_without_driver(void **state)
{
	static struct {
		unsigned magic, version;
		const void *data;
		void *prelinked;
	} wrapper = {0x466243b1, 1, "no code", NULL};
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	cudaKernel_t kernel;
	int count = 5, version = 5;
	void *memory, **image;

	if (driver) {
		dlclose(driver);
		skip(); /* this machine has one */
	}
	assert_int_equal(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
	assert_int_equal(count, 0);
	assert_int_equal(cudaGetLastError(), cudaErrorInsufficientDriver);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	assert_int_equal(cudaMalloc(&memory, 4), cudaErrorInsufficientDriver);
	assert_int_equal(cudaPeekAtLastError(), cudaErrorInsufficientDriver);
	assert_int_equal(cudaDriverGetVersion(&version), cudaSuccess);
	assert_int_equal(version, 0);
	assert_int_equal(cudaRuntimeGetVersion(&version), cudaSuccess);
	assert_int_equal(version, CUDART_VERSION);

	/* Announcing code needs no driver; using it does. */
	image = __cudaRegisterFatBinary(&wrapper);
	assert_non_null(image);
	__cudaRegisterFunction(image, (const char *)&count, NULL, "kernel", -1, NULL, NULL, NULL,
			       NULL, NULL);
	__cudaRegisterFatBinaryEnd(image);
	assert_int_equal(__cudaGetKernel(&kernel, &count), cudaErrorInsufficientDriver);
	assert_int_equal(__cudaInitModule(image), 0);
	__cudaUnregisterFatBinary(image);
}

/* Tables grow, images leave, others come: no name is lost or mixed up (and nothing leaks). */
static void test_registration(void **state)
{
	enum { IMAGES = 40, FUNCTIONS = 200 };
	static char keys[IMAGES][FUNCTIONS];
	static struct {
		unsigned magic, version;
		const void *data;
		void *prelinked;
	} wrapper = {0x466243b1, 1, "no code", NULL};
	void **images[IMAGES];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < IMAGES; i++) {
			images[i] = __cudaRegisterFatBinary(&wrapper);
			for (int f = 0; f < FUNCTIONS; f++)
				__cudaRegisterFunction(images[i], &keys[i][f], NULL, "kernel", -1,
						       NULL, NULL, NULL, NULL, NULL);
			__cudaRegisterVar(images[i], (char *)&images[i], NULL, "variable", 0, 4, 0,
					  0);
			__cudaRegisterFatBinaryEnd(images[i]);
		}
		for (int i = 0; i < IMAGES; i++)
			__cudaUnregisterFatBinary(images[(i * 7) % IMAGES]);
	}
	images[0] = __cudaRegisterFatBinary("not a wrapper of device code");
	assert_non_null(images[0]);
	__cudaUnregisterFatBinary(images[0]);
}

static void test_configurations(void **state)
{
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;

	assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared, &stream),
			 cudaErrorMissingConfiguration);
	for (unsigned i = 1; i <= 3; i++)
		assert_int_equal(__cudaPushCallConfiguration((dim3){i, 2, 3}, (dim3){4, 5, i},
							     100 * i, (cudaStream_t)(uintptr_t)i),
				 0);
	for (unsigned i = 3; i >= 1; i--) {
		assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
		assert_true(grid.x == i && grid.z == 3 && block.y == 5 && block.z == i);
		assert_true(shared == 100 * i && stream == (cudaStream_t)(uintptr_t)i);
	}
	/* Deeper than anybody nests: refused, and what was pushed is still there. */
	unsigned depth = 0;
	while (depth < 1000 && !__cudaPushCallConfiguration(grid, block, depth, NULL))
		depth++;
	assert_in_range(depth, 4, 999);
	while (depth--) {
		assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), 0);
		assert_int_equal(shared, depth);
	}
	cudaGetLastError();
}

static void *other_thread(void *unused)
{
	cudaError_t mine = cudaPeekAtLastError();

	cudaMemcpy(NULL, NULL, 4, (enum cudaMemcpyKind)99);
	return (void *)(uintptr_t)(mine == cudaSuccess &&
				   cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
}

static void test_last_error_is_of_the_thread(void **state)
{
	pthread_t thread;
	void *result;

	assert_int_equal(cudaMalloc(NULL, 4), cudaErrorInvalidValue);
	assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_non_null(result);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void test_unsupported_says_so_once(void **state)
{
	char text[512] = "";
	int saved = dup(STDERR_FILENO), ends[2];
	cudaArray_t array = NULL;

	assert_int_equal(pipe(ends), 0);
	dup2(ends[1], STDERR_FILENO);
	assert_int_equal(cudaFreeArray(array), cudaErrorNotSupported);
	assert_int_equal(cudaFreeArray(array), cudaErrorNotSupported);
	dup2(saved, STDERR_FILENO);
	close(ends[1]);
	assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
	close(ends[0]);
	close(saved);
	assert_string_equal(text, "libcudart.so.13 (Tally): cudaFreeArray is not supported\n");
	assert_int_equal(cudaGetLastError(), cudaErrorNotSupported);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_error_names),
		cmocka_unit_test(test_without_driver),
		cmocka_unit_test(test_registration),
		cmocka_unit_test(test_configurations),
		cmocka_unit_test(test_last_error_is_of_the_thread),
		cmocka_unit_test(test_unsupported_says_so_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
