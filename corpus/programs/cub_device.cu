// SPDX-License-Identifier: Apache-2.0
// CUB's device-wide algorithms: a whole program, timed call by call; prints one JSON line each (name, microseconds, checksum).
#include <cub/cub.cuh>

#include "program.cuh"

int main()
{
	const int n = 1 << 24;
	buffer<unsigned> in(n), out(n), values(n), values_out(n), bins(256), count(1);
	buffer<float> real(n), real_out(n);
	buffer<int> offsets(1025);
	scratch s;

	fill<<<n / 256, 256>>>(in.data, real.data, values.data, n);
	segments<<<1025, 1>>>(offsets.data, n / 1024);
	timed("reduce", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceReduce::Sum(t, b, in.data, out.data, n); }); }, out, 1);
	timed("reduce_max", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceReduce::Max(t, b, real.data, real_out.data, n); }); }, real_out, 1);
	timed("arg_min", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceReduce::Reduce(t, b, in.data, out.data, n, cuda::minimum<>{}, ~0u); }); }, out, 1);
	timed("scan", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceScan::ExclusiveSum(t, b, in.data, out.data, n); }); }, out, n);
	timed("radix_sort", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceRadixSort::SortKeys(t, b, in.data, out.data, n); }); }, out, n);
	timed("radix_sort_pairs", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceRadixSort::SortPairs(t, b, in.data, out.data, values.data, values_out.data, n); }); }, values_out, n);
	timed("select", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceSelect::If(t, b, in.data, out.data, count.data, n, odd()); }); }, out, n / 3);
	timed("unique", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceSelect::Unique(t, b, values.data, values_out.data, count.data, n); }); }, count, 1);
	timed("partition", [&] { return s.call([&](void *t, size_t &b) { return cub::DevicePartition::If(t, b, in.data, out.data, count.data, n, odd()); }); }, out, n);
	timed("histogram", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceHistogram::HistogramEven(t, b, real.data, bins.data, 257, 0.0f, 1.0f, n); }); }, bins, 256);
	timed("segmented_reduce", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceSegmentedReduce::Sum(t, b, in.data, out.data, 1024, offsets.data, offsets.data + 1); }); }, out, 1024);
	timed("merge_sort", [&] { return s.call([&](void *t, size_t &b) { return cub::DeviceMergeSort::SortKeysCopy(t, b, in.data, out.data, n / 4, cuda::std::less<>{}); }); }, out, n / 4);
	timed("transform", [&] { return cub::DeviceTransform::Transform(in.data, out.data, n, twice()); }, out, n);
	return 0;
}
