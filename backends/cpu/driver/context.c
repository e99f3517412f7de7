/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: the primary one and others, the calling thread's stack of them, and the error that
 * stays once a kernel has failed. */
#include <stdlib.h>

#include "backends/cpu/driver/capture.h"

#define CONTEXT_MAGIC 0x78746343u

_Thread_local struct driver_thread driver_thread;

static struct context primaries[MOST_DEVICES]; /* by device */
static struct context *contexts;	       /* all; engine lock */

static const struct {
	enum tally_cpu_fault fault;
	CUresult error;
} fault_errors[] = {
	{TALLY_CPU_TRAP, CUDA_ERROR_LAUNCH_FAILED},
	{TALLY_CPU_ASSERT, CUDA_ERROR_ASSERT},
	{TALLY_CPU_DEADLOCK, CUDA_ERROR_LAUNCH_TIMEOUT},
	{TALLY_CPU_ILLEGAL, CUDA_ERROR_ILLEGAL_ADDRESS},
	{TALLY_CPU_MEMORY, CUDA_ERROR_OUT_OF_MEMORY},
};

void contexts_start(void)
{
	for (int i = device_count(); i--;) {
		primaries[i].primary = true;
		primaries[i].device = i;
		primaries[i].id = (uint64_t)i << 32 | 1;
		primaries[i].next = contexts;
		contexts = &primaries[i];
	}
}

bool context_failed(const struct context *context)
{
	return context->error != CUDA_SUCCESS;
}

void context_fail(struct context *context, enum tally_cpu_fault fault)
{
	if (context->error)
		return; /* the first one stays */
	context->error = CUDA_ERROR_LAUNCH_FAILED;
	for (size_t i = 0; i < sizeof fault_errors / sizeof *fault_errors; i++)
		if (fault_errors[i].fault == fault)
			context->error = fault_errors[i].error;
	engine_recheck_waits();
}

CUresult context_error(const struct context *context)
{
	engine_lock();
	CUresult error = context->error;
	engine_unlock();
	return error;
}

void context_streams(const struct context *context, struct stream **legacy, struct stream **all)
{
	*legacy = context->legacy;
	*all = context->streams;
}

void contexts_each_stream(void (*visit)(struct stream *stream))
{
	for (struct context *c = contexts; c; c = c->next)
		for (struct stream *s = c->streams; s; s = s->next)
			visit(s);
}

/* A context may be destroyed while other threads still have it on their stacks. */
static bool alive(const struct context *context)
{
	for (const struct context *c = contexts; c; c = c->next)
		if (c == context)
			return c->retained > 0;
	return false;
}

CUresult context_check(CUcontext handle, struct context **context)
{
	*context = (struct context *)handle;
	if (!handle)
		return context_current(context, false);
	REQUIRE_INIT();
	engine_lock();
	bool ok = alive(*context);
	engine_unlock();
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult context_current(struct context **context, bool healthy)
{
	const struct driver_thread *thread = &driver_thread;

	REQUIRE_INIT();
	*context = thread->depth ? thread->contexts[thread->depth - 1] : NULL;
	if (!*context)
		return CUDA_ERROR_INVALID_CONTEXT;
	/* The magic goes when a context is destroyed, and when a primary one is released by all;
	 * its memory stays (see destroy). */
	if ((*context)->magic != CONTEXT_MAGIC)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return healthy ? context_error(*context) : CUDA_SUCCESS;
}

/* Waits for every point of `streams`, gathered under the lock and waited for without it. */
static void wait_for_streams(const struct context *only)
{
	struct point points[64];
	size_t count;

	do {
		count = 0;
		engine_lock();
		for (struct context *c = contexts; c; c = c->next)
			for (struct stream *s = c->streams; s && (!only || c == only); s = s->next)
				if (s->head && count < sizeof points / sizeof *points)
					points[count++] = stream_end(s);
		engine_unlock();
		for (size_t i = 0; i < count; i++)
			engine_wait(points[i]);
		/* More streams than fit: again, with those that are still busy. */
	} while (count == sizeof points / sizeof *points);
}

/* All streams; the sticky error. */
static CUresult context_synchronize(struct context *context)
{
	wait_for_streams(context);
	return context_error(context);
}

void contexts_quiesce(void)
{
	wait_for_streams(NULL);
}

static void reset(struct context *context)
{
	wait_for_streams(context);
	modules_unload_context(context);
	ipc_forget_context(context);
	memory_remove_context(context);
	engine_lock();
	while (context->streams)
		stream_drop(context->streams);
	events_remove_context(context);
	context->legacy = NULL;
	context_forget_peers(context);
	context->error = CUDA_SUCCESS;
	context->id++; /* the per-thread streams of the old one are no more */
	context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
	context_default_limits(context);
	engine_unlock();
}

static CUresult create(CUcontext *result, unsigned flags, CUdevice device)
{
	static uint64_t ids = MOST_DEVICES;
	struct driver_thread *thread = &driver_thread;

	REQUIRE_INIT();
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!result || thread->depth == CONTEXT_STACK)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *context = calloc(1, sizeof *context);
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->magic = CONTEXT_MAGIC;
	context->device = device;
	context->flags = flags;
	context->retained = 1;
	context_default_limits(context);
	engine_lock();
	/* In steps, because reset() counts on from an id. */
	context->id = ++ids << 32;
	context->next = contexts;
	contexts = context;
	engine_unlock();
	thread->contexts[thread->depth++] = context;
	*result = (CUcontext)context;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return create(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
			unsigned int flags, CUdevice dev)
{
	return numParams ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : create(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
			CUdevice dev)
{
	if (ctxCreateParams &&
	    (ctxCreateParams->numExecAffinityParams || ctxCreateParams->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(pctx, flags, dev);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	struct driver_thread *thread = &driver_thread;
	struct context *context;
	CUresult result = ctx ? context_check(ctx, &context) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	if (context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	reset(context);
	engine_lock();
	/* Its few bytes stay: other threads may have it on their stacks, and their next call has
	 * to say that it is destroyed. */
	context->magic = 0;
	context->retained = 0;
	engine_unlock();
	if (thread->depth && thread->contexts[thread->depth - 1] == context)
		thread->depth--;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct driver_thread *thread = &driver_thread;
	struct context *context;
	CUresult result = ctx ? context_check(ctx, &context) : CUDA_ERROR_INVALID_CONTEXT;

	if (result)
		return result;
	if (thread->depth == CONTEXT_STACK)
		return CUDA_ERROR_INVALID_VALUE;
	thread->contexts[thread->depth++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	struct driver_thread *thread = &driver_thread;

	REQUIRE_INIT();
	if (!thread->depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	thread->depth--;
	if (pctx)
		*pctx = (CUcontext)thread->contexts[thread->depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return cuCtxPopCurrent_v2(pctx);
}

/* Replaces the top of the stack; NULL takes it away. */
CUresult cuCtxSetCurrent(CUcontext ctx)
{
	struct driver_thread *thread = &driver_thread;
	struct context *context = NULL;

	REQUIRE_INIT();
	if (ctx) {
		CUresult result = context_check(ctx, &context);
		if (result)
			return result;
	}
	if (thread->depth)
		thread->depth--;
	if (context)
		thread->contexts[thread->depth++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	const struct driver_thread *thread = &driver_thread;

	REQUIRE_INIT();
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = thread->depth ? (CUcontext)thread->contexts[thread->depth - 1] : NULL;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
	struct context *context;
	CUresult result = context_check(ctx, &context);

	if (!result)
		result = capture_forbids_context(context);
	return result ? result : context_synchronize(context);
}

CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct context *primary = &primaries[dev];
	engine_lock();
	if (!primary->retained++ && !primary->limits[CU_LIMIT_STACK_SIZE])
		context_default_limits(primary);
	primary->magic = CONTEXT_MAGIC;
	engine_unlock();
	*pctx = (CUcontext)primary;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	engine_lock();
	bool held = primaries[dev].retained > 0, last = primaries[dev].retained == 1;
	engine_unlock();
	if (!held)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (last)
		reset(&primaries[dev]);
	engine_lock();
	if (!--primaries[dev].retained)
		primaries[dev].magic = 0;
	engine_unlock();
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	reset(&primaries[dev]);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	engine_lock();
	primaries[dev].flags = flags;
	engine_unlock();
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	REQUIRE_INIT();
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	engine_lock();
	if (flags)
		*flags = primaries[dev].flags;
	if (active)
		*active = primaries[dev].retained > 0;
	engine_unlock();
	return CUDA_SUCCESS;
}
