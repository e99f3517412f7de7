/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch protocol inside one process: Tally's hooks are linked in, the driver is the CPU
 * device's, the daemon a real one (guard.sh starts it), the rival a second membership of this
 * process. The argument chooses the group: "best-effort" or "high" (TALLY_PRIORITY says the same).
 */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/interpose/resolve.h"

enum { MAX_STREAMS = 40 };

/* Runs `rounds` launches in each of `count` chains under the rival, and more until it was stopped
 * often enough. */
static void stress(struct chain *chains, unsigned count, unsigned rounds, uint32_t work)
{
	uint64_t before = stops(), end = tally_now() + PATIENCE_S * UINT64_C(1000000000);
	unsigned round;

	rival_begins(count);
	for (round = 0; round < rounds || (stops() - before < 100 && tally_now() < end); round++)
		for (unsigned i = 0; i < count; i++)
			chain_step(&chains[i], round, work, round % 3 == 0);
	OK(cuCtxSynchronize());
	rival_ends();
	for (unsigned i = 0; i < count; i++)
		chain_check(&chains[i]);
	print_message("%u streams, %u launches: %lu stops\n", count, count * round,
		      (unsigned long)(stops() - before));
	assert_true(stops() - before >= 100);
}

static void many_streams(void **state)
{
	static const unsigned counts[] = {1, 3, 16, MAX_STREAMS};
	static struct chain chains[MAX_STREAMS];
	CUstream streams[MAX_STREAMS];

	for (unsigned i = 0; i < 4; i++) {
		unsigned count = counts[i];

		for (unsigned s = 0; s < count; s++) {
			OK(cuStreamCreate(&streams[s], CU_STREAM_NON_BLOCKING));
			chain_open(&chains[s], streams[s]);
		}
		stress(chains, count, 800 / count, 20);
		for (unsigned s = 0; s < count; s++)
			OK(cuStreamDestroy_v2(streams[s]));
	}
}

/* Work in the null stream comes after all that blocking streams were given before, and before all
 * that they are given later: one chain that changes its stream. */
static void legacy_stream_orders(void **state)
{
	struct chain a;
	CUstream blocking;

	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	chain_open(&a, blocking);
	rival_begins(7);
	for (unsigned round = 0; round < 150; round++) {
		a.stream = round % 3 == 1 ? NULL : round % 3 == 2 ? CU_STREAM_LEGACY : blocking;
		chain_step(&a, round, 10, false);
	}
	OK(cuStreamSynchronize(NULL));
	OK(cuStreamSynchronize(blocking));
	rival_ends();
	chain_check(&a);
	OK(cuStreamDestroy_v2(blocking));
}

static void *per_thread_main(void *argument)
{
	struct chain c;

	(void)argument;
	OK(cuCtxSetCurrent(context));
	chain_open(&c, CU_STREAM_PER_THREAD);
	for (unsigned round = 0; round < 100; round++)
		chain_step(&c, round, 10, false);
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	chain_check(&c);
	return NULL;
}

static void per_thread_streams(void **state)
{
	pthread_t threads[3];

	rival_begins(9);
	for (unsigned i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, per_thread_main, NULL);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	rival_ends();
}

struct call {
	CUdeviceptr from;
	uint32_t want;
	_Atomic unsigned wrong, count;
};

static void CUDA_CB host_function(void *data)
{
	struct call *call = data;

	/* Device memory of the CPU device can be read here. */
	if (*(volatile uint32_t *)(uintptr_t)call->from != call->want)
		atomic_fetch_add(&call->wrong, 1);
	atomic_fetch_add(&call->count, 1);
}

/* Copies, events and host functions see exactly what was launched before them. */
static void fences_keep_order(void **state)
{
	static struct call calls[40];
	struct chain c;
	CUstream stream;
	CUevent event;
	CUdeviceptr copy;
	uint32_t first, wrong = 0;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuMemAlloc_v2(&copy, 4));
	chain_open(&c, stream);
	rival_begins(11);
	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < 3; i++)
			chain_step(&c, round * 3 + i, 15, false);
		OK(cuMemcpyDtoDAsync_v2(copy, c.values, 4, stream));
		calls[round].from = copy;
		calls[round].want = c.expected[0];
		OK(cuLaunchHostFunc(stream, host_function, &calls[round]));
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		OK(cuMemcpyDtoH_v2(&first, copy, 4));
		wrong += first != c.expected[0];
		if (round % 4 == 0) {
			chain_step(&c, round, 15, false);
			while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
				usleep(50);
			OK(cuMemcpyDtoHAsync_v2(&first, c.values, 4, stream));
			OK(cuStreamSynchronize(stream));
			wrong += first != c.expected[0];
		}
	}
	rival_ends();
	assert_int_equal(wrong, 0);
	for (unsigned round = 0; round < 40; round++) {
		assert_int_equal(atomic_load(&calls[round].count), 1);
		assert_int_equal(atomic_load(&calls[round].wrong), 0);
	}
	chain_check(&c);
	OK(cuMemFree_v2(copy));
	OK(cuEventDestroy_v2(event));
	OK(cuStreamDestroy_v2(stream));
}

/* While the rival is active nothing of ours runs, and nothing is lost. */
static void stopped_for_long(void **state)
{
	struct chain c;
	CUstream stream;
	uint32_t before;

	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	chain_stop(&c, 2);
	/* Each of the two workers may be in a block still. */
	before = chain_ran(&c);
	usleep(50000);
	assert_in_range(chain_ran(&c), before, before + 2);
	assert_int_equal(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	tally_client_set_active(rival, false);
	OK(cuStreamSynchronize(stream));
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
}

static void *quiet_soon(void *argument)
{
	usleep(20000);
	tally_client_set_active(rival, false);
	return NULL;
}

/* A copy in the null stream comes after what a blocking stream was given, though that was stopped:
 * the driver sees an ended launch, only the log knows that it has to run again. */
static void legacy_copy_waits_for_stopped(void **state)
{
	uint32_t got[BLOCKS];
	struct chain c;
	CUstream blocking;
	pthread_t thread;

	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	chain_open(&c, blocking);
	chain_stop(&c, 1);
	pthread_create(&thread, NULL, quiet_soon, NULL);
	OK(cuMemcpyDtoHAsync_v2(got, c.values, sizeof got, NULL));
	OK(cuStreamSynchronize(NULL));
	pthread_join(thread, NULL);
	assert_memory_equal(got, c.expected, sizeof got);
	OK(cuStreamSynchronize(blocking));
	chain_check(&c);
	OK(cuStreamDestroy_v2(blocking));
}

/* A module may go while a launch of its kernel is stopped: the launch is finished first. */
static void unloading_finishes_what_was_stopped(void **state)
{
	CUmodule own = load_steps(true);
	CUfunction of_own;
	CUstream stream;
	pthread_t thread;
	struct chain c;

	OK(cuModuleGetFunction(&of_own, own, "step"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	c.step = of_own;
	chain_stop(&c, 1);
	pthread_create(&thread, NULL, quiet_soon, NULL);
	OK(cuModuleUnload(own));
	pthread_join(thread, NULL);
	OK(cuStreamSynchronize(stream));
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
}

/* tallyd dies while we are stopped: we go on. Last of its group. */
static void daemon_dies(void **state)
{
	struct chain c;
	uint64_t start;

	chain_open(&c, NULL);
	chain_stop(&c, 1);
	start = tally_now();
	kill((pid_t)atoi(getenv("TEST_DAEMON")), SIGKILL);
	for (unsigned i = 0; i < 5; i++)
		chain_step(&c, i, 10, false);
	OK(cuStreamSynchronize(NULL));
	print_message("went on after %lu ms\n", (unsigned long)(tally_now() - start) / 1000000);
	chain_check(&c);
}

/* High priority ---------------------------------------------------------------------------------*/

static bool active(void)
{
	return atomic_load(&tally_slot(device)->active);
}

static void launch_empty(CUstream stream)
{
	OK(cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

/* Work that is not over before it may be. */
static void hold(struct chain *c)
{
	OK(cuMemsetD32_v2(c->ran + 4 * BLOCKS, 0, 1));
	chain_step(c, 1, HELD_US, false);
	assert_true(active());
}

/* Each way to learn that work is done ends the activity at once. The monitor may find out at any
 * time after its end. */
static void synchronisation_ends_activity(void **state)
{
	struct chain c;
	CUstream a, b;
	CUevent event;
	uint32_t word;

	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	chain_open(&c, a);
	OK(cuCtxSynchronize());
	assert_false(active());

	hold(&c);
	chain_let_go(&c);
	OK(cuStreamSynchronize(a));
	assert_false(active());

	hold(&c);
	launch_empty(b);
	launch_empty(NULL);
	assert_true(active());
	chain_let_go(&c);
	OK(cuCtxSynchronize());
	assert_false(active());

	hold(&c);
	OK(cuEventRecord(event, a));
	assert_true(active());
	chain_let_go(&c);
	OK(cuEventSynchronize(event));
	assert_false(active());

	hold(&c);
	chain_let_go(&c);
	UNTIL(!cuStreamQuery(a));
	assert_false(active());

	c.stream = NULL;
	hold(&c);
	chain_let_go(&c);
	OK(cuMemcpyDtoH_v2(&word, c.ran, 4));
	assert_false(active());
	chain_check(&c);
	OK(cuEventDestroy_v2(event));
	OK(cuStreamDestroy_v2(a));
	OK(cuStreamDestroy_v2(b));
}

/* One stream's synchronisation does not hide another's work. */
static void others_work_counts(void **state)
{
	struct chain c;
	CUstream a, b;

	OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
	chain_open(&c, b);
	OK(cuCtxSynchronize());
	/* First: what is held has all workers. */
	launch_empty(a);
	hold(&c);
	OK(cuStreamSynchronize(a));
	assert_true(active());
	chain_let_go(&c);
	OK(cuStreamSynchronize(b));
	assert_false(active());
	chain_check(&c);
	OK(cuStreamDestroy_v2(a));
	OK(cuStreamDestroy_v2(b));
}

/* A program that launches and never asks: the monitor finds out in a lull. */
static void lull_ends_activity(void **state)
{
	struct chain c;

	chain_open(&c, NULL);
	OK(cuCtxSynchronize());
	for (unsigned i = 0; i < 4; i++) {
		c.stream = i % 2 ? CU_STREAM_PER_THREAD : NULL;
		hold(&c);
		chain_let_go(&c);
		UNTIL(!active());
		usleep(i * 700000); /* also after the monitor fell asleep */
	}
	chain_check(&c);
}

/* Of two threads neither ever ends the activity over the other's work. */
static void *launcher(void *argument)
{
	struct chain c;
	CUstream stream;

	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	chain_open(&c, stream);
	for (unsigned i = 0; i < 500; i++) {
		chain_step(&c, i, 5, false);
		/* This order: work that is not over now was not over when we looked. */
		if (!active() && TALLY_DRIVER(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY)
			*(unsigned *)argument += 1;
		if (i % 3 == 0)
			OK(cuStreamSynchronize(stream));
	}
	OK(cuStreamSynchronize(stream));
	chain_check(&c);
	OK(cuStreamDestroy_v2(stream));
	return NULL;
}

static void threads_agree(void **state)
{
	pthread_t threads[2];
	unsigned missed[2] = {0};

	for (unsigned i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, launcher, &missed[i]);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(missed[0] + missed[1], 0);
	UNTIL(!active());
}

int main(int argc, char **argv)
{
	const struct CMUnitTest best_effort[] = {
		cmocka_unit_test(many_streams),
		cmocka_unit_test(legacy_stream_orders),
		cmocka_unit_test(per_thread_streams),
		cmocka_unit_test(fences_keep_order),
		cmocka_unit_test(stopped_for_long),
		cmocka_unit_test(legacy_copy_waits_for_stopped),
		cmocka_unit_test(unloading_finishes_what_was_stopped),
		cmocka_unit_test(daemon_dies),
	};
	const struct CMUnitTest high[] = {
		cmocka_unit_test(synchronisation_ends_activity),
		cmocka_unit_test(others_work_counts),
		cmocka_unit_test(lull_ends_activity),
		cmocka_unit_test(threads_agree),
	};

	if (argc > 1 && !strcmp(argv[1], "high"))
		return cmocka_run_group_tests(high, steps_setup, NULL);
	return cmocka_run_group_tests(best_effort, steps_setup, NULL);
}
