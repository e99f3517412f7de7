/* SPDX-License-Identifier: Apache-2.0 */
/* The approximate hardware forms: __expf, __sinf, __fdividef, rsqrt and friends. */
#include "common.cuh"

extern "C" __global__ void math_fast(const float *in, float *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = in[i];
	out[i] = __expf(x * 0.1f) + __sinf(x * 0.1f) + __cosf(x * 0.1f) + __logf(fabsf(x) + 1.0f) + __fdividef(x, 3.0f) + __frsqrt_rn(fabsf(x) + 1.0f) +
		 __saturatef(x) + __powf(fabsf(x) + 1.0f, 0.3f);
}
