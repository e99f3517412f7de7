/* SPDX-License-Identifier: Apache-2.0 */
/* float and double operations that are correctly rounded: equal to C to the last bit. */
#include "common.cuh"

extern "C" __global__ void math_exact(const float *in, float *f, double *d, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = in[i], y = in[i] * 3.0f + 1.0f;
	float r = __fdiv_rn(x, y);
	r = __fadd_rn(r, __fsqrt_rn(fabsf(x)));
	r = __fmaf_rn(r, x, y);
	r = __fadd_rn(r, floorf(x) - ceilf(y) + truncf(x * 1.5f) + rintf(y * 0.5f));
	r = fminf(fmaxf(r, -1e6f), 1e6f);
	f[i] = copysignf(r, x);
	double a = x, b = y;
	double s = __ddiv_rn(a, b);
	s = __dadd_rn(s, __dsqrt_rn(fabs(a)));
	s = __fma_rn(s, a, b);
	d[i] = s + (double)(long long)(a * 1000.0) + (double)__float2int_rz(x) + (double)__double2uint_rn(fabs(b));
}
