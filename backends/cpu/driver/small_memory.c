/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small blocks of device memory: see small_memory.h. A chunk holds blocks of one size; which are
 * taken stands outside of it, where no kernel that runs past an end gets to.
 */
#include "backends/cpu/driver/small_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_BYTES (1u << 20)

enum { SIZES = 10, MOST_BLOCKS = CHUNK_BYTES / SMALL_ALIGNMENT };
_Static_assert(SMALL_ALIGNMENT << (SIZES - 1) == SMALL_MOST, "the sizes double");

struct chunk {
	uintptr_t base;
	unsigned size, taken; /* index of the blocks' size; blocks */
	struct chunk *next;   /* of the same size, with a block to give */
	uint64_t map[MOST_BLOCKS / 64];
};

static struct chunk **chunks; /* by address */
static size_t count, capacity;
static struct chunk *with_room[SIZES];

static size_t block_bytes(unsigned size)
{
	return (size_t)SMALL_ALIGNMENT << size;
}

static unsigned blocks_of(const struct chunk *c)
{
	return (unsigned)(CHUNK_BYTES / block_bytes(c->size));
}

/* Index of the first chunk that begins after `address`. */
static size_t after(uintptr_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (chunks[middle]->base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct chunk *holding(uintptr_t address)
{
	size_t i = after(address);

	return i && address - chunks[i - 1]->base < CHUNK_BYTES ? chunks[i - 1] : NULL;
}

bool small_memory_holds(uintptr_t address)
{
	return holding(address);
}

static bool reserve(void)
{
	size_t more = capacity ? 2 * capacity : 16;
	struct chunk **grown;

	if (count < capacity)
		return true;
	grown = realloc(chunks, more * sizeof *grown);
	if (!grown)
		return false;
	chunks = grown;
	capacity = more;
	return true;
}

static struct chunk *add_chunk(unsigned size)
{
	struct chunk *c = reserve() ? calloc(1, sizeof *c) : NULL;
	void *pages = c ? mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
			: MAP_FAILED;
	size_t at;

	if (pages == MAP_FAILED) {
		free(c);
		return NULL;
	}
	c->base = (uintptr_t)pages;
	c->size = size;
	at = after(c->base);
	memmove(&chunks[at + 1], &chunks[at], (count - at) * sizeof *chunks);
	chunks[at] = c;
	count++;
	c->next = with_room[size];
	with_room[size] = c;
	return c;
}

static void remove_chunk(struct chunk *c)
{
	struct chunk **link = &with_room[c->size];
	size_t at = after(c->base);

	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	memmove(&chunks[at - 1], &chunks[at], (count - at) * sizeof *chunks);
	count--;
	munmap((void *)c->base, CHUNK_BYTES);
	free(c);
}

void *small_memory_get(size_t bytes)
{
	unsigned size = 0, block = 0;
	struct chunk *c;

	while (block_bytes(size) < bytes)
		size++;
	c = with_room[size] ? with_room[size] : add_chunk(size);
	if (!c)
		return NULL;
	while (!~c->map[block / 64])
		block += 64;
	block += (unsigned)__builtin_ctzll(~c->map[block / 64]);
	c->map[block / 64] |= UINT64_C(1) << block % 64;
	if (++c->taken == blocks_of(c))
		with_room[size] = c->next;
	return (void *)(c->base + block * block_bytes(size));
}

void small_memory_put(void *memory)
{
	struct chunk *c = holding((uintptr_t)memory);
	size_t block = ((uintptr_t)memory - c->base) / block_bytes(c->size);

	c->map[block / 64] &= ~(UINT64_C(1) << block % 64);
	if (c->taken-- == blocks_of(c)) {
		c->next = with_room[c->size];
		with_room[c->size] = c;
	}
	/* One stays for whoever allocates and frees in turn. */
	if (!c->taken && (with_room[c->size] != c || c->next))
		remove_chunk(c);
}
