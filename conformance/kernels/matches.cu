/* SPDX-License-Identifier: Apache-2.0 */
/* match.any and match.all on 32- and 64-bit values (sm_70 and newer). */
#include "common.cuh"

extern "C" __global__ void matches(const int *in, unsigned *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	int v = in[i], same;
	unsigned r = __match_any_sync(0xffffffffu, v & 3);
	r += __popc(__match_any_sync(0xffffffffu, (unsigned long long)(v & 1) << 40));
	r ^= __match_all_sync(0xffffffffu, (int)blockIdx.x / 2, &same);
	r += (unsigned)same;
	r ^= __match_all_sync(0xffffffffu, v, &same);
	out[i] = r + (unsigned)same * 17;
}
