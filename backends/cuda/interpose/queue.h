/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The depth limit for work that cannot be stopped. Whatever of it the driver has been given when
 * a more urgent program becomes active has to be waited for; so no more is given than is predicted
 * to last TALLY_DEPTH units, over all streams of the device. How far the device is, it says itself:
 * behind every few pieces goes a mark, a write of a number to a word of the stream in host memory.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_QUEUE_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_QUEUE_H

#include "backends/cuda/interpose/profile.h"
#include "backends/cuda/interpose/state.h"

/* One piece of such work, from before the driver's call until after it. */
struct tally_piece {
	struct tally_stream *stream; /* NULL: not counted */
	uint64_t ns;		     /* predicted */
	struct tally_sample *sample;
	struct tally_cost *cost; /* how long such a piece lasts */
	struct tally_plan plan;	 /* of a kernel, else zero */
	uint64_t blocks;
	bool ungated; /* it is not for the gate to hold up */
};

/*
 * Before the driver is called for a piece, zero at first, that is predicted to last `ns`: waits
 * until there is room and the gate is open, and then counts it. `measure`: it is to be timed. The
 * caller has filled in `cost`, `plan` and `blocks`. No lock held.
 */
void tally_queue_enter(struct tally_stream *stream, struct tally_piece *piece, uint64_t ns,
		       bool measure);

/* After it: `given` is whether the driver took it. */
void tally_queue_leave(struct tally_piece *piece, bool given);

/* Whether a piece that is predicted to last `ns` need not wait for the depth limit. No lock held.
 */
bool tally_queue_has_room(struct tally_device *device, uint64_t ns);

/* Whether the stream has its words in host memory, which marks need; makes them if not. No lock
 * held. */
bool tally_queue_has_words(struct tally_stream *stream);

/* Puts a mark behind what the stream was given and returns its number. It has its words, nothing is
 * captured. Device lock held. */
uint32_t tally_queue_mark(struct tally_stream *stream);

/* Whether that mark has not come. */
bool tally_queue_not_come(const struct tally_stream *stream, uint32_t mark);

/* Reads the marks of all streams. Device lock held. */
void tally_queue_look(struct tally_device *device);

/* Puts a mark into every stream with work behind its last one: before a capture, which a mark must
 * not get into. No lock held. */
void tally_queue_mark_all(void);

/* Waits until the stream's marks have come, so that its words can be used by another one. No lock
 * held. */
void tally_queue_drain(struct tally_stream *stream);

/* The stream ends, or the driver failed: its pieces count no more. Device lock held. */
void tally_queue_forget(struct tally_stream *stream);

static inline uint64_t tally_queue_limit(void)
{
	return (uint64_t)tally_process.config.depth * TALLY_UNIT_NS;
}

#endif
