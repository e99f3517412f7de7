// SPDX-License-Identifier: Apache-2.0
// Warps, barriers, atomics of all scopes, cooperative groups, pipelines.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

__global__ void warps(int *x, unsigned *u, double *d, long long *l)
{
	int v = x[threadIdx.x];
	unsigned all = 0xffffffffu;
	v += __shfl_sync(all, v, 3) + __shfl_up_sync(all, v, 1, 16) + __shfl_xor_sync(all, v, 2);
	d[threadIdx.x] = __shfl_down_sync(all, d[0], 4);
	u[0] = __ballot_sync(all, v > 2) + __any_sync(all, v) + __all_sync(all, v) + __activemask();
	u[1] = __match_any_sync(all, v) + __popc(__match_any_sync(all, l[0]));
	int uniform;
	u[2] = __match_all_sync(all, v, &uniform) + uniform;
	__syncwarp();
	u[3] = __syncthreads_count(v) + __syncthreads_and(v) + __syncthreads_or(v);
#if __CUDA_ARCH__ >= 800
	u[4] = __reduce_add_sync(all, v) + __reduce_min_sync(all, u[5]) + __reduce_xor_sync(all, u[6]);
#endif
	asm volatile("bar.sync 3, 64;");
	x[threadIdx.x] = v;
	__threadfence();
	__threadfence_block();
	__threadfence_system();
}

__global__ void atomics(int *x, unsigned *u, unsigned long long *l, float *f, double *d, unsigned short *s)
{
	x[1] = atomicAdd(x, 1) + atomicSub(x, 2) + atomicMin(x, 3) + atomicMax(x, 4) + atomicExch(x, 5);
	u[1] = atomicInc(u, 7) + atomicDec(u, 8) + atomicAnd(u, 9) + atomicOr(u, 10) + atomicXor(u, 11) + atomicCAS(u, 1, 2);
	l[1] = atomicAdd(l, 1) + atomicMax(l, 2) + atomicCAS(l, 3, 4) + atomicExch(l, 5);
	f[1] = atomicAdd(f, 1) + atomicExch(f, 2);
	d[1] = atomicAdd(d, 1);
	s[1] = atomicCAS(s, 1, 2);
	atomicAdd_system(x, 1);
	atomicAdd_block(x, 1);
	cuda::atomic_ref<int, cuda::thread_scope_device> a(x[2]);
	cuda::atomic_ref<unsigned long long, cuda::thread_scope_system> b(l[2]);
	cuda::atomic_ref<unsigned, cuda::thread_scope_block> c(u[2]);
	x[3] = a.fetch_add(1, cuda::memory_order_acq_rel) + a.load(cuda::memory_order_acquire);
	a.store(4, cuda::memory_order_release);
	b.fetch_max(7);
	unsigned expected = 1;
	c.compare_exchange_strong(expected, 2, cuda::memory_order_relaxed);
	u[3] = expected + c.exchange(9);
	cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
}

__global__ void groups(int *x, float *f)
{
	cg::thread_block block = cg::this_thread_block();
	auto tile = cg::tiled_partition<8>(block);
	int v = cg::reduce(tile, x[block.thread_rank()], cg::plus<int>());
	v += cg::inclusive_scan(tile, v);
	auto active = cg::coalesced_threads();
	f[0] = active.size() + active.shfl(v, 0) + tile.shfl_down(f[1], 1) + tile.meta_group_rank();
	block.sync();
	auto labels = cg::labeled_partition(active, v & 3);
	x[block.thread_rank()] = v + labels.size();
}

__global__ void pipeline(const float4 *in, float4 *out)
{
	__shared__ float4 stage[2][64];
	int t = threadIdx.x;
	__pipeline_memcpy_async(&stage[0][t], &in[t], sizeof(float4));
	__pipeline_commit();
	__pipeline_memcpy_async(&stage[1][t], &in[t + 64], sizeof(float4), 4);
	__pipeline_commit();
	__pipeline_wait_prior(1);
	__syncthreads();
	out[t] = stage[0][63 - t];
	__pipeline_wait_prior(0);
	__syncthreads();
	out[t + 64] = stage[1][63 - t];
	out[t + 65] = __ldg(in + 3);
	out[t + 66] = __ldcs(in + 4);
	__stcg(out + 67, in[5]);
}
