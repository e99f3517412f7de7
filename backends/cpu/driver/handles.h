/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which handles are ours: every object that a program holds by a pointer is in one table with its
 * kind, so that a pointer to anything else, or to an object that is gone, is an error and not a
 * fault. Contexts have a list of their own.
 */
#ifndef TALLY_BACKENDS_CPU_DRIVER_HANDLES_H
#define TALLY_BACKENDS_CPU_DRIVER_HANDLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the low bits of an entry, where an object's address has none: 1 to 15. */
enum handle_kind {
	HANDLE_STREAM = 1,
	HANDLE_EVENT,
	HANDLE_MODULE,
	HANDLE_FUNCTION,
	HANDLE_POOL,
	HANDLE_GRAPH,
	HANDLE_NODE,
	HANDLE_EXEC,
	HANDLE_USER_OBJECT,
	HANDLE_KINDS,
};

struct handle_table {
	unsigned shift; /* 64 less the binary logarithm of the size */
	size_t mask;	/* size - 1 */
	size_t used;	/* entries that are not empty */
	struct handle_table *older;
	_Atomic uintptr_t entries[];
};

extern _Atomic(struct handle_table *) handle_table;

/* Any thread, with whatever locks; `object` is aligned to 16 bytes, as malloc() does. False: out of
 * memory. */
bool handle_add(const void *object, enum handle_kind kind);
void handle_remove(const void *object, enum handle_kind kind);

/* The same with the table's lock: what handle_is() asks when it finds nothing. */
bool handle_is_surely(uintptr_t entry);

/* For fork. */
void handles_lock(void);
void handles_unlock(void);

static inline size_t handle_place(const struct handle_table *table, uintptr_t entry)
{
	return (size_t)((entry >> 4) * 0x9e3779b97f4a7c15u >> table->shift);
}

/* Whether `handle` is a living object of that kind. Without a lock where it is. */
static inline bool handle_is(const void *handle, enum handle_kind kind)
{
	const struct handle_table *table =
		atomic_load_explicit(&handle_table, memory_order_acquire);
	uintptr_t entry = (uintptr_t)handle | kind, seen = table ? 1 : 0;

	if ((uintptr_t)handle & 15)
		return false;
	for (size_t i = table ? handle_place(table, entry) : 0; seen; i++) {
		seen = atomic_load_explicit(&table->entries[i & table->mask], memory_order_relaxed);
		if (seen == entry)
			return true;
	}
	return handle_is_surely(entry);
}

#endif
