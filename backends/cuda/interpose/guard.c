/* SPDX-License-Identifier: Apache-2.0 */
/* The program's side of the launch protocol: launching, and waiting for what was launched. */
#include "backends/cuda/interpose/guard.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/line.h"
#include "backends/cuda/interpose/resolve.h"

/* Launches in different streams run side by side: one that finds its own stream empty may come on
 * top of the depth, up to this many times it. */
#define SIDE_BY_SIDE 4

/* Sleeps (CPU device) or spins (GPU) until a launch has ended or something was stopped. Device lock
 * held on entry and return, not between. False when the driver failed. */
static bool wait_for_device(struct tally_stream *s, const struct tally_logged *e)
{
	struct tally_device *d = s->context->device;
	struct tally_words *words = s->guard->words;
	CUevent event = e->event;
	uint32_t sequence = e->sequence;
	CUresult result = CUDA_SUCCESS;

	s->waiters++;
	tally_unlock(d);
	if (event) {
		result = TALLY_DRIVER(cuEventSynchronize)(event);
	} else {
		/* The driver is asked now and then: a launch that failed writes nothing. */
		for (unsigned turn = 1; (int32_t)(atomic_load(&words->done) - sequence) < 0 &&
					!atomic_load(&words->mailbox);
		     turn++) {
			if (turn % 4096 == 0 && tally_stream_mine(s))
				result = TALLY_DRIVER(cuStreamQuery)(s->handle);
			if (result && result != CUDA_ERROR_NOT_READY)
				break;
			result = CUDA_SUCCESS;
			sched_yield();
		}
	}
	tally_lock(d);
	if (!--s->waiters)
		tally_changed(d);
	return result == CUDA_SUCCESS;
}

/* Until launches up to number `target` (excluded) have left the log. Device lock held. */
static void wait_left(struct tally_stream *s, uint64_t target)
{
	struct tally_device *d = s->context->device;
	struct tally_guard *g = s->guard;

	s->waiters++;
	while (g->left < target) {
		bool stopped = tally_log_collect(s);

		if (g->left >= target)
			break;
		if (stopped && !d->closed && tally_stream_mine(s))
			tally_log_resume(s);
		else if (stopped)
			tally_wait_changed(d);
		else if (!wait_for_device(s, &g->log[(target - 1) % TALLY_LOG]))
			tally_log_lose(s);
	}
	if (!--s->waiters)
		tally_changed(d);
}

static void wait_stream(struct tally_stream *s)
{
	if (s && s->guard)
		wait_left(s, s->guard->entered);
}

/* The number behind the stream's last guarded launch that came before `when` and is not known done;
 * 0: there is none. */
static uint64_t before(const struct tally_stream *s, uint64_t when)
{
	const struct tally_guard *g = s->guard;
	uint64_t n = g ? g->left : 0;

	while (g && n < g->entered && g->log[n % TALLY_LOG].entered <= when)
		n++;
	return g && n != g->left ? n : 0;
}

static bool is_blocking(const struct tally_stream *s)
{
	return s->kind == TALLY_STREAM_BLOCKING || s->kind == TALLY_STREAM_PER_THREAD;
}

static bool is_any(const struct tally_stream *s)
{
	return s;
}

/* A stream of `c`, or (NULL) of any context, with launches of before `when`, and how many. */
static struct tally_stream *find_before(struct tally_device *d, const struct tally_context *only,
					bool (*which)(const struct tally_stream *), uint64_t when,
					uint64_t *target)
{
	for (struct tally_context *c = d->contexts; c; c = c->next)
		for (struct tally_stream *s = c->streams; s; s = s->next)
			if ((!only || c == only) && which(s) && (*target = before(s, when)))
				return s;
	return NULL;
}

/* Waits for the launches that came before the call: other threads may launch on for ever. Device
 * lock held on entry and return, not between. */
static void wait_all(struct tally_device *d, const struct tally_context *only,
		     bool (*which)(const struct tally_stream *))
{
	uint64_t now = tally_now(), target;
	struct tally_stream *s;

	/* The lists may change while we wait: start over after each. */
	while ((s = find_before(d, only, which, now, &target)))
		wait_left(s, target);
}

/* The streams that `s` waits for without being told to (the legacy stream's rule). */
static void wait_implicit(struct tally_stream *s)
{
	if (s->kind == TALLY_STREAM_LEGACY)
		wait_all(s->context->device, s->context, is_blocking);
	else if (s->kind != TALLY_STREAM_NONBLOCKING)
		wait_stream(tally_stream_legacy(s->context));
}

void tally_fence(struct tally_stream *s)
{
	struct tally_device *d = s->context->device;
	uint64_t began = 0;

	tally_ahead_flush_stream(s);
	if (!atomic_load(&d->in_flight))
		return;
	TALLY_COUNT(d, fences, 1);
	tally_lock(d);
	if (tally_guard_pending(s))
		began = tally_now();
	wait_stream(s);
	wait_implicit(s);
	tally_unlock(d);
	if (!began)
		return;
	began = tally_now() - began;
	tally_report_count(d->report, TALLY_COUNT_FENCE_WAITS, 1);
	tally_report_count(d->report, TALLY_COUNT_FENCE_NS, began);
	tally_report_trace(d->report, TALLY_TRACE_FENCE, s->number, NULL, began);
}

/* `c`: NULL is all of the device's. */
static void drain(struct tally_device *d, const struct tally_context *c)
{
	tally_ahead_flush(d);
	if (!atomic_load(&d->in_flight))
		return;
	TALLY_COUNT(d, fences, 1);
	tally_lock(d);
	wait_all(d, c, is_any);
	tally_unlock(d);
}

void tally_drain_context(struct tally_context *c)
{
	drain(c->device, c);
}

void tally_drain_all(void)
{
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next)
		drain(d, NULL);
}

/* Copies what the launch needs into its log entry, so that it can be started again. */
static bool fill(struct tally_logged *e, struct tally_kernel *k, void **parameters,
		 const void *packed)
{
	if (e->capacity < k->bytes) {
		uint8_t *bytes = realloc(e->bytes, k->bytes);
		if (!bytes)
			return false;
		e->bytes = bytes;
		e->capacity = k->bytes;
	}
	if (e->pointer_capacity < k->count + 1) {
		void **pointers = realloc(e->pointers, (k->count + 1) * sizeof *pointers);
		if (!pointers)
			return false;
		e->pointers = pointers;
		e->pointer_capacity = k->count + 1;
	}
	for (unsigned i = 0; i < k->count; i++) {
		const struct tally_parameter *p = &k->parameters[i];
		const void *from = packed ? (const uint8_t *)packed + p->offset : parameters[i];

		memcpy(e->bytes + p->offset, from, p->size);
		e->pointers[i] = e->bytes + p->offset;
	}
	e->pointers[k->count] = &e->launch;
	e->kernel = k;
	return true;
}

/* Attributes too, where there are any. */
static bool fill_attributes(struct tally_logged *e, const struct tally_attributes *from)
{
	if (from && !e->attributes && !(e->attributes = malloc(sizeof *e->attributes)))
		return false;
	if (from)
		*e->attributes = *from;
	else if (e->attributes)
		e->attributes->count = 0;
	return true;
}

static bool admits(const struct tally_device *d, const struct tally_guard *g, uint64_t predicted)
{
	unsigned in_flight = atomic_load_explicit(&d->in_flight, memory_order_relaxed);
	unsigned depth = tally_process.config.depth;

	if (g->entered - g->left == TALLY_LOG)
		return false;
	return in_flight < depth ||
	       atomic_load(&d->queued_ns) + predicted <= (uint64_t)depth * TALLY_UNIT_NS ||
	       (g->entered == g->left && in_flight < SIDE_BY_SIDE * depth);
}

/* The stream whose oldest launch has been in flight longest. */
static struct tally_stream *oldest(struct tally_device *d)
{
	struct tally_stream *found = NULL;
	uint64_t entered = UINT64_MAX;

	for (struct tally_context *c = d->contexts; c; c = c->next)
		for (struct tally_stream *s = c->streams; s; s = s->next) {
			struct tally_guard *g = s->guard;

			if (!g || g->left == g->entered ||
			    g->log[g->left % TALLY_LOG].entered >= entered)
				continue;
			found = s;
			entered = g->log[g->left % TALLY_LOG].entered;
		}
	return found;
}

/* Until the gate is open, the stream in order and the depth not reached. Device lock held. */
static void admit(struct tally_stream *s, uint64_t predicted)
{
	struct tally_device *d = s->context->device;
	struct tally_guard *g = s->guard;
	struct tally_place place = {0};
	struct tally_stream *other;

	for (;;) {
		if (d->closed) {
			/* Others may have something to give that the gate does not hold up. */
			tally_line_leave(d, &place);
			tally_wait_changed(d);
			continue;
		}
		/* Makes room, and starts again what was stopped: a launch behind it must not be
		 * the first to run. */
		tally_guard_pending(s);
		if (tally_line_free(d, &place) && admits(d, g, predicted))
			break;
		/* A stream that has something under way waits for that first: whoever has nothing
		 * may come on top. */
		other = g->left != g->entered ? s : oldest(d);
		if (other != s)
			tally_line_join(d, &place);
		if (other)
			wait_left(other, other->guard->left + 1);
		else
			tally_wait_changed(d);
	}
	tally_line_leave(d, &place);
}

bool tally_guard_make_room(struct tally_device *d)
{
	struct tally_stream *s = oldest(d);

	if (s)
		wait_left(s, s->guard->left + 1);
	return s != NULL;
}

/* Units [lo, hi), which are blocks or clusters. True when the slice is on its way or the driver
 * refused it (`result`), as tally_guard_launch. */
static bool launch_slice(struct tally_stream *s, const struct tally_plan *plan, unsigned unit,
			 uint32_t lo, uint32_t hi, void **parameters, const void *packed,
			 CUresult *result)
{
	struct tally_configuration *c = plan->configuration;
	const struct tally_dimensions *at = &c->at;
	struct tally_device *d = s->context->device;
	struct tally_guard *g = s->guard;
	uint64_t predicted =
		(uint64_t)((double)tally_plan_ns(plan) * unit * (hi - lo) / (double)c->blocks);
	struct tally_logged *e;

	admit(s, predicted);
	e = &g->log[g->entered % TALLY_LOG];
	if (g->lost || !fill(e, c->kernel, parameters, packed) ||
	    !fill_attributes(e, plan->attributes))
		return false;
	e->unit = unit;
	/* Its blocks may wait for each other, in any order. */
	e->whole = tally_one_wave(c->blocks, c->wave);
	e->configuration = c;
	e->level = plan->choice.level;
	e->sample = plan->measure ? tally_sample_begin(s) : NULL;
	e->dimensions = *at;
	e->launch = (struct tally_launch){
		.lo = lo, .hi = hi, .grid = {at->grid[0], at->grid[1], at->grid[2]}};
	e->predicted = predicted;
	e->entered = tally_now();
	if (d->cpu && !e->event)
		TALLY_DRIVER(cuEventCreate)(&e->event,
					    CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
	switch (tally_log_enqueue(s, g->entered, result)) {
	case TALLY_ENQUEUED:
		g->entered++;
		tally_report_trace(d->report, TALLY_TRACE_START, s->number,
				   plan->configuration->row, hi - lo);
		atomic_fetch_add(&d->queued_ns, predicted);
		atomic_fetch_add_explicit(&d->in_flight, 1, memory_order_relaxed);
		return true;
	case TALLY_REFUSED:
		tally_sample_drop(e->sample);
		return true;
	case TALLY_HALF_WAY:
		/* It runs; whoever synchronises asks the driver itself from now on. */
		tally_log_lose(s);
		return true;
	default:
		return false;
	}
}

/* What machine code counts its blocks in. */
static unsigned unit_of(const struct tally_plan *plan)
{
	const struct tally_kernel *k = plan->configuration->kernel;

	if (!k->opaque || (k->cluster == 1 && !plan->attributes))
		return 1;
	return k->cluster > 1 ? k->cluster : plan->attributes->cluster;
}

bool tally_guard_launch(struct tally_stream *s, const struct tally_plan *plan, void **parameters,
			const void *packed, CUresult *result)
{
	static _Atomic bool said;
	struct tally_kernel *k = plan->configuration->kernel;
	const struct tally_dimensions *at = &plan->configuration->at;
	struct tally_device *d = s->context->device;
	unsigned unit = unit_of(plan);
	uint32_t blocks = (uint32_t)plan->configuration->blocks / unit, lo;
	uint32_t slice = plan->choice.slice ? plan->choice.slice : blocks;
	bool ok = true;

	if (at->shared > atomic_load_explicit(&k->shared, memory_order_relaxed))
		tally_kernel_allow_shared(k, at->shared);
	if (unit > atomic_load_explicit(&k->clusters, memory_order_relaxed))
		tally_kernel_allow_clusters(k, unit);
	*result = CUDA_SUCCESS;
	tally_lock(d);
	/* Whoever begins a capture counts it first and then waits for what is in a log. */
	if (atomic_load(&tally_process.captures)) {
		tally_unlock(d);
		return false;
	}
	s->waiters++;
	wait_implicit(s);
	for (lo = 0; ok && lo < blocks && !*result; lo += slice)
		ok = launch_slice(s, plan, unit, lo, blocks - lo > slice ? lo + slice : blocks,
				  parameters, packed, result);
	if (!ok) {
		tally_log_lose(s);
		tally_warn_once(&said, "the driver refuses what stopping a launch takes; launches "
				       "of this program run whole from now on");
		/* Slices of it are on their way: the driver's state is not ours to mend. */
		if (lo > slice) {
			*result = CUDA_ERROR_LAUNCH_FAILED;
			ok = true;
		}
	}
	/* Only its own thread can start a per-thread stream's launches again, so it stays. */
	if (s->kind == TALLY_STREAM_PER_THREAD)
		wait_stream(s);
	if (!--s->waiters)
		tally_changed(d);
	tally_unlock(d);
	if (ok && !*result) {
		TALLY_COUNT(d, guarded, 1);
		tally_plan_given(plan, plan->choice.level);
	}
	return ok;
}
