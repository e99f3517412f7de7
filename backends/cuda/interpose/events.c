/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's events, as far as the run-ahead queue (ahead.h) has to know them: which entries of
 * it name each, so that who asks for one gets the answer that is true, and that an event exists and
 * belongs to the stream's context, so that recording it cannot fail.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"

struct event {
	struct event *next;
	CUevent handle;
	CUcontext context;
	bool shared; /* with other processes, which cannot see our queue */
	/* The queue that last had it, and the numbers of the last entries that record it, that name
	 * it at all. */
	struct tally_device *device;
	uint64_t recorded, named;
};

#define BUCKETS 256
static struct event *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void tally_events_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	memset(buckets, 0, sizeof buckets);
}

static struct event **place_of(CUevent handle)
{
	uintptr_t n = (uintptr_t)handle;
	struct event **place = &buckets[(n >> 4 ^ n >> 12) % BUCKETS];

	while (*place && (*place)->handle != handle)
		place = &(*place)->next;
	return place;
}

/* What is known of it, all zero where that is nothing. */
static struct event find(CUevent handle)
{
	struct event *e, found = {0};

	pthread_mutex_lock(&lock);
	e = *place_of(handle);
	if (e)
		found = *e;
	pthread_mutex_unlock(&lock);
	return found;
}

static void add(CUevent handle, unsigned flags)
{
	CUcontext context = NULL;
	struct event **place, *e;

	if (TALLY_DRIVER(cuCtxGetCurrent)(&context))
		return;
	pthread_mutex_lock(&lock);
	place = place_of(handle);
	if (!*place)
		*place = calloc(1, sizeof **place);
	e = *place;
	if (e)
		*e = (struct event){.next = e->next,
				    .handle = handle,
				    .context = context,
				    .shared = flags & CU_EVENT_INTERPROCESS};
	pthread_mutex_unlock(&lock);
}

static void forget(CUevent handle)
{
	struct event **place, *e;

	pthread_mutex_lock(&lock);
	place = place_of(handle);
	e = *place;
	if (e)
		*place = e->next;
	pthread_mutex_unlock(&lock);
	free(e);
}

void tally_events_forget(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct event **place = &buckets[i], *e; (e = *place);) {
			if (e->context != context) {
				place = &e->next;
				continue;
			}
			*place = e->next;
			free(e);
		}
	pthread_mutex_unlock(&lock);
}

/* The queue's entry that was begun names it. The queue's lock is held. */
static void name(CUevent handle, struct tally_device *d, bool records)
{
	struct event *e;

	pthread_mutex_lock(&lock);
	e = *place_of(handle);
	if (e) {
		e->device = d;
		e->named = tally_ahead_number(d);
		if (records)
			e->recorded = e->named;
	}
	pthread_mutex_unlock(&lock);
}

/* Whether the entry `number` of the event's queue has not been given. */
static bool waits(const struct event *e, uint64_t number)
{
	return e->device && !tally_ahead_given(e->device, number);
}

static bool any_busy(void)
{
	struct tally_device *d = atomic_load(&tally_process.devices);

	while (d && !tally_ahead_busy(d))
		d = d->next;
	return d != NULL;
}

/* --- recording, waiting --- */

struct record {
	CUevent event;
};

static CUresult give_record(const struct tally_entry *e)
{
	return cuEventRecord(((const struct record *)e->payload)->event, e->stream->handle);
}

static CUresult give_wait(const struct tally_entry *e)
{
	return cuStreamWaitEvent(e->stream->handle, ((const struct record *)e->payload)->event, 0);
}

static bool take(struct tally_stream *s, CUevent handle, bool records, CUresult *result)
{
	struct tally_device *d = s->context->device;
	struct event e = any_busy() ? find(handle) : (struct event){0};
	struct tally_entry *entry;

	/* Another device's queue goes on by itself: between the two there is no order but this. */
	if (e.device && e.device != d) {
		tally_ahead_flush_to(e.device, e.named);
		e.device = NULL;
	}
	if (!tally_ahead_behind(s) && !waits(&e, e.named) &&
	    !(records && tally_guard_unconfirmed(s)))
		return false;
	if (!e.handle)
		e = find(handle);
	if (e.handle && !e.shared && !(records && e.context != s->context->handle) &&
	    (entry = tally_ahead_begin(d, s, sizeof(struct record)))) {
		((struct record *)entry->payload)->event = handle;
		name(handle, d, records);
		tally_ahead_commit(d, entry, records ? give_record : give_wait);
		*result = CUDA_SUCCESS;
		return true;
	}
	if (e.device == d)
		tally_ahead_flush_to(d, e.named);
	tally_ahead_flush_stream(s);
	return false;
}

bool tally_ahead_cuEventRecord(struct tally_stream *s, uint64_t ns, CUresult *result, CUevent event,
			       CUstream handle)
{
	(void)ns, (void)handle;
	return take(s, event, true, result);
}

bool tally_ahead_cuEventRecordWithFlags(struct tally_stream *s, uint64_t ns, CUresult *result,
					CUevent event, CUstream handle, unsigned flags)
{
	(void)ns, (void)handle;
	if (!flags)
		return take(s, event, true, result);
	tally_ahead_flush(s->context->device);
	return false;
}

bool tally_ahead_wait(struct tally_stream *s, CUevent event, unsigned flags, CUresult *result)
{
	if (!flags)
		return take(s, event, false, result);
	tally_ahead_flush_all();
	return false;
}

/* --- the hooks --- */

CUresult cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	bool ours = tally_enter() && tally_on() && tally_ahead_on();
	CUresult result = TALLY_REAL(cuEventCreate)(phEvent, Flags);

	if (ours && !result)
		add(*phEvent, Flags);
	tally_leave();
	return result;
}

static CUresult give_destroy(const struct tally_entry *e)
{
	return cuEventDestroy_v2(((const struct record *)e->payload)->event);
}

/* Destroys the event behind the entries that name it; false: there are none. */
static bool destroyed_later(CUevent handle)
{
	struct event e = find(handle);
	struct tally_entry *entry;
	bool later = false;

	forget(handle);
	if (waits(&e, e.named)) {
		entry = tally_ahead_begin(e.device, NULL, sizeof(struct record));
		later = entry != NULL;
		if (later) {
			((struct record *)entry->payload)->event = handle;
			entry->always = true;
			tally_ahead_commit(e.device, entry, give_destroy);
		} else {
			tally_ahead_flush_to(e.device, e.named);
		}
	}
	return later;
}

#define DESTROY(symbol)                                                                            \
	CUresult symbol(CUevent hEvent)                                                            \
	{                                                                                          \
		CUresult result = CUDA_SUCCESS;                                                    \
                                                                                                   \
		if (!(tally_enter() && tally_on() && tally_ahead_on() && destroyed_later(hEvent))) \
			result = TALLY_REAL(symbol)(hEvent);                                       \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
DESTROY(cuEventDestroy)
DESTROY(cuEventDestroy_v2)

/* Whether the event's last record is still in a queue; `until_given`: waits until it is not. */
static bool not_recorded(CUevent handle, bool until_given)
{
	struct event e;

	if (!tally_ahead_on() || !any_busy())
		return false;
	e = find(handle);
	if (!waits(&e, e.recorded))
		return false;
	if (until_given)
		tally_ahead_flush_to(e.device, e.recorded);
	return !until_given;
}

/* The device of the current context if it is being told about. Programs with guards are looked at
 * by their monitor. */
static void settle(void)
{
	struct tally_context *c;

	if (!tally_process.config.settles || !atomic_load(&tally_process.devices))
		return;
	c = tally_context_current();
	if (c)
		tally_activity_settle(c->device);
}

/* An event is recorded only when everything guarded before it is done, so its own answer counts. */
#define EVENT(symbol, until_given)                                                                 \
	CUresult symbol(CUevent hEvent)                                                            \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result = CUDA_ERROR_NOT_READY;                                            \
                                                                                                   \
		if (!ours ||                                                                       \
		    (!not_recorded(hEvent, until_given) && !tally_ahead_failed(NULL, &result)))    \
			result = TALLY_REAL(symbol)(hEvent);                                       \
		if (ours && !result)                                                               \
			settle();                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
EVENT(cuEventSynchronize, true)
EVENT(cuEventQuery, false)

#define ELAPSED(symbol)                                                                            \
	CUresult symbol(float *pMilliseconds, CUevent hStart, CUevent hEnd)                        \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result = CUDA_ERROR_NOT_READY;                                            \
                                                                                                   \
		if (!ours || (!not_recorded(hStart, false) && !not_recorded(hEnd, false)))         \
			result = TALLY_REAL(symbol)(pMilliseconds, hStart, hEnd);                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
ELAPSED(cuEventElapsedTime)
ELAPSED(cuEventElapsedTime_v2)
