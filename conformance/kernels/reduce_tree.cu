/* SPDX-License-Identifier: Apache-2.0 */
/* Block reduction over dynamic shared memory: a barrier in a shrinking loop. */
#include "common.cuh"

extern "C" __global__ void reduce_tree(const int *in, int *out, int n, unsigned *runs)
{
	extern __shared__ int buffer[];
	count_block(runs);
	unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
	buffer[t] = i < (unsigned)n ? in[i] : 0;
	__syncthreads();
	for (unsigned s = 1; s < blockDim.x; s *= 2) {
		int other = t % (2 * s) == 0 && t + s < blockDim.x ? buffer[t + s] : 0;
		__syncthreads();
		buffer[t] += other;
		__syncthreads();
	}
	if (t == 0)
		out[blockIdx.x] = buffer[0];
}
