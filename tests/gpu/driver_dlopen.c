/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of the driver API that links nothing: it opens libcuda.so.1, finds what it needs half
 * by dlsym, half by cuGetProcAddress, and adds one to an array a hundred times. Prints "result N".
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry more(.param .u64 numbers)\n{\n"
			  "\t.reg .b32 %r<6>;\n\t.reg .b64 %rd<5>;\n"
			  "\tld.param.u64 %rd1, [numbers];\n"
			  "\tcvta.to.global.u64 %rd2, %rd1;\n"
			  "\tmov.u32 %r1, %ctaid.x;\n"
			  "\tmov.u32 %r2, %ntid.x;\n"
			  "\tmov.u32 %r3, %tid.x;\n"
			  "\tmad.lo.s32 %r4, %r1, %r2, %r3;\n"
			  "\tmul.wide.u32 %rd3, %r4, 4;\n"
			  "\tadd.s64 %rd4, %rd2, %rd3;\n"
			  "\tld.global.u32 %r5, [%rd4];\n"
			  "\tadd.s32 %r5, %r5, 1;\n"
			  "\tst.global.u32 [%rd4], %r5;\n"
			  "\tret;\n}\n";

enum { BLOCKS = 4096, THREADS = 128, LAUNCHES = 100, COUNT = BLOCKS * THREADS };

typedef CUresult (*get_proc_address)(const char *, void **, int, cuuint64_t,
				     CUdriverProcAddressQueryResult *);

static void *library;
static get_proc_address get;

static void *by_name(const char *name)
{
	void *function = dlsym(library, name);

	if (!function) {
		fprintf(stderr, "driver_dlopen: error: no %s: %s\n", name, dlerror());
		exit(1);
	}
	return function;
}

static void *by_address(const char *name)
{
	CUdriverProcAddressQueryResult how;
	void *function = NULL;

	if (get(name, &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &how) || !function) {
		fprintf(stderr, "driver_dlopen: error: cuGetProcAddress does not know %s\n", name);
		exit(1);
	}
	return function;
}

/* By its name in the library (with the suffix of its version), or by its name without; cuda.h knows
 * both and says the type. */
#define SYMBOL(name)  __typeof__(name) *name##_ = (__typeof__(name) *)by_name(#name)
#define ADDRESS(name) __typeof__(name) *name##_ = (__typeof__(name) *)by_address(#name)
#define OK(call)                                                                                   \
	do {                                                                                       \
		CUresult result = (call);                                                          \
		if (result) {                                                                      \
			printf("error %d %s\n", result, #call);                                    \
			return 3;                                                                  \
		}                                                                                  \
	} while (0)

int main(void)
{
	static unsigned numbers[COUNT];
	unsigned long long sum = 0;
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction more;
	CUdeviceptr memory;
	void *parameters[] = {&memory};

	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "driver_dlopen: error: %s\n", dlerror());
		return 1;
	}
	get = (get_proc_address)by_name("cuGetProcAddress_v2");
	SYMBOL(cuInit);
	SYMBOL(cuDeviceGet);
	SYMBOL(cuDevicePrimaryCtxRetain);
	SYMBOL(cuCtxSetCurrent);
	SYMBOL(cuModuleLoadData);
	SYMBOL(cuMemAlloc_v2);
	ADDRESS(cuModuleGetFunction);
	ADDRESS(cuMemsetD8);
	ADDRESS(cuMemcpyDtoH);
	ADDRESS(cuCtxSynchronize);
	ADDRESS(cuLaunchKernel);

	OK(cuInit_(0));
	OK(cuDeviceGet_(&device, 0));
	OK(cuDevicePrimaryCtxRetain_(&context, device));
	OK(cuCtxSetCurrent_(context));
	OK(cuModuleLoadData_(&module, ptx));
	OK(cuModuleGetFunction_(&more, module, "more"));
	OK(cuMemAlloc_v2_(&memory, sizeof numbers));
	OK(cuMemsetD8_(memory, 0, sizeof numbers));
	for (int i = 0; i < LAUNCHES; i++)
		OK(cuLaunchKernel_(more, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize_());
	OK(cuMemcpyDtoH_(numbers, memory, sizeof numbers));
	for (int i = 0; i < COUNT; i++)
		sum += numbers[i];
	printf("result %llu\n", sum);
	return sum == (unsigned long long)COUNT * LAUNCHES ? 0 : 4;
}
