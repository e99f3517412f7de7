/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program has work on the device. Every piece of work is counted in its stream before
 * the driver gets it; a synchronisation that the program does anyway says how many of them are
 * done. When all are, the board is told. A program that never synchronises is looked at in a lull.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"

static void tell(struct tally_device *d, bool active)
{
	struct tally_client *client = atomic_load_explicit(&d->client, memory_order_acquire);

	if (client)
		tally_client_set_active(client, active);
}

void tally_activity_begin(struct tally_device *d)
{
	pthread_mutex_lock(&d->activity_lock);
	if (!atomic_load(&d->active)) {
		tell(d, true);
		atomic_store(&d->active, true);
	}
	pthread_mutex_unlock(&d->activity_lock);
	if (atomic_load(&d->asleep)) {
		atomic_fetch_add(&d->tick, 1);
		syscall(SYS_futex, &d->tick, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

void tally_finished(struct tally_stream *stream, uint64_t count)
{
	uint64_t known = atomic_load_explicit(&stream->finished, memory_order_relaxed);

	while (known < count && !atomic_compare_exchange_weak(&stream->finished, &known, count))
		;
}

static bool idle(const struct tally_stream *s)
{
	return atomic_load(&s->finished) == atomic_load(&s->announced);
}

/* Device lock held. */
static bool all_idle(const struct tally_device *d)
{
	for (const struct tally_context *c = d->contexts; c; c = c->next)
		for (const struct tally_stream *s = c->streams; s; s = s->next)
			if (!idle(s))
				return false;
	return true;
}

/* Asks the driver about each stream that is not known idle. Device lock held. */
static void ask(struct tally_device *d, struct tally_context *current)
{
	/* During a capture a question may break it, and be it another thread's. */
	if (atomic_load(&tally_process.captures))
		return;
	for (struct tally_stream *s = current->streams; s; s = s->next) {
		uint64_t count = atomic_load(&s->given);

		if (idle(s) || (s->kind == TALLY_STREAM_PER_THREAD && s->owner != tally_thread()) ||
		    tally_guard_pending(s))
			continue;
		if (!TALLY_DRIVER(cuStreamQuery)(s->handle))
			tally_finished(s, count);
	}
}

/*
 * Device lock held. The order makes it safe without a lock in tally_announce(): we say "not active"
 * and then look again; it counts and then looks whether we are. One of the two sees the other.
 */
static bool end(struct tally_device *d)
{
	bool ended = false;

	pthread_mutex_lock(&d->activity_lock);
	if (atomic_load(&d->active)) {
		atomic_store(&d->active, false);
		if (all_idle(d)) {
			tell(d, false);
			ended = true;
		} else {
			atomic_store(&d->active, true);
		}
	}
	pthread_mutex_unlock(&d->activity_lock);
	return ended;
}

void tally_activity_settle(struct tally_device *d)
{
	CUcontext handle = NULL;

	if (tally_process.config.guards || !atomic_load(&d->active))
		return;
	pthread_mutex_lock(&d->lock);
	if (!all_idle(d) && !TALLY_DRIVER(cuCtxGetCurrent)(&handle))
		for (struct tally_context *c = d->contexts; c; c = c->next)
			if (c->handle == handle)
				ask(d, c);
	if (all_idle(d))
		end(d);
	pthread_mutex_unlock(&d->lock);
}

/*
 * A per-thread stream can be named by its thread alone. An event in the legacy stream comes after
 * everything that the blocking streams were given, those of other threads included: the monitor
 * puts one in and looks at it a tick later.
 */
static void ask_per_thread(struct tally_context *c)
{
	struct tally_stream *s;
	bool waiting = false;

	if (c->marked) {
		if (TALLY_DRIVER(cuEventQuery)(c->marker))
			return;
		c->marked = false;
		for (s = c->streams; s; s = s->next)
			if (s->kind == TALLY_STREAM_PER_THREAD)
				tally_finished(s, s->marked);
	}
	for (s = c->streams; s; s = s->next) {
		if (s->kind != TALLY_STREAM_PER_THREAD)
			continue;
		s->marked = tally_guard_pending(s) ? 0 : atomic_load(&s->given);
		waiting |= !idle(s);
	}
	if (!waiting || atomic_load(&tally_process.captures) ||
	    (!c->marker && TALLY_DRIVER(cuEventCreate)(&c->marker, CU_EVENT_DISABLE_TIMING)))
		return;
	c->marked = !TALLY_DRIVER(cuEventRecord)(c->marker, CU_STREAM_LEGACY);
}

bool tally_activity_lull(struct tally_device *d)
{
	if (!atomic_load(&d->active))
		return true;
	for (struct tally_context *c = d->contexts; c; c = c->next) {
		if (TALLY_DRIVER(cuCtxPushCurrent_v2)(c->handle))
			continue;
		ask(d, c);
		ask_per_thread(c);
		TALLY_DRIVER(cuCtxPopCurrent_v2)(&(CUcontext){NULL});
	}
	return all_idle(d) && end(d);
}
