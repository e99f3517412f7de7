/* SPDX-License-Identifier: Apache-2.0 */
/* A program's side of the daemon: joining the board, leaving it, and living without it. */
#ifndef TALLY_SCHED_CLIENT_H
#define TALLY_SCHED_CLIENT_H

#include <stddef.h>

#include "base/error.h"
#include "sched/board.h"

struct tally_client_options {
	int priority;
	const char *name;   /* shown by `tally status` */
	uint8_t device[16]; /* UUID */
	const char *socket; /* NULL: the default path */
};

/*
 * One membership: a socket (its end is how tallyd learns that we died) and the mapped board. Made
 * once per device, used by any thread but for connect/disconnect. After the daemon is gone
 * (tally_client_check() found the socket closed) `must_yield` is false for ever until a reconnect.
 */
struct tally_client;

/* NULL with an error when there is no daemon, it is of another version, or all slots are taken. The
 * socket is close-on-exec; in a forked child the client is void (pid is compared) and connects
 * anew. */
struct tally_client *tally_client_connect(const struct tally_client_options *options,
					  struct tally_error *error);
void tally_client_disconnect(struct tally_client *client);

/* Lock-free, any thread. `set_active` is what a high-priority program pays per burst. */
void tally_client_set_active(struct tally_client *client, bool active);
bool tally_client_must_yield(const struct tally_client *client);

/* The slot's counters, for the owner to add to (relaxed). */
struct tally_slot *tally_client_slot(struct tally_client *client);

uint32_t tally_client_epoch(const struct tally_client *client);
/* Sleeps until the board changed since `seen`, at most `timeout_ns`. */
void tally_client_wait(struct tally_client *client, uint32_t seen, int64_t timeout_ns);

/* Polls the socket without blocking; false once the daemon is gone. Called by one monitor thread a
 * few times a second. */
bool tally_client_check(struct tally_client *client);

/* The default socket path: $TALLY_SOCKET, else $XDG_RUNTIME_DIR/tally/tallyd.sock, else
 * /tmp/tally-UID/tallyd.sock (folder 0700 and ours, or refused). */
bool tally_socket_path(char *path, size_t size, struct tally_error *error);

#endif
