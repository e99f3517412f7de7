/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between tallyd and the programs: one fixed-size record over a SOCK_SEQPACKET Unix
 * socket, one connection per membership. The first eight bytes keep their meaning in every version,
 * so that two versions can always tell each other apart.
 */
#ifndef TALLY_SCHED_WIRE_H
#define TALLY_SCHED_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define TALLY_WIRE_MAGIC 0x31775954u /* "TYw1" */

enum tally_wire_type {
	TALLY_WIRE_JOIN = 1, /* program: priority, device, names; may bring an attachment. Answer:
			      * WELCOME with the board, maybe with an attachment */
	TALLY_WIRE_EXPECT,   /* `tally run`: this process will join. Answer: WELCOME, no board */
	TALLY_WIRE_OBSERVE,  /* `tally status`. Answer: WELCOME with the board, read-only */
	TALLY_WIRE_WELCOME,  /* daemon: slot, board_size */
	TALLY_WIRE_REFUSED,  /* daemon: text says why; the connection ends */
	TALLY_WIRE_FETCH,    /* observer, any number of times: what the member that joined at
			      * joined_ns left. Answer: WELCOME with it, or NONE */
	TALLY_WIRE_NONE,     /* daemon: nothing of that kind is there (any more) */
	TALLY_WIRE_TRACE,    /* observer, any number of times: who joins before until_ns is to
			      * record what it does. Answer: NONE */
	TALLY_WIRE_TYPES,
};

struct __attribute__((packed)) tally_wire {
	uint32_t magic;
	uint16_t version; /* TALLY_BOARD_VERSION */
	uint16_t type;
	int32_t priority;
	uint32_t slot;
	uint64_t board_size;	  /* a descriptor of the board comes along; 0: none does */
	uint64_t attachment_size; /* one of so many bytes does, after the board's; 0: none */
	uint32_t attachment_kind;
	uint64_t joined_ns, until_ns;
	uint8_t device[16];
	char name[64], device_name[64]; /* NUL inside */
	char text[192];			/* NUL inside */
};

/* The descriptors of a message: each is there when its size in the message is not 0. */
struct tally_wire_fds {
	int board, attachment; /* -1: none */
};
#define TALLY_WIRE_NO_FDS ((struct tally_wire_fds){-1, -1})

/* Sends one message with its descriptors (those that are not -1). 0 or -errno; never SIGPIPE. */
int tally_wire_send(int socket, const struct tally_wire *message, struct tally_wire_fds pass);

/*
 * Receives one message of any sender: its size in bytes (0: the peer is gone; may differ from
 * sizeof *message, which then holds what fits), or -errno; -EMFILE where the process has no
 * descriptor left for one that came along. Descriptors that came along and that the
 * message tells of are stored in `passed` (close-on-exec, the caller's), -1 for each that did not;
 * a caller that passes NULL wants none. Whatever else comes is closed.
 */
ssize_t tally_wire_receive(int socket, struct tally_wire *message, struct tally_wire_fds *passed);

/* Whether `size` bytes of `message` are a message of this version; says what is wrong with it. */
bool tally_wire_check(const struct tally_wire *message, ssize_t size, struct tally_error *error);

/* Connects to `path` within two seconds, checks that the peer is ours, sends `request` with
 * `attachment` (-1: none) and stores the answer. The socket (close-on-exec), or -1 with an error;
 * `absent` (may be NULL) is set when nobody serves the path. `passed` as in tally_wire_receive().
 */
int tally_wire_ask(const char *path, const struct tally_wire *request, int attachment,
		   struct tally_wire *answer, struct tally_wire_fds *passed, bool *absent,
		   struct tally_error *error);

/* Closes the descriptors that are there. */
void tally_wire_close(struct tally_wire_fds fds);

#endif
