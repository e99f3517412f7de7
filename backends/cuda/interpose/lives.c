/* SPDX-License-Identifier: Apache-2.0 */
/* The lives of streams, captures and contexts. */
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/graphs.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/images.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"

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

/* `c` may be NULL; its device's lock is held, and given back. */
static void end_record(struct tally_context *c, bool ended)
{
	struct tally_device *d = c ? c->device : NULL;

	if (ended && c)
		tally_context_forget(c);
	if (d)
		tally_unlock(d);
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
		if (c)                                                                             \
			tally_lock(c->device);                                                     \
		result = TALLY_REAL(symbol)(ctx);                                                  \
		end_record(c, !result);                                                            \
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
		end_record(c, ended);                                                              \
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
