/* SPDX-License-Identifier: Apache-2.0 */
/* Inclusive scan of a block by shuffles and shared memory; any block size, partial warps too. */
#include "common.cuh"

extern "C" __global__ void block_scan(const int *in, int *out, unsigned *runs)
{
	__shared__ int sums[32];
	count_block(runs);
	unsigned t = threadIdx.x, lane = t % 32, warp = t / 32, i = blockIdx.x * blockDim.x + t;
	unsigned lanes = min(blockDim.x - warp * 32, 32u);
	unsigned mask = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
	int v = in[i];
	for (unsigned d = 1; d < 32; d *= 2) {
		int other = __shfl_up_sync(mask, v, d);
		if (lane >= d)
			v += other;
	}
	if (lane == lanes - 1)
		sums[warp] = v;
	__syncthreads();
	for (unsigned w = 0; w < warp; w++)
		v += sums[w];
	out[i] = v;
}
