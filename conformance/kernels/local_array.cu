/* SPDX-License-Identifier: Apache-2.0 */
/* A private array indexed at run time: local memory. */
#include "common.cuh"

extern "C" __global__ void local_array(const int *in, int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	int stack[32];
	for (int k = 0; k < 32; k++)
		stack[k] = in[i] * k;
	for (int k = 0; k < 32; k++) {
		unsigned j = ((unsigned)in[i] + k * 11u) % 32;
		int t = stack[j];
		stack[j] = stack[k];
		stack[k] = t + 1;
	}
	out[i] = stack[(unsigned)in[i] % 32] + stack[31] * 3;
}
