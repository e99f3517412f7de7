/* SPDX-License-Identifier: Apache-2.0 */
/* What every conformance kernel shares: the proof that its block ran exactly once. */
#pragma once

/* Adds one to the block's counter, from the block's first thread. Called before anything that may
 * return early; `runs` has one counter per block of the original grid. */
static __device__ __forceinline__ void count_block(unsigned *runs)
{
	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
		atomicAdd(&runs[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x], 1u);
}
