/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes leave a loop at different times and meet again in a full-warp shuffle. */
#include "common.cuh"

extern "C" __global__ void warp_loop_divergent(const int *in, int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	int v = in[i], steps = 0;
	while (v > 1 && steps < 200) {
		v = v & 1 ? 3 * v + 1 : v / 2;
		steps++;
	}
	__syncwarp();
	for (int d = 16; d; d /= 2)
		steps = max(steps, __shfl_xor_sync(0xffffffffu, steps, d));
	out[i] = steps;
}
