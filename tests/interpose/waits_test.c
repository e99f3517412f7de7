/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs may wait for the very thread that launches: it gets through, however much it launches
 * first, in whatever stream, and by whatever way that one comes to be behind. A way that Tally does
 * not see ends in the test's timeout. guard.sh gives the program its daemon.
 */
#include "tests/interpose/steps.h"

#include <unistd.h>

static CUstream a, b, c;	     /* that wait for nothing they are not told to */
static CUstream blocking, blocking2; /* that wait for the null stream, and it for them */
static CUevent event, event2;
static _Atomic bool launched;

static void CUDA_CB wait_for_launcher(void *unused)
{
	(void)unused;
	while (!atomic_load(&launched))
		usleep(100);
}

static void call_in(CUstream stream)
{
	OK(cuLaunchHostFunc(stream, wait_for_launcher, NULL));
}

/* The ways: each makes a stream wait and returns the one to launch in. */

static CUstream by_function(void)
{
	call_in(a);
	return a;
}

static CUstream by_value(void)
{
	OK(cuStreamWaitValue32_v2(a, memory, 1, CU_STREAM_WAIT_VALUE_EQ));
	return a;
}

static CUstream by_event(void)
{
	call_in(a);
	OK(cuEventRecord(event, a));
	OK(cuStreamWaitEvent(b, event, 0));
	return b;
}

static CUstream by_events(void)
{
	by_event();
	OK(cuEventRecordWithFlags(event2, b, 0));
	OK(cuStreamWaitEvent(c, event2, 0));
	return c;
}

static CUstream as_null_stream(void)
{
	call_in(blocking);
	return NULL;
}

static CUstream behind_null_stream(void)
{
	call_in(blocking);
	OK(cuMemsetD32Async(other, 0, 4, NULL));
	return blocking2;
}

static CUstream behind_whole_launch(void)
{
	call_in(blocking);
	OK(cuLaunchCooperativeKernel(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
	return blocking2;
}

static CUstream as_blocking_stream(void)
{
	call_in(NULL);
	return blocking;
}

static CUstream during_capture(void)
{
	CUgraph graph;

	OK(cuStreamBeginCapture_v2(b, CU_STREAM_CAPTURE_MODE_RELAXED));
	call_in(a);
	OK(cuStreamEndCapture(b, &graph));
	OK(cuGraphDestroy(graph));
	return a;
}

/* Tally reads no further than the first node, which it cannot launch by itself. */
static void launch_graph(CUstream stream, CUevent before, CUevent after)
{
	static CUgraphExec exec;
	CUDA_HOST_NODE_PARAMS p = {.fn = wait_for_launcher};
	CUgraphNode first, middle, last;
	CUgraph graph;

	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEventRecordNode(&first, graph, NULL, 0, before));
	OK(cuGraphAddHostNode(&middle, graph, &first, 1, &p));
	OK(cuGraphAddEventRecordNode(&last, graph, &middle, 1, after));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphDestroy(graph));
}

static CUstream by_graph(void)
{
	CUevent before, after;

	OK(cuEventCreate(&before, 0));
	OK(cuEventCreate(&after, 0));
	launch_graph(a, before, after);
	return a;
}

static CUstream by_graphs_event(void)
{
	CUevent before, after;

	OK(cuEventCreate(&before, 0));
	OK(cuEventCreate(&after, 0));
	launch_graph(a, before, after);
	OK(cuStreamWaitEvent(b, after, 0));
	return b;
}

static void the_launcher_may_be_waited_for(void **state)
{
	static const struct {
		const char *name;
		CUstream (*begin)(void);
	} ways[] = {
		/* First of all, before Tally has seen that the program does such things. */
		{"a graph", by_graph},
		{"an event of a graph", by_graphs_event},
		{"a function", by_function},
		{"a value", by_value},
		{"an event", by_event},
		{"two events", by_events},
		{"the null stream behind a blocking one", as_null_stream},
		{"a blocking stream behind the null stream", as_blocking_stream},
		{"a blocking stream behind the null stream behind another", behind_null_stream},
		{"a blocking stream behind a kernel of the null stream behind another",
		 behind_whole_launch},
		{"a function during a capture", during_capture},
	};
	struct chain chain;

	chain_open(&chain, a);
	for (unsigned way = 0; way < sizeof ways / sizeof *ways; way++) {
		print_message("%s\n", ways[way].name);
		atomic_store(&launched, false);
		*(volatile uint32_t *)(uintptr_t)memory = 0;
		for (unsigned i = 0; i < 3; i++)
			chain_step(&chain, i, 5, false);
		/* The chain changes its stream. */
		OK(cuStreamSynchronize(chain.stream));
		chain.stream = ways[way].begin();
		/* More than a log or a stream's marks hold. */
		for (unsigned i = 0; i < 200; i++) {
			chain_step(&chain, i, 5, i % 2);
			if (i % 8 == 0)
				OK(cuMemcpyDtoDAsync_v2(other + 64, other, 16, chain.stream));
		}
		atomic_store(&launched, true);
		/* The device's memory is the host's: a store, as the program would do it. */
		*(volatile uint32_t *)(uintptr_t)memory = 1;
		OK(cuStreamSynchronize(chain.stream));
		/* And what comes later can be stopped again. */
		chain_step(&chain, 1, 5, false);
		OK(cuStreamSynchronize(chain.stream));
	}
	chain_check(&chain);
}

static uint64_t guarded(void)
{
	return atomic_load(&tally_slot(device)->guarded);
}

/* What is over is not waited for: an event from before a function, one that was recorded anew, and
 * what comes behind a function that has returned. */
static void others_stay_stoppable(void **state)
{
	struct chain chain;
	uint64_t before;

	chain_open(&chain, b);
	atomic_store(&launched, false);
	OK(cuEventRecord(event, a));
	call_in(a);
	OK(cuStreamWaitEvent(b, event, 0));
	before = guarded();
	chain_step(&chain, 0, 5, false);
	assert_int_equal(guarded() - before, 1);

	OK(cuEventRecord(event2, a));
	OK(cuEventRecord(event2, c));
	OK(cuStreamWaitEvent(b, event2, 0));
	before = guarded();
	chain_step(&chain, 1, 5, false);
	assert_int_equal(guarded() - before, 1);
	OK(cuStreamSynchronize(b));

	atomic_store(&launched, true);
	OK(cuStreamSynchronize(a));
	chain.stream = a;
	before = guarded();
	chain_step(&chain, 2, 5, false);
	assert_int_equal(guarded() - before, 1);
	OK(cuStreamSynchronize(a));
	chain_check(&chain);
}

static int setup(void **state)
{
	steps_setup(state);
	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&blocking2, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&event2, CU_EVENT_DISABLE_TIMING));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_launcher_may_be_waited_for),
		cmocka_unit_test(others_stay_stoppable),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
