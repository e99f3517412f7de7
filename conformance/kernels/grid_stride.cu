/* SPDX-License-Identifier: Apache-2.0 */
/* A grid-stride loop: correct only when gridDim is the original grid's. */
#include "common.cuh"

extern "C" __global__ void grid_stride(const int *in, int *out, int n, unsigned *runs)
{
	count_block(runs);
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = in[i] * 3 + (int)gridDim.x;
}
