// SPDX-License-Identifier: Apache-2.0
// Kernels of opaque.py: what the conformance suite cannot launch (clusters, 2^24 blocks and more, 8 KiB of parameters), and work of a known length.
#include <cooperative_groups.h>

namespace cg = cooperative_groups;
struct large {
	unsigned word[2048];
};

static __device__ unsigned linear()
{
	return (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
}

static __device__ void count(unsigned *runs)
{
	if (!(threadIdx.x | threadIdx.y | threadIdx.z))
		atomicAdd(&runs[linear()], 1u);
}

extern "C" __global__ void plain(unsigned *runs)
{
	count(runs);
}

// Each block reads its neighbour's shared memory: a cluster that is only partly there hangs or faults.
extern "C" __global__ void __cluster_dims__(2, 2, 1) cluster(unsigned *runs)
{
	__shared__ unsigned mine;
	cg::cluster_group all = cg::this_cluster();

	if (!threadIdx.x)
		mine = linear() + 1;
	all.sync();
	unsigned other = *all.map_shared_rank(&mine, (all.block_rank() + 1) % all.num_blocks());
	all.sync();
	if (other)
		count(runs);
}

// What ran, as a list: list[0] is how many.
extern "C" __global__ void listed(unsigned *list, unsigned most)
{
	if (!threadIdx.x) {
		unsigned k = atomicAdd(list, 1u);
		if (k < most)
			list[1 + k] = blockIdx.x;
	}
}

extern "C" __global__ void parameters(struct large by_value, unsigned *runs, unsigned last)
{
	if (by_value.word[2047] == last && by_value.word[0] == 1)
		count(runs);
}

// A serial chain: block i waits for block i - 1.
extern "C" __global__ void chain(volatile unsigned *done, unsigned *runs)
{
	if (!threadIdx.x) {
		unsigned u = linear();
		while (u && !done[u - 1])
			;
		done[u] = 1;
	}
	__syncthreads();
	count(runs);
}

extern "C" __global__ void work(float *out, long long steps)
{
	float x = threadIdx.x, y = 1.000001f;

	for (long long k = 0; k < steps; k++) {
		x = fmaf(x, y, 0.5f);
		x = fmaf(x, y, 0.25f);
		x = fmaf(x, y, 0.125f);
		x = fmaf(x, y, 0.75f);
	}
	if (x == -1.f)
		out[blockIdx.x] = x;
}

extern "C" __global__ void vadd(const float *a, const float *b, float *c, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}
