// SPDX-License-Identifier: Apache-2.0
// libcu++ on the device: atomics of each scope and order, barrier, latch, semaphore, pipeline.
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cuda/std/array>
#include <cuda/std/complex>

#include "common.cuh"

// An object with a constructor in shared memory, which clang wants to see made by hand.
#define SHARED(type, name)                                                   \
	__shared__ alignas(alignof(type)) unsigned char name##_[sizeof(type)]; \
	type &name = *(type *)name##_

// One operation a word: mixed on one, what is left would depend on who came when.
// launch: atomic_orders grid 1024 block 256 args u32[4096]:zero u64[1024]:zero
KERNEL atomic_orders(unsigned *words, unsigned long long *longs)
{
	unsigned id = blockIdx.x * 256 + threadIdx.x, at = id * 37 % 1024;
	using word = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
	cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> wide(longs[at]);

	word(words[at]).fetch_add(1, cuda::memory_order_relaxed);
	word(words[1024 + at]).fetch_xor(mix(id), cuda::memory_order_acq_rel);
	word(words[2048 + at]).fetch_max(mix(id), cuda::memory_order_acquire);
	word(words[3072 + at]).fetch_or(1u << mix(id) % 32, cuda::memory_order_release);
	wide.fetch_add(3, cuda::memory_order_seq_cst);
	wide.fetch_or(0, cuda::memory_order_relaxed);
	cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
}

// launch: compare_exchange grid 512 block 256 args f64[64]:zero i32[64]:zero
KERNEL compare_exchange(double *sums, int *counts)
{
	unsigned at = (blockIdx.x + threadIdx.x) % 64;
	cuda::atomic_ref<double, cuda::thread_scope_device> sum(sums[at]);
	double old = sum.load(cuda::memory_order_relaxed);

	while (!sum.compare_exchange_weak(old, old + 1.0, cuda::memory_order_acq_rel,
					  cuda::memory_order_relaxed))
		;
	cuda::atomic_ref<int, cuda::thread_scope_device>(counts[at]).fetch_add(1);
}

// launch: latch_and_barrier grid 1024 block 256 args f32[262144]:unit f32[262144]:zero
KERNEL latch_and_barrier(const float *in, float *out)
{
	using barrier = cuda::barrier<cuda::thread_scope_block>;
	SHARED(barrier, gate);
	SHARED(cuda::latch<cuda::thread_scope_block>, ready);
	__shared__ float tile[256];
	unsigned at = blockIdx.x * 256 + threadIdx.x;

	if (!threadIdx.x) {
		init(&gate, 256);
		new (&ready) cuda::latch<cuda::thread_scope_block>(256);
	}
	__syncthreads();
	tile[threadIdx.x] = in[at];
	ready.arrive_and_wait();
	float value = tile[threadIdx.x ^ 1];
	for (int round = 0; round < 4; round++) {
		barrier::arrival_token token = gate.arrive();
		value = value * 1.5f + 0.25f;
		gate.wait(cuda::std::move(token));
		tile[threadIdx.x] = value;
		gate.arrive_and_wait();
		value += tile[(threadIdx.x + 33) % 256];
	}
	out[at] = value;
}

// launch: pipelined grid 256 block 256 args f32[1048576]:unit f32[65536]:zero i32=16
KERNEL pipelined(const float *in, float *out, int stages)
{
	constexpr unsigned DEPTH = 4;
	__shared__ float tile[DEPTH][256];
	cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
	const float *from = in + blockIdx.x * 4096;
	float sum = 0;

	for (int next = 0, stage = 0; stage < stages; stage++) {
		// Empty ones behind the last: "all but the last three" has to mean this stage's.
		for (; next < stage + (int)DEPTH; next++) {
			pipe.producer_acquire();
			if (next < stages)
				cuda::memcpy_async(&tile[next % DEPTH][threadIdx.x],
						   from + next * 256 + threadIdx.x, sizeof(float), pipe);
			pipe.producer_commit();
		}
		cuda::pipeline_consumer_wait_prior<DEPTH - 1>(pipe);
		sum += tile[stage % DEPTH][threadIdx.x] * (float)(stage + 1);
		pipe.consumer_release();
	}
	out[blockIdx.x * 256 + threadIdx.x] = sum;
}

// launch: pipelined_block grid 256 block 128 args f32[1048576]:unit f32[32768]:zero
KERNEL pipelined_block(const float *in, float *out)
{
	constexpr unsigned DEPTH = 2, COUNT = 1024;
	__shared__ float tile[DEPTH][COUNT];
	using shared_state = cuda::pipeline_shared_state<cuda::thread_scope_block, DEPTH>;
	SHARED(shared_state, state);
	struct {
		__device__ unsigned size() const { return 128; }
		__device__ unsigned thread_rank() const { return threadIdx.x; }
		__device__ void sync() const { __syncthreads(); }
	} group;
	auto pipe = cuda::make_pipeline(group, &state);
	float sum = 0;

	pipe.producer_acquire();
	cuda::memcpy_async(group, tile[0], in + blockIdx.x * 4096, sizeof tile[0], pipe);
	pipe.producer_commit();
	for (unsigned k = 0; k < 4; k++) {
		if (k + 1 < 4) {
			pipe.producer_acquire();
			cuda::memcpy_async(group, tile[(k + 1) % DEPTH],
					   in + blockIdx.x * 4096 + (k + 1) * COUNT, sizeof tile[0], pipe);
			pipe.producer_commit();
		}
		pipe.consumer_wait();
		for (unsigned j = 0; j < COUNT; j += 128)
			sum += tile[k % DEPTH][(threadIdx.x + j + 1) % COUNT];
		pipe.consumer_release();
	}
	out[blockIdx.x * 128 + threadIdx.x] = sum;
}

// launch: semaphores grid 64 block 32 args i32[64]:zero
KERNEL semaphores(int *out)
{
	using semaphore = cuda::counting_semaphore<cuda::thread_scope_block, 4>;
	SHARED(semaphore, tickets);

	if (!threadIdx.x)
		new (&tickets) semaphore(4);
	__syncwarp();
	tickets.acquire();
	atomicAdd(&out[blockIdx.x], 1);
	tickets.release();
}

// launch: complex_sums grid 1024 block 256 args f32[524288]:unit f32[524288]:zero
KERNEL complex_sums(const float *in, float *out)
{
	using complex = cuda::std::complex<float>;
	unsigned at = blockIdx.x * 256 + threadIdx.x;
	complex z(in[2 * at], in[2 * at + 1]), w(0.25f, -0.5f);
	cuda::std::array<complex, 4> powers;

	for (unsigned k = 0; k < 4; k++) {
		w = w * z + complex(0.1f, 0.2f);
		powers[k] = w / (z + complex(2, 0));
	}
	complex sum = powers[0] + powers[1] * powers[2] - powers[3];
	out[2 * at] = sum.real();
	out[2 * at + 1] = sum.imag();
}
