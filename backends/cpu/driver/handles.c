/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of handles: see handles.h. Open addressing; writers hold a lock, readers none. A reader
 * that finds its entry is right; one that does not may have looked while the table was put in
 * order, and asks again under the lock. A table that has become too small is kept, because readers
 * may be in it: all of them together are as large as the last.
 */
#include "backends/cpu/driver/handles.h"

#include <pthread.h>
#include <stdlib.h>

#define EMPTY	   0
#define GONE	   1 /* was an entry: those behind it are still found */
#define FIRST_BITS 8

_Atomic(struct handle_table *) handle_table;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t living;

void handles_lock(void)
{
	pthread_mutex_lock(&lock);
}

void handles_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Where `entry` is, or where the search for it ends. Lock held. */
static _Atomic uintptr_t *search(struct handle_table *table, uintptr_t entry)
{
	for (size_t i = handle_place(table, entry);; i++) {
		_Atomic uintptr_t *place = &table->entries[i & table->mask];
		uintptr_t seen = atomic_load_explicit(place, memory_order_relaxed);

		if (seen == entry || seen == EMPTY)
			return place;
	}
}

/* Takes the first place that is free. Lock held. */
static void put(struct handle_table *table, uintptr_t entry)
{
	for (size_t i = handle_place(table, entry);; i++) {
		_Atomic uintptr_t *place = &table->entries[i & table->mask];
		uintptr_t seen = atomic_load_explicit(place, memory_order_relaxed);

		if (seen != EMPTY && seen != GONE)
			continue;
		table->used += seen == EMPTY;
		atomic_store_explicit(place, entry, memory_order_relaxed);
		return;
	}
}

static struct handle_table *new_table(unsigned bits)
{
	size_t size = (size_t)1 << bits;
	struct handle_table *table = calloc(1, sizeof *table + size * sizeof *table->entries);

	if (table) {
		table->shift = 64 - bits;
		table->mask = size - 1;
	}
	return table;
}

/* Copies what lives into a larger table, or, where most entries are gone, into the same one. */
static bool make_room(struct handle_table *old)
{
	unsigned bits = old ? 64 - old->shift : FIRST_BITS;
	bool larger = old && living * 4 > old->mask;
	struct handle_table *copy = new_table(bits + larger);

	if (!copy)
		return false;
	for (size_t i = 0; old && i <= old->mask; i++) {
		uintptr_t seen = atomic_load_explicit(&old->entries[i], memory_order_relaxed);
		if (seen != EMPTY && seen != GONE)
			put(copy, seen);
	}
	if (!old || larger) {
		copy->older = old;
		atomic_store_explicit(&handle_table, copy, memory_order_release);
		return true;
	}
	for (size_t i = 0; i <= old->mask; i++)
		atomic_store_explicit(&old->entries[i],
				      atomic_load_explicit(&copy->entries[i], memory_order_relaxed),
				      memory_order_relaxed);
	old->used = copy->used;
	free(copy);
	return true;
}

bool handle_add(const void *object, enum handle_kind kind)
{
	struct handle_table *table;
	bool ok = true;

	handles_lock();
	table = atomic_load_explicit(&handle_table, memory_order_relaxed);
	if (!table || (table->used + 1) * 2 > table->mask)
		ok = make_room(table);
	if (ok) {
		put(atomic_load_explicit(&handle_table, memory_order_relaxed),
		    (uintptr_t)object | kind);
		living++;
	}
	handles_unlock();
	return ok;
}

void handle_remove(const void *object, enum handle_kind kind)
{
	uintptr_t entry = (uintptr_t)object | kind;
	struct handle_table *table;

	handles_lock();
	table = atomic_load_explicit(&handle_table, memory_order_relaxed);
	_Atomic uintptr_t *place = table ? search(table, entry) : NULL;
	if (place && atomic_load_explicit(place, memory_order_relaxed) == entry) {
		atomic_store_explicit(place, GONE, memory_order_relaxed);
		living--;
	}
	handles_unlock();
}

bool handle_is_surely(uintptr_t entry)
{
	struct handle_table *table;
	bool is;

	handles_lock();
	table = atomic_load_explicit(&handle_table, memory_order_relaxed);
	is = table && atomic_load_explicit(search(table, entry), memory_order_relaxed) == entry;
	handles_unlock();
	return is;
}
