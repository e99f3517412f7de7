/* SPDX-License-Identifier: Apache-2.0 */
/* mbarrier by hand and by cuda::barrier, copies in a cuda::pipeline of two stages. */
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#include "common.cuh"

using block_barrier = cuda::barrier<cuda::thread_scope_block>;
using pipe_state = cuda::pipeline_shared_state<cuda::thread_scope_block, 2>;

/* All threads hand their values round, once a round, with phases told by parity. */
static __device__ int hand_round(unsigned long long *object, int *slot, int value, int rounds)
{
	unsigned at = (unsigned)__cvta_generic_to_shared(object);
	int t = threadIdx.x, n = blockDim.x;

	for (int i = 0; i < rounds; i++) {
		[[maybe_unused]] unsigned long long state;
		unsigned done = 0;

		slot[(i & 1) * n + t] = value;
		asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at) : "memory");
		while (!done)
			asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
				     : "=r"(done)
				     : "r"(at), "r"(i & 1)
				     : "memory");
		value = value * 2 + slot[(i & 1) * n + (t + 1) % n];
	}
	return value;
}

extern "C" __global__ void mbarriers(const int *in, int *out, int rounds, unsigned *runs)
{
	__shared__ unsigned long long object;
	__shared__ int slot[2 * 64];
	__shared__ int stage[2][64];
	/* As bytes: clang has no shared variables of types with constructors. */
	__shared__ alignas(block_barrier) char barrier_bytes[sizeof(block_barrier)];
	__shared__ alignas(pipe_state) char state_bytes[sizeof(pipe_state)];
	block_barrier &barrier = *reinterpret_cast<block_barrier *>(barrier_bytes);
	pipe_state *state = reinterpret_cast<pipe_state *>(state_bytes);
	count_block(runs);
	auto block = cooperative_groups::this_thread_block();
	int t = threadIdx.x, n = blockDim.x, sum = 0;

	in += blockIdx.x * rounds * 64;
	if (t == 0) {
		asm volatile("mbarrier.init.shared.b64 [%0], %1;"
			     :
			     : "r"((unsigned)__cvta_generic_to_shared(&object)), "r"(n)
			     : "memory");
		init(&barrier, n);
	}
	__syncthreads();
	auto pipe = cuda::make_pipeline(block, state);
	for (int i = 0; i <= rounds; i++) {
		if (i < rounds) {
			pipe.producer_acquire();
			cuda::memcpy_async(block, stage[i & 1], in + i * 64, sizeof(int) * 64, pipe);
			pipe.producer_commit();
		}
		if (i == 0)
			continue;
		pipe.consumer_wait();
		sum = sum * 3 + stage[(i - 1) & 1][(t + 1) & 63];
		pipe.consumer_release();
	}
	slot[t] = sum;
	barrier.wait(barrier.arrive());
	sum += slot[n - 1 - t];
	barrier.arrive_and_wait();
	out[blockIdx.x * 64 + t] = hand_round(&object, slot, sum, rounds);
}
