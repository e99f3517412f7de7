// SPDX-License-Identifier: Apache-2.0
// Cooperative groups: tiles of every width, coalesced and labelled groups, reductions, scans, the grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "common.cuh"

namespace cg = cooperative_groups;

template <unsigned WIDTH> __device__ int tile_sum(cg::thread_block block, int value)
{
	auto tile = cg::tiled_partition<WIDTH>(block);
	int sum = cg::reduce(tile, value, cg::plus<int>());

	return tile.shfl(sum, 0) + cg::inclusive_scan(tile, value, cg::greater<int>());
}

// launch: tiles grid 4096 block 256 args i32[1048576]:small i32[1048576]:zero
KERNEL tiles(const int *in, int *out)
{
	cg::thread_block block = cg::this_thread_block();
	unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
	int value = in[at];

	out[at] = tile_sum<32>(block, value) ^ tile_sum<16>(block, value) << 3 ^
		  tile_sum<8>(block, value) << 6 ^ tile_sum<4>(block, value) << 9 ^
		  tile_sum<2>(block, value) << 12;
}

// launch: tile_reduce_float grid 4096 block 256 args f32[1048576]:unit f32[32768]:zero
KERNEL tile_reduce_float(const float *in, float *out)
{
	auto tile = cg::tiled_partition<32>(cg::this_thread_block());
	unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = cg::reduce(tile, in[at], cg::plus<float>());

	if (tile.thread_rank() == 0)
		out[at / 32] = sum;
}

// launch: coalesced grid 4096 block 256 args i32[1048576]:small i32[1048576]:zero
KERNEL coalesced(const int *in, int *out)
{
	unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
	int value = in[at];

	if (value & 1) {
		cg::coalesced_group active = cg::coalesced_threads();
		auto same = cg::labeled_partition(active, value & 6);
		out[at] = cg::reduce(same, value, cg::bit_xor<int>()) + (int)active.thread_rank() +
			  (int)same.size();
	} else {
		auto half = cg::binary_partition(cg::coalesced_threads(), value > 8);
		out[at] = (int)half.size() * 100 + (int)half.meta_group_rank();
	}
}

// launch: filter_aggregated grid 4096 block 256 args i32[1048576]:small i32[1]:zero
KERNEL filter_aggregated(const int *in, int *count)
{
	unsigned at = blockIdx.x * blockDim.x + threadIdx.x;

	if (in[at] > 7) {
		cg::coalesced_group active = cg::coalesced_threads();
		if (active.thread_rank() == 0)
			atomicAdd(count, (int)active.size());
	}
}

// launch: grid_sync grid 128 block 256 cooperative args f32[1048576]:unit f32[32768]:zero i32=8
KERNEL grid_sync(float *data, float *partial, int rounds)
{
	cg::grid_group grid = cg::this_grid();
	unsigned rank = (unsigned)grid.thread_rank(), size = (unsigned)grid.size();

	for (int round = 0; round < rounds; round++) {
		float sum = 0;
		for (unsigned k = rank; k < 1048576; k += size)
			sum += data[k];
		partial[rank] = sum;
		grid.sync();
		float other = partial[(rank * 7 + 1) % size];
		for (unsigned k = rank; k < 1048576; k += size)
			data[k] = data[k] * 0.5f + other * 0.001f;
		grid.sync();
	}
}

// launch: async_copy grid 1024 block 128 args f32[1048576]:unit f32[131072]:zero
#include <cooperative_groups/memcpy_async.h>
KERNEL async_copy(const float *in, float *out)
{
	__shared__ float tile[1024];
	cg::thread_block block = cg::this_thread_block();
	float sum = 0;

	cg::memcpy_async(block, tile, in + blockIdx.x * 1024, sizeof tile);
	cg::wait(block);
	for (unsigned k = 0; k < 8; k++)
		sum += tile[(threadIdx.x * 8 + k) % 1024];
	out[blockIdx.x * 128 + threadIdx.x] = sum;
}
