/* SPDX-License-Identifier: Apache-2.0 */
/* Transcendental functions, float and double: equal between variants, close to C. */
#include "common.cuh"

extern "C" __global__ void math_library(const float *in, float *f, double *d, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	float x = in[i];
	f[i] = sinf(x) + cosf(x) * expf(-fabsf(x)) + logf(fabsf(x) + 1.0f) + powf(fabsf(x) + 0.5f, 1.25f) + tanhf(x) + erff(x) +
	       atan2f(x, 2.0f) + cbrtf(x) + exp2f(x * 0.1f) + log2f(fabsf(x) + 2.0f) + rsqrtf(fabsf(x) + 1.0f) + fmodf(x, 3.0f);
	double y = x;
	d[i] = sin(y) + cos(y) + exp(-fabs(y)) + log(fabs(y) + 1.0) + pow(fabs(y) + 0.5, 1.25) + tanh(y) + erf(y) + lgamma(fabs(y) + 1.0) +
	       hypot(y, 1.0) + log1p(fabs(y)) + expm1(y * 0.01);
}
