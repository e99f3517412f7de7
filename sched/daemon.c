/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's loop: see daemon.h. */
#include "sched/daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "sched/connections.h"
#include "sched/listener.h"

#define HELLO_NS       2000000000u /* a connection that says nothing for so long is closed */
#define QUIET_NS       10000000000u
#define CLEAR_TRIES    100
#define CLEAR_MS       100
#define SOCKET_LOOK_NS 1000000000u /* how often we make sure that our socket still has its name */

void tally_daemon_say(struct tally_daemon *daemon, const char *format, ...)
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
	for (unsigned i = 0; i < TALLY_CONNECTIONS; i++)
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
	for (unsigned i = 0; i < TALLY_CONNECTIONS; i++) {
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
	tally_daemon_say(daemon, "the socket was removed: serving it again");
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
	for (unsigned i = 0; i < TALLY_CONNECTIONS && poll(&pending, 1, 0) > 0; i++)
		tally_connection_accept(daemon, now_ns);
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
	struct pollfd entries[2 * TALLY_CONNECTIONS + 2];
	struct tally_connection *owners[2 * TALLY_CONNECTIONS + 2]; /* NULL: the daemon's own */
	nfds_t count;
};

static void watch_descriptor(struct poll_set *set, int fd, struct tally_connection *owner)
{
	if (fd < 0)
		return;
	set->entries[set->count] = (struct pollfd){.fd = fd, .events = POLLIN};
	set->owners[set->count++] = owner;
}

static bool busy(const struct tally_daemon *daemon)
{
	for (unsigned i = 0; i < TALLY_CONNECTIONS; i++)
		if (daemon->connections[i].role > TALLY_ROLE_SILENT)
			return true;
	return false;
}

/* Handles what poll() reported. Every entry is looked up anew, because handling one may close
 * another; new connections come last, so that none of them takes a descriptor of this round. */
static void serve_ready(struct tally_daemon *daemon, const struct poll_set *set, uint64_t now_ns)
{
	bool connecting = false;

	for (nfds_t i = 0; i < set->count; i++) {
		struct tally_connection *c = set->owners[i];
		int fd = set->entries[i].fd;
		if (!set->entries[i].revents)
			continue;
		if (!c && fd == daemon->listener)
			connecting = true;
		else if (c && fd == c->process)
			tally_connection_drop(daemon, c, "the process ended");
		else if (c && fd == c->socket)
			tally_connection_hear(daemon, c);
	}
	for (unsigned i = 0; i < TALLY_CONNECTIONS; i++) {
		struct tally_connection *c = &daemon->connections[i];
		if (c->role == TALLY_ROLE_SILENT && now_ns - c->since_ns > HELLO_NS)
			tally_connection_drop(daemon, c, "it said nothing");
	}
	if (connecting)
		tally_connection_accept(daemon, now_ns);
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
					tally_daemon_say(daemon, "idle: ending");
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
		for (unsigned i = 0; i < TALLY_CONNECTIONS; i++) {
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
			tally_daemon_say(daemon, "asked to end");
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
