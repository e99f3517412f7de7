/* SPDX-License-Identifier: Apache-2.0 */
/* __syncthreads_count, _and and _or, with partial warps. */
#include "common.cuh"

extern "C" __global__ void barrier_reduce(const int *in, int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	int v = in[i];
	int c = __syncthreads_count(v & 1);
	int a = __syncthreads_and(v < 99), o = __syncthreads_or(v == 42);
	out[i] = c * 4 + (a ? 2 : 0) + (o ? 1 : 0);
}
