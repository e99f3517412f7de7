/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memsets and copies that are taken ahead: those within one piece of memory of the device, or to
 * and from memory that is pinned. What is elsewhere could be refused, or belongs to the program
 * again when its call returns.
 */
#include "backends/cuda/interpose/ahead.h"
#include "backends/cuda/interpose/resolve.h"

/* The payload. */
struct fill {
	CUdeviceptr to;
	unsigned value;
	size_t n;
};

struct copy {
	CUdeviceptr to, from;
	size_t n;
};

enum where { NOWHERE, ON_DEVICE, PINNED };

/* Where [address, address + bytes) is all of it. */
static enum where find(const struct tally_device *d, CUdeviceptr address, size_t bytes)
{
	CUpointer_attribute wanted[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	unsigned type = 0, managed = 0;
	int ordinal = -1;
	CUdeviceptr start = 0;
	size_t size = 0;
	void *answers[] = {&type, &managed, &ordinal, &start, &size};

	if (TALLY_DRIVER(cuPointerGetAttributes)(sizeof wanted / sizeof *wanted, wanted, answers,
						 address) ||
	    managed || address < start || address - start > size ||
	    bytes > size - (address - start))
		return NOWHERE;
	if (type == CU_MEMORYTYPE_DEVICE)
		return ordinal == d->ordinal ? ON_DEVICE : NOWHERE;
	return type == CU_MEMORYTYPE_HOST ? PINNED : NOWHERE;
}

/* --- memsets --- */

static CUresult give_8(const struct tally_entry *e)
{
	const struct fill *p = (const struct fill *)e->payload;

	return cuMemsetD8Async(p->to, (unsigned char)p->value, p->n, e->stream->handle);
}

static CUresult give_16(const struct tally_entry *e)
{
	const struct fill *p = (const struct fill *)e->payload;

	return cuMemsetD16Async(p->to, (unsigned short)p->value, p->n, e->stream->handle);
}

static CUresult give_32(const struct tally_entry *e)
{
	const struct fill *p = (const struct fill *)e->payload;

	return cuMemsetD32Async(p->to, p->value, p->n, e->stream->handle);
}

/* `each`: bytes of an element. */
static bool take_fill(struct tally_stream *s, uint64_t ns, CUresult *result, struct fill fill,
		      size_t each, CUresult (*give)(const struct tally_entry *))
{
	struct tally_device *d = s->context->device;
	struct tally_entry *e;

	if (!fill.n || fill.n > SIZE_MAX / each || fill.to % each ||
	    !tally_ahead_wanted(s, ns, true) || find(d, fill.to, fill.n * each) != ON_DEVICE ||
	    !(e = tally_ahead_begin(d, s, sizeof fill)))
		return false;
	*(struct fill *)e->payload = fill;
	tally_ahead_commit(d, e, give);
	*result = CUDA_SUCCESS;
	return true;
}

#define FILL(symbol, type, give)                                                                   \
	bool tally_ahead_##symbol(struct tally_stream *stream, uint64_t ns, CUresult *result,      \
				  CUdeviceptr to, type value, size_t n, CUstream handle)           \
	{                                                                                          \
		(void)handle;                                                                      \
		return take_fill(stream, ns, result, (struct fill){to, value, n}, sizeof value,    \
				 give);                                                            \
	}
FILL(cuMemsetD8Async, unsigned char, give_8)
FILL(cuMemsetD16Async, unsigned short, give_16)
FILL(cuMemsetD32Async, unsigned int, give_32)

/* --- copies --- */

static CUresult give_any(const struct tally_entry *e)
{
	const struct copy *p = (const struct copy *)e->payload;

	return cuMemcpyAsync(p->to, p->from, p->n, e->stream->handle);
}

static CUresult give_to_device(const struct tally_entry *e)
{
	const struct copy *p = (const struct copy *)e->payload;

	return cuMemcpyHtoDAsync_v2(p->to, (const void *)p->from, p->n, e->stream->handle);
}

static CUresult give_to_host(const struct tally_entry *e)
{
	const struct copy *p = (const struct copy *)e->payload;

	return cuMemcpyDtoHAsync_v2((void *)p->to, p->from, p->n, e->stream->handle);
}

static CUresult give_on_device(const struct tally_entry *e)
{
	const struct copy *p = (const struct copy *)e->payload;

	return cuMemcpyDtoDAsync_v2(p->to, p->from, p->n, e->stream->handle);
}

/* `to` and `from`: where its ends have to be; NOWHERE: either will do. */
static bool take_copy(struct tally_stream *s, uint64_t ns, CUresult *result, struct copy copy,
		      enum where to, enum where from, CUresult (*give)(const struct tally_entry *))
{
	struct tally_device *d = s->context->device;
	enum where found_to, found_from;
	struct tally_entry *e;

	if (!copy.n || !tally_ahead_wanted(s, ns, false))
		return false;
	found_to = find(d, copy.to, copy.n);
	found_from = find(d, copy.from, copy.n);
	if (!found_to || !found_from || (to && found_to != to) || (from && found_from != from) ||
	    !(e = tally_ahead_begin(d, s, sizeof copy)))
		return false;
	*(struct copy *)e->payload = copy;
	tally_ahead_commit(d, e, give);
	*result = CUDA_SUCCESS;
	return true;
}

#define COPY(symbol, to_type, from_type, where_to, where_from, give)                               \
	bool tally_ahead_##symbol(struct tally_stream *stream, uint64_t ns, CUresult *result,      \
				  to_type to, from_type from, size_t n, CUstream handle)           \
	{                                                                                          \
		(void)handle;                                                                      \
		return take_copy(stream, ns, result,                                               \
				 (struct copy){(CUdeviceptr)to, (CUdeviceptr)from, n}, where_to,   \
				 where_from, give);                                                \
	}
COPY(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, NOWHERE, NOWHERE, give_any)
COPY(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, ON_DEVICE, PINNED, give_to_device)
COPY(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, PINNED, ON_DEVICE, give_to_host)
COPY(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, ON_DEVICE, ON_DEVICE, give_on_device)
