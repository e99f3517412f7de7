/* SPDX-License-Identifier: Apache-2.0 */
/* Each block waits for the sum of the block before it: only prefix order can finish it. */
#include "common.cuh"

extern "C" __global__ void lookback(const int *in, int *out, volatile int *flag, volatile int *sum, unsigned *runs)
{
	__shared__ int before;
	count_block(runs);
	unsigned b = blockIdx.x;
	if (threadIdx.x == 0) {
		int s = 0;
		if (b) {
			while (!flag[b - 1])
				;
			__threadfence();
			s = sum[b - 1];
		}
		before = s;
		for (unsigned k = 0; k < blockDim.x; k++)
			s += in[b * blockDim.x + k];
		sum[b] = s;
		__threadfence();
		flag[b] = 1;
	}
	__syncthreads();
	out[b * blockDim.x + threadIdx.x] = in[b * blockDim.x + threadIdx.x] + before;
}
