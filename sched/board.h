/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The board: plain memory shared by tallyd and every program of one user on one host (a sealed-size
 * memfd, handed over the daemon's socket). A high-priority program pays one store and, when
 * somebody sleeps on the board, one futex wake; everything else is read by those who have to give
 * way.
 */
#ifndef TALLY_SCHED_BOARD_H
#define TALLY_SCHED_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TALLY_BOARD_MAGIC   0x794c6154u /* "TaLy" */
#define TALLY_BOARD_VERSION 1
#define TALLY_BOARD_SLOTS   128

/* Priorities are plain integers, larger is more urgent. */
#define TALLY_PRIORITY_HIGH	   100
#define TALLY_PRIORITY_BEST_EFFORT 0

/* One program on one device. Written by its owner but for `generation` and `turn` (tallyd). */
struct tally_slot {
	_Atomic uint32_t generation; /* odd: in use; even: free. Changes with every owner */
	_Atomic uint32_t active;     /* has work on the device that is not known to be done */
	_Atomic uint32_t turn;	     /* may run among its equals (round robin, by tallyd) */
	int32_t priority;
	int32_t pid;	    /* from SO_PEERCRED */
	uint8_t device[16]; /* UUID */
	char name[64];
	/* Counters for `tally status`; monotonic since the slot was taken. */
	_Atomic uint64_t launches, guarded, stops, resumes, fences, bursts;
	_Atomic uint64_t active_ns, stopped_ns;	    /* time active; time asked to stop */
	_Atomic uint64_t stop_ns_last, stop_ns_max; /* from the request to the stream's drain */
};

struct tally_board {
	uint32_t magic, version;
	_Atomic uint32_t epoch;	   /* changes whenever anything that a decision needs changes */
	_Atomic uint32_t sleepers; /* how many wait on epoch: a writer wakes only then */
	struct tally_slot slots[TALLY_BOARD_SLOTS];
};

/* Bumps the epoch and wakes the sleepers, if any. Async-signal-safe, lock-free. */
void tally_board_changed(struct tally_board *board);

/* Waits until the epoch differs from `seen` or `timeout_ns` passed (< 0: for ever). */
void tally_board_wait(struct tally_board *board, uint32_t seen, int64_t timeout_ns);

/* The strict policy (sched/policy_strict.c): whether the program in `slot` has to give way now: a
 * program of higher priority on the same device is active, or an equal one has the turn. */
bool tally_policy_strict_must_yield(const struct tally_board *board, unsigned slot);

#endif
