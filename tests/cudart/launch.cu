/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to launch a kernel, the questions about kernels, device variables by symbol. */
#include "check.h"

struct pair {
	double a;
	char b;
};

__device__ int counter = 7;
__constant__ float factors[4] = {1, 2, 3, 4};
#ifndef __clang__ /* which knows managed variables for HIP alone */
__managed__ int shared_number = 100;

__global__ void touch_managed(void)
{
	shared_number += 11;
}

static void managed(void)
{
	int value;

	CHECK(shared_number == 100);
	shared_number = 1;
	touch_managed<<<1, 1>>>();
	OK(cudaDeviceSynchronize());
	CHECK(shared_number == 12);
	OK(cudaMemcpyFromSymbol(&value, shared_number, sizeof(value)));
	CHECK(value == 12);
}
#else
static void managed(void)
{
}
#endif

__global__ void combine(struct pair p, const float *in, float *out, short s)
{
	extern __shared__ float part[];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = in[i] * factors[i % 4];
	__syncthreads();
	out[i] = part[blockDim.x - 1 - threadIdx.x] + (float)p.a + p.b + s;
}

__global__ void count(int by)
{
	atomicAdd(&counter, by);
}

__global__ __launch_bounds__(128) void bounded(int *out)
{
	__shared__ int big[256];

	big[threadIdx.x] = threadIdx.x;
	__syncthreads();
	out[threadIdx.x] = big[127 - threadIdx.x];
}

template <typename T> __global__ void fill(T *out, T value)
{
	out[threadIdx.x] = value;
}

static float *device_in, *device_out;

static void check_combined(struct pair p, short s)
{
	float out[64];

	OK(cudaMemcpy(out, device_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++) {
		int from = (i / 32) * 32 + 31 - i % 32;

		CHECK(out[i] == (float)from * (1 + from % 4) + (float)p.a + p.b + s);
	}
	OK(cudaMemset(device_out, 0, sizeof(out)));
}

static void launches(void)
{
	struct pair p = {2.5, 3};
	short s = -4;
	float in[64];
	void *arguments[] = {&p, &device_in, &device_out, &s};
	cudaLaunchConfig_t config = {};

	for (int i = 0; i < 64; i++)
		in[i] = i;
	OK(cudaMalloc(&device_in, sizeof(in)));
	OK(cudaMalloc(&device_out, sizeof(in)));
	OK(cudaMemcpy(device_in, in, sizeof(in), cudaMemcpyHostToDevice));

	combine<<<2, 32, 32 * sizeof(float)>>>(p, device_in, device_out, s);
	OK(cudaGetLastError());
	check_combined(p, s);

	OK(cudaLaunchKernel((const void *)combine, dim3(2), dim3(32), arguments, 128, 0));
	check_combined(p, s);

	config.gridDim = dim3(2);
	config.blockDim = dim3(32);
	config.dynamicSmemBytes = 128;
	OK(cudaLaunchKernelExC(&config, (const void *)combine, arguments));
	check_combined(p, s);
	OK(cudaLaunchKernelEx(&config, combine, p, (const float *)device_in, device_out, s));
	check_combined(p, s);

	int cooperative;
	OK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
	if (cooperative) {
		OK(cudaLaunchCooperativeKernel((const void *)combine, dim3(2), dim3(32), arguments,
					       128, 0));
		check_combined(p, s);
	}

	cudaFunction_t function;
	OK(cudaGetFuncBySymbol(&function, (const void *)combine));
	CHECK(function != NULL);
	cudaKernel_t kernel;
	OK(cudaGetKernel(&kernel, (const void *)combine));
	OK(cudaLaunchKernel((const void *)kernel, dim3(2), dim3(32), arguments, 128, 0));
	check_combined(p, s);

	double *doubles, back[4];
	OK(cudaMalloc(&doubles, sizeof(back)));
	fill<double><<<1, 4>>>(doubles, 1.25);
	OK(cudaMemcpy(back, doubles, sizeof(back), cudaMemcpyDeviceToHost));
	CHECK(back[3] == 1.25);
	OK(cudaFree(doubles));
}

static void symbols(void)
{
	int value = 0, *address;
	float changed[2] = {20, 30}, all[4];
	size_t size;

	OK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
	CHECK(value == 7);
	count<<<10, 10>>>(2);
	OK(cudaMemcpyFromSymbol(&value, counter, sizeof(value)));
	CHECK(value == 207);
	OK(cudaGetSymbolAddress((void **)&address, counter));
	OK(cudaGetSymbolSize(&size, counter));
	CHECK(size == sizeof(int));
	OK(cudaMemcpy(&value, address, sizeof(value), cudaMemcpyDeviceToHost));
	CHECK(value == 207);
	OK(cudaMemcpyToSymbol(factors, changed, sizeof(changed), sizeof(float)));
	OK(cudaMemcpyFromSymbol(all, factors, sizeof(all)));
	CHECK(all[0] == 1 && all[1] == 20 && all[2] == 30 && all[3] == 4);
	EXPECT(cudaErrorInvalidValue, cudaMemcpyToSymbol(factors, all, sizeof(all), 4));
	EXPECT(cudaErrorInvalidMemcpyDirection,
	       cudaMemcpyToSymbol(factors, all, 4, 0, cudaMemcpyDeviceToHost));
	EXPECT(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&value, &value, 4));
}

static void questions(void)
{
	cudaFuncAttributes attributes;
	int blocks, least, block;
	const char *name;
	size_t offset, size;

	OK(cudaFuncGetAttributes(&attributes, (const void *)bounded));
	CHECK(attributes.maxThreadsPerBlock == 128);
	CHECK(attributes.sharedSizeBytes == 1024);
	OK(cudaFuncSetAttribute((const void *)combine, cudaFuncAttributeMaxDynamicSharedMemorySize,
				64));
	OK(cudaFuncGetAttributes(&attributes, (const void *)combine));
	CHECK(attributes.maxDynamicSharedSizeBytes == 64);
	OK(cudaFuncSetAttribute((const void *)combine, cudaFuncAttributeMaxDynamicSharedMemorySize,
				4096));
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)bounded, 128, 0));
	CHECK(blocks >= 1);
	OK(cudaOccupancyMaxPotentialBlockSize(&least, &block, bounded));
	CHECK(least >= 1 && block >= 1 && block <= 128);
	OK(cudaFuncGetName(&name, (const void *)bounded));
	CHECK(strstr(name, "bounded") != NULL);
	OK(cudaFuncGetParamInfo((const void *)combine, 1, &offset, &size));
	CHECK(offset == 16 && size == 8);
	OK(cudaFuncSetCacheConfig((const void *)combine, cudaFuncCachePreferShared));
}

int main(void)
{
	launches();
	symbols();
	managed();
	questions();
	OK(cudaDeviceSynchronize());
	puts("ok");
	return 0;
}
