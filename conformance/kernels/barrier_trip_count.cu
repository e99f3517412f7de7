/* SPDX-License-Identifier: Apache-2.0 */
/* A barrier in a loop whose trip count differs from block to block. */
#include "common.cuh"

extern "C" __global__ void barrier_trip_count(int *out, unsigned *runs)
{
	__shared__ int value[128];
	count_block(runs);
	unsigned t = threadIdx.x;
	value[t] = (int)t;
	__syncthreads();
	for (unsigned k = 0; k < blockIdx.x % 7; k++) {
		int next = value[(t + 1) % blockDim.x];
		__syncthreads();
		value[t] = next + (int)k;
		__syncthreads();
	}
	out[blockIdx.x * blockDim.x + t] = value[t];
}
