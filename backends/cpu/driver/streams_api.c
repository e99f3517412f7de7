/* SPDX-License-Identifier: Apache-2.0 */
/* The API's functions about streams, but for memory operations and host functions. */
#include <stdlib.h>

#include "backends/cpu/driver/capture.h"

static CUresult create(CUstream *result, unsigned flags, int priority)
{
	struct context *context;
	CUresult error = context_current(&context, true);

	if (error)
		return error;
	if (!result || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	/* Out of the range is not an error: cuda.h says that it is clamped. */
	int level = priority > 0 ? 0 : priority < 1 - LEVELS ? LEVELS - 1 : -priority;
	struct stream *stream = stream_add(context, flags, level);
	*result = (CUstream)stream;
	return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return create(phStream, Flags, 0);
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	return create(phStream, flags, priority);
}

/* What is queued still runs; the handle is gone at once. */
CUresult cuStreamDestroy_v2(CUstream hStream)
{
	struct stream *stream;

	if (!hStream || hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = stream_resolve(hStream, &stream);
	if (!result)
		stream_remove(stream);
	return result;
}

CUresult cuStreamDestroy(CUstream hStream)
{
	return cuStreamDestroy_v2(hStream);
}

CUresult cuStreamSynchronize(CUstream hStream)
{
	struct stream *stream;
	CUresult result = stream_resolve(hStream, &stream);

	if (!result)
		result = capture_forbids_wait(stream);
	return result ? result : stream_drain(stream);
}

CUresult cuStreamQuery(CUstream hStream)
{
	struct stream *stream;
	CUresult result = stream_resolve(hStream, &stream);

	if (!result)
		result = capture_forbids_wait(stream);
	if (result)
		return result;
	engine_lock();
	bool busy = stream->head;
	if (stream->legacy)
		for (struct stream *s = stream->context->streams; s && !busy; s = s->next)
			busy = !(s->flags & CU_STREAM_NON_BLOCKING) && s->head;
	result = stream->context->error;
	engine_unlock();
	return result ? result : busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

#define GET(symbol, type, allowed, value)                                                          \
	CUresult symbol(CUstream hStream, type *answer)                                            \
	{                                                                                          \
		struct stream *stream;                                                             \
		CUresult result = stream_resolve(hStream, &stream);                                \
                                                                                                   \
		if (!result && !answer)                                                            \
			result = CUDA_ERROR_INVALID_VALUE;                                         \
		if (!result)                                                                       \
			result = allowed;                                                          \
		if (!result)                                                                       \
			*answer = value;                                                           \
		return result;                                                                     \
	}
GET(cuStreamGetPriority, int, CUDA_SUCCESS, -stream->level)
/* NVIDIA's driver 580 answers 900 and ends the capture, for this question alone. */
GET(cuStreamGetFlags, unsigned int, capture_refuse(stream), stream->flags)
GET(cuStreamGetId, unsigned long long, CUDA_SUCCESS, stream->id)
GET(cuStreamGetCtx, CUcontext, CUDA_SUCCESS, (CUcontext)stream->context)
GET(cuStreamGetDevice, CUdevice, CUDA_SUCCESS, stream->context->device)

CUresult cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	if (pGreenCtx)
		*pGreenCtx = NULL;
	return cuStreamGetCtx(hStream, pCtx);
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	static atomic_bool said;
	struct stream *stream;
	struct event *event;
	struct point point;
	bool captured;
	CUresult result = stream_resolve(hStream, &stream);

	if (!result)
		result = event_check(hEvent, &event);
	if (!result && Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = capture_admit(stream, &captured);
	if (result)
		return result;
	if (Flags & CU_EVENT_WAIT_EXTERNAL) {
		struct work work = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .event = event};

		if (!captured)
			return CUDA_ERROR_INVALID_VALUE;
		if (event->shared)
			return driver_unsupported("graphs that wait for another process", &said);
		event_hold(event);
		return capture_work(stream, &work);
	}
	if (capture_wait(stream, event, &result))
		return result;
	if (event->shared)
		return event_wait_shared(event, stream);
	result = event_point(hEvent, &point);
	if (result || point_reached(point))
		return result; /* never recorded, or past: nothing to wait for */
	return stream_wait(stream, point);
}

/* Attributes are kept nowhere: but for the priority none of them means anything here. */
CUresult cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value)
{
	struct stream *stream;
	CUresult result = stream_resolve(hStream, &stream);

	if (result)
		return result;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	*value = (CUstreamAttrValue){0};
	if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY)
		value->priority = -stream->level;
	else if (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
		value->syncPolicy = CU_SYNC_POLICY_AUTO;
	return CUDA_SUCCESS;
}

CUresult cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *param)
{
	struct stream *stream;
	CUresult result = stream_resolve(hStream, &stream);

	if (result)
		return result;
	if (!param)
		return CUDA_ERROR_INVALID_VALUE;
	if (attr != CU_LAUNCH_ATTRIBUTE_PRIORITY)
		return CUDA_SUCCESS;
	int level = -param->priority;
	if (level < 0 || level >= LEVELS)
		return CUDA_ERROR_INVALID_VALUE;
	engine_lock();
	stream->level = level;
	engine_unlock();
	return CUDA_SUCCESS;
}

CUresult cuStreamCopyAttributes(CUstream dstStream, CUstream srcStream)
{
	struct stream *to, *from;
	CUresult result = stream_resolve(dstStream, &to);

	if (!result)
		result = stream_resolve(srcStream, &from);
	if (result)
		return result;
	engine_lock();
	to->level = from->level;
	engine_unlock();
	return CUDA_SUCCESS;
}

/* Managed memory is reachable from everywhere at any time. */
CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
				unsigned int flags)
{
	struct stream *stream;
	struct region region;
	CUresult result = stream_resolve(hStream, &stream);

	if (result)
		return result;
	return memory_find(dptr, &region) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
