/* SPDX-License-Identifier: Apache-2.0 */
/* A program's side of the daemon: joining the board, leaving it, and living without it. */
#ifndef TALLY_SCHED_CLIENT_H
#define TALLY_SCHED_CLIENT_H

#include <stddef.h>

#include "base/error.h"
#include "sched/attachment.h"
#include "sched/board.h"

struct tally_client_options {
	int priority;
	const char *name;	 /* shown by `tally status`; copied */
	uint8_t device[16];	 /* UUID */
	const char *socket;	 /* NULL: the default path; copied */
	const char *device_name; /* shown by `tally status`; may be NULL; copied */
	/* Left with every tallyd that is joined, which keeps it after our death. The descriptor is
	 * copied: the caller may close its own. */
	struct tally_attachment attachment;
	/* How long programs of lower priority keep away after each burst: TALLY_GRACE_LEARNT: what
	 * grace.h learns from the program's pauses; else so many nanoseconds, at most
	 * TALLY_GRACE_MOST_NS. */
	uint64_t grace_ns;
};

#define TALLY_GRACE_LEARNT UINT64_MAX

/*
 * One membership: a socket (its end is how tallyd learns that we died) and the mapped board. Made
 * once per device, used by any thread but for connect, reconnect and disconnect. After the daemon
 * is gone (tally_client_check() found the socket closed) `must_yield` is false until a successful
 * tally_client_reconnect().
 */
struct tally_client;

/* NULL with an error when there is no daemon, it is of another version, or all slots are taken.
 * Takes at most two seconds (a daemon that is stopped). The socket is close-on-exec; in a forked
 * child the client is void (it yields to nobody and its stores reach nobody) and connects anew. */
struct tally_client *tally_client_connect(const struct tally_client_options *options,
					  struct tally_error *error);

/* What tallyd gave at the last connect or reconnect, once: the descriptor becomes the caller's.
 * size 0: nothing. */
struct tally_attachment tally_client_given(struct tally_client *client);

/* NULL is allowed. No other thread may be inside a call with this client. */
void tally_client_disconnect(struct tally_client *client);

/*
 * Joins again, with the same options, a daemon that appeared after the old one was gone: the
 * monitor's second half, called a few times a second while tally_client_check() is false (an
 * attempt without a daemon costs two system calls). True when attached (also when it already was).
 * The other threads go on meanwhile: an `active` that was set stays set; what tally_client_slot()
 * returned before stays readable and writable, but is on nobody's board. Counters begin at zero
 * again.
 */
bool tally_client_reconnect(struct tally_client *client, struct tally_error *error);

/* Lock-free, any thread; of two threads that set different values the later one wins. `set_active`
 * is what a high-priority program pays per burst; it counts `bursts` and `active_ns`. */
void tally_client_set_active(struct tally_client *client, bool active);
bool tally_client_must_yield(const struct tally_client *client);

/* When it need not give way any more although the board does not change, tally_now()'s clock: those
 * who hold it are idle, and others keep away for a moment still. UINT64_MAX: not before a change;
 * not later than now: nobody holds it. Lock-free, any thread. */
uint64_t tally_client_held_until(const struct tally_client *client);

/* How programs of lower priority are treated from now on; closed at first, carried over a
 * reconnect. Set before `set_active` it holds from the first moment of a burst. One thread at a
 * time. */
void tally_client_set_overlap(struct tally_client *client, enum tally_overlap overlap);

/* Whether any program of lower priority has work on the device. A look at the whole board. */
bool tally_client_rivals(const struct tally_client *client);

/* The slot's counters, for the owner to add to (relaxed). Never NULL. Ask again after a
 * reconnect. */
struct tally_slot *tally_client_slot(struct tally_client *client);

/* Until when whoever joins now is to record what it does (tally_now()'s clock; 0: never asked). */
uint64_t tally_client_trace_until(const struct tally_client *client);

uint32_t tally_client_epoch(const struct tally_client *client);
/* Sleeps until the board changed since `seen`, at most `timeout_ns` (< 0: no limit; a daemon that
 * dies wakes nobody, so give one). */
void tally_client_wait(struct tally_client *client, uint32_t seen, int64_t timeout_ns);

/* Polls the socket without blocking; false once the daemon is gone. Called by one monitor thread a
 * few times a second. */
bool tally_client_check(struct tally_client *client);

/*
 * For `tally run`: tells the daemon that the calling process will join soon, so that it does not
 * end for being idle while the process lives. False with an error when there is no daemon or it
 * refused; `absent` (may be NULL) tells the first from the second.
 */
bool tally_client_expect(const char *socket, bool *absent, struct tally_error *error);

/* For `tally status`: the board, mapped read-only, and nothing else; NULL with an error, `absent`
 * as above. Free with munmap(board, sizeof *board). */
const struct tally_board *tally_client_observe(const char *socket, bool *absent,
					       struct tally_error *error);

/*
 * For those who look closer: the board, read-only, and what the members left. One thread.
 * tally_observer_fetch() gives the attachment of the program in `slot` (of the board's slots, or of
 * its finished ones, of which the last few are kept): true, with a descriptor that becomes the
 * caller's, or size 0 when it left none or it is gone; false with an error when tallyd is.
 */
struct tally_observer {
	const struct tally_board *board;
	int fd;
};
bool tally_observer_open(struct tally_observer *observer, const char *socket, bool *absent,
			 struct tally_error *error);
bool tally_observer_fetch(struct tally_observer *observer, const struct tally_slot *slot,
			  struct tally_attachment *attachment, struct tally_error *error);
/* Asks programs that join before `until_ns` to record what they do from their start on; holds for
 * at most five seconds, so ask again, and no longer than the observer is open. False with an error
 * when tallyd is gone. */
bool tally_observer_trace(struct tally_observer *observer, uint64_t until_ns,
			  struct tally_error *error);
/* Unmaps the board and ends the connection, and with it what was asked for. */
void tally_observer_close(struct tally_observer *observer);

/* The default socket path: $TALLY_SOCKET, else $XDG_RUNTIME_DIR/tally/tallyd.sock, else
 * /tmp/tally-UID/tallyd.sock (folder 0700 and ours, or refused; it need not exist yet). */
bool tally_socket_path(char *path, size_t size, struct tally_error *error);

/* Whether the folder of socket `path` is ours with mode 0700; one that does not exist is made when
 * `make` is set and is fine otherwise. */
bool tally_socket_folder(const char *path, bool make, struct tally_error *error);

#endif
