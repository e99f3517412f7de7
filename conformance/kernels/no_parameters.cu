/* SPDX-License-Identifier: Apache-2.0 */
/* No parameter at all: everything goes through device variables. */
#include "common.cuh"

__device__ unsigned no_parameters_runs[64];
__device__ int no_parameters_out[64 * 32];
extern "C" __global__ void no_parameters()
{
	count_block(no_parameters_runs);
	no_parameters_out[blockIdx.x * blockDim.x + threadIdx.x] = (int)(blockIdx.x * 100 + threadIdx.x);
}
