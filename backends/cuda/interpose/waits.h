/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that may wait for the program itself: a host function, a wait for a value in memory. What is
 * launched behind it runs whole until it is over: a thread that launches waits for guarded launches
 * (their log is short, and nothing may follow them that cannot skip itself), and must not when they
 * wait for it. Behind it is what comes later in the same stream, in a stream that waits for this
 * one (by an event, or as the null stream and the blocking ones do), and so on from there.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_WAITS_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_WAITS_H

#include "backends/cuda/interpose/state.h"

/* The stream was given such a thing, or is behind one. NULL: it is in a graph. No lock held. */
void tally_waits_begin(struct tally_stream *stream);

/* The slow side of tally_waits_behind(). */
bool tally_waits_look(struct tally_stream *stream);

/* Whether the stream is behind something that is not known to be over. No lock held. */
static inline bool tally_waits_behind(struct tally_stream *stream)
{
	return atomic_load_explicit(&tally_process.waits, memory_order_relaxed) &&
	       tally_waits_look(stream);
}

/* The program recorded the event in the stream (NULL: in all of them); a graph that it made records
 * it. No lock held. */
void tally_waits_recorded(CUevent event, struct tally_stream *stream);
void tally_waits_in_graph(CUevent event);

/* Whether who waits for the event may be behind such work. No lock needed. */
bool tally_waits_event(CUevent event);

/* Memory was allocated in stream order: the driver may have the stream wait for any other one that
 * freed some. No lock held. */
void tally_waits_allocated(struct tally_stream *stream);

/* In a forked child: process.c says what becomes of all that the parent knew. */
void tally_waits_forked(void);

#endif
