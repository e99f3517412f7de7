/* SPDX-License-Identifier: Apache-2.0 */
/* Streams as the driver API has them: handles, the null stream, per-thread streams, waiting. */
#include <pthread.h>
#include <stdlib.h>

#include "backends/cpu/driver/capture.h"

/* As many operations as a stream holds before the submitting thread has to wait (GPUs: 1,024). */
#define DEPTH 8192

/* A new stream of `context`, in its list. Lock held. */
static struct stream *add(struct context *context, unsigned flags, int level)
{
	struct stream *stream = stream_new(context, flags, level);

	if (!stream)
		return NULL;
	stream->next = context->streams;
	stream->link = &context->streams;
	if (stream->next)
		stream->next->link = &stream->next;
	context->streams = stream;
	return stream;
}

void stream_drop(struct stream *stream)
{
	capture_lose_stream(stream);
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
	stream_discard(stream);
}

struct stream *stream_add(struct context *context, unsigned flags, int level)
{
	engine_lock();
	struct stream *stream = add(context, flags, level);
	engine_unlock();
	return stream;
}

void stream_remove(struct stream *stream)
{
	engine_lock();
	stream_drop(stream);
	engine_unlock();
}

static struct stream *legacy_stream(struct context *context)
{
	struct stream *stream;

	engine_lock();
	stream = context->legacy;
	if (!stream) {
		stream = add(context, 0, 0);
		if (stream)
			stream->legacy = true;
		context->legacy = stream;
	}
	engine_unlock();
	return stream;
}

/* When a thread ends its own streams go, once their work is done. */
static void release_thread(void *data)
{
	struct driver_thread *thread = data;

	for (struct own_stream *own = thread->own, *next; own; own = next) {
		next = own->next;
		engine_lock();
		if (own->context->id == own->context_id)
			stream_drop(own->stream);
		engine_unlock();
		free(own);
	}
	thread->own = NULL;
	operations_give_back(thread->operations);
	thread->operations = NULL;
	/* A later destructor of the application may call us again. */
	thread->registered = false;
}

static pthread_key_t thread_key;

static void make_thread_key(void)
{
	pthread_key_create(&thread_key, release_thread);
}

void driver_thread_register(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct driver_thread *thread = &driver_thread;

	if (thread->registered)
		return;
	pthread_once(&once, make_thread_key);
	thread->registered = pthread_setspecific(thread_key, thread) == 0;
}

static struct stream *own_stream(struct context *context)
{
	struct driver_thread *thread = &driver_thread;
	struct own_stream *own;

	for (own = thread->own; own; own = own->next)
		if (own->context == context && own->context_id == context->id)
			return own->stream;
	own = malloc(sizeof *own);
	if (!own)
		return NULL;
	driver_thread_register();
	engine_lock();
	own->context = context;
	own->context_id = context->id;
	own->stream = add(context, 0, 0);
	engine_unlock();
	if (!own->stream) {
		free(own);
		return NULL;
	}
	own->next = thread->own;
	thread->own = own;
	return own->stream;
}

CUresult stream_resolve(CUstream handle, struct stream **stream)
{
	struct context *context;
	bool own = handle == CU_STREAM_PER_THREAD || (!handle && driver_thread.null_is_own);

	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
		REQUIRE_INIT();
		*stream = (struct stream *)handle;
		return handle_is(handle, HANDLE_STREAM) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	CUresult result = context_current(&context, false);
	if (result)
		return result;
	*stream = own ? own_stream(context)
		      : (context->legacy ? context->legacy : legacy_stream(context));
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Lock held; given back while waiting. */
static void make_room(struct stream *stream, uint64_t depth)
{
	struct point half = {stream, stream->submitted - depth / 2};

	if (stream->submitted - atomic_load(&stream->completed) <= depth)
		return;
	engine_unlock();
	engine_wait(half);
	engine_lock();
}

void stream_make_room(struct stream *stream, uint64_t depth)
{
	engine_lock();
	make_room(stream, depth);
	engine_unlock();
}

CUresult stream_submit(struct stream *stream, struct operation *operation, struct point after)
{
	CUresult result = CUDA_SUCCESS;

	engine_lock();
	make_room(stream, DEPTH);
	if (context_failed(stream->context) && !operation->class->always)
		result = stream->context->error;
	else if (!engine_submit(stream, operation, after))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	engine_unlock();
	if (result)
		operation_free(operation);
	return result;
}

static bool run_nothing(struct operation *operation)
{
	(void)operation;
	return true;
}

static const struct operation_class marker_class = {
	.name = "marker",
	.start = START_LOCKED,
	.always = true,
	.run = run_nothing,
};

struct operation *marker_operation(void)
{
	return operation_new(&marker_class, 0);
}

CUresult stream_wait(struct stream *stream, struct point point)
{
	struct operation *marker = marker_operation();

	return marker ? stream_submit(stream, marker, point) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether blocking streams have work that the null stream has not been told to wait for. */
static bool others_busy(const struct stream *legacy)
{
	bool busy = false;

	engine_lock();
	for (struct stream *s = legacy->context->streams; s && !busy; s = s->next)
		busy = s != legacy && !(s->flags & CU_STREAM_NON_BLOCKING) && s->head;
	engine_unlock();
	return busy;
}

CUresult stream_drain(struct stream *stream)
{
	struct context *context = stream->context;

	/* Work of the null stream comes after what blocking streams have: a marker in it does. */
	if (stream->legacy && others_busy(stream)) {
		struct operation *marker = marker_operation();
		CUresult result = marker ? stream_submit(stream, marker, (struct point){0})
					 : CUDA_ERROR_OUT_OF_MEMORY;
		if (result)
			return result;
	}
	engine_lock();
	struct point end = stream_end(stream);
	engine_unlock();
	engine_wait(end);
	return context_error(context);
}
