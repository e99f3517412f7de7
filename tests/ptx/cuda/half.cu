// SPDX-License-Identifier: Apache-2.0
// Half and bfloat16 arithmetic, conversions, comparisons and atomics of CUDA's headers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T, class T2>
__device__ void all(T *x, T2 *y, float *f, int *n, int i)
{
	T a = x[i], b = x[i + 1], c = x[i + 2];
	x[i] = __hfma(a, b, c);
	x[i + 1] = __hadd_sat(a, b) + __hmul(a, b) - __hneg(c) + __habs(a) / b;
	x[i + 2] = __hmax(a, b) + __hmin_nan(b, c) + hsqrt(a) + hexp(b) + hlog(c) + htanh(a);
	x[i + 3] = hrint(a) + hfloor(b) + hceil(c) + htrunc(a) + hsin(b) + hcos(c) + hrcp(a) + hrsqrt(b);
	y[i] = __hfma2(y[i], y[i + 1], y[i + 2]);
	y[i + 1] = __hadd2(y[i], __hmul2(y[i + 1], y[i + 2])) + h2exp2(y[i]) + __habs2(y[i]);
	y[i + 2] = __hmax2(y[i], y[i + 1]) + __hgt2(y[i], y[i + 1]) + __lowhigh2highlow(y[i]);
	n[0] = __hlt(a, b) + __hisnan(c) + __hbgt2(y[0], y[1]) + (int)a;
	f[0] = (float)a + (float)b;
	x[i + 4] = (T)f[1];
	x[i + 5] = (T)(int)n[1];
	atomicAdd(&x[i + 6], a);
	atomicAdd(&y[i + 3], y[i]);
	y[i + 4] = __shfl_xor_sync(0xffffffffu, y[i], 1);
}

__global__ void halves(__half *x, __half2 *y, float *f, int *n)
{
	all(x, y, f, n, threadIdx.x);
	n[2] = __half2int_rz(x[0]) + __half2uint_rd(x[1]) + __half2short_ru(x[2]);
	x[9] = __float2half_rz(f[2]) + __float2half_ru(f[3]) + __ll2half_rn(n[3]) + __double2half(f[4]);
	y[9] = __floats2half2_rn(f[5], f[6]);
}

#if __CUDA_ARCH__ >= 800
__global__ void bfloats(__nv_bfloat16 *x, __nv_bfloat162 *y, float *f, int *n)
{
	all(x, y, f, n, threadIdx.x);
	n[2] = __bfloat162int_rz(x[0]) + __bfloat162uint_rd(x[1]);
	x[9] = __float2bfloat16_rz(f[2]) + __float2bfloat16_ru(f[3]) + __ll2bfloat16_rn(n[3]);
	y[9] = __floats2bfloat162_rn(f[5], f[6]);
}
#endif
