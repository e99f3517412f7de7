/* SPDX-License-Identifier: Apache-2.0 */
/* Peers of tallyd that speak wrongly, not at all, or in another version: each gets a clear answer
 * or is dropped, and the others never notice. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sched/listener.h"
#include "sched/wire.h"
#include "tests/sched/harness.h"

static int raw_connect(struct harness *h)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, h->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static struct tally_wire request_of(uint16_t type)
{
	return (struct tally_wire){
		.magic = TALLY_WIRE_MAGIC, .version = TALLY_BOARD_VERSION, .type = type};
}

static void wait_readable(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&wait, 1, HARNESS_PATIENCE_S * 1000), 1);
}

static ssize_t answer_of(int fd, struct tally_wire *answer)
{
	wait_readable(fd);
	return tally_wire_receive(fd, answer, NULL);
}

static void expect_refusal(int fd, const char *text)
{
	struct tally_wire answer;

	assert_int_equal(answer_of(fd, &answer), sizeof answer);
	assert_int_equal(answer.type, TALLY_WIRE_REFUSED);
	assert_non_null(strstr(answer.text, text));
	assert_int_equal(answer_of(fd, &answer), 0);
	close(fd);
}

static void expect_alive(struct harness *h)
{
	struct tally_client *client = harness_connect(h, 0);

	assert_true(tally_client_check(client));
	tally_client_disconnect(client);
}

static void test_other_version_is_refused_by_name(void **state)
{
	struct harness *h = *state;
	struct tally_wire request = request_of(TALLY_WIRE_JOIN);
	int fd = raw_connect(h);
	char text[80];

	request.version = TALLY_BOARD_VERSION + 1;
	/* Another version's message may have another size. */
	assert_int_equal(send(fd, &request, 40, 0), 40);
	snprintf(text, sizeof text, "speaks version %d of the protocol, this is version %d",
		 TALLY_BOARD_VERSION + 1, TALLY_BOARD_VERSION);
	expect_refusal(fd, text);
	expect_alive(h);
}

static void test_garbage_is_refused(void **state)
{
	struct harness *h = *state;
	unsigned char noise[2000];

	srand(2);
	for (unsigned size = 1; size <= sizeof noise; size += 37) {
		int fd = raw_connect(h);
		for (unsigned i = 0; i < size; i++)
			noise[i] = (unsigned char)rand();
		assert_int_equal(send(fd, noise, size, 0), size);
		expect_refusal(fd, "not a message of Tally");
	}
	expect_alive(h);
}

static void test_malformed_requests_are_refused(void **state)
{
	struct harness *h = *state;

	for (unsigned type = 0; type < 10; type++) {
		struct tally_wire request = request_of((uint16_t)type);
		/* A name without an end, in a request that would be right otherwise. */
		memset(request.name, 'x', sizeof request.name);
		int fd = raw_connect(h);
		assert_int_equal(tally_wire_send(fd, &request, TALLY_WIRE_NO_FDS), 0);
		expect_refusal(fd, "malformed");
	}
	for (unsigned type = TALLY_WIRE_WELCOME; type <= TALLY_WIRE_REFUSED; type++) {
		struct tally_wire request = request_of((uint16_t)type);
		int fd = raw_connect(h);
		assert_int_equal(tally_wire_send(fd, &request, TALLY_WIRE_NO_FDS), 0);
		expect_refusal(fd, "not a request");
	}
	struct tally_wire request = request_of(TALLY_WIRE_JOIN);
	for (size_t size = 8; size < sizeof request; size += 61) {
		int fd = raw_connect(h);
		assert_int_equal(send(fd, &request, size, 0), size);
		expect_refusal(fd, "malformed");
	}
	expect_alive(h);
}

/* A member that turns to garbage loses its place: the others go on. */
static void test_member_that_speaks_again_is_dropped(void **state)
{
	struct harness *h = *state;
	struct tally_client *low = harness_connect(h, 0);
	struct tally_wire request = request_of(TALLY_WIRE_JOIN), answer;
	int fd = raw_connect(h);

	request.priority = 9;
	memcpy(request.device, tally_client_slot(low)->device, sizeof request.device);
	assert_int_equal(tally_wire_send(fd, &request, TALLY_WIRE_NO_FDS), 0);
	assert_int_equal(answer_of(fd, &answer), sizeof answer);
	assert_int_equal(answer.type, TALLY_WIRE_WELCOME);
	/* It is active, as a program in the middle of a burst would be (low has slot 0). */
	struct tally_slot *slot = tally_client_slot(low) + answer.slot;
	assert_int_equal(slot->priority, 9);
	atomic_store(&slot->active, 1);
	assert_true(tally_client_must_yield(low));
	assert_int_equal(tally_wire_send(fd, &request, TALLY_WIRE_NO_FDS), 0);
	expect_refusal(fd, "a second request");
	harness_until(harness_must_yield, low, false);
	tally_client_disconnect(low);
}

/* Descriptors that the daemon has open: those of connections whose end it has not yet seen, and of
 * what it opens in its own time, its store, among them. */
static unsigned descriptors(struct harness *h)
{
	unsigned count = 0;
	char path[64];

	for (unsigned fd = 0; fd < 1024; fd++) {
		struct stat is;

		snprintf(path, sizeof path, "/proc/%d/fd/%u", h->daemon, fd);
		count += !lstat(path, &is);
	}
	return count;
}

static void test_descriptors_sent_along_are_closed(void **state)
{
	struct harness *h = *state;
	uint64_t start = tally_board_now();
	unsigned before;

	expect_alive(h);
	before = descriptors(h);
	assert_true(before > 3);
	for (unsigned i = 0; i < 60; i++) {
		struct tally_wire request = request_of(TALLY_WIRE_OBSERVE), answer;
		struct tally_wire_fds fds = {STDIN_FILENO, i % 2 ? STDERR_FILENO : -1};

		/* Announced or not, it is not wanted here. */
		request.board_size = i % 3 == 1;
		request.attachment_size = i % 3 == 2;
		int fd = raw_connect(h);
		assert_int_equal(tally_wire_send(fd, &request, fds), 0);
		assert_int_equal(answer_of(fd, &answer), sizeof answer);
		close(fd);
	}
	/* One of each request would be 60, one of each kind 20 at least. */
	while (descriptors(h) >= before + 20)
		if (!harness_patient(start))
			fail_msg("%u descriptors are open, before %u", descriptors(h), before);
}

/* Silent connections cannot keep others out, and are closed after a while. */
static void test_silent_connections_give_way(void **state)
{
	struct harness *h = *state;
	int fds[300];

	for (unsigned i = 0; i < 300; i++)
		fds[i] = raw_connect(h);
	expect_alive(h);
	char byte;
	wait_readable(fds[299]);
	assert_int_equal(recv(fds[299], &byte, 1, 0), 0);
	for (unsigned i = 0; i < 300; i++)
		close(fds[i]);
	expect_alive(h);
}

/* A daemon that is stopped (not dead) costs a program two seconds at its start, not for ever. */
static void test_stopped_daemon_does_not_hang_us(void **state)
{
	struct harness *h = *state;
	struct tally_client_options options = {.socket = h->socket};
	struct tally_error error = {0};

	kill(h->daemon, SIGSTOP);
	assert_null(tally_client_connect(&options, &error));
	assert_non_null(strstr(error.message, "does not answer"));
	kill(h->daemon, SIGCONT);
	expect_alive(h);
}

/* As another user, who got to the socket all the same; 0: each side refused the other, and said so.
 */
static int other_user(struct harness *h, const char *own)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct tally_error error = {0};
	struct tally_wire answer;
	char path[128];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 1;
	strcpy(address.sun_path, h->socket);
	if (connect(fd, (struct sockaddr *)&address, sizeof address))
		return 2;
	if (tally_wire_receive(fd, &answer, NULL) != sizeof answer ||
	    answer.type != TALLY_WIRE_REFUSED || !strstr(answer.text, "serves another user"))
		return 3;
	/* A name in a folder of its own that leads to somebody else's daemon. */
	snprintf(path, sizeof path, "%s/d.sock", own);
	if (symlink(h->socket, path))
		return 4;
	struct tally_client_options options = {.socket = path};
	if (tally_client_connect(&options, &error))
		return 5;
	return strstr(error.message, "is served by another user") ? 0 : 6;
}

static void test_users_are_apart(void **state)
{
	struct harness *h = *state;
	char own[128];
	int status;

	if (geteuid())
		skip();
	snprintf(own, sizeof own, "%s/own", h->folder);
	assert_int_equal(mkdir(own, 0700), 0);
	assert_int_equal(chown(own, 65534, 65534), 0);
	assert_int_equal(chmod(h->folder, 0711), 0);
	assert_int_equal(chmod(h->socket, 0666), 0);
	pid_t child = fork();
	if (!child)
		_exit(other_user(h, own));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(chmod(h->folder, 0700), 0);
	assert_int_equal(status, 0);
	expect_alive(h);
}

static void test_unsafe_folders_are_refused(void **state)
{
	struct harness *h = *state;
	struct tally_error error = {0};
	char folder[128], path[256];
	int lock;

	assert_true(tally_socket_folder(h->socket, false, &error));
	assert_int_equal(chmod(h->folder, 0750), 0);
	assert_false(tally_socket_folder(h->socket, false, &error));
	assert_non_null(strstr(error.message, "open to others (mode 0750)"));
	struct tally_client_options options = {.socket = h->socket};
	assert_null(tally_client_connect(&options, NULL));
	assert_int_equal(chmod(h->folder, 0700), 0);

	error = (struct tally_error){0};
	assert_int_equal(tally_listener_claim("relative.sock", &lock, &error), TALLY_CLAIM_FAILED);
	assert_non_null(strstr(error.message, "not an absolute path"));

	error = (struct tally_error){0};
	snprintf(folder, sizeof folder, "%s/link", h->folder);
	assert_int_equal(symlink(h->folder, folder), 0);
	snprintf(path, sizeof path, "%s/d.sock", folder);
	assert_false(tally_socket_folder(path, true, &error));
	assert_non_null(strstr(error.message, "is not a folder"));

	error = (struct tally_error){0};
	snprintf(path, sizeof path, "%s/not/there/d.sock", h->folder);
	assert_true(tally_socket_folder(path, false, &error));
	assert_false(tally_socket_folder(path, true, &error));
	assert_non_null(strstr(error.message, "cannot make the socket folder"));

	if (!geteuid()) {
		/* Somebody else's, as one finds it in /tmp. */
		error = (struct tally_error){0};
		snprintf(folder, sizeof folder, "%s/theirs", h->folder);
		assert_int_equal(mkdir(folder, 0700), 0);
		assert_int_equal(chown(folder, 12345, 12345), 0);
		snprintf(path, sizeof path, "%s/d.sock", folder);
		assert_false(tally_socket_folder(path, true, &error));
		assert_non_null(strstr(error.message, "belongs to user 12345"));
		rmdir(folder);
	}
}

/* 0: as it has to be; in a child, because the limit holds for ever. */
static int receive_without_room(int from)
{
	struct tally_wire message;
	struct tally_wire_fds passed;
	struct rlimit none = {(rlim_t)from + 1, (rlim_t)from + 1};

	for (int fd = 0; fd < from; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			dup2(STDERR_FILENO, fd);
	setrlimit(RLIMIT_NOFILE, &none);
	return tally_wire_receive(from, &message, &passed) == -EMFILE && passed.board < 0 ? 0 : 1;
}

/* Else it would look as if the peer had handed out none. */
static void test_descriptor_without_room_is_an_error(void **state)
{
	struct tally_wire message = request_of(TALLY_WIRE_WELCOME);
	int ends[2], status = -1;
	pid_t child;

	message.board_size = 1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(
		tally_wire_send(ends[0], &message, (struct tally_wire_fds){STDERR_FILENO, -1}), 0);
	child = fork();
	if (!child)
		_exit(receive_without_room(ends[1]));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_other_version_is_refused_by_name),
		TEST(test_garbage_is_refused),
		TEST(test_malformed_requests_are_refused),
		TEST(test_member_that_speaks_again_is_dropped),
		TEST(test_descriptors_sent_along_are_closed),
		TEST(test_silent_connections_give_way),
		TEST(test_stopped_daemon_does_not_hang_us),
		TEST(test_users_are_apart),
		TEST(test_unsafe_folders_are_refused),
		cmocka_unit_test(test_descriptor_without_room_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
