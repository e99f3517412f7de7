/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: streams as queues of operations, worker threads that run the blocks of launches, and
 * the rules of who waits for whom. It knows contexts only as owners of a sticky error.
 *
 * One lock guards all queues; it is never held while a block, a copy or an application's function
 * runs. An operation at the head of its stream whose dependencies are met is started by whoever
 * made it so: the submitting thread, or the worker that finished the one before. Small operations
 * (writes, event records, small copies) run right there, so they never wait for another stream's
 * blocks. Launches and large copies are jobs: numbered blocks that workers take in increasing
 * order, the most urgent job first. Functions of the application run on a thread of their own: they
 * may block for as long as they like, or take a lock that the submitting thread holds.
 */
#ifndef TALLY_BACKENDS_CPU_DRIVER_ENGINE_H
#define TALLY_BACKENDS_CPU_DRIVER_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/driver/handles.h"
#include "backends/cpu/executor.h"

#define LEVELS 6 /* priorities: level 0 is the least urgent (CUDA's 0), 5 the most (CUDA's -5) */

struct context;
struct operation;

/* A point in a stream: reached when the stream has completed that many operations. Streams are
 * never freed, only used again with their count going on, so that a point stays valid for ever. */
struct point {
	struct stream *stream;
	uint64_t sequence;
};

enum start {
	START_LOCKED,	/* runs at once under the lock: a few nanoseconds */
	START_UNLOCKED, /* runs at once, the lock given back meanwhile */
	START_JOB,	/* blocks for workers */
	START_HOST,	/* the application's function, on the host thread */
	START_WAIT,	/* not until `run` returns true: polled */
};

struct operation_class {
	const char *name;
	enum start start;
	bool always; /* runs even when the context has failed */
	/* The work. For START_WAIT: whether it is over. Not used for jobs. */
	bool (*run)(struct operation *operation);
	/* START_JOB: runs one block. */
	enum tally_cpu_fault (*run_block)(struct tally_cpu_worker *worker,
					  struct operation *operation, uint64_t block);
	/* START_JOB, optional: called between ranges of blocks: true when no block from `next` on
	 * has anything to do (a stopped launch). */
	bool (*rest_is_idle)(const struct operation *operation, uint64_t next);
	/* Optional: gives back what the operation holds; under the lock. */
	void (*release)(struct operation *operation);
};

struct job {
	_Atomic uint64_t next; /* first block that nobody has taken */
	uint64_t total;
	int level;
	unsigned workers; /* threads inside; under the lock */
	bool listed;
	bool small_stack; /* may run on a thread of the application */
	bool gang;	  /* its blocks wait for each other: every one has to have a worker */
	struct operation *list_next, *list_previous;
};

#define OPERATION_BYTES 512 /* of the inline storage, enough for most launches' parameters */

struct operation {
	const struct operation_class *class;
	struct stream *stream;
	struct operation *next; /* in its stream, or in the list of free ones */
	struct operation *next_waiter;
	uint64_t sequence;
	struct point *dependencies;	     /* &one or allocated */
	unsigned dependency_count, reserved; /* reserved: places of an array that was allocated */
	struct point one;
	struct job job;
	bool waits;   /* in the list of waiters of another stream */
	bool over;    /* a wait whose condition was seen to hold */
	bool follows; /* queued under one lock round with what the null stream's rules ordered */
	bool large;   /* `data` was allocated */
	void *data;   /* what the class wants; 64-byte aligned */
	_Alignas(64) unsigned char storage[OPERATION_BYTES];
};

struct stream {
	unsigned flags; /* CU_STREAM_NON_BLOCKING */
	int level;
	bool running;	   /* its head is under way */
	bool queued;	   /* in the engine's list of streams to look at */
	bool destroyed;	   /* goes to the free list when empty */
	bool legacy;	   /* the context's null stream */
	unsigned sleepers; /* threads in engine_wait() for `wake_at` */
	uint64_t wake_at;
	uint64_t id;
	struct context *context;
	struct operation *head, *tail;
	struct operation *waiters;   /* of other streams, on a point of this one */
	struct capturing *capturing; /* NULL: what it is given runs; capture.h */
	struct stream *next_queued, *next_waiting;
	struct stream *next, **link; /* of its context, or in the list of free ones */
	uint64_t submitted;	     /* operations so far; under the lock */
	_Atomic uint64_t completed;  /* the same, done; anybody reads it */
};

struct engine {
	pthread_mutex_t lock;
	unsigned workers; /* how many at most */

	/* Jobs with blocks to take, by level; the highest level that has any, or -1. */
	struct operation *ready[LEVELS], *ready_last[LEVELS];
	_Atomic int ready_level;

	/* The one gang that runs, and those that wait: two that have half of the workers each would
	 * wait for ever. */
	struct operation *gang, *gangs, *gangs_last;

	struct stream *look; /* streams whose head may be able to start */
	struct stream *free_streams;
	struct operation *free_operations;
	struct operation *waiting; /* START_WAIT, started, not over */
	/* Of jobs and START_UNLOCKED, those under way: what touches memory without the lock. */
	unsigned working;
	unsigned holders; /* who wait until there are none, and meanwhile none starts; still.c */
	struct operation *host, *host_last;

	/* Worker threads. `pulse` is what they sleep on. */
	unsigned threads, sleepers;
	_Atomic uint32_t pulse;
	_Atomic bool background;	 /* tally_cpu.h: tallyCpuBackground() */
	_Atomic bool spinner;		 /* one of the idle ones looks before it sleeps */
	struct tally_cpu_worker **slots; /* `workers` of them, made on demand */
	unsigned *free_slots, free_slot_count;
	_Atomic uint32_t host_pulse, poll_pulse;
	bool host_thread, poll_thread;

	/* To be done when the lock is given back: no system call is made under it. */
	unsigned wake_workers;
	bool wake_host, wake_poll;
	struct stream *wake_streams;
};
extern struct engine engine;

/* Once per process, from cuInit. */
void engine_start(void);

/* engine.c: queues. The lock is a plain mutex, but it has to be given back by engine_unlock(). */
void engine_lock(void);
void engine_unlock(void);

/* operation.c: an operation with `bytes` of data (zeroed), or NULL. Belongs to the caller until
 * submitted. */
struct operation *operation_new(const struct operation_class *class, size_t bytes);
void operation_free(struct operation *operation);    /* never submitted; takes the lock */
void operation_recycle(struct operation *operation); /* it is over; lock held */
void operations_give_back(struct operation *list);   /* of a thread that ends */

/* Has to be called with the lock held; adds what the stream's kind asks for to the dependencies.
 * The stream owns the operation from then on. False when out of memory: the caller still has it. */
bool engine_submit(struct stream *stream, struct operation *operation, struct point after);

/*
 * The same for several operations that nothing of another thread may come between: engine_queue()
 * puts each behind `count` points and starts nothing, engine_look() then starts what can. It cannot
 * fail for an operation that engine_reserve() (lock not held) has given so many places, those of
 * the stream's own rules included.
 */
bool engine_reserve(struct operation *operation, unsigned count);
bool engine_queue(struct stream *stream, struct operation *operation, const struct point *after,
		  unsigned count);

/* The point that everything submitted so far ends at. Lock held. */
struct point stream_end(struct stream *stream);
bool point_reached(struct point point); /* lock-free */

/* Streams. Lock held. */
struct stream *stream_new(struct context *context, unsigned flags, int level);
void stream_discard(struct stream *stream);

/* Whether operations of the class touch memory without the lock. */
static inline bool operation_works(const struct operation *operation)
{
	return operation->class->start == START_JOB || operation->class->start == START_UNLOCKED;
}

/* wait.c: sleeps (or helps) until the point is reached. Lock not held. */
void engine_wait(struct point point);

/* For worker.c, host.c, wait.c; lock held. */
void operation_finished(struct operation *operation);
void engine_look(void); /* starts whatever can start */
void engine_recheck_waits(void);
void job_ready(struct operation *operation);

void engine_want_worker(void); /* somebody should take from the ready jobs */

/* worker.c. Runs blocks of `operation` while there are any and nothing more urgent is ready; lock
 * held, given back meanwhile. */
void job_run(struct operation *operation, unsigned slot);
bool slot_take(unsigned *slot);
void slot_give(unsigned slot);
void worker_start_thread(void); /* lock not held */
void host_start_thread(void);
void poll_start_thread(void);
bool engine_thread(void *(*main)(void *), const char *name);

/* fork.c: in the child nothing of the parent's work exists. */
void engine_watch_forks(void);

/* From contexts (context.c): the sticky error. Lock held. */
bool context_failed(const struct context *context);
void context_fail(struct context *context, enum tally_cpu_fault fault);
/* Its null stream (or NULL while it has none), and the list of all its streams. */
void context_streams(const struct context *context, struct stream **legacy, struct stream **all);

#endif
