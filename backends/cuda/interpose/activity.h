/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program has work on the device.
 *
 * Every piece of work is announced before the driver is called for it: the thread says in which
 * stream it is about to put something, and counts it there. When the driver's function has returned
 * the thread takes its word back. Whoever wants to know whether a stream is idle notes its count
 * (a note is void while any thread is calling for that stream), then waits for the stream or asks
 * the driver, and then that much is done. When nothing is left in any stream the board is told.
 *
 * All of it costs a launch a few plain stores: counts are written without a locked instruction, for
 * two threads that count in one stream at once are both calling, and notes are void until both are
 * through. That an announcement and "not active" never miss each other takes a barrier between
 * store and load on both sides; the rare side makes it for both, with membarrier(2).
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_ACTIVITY_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_ACTIVITY_H

#include "backends/cuda/interpose/state.h"

/* What one thread is doing. Records are never freed; that of a thread that ended is used again. */
struct tally_caller {
	_Alignas(64) _Atomic(struct tally_stream *) calling; /* NULL: nothing */
	_Atomic bool taken;
	struct tally_caller *next;
};

extern __thread struct tally_caller *tally_caller __attribute__((tls_model("initial-exec")));
extern bool tally_announce_fences; /* no membarrier here: announcements make their own barrier */

struct tally_caller *tally_caller_new(void);
void tally_activity_begin(struct tally_device *device);

/* Before the driver is called for work in `stream`. */
static inline void tally_announce(struct tally_stream *stream, bool launch)
{
	struct tally_caller *me = tally_caller;
	uint64_t count = atomic_load_explicit(&stream->announced, memory_order_relaxed);
	uint64_t launches;

	if (__builtin_expect(!me, 0))
		me = tally_caller_new();
	atomic_store_explicit(&me->calling, stream, memory_order_relaxed);
	atomic_store_explicit(&stream->announced, count + 1, memory_order_release);
	if (launch) {
		launches = atomic_load_explicit(&stream->launches, memory_order_relaxed);
		atomic_store_explicit(&stream->launches, launches + 1, memory_order_relaxed);
	}
	if (tally_announce_fences)
		atomic_exchange(&me->calling, stream); /* for its barrier */
	else
		atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(
		    !atomic_load_explicit(&stream->context->device->active, memory_order_relaxed),
		    0))
		tally_activity_begin(stream->context->device);
}

/* After the driver's function has returned. */
static inline void tally_given(void)
{
	atomic_store_explicit(&tally_caller->calling, NULL, memory_order_release);
}

/* A note of what the stream has been given so far: 0, which finishes nothing, while some thread is
 * calling. */
uint64_t tally_note(const struct tally_stream *stream);

/* What was noted is done. */
void tally_finished(struct tally_stream *stream, uint64_t note);

/* The program saw something end: ends the activity when nothing else is left. Asks the driver about
 * streams that are not known idle. Does nothing for programs with guards, whose monitor does it. */
void tally_activity_settle(struct tally_device *device);

/* Something was put into the run-ahead queue: the program has work, and nothing of it may be on the
 * device. No lock held. */
static inline void tally_activity_waiting(struct tally_device *d)
{
	if (__builtin_expect(!atomic_load(&d->active), 0))
		tally_activity_begin(d);
}

/* The monitor's: the same in a lull, for every program. Device lock held. False while active. */
bool tally_activity_lull(struct tally_device *device);

/* Puts the count of launches on the board. Device lock held. */
void tally_activity_publish(struct tally_device *device);

/* Once per process, from tally_start(); in a forked child. */
void tally_activity_start(void);
void tally_activity_forked(void);

#endif
