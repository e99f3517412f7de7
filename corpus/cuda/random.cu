// SPDX-License-Identifier: Apache-2.0
// cuRAND's device generators.
#include <curand_kernel.h>

#include "common.cuh"

// launch: philox grid 1024 block 256 args f32[1048576]:zero u64=1234
KERNEL philox(float4 *out, unsigned long long seed)
{
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	curandStatePhilox4_32_10_t state;
	float4 sum = make_float4(0, 0, 0, 0);

	curand_init(seed, at, 0, &state);
	for (int k = 0; k < 8; k++) {
		float4 u = curand_uniform4(&state), n = curand_normal4(&state);
		sum.x += u.x * n.x, sum.y += u.y * n.y, sum.z += u.z + n.z, sum.w += u.w - n.w;
	}
	out[at] = sum;
}

// launch: xorwow grid 256 block 128 args f32[32768]:zero u32[32768]:zero u64=99
KERNEL xorwow(float *out, unsigned *raw, unsigned long long seed)
{
	unsigned at = blockIdx.x * 128 + threadIdx.x;
	curandState state;
	float sum = 0;

	curand_init(seed + at, 0, 0, &state);
	for (int k = 0; k < 64; k++)
		sum += curand_uniform(&state) + curand_log_normal(&state, 0.0f, 0.5f);
	out[at] = sum;
	raw[at] = curand(&state);
}

// launch: mrg_and_poisson grid 128 block 128 args f64[16384]:zero u32[16384]:zero
KERNEL mrg_and_poisson(double *out, unsigned *counts)
{
	unsigned at = blockIdx.x * 128 + threadIdx.x;
	curandStateMRG32k3a state;

	curand_init(7, at % 16, 0, &state);
	out[at] = curand_normal_double(&state) + curand_uniform_double(&state);
	counts[at] = curand_poisson(&state, 3.0 + at % 5);
}
