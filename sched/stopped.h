/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is stopped (SIGSTOP, ^Z, a debugger) in the middle of a burst goes on saying that
 * it is active. Its claim lapses: tallyd looks at the process state of programs that have been
 * active for long, and marks those that are stopped.
 */
#ifndef TALLY_SCHED_STOPPED_H
#define TALLY_SCHED_STOPPED_H

#include "sched/board.h"

#define TALLY_STOPPED_LOOK_NS 250000000ull /* between two looks at a claim that is so old */

/* What was seen at the last look. Start zeroed. */
struct tally_stopped {
	uint32_t generation[TALLY_BOARD_SLOTS];
	bool seen[TALLY_BOARD_SLOTS];
	uint64_t next_ns;
};

/*
 * Sets and takes back `lapsed` on the board: a process counts as stopped when it was so at two
 * looks one after the other (a tracer stops its child for moments). Returns when to look again at
 * the latest; UINT64_MAX: no claim is old enough to ask about. One thread; reads /proc/PID/stat,
 * and where that is missing no claim lapses.
 */
uint64_t tally_stopped_look(struct tally_stopped *stopped, struct tally_board *board,
			    uint64_t now_ns);

#endif
