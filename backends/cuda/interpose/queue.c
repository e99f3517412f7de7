/* SPDX-License-Identifier: Apache-2.0 */
/* Counts what cannot be stopped, and holds it back; see queue.h. */
#include "backends/cuda/interpose/queue.h"

#include <sched.h>
#include <time.h>

#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/line.h"
#include "backends/cuda/interpose/resolve.h"

/* A mark stands for at most this much predicted work (and a quarter of the limit). */
#define MARK_NS 25000
/* A piece that is longer than the limit is given when what runs is over in so long: the way to the
 * device takes about that. */
#define AHEAD_NS 12000
/* Sleeping is this inexact (the kernel's timer slack): nearer than that, waiting is spinning. */
#define SLACK_NS 70000
/* A thread that waits sees no mark come for so long: what runs may be waiting for this very
 * thread. Then it goes on, and the next one waits half as long, until something ends. */
#define PATIENCE_NS 1000000000
/* On the CPU device a thread sleeps in the driver; where it might be slept for, it looks so often.
 */
#define CPU_LOOK_NS 200000

static uint64_t mark_ns(void)
{
	uint64_t quarter = tally_queue_limit() / 4;

	return quarter < MARK_NS ? quarter : MARK_NS;
}

/* Puts a mark into the stream, behind `ns` of work. Device lock held, nothing is captured. */
static void put_mark(struct tally_stream *s, uint64_t ns)
{
	struct tally_queue *q = &s->queue;
	struct tally_device *d = s->context->device;
	struct tally_mark *m;

	if (!++q->sequence)
		q->sequence++;
	/* Where there are too many, the last one moves back: known done later, never earlier. */
	m = &q->marks[(q->count < TALLY_MARKS ? q->first + q->count : q->first + q->count - 1) %
		      TALLY_MARKS];
	if (q->count < TALLY_MARKS) {
		q->count++;
		m->ns = 0;
		m->at = tally_now();
	}
	m->ns += ns;
	m->sequence = q->sequence;
	if (d->cpu && !m->event)
		TALLY_DRIVER(cuEventCreate)(&m->event,
					    CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
	if (TALLY_DRIVER(cuStreamWriteValue32_v2)(s->handle, s->guard->mark, q->sequence, 0) ||
	    (m->event && TALLY_DRIVER(cuEventRecord)(m->event, s->handle)))
		tally_queue_forget(s);
}

/* Puts a mark behind what the stream was given. Device lock held. */
static void mark(struct tally_stream *s)
{
	uint64_t ns = atomic_exchange(&s->queue.open_ns, 0);

	if (!ns)
		return;
	/* A mark might land in a capture: later. */
	if (atomic_load(&tally_process.captures))
		atomic_fetch_add(&s->queue.open_ns, ns);
	else
		put_mark(s, ns);
}

static void look(struct tally_stream *s)
{
	struct tally_queue *q = &s->queue;
	struct tally_device *d = s->context->device;
	uint32_t done;

	if (!q->count)
		return;
	done = atomic_load_explicit(&s->guard->words->mark, memory_order_acquire);
	while (q->count && (int32_t)(done - q->marks[q->first].sequence) >= 0) {
		atomic_fetch_sub(&d->queued_ns, q->marks[q->first].ns);
		q->first = (q->first + 1) % TALLY_MARKS;
		q->count--;
		d->mark_came_at = tally_now();
		d->patience_ns = PATIENCE_NS;
	}
	tally_samples_marked(s, done);
}

void tally_queue_look(struct tally_device *d)
{
	for (struct tally_context *c = d->contexts; c; c = c->next)
		for (struct tally_stream *s = c->streams; s; s = s->next)
			look(s);
}

void tally_queue_forget(struct tally_stream *s)
{
	struct tally_queue *q = &s->queue;
	struct tally_device *d = s->context->device;

	q->lost = true;
	atomic_fetch_sub(&d->queued_ns, atomic_exchange(&q->open_ns, 0));
	for (; q->count; q->count--, q->first = (q->first + 1) % TALLY_MARKS)
		atomic_fetch_sub(&d->queued_ns, q->marks[q->first].ns);
	tally_samples_forget(s);
}

/* Whether a mark of stream `a` is to be waited for rather than one of `b`: what may wait for the
 * program comes last, then the one that was put in first. */
static bool sooner(const struct tally_stream *a, const struct tally_stream *b)
{
	const struct tally_mark *m = &a->queue.marks[a->queue.first],
				*n = &b->queue.marks[b->queue.first];

	return !m->ns == !n->ns ? m->at < n->at : m->ns != 0;
}

/* The stream whose oldest mark is to be waited for; NULL: there is no mark anywhere. */
static struct tally_stream *oldest(struct tally_device *d)
{
	struct tally_stream *found = NULL;

	for (struct tally_context *c = d->contexts; c; c = c->next)
		for (struct tally_stream *s = c->streams; s; s = s->next)
			if (s->queue.count && (!found || sooner(s, found)))
				found = s;
	return found;
}

/* Device lock held. */
static void mark_all(struct tally_device *d)
{
	CUcontext popped;

	for (struct tally_context *c = d->contexts; c; c = c->next) {
		if (TALLY_DRIVER(cuCtxPushCurrent_v2)(c->handle))
			continue;
		for (struct tally_stream *s = c->streams; s; s = s->next)
			if (!s->queue.lost && tally_stream_mine(s))
				mark(s);
		TALLY_DRIVER(cuCtxPopCurrent_v2)(&popped);
	}
}

void tally_queue_mark_all(void)
{
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next) {
		if (!atomic_load(&d->queued_ns))
			continue;
		tally_lock(d);
		mark_all(d);
		tally_unlock(d);
	}
}

/* When what `m` stands for will be over, as far as predictions go. */
static uint64_t expected_end(const struct tally_device *d, const struct tally_mark *m)
{
	return (m->at > d->mark_came_at ? m->at : d->mark_came_at) + m->ns;
}

/* Whether all that the device has is one mark's work that is all but over: a piece that could not
 * fit in at all may be put behind it. Device lock held. */
static bool nearly_over(struct tally_device *d, uint64_t *when)
{
	struct tally_stream *s = oldest(d);
	const struct tally_mark *m;

	*when = UINT64_MAX;
	if (d->cpu || !s)
		return false;
	m = &s->queue.marks[s->queue.first];
	if (atomic_load(&d->queued_ns) != m->ns)
		return false;
	*when = expected_end(d, m) - AHEAD_NS;
	return tally_now() >= *when;
}

/* Counts `ns` when there is room for it, or nothing else. */
static bool reserve(struct tally_device *d, uint64_t ns, bool whatever)
{
	uint64_t queued = atomic_load_explicit(&d->queued_ns, memory_order_relaxed),
		 limit = tally_queue_limit();

	do
		if (queued && queued + ns > limit && !whatever)
			return false;
	while (!atomic_compare_exchange_weak(&d->queued_ns, &queued, queued + ns));
	return true;
}

/* Spins near the time at which something is expected to end, sleeps before. Whether the mark came
 * before `until`; `failed`: it never will. No lock held. */
static bool spin(struct tally_stream *s, uint32_t sequence, uint64_t expected, uint64_t until,
		 bool *failed)
{
	const struct tally_words *words = s->guard->words;
	uint64_t now = tally_now(), asked = now;
	struct timespec pause = {0};
	CUresult result;

	while ((int32_t)(atomic_load_explicit(&words->mark, memory_order_acquire) - sequence) < 0) {
		if (now >= until)
			return false;
		/* The driver is asked now and then: after a failure no mark comes. */
		if (now - asked > 1000000 && tally_stream_mine(s) &&
		    !atomic_load(&tally_process.captures)) {
			asked = now;
			result = TALLY_DRIVER(cuStreamQuery)(s->handle);
			if (result && result != CUDA_ERROR_NOT_READY) {
				*failed = true;
				return false;
			}
		}
		if (s->context->device->cpu) {
			nanosleep(&(struct timespec){.tv_nsec = CPU_LOOK_NS}, NULL);
		} else if (expected > now + SLACK_NS) {
			pause.tv_nsec = (long)(expected - now - SLACK_NS);
			if (pause.tv_nsec > 1000000)
				pause.tv_nsec = 1000000;
			nanosleep(&pause, NULL);
		} else if (now > expected + SLACK_NS) {
			sched_yield();
		} else {
			for (unsigned i = 0; i < 32; i++)
				__builtin_ia32_pause();
		}
		now = tally_now();
	}
	return true;
}

/* Waits for the stream's oldest mark, at most until `until`. Whether to look again: false when time
 * is up. Device lock held on entry and return, not between. */
static bool wait_mark(struct tally_stream *s, uint64_t until)
{
	struct tally_device *d = s->context->device;
	struct tally_mark *m = &s->queue.marks[s->queue.first];
	uint64_t expected = expected_end(d, m);
	uint32_t sequence = m->sequence;
	CUevent event = m->event;
	bool failed = false, came = true;

	s->waiters++;
	tally_unlock(d);
	if (event && !atomic_load(&tally_process.waits))
		failed = TALLY_DRIVER(cuEventSynchronize)(event) != CUDA_SUCCESS;
	else
		came = spin(s, sequence, expected, until, &failed);
	tally_lock(d);
	if (failed)
		tally_queue_forget(s);
	if (!--s->waiters)
		tally_changed(d);
	return came || failed;
}

/* Device lock held on entry and return, not between. */
static void nap(struct tally_device *d)
{
	tally_unlock(d);
	nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
	tally_lock(d);
}

/* A thread that sleeps (CPU device) is woken for more than one short piece: waking it costs more
 * than that. */
static bool worth_waking(const struct tally_device *d)
{
	return !d->cpu || atomic_load(&d->queued_ns) <= tally_queue_limit() / 2;
}

/* Until there is room, and whoever came before has had it. */
static void hold_back(struct tally_device *d, uint64_t ns)
{
	uint64_t began = tally_now(), until, when;
	struct tally_place place = {0};
	bool whatever = false;
	struct tally_stream *s;

	tally_lock(d);
	if (!d->patience_ns)
		d->patience_ns = PATIENCE_NS;
	until = began + d->patience_ns;
	for (;;) {
		tally_queue_look(d);
		when = UINT64_MAX;
		if ((whatever || (tally_line_free(d, &place) && worth_waking(d))) &&
		    reserve(d, ns, whatever || nearly_over(d, &when)))
			break;
		tally_line_join(d, &place);
		s = oldest(d);
		if (!s) {
			mark_all(d);
			s = oldest(d);
		}
		/* What is left belongs to guarded launches, or to threads that have not yet
		 * returned from the driver. */
		if (!s && !tally_guard_make_room(d))
			nap(d);
		if (s ? !wait_mark(s, when < until ? when : until) && tally_now() >= until
		      : tally_now() >= until) {
			d->patience_ns = d->patience_ns / 2 + 1; /* 0 is the beginning */
			whatever = true;
		}
	}
	tally_line_leave(d, &place);
	tally_unlock(d);
	/* The giver's waiting is none of the program's (ahead.h). */
	if (tally_giving & TALLY_GIVING_ENTRY)
		return;
	tally_report_count(d->report, TALLY_COUNT_DEPTH_WAITS, 1);
	tally_report_count(d->report, TALLY_COUNT_DEPTH_NS, tally_now() - began);
}

static bool fits(struct tally_device *d, uint64_t ns)
{
	uint64_t queued = atomic_load_explicit(&d->queued_ns, memory_order_relaxed);

	return !queued || queued + ns <= tally_queue_limit();
}

bool tally_queue_has_room(struct tally_device *d, uint64_t ns)
{
	if (fits(d, ns))
		return true;
	/* Marks may have come that nobody looked at. */
	tally_lock(d);
	tally_queue_look(d);
	tally_unlock(d);
	return fits(d, ns);
}

bool tally_queue_has_words(struct tally_stream *s)
{
	struct tally_device *d = s->context->device;
	bool has;

	if (__atomic_load_n(&s->guard, __ATOMIC_ACQUIRE))
		return !s->queue.lost;
	tally_lock(d);
	has = (s->guard || tally_guard_memory(s)) && !s->queue.lost;
	tally_unlock(d);
	return has;
}

void tally_queue_enter(struct tally_stream *s, struct tally_piece *p, uint64_t ns, bool measure)
{
	struct tally_device *d = s->context->device;

	/* A mark might land in the capture. */
	if (atomic_load_explicit(&tally_process.captures, memory_order_relaxed) ||
	    !tally_queue_has_words(s))
		return;
	if (!tally_line_empty(d) || !reserve(d, ns, false))
		hold_back(d, ns);
	/* All the waiting took its time. */
	if (!p->ungated)
		tally_gate_pass(d);
	p->stream = s;
	p->ns = ns;
	if (measure) {
		tally_lock(d);
		p->sample = tally_sample_begin(s);
		tally_unlock(d);
	}
}

static void finish_sample(struct tally_piece *p, bool given)
{
	struct tally_sample *sample = p->sample;

	if (!given || atomic_load(&tally_process.captures)) {
		tally_sample_drop(sample);
	} else if (tally_sample_end(sample)) {
		sample->cost = p->cost;
		tally_sample_of(sample, p->plan.configuration, p->plan.choice.level);
		sample->blocks = sample->whole = p->blocks;
		/* The next mark's number. */
		sample->mark = p->stream->queue.sequence + 1 ? p->stream->queue.sequence + 1 : 1;
	}
}

void tally_queue_leave(struct tally_piece *p, bool given)
{
	struct tally_stream *s = p->stream;
	struct tally_device *d;
	uint64_t open;

	if (!s)
		return;
	d = s->context->device;
	if (p->sample) {
		tally_lock(d);
		finish_sample(p, given);
		tally_unlock(d);
	}
	if (!given) {
		atomic_fetch_sub(&d->queued_ns, p->ns);
		return;
	}
	/* Only now, so that no mark counts what is not yet in front of it. */
	open = atomic_fetch_add(&s->queue.open_ns, p->ns) + p->ns;
	/* A per-thread stream's marks can be put by its thread alone, and that may not come back.
	 */
	if (open < mark_ns() && s->kind != TALLY_STREAM_PER_THREAD)
		return;
	tally_lock(d);
	mark(s);
	tally_queue_look(d);
	tally_unlock(d);
}

void tally_queue_drain(struct tally_stream *s)
{
	struct tally_device *d = s->context->device;

	tally_lock(d);
	if (s->guard && !s->queue.lost)
		mark(s);
	look(s);
	while (s->queue.count && wait_mark(s, tally_now() + PATIENCE_NS))
		look(s);
	s->queue.late = s->queue.count != 0;
	if (s->queue.count)
		tally_queue_forget(s);
	tally_unlock(d);
}

uint32_t tally_queue_mark(struct tally_stream *s)
{
	put_mark(s, atomic_exchange(&s->queue.open_ns, 0));
	return s->queue.sequence;
}

bool tally_queue_not_come(const struct tally_stream *s, uint32_t number)
{
	const struct tally_words *words = s->guard->words;

	return !s->queue.lost &&
	       (int32_t)(atomic_load_explicit(&words->mark, memory_order_acquire) - number) < 0;
}
