/* SPDX-License-Identifier: Apache-2.0 */
/* Shared-memory histogram merged into global memory. */
#include "common.cuh"

extern "C" __global__ void histogram(const unsigned char *in, unsigned *out, int n, unsigned *runs)
{
	__shared__ unsigned bins[256];
	count_block(runs);
	for (unsigned b = threadIdx.x; b < 256; b += blockDim.x)
		bins[b] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
		atomicAdd(&bins[in[i]], 1u);
	__syncthreads();
	for (unsigned b = threadIdx.x; b < 256; b += blockDim.x)
		atomicAdd(&out[b], bins[b]);
}
