// SPDX-License-Identifier: Apache-2.0
// The headers of narrow floats: half, bfloat16, fp8, packed arithmetic and conversions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "common.cuh"

// launch: half_axpy grid 4096 block 256 args f16[2097152]:unit f16[2097152]:unit f16=1.5
KERNEL half_axpy(const __half2 *x, __half2 *y, __half a)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;

	y[at] = __hfma2(__half2half2(a), x[at], y[at]);
}

// launch: half_softmax grid 2048 block 128 args f16[1048576]:unit f16[1048576]:zero
KERNEL half_softmax(const __half *in, __half *out)
{
	__shared__ float part[4];
	const uint2 *row = (const uint2 *)(in + blockIdx.x * 512);
	uint2 raw = row[threadIdx.x];
	float2 a = __half22float2(*(__half2 *)&raw.x), b = __half22float2(*(__half2 *)&raw.y);
	float most = fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y)), sum;

	for (int k = 16; k; k /= 2)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, k));
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = most;
	__syncthreads();
	most = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
	__syncthreads();
	a.x = __expf(a.x - most), a.y = __expf(a.y - most);
	b.x = __expf(b.x - most), b.y = __expf(b.y - most);
	sum = a.x + a.y + b.x + b.y;
	for (int k = 16; k; k /= 2)
		sum += __shfl_xor_sync(~0u, sum, k);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = sum;
	__syncthreads();
	sum = 1.0f / (part[0] + part[1] + part[2] + part[3]);
	__half2 c = __floats2half2_rn(a.x * sum, a.y * sum), d = __floats2half2_rn(b.x * sum, b.y * sum);
	((uint2 *)(out + blockIdx.x * 512))[threadIdx.x] = make_uint2(*(unsigned *)&c, *(unsigned *)&d);
}

// launch: half_maths grid 1024 block 256 args f16[262144]:unit f16[262144]:zero
KERNEL half_maths(const __half *in, __half *out)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	__half x = in[at], y = hsqrt(x) + hexp(x) * hsin(x);

	y = __hmax(y, hlog2(x + __float2half(1.0f)));
	y = __hfma_relu(y, x, hrcp(x + __float2half(0.5f)));
	y = __hlt(x, __float2half(0.5f)) ? __habs(__hneg(y)) : __hmin(y, htrunc(x * __float2half(8)));
	out[at] = __hadd_sat(y, __int2half_rn((int)at % 3));
}

// launch: bfloat_gelu grid 4096 block 256 args bf16[2097152]:unit bf16[2097152]:zero
KERNEL bfloat_gelu(const __nv_bfloat162 *in, __nv_bfloat162 *out)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	float2 v = __bfloat1622float2(in[at]);

	v.x = 0.5f * v.x * (1 + tanhf(0.79788456f * (v.x + 0.044715f * v.x * v.x * v.x)));
	v.y = 0.5f * v.y * (1 + tanhf(0.79788456f * (v.y + 0.044715f * v.y * v.y * v.y)));
	out[at] = __hfma2(__float22bfloat162_rn(v), in[at], __hmax2(in[at], out[at]));
}

// launch: fp8_convert grid 1024 block 256 args f32[1048576]:unit u8[1048576]:zero f32[1048576]:zero
KERNEL fp8_convert(const float4 *in, __nv_fp8x4_e4m3 *out, float4 *back)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	float4 v = in[at];
	__nv_fp8x4_e4m3 narrow(v);
	__nv_fp8_e5m2 other(v.x * 100.0f);

	out[at] = narrow;
	float4 wide = (float4)narrow;
	wide.x += (float)other;
	wide.y += __half2float(__half(__nv_fp8_e4m3(v.y)));
	back[at] = wide;
}

// launch: half_atomics grid 256 block 256 args f16[2048]:zero f32[1024]:zero
KERNEL half_atomics(__half2 *sums, float *wide)
{
	unsigned at = (blockIdx.x * 256 + threadIdx.x) % 1024;

	atomicAdd(&sums[at], __floats2half2_rn(0.5f, 0.25f));
	atomicAdd(&wide[at], 0.5f);
}
