/* SPDX-License-Identifier: Apache-2.0 */
/* The arena of the PTX reader: see arena.h. */
#include "frontend/ptx/arena.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 * 1024 };

struct ptx_chunk {
	struct ptx_chunk *next;
	size_t used, size;
	max_align_t data[];
};

void *ptx_arena_alloc(struct ptx_arena *arena, size_t size)
{
	struct ptx_chunk *chunk = arena->chunks;

	if (size > arena->limit)
		return NULL;
	size = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	if (!chunk || chunk->size - chunk->used < size) {
		size_t room = size > CHUNK ? size : CHUNK;
		if (arena->used + size > arena->limit)
			return NULL;
		chunk = calloc(1, sizeof *chunk + room);
		if (!chunk)
			return NULL;
		chunk->size = room;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
	}
	void *result = (char *)chunk->data + chunk->used;
	chunk->used += size;
	arena->used += size;
	return result;
}

char *ptx_arena_text(struct ptx_arena *arena, const char *text, size_t length)
{
	char *copy = ptx_arena_alloc(arena, length + 1);

	if (copy)
		memcpy(copy, text, length);
	return copy;
}

void ptx_arena_free(struct ptx_arena *arena)
{
	while (arena->chunks) {
		struct ptx_chunk *next = arena->chunks->next;
		free(arena->chunks);
		arena->chunks = next;
	}
	arena->used = 0;
}
