/* SPDX-License-Identifier: Apache-2.0 */
/* Message passing between blocks: release and acquire through a flag, at device scope. */
#include "common.cuh"

#include <cuda/atomic>
extern "C" __global__ void atomic_ordering(int *data, int *ready, int *out, unsigned *runs)
{
	count_block(runs);
	cuda::atomic_ref<int, cuda::thread_scope_device> flag(*ready);
	if (threadIdx.x != 0)
		return;
	if (blockIdx.x == 0) {
		*data = 42;
		flag.store(1, cuda::memory_order_release);
		out[0] = 1;
	} else {
		while (flag.load(cuda::memory_order_acquire) == 0)
			;
		out[blockIdx.x] = *data;
	}
}
