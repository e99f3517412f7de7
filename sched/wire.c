/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with descriptors over a Unix socket: see wire.h. */
#include "sched/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "sched/board.h"

/* How long a program waits for a daemon that accepts but does not answer (it was stopped). */
#define ANSWER_SECONDS 2

union control {
	struct cmsghdr header; /* for its alignment */
	char bytes[CMSG_SPACE(sizeof(int))];
};

int tally_wire_send(int socket, const struct tally_wire *message, int pass)
{
	struct iovec part = {.iov_base = (void *)message, .iov_len = sizeof *message};
	union control control = {0};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (pass >= 0) {
		header.msg_control = &control;
		header.msg_controllen = sizeof control;
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass, sizeof pass);
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return sent == sizeof *message ? 0 : -EIO;
}

ssize_t tally_wire_receive(int socket, struct tally_wire *message, int *passed)
{
	struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
	union control control = {0};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof control};
	ssize_t size;
	int fd = -1;

	memset(message, 0, sizeof *message);
	do
		size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_TRUNC);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	/* The control buffer holds one descriptor; the kernel closes what does not fit. */
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
	if (passed)
		*passed = fd;
	else if (fd >= 0)
		close(fd);
	return size;
}

static bool terminated(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

bool tally_wire_check(const struct tally_wire *message, ssize_t size, struct tally_error *error)
{
	if (size < 8 || message->magic != TALLY_WIRE_MAGIC)
		return tally_fail(error, "not a message of Tally");
	if (message->version != TALLY_BOARD_VERSION)
		return tally_fail(error,
				  "the peer speaks version %u of the protocol, this is version %u: "
				  "use programs of one Tally",
				  message->version, TALLY_BOARD_VERSION);
	if (size != sizeof *message || message->type < TALLY_WIRE_JOIN ||
	    message->type > TALLY_WIRE_REFUSED ||
	    !terminated(message->name, sizeof message->name) ||
	    !terminated(message->device_name, sizeof message->device_name) ||
	    !terminated(message->text, sizeof message->text))
		return tally_fail(error, "a malformed message");
	return true;
}

static int connect_to(const char *path, bool *absent, struct tally_error *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	struct ucred peer = {0};
	socklen_t length = sizeof peer;

	if (strlen(path) >= sizeof address.sun_path) {
		tally_fail(error, "the socket path %s is too long (at most %zu bytes)", path,
			   sizeof address.sun_path - 1);
		return -1;
	}
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		tally_fail(error, "cannot make a socket: %s", strerror(errno));
		return -1;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
		bool nobody = errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR;
		if (absent)
			*absent = nobody;
		if (nobody)
			tally_fail(error, "no tallyd serves %s", path);
		else
			tally_fail(error, "cannot connect to %s: %s", path, strerror(errno));
		close(fd);
		return -1;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) || peer.uid != geteuid()) {
		tally_fail(error, "%s is served by another user", path);
		close(fd);
		return -1;
	}
	return fd;
}

int tally_wire_ask(const char *path, const struct tally_wire *request, struct tally_wire *answer,
		   int *passed, bool *absent, struct tally_error *error)
{
	int received = -1;

	if (absent)
		*absent = false;
	int fd = connect_to(path, absent, error);
	if (fd < 0)
		return -1;
	/* A daemon that refused before reading closes its end: its answer is still worth reading.
	 */
	int sent = tally_wire_send(fd, request, -1);
	ssize_t size = tally_wire_receive(fd, answer, &received);
	if (size <= 0) {
		int cause = size ? (int)-size : sent ? -sent : 0;
		/* An end without an answer is a daemon that was just ending. */
		if (absent && (!cause || cause == EPIPE || cause == ECONNRESET))
			*absent = true;
		tally_fail(error, "tallyd at %s does not answer%s%s", path, cause ? ": " : "",
			   cause ? strerror(cause) : "");
		goto fail;
	}
	if (!tally_wire_check(answer, size, error))
		goto fail;
	if (answer->type == TALLY_WIRE_REFUSED) {
		tally_fail(error, "tallyd refused: %s", answer->text);
		goto fail;
	}
	if (answer->type != TALLY_WIRE_WELCOME) {
		tally_fail(error, "tallyd at %s gave an answer of unknown type %u", path,
			   answer->type);
		goto fail;
	}
	if (passed)
		*passed = received;
	else if (received >= 0)
		close(received);
	return fd;
fail:
	if (received >= 0)
		close(received);
	close(fd);
	return -1;
}
