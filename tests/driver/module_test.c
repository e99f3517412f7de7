/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that every load has variables of its own, that handles of both kinds work everywhere, and
 * that an image that cannot be loaded says why, once. */
#include "driver_tests.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNELS TALLY_BUILD_DIR "/tests/driver_kernels.so"

static void *image;

static int set_up(void **state)
{
	struct stat info;
	int fd = open(KERNELS, O_RDONLY);

	if (fd < 0 || fstat(fd, &info) || !(image = malloc((size_t)info.st_size)) ||
	    read(fd, image, (size_t)info.st_size) != info.st_size)
		return 1;
	close(fd);
	return start_driver(state);
}

static int tear_down(void **state)
{
	free(image);
	return stop_driver(state);
}

static void each_load_has_its_own_variables(void **state)
{
	enum { LOADS = 40 };
	CUmodule loaded[LOADS];
	CUfunction function;
	CUdeviceptr address[LOADS];
	size_t bytes;
	uint32_t values[4];

	for (int i = 0; i < LOADS; i++) {
		OK(cuModuleLoadData(&loaded[i], image));
		OK(cuModuleGetGlobal(&address[i], &bytes, loaded[i], "variable"));
		assert_int_equal(bytes, 16);
		for (int k = 0; k < i; k++)
			assert_true(address[k] != address[i]);
	}
	for (int i = 0; i < LOADS; i++) {
		OK(cuModuleGetFunction(&function, loaded[i], "variable"));
		for (int k = 0; k <= i; k++)
			OK(launch(function, 1, NULL, NULL));
	}
	for (int i = 0; i < LOADS; i++) {
		OK(cuMemcpyDtoH(values, address[i], 16));
		assert_int_equal(values[0], 1 + 100 * (i + 1));
		assert_int_equal(values[1], 8);
		assert_int_equal(values[2], 3);
	}
	/* A name that comes again is another load. */
	for (int i = 0; i < LOADS; i++) {
		OK(cuModuleUnload(loaded[i]));
		OK(cuModuleLoadData(&loaded[i], image));
		OK(cuModuleGetGlobal(&address[i], NULL, loaded[i], "variable"));
		OK(cuMemcpyDtoH(values, address[i], 16));
		assert_int_equal(values[0], 1);
	}
	for (int i = 0; i < LOADS; i++)
		OK(cuModuleUnload(loaded[i]));
}

static void variables_are_device_memory(void **state)
{
	CUdeviceptr address, base;
	unsigned type;
	size_t bytes;
	uint32_t fives[4] = {5, 5, 5, 5};

	OK(cuModuleGetGlobal(&address, &bytes, module, "variable"));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
	assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
	OK(cuMemGetAddressRange(&base, &bytes, address + 4));
	assert_true(base == address && bytes == 16);
	OK(cuMemcpyHtoD(address, fives, 16));
	OK(launch(kernel("variable"), 1, NULL, NULL));
	OK(cuMemcpyDtoH(fives, address, 16));
	assert_int_equal(fives[0], 105);
	assert_int_equal(cuMemFree(address), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuModuleGetGlobal(&address, NULL, module, "nothing"),
			 CUDA_ERROR_NOT_FOUND);
}

static void functions_by_name(void **state)
{
	CUfunction function, again, list[64];
	CUmodule owner;
	const char *name;
	unsigned count;
	CUfunctionLoadingState loading;
	size_t offset, size;

	OK(cuModuleGetFunction(&function, module, "saxpy"));
	OK(cuModuleGetFunction(&again, module, "saxpy"));
	assert_ptr_equal(function, again);
	assert_int_equal(cuModuleGetFunction(&again, module, "nothing"), CUDA_ERROR_NOT_FOUND);
	OK(cuFuncGetModule(&owner, function));
	assert_ptr_equal(owner, module);
	OK(cuFuncGetName(&name, function));
	assert_string_equal(name, "saxpy");
	OK(cuFuncGetParamInfo(function, 1, &offset, &size));
	assert_true(offset == 4 && size == 4);
	OK(cuFuncGetParamInfo(function, 3, &offset, NULL));
	assert_int_equal(offset, 16);
	assert_int_equal(cuFuncGetParamInfo(function, 5, &offset, &size), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncIsLoaded(&loading, function));
	OK(cuModuleGetFunctionCount(&count, module));
	assert_int_equal(count, 16); /* without the variant */
	OK(cuModuleEnumerateFunctions(list, 64, module));
	for (unsigned i = 0; i < count; i++) {
		OK(cuFuncGetName(&name, list[i]));
		assert_null(strchr(name, '$'));
	}
}

static void attributes_and_occupancy(void **state)
{
	CUfunction shared = kernel("shared"), narrow = kernel("narrow");
	int value, blocks, grid, size, workers;
	size_t bytes;

	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, narrow));
	assert_int_equal(value, 64);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, shared));
	assert_int_equal(value, 1024);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared));
	assert_int_equal(value, 48 * 1024 - 1024);
	assert_int_equal(cuFuncSetAttribute(shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					    1 << 20),
			 CUDA_ERROR_INVALID_VALUE);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, narrow, 64, 0));
	assert_int_equal(blocks, 1);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, narrow, 65, 0));
	assert_int_equal(blocks, 0);
	OK(cuDeviceGetAttribute(&workers, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &size, shared, NULL, 0, 0));
	assert_true(grid == workers && size == 1024);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &size, shared, NULL, 0, 100));
	assert_int_equal(size, 100);
	OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, shared, 1, 128));
	assert_int_equal(bytes, 227 * 1024 - 1024);
}

static void libraries_and_kernels(void **state)
{
	CUlibrary library, owner;
	CUkernel k, list[64];
	CUfunction function;
	CUmodule inner;
	CUdeviceptr address;
	size_t bytes, offset;
	const char *name;
	unsigned count;
	int value;
	uint32_t *counts = zeroed(16);
	void *params[] = {&counts};

	OK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&k, library, "count"));
	assert_int_equal(cuLibraryGetKernel(&k, library, "nothing"), CUDA_ERROR_NOT_FOUND);
	OK(cuKernelGetFunction(&function, k));
	OK(cuKernelGetLibrary(&owner, k));
	assert_ptr_equal(owner, library);
	OK(cuKernelGetName(&name, k));
	assert_string_equal(name, "count");
	OK(cuKernelGetParamInfo(k, 0, &offset, &bytes));
	assert_true(offset == 0 && bytes == 8);
	OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
	OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, k, 0));
	OK(cuLibraryGetKernelCount(&count, library));
	OK(cuLibraryEnumerateKernels(list, 64, library));
	OK(cuLibraryGetGlobal(&address, &bytes, library, "constant"));
	assert_int_equal(bytes, 8);
	OK(cuLibraryGetModule(&inner, library));
	OK(cuModuleGetFunction(&function, inner, "count"));
	assert_int_equal(cuModuleUnload(inner), CUDA_ERROR_INVALID_HANDLE);
	/* A CUkernel where a CUfunction is asked for. */
	OK(launch((CUfunction)k, 4, NULL, params));
	OK(launch(function, 4, NULL, params));
	OK(cuLibraryUnload(library));
	for (int i = 0; i < 4; i++)
		assert_int_equal(counts[i], 2);
	assert_int_equal(cuKernelGetLibrary(&owner, (CUkernel)kernel("count")),
			 CUDA_ERROR_INVALID_HANDLE);
	OK(cuLibraryLoadFromFile(&library, KERNELS, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryUnload(library));
	OK(cuMemFree((CUdeviceptr)counts));
}

static void bad_images_say_why(void **state)
{
	CUmodule loaded;
	CUlibrary library;
	CUkernel k;
	char log[200] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof log};

	assert_int_equal(cuModuleLoad(&loaded, "/nowhere"), CUDA_ERROR_FILE_NOT_FOUND);
	assert_int_equal(cuModuleLoadData(&loaded, "hello"), CUDA_ERROR_INVALID_IMAGE);
	assert_int_equal(cuModuleLoadData(&loaded, NULL), CUDA_ERROR_INVALID_VALUE);
	/* A fake compiler that refuses, with a place. */
	setenv("TALLY_LOWER", TALLY_SOURCE_DIR "/tests/cache/fake_lower.sh", 1);
	setenv("FAKE_MODE", "refuse", 1);
	setenv("FAKE_LOG", "/dev/null", 1);
	assert_int_equal(cuModuleLoadDataEx(&loaded, ".version 8.0\nfoo;\n", 2, options, values),
			 CUDA_ERROR_INVALID_PTX);
	assert_string_equal(log, "<image>:12:3: error: kernel k: unknown instruction foo\n");
	assert_int_equal((size_t)values[1], strlen(log));
	values[1] = (void *)10;
	assert_int_equal(cuModuleLoadDataEx(&loaded, ".version 8.0\nfoo;\n", 2, options, values),
			 CUDA_ERROR_INVALID_PTX);
	assert_string_equal(log, "<image>:1");
	/* A library is compiled when its first kernel is asked for. */
	struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t size;
		char rest[16];
	} fatbin = {0xBA55ED50u, 1, 16, 16, "no such thing"};
	OK(cuLibraryLoadData(&library, &fatbin, NULL, NULL, 0, NULL, NULL, 0));
	assert_int_equal(cuLibraryGetKernel(&k, library, "k"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_int_equal(cuLibraryGetKernel(&k, library, "k"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	OK(cuLibraryUnload(library));
	unsetenv("TALLY_LOWER");
	/* An ELF file for x86-64 that is no kernel object. */
	assert_int_equal(cuModuleLoad(&loaded, TALLY_BUILD_DIR "/lib/libcuda.so.1"),
			 CUDA_ERROR_INVALID_IMAGE);
}

static void modules_go_with_their_context(void **state)
{
	CUcontext own;
	CUmodule loaded;
	CUdeviceptr address, base;

	OK(cuCtxCreate(&own, NULL, 0, 0));
	OK(cuModuleLoadData(&loaded, image));
	OK(cuModuleGetGlobal(&address, NULL, loaded, "variable"));
	OK(cuCtxDestroy(own));
	assert_int_equal(cuMemGetAddressRange(&base, NULL, address), CUDA_ERROR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_load_has_its_own_variables),
		cmocka_unit_test(variables_are_device_memory),
		cmocka_unit_test(functions_by_name),
		cmocka_unit_test(attributes_and_occupancy),
		cmocka_unit_test(libraries_and_kernels),
		cmocka_unit_test(bad_images_say_why),
		cmocka_unit_test(modules_go_with_their_context),
	};
	char folder[] = "/tmp/tally-module-XXXXXX";

	if (!mkdtemp(folder))
		return 1;
	setenv("TALLY_CACHE_DIR", folder, 1);
	int failed = cmocka_run_group_tests(tests, set_up, tear_down);
	rmdir(folder);
	return failed;
}
