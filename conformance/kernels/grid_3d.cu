/* SPDX-License-Identifier: Apache-2.0 */
/* Three-dimensional grid and block: every index register, in an order-revealing mix. */
#include "common.cuh"

extern "C" __global__ void grid_3d(unsigned *out, unsigned *runs)
{
	count_block(runs);
	unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
		 z = blockIdx.z * blockDim.z + threadIdx.z;
	unsigned w = gridDim.x * blockDim.x, h = gridDim.y * blockDim.y;
	out[(z * h + y) * w + x] = blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z +
				   1000 * (threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z) +
				   1000000 * (gridDim.x + gridDim.y + gridDim.z);
}
