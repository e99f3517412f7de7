/* SPDX-License-Identifier: Apache-2.0 */
/* Many programs on one device, stopped processes, and daemons that die under them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sched/harness.h"

#define CROWD  20
#define LEVELS 5

static uint32_t lapsed(const struct tally_client *client)
{
	return atomic_load(&tally_client_slot((struct tally_client *)client)->lapsed);
}

static void test_a_stopped_program_holds_nobody_for_long(void **state)
{
	struct tally_client *low = harness_connect(*state, 0);

	for (int level = 1; level <= 200; level += 99) {
		pid_t high = harness_client(*state, level, true);

		assert_true(tally_client_must_yield(low));
		kill(high, SIGSTOP);
		harness_until(harness_must_yield, low, false);
		/* It goes on: what it has not finished holds others again. */
		kill(high, SIGCONT);
		harness_until(harness_must_yield, low, true);
		kill(high, SIGSTOP);
		harness_until(harness_must_yield, low, false);
		/* Killed while it is stopped. */
		harness_end(high, SIGKILL);
		assert_false(tally_client_must_yield(low));
	}
	tally_client_disconnect(low);
}

/* Neither those below it nor its equals, whose turn it may have. */
static void test_a_stopped_equal_gives_its_turn_back(void **state)
{
	struct tally_client *equal = harness_connect(*state, 0);
	pid_t other = harness_client(*state, 0, true);

	tally_client_set_active(equal, true);
	harness_until(harness_must_yield, equal, true);
	kill(other, SIGSTOP);
	harness_until(harness_must_yield, equal, false);
	/* For good, not for a quantum. */
	for (int i = 0; i < 100; i++) {
		usleep(2000);
		if (atomic_load(&tally_client_slot(equal)->turn) || !tally_client_must_yield(equal))
			continue;
		/* The turn may have been on its way when it was stopped: once. */
		harness_until(harness_must_yield, equal, false);
	}
	kill(other, SIGCONT);
	harness_until(harness_must_yield, equal, true);
	harness_end(other, SIGKILL);
	tally_client_disconnect(equal);
}

/* A program that works is never taken for a stopped one, however long its burst. */
static void test_a_long_burst_does_not_lapse(void **state)
{
	struct tally_client *low = harness_connect(*state, 0);
	struct tally_client *high = harness_connect(*state, 100);

	tally_client_set_active(high, true);
	for (int i = 0; i < 150; i++) {
		usleep(10000);
		assert_true(tally_client_must_yield(low));
		assert_int_equal(lapsed(high), 0);
	}
	tally_client_disconnect(high);
	tally_client_disconnect(low);
}

/* What a program does for a living: works in bursts of half a millisecond, when it may. */
static void live(struct harness *h, int priority, unsigned seed, _Atomic uint64_t *done)
{
	struct tally_client_options options = {
		.priority = priority, .name = "crowd", .socket = h->socket, .device = "device one"};
	struct tally_client *client = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!(client = tally_client_connect(&options, NULL)))
		usleep(2000);
	for (unsigned round = 0;; round++) {
		tally_client_set_active(client, true);
		for (;;) {
			uint32_t epoch = tally_client_epoch(client);
			if (!tally_client_must_yield(client))
				break;
			tally_client_wait(client, epoch, 50000000);
			if (!tally_client_check(client))
				tally_client_reconnect(client, NULL);
		}
		uint64_t start = tally_board_now();
		usleep(500);
		atomic_fetch_add(done, 1);
		tally_client_set_active(client, false);
		/* Something is left for those below, however slow the machine is: all levels but
		 * the lowest together are active for less than half of the time. */
		unsigned us = (unsigned)((tally_board_now() - start) / 1000) * (priority ? 40 : 2);
		usleep((us < 200000 ? us : 200000) + (unsigned)rand_r(&seed) % 2000);
		if (round % 8 == 0 && !tally_client_check(client))
			tally_client_reconnect(client, NULL);
	}
}

struct crowd {
	pid_t pids[CROWD];
	_Atomic uint64_t *done;
};

/* Waits until every living one has done `more` bursts from now on. */
static void all_go_on(const struct crowd *crowd, unsigned except, uint64_t more)
{
	uint64_t before[CROWD], start = tally_board_now();

	for (unsigned i = 0; i < CROWD; i++)
		before[i] = atomic_load(&crowd->done[i]);
	for (unsigned i = 0; i < CROWD; i++) {
		while (i != except && atomic_load(&crowd->done[i]) < before[i] + more) {
			if (!harness_patient(start))
				fail_msg("program %u of level %u stands still", i, i % LEVELS);
		}
	}
}

static void test_twenty_programs_at_five_levels(void **state)
{
	struct harness *h = *state;
	struct crowd crowd;

	crowd.done = mmap(NULL, CROWD * sizeof *crowd.done, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(crowd.done != MAP_FAILED);
	for (unsigned i = 0; i < CROWD; i++) {
		crowd.pids[i] = fork();
		assert_true(crowd.pids[i] >= 0);
		if (!crowd.pids[i])
			live(h, (int)(i % LEVELS) * 40, i + 1, &crowd.done[i]);
	}
	all_go_on(&crowd, CROWD, 3);
	/* Of each level, its highest and lowest too, one is stopped wherever it is. */
	for (unsigned i = 0; i < LEVELS; i++) {
		uint64_t at = 0;

		kill(crowd.pids[i], SIGSTOP);
		all_go_on(&crowd, i, 2);
		at = atomic_load(&crowd.done[i]);
		kill(crowd.pids[i], SIGCONT);
		all_go_on(&crowd, CROWD, 2);
		assert_true(atomic_load(&crowd.done[i]) > at);
	}
	/* The daemon dies under load, and a new one comes. */
	harness_kill(h, SIGKILL);
	all_go_on(&crowd, CROWD, 2);
	harness_start(h, NULL, NULL);
	all_go_on(&crowd, CROWD, 3);
	/* One that is stopped is killed, and so is its daemon. */
	kill(crowd.pids[LEVELS - 1], SIGSTOP);
	harness_kill(h, SIGKILL);
	harness_end(crowd.pids[LEVELS - 1], SIGKILL);
	harness_start(h, NULL, NULL);
	all_go_on(&crowd, LEVELS - 1, 3);

	for (unsigned i = 0; i < CROWD; i++)
		if (i != LEVELS - 1)
			harness_end(crowd.pids[i], SIGKILL);
	const struct tally_board *board = tally_client_observe(h->socket, NULL, NULL);
	assert_non_null(board);
	uint64_t start = tally_board_now();
	while (atomic_load(&board->slots_end))
		assert_true(harness_patient(start));
	munmap((void *)board, sizeof *board);
	munmap(crowd.done, CROWD * sizeof *crowd.done);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_stopped_program_holds_nobody_for_long),
		TEST(test_a_stopped_equal_gives_its_turn_back),
		TEST(test_a_long_burst_does_not_lapse),
		TEST(test_twenty_programs_at_five_levels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
