/* SPDX-License-Identifier: Apache-2.0 */
/* Shuffles inside diverged branches, each with the mask of its own lanes. */
#include "common.cuh"

extern "C" __global__ void shuffle_divergent(const int *in, int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
	int v = in[i];
	if (lane < 16) {
		v = __shfl_xor_sync(0x0000ffffu, v, 5);
		if (lane % 2)
			v += __shfl_down_sync(0x0000aaaau, v, 2, 16);
		else
			v -= __shfl_up_sync(0x00005555u, v, 4, 16);
	} else {
		v = __shfl_sync(0xffff0000u, v, 16 + (lane * 7) % 16);
	}
	v += __shfl_sync(0xffffffffu, v, lane + 3, 8);
	out[i] = v;
}
