// SPDX-License-Identifier: Apache-2.0
/* Cooperative launches whose blocks meet in cooperative groups' grid barrier: in one call, in two
 * halves, by threads of every shape, out of a graph; and a block that fails while others wait. */
#include <cooperative_groups.h>
#include <unistd.h>
#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

/* Each round every thread takes a value of another block's; `ready` is the other buffer. */
__global__ void turn(unsigned *values, unsigned *ready, int rounds)
{
	cg::grid_group grid = cg::this_grid();
	unsigned long long i = grid.thread_rank(), n = grid.size();

	for (int r = 0; r < rounds; r++) {
		ready[i] = values[(i + n / 2 + 1) % n] * 3u + (unsigned)i;
		grid.sync();
		values[i] = ready[(i + 1) % n] + r;
		grid.sync();
	}
}

/* Work of its own between arriving and waiting; block 0's sum of all comes last. */
__global__ void halves(unsigned *parts, unsigned *sum)
{
	__shared__ unsigned mine;
	cg::grid_group grid = cg::this_grid();

	if (threadIdx.x == 0)
		mine = 0;
	__syncthreads();
	atomicAdd(&mine, threadIdx.x + 1);
	__syncthreads();
	if (threadIdx.x == 0)
		parts[blockIdx.x] = mine * (blockIdx.x + 1);
	auto token = grid.barrier_arrive();
	mine = 0;
	grid.barrier_wait(std::move(token));
	if (grid.thread_rank() == 0)
		for (unsigned b = 0; b < gridDim.x; b++)
			*sum += parts[b];
}

__global__ void fails(unsigned *values)
{
	if (blockIdx.x == gridDim.x - 1)
		__trap();
	cg::this_grid().sync();
	values[blockIdx.x] = 1;
}

static std::vector<unsigned> expected(size_t n, int rounds, int times)
{
	std::vector<unsigned> values(n), ready(n);

	for (size_t i = 0; i < n; i++)
		values[i] = (unsigned)i;
	for (int r = 0; r < rounds * times; r++) {
		for (size_t i = 0; i < n; i++)
			ready[i] = values[(i + n / 2 + 1) % n] * 3u + (unsigned)i;
		for (size_t i = 0; i < n; i++)
			values[i] = ready[(i + 1) % n] + r % rounds;
	}
	return values;
}

static void turns(unsigned blocks, dim3 block, bool captured)
{
	size_t n = (size_t)blocks * block.x * block.y * block.z;
	std::vector<unsigned> got(n);
	unsigned *values, *ready;
	int rounds = 7;
	cudaStream_t stream;

	for (size_t i = 0; i < n; i++)
		got[i] = (unsigned)i;
	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&values, n * 4));
	OK(cudaMalloc(&ready, n * 4));
	OK(cudaMemcpy(values, got.data(), n * 4, cudaMemcpyHostToDevice));
	void *arguments[] = {&values, &ready, &rounds};
	if (captured) {
		cudaGraph_t graph;
		cudaGraphExec_t exec;

		OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
		OK(cudaLaunchCooperativeKernel((void *)turn, dim3(blocks), block, arguments, 0,
					       stream));
		OK(cudaStreamEndCapture(stream, &graph));
		OK(cudaGraphInstantiate(&exec, graph, 0));
		OK(cudaGraphLaunch(exec, stream));
		OK(cudaGraphLaunch(exec, stream));
		OK(cudaStreamSynchronize(stream));
		OK(cudaGraphExecDestroy(exec));
		OK(cudaGraphDestroy(graph));
	} else {
		for (int i = 0; i < 2; i++)
			OK(cudaLaunchCooperativeKernel((void *)turn, dim3(blocks), block, arguments,
						       0, stream));
	}
	OK(cudaMemcpyAsync(got.data(), values, n * 4, cudaMemcpyDeviceToHost, stream));
	OK(cudaStreamSynchronize(stream));
	CHECK(got == expected(n, rounds, 2));
	OK(cudaFree(values));
	OK(cudaFree(ready));
	OK(cudaStreamDestroy(stream));
}

static void two_halves(unsigned blocks)
{
	unsigned *parts, *sum, got, right = 0;
	void *arguments[] = {&parts, &sum};

	OK(cudaMalloc(&parts, blocks * 4));
	OK(cudaMalloc(&sum, 4));
	OK(cudaMemset(sum, 0, 4));
	OK(cudaLaunchCooperativeKernel((void *)halves, dim3(blocks), dim3(64), arguments, 0, 0));
	OK(cudaMemcpy(&got, sum, 4, cudaMemcpyDeviceToHost));
	for (unsigned b = 0; b < blocks; b++)
		right += 64 * 65 / 2 * (b + 1);
	CHECK(got == right);
	OK(cudaFree(parts));
	OK(cudaFree(sum));
}

int main(void)
{
	int multiprocessors, fit, supported;

	setenv("TALLY_CPU_WORKERS", "4", 0);
	alarm(50); /* rather than to wait for ever */
	OK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
	CHECK(supported == 1);
	OK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, turn, 128, 0));
	unsigned blocks = multiprocessors * fit;
	turns(blocks, dim3(128), false);
	turns(blocks, dim3(8, 4, 2), false);
	turns(blocks, dim3(33), true);
	turns(1, dim3(64), false);
	two_halves(blocks);

	unsigned *values;
	void *arguments[] = {&values};
	OK(cudaMalloc(&values, blocks * 4));
	OK(cudaLaunchCooperativeKernel((void *)fails, dim3(blocks), dim3(32), arguments, 0, 0));
	EXPECT(cudaErrorLaunchFailure, cudaDeviceSynchronize());
	puts("ok");
	return 0;
}
