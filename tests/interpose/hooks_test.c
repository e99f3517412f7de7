/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows, inside a program that libtally.so is preloaded into, what dlsym and cuGetProcAddress
 * answer. hooks.sh runs it with the driver of driver.c. Argument "linked" when cuInit is to be
 * found in the global scope as in a program linked with -lcuda, "chain" with chain.c preloaded as
 * well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static void *driver;

static const char *home(void *address)
{
	Dl_info info;
	const char *slash;

	assert_non_null(address);
	assert_true(dladdr(address, &info));
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

/* Runs first: the driver is not loaded yet. */
static void no_driver_no_symbol(void **state)
{
	assert_null(dlsym(RTLD_DEFAULT, "cuInit"));
	assert_non_null(dlerror());
	void *self = dlopen(NULL, RTLD_LAZY);
	assert_null(dlsym(self, "cuInit"));
	assert_non_null(dlerror());
	driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	assert_non_null(driver);
}

static void lookup_by_handle(void **state)
{
	CUresult (*memset8)(CUdeviceptr, unsigned char, size_t);
	CUresult (*count)(int *);
	int n;

	assert_string_equal(home(dlsym(driver, "cuInit")), "libtally.so");
	memset8 = (CUresult (*)(CUdeviceptr, unsigned char, size_t))dlsym(driver, "cuMemsetD8_v2");
	assert_string_equal(home((void *)memset8), "libtally.so");
	assert_int_equal(memset8(0, 0, 0), 5001);
	memset8 = (CUresult (*)(CUdeviceptr, unsigned char, size_t))dlsym(driver,
									  "cuMemsetD8_v2_ptds");
	assert_string_equal(home((void *)memset8), "libtally.so");
	assert_int_equal(memset8(0, 0, 0), 5002);

	/* Not in the table; in the table but not in the driver; in neither. */
	count = (CUresult (*)(int *))dlsym(driver, "cuDeviceGetCount");
	assert_string_equal(home((void *)count), "libcuda.so.1");
	assert_int_equal(count(&n), 5005);
	assert_null(dlsym(driver, "cuMemsetD32_v2"));
	assert_non_null(dlerror());
	assert_null(dlsym(driver, "cuNoSuchThing"));
	assert_non_null(strstr(dlerror(), "cuNoSuchThing"));
}

/* libcuda calls its own cuMemFree_v2 from cuMemFreeHost: that lands in the hook and comes back. */
static void driver_calls_itself(void **state)
{
	CUresult (*free_host)(void *) = (CUresult (*)(void *))dlsym(driver, "cuMemFreeHost");

	assert_int_equal(free_host(NULL), 5003);
}

static void other_libraries_are_untouched(void **state)
{
	void *libm = dlopen("libm.so.6", RTLD_LAZY);

	assert_non_null(libm);
	assert_string_equal(home(dlsym(libm, "cos")), "libm.so.6");
	/* As seen from here the next getppid after the program is libc's or the chain's. */
	assert_non_null(dlsym(RTLD_NEXT, "getppid"));
	assert_non_null(dlsym(RTLD_DEFAULT, "strlen"));
	dlclose(libm);
}

typedef CUresult get_proc_address(const char *, void **, int, cuuint64_t,
				  CUdriverProcAddressQueryResult *);

/* All of it before cuInit. */
static void proc_address(void **state)
{
	static const struct {
		const char *name, *home;
		int version;
		cuuint64_t flags;
		unsigned answer;
	} rows[] = {
		{"cuMemsetD8", "libtally.so", 12000, 0, 5001},
		{"cuMemsetD8", "libtally.so", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, 5001},
		{"cuMemsetD8", "libtally.so", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
		 5002},
		{"cuMemFree", "libtally.so", 13000, 0, 5003},
		{"cuMemFree", "libtally.so", 14000, 0, 5003},
		/* A later version that the table does not know: not ours to touch. */
		{"cuMemFree", "libcuda.so.1", 15000, 0, 5006},
		{"cuStreamDestroy", "libtally.so", 12000, 0, 5004},
	};
	get_proc_address *get = (get_proc_address *)dlsym(driver, "cuGetProcAddress_v2");
	CUdriverProcAddressQueryResult status;
	void *function, *count;

	assert_string_equal(home((void *)get), "libtally.so");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		function = NULL;
		assert_int_equal(
			get(rows[i].name, &function, rows[i].version, rows[i].flags, &status), 0);
		assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
		assert_string_equal(home(function), rows[i].home);
		assert_int_equal(
			((CUresult (*)(CUdeviceptr, unsigned char, size_t))function)(0, 0, 0),
			rows[i].answer);
	}
	assert_int_equal(get("cuNoSuchThing", &function, 12000, 0, &status), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(get("cuDeviceGetCount", &count, 12000, 0, NULL), 0);
	assert_string_equal(home(count), "libcuda.so.1");
	assert_int_equal(get("cuGetProcAddress", &function, 12000, 0, NULL), 0);
	assert_ptr_equal(function, (void *)get);
}

/* Another preloaded library keeps its place in the chain, before us or after us. */
static void chain_goes_on(void **state)
{
	unsigned *calls = dlsym(RTLD_DEFAULT, "chain_calls");
	CUresult (*function)(CUdeviceptr) =
		(CUresult (*)(CUdeviceptr))dlsym(RTLD_DEFAULT, "cuMemFree_v2");
	CUresult (*memset8)(CUdeviceptr, unsigned char, size_t) =
		(CUresult (*)(CUdeviceptr, unsigned char, size_t))dlsym(RTLD_DEFAULT,
									"cuMemsetD8_v2");

	assert_non_null(calls);
	assert_true(getppid() > 0);
	assert_int_equal(*calls, 1);
	assert_int_equal(function(0), 5003);
	assert_int_equal(*calls, 2);
	assert_int_equal(memset8(0, 0, 0), 5001);
	assert_int_equal(*calls, 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest plain[] = {
		cmocka_unit_test(no_driver_no_symbol),
		cmocka_unit_test(lookup_by_handle),
		cmocka_unit_test(driver_calls_itself),
		cmocka_unit_test(other_libraries_are_untouched),
		cmocka_unit_test(proc_address),
	};
	const struct CMUnitTest chain[] = {
		cmocka_unit_test(chain_goes_on),
	};

	if (argc > 1 && !strcmp(argv[1], "chain")) {
		driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
		return cmocka_run_group_tests(chain, NULL, NULL);
	}
	return cmocka_run_group_tests(plain, NULL, NULL);
}
