/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which image the driver gets for the one that a best-effort program loads, and what the program
 * sees of it. images.sh runs it with libtally.so preloaded, the driver of driver.c and a compiler
 * that puts a line in front of what it is given.
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

#define TEXT ".version 8.0\n.target sm_80\n.global .u32 x;\n"

static void *driver;

#define CALL(symbol) ((__typeof__(&symbol))dlsym(driver, #symbol))

static const char *loaded(const void *image, CUmodule *module)
{
	const void **last = dlsym(driver, "driver_loaded");

	assert_int_equal(CALL(cuModuleLoadData)(module, image), CUDA_SUCCESS);
	return *last;
}

static void text_is_transformed(void **state)
{
	CUfunction all[4] = {NULL};
	unsigned count = 0;
	CUmodule module;

	assert_non_null(strstr(loaded(TEXT, &module), "// transformed"));
	/* The program sees its own kernels, in their order. */
	assert_int_equal(CALL(cuModuleGetFunctionCount)(&count, module), CUDA_SUCCESS);
	assert_int_equal(count, 2);
	assert_int_equal(CALL(cuModuleEnumerateFunctions)(all, 4, module), CUDA_SUCCESS);
	assert_string_equal(*(const char **)all[0], "one");
	assert_string_equal(*(const char **)all[1], "two");
	assert_null(all[2]);
	assert_int_equal(CALL(cuModuleEnumerateFunctions)(all, 1, module), CUDA_SUCCESS);
	assert_int_equal(CALL(cuModuleUnload)(module), CUDA_SUCCESS);
}

static void *link_of(unsigned texts)
{
	CUlinkState link;
	size_t size;
	void *code;

	assert_int_equal(CALL(cuLinkCreate_v2)(0, NULL, NULL, &link), CUDA_SUCCESS);
	for (unsigned i = 0; i < texts; i++)
		assert_int_equal(CALL(cuLinkAddData_v2)(link, CU_JIT_INPUT_PTX, TEXT, sizeof TEXT,
							"text", 0, NULL, NULL),
				 CUDA_SUCCESS);
	assert_int_equal(CALL(cuLinkComplete)(link, &code, &size), CUDA_SUCCESS);
	assert_int_equal(CALL(cuLinkDestroy)(link), CUDA_SUCCESS);
	return code;
}

/* What was linked of several texts is none of them, and is loaded as it is; what was linked of one
 * is that one. This order: the same code is known from then on. */
static void linked_text_is_found(void **state)
{
	CUmodule module;
	void *code = link_of(2);

	assert_ptr_equal(loaded(code, &module), code);
	assert_int_equal(CALL(cuModuleUnload)(module), CUDA_SUCCESS);
	code = link_of(1);
	assert_non_null(strstr(loaded(code, &module), "// transformed"));
	assert_int_equal(CALL(cuModuleUnload)(module), CUDA_SUCCESS);
}

/* Text for a newer device than this is not worth a look. */
static void text_for_newer_devices(void **state)
{
	static struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t size;
		uint16_t kind, entry_version;
		uint32_t entry_header, payload, unused[4], arch, unused_too[2];
		uint64_t flags, padding[2];
		char text[64];
	} fatbin = {.magic = 0xBA55ED50u, .version = 1, .header = 16, .size = 128};
	CUmodule module;

	fatbin.kind = 1;
	fatbin.entry_header = fatbin.payload = 64;
	fatbin.arch = 120;
	strcpy(fatbin.text, TEXT);
	assert_ptr_equal(loaded(&fatbin, &module), &fatbin);
	assert_int_equal(CALL(cuModuleUnload)(module), CUDA_SUCCESS);
	fatbin.arch = 80;
	assert_ptr_not_equal(loaded(&fatbin, &module), &fatbin);
	assert_int_equal(CALL(cuModuleUnload)(module), CUDA_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_transformed),
		cmocka_unit_test(linked_text_is_found),
		cmocka_unit_test(text_for_newer_devices),
	};

	driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	return driver ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
