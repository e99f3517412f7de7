/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for the device or ask about it. */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/guard.h"
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

/* Before the driver is asked about a stream; false: not at all, the answer is in `result`. */
typedef bool ask_first(struct tally_stream *s, CUresult *result);

static inline bool wait_first(struct tally_stream *s, CUresult *result)
{
	tally_fence(s);
	return !tally_ahead_failed(s->context->device, result);
}

static inline bool look_first(struct tally_stream *s, CUresult *result)
{
	*result = CUDA_ERROR_NOT_READY;
	return !tally_ahead_failed(s->context->device, result) && !tally_ahead_behind(s) &&
	       !guards_pending(s);
}

/* Inlined, so that neither door pays for the other. */
static inline __attribute__((always_inline)) CUresult ask(enum tally_hook symbol, CUstream handle,
							  bool per_thread, ask_first *first)
{
	struct tally_stream *s = NULL;
	uint64_t note = 0;
	CUresult result;

	if (tally_enter() && tally_on())
		s = tally_stream_find(handle, per_thread);
	if (s)
		note = tally_note(s);
	if (!s || first(s, &result))
		result = ((CUresult (*)(CUstream))tally_target(symbol))(handle);
	if (s && !result) {
		tally_finished(s, note);
		tally_activity_settle(s->context->device);
	}
	tally_leave();
	return result;
}

#define ASK(symbol, per_thread, first)                                                             \
	CUresult symbol(CUstream stream)                                                           \
	{                                                                                          \
		return ask(TALLY_HOOK_##symbol, stream, per_thread, first);                        \
	}
ASK(cuStreamSynchronize, false, wait_first)
ASK(cuStreamSynchronize_ptsz, true, wait_first)
ASK(cuStreamQuery, false, look_first)
ASK(cuStreamQuery_ptsz, true, look_first)

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
