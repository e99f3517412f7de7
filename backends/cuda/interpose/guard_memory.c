/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the launch protocol: a gate word for each context, and for each stream its words,
 * carved from chunks so that a program with hundreds of streams pays for few allocations. */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/resolve.h"

#define STREAMS_OF_CHUNK 16
#define CONTROLS	 (TALLY_LOG * sizeof(struct tally_control))
/* Device memory of one stream: the broken word, then the control blocks. Every block of a guarded
 * launch reads gate and broken and changes the control block's word: within 256 bytes of each other
 * they are one place of the GPU's L2 cache, and grids of tiny blocks took 1.5 times as long
 * (docs/opaque.md). What cuMemAlloc gives begins on such a line. */
#define LINE	     256
#define DEVICE_PLACE (LINE + (CONTROLS + LINE - 1) / LINE * LINE)

struct host_place {
	struct tally_words words;
	struct tally_control controls[TALLY_LOG];
};

struct tally_chunk {
	struct tally_chunk *next;
	CUdeviceptr device, host_device;
	struct host_place *host;
	uint32_t used; /* bit set of places */
};

/* Our allocations are none of a capture's business, and must not break one. */
static CUstreamCaptureMode relax(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	TALLY_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
	return mode;
}

static bool make_gate(struct tally_context *c)
{
	int lowest = 0, highest = 0;

	if (c->ready || c->failed)
		return c->ready;
	c->failed = true;
	TALLY_DRIVER(cuCtxGetStreamPriorityRange)(&lowest, &highest);
	if (TALLY_DRIVER(cuStreamCreateWithPriority)(&c->gate_stream, CU_STREAM_NON_BLOCKING,
						     highest) ||
	    TALLY_DRIVER(cuMemAlloc_v2)(&c->gate, LINE) ||
	    TALLY_DRIVER(cuMemsetD32Async)(c->gate, 0, 32, c->gate_stream) ||
	    TALLY_DRIVER(cuStreamSynchronize)(c->gate_stream))
		return false;
	c->samples = calloc(TALLY_SAMPLES, sizeof *c->samples); /* without them nothing is timed */
	c->failed = false;
	c->ready = true;
	return true;
}

static struct tally_chunk *make_chunk(struct tally_context *c)
{
	struct tally_chunk *chunk = calloc(1, sizeof *chunk);
	size_t host_size = STREAMS_OF_CHUNK * sizeof *chunk->host;

	if (!chunk)
		return NULL;
	if (TALLY_DRIVER(cuMemHostAlloc)((void **)&chunk->host, host_size,
					 CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) ||
	    TALLY_DRIVER(cuMemHostGetDevicePointer_v2)(&chunk->host_device, chunk->host, 0) ||
	    TALLY_DRIVER(cuMemAlloc_v2)(&chunk->device, STREAMS_OF_CHUNK * DEVICE_PLACE)) {
		if (chunk->host)
			TALLY_DRIVER(cuMemFreeHost)(chunk->host);
		free(chunk);
		return NULL;
	}
	memset(chunk->host, 0, host_size);
	chunk->next = c->chunks;
	c->chunks = chunk;
	return chunk;
}

static void fill(struct tally_context *c, struct tally_guard *g)
{
	struct host_place *place = &g->chunk->host[g->place];
	CUdeviceptr device = g->chunk->device + g->place * DEVICE_PLACE;
	CUdeviceptr host = g->chunk->host_device + g->place * sizeof *place;

	memset(place, 0, sizeof *place);
	g->words = &place->words;
	g->first_controls = place->controls;
	g->broken = device;
	g->controls = device + LINE;
	g->mailbox = host + offsetof(struct host_place, words.mailbox);
	g->done = host + offsetof(struct host_place, words.done);
	g->mark = host + offsetof(struct host_place, words.mark);
	for (unsigned i = 0; i < TALLY_LOG; i++)
		place->controls[i] = (struct tally_control){
			.gate = c->gate, .broken = g->broken, .mailbox = g->mailbox};
}

bool tally_guard_memory(struct tally_stream *stream)
{
	struct tally_context *c = stream->context;
	struct tally_guard *g = calloc(1, sizeof *g);
	CUstreamCaptureMode mode = relax();
	struct tally_chunk *chunk = NULL;

	if (g && make_gate(c)) {
		for (chunk = c->chunks; chunk; chunk = chunk->next)
			if (chunk->used != (1u << STREAMS_OF_CHUNK) - 1)
				break;
		if (!chunk)
			chunk = make_chunk(c);
	}
	if (chunk) {
		g->chunk = chunk;
		g->place = (unsigned)__builtin_ctz(~chunk->used);
		chunk->used |= 1u << g->place;
		fill(c, g);
		__atomic_store_n(&stream->guard, g, __ATOMIC_RELEASE);
	} else {
		free(g);
	}
	TALLY_DRIVER(cuThreadExchangeStreamCaptureMode)(&mode);
	return chunk != NULL;
}

void tally_guard_memory_return(struct tally_guard *guard)
{
	guard->chunk->used &= ~(1u << guard->place);
}

/* The driver frees the memory with the context. */
void tally_guard_memory_forget(struct tally_context *context)
{
	free(context->samples);
	context->samples = NULL;
	while (context->chunks) {
		struct tally_chunk *next = context->chunks->next;
		free(context->chunks);
		context->chunks = next;
	}
}
