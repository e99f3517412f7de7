/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills: see copy.h. */
#include "backends/cpu/driver/copy.h"
#include "backends/cpu/driver/capture.h"

#include <string.h>

#define SMALL (64u << 10)  /* bytes that are copied at once by whoever is there */
#define PIECE (256u << 10) /* bytes of one block of a larger one */

static void fill(char *to, const struct transfer *t, size_t bytes)
{
	if (t->element == 1) {
		memset(to, (int)t->value, bytes);
	} else if (t->element == 2) {
		uint16_t *p = (uint16_t *)to;
		for (size_t i = 0; i < bytes / 2; i++)
			p[i] = (uint16_t)t->value;
	} else {
		uint32_t *p = (uint32_t *)to;
		for (size_t i = 0; i < bytes / 4; i++)
			p[i] = t->value;
	}
}

/* Bytes [first, first + bytes) of row `row` (rows of all planes counted on). */
static void run_row(const struct transfer *t, size_t row, size_t first, size_t bytes)
{
	size_t z = row / t->height, y = row % t->height;
	char *to = (char *)(t->to + z * t->to_slice + y * t->to_pitch + first);

	if (t->element)
		fill(to, t, bytes);
	else
		memmove(to, (const char *)(t->from + z * t->from_slice + y * t->from_pitch + first),
			bytes);
}

static void run_all(const struct transfer *t)
{
	for (size_t row = 0; row < t->height * t->depth; row++)
		run_row(t, row, 0, t->width);
}

/* A block is a piece of the only row, or as many rows as make a piece. */
static bool one_row(const struct transfer *t)
{
	return t->height * t->depth == 1;
}

static size_t rows_of_block(const struct transfer *t)
{
	return t->width >= PIECE ? 1 : PIECE / t->width;
}

static uint64_t count_blocks(const struct transfer *t)
{
	if (one_row(t))
		return (t->width + PIECE - 1) / PIECE;
	return (t->height * t->depth + rows_of_block(t) - 1) / rows_of_block(t);
}

static enum tally_cpu_fault run_piece(struct tally_cpu_worker *worker, struct operation *operation,
				      uint64_t block)
{
	const struct transfer *t = operation->data;

	(void)worker;
	if (one_row(t)) {
		size_t first = block * PIECE;
		run_row(t, 0, first, t->width - first < PIECE ? t->width - first : PIECE);
		return TALLY_CPU_OK;
	}
	size_t rows = rows_of_block(t), end = (block + 1) * rows;
	if (end > t->height * t->depth)
		end = t->height * t->depth;
	for (size_t row = block * rows; row < end; row++)
		run_row(t, row, 0, t->width);
	return TALLY_CPU_OK;
}

static bool run_small(struct operation *operation)
{
	run_all(operation->data);
	return true;
}

static const struct operation_class small_class = {
	.name = "copy",
	.start = START_UNLOCKED,
	.run = run_small,
};

static const struct operation_class large_class = {
	.name = "copy",
	.start = START_JOB,
	.run_block = run_piece,
};

/* Bytes from the first to past the last that one side touches. */
static size_t extent(const struct transfer *t, size_t pitch, size_t slice)
{
	return (t->depth - 1) * slice + (t->height - 1) * pitch + t->width;
}

/* Whether there is anything to do, and whether it may be done. */
CUresult transfer_check(const struct transfer *t, bool *empty)
{
	*empty = !t->width || !t->height || !t->depth;
	if (*empty)
		return CUDA_SUCCESS;
	if ((t->height > 1 &&
	     (t->to_pitch < t->width || (!t->element && t->from_pitch < t->width))) ||
	    (t->element > 1 && t->to % t->element))
		return CUDA_ERROR_INVALID_VALUE;
	if (!memory_valid(t->to, extent(t, t->to_pitch, t->to_slice)) ||
	    (!t->element && !memory_valid(t->from, extent(t, t->from_pitch, t->from_slice))))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

void transfer_note(struct transfer *t)
{
	t->to_made = memory_made(t->to);
	t->from_made = !t->element && memory_made(t->from);
}

CUresult transfer_now(CUstream handle, const struct transfer *transfer)
{
	struct stream *stream;
	bool empty;
	CUresult error = stream_resolve(handle, &stream);

	if (!error)
		error = transfer_check(transfer, &empty);
	if (!error)
		error = capture_forbids_wait(stream);
	if (error || empty)
		return error;
	error = stream_drain(stream);
	if (error)
		return error;
	engine_lock();
	engine.working++;
	engine_unlock();
	run_all(transfer);
	engine_lock();
	engine.working--;
	engine_unlock();
	return CUDA_SUCCESS;
}

static bool is_pageable(uintptr_t address)
{
	struct region region;

	return !memory_find(address, &region);
}

/* The transfer as an operation; `staged` bytes of the source go with it. */
static struct operation *make_operation(const struct transfer *transfer, size_t staged)
{
	size_t bytes = transfer->width * transfer->height * transfer->depth;

	if (!bytes)
		return marker_operation();
	struct operation *operation = operation_new(bytes <= SMALL ? &small_class : &large_class,
						    sizeof *transfer + staged);
	if (!operation)
		return NULL;
	struct transfer *own = operation->data;
	*own = *transfer;
	if (staged) {
		memcpy(own + 1, (const void *)transfer->from, staged);
		own->from = (uintptr_t)(own + 1);
	}
	operation->job.total = count_blocks(transfer);
	operation->job.small_stack = true;
	return operation;
}

struct operation *transfer_operation(const struct transfer *transfer, int level)
{
	struct operation *operation = make_operation(transfer, 0);

	if (operation)
		operation->job.level = level;
	return operation;
}

static CUresult transfer_capture(struct stream *stream, const struct transfer *transfer)
{
	struct work work = {.type = transfer->element ? CU_GRAPH_NODE_TYPE_MEMSET
						      : CU_GRAPH_NODE_TYPE_MEMCPY,
			    .transfer = *transfer};

	transfer_note(&work.transfer);
	return capture_work(stream, &work);
}

CUresult transfer_queue(CUstream handle, const struct transfer *transfer)
{
	struct stream *stream;
	bool empty, from_pageable, to_pageable, captured;
	CUresult error = stream_resolve(handle, &stream);

	if (!error)
		error = transfer_check(transfer, &empty);
	if (!error)
		error = capture_admit(stream, &captured);
	if (error || empty)
		return error;
	if (captured)
		return transfer_capture(stream, transfer);
	from_pageable = !transfer->element && is_pageable(transfer->from);
	to_pageable = is_pageable(transfer->to);
	bool flat = one_row(transfer);
	if (to_pageable || (from_pageable && !flat))
		return transfer_now(handle, transfer);
	struct operation *operation = make_operation(transfer, from_pageable ? transfer->width : 0);
	if (!operation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	operation->job.level = stream->level;
	return stream_submit(stream, operation, (struct point){0});
}
