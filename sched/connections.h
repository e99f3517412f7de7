/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's connections: accepted, heard, ended. All in the daemon's one thread. */
#ifndef TALLY_SCHED_CONNECTIONS_H
#define TALLY_SCHED_CONNECTIONS_H

#include <sys/types.h>

#include "sched/daemon.h"
#include "sched/kept.h"
#include "sched/members.h"
#include "sched/stopped.h"

#define TALLY_CONNECTIONS (TALLY_BOARD_SLOTS + 128)

enum tally_role {
	TALLY_ROLE_FREE,
	TALLY_ROLE_SILENT,   /* connected, has not said what it wants */
	TALLY_ROLE_MEMBER,   /* has a slot */
	TALLY_ROLE_OBSERVER, /* has the board, read-only */
	TALLY_ROLE_EXPECTED, /* no socket: a process that will join */
};

struct tally_connection {
	enum tally_role role;
	int socket, process; /* -1: none. `process` is a pidfd */
	int pid;
	unsigned slot;
	uint64_t since_ns;
	uint64_t trace_until_ns; /* of an OBSERVER: whoever joins before is to record; 0: no wish */
	struct tally_daemon_member member; /* of a MEMBER: what it left is ours to close */
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
	struct tally_connection connections[TALLY_CONNECTIONS];
};

/* One line for the log, if there is one. */
void __attribute__((format(printf, 2, 3))) tally_daemon_say(struct tally_daemon *daemon,
							    const char *format, ...);

/* Somebody waits at the listener: a place, at the cost of who says nothing where all are taken. */
void tally_connection_accept(struct tally_daemon *daemon, uint64_t now_ns);

/* A message, or the end, of connection `c`. */
void tally_connection_hear(struct tally_daemon *daemon, struct tally_connection *c);

/* Ends it, whatever it is, and frees its place; `why` is for the log. What a member left with us is
 * kept for a while. */
void tally_connection_drop(struct tally_daemon *daemon, struct tally_connection *c,
			   const char *why);

#endif
