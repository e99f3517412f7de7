/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of what cannot be stopped is queued ahead: Tally's hooks are linked in, the driver is
 * the CPU device's, the daemon a real one (levels.sh starts it). With the argument "endless" it is
 * a program that launches what cannot be stopped until somebody kills it.
 */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/interpose/queue.h"

static CUfunction whole; /* `step` of a module that cannot be stopped */

enum { THREADS = 4, STREAMS = 20, LAUNCHES = 1000, WORK_US = 60 };

static _Atomic bool watching;
static _Atomic uint64_t most_ns, most_launches, returned;
static CUdeviceptr all_ran; /* u32 for each stream */

static void keep_most(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t known = atomic_load(most);

	while (value > known && !atomic_compare_exchange_weak(most, &known, value))
		;
}

static uint64_t ran(void)
{
	const _Atomic uint32_t *words = (const _Atomic uint32_t *)(uintptr_t)all_ran;
	uint64_t sum = 0;

	for (unsigned i = 0; i < STREAMS; i++)
		sum += atomic_load(&words[i]);
	return sum;
}

static void *watch(void *argument)
{
	while (atomic_load(&watching)) {
		/* This order: what has run by the second look had returned by the first. */
		uint64_t given = atomic_load(&returned), over = ran();

		keep_most(&most_ns, atomic_load(&device->queued_ns));
		if (given > over)
			keep_most(&most_launches, given - over);
		usleep(20);
	}
	return argument;
}

/* Launches one block at a time, in turn into each of a fifth of the streams. */
static void *launch_whole(void *argument)
{
	unsigned first = (unsigned)(uintptr_t)argument;
	CUstream streams[STREAMS / THREADS];
	CUdeviceptr values;

	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc_v2(&values, 4 * STREAMS));
	OK(cuMemsetD32_v2(values, 0, STREAMS));
	for (unsigned i = 0; i < STREAMS / THREADS; i++)
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < LAUNCHES / THREADS; i++) {
		unsigned s = i % (STREAMS / THREADS);
		CUdeviceptr value = values + 4 * s,
			    count = all_ran + 4 * (first * (STREAMS / THREADS) + s);
		uint32_t number = i, work = WORK_US;
		void *parameters[] = {&value, &count, &number, &work};

		OK(cuLaunchKernel(whole, 1, 1, 1, 1, 1, 1, 0, streams[s], parameters, NULL));
		atomic_fetch_add(&returned, 1);
	}
	for (unsigned i = 0; i < STREAMS / THREADS; i++)
		OK(cuStreamSynchronize(streams[i]));
	for (unsigned i = 0; i < STREAMS / THREADS; i++)
		OK(cuStreamDestroy_v2(streams[i]));
	OK(cuMemFree_v2(values));
	return NULL;
}

/*
 * A thousand launches that cannot be stopped, from four threads into twenty streams. A block runs
 * for 60 us at least, so of the limit's 100 us one fits, or the one more that was let in before
 * anything was measured, whatever the machine does meanwhile.
 */
static void depth_holds_over_all_streams(void **state)
{
	pthread_t threads[THREADS], watcher;

	OK(cuMemAlloc_v2(&all_ran, 4 * STREAMS));
	OK(cuMemsetD32_v2(all_ran, 0, STREAMS));
	OK(cuCtxSynchronize());
	atomic_store(&watching, true);
	atomic_store(&most_ns, 0);
	atomic_store(&most_launches, 0);
	atomic_store(&returned, 0);
	pthread_create(&watcher, NULL, watch, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, launch_whole, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&watching, false);
	pthread_join(watcher, NULL);
	print_message("at most %lu us predicted, %lu launches given and not run\n",
		      (unsigned long)atomic_load(&most_ns) / 1000,
		      (unsigned long)atomic_load(&most_launches));
	assert_int_equal(ran(), LAUNCHES);
	assert_in_range(atomic_load(&most_launches), 1, 2);
	/* Everything was counted out again. */
	assert_int_equal(atomic_load(&device->queued_ns), 0);
	OK(cuMemFree_v2(all_ran));
}

/* The same with the waiting of a GPU, where no event wakes a thread. */
static void depth_holds_while_spinning(void **state)
{
	OK(cuCtxSynchronize());
	device->cpu = false;
	depth_holds_over_all_streams(state);
	device->cpu = true;
}

static _Atomic bool may_end;

static void CUDA_CB wait_for_program(void *unused)
{
	while (!atomic_load(&may_end))
		usleep(1000);
	(void)unused;
}

/* What runs waits for what the thread does after its launches: the limit is no deadlock. */
static void waiting_ends(void **state)
{
	CUstream stream;
	struct chain c;

	OK(cuCtxSynchronize());
	device->cpu = false;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	c.step = whole;
	OK(cuLaunchHostFunc(stream, wait_for_program, NULL));
	for (unsigned i = 0; i < 20; i++)
		chain_step(&c, i, 20, false);
	atomic_store(&may_end, true);
	OK(cuStreamSynchronize(stream));
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
	device->cpu = true;
}

/* The short ones are let in many at a time, and marks are few: one for 25 us of work. */
static void short_launches_are_batched(void **state)
{
	struct tally_stream *s;
	uint32_t before;
	CUstream stream;
	CUfunction f;

	OK(cuModuleGetFunction(&f, load_steps(false), "empty"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	s = tally_stream_find(stream, false);
	assert_non_null(s);
	steps_say_took(0.001f);
	for (unsigned i = 0; i < 200; i++) {
		OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
		OK(cuStreamSynchronize(stream));
	}
	before = s->queue.sequence;
	for (unsigned i = 0; i < 2000; i++)
		OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	OK(cuStreamSynchronize(stream));
	steps_say_took(0);
	print_message("%u marks for 2000 launches\n", s->queue.sequence - before);
	assert_in_range(s->queue.sequence - before, 2000 / 100, 2000 / 10);
	OK(cuStreamDestroy_v2(stream));
}

/* Without anybody waiting for a measurement, the report knows what a launch takes. */
static void launches_are_timed(void **state)
{
	struct tally_known known;
	struct chain c;

	chain_open(&c, NULL);
	c.step = whole;
	for (unsigned i = 0; i < 30; i++)
		chain_step(&c, i, 40, false);
	chain_check(&c);
	tally_known_gather(&known, chain_configuration(whole, false)->row, NULL);
	print_message("%lu samples of %lu launches: %lu us\n",
		      (unsigned long)known.level[TALLY_LEVEL_GATE].samples,
		      (unsigned long)known.launches,
		      (unsigned long)known.level[TALLY_LEVEL_GATE].ns / 1000);
	assert_true(known.level[TALLY_LEVEL_GATE].samples >= 3);
	assert_true(known.level[TALLY_LEVEL_GATE].ns >= 40 * 1000);
	assert_true(known.launches >= 30);
	assert_int_equal(known.current.level, TALLY_LEVEL_GATE);
}

/* The first launch of a kernel may be the one that has its code loaded: no measure of the others.
 */
static void the_first_launch_tells_nothing(void **state)
{
	struct tally_configuration *c;
	struct tally_known known;
	CUstream stream;
	CUfunction f;

	OK(cuModuleGetFunction(&f, load_steps(false), "empty"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 8; i++) {
		steps_say_took(i ? 0.01f : 1000);
		OK(cuLaunchKernel(f, 3, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
		OK(cuStreamSynchronize(stream));
		tally_lock(device);
		tally_queue_look(device);
		tally_unlock(device);
	}
	steps_say_took(0);
	c = atomic_load(&tally_kernel_find(f)->last);
	tally_known_gather(&known, c->row, NULL);
	assert_in_range(known.level[TALLY_LEVEL_GATE].samples, 3, 7);
	assert_in_range(known.level[TALLY_LEVEL_GATE].ns, 1, 20000);
	assert_in_range(atomic_load(&c->whole.ns), 1, 20000);
	OK(cuStreamDestroy_v2(stream));
}

/* What the events take by themselves is not the kernel's: here a second each, where the kernel
 * takes none. */
static void timing_takes_no_time(void **state)
{
	enum { SECOND_NS = 1000000000 };
	struct tally_configuration *k;
	CUfunction f;
	CUstream stream;
	uint64_t ns, events_ns;
	unsigned pairs;

	OK(cuModuleGetFunction(&f, load_steps(false), "empty"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuCtxSynchronize());
	tally_lock(device); /* as if nothing had been timed on the device */
	device->event_pairs = 0;
	tally_unlock(device);
	steps_events_take(1000);
	for (unsigned i = 0; i < 100; i++) {
		OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
		OK(cuStreamSynchronize(stream));
	}
	steps_events_take(0);
	k = atomic_load(&tally_kernel_find(f)->last);
	ns = atomic_load(&k->whole.ns);
	tally_lock(device);
	events_ns = device->events_ns;
	pairs = device->event_pairs;
	device->event_pairs = 0;
	tally_unlock(device);
	print_message("%lu ns, the events %lu us\n", (unsigned long)ns,
		      (unsigned long)events_ns / 1000);
	assert_in_range(events_ns, SECOND_NS, UINT64_MAX);
	assert_in_range(ns, 1, SECOND_NS / 2);
	assert_true(pairs >= 8);
	OK(cuStreamDestroy_v2(stream));
}

/* Copies and memsets count too, and leave nothing behind. */
static void copies_count(void **state)
{
	enum { BYTES = 1 << 20 };
	CUdeviceptr a, b;
	CUstream stream;
	uint64_t seen = 0;

	OK(cuMemAlloc_v2(&a, BYTES));
	OK(cuMemAlloc_v2(&b, BYTES));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < 50; i++) {
		OK(cuMemsetD8Async(a, (unsigned char)i, BYTES, stream));
		OK(cuMemcpyDtoDAsync_v2(b, a, BYTES, stream));
		keep_most(&most_ns, atomic_load(&device->queued_ns));
		seen += atomic_load(&device->queued_ns) != 0;
	}
	OK(cuStreamSynchronize(stream));
	assert_true(seen > 0);
	OK(cuStreamDestroy_v2(stream));
	assert_int_equal(atomic_load(&device->queued_ns), 0);
	OK(cuMemFree_v2(a));
	OK(cuMemFree_v2(b));
}

/* So does a graph, as a whole, by what its launches before have taken. */
static void graphs_count(void **state)
{
	struct tally_report *report = device->report;
	uint64_t before = atomic_load(&report->counters[TALLY_COUNT_GRAPHS]), most = 0;
	enum { GRAPHS = 40 }; /* of which one at least is still counted when the test looks */
	CUgraphExec executable;
	CUgraph graph;
	CUstream stream;
	struct chain c;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	c.step = whole;
	OK(cuCtxSynchronize());
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	chain_step(&c, 1, 100, false);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	c.launches = 0;
	memset(c.expected, 0, sizeof c.expected);
	for (unsigned i = 0; i < GRAPHS; i++) {
		uint64_t queued;

		OK(cuGraphLaunch(executable, stream));
		queued = atomic_load(&device->queued_ns);
		if (i > 8 && queued > most)
			most = queued;
		chain_expect(&c, 1);
	}
	OK(cuStreamSynchronize(stream));
	/* 24 blocks of 100 us on two workers. */
	print_message("a graph of 1200 us was predicted to take %lu us\n",
		      (unsigned long)most / 1000);
	assert_true(most >= 600 * 1000);
	assert_int_equal(atomic_load(&report->counters[TALLY_COUNT_GRAPHS]), before + GRAPHS);
	chain_check(&c);
	OK(cuGraphExecDestroy(executable));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy_v2(stream));
}

static unsigned being_timed(CUstream stream)
{
	const struct tally_stream *s = tally_stream_find(stream, false);
	unsigned count = 0;

	tally_lock(device);
	for (struct tally_context *c = device->contexts; c; c = c->next)
		for (unsigned i = 0; c->samples && i < TALLY_SAMPLES; i++)
			count += c->samples[i].stream == s;
	tally_unlock(device);
	return count;
}

/* A graph may end before its launch has: then nobody wants to know any more how long it took. */
static void what_is_timed_may_end(void **state)
{
	CUgraphExec executable;
	CUgraph graph;
	CUstream stream;
	struct chain c;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	c.step = whole;
	OK(cuCtxSynchronize());
	atomic_store(&may_end, false);
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuLaunchHostFunc(stream, wait_for_program, NULL));
	chain_step(&c, 1, 100, false);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
	OK(cuGraphDestroy(graph));
	assert_int_equal(being_timed(stream), 0);
	OK(cuGraphLaunch(executable, stream));
	assert_int_equal(being_timed(stream), 1);
	OK(cuGraphExecDestroy(executable));
	assert_int_equal(being_timed(stream), 0);
	atomic_store(&may_end, true);
	OK(cuStreamSynchronize(stream));
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
}

static int setup(void **state)
{
	int failed = steps_setup(state);

	OK(cuModuleGetFunction(&whole, load_steps(false), "step"));
	return failed;
}

/* What a door has returned from, the driver has: ahead_test.c is about what waits elsewhere. */
static int setup_here(void **state)
{
	return setup(state) || doors_wait(state);
}

static int endless(void)
{
	struct chain c;

	setup(NULL);
	chain_open(&c, NULL);
	c.step = whole;
	for (unsigned i = 0;; i++) {
		chain_step(&c, i, 100, false);
		if (i == 100) {
			printf("running\n");
			fflush(stdout);
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(depth_holds_over_all_streams),
		cmocka_unit_test(depth_holds_while_spinning),
		cmocka_unit_test(waiting_ends),
		cmocka_unit_test(short_launches_are_batched),
		cmocka_unit_test(launches_are_timed),
		cmocka_unit_test(the_first_launch_tells_nothing),
		cmocka_unit_test(timing_takes_no_time),
		cmocka_unit_test(copies_count),
		cmocka_unit_test(graphs_count),
		cmocka_unit_test(what_is_timed_may_end),
	};

	(void)argv;
	if (argc > 1)
		return endless();
	return cmocka_run_group_tests(tests, setup_here, NULL);
}
