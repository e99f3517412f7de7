/* SPDX-License-Identifier: Apache-2.0 */
/* any, all, uniform and ballot votes, whole warps and parts of them. */
#include "common.cuh"

extern "C" __global__ void votes(const int *in, unsigned *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
	int v = in[i];
	unsigned r = __ballot_sync(0xffffffffu, v & 1);
	r ^= __any_sync(0xffffffffu, v == 7) << 3;
	r ^= __all_sync(0xffffffffu, v < 90) << 5;
	r ^= __uni_sync(0xffffffffu, v > 50) << 7;
	if (lane & 1)
		r += __ballot_sync(0xaaaaaaaau, v & 2);
	else
		r -= __popc(__ballot_sync(0x55555555u, v & 4));
	out[i] = r;
}
