/* SPDX-License-Identifier: Apache-2.0 */
/* The gate: what the monitor does to all streams of a device at once. */
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"

static void write_gate(struct tally_context *c, uint32_t value, bool wait)
{
	CUcontext popped;

	if (!c->ready || TALLY_DRIVER(cuCtxPushCurrent_v2)(c->handle))
		return;
	if (!TALLY_DRIVER(cuStreamWriteValue32_v2)(c->gate_stream, c->gate, value, 0) && wait)
		TALLY_DRIVER(cuStreamSynchronize)(c->gate_stream);
	TALLY_DRIVER(cuCtxPopCurrent_v2)(&popped);
}

void tally_guard_close(struct tally_device *d)
{
	d->closed = true;
	d->closed_at = tally_now();
	d->closings++;
	tally_report_trace(d->report, TALLY_TRACE_GATE_CLOSED, 0, NULL, 0);
	/* Where nothing is under way nobody reads the word, and nothing comes until it is opened.
	 */
	d->gate_set = atomic_load(&d->in_flight) != 0;
	for (struct tally_context *c = d->gate_set ? d->contexts : NULL; c; c = c->next)
		write_gate(c, 1, false);
	atomic_store_explicit(&tally_slot(d)->stopped_since_ns, d->closed_at, memory_order_relaxed);
}

/* Resumes every stopped stream that this thread can name. */
static void resume_all(struct tally_device *d)
{
	CUcontext popped;

	for (struct tally_context *c = d->contexts; c; c = c->next) {
		if (!c->ready || TALLY_DRIVER(cuCtxPushCurrent_v2)(c->handle))
			continue;
		for (struct tally_stream *s = c->streams; s; s = s->next)
			tally_guard_pending(s);
		TALLY_DRIVER(cuCtxPopCurrent_v2)(&popped);
	}
}

void tally_guard_open(struct tally_device *d)
{
	struct tally_slot *slot = tally_slot(d);

	/* The word first, everywhere and for certain: what is started again must not meet it. */
	for (struct tally_context *c = d->gate_set ? d->contexts : NULL; c; c = c->next)
		write_gate(c, 0, true);
	d->closed = false;
	d->opened_at = tally_now();
	tally_report_trace(d->report, TALLY_TRACE_GATE_OPEN, 0, NULL, d->opened_at - d->closed_at);
	atomic_store_explicit(&slot->stopped_since_ns, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->stopped_ns, d->opened_at - d->closed_at,
				  memory_order_relaxed);
	resume_all(d);
	tally_changed(d);
}

bool tally_guard_look(struct tally_device *d)
{
	bool left = false;

	if (!d->closed)
		resume_all(d);
	for (struct tally_context *c = d->contexts; c; c = c->next) {
		for (struct tally_stream *s = c->streams; s; s = s->next) {
			struct tally_guard *g = s->guard;

			if (!g || g->left == g->entered)
				continue;
			tally_log_collect(s);
			/* A block that read the gate while it was closed may report the stop only
			 * now: until what was in the log then has left it, look again. */
			if (g->left != g->entered && d->opened_at &&
			    g->log[g->left % TALLY_LOG].entered < d->opened_at)
				left = true;
		}
	}
	return left;
}

bool tally_guard_draining(const struct tally_device *d)
{
	if (!d->closed)
		return false;
	for (const struct tally_context *c = d->contexts; c; c = c->next)
		for (const struct tally_stream *s = c->streams; s; s = s->next)
			if (s->guard && s->guard->left != s->guard->entered && !s->guard->noted)
				return true;
	return false;
}

void tally_guard_leave(struct tally_device *d)
{
	tally_lock(d);
	if (d->closed)
		tally_guard_open(d);
	else
		resume_all(d);
	tally_unlock(d);
}
