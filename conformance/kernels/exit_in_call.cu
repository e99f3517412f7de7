/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that ends itself inside a nested call, before the others' barrier. */
#include "common.cuh"

static __device__ __noinline__ void leave(int v)
{
	if (v % 3 == 0)
		asm volatile("exit;");
}
extern "C" __global__ void exit_in_call(const int *in, int *out, unsigned *runs)
{
	__shared__ int count;
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	if (threadIdx.x == 0)
		count = 0;
	__syncthreads();
	leave(in[i]);
	atomicAdd(&count, 1);
	__syncthreads();
	out[i] = count;
}
