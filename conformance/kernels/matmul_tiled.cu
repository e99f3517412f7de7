/* SPDX-License-Identifier: Apache-2.0 */
/* Tiled matrix product: static shared memory, two barriers in a loop. */
#include "common.cuh"

#define TILE 16
extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int n, unsigned *runs)
{
	__shared__ float sa[TILE][TILE], sb[TILE][TILE];
	count_block(runs);
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
	float sum = 0;
	for (int t = 0; t < n / TILE; t++) {
		sa[threadIdx.y][threadIdx.x] = a[y * n + t * TILE + threadIdx.x];
		sb[threadIdx.y][threadIdx.x] = b[(t * TILE + threadIdx.y) * n + x];
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum = __fadd_rn(sum, __fmul_rn(sa[threadIdx.y][k], sb[k][threadIdx.x]));
		__syncthreads();
	}
	c[y * n + x] = sum;
}
