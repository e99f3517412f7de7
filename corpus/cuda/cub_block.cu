// SPDX-License-Identifier: Apache-2.0
// CUB's block and warp algorithms, each as the heart of one kernel.
#include <cub/cub.cuh>

#include "common.cuh"

// launch: block_reduce grid 2048 block 256 args f32[2097152]:unit f32[2048]:zero
KERNEL __launch_bounds__(256) block_reduce(const float *in, float *out)
{
	using Load = cub::BlockLoad<float, 256, 4, cub::BLOCK_LOAD_VECTORIZE>;
	using Reduce = cub::BlockReduce<float, 256>;
	__shared__ union {
		Load::TempStorage load;
		Reduce::TempStorage reduce;
	} temporary;
	float items[4];

	Load(temporary.load).Load(in + blockIdx.x * 1024, items);
	__syncthreads();
	float sum = Reduce(temporary.reduce).Sum(items);
	if (!threadIdx.x)
		out[blockIdx.x] = sum;
}

// launch: block_scan grid 2048 block 128 args i32[2097152]:small i32[2097152]:zero
KERNEL __launch_bounds__(128) block_scan(const int *in, int *out)
{
	using Load = cub::BlockLoad<int, 128, 8, cub::BLOCK_LOAD_TRANSPOSE>;
	using Store = cub::BlockStore<int, 128, 8, cub::BLOCK_STORE_TRANSPOSE>;
	using Scan = cub::BlockScan<int, 128, cub::BLOCK_SCAN_RAKING_MEMOIZE>;
	__shared__ union {
		Load::TempStorage load;
		Store::TempStorage store;
		Scan::TempStorage scan;
	} temporary;
	int items[8];

	Load(temporary.load).Load(in + blockIdx.x * 1024, items);
	__syncthreads();
	Scan(temporary.scan).ExclusiveSum(items, items);
	__syncthreads();
	Store(temporary.store).Store(out + blockIdx.x * 1024, items);
}

// launch: block_sort grid 1024 block 256 args u32[1048576]:random u32[1048576]:iota u32[1048576]:zero u32[1048576]:zero
KERNEL __launch_bounds__(256)
	block_sort(const unsigned *keys, const unsigned *values, unsigned *keys_out, unsigned *values_out)
{
	using Sort = cub::BlockRadixSort<unsigned, 256, 4, unsigned>;
	__shared__ Sort::TempStorage temporary;
	unsigned key[4], value[4];

	cub::LoadDirectStriped<256>(threadIdx.x, keys + blockIdx.x * 1024, key);
	cub::LoadDirectStriped<256>(threadIdx.x, values + blockIdx.x * 1024, value);
	Sort(temporary).SortBlockedToStriped(key, value);
	cub::StoreDirectStriped<256>(threadIdx.x, keys_out + blockIdx.x * 1024, key);
	cub::StoreDirectStriped<256>(threadIdx.x, values_out + blockIdx.x * 1024, value);
}

// launch: block_merge_sort grid 1024 block 256 args f32[1048576]:unit f32[1048576]:zero
KERNEL __launch_bounds__(256) block_merge_sort(const float *in, float *out)
{
	using Sort = cub::BlockMergeSort<float, 256, 4>;
	__shared__ Sort::TempStorage temporary;
	float items[4];

	cub::LoadDirectBlocked(threadIdx.x, in + blockIdx.x * 1024, items);
	Sort(temporary).Sort(items, [](float a, float b) { return a < b; });
	cub::StoreDirectBlocked(threadIdx.x, out + blockIdx.x * 1024, items);
}

// launch: block_histogram grid 1024 block 256 args u8[4194304]:random u32[262144]:zero
KERNEL __launch_bounds__(256) block_histogram(const unsigned char *in, unsigned *out)
{
	using Histogram = cub::BlockHistogram<unsigned char, 256, 16, 256, cub::BLOCK_HISTO_ATOMIC>;
	__shared__ Histogram::TempStorage temporary;
	__shared__ unsigned bins[256];
	unsigned char items[16];

	cub::LoadDirectStriped<256>(threadIdx.x, in + blockIdx.x * 4096, items);
	Histogram(temporary).Histogram(items, bins);
	__syncthreads();
	out[blockIdx.x * 256 + threadIdx.x] = bins[threadIdx.x];
}

// launch: warp_algorithms grid 2048 block 128 args i32[262144]:small i32[262144]:zero i32[8192]:zero
KERNEL warp_algorithms(const int *in, int *scan, int *sum)
{
	using Scan = cub::WarpScan<int>;
	using Reduce = cub::WarpReduce<int, 16>;
	__shared__ Scan::TempStorage a[4];
	__shared__ Reduce::TempStorage b[8];
	unsigned at = blockIdx.x * 128 + threadIdx.x;
	int value = in[at], out;

	Scan(a[threadIdx.x / 32]).InclusiveScan(value, out, cuda::maximum<>{});
	scan[at] = out;
	int total = Reduce(b[threadIdx.x / 16]).Sum(value);
	if (threadIdx.x % 32 == 0)
		sum[at / 32] = total;
}
