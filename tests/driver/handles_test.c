/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that are none: whatever a program passes for an object, it gets an error, not a fault. */
#include "driver_tests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backends/cpu/driver/handles.h"

/* Every function of the driver that takes an object and looks into it; `g` is none of that kind.
 * Streams, events, functions and modules first, which programs pass most. */
#define CALLS(X)                                                                                   \
	X(STREAM, cuStreamSynchronize(g))                                                          \
	X(STREAM, cuStreamQuery(g))                                                                \
	X(STREAM, cuStreamDestroy(g))                                                              \
	X(STREAM, cuStreamGetFlags(g, &flags))                                                     \
	X(STREAM, cuStreamGetPriority(g, &number))                                                 \
	X(STREAM, cuStreamGetCtx(g, &ctx))                                                         \
	X(STREAM, cuStreamWaitEvent(g, event, 0))                                                  \
	X(STREAM, cuEventRecord(event, g))                                                         \
	X(STREAM, cuMemsetD32Async(memory, 0, 1, g))                                               \
	X(STREAM, cuMemcpyDtoDAsync(memory, memory + 4, 4, g))                                     \
	X(STREAM, cuLaunchHostFunc(g, nothing, NULL))                                              \
	X(STREAM, cuMemAllocAsync(&address, 4, g))                                                 \
	X(STREAM, cuMemFreeAsync(memory, g))                                                       \
	X(STREAM, cuStreamWriteValue32(g, memory, 0, 0))                                           \
	X(STREAM, cuStreamBeginCapture(g, CU_STREAM_CAPTURE_MODE_RELAXED))                         \
	X(STREAM, cuStreamEndCapture(g, &graph))                                                   \
	X(STREAM, cuStreamIsCapturing(g, &status))                                                 \
	X(STREAM, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, g, NULL, NULL))                    \
	X(STREAM, cuGraphLaunch(exec, g))                                                          \
	X(EVENT, cuEventSynchronize(g))                                                            \
	X(EVENT, cuEventQuery(g))                                                                  \
	X(EVENT, cuEventDestroy(g))                                                                \
	X(EVENT, cuEventRecord(g, NULL))                                                           \
	X(EVENT, cuEventElapsedTime(&ms, g, event))                                                \
	X(EVENT, cuEventElapsedTime(&ms, event, g))                                                \
	X(EVENT, cuStreamWaitEvent(NULL, g, 0))                                                    \
	X(FUNCTION, cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL))                      \
	X(FUNCTION, cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, g))                    \
	X(FUNCTION, cuFuncSetAttribute(g, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 1))  \
	X(FUNCTION, cuFuncGetModule(&mod, g))                                                      \
	X(FUNCTION, cuFuncGetName(&name, g))                                                       \
	X(FUNCTION, cuKernelGetName(&name, g))                                                     \
	X(MODULE, cuModuleGetFunction(&got, g, "empty"))                                           \
	X(MODULE, cuModuleGetGlobal(&address, &size, g, "x"))                                      \
	X(MODULE, cuModuleUnload(g))                                                               \
	X(MODULE, cuLibraryGetKernel(&in_library, g, "empty"))                                     \
	X(MODULE, cuLibraryUnload(g))                                                              \
	X(CONTEXT, cuCtxSetCurrent(g))                                                             \
	X(CONTEXT, cuCtxPushCurrent(g))                                                            \
	X(CONTEXT, cuCtxDestroy(g))                                                                \
	X(CONTEXT, cuCtxGetApiVersion(g, &flags))                                                  \
	X(POOL, cuMemPoolDestroy(g))                                                               \
	X(POOL, cuMemPoolTrimTo(g, 0))                                                             \
	X(POOL, cuMemAllocFromPoolAsync(&address, 4, g, NULL))                                     \
	X(GRAPH, cuGraphDestroy(g))                                                                \
	X(GRAPH, cuGraphGetNodes(g, NULL, &size))                                                  \
	X(GRAPH, cuGraphInstantiate(&made, g, 0))                                                  \
	X(GRAPH, cuGraphAddEmptyNode(&node, g, NULL, 0))                                           \
	X(NODE, cuGraphNodeGetType(g, &type))                                                      \
	X(NODE, cuGraphDestroyNode(g))                                                             \
	X(EXEC, cuGraphLaunch(g, NULL))                                                            \
	X(EXEC, cuGraphExecDestroy(g))                                                             \
	X(OBJECT, cuUserObjectRelease(g, 1))

enum kind { STREAM, EVENT, FUNCTION, MODULE, CONTEXT, POOL, GRAPH, NODE, EXEC, OBJECT, KINDS };

/* What CUDA calls it. */
static const CUresult expected[KINDS] = {
	[STREAM] = CUDA_ERROR_INVALID_HANDLE,	[EVENT] = CUDA_ERROR_INVALID_HANDLE,
	[FUNCTION] = CUDA_ERROR_INVALID_HANDLE, [MODULE] = CUDA_ERROR_INVALID_HANDLE,
	[CONTEXT] = CUDA_ERROR_INVALID_CONTEXT, [POOL] = CUDA_ERROR_INVALID_VALUE,
	[GRAPH] = CUDA_ERROR_INVALID_VALUE,	[NODE] = CUDA_ERROR_INVALID_VALUE,
	[EXEC] = CUDA_ERROR_INVALID_VALUE,	[OBJECT] = CUDA_ERROR_INVALID_VALUE,
};

static void nothing(void *data)
{
}

/* One living object of each kind, NULL where it is not needed, and what calls want to write to. */
static CUevent event;
static CUfunction function;
static CUgraphExec exec;
static CUdeviceptr memory;

/* All calls with `g` for an object, but for those whose kind it is. */
static void try_all(void *g, int except)
{
	CUstreamCaptureStatus status;
	CUgraphNodeType type;
	CUgraphExec made;
	CUgraphNode node;
	CUdeviceptr address;
	CUcontext ctx;
	CUfunction got;
	const char *name;
	CUmodule mod;
	CUkernel in_library;
	CUgraph graph;
	unsigned flags;
	size_t size = 0;
	int number;
	float ms;

#define TRY(kind, call)                                                                            \
	if (kind != except) {                                                                      \
		CUresult result = call;                                                            \
		if (result != expected[kind])                                                      \
			fail_msg("%s with %p: %d, not %d", #call, g, result, expected[kind]);      \
	}
	CALLS(TRY)
}

static void garbage_is_an_error(void **state)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t local[32] = {0};
	void *garbage[] = {
		(void *)0x10,
		(void *)0xdeadbee0,
		(void *)0xdeadbeef,
		(void *)~(uintptr_t)0,
		(void *)((uintptr_t)1 << 63),
		local,
		page + 4096,
		page + 4096 - 16,
		(char *)event + 16,
		(char *)function + 8,
		(void *)garbage_is_an_error,
	};

	assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
	for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++)
		try_all(garbage[i], KINDS);
	munmap(page, 8192);
}

static void an_object_of_another_kind_is_an_error(void **state)
{
	try_all(event, EVENT);
	try_all(function, FUNCTION);
	try_all(exec, EXEC);
	try_all(module, MODULE);
}

static void what_is_gone_is_an_error(void **state)
{
	CUstream stream;
	CUevent gone;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec copy;

	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamDestroy(stream));
	try_all(stream, KINDS);
	OK(cuEventCreate(&gone, 0));
	OK(cuEventRecord(gone, NULL));
	OK(cuEventDestroy(gone));
	try_all(gone, KINDS);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	OK(cuGraphInstantiate(&copy, graph, 0));
	OK(cuGraphExecDestroy(copy));
	OK(cuGraphDestroy(graph));
	try_all(graph, KINDS);
	try_all(node, KINDS);
	try_all(copy, KINDS);
}

/* The table itself, with more objects than it begins with and threads that come and go in it. */
enum { THREADS = 4, OBJECTS = 3000, CHURN = 40000 };

static atomic_bool wrong;

static void *churn(void *argument)
{
	char *objects = aligned_alloc(16, OBJECTS * 16);

	for (unsigned i = 0; i < OBJECTS; i++)
		wrong |= !handle_add(objects + i * 16, HANDLE_EVENT);
	for (unsigned n = 0; n < CHURN && !wrong; n++) {
		const char *object = objects + n * 7919 % OBJECTS * 16;

		wrong |= !handle_is(object, HANDLE_EVENT) || handle_is(object, HANDLE_STREAM) ||
			 handle_is(object + 8, HANDLE_EVENT);
		handle_remove(object, HANDLE_EVENT);
		wrong |= handle_is(object, HANDLE_EVENT);
		wrong |= !handle_add(object, HANDLE_EVENT);
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		handle_remove(objects + i * 16, HANDLE_EVENT);
	for (unsigned i = 0; i < OBJECTS; i++)
		wrong |= handle_is(objects + i * 16, HANDLE_EVENT);
	free(objects);
	return NULL;
}

static void the_table_holds_under_threads(void **state)
{
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_false(wrong);
	/* A removed object is gone from the table for good: it does not grow with what comes and
	 * goes. */
	assert_true(handle_table->mask < 8 * THREADS * OBJECTS);
}

static int setup(void **state)
{
	CUgraph graph;
	CUgraphNode node;

	start_driver(state);
	OK(cuEventCreate(&event, 0));
	OK(cuMemAlloc(&memory, 64));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	OK(cuGraphInstantiate(&exec, graph, 0));
	function = kernel("empty");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_is_an_error),
		cmocka_unit_test(an_object_of_another_kind_is_an_error),
		cmocka_unit_test(what_is_gone_is_an_error),
		cmocka_unit_test(the_table_holds_under_threads),
	};
	return cmocka_run_group_tests(tests, setup, stop_driver);
}
