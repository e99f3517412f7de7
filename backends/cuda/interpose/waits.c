/* SPDX-License-Identifier: Apache-2.0 */
/* Who is behind work that may wait for the program; see waits.h. */
#include "backends/cuda/interpose/waits.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"

/* Events that were last recorded behind such work. One that the program destroys stays until its
 * handle is another one's. */
struct noted {
	struct noted *next;
	CUevent event;
	bool in_graph; /* and may be so again at any time */
};

#define BUCKETS 64
static struct noted *events[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void tally_waits_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(events, 0, sizeof events);
}

static struct noted **place_of(CUevent event)
{
	uintptr_t n = (uintptr_t)event;
	struct noted **place = &events[(n >> 4 ^ n >> 10) % BUCKETS];

	while (*place && (*place)->event != event)
		place = &(*place)->next;
	return place;
}

static void note(CUevent event, bool behind, bool in_graph)
{
	struct noted **place, *n;

	pthread_mutex_lock(&lock);
	place = place_of(event);
	n = *place;
	if (behind && !n && (n = calloc(1, sizeof *n))) {
		n->event = event;
		*place = n;
	}
	if (n)
		n->in_graph |= in_graph;
	if (n && !behind && !n->in_graph) {
		*place = n->next;
		free(n);
	}
	pthread_mutex_unlock(&lock);
}

bool tally_waits_event(CUevent event)
{
	bool found;

	if (!atomic_load_explicit(&tally_process.waits, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&lock);
	found = *place_of(event) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

/* Device lock held. */
static void put_mark(struct tally_stream *s)
{
	atomic_store(&s->queue.unmarked, false);
	atomic_store(&s->queue.waits, tally_queue_mark(s));
}

void tally_waits_begin(struct tally_stream *s)
{
	struct tally_device *d;

	atomic_store(&tally_process.waits, true);
	if (!s)
		return;
	/* A mark might land in a capture; and without words nothing is guarded. */
	if (atomic_load(&tally_process.captures) || !tally_queue_has_words(s)) {
		atomic_store(&s->queue.unmarked, true);
		return;
	}
	d = s->context->device;
	tally_lock(d);
	put_mark(s);
	tally_unlock(d);
}

/* All streams there are. */
static void begin_all(void)
{
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next) {
		tally_lock(d);
		for (struct tally_context *c = d->contexts; c; c = c->next)
			for (struct tally_stream *s = c->streams; s; s = s->next)
				atomic_store(&s->queue.unmarked, true);
		tally_unlock(d);
	}
}

/* By what the stream itself was given. */
static bool waits(struct tally_stream *s)
{
	uint32_t mark = atomic_load_explicit(&s->queue.waits, memory_order_acquire);

	if (atomic_load_explicit(&s->queue.unmarked, memory_order_acquire))
		return true;
	if (!mark)
		return false;
	if (tally_queue_not_come(s, mark))
		return true;
	/* Unless another one was put in meanwhile. */
	atomic_compare_exchange_strong(&s->queue.waits, &mark, 0);
	return false;
}

/* Whether `s` waits for `other` without being told to. */
static bool implied(const struct tally_stream *s, const struct tally_stream *other)
{
	if (s == other || s->kind == TALLY_STREAM_NONBLOCKING ||
	    other->kind == TALLY_STREAM_NONBLOCKING)
		return false;
	return (s->kind == TALLY_STREAM_LEGACY) != (other->kind == TALLY_STREAM_LEGACY);
}

/* Whether a stream that `s` waits for so is behind. */
static bool implied_wait(struct tally_stream *s)
{
	struct tally_device *d = s->context->device;
	bool found = false;

	tally_lock(d);
	for (struct tally_stream *o = s->context->streams; o && !found; o = o->next) {
		if (!implied(s, o))
			continue;
		if (atomic_load(&o->queue.unmarked) && o->guard && tally_stream_mine(o) &&
		    !atomic_load(&tally_process.captures))
			put_mark(o);
		found = waits(o);
	}
	tally_unlock(d);
	return found;
}

/* Whether any stream of the device is. */
static bool any_waits(struct tally_device *d)
{
	bool found = false;

	tally_lock(d);
	for (struct tally_context *c = d->contexts; c; c = c->next)
		for (struct tally_stream *s = c->streams; s && !found; s = s->next)
			found = waits(s);
	tally_unlock(d);
	return found;
}

bool tally_waits_look(struct tally_stream *s)
{
	if (atomic_load(&s->queue.unmarked))
		tally_waits_begin(s);
	if (waits(s))
		return true;
	if (s->kind == TALLY_STREAM_NONBLOCKING || !implied_wait(s))
		return false;
	/* And so are those that wait for this one. */
	tally_waits_begin(s);
	return true;
}

void tally_waits_recorded(CUevent event, struct tally_stream *s)
{
	bool behind = false;

	if (!atomic_load_explicit(&tally_process.waits, memory_order_relaxed))
		return;
	if (s)
		behind = tally_waits_look(s);
	else
		for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next)
			behind |= any_waits(d);
	note(event, behind, false);
}

void tally_waits_in_graph(CUevent event)
{
	note(event, true, true);
}

void tally_waits_allocated(struct tally_stream *s)
{
	if (atomic_load_explicit(&tally_process.waits, memory_order_relaxed) &&
	    any_waits(s->context->device))
		tally_waits_begin(s);
}

/*
 * Waits for events. Where one occupies nothing but the stream it needs no fence: an event was
 * recorded only when the launches before it were done, and what is stopped is started again behind
 * the wait. It does where it may wait for the program, which may wait for those launches.
 */

/* Whether the wait has been taken ahead, or does not come to the driver because of an error. */
static bool ahead_of(struct tally_stream *s, CUevent event, unsigned flags, CUresult *result)
{
	return tally_ahead_failed(s->context->device, result) ||
	       tally_ahead_wait(s, event, flags, result);
}

#define WAIT(symbol, per_thread)                                                                   \
	CUresult symbol(CUstream stream, CUevent hEvent, unsigned int Flags)                       \
	{                                                                                          \
		bool ours = tally_enter() && tally_on() && tally_process.config.guards;            \
		bool ahead = ours && tally_ahead_on();                                             \
		struct tally_stream *s = ahead || (ours && tally_waits_event(hEvent))              \
						 ? tally_stream_given(stream, per_thread)          \
						 : NULL;                                           \
		CUresult result;                                                                   \
                                                                                                   \
		if (!(ahead && s && ahead_of(s, hEvent, Flags, &result))) {                        \
			bool behind = s && tally_waits_event(hEvent);                              \
                                                                                                   \
			if (behind)                                                                \
				tally_fence(s);                                                    \
			result = TALLY_REAL(symbol)(stream, hEvent, Flags);                        \
			if (behind && !result)                                                     \
				tally_waits_begin(s);                                              \
		}                                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
WAIT(cuStreamWaitEvent, false)
WAIT(cuStreamWaitEvent_ptsz, true)

/* All streams of a context. Which those are is not asked: few programs do this. `when`: it matters
 * what waits for the program; `then` is done behind it. */
#define ALL_STREAMS(symbol, type, when, then)                                                      \
	CUresult symbol(type hCtx, CUevent hEvent)                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on() && tally_process.config.guards;            \
		CUresult result;                                                                   \
                                                                                                   \
		if (ours)                                                                          \
			tally_ahead_flush_all();                                                   \
		/* Asked when what was taken ahead has been given. */                              \
		ours = ours && (when);                                                             \
		if (ours)                                                                          \
			tally_drain_all();                                                         \
		result = TALLY_REAL(symbol)(hCtx, hEvent);                                         \
		if (ours && !result)                                                               \
			then;                                                                      \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
#define WAIT_ALL(symbol, type)	 ALL_STREAMS(symbol, type, tally_waits_event(hEvent), begin_all())
#define RECORD_ALL(symbol, type) ALL_STREAMS(symbol, type, true, tally_waits_recorded(hEvent, NULL))
WAIT_ALL(cuCtxWaitEvent, CUcontext)
WAIT_ALL(cuGreenCtxWaitEvent, CUgreenCtx)
RECORD_ALL(cuCtxRecordEvent, CUcontext)
RECORD_ALL(cuGreenCtxRecordEvent, CUgreenCtx)
