// SPDX-License-Identifier: Apache-2.0
// What programs do besides arithmetic: textures, printf, assertions, the heap, clocks, voting.
#include <assert.h>
#include <stdio.h>

#include "common.cuh"

// launch: none textures
KERNEL textures(cudaTextureObject_t image, cudaTextureObject_t row, cudaSurfaceObject_t surface, float *out, int n)
{
	int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
	float v = tex2D<float>(image, (float)x + 0.5f, (float)y + 0.5f) + tex1Dfetch<float>(row, x);
	float4 w = tex2D<float4>(image, (float)y, (float)x);

	surf2Dwrite(v, surface, x * 4, y);
	out[y * n + x] = v + w.x + w.w + tex2DLod<float>(image, 0.5f, 0.5f, 1.0f);
}

// launch: none talks
KERNEL talks(const int *in, int *out)
{
	if (in[threadIdx.x] < 0)
		printf("thread %d of block %d: %d %f %s\n", threadIdx.x, blockIdx.x, in[threadIdx.x], 1.5, "negative");
	assert(in[threadIdx.x] != 12345);
	out[threadIdx.x] = in[threadIdx.x] + 1;
}

// launch: none heap
KERNEL heap(int **out, int n)
{
	int *mine = new int[n];

	for (int k = 0; mine && k < n; k++)
		mine[k] = k * (int)threadIdx.x;
	out[threadIdx.x] = mine;
	free(out[threadIdx.x + 256]);
}

// launch: votes grid 4096 block 256 args u32[1048576]:random u32[1048576]:zero
KERNEL votes(const unsigned *in, unsigned *out)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x, v = in[at];
	unsigned mask = __ballot_sync(~0u, v & 1), same = __match_any_sync(~0u, v & 7);
	int all = 0;

	v ^= __match_all_sync(~0u, v >> 30, &all);
	v += (unsigned)all;
	v += __any_sync(~0u, v > 0xfffffff0u) ? 3 : __all_sync(~0u, v > 5);
	v += __reduce_add_sync(same, v) ^ __reduce_min_sync(~0u, v) ^ __popc(mask & ((1u << threadIdx.x % 32) - 1));
	v += (unsigned)__syncthreads_count(v & 2) + (unsigned)__syncthreads_or(v == 77);
	out[at] = v + __shfl_up_sync(~0u, v, 3) + __shfl_sync(~0u, v, (int)(v % 8), 8);
}

// launch: none clocks
KERNEL clocks(long long *out)
{
	long long start = clock64();

	__nanosleep(100);
	__threadfence();
	unsigned sm;
	asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
	unsigned long long timer;
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
	out[threadIdx.x] = clock64() - start + sm + (long long)(timer & 1);
	__threadfence_system();
	if (out[threadIdx.x] < 0)
		__trap();
}

// launch: atomics grid 512 block 256 args i32[1024]:zero u32[1024]:zero u64[1024]:zero
KERNEL atomics(int *a, unsigned *b, unsigned long long *c)
{
	__shared__ int local[64];
	unsigned at = (blockIdx.x * 256 + threadIdx.x) * 17 % 1024;

	if (threadIdx.x < 64)
		local[threadIdx.x] = 0;
	__syncthreads();
	atomicAdd(&local[at % 64], 1);
	atomicMax(&a[at], (int)at);
	atomicMin_block(&a[at], 100000);
	atomicInc(&b[at], 1000);
	atomicXor(&b[at], 0);
	atomicAdd_system(&c[at], 5ull);
	atomicAnd(&c[at], ~0ull);
	__syncthreads();
	if (threadIdx.x < 64)
		atomicAdd(&a[threadIdx.x], local[threadIdx.x] & 0);
}
