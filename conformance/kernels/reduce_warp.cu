/* SPDX-License-Identifier: Apache-2.0 */
/* redux.sync in all its operations, and activemask in straight code. */
#include "common.cuh"

extern "C" __global__ void reduce_warp(const int *in, int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	int v = in[i];
	unsigned u = (unsigned)v;
	int r = __reduce_add_sync(0xffffffffu, v);
	r ^= __reduce_min_sync(0xffffffffu, v - 50) ^ __reduce_max_sync(0xffffffffu, v - 50);
	r += (int)(__reduce_min_sync(0xffffffffu, u) ^ __reduce_max_sync(0xffffffffu, u));
	r ^= (int)(__reduce_and_sync(0xffffffffu, u | 0x60u) + __reduce_or_sync(0xffffffffu, u) +
		   __reduce_xor_sync(0xffffffffu, u));
	r += __popc(__activemask());
	out[i] = r;
}
