/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's queues: see engine.h. */
#include "backends/cpu/driver/engine.h"
#include "backends/cpu/driver/exports.h"
#include "base/futex.h"
#include "base/number.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

struct engine engine = {
	.lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
	.ready_level = -1,
};

static unsigned count_workers(void)
{
	static atomic_bool said;
	const char *text = getenv("TALLY_CPU_WORKERS");
	unsigned long given;
	cpu_set_t set;

	if (tally_parse_whole(text, 1, 1024, &given))
		return (unsigned)given;
	if (text && *text)
		driver_complain(&said,
				"TALLY_CPU_WORKERS is \"%s\", not a whole number from 1 to 1024; "
				"the default is used",
				text);
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		return (unsigned)CPU_COUNT(&set);
	long online = sysconf(_SC_NPROCESSORS_ONLN); /* more CPUs than the set can hold */
	return online > 0 ? (unsigned)online : 1;
}

void engine_start(void)
{
	unsigned count = count_workers();

	engine.slots = calloc(count, sizeof *engine.slots);
	engine.free_slots = calloc(count, sizeof *engine.free_slots);
	if (!engine.slots || !engine.free_slots)
		count = 0; /* launches will say out of memory */
	for (unsigned i = 0; i < count; i++)
		engine.free_slots[i] = count - 1 - i;
	engine.free_slot_count = count;
	engine.workers = count;
	tally_cpu_set_worker_count(count ? count : 1);
	engine_watch_forks();
}

void engine_lock(void)
{
	pthread_mutex_lock(&engine.lock);
}

void engine_unlock(void)
{
	unsigned workers = engine.wake_workers;
	bool host = engine.wake_host, poll = engine.wake_poll;
	struct stream *streams = engine.wake_streams;
	bool start = workers && !engine.sleepers && engine.threads < engine.workers;
	bool start_host = host && !engine.host_thread, start_poll = poll && !engine.poll_thread;

	engine.wake_workers = 0;
	engine.wake_host = engine.wake_poll = false;
	/* Streams are never freed: a wake that comes late is only a wake too many. At most one is
	 * kept; the rest are woken by whoever made them (see stream_wake). */
	engine.wake_streams = NULL;
	if (start)
		engine.threads++;
	engine.host_thread |= start_host;
	engine.poll_thread |= start_poll;
	pthread_mutex_unlock(&engine.lock);

	if (start)
		worker_start_thread();
	else if (workers)
		tally_futex_wake(&engine.pulse, (int)workers, TALLY_FUTEX_PRIVATE);
	if (start_host)
		host_start_thread();
	else if (host)
		tally_futex_wake(&engine.host_pulse, 1, TALLY_FUTEX_PRIVATE);
	if (start_poll)
		poll_start_thread();
	else if (poll)
		tally_futex_wake(&engine.poll_pulse, 1, TALLY_FUTEX_PRIVATE);
	if (streams)
		tally_futex_wake((_Atomic uint32_t *)&streams->completed, INT32_MAX,
				 TALLY_FUTEX_PRIVATE);
}

struct stream *stream_new(struct context *context, unsigned flags, int level)
{
	static uint64_t ids;
	struct stream *stream = engine.free_streams;

	if (stream) {
		engine.free_streams = stream->next;
	} else {
		stream = calloc(1, sizeof *stream);
		if (!stream)
			return NULL;
	}
	if (!handle_add(stream, HANDLE_STREAM)) {
		stream->next = engine.free_streams;
		engine.free_streams = stream;
		return NULL;
	}
	stream->context = context;
	stream->flags = flags;
	stream->level = level;
	stream->destroyed = stream->legacy = false;
	stream->id = ++ids;
	stream->next = NULL;
	stream->link = NULL;
	return stream;
}

static void reuse_if_empty(struct stream *stream)
{
	if (!stream->destroyed || stream->head)
		return;
	stream->destroyed = false;
	stream->context = NULL;
	stream->next = engine.free_streams;
	engine.free_streams = stream;
}

void stream_discard(struct stream *stream)
{
	handle_remove(stream, HANDLE_STREAM);
	stream->destroyed = true;
	reuse_if_empty(stream);
}

struct point stream_end(struct stream *stream)
{
	return (struct point){stream, stream->submitted};
}

bool point_reached(struct point point)
{
	return !point.stream || atomic_load_explicit(&point.stream->completed,
						     memory_order_acquire) >= point.sequence;
}

static void look_at(struct stream *stream)
{
	if (stream->queued)
		return;
	stream->queued = true;
	stream->next_queued = engine.look;
	engine.look = stream;
}

static void stream_wake(struct stream *stream)
{
	if (!stream->sleepers || atomic_load(&stream->completed) < stream->wake_at)
		return;
	stream->wake_at = UINT64_MAX;
	if (!engine.wake_streams)
		engine.wake_streams = stream;
	else if (engine.wake_streams != stream)
		tally_futex_wake((_Atomic uint32_t *)&stream->completed, INT32_MAX,
				 TALLY_FUTEX_PRIVATE);
}

static void gang_finished(void);

void operation_finished(struct operation *operation)
{
	struct stream *stream = operation->stream;

	if (engine.gang == operation)
		gang_finished();
	engine.working -= operation_works(operation);
	stream->running = false;
	stream->head = operation->next;
	if (!stream->head)
		stream->tail = NULL;
	atomic_store_explicit(&stream->completed, operation->sequence, memory_order_seq_cst);
	/* Everybody who waits for a point of this stream looks again; whose point is not reached
	 * comes back to the list. */
	struct operation *waiter = stream->waiters;
	stream->waiters = NULL;
	while (waiter) {
		struct operation *next = waiter->next_waiter;
		waiter->next_waiter = NULL;
		waiter->waits = false;
		look_at(waiter->stream);
		waiter = next;
	}
	stream_wake(stream);
	operation_recycle(operation);
	if (stream->head)
		look_at(stream);
	else
		reuse_if_empty(stream);
	if (engine.waiting)
		engine_recheck_waits();
}

/* Whether all dependencies are met; if not the operation waits on one of them, in one list once,
 * however often somebody looks. */
static bool dependencies_met(struct operation *operation)
{
	if (operation->waits)
		return false;
	while (operation->dependency_count) {
		struct point point = operation->dependencies[operation->dependency_count - 1];
		if (!point_reached(point)) {
			operation->next_waiter = point.stream->waiters;
			operation->waits = true;
			point.stream->waiters = operation;
			return false;
		}
		operation->dependency_count--;
	}
	return true;
}

void engine_recheck_waits(void)
{
	struct operation **link = &engine.waiting;

	while (*link) {
		struct operation *operation = *link;
		if (!operation->class->run(operation) &&
		    !context_failed(operation->stream->context)) {
			link = &operation->next_waiter;
			continue;
		}
		*link = operation->next_waiter;
		operation->next_waiter = NULL;
		/* Not operation_finished(): it would come back here. */
		operation->over = true;
		operation->stream->running = false;
		look_at(operation->stream);
	}
}

static void start_wait(struct operation *operation)
{
	operation->next_waiter = engine.waiting;
	engine.waiting = operation;
	engine.wake_poll = true;
	atomic_fetch_add(&engine.poll_pulse, 1);
}

static void start_host(struct operation *operation)
{
	operation->next_waiter = NULL;
	if (engine.host)
		engine.host_last->next_waiter = operation;
	else
		engine.host = operation;
	engine.host_last = operation;
	engine.wake_host = true;
	atomic_fetch_add(&engine.host_pulse, 1);
}

static void gang_ready(struct operation *operation)
{
	operation->job.list_next = NULL;
	if (!engine.gang) {
		engine.gang = operation;
		job_ready(operation);
	} else if (engine.gangs) {
		engine.gangs_last->job.list_next = operation;
		engine.gangs_last = operation;
	} else {
		engine.gangs = engine.gangs_last = operation;
	}
}

static void gang_finished(void)
{
	struct operation *next = engine.gangs;

	engine.gang = NULL;
	if (!next)
		return;
	engine.gangs = next->job.list_next;
	gang_ready(next);
}

/* Starts the head of `stream`, and the next when that is over at once, and so on. */
static void start_head(struct stream *stream)
{
	struct operation *operation;

	while (!stream->running && (operation = stream->head) && dependencies_met(operation)) {
		const struct operation_class *class = operation->class;
		bool skip = context_failed(stream->context) && !class->always;
		bool over = true;

		if (engine.holders) {
			look_at(stream);
			return;
		}
		stream->running = true;
		engine.working += operation_works(operation);
		if (skip || operation->over) {
			;
		} else if (class->start == START_LOCKED) {
			class->run(operation);
		} else if (class->start == START_UNLOCKED) {
			engine_unlock();
			class->run(operation);
			engine_lock();
		} else if (class->start == START_JOB) {
			over = atomic_load(&operation->job.next) >= operation->job.total;
			if (!over && operation->job.gang)
				gang_ready(operation);
			else if (!over)
				job_ready(operation);
		} else if (class->start == START_HOST) {
			over = false;
			start_host(operation);
		} else {
			over = class->run(operation);
			if (!over)
				start_wait(operation);
		}
		if (over)
			operation_finished(operation);
	}
}

void engine_look(void)
{
	struct stream *stream;

	while (!engine.holders && (stream = engine.look)) {
		engine.look = stream->next_queued;
		stream->queued = false;
		start_head(stream);
	}
}

/* How many points the null stream's rules add to an operation of `stream` (and which). */
static unsigned implicit_points(struct stream *stream, struct stream *legacy, struct stream *all,
				struct point *points)
{
	unsigned count = 0;

	if (stream->flags & 1) /* CU_STREAM_NON_BLOCKING */
		return 0;
	if (!stream->legacy) {
		if (!legacy || !legacy->head)
			return 0;
		if (points)
			points[0] = stream_end(legacy);
		return 1;
	}
	for (struct stream *other = all; other; other = other->next) {
		if (other == stream || (other->flags & 1) || !other->head)
			continue;
		if (points)
			points[count] = stream_end(other);
		count++;
	}
	return count;
}

bool engine_reserve(struct operation *operation, unsigned count)
{
	if (count <= 1)
		return true;
	if (operation->reserved)
		free(operation->dependencies);
	operation->dependencies = malloc(count * sizeof *operation->dependencies);
	operation->reserved = operation->dependencies ? count : 0;
	return operation->dependencies;
}

bool engine_queue(struct stream *stream, struct operation *operation, const struct point *after,
		  unsigned count)
{
	struct stream *legacy, *all;
	unsigned explicit = 0;

	context_streams(stream->context, &legacy, &all);
	for (unsigned i = 0; i < count; i++)
		explicit +=
			after[i].stream && after[i].stream != stream && !point_reached(after[i]);
	unsigned total = explicit;
	if (!operation->follows)
		total += implicit_points(stream, legacy, all, NULL);
	if (!operation->reserved)
		operation->dependencies = &operation->one;
	if (total > 1 && total > operation->reserved && !engine_reserve(operation, total)) {
		operation->dependencies = &operation->one;
		return false;
	}
	operation->dependency_count = 0;
	if (!operation->follows)
		operation->dependency_count =
			implicit_points(stream, legacy, all, operation->dependencies);
	for (unsigned i = 0; i < count; i++)
		if (after[i].stream && after[i].stream != stream && !point_reached(after[i]))
			operation->dependencies[operation->dependency_count++] = after[i];
	operation->stream = stream;
	operation->sequence = ++stream->submitted;
	if (stream->tail)
		stream->tail->next = operation;
	else
		stream->head = operation;
	stream->tail = operation;
	operation->next = NULL;
	if (stream->head == operation)
		look_at(stream);
	return true;
}

bool engine_submit(struct stream *stream, struct operation *operation, struct point after)
{
	if (!engine_queue(stream, operation, &after, 1))
		return false;
	engine_look();
	return true;
}
