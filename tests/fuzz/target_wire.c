/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon with the collector behind it, and a peer that says anything and hands over anything. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "profiler/collector.h"
#include "profiler/report.h"
#include "sched/daemon.h"
#include "sched/listener.h"
#include "sched/policy.h"
#include "sched/wire.h"
#include "tests/fuzz/fuzz.h"

#define MESSAGES 8

static char folder[64], path[128];
static int stop[2], lock = -1;
static pthread_t thread;
static struct tally_daemon *daemon_;
static struct tally_collector *collector;

static void *serve(void *unused)
{
	struct tally_error error = {0};

	(void)unused;
	if (!tally_daemon_serve(daemon_, &error))
		abort();
	return NULL;
}

static void log_nothing(const char *line)
{
	(void)line;
}

static void leave(void)
{
	static const char *const left[] = {"", ".lock"};
	char name[160];

	if (write(stop[1], "", 1) == 1)
		pthread_join(thread, NULL);
	tally_daemon_close(daemon_);
	tally_collector_stop(collector);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(name, sizeof name, "%s%s", path, left[i]);
		unlink(name);
	}
	rmdir(folder);
}

static void start(void)
{
	static struct tally_daemon_hooks hooks = {.joined = tally_collector_joined,
						  .left = tally_collector_left};
	struct tally_daemon_options options = {.socket_path = path,
					       .policy = &tally_policy_strict,
					       .quantum_ns = 1000000,
					       .idle_ns = UINT64_MAX,
					       .hooks = &hooks,
					       .log = log_nothing};
	struct tally_error error = {0};

	strcpy(folder, "/tmp/tally-fuzz-XXXXXX");
	if (!mkdtemp(folder) || pipe2(stop, O_CLOEXEC))
		abort();
	snprintf(path, sizeof path, "%s/tallyd.sock", folder);
	if (tally_listener_claim(path, &lock, &error) != TALLY_CLAIM_OURS)
		abort();
	options.stop_fd = stop[0];
	options.lock = lock;
	/* No folder can be made there: no store, but everything up to it. */
	collector = hooks.context = tally_collector_start("/dev/null/none", log_nothing, &error);
	daemon_ = tally_daemon_open(&options, &error);
	if (!collector || !daemon_ || pthread_create(&thread, NULL, serve, NULL))
		abort();
	atexit(leave);
}

static int reach(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0)
		abort();
	while (connect(fd, (struct sockaddr *)&address, sizeof address))
		if (errno != EINTR)
			abort(); /* the daemon is gone */
	return fd;
}

/* What comes along: nothing, a report as a broken program may have left it, or something else. */
static int descriptor(uint8_t kind, const uint8_t *data, size_t size)
{
	static const struct tally_report_identity identity = {.name = "fuzz"};
	struct tally_report *report;
	int fd = -1;

	switch (kind % 6) {
	case 1:
		report = tally_report_create(&identity, &fd);
		if (report && size > 2)
			memcpy((char *)report +
				       data[0] * 16 % offsetof(struct tally_report, counters),
			       data, size < 64 ? size : 64);
		tally_report_destroy(report);
		break;
	case 2:
		fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
		if (ftruncate(fd, sizeof(struct tally_report)))
			abort();
		break;
	case 3:
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
		break;
	case 4:
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		break;
	case 5:
		fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		break;
	default:
		break;
	}
	return fd;
}

/* One datagram: so many bytes of a message, with so many descriptors. */
static void say(int to, const struct tally_wire *message, size_t size, const int *fds,
		unsigned count)
{
	struct iovec part = {(void *)(uintptr_t)message, size};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {0};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count) {
		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	while (sendmsg(to, &header, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

/* Bytes of the input: kind of descriptor, how many, what is different from a proper request. */
static bool say_next(int to, struct fuzz_input *input)
{
	struct tally_wire message = {.magic = TALLY_WIRE_MAGIC, .version = TALLY_BOARD_VERSION};
	uint8_t head[4], patch[10];
	int fds[4];
	unsigned count = 0;
	size_t size = sizeof message;

	if (!fuzz_take(input, head, sizeof head))
		return false;
	message.type = head[0] % (TALLY_WIRE_TYPES + 1);
	message.attachment_size = head[1] % 6 ? sizeof(struct tally_report) : 0;
	message.attachment_kind = head[1] & 0x40 ? 7 : TALLY_REPORT_KIND;
	for (unsigned n = head[3] % 8; n && fuzz_take(input, patch, sizeof patch); n--) {
		size_t at = (patch[0] | patch[1] << 8) % sizeof message;

		memcpy((char *)&message + at, patch + 2,
		       sizeof message - at < 8 ? sizeof message - at : 8);
	}
	if (head[2] & 0x80)
		size = head[2] * 4u % (sizeof message + 1);
	for (unsigned n = head[2] % 4; n && head[1] % 6; n--) {
		int fd = descriptor(head[1], input->data, input->size);
		if (fd >= 0)
			fds[count++] = fd;
	}
	say(to, &message, size, fds, count);
	while (count)
		close(fds[--count]);
	return true;
}

void fuzz_run_wire(const uint8_t *data, size_t size)
{
	struct fuzz_input input = {data, size};
	struct tally_wire answer;
	struct tally_wire_fds passed;
	struct pollfd ready;
	int to;

	if (!daemon_)
		start();
	to = reach();
	for (unsigned n = 0; n < MESSAGES && say_next(to, &input); n++)
		;
	/* Everything was heard when the daemon closes its end. */
	shutdown(to, SHUT_WR);
	ready = (struct pollfd){.fd = to, .events = POLLIN};
	for (;;) {
		int count = poll(&ready, 1, 10000);

		if (count < 0 && errno == EINTR)
			continue; /* libFuzzer's own alarm */
		if (count <= 0)
			abort();
		if (tally_wire_receive(to, &answer, &passed) <= 0)
			break;
		tally_wire_close(passed);
	}
	close(to);
}
