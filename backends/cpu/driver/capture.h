/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: work of a stream becomes nodes of a graph. A stream comes into a capture by
 * cuStreamBeginCapture or by waiting for an event that was recorded in one, and leaves it when it
 * ends. What breaks the rules makes the capture invalid: it goes on, records nothing, and its end
 * answers an error (cuda.h at cuStreamBeginCapture, cuThreadExchangeStreamCaptureMode and the
 * errors 900 to 908). All of it under the engine's lock.
 */
#ifndef TALLY_BACKENDS_CPU_DRIVER_CAPTURE_H
#define TALLY_BACKENDS_CPU_DRIVER_CAPTURE_H

#include "backends/cpu/driver/graph.h"

/* Captures that are going on: where it is 0 nobody has to ask anything else. */
extern _Atomic unsigned captures_active;

static inline bool capture_any(void)
{
	return atomic_load_explicit(&captures_active, memory_order_relaxed) != 0;
}

/*
 * Before work is given to a stream: CUDA_SUCCESS, and `captured` says whether it is to be recorded;
 * else the error to answer. The legacy stream may not be used while a stream that it waits for is
 * captured.
 */
CUresult capture_admit(struct stream *stream, bool *captured);

/* The stream that a handle means, with that question asked. */
static inline CUresult capture_stream(CUstream handle, struct stream **stream, bool *captured)
{
	CUresult error = stream_resolve(handle, stream);

	return error ? error : capture_admit(*stream, captured);
}

/* Records work, which is the capture's from then on (and released on failure). */
CUresult capture_work(struct stream *stream, struct work *work);

/* Before waiting for a stream, or asking about it: an error where it is captured. */
CUresult capture_forbids_wait(struct stream *stream);
/* The same for all of a context's. */
CUresult capture_forbids_context(struct context *context);

/* Before a call that is not safe while somebody captures: allocations, questions about events. */
CUresult capture_forbids_unsafe(void);

/* For what cannot be recorded: makes the capture of the stream invalid. Returns the error. */
CUresult capture_refuse(struct stream *stream);

/* What an event holds that was recorded in a capture. */
struct captured_event;
CUresult capture_record(struct stream *stream, struct event *event);
/* Whether the wait was taken care of, with its answer in `result`: the event or the stream is in a
 * capture. */
bool capture_wait(struct stream *stream, struct event *event, CUresult *result);
/* NULL is nothing. The event does not hold it any more: no lock needed. */
void captured_event_free(struct captured_event *captured);

/* The stream is going away. Lock held. */
void capture_lose_stream(struct stream *stream);

#endif
