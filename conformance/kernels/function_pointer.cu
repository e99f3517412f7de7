/* SPDX-License-Identifier: Apache-2.0 */
/* Device functions called through a table of pointers. */
#include "common.cuh"

typedef int (*operation)(int, int);
static __device__ __noinline__ int plus(int a, int b) { return a + b; }
static __device__ __noinline__ int minus(int a, int b) { return a - b; }
static __device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ operation function_pointer_table[3] = {plus, minus, times};
extern "C" __global__ void function_pointer(const int *in, int *out, unsigned *runs)
{
	count_block(runs);
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	out[i] = function_pointer_table[(unsigned)in[i] % 3](in[i], (int)i);
}
