/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for the device or ask about it, and the lives of streams, captures, contexts. */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/graphs.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"

CUresult cuInit(unsigned int Flags)
{
	CUresult result;

	tally_enter();
	result = TALLY_REAL(cuInit)(Flags);
	tally_leave();
	return result;
}

/* The device of the current context if it is being told about, or NULL. */
static struct tally_device *told_device(void)
{
	struct tally_context *c;

	/* Programs with guards are looked at by their monitor. */
	if (!tally_process.config.settles || !atomic_load(&tally_process.devices))
		return NULL;
	c = tally_context_current();
	return c ? c->device : NULL;
}

#define SYNCHRONIZE(symbol, per_thread)                                                            \
	CUresult symbol(CUstream stream)                                                           \
	{                                                                                          \
		struct tally_stream *s = NULL;                                                     \
		uint64_t note = 0;                                                                 \
		CUresult result;                                                                   \
                                                                                                   \
		if (tally_enter() && tally_on())                                                   \
			s = tally_stream_find(stream, per_thread);                                 \
		if (s) {                                                                           \
			note = tally_note(s);                                                      \
			tally_fence(s);                                                            \
		}                                                                                  \
		if (!s || !tally_ahead_failed(s->context->device, &result))                        \
			result = TALLY_REAL(symbol)(stream);                                       \
		if (s && !result) {                                                                \
			tally_finished(s, note);                                                   \
			tally_activity_settle(s->context->device);                                 \
		}                                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
SYNCHRONIZE(cuStreamSynchronize, false)
SYNCHRONIZE(cuStreamSynchronize_ptsz, true)

/* Whether guarded launches stand between the stream and its end. */
static bool guards_pending(struct tally_stream *s)
{
	struct tally_device *d = s->context->device;
	struct tally_stream *other;
	bool pending;

	if (!atomic_load(&d->in_flight))
		return false;
	tally_lock(d);
	pending = tally_guard_pending(s);
	if (s->kind == TALLY_STREAM_LEGACY)
		for (other = s->context->streams; other; other = other->next)
			pending |= other->kind != TALLY_STREAM_NONBLOCKING &&
				   tally_guard_pending(other);
	tally_unlock(d);
	return pending;
}

#define QUERY(symbol, per_thread)                                                                  \
	CUresult symbol(CUstream stream)                                                           \
	{                                                                                          \
		struct tally_stream *s = NULL;                                                     \
		uint64_t note = 0;                                                                 \
		CUresult result = CUDA_ERROR_NOT_READY;                                            \
                                                                                                   \
		if (tally_enter() && tally_on())                                                   \
			s = tally_stream_find(stream, per_thread);                                 \
		if (s)                                                                             \
			note = tally_note(s);                                                      \
		if (!s || (!tally_ahead_failed(s->context->device, &result) &&                     \
			   !tally_ahead_behind(s) && !guards_pending(s)))                          \
			result = TALLY_REAL(symbol)(stream);                                       \
		if (s && !result) {                                                                \
			tally_finished(s, note);                                                   \
			tally_activity_settle(s->context->device);                                 \
		}                                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
QUERY(cuStreamQuery, false)
QUERY(cuStreamQuery_ptsz, true)

CUresult cuCtxSynchronize(void)
{
	struct tally_context *c = NULL;
	CUresult result;

	if (tally_enter() && tally_on())
		c = tally_context_current();
	if (c)
		tally_drain_context(c);
	if (!c || !tally_ahead_failed(c->device, &result))
		result = TALLY_REAL(cuCtxSynchronize)();
	if (c && !result)
		tally_activity_settle(c->device);
	tally_leave();
	return result;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	bool ours = tally_enter() && tally_on();
	struct tally_device *d;
	CUresult result;

	if (ours)
		tally_drain_all();
	if (!ours || !tally_ahead_failed(NULL, &result))
		result = TALLY_REAL(cuCtxSynchronize_v2)(ctx);
	if (ours && !result && (d = told_device()))
		tally_activity_settle(d);
	tally_leave();
	return result;
}

#define DESTROY(symbol)                                                                            \
	CUresult symbol(CUstream stream)                                                           \
	{                                                                                          \
		struct tally_stream *s = NULL;                                                     \
		struct tally_device *d;                                                            \
		CUresult result;                                                                   \
                                                                                                   \
		if (tally_enter() && tally_on())                                                   \
			s = tally_stream_find(stream, false);                                      \
		if (s) {                                                                           \
			d = s->context->device;                                                    \
			tally_fence(s);                                                            \
			tally_queue_drain(s);                                                      \
			/* The monitor must not meet a stream that the driver has forgotten. */    \
			tally_lock(d);                                                             \
			result = TALLY_REAL(symbol)(stream);                                       \
			if (!result)                                                               \
				tally_stream_forget(s);                                            \
			tally_unlock(d);                                                           \
		} else {                                                                           \
			result = TALLY_REAL(symbol)(stream);                                       \
		}                                                                                  \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
DESTROY(cuStreamDestroy)
DESTROY(cuStreamDestroy_v2)

/*
 * Captures. Nothing guarded may be under way when one begins: starting it again could land in the
 * capture. Until the last one ends all launches are opaque; so it counts from before the wait, or
 * other threads would go on launching.
 */
static void begin_capture(void)
{
	/* While it counts, what was taken ahead would go to the driver all at once. */
	if (tally_ahead_on())
		tally_ahead_flush_all();
	tally_queue_mark_all();
	atomic_fetch_add(&tally_process.captures, 1);
	tally_drain_all();
}

#define BEGIN(symbol, parameters, arguments)                                                       \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result;                                                                   \
                                                                                                   \
		if (ours)                                                                          \
			begin_capture();                                                           \
		result = TALLY_REAL(symbol) arguments;                                             \
		if (ours && result)                                                                \
			atomic_fetch_sub(&tally_process.captures, 1);                              \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
#define BEGIN_BOTH(symbol, parameters, arguments)                                                  \
	BEGIN(symbol, parameters, arguments)                                                       \
	BEGIN(symbol##_ptsz, parameters, arguments)
BEGIN_BOTH(cuStreamBeginCapture, (CUstream stream), (stream))
BEGIN_BOTH(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
BEGIN_BOTH(cuStreamBeginCaptureToGraph,
	   (CUstream stream, CUgraph hGraph, const CUgraphNode *dependencies,
	    const CUgraphEdgeData *dependencyData, size_t numDependencies,
	    CUstreamCaptureMode mode),
	   (stream, hGraph, dependencies, dependencyData, numDependencies, mode))

#define END(symbol)                                                                                \
	CUresult symbol(CUstream stream, CUgraph *phGraph)                                         \
	{                                                                                          \
		bool ours = tally_enter() && tally_on() && tally_stream_captured(stream);          \
		CUresult result = TALLY_REAL(symbol)(stream, phGraph);                             \
                                                                                                   \
		/* A capture that was invalidated ends with an error, and ends. */                 \
		if (ours && atomic_load(&tally_process.captures))                                  \
			atomic_fetch_sub(&tally_process.captures, 1);                              \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
END(cuStreamEndCapture)
END(cuStreamEndCapture_ptsz)

static struct tally_context *find_context(CUcontext handle)
{
	struct tally_context *c = NULL;

	for (struct tally_device *d = atomic_load(&tally_process.devices); d && !c; d = d->next) {
		tally_lock(d);
		c = d->contexts;
		while (c && c->handle != handle)
			c = c->next;
		tally_unlock(d);
	}
	return c;
}

/* The null stream means another stream in each context; tally_stream_find() saves a question while
 * there is but one. */
#define MAKE_CONTEXT(symbol, parameters, arguments)                                                \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		bool ours = tally_enter() && tally_on();                                           \
		CUresult result = TALLY_REAL(symbol) arguments;                                    \
                                                                                                   \
		if (ours && !result && pctx)                                                       \
			tally_context_seen(*pctx);                                                 \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
MAKE_CONTEXT(cuCtxCreate, (CUcontext * pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev))
MAKE_CONTEXT(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev),
	     (pctx, flags, dev))
MAKE_CONTEXT(cuCtxCreate_v3,
	     (CUcontext * pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags,
	      CUdevice dev),
	     (pctx, paramsArray, numParams, flags, dev))
MAKE_CONTEXT(cuCtxCreate_v4,
	     (CUcontext * pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
	      CUdevice dev),
	     (pctx, ctxCreateParams, flags, dev))
MAKE_CONTEXT(cuCtxFromGreenCtx, (CUcontext * pctx, CUgreenCtx hCtx), (pctx, hCtx))
MAKE_CONTEXT(cuDevicePrimaryCtxRetain, (CUcontext * pctx, CUdevice dev), (pctx, dev))

/* What Tally knows of a context's modules and graphs ends with it, also where nothing was launched:
 * their handles may be another's as soon as it is gone. */
static struct tally_gone contents_end(CUcontext handle)
{
	tally_graphs_forget(handle);
	tally_events_forget(handle);
	return tally_modules_forget(handle);
}

#define END_CONTEXT(symbol)                                                                        \
	CUresult symbol(CUcontext ctx)                                                             \
	{                                                                                          \
		bool ours = tally_enter() && tally_on() && ctx;                                    \
		struct tally_context *c = ours ? find_context(ctx) : NULL;                         \
		struct tally_gone gone = {0};                                                      \
		CUresult result;                                                                   \
                                                                                                   \
		if (c)                                                                             \
			tally_drain_context(c);                                                    \
		if (ours) {                                                                        \
			tally_compile_forget(NULL, ctx);                                           \
			gone = contents_end(ctx);                                                  \
		}                                                                                  \
		if (c) {                                                                           \
			struct tally_device *d = c->device;                                        \
                                                                                                   \
			tally_lock(d);                                                             \
			result = TALLY_REAL(symbol)(ctx);                                          \
			if (!result)                                                               \
				tally_context_forget(c);                                           \
			tally_unlock(d);                                                           \
		} else {                                                                           \
			result = TALLY_REAL(symbol)(ctx);                                          \
		}                                                                                  \
		tally_gone_release(&gone);                                                         \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
END_CONTEXT(cuCtxDestroy)
END_CONTEXT(cuCtxDestroy_v2)
END_CONTEXT(cuCtxDetach)

static bool primary_active(CUdevice dev)
{
	unsigned flags;
	int active;

	return !TALLY_DRIVER(cuDevicePrimaryCtxGetState)(dev, &flags, &active) && active;
}

/* The device's primary context; NULL: there is none now. */
static CUcontext primary_of(CUdevice dev)
{
	CUcontext handle = NULL;

	if (!primary_active(dev) || TALLY_DRIVER(cuDevicePrimaryCtxRetain)(&handle, dev))
		return NULL;
	TALLY_DRIVER(cuDevicePrimaryCtxRelease_v2)(dev);
	return handle;
}

/* A primary context ends when it is reset, or with its last holder; only the driver knows who that
 * is. So nothing is given up before, and nothing is loaded beside a module meanwhile. */
#define END_PRIMARY(symbol, last_holder)                                                           \
	CUresult symbol(CUdevice dev)                                                              \
	{                                                                                          \
		CUcontext handle = tally_enter() && tally_on() ? primary_of(dev) : NULL;           \
		struct tally_context *c = handle ? find_context(handle) : NULL;                    \
		struct tally_gone gone = {0};                                                      \
		CUresult result;                                                                   \
		bool ended;                                                                        \
                                                                                                   \
		if (c)                                                                             \
			tally_drain_context(c);                                                    \
		/* Behind the wait: what is waited for may itself wait for a compilation. */       \
		if (handle)                                                                        \
			tally_compile_pause();                                                     \
		if (c)                                                                             \
			tally_lock(c->device);                                                     \
		result = TALLY_REAL(symbol)(dev);                                                  \
		ended = handle && !result && !(last_holder && primary_active(dev));                \
		if (c) {                                                                           \
			struct tally_device *d = c->device;                                        \
                                                                                                   \
			if (ended)                                                                 \
				tally_context_forget(c);                                           \
			tally_unlock(d);                                                           \
		}                                                                                  \
		if (ended)                                                                         \
			gone = contents_end(handle);                                               \
		if (handle)                                                                        \
			tally_compile_resume(ended ? handle : NULL);                               \
		tally_gone_release(&gone);                                                         \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
END_PRIMARY(cuDevicePrimaryCtxRelease, true)
END_PRIMARY(cuDevicePrimaryCtxRelease_v2, true)
END_PRIMARY(cuDevicePrimaryCtxReset, false)
END_PRIMARY(cuDevicePrimaryCtxReset_v2, false)
