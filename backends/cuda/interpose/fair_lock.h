/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that nobody is kept from for long. A thread that launches in a loop gives a lock back and
 * takes it again within a microsecond; whoever sleeps for an ordinary mutex comes too late each
 * time. Here a thread that waited for FAIR_NS goes first, and one that says so goes first at once:
 * until it had its turn nobody who comes later takes the lock.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_FAIR_LOCK_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_FAIR_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zero: nobody has it. It may be freed when nobody has it or waits for it. */
struct tally_fair_lock {
	_Atomic uint32_t state; /* futex: 0 free, 1 taken, 2 taken and slept for */
	_Atomic uint32_t first; /* futex: threads that go before whoever comes later */
	bool spins;		/* waiting threads spin for a while before they sleep */
};

/* The slow side. `first`: at once, before all others. */
void tally_fair_wait(struct tally_fair_lock *lock, bool first);
void tally_fair_wake(struct tally_fair_lock *lock);

/* Takes the lock. Not recursive; not to be taken by a signal handler. */
static inline void tally_fair_take(struct tally_fair_lock *lock)
{
	uint32_t is_free = 0;

	if (atomic_load_explicit(&lock->first, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong(&lock->state, &is_free, 1))
		tally_fair_wait(lock, false);
}

/* The same, before all who wait and do not say this: for what has to be quick and is rare. */
static inline void tally_fair_take_first(struct tally_fair_lock *lock)
{
	uint32_t is_free = 0;

	if (!atomic_compare_exchange_strong(&lock->state, &is_free, 1))
		tally_fair_wait(lock, true);
}

static inline void tally_fair_give(struct tally_fair_lock *lock)
{
	if (atomic_exchange(&lock->state, 0) == 2)
		tally_fair_wake(lock);
}

#endif
