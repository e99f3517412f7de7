/* SPDX-License-Identifier: Apache-2.0 */
/* One stream's log of guarded launches: into the stream, out of the log, into the stream again. */
#include "backends/cuda/interpose/resolve.h"

#include <stdlib.h>

#include "backends/cuda/interpose/guard.h"

/* Sequence numbers go round after 2^32 launches; a log is short. */
static bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Fills what never changes in the control blocks, in stream order. */
static CUresult prepare(struct tally_stream *s)
{
	struct tally_guard *g = s->guard;
	CUresult result;

	if (g->prepared)
		return CUDA_SUCCESS;
	result = TALLY_DRIVER(cuMemcpyHtoDAsync_v2)(g->controls, g->first_controls,
						    TALLY_LOG * sizeof(struct tally_control),
						    s->handle);
	if (!result)
		result = TALLY_DRIVER(cuStreamWriteValue32_v2)(s->handle, g->broken, 0, 0);
	g->prepared = !result;
	return result;
}

/* W and {sequence, hi}: both are 64-bit words of struct tally_control. */
static CUresult write_control(struct tally_stream *s, unsigned slot, const struct tally_logged *e)
{
	CUdeviceptr control = s->guard->controls + slot * sizeof(struct tally_control);
	CUstreamBatchMemOpParams writes[2] = {0};

	writes[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	writes[0].writeValue.address = control + offsetof(struct tally_control, word);
	writes[0].writeValue.value64 = e->launch.lo;
	writes[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	writes[1].writeValue.address = control + offsetof(struct tally_control, sequence);
	writes[1].writeValue.value64 = (cuuint64_t)e->launch.hi << 32 | e->sequence;
	return TALLY_DRIVER(cuStreamBatchMemOp_v2)(s->handle, 2, writes, 0);
}

/* A lifted kernel is told the original grid and runs in one dimension; machine code reads its grid
 * itself and gets that one, of which blocks outside of [lo, hi) end at once. */
static CUresult launch(struct tally_stream *s, struct tally_logged *e)
{
	const struct tally_dimensions *at = &e->dimensions;
	CUlaunchConfig config = {.gridDimX = e->launch.hi - e->launch.lo,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = at->block[0],
				 .blockDimY = at->block[1],
				 .blockDimZ = at->block[2],
				 .sharedMemBytes = at->shared,
				 .hStream = s->handle};

	if (e->kernel->opaque) {
		config.gridDimX = at->grid[0];
		config.gridDimY = at->grid[1];
		config.gridDimZ = at->grid[2];
	}
	if (e->kernel->opaque && e->attributes && e->attributes->count) {
		config.attrs = e->attributes->list;
		config.numAttrs = e->attributes->count;
		return TALLY_DRIVER(cuLaunchKernelEx)(&config, (CUfunction)e->kernel->variant,
						      e->pointers, NULL);
	}
	return TALLY_DRIVER(cuLaunchKernel)(
		(CUfunction)e->kernel->variant, config.gridDimX, config.gridDimY, config.gridDimZ,
		at->block[0], at->block[1], at->block[2], at->shared, s->handle, e->pointers, NULL);
}

enum tally_enqueued tally_log_enqueue(struct tally_stream *s, uint64_t number, CUresult *result)
{
	struct tally_guard *g = s->guard;
	unsigned slot = number % TALLY_LOG;
	struct tally_logged *e = &g->log[slot];

	if (!++g->sequence)
		g->sequence++; /* 0 in the mailbox means none */
	e->sequence = g->sequence;
	e->launch.control = (g->controls + slot * sizeof(struct tally_control)) |
			    (e->whole ? TALLY_CONTROL_WHOLE : 0);
	if (prepare(s) || write_control(s, slot, e))
		return TALLY_BROKEN;
	*result = launch(s, e);
	if (*result)
		return TALLY_REFUSED;
	if (e->sample && !tally_sample_end(e->sample))
		e->sample = NULL;
	if (TALLY_DRIVER(cuStreamWriteValue32_v2)(s->handle, g->done, e->sequence, 0) ||
	    (e->event && TALLY_DRIVER(cuEventRecord)(e->event, s->handle)))
		return TALLY_HALF_WAY;
	return TALLY_ENQUEUED;
}

/* The launch is done: what is known of it goes to those who want it. */
static void leave(struct tally_device *d, struct tally_stream *s, struct tally_logged *e)
{
	struct tally_sample *sample = e->sample;

	e->sample = NULL;
	if (sample) {
		sample->cost = &e->configuration->guarded;
		tally_sample_of(sample, e->configuration, e->level);
		sample->blocks = (uint64_t)e->unit * (e->launch.hi - e->launch.lo);
		sample->whole = e->configuration->blocks;
		tally_sample_take(sample);
	} else {
		tally_report_trace(d->report, TALLY_TRACE_END, s->number, e->configuration->row, 0);
	}
}

/* Everything of the stream has stopped: how long that took, and whom it met. */
static void note_stop(struct tally_device *d, struct tally_stream *s, struct tally_logged *e)
{
	uint64_t took = d->closed ? tally_now() - d->closed_at : 0;
	struct tally_slot *slot = tally_slot(d);

	s->guard->noted = true;
	atomic_fetch_add_explicit(&slot->stops, 1, memory_order_relaxed);
	tally_report_trace(d->report, TALLY_TRACE_STOP, s->number, e->configuration->row, took);
	if (!took)
		return;
	atomic_store_explicit(&slot->stop_ns_last, took, memory_order_relaxed);
	if (took > atomic_load_explicit(&slot->stop_ns_max, memory_order_relaxed))
		atomic_store_explicit(&slot->stop_ns_max, took, memory_order_relaxed);
	tally_report_stop(d->report, e->configuration->row, e->level, took, 0);
}

bool tally_log_collect(struct tally_stream *s)
{
	struct tally_guard *g = s->guard;
	struct tally_device *d = s->context->device;
	uint32_t done, stopped;
	uint64_t mailbox;

	/* This order: a launch posts the mailbox before it ends, so a `done` that counts it is
	 * never read together with a mailbox from before. */
	done = atomic_load_explicit(&g->words->done, memory_order_acquire);
	mailbox = atomic_load_explicit(&g->words->mailbox, memory_order_acquire);
	stopped = TALLY_MAILBOX_SEQUENCE(mailbox);
	while (g->left < g->entered) {
		struct tally_logged *e = &g->log[g->left % TALLY_LOG];

		if (before(done, e->sequence) || (mailbox && !before(e->sequence, stopped)))
			break;
		g->left++;
		atomic_fetch_sub_explicit(&d->in_flight, 1, memory_order_relaxed);
		atomic_fetch_sub(&d->queued_ns, e->predicted);
		leave(d, s, e);
	}
	/* Stopped, and everything behind it has skipped itself: the device is free of us. */
	if (mailbox && !g->noted && g->left != g->entered && !before(done, g->sequence))
		note_stop(d, s, &g->log[g->left % TALLY_LOG]);
	return mailbox != 0;
}

void tally_log_lose(struct tally_stream *s)
{
	struct tally_guard *g = s->guard;
	struct tally_device *d = s->context->device;

	g->lost = true;
	for (; g->left < g->entered; g->left++) {
		struct tally_logged *e = &g->log[g->left % TALLY_LOG];

		atomic_fetch_sub_explicit(&d->in_flight, 1, memory_order_relaxed);
		atomic_fetch_sub(&d->queued_ns, e->predicted);
		tally_sample_drop(e->sample);
		e->sample = NULL;
	}
	tally_changed(d);
}

void tally_log_resume(struct tally_stream *s)
{
	struct tally_guard *g = s->guard;
	struct tally_device *d = s->context->device;
	uint64_t mailbox = atomic_load_explicit(&g->words->mailbox, memory_order_acquire);
	struct tally_logged *first = &g->log[g->left % TALLY_LOG];
	CUcontext popped;
	CUresult result;
	bool ok = false;

	if (!mailbox || g->left == g->entered)
		return;
	if (!g->noted) {
		TALLY_COUNT(d, stops, 1);
		tally_report_trace(d->report, TALLY_TRACE_STOP, s->number,
				   first->configuration->row, 0);
	}
	g->noted = false;
	first->launch.lo = TALLY_MAILBOX_MAX(mailbox);
	/* A launch that had to stop says nothing about how long it takes. */
	for (uint64_t n = g->left; n < g->entered; n++) {
		tally_sample_drop(g->log[n % TALLY_LOG].sample);
		g->log[n % TALLY_LOG].sample = NULL;
	}
	tally_report_trace(d->report, TALLY_TRACE_RESUME, s->number, first->configuration->row,
			   first->launch.lo);
	/* Nothing can post between here and the write below: broken is still set. */
	atomic_store_explicit(&g->words->mailbox, 0, memory_order_release);
	if (!TALLY_DRIVER(cuCtxPushCurrent_v2)(s->context->handle)) {
		ok = !TALLY_DRIVER(cuStreamWriteValue32_v2)(s->handle, g->broken, 0, 0);
		for (uint64_t n = g->left; ok && n < g->entered; n++)
			ok = tally_log_enqueue(s, n, &result) == TALLY_ENQUEUED;
		TALLY_DRIVER(cuCtxPopCurrent_v2)(&popped);
	}
	if (ok)
		TALLY_COUNT(d, resumes, 1);
	else
		tally_log_lose(s);
	tally_changed(d);
}

bool tally_guard_pending(struct tally_stream *s)
{
	struct tally_guard *g = s->guard;

	if (!g || g->left == g->entered)
		return false;
	if (tally_log_collect(s) && !s->context->device->closed && tally_stream_mine(s))
		tally_log_resume(s);
	return g->left != g->entered;
}

void tally_guard_destroy(struct tally_stream *s)
{
	struct tally_guard *g = s->guard;

	if (!g)
		return;
	tally_log_lose(s);
	for (unsigned i = 0; i < TALLY_LOG; i++) {
		free(g->log[i].bytes);
		free(g->log[i].pointers);
		free(g->log[i].attributes);
		if (g->log[i].event)
			TALLY_DRIVER(cuEventDestroy_v2)(g->log[i].event);
	}
	if (!s->queue.late)
		tally_guard_memory_return(g);
	free(g);
	s->guard = NULL;
}
