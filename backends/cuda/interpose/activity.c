/* SPDX-License-Identifier: Apache-2.0 */
/* The rare side of activity: notes, questions to the driver, the end; see activity.h. */
#include "backends/cuda/interpose/activity.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/burst.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"
#include "base/futex.h"

__thread struct tally_caller *tally_caller __attribute__((tls_model("initial-exec")));
bool tally_announce_fences;

static _Atomic(struct tally_caller *) callers;
static pthread_key_t caller_key;

static void caller_ended(void *record)
{
	struct tally_caller *caller = record;

	atomic_store(&caller->calling, NULL);
	tally_streams_thread_ended();
	/* Another destructor of the program's may still launch: as a new caller. */
	tally_caller = NULL;
	atomic_store(&caller->taken, false);
}

void tally_activity_start(void)
{
	static bool once;

	if (!once)
		pthread_key_create(&caller_key, caller_ended);
	once = true;
	tally_announce_fences =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

void tally_activity_forked(void)
{
	/* Of the parent's threads only this one is here. */
	for (struct tally_caller *c = atomic_load(&callers); c; c = c->next) {
		atomic_store(&c->calling, NULL);
		atomic_store(&c->taken, c == tally_caller);
	}
}

struct tally_caller *tally_caller_new(void)
{
	/* Out of memory: shared by whoever has none, and then the program may stay active for
	 * longer than it is. */
	static struct tally_caller common = {.taken = true};
	struct tally_caller *c = atomic_load(&callers);
	bool free_one = false;

	while (c && !atomic_compare_exchange_strong(&c->taken, &free_one, true)) {
		free_one = false;
		c = c->next;
	}
	if (!c && !posix_memalign((void **)&c, 64, sizeof *c)) {
		*c = (struct tally_caller){.taken = true, .next = atomic_load(&callers)};
		while (!atomic_compare_exchange_weak(&callers, &c->next, c))
			;
	}
	if (c)
		pthread_setspecific(caller_key, c);
	tally_caller = c ? c : &common;
	return tally_caller;
}

/* Makes what other threads announced before they looked whether we are active visible here. */
static void barrier(void)
{
	static _Atomic int word;
	const struct tally_caller *first = atomic_load(&callers);

	atomic_exchange(&word, 1); /* this side's own */
	if (!tally_announce_fences && first && (first->next || first != tally_caller))
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static void tell(struct tally_device *d, bool active)
{
	struct tally_client *client = atomic_load_explicit(&d->client, memory_order_acquire);
	/* In a trace others give way after "active" and before "idle". */
	uint64_t before = tally_report_tracing(d->report) ? tally_now() : 0;

	if (client)
		tally_client_set_active(client, active);
	if (tally_report_tracing(d->report))
		tally_report_record(d->report, active ? TALLY_TRACE_ACTIVE : TALLY_TRACE_IDLE,
				    active ? before : 0, 0, NULL, 0);
}

void tally_activity_begin(struct tally_device *d)
{
	pthread_mutex_lock(&d->activity_lock);
	if (!atomic_load(&d->active)) {
		tally_burst_begin(d);
		tell(d, true);
		atomic_store(&d->active, true);
	}
	pthread_mutex_unlock(&d->activity_lock);
	if (atomic_load(&d->asleep)) {
		atomic_fetch_add(&d->tick, 1);
		tally_futex_wake(&d->tick, 1, TALLY_FUTEX_PRIVATE);
	}
}

uint64_t tally_note(const struct tally_stream *stream)
{
	/* This order: who is in the count has said before that it is calling. */
	uint64_t count = atomic_load_explicit(&stream->announced, memory_order_acquire);

	for (const struct tally_caller *c = atomic_load(&callers); c; c = c->next)
		if (atomic_load_explicit(&c->calling, memory_order_acquire) == stream)
			return 0;
	return count;
}

void tally_finished(struct tally_stream *stream, uint64_t note)
{
	uint64_t known = atomic_load_explicit(&stream->finished, memory_order_relaxed);

	while (known < note && !atomic_compare_exchange_weak(&stream->finished, &known, note))
		;
}

static bool idle(const struct tally_stream *s)
{
	return atomic_load(&s->finished) == atomic_load(&s->announced);
}

/* Device lock held. */
static bool all_idle(const struct tally_device *d)
{
	const struct tally_stream *s;

	if (tally_ahead_waits(d))
		return false;
	for (const struct tally_context *c = d->contexts; c; c = c->next)
		for (s = c->streams; s; s = s->next)
			if (!idle(s))
				return false;
	for (const struct tally_caller *c = atomic_load(&callers); c; c = c->next) {
		s = atomic_load_explicit(&c->calling, memory_order_acquire);
		if (s && s->context->device == d)
			return false;
	}
	return true;
}

static uint64_t total_launches(const struct tally_device *d)
{
	uint64_t launches = d->launches;

	for (const struct tally_context *c = d->contexts; c; c = c->next)
		for (const struct tally_stream *s = c->streams; s; s = s->next)
			launches += atomic_load_explicit(&s->launches, memory_order_relaxed);
	return launches;
}

void tally_activity_publish(struct tally_device *d)
{
	atomic_store_explicit(&tally_slot(d)->launches, total_launches(d), memory_order_relaxed);
}

/* Asks the driver about each stream that is not known idle. Device lock held. */
static void ask(struct tally_device *d, struct tally_context *current)
{
	/* During a capture a question may break it, and be it another thread's. */
	if (atomic_load(&tally_process.captures))
		return;
	for (struct tally_stream *s = current->streams; s; s = s->next) {
		uint64_t note = tally_note(s);

		if (idle(s) || (s->kind == TALLY_STREAM_PER_THREAD && s->owner != tally_thread()) ||
		    tally_guard_pending(s))
			continue;
		if (!TALLY_DRIVER(cuStreamQuery)(s->handle))
			tally_finished(s, note);
	}
}

/*
 * Device lock held. We say "not active" and then look again; an announcement counts and then looks
 * whether we are. One of the two sees the other. `seen`: the program itself waited for this.
 */
static bool end(struct tally_device *d, bool seen)
{
	bool ended = false;

	pthread_mutex_lock(&d->activity_lock);
	if (atomic_load(&d->active)) {
		atomic_store(&d->active, false);
		barrier();
		if (all_idle(d)) {
			if (d->burst)
				tally_burst_end(d, total_launches(d), seen);
			tell(d, false);
			tally_activity_publish(d);
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

	if (!tally_process.config.settles)
		return;
	if (!atomic_load(&d->active)) {
		/* The monitor may be about to say so on the board: when we return it has. */
		pthread_mutex_lock(&d->activity_lock);
		pthread_mutex_unlock(&d->activity_lock);
		return;
	}
	tally_lock(d);
	if (!all_idle(d) && !TALLY_DRIVER(cuCtxGetCurrent)(&handle))
		for (struct tally_context *c = d->contexts; c; c = c->next)
			if (c->handle == handle)
				ask(d, c);
	if (all_idle(d))
		end(d, true);
	tally_unlock(d);
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
		s->marked = tally_guard_pending(s) ? 0 : tally_note(s);
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
	return all_idle(d) && end(d, false);
}
