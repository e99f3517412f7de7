/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that graphs that were built node by node do their work in the order of their edges, each
 * launch behind what the stream had, and that they can be asked, copied, changed and drawn. */
#include "driver_tests.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static uint32_t turn(uint32_t value, uint32_t number)
{
	return value * 1664525u + number;
}

static CUgraph new_graph(void)
{
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	return graph;
}

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static CUDA_KERNEL_NODE_PARAMS node_params(const char *name, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS){.func = kernel(name),
					 .gridDimX = 1,
					 .gridDimY = 1,
					 .gridDimZ = 1,
					 .blockDimX = 1,
					 .blockDimY = 1,
					 .blockDimZ = 1,
					 .kernelParams = params};
}

/* A node that moves *value one step on. */
static CUgraphNode add_step(CUgraph graph, uint32_t *value, uint32_t number,
			    const CUgraphNode *after, size_t count)
{
	void *params[] = {&value, &number};
	CUDA_KERNEL_NODE_PARAMS p = node_params("step", params);
	CUgraphNode node;

	OK(cuGraphAddKernelNode(&node, graph, after, count, &p));
	memset(params, 0, sizeof params); /* the graph has copies */
	return node;
}

/* A node that works for `ns`, so that what does not wait for it comes too early. */
static CUgraphNode add_busy(CUgraph graph, uint64_t ns, const CUgraphNode *after, size_t count)
{
	uint32_t *none = NULL, id = 0;
	void *params[] = {&ns, &none, &none, &id};
	CUDA_KERNEL_NODE_PARAMS p = node_params("busy", params);
	CUgraphNode node;

	OK(cuGraphAddKernelNode(&node, graph, after, count, &p));
	return node;
}

static CUgraphExec ready(CUgraph graph)
{
	CUgraphExec exec;

	OK(cuGraphInstantiate(&exec, graph, 0));
	return exec;
}

static void edges_give_the_order(void **state)
{
	enum { NODES = 60, LAUNCHES = 20 };
	uint32_t *value = zeroed(4), expected = 0;
	CUgraph graph = new_graph();
	CUstream stream = new_stream();
	CUgraphNode nodes[NODES], slow;
	size_t count = 0;

	/* Made from the last to the first, so that their order tells nothing. */
	for (int i = NODES - 1; i >= 0; i--)
		nodes[i] = add_step(graph, value, (uint32_t)i, NULL, 0);
	for (int i = 1; i < NODES; i++)
		OK(cuGraphAddDependencies(graph, &nodes[i - 1], &nodes[i], NULL, 1));
	slow = add_busy(graph, 2000000, NULL, 0);
	OK(cuGraphAddDependencies(graph, &slow, &nodes[0], NULL, 1));
	OK(cuGraphGetNodes(graph, NULL, &count));
	assert_int_equal(count, NODES + 1);
	OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
	assert_int_equal(count, NODES);
	CUgraphExec exec = ready(graph);
	OK(cuGraphDestroy(graph)); /* the executable one does not need it */
	for (int launch = 0; launch < LAUNCHES; launch++) {
		OK(cuGraphLaunch(exec, stream));
		for (uint32_t i = 0; i < NODES; i++)
			expected = turn(expected, i);
	}
	OK(cuGraphExecDestroy(exec)); /* what was launched still runs */
	OK(cuStreamSynchronize(stream));
	assert_int_equal(*value, expected);
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)value));
}

static void cycles_are_refused(void **state)
{
	uint32_t *value = zeroed(4);
	CUgraph graph = new_graph();
	CUgraphNode a = add_step(graph, value, 1, NULL, 0), b = add_step(graph, value, 2, &a, 1);
	CUgraphExec exec;

	OK(cuGraphAddDependencies(graph, &b, &a, NULL, 1));
	assert_int_equal(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphRemoveDependencies(graph, &b, &a, NULL, 1));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphExecDestroy(exec));
	assert_int_equal(cuGraphAddDependencies(graph, &a, &a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGraphAddDependencies(graph, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	OK(cuMemFree((CUdeviceptr)value));
}

/* Two branches that wait for each other get through only side by side. */
static void branches_run_side_by_side(void **state)
{
	uint32_t *arrived = zeroed(4);
	void *params[] = {&arrived};
	CUDA_KERNEL_NODE_PARAMS p = node_params("meet_two", params);
	CUgraph graph = new_graph();
	CUstream stream = new_stream();
	CUgraphNode root, branch[2], end;

	OK(cuGraphAddEmptyNode(&root, graph, NULL, 0));
	for (int i = 0; i < 2; i++)
		OK(cuGraphAddKernelNode(&branch[i], graph, &root, 1, &p));
	OK(cuGraphAddEmptyNode(&end, graph, branch, 2));
	CUgraphExec exec = ready(graph);
	for (int i = 0; i < 10; i++)
		OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(*arrived, 20);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree((CUdeviceptr)arrived));
}

/* cuda.h: a launch comes behind the launches of the same executable graph in other streams, and
 * what the stream is given later comes behind the whole graph. */
static void launches_are_units(void **state)
{
	enum { LAUNCHES = 40 };
	uint32_t *value = zeroed(4), expected = 0, number = 99;
	void *params[] = {&value, &number};
	CUgraph graph = new_graph();
	CUstream streams[3] = {new_stream(), new_stream(), NULL};
	CUgraphNode last = NULL;

	for (uint32_t i = 0; i < 5; i++) {
		last = add_step(graph, value, i, &last, i != 0);
		last = add_busy(graph, 50000, &last, 1);
	}
	CUgraphExec exec = ready(graph);
	OK(cuGraphUpload(exec, streams[0]));
	for (int launch = 0; launch < LAUNCHES; launch++) {
		OK(cuGraphLaunch(exec, streams[launch % 3]));
		for (uint32_t i = 0; i < 5; i++)
			expected = turn(expected, i);
	}
	OK(launch(kernel("step"), 1, streams[(LAUNCHES - 1) % 3], params));
	expected = turn(expected, number);
	OK(cuCtxSynchronize());
	assert_int_equal(*value, expected);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(streams[0]));
	OK(cuStreamDestroy(streams[1]));
	OK(cuMemFree((CUdeviceptr)value));
}

static void copy_to(void *data)
{
	uint32_t **pair = data;

	*pair[0] = *pair[1];
}

/* Every kind of node in one chain. */
static void all_kinds_of_nodes(void **state)
{
	uint32_t *device = zeroed(256 * 4), *host, *seen = zeroed(8), *sum = zeroed(4);
	uint32_t *pair[] = {seen, NULL};
	CUgraph graph = new_graph(), child = new_graph();
	CUstream stream = new_stream();
	CUgraphNode node;
	CUevent event, unrelated;
	CUgraphExec exec;

	OK(cuMemHostAlloc((void **)&host, 256 * 4, 0));
	memset(host, 0, 256 * 4);
	pair[1] = host + 17;
	OK(cuEventCreate(&event, 0));
	OK(cuEventCreate(&unrelated, 0));
	CUDA_MEMSET_NODE_PARAMS fill = {.dst = (CUdeviceptr)device,
					.elementSize = 4,
					.value = 0x01020304,
					.width = 256,
					.height = 1};
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, context));
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = (CUdeviceptr)device,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = host,
			      .WidthInBytes = 256 * 4,
			      .Height = 1,
			      .Depth = 1};
	OK(cuGraphAddMemcpyNode(&node, graph, &node, 1, &copy, context));
	CUDA_HOST_NODE_PARAMS call = {copy_to, pair};
	OK(cuGraphAddHostNode(&node, graph, &node, 1, &call));
	OK(cuGraphAddEventWaitNode(&node, graph, &node, 1, unrelated));
	OK(cuGraphAddEventRecordNode(&node, graph, &node, 1, event));
	CUstreamBatchMemOpParams write = {
		.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
			       .address = (CUdeviceptr)(seen + 1),
			       .value = 77}};
	CUDA_BATCH_MEM_OP_NODE_PARAMS values = {.ctx = context, .count = 1, .paramArray = &write};
	OK(cuGraphAddBatchMemOpNode(&node, graph, &node, 1, &values));
	add_step(child, sum, 5, NULL, 0);
	OK(cuGraphAddChildGraphNode(&node, graph, &node, 1, child));
	OK(cuGraphDestroy(child)); /* it was copied */
	add_step(graph, sum, 6, &node, 1);
	exec = ready(graph);
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, stream));
	OK(cuEventSynchronize(event));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(host[255], 0x01020304);
	assert_int_equal(seen[0], 0x01020304);
	assert_int_equal(seen[1], 77);
	uint32_t expected = 0;
	for (int i = 0; i < 3; i++)
		expected = turn(turn(expected, 5), 6);
	assert_int_equal(*sum, expected);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuEventDestroy(event));
	OK(cuEventDestroy(unrelated));
	OK(cuStreamDestroy(stream));
	OK(cuMemFreeHost(host));
	OK(cuMemFree((CUdeviceptr)device));
}

/* An event outside that a graph waits for, and one inside that a stream waits for. */
static void events_reach_across(void **state)
{
	uint32_t *words = zeroed(8), *value = zeroed(4), *other = zeroed(4);
	uint32_t one = 1;
	void *params[] = {&other, &one};
	CUgraph graph = new_graph();
	CUstream stream = new_stream(), before = new_stream(), after = new_stream();
	CUgraphNode node;
	CUevent in, out;

	OK(cuEventCreate(&in, 0));
	OK(cuEventCreate(&out, 0));
	OK(cuGraphAddEventWaitNode(&node, graph, NULL, 0, in));
	node = add_step(graph, value, 3, &node, 1);
	OK(cuGraphAddEventRecordNode(&node, graph, &node, 1, out));
	CUgraphExec exec = ready(graph);
	hold(before, words);
	OK(cuEventRecord(in, before));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamWaitEvent(after, out, 0));
	OK(launch(kernel("step"), 1, after, params));
	assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventQuery(out), CUDA_ERROR_NOT_READY);
	assert_int_equal(*value, 0);
	assert_int_equal(*other, 0);
	let_go(words);
	OK(cuStreamSynchronize(after));
	assert_int_equal(*value, 3);
	assert_int_equal(*other, 1);
	OK(cuCtxSynchronize());
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuEventDestroy(in));
	OK(cuEventDestroy(out));
	OK(cuStreamDestroy(stream));
	OK(cuStreamDestroy(before));
	OK(cuStreamDestroy(after));
}

static void parameters_can_be_read_and_changed(void **state)
{
	uint32_t *a = zeroed(4), *b = zeroed(4), number = 9;
	void *params[] = {&b, &number};
	CUgraph graph = new_graph(), clone;
	CUgraphNode node = add_step(graph, a, 4, NULL, 0), found;
	CUDA_KERNEL_NODE_PARAMS p;
	CUgraphExec exec = ready(graph);
	CUgraphNodeType type;
	unsigned enabled;

	OK(cuGraphKernelNodeGetParams(node, &p));
	assert_ptr_equal(p.func, kernel("step"));
	assert_ptr_equal(*(uint32_t **)p.kernelParams[0], a);
	assert_int_equal(*(uint32_t *)p.kernelParams[1], 4);
	OK(cuGraphNodeGetType(node, &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_KERNEL);
	OK(cuGraphClone(&clone, graph));
	OK(cuGraphNodeFindInClone(&found, node, clone));
	assert_ptr_not_equal(found, node);

	/* In the executable graph alone. */
	p = node_params("step", params);
	OK(cuGraphExecKernelNodeSetParams(exec, node, &p));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(*a, 0);
	assert_int_equal(*b, 9);
	OK(cuGraphNodeSetEnabled(exec, node, 0));
	OK(cuGraphNodeGetEnabled(exec, node, &enabled));
	assert_int_equal(enabled, 0);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(*b, 9);
	OK(cuGraphExecDestroy(exec));

	/* In the graph: its clone keeps what it had. */
	OK(cuGraphKernelNodeSetParams(node, &p));
	exec = ready(clone);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(*a, 4);

	/* All of it at once. */
	CUgraphExecUpdateResultInfo info;
	OK(cuGraphExecUpdate(exec, graph, &info));
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(*a, 4);
	assert_int_equal(*b, turn(9, 9));
	add_step(graph, a, 1, &node, 1);
	assert_int_equal(cuGraphExecUpdate(exec, graph, &info),
			 CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(clone));
}

static void count_call(void *data)
{
	++*(int *)data;
}

static void objects_live_as_long_as_their_graphs(void **state)
{
	int destroyed = 0;
	CUgraph graph = new_graph();
	CUuserObject object;

	add_busy(graph, 1000, NULL, 0);
	OK(cuUserObjectCreate(&object, &destroyed, count_call, 1,
			      CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	CUgraphExec exec = ready(graph);
	OK(cuGraphDestroy(graph));
	assert_int_equal(destroyed, 0);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuGraphExecDestroy(exec));
	assert_int_equal(destroyed, 1);
}

static void memory_of_nodes_has_one_address(void **state)
{
	CUgraph graph = new_graph();
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 64,
	};
	uint32_t result = 0;
	CUgraphNode node;
	size_t before, with, after;

	OK(cuMemGetInfo(&before, &with));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &alloc));
	uint32_t *value = (uint32_t *)alloc.dptr;
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = alloc.dptr, .elementSize = 4, .width = 1, .height = 1};
	OK(cuGraphAddMemsetNode(&node, graph, &node, 1, &fill, context));
	node = add_step(graph, value, 12, &node, 1);
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = alloc.dptr,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = &result,
			      .WidthInBytes = 4,
			      .Height = 1,
			      .Depth = 1};
	OK(cuGraphAddMemcpyNode(&node, graph, &node, 1, &copy, context));
	OK(cuGraphAddMemFreeNode(&node, graph, &node, 1, alloc.dptr));
	CUgraphExec exec = ready(graph);
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(result, 12);
	OK(cuGraphDestroy(graph));
	OK(cuGraphExecDestroy(exec));
	OK(cuMemGetInfo(&after, &with));
	assert_int_equal(before, after);
}

static void graphs_can_be_drawn(void **state)
{
	char path[] = "/tmp/tally-graph-XXXXXX", text[4096] = "";
	int file = mkstemp(path);
	uint32_t *value = zeroed(4);
	CUgraph graph = new_graph();
	CUgraphNode node = add_step(graph, value, 1, NULL, 0);

	add_step(graph, value, 2, &node, 1);
	OK(cuGraphDebugDotPrint(graph, path, 0));
	assert_true(pread(file, text, sizeof text - 1, 0) > 0);
	assert_non_null(strstr(text, "digraph"));
	assert_non_null(strstr(text, "KERNEL\\nstep"));
	assert_non_null(strstr(text, "->"));
	close(file);
	unlink(path);
	assert_int_equal(cuGraphDebugDotPrint(graph, "/nonexistent/x", 0),
			 CUDA_ERROR_OPERATING_SYSTEM);
	OK(cuGraphDestroy(graph));
}

static void what_is_not_there_is_refused(void **state)
{
	CUgraph graph = new_graph();
	CUgraphNode node;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphExec exec;

	assert_int_equal(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(
		cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
		CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuGraphLaunch(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	params.type = CU_GRAPH_NODE_TYPE_EMPTY;
	OK(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
	OK(cuGraphDestroyNode(node));
	OK(cuGraphDestroy(graph));
}

/* Two gangs that would have half of the workers each. */
static void cooperative_launches_run_whole(void **state)
{
	uint32_t *arrived = zeroed(8);
	int workers, fits;
	CUstream streams[2] = {new_stream(), new_stream()};

	OK(cuDeviceGetAttribute(&workers, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&fits, kernel("meet"), 1, 0));
	for (int i = 0; i < 40; i++) {
		uint32_t *place = arrived + i % 2;
		void *params[] = {&place};
		OK(cuLaunchCooperativeKernel(kernel("meet"), (unsigned)(workers * fits), 1, 1, 1, 1,
					     1, 0, streams[i % 2], params));
	}
	OK(cuCtxSynchronize());
	assert_int_equal(arrived[0], 20 * workers);
	assert_int_equal(arrived[1], 20 * workers);
	OK(cuStreamDestroy(streams[0]));
	OK(cuStreamDestroy(streams[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges_give_the_order),
		cmocka_unit_test(cycles_are_refused),
		cmocka_unit_test(branches_run_side_by_side),
		cmocka_unit_test(launches_are_units),
		cmocka_unit_test(all_kinds_of_nodes),
		cmocka_unit_test(events_reach_across),
		cmocka_unit_test(parameters_can_be_read_and_changed),
		cmocka_unit_test(objects_live_as_long_as_their_graphs),
		cmocka_unit_test(memory_of_nodes_has_one_address),
		cmocka_unit_test(graphs_can_be_drawn),
		cmocka_unit_test(what_is_not_there_is_refused),
		cmocka_unit_test(cooperative_launches_run_whole),
	};

	/* A branch that waits for another one needs a worker beside it. */
	setenv("TALLY_CPU_WORKERS", "3", 0);
	return cmocka_run_group_tests(tests, start_driver, stop_driver);
}
