/* SPDX-License-Identifier: Apache-2.0 */
/* float, double and half atomic additions of values that add exactly in any order. */
#include "common.cuh"

#include <cuda_fp16.h>
extern "C" __global__ void atomics_float(float *f, double *d, __half2 *h, unsigned *runs)
{
	count_block(runs);
	atomicAdd(f, 0.5f);
	atomicAdd(d, 0.25);
	if (threadIdx.x == 0)
		atomicAdd(h, __floats2half2_rn(1.0f, 2.0f));
	atomicAdd(&f[1 + threadIdx.x % 3], (float)(threadIdx.x % 8));
}
