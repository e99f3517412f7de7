/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic additions at block, device and system scope, and the fences of each. */
#include "common.cuh"

extern "C" __global__ void atomics_scopes(unsigned *sums, unsigned long long *wide, unsigned *runs)
{
	__shared__ unsigned local;
	count_block(runs);
	if (threadIdx.x == 0)
		local = 0;
	__syncthreads();
	atomicAdd_block(&local, threadIdx.x);
	__threadfence_block();
	atomicAdd(&sums[0], 1u);
	__threadfence();
	atomicAdd_system(&sums[1], threadIdx.x);
	__threadfence_system();
	atomicAdd(wide, (1ull << 33) + threadIdx.x);
	__syncthreads();
	if (threadIdx.x == 0)
		atomicAdd(&sums[2], local);
}
