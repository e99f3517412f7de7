/* SPDX-License-Identifier: Apache-2.0 */
/* Events: points in streams, with the time at which they were reached. */
#include <stdlib.h>
#include <time.h>

#include "backends/cpu/driver/capture.h"
#include "base/clock.h"

void event_hold(struct event *event)
{
	atomic_fetch_add(&event->references, 1);
}

void event_let_go(struct event *event)
{
	if (atomic_fetch_sub(&event->references, 1) != 1)
		return;
	captured_event_free(event->captured);
	ipc_event_free(event->shared, event->fd);
	free(event);
}

struct record {
	struct event *event;
	uint64_t number; /* of an event of several processes */
};

static bool run_record(struct operation *operation)
{
	struct record *record = operation->data;

	record->event->time = (int64_t)tally_now();
	if (record->event->shared)
		ipc_event_done(record->event, record->number);
	return true;
}

static void release_record(struct operation *operation)
{
	struct record *record = operation->data;

	if (!record->event)
		return;
	/* Nobody waits for a record that was given up. */
	if (record->event->shared)
		ipc_event_done(record->event, record->number);
	event_let_go(record->event);
}

static const struct operation_class record_class = {
	.name = "event record",
	.start = START_LOCKED,
	.always = true,
	.run = run_record,
	.release = release_record,
};

CUresult event_check(CUevent handle, struct event **event)
{
	REQUIRE_INIT();
	*event = (struct event *)handle;
	return handle_is(handle, HANDLE_EVENT) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult event_point(CUevent handle, struct point *point)
{
	struct event *event;
	CUresult result = event_check(handle, &event);

	if (result)
		return result;
	engine_lock();
	*point = event->point;
	engine_unlock();
	return CUDA_SUCCESS;
}

struct operation *record_operation(struct event *event)
{
	struct operation *operation = operation_new(&record_class, sizeof(struct record));

	if (!operation)
		return NULL;
	struct record *record = operation->data;
	record->event = event;
	if (event->shared)
		record->number = ipc_event_claim(event);
	event_hold(event);
	return operation;
}

void event_recorded_at(struct event *event, struct point point)
{
	event->point = point;
	event->recorded = true;
	captured_event_free(event->captured);
	event->captured = NULL;
}

CUresult event_record(struct event *event, struct stream *stream)
{
	struct operation *operation = record_operation(event);

	if (!operation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* One lock round: the event's point has to be this very operation. */
	engine_lock();
	CUresult result = stream->context->error;
	if (!result && !engine_submit(stream, operation, (struct point){0}))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result)
		event_recorded_at(event, stream_end(stream));
	engine_unlock();
	if (result)
		operation_free(operation);
	return result;
}

/* Takes its handle away. Lock held. */
static void end(struct event *event)
{
	handle_remove(event, HANDLE_EVENT);
	*event->link = event->next;
	if (event->next)
		event->next->link = event->link;
	event_let_go(event);
}

void events_remove_context(struct context *context)
{
	while (context->events)
		end(context->events);
}

CUresult event_new(CUevent *result, struct context *context, unsigned flags,
		   struct ipc_event *shared, int fd)
{
	struct event *event = calloc(1, sizeof *event);

	if (!event || !handle_add(event, HANDLE_EVENT)) {
		free(event);
		ipc_event_free(shared, fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	event->context = context;
	event->flags = flags;
	event->shared = shared;
	event->fd = fd;
	atomic_store(&event->references, 1);
	engine_lock();
	event->link = &context->events;
	event->next = context->events;
	if (event->next)
		event->next->link = &event->next;
	context->events = event;
	engine_unlock();
	*result = (CUevent)event;
	return CUDA_SUCCESS;
}

#define GONE_NS 10000000 /* how often a wait asks whether who recorded is still there */

struct shared_wait {
	struct event *event;
	uint64_t number, asked_ns;
};

static bool run_shared_wait(struct operation *operation)
{
	struct shared_wait *wait = operation->data;
	uint64_t now;

	if (atomic_load(&wait->event->shared->completed) >= wait->number)
		return true;
	now = tally_now();
	if (now - wait->asked_ns < GONE_NS)
		return false;
	wait->asked_ns = now;
	return ipc_event_over(wait->event, wait->number);
}

static void release_shared_wait(struct operation *operation)
{
	struct shared_wait *wait = operation->data;

	if (wait->event)
		event_let_go(wait->event);
}

static const struct operation_class shared_wait_class = {
	.name = "wait for another process",
	.start = START_WAIT,
	.run = run_shared_wait,
	.release = release_shared_wait,
};

CUresult event_wait_shared(struct event *event, struct stream *stream)
{
	uint64_t number = atomic_load(&event->shared->recorded);
	struct operation *operation;
	struct shared_wait *wait;

	if (atomic_load(&event->shared->completed) >= number)
		return CUDA_SUCCESS;
	operation = operation_new(&shared_wait_class, sizeof *wait);
	if (!operation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The program may destroy the event while the stream still waits. */
	event_hold(event);
	wait = operation->data;
	*wait = (struct shared_wait){event, number, 0};
	return stream_submit(stream, operation, (struct point){0});
}

/* Sleeps until the record is done: it may be another process's, which wakes nobody here. */
static void wait_shared(struct event *event)
{
	const uint64_t number = atomic_load(&event->shared->recorded);
	struct timespec pause = {.tv_nsec = 20000};

	while (!ipc_event_over(event, number)) {
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 1000000)
			pause.tv_nsec += pause.tv_nsec / 4;
	}
}

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	const unsigned known =
		CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
	struct ipc_event *shared = NULL;
	int fd = -1;
	struct context *context;
	CUresult result = context_current(&context, true);

	if (result)
		return result;
	if (!phEvent || Flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	/* cuda.h: such an event has no time */
	if (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_EVENT_INTERPROCESS && !(shared = ipc_event_new(&fd)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return event_new(phEvent, context, Flags, shared, fd);
}

CUresult cuEventDestroy_v2(CUevent hEvent)
{
	struct event *event;
	CUresult result = event_check(hEvent, &event);

	if (result)
		return result;
	engine_lock();
	end(event);
	engine_unlock();
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent hEvent)
{
	return cuEventDestroy_v2(hEvent);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct event *event;
	struct stream *stream;
	bool captured;
	CUresult result = event_check(hEvent, &event);

	if (!result && flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = capture_stream(hStream, &stream, &captured);
	if (result)
		return result;
	if (flags & CU_EVENT_RECORD_EXTERNAL) {
		struct work work = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .event = event};

		if (!captured)
			return CUDA_ERROR_INVALID_VALUE;
		event_hold(event);
		return capture_work(stream, &work);
	}
	return captured ? capture_record(stream, event) : event_record(event, stream);
}

CUresult cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return cuEventRecordWithFlags(hEvent, hStream, 0);
}

/* What may be asked about an event, and waited for. */
struct question {
	struct point point;
	struct context *context; /* whose error it has; NULL: never recorded */
	struct event *shared;	 /* itself, held, when other processes may have recorded it too */
};

static CUresult ask(CUevent handle, struct question *q)
{
	struct event *event;
	CUresult result = event_check(handle, &event);

	*q = (struct question){0};
	if (!result)
		result = capture_forbids_unsafe();
	if (result)
		return result;
	engine_lock();
	q->point = event->point;
	q->context = event->point.stream ? event->context : NULL;
	result = event->captured ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
	engine_unlock();
	if (!result && event->shared) {
		event_hold(event);
		q->shared = event;
	}
	return result;
}

static CUresult error_of(const struct question *q)
{
	return q->context ? context_error(q->context) : CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent hEvent)
{
	struct question q;
	CUresult result = ask(hEvent, &q);

	if (!result)
		result = error_of(&q);
	if (!result &&
	    (!point_reached(q.point) ||
	     (q.shared && !ipc_event_over(q.shared, atomic_load(&q.shared->shared->recorded)))))
		result = CUDA_ERROR_NOT_READY;
	if (q.shared)
		event_let_go(q.shared);
	return result;
}

CUresult cuEventSynchronize(CUevent hEvent)
{
	struct question q;
	CUresult result = ask(hEvent, &q);

	if (result)
		return result;
	engine_wait(q.point);
	if (q.shared) {
		wait_shared(q.shared);
		event_let_go(q.shared);
	}
	return error_of(&q);
}

CUresult cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	struct event *start, *end;
	CUresult result = event_check(hStart, &start);

	if (!result)
		result = event_check(hEnd, &end);
	if (result)
		return result;
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	engine_lock();
	if (start->captured || end->captured)
		result = CUDA_ERROR_CAPTURED_EVENT;
	else if (!start->recorded || !end->recorded)
		result = CUDA_ERROR_INVALID_HANDLE;
	else if (!point_reached(start->point) || !point_reached(end->point))
		result = CUDA_ERROR_NOT_READY;
	else
		*pMilliseconds = (float)((double)(end->time - start->time) / 1e6);
	engine_unlock();
	return result;
}

CUresult cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}
