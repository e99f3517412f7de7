// SPDX-License-Identifier: Apache-2.0
// sm_90a by hand: bulk copies with mbarriers, wgmma, clusters and distributed shared memory, register moves.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cuda_fp16.h>

#include "common.cuh"

namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

// launch: bulk_copy grid 1024 block 128 args f32[1048576]:unit f32[1048576]:zero
KERNEL bulk_copy(const float *in, float *out)
{
	__shared__ alignas(128) float tile[1024];
	__shared__ alignas(8) cuda::std::uint64_t bar;

	if (!threadIdx.x) {
		ptx::mbarrier_init(&bar, 1);
		ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
	}
	__syncthreads();
	if (!threadIdx.x) {
		ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile, in + blockIdx.x * 1024, sizeof tile, &bar);
		ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof tile);
	}
	while (!ptx::mbarrier_try_wait_parity(&bar, 0))
		;
	for (unsigned k = threadIdx.x; k < 1024; k += 128)
		tile[k] = tile[k] * 2 + 1;
	ptx::fence_proxy_async(ptx::space_shared);
	__syncthreads();
	if (!threadIdx.x) {
		ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * 1024, tile, sizeof tile);
		ptx::cp_async_bulk_commit_group();
		ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
	}
}

// launch: cluster_sum grid 512 block 128 cluster 4 args f32[65536]:unit f32[65536]:zero
KERNEL __cluster_dims__(4, 1, 1) cluster_sum(const float *in, float *out)
{
	__shared__ float mine[128];
	cg::cluster_group cluster = cg::this_cluster();
	unsigned at = blockIdx.x * 128 + threadIdx.x;
	float sum = 0;

	mine[threadIdx.x] = in[at];
	cluster.sync();
	for (unsigned k = 0; k < cluster.num_blocks(); k++)
		sum += *cluster.map_shared_rank(&mine[threadIdx.x ^ k], k);
	cluster.sync();
	out[at] = sum;
}

__device__ unsigned long long descriptor(const void *tile)
{
	unsigned at = (unsigned)__cvta_generic_to_shared(tile);

	/* no swizzle, 128 bytes between 8x8 cores along k, 256 along m and n */
	return (unsigned long long)(at >> 4 & 0x3fff) | 8ull << 16 | 16ull << 32;
}

// launch: wgmma_tile grid 1024 block 128 args f16[1048576]:unit f16[131072]:unit f32[524288]:zero i32=32
KERNEL __launch_bounds__(128) wgmma_tile(const __half *a, const __half *b, float *c, int rounds)
{
	__shared__ alignas(128) __half as[64 * 16], bs[8 * 16];
	float d[4] = {};

	for (unsigned k = threadIdx.x; k < 1024; k += 128)
		as[k] = a[blockIdx.x * 1024 + k];
	bs[threadIdx.x] = b[blockIdx.x * 128 + threadIdx.x];
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	unsigned long long da = descriptor(as), db = descriptor(bs);
	asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
	for (int k = 0; k < rounds; k++)
		asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
			     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
			     : "l"(da), "l"(db));
	asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;"
		     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
	*(float4 *)(c + (blockIdx.x * 128 + threadIdx.x) * 4) = make_float4(d[0], d[1], d[2], d[3]);
}

/* Bulk copies feed wgmma through two stages with mbarriers both ways; each block then multiplies again, plainly, and traps
   where the two differ. In a tile the 8x8 cores lie one behind the other, as the descriptors say. */
// launch: bulk_wgmma grid 264 block 160 args f16[2162688]:unit f16[270336]:unit f32[135168]:zero i32=8
KERNEL __launch_bounds__(160) bulk_wgmma(const __half *a, const __half *b, float *c, int tiles)
{
	__shared__ alignas(128) __half as[2][64 * 16], bs[2][8 * 16];
	__shared__ alignas(8) cuda::std::uint64_t full[2], empty[2];
	int lane = threadIdx.x % 32;

	a += (size_t)blockIdx.x * tiles * 1024;
	b += (size_t)blockIdx.x * tiles * 128;
	if (!threadIdx.x) {
		for (int k = 0; k < 2; k++) {
			ptx::mbarrier_init(&full[k], 1);
			ptx::mbarrier_init(&empty[k], 128);
		}
		ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
	}
	__syncthreads();
	if (threadIdx.x >= 128) {
		for (int k = 0; !lane && k < tiles; k++) {
			if (k >= 2)
				while (!ptx::mbarrier_try_wait_parity(&empty[k % 2], (k / 2 - 1) & 1))
					;
			ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[k % 2],
						       sizeof as[0] + sizeof bs[0]);
			ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, as[k % 2], a + k * 1024, sizeof as[0],
					   &full[k % 2]);
			ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, bs[k % 2], b + k * 128, sizeof bs[0],
					   &full[k % 2]);
		}
		return;
	}
	float d[4] = {};
	for (int k = 0; k < tiles; k++) {
		while (!ptx::mbarrier_try_wait_parity(&full[k % 2], k / 2 & 1))
			;
		unsigned long long da = descriptor(as[k % 2]), db = descriptor(bs[k % 2]);
		asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
		asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
			     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
			     : "l"(da), "l"(db));
		asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;"
			     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
		ptx::mbarrier_arrive(&empty[k % 2]);
	}
	for (int i = 0; i < 4; i++) {
		int m = threadIdx.x / 32 * 16 + lane / 4 + i / 2 * 8, n = lane % 4 * 2 + i % 2;
		float plain = 0;

		for (int k = 0; k < tiles * 16; k++) {
			int core = k % 16 / 8 * 64 + k % 8;
			plain += __half2float(a[k / 16 * 1024 + m / 8 * 128 + m % 8 * 8 + core]) *
				 __half2float(b[k / 16 * 128 + n * 8 + core]);
		}
		if (!(fabsf(plain - d[i]) <= 1e-4f * tiles * 16))
			__trap();
		c[(blockIdx.x * 128 + threadIdx.x) * 4 + i] = d[i];
	}
}

// launch: warp_specialised grid 264 block 256 args f32[2162688]:unit f32[33792]:zero i32=8
KERNEL __launch_bounds__(256) warp_specialised(const float *in, float *out, int tiles)
{
	__shared__ alignas(128) float tile[2][1024];
	__shared__ alignas(8) cuda::std::uint64_t full[2], empty[2];

	if (!threadIdx.x)
		for (int k = 0; k < 2; k++) {
			ptx::mbarrier_init(&full[k], 1);
			ptx::mbarrier_init(&empty[k], 128);
		}
	__syncthreads();
	if (threadIdx.x >= 128) {
		asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
		for (int k = 0; threadIdx.x == 128 && k < tiles; k++) {
			if (k >= 2)
				while (!ptx::mbarrier_try_wait_parity(&empty[k % 2], (k / 2 - 1) & 1))
					;
			ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[k % 2],
						       sizeof tile[0]);
			ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, tile[k % 2],
					   in + (blockIdx.x * tiles + k) * 1024, sizeof tile[0], &full[k % 2]);
		}
	} else {
		asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
		float sum = 0;
		for (int k = 0; k < tiles; k++) {
			while (!ptx::mbarrier_try_wait_parity(&full[k % 2], k / 2 & 1))
				;
			for (int j = 0; j < 8; j++)
				sum += tile[k % 2][threadIdx.x + j * 128];
			ptx::mbarrier_arrive(&empty[k % 2]);
		}
		out[blockIdx.x * 128 + threadIdx.x] = sum;
	}
}
