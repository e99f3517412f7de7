/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run-ahead queue: what the program gave and the device has no room for waits here, in host
 * memory, and not in the program's thread. That thread goes on, as it does without Tally, where the
 * driver's own queue is a thousand launches long: its hiccups leave no hole on the device. One
 * thread for each device (the giver) takes the entries in the order in which they came and calls
 * the doors for them, in which all that a launch waits for is waited for.
 *
 * A door either takes its call ahead (it copies the arguments into an entry and says CUDA_SUCCESS),
 * or waits until what was taken before it and is in front of it has been given, and goes on itself.
 * docs/launch-protocol.md, "Running ahead", says what must hold.
 *
 * Locks: the queue's own lock is taken with no other one held, and only the table of events
 * (events.c) is locked inside it.
 */
#ifndef TALLY_BACKENDS_CUDA_INTERPOSE_AHEAD_H
#define TALLY_BACKENDS_CUDA_INTERPOSE_AHEAD_H

#include "backends/cuda/interpose/kernels.h"
#include "backends/cuda/interpose/profile.h"
#include "backends/cuda/interpose/state.h"

/* What is longer than this, in bytes of arguments, is not taken ahead. */
#define TALLY_AHEAD_MOST_BYTES 8192

/* One call that was taken ahead. It stays where it is until it has been given. */
struct tally_entry {
	size_t size; /* in the queue, all of it */
	/* Calls the door; NULL: there is nothing here, up to the end of the memory. */
	CUresult (*give)(const struct tally_entry *entry);
	struct tally_stream *stream; /* NULL: none */
	bool always;		     /* also behind a call that failed */
	_Alignas(16) unsigned char payload[];
};

/* Whose calls this thread makes: not the program's own, so the doors take nothing ahead. */
enum tally_giving {
	TALLY_GIVING_ENTRY = 1, /* it is a giver */
	TALLY_GIVING_NODE = 2,	/* of a graph, one by one */
};
extern __thread unsigned tally_giving __attribute__((tls_model("initial-exec")));

/* Whether this call of the program may be taken ahead, or has to wait for what was. */
static inline bool tally_ahead_on(void)
{
	return tally_process.config.ahead && !tally_giving;
}

/* Whether anything waits in the device's queue, or a call from it failed and nobody was told. */
static inline bool tally_ahead_busy(const struct tally_device *d)
{
	return atomic_load_explicit(&d->ahead_waiting, memory_order_acquire) != 0;
}

/* Whether calls wait in it. */
bool tally_ahead_waits(const struct tally_device *device);

/* Makes the device's queue, empty; the giver starts with the first entry. False: out of memory. */
bool tally_ahead_start(struct tally_device *device);

/*
 * Whether a call for work that is predicted to last `ns` is to be taken: it has to come behind
 * others that were, or would have to wait. `gated`: also for the gate. While the queue has work of
 * other streams alone it is not: then it would wait for all of that, where it can have its own turn
 * in the line for room (line.h). No lock held.
 */
bool tally_ahead_wanted(struct tally_stream *stream, uint64_t ns, bool gated);

/*
 * A place for a call with `bytes` of arguments, behind all others; waits while the queue is full.
 * NULL: it cannot be taken (something is captured, the stream is a thread's own, the arguments are
 * too long, the process ends): the door goes on itself. `stream` is NULL for what belongs to none.
 * The queue's lock is held until tally_ahead_commit(), and the caller fills in the payload.
 */
struct tally_entry *tally_ahead_begin(struct tally_device *device, struct tally_stream *stream,
				      size_t bytes);

/* The number of the entry that was begun: numbers grow by one. */
uint64_t tally_ahead_number(const struct tally_device *device);

/* It is complete; `give` calls the door with it. */
void tally_ahead_commit(struct tally_device *device, struct tally_entry *entry,
			CUresult (*give)(const struct tally_entry *entry));

/* Whether entry `number` has been given. No lock needed. */
bool tally_ahead_given(const struct tally_device *device, uint64_t number);

/* Whether entries wait that come before what `stream` is given now. No lock needed. */
bool tally_ahead_behind(const struct tally_stream *stream);

/* Wait until those have been given; until entry `number` has; until everything has that was taken
 * before the call, for one device or for all. Do nothing in a thread that gives. No lock held. */
void tally_ahead_flush_stream(struct tally_stream *stream);
void tally_ahead_flush_to(struct tally_device *device, uint64_t number);
void tally_ahead_flush(struct tally_device *device);
void tally_ahead_flush_all(void);

/* Whether a call that was taken ahead failed, on the device or (NULL) on any, and nobody was told:
 * then its error is in `result`, and is told. */
bool tally_ahead_failed(struct tally_device *device, CUresult *result);

/* At exit, with tally_mode off: what waits is given without any further waiting of Tally's. */
void tally_ahead_leave(struct tally_device *device);

/* ahead_launch.c ------------------------------------------------------------------------------- */

/* A kernel's launch as the program asked for it. */
struct tally_call {
	CUfunction function;
	const struct tally_dimensions *at;
	void **parameters, **extra;
	const CUlaunchConfig *config; /* of cuLaunchKernelEx, or NULL */
	bool cooperative;
};

/* Takes the launch ahead if it would have to wait: then the door's answer is in `result`. No lock
 * held, nothing announced. */
bool tally_ahead_launch(struct tally_stream *stream, const struct tally_call *call,
			CUresult *result);

/* The driver took such a launch: another one like it cannot fail for a reason of its own. */
void tally_ahead_accepted(const struct tally_stream *stream, const struct tally_call *call,
			  struct tally_configuration *configuration);

/* events.c ------------------------------------------------------------------------------------- */

/* The context's events are gone with it. */
void tally_events_forget(CUcontext context);

/* In a forked child: process.c says what becomes of all that the parent knew. */
void tally_events_forked(void);

/* ahead_copies.c, events.c, pools.c -------------------------------------------------------------
 */

/* What WORK_AHEAD and FENCE_AHEAD rows of hooks.def call before anything else: as
 * tally_ahead_launch(), `ns` is what such a piece is predicted to take. */
#define TALLY_AHEAD_DOOR(symbol, ...)                                                              \
	bool tally_ahead_##symbol(struct tally_stream *stream, uint64_t ns, CUresult *result,      \
				  __VA_ARGS__)
TALLY_AHEAD_DOOR(cuMemsetD8Async, CUdeviceptr to, unsigned char value, size_t n, CUstream);
TALLY_AHEAD_DOOR(cuMemsetD16Async, CUdeviceptr to, unsigned short value, size_t n, CUstream);
TALLY_AHEAD_DOOR(cuMemsetD32Async, CUdeviceptr to, unsigned int value, size_t n, CUstream);
TALLY_AHEAD_DOOR(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream);
TALLY_AHEAD_DOOR(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void *from, size_t n, CUstream);
TALLY_AHEAD_DOOR(cuMemcpyDtoHAsync_v2, void *to, CUdeviceptr from, size_t n, CUstream);
TALLY_AHEAD_DOOR(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream);
TALLY_AHEAD_DOOR(cuMemFreeAsync, CUdeviceptr memory, CUstream);
TALLY_AHEAD_DOOR(cuEventRecord, CUevent event, CUstream);
TALLY_AHEAD_DOOR(cuEventRecordWithFlags, CUevent event, CUstream, unsigned flags);

/* The same for cuStreamWaitEvent. */
bool tally_ahead_wait(struct tally_stream *stream, CUevent event, unsigned flags, CUresult *result);

#endif
