/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that are taken ahead. Only a launch that cannot fail for a reason of its own is: one of a
 * kernel in a configuration, with attributes and in a context in which the driver has taken it
 * before.
 */
#include "backends/cuda/interpose/ahead.h"

#include <string.h>

#include "backends/cuda/interpose/guard.h"
#include "backends/cuda/interpose/line.h"
#include "backends/cuda/interpose/queue.h"
#include "base/hash.h"

#define MOST_ATTRIBUTES 8

/* The payload: what follows it are `attributes`, `pointers`, and the packed parameters. */
struct launch {
	CUfunction function;
	struct tally_dimensions at;
	bool cooperative, extended;
	unsigned attribute_count;
	CUlaunchAttribute *attributes;
	void **pointers; /* to the parameters; NULL: the program gave them packed */
	void *packed;
	size_t packed_size;
	void *extra[5];
};

/* How much of an attribute's value counts. What is not here names an event or a node, or is not
 * known: a launch that has it is not taken ahead. */
static const struct {
	CUlaunchAttributeID id;
	size_t size;
} plain[] = {
	{CU_LAUNCH_ATTRIBUTE_IGNORE, 0},
	{CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, sizeof(CUaccessPolicyWindow)},
	{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, sizeof(int)},
	{CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 3 * sizeof(unsigned)},
	{CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
	 sizeof(CUclusterSchedulingPolicy)},
	{CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, sizeof(int)},
	{CU_LAUNCH_ATTRIBUTE_PRIORITY, sizeof(int)},
	{CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, sizeof(CUlaunchMemSyncDomainMap)},
	{CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, sizeof(CUlaunchMemSyncDomain)},
	{CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, 3 * sizeof(unsigned)},
	{CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, sizeof(unsigned)},
};

static uint64_t fold(uint64_t hash, uint64_t more)
{
	return (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static bool fold_attribute(uint64_t *hash, const CUlaunchAttribute *a)
{
	for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++)
		if (plain[i].id == a->id) {
			*hash = fold(*hash, (uint64_t)a->id + 1);
			*hash = fold(*hash, tally_hash_64(&a->value, plain[i].size));
			return true;
		}
	return false;
}

/* Whether the program gave its parameters in one piece, and where; false: there is no telling. */
static bool packed(const struct tally_call *call, void **bytes, size_t *size)
{
	bool sized = false;

	*bytes = NULL;
	for (void **e = call->extra; e && e[0] != CU_LAUNCH_PARAM_END; e += 2) {
		if (e[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
			*bytes = e[1];
		} else if (e[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
			*size = *(const size_t *)e[1];
			sized = true;
		} else {
			return false;
		}
	}
	return !*bytes || (sized && !call->parameters);
}

/* A name for everything about the launch that could make the driver refuse it, but for the kernel
 * and its configuration; 0: not one to be taken ahead. */
static uint64_t manner(const struct tally_stream *s, const struct tally_call *call)
{
	uint64_t hash = fold((uintptr_t)s->context->handle, call->cooperative);
	const CUlaunchConfig *config = call->config;
	size_t size = 0;
	void *bytes;

	if (!packed(call, &bytes, &size) || (config && config->numAttrs > MOST_ATTRIBUTES))
		return 0;
	hash = fold(hash, size);
	for (unsigned i = 0; config && i < config->numAttrs; i++)
		if (!fold_attribute(&hash, &config->attrs[i]))
			return 0;
	return hash | 1;
}

/* Whether the driver took a launch in this manner. */
static bool accepted(const struct tally_configuration *c, uint64_t how)
{
	for (unsigned i = 0; how && i < TALLY_MANNERS; i++)
		if (atomic_load_explicit(&c->accepted[i], memory_order_relaxed) == how)
			return true;
	return false;
}

void tally_ahead_accepted(const struct tally_stream *s, const struct tally_call *call,
			  struct tally_configuration *c)
{
	uint64_t how = tally_process.config.ahead && c ? manner(s, call) : 0, none;

	if (!how || accepted(c, how))
		return;
	for (unsigned i = 0; i < TALLY_MANNERS; i++) {
		none = 0;
		if (atomic_compare_exchange_strong(&c->accepted[i], &none, how))
			return;
	}
	atomic_store_explicit(&c->accepted[how / 2 % TALLY_MANNERS], how, memory_order_relaxed);
}

static CUresult give(const struct tally_entry *e)
{
	const struct launch *l = (const struct launch *)e->payload;
	const unsigned *g = l->at.grid, *b = l->at.block;
	void **extra = l->packed && !l->pointers ? (void **)l->extra : NULL;
	CUstream stream = e->stream->handle;
	CUlaunchConfig config = {.gridDimX = g[0],
				 .gridDimY = g[1],
				 .gridDimZ = g[2],
				 .blockDimX = b[0],
				 .blockDimY = b[1],
				 .blockDimZ = b[2],
				 .sharedMemBytes = l->at.shared,
				 .hStream = stream,
				 .attrs = l->attributes,
				 .numAttrs = l->attribute_count};

	if (l->cooperative)
		return cuLaunchCooperativeKernel(l->function, g[0], g[1], g[2], b[0], b[1], b[2],
						 l->at.shared, stream, l->pointers);
	if (l->extended)
		return cuLaunchKernelEx(&config, l->function, l->pointers, extra);
	return cuLaunchKernel(l->function, g[0], g[1], g[2], b[0], b[1], b[2], l->at.shared, stream,
			      l->pointers, extra);
}

/* Whether the launch would have to wait; `c` says how long it takes and what it runs as. */
static bool would_wait(struct tally_stream *s, struct tally_configuration *c)
{
	enum tally_level level =
		(enum tally_level)(atomic_load_explicit(&c->choice, memory_order_relaxed) & 0xff);
	const struct tally_plan plan = {.configuration = c, .choice = {.level = level}};
	struct tally_device *d = s->context->device;

	if (tally_ahead_busy(d))
		return tally_ahead_behind(s);
	if (!tally_line_empty(d) || tally_gate_closed(d))
		return true;
	if (level != TALLY_LEVEL_GATE &&
	    atomic_load_explicit(&d->in_flight, memory_order_relaxed) < tally_process.config.depth)
		return false;
	if (!tally_queue_has_room(d, tally_plan_ns(&plan)))
		return true;
	/* What cannot skip itself waits for what is in front of it. */
	return level == TALLY_LEVEL_GATE && !tally_kernel_stoppable(c->kernel) &&
	       tally_guard_unconfirmed(s);
}

/* Copies the launch into a new entry; false: it cannot be taken. */
static bool take(struct tally_stream *s, const struct tally_call *call,
		 const struct tally_configuration *c)
{
	const struct tally_kernel *k = c->kernel;
	size_t size = k->bytes;
	void *bytes;
	bool readable = packed(call, &bytes, &size);
	unsigned attributes = call->config ? call->config->numAttrs : 0;
	unsigned count = bytes ? 0 : k->count;
	size_t attributes_at = sizeof(struct launch),
	       pointers_at = attributes_at + attributes * sizeof(CUlaunchAttribute),
	       bytes_at = (pointers_at + count * sizeof(void *) + 15) & ~(size_t)15;
	struct tally_device *d = s->context->device;
	struct tally_entry *e;
	struct launch *l;

	e = readable ? tally_ahead_begin(d, s, bytes_at + size) : NULL;
	if (!e)
		return false;
	l = (struct launch *)e->payload;
	*l = (struct launch){.function = call->function,
			     .at = *call->at,
			     .cooperative = call->cooperative,
			     .extended = call->config != NULL,
			     .attribute_count = attributes,
			     .packed = e->payload + bytes_at,
			     .packed_size = size};
	if (attributes) {
		l->attributes = (CUlaunchAttribute *)(e->payload + attributes_at);
		memcpy(l->attributes, call->config->attrs, attributes * sizeof *l->attributes);
	}
	if (bytes) {
		memcpy(l->packed, bytes, size);
		memcpy(l->extra,
		       (void *[]){CU_LAUNCH_PARAM_BUFFER_POINTER, l->packed,
				  CU_LAUNCH_PARAM_BUFFER_SIZE, &l->packed_size,
				  CU_LAUNCH_PARAM_END},
		       sizeof l->extra);
	} else {
		l->pointers = (void **)(e->payload + pointers_at);
		for (unsigned i = 0; i < count; i++) {
			l->pointers[i] = (char *)l->packed + k->parameters[i].offset;
			memcpy(l->pointers[i], call->parameters[i], k->parameters[i].size);
		}
	}
	tally_report_trace(d->report, TALLY_TRACE_LAUNCH, s->number, c->row,
			   atomic_load(&c->choice) & 0xff);
	tally_ahead_commit(d, e, give);
	return true;
}

/* Whether its parameters can be copied. */
static bool copyable(struct tally_kernel *k, const struct tally_call *call)
{
	return call->extra || (tally_kernel_layout(k) && (call->parameters || !k->count));
}

bool tally_ahead_launch(struct tally_stream *s, const struct tally_call *call, CUresult *result)
{
	struct tally_device *d = s->context->device;
	struct tally_configuration *c;
	struct tally_kernel *k;

	if (tally_ahead_failed(d, result))
		return true;
	k = tally_kernel_of(call->function);
	c = k ? tally_configuration_of(d, k, call->at) : NULL;
	if (c && would_wait(s, c) && accepted(c, manner(s, call)) && copyable(k, call) &&
	    take(s, call, c)) {
		*result = CUDA_SUCCESS;
		return true;
	}
	tally_ahead_flush_stream(s);
	return false;
}
