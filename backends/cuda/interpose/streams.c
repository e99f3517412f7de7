/* SPDX-License-Identifier: Apache-2.0 */
/* The records of contexts and streams, made when the program first uses one. */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/state.h"

__thread struct tally_memory tally_memories[TALLY_REMEMBERED]
	__attribute__((tls_model("initial-exec")));
_Atomic uint32_t tally_memory_age = 1;

void tally_streams_forked(void)
{
	atomic_fetch_add(&tally_memory_age, 1);
}

static CUcontext current(void)
{
	CUcontext context = NULL;

	return TALLY_DRIVER(cuCtxGetCurrent)(&context) ? NULL : context;
}

void tally_context_seen(CUcontext handle)
{
	CUcontext first = NULL;

	if (!atomic_compare_exchange_strong(&tally_process.first_context, &first, handle)) {
		if (first != handle)
			atomic_store(&tally_process.only_context, NULL);
	} else if (!tally_process.config.guards) {
		atomic_store(&tally_process.only_context, handle);
	}
}

static struct tally_context *find_context(struct tally_device *d, CUcontext handle)
{
	struct tally_context *c = d->contexts;

	while (c && c->handle != handle)
		c = c->next;
	return c;
}

/* The record of `handle`, which is the current context; its device's lock is held on return. */
static struct tally_context *context_of(CUcontext handle)
{
	struct tally_context *c;
	struct tally_device *d;
	CUdevice ordinal;

	if (!handle || TALLY_DRIVER(cuCtxGetDevice)(&ordinal))
		return NULL;
	tally_context_seen(handle);
	d = tally_device_of(ordinal);
	if (!d)
		return NULL;
	tally_lock(d);
	c = find_context(d, handle);
	if (c)
		return c;
	c = calloc(1, sizeof *c);
	if (!c) {
		tally_unlock(d);
		return NULL;
	}
	c->handle = handle;
	c->device = d;
	c->next = d->contexts;
	d->contexts = c;
	return c;
}

struct tally_context *tally_context_current(void)
{
	struct tally_context *c = context_of(current());

	if (c)
		tally_unlock(c->device);
	return c;
}

static struct tally_stream *find_stream(struct tally_context *c, CUstream handle)
{
	struct tally_stream *s = c->streams;

	while (s && (s->handle != handle || (s->kind == TALLY_STREAM_PER_THREAD &&
					     (s->ended || s->owner != tally_thread()))))
		s = s->next;
	return s;
}

struct tally_stream *tally_stream_legacy(struct tally_context *context)
{
	return find_stream(context, CU_STREAM_LEGACY);
}

/* Gives back what ended threads left: programs make and end threads for as long as they run. A
 * thread does not wait for its stream when it ends, so this is for the next one. Where the driver
 * failed nobody knows whether it still writes to the stream's words. Device lock held. */
static void forget_ended(struct tally_context *c)
{
	struct tally_stream *s = c->streams, *next;

	tally_queue_look(c->device);
	for (; s; s = next) {
		const struct tally_guard *g = s->guard;

		next = s->next;
		if (!s->ended || s->waiters || s->queue.count || s->queue.lost ||
		    atomic_load(&s->queue.open_ns) || (g && (g->lost || g->left != g->entered)))
			continue;
		/* Programs without guards know of their work by the activity alone. */
		if (tally_process.config.guards ||
		    atomic_load(&s->finished) == atomic_load(&s->announced))
			tally_stream_forget(s);
	}
}

void tally_streams_thread_ended(void)
{
	/* Whatever runs after this and launches is a thread of its own to us. */
	memset(tally_memories, 0, sizeof tally_memories);
	if (atomic_load(&tally_mode) != TALLY_ON)
		return;
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next) {
		tally_lock(d);
		for (struct tally_context *c = d->contexts; c; c = c->next)
			for (struct tally_stream *s = c->streams; s; s = s->next)
				s->ended |= s->kind == TALLY_STREAM_PER_THREAD &&
					    s->owner == tally_thread();
		tally_unlock(d);
	}
}

static struct tally_stream *create_stream(struct tally_context *c, CUstream handle)
{
	static _Atomic uint32_t last_number;
	struct tally_stream *s = calloc(1, sizeof *s);
	unsigned flags = 0;

	if (!s)
		return NULL;
	if (handle == CU_STREAM_PER_THREAD)
		forget_ended(c);
	s->handle = handle;
	s->context = c;
	s->number = ++last_number;
	if (handle == CU_STREAM_LEGACY) {
		s->kind = TALLY_STREAM_LEGACY;
	} else if (handle == CU_STREAM_PER_THREAD) {
		s->kind = TALLY_STREAM_PER_THREAD;
		s->owner = tally_thread();
	} else {
		TALLY_DRIVER(cuStreamGetFlags)(handle, &flags);
		s->kind = flags & CU_STREAM_NON_BLOCKING ? TALLY_STREAM_NONBLOCKING
							 : TALLY_STREAM_BLOCKING;
	}
	s->next = c->streams;
	c->streams = s;
	return s;
}

/* Makes `wanted` current while the record of its context is looked up. */
static struct tally_context *context_of_stream(CUstream handle, CUcontext now)
{
	struct tally_context *c;
	CUcontext wanted = NULL;

	if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
		return context_of(now);
	if (TALLY_DRIVER(cuStreamGetCtx)(handle, &wanted) || !wanted)
		return NULL;
	if (wanted == now)
		return context_of(now);
	if (TALLY_DRIVER(cuCtxPushCurrent_v2)(wanted))
		return NULL;
	c = context_of(wanted);
	TALLY_DRIVER(cuCtxPopCurrent_v2)(&wanted);
	return c;
}

static bool captures_go_on(void)
{
	return atomic_load_explicit(&tally_process.captures, memory_order_relaxed) != 0;
}

struct tally_stream *tally_stream_look_up(CUstream handle)
{
	bool special = handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
	uint32_t age = atomic_load_explicit(&tally_memory_age, memory_order_acquire);
	CUcontext now = current();
	struct tally_memory *m =
		&tally_memories[((uintptr_t)handle >> 4 ^ (uintptr_t)handle >> 12) %
				TALLY_REMEMBERED];
	struct tally_context *c;
	struct tally_stream *s;

	if (m->handle == handle && m->context == (special ? now : NULL) && m->age == age &&
	    m->stream)
		return m->stream;
	c = context_of_stream(handle, now);
	if (!c)
		return NULL;
	s = find_stream(c, handle);
	/* A stream that is met in its capture is left alone: the driver's answers to questions
	 * about it (cuStreamGetFlags) end the capture. */
	if (!s && !(captures_go_on() && tally_stream_captured(handle)))
		s = create_stream(c, handle);
	tally_unlock(c->device);
	if (!s)
		return NULL;
	*m = (struct tally_memory){handle, special ? now : NULL, age, s};
	return s;
}

static void destroy_events(struct tally_stream *stream)
{
	for (unsigned i = 0; i < TALLY_MARKS; i++)
		if (stream->queue.marks[i].event)
			TALLY_DRIVER(cuEventDestroy_v2)(stream->queue.marks[i].event);
}

void tally_stream_forget(struct tally_stream *stream)
{
	struct tally_context *c = stream->context;

	for (struct tally_stream **p = &c->streams; *p; p = &(*p)->next) {
		if (*p == stream) {
			*p = stream->next;
			break;
		}
	}
	atomic_fetch_add(&tally_memory_age, 1);
	c->device->launches += atomic_load(&stream->launches);
	while (stream->waiters)
		tally_wait_changed(c->device);
	tally_queue_forget(stream);
	destroy_events(stream);
	tally_guard_destroy(stream);
	free(stream);
}

void tally_context_forget(struct tally_context *context)
{
	struct tally_device *d = context->device;

	for (struct tally_context **p = &d->contexts; *p; p = &(*p)->next) {
		if (*p == context) {
			*p = context->next;
			break;
		}
	}
	while (context->streams)
		tally_stream_forget(context->streams);
	tally_guard_memory_forget(context);
	free(context);
}

bool tally_stream_captured(CUstream handle)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	/* Asking is itself forbidden for the legacy stream during some captures: then the answer
	 * is an error, and the program's own call gets the same one. */
	return TALLY_DRIVER(cuStreamIsCapturing)(handle, &status) ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}
