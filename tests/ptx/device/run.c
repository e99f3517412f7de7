/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the tables of PTX cases on a device, through CUDA's driver: $TALLY_TEST_DRIVER or
 * libcuda.so.1. On an NVIDIA GPU that shows whether the expected values are the hardware's; on the
 * CPU device the whole way from text to result. What the driver does not compile (forms of newer
 * machines) is counted and named, not wrong; -q names none.
 */
#include "tests/ptx/run.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "tests/ptx/case.h"
#include "tests/ptx/device/cmocka.h"

size_t device_wrong;

/* The functions of the driver that are called, by the name that libcuda exports. */
#define DRIVER(X)                                                                                  \
	X(cuInit, (unsigned))                                                                      \
	X(cuDeviceGet, (CUdevice *, int))                                                          \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
	X(cuCtxSetCurrent, (CUcontext))                                                            \
	X(cuModuleLoadData, (CUmodule *, const void *))                                            \
	X(cuModuleUnload, (CUmodule))                                                              \
	X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
	X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
	X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                    \
	X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                          \
	X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
			   unsigned, CUstream, void **, void **))

#define MEMBER(name, arguments) CUresult(*name) arguments;
static struct {
	DRIVER(MEMBER)
} driver;

static CUdeviceptr buffer; /* 32 bytes of input, 8 of output behind them */

static void check(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: error %d\n", what, (int)result);
	exit(1);
}

static void start(void)
{
	const char *path = getenv("TALLY_TEST_DRIVER");
	void *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW);
	CUdevice device;
	CUcontext context;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
#define LOAD(name, arguments)                                                                      \
	*(void **)&driver.name = dlsym(library, #name);                                            \
	if (!driver.name)                                                                          \
		check(CUDA_ERROR_NOT_FOUND, #name);
	DRIVER(LOAD)
	check(driver.cuInit(0), "cuInit");
	check(driver.cuDeviceGet(&device, 0), "cuDeviceGet");
	check(driver.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent");
	check(driver.cuMemAlloc_v2(&buffer, 64), "cuMemAlloc");
}

/* The module of cases [from, to); NULL when the driver does not take it. */
static CUmodule load(const struct ptx_case *cases, size_t from, size_t to)
{
	struct tally_buffer text = {0};
	CUmodule module = NULL;

	tally_buffer_print(&text, ".version 8.6\n.target sm_90\n.address_size 64\n"
				  ".shared .align 16 .b8 pool[64];\n");
	for (size_t i = from; i < to; i++)
		ptx_write_kernel(&text, i, &cases[i]);
	if (driver.cuModuleLoadData(&module, text.data) != CUDA_SUCCESS)
		module = NULL;
	tally_buffer_free(&text);
	return module;
}

static bool is_nan32(uint64_t bits)
{
	return (bits & 0x7fffffff) > 0x7f800000;
}

/* The payload of a NaN is the machine's own: NVIDIA's answer 0x7fffffff, x86-64 keeps the
 * operand's. */
static bool same(const struct ptx_case *c, uint64_t result)
{
	return result == c->expected ||
	       (c->result == 'f' && is_nan32(result) && is_nan32(c->expected));
}

static size_t run_one(CUmodule module, const struct ptx_case *c, size_t number)
{
	CUdeviceptr in = buffer, out = buffer + 32;
	void *parameters[] = {&in, &out};
	uint64_t memory[5] = {0}, result = 0;
	CUfunction function;
	char name[32];

	snprintf(name, sizeof name, "k%zu", number);
	check(driver.cuModuleGetFunction(&function, module, name), name);
	memcpy(memory, c->input, sizeof c->input);
	check(driver.cuMemcpyHtoD_v2(buffer, memory, sizeof memory), "cuMemcpyHtoD");
	check(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
	      c->code);
	check(driver.cuMemcpyDtoH_v2(&result, out, sizeof result), c->code);
	if (same(c, result))
		return 0;
	fprintf(stderr, "%s\n  inputs %llx %llx %llx %llx: %llx, expected %llx\n", c->code,
		(unsigned long long)c->input[0], (unsigned long long)c->input[1],
		(unsigned long long)c->input[2], (unsigned long long)c->input[3],
		(unsigned long long)result, (unsigned long long)c->expected);
	return 1;
}

/* A range that does not load is halved until the one that the driver refuses is alone. */
static size_t run_range(const struct ptx_case *cases, size_t from, size_t to, size_t *refused)
{
	CUmodule module = load(cases, from, to);
	size_t wrong = 0, middle = from + (to - from) / 2;

	if (!module && to - from > 1)
		return run_range(cases, from, middle, refused) +
		       run_range(cases, middle, to, refused);
	if (!module) {
		printf("     not taken: %s\n", cases[from].code);
		++*refused;
		return 0;
	}
	for (size_t i = from; i < to; i++)
		wrong += run_one(module, &cases[i], i);
	driver.cuModuleUnload(module);
	return wrong;
}

size_t ptx_run(const struct ptx_case *cases, size_t count)
{
	size_t refused = 0, wrong;

	if (!buffer)
		start();
	wrong = run_range(cases, 0, count, &refused);
	printf("     %zu cases, %zu wrong, %zu not taken\n", count, wrong, refused);
	return wrong;
}
