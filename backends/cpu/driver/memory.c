/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory is memory of the process: an address means the same to host and device. The table
 * of regions knows what was allocated, for cuMemFree, for questions about pointers, and to refuse
 * copies that would run over an allocation's end.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/cpu/driver/driver.h"
#include "backends/cpu/driver/small_memory.h"

/* Sorted by address; regions do not overlap. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct region *table;
static size_t count, capacity;
static uint64_t used[MOST_DEVICES], last_id;

void memory_lock(void)
{
	pthread_rwlock_wrlock(&lock);
}

void memory_unlock(void)
{
	pthread_rwlock_unlock(&lock);
}

void memory_after_fork(void)
{
	static const pthread_rwlock_t unlocked = PTHREAD_RWLOCK_INITIALIZER;

	memcpy(&lock, &unlocked, sizeof unlocked);
}

/* Index of the first region that begins after `address`. */
static size_t after(uintptr_t address)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (table[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct region *holding(uintptr_t address)
{
	size_t i = after(address);

	return i && address - table[i - 1].base < table[i - 1].size ? &table[i - 1] : NULL;
}

static bool is_ours(enum region_kind kind)
{
	return kind == REGION_DEVICE || kind == REGION_HOST || kind == REGION_MANAGED;
}

/* Lock held for writing. */
static bool insert(const struct region *region)
{
	if (count == capacity) {
		size_t more = capacity ? 2 * capacity : 256;
		struct region *grown = realloc(table, more * sizeof *grown);
		if (!grown)
			return false;
		table = grown;
		capacity = more;
	}
	size_t i = after(region->base);
	if ((i < count && table[i].base < region->base + region->size) || holding(region->base))
		return false;
	memmove(&table[i + 1], &table[i], (count - i) * sizeof *table);
	table[i] = *region;
	table[i].id = ++last_id;
	count++;
	return true;
}

bool memory_add(const struct region *region)
{
	memory_lock();
	bool ok = insert(region);
	memory_unlock();
	return ok;
}

size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) & ~(page - 1);
}

/* `own`: nothing else may lie in its pages, as another process may get to see them. */
static void *get_pages(size_t bytes, bool own, size_t *mapped)
{
	void *memory;

	*mapped = 0;
	if (bytes <= SMALL_MOST) {
		memory_lock();
		memory = small_memory_get(own ? whole_pages(bytes) : bytes);
		memory_unlock();
		return memory;
	}
	*mapped = whole_pages(bytes);
	memory = mmap(NULL, *mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Lock held for writing. */
static void free_pages(const struct region *region)
{
	void *memory = (void *)region->base;

	if (!is_ours(region->kind) && region->kind != REGION_IMPORTED)
		return;
	if (region->share)
		close(region->share - 1);
	if (region->mapped) {
		munmap(memory, region->mapped);
		return;
	}
	/* Others get only memory that is the process's alone; what cannot be had is lost. */
	if (region->share && mmap(memory, whole_pages(region->size), PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return;
	small_memory_put(memory);
}

static bool is_own(enum region_kind kind, unsigned flags, const struct pool *pool)
{
	return kind == REGION_DEVICE && !pool && !(flags & REGION_OF_GRAPH);
}

static bool write_all(int fd, const char *from, size_t bytes)
{
	for (size_t at = 0; at < bytes;) {
		ssize_t n = pwrite(fd, from + at, bytes - at, (off_t)at);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* Lock held for writing. The pages change behind their addresses in one system call. */
static CUresult share(struct region *region)
{
	size_t bytes = whole_pages(region->size);
	void *memory = (void *)region->base;
	int fd = ipc_file(bytes);

	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!write_all(fd, memory, region->size) ||
	    mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	region->share = fd + 1;
	return CUDA_SUCCESS;
}

CUresult memory_share(uintptr_t address, struct region *region)
{
	CUresult error = CUDA_ERROR_INVALID_VALUE;

	memory_lock();
	struct region *found = holding(address);
	if (found && is_own(found->kind, found->flags, found->pool))
		error = found->share ? CUDA_SUCCESS : share(found);
	if (!error)
		*region = *found;
	memory_unlock();
	return error;
}

CUresult memory_new(size_t bytes, enum region_kind kind, unsigned flags, struct context *context,
		    struct pool *pool, uintptr_t *address)
{
	struct region region = {.size = bytes,
				.kind = kind,
				.flags = flags,
				.context = context,
				.pool = pool,
				.device = pool ? pool_device(pool) : context->device};

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	/* Reserved first: the kernel promises more than there is, a device does not. */
	memory_lock();
	bool fits = bytes <= device_memory_bytes() - used[region.device];
	if (fits)
		used[region.device] += bytes;
	memory_unlock();
	void *memory = fits ? get_pages(bytes, is_own(kind, flags, pool), &region.mapped) : NULL;
	region.base = (uintptr_t)memory;
	if (fits && (!memory || !memory_add(&region))) {
		memory_lock();
		if (memory)
			free_pages(&region);
		used[region.device] -= bytes;
		memory_unlock();
		memory = NULL;
	}
	*address = (uintptr_t)memory;
	return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool memory_remove(uintptr_t base, unsigned kinds, struct region *removed)
{
	struct region region;
	bool found = false;

	memory_lock();
	size_t i = after(base);
	if (i && table[i - 1].base == base && kinds & 1u << table[i - 1].kind) {
		found = true;
		region = table[i - 1];
		memmove(&table[i - 1], &table[i], (count - i) * sizeof *table);
		count--;
		if (is_ours(region.kind))
			used[region.device] -= region.size;
		free_pages(&region);
	}
	memory_unlock();
	if (found && removed)
		*removed = region;
	return found;
}

/* cuda.h at cuCtxDestroy: memory of a pool is of no context. Nor is that of graphs, which goes with
 * them. */
static bool outlives_context(const struct region *region)
{
	return region->pool || region->flags & REGION_OF_GRAPH;
}

void memory_remove_context(const struct context *context)
{
	memory_lock();
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (table[i].context != context || table[i].kind == REGION_VARIABLE ||
		    outlives_context(&table[i])) {
			table[kept] = table[i];
			if (table[kept].context == context)
				table[kept].context = NULL;
			kept++;
			continue;
		}
		if (is_ours(table[i].kind))
			used[table[i].device] -= table[i].size;
		free_pages(&table[i]);
	}
	count = kept;
	memory_unlock();
}

bool memory_find(uintptr_t address, struct region *region)
{
	pthread_rwlock_rdlock(&lock);
	const struct region *found = holding(address);
	if (found)
		*region = *found;
	pthread_rwlock_unlock(&lock);
	return found;
}

bool memory_made(uintptr_t address)
{
	struct region region;

	return memory_find(address, &region) && region.kind != REGION_REGISTERED;
}

static bool is_mapped(uintptr_t address)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char ignored;

	return mincore((void *)(address & ~(page - 1)), 1, &ignored) == 0;
}

/* Of the driver's pages, though of no allocation. */
static bool is_freed(uintptr_t address)
{
	pthread_rwlock_rdlock(&lock);
	bool freed = small_memory_holds(address);
	pthread_rwlock_unlock(&lock);
	return freed;
}

bool memory_valid(uintptr_t address, size_t bytes)
{
	struct region region;

	if (!bytes)
		return true;
	if (!address || address + bytes < address)
		return false;
	if (memory_find(address, &region))
		return bytes <= region.size - (address - region.base) ||
		       region.kind == REGION_REGISTERED;
	return is_mapped(address) && is_mapped(address + bytes - 1) && !is_freed(address) &&
	       !is_freed(address + bytes - 1);
}

uint64_t memory_used(CUdevice device)
{
	pthread_rwlock_rdlock(&lock);
	uint64_t bytes = used[device];
	pthread_rwlock_unlock(&lock);
	return bytes;
}
