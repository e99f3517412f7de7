/* SPDX-License-Identifier: Apache-2.0 */
/* printf with every kind of argument; one line from each block. */
#include "common.cuh"

#include <stdio.h>
extern "C" __global__ void prints(int n, unsigned *runs)
{
	count_block(runs);
	if (threadIdx.x == 0)
		printf("block %d of %u: %s %c %5.2f %lld %#x %p%%\n", (int)blockIdx.x, gridDim.x, "text", 'c', 1.5 * n,
		       (long long)blockIdx.x << 33, blockIdx.x + 255u, (void *)0x10);
}
