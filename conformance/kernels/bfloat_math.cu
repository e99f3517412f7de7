/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 arithmetic and conversions. */
#include "common.cuh"

#include <cuda_bf16.h>
extern "C" __global__ void bfloat_math(const float *in, float *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	__nv_bfloat16 a = __float2bfloat16_rn(in[i]), b = __float2bfloat16_rn(in[i] * 0.125f - 2.0f);
	__nv_bfloat162 p = __halves2bfloat162(a, b);
	__nv_bfloat162 q = __hmul2(p, __float2bfloat162_rn(1.5f));
	float r = __bfloat162float(__hadd(a, b)) - __bfloat162float(__hmul(a, b));
	r += __low2float(q) + 2.0f * __high2float(q);
	out[i] = __hlt(a, b) ? r : -r;
}
