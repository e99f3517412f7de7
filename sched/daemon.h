/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's core: one loop that accepts programs, keeps the board true, and runs the policy. */
#ifndef TALLY_SCHED_DAEMON_H
#define TALLY_SCHED_DAEMON_H

#include "base/error.h"
#include "sched/attachment.h"
#include "sched/policy.h"

/* A program, as those who follow its coming and going see it. */
struct tally_daemon_member {
	unsigned slot;
	int pid;
	uint64_t joined_ns; /* unlike any other's */
	struct tally_attachment attachment;
};

/*
 * What somebody else does with the attachments: called in the daemon's loop, so they must not wait
 * for anything. Descriptors stay the daemon's; the one in `answer`, handed to the program that
 * joins, stays the hook's (size 0: none).
 */
struct tally_daemon_hooks {
	void *context;
	void (*joined)(void *context, const struct tally_daemon_member *member,
		       struct tally_attachment *answer);
	void (*left)(void *context, const struct tally_daemon_member *member);
};

struct tally_daemon_options {
	const char *socket_path;
	const struct tally_policy *policy;
	uint64_t quantum_ns; /* how long an equal keeps its turn */
	uint64_t idle_ns;    /* ends when nobody was there for so long; UINT64_MAX: never */
	/* Asked about once a second when nobody has been there for idle_ns (never ends: 10 s), and
	 * when the daemon is to end and nobody is there: whether what programs left behind is
	 * cleared. The daemon does not end for being idle before it is. May be NULL. */
	bool (*cleared)(void *context);
	void *cleared_context;
	int stop_fd; /* ends when this becomes readable; -1: none */
	int lock;    /* from tally_listener_claim(); stays the caller's */
	const struct tally_daemon_hooks *hooks; /* may be NULL */
	/* One line per thing that happened (no newline); may be NULL. */
	void (*log)(const char *line);
};

struct tally_daemon;

/* Makes the board and the socket. The caller holds the claim in options->lock (listener.h). The
 * text and policy in `options` have to outlive the daemon. May be followed by fork: the child that
 * serves calls tally_daemon_serve(). NULL with an error. */
struct tally_daemon *tally_daemon_open(const struct tally_daemon_options *options,
				       struct tally_error *error);

/* Serves until stop_fd or idleness: true then; false with an error when it cannot go on, or when
 * the lock file was removed (another daemon may serve then). Removes the socket if it is still
 * ours. */
bool tally_daemon_serve(struct tally_daemon *daemon, struct tally_error *error);

/* Closes every descriptor that is the daemon's and frees it; NULL is nothing. The socket's file
 * stays: tally_daemon_serve() has removed it. */
void tally_daemon_close(struct tally_daemon *daemon);

#endif
