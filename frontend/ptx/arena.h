/* SPDX-License-Identifier: Apache-2.0 */
/* One growing block of memory for everything a parsed PTX file consists of, freed at once. */
#ifndef TALLY_FRONTEND_PTX_ARENA_H
#define TALLY_FRONTEND_PTX_ARENA_H

#include <stddef.h>

struct ptx_chunk;

/* Start zeroed. `limit` bounds all bytes together, so that a hostile file cannot ask for more than
 * a fixed multiple of its own size. Not shared between threads. */
struct ptx_arena {
	struct ptx_chunk *chunks;
	size_t used, limit;
};

/* Zeroed memory, aligned for any object; NULL when the limit or the machine's memory is reached. */
void *ptx_arena_alloc(struct ptx_arena *arena, size_t size);

/* A NUL-terminated copy of `length` bytes of `text`, or NULL. */
char *ptx_arena_text(struct ptx_arena *arena, const char *text, size_t length);

/* Frees all that was made in it, at once. */
void ptx_arena_free(struct ptx_arena *arena);

#endif
