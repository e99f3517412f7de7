/* SPDX-License-Identifier: Apache-2.0 */
/* Constant memory written by the host, indexed uniformly and not. */
#include "common.cuh"

__constant__ int constant_table_data[64];
__constant__ int constant_table_fixed[4] = {3, 1, 4, 1};
extern "C" __global__ void constant_table(int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = constant_table_data[i % 64] * constant_table_fixed[blockIdx.x % 4] + constant_table_data[blockIdx.x % 64];
}
