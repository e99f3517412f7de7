/* SPDX-License-Identifier: Apache-2.0 */
/* The generated interposers: every HOOK row of kind WORK, FENCE and DRAIN. */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/burst.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"

/* The first argument, a graph or a kernel; where it is memory it says nothing. */
#define FIRST(argument, ...) argument
#define WHAT(argument)	     _Generic((argument), CUdeviceptr: 0, default: (uintptr_t)(argument))

/* What comes before work that cannot skip itself; the stream's record, or NULL: Tally keeps out.
 * `what`: by what the work is known again. */
static struct tally_stream *before(CUstream handle, bool per_thread, bool work, uintptr_t what)
{
	struct tally_stream *s = tally_stream_find(handle, per_thread);

	if (!s || (atomic_load_explicit(&tally_process.captures, memory_order_relaxed) &&
		   tally_stream_captured(s->handle)))
		return NULL;
	tally_announce(s, work);
	if (work)
		tally_burst_launch(s->context->device, (const void *)what, 0, 0, 0);
	if (work)
		tally_gate_pass(s->context->device);
	if (tally_process.config.guards)
		tally_fence(s);
	return s;
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

#define ENQUEUE(symbol, per_thread, work, synchronous, stream_, parameters, arguments)             \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		struct tally_stream *record = NULL;                                                \
		CUresult result;                                                                   \
                                                                                                   \
		if (tally_enter() && tally_on())                                                   \
			record = before(stream_, per_thread, work, WHAT(FIRST arguments));         \
		result = TALLY_REAL(symbol) arguments;                                             \
		after(record, synchronous);                                                        \
		tally_leave();                                                                     \
		return result;                                                                     \
	}

#define ENQUEUE_PLAIN(symbol, work, stream_, parameters, arguments)                                \
	ENQUEUE(symbol, false, work, false, stream_, parameters, arguments)
#define ENQUEUE_PTSZ(symbol, work, stream_, parameters, arguments)                                 \
	ENQUEUE(symbol, false, work, false, stream_, parameters, arguments)                        \
	ENQUEUE(symbol##_ptsz, true, work, false, stream_, parameters, arguments)
#define ENQUEUE_PTDS(symbol, work, stream_, parameters, arguments)                                 \
	ENQUEUE(symbol, false, work, true, stream_, parameters, arguments)                         \
	ENQUEUE(symbol##_ptds, true, work, true, stream_, parameters, arguments)

#define WORK(flavour, symbol, stream_, parameters, arguments)                                      \
	ENQUEUE_##flavour(symbol, true, stream_, parameters, arguments)
#define FENCE(flavour, symbol, stream_, parameters, arguments)                                     \
	ENQUEUE_##flavour(symbol, false, stream_, parameters, arguments)
#define DRAIN(flavour, symbol, stream_, parameters, arguments)                                     \
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
#define OWN(flavour, symbol, stream_, parameters, arguments)
#define HOOK(kind, base, version, since, flavour, stream, parameters, arguments)                   \
	kind(flavour, base##version, stream, parameters, arguments)
#include "backends/cuda/interpose/hooks.def"
