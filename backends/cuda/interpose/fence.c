/* SPDX-License-Identifier: Apache-2.0 */
/* The generated interposers: every HOOK row of kind WORK, FENCE, FLUSH, SETTING and DRAIN. */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/burst.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/queue.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/waits.h"

/* The first argument, a graph or a kernel; where it is memory it says nothing. */
#define FIRST(argument, ...) argument
#define WHAT(argument)	     _Generic((argument), CUdeviceptr: 0, default: (uintptr_t)(argument))

/* What copies and memsets are taken for before one was timed, ns. */
#define COPY_NS(bytes)	 (2000 + (bytes) / 20)
#define MEMSET_NS(bytes) (2000 + (bytes) / 1000)

#define TALLY_BYTES_2D(copy) ((copy) ? (copy)->WidthInBytes * (copy)->Height : 0)
#define TALLY_BYTES_3D(copy) ((copy) ? (copy)->WidthInBytes * (copy)->Height * (copy)->Depth : 0)

/* How long such work lasts, by function and size. */
static struct tally_cost costs[TALLY_HOOK_COUNT][8 * sizeof(size_t)];

static struct tally_cost *cost_of(enum tally_hook hook, size_t bytes)
{
	return &costs[hook][bytes ? 8 * sizeof bytes - 1 - (unsigned)__builtin_clzl(bytes) : 0];
}

static uint64_t predicted(enum tally_hook hook, size_t bytes, bool work)
{
	return tally_cost_ns(cost_of(hook, bytes), work ? MEMSET_NS(bytes) : COPY_NS(bytes));
}

static void count_piece(struct tally_stream *s, struct tally_piece *p, enum tally_hook hook,
			size_t bytes, bool work, bool synchronous)
{
	struct tally_device *d = s->context->device;

	/* A synchronous copy leaves nothing in the queue. */
	if (!work && (synchronous || !bytes))
		return;
	p->cost = cost_of(hook, bytes);
	p->ungated = !work;
	tally_queue_enter(s, p, predicted(hook, bytes, work), tally_cost_due(p->cost));
	if (bytes) {
		tally_report_count(d->report, TALLY_COUNT_COPIES, 1);
		tally_report_trace(d->report, TALLY_TRACE_COPY, s->number, NULL, bytes);
	}
}

/* What a call has to do with work that may wait for the program (waits.h), or with other devices.
 */
enum spread { NOTHING, MAY_WAIT, RECORDS, PEERS };

#define BOTH(symbol, what) [TALLY_HOOK_##symbol] = (what), [TALLY_HOOK_##symbol##_ptsz] = (what)
static const uint8_t spreads[TALLY_HOOK_COUNT] = {
	BOTH(cuLaunchHostFunc, MAY_WAIT),
	BOTH(cuStreamAddCallback, MAY_WAIT),
	BOTH(cuStreamWaitValue32, MAY_WAIT),
	BOTH(cuStreamWaitValue32_v2, MAY_WAIT),
	BOTH(cuStreamWaitValue64, MAY_WAIT),
	BOTH(cuStreamWaitValue64_v2, MAY_WAIT),
	BOTH(cuStreamBatchMemOp, MAY_WAIT),
	BOTH(cuStreamBatchMemOp_v2, MAY_WAIT),
	BOTH(cuWaitExternalSemaphoresAsync, MAY_WAIT),
	BOTH(cuEventRecord, RECORDS),
	BOTH(cuEventRecordWithFlags, RECORDS),
	[TALLY_HOOK_cuMemcpyPeer] = PEERS,
	[TALLY_HOOK_cuMemcpyPeer_ptds] = PEERS,
	[TALLY_HOOK_cuMemcpy3DPeer] = PEERS,
	[TALLY_HOOK_cuMemcpy3DPeer_ptds] = PEERS,
};

/* What comes before work that cannot skip itself. `what`: by what the work is known again. */
static void before(struct tally_stream *s, enum tally_hook hook, bool work, uintptr_t what)
{
	tally_announce(s, work);
	if (work)
		tally_burst_launch(s->context->device, (const void *)what, 0, 0, 0);
	if (work)
		tally_gate_pass(s->context->device);
	/* cuda.h: they come behind what both contexts were given. */
	if (spreads[hook] == PEERS)
		tally_ahead_flush_all();
	if (tally_process.config.guards)
		tally_fence(s);
}

/* Many programs wait for the device with a synchronous copy and nothing else. */
static void after(struct tally_stream *s, bool synchronous)
{
	if (!s)
		return;
	tally_given();
	if (synchronous)
		tally_activity_settle(s->context->device);
}

/* The driver took the call. `s`: NULL where Tally keeps out. */
static void spread_waits(enum tally_hook hook, struct tally_stream *s, uintptr_t first)
{
	if (spreads[hook] == MAY_WAIT)
		tally_waits_begin(s);
	else if (spreads[hook] == RECORDS && s)
		tally_waits_recorded((CUevent)first, s);
	else if (s)
		tally_waits_behind(s); /* others may be behind this one */
}

/*
 * Whether a call sets what is so already, or what changes nothing but speed. Libraries of kernels
 * say how much shared memory a kernel may have before each launch of it: PyTorch's training loop
 * waited for the device a hundred times in a step because of that.
 */
static bool speed_alone(CUfunction_attribute what)
{
	return what == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
}

static bool is_so_cuFuncSetAttribute(CUfunction f, CUfunction_attribute what, int value)
{
	int now;

	return speed_alone(what) ||
	       (!TALLY_DRIVER(cuFuncGetAttribute)(&now, what, f) && now == value);
}

static bool is_so_cuKernelSetAttribute(CUfunction_attribute what, int value, CUkernel kernel,
				       CUdevice device)
{
	int now;

	return speed_alone(what) ||
	       (!TALLY_DRIVER(cuKernelGetAttribute)(&now, what, kernel, device) && now == value);
}

/* Whether the call has been taken ahead, or does not come to the driver because of an error. */
#define NEVER(...)  false
#define UNPACK(...) __VA_ARGS__
#define AHEAD(take) (tally_ahead_failed(record->context->device, &result) || (take))

#define ENQUEUE(symbol, take, per_thread, work, synchronous, stream_, bytes_, parameters,          \
		arguments)                                                                         \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		struct tally_stream *record = NULL;                                                \
		struct tally_piece piece = {0};                                                    \
		CUresult result;                                                                   \
                                                                                                   \
		if (tally_enter() && tally_on())                                                   \
			record = tally_stream_given(stream_, per_thread);                          \
		if (record && tally_ahead_on() &&                                                  \
		    AHEAD(take(record, predicted(TALLY_HOOK_##symbol, bytes_, work), &result,      \
			       UNPACK arguments))) {                                               \
			tally_leave();                                                             \
			return result;                                                             \
		}                                                                                  \
		if (record)                                                                        \
			before(record, TALLY_HOOK_##symbol, work, WHAT(FIRST arguments));          \
		if (record && tally_process.config.guards)                                         \
			count_piece(record, &piece, TALLY_HOOK_##symbol, bytes_, work,             \
				    synchronous);                                                  \
		result = TALLY_REAL(symbol) arguments;                                             \
		tally_queue_leave(&piece, result == CUDA_SUCCESS);                                 \
		if (!result && tally_mode == TALLY_ON && tally_process.config.guards)              \
			spread_waits(TALLY_HOOK_##symbol, record, WHAT(FIRST arguments));          \
		after(record, synchronous);                                                        \
		tally_leave();                                                                     \
		return result;                                                                     \
	}

#define ENQUEUE_PLAIN(symbol, take, work, stream_, bytes, parameters, arguments)                   \
	ENQUEUE(symbol, take, false, work, false, stream_, bytes, parameters, arguments)
#define ENQUEUE_PTSZ(symbol, take, work, stream_, bytes, parameters, arguments)                    \
	ENQUEUE(symbol, take, false, work, false, stream_, bytes, parameters, arguments)           \
	ENQUEUE(symbol##_ptsz, take, true, work, false, stream_, bytes, parameters, arguments)
#define ENQUEUE_PTDS(symbol, take, work, stream_, bytes, parameters, arguments)                    \
	ENQUEUE(symbol, take, false, work, true, stream_, bytes, parameters, arguments)            \
	ENQUEUE(symbol##_ptds, take, true, work, true, stream_, bytes, parameters, arguments)

#define WORK(flavour, symbol, stream_, bytes, parameters, arguments)                               \
	ENQUEUE_##flavour(symbol, NEVER, true, stream_, bytes, parameters, arguments)
#define FENCE(flavour, symbol, stream_, bytes, parameters, arguments)                              \
	ENQUEUE_##flavour(symbol, NEVER, false, stream_, bytes, parameters, arguments)
#define WORK_AHEAD(flavour, symbol, stream_, bytes, parameters, arguments)                         \
	ENQUEUE_##flavour(symbol, tally_ahead_##symbol, true, stream_, bytes, parameters, arguments)
#define FENCE_AHEAD(flavour, symbol, stream_, bytes, parameters, arguments)                        \
	ENQUEUE_##flavour(symbol, tally_ahead_##symbol, false, stream_, bytes, parameters,         \
			  arguments)
#define FLUSH(flavour, symbol, stream_, bytes, parameters, arguments)                              \
	FLUSH_##flavour(symbol, parameters, arguments)
#define SETTING(flavour, symbol, stream_, bytes, parameters, arguments)                            \
	FLUSH_UNLESS(symbol, is_so_##symbol, parameters, arguments)
#define FLUSH_UNLESS(symbol, needless, parameters, arguments)                                      \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		CUresult result;                                                                   \
                                                                                                   \
		if (tally_enter() && tally_on() && tally_ahead_on() && !needless arguments)        \
			tally_ahead_flush_all();                                                   \
		result = TALLY_REAL(symbol) arguments;                                             \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
#define FLUSH_PLAIN(symbol, parameters, arguments)                                                 \
	FLUSH_UNLESS(symbol, NEVER, parameters, arguments)
#define FLUSH_PTSZ(symbol, parameters, arguments)                                                  \
	FLUSH_PLAIN(symbol, parameters, arguments)                                                 \
	FLUSH_PLAIN(symbol##_ptsz, parameters, arguments)
#define DRAIN(flavour, symbol, stream_, bytes, parameters, arguments)                              \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		CUresult result;                                                                   \
                                                                                                   \
		if (tally_enter() && tally_on() && tally_process.config.guards)                    \
			tally_drain_all();                                                         \
		result = TALLY_REAL(symbol) arguments;                                             \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
#define OWN(flavour, symbol, stream_, bytes, parameters, arguments)
#define CHANGE(flavour, symbol, stream_, bytes, parameters, arguments)
#define HOOK(kind, base, version, since, flavour, stream, bytes, parameters, arguments)            \
	kind(flavour, base##version, stream, bytes, parameters, arguments)
#include "backends/cuda/interpose/hooks.def"
