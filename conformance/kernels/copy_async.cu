/* SPDX-License-Identifier: Apache-2.0 */
/* cp.async with two buffers: while one is used the other is filled; commit and wait by group. */
#include "common.cuh"

extern "C" __global__ void copy_async(const int *in, int *out, int rounds, unsigned *runs)
{
	__shared__ __align__(16) int buffer[2][256];
	count_block(runs);
	int t = threadIdx.x, sum = 0;
	in += blockIdx.x * rounds * 256;
	for (int i = 0; i <= rounds; i++) {
		if (i < rounds) {
			/* The last thread copies 8 bytes of its 16: the rest becomes zero. */
			int given = t == 63 ? 8 : 16;
			asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
				     :
				     : "r"((unsigned)__cvta_generic_to_shared(&buffer[i & 1][4 * t])),
				       "l"(in + i * 256 + 4 * t), "r"(given)
				     : "memory");
		}
		asm volatile("cp.async.commit_group;" ::: "memory");
		if (i == 0)
			continue;
		asm volatile("cp.async.wait_group 1;" ::: "memory");
		__syncthreads();
		for (int k = 0; k < 4; k++)
			sum = sum * 3 + buffer[(i - 1) & 1][(4 * t + 5 * k + 7) & 255];
		__syncthreads();
	}
	asm volatile("cp.async.wait_all;" ::: "memory");
	out[blockIdx.x * 64 + t] = sum;
}
