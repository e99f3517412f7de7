/* SPDX-License-Identifier: Apache-2.0 */
/* 4 KB of parameters: a struct by value that is indexed at run time, between two others. */
#include "common.cuh"

struct big {
	int value[1000];
	double scale;
};
extern "C" __global__ void big_parameters(char first, big b, int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = b.value[(i * 37) % 1000] * first + (int)b.scale;
}
