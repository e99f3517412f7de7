/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long others still keep away from the device after a program of high priority became idle.
 *
 * Requests queue: while a server is busy with one, the next has come, and its pause between the two
 * lasts some microseconds. Whoever starts a kernel in such a pause is asked to stop as soon as it
 * runs, which the server pays for, and comes no further; and a kernel that takes long to stop is
 * then met by every request of the queue in turn. So others wait a little first. How long is
 * learnt from the program's own pauses: a pause that is over within the grace saves the program a
 * stop, and each longer one costs others as much of the device's time as the grace is long. The
 * grace is what gains most, where a microsecond of the program counts as much as ten of theirs,
 * and takes at most three tenths of the time in which the program is idle.
 */
#ifndef TALLY_SCHED_GRACE_H
#define TALLY_SCHED_GRACE_H

#include <stdatomic.h>
#include <stdint.h>

/* Pauses of 1 us to 0.5 ms in steps of a quarter octave; shorter ones are in the first bucket. */
#define TALLY_GRACE_STEPS 36

/* What meeting a running kernel costs the program: with kernels that can be stopped an H200 showed
 * 50 us where blocks are short, 500 where they are long. */
#define TALLY_GRACE_STOP_NS 100000

/* Of one program. All zero at first. Threads may add at once: a pause that is lost is no loss. */
struct tally_grace {
	_Atomic uint32_t pauses[TALLY_GRACE_STEPS]; /* by length */
	_Atomic uint32_t longer;
	_Atomic uint64_t idle_ns; /* in all of them */
	_Atomic uint32_t count;	  /* since the last decision */
	_Atomic uint64_t ns;	  /* the decision */
};

/* A pause of `ns` nanoseconds is over. Decides anew now and then; what is long ago weighs less and
 * less. */
void tally_grace_pause(struct tally_grace *grace, uint64_t ns);

/* How long to keep others away after a burst, nanoseconds; 0: not at all. */
static inline uint64_t tally_grace_ns(const struct tally_grace *grace)
{
	return atomic_load_explicit(&grace->ns, memory_order_relaxed);
}

#endif
