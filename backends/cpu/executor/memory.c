/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's memory: shared memory at low addresses, and the arena of coroutine frames. */
#include <stdlib.h>
#include <sys/mman.h>

#include "backends/cpu/executor/internal.h"

#define CHUNK_HEADER   64
#define FIRST_ARENA    ((size_t)64 << 10)
#define SMALLEST_SHARE ((size_t)64 << 10)

struct tally_cpu_chunk {
	struct tally_cpu_chunk *next;
	size_t bytes; /* all of it, header included */
};

/* Grows a mapping below 2 GiB to `bytes`; its content need not survive. */
static bool reserve_low(char **memory, size_t *size, size_t bytes)
{
	void *fresh;

	if (bytes <= *size && *memory)
		return true;
	if (bytes < SMALLEST_SHARE)
		bytes = SMALLEST_SHARE;
	bytes = (bytes + 4095) / 4096 * 4096;
	fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		     -1, 0);
	if (fresh == MAP_FAILED)
		return false;
	if (*memory)
		munmap(*memory, *size);
	*memory = fresh;
	*size = bytes;
	return true;
}

bool tally_cpu_shared_reserve(struct tally_cpu_worker *worker, size_t bytes)
{
	return reserve_low(&worker->shared, &worker->shared_size, bytes);
}

bool tally_cpu_local_reserve(struct tally_cpu_worker *worker, size_t bytes)
{
	return reserve_low(&worker->local, &worker->local_size, bytes);
}

static bool add_chunk(struct tally_cpu_worker *worker, size_t bytes)
{
	struct tally_cpu_chunk *chunk;

	bytes = (bytes + CHUNK_HEADER + 63) / 64 * 64;
	chunk = aligned_alloc(64, bytes);
	if (!chunk)
		return false;
	chunk->next = worker->chunks;
	chunk->bytes = bytes;
	worker->chunks = chunk;
	worker->arena_size += bytes;
	worker->block.arena_next = (char *)chunk + CHUNK_HEADER;
	worker->block.arena_limit = (char *)chunk + bytes;
	return true;
}

static void free_chunks(struct tally_cpu_worker *worker)
{
	while (worker->chunks) {
		struct tally_cpu_chunk *next = worker->chunks->next;

		free(worker->chunks);
		worker->chunks = next;
	}
	worker->arena_size = 0;
}

bool tally_cpu_arena_reset(struct tally_cpu_worker *worker)
{
	size_t size = worker->arena_size;

	if (worker->chunks && !worker->chunks->next) {
		worker->block.arena_next = (char *)worker->chunks + CHUNK_HEADER;
		return true;
	}
	free_chunks(worker);
	return add_chunk(worker, size ? size : FIRST_ARENA);
}

void *tally_cpu_arena_frame(struct tally_cpu_block *block, uint64_t bytes)
{
	struct tally_cpu_worker *worker = (struct tally_cpu_worker *)block;
	size_t grow = worker->arena_size;
	void *frame;

	bytes = (bytes + 63) / 64 * 64;
	if (!add_chunk(worker, grow > bytes ? grow : bytes))
		return NULL;
	frame = block->arena_next;
	block->arena_next += bytes;
	return frame;
}

bool tally_cpu_arena_holds(const struct tally_cpu_worker *worker, const void *address)
{
	const char *p = address;

	for (const struct tally_cpu_chunk *c = worker->chunks; c; c = c->next)
		if (p >= (const char *)c && p < (const char *)c + c->bytes)
			return true;
	return worker->local && p >= worker->local && p < worker->local + worker->local_size;
}

void tally_cpu_memory_free(struct tally_cpu_worker *worker)
{
	free_chunks(worker);
	if (worker->shared)
		munmap(worker->shared, worker->shared_size);
	if (worker->local)
		munmap(worker->local, worker->local_size);
}
