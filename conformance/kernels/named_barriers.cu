/* SPDX-License-Identifier: Apache-2.0 */
/* Producer and consumer warps that meet in named barriers with counts. */
#include "common.cuh"

extern "C" __global__ void named_barriers(const int *in, int *out, unsigned *runs)
{
	__shared__ int slot[64];
	count_block(runs);
	unsigned t = threadIdx.x; /* 128: two producer warps, two consumer warps */
	for (int round = 0; round < 4; round++) {
		if (t < 64) {
			asm volatile("bar.sync 2, 128;" ::: "memory"); /* slots are free */
			slot[t] = in[(blockIdx.x * 4 + round) * 64 + t] + round;
			asm volatile("bar.arrive 1, 128;" ::: "memory"); /* slots are full */
		} else {
			asm volatile("bar.arrive 2, 128;" ::: "memory");
			asm volatile("bar.sync 1, 128;" ::: "memory");
			out[(blockIdx.x * 4 + round) * 64 + t - 64] = slot[127 - t] * 2;
		}
	}
}
