// SPDX-License-Identifier: Apache-2.0
// What the whole programs share: device buffers, timing by events, a checksum of a result.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                      \
	do {                                                                                             \
		cudaError_t error_ = (call);                                                             \
		if (error_ != cudaSuccess) {                                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_)); \
			exit(1);                                                                         \
		}                                                                                        \
	} while (0)

template <typename T> struct buffer {
	T *data;
	explicit buffer(size_t n)
	{
		CHECK(cudaMalloc(&data, n * sizeof(T)));
		CHECK(cudaMemset(data, 0, n * sizeof(T)));
	}
};

// CUB's way: ask for the size, then call.
struct scratch {
	void *memory = nullptr;
	size_t size = 0;
	template <typename F> cudaError_t call(F f)
	{
		size_t wanted = 0;
		CHECK(f(nullptr, wanted));
		if (wanted > size) {
			CHECK(cudaFree(memory));
			CHECK(cudaMalloc(&memory, wanted));
			size = wanted;
		}
		return f(memory, wanted);
	}
};

struct odd {
	__device__ bool operator()(unsigned x) const { return x & 1; }
};
struct twice {
	__device__ unsigned operator()(unsigned x) const { return x * 2 + 1; }
};

inline __global__ void fill(unsigned *words, float *reals, unsigned *runs, int n)
{
	unsigned at = blockIdx.x * blockDim.x + threadIdx.x, x = at * 2654435761u;

	if (at >= (unsigned)n)
		return;
	x = (x ^ x >> 15) * 0x846ca68bu;
	words[at] = x ^ x >> 16;
	reals[at] = (float)(words[at] >> 8) / 16777216.0f;
	runs[at] = at / 5;
}

inline __global__ void segments(int *offsets, int size)
{
	offsets[blockIdx.x] = (int)blockIdx.x * size;
}

template <typename F, typename T> void timed(const char *name, F call, buffer<T> &result, size_t n)
{
	std::vector<unsigned char> bytes(n * sizeof(T));
	std::vector<float> times;
	unsigned long long sum = 1469598103934665603ull;
	cudaEvent_t from, to;

	CHECK(cudaEventCreate(&from));
	CHECK(cudaEventCreate(&to));
	for (int round = 0; round < 12; round++) {
		float ms;
		CHECK(cudaEventRecord(from));
		CHECK(call());
		CHECK(cudaEventRecord(to));
		CHECK(cudaEventSynchronize(to));
		CHECK(cudaEventElapsedTime(&ms, from, to));
		if (round > 1)
			times.push_back(ms * 1000);
	}
	std::sort(times.begin(), times.end());
	CHECK(cudaMemcpy(bytes.data(), result.data, bytes.size(), cudaMemcpyDeviceToHost));
	for (unsigned char b : bytes)
		sum = (sum ^ b) * 1099511628211ull;
	printf("{\"name\": \"%s\", \"us\": %.2f, \"hash\": \"%016llx\"}\n", name, times[times.size() / 2], sum);
	fflush(stdout);
}
