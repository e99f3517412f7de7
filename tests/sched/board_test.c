/* SPDX-License-Identifier: Apache-2.0 */
/* The futex of the board, between threads and between processes: no wake is ever lost. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sched/board.h"

#define ROUNDS 20000

static int setup(void **state)
{
	*state = mmap(NULL, sizeof(struct tally_board), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return *state == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
	return munmap(*state, sizeof(struct tally_board));
}

static void test_wait_times_out(void **state)
{
	struct tally_board *board = *state;
	uint64_t start = tally_board_now();

	tally_board_wait(board, &board->slots[3], board->epoch, 30000000);
	assert_true(tally_board_now() - start >= 30000000);
	assert_int_equal(board->sleepers, 0);
	assert_int_equal(board->slots[3].sleeping, 0);
}

static void test_an_old_epoch_does_not_wait(void **state)
{
	struct tally_board *board = *state;
	uint32_t seen = board->epoch;

	tally_board_changed(board);
	tally_board_wait(board, NULL, seen, -1); /* for ever, if at all */
}

/* Two sides take turns; each sleeps without a time limit until the other moved. A lost wake would
 * hang here (the test's own time limit ends it). */
static void play(struct tally_board *board, unsigned side)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (;;) {
			uint32_t seen = atomic_load(&board->epoch);
			if (atomic_load(&board->slots[0].turn) % 2 == side)
				break;
			tally_board_wait(board, &board->slots[side], seen, -1);
		}
		atomic_fetch_add(&board->slots[0].turn, 1);
		tally_board_changed(board);
	}
}

static void *play_thread(void *argument)
{
	play(argument, 1);
	return NULL;
}

static void test_no_lost_wake_between_threads(void **state)
{
	struct tally_board *board = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, play_thread, board), 0);
	play(board, 0);
	pthread_join(thread, NULL);
	assert_int_equal(board->slots[0].turn, 2 * ROUNDS);
	assert_int_equal(board->sleepers, 0);
}

static void test_no_lost_wake_between_processes(void **state)
{
	struct tally_board *board = *state;
	int status;

	pid_t child = fork();
	if (!child) {
		play(board, 1);
		_exit(0);
	}
	play(board, 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(board->slots[0].turn, 2 * ROUNDS);
	assert_int_equal(board->sleepers, 0);
}

/* A sleeper that is killed at a random point may leave a count behind, never one too few: what its
 * slot says is at most what the board says. */
static void test_killed_sleepers_never_leave_too_few(void **state)
{
	struct tally_board *board = *state;

	for (unsigned i = 0; i < 60; i++) {
		pid_t child = fork();
		if (!child)
			for (;;)
				tally_board_wait(board, &board->slots[7], board->epoch, 1000);
		usleep(i * 97);
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_true(board->sleepers >= board->slots[7].sleeping);
		board->sleepers = board->slots[7].sleeping = 0;
	}
}

static void test_layout_keeps_counting_away_from_deciding(void **state)
{
	/* What others read to decide, and what the owner counts, never share a cache line. */
	assert_true(offsetof(struct tally_slot, active_since_ns) + 8 <= 64);
	assert_true(offsetof(struct tally_slot, launches) % 64 == 0);
	assert_true(sizeof(struct tally_slot) % 64 == 0);
	assert_true(offsetof(struct tally_board, slots) % 64 == 0);
	assert_true(offsetof(struct tally_board, slots) - offsetof(struct tally_board, epoch) >=
		    64);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_wait_times_out),
		TEST(test_an_old_epoch_does_not_wait),
		TEST(test_no_lost_wake_between_threads),
		TEST(test_no_lost_wake_between_processes),
		TEST(test_killed_sleepers_never_leave_too_few),
		TEST(test_layout_keeps_counting_away_from_deciding),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
