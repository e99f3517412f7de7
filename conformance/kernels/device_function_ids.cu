/* SPDX-License-Identifier: Apache-2.0 */
/* Block and grid ids read inside a function that is not inlined. */
#include "common.cuh"

static __device__ __noinline__ unsigned where(unsigned salt)
{
	return (blockIdx.y * gridDim.x + blockIdx.x) * 1000 + threadIdx.x + salt * gridDim.y;
}
static __device__ __noinline__ unsigned outer(unsigned salt)
{
	return where(salt) + where(salt + 1) * 2;
}
extern "C" __global__ void device_function_ids(unsigned *out, unsigned *runs)
{
	count_block(runs);
	out[(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = outer(threadIdx.x & 3);
}
