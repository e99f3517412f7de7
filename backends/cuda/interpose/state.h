/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libtally.so knows inside one program: the devices that it uses, their contexts and streams.
 *
 * Locks. Each device has one lock (fair_lock.h); it covers the lists of contexts and streams, the
 * gate and every stream's log, and may be held while the driver is asked to enqueue something,
 * never while waiting for the device (the gate's own stream, which nothing can hold up, excepted).
 * Fields marked atomic are read without it. process.lock covers the list of devices and is never
 * held with a device's.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_STATE_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "backends/cuda/interpose/fair_lock.h"
#include "backends/cuda/interpose/hooks.h"
#include "base/clock.h"
#include "profiler/profiles.h"
#include "profiler/report.h"
#include "sched/client.h"

/* TALLY_GRAPHS: how executable graphs are launched (graphs.h). */
enum tally_graphs {
	TALLY_GRAPHS_AUTO,  /* node by node where graphs.h says so */
	TALLY_GRAPHS_WHOLE, /* never */
	TALLY_GRAPHS_NODES, /* also where branches would run one after another, where kernels cannot
			     * be stopped, and where it is short */
};

/* TALLY_OPAQUE: whose machine code is made stoppable (opaque.h). */
enum tally_opaque {
	TALLY_OPAQUE_OFF,  /* nobody's */
	TALLY_OPAQUE_OPEN, /* not that of NVIDIA's closed libraries */
	TALLY_OPAQUE_ALL,
};

/* How the program is to be treated: from the environment, read once (config.c). */
struct tally_config {
	bool scheduled; /* TALLY_PRIORITY is set: without it every hook passes through */
	/* May have to stop in the middle of a launch: below TALLY_PRIORITY_HIGH, or TALLY_GUARD. */
	bool guards;
	bool settles;	   /* says at once that it is idle: TALLY_PRIORITY_HIGH and above */
	int priority;	   /* TALLY_PRIORITY: a number, "high" or "best-effort" */
	unsigned depth;	   /* TALLY_DEPTH: launches of 50 us that may be queued ahead */
	unsigned ahead;	   /* TALLY_AHEAD: calls that may wait for that in host memory; 0: none */
	unsigned slo;	   /* TALLY_SLO: the latency budget in thousandths; 0: none */
	uint64_t grace_ns; /* TALLY_GRACE_US, as in struct tally_client_options */
	enum tally_run_level { TALLY_RUN_AUTO, TALLY_RUN_GATE, TALLY_RUN_GUARD } level;
	enum tally_compile {
		TALLY_COMPILE_AUTO,
		TALLY_COMPILE_WAIT,
		TALLY_COMPILE_BACKGROUND
	} compile;
	enum tally_graphs graphs;
	enum tally_opaque opaque;
	uint64_t bound_ns; /* TALLY_BOUND_US: how long a stop may take; 0: the default */
	const char *name;  /* TALLY_NAME, or the program's own */
};
void tally_config_read(struct tally_config *config);

struct tally_guard;
struct tally_burst;
struct tally_sample;
struct tally_place;
struct tally_ahead;

#define TALLY_MARKS   16 /* of one stream */
#define TALLY_SAMPLES 32 /* of one context */

/* A mark is on its way: work of the stream up to it is done when it has come. */
struct tally_mark {
	uint32_t sequence;
	uint64_t ns;   /* predicted, of the work between the mark before and this one */
	uint64_t at;   /* ns: when it was put in */
	CUevent event; /* behind it, where waiting threads sleep (CPU device); or NULL */
};

/* Work of a stream that cannot be stopped and is not known done (queue.h). Device lock. */
struct tally_queue {
	_Atomic uint64_t open_ns; /* predicted, of what has no mark behind it */
	uint32_t sequence;	  /* of the last mark */
	unsigned first, count;
	struct tally_mark marks[TALLY_MARKS];
	_Atomic bool lost; /* the driver reported an error: nothing is counted any more */
	bool late;	   /* it ended, and marks may still come */
	/* Behind something that may wait for the program (waits.h): its last mark, or 0; and
	 * whether there is more of it, behind which no mark could be put. */
	_Atomic uint32_t waits;
	_Atomic bool unmarked;
};

enum tally_stream_kind {
	TALLY_STREAM_LEGACY,	 /* waits for all blocking streams, and they for it */
	TALLY_STREAM_PER_THREAD, /* blocking; only its own thread can name it */
	TALLY_STREAM_BLOCKING,
	TALLY_STREAM_NONBLOCKING,
};

struct tally_stream {
	CUstream handle; /* as the driver takes it: CU_STREAM_LEGACY for the null stream */
	enum tally_stream_kind kind;
	unsigned long owner; /* PER_THREAD: the thread */
	bool ended;	     /* PER_THREAD: that thread did; device lock */
	struct tally_context *context;
	struct tally_stream *next; /* of the context */

	/* Pieces of work that were announced, that are known done; see activity.h. */
	_Atomic uint64_t announced, finished;
	_Atomic uint64_t launches;
	uint64_t marked; /* announced when the context's marker was put in, or 0 */
	uint32_t number; /* in traces */
	_Atomic uint64_t
		ahead; /* the last entry of the run-ahead queue that is its own (ahead.h) */

	struct tally_queue queue;
	struct tally_guard *guard; /* NULL until the first launch of a program with guards */
	unsigned waiters;	   /* threads that look at the record without the lock */
};

struct tally_chunk;

struct tally_context {
	CUcontext handle;
	struct tally_device *device;
	struct tally_context *next; /* of the device */
	struct tally_stream *streams;
	/* The last entry of the run-ahead queue that is the legacy stream's, a blocking one's. */
	_Atomic uint64_t ahead_legacy, ahead_blocking;

	CUevent marker; /* in the legacy stream, for per-thread streams (activity.c) */
	bool marked;	/* it is on its way */

	/* Made for the first guarded launch (guard_memory.c). */
	bool ready, failed;
	CUdeviceptr gate;     /* u32 in device memory: non-zero asks the blocks to stop */
	CUstream gate_stream; /* highest priority: carries nothing but writes to the gate */
	struct tally_chunk *chunks;
	struct tally_sample *samples; /* TALLY_SAMPLES of them, or NULL */
};

struct tally_device {
	CUdevice ordinal;
	uint8_t uuid[16];
	char name[64];	  /* as the driver calls it */
	_Atomic bool cpu; /* the CPU device: waiting threads must sleep, never spin */
	struct tally_device *next;

	struct tally_report *report; /* never NULL */
	int report_fd;		     /* until the first tallyd has it; then -1 */
	/* What earlier runs measured here; NULL: nothing. Stays mapped. */
	_Atomic(const struct tally_profiles *) profiles;

	_Atomic(struct tally_client *) client; /* NULL until the first time that tallyd was there */
	_Atomic uint64_t no_yield; /* 1 + the board's epoch at which nobody outranked us */

	uint64_t launches;	 /* in streams that are no more */
	_Atomic bool active;	 /* told the board so; changed under activity_lock */
	_Atomic unsigned mixing; /* the next launches tell what kind of burst it is (burst.h) */
	pthread_mutex_t activity_lock;
	struct tally_burst *burst; /* NULL: the program has no budget */
	enum tally_sharing sharing;
	_Atomic uint32_t tick; /* futex: the monitor of a program without guards sleeps on it */
	_Atomic bool asleep;   /* that monitor sleeps for long */

	struct tally_fair_lock lock;
	_Atomic uint32_t changes; /* futex: tally_changed() */
	unsigned sleepers;	  /* on it */
	/* Threads that wait for room, in the order in which they came (line.h). */
	struct tally_place *line;
	_Atomic unsigned in_line;
	struct tally_context *contexts;

	bool gate_set; /* since it was closed its words have been written */
	bool closed;   /* the gate: set by the monitor alone */
	uint64_t closings;
	uint64_t closed_at; /* ns */
	uint64_t opened_at;

	/* Guarded launches that are not known done, over all streams. */
	_Atomic unsigned in_flight;
	/* Predicted, of those and of all other work that is not known done. */
	_Atomic uint64_t queued_ns;
	uint64_t mark_came_at, patience_ns; /* queue.c */
	/* What two events take by themselves, and of how many pairs that was the least (timing.c).
	 */
	uint64_t events_ns;
	unsigned event_pairs;
	/* The run-ahead queue (ahead.h), NULL: none; and how much waits in it. */
	struct tally_ahead *ahead;
	_Atomic uint32_t ahead_waiting;
};

static inline void tally_lock(struct tally_device *device)
{
	tally_fair_take(&device->lock);
}

static inline void tally_unlock(struct tally_device *device)
{
	tally_fair_give(&device->lock);
}

/* The gate opened, a stream was resumed, a waiter left: whoever sleeps in tally_wait_changed()
 * looks again. Device lock held. */
void tally_changed(struct tally_device *device);

/* Until then, or for a while. Device lock held on entry and return, not between. */
void tally_wait_changed(struct tally_device *device);

enum tally_mode { TALLY_UNKNOWN, TALLY_OFF, TALLY_ON };
extern _Atomic int tally_mode;

struct tally_process {
	struct tally_config config;
	pthread_mutex_t lock;
	_Atomic(struct tally_device *) devices;
	_Atomic unsigned captures; /* stream captures that are going on */
	_Atomic bool waits;	   /* it had the device wait for something that only it can do */
	_Atomic(CUcontext) first_context; /* the first that was made */
	/* The same while there is no other and no guard: what the null stream belongs to. Programs
	 * with guards ask the driver: what they launch again must not go astray whatever made a
	 * context behind our back. */
	_Atomic(CUcontext) only_context;
	const char *(*cpu_target)(void); /* the CPU device's driver: what it runs; NULL elsewhere */
	void (*cpu_background)(void);	 /* the CPU device's tallyCpuBackground(); NULL elsewhere */
};
extern struct tally_process tally_process;

/* Reads the environment and prepares; returns whether the program is scheduled. */
bool tally_start(void);

/* Whether hooks have anything to do. */
static inline bool tally_on(void)
{
	int mode = atomic_load_explicit(&tally_mode, memory_order_relaxed);

	return __builtin_expect(mode == TALLY_UNKNOWN, 0) ? tally_start() : mode == TALLY_ON;
}

/* One line "tally: ..." on stderr, once for each `said`. */
void tally_warn_once(_Atomic bool *said, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

unsigned long tally_thread(void);

/* A thread of ours: detached, with a stack of so many bytes, on which no signal of the program is
 * handled. */
bool tally_thread_start(void *(*function)(void *), void *argument, size_t stack);

/* The device of that ordinal, joined to the board when there is one; NULL out of memory. */
struct tally_device *tally_device_of(CUdevice ordinal);

/* The slot to count into; a private one while there is no daemon. */
struct tally_slot *tally_slot(struct tally_device *device);

#define TALLY_COUNT(device, counter, n)                                                            \
	atomic_fetch_add_explicit(&tally_slot(device)->counter, (n), memory_order_relaxed)

/* streams.c */

/*
 * Most work goes to the stream of the work before. Each thread remembers a few answers; a number
 * that changes whenever a record ends makes all of them void.
 */
#define TALLY_REMEMBERED 8

struct tally_memory {
	CUstream handle;
	CUcontext context; /* of handles that mean another stream in each context; else NULL */
	uint32_t age;
	struct tally_stream *stream;
};
extern __thread struct tally_memory tally_memories[TALLY_REMEMBERED]
	__attribute__((tls_model("initial-exec")));
extern _Atomic uint32_t tally_memory_age;

struct tally_stream *tally_stream_look_up(CUstream handle);

/*
 * The record of a stream as the program names it (`per_thread`: NULL means the calling thread's
 * default stream). NULL when there is no current context, or the driver does not know the stream:
 * the call then goes to the driver as it is.
 */
static inline struct tally_stream *tally_stream_find(CUstream handle, bool per_thread)
{
	const struct tally_memory *m;
	CUcontext context = NULL;

	if (!handle)
		handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
	if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
		context = atomic_load_explicit(&tally_process.only_context, memory_order_relaxed);
		if (!context)
			return tally_stream_look_up(handle);
	}
	m = &tally_memories[((uintptr_t)handle >> 4 ^ (uintptr_t)handle >> 12) % TALLY_REMEMBERED];
	if (__builtin_expect(
		    m->handle == handle && m->context == context && m->stream &&
			    m->age == atomic_load_explicit(&tally_memory_age, memory_order_acquire),
		    1))
		return m->stream;
	return tally_stream_look_up(handle);
}

/* The current context's record, or NULL. Takes and gives back its device's lock. */
struct tally_context *tally_context_current(void);

/* The context's legacy stream if the program ever used it, or NULL. Device lock held. */
struct tally_stream *tally_stream_legacy(struct tally_context *context);

/* A context was made or met. */
void tally_context_seen(CUcontext handle);

/* Forgets a stream or context that no longer is. Device lock held (given up while others look). */
void tally_stream_forget(struct tally_stream *stream);
void tally_context_forget(struct tally_context *context);

/* Whether work on the stream is being recorded, not run: then Tally keeps out. */
bool tally_stream_captured(CUstream handle);

/* The record of a stream that is given something, or NULL: Tally keeps out, as the stream is not
 * known or captured. */
static inline struct tally_stream *tally_stream_given(CUstream handle, bool per_thread)
{
	struct tally_stream *s = tally_stream_find(handle, per_thread);

	if (!s || (atomic_load_explicit(&tally_process.captures, memory_order_relaxed) &&
		   tally_stream_captured(s->handle)))
		return NULL;
	return s;
}

/* The calling thread ends: what is left of its per-thread streams is used again or given back once
 * their work is known done. No lock held. */
void tally_streams_thread_ended(void);

/* In a forked child: process.c says what becomes of all that the parent knew. */
void tally_streams_forked(void);

/* reporting.c: makes the device's report (false out of memory), hands it out, and is told that
 * somebody has it, and maybe gave what earlier runs measured (a descriptor that it closes). */
bool tally_reporting_start(struct tally_device *device);
struct tally_attachment tally_reporting_attachment(const struct tally_device *device);
void tally_reporting_joined(struct tally_device *device, struct tally_attachment given);

/* monitor.c ------------------------------------------------------------------------------------ */

bool tally_monitor_start(struct tally_device *device);

/* Returns once nobody who outranks us is active and the gate is open. No lock held. */
void tally_gate_wait(struct tally_device *device);

/* Whether it would wait. No lock held. */
bool tally_gate_closed(struct tally_device *device);

/* The launch path's check: one comparison as long as nothing changed on the board. */
static inline void tally_gate_pass(struct tally_device *device)
{
	struct tally_client *client = atomic_load_explicit(&device->client, memory_order_relaxed);

	if (!client || atomic_load_explicit(&device->no_yield, memory_order_relaxed) ==
			       (uint64_t)tally_client_epoch(client) + 1)
		return;
	tally_gate_wait(device);
}

#endif
