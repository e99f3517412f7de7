/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bursts of a program with a latency budget (TALLY_SLO): from the first launch after idleness until
 * all is known to be done, as activity.h sees it. Their lengths go to the closed loop of
 * sched/policy_slo.h, whose answers go on the board.
 *
 * What it costs: a program without a budget, one comparison a launch. One with a budget, two looks
 * at the clock and a quarter of a microsecond a burst (under 1 % of one of 30 us), and a few
 * nanoseconds for each of its first launches; nothing is put into a stream, nothing is asked of the
 * driver.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_BURST_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_BURST_H

#include "backends/cuda/interpose/state.h"

/* The device's bursts are measured if the program has a budget. False: out of memory. */
bool tally_burst_start(struct tally_device *device);

/* Before the board is told that the program is active. Activity lock held. */
void tally_burst_begin(struct tally_device *device);

/* Before the board is told that it is not. `launches`: of the device, ever. `seen`: the program
 * itself waited for the end; otherwise the monitor found it. Activity lock held. */
void tally_burst_end(struct tally_device *device, uint64_t launches, bool seen);

/* The program has to give way in the middle of it. Any thread. */
void tally_burst_disturbed(struct tally_device *device);

/* The monitor's, at each of its looks: closes a burst that runs away, releases who was held for one
 * that does not come, and keeps the account on the board. Activity lock not held. */
void tally_burst_look(struct tally_device *device);

void tally_burst_mix(struct tally_device *device, const void *what, const unsigned grid[3]);

/* After a launch was announced: `what` and its grid tell one kind of burst from another. */
static inline void tally_burst_launch(struct tally_device *device, const void *what, unsigned x,
				      unsigned y, unsigned z)
{
	if (__builtin_expect(atomic_load_explicit(&device->mixing, memory_order_relaxed) != 0, 0))
		tally_burst_mix(device, what, (unsigned[3]){x, y, z});
}

#endif
