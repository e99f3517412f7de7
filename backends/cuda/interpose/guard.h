/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launch protocol (design: ir_passes/launch_abi.h has the device's half). A guarded launch goes
 * to its stream with a control block in front of it and a write of its sequence number to the
 * stream's `done` word behind it, and stays in the stream's log until `done` has come and the
 * stream's mailbox names no earlier or equal launch. Closing the gate makes the blocks of what runs
 * skip; the first to do so sets the stream's broken word, so that everything later in the stream
 * skips too. When the gate is open again, the stopped launch and all later ones of the log are put
 * into the same stream once more, under new numbers, the stopped one from where it was.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_GUARD_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_GUARD_H

#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/profile.h"
#include "backends/cuda/interpose/state.h"
#include "ir_passes/launch_abi.h"

#define TALLY_LOG 64 /* unfinished guarded launches of one stream, at most */

/* A launch of the log: everything that is needed to launch it again. */
struct tally_logged {
	struct tally_kernel *kernel;
	struct tally_configuration *configuration; /* NULL: nothing is learnt */
	enum tally_level level;
	struct tally_sample *sample; /* or NULL */
	struct tally_dimensions dimensions;
	struct tally_launch launch; /* the last parameter; lo and hi count: */
	unsigned unit;		    /* blocks of a cluster (of machine code), or 1 */
	bool whole;		    /* all of its blocks run, or none: TALLY_CONTROL_WHOLE */
	struct tally_attributes
		*attributes; /* of machine code that has any; else NULL or count 0 */
	uint32_t sequence;
	uint64_t entered; /* ns */
	uint64_t predicted;
	CUevent event; /* behind the launch, where waiting threads sleep (CPU device); or NULL */

	/* The parameters, copied; pointers[i] into them, the last one to `launch`. */
	uint8_t *bytes;
	size_t capacity;
	void **pointers;
	unsigned pointer_capacity;
};

/* What the device writes for the host to read: in host memory, one cache line a stream. */
struct tally_words {
	_Alignas(64) _Atomic uint64_t mailbox; /* TALLY_MAILBOX of the stopped launch, or 0 */
	_Atomic uint32_t done;		       /* the last launch that ended or skipped itself */
	_Atomic uint32_t mark; /* the last mark of what cannot be stopped: queue.h */
};

/* A stream's half of the protocol. Device lock. */
struct tally_guard {
	CUdeviceptr broken;   /* u32 */
	CUdeviceptr controls; /* TALLY_LOG times struct tally_control: slot i serves log[i] */
	CUdeviceptr mailbox, done, mark; /* the device's addresses of *words */
	struct tally_words *words;
	struct tally_control *first_controls; /* what `controls` begins with; host memory */
	struct tally_chunk *chunk;
	unsigned place; /* in the chunk */
	bool prepared;	/* `controls` are filled */
	bool lost;	/* the driver reported an error: the log means nothing any more */
	bool noted;	/* the drain after the last closing of the gate has been measured */

	uint32_t sequence;		    /* the last one given */
	uint64_t entered, left;		    /* launches that came into the log, that left it */
	struct tally_logged log[TALLY_LOG]; /* number n is in log[n % TALLY_LOG] */
};

/*
 * Launches the guarded variant of the plan's kernel, as its level says, blocking while the gate is
 * closed or the depth is reached. `parameters` as cuLaunchKernel takes them, or `packed` bytes (the
 * other NULL). Device lock not held. True when it was launched or the driver refused the kernel:
 * its answer is in `result`. False when the protocol around the kernel does not work: nothing was
 * launched, and the stream's launches are opaque from then on.
 */
bool tally_guard_launch(struct tally_stream *stream, const struct tally_plan *plan,
			void **parameters, const void *packed, CUresult *result);

/* Waits for the oldest guarded launch of the device to end; false when there is none. Device lock
 * held on entry and return, not between. */
bool tally_guard_make_room(struct tally_device *device);

/* Waits until what was taken ahead of the stream (ahead.h) has been given, its guarded launches are
 * done, and those of the streams that it implicitly waits for; returns at once where there are
 * none. */
void tally_fence(struct tally_stream *stream);

/* Waits until all that was taken ahead on the context's device, in the process has been given, and
 * all guarded launches of the context, of the process are done. */
void tally_drain_context(struct tally_context *context);
void tally_drain_all(void);

/* Takes done launches out of the log, starts a stopped one again when the gate is open; whether any
 * are left. Device lock held. */
bool tally_guard_pending(struct tally_stream *stream);

/* Whether guarded launches of the stream are not known done. Device lock not held. */
static inline bool tally_guard_unconfirmed(struct tally_stream *stream)
{
	struct tally_device *d = stream->context->device;
	bool pending;

	if (!atomic_load_explicit(&d->in_flight, memory_order_relaxed))
		return false;
	tally_lock(d);
	pending = tally_guard_pending(stream);
	tally_unlock(d);
	return pending;
}

/* The monitor's (guard_gate.c): all streams at once. Device lock held. */
void tally_guard_close(struct tally_device *device);
void tally_guard_open(struct tally_device *device);
/* Looks at every stream: measures drains, resumes. Whether launches are left that were in the log
 * when the gate was last closed. */
bool tally_guard_look(struct tally_device *device);

/* Whether the gate is closed and launches that were under way have neither ended nor been seen to
 * stop: how long a stop took is known only as well as somebody looks. Device lock held. */
bool tally_guard_draining(const struct tally_device *device);

/* At exit: opens the gate for good and starts everything again. */
void tally_guard_leave(struct tally_device *device);

/* Ends the stream's half. Device lock held, log empty. */
void tally_guard_destroy(struct tally_stream *stream);

/* guard_log.c: between the files of the protocol. Device lock held. --------------------------- */

/* Takes what is done out of the log. Whether a launch of it was stopped and not started again. */
bool tally_log_collect(struct tally_stream *stream);

/* How far tally_log_enqueue() came. */
enum tally_enqueued {
	TALLY_ENQUEUED,
	TALLY_REFUSED,	/* by the driver's launch function: `result` is its answer */
	TALLY_BROKEN,	/* before the launch: nothing is on its way */
	TALLY_HALF_WAY, /* after it: the launch runs, and nobody will hear of its end */
};

/* Gives log entry `number` to the driver under a new sequence number. */
enum tally_enqueued tally_log_enqueue(struct tally_stream *stream, uint64_t number,
				      CUresult *result);

/* Starts the stopped launch and all later ones again. The gate is open; called by a thread that can
 * name the stream (tally_stream_mine). */
void tally_log_resume(struct tally_stream *stream);

/* The driver failed: what the log holds may never be done, and nobody is to wait for it. */
void tally_log_lose(struct tally_stream *stream);

static inline bool tally_stream_mine(const struct tally_stream *stream)
{
	return stream->kind != TALLY_STREAM_PER_THREAD || stream->owner == tally_thread();
}

/* guard_memory.c: the context's gate, the stream's words. Device lock held; the context is current.
 * False when the driver refused (the launch is then opaque). */
bool tally_guard_memory(struct tally_stream *stream);
void tally_guard_memory_return(struct tally_guard *guard);
void tally_guard_memory_forget(struct tally_context *context);

#endif
