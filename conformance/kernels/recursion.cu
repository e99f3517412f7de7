/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive device function. */
#include "common.cuh"

static __device__ __noinline__ unsigned ackermann(unsigned m, unsigned n)
{
	if (m == 0)
		return n + 1;
	if (n == 0)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}
extern "C" __global__ void recursion(unsigned *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = ackermann(i % 3, i % 5);
}
