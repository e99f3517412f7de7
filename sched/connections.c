/* SPDX-License-Identifier: Apache-2.0 */
/* Who connects, and what is asked for: see connections.h. */
#include "sched/connections.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sched/wire.h"

#define TRACE_NS 5000000000u /* a recording ends so long after it was asked for at the latest */

#define NOTHING ((struct tally_attachment){0})

/* Until when anybody who is connected wants recordings. */
static void update_trace(struct tally_daemon *daemon)
{
	uint64_t until_ns = 0;

	for (unsigned i = 0; i < TALLY_CONNECTIONS; i++)
		if (daemon->connections[i].trace_until_ns > until_ns)
			until_ns = daemon->connections[i].trace_until_ns;
	atomic_store(&daemon->members.board->trace_until_ns, until_ns);
}

void tally_connection_drop(struct tally_daemon *daemon, struct tally_connection *c, const char *why)
{
	const struct tally_daemon_hooks *hooks = daemon->options.hooks;

	if (c->role == TALLY_ROLE_MEMBER) {
		tally_daemon_say(daemon, "pid %d left slot %u: %s", c->pid, c->slot, why);
		tally_members_leave(&daemon->members, c->slot);
		if (hooks)
			hooks->left(hooks->context, &c->member);
		tally_kept_add(&daemon->kept, &c->member);
	} else if (c->member.attachment.size) {
		close(c->member.attachment.fd);
	}
	if (c->socket >= 0)
		close(c->socket);
	if (c->process >= 0)
		close(c->process);
	bool traced = c->trace_until_ns;
	*c = (struct tally_connection){.socket = -1, .process = -1};
	if (traced)
		update_trace(daemon);
}

static void refuse(struct tally_daemon *daemon, struct tally_connection *c, const char *why)
{
	struct tally_wire answer = {.magic = TALLY_WIRE_MAGIC,
				    .version = TALLY_BOARD_VERSION,
				    .type = TALLY_WIRE_REFUSED};

	snprintf(answer.text, sizeof answer.text, "%s", why);
	tally_daemon_say(daemon, "refused pid %d: %s", c->pid, why);
	tally_wire_send(c->socket, &answer, TALLY_WIRE_NO_FDS);
	tally_connection_drop(daemon, c, why);
}

void tally_connection_accept(struct tally_daemon *daemon, uint64_t now_ns)
{
	struct tally_connection *free_one = NULL, *oldest = NULL;
	struct ucred peer = {0};
	socklen_t length = sizeof peer;

	for (unsigned i = 0; i < TALLY_CONNECTIONS; i++) {
		struct tally_connection *c = &daemon->connections[i];
		if (c->role == TALLY_ROLE_FREE && !free_one)
			free_one = c;
		if (c->role == TALLY_ROLE_SILENT && (!oldest || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	int fd = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* Out of descriptors: who connected and says nothing has to go first. When all are
		 * in use, a short sleep keeps the waiting connection from being a busy loop. */
		bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		if (exhausted && oldest)
			tally_connection_drop(daemon, oldest, "room for another");
		else if (exhausted)
			poll(NULL, 0, 20);
		return;
	}
	struct tally_connection extra = {.socket = fd, .process = -1};
	if (!free_one && oldest) {
		tally_connection_drop(daemon, oldest, "room for another");
		free_one = oldest;
	}
	if (!free_one) {
		refuse(daemon, &extra, "too many connections");
		return;
	}
	*free_one = extra;
	free_one->role = TALLY_ROLE_SILENT;
	free_one->since_ns = now_ns;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) || peer.uid != geteuid()) {
		refuse(daemon, free_one, "this tallyd serves another user");
		return;
	}
	free_one->pid = peer.pid;
	/* The end of the process ends the membership even if a forked child still holds a copy of
	 * the socket. Kernels before 5.3 have no pidfd: the socket alone has to do there. */
	if (peer.pid > 0)
		free_one->process = (int)syscall(SYS_pidfd_open, peer.pid, 0);
}

/* `board` is -1 and the attachment's size 0 where there is none to hand out. */
static void answer_with(struct tally_daemon *daemon, struct tally_connection *c,
			enum tally_wire_type type, int board, struct tally_attachment attachment)
{
	struct tally_wire answer = {.magic = TALLY_WIRE_MAGIC,
				    .version = TALLY_BOARD_VERSION,
				    .type = type,
				    .slot = c->slot,
				    .board_size = board < 0 ? 0 : sizeof(struct tally_board),
				    .attachment_size = attachment.size,
				    .attachment_kind = attachment.kind};
	struct tally_wire_fds fds = {board, attachment.size ? attachment.fd : -1};
	int status = tally_wire_send(c->socket, &answer, fds);

	if (status)
		tally_connection_drop(daemon, c, strerror(-status));
}

/* Takes over `fd`, what the program leaves with us (-1: nothing). */
static void join(struct tally_daemon *daemon, struct tally_connection *c,
		 const struct tally_wire *request, int fd)
{
	const struct tally_daemon_hooks *hooks = daemon->options.hooks;
	struct tally_attachment given = {0};
	int slot = tally_members_join(&daemon->members, request, c->pid);

	c->member = (struct tally_daemon_member){
		.pid = c->pid,
		.attachment = {fd, request->attachment_kind, fd < 0 ? 0 : request->attachment_size},
	};
	if (slot < 0) {
		char text[96];
		snprintf(text, sizeof text, "all %d places on the board are taken",
			 TALLY_BOARD_SLOTS);
		refuse(daemon, c, text);
		return;
	}
	c->role = TALLY_ROLE_MEMBER;
	c->slot = c->member.slot = (unsigned)slot;
	c->member.joined_ns = daemon->members.board->slots[slot].joined_ns;
	tally_daemon_say(daemon, "pid %d (%s) joined slot %d with priority %d", c->pid,
			 request->name, slot, request->priority);
	if (hooks)
		hooks->joined(hooks->context, &c->member, &given);
	answer_with(daemon, c, TALLY_WIRE_WELCOME, daemon->members.writable, given);
}

static void fetch(struct tally_daemon *daemon, struct tally_connection *c, uint64_t joined_ns)
{
	const struct tally_attachment *found = tally_kept_find(&daemon->kept, joined_ns);

	for (unsigned i = 0; i < TALLY_CONNECTIONS && !found; i++) {
		struct tally_connection *other = &daemon->connections[i];
		if (other->role == TALLY_ROLE_MEMBER && other->member.joined_ns == joined_ns)
			found = &other->member.attachment;
	}
	if (found && found->size)
		answer_with(daemon, c, TALLY_WIRE_WELCOME, -1, *found);
	else
		answer_with(daemon, c, TALLY_WIRE_NONE, -1, NOTHING);
}

/* The wish ends with the connection, and by itself: who asked may be stopped. */
static void trace(struct tally_daemon *daemon, struct tally_connection *c, uint64_t until_ns)
{
	uint64_t most = tally_board_now() + TRACE_NS;

	if (until_ns > most)
		until_ns = most;
	if (until_ns > c->trace_until_ns)
		c->trace_until_ns = until_ns;
	update_trace(daemon);
	answer_with(daemon, c, TALLY_WIRE_NONE, -1, NOTHING);
}

static void expect(struct tally_daemon *daemon, struct tally_connection *c)
{
	for (unsigned i = 0; i < TALLY_CONNECTIONS; i++) {
		struct tally_connection *other = &daemon->connections[i];
		if (other->role == TALLY_ROLE_EXPECTED && other->pid == c->pid)
			tally_connection_drop(daemon, other, "announced again");
	}
	c->role = TALLY_ROLE_EXPECTED;
	answer_with(daemon, c, TALLY_WIRE_WELCOME, -1, NOTHING);
	if (c->role == TALLY_ROLE_FREE)
		return;
	close(c->socket);
	c->socket = -1;
	if (c->process < 0) /* no way to see its end: the idle time has to be enough */
		tally_connection_drop(daemon, c, "cannot be watched");
}

void tally_connection_hear(struct tally_daemon *daemon, struct tally_connection *c)
{
	struct tally_error error = {0};
	struct tally_wire message;
	struct tally_wire_fds fds = TALLY_WIRE_NO_FDS;
	ssize_t size = tally_wire_receive(c->socket, &message, &fds);

	if (size == -EAGAIN)
		return;
	if (size <= 0) {
		tally_connection_drop(daemon, c, "it closed its socket");
	} else if (!tally_wire_check(&message, size, &error)) {
		refuse(daemon, c, error.message);
	} else if (c->role == TALLY_ROLE_OBSERVER && message.type == TALLY_WIRE_FETCH) {
		fetch(daemon, c, message.joined_ns);
	} else if (c->role == TALLY_ROLE_OBSERVER && message.type == TALLY_WIRE_TRACE) {
		trace(daemon, c, message.until_ns);
	} else if (c->role != TALLY_ROLE_SILENT) {
		refuse(daemon, c, "a second request on one connection");
	} else if (message.type == TALLY_WIRE_JOIN) {
		join(daemon, c, &message, fds.attachment);
		fds.attachment = -1;
	} else if (message.type == TALLY_WIRE_OBSERVE) {
		c->role = TALLY_ROLE_OBSERVER;
		answer_with(daemon, c, TALLY_WIRE_WELCOME, daemon->members.readable, NOTHING);
	} else if (message.type == TALLY_WIRE_EXPECT) {
		expect(daemon, c);
	} else {
		refuse(daemon, c, "not a request");
	}
	tally_wire_close(fds);
}
