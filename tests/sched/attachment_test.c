/* SPDX-License-Identifier: Apache-2.0 */
/* What programs leave with tallyd: others get it while they live, after they were killed, and from
 * the next tallyd; and what tallyd gives to a program that joins. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sched/daemon.h"
#include "sched/kept.h"
#include "sched/listener.h"
#include "tests/sched/harness.h"

#define KIND 77
#define SIZE 4096

static int memory_with(const char *text)
{
	int fd = memfd_create("left", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static struct tally_client *join_with(struct harness *h, int fd)
{
	struct tally_client_options options = {.name = "leaver", .socket = h->socket};
	struct tally_error error = {0};
	struct tally_client *client;

	if (fd >= 0)
		options.attachment = (struct tally_attachment){fd, KIND, SIZE};
	client = tally_client_connect(&options, &error);
	assert_string_equal(error.message, "");
	return client;
}

/* What the program in `slot` left, as text; "" when it is nothing. */
static void expect_left(struct tally_observer *o, const struct tally_slot *slot, const char *text)
{
	struct tally_attachment got;
	struct tally_error error = {0};
	char bytes[64] = "";

	assert_true(tally_observer_fetch(o, slot, &got, &error));
	if (!*text) {
		assert_int_equal(got.size, 0);
		return;
	}
	assert_int_equal(got.kind, KIND);
	assert_int_equal(got.size, SIZE);
	assert_true(fcntl(got.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(pread(got.fd, bytes, sizeof bytes - 1, 0) > 0);
	assert_string_equal(bytes, text);
	close(got.fd);
}

static void observe(struct tally_observer *o, struct harness *h)
{
	struct tally_error error = {0};

	assert_true(tally_observer_open(o, h->socket, NULL, &error));
}

static void test_others_get_it(void **state)
{
	struct harness *h = *state;
	int fd = memory_with("of one"), other = memory_with("of two");
	struct tally_client *one = join_with(h, fd), *two = join_with(h, other),
			    *none = join_with(h, -1);
	struct tally_observer o;

	close(fd); /* the client has its own */
	observe(&o, h);
	expect_left(&o, &o.board->slots[0], "of one");
	expect_left(&o, &o.board->slots[1], "of two");
	expect_left(&o, &o.board->slots[2], "");
	expect_left(&o, &o.board->slots[3], ""); /* nobody */
	assert_int_equal(tally_client_given(one).size, 0);
	tally_client_disconnect(one);
	tally_client_disconnect(two);
	tally_client_disconnect(none);
	tally_observer_close(&o);
	close(other);
}

static void wait_finished(const struct tally_board *board, uint64_t count)
{
	while (atomic_load(&board->finished_count) < count)
		usleep(1000);
}

/* The last few of the dead are kept, in every way of dying. */
static void test_it_outlives_the_program(void **state)
{
	struct harness *h = *state;
	struct tally_observer o;

	observe(&o, h);
	for (unsigned i = 0; i < TALLY_KEPT + 2; i++) {
		int ready[2];
		char byte;
		assert_int_equal(pipe(ready), 0);
		pid_t pid = fork();
		if (!pid) {
			char text[2] = {(char)('a' + i), 0};
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			struct tally_client *client = join_with(h, memory_with(text));
			if (i % 2)
				tally_client_disconnect(client);
			_exit(write(ready[1], "", 1) == 1 && i % 2 ? 0 : (pause(), 1));
		}
		assert_int_equal(read(ready[0], &byte, 1), 1);
		close(ready[0]);
		close(ready[1]);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		wait_finished(o.board, i + 1);
	}
	for (unsigned i = 0; i < TALLY_KEPT + 2; i++) {
		char text[2] = {(char)('a' + i), 0};
		expect_left(&o, &o.board->finished[i], i < 2 ? "" : text);
	}
	tally_observer_close(&o);
}

static void test_the_next_daemon_gets_it_too(void **state)
{
	struct harness *h = *state;
	struct tally_client *client = join_with(h, memory_with("still here"));
	struct tally_error error = {0};
	struct tally_observer o;

	harness_kill(h, SIGKILL);
	while (tally_client_check(client))
		usleep(1000);
	harness_start(h, NULL, NULL);
	assert_true(tally_client_reconnect(client, &error));
	observe(&o, h);
	expect_left(&o, &o.board->slots[0], "still here");
	tally_observer_close(&o);
	tally_client_disconnect(client);
}

/* A program that closed all descriptors it does not know, and opened others: its file is not sent.
 */
static void test_a_reused_number_is_not_sent(void **state)
{
	struct harness *h = *state;
	struct tally_client *client = join_with(h, memory_with("mine"));
	struct tally_error error = {0};
	struct tally_observer o;
	struct stat want, is;

	harness_kill(h, SIGKILL);
	while (tally_client_check(client))
		usleep(1000);
	int theirs = memory_with("the program's own");
	for (int fd = 3; fd < 64; fd++)
		if (fd != theirs && !fstat(fd, &is) && S_ISREG(is.st_mode) && is.st_size == SIZE)
			dup2(theirs, fd);
	harness_start(h, NULL, NULL);
	assert_true(tally_client_reconnect(client, &error));
	observe(&o, h);
	expect_left(&o, &o.board->slots[0], "");
	tally_observer_close(&o);
	tally_client_disconnect(client);
	/* And it is not closed either. */
	assert_int_equal(fstat(theirs, &want), 0);
	unsigned same = 0;
	for (int fd = 3; fd < 64; fd++)
		same += !fstat(fd, &is) && is.st_ino == want.st_ino && is.st_dev == want.st_dev;
	assert_true(same >= 2);
}

/* A daemon of our own, whose hooks count and answer. */
struct counted {
	unsigned joined, left;
	int answer;
};

static void on_joined(void *context, const struct tally_daemon_member *member,
		      struct tally_attachment *answer)
{
	struct counted *c = context;

	c->joined += member->attachment.size == SIZE && member->pid > 0 && member->joined_ns;
	*answer = (struct tally_attachment){c->answer, KIND + 1, 5};
}

static void on_left(void *context, const struct tally_daemon_member *member)
{
	struct counted *c = context;

	c->left += member->attachment.size == SIZE;
}

static void test_hooks(void **state)
{
	struct harness *h = *state;
	struct counted *c =
		mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tally_daemon_hooks hooks = {c, on_joined, on_left};
	struct tally_daemon_options options = {.socket_path = h->socket,
					       .policy = &tally_policy_strict,
					       .quantum_ns = 20000000,
					       .idle_ns = UINT64_MAX,
					       .stop_fd = -1,
					       .hooks = &hooks};
	struct tally_error error = {0};
	char bytes[16] = "";

	harness_kill(h, SIGTERM);
	c->answer = memory_with("hello");
	assert_int_equal(tally_listener_claim(h->socket, &options.lock, &error), TALLY_CLAIM_OURS);
	struct tally_daemon *daemon = tally_daemon_open(&options, &error);
	assert_non_null(daemon);
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		tally_daemon_serve(daemon, &error);
		_exit(0);
	}
	struct tally_client *client = join_with(h, memory_with("x")), *bare = join_with(h, -1);
	struct tally_attachment given = tally_client_given(client);
	assert_int_equal(given.kind, KIND + 1);
	assert_int_equal(given.size, 5);
	assert_int_equal(pread(given.fd, bytes, 5, 0), 5);
	assert_string_equal(bytes, "hello");
	close(given.fd);
	assert_int_equal(tally_client_given(client).size, 0); /* once */
	assert_int_equal(c->joined, 1);
	tally_client_disconnect(client);
	tally_client_disconnect(bare);
	while (c->left < 1)
		usleep(1000);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	tally_daemon_close(daemon);
	close(options.lock);
	munmap(c, sizeof *c);
}

/* Who joins while somebody records is told so, and not for ever: who asked may be dead. */
static void test_who_joins_a_recording_knows(void **state)
{
	struct harness *h = *state;
	struct tally_observer o;
	uint64_t now = tally_board_now();

	observe(&o, h);
	struct tally_client *client = harness_connect(h, 0);
	assert_int_equal(tally_client_trace_until(client), 0);
	assert_true(tally_observer_trace(&o, now + 1000000000, NULL));
	assert_int_equal(tally_client_trace_until(client), now + 1000000000);
	assert_true(tally_observer_trace(&o, now + 500, NULL)); /* another's wish counts as well */
	assert_int_equal(tally_client_trace_until(client), now + 1000000000);
	assert_true(tally_observer_trace(&o, UINT64_MAX, NULL));
	assert_in_range(tally_client_trace_until(client), now + 1000000000,
			tally_board_now() + 10000000000);
	/* It ends with who wanted it, and not with another who did. */
	struct tally_observer other;
	observe(&other, h);
	now = tally_board_now();
	assert_true(tally_observer_trace(&other, now + 2000000000, NULL));
	tally_observer_close(&o);
	while (tally_client_trace_until(client) != now + 2000000000 && harness_patient(now))
		;
	assert_int_equal(tally_client_trace_until(client), now + 2000000000);
	tally_observer_close(&other);
	while (tally_client_trace_until(client) && harness_patient(now))
		;
	assert_int_equal(tally_client_trace_until(client), 0);
	tally_client_disconnect(client);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_others_get_it),
		TEST(test_it_outlives_the_program),
		TEST(test_the_next_daemon_gets_it_too),
		TEST(test_a_reused_number_is_not_sent),
		TEST(test_hooks),
		TEST(test_who_joins_a_recording_knows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
