/* SPDX-License-Identifier: Apache-2.0 */
/* One of everything that ordinary CUDA kernels use. */
#include <cassert>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

struct parameters {
	int count;
	float scale[4];
};

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter;
extern __shared__ float dynamic[];

__device__ __noinline__ float helper(float x, int n)
{
	return n ? sinf(x) + helper(x * 0.5f, n - 1) : expf(x);
}

extern "C" __global__ void __launch_bounds__(128) reduce(const float *in, float *out, parameters p)
{
	__shared__ float tile[128];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	tile[threadIdx.x] = i < p.count ? in[i] * p.scale[i & 3] : 0;
	__syncthreads();
	float v = tile[127 - threadIdx.x] + table[i & 3];
	for (int d = 16; d; d /= 2)
		v += __shfl_down_sync(~0u, v, d);
	if (__any_sync(~0u, v > 1) && __popc(__ballot_sync(~0u, v > 2)) > 3)
		atomicAdd_block(&counter, 1);
	dynamic[threadIdx.x] = v;
	__syncwarp();
	if (threadIdx.x == 0) {
		out[blockIdx.x] = dynamic[31] + helper(v, 3);
		__threadfence();
		atomicAdd(&counter, 1);
	}
}

extern "C" __global__ void maths(double *d, float *f, __half *h, __nv_bfloat16 *b)
{
	double s, c;
	int e;

	sincos(d[0], &s, &c);
	d[1] = s + c + erf(d[2]) + tgamma(d[3]) + frexp(d[4], &e) + e + fmod(d[5], d[6]);
	f[0] = __fadd_rz(f[1], f[2]) + __fdividef(f[3], f[4]) + rsqrtf(f[5]) + powf(f[6], f[7]);
	f[1] = __double2float_rd(d[7]) + (float)__float2int_rn(f[2]) + __saturatef(f[3]);
	h[0] = __hfma(h[1], h[2], h[3]);
	b[0] = __hadd(b[1], b[2]);
}

extern "C" __global__ void talks(int *p)
{
	printf("%d of %s\n", p[0], "many");
	assert(p[0] == 1);
}
