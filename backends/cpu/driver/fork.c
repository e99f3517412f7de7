/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a forked child finds: memory as it was, streams that are empty, no threads (they start again
 * with the first work). Work that the parent had queued is the parent's; running it twice would be
 * wrong, and half-run blocks cannot be gone on with.
 */
#include <string.h>

#include "backends/cpu/driver/driver.h"

/* In the order in which others take them: memory that is shared moves with the engine at rest. */
static void before(void)
{
	ipc_lock();
	engine_lock();
	memory_lock();
	handles_lock();
	ipc_claims_lock();
}

static void parent(void)
{
	ipc_claims_unlock();
	handles_unlock();
	memory_unlock();
	engine_unlock();
	ipc_unlock();
}

static void empty(struct stream *stream)
{
	stream->head = stream->tail = stream->waiters = NULL;
	stream->next_queued = NULL;
	stream->running = stream->queued = false;
	stream->sleepers = 0;
	stream->wake_at = UINT64_MAX;
	atomic_store(&stream->completed, stream->submitted);
}

static void child(void)
{
	static const pthread_mutex_t unlocked = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

	/* Operations of lost queues and executors in the middle of a block are left behind. */
	contexts_each_stream(empty);
	memset(engine.ready, 0, sizeof engine.ready);
	memset(engine.ready_last, 0, sizeof engine.ready_last);
	atomic_store(&engine.ready_level, -1);
	engine.look = NULL;
	engine.gang = engine.gangs = engine.gangs_last = NULL;
	engine.waiting = engine.host = engine.host_last = NULL;
	engine.threads = engine.sleepers = 0;
	engine.working = engine.holders = 0;
	atomic_store(&engine.spinner, false);
	engine.host_thread = engine.poll_thread = false;
	engine.wake_workers = 0;
	engine.wake_host = engine.wake_poll = false;
	engine.wake_streams = NULL;
	bool free_slot[1024] = {false};
	for (unsigned i = 0; i < engine.free_slot_count; i++)
		free_slot[engine.free_slots[i]] = true;
	for (unsigned i = 0; i < engine.workers; i++) {
		if (!free_slot[i])
			engine.slots[i] = NULL;
		engine.free_slots[i] = engine.workers - 1 - i;
	}
	engine.free_slot_count = engine.workers;
	memcpy(&engine.lock, &unlocked, sizeof unlocked);
	modules_after_fork();
	ipc_claims_unlock();
	handles_unlock();
	memory_after_fork();
	ipc_unlock();
}

void engine_watch_forks(void)
{
	pthread_atfork(before, parent, child);
}
