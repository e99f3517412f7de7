/* SPDX-License-Identifier: Apache-2.0 */
/* The queue itself, and the thread that gives what is in it; see ahead.h. */
#include "backends/cuda/interpose/ahead.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/line.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"

/* Memory for the arguments: so much for each entry, and never less than some long ones need. */
#define BYTES_EACH  512
#define LEAST_BYTES 65536
/* At exit: who sees nothing given for so long goes on. */
#define LEAVING_NS	1000000000
#define LEAVING_LOOK_NS 200000

__thread unsigned tally_giving __attribute__((tls_model("initial-exec")));

/* Entries lie one behind the other in `memory`, which goes round. */
struct tally_ahead {
	pthread_mutex_t lock;
	pthread_cond_t work;  /* for the giver */
	pthread_cond_t moved; /* for those who wait until `given` has come to `wake_at` */
	bool giver_sleeps;
	uint64_t wake_at;

	unsigned char *memory; /* NULL until the first entry */
	size_t size, head, used;
	/* Of the last entry that was taken, that was given. Written under the lock. */
	_Atomic uint64_t taken, given;
	CUresult failure; /* that nobody was told; behind it nothing is given */
	bool started;
	bool over; /* the giver ends or there is none: nothing is taken any more */
};

bool tally_ahead_start(struct tally_device *d)
{
	struct tally_ahead *a = calloc(1, sizeof *a);

	if (!a)
		return false;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->work, NULL);
	pthread_cond_init(&a->moved, NULL);
	a->wake_at = UINT64_MAX;
	d->ahead = a;
	return true;
}

/* What the doors look at without the lock. Lock held. */
static void publish(struct tally_device *d)
{
	const struct tally_ahead *a = d->ahead;
	uint64_t waiting = atomic_load_explicit(&a->taken, memory_order_relaxed) -
			   atomic_load_explicit(&a->given, memory_order_relaxed);

	atomic_store(&d->ahead_waiting, (uint32_t)waiting + (a->failure != CUDA_SUCCESS));
	atomic_store_explicit(&d->report->counters[TALLY_COUNT_AHEAD_WAITING], waiting,
			      memory_order_relaxed);
}

/* --- waiting for the giver --- */

bool tally_ahead_given(const struct tally_device *d, uint64_t number)
{
	return atomic_load_explicit(&d->ahead->given, memory_order_acquire) >= number;
}

bool tally_ahead_waits(const struct tally_device *d)
{
	return d->ahead && atomic_load(&d->ahead->given) != atomic_load(&d->ahead->taken);
}

/* Until entry `number` has been given. Lock held on entry and return, not between. */
static void wait_given(struct tally_ahead *a, uint64_t number)
{
	while (a->given < number && !a->over) {
		if (number < a->wake_at)
			a->wake_at = number;
		pthread_cond_wait(&a->moved, &a->lock);
	}
}

void tally_ahead_flush_to(struct tally_device *d, uint64_t number)
{
	struct tally_ahead *a = d->ahead;

	if (!a || tally_giving || tally_ahead_given(d, number))
		return;
	pthread_mutex_lock(&a->lock);
	wait_given(a, number);
	pthread_mutex_unlock(&a->lock);
}

void tally_ahead_flush(struct tally_device *d)
{
	if (tally_ahead_busy(d))
		tally_ahead_flush_to(d, atomic_load(&d->ahead->taken));
}

void tally_ahead_flush_all(void)
{
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next)
		tally_ahead_flush(d);
}

/* The last entry that comes before what the stream is given now: its own, and by the legacy
 * stream's rule. What it waits for by an event is in front of its own wait. */
static uint64_t last_before(const struct tally_stream *s)
{
	uint64_t own = atomic_load(&s->ahead), implied = 0;

	if (s->kind == TALLY_STREAM_LEGACY)
		implied = atomic_load(&s->context->ahead_blocking);
	else if (s->kind != TALLY_STREAM_NONBLOCKING)
		implied = atomic_load(&s->context->ahead_legacy);
	return own > implied ? own : implied;
}

bool tally_ahead_behind(const struct tally_stream *s)
{
	struct tally_device *d = s->context->device;

	return tally_ahead_busy(d) && !tally_ahead_given(d, last_before(s));
}

void tally_ahead_flush_stream(struct tally_stream *s)
{
	if (tally_ahead_busy(s->context->device))
		tally_ahead_flush_to(s->context->device, last_before(s));
}

static bool failed(struct tally_device *d, CUresult *result)
{
	struct tally_ahead *a = d->ahead;
	bool found;

	if (!a || !tally_ahead_busy(d))
		return false;
	pthread_mutex_lock(&a->lock);
	found = a->failure != CUDA_SUCCESS;
	if (found) {
		*result = a->failure;
		a->failure = CUDA_SUCCESS;
		publish(d);
	}
	pthread_mutex_unlock(&a->lock);
	return found;
}

bool tally_ahead_failed(struct tally_device *device, CUresult *result)
{
	if (tally_giving)
		return false;
	if (device)
		return failed(device, result);
	for (struct tally_device *d = atomic_load(&tally_process.devices); d; d = d->next)
		if (failed(d, result))
			return true;
	return false;
}

/* --- giving --- */

static CUresult give(const struct tally_entry *e)
{
	CUcontext popped;
	CUresult result;

	if (!e->stream)
		return e->give(e);
	result = TALLY_DRIVER(cuCtxPushCurrent_v2)(e->stream->context->handle);
	if (result)
		return result;
	result = e->give(e);
	TALLY_DRIVER(cuCtxPopCurrent_v2)(&popped);
	return result;
}

/* The oldest entry; there is one. Lock held. */
static struct tally_entry *oldest(struct tally_ahead *a)
{
	struct tally_entry *e = (struct tally_entry *)(a->memory + a->head);

	if (e->give)
		return e;
	a->used -= e->size;
	a->head = 0;
	return (struct tally_entry *)a->memory;
}

/* The oldest entry has been given. Lock held. */
static void leave(struct tally_device *d, const struct tally_entry *e, CUresult result)
{
	struct tally_ahead *a = d->ahead;

	a->used -= e->size;
	/* An empty queue begins at the beginning: short ones use little memory. */
	a->head = a->used ? (a->head + e->size) % a->size : 0;
	if (result && !a->failure)
		a->failure = result;
	atomic_fetch_add_explicit(&a->given, 1, memory_order_release);
	publish(d);
	if (a->given >= a->wake_at) {
		a->wake_at = UINT64_MAX;
		pthread_cond_broadcast(&a->moved);
	}
}

/* Until there is an entry. False: the queue is over. Lock held on entry and return. */
static bool wait_for_work(struct tally_ahead *a)
{
	a->giver_sleeps = true;
	while (a->given == a->taken && !a->over)
		pthread_cond_wait(&a->work, &a->lock);
	a->giver_sleeps = false;
	return !a->over;
}

static void *giver(void *argument)
{
	struct tally_device *d = argument;
	struct tally_ahead *a = d->ahead;
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	prctl(PR_SET_NAME, "tally-ahead");
	tally_giving = TALLY_GIVING_ENTRY;
	TALLY_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
	pthread_mutex_lock(&a->lock);
	while (wait_for_work(a)) {
		struct tally_entry *e = oldest(a);
		bool dropped = a->failure && !e->always;
		CUresult result = CUDA_SUCCESS;

		pthread_mutex_unlock(&a->lock);
		if (!dropped)
			result = give(e);
		pthread_mutex_lock(&a->lock);
		leave(d, e, result);
	}
	pthread_cond_broadcast(&a->moved);
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

void tally_ahead_leave(struct tally_device *d)
{
	struct tally_ahead *a = d->ahead;
	uint64_t given = 0, moved = tally_now();

	if (!a)
		return;
	/* The doors pass straight through now. What cannot go on (the driver waits for the thread
	 * that ends the process) is left. */
	while (!tally_giving && tally_ahead_waits(d) && tally_now() - moved < LEAVING_NS) {
		if (atomic_load(&a->given) != given) {
			given = atomic_load(&a->given);
			moved = tally_now();
		}
		nanosleep(&(struct timespec){.tv_nsec = LEAVING_LOOK_NS}, NULL);
	}
	pthread_mutex_lock(&a->lock);
	a->over = true;
	pthread_cond_signal(&a->work);
	pthread_cond_broadcast(&a->moved);
	pthread_mutex_unlock(&a->lock);
}

/* --- taking --- */

bool tally_ahead_wanted(struct tally_stream *s, uint64_t ns, bool gated)
{
	struct tally_device *d = s->context->device;

	if (atomic_load_explicit(&tally_process.captures, memory_order_relaxed))
		return false;
	/* Beside what waits for another stream's turn, it gets its own turn in line. */
	if (tally_ahead_busy(d))
		return tally_ahead_behind(s);
	return !tally_line_empty(d) || (gated && tally_gate_closed(d)) ||
	       !tally_queue_has_room(d, ns) || tally_guard_unconfirmed(s);
}

/* The first entry brings the memory and the thread. Lock held. */
static bool ready(struct tally_device *d)
{
	struct tally_ahead *a = d->ahead;

	if (a->started)
		return !a->over;
	a->started = true;
	a->size = (size_t)tally_process.config.ahead * BYTES_EACH;
	if (a->size < LEAST_BYTES)
		a->size = LEAST_BYTES;
	a->memory = malloc(a->size);
	a->over = !a->memory || !tally_thread_start(giver, d, 2 * 1024 * 1024);
	return !a->over;
}

/* `size` bytes in one piece behind the last entry, or NULL: there is no room. Lock held. */
static struct tally_entry *place(struct tally_ahead *a, size_t size)
{
	size_t tail = a->used ? (a->head + a->used) % a->size : 0, skipped = 0;
	struct tally_entry *filler;

	if (tail + size > a->size)
		skipped = a->size - tail;
	if (a->used + skipped + size > a->size || a->taken - a->given >= tally_process.config.ahead)
		return NULL;
	if (skipped) {
		filler = (struct tally_entry *)(a->memory + tail);
		filler->size = skipped;
		filler->give = NULL;
		a->used += skipped;
		tail = 0;
	}
	return (struct tally_entry *)(a->memory + tail);
}

/* The program goes on only when some room is there: not from entry to entry. */
static void wait_for_room(struct tally_device *d)
{
	struct tally_ahead *a = d->ahead;
	uint64_t began = tally_now();

	wait_given(a, a->given + (a->taken - a->given + 7) / 8);
	tally_report_count(d->report, TALLY_COUNT_DEPTH_WAITS, 1);
	tally_report_count(d->report, TALLY_COUNT_DEPTH_NS, tally_now() - began);
}

/* Whoever begins a capture counts it first and then waits for what has been taken. Lock held. */
static bool may_take(struct tally_device *d)
{
	return ready(d) && !atomic_load(&tally_process.captures) &&
	       atomic_load(&tally_mode) == TALLY_ON;
}

struct tally_entry *tally_ahead_begin(struct tally_device *d, struct tally_stream *s, size_t bytes)
{
	size_t size = (sizeof(struct tally_entry) + bytes + 15) & ~(size_t)15;
	struct tally_ahead *a = d->ahead;
	struct tally_entry *e = NULL;

	if (!a || bytes > TALLY_AHEAD_MOST_BYTES || (s && s->kind == TALLY_STREAM_PER_THREAD))
		return NULL;
	pthread_mutex_lock(&a->lock);
	while (may_take(d) && !(e = place(a, size)))
		wait_for_room(d);
	if (!e) {
		pthread_mutex_unlock(&a->lock);
		return NULL;
	}
	e->size = size;
	e->stream = s;
	e->always = false;
	return e;
}

uint64_t tally_ahead_number(const struct tally_device *d)
{
	return d->ahead->taken + 1;
}

void tally_ahead_commit(struct tally_device *d, struct tally_entry *e,
			CUresult (*give_entry)(const struct tally_entry *entry))
{
	struct tally_stream *s = e->stream;
	struct tally_ahead *a = d->ahead;
	uint64_t number = tally_ahead_number(d);

	e->give = give_entry;
	a->used += e->size;
	if (s)
		atomic_store(&s->ahead, number);
	if (s && s->kind != TALLY_STREAM_NONBLOCKING)
		atomic_store(s->kind == TALLY_STREAM_LEGACY ? &s->context->ahead_legacy
							    : &s->context->ahead_blocking,
			     number);
	atomic_store(&a->taken, number);
	publish(d);
	if (a->giver_sleeps)
		pthread_cond_signal(&a->work);
	pthread_mutex_unlock(&a->lock);
	tally_report_count(d->report, TALLY_COUNT_AHEAD, 1);
	/* It may wait for long, while nothing else is on the device: the program has work. */
	tally_activity_waiting(d);
}
