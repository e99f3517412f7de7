/* SPDX-License-Identifier: Apache-2.0 */
/* One of everything that ordinary HIP kernels use. */
#include <hip/hip_runtime.h>

struct parameters {
	int count;
	float scale[4];
};

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter;
extern __shared__ float dynamic_memory[];

extern "C" __global__ void __launch_bounds__(256) reduce(const float *in, float *out, parameters p)
{
	__shared__ float tile[256];
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	int local[8];

	tile[threadIdx.x] = i < (unsigned)p.count ? in[i] * p.scale[i & 3] : 0;
	for (int k = 0; k < 8; k++)
		local[k] = (int)in[k];
	__syncthreads();
	dynamic_memory[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x] + table[i & 3];
	out[i] = dynamic_memory[threadIdx.x] + (float)local[p.count & 7] + (float)gridDim.x;
	atomicAdd(&counter, 1);
	__threadfence_block();
}

extern "C" __global__ void maths(double *d, float *f)
{
	float s, c;
	int e;

	sincosf(f[0], &s, &c);
	f[1] = s + c + powf(f[2], f[3]) + frexpf(f[4], &e) + (float)e + rsqrtf(f[5]);
	d[0] = erf(d[1]) + exp(d[2]) + tgamma(d[3]) + d[4] / d[5];
}

#ifdef LANES
extern "C" __global__ void lanes(int *p)
{
	p[threadIdx.x] = __shfl_down(p[threadIdx.x], 1) + (int)__popcll(__ballot(p[0] > 1));
}
#endif

#ifndef NO_PRINTF
extern "C" __global__ void talks(int *p)
{
	printf("%d of %s, %ld, %f\n", p[0], "many", 5l, 2.5);
}
#endif
