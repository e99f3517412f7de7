/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that a captured stream's work runs when the graph is launched and not before, that captures
 * follow events into other streams and back, and that what breaks their rules makes them invalid
 * with the error that cuda.h has for it. */
#include "driver_tests.h"

#include <pthread.h>

static uint32_t turn(uint32_t value, uint32_t number)
{
	return value * 1664525u + number;
}

static CUstream new_stream(unsigned flags)
{
	CUstream stream;

	OK(cuStreamCreate(&stream, flags));
	return stream;
}

static void step(CUstream stream, uint32_t *value, uint32_t number)
{
	void *params[] = {&value, &number};

	OK(launch(kernel("step"), 1, stream, params));
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
	CUstreamCaptureStatus status = 99;

	OK(cuStreamIsCapturing(stream, &status));
	return status;
}

static void begin(CUstream stream)
{
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_ACTIVE);
}

static CUgraphExec end(CUstream stream)
{
	CUgraphExec exec;
	CUgraph graph;

	OK(cuStreamEndCapture(stream, &graph));
	assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	return exec;
}

/* The capture was made invalid and says so at its end. */
static void end_invalid(CUstream stream, CUresult why)
{
	CUgraph graph = (CUgraph)1;

	assert_int_equal(cuStreamEndCapture(stream, &graph), why);
	assert_null(graph);
	assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
}

static void set_word(void *data)
{
	*(uint32_t *)data = 5;
}

static void work_is_recorded_not_done(void **state)
{
	uint32_t *value = zeroed(4), *words = zeroed(16), *host, seen = 0;
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	size_t count = 0;
	CUgraph graph;
	cuuint64_t id;
	CUstreamCaptureStatus status;

	OK(cuMemHostAlloc((void **)&host, 16, 0));
	memset(host, 0, 16);
	begin(stream);
	step(stream, value, 3);
	OK(cuMemsetD32Async((CUdeviceptr)words, 7, 2, stream));
	OK(cuMemcpyDtoHAsync(host, (CUdeviceptr)words, 8, stream));
	OK(cuLaunchHostFunc(stream, set_word, &seen));
	OK(cuStreamWriteValue32(stream, (CUdeviceptr)(words + 2), 8, 0));
	OK(cuStreamGetCaptureInfo(stream, &status, &id, &graph, NULL, NULL, &count));
	assert_int_equal(count, 1);
	OK(cuGraphGetNodes(graph, NULL, &count));
	assert_int_equal(count, 5);
	CUgraphExec exec = end(stream);
	OK(cuStreamSynchronize(stream));
	assert_true(*value == 0 && words[0] == 0 && words[2] == 0 && host[1] == 0 && seen == 0);
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(*value, turn(3, 3));
	assert_true(words[1] == 7 && words[2] == 8 && host[1] == 7 && seen == 5);
	OK(cuGraphExecDestroy(exec));
	OK(cuMemFreeHost(host));
	OK(cuStreamDestroy(stream));
}

static void events_carry_a_capture_into_other_streams(void **state)
{
	uint32_t *a = zeroed(4), *b = zeroed(4), expected = 0;
	CUstream origin = new_stream(0), other = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent fork, join;
	float ms;

	OK(cuEventCreate(&fork, 0));
	OK(cuEventCreate(&join, 0));
	begin(origin);
	step(origin, a, 1);
	OK(cuEventRecord(fork, origin));
	OK(cuStreamWaitEvent(other, fork, 0));
	assert_int_equal(status_of(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
	step(other, b, 2);
	step(origin, a, 2);
	step(other, b, 3);
	OK(cuEventRecord(join, other));
	OK(cuStreamWaitEvent(origin, join, 0));
	step(origin, b, 4); /* behind both */
	CUgraphExec exec = end(origin);
	assert_int_equal(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
	assert_int_equal(cuEventQuery(fork), CUDA_ERROR_CAPTURED_EVENT);
	assert_int_equal(cuEventElapsedTime(&ms, fork, join), CUDA_ERROR_CAPTURED_EVENT);
	for (int i = 0; i < 30; i++) {
		OK(cuGraphLaunch(exec, other));
		expected = turn(turn(turn(expected, 2), 3), 4);
	}
	OK(cuStreamSynchronize(other));
	assert_int_equal(*b, expected);
	/* Recorded outside, an event is one like others again. */
	OK(cuEventRecord(fork, origin));
	OK(cuEventSynchronize(fork));
	OK(cuGraphExecDestroy(exec));
	OK(cuEventDestroy(fork));
	OK(cuEventDestroy(join));
	OK(cuStreamDestroy(origin));
	OK(cuStreamDestroy(other));
}

static void streams_have_to_come_back(void **state)
{
	uint32_t *value = zeroed(4);
	CUstream origin = new_stream(CU_STREAM_NON_BLOCKING),
		 other = new_stream(CU_STREAM_NON_BLOCKING);
	CUevent fork;
	CUgraph graph;

	OK(cuEventCreate(&fork, 0));
	begin(origin);
	step(origin, value, 1);
	OK(cuEventRecord(fork, origin));
	OK(cuStreamWaitEvent(other, fork, 0));
	step(other, value, 2);
	assert_int_equal(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	end_invalid(origin, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(origin);
	step(origin, value, 1);
	OK(cuEventRecord(fork, origin));
	OK(cuStreamWaitEvent(other, fork, 0));
	step(other, value, 2);
	end_invalid(origin, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	assert_int_equal(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
	assert_int_equal(cuStreamEndCapture(origin, &graph), CUDA_ERROR_ILLEGAL_STATE);
	OK(cuCtxSynchronize());
	assert_int_equal(*value, 0);
	OK(cuEventDestroy(fork));
	OK(cuStreamDestroy(origin));
	OK(cuStreamDestroy(other));
}

/* Each of these makes a capture invalid, with its own error. */
static void broken_rules_make_captures_invalid(void **state)
{
	uint32_t *value = zeroed(4);
	CUstream a = new_stream(0), b = new_stream(CU_STREAM_NON_BLOCKING);
	CUstreamCaptureStatus status;
	CUevent outside, in_a;
	CUdeviceptr memory;

	OK(cuEventCreate(&outside, 0));
	OK(cuEventCreate(&in_a, 0));
	OK(cuEventRecord(outside, b));
	assert_int_equal(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	begin(a);
	assert_int_equal(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL),
			 CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(cuStreamSynchronize(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(status_of(a), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	void *params[] = {&value, &(uint32_t){1}};
	assert_int_equal(launch(kernel("step"), 1, a, params),
			 CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	end_invalid(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

	begin(a);
	assert_int_equal(cuStreamQuery(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(a);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(a);
	assert_int_equal(cuMemAlloc(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(a);
	assert_int_equal(cuEventQuery(outside), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	/* The legacy stream would have to wait for a blocking one. */
	begin(a);
	assert_int_equal(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	assert_int_equal(status_of(a), CU_STREAM_CAPTURE_STATUS_ACTIVE); /* asking does no harm */
	assert_int_equal(cuMemcpyDtoD((CUdeviceptr)value, (CUdeviceptr)value, 4),
			 CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	end_invalid(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(b);
	step(NULL, value, 0); /* b is not blocking */
	step(b, value, 1);
	OK(cuGraphExecDestroy(end(b)));
	/* Work from outside a capture, and another capture. */
	begin(a);
	assert_int_equal(cuStreamWaitEvent(a, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	end_invalid(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(a);
	begin(b);
	OK(cuEventRecord(in_a, a));
	assert_int_equal(cuStreamWaitEvent(b, in_a, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
	end_invalid(a, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	end_invalid(b, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuCtxSynchronize());
	OK(cuEventDestroy(outside));
	OK(cuEventDestroy(in_a));
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
}

struct elsewhere {
	CUresult allocated, ended;
	CUstream stream;
};

static void *allocate_elsewhere(void *argument)
{
	struct elsewhere *e = argument;
	CUdeviceptr memory;
	CUgraph graph;

	cuCtxSetCurrent(context);
	e->allocated = cuMemAlloc(&memory, 16);
	if (!e->allocated)
		cuMemFree(memory);
	e->ended = cuStreamEndCapture(e->stream, &graph);
	if (!e->ended)
		cuGraphDestroy(graph);
	return NULL;
}

static struct elsewhere elsewhere(CUstream stream)
{
	struct elsewhere e = {.stream = stream};
	pthread_t thread;

	pthread_create(&thread, NULL, allocate_elsewhere, &e);
	pthread_join(thread, NULL);
	return e;
}

static void modes_say_whom_a_capture_restricts(void **state)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr memory;
	CUgraph graph;

	begin(stream);
	struct elsewhere e = elsewhere(stream);
	assert_int_equal(e.allocated, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	assert_int_equal(e.ended, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	end_invalid(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	e = elsewhere(stream);
	assert_int_equal(e.allocated, CUDA_SUCCESS);
	assert_int_equal(e.ended, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
	assert_int_equal(cuMemAlloc(&memory, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	end_invalid(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemAlloc(&memory, 16));
	OK(cuMemFree(memory));
	e = elsewhere(stream);
	assert_int_equal(e.allocated, CUDA_SUCCESS);
	assert_int_equal(e.ended, CUDA_SUCCESS);
	/* The thread's own mode counts too. */
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	begin(stream);
	OK(cuMemAlloc(&memory, 16));
	OK(cuMemFree(memory));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(cuStreamDestroy(stream));
}

static void captures_may_go_into_a_graph(void **state)
{
	uint32_t *value = zeroed(4);
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUgraph graph, same;
	CUgraphNode first;
	const CUgraphNode *tail;
	CUstreamCaptureStatus status;
	CUgraphExec exec, inner;
	size_t count;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&first, graph, NULL, 0));
	OK(cuStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1,
				       CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	step(stream, value, 1);
	OK(cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &tail, NULL, &count));
	assert_int_equal(count, 1);
	CUgraphNode second = tail[0], from, to;
	OK(cuStreamUpdateCaptureDependencies(stream, &first, NULL, 1,
					     CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	OK(cuStreamUpdateCaptureDependencies(stream, &second, NULL, 1,
					     CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	step(stream, value, 2);
	OK(cuStreamEndCapture(stream, &same));
	assert_ptr_equal(same, graph);
	OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
	assert_int_equal(count, 3);
	count = 1;
	OK(cuGraphGetEdges(graph, &from, &to, NULL, &count));
	assert_true(count == 1 && from == first && to == second);
	OK(cuGraphInstantiate(&inner, graph, 0));
	/* A launch that is captured becomes a child. */
	begin(stream);
	OK(cuGraphLaunch(inner, stream));
	step(stream, value, 3);
	exec = end(stream);
	OK(cuGraphExecDestroy(inner));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(*value, turn(turn(1, 2), 3));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(stream));
}

static void external_events_and_memory_are_nodes(void **state)
{
	uint32_t *value, *words = zeroed(8), result = 0;
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING),
		 other = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr memory;
	CUevent in, out;

	OK(cuEventCreate(&in, 0));
	OK(cuEventCreate(&out, 0));
	assert_int_equal(cuEventRecordWithFlags(out, stream, CU_EVENT_RECORD_EXTERNAL),
			 CUDA_ERROR_INVALID_VALUE);
	begin(stream);
	OK(cuMemAllocAsync(&memory, 4, stream));
	value = (uint32_t *)memory;
	OK(cuMemsetD32Async(memory, 0, 1, stream));
	OK(cuStreamWaitEvent(stream, in, CU_EVENT_WAIT_EXTERNAL));
	step(stream, value, 6);
	OK(cuMemcpyDtoHAsync(&result, memory, 4, stream));
	OK(cuEventRecordWithFlags(out, stream, CU_EVENT_RECORD_EXTERNAL));
	OK(cuMemFreeAsync(memory, stream));
	CUgraphExec exec = end(stream);
	hold(other, words);
	OK(cuEventRecord(in, other));
	OK(cuGraphLaunch(exec, stream));
	assert_int_equal(cuEventQuery(out), CUDA_ERROR_NOT_READY);
	let_go(words);
	OK(cuEventSynchronize(out));
	assert_int_equal(result, 6);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	assert_int_equal(result, 6);
	OK(cuGraphExecDestroy(exec));
	OK(cuEventDestroy(in));
	OK(cuEventDestroy(out));
	OK(cuStreamDestroy(stream));
	OK(cuStreamDestroy(other));
}

static void destroyed_streams_leave_nothing(void **state)
{
	uint32_t *value = zeroed(4);
	CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
	CUdeviceptr memory;

	begin(stream);
	step(stream, value, 1);
	OK(cuStreamDestroy(stream));
	OK(cuMemAlloc(&memory, 16)); /* nobody captures any more */
	OK(cuMemFree(memory));
	stream = new_stream(CU_STREAM_NON_BLOCKING);
	assert_int_equal(status_of(stream), CU_STREAM_CAPTURE_STATUS_NONE);
	begin(stream);
	OK(cuGraphExecDestroy(end(stream)));
	OK(cuStreamDestroy(stream));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_is_recorded_not_done),
		cmocka_unit_test(events_carry_a_capture_into_other_streams),
		cmocka_unit_test(streams_have_to_come_back),
		cmocka_unit_test(broken_rules_make_captures_invalid),
		cmocka_unit_test(modes_say_whom_a_capture_restricts),
		cmocka_unit_test(captures_may_go_into_a_graph),
		cmocka_unit_test(external_events_and_memory_are_nodes),
		cmocka_unit_test(destroyed_streams_leave_nothing),
	};

	setenv("TALLY_CPU_WORKERS", "3", 0);
	return cmocka_run_group_tests(tests, start_driver, stop_driver);
}
