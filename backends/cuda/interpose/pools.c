/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in stream order. To free some is work like any other: it has to come behind the launches
 * that use it, stopped ones included, so it waits for them, or is taken ahead. To allocate some is
 * not: nothing that came before uses it, so it may be there sooner, and the program has its address
 * without waiting for anything. Only where the driver has no memory left, or much of what the
 * program has freed is among the calls that were taken ahead, does it wait for these.
 */
#include "backends/cuda/interpose/activity.h"
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"
#include "backends/cuda/interpose/waits.h"

/* So much memory may have been freed by the program without the driver having heard of it. */
#define MOST_BYTES ((size_t)256 << 20)

static _Atomic size_t freed_bytes; /* by calls that were taken and have not been given */

/* Whether waiting may have brought memory back: everything that the program gave before is with the
 * driver. */
static bool freed_more(struct tally_stream *s)
{
	if (!s || !tally_process.config.guards)
		return false;
	tally_drain_all();
	return true;
}

#define ALLOCATE(symbol, per_thread, parameters, arguments)                                        \
	CUresult symbol parameters                                                                 \
	{                                                                                          \
		struct tally_stream *s = NULL;                                                     \
		CUresult result;                                                                   \
                                                                                                   \
		if (tally_enter() && tally_on())                                                   \
			s = tally_stream_given(stream, per_thread);                                \
		if (s && atomic_load(&freed_bytes) > MOST_BYTES)                                   \
			tally_ahead_flush_all();                                                   \
		if (s)                                                                             \
			tally_announce(s, false);                                                  \
		result = TALLY_REAL(symbol) arguments;                                             \
		if (result == CUDA_ERROR_OUT_OF_MEMORY && freed_more(s))                           \
			result = TALLY_REAL(symbol) arguments;                                     \
		if (s && !result && tally_process.config.guards)                                   \
			tally_waits_allocated(s);                                                  \
		if (s)                                                                             \
			tally_given();                                                             \
		tally_leave();                                                                     \
		return result;                                                                     \
	}
ALLOCATE(cuMemAllocAsync, false, (CUdeviceptr * dptr, size_t bytesize, CUstream stream),
	 (dptr, bytesize, stream))
ALLOCATE(cuMemAllocAsync_ptsz, true, (CUdeviceptr * dptr, size_t bytesize, CUstream stream),
	 (dptr, bytesize, stream))
ALLOCATE(cuMemAllocFromPoolAsync, false,
	 (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream stream),
	 (dptr, bytesize, pool, stream))
ALLOCATE(cuMemAllocFromPoolAsync_ptsz, true,
	 (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream stream),
	 (dptr, bytesize, pool, stream))

/* --- taken ahead --- */

struct release {
	CUdeviceptr memory;
	size_t bytes;
};

static CUresult give(const struct tally_entry *e)
{
	const struct release *r = (const struct release *)e->payload;

	atomic_fetch_sub(&freed_bytes, r->bytes);
	return cuMemFreeAsync(r->memory, e->stream->handle);
}

/* Whether it is what cuMemAllocAsync() has answered (to free that cannot fail), and how much. */
static bool from_pool(CUdeviceptr memory, size_t *bytes)
{
	CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
					CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
					CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	CUmemoryPool pool = NULL;
	CUdeviceptr start = 0;
	void *answers[] = {&pool, &start, bytes};

	return !TALLY_DRIVER(cuPointerGetAttributes)(sizeof wanted / sizeof *wanted, wanted,
						     answers, memory) &&
	       pool && start == memory;
}

bool tally_ahead_cuMemFreeAsync(struct tally_stream *s, uint64_t ns, CUresult *result,
				CUdeviceptr memory, CUstream handle)
{
	struct tally_device *d = s->context->device;
	struct tally_entry *e;
	size_t bytes = 0;

	(void)ns, (void)handle;
	if (!(tally_ahead_behind(s) || tally_guard_unconfirmed(s)) || !from_pool(memory, &bytes) ||
	    !(e = tally_ahead_begin(d, s, sizeof(struct release))))
		return false;
	*(struct release *)e->payload = (struct release){memory, bytes};
	atomic_fetch_add(&freed_bytes, bytes);
	e->always = true; /* else it would be lost to the program */
	tally_ahead_commit(d, e, give);
	*result = CUDA_SUCCESS;
	return true;
}
