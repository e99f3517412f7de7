/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs through the runtime: captured, and built from nodes of every type; changed, copied,
 * launched in several streams. Runs on a GPU as well; every value is checked exactly. */
#include <unistd.h>

#include "check.h"

#define N 1024

__device__ unsigned variable[N];

static unsigned turn(unsigned value, unsigned number)
{
	return value * 1664525u + number;
}

/* Each element goes one step on, which depends on all steps before. */
__global__ void step(unsigned *values, unsigned number)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	values[i] = values[i] * 1664525u + number;
}

static unsigned *values, *other, *pinned;

static void reset(void)
{
	OK(cudaMemset(values, 0, N * 4));
	OK(cudaMemset(other, 0, N * 4));
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		pinned[i] = 0;
}

static void check_values(const unsigned *device, unsigned expected)
{
	static unsigned got[N];

	OK(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		CHECK(got[i] == expected);
}

static void CUDART_CB note(void *data)
{
	++*(int *)data;
}

/* What is captured: ten steps, a copy in another stream, three things behind both. */
static void fill_capture(cudaStream_t stream, cudaStream_t side, int *notes)
{
	cudaEvent_t fork, join;

	OK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	OK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	for (unsigned i = 0; i < 10; i++)
		step<<<N / 128, 128, 0, stream>>>(values, i);
	OK(cudaEventRecord(fork, stream));
	OK(cudaStreamWaitEvent(side, fork, 0));
	OK(cudaMemcpyAsync(other, values, N * 4, cudaMemcpyDeviceToDevice, side));
	OK(cudaEventRecord(join, side));
	OK(cudaStreamWaitEvent(stream, join, 0));
	OK(cudaMemcpyAsync(pinned, other, N * 4, cudaMemcpyDeviceToHost, stream));
	OK(cudaMemsetAsync(other, 0xab, N * 4, stream));
	OK(cudaLaunchHostFunc(stream, note, notes));
	OK(cudaEventDestroy(fork));
	OK(cudaEventDestroy(join));
}

static void captured(void)
{
	cudaStream_t stream, side;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStreamCaptureStatus status;
	unsigned expected = 0;
	int notes = 0;
	size_t nodes;

	reset();
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	fill_capture(stream, side, &notes);
	OK(cudaStreamIsCapturing(stream, &status));
	CHECK(status == cudaStreamCaptureStatusActive);
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaGetLastError());
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaGetLastError());

	/* The same once more, without the mistake. */
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	fill_capture(stream, side, &notes);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphGetNodes(graph, NULL, &nodes));
	CHECK(nodes == 14);
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphUpload(exec, stream));
	check_values(values, 0); /* nothing ran */
	for (int i = 0; i < 20; i++) {
		OK(cudaGraphLaunch(exec, i % 2 ? stream : side));
		for (unsigned k = 0; k < 10; k++)
			expected = turn(expected, k);
	}
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamSynchronize(side));
	check_values(values, expected);
	check_values(other, 0xabababab);
	for (int i = 0; i < N; i++)
		CHECK(pinned[i] == expected);
	CHECK(notes == 20);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
	OK(cudaStreamDestroy(side));
}

static cudaGraphNode_t add_step(cudaGraph_t graph, unsigned *where, unsigned number,
				const cudaGraphNode_t *after, size_t count)
{
	void *arguments[] = {&where, &number};
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = (void *)step;
	params.gridDim = dim3(N / 128);
	params.blockDim = dim3(128);
	params.kernelParams = arguments;
	OK(cudaGraphAddKernelNode(&node, graph, after, count, &params));
	return node;
}

static void built(void)
{
	cudaGraph_t graph, child, clone, inner;
	cudaGraphExec_t exec;
	cudaGraphNode_t node, first, copy, copied, nodes[16];
	cudaGraphNodeType type;
	cudaKernelNodeParams params;
	cudaMemsetParams fill = {};
	cudaHostNodeParams call = {};
	cudaMemcpy3DParms box;
	cudaGraphExecUpdateResultInfo info;
	cudaStream_t stream;
	cudaEvent_t event;
	int notes = 0;
	unsigned enabled, number;
	size_t count;
	char path[] = "/tmp/tally-graph-XXXXXX";

	reset();
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreate(&event));
	OK(cudaGraphCreate(&graph, 0));
	fill.dst = values;
	fill.elementSize = 4;
	fill.value = 3;
	fill.width = N;
	fill.height = 1;
	OK(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
	first = add_step(graph, values, 5, &node, 1);
	OK(cudaGraphCreate(&child, 0));
	node = add_step(child, values, 6, NULL, 0);
	add_step(child, values, 7, &node, 1);
	OK(cudaGraphAddChildGraphNode(&node, graph, &first, 1, child));
	OK(cudaGraphChildGraphNodeGetGraph(node, &inner));
	OK(cudaGraphGetNodes(inner, NULL, &count));
	CHECK(count == 2);
	OK(cudaGraphDestroy(child));
	OK(cudaGraphAddEmptyNode(&node, graph, &node, 1));
	OK(cudaGraphAddMemcpyNodeToSymbol(&node, graph, &node, 1, variable, values, N * 4, 0,
					  cudaMemcpyDeviceToDevice));
	OK(cudaGraphAddMemcpyNodeFromSymbol(&node, graph, &node, 1, other, variable, N * 4, 0,
					    cudaMemcpyDeviceToDevice));
	OK(cudaGraphAddMemcpyNode1D(&copy, graph, &node, 1, pinned, other, N * 4,
				    cudaMemcpyDeviceToHost));
	call.fn = note;
	call.userData = &notes;
	OK(cudaGraphAddHostNode(&node, graph, &copy, 1, &call));
	OK(cudaGraphAddEventRecordNode(&node, graph, &node, 1, event));
	count = 16;
	OK(cudaGraphGetNodes(graph, nodes, &count));
	CHECK(count == 9);
	OK(cudaGraphNodeGetType(copy, &type));
	CHECK(type == cudaGraphNodeTypeMemcpy);
	OK(cudaGraphMemcpyNodeGetParams(copy, &box));
	CHECK(box.extent.width == N * 4 && box.dstPtr.ptr == pinned);
	OK(cudaGraphKernelNodeGetParams(first, &params));
	CHECK(params.func == (void *)step && params.gridDim.x == N / 128);
	CHECK(*(unsigned **)params.kernelParams[0] == values);
	OK(cudaGraphClone(&clone, graph));
	OK(cudaGraphNodeFindInClone(&copied, first, clone));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaEventSynchronize(event));
	unsigned expected = turn(turn(turn(3, 5), 6), 7);
	check_values(other, expected);
	for (int i = 0; i < N; i++)
		CHECK(pinned[i] == expected);
	CHECK(notes == 1);

	/* One node of the executable graph does something else, or nothing. */
	number = 50;
	void *arguments[] = {&values, &number};
	params.kernelParams = arguments;
	OK(cudaGraphExecKernelNodeSetParams(exec, first, &params));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	check_values(other, turn(turn(turn(3, 50), 6), 7));
	OK(cudaGraphNodeSetEnabled(exec, first, 0));
	OK(cudaGraphNodeGetEnabled(exec, first, &enabled));
	CHECK(!enabled);
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	check_values(other, turn(turn(3, 6), 7));
	OK(cudaGraphNodeSetEnabled(exec, first, 1));

	/* All of them: from the clone, where one node is another. */
	number = 60;
	OK(cudaGraphKernelNodeSetParams(copied, &params));
	OK(cudaGraphExecUpdate(exec, clone, &info));
	CHECK(info.result == cudaGraphExecUpdateSuccess);
	for (int i = 0; i < 3; i++)
		OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	check_values(other, turn(turn(turn(3, 60), 6), 7));
	CHECK(notes == 6);
	add_step(clone, values, 1, NULL, 0);
	EXPECT(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, clone, &info));
	EXPECT(cudaErrorGraphExecUpdateFailure, cudaGetLastError());

	int file = mkstemp(path);
	CHECK(file >= 0);
	OK(cudaGraphDebugDotPrint(graph, path, 0));
	CHECK(lseek(file, 0, SEEK_END) > 20);
	close(file);
	unlink(path);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaGraphDestroy(clone));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(stream));
}

/* Long enough that a program that may be stopped is, in the middle. */
static void long_chain(void)
{
	enum { STEPS = 300, LAUNCHES = 5 };
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	unsigned expected = 0;

	reset();
	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	for (unsigned i = 0; i < STEPS; i++)
		step<<<N / 128, 128, 0, stream>>>(values, i);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	for (int i = 0; i < LAUNCHES; i++) {
		OK(cudaGraphLaunch(exec, stream));
		for (unsigned k = 0; k < STEPS; k++)
			expected = turn(expected, k);
	}
	OK(cudaStreamSynchronize(stream));
	check_values(values, expected);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaStreamDestroy(stream));
}

/* Memory that is asked for in a capture. */
static void memory_nodes(void)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	unsigned *memory;

	reset();
	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaMallocAsync((void **)&memory, N * 4, stream));
	OK(cudaMemsetAsync(memory, 0, N * 4, stream));
	step<<<N / 128, 128, 0, stream>>>(memory, 9);
	OK(cudaMemcpyAsync(values, memory, N * 4, cudaMemcpyDeviceToDevice, stream));
	OK(cudaFreeAsync(memory, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	check_values(values, 9);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamDestroy(stream));
}

int main(void)
{
	OK(cudaMalloc((void **)&values, N * 4));
	OK(cudaMalloc((void **)&other, N * 4));
	OK(cudaMallocHost((void **)&pinned, N * 4));
	captured();
	built();
	long_chain();
	memory_nodes();
	OK(cudaDeviceSynchronize());
	puts("ok");
	return 0;
}
