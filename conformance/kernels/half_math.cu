/* SPDX-License-Identifier: Apache-2.0 */
/* half and half2 arithmetic, comparisons and conversions. */
#include "common.cuh"

#include <cuda_fp16.h>
extern "C" __global__ void half_math(const float *in, float *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	__half a = __float2half_rn(in[i]), b = __float2half_rn(in[i] * 0.5f + 1.0f);
	__half2 p = __halves2half2(a, b);
	__half2 q = __hfma2(p, p, __float2half2_rn(0.25f));
	__half r = __hadd_rn(__hmul_rn(a, b), __hsub_rn(b, a));
	if (__hgt(a, b))
		r = __hneg(r);
	r = __hmax(r, __float2half_rn(-100.0f));
	out[i] = __half2float(r) + __low2float(q) * 2.0f + __high2float(q) + (float)__half2int_rn(a);
}
