/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's hand on the board: making it, giving places away, taking them back. */
#ifndef TALLY_SCHED_MEMBERS_H
#define TALLY_SCHED_MEMBERS_H

#include "base/error.h"
#include "sched/board.h"
#include "sched/wire.h"

/* A board in a memfd whose size is sealed. `writable` is for members, `readable` for observers
 * (both close-on-exec). Not shared between threads. */
struct tally_members {
	struct tally_board *board;
	int writable, readable;
};

/* False with an error; close it all the same. Closing unmaps the board; members and observers keep
 * theirs. */
bool tally_members_open(struct tally_members *members, uint64_t quantum_ns,
			struct tally_error *error);
void tally_members_close(struct tally_members *members);

/* Gives a free place to the process `pid` that sent `join`: its index, or -1 when all are taken. */
int tally_members_join(struct tally_members *members, const struct tally_wire *join, int pid);

/* Takes the place back, whatever state its owner left it in, keeps its counters among the finished,
 * and wakes whoever waited for it. */
void tally_members_leave(struct tally_members *members, unsigned slot);

#endif
