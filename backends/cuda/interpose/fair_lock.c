/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a fair lock; see fair_lock.h. */
#include "backends/cuda/interpose/fair_lock.h"

#include <limits.h>

#include "base/clock.h"
#include "base/futex.h"

/* Longer than the lock is held for a launch, shorter than anybody would notice. */
#define FAIR_NS 200000
/* Waking a thread takes about as long. */
#define SPIN_NS 30000
/* No sleep is longer than that, so that nothing depends on who is woken. */
#define SLEEP_NS 1000000

/* Whether the lock was got; a taken one is then known to be slept for. */
static bool try(struct tally_fair_lock *l, bool sleeping)
{
	uint32_t is_free = 0;

	if (sleeping)
		return atomic_exchange(&l->state, 2) == 0;
	return atomic_compare_exchange_strong(&l->state, &is_free, 1);
}

void tally_fair_wait(struct tally_fair_lock *l, bool first)
{
	uint64_t began = tally_now(), now = began;
	uint64_t spin = l->spins ? SPIN_NS : 0;
	bool sleeping = false;
	uint32_t before;

	if (first)
		atomic_fetch_add(&l->first, 1);
	for (;; now = tally_now()) {
		if (!first && now - began > FAIR_NS) {
			first = true;
			atomic_fetch_add(&l->first, 1);
		}
		before = first ? 0 : atomic_load(&l->first);
		if (!before && try(l, sleeping))
			break;
		if (now - began < spin) {
			__builtin_ia32_pause();
			continue;
		}
		sleeping = true;
		if (before)
			tally_futex_wait(&l->first, before, first ? SLEEP_NS : FAIR_NS,
					 TALLY_FUTEX_PRIVATE);
		else
			tally_futex_wait(&l->state, 2, first ? SLEEP_NS : FAIR_NS,
					 TALLY_FUTEX_PRIVATE);
	}
	if (first && atomic_fetch_sub(&l->first, 1) == 1)
		tally_futex_wake(&l->first, INT_MAX, TALLY_FUTEX_PRIVATE);
}

void tally_fair_wake(struct tally_fair_lock *l)
{
	/* Whoever sleeps and may not take it yet would swallow the only call. */
	bool all = atomic_load(&l->first) != 0;

	tally_futex_wake(&l->state, all ? INT_MAX : 1, TALLY_FUTEX_PRIVATE);
}
