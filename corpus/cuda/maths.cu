// SPDX-License-Identifier: Apache-2.0
// The maths library in single and double precision, as finance and physics kernels use it.
#include "common.cuh"

__device__ float normal_cdf(float d)
{
	return 0.5f * erfcf(-0.70710678f * d);
}

// launch: black_scholes grid 4096 block 256 args f32[1048576]:unit f32[1048576]:zero f32[1048576]:zero
KERNEL black_scholes(const float *in, float *call, float *put)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	float price = 5 + 25 * in[at], strike = 1 + 99 * unit(at), years = 0.25f + 9 * unit(at + 77), rate = 0.02f, vol = 0.3f;
	float root = sqrtf(years), d1 = (logf(price / strike) + (rate + 0.5f * vol * vol) * years) / (vol * root);
	float d2 = d1 - vol * root, discount = strike * expf(-rate * years);

	call[at] = price * normal_cdf(d1) - discount * normal_cdf(d2);
	put[at] = discount * normal_cdf(-d2) - price * normal_cdf(-d1);
}

// launch: singles grid 1024 block 256 args f32[262144]:unit f32[262144]:zero
KERNEL singles(const float *in, float *out)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	float x = in[at], y = sinf(x * 100) + cosf(x * 1e5f) + tanf(x), s, c;

	y += powf(x + 0.5f, 2.5f) + exp2f(x) + log10f(x + 1) + cbrtf(x) + atan2f(x, y) + asinf(x) + acosf(x);
	sincosf(x * 7, &s, &c);
	y += s * c + sinhf(x) + coshf(x) + tanhf(x) + erff(x) + lgammaf(x + 1) + tgammaf(x + 1);
	y += fmodf(x * 10, 0.7f) + remainderf(x * 10, 0.7f) + hypotf(x, y) + j0f(x) + normcdfinvf(0.1f + 0.8f * x);
	out[at] = y + ldexpf(x, 3) + (float)ilogbf(x + 0.1f) + rintf(x * 9) + roundf(x * 9) + nextafterf(x, 2);
}

// launch: doubles grid 1024 block 128 args f64[131072]:unit f64[131072]:zero
KERNEL doubles(const double *in, double *out)
{
	unsigned at = blockIdx.x * 128 + threadIdx.x;
	double x = in[at], y = sin(x * 100) + cos(x * 1e5) + exp(x) + log(x + 1);

	y += pow(x + 0.5, 2.5) + sqrt(x) + cbrt(x) + atan2(x, y) + erf(x) + tgamma(x + 1) + rsqrt(x + 1);
	out[at] = y / (x + 3) + fma(x, y, 1.0) + floor(x * 10) + fmod(y, 0.3);
}

// launch: rounding grid 1024 block 256 args f32[262144]:unit f32[262144]:zero
KERNEL rounding(const float *in, float *out)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	float x = in[at], y = __fadd_rz(x, 0.1f) * __fmul_ru(x, 3.3f);

	y += __fdiv_rd(x, y + 1) + __fsqrt_rz(x) + __frcp_ru(x + 1) + __fmaf_rd(x, y, 0.3f);
	y += __int2float_rz((int)at * 16777217) + (float)__float2int_ru(x * 1e4f) + __saturatef(y);
	y += (float)__float2uint_rn(x * 1e9f) + __ull2float_rd(at * 1234567890123ull) + __fdividef(x, 0.3f);
	out[at] = y + __sinf(x) + __cosf(x) + __log2f(x + 1) + __powf(x + 1, 2) + __frsqrt_rn(x + 1) + __tanf(x);
}

// launch: fft grid 1024 block 64 args f32[1048576]:unit f32[1048576]:zero
KERNEL fft(const float2 *in, float2 *out)
{
	__shared__ float2 buffer[512];
	float2 v[8];

	for (int k = 0; k < 8; k++)
		v[k] = in[blockIdx.x * 512 + threadIdx.x + k * 64];
	for (int pass = 0, stride = 1; pass < 3; pass++, stride *= 8) {
#pragma unroll
		for (int half = 4; half; half /= 2)
#pragma unroll
			for (int k = 0; k < 8; k++) {
				if (k & half)
					continue;
				float2 a = v[k], b = v[k + half];
				float angle = -3.14159265f * (float)(k & (half - 1)) / (float)half, s, c;
				sincospif(angle / 3.14159265f, &s, &c);
				v[k] = make_float2(a.x + b.x, a.y + b.y);
				a = make_float2(a.x - b.x, a.y - b.y);
				v[k + half] = make_float2(a.x * c - a.y * s, a.x * s + a.y * c);
			}
		float s, c;
		__sincosf(-6.2831853f * (float)(threadIdx.x % (unsigned)stride) / 512, &s, &c);
#pragma unroll
		for (int k = 1; k < 8; k++)
			v[k] = make_float2(v[k].x * c - v[k].y * s, v[k].x * s + v[k].y * c);
		__syncthreads();
		for (int k = 0; k < 8; k++)
			buffer[(threadIdx.x * 8 + k) % 512] = v[k];
		__syncthreads();
		for (int k = 0; k < 8; k++)
			v[k] = buffer[threadIdx.x + k * 64];
	}
	for (int k = 0; k < 8; k++)
		out[blockIdx.x * 512 + threadIdx.x + k * 64] = v[k];
}
