/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's loop: see daemon.h. */
#include "sched/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buffer.h"
#include "sched/kept.h"
#include "sched/listener.h"
#include "sched/members.h"
#include "sched/stopped.h"
#include "sched/wire.h"

#define CONNECTIONS (TALLY_BOARD_SLOTS + 128)
#define HELLO_NS    2000000000u /* a connection that says nothing for so long is closed */
#define TRACE_NS    5000000000u /* a recording ends so long after it was asked for at the latest */
#define QUIET_NS    10000000000u
#define CLEAR_TRIES 100
#define CLEAR_MS    100
#define SOCKET_LOOK_NS 1000000000u /* how often we make sure that our socket still has its name */

#define NOTHING ((struct tally_attachment){0})

enum role {
	FREE,
	SILENT,	  /* connected, has not said what it wants */
	MEMBER,	  /* has a slot */
	OBSERVER, /* has the board, read-only */
	EXPECTED, /* no socket: a process that will join */
};

struct connection {
	enum role role;
	int socket, process; /* -1: none. `process` is a pidfd */
	int pid;
	unsigned slot;
	uint64_t since_ns;
	uint64_t trace_until_ns; /* OBSERVER: whoever joins before is to record; 0: no wish */
	struct tally_daemon_member member; /* MEMBER: with what it left, which is ours to close */
};

struct tally_daemon {
	struct tally_daemon_options options;
	struct tally_members members;
	struct tally_kept kept;
	struct tally_watch watch;
	struct tally_stopped stopped;
	void *state; /* the policy's */
	int listener;
	dev_t socket_device; /* of the socket's file: whether it is still ours */
	ino_t socket_inode;
	uint64_t last_busy_ns, socket_look_ns;
	struct connection connections[CONNECTIONS];
};

static void __attribute__((format(printf, 2, 3))) say(struct tally_daemon *daemon,
						      const char *format, ...)
{
	char line[512];
	va_list arguments;

	if (!daemon->options.log)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	tally_text_plain(line, "");
	daemon->options.log(line);
}

static bool listen_again(struct tally_daemon *daemon, struct tally_error *error)
{
	struct stat is;
	int fd = tally_listener_open(daemon->options.socket_path, error);

	if (fd < 0)
		return false;
	if (daemon->listener >= 0)
		close(daemon->listener);
	daemon->listener = fd;
	if (stat(daemon->options.socket_path, &is))
		return tally_fail(error, "cannot look at %s: %s", daemon->options.socket_path,
				  strerror(errno));
	daemon->socket_device = is.st_dev;
	daemon->socket_inode = is.st_ino;
	return true;
}

struct tally_daemon *tally_daemon_open(const struct tally_daemon_options *options,
				       struct tally_error *error)
{
	struct tally_daemon *daemon = calloc(1, sizeof *daemon);

	if (!daemon) {
		tally_fail(error, "out of memory");
		return NULL;
	}
	daemon->options = *options;
	daemon->listener = -1;
	daemon->members.writable = daemon->members.readable = -1;
	for (unsigned i = 0; i < CONNECTIONS; i++)
		daemon->connections[i].socket = daemon->connections[i].process = -1;
	daemon->state = calloc(1, options->policy->state_size + 1);
	if (!daemon->state)
		tally_fail(error, "out of memory");
	if (!daemon->state || !tally_members_open(&daemon->members, options->quantum_ns, error) ||
	    !listen_again(daemon, error)) {
		tally_daemon_close(daemon);
		return NULL;
	}
	return daemon;
}

void tally_daemon_close(struct tally_daemon *daemon)
{
	if (!daemon)
		return;
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		if (daemon->connections[i].socket >= 0)
			close(daemon->connections[i].socket);
		if (daemon->connections[i].process >= 0)
			close(daemon->connections[i].process);
		if (daemon->connections[i].member.attachment.size)
			close(daemon->connections[i].member.attachment.fd);
	}
	tally_kept_close(&daemon->kept);
	if (daemon->listener >= 0)
		close(daemon->listener);
	tally_members_close(&daemon->members);
	free(daemon->state);
	free(daemon);
}

/* Until when anybody who is connected wants recordings. */
static void update_trace(struct tally_daemon *daemon)
{
	uint64_t until_ns = 0;

	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (daemon->connections[i].trace_until_ns > until_ns)
			until_ns = daemon->connections[i].trace_until_ns;
	atomic_store(&daemon->members.board->trace_until_ns, until_ns);
}

static void drop(struct tally_daemon *daemon, struct connection *c, const char *why)
{
	const struct tally_daemon_hooks *hooks = daemon->options.hooks;

	if (c->role == MEMBER) {
		say(daemon, "pid %d left slot %u: %s", c->pid, c->slot, why);
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
	*c = (struct connection){.socket = -1, .process = -1};
	if (traced)
		update_trace(daemon);
}

static void refuse(struct tally_daemon *daemon, struct connection *c, const char *why)
{
	struct tally_wire answer = {.magic = TALLY_WIRE_MAGIC,
				    .version = TALLY_BOARD_VERSION,
				    .type = TALLY_WIRE_REFUSED};

	snprintf(answer.text, sizeof answer.text, "%s", why);
	say(daemon, "refused pid %d: %s", c->pid, why);
	tally_wire_send(c->socket, &answer, TALLY_WIRE_NO_FDS);
	drop(daemon, c, why);
}

static void accept_one(struct tally_daemon *daemon, uint64_t now_ns)
{
	struct connection *free_one = NULL, *oldest = NULL;
	struct ucred peer = {0};
	socklen_t length = sizeof peer;

	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &daemon->connections[i];
		if (c->role == FREE && !free_one)
			free_one = c;
		if (c->role == SILENT && (!oldest || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	int fd = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* Out of descriptors: who connected and says nothing has to go first. When all are
		 * in use, a short sleep keeps the waiting connection from being a busy loop. */
		bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
		if (exhausted && oldest)
			drop(daemon, oldest, "room for another");
		else if (exhausted)
			poll(NULL, 0, 20);
		return;
	}
	struct connection extra = {.socket = fd, .process = -1};
	if (!free_one && oldest) {
		drop(daemon, oldest, "room for another");
		free_one = oldest;
	}
	if (!free_one) {
		refuse(daemon, &extra, "too many connections");
		return;
	}
	*free_one = extra;
	free_one->role = SILENT;
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
static void answer_with(struct tally_daemon *daemon, struct connection *c,
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
		drop(daemon, c, strerror(-status));
}

/* Takes over `fd`, what the program leaves with us (-1: nothing). */
static void join(struct tally_daemon *daemon, struct connection *c,
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
	c->role = MEMBER;
	c->slot = c->member.slot = (unsigned)slot;
	c->member.joined_ns = daemon->members.board->slots[slot].joined_ns;
	say(daemon, "pid %d (%s) joined slot %d with priority %d", c->pid, request->name, slot,
	    request->priority);
	if (hooks)
		hooks->joined(hooks->context, &c->member, &given);
	answer_with(daemon, c, TALLY_WIRE_WELCOME, daemon->members.writable, given);
}

static void fetch(struct tally_daemon *daemon, struct connection *c, uint64_t joined_ns)
{
	const struct tally_attachment *found = tally_kept_find(&daemon->kept, joined_ns);

	for (unsigned i = 0; i < CONNECTIONS && !found; i++) {
		struct connection *other = &daemon->connections[i];
		if (other->role == MEMBER && other->member.joined_ns == joined_ns)
			found = &other->member.attachment;
	}
	if (found && found->size)
		answer_with(daemon, c, TALLY_WIRE_WELCOME, -1, *found);
	else
		answer_with(daemon, c, TALLY_WIRE_NONE, -1, NOTHING);
}

/* The wish ends with the connection, and by itself: who asked may be stopped. */
static void trace(struct tally_daemon *daemon, struct connection *c, uint64_t until_ns)
{
	uint64_t most = tally_board_now() + TRACE_NS;

	if (until_ns > most)
		until_ns = most;
	if (until_ns > c->trace_until_ns)
		c->trace_until_ns = until_ns;
	update_trace(daemon);
	answer_with(daemon, c, TALLY_WIRE_NONE, -1, NOTHING);
}

static void expect(struct tally_daemon *daemon, struct connection *c)
{
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct connection *other = &daemon->connections[i];
		if (other->role == EXPECTED && other->pid == c->pid)
			drop(daemon, other, "announced again");
	}
	c->role = EXPECTED;
	answer_with(daemon, c, TALLY_WIRE_WELCOME, -1, NOTHING);
	if (c->role == FREE)
		return;
	close(c->socket);
	c->socket = -1;
	if (c->process < 0) /* no way to see its end: the idle time has to be enough */
		drop(daemon, c, "cannot be watched");
}

/* A message, or the end, of connection `c`. */
static void hear(struct tally_daemon *daemon, struct connection *c)
{
	struct tally_error error = {0};
	struct tally_wire message;
	struct tally_wire_fds fds = TALLY_WIRE_NO_FDS;
	ssize_t size = tally_wire_receive(c->socket, &message, &fds);

	if (size == -EAGAIN)
		return;
	if (size <= 0) {
		drop(daemon, c, "it closed its socket");
	} else if (!tally_wire_check(&message, size, &error)) {
		refuse(daemon, c, error.message);
	} else if (c->role == OBSERVER && message.type == TALLY_WIRE_FETCH) {
		fetch(daemon, c, message.joined_ns);
	} else if (c->role == OBSERVER && message.type == TALLY_WIRE_TRACE) {
		trace(daemon, c, message.until_ns);
	} else if (c->role != SILENT) {
		refuse(daemon, c, "a second request on one connection");
	} else if (message.type == TALLY_WIRE_JOIN) {
		join(daemon, c, &message, fds.attachment);
		fds.attachment = -1;
	} else if (message.type == TALLY_WIRE_OBSERVE) {
		c->role = OBSERVER;
		answer_with(daemon, c, TALLY_WIRE_WELCOME, daemon->members.readable, NOTHING);
	} else if (message.type == TALLY_WIRE_EXPECT) {
		expect(daemon, c);
	} else {
		refuse(daemon, c, "not a request");
	}
	tally_wire_close(fds);
}

static bool socket_is_ours(const struct tally_daemon *daemon)
{
	struct stat is;

	return !lstat(daemon->options.socket_path, &is) && is.st_ino == daemon->socket_inode &&
	       is.st_dev == daemon->socket_device;
}

/* Somebody may have removed our socket (a cleaner of /tmp): put it back, as long as the lock says
 * that the path is ours to serve. */
static bool keep_socket(struct tally_daemon *daemon, uint64_t now_ns, struct tally_error *error)
{
	if (now_ns < daemon->socket_look_ns)
		return true;
	daemon->socket_look_ns = now_ns + SOCKET_LOOK_NS;
	if (!tally_listener_holds(daemon->options.socket_path, daemon->options.lock))
		return tally_fail(error, "the lock file of %s was removed",
				  daemon->options.socket_path);
	if (socket_is_ours(daemon))
		return true;
	say(daemon, "the socket was removed: serving it again");
	return listen_again(daemon, error);
}

/* Takes the socket away and looks whether somebody came in the last moment; true when the daemon
 * may end. */
static bool leave_quietly(struct tally_daemon *daemon, uint64_t now_ns, struct tally_error *error)
{
	struct pollfd pending = {.fd = daemon->listener, .events = POLLIN};

	if (socket_is_ours(daemon))
		unlink(daemon->options.socket_path);
	if (poll(&pending, 1, 0) <= 0)
		return true;
	for (unsigned i = 0; i < CONNECTIONS && poll(&pending, 1, 0) > 0; i++)
		accept_one(daemon, now_ns);
	daemon->last_busy_ns = now_ns;
	return !listen_again(daemon, error);
}

/* Milliseconds for poll() until `then`, rounded up: waking too early would be a busy loop. */
static int until(uint64_t then, uint64_t now_ns)
{
	uint64_t ms = then <= now_ns ? 0 : (then - now_ns + 999999) / 1000000;

	return ms > 1000 ? 1000 : (int)ms;
}

struct poll_set {
	struct pollfd entries[2 * CONNECTIONS + 2];
	struct connection *owners[2 * CONNECTIONS + 2]; /* NULL: the daemon's own */
	nfds_t count;
};

static void watch_descriptor(struct poll_set *set, int fd, struct connection *owner)
{
	if (fd < 0)
		return;
	set->entries[set->count] = (struct pollfd){.fd = fd, .events = POLLIN};
	set->owners[set->count++] = owner;
}

static bool busy(const struct tally_daemon *daemon)
{
	for (unsigned i = 0; i < CONNECTIONS; i++)
		if (daemon->connections[i].role > SILENT)
			return true;
	return false;
}

/* Handles what poll() reported. Every entry is looked up anew, because handling one may close
 * another; new connections come last, so that none of them takes a descriptor of this round. */
static void serve_ready(struct tally_daemon *daemon, const struct poll_set *set, uint64_t now_ns)
{
	bool connecting = false;

	for (nfds_t i = 0; i < set->count; i++) {
		struct connection *c = set->owners[i];
		int fd = set->entries[i].fd;
		if (!set->entries[i].revents)
			continue;
		if (!c && fd == daemon->listener)
			connecting = true;
		else if (c && fd == c->process)
			drop(daemon, c, "the process ended");
		else if (c && fd == c->socket)
			hear(daemon, c);
	}
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		struct connection *c = &daemon->connections[i];
		if (c->role == SILENT && now_ns - c->since_ns > HELLO_NS)
			drop(daemon, c, "it said nothing");
	}
	if (connecting)
		accept_one(daemon, now_ns);
}

static bool cleared(struct tally_daemon *daemon)
{
	return !daemon->options.cleared || daemon->options.cleared(daemon->options.cleared_context);
}

static bool serve(struct tally_daemon *daemon, struct tally_error *error)
{
	struct poll_set set;
	uint64_t idle_ns = daemon->options.idle_ns;
	uint64_t quiet_ns = idle_ns == UINT64_MAX ? QUIET_NS : idle_ns;

	for (;;) {
		uint64_t now_ns = tally_board_now();
		/* First, so that the policy hears of it in the same round. */
		uint64_t stopped_ns =
			tally_stopped_look(&daemon->stopped, daemon->members.board, now_ns);
		uint64_t wake_ns = tally_watch_look(&daemon->watch, daemon->options.policy,
						    daemon->state, daemon->members.board, now_ns);
		if (stopped_ns < wake_ns)
			wake_ns = stopped_ns;
		if (!keep_socket(daemon, now_ns, error))
			return false;
		if (busy(daemon))
			daemon->last_busy_ns = now_ns;
		else if (now_ns - daemon->last_busy_ns >= quiet_ns) {
			if (cleared(daemon) && idle_ns != UINT64_MAX) {
				if (leave_quietly(daemon, now_ns, error)) {
					say(daemon, "idle: ending");
					return !tally_failed(error);
				}
				continue;
			}
		} else if (daemon->last_busy_ns + quiet_ns < wake_ns) {
			wake_ns = daemon->last_busy_ns + quiet_ns;
		}

		set.count = 0;
		watch_descriptor(&set, daemon->options.stop_fd, NULL);
		watch_descriptor(&set, daemon->listener, NULL);
		for (unsigned i = 0; i < CONNECTIONS; i++) {
			watch_descriptor(&set, daemon->connections[i].socket,
					 &daemon->connections[i]);
			watch_descriptor(&set, daemon->connections[i].process,
					 &daemon->connections[i]);
		}
		int ready = poll(set.entries, set.count, until(wake_ns, now_ns));
		if (ready < 0 && errno != EINTR)
			return tally_fail(error, "cannot poll: %s", strerror(errno));
		if (ready <= 0)
			set.count = 0;
		if (set.count && daemon->options.stop_fd >= 0 && set.entries[0].revents) {
			say(daemon, "asked to end");
			for (int i = 0; i < CLEAR_TRIES && !busy(daemon) && !cleared(daemon); i++)
				poll(NULL, 0, CLEAR_MS);
			return true;
		}
		serve_ready(daemon, &set, tally_board_now());
	}
}

bool tally_daemon_serve(struct tally_daemon *daemon, struct tally_error *error)
{
	daemon->members.board->daemon_pid = getpid();
	daemon->last_busy_ns = tally_board_now();
	bool ok = serve(daemon, error);
	if (socket_is_ours(daemon))
		unlink(daemon->options.socket_path);
	return ok;
}
