/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition through padded shared memory, two-dimensional blocks. */
#include "common.cuh"

extern "C" __global__ void transpose(const float *in, float *out, int width, int height, unsigned *runs)
{
	__shared__ float tile[32][33];
	count_block(runs);
	int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
	for (int k = 0; k < 32; k += 8)
		if (x < width && y + k < height)
			tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
	__syncthreads();
	x = blockIdx.y * 32 + threadIdx.x;
	y = blockIdx.x * 32 + threadIdx.y;
	for (int k = 0; k < 32; k += 8)
		if (x < height && y + k < width)
			out[(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];
}
