/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that launches for ever keeps nobody from anything: not from the device's lock, not from
 * room on the device, not from an answer to "is it done". guard.sh gives the program its daemon.
 */
#include "tests/interpose/steps.h"

#include <pthread.h>
#include <unistd.h>

#include "backends/cuda/interpose/fair_lock.h"

enum { LONG_NS = 200000 }; /* how long a thread waits before it goes first (fair_lock.c) */

/* --- the lock --- */

static struct tally_fair_lock fair;

/* A thread that waits for the lock, and counts that it had it. */
struct waiter {
	void (*take)(struct tally_fair_lock *);
	unsigned had;
};

static void *wait_for_lock(void *argument)
{
	struct waiter *w = argument;

	w->take(&fair);
	w->had++;
	tally_fair_give(&fair);
	return NULL;
}

/* Whoever gives the lock back and takes it again at once comes behind a thread that waited for
 * long, and behind one that is urgent; unless those do not come before it has waited for long too.
 */
static void lock_goes_round(void **state)
{
	static void (*const ways[])(struct tally_fair_lock *) = {tally_fair_take,
								 tally_fair_take_first};

	for (unsigned round = 0; round < 400; round++) {
		struct waiter w = {.take = ways[round % 2]};
		uint64_t began;
		pthread_t thread;

		fair.spins = round / 2 % 2;
		tally_fair_take(&fair);
		pthread_create(&thread, NULL, wait_for_lock, &w);
		/* It says so, the urgent one at once, the other one after a while. */
		UNTIL(atomic_load(&fair.first) == 1);
		tally_fair_give(&fair);
		began = tally_now();
		tally_fair_take(&fair);
		assert_true(w.had || tally_now() - began >= LONG_NS);
		tally_fair_give(&fair);
		pthread_join(thread, NULL);
		assert_int_equal(atomic_load(&fair.state), 0);
		assert_int_equal(atomic_load(&fair.first), 0);
	}
}

static unsigned long inside;

static void *count(void *number)
{
	for (unsigned i = 0; i < 20000; i++) {
		if (i % 64 == (unsigned)(uintptr_t)number)
			tally_fair_take_first(&fair);
		else
			tally_fair_take(&fair);
		inside++;
		tally_fair_give(&fair);
	}
	return NULL;
}

/* It is a lock: of four threads none meets another inside. */
static void lock_excludes(void **state)
{
	pthread_t threads[4];

	inside = 0;
	fair.spins = false;
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, count, (void *)i);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(inside, 4 * 20000);
}

/* --- the device --- */

static _Atomic bool enough;

/* Launches into one stream for ever; long enough that while one runs the next is always there. */
static struct {
	CUstream stream;
	struct chain chain;
	pthread_t thread;
	_Atomic unsigned rounds;
} loop;

static void *launch(void *unused)
{
	(void)unused;
	OK(cuCtxSetCurrent(context));
	for (unsigned n = 0; !atomic_load(&enough); n++) {
		chain_step(&loop.chain, n, LONG_US / 2, false);
		atomic_store(&loop.rounds, n + 1);
	}
	return NULL;
}

static void loop_begins(unsigned flags)
{
	atomic_store(&enough, false);
	atomic_store(&loop.rounds, 0);
	OK(cuStreamCreate(&loop.stream, flags));
	chain_open(&loop.chain, loop.stream);
	pthread_create(&loop.thread, NULL, launch, NULL);
	/* Until it is known how long such a launch takes. */
	while (atomic_load(&loop.rounds) < 6)
		usleep(1000);
}

static void loop_ends(void)
{
	atomic_store(&enough, true);
	pthread_join(loop.thread, NULL);
	OK(cuStreamSynchronize(loop.stream));
	chain_check(&loop.chain);
	OK(cuStreamDestroy_v2(loop.stream));
}

/* There is never room for a copy beside launches that are longer than the limit, but for waiting;
 * and without a line to wait in that is until patience ends (queue.c): a second, 80 launches. */
static void copies_get_room(void **state)
{
	unsigned before, usual = tally_process.config.ahead;
	CUstream own;

	tally_process.config.ahead = 4;
	OK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	loop_begins(CU_STREAM_NON_BLOCKING);
	before = atomic_load(&loop.rounds);
	for (unsigned i = 0; i < 6; i++) {
		OK(cuMemcpyDtoDAsync_v2(other, memory, 64, own));
		OK(cuStreamSynchronize(own));
	}
	before = atomic_load(&loop.rounds) - before;
	loop_ends();
	print_message("6 copies beside %u launches\n", before);
	assert_true(before < 60);
	OK(cuStreamDestroy_v2(own));
	tally_process.config.ahead = usual;
}

static void synchronize_legacy(void)
{
	OK(cuStreamSynchronize(NULL));
}

static void copy(void)
{
	uint32_t word;

	OK(cuMemcpyDtoH_v2(&word, memory, sizeof word));
}

static void synchronize_context(void)
{
	OK(cuCtxSynchronize());
}

static void give_back(void)
{
	CUdeviceptr some;

	OK(cuMemAlloc_v2(&some, 16));
	OK(cuMemFree_v2(some));
}

/* Who waits for the device waits for what it was given before: it never has nothing to do. */
static void waiting_ends(void **state)
{
	static void (*const ways[])(void) = {synchronize_legacy, copy, synchronize_context,
					     give_back};
	unsigned before, usual = tally_process.config.ahead;

	/* What was launched before is also what waits in host memory: little of it. */
	tally_process.config.ahead = 4;
	loop_begins(CU_STREAM_DEFAULT);
	for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++) {
		before = atomic_load(&loop.rounds);
		for (unsigned times = 0; times < 3; times++)
			ways[i]();
		before = atomic_load(&loop.rounds) - before;
		print_message("way %u: waited 3 times beside %u launches\n", i, before);
		assert_true(before < 200); /* and not for ever */
	}
	loop_ends();
	tally_process.config.ahead = usual;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_goes_round),
		cmocka_unit_test(lock_excludes),
		cmocka_unit_test(copies_get_room),
		cmocka_unit_test(waiting_ends),
	};

	return cmocka_run_group_tests(tests, steps_setup, NULL);
}
