/* SPDX-License-Identifier: Apache-2.0 */
/* A dense switch: an indirect branch over a table of targets. */
#include "common.cuh"

extern "C" __global__ void switch_table(const int *in, int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	int v = in[i], r;
	switch (v % 9) {
	case 0: r = v * 3; break;
	case 1: r = v - 7; break;
	case 2: r = v ^ 0x55; break;
	case 3: r = v << 2; break;
	case 4: r = out[i] + 1; break;
	case 5: r = -v; break;
	case 6: r = v / 3; break;
	case 7: r = v % 5; break;
	default: r = 1000 + v;
	}
	out[i] = r;
}
