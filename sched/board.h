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
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

#define TALLY_BOARD_MAGIC    0x794c6154u /* "TaLy" */
#define TALLY_BOARD_VERSION  4		 /* of this layout and of the messages in wire.h */
#define TALLY_BOARD_SLOTS    128
#define TALLY_BOARD_FINISHED 64 /* programs that ended and are still shown */

/* Priorities are plain integers, larger is more urgent. */
#define TALLY_PRIORITY_HIGH	   100
#define TALLY_PRIORITY_BEST_EFFORT 0
#define TALLY_PRIORITY_MOST	   1000000 /* and its negative: what a person may ask for */

/* "high", "best-effort" or a whole number within those bounds, for options and variables; false,
 * and `priority` untouched, for anything else. Any thread. */
bool tally_priority_parse(const char *text, int *priority);

/* The longest time for which a program holds others though it is idle (grace.h), also one that a
 * person sets. A `quiet_until_ns` that is further away is garbage, or from before the clock jumped,
 * and holds nobody. */
#define TALLY_GRACE_MOST_NS 10000000

/* How a program treats those of lower priority on its device. */
enum tally_overlap {
	TALLY_OVERLAP_CLOSED, /* they give way while it is active: the rule */
	TALLY_OVERLAP_OPEN,   /* they may run beside it (policy_slo.h) */
	TALLY_OVERLAP_HELD,   /* they give way even while it is idle: it measures itself alone */
};

/* How a program's work meets that of others on the device. */
enum tally_sharing {
	TALLY_SHARING_UNKNOWN,
	TALLY_SHARING_SLICES, /* each has the whole device for a time slice */
	TALLY_SHARING_SERVER, /* side by side, through a server of the vendor's */
	TALLY_SHARING_CPU,    /* the CPU device */
};

/*
 * One program on one device. What a decision reads lies together in the first cache line, what the
 * owner counts at every launch in others, so that counting never slows a decision of somebody else.
 *
 * Written by tallyd while `generation` is even: priority, pid, device, names. Written by tallyd at
 * any time: `generation`, `turn`, `lapsed`. All else is its owner's. A reader that meets a slot in
 * the moment it changes hands may see parts of both owners; the epoch changes right after, and it
 * looks again.
 */
struct tally_slot {
	_Alignas(64) _Atomic uint32_t generation; /* odd: in use; even: free. Never goes back */
	_Atomic uint32_t active; /* has work on the device that is not known to be done */
	_Atomic uint32_t turn;	 /* may run among its equals (round robin, by tallyd) */
	int32_t priority;
	uint8_t device[16];		  /* UUID */
	int32_t pid;			  /* from SO_PEERCRED: as tallyd's pid namespace sees it */
	_Atomic uint32_t sleeping;	  /* of the board's sleepers, how many are this owner's */
	_Atomic uint64_t active_since_ns; /* 0: not active */
	_Atomic uint64_t quiet_until_ns;  /* others keep away until then, though it is idle */
	_Atomic uint32_t overlap;	  /* enum tally_overlap */
	_Atomic uint32_t lapsed;	  /* the process is stopped (SIGSTOP): it holds nobody */

	_Alignas(64) char name[64];
	char device_name[64];		 /* "" when its owner gave none */
	uint64_t joined_ns, finished_ns; /* by tallyd; 0: not finished */

	/* Counters for `tally status`; monotonic since the slot was taken. Times are
	 * CLOCK_MONOTONIC. `bursts` and `active_ns` are counted by tally_client_set_active(), the
	 * rest by libtally. */
	_Alignas(64) _Atomic uint64_t launches;
	_Atomic uint64_t guarded, stops, resumes, fences, bursts;
	_Atomic uint64_t active_ns, stopped_ns;	    /* time active; time asked to stop */
	_Atomic uint64_t stopped_since_ns;	    /* 0: not asked to stop; for `--why` */
	_Atomic uint64_t stop_ns_last, stop_ns_max; /* from the request to the stream's drain */

	/* The closed loop's account (policy_slo.h), in thousandths; 0: none, not known yet. */
	_Alignas(64) _Atomic uint32_t slo_budget;
	_Atomic uint32_t slo_mean, slo_p99; /* measured slowdown */
	_Atomic uint32_t slo_reason;	    /* enum tally_slo_reason */
	_Atomic uint64_t slo_judged;	    /* bursts that were compared with their time alone */
	_Atomic uint64_t overlap_ns;	    /* of active_ns: others were let run */
	_Atomic uint32_t sharing;	    /* enum tally_sharing */
	_Atomic uint64_t grace_ns;	    /* others keep away for so long after it (grace.h) */
};

struct tally_board {
	uint32_t magic, version;
	int32_t daemon_pid;
	uint64_t started_ns, quantum_ns;
	/* Somebody records what programs do: who joins before this time does so from the start. */
	_Atomic uint64_t trace_until_ns;

	_Alignas(64) _Atomic uint32_t epoch; /* changes whenever a decision's input changes */
	_Atomic uint32_t sleepers;	     /* who waits on epoch: a writer wakes only then */
	_Atomic uint32_t slots_end;	     /* no slot at or above this index is in use */

	struct tally_slot slots[TALLY_BOARD_SLOTS];

	/* The last programs that left, a ring: number n is in finished[n % TALLY_BOARD_FINISHED].
	 */
	_Alignas(64) _Atomic uint64_t finished_count;
	struct tally_slot finished[TALLY_BOARD_FINISHED];
};

/* The clock of every time on the board, in nanoseconds. */
static inline uint64_t tally_board_now(void)
{
	return tally_now();
}

static inline bool tally_slot_used(const struct tally_slot *slot)
{
	return atomic_load_explicit(&slot->generation, memory_order_acquire) & 1;
}

/* Whether the program asks others to give way to its work. */
static inline bool tally_slot_claims(const struct tally_slot *slot)
{
	return atomic_load(&slot->active) && !atomic_load(&slot->lapsed);
}

/* Bumps the epoch and wakes the sleepers, if any. Async-signal-safe, lock-free. */
void tally_board_changed(struct tally_board *board);

/*
 * Waits until the epoch differs from `seen` or `timeout_ns` passed (< 0: for ever); may also return
 * early for no reason. `self` is the waiter's slot, NULL for one that has none: tallyd takes a
 * dead sleeper off the board's count by it.
 */
void tally_board_wait(struct tally_board *board, struct tally_slot *self, uint32_t seen,
		      int64_t timeout_ns);

/* Maps the board in `fd` (closes it); NULL with an error when it is none of this version. A daemon
 * of our version and user made it, and its size is sealed, so a mapping that starts right stays
 * right. End with munmap(board, sizeof *board). */
struct tally_board *tally_board_map(int fd, uint64_t size, bool writable,
				    struct tally_error *error);

/*
 * The rule (sched/policy_strict.c): whether the program in `slot` has to give way at `now_ns`: a
 * program of higher priority on the same device is active and lets nobody run beside it, or became
 * idle so short a time ago that others keep away still, or an equal one has the turn.
 */
bool tally_policy_strict_must_yield(const struct tally_board *board, unsigned slot,
				    uint64_t now_ns);

/* The same with its cause: the index of the slot that holds `slot`, or -1 when it may run. */
int tally_policy_strict_holder(const struct tally_board *board, unsigned slot, uint64_t now_ns);

/* When a program that has to give way may run without a change of the board, ns: only those hold it
 * that are idle. UINT64_MAX: not before a change. */
uint64_t tally_policy_strict_until(const struct tally_board *board, unsigned slot, uint64_t now_ns);

/* Whether any program of lower priority than that in `slot` has work on the same device. */
bool tally_policy_strict_rivals(const struct tally_board *board, unsigned slot);

#endif
