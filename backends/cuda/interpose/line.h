/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The line of threads that wait for room on the device. What needs more room than what is launched
 * in a loop beside it would never meet a moment at which it fits: so a thread for which there is no
 * room stands in line, and nobody who comes later is let past it. A place is good for as long as
 * what was queued at the time should last, and then its thread stands at the end again: what runs
 * may wait for a thread further back.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_LINE_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_LINE_H

#include "backends/cuda/interpose/state.h"

/* A thread's place, on its stack; zero: it is in no line. Device lock. */
struct tally_place {
	struct tally_place *next;
	bool taken;
	uint64_t until; /* ns: whom it keeps back, it keeps back no longer */
};

/* Whether the thread may take what room there is: nobody who was there before it waits. */
bool tally_line_free(const struct tally_device *device, const struct tally_place *place);

/* Stands in line, at its end, unless it has a place that is still good. */
void tally_line_join(struct tally_device *device, struct tally_place *place);

/* Leaves it, if it is in it: it has its room, or cannot take any for now. */
void tally_line_leave(struct tally_device *device, struct tally_place *place);

/* Whether nobody waits. No lock needed. */
static inline bool tally_line_empty(const struct tally_device *device)
{
	return !atomic_load_explicit(&device->in_line, memory_order_relaxed);
}

#endif
