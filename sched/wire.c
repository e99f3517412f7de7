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
	char bytes[CMSG_SPACE(2 * sizeof(int))];
};

void tally_wire_close(struct tally_wire_fds fds)
{
	if (fds.board >= 0)
		close(fds.board);
	if (fds.attachment >= 0)
		close(fds.attachment);
}

int tally_wire_send(int socket, const struct tally_wire *message, struct tally_wire_fds pass)
{
	struct iovec part = {.iov_base = (void *)message, .iov_len = sizeof *message};
	union control control = {0};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;
	int fds[2];
	size_t count = 0;

	if (pass.board >= 0)
		fds[count++] = pass.board;
	if (pass.attachment >= 0)
		fds[count++] = pass.attachment;
	if (count) {
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	do
		sent = sendmsg(socket, &header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return sent == sizeof *message ? 0 : -EIO;
}

/* The descriptors of one message; the kernel closes what does not fit the control buffer. */
static unsigned descriptors(struct msghdr *header, int fds[2])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(header);
	size_t count;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (count > 2)
		count = 2;
	memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	return (unsigned)count;
}

ssize_t tally_wire_receive(int socket, struct tally_wire *message, struct tally_wire_fds *passed)
{
	struct tally_wire_fds none, *to = passed ? passed : &none;
	struct iovec part = {.iov_base = message, .iov_len = sizeof *message};
	union control control = {0};
	struct msghdr header = {.msg_iov = &part,
				.msg_iovlen = 1,
				.msg_control = &control,
				.msg_controllen = sizeof control};
	ssize_t size;
	int fds[2];
	unsigned count, next = 0;

	*to = TALLY_WIRE_NO_FDS;
	memset(message, 0, sizeof *message);
	do
		size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_TRUNC);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	count = descriptors(&header, fds);
	/* There was no room for them in this process; more than two are never meant. */
	bool lost = header.msg_flags & MSG_CTRUNC && count < 2;
	if (message->board_size && next < count)
		to->board = fds[next++];
	if (message->attachment_size && next < count)
		to->attachment = fds[next++];
	while (next < count)
		close(fds[next++]);
	if (!passed || lost)
		tally_wire_close(*to);
	if (lost)
		*to = TALLY_WIRE_NO_FDS;
	return lost ? -EMFILE : size;
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
	    message->type >= TALLY_WIRE_TYPES || !terminated(message->name, sizeof message->name) ||
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
			tally_fail(error, "cannot connect to %s: %s", path,
				   errno == EPROTOTYPE ? "it is another program's socket"
						       : strerror(errno));
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

int tally_wire_ask(const char *path, const struct tally_wire *request, int attachment,
		   struct tally_wire *answer, struct tally_wire_fds *passed, bool *absent,
		   struct tally_error *error)
{
	struct tally_wire_fds received = TALLY_WIRE_NO_FDS;

	if (absent)
		*absent = false;
	int fd = connect_to(path, absent, error);
	if (fd < 0)
		return -1;
	/* A daemon that refused before reading closes its end: its answer is still worth reading.
	 */
	int sent = tally_wire_send(fd, request, (struct tally_wire_fds){-1, attachment});
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
	else
		tally_wire_close(received);
	return fd;
fail:
	tally_wire_close(received);
	close(fd);
	return -1;
}
