/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a coroutine kernel's block. Warp after warp runs as far as it gets: each lane to
 * its next suspension, then the warp's own operations are resolved and the freed lanes go on, until
 * all wait for other warps. Then barriers are released, and so on. When nothing moves the block is
 * deadlocked, which is found here rather than waited for.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/executor/internal.h"

typedef void resume_function(void *handle);

/* `operation` and `mask` of a thread that waits in barrier 0 for all threads, as one word: the one
 * state that has to be told fast. */
static inline uint64_t head(const struct tally_cpu_thread *thread)
{
	uint64_t word;

	memcpy(&word, &thread->operation, sizeof word);
	return word;
}
#define PLAIN_BARRIER ((uint64_t)TALLY_CPU_BARRIER)

/* Puts the lanes of `set`, which have just stopped running, where their records say. */
static void sort_lanes(struct tally_cpu_warp *warp, const struct tally_cpu_thread *threads,
		       uint32_t set)
{
	for (uint32_t rest = set; rest; rest &= rest - 1) {
		unsigned lane = (unsigned)__builtin_ctz(rest);
		uint32_t bit = 1u << lane, kind = threads[lane].operation & 0xff;

		if (kind == TALLY_CPU_EXIT)
			warp->live &= ~bit;
		else if (kind == TALLY_CPU_YIELD)
			warp->yielding |= bit;
		else if (kind >= TALLY_CPU_ACTIVE_MASK)
			warp->meeting |= bit;
		else
			warp->waiting |= bit;
	}
}

static void stopped(struct tally_cpu_warp *warp, const struct tally_cpu_thread *threads,
		    uint32_t set, uint64_t differs)
{
	if (differs || set != warp->live) {
		sort_lanes(warp, threads, set);
		return;
	}
	warp->waiting = set;
	warp->plain = true;
}

static void resume_lanes(struct tally_cpu_warp *warp, struct tally_cpu_thread *threads)
{
	uint32_t set = warp->run;
	uint64_t differs = 0;

	warp->run = 0;
	for (uint32_t rest = set; rest; rest &= rest - 1) {
		struct tally_cpu_thread *thread = &threads[__builtin_ctz(rest)];

		(*(resume_function **)thread->handle)(thread->handle);
		differs |= head(thread) ^ PLAIN_BARRIER;
	}
	stopped(warp, threads, set, differs);
}

/* Runs a warp until each of its lanes has exited or waits for another warp. */
static void settle(struct tally_cpu_worker *worker, struct tally_cpu_warp *warp,
		   struct tally_cpu_thread *threads)
{
	do {
		if (warp->run)
			resume_lanes(warp, threads);
	} while (warp->meeting && tally_cpu_resolve_warp(worker, warp, threads));
}

static void start_lanes(struct tally_cpu_worker *worker, const struct tally_cpu_kernel *kernel,
			const void *params, unsigned index)
{
	struct tally_cpu_warp *warp = &worker->warps[index];
	struct tally_cpu_thread *threads = worker->threads + index * TALLY_CPU_WARP;
	uint32_t left = worker->block.threads - index * TALLY_CPU_WARP;
	uint64_t differs = 0;

	memset(warp, 0, sizeof *warp);
	warp->live = left < TALLY_CPU_WARP ? (1u << left) - 1 : ~0u;
	for (uint32_t rest = warp->live; rest; rest &= rest - 1) {
		struct tally_cpu_thread *thread = &threads[__builtin_ctz(rest)];

		thread->handle = kernel->start(params, thread);
		if (!thread->handle)
			tally_cpu_fail(worker, TALLY_CPU_MEMORY,
				       "no memory for the threads of kernel %.150s", kernel->name);
		differs |= head(thread) ^ PLAIN_BARRIER;
	}
	stopped(warp, threads, warp->live, differs);
	settle(worker, warp, threads);
}

/* Fills in who each thread is; the same for all blocks of a launch. */
static void name_threads(struct tally_cpu_worker *worker)
{
	const uint32_t *size = worker->block.size;
	struct tally_cpu_thread *thread = worker->threads;

	if (!memcmp(worker->thread_shape, size, sizeof worker->thread_shape))
		return;
	for (uint32_t z = 0, linear = 0; z < size[2]; z++)
		for (uint32_t y = 0; y < size[1]; y++)
			for (uint32_t x = 0; x < size[0]; x++, linear++, thread++) {
				thread->block = &worker->block;
				thread->id[0] = x;
				thread->id[1] = y;
				thread->id[2] = z;
				thread->linear = linear;
			}
	memcpy(worker->thread_shape, size, sizeof worker->thread_shape);
}

static void deadlock(struct tally_cpu_worker *worker, unsigned warps)
{
	for (unsigned w = 0; w < warps; w++) {
		const struct tally_cpu_thread *thread;

		if (!worker->warps[w].live)
			continue;
		thread = &worker->threads[w * TALLY_CPU_WARP +
					  (unsigned)__builtin_ctz(worker->warps[w].live)];
		tally_cpu_fail(worker, TALLY_CPU_DEADLOCK,
			       "deadlock in block (%u,%u,%u): thread (%u,%u,%u) waits in %s %u "
			       "(mask or count 0x%x) for threads that never come",
			       worker->block.id[0], worker->block.id[1], worker->block.id[2],
			       thread->id[0], thread->id[1], thread->id[2],
			       tally_cpu_operation_name(thread->operation), thread->operation >> 8,
			       thread->mask);
	}
}

/* Nothing moves but threads that poll: what they poll for may be another block's doing, so this
 * worker gives the processor away, and after some turns for longer. */
static void rest_while_polling(unsigned turns)
{
	enum { OWN = 2, OTHERS = 16 };
	struct timespec moment = {.tv_nsec = 1000};

	if (turns > OTHERS)
		nanosleep(&moment, NULL);
	else if (turns > OWN)
		sched_yield();
}

/* Runs what can run of a warp; returns whether that changed anything but for threads that polled
 * and do again. */
static bool advance(struct tally_cpu_worker *worker, unsigned index)
{
	struct tally_cpu_warp *warp = &worker->warps[index];
	uint32_t polling = warp->yielding, others = warp->run;

	warp->run |= polling;
	warp->yielding = 0;
	settle(worker, warp, worker->threads + index * TALLY_CPU_WARP);
	return others || warp->yielding != polling;
}

/* One turn through all warps after the first; false when no thread is left. `vain` counts turns in
 * which threads polled and nothing else happened. */
static bool turn(struct tally_cpu_worker *worker, unsigned warps, unsigned *vain)
{
	bool released = tally_cpu_release_barriers(worker, warps, false), ran = false, live = false;

	*vain = released ? 0 : *vain + 1;
	for (unsigned w = 0; w < warps; w++) {
		struct tally_cpu_warp *warp = &worker->warps[w];

		if (warp->run | warp->yielding) {
			ran = true;
			if (advance(worker, w))
				*vain = 0;
		}
		live |= warp->live != 0;
	}
	if (live && !released && !ran && !tally_cpu_release_barriers(worker, warps, true))
		deadlock(worker, warps);
	if (live && *vain) {
		tally_cpu_check_grid(worker);
		rest_while_polling(*vain);
	}
	return live;
}

void tally_cpu_run_threads(struct tally_cpu_worker *worker, const struct tally_cpu_kernel *kernel,
			   const void *params)
{
	unsigned warps = (worker->block.threads + TALLY_CPU_WARP - 1) / TALLY_CPU_WARP, vain = 0;

	if (worker->block.threads > TALLY_CPU_MAX_THREADS)
		tally_cpu_fail(worker, TALLY_CPU_ILLEGAL, "a block of %u threads",
			       worker->block.threads);
	if (!worker->threads) {
		worker->threads =
			aligned_alloc(64, TALLY_CPU_MAX_THREADS * sizeof *worker->threads);
		if (!worker->threads)
			tally_cpu_fail(worker, TALLY_CPU_MEMORY, "no memory for thread records");
		memset(worker->threads, 0, TALLY_CPU_MAX_THREADS * sizeof *worker->threads);
	}
	name_threads(worker);
	if (worker->any_arrived) {
		memset(worker->arrived, 0, sizeof worker->arrived);
		worker->any_arrived = false;
	}
	for (unsigned w = 0; w < warps; w++)
		start_lanes(worker, kernel, params, w);
	while (turn(worker, warps, &vain))
		;
}
