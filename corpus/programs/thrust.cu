// SPDX-License-Identifier: Apache-2.0
// Thrust's algorithms on device memory: a whole program, as cub_device.cu.
#include <thrust/adjacent_difference.h>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include "program.cuh"

struct square {
	__device__ float operator()(float x) const { return x * x; }
};

int main()
{
	const int n = 1 << 22;
	buffer<unsigned> in(n), out(n), runs(n), keys(n);
	buffer<float> real(n), real_out(n);
	auto policy = thrust::device;

	fill<<<n / 256, 256>>>(in.data, real.data, runs.data, n);
	timed("sort", [&] { thrust::copy(policy, in.data, in.data + n, out.data); thrust::sort(policy, out.data, out.data + n); return cudaGetLastError(); }, out, n);
	timed("sort_by_key", [&] { thrust::copy(policy, real.data, real.data + n, real_out.data); thrust::copy(policy, runs.data, runs.data + n, keys.data);
		thrust::sort_by_key(policy, real_out.data, real_out.data + n, keys.data); return cudaGetLastError(); }, keys, n);
	timed("sort_greater", [&] { thrust::copy(policy, in.data, in.data + n, out.data); thrust::sort(policy, out.data, out.data + n, thrust::greater<unsigned>()); return cudaGetLastError(); }, out, n);
	timed("transform_reduce", [&] { float s = thrust::transform_reduce(policy, real.data, real.data + n, square(), 0.0f, thrust::plus<float>()); return cudaMemcpy(real_out.data, &s, 4, cudaMemcpyHostToDevice); }, real_out, 1);
	timed("inclusive_scan", [&] { thrust::inclusive_scan(policy, in.data, in.data + n, out.data); return cudaGetLastError(); }, out, n);
	timed("scan_by_key", [&] { thrust::inclusive_scan_by_key(policy, runs.data, runs.data + n, in.data, out.data); return cudaGetLastError(); }, out, n);
	timed("reduce_by_key", [&] { thrust::reduce_by_key(policy, runs.data, runs.data + n, in.data, keys.data, out.data); return cudaGetLastError(); }, out, n / 5);
	timed("unique", [&] { thrust::unique_copy(policy, runs.data, runs.data + n, out.data); return cudaGetLastError(); }, out, n / 5);
	timed("adjacent_difference", [&] { thrust::adjacent_difference(policy, in.data, in.data + n, out.data); return cudaGetLastError(); }, out, n);
	timed("set_union", [&] { thrust::set_union(policy, runs.data, runs.data + n / 2, runs.data + n / 4, runs.data + n, out.data); return cudaGetLastError(); }, out, n / 2);
	return 0;
}
