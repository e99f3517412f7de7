/* SPDX-License-Identifier: Apache-2.0 */
/* Half of the threads return before the barriers of the others. */
#include "common.cuh"

extern "C" __global__ void early_return(const int *in, int *out, int n, unsigned *runs)
{
	__shared__ int buffer[256];
	count_block(runs);
	unsigned t = threadIdx.x;
	if (t >= blockDim.x / 2)
		return;
	buffer[t] = in[blockIdx.x * blockDim.x + t];
	__syncthreads();
	int sum = buffer[(t + 1) % (blockDim.x / 2)] + buffer[t];
	__syncthreads();
	buffer[t] = sum;
	if (t >= 64)
		return;
	__syncthreads();
	out[blockIdx.x * 64 + t] = buffer[t] + buffer[63 - t];
}
