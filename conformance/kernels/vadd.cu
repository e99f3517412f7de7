/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise addition with a bounds check: no barrier, no warp operation. */
#include "common.cuh"

extern "C" __global__ void vadd(const float *a, const float *b, float *out, int n, unsigned *runs)
{
	count_block(runs);
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = a[i] + b[i];
}
