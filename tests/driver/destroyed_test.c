/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that what belonged to a destroyed context is refused and not used: graphs launched
 * afterwards, handles, captures; and that what cuda.h says belongs to none stays. */
#include "driver_tests.h"

#include <stdio.h>
#include <unistd.h>

static CUcontext primary; /* current in every test, before and after */

static int start(void **state)
{
	(void)state;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	return 0;
}

/* A context of its own on top of the primary one, with the module in it. */
static CUcontext push_context(void)
{
	CUcontext made;

	OK(cuCtxCreate(&made, NULL, 0, 0));
	OK(cuModuleLoad(&module, TALLY_BUILD_DIR "/tests/driver_kernels.so"));
	return made;
}

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

/* The kinds of nodes that write to memory. */
enum kind { KERNEL, COPY, FILL, VALUES, KINDS };

static CUgraphNode add_node(CUgraph graph, enum kind kind, uint32_t *words)
{
	uint32_t number = 7;
	void *params[] = {&words, &number};
	CUDA_KERNEL_NODE_PARAMS step = {.gridDimX = 1,
					.gridDimY = 1,
					.gridDimZ = 1,
					.blockDimX = 1,
					.blockDimY = 1,
					.blockDimZ = 1,
					.kernelParams = params};
	const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
				    .srcDevice = (CUdeviceptr)(words + 1),
				    .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				    .dstDevice = (CUdeviceptr)words,
				    .WidthInBytes = 4,
				    .Height = 1,
				    .Depth = 1};
	const CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = (CUdeviceptr)words, .value = 7, .elementSize = 4, .width = 1, .height = 1};
	CUstreamBatchMemOpParams value = {
		.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, (CUdeviceptr)words, {.value = 7}}};
	CUDA_BATCH_MEM_OP_NODE_PARAMS values = {.count = 1, .paramArray = &value};
	CUgraphNode node = NULL;

	if (kind == KERNEL) {
		step.func = kernel("step");
		OK(cuGraphAddKernelNode(&node, graph, NULL, 0, &step));
	} else if (kind == COPY) {
		OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL));
	} else if (kind == FILL) {
		OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, NULL));
	} else {
		OK(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &values));
	}
	return node;
}

/* Whatever can still be done with a graph whose nodes have lost what they need; then it ends. */
static void end_graph(CUgraph graph, CUgraphExec exec)
{
	char path[] = "/tmp/tally_destroyed.XXXXXX";
	int fd = mkstemp(path);
	CUgraphExec again;
	CUgraph copy;

	assert_true(fd >= 0);
	close(fd);
	OK(cuGraphDebugDotPrint(graph, path, 0));
	unlink(path);
	OK(cuGraphClone(&copy, graph));
	OK(cuGraphInstantiate(&again, copy, 0));
	OK(cuGraphExecDestroy(again));
	OK(cuGraphDestroy(copy));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void graphs_of_a_destroyed_context_are_refused(void **state)
{
	enum { BYTES = 3000 };
	CUstream stream = new_stream(); /* of the primary one, which lives */

	for (enum kind kind = 0; kind < KINDS; kind++) {
		CUcontext doomed = push_context();
		uint32_t *words = zeroed(BYTES);
		CUDA_KERNEL_NODE_PARAMS params;
		CUgraphExec exec;
		CUgraph graph;

		OK(cuGraphCreate(&graph, 0));
		CUgraphNode node = add_node(graph, kind, words);
		OK(cuGraphInstantiate(&exec, graph, 0));
		OK(cuGraphLaunch(exec, stream));
		OK(cuStreamSynchronize(stream));
		OK(cuCtxDestroy(doomed));
		/* Very likely the memory that it had. */
		unsigned char *mine = memset(malloc(BYTES), 0xa5, BYTES);
		assert_int_equal(cuGraphLaunch(exec, stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
		assert_int_equal(cuGraphLaunch(exec, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
		OK(cuStreamSynchronize(stream));
		for (int i = 0; i < BYTES; i++)
			assert_int_equal(mine[i], 0xa5);
		free(mine);
		if (kind == KERNEL)
			OK(cuGraphKernelNodeGetParams(node, &params));
		end_graph(graph, exec);
	}
	OK(cuStreamDestroy(stream));
}

/* As a capture makes them; and the primary context, whose memory is used again. */
static void captured_graphs_of_a_reset_context_are_refused(void **state)
{
	uint32_t *words = zeroed(64), number = 1;
	void *params[] = {&words, &number};
	CUstream stream = new_stream();
	CUgraphExec exec;
	CUgraph graph;

	OK(cuModuleLoad(&module, TALLY_BUILD_DIR "/tests/driver_kernels.so"));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(launch(kernel("step"), 1, stream, params));
	OK(cuMemsetD32Async((CUdeviceptr)words, 1, 2, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuDevicePrimaryCtxReset(0));
	assert_int_equal(cuGraphLaunch(exec, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	end_graph(graph, exec);
}

static void kernels_of_an_unloaded_module_are_refused(void **state)
{
	CUcontext own = push_context();
	uint32_t *words = zeroed(64);
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraphExec exec;
	const char *name;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	CUgraphNode node = add_node(graph, KERNEL, words);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuModuleUnload(module));
	assert_int_equal(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuGraphKernelNodeGetParams(node, &params));
	assert_ptr_equal(*(uint32_t **)params.kernelParams[0], words);
	assert_int_equal(cuFuncGetName(&name, params.func), CUDA_ERROR_INVALID_HANDLE);
	OK(cuModuleLoad(&module, TALLY_BUILD_DIR "/tests/driver_kernels.so"));
	params.func = kernel("step");
	OK(cuGraphExecKernelNodeSetParams(exec, node, &params));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	assert_int_equal(words[0], 7);
	end_graph(graph, exec);
	OK(cuCtxDestroy(own));
}

static void what_uses_freed_memory_is_refused(void **state)
{
	static const size_t sizes[] = {64, 3000, 300000};

	for (int i = 0; i < 3 * KINDS; i++) {
		enum kind kind = i % KINDS;
		uint32_t *words = zeroed(sizes[i / KINDS]);
		CUgraphExec exec;
		CUgraph graph;

		if (kind == KERNEL)
			continue;
		OK(cuGraphCreate(&graph, 0));
		add_node(graph, kind, words);
		OK(cuGraphInstantiate(&exec, graph, 0));
		OK(cuGraphLaunch(exec, NULL));
		OK(cuMemFree((CUdeviceptr)words));
		assert_int_equal(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
		end_graph(graph, exec);
	}
	OK(cuCtxSynchronize());
}

static void handles_end_with_their_context(void **state)
{
	CUcontext doomed = push_context();
	CUdeviceptr memory = (CUdeviceptr)zeroed(64);
	CUfunction function = kernel("empty");
	CUstream stream = new_stream();
	CUevent event;
	CUfunction got;
	void *host;

	OK(cuMemAllocHost(&host, 64));
	OK(cuEventCreate(&event, 0));
	OK(cuEventRecord(event, stream));
	OK(cuCtxDestroy(doomed));
	assert_int_equal(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuStreamWaitEvent(NULL, event, 0), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(launch(function, 1, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuModuleGetFunction(&got, module, "empty"), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxSetCurrent(doomed), CUDA_ERROR_INVALID_CONTEXT);
}

/* The event of a failed context has that error, whatever its stream is used for now. */
static void an_event_has_the_error_of_its_own_context(void **state)
{
	CUcontext healthy = push_context(), failed = push_context();
	CUstream stream = new_stream(), other;
	CUevent event;

	OK(cuEventCreate(&event, 0));
	OK(cuEventRecord(event, stream));
	OK(cuEventSynchronize(event));
	OK(launch(kernel("trap"), 1, NULL, NULL));
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuStreamDestroy(stream));
	OK(cuCtxSetCurrent(healthy));
	other = new_stream(); /* the same memory */
	assert_int_equal(cuEventQuery(event), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuStreamDestroy(other));
	OK(cuCtxDestroy(failed));
	OK(cuCtxDestroy(healthy));
	OK(cuCtxSetCurrent(primary));
}

/* A stream that was captured when its context went is captured no more, whoever gets its memory. */
static void captures_end_with_their_context(void **state)
{
	enum { STREAMS = 8 };
	CUcontext doomed = push_context();
	CUstreamCaptureStatus status;
	CUstream streams[STREAMS];

	for (int i = 0; i < STREAMS; i++) {
		streams[i] = new_stream();
		OK(cuStreamBeginCapture(streams[i], CU_STREAM_CAPTURE_MODE_RELAXED));
	}
	OK(cuCtxDestroy(doomed));
	for (int i = 0; i < STREAMS; i++) {
		streams[i] = new_stream();
		OK(cuStreamIsCapturing(streams[i], &status));
		assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
	}
	for (int i = 0; i < STREAMS; i++)
		OK(cuStreamDestroy(streams[i]));
}

/* cuda.h at cuCtxDestroy: memory of pools is of no context. */
static void memory_of_pools_outlives_the_context(void **state)
{
	CUcontext doomed = push_context(), owner;
	cuuint64_t before, used;
	CUmemoryPool pool;
	CUdeviceptr memory;
	uint32_t word = 0;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &before));
	OK(cuMemAllocAsync(&memory, 4096, NULL));
	OK(cuMemsetD32(memory, 5, 1024));
	OK(cuCtxDestroy(doomed));
	OK(cuMemcpyDtoH(&word, memory + 4092, 4));
	assert_int_equal(word, 5);
	OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, memory));
	assert_null(owner);
	OK(cuMemFreeAsync(memory, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	assert_int_equal(used, before);
}

/* Nor is a graph's: freed with the context it would be freed again with the graph, when somebody
 * else has it. */
static void memory_of_graphs_outlives_the_context(void **state)
{
	enum { BYTES = 3000 };
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = BYTES};
	CUcontext doomed = push_context();
	CUdeviceptr base;
	CUgraphNode node;
	size_t size;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	OK(cuCtxDestroy(doomed));
	OK(cuMemGetAddressRange(&base, &size, params.dptr));
	assert_true(base == params.dptr && size == BYTES);
	OK(cuMemsetD8(params.dptr, 1, BYTES));
	OK(cuGraphDestroy(graph));
	assert_int_equal(cuMemGetAddressRange(&base, &size, params.dptr), CUDA_ERROR_NOT_FOUND);
}

/* cuda.h at CUDA_ERROR_CONTEXT_IS_DESTROYED: also a primary one that nobody has retained. */
static void a_released_primary_context_says_so(void **state)
{
	CUdeviceptr memory;
	CUcontext again;

	OK(cuDevicePrimaryCtxRelease(0));
	assert_int_equal(cuMemAlloc(&memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	assert_ptr_equal(again, primary);
	OK(cuMemAlloc(&memory, 4));
	OK(cuMemFree(memory));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_of_a_destroyed_context_are_refused),
		cmocka_unit_test(captured_graphs_of_a_reset_context_are_refused),
		cmocka_unit_test(kernels_of_an_unloaded_module_are_refused),
		cmocka_unit_test(what_uses_freed_memory_is_refused),
		cmocka_unit_test(handles_end_with_their_context),
		cmocka_unit_test(an_event_has_the_error_of_its_own_context),
		cmocka_unit_test(captures_end_with_their_context),
		cmocka_unit_test(memory_of_pools_outlives_the_context),
		cmocka_unit_test(memory_of_graphs_outlives_the_context),
		cmocka_unit_test(a_released_primary_context_says_so),
	};

	return cmocka_run_group_tests(tests, start, stop_driver);
}
