/* SPDX-License-Identifier: Apache-2.0 */
/* Joining and leaving a real tallyd with real processes, and what deaths leave behind. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sched/wire.h"
#include "tests/sched/harness.h"

static void test_higher_priority_holds_lower(void **state)
{
	struct tally_client *high = harness_connect(*state, TALLY_PRIORITY_HIGH);
	struct tally_client *low = harness_connect(*state, TALLY_PRIORITY_BEST_EFFORT);
	uint32_t epoch = tally_client_epoch(low);

	assert_false(tally_client_must_yield(low));
	tally_client_set_active(high, true);
	assert_true(tally_client_must_yield(low));
	assert_false(tally_client_must_yield(high));
	assert_int_not_equal(tally_client_epoch(low), epoch);
	tally_client_set_active(high, false);
	assert_false(tally_client_must_yield(low));
	assert_int_equal(tally_client_slot(high)->bursts, 1);
	assert_int_equal(tally_client_slot(low)->bursts, 0);
	assert_true(tally_client_slot(high)->active_ns > 0);
	assert_int_equal(tally_client_slot(high)->pid, getpid());
	tally_client_disconnect(high);
	tally_client_disconnect(low);
}

/* The grace after a burst: others wait for its end without hearing of it. */
static void test_others_keep_away_a_little_longer(void **state)
{
	struct harness *h = *state;
	struct tally_client_options options = {.priority = TALLY_PRIORITY_HIGH,
					       .device = "device one",
					       .socket = h->socket,
					       .grace_ns = 6 * TALLY_GRACE_MOST_NS};
	struct tally_client *high = tally_client_connect(&options, NULL);
	struct tally_client *low = harness_connect(h, TALLY_PRIORITY_BEST_EFFORT);
	uint64_t began = tally_now(), until;
	uint32_t epoch;

	assert_non_null(high);
	assert_false(tally_client_must_yield(low));
	tally_client_set_active(high, true);
	assert_true(tally_client_held_until(low) == UINT64_MAX);
	tally_client_set_active(high, false);
	epoch = tally_client_epoch(low);
	until = tally_client_slot(high)->quiet_until_ns;
	/* On a busy machine it may be over already. */
	assert_true(tally_client_must_yield(low) || tally_now() >= until);
	/* No grace is longer than the most, which the board would not believe. */
	assert_in_range(until, began + TALLY_GRACE_MOST_NS, tally_now() + TALLY_GRACE_MOST_NS);
	assert_int_equal(tally_client_slot(high)->grace_ns, TALLY_GRACE_MOST_NS);
	while (tally_client_must_yield(low)) {
		uint64_t left = tally_client_held_until(low) - tally_now();

		assert_true(left <= TALLY_GRACE_MOST_NS || left > INT64_MAX);
		if (left <= TALLY_GRACE_MOST_NS)
			tally_client_wait(low, epoch, (int64_t)left);
	}
	assert_true(tally_now() >= until);
	assert_int_equal(tally_client_epoch(low), epoch);
	assert_true(tally_client_held_until(low) <= tally_now());
	/* Who leaves holds nobody. */
	tally_client_set_active(high, true);
	tally_client_disconnect(high);
	harness_until(harness_must_yield, low, false);
	tally_client_disconnect(low);
}

/* Learnt from the pauses between bursts, and on the board. */
static void test_the_grace_is_learnt(void **state)
{
	struct harness *h = *state;
	struct tally_client_options options = {.priority = TALLY_PRIORITY_HIGH,
					       .device = "device one",
					       .socket = h->socket,
					       .grace_ns = TALLY_GRACE_LEARNT};
	struct tally_client *high = tally_client_connect(&options, NULL);

	assert_non_null(high);
	for (unsigned i = 0; i < 200; i++) {
		tally_client_set_active(high, true);
		tally_client_set_active(high, false);
		if (i % 2)
			usleep(1000);
	}
	assert_in_range(tally_client_slot(high)->grace_ns, 1000, 300000);
	tally_client_disconnect(high);
}

static void test_other_device_does_not_matter(void **state)
{
	struct harness *h = *state;
	struct tally_client_options options = {
		.priority = 1000, .socket = h->socket, .device = "device two"};
	struct tally_client *other = tally_client_connect(&options, NULL);
	struct tally_client *low = harness_connect(h, 0);

	assert_non_null(other);
	tally_client_set_active(other, true);
	assert_false(tally_client_must_yield(low));
	tally_client_disconnect(other);
	tally_client_disconnect(low);
}

static void test_killed_while_active_releases_others(void **state)
{
	struct tally_client *low = harness_connect(*state, 0);

	for (int i = 0; i < 20; i++) {
		pid_t high = harness_client(*state, TALLY_PRIORITY_HIGH, true);
		assert_true(tally_client_must_yield(low));
		harness_end(high, SIGKILL);
		harness_until(harness_must_yield, low, false);
	}
	tally_client_disconnect(low);
}

/* Two equals that always have work: a real tallyd holds each, again and again; one that leaves
 * takes the turn with it. */
static void test_equals_take_turns(void **state)
{
	struct tally_client *a = harness_connect(*state, 3), *b = harness_connect(*state, 3);

	tally_client_set_active(a, true);
	tally_client_set_active(b, true);
	for (unsigned turn = 0; turn < 4; turn++) {
		harness_until(harness_must_yield, a, true);
		harness_until(harness_must_yield, b, true);
	}
	tally_client_disconnect(a);
	harness_until(harness_must_yield, b, false);
	tally_client_disconnect(b);
}

/* Killed at random points of a program that stores and sleeps all the time: nothing of it stays.
 */
static void test_killed_at_random_points_leaves_nothing(void **state)
{
	struct harness *h = *state;
	struct tally_client *low = harness_connect(h, 0);
	const struct tally_board *board = tally_client_observe(h->socket, NULL, NULL);

	assert_non_null(board);
	for (unsigned i = 0; i < 40; i++) {
		pid_t pid = fork();
		if (!pid) {
			struct tally_client *high = harness_connect(h, TALLY_PRIORITY_HIGH);
			for (bool active = true;; active = !active) {
				tally_client_set_active(high, active);
				tally_client_wait(high, tally_client_epoch(high), 1000);
			}
		}
		usleep(500 + i * 131);
		harness_end(pid, SIGKILL);
		uint64_t start = tally_board_now();
		while (board->slots_end > 1 && harness_patient(start))
			;
		assert_int_equal(board->slots_end, 1);
		assert_false(tally_client_must_yield(low));
	}
	munmap((void *)board, sizeof *board);
	tally_client_disconnect(low);
}

/* A forked child inherits the socket; it must not keep its dead parent's membership alive. */
static void test_killed_with_living_child_releases_others(void **state)
{
	struct harness *h = *state;
	struct tally_client *low = harness_connect(h, 0);
	int to_us[2];
	pid_t grandchild;

	assert_int_equal(pipe(to_us), 0);
	pid_t high = fork();
	if (!high) {
		struct tally_client *client = harness_connect(h, TALLY_PRIORITY_HIGH);
		tally_client_set_active(client, true);
		pid_t child = fork();
		if (!child) {
			/* Void here: its stores reach nobody, its parent stays active. */
			bool is_void =
				!tally_client_must_yield(client) && !tally_client_check(client);
			tally_client_set_active(client, true);
			tally_client_set_active(client, false);
			child = is_void ? getpid() : 0;
			if (write(to_us[1], &child, sizeof child) != sizeof child)
				_exit(1);
			for (;;)
				pause();
		}
		for (;;)
			pause();
	}
	assert_int_equal(read(to_us[0], &grandchild, sizeof grandchild), sizeof grandchild);
	assert_int_not_equal(grandchild, 0);
	assert_true(tally_client_must_yield(low));
	harness_end(high, SIGKILL);
	harness_until(harness_must_yield, low, false);
	assert_int_equal(kill(grandchild, 0), 0);
	kill(grandchild, SIGKILL);
	close(to_us[0]);
	close(to_us[1]);
	tally_client_disconnect(low);
}

static void test_forked_child_joins_anew(void **state)
{
	struct tally_client *client = harness_connect(*state, 7);
	int status;

	tally_client_set_active(client, true);
	pid_t child = fork();
	if (!child) {
		struct tally_error error = {0};
		bool ok = !tally_client_check(client) && !tally_client_slot(client)->pid &&
			  tally_client_reconnect(client, &error) && tally_client_check(client) &&
			  tally_client_slot(client)->pid == getpid() &&
			  !tally_client_slot(client)->active;
		tally_client_disconnect(client);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(tally_client_check(client));
	assert_int_equal(tally_client_slot(client)->active, 1);
	tally_client_disconnect(client);
}

static void test_sleeper_wakes_on_change_and_on_death(void **state)
{
	struct harness *h = *state;
	struct tally_client *low = harness_connect(h, 0);
	pid_t high = harness_client(h, TALLY_PRIORITY_HIGH, true);
	uint32_t seen = tally_client_epoch(low);

	kill(high, SIGKILL);
	/* Without end: what does not wake hangs, until the test's own time is up. */
	while (tally_client_must_yield(low)) {
		tally_client_wait(low, seen, -1);
		seen = tally_client_epoch(low);
	}
	assert_int_equal(waitpid(high, NULL, 0), high);

	/* The dead one slept on the board: it is not counted as a sleeper any more. */
	const struct tally_board *board = tally_client_observe(h->socket, NULL, NULL);
	assert_non_null(board);
	assert_int_equal(board->sleepers, 0);
	munmap((void *)board, sizeof *board);

	uint64_t start = tally_board_now();
	tally_client_wait(low, tally_client_epoch(low), 20000000);
	assert_true(tally_board_now() - start >= 19000000);
	tally_client_disconnect(low);
}

static bool check(struct tally_client *client)
{
	return tally_client_check(client);
}

static void test_killed_daemon_then_a_new_one(void **state)
{
	struct harness *h = *state;
	struct tally_client *low = harness_connect(h, 0);
	struct tally_client *high = harness_connect(h, TALLY_PRIORITY_HIGH);
	struct tally_slot *old_slot = tally_client_slot(high);
	struct tally_error error = {0};

	tally_client_set_active(high, true);
	assert_true(tally_client_must_yield(low));
	harness_kill(h, SIGKILL);
	harness_until(check, low, false);
	assert_false(tally_client_must_yield(low));
	assert_false(tally_client_reconnect(low, &error));
	assert_non_null(strstr(error.message, "no tallyd serves"));

	harness_start(h, NULL, NULL);
	assert_true(tally_client_reconnect(low, NULL));
	assert_false(tally_client_must_yield(low));
	assert_false(tally_client_check(high));
	assert_true(tally_client_reconnect(high, NULL));
	/* What it had said before holds on the new board. */
	assert_true(tally_client_must_yield(low));
	assert_true(tally_client_check(low));
	assert_ptr_not_equal(tally_client_slot(high), old_slot);
	atomic_fetch_add(&old_slot->launches, 1); /* still ours to write, and on no board */
	assert_int_equal(tally_client_slot(high)->launches, 0);
	tally_client_set_active(high, false);
	assert_false(tally_client_must_yield(low));
	tally_client_disconnect(high);
	tally_client_disconnect(low);
}

struct busy {
	struct tally_client *client;
	_Atomic bool stop;
};

static void *toggle(void *argument)
{
	struct busy *b = argument;

	for (unsigned i = 0; !atomic_load(&b->stop); i++) {
		tally_client_set_active(b->client, i % 3 == 0);
		tally_client_must_yield(b->client);
		atomic_fetch_add(&tally_client_slot(b->client)->launches, 1);
	}
	return NULL;
}

static void *sleep_on_board(void *argument)
{
	struct busy *b = argument;

	while (!atomic_load(&b->stop))
		tally_client_wait(b->client, tally_client_epoch(b->client), 1000000);
	return NULL;
}

/* Application threads never notice that a daemon dies and another comes, and what they said last is
 * what the board says. */
static void test_threads_go_on_while_daemons_come_and_go(void **state)
{
	struct harness *h = *state;
	struct busy b = {.client = harness_connect(h, 1)};
	pthread_t threads[4];

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i < 3 ? toggle : sleep_on_board, &b), 0);
	for (unsigned i = 0; i < 8; i++) {
		harness_kill(h, SIGKILL);
		harness_until(check, b.client, false);
		harness_start(h, NULL, NULL);
		assert_true(tally_client_reconnect(b.client, NULL));
		usleep(5000);
	}
	atomic_store(&b.stop, true);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (unsigned wanted = 0; wanted < 2; wanted++) {
		tally_client_set_active(b.client, wanted);
		assert_int_equal(tally_client_slot(b.client)->active, wanted);
	}
	tally_client_disconnect(b.client);
}

static void test_finished_programs_are_kept(void **state)
{
	struct harness *h = *state;

	for (int i = 0; i < TALLY_BOARD_FINISHED + 6; i++) {
		struct tally_client *client = harness_connect(h, i);
		tally_client_slot(client)->launches = (uint64_t)i;
		tally_client_set_active(client, true);
		tally_client_disconnect(client);
	}
	const struct tally_board *board = tally_client_observe(h->socket, NULL, NULL);
	assert_non_null(board);
	uint64_t start = tally_board_now();
	while (board->finished_count < TALLY_BOARD_FINISHED + 6 && harness_patient(start))
		;
	assert_int_equal(board->finished_count, TALLY_BOARD_FINISHED + 6);
	for (int i = 6; i < TALLY_BOARD_FINISHED + 6; i++) {
		const struct tally_slot *record = &board->finished[i % TALLY_BOARD_FINISHED];
		assert_int_equal(record->priority, i);
		assert_int_equal(record->launches, i);
		assert_int_equal(record->bursts, 1);
		assert_true(record->finished_ns >= record->joined_ns);
	}
	assert_int_equal(board->slots_end, 0);
	munmap((void *)board, sizeof *board);
}

static void test_full_board_refuses_by_name(void **state)
{
	struct harness *h = *state;
	struct tally_client *clients[TALLY_BOARD_SLOTS];
	struct tally_client_options options = {.socket = h->socket};
	struct tally_error error = {0};

	for (int i = 0; i < TALLY_BOARD_SLOTS; i++)
		clients[i] = harness_connect(h, i);
	assert_null(tally_client_connect(&options, &error));
	assert_non_null(strstr(error.message, "all 128 places on the board are taken"));
	/* Observers still get in, and a place that becomes free is given away again. */
	const struct tally_board *board = tally_client_observe(h->socket, NULL, NULL);
	assert_non_null(board);
	tally_client_disconnect(clients[5]);
	uint64_t start = tally_board_now();
	while (tally_slot_used(&board->slots[5]) && harness_patient(start))
		;
	clients[5] = harness_connect(h, 1);
	assert_true(tally_slot_used(&board->slots[5]));
	munmap((void *)board, sizeof *board);
	for (int i = 0; i < TALLY_BOARD_SLOTS; i++)
		tally_client_disconnect(clients[i]);
}

static void test_observers_cannot_write(void **state)
{
	struct harness *h = *state;
	struct tally_wire answer, request = {.magic = TALLY_WIRE_MAGIC,
					     .version = TALLY_BOARD_VERSION,
					     .type = TALLY_WIRE_OBSERVE};
	struct tally_wire_fds fds;
	int fd = tally_wire_ask(h->socket, &request, -1, &answer, &fds, NULL, NULL);
	int board = fds.board;

	assert_true(fd >= 0 && board >= 0);
	assert_ptr_equal(mmap(NULL, sizeof(struct tally_board), PROT_READ | PROT_WRITE, MAP_SHARED,
			      board, 0),
			 MAP_FAILED);
	assert_int_not_equal(ftruncate(board, 0), 0);
	close(board);
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_higher_priority_holds_lower),
		TEST(test_others_keep_away_a_little_longer),
		TEST(test_the_grace_is_learnt),
		TEST(test_other_device_does_not_matter),
		TEST(test_equals_take_turns),
		TEST(test_killed_while_active_releases_others),
		TEST(test_killed_at_random_points_leaves_nothing),
		TEST(test_killed_with_living_child_releases_others),
		TEST(test_forked_child_joins_anew),
		TEST(test_sleeper_wakes_on_change_and_on_death),
		TEST(test_killed_daemon_then_a_new_one),
		TEST(test_threads_go_on_while_daemons_come_and_go),
		TEST(test_finished_programs_are_kept),
		TEST(test_full_board_refuses_by_name),
		TEST(test_observers_cannot_write),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
