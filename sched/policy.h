/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scheduling policy is. It has two halves: a pure function of the board that every program
 * asks ("must I give way?"), and the daemon's half, which is told what happens and writes the
 * `turn` words. Vendors, devices and sockets are not its business, and time is an argument, so that
 * tests run it in simulated time.
 */
#ifndef TALLY_SCHED_POLICY_H
#define TALLY_SCHED_POLICY_H

#include "sched/board.h"

enum tally_event {
	TALLY_EVENT_ARRIVED,  /* a program joined (idle) */
	TALLY_EVENT_STARTED,  /* it is active and may run: became active, or is no longer held */
	TALLY_EVENT_STOPPED,  /* it is active and has to give way */
	TALLY_EVENT_IDLE,     /* it has no work any more */
	TALLY_EVENT_FINISHED, /* it left; its slot is free */
};

/* All times are nanoseconds of one clock. Called by one thread (tallyd's), in the order of time. */
struct tally_policy {
	const char *name, *summary;
	size_t state_size; /* bytes of `state`, zeroed before the first call */
	void (*event)(void *state, struct tally_board *board, enum tally_event event, unsigned slot,
		      uint64_t now_ns);
	/* Decides anew who has the turn; changes the epoch if anybody's changed. Returns when it
	 * wants to be called again at the latest; UINT64_MAX: not before the next event. */
	uint64_t (*decide)(void *state, struct tally_board *board, uint64_t now_ns);
	/* The pure half: who holds `slot`, -1: nobody. */
	int (*holder)(const struct tally_board *board, unsigned slot, uint64_t now_ns);
};

extern const struct tally_policy tally_policy_strict;

/*
 * The daemon does not hear of bursts (a program stores a word, no more): it looks at the board now
 * and then, and reports to the policy what is different from the last look.
 */
struct tally_watch {
	uint32_t generation[TALLY_BOARD_SLOTS];
	uint8_t state[TALLY_BOARD_SLOTS];
};

/*
 * One look: reports the differences as events, lets the policy decide, and reports what its
 * decision changed (who is held, who runs). Returns when to look again at the latest, as decide()
 * does. Start with a zeroed watch and an empty board.
 */
uint64_t tally_watch_look(struct tally_watch *watch, const struct tally_policy *policy, void *state,
			  struct tally_board *board, uint64_t now_ns);

#endif
