/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block's barriers (PTX ISA 9.7.13.1 barrier{.cta}). Threads arrive one by one, as on sm_70 and
 * later; a warp whose living lanes have all arrived counts as a whole warp, so that counts, which
 * are multiples of the warp size, work with partial warps and with exited lanes.
 */
#include <string.h>

#include "backends/cpu/executor/internal.h"

struct barrier {
	bool used;
	uint32_t count;			    /* threads that meet; 0: all */
	uint32_t here[TALLY_CPU_MAX_WARPS]; /* lanes that wait in it */
};

/* All living threads wait in barrier 0 for all others: the common case, and the one that has to be
 * fast. */
static bool release_plain(struct tally_cpu_worker *worker, unsigned warps, bool *any)
{
	uint32_t live = 0;

	for (unsigned w = 0; w < warps; w++) {
		if (worker->warps[w].live && !worker->warps[w].plain)
			return false;
		live |= worker->warps[w].live;
	}
	/* Arrivals that nobody has met yet count for a barrier like any others. */
	if (worker->any_arrived)
		return false;
	for (unsigned w = 0; w < warps; w++) {
		worker->warps[w].run = worker->warps[w].live;
		worker->warps[w].waiting = 0;
		worker->warps[w].plain = false;
	}
	*any = live != 0;
	return true;
}

/* Notes one waiting lane in its barrier; a lane that only arrives goes on, unless it has arrived at
 * this barrier already. Returns whether it goes on. */
static bool note(struct tally_cpu_worker *worker, struct barrier *barriers, unsigned w,
		 unsigned lane)
{
	const struct tally_cpu_thread *thread = &worker->threads[w * TALLY_CPU_WARP + lane];
	uint32_t id = thread->operation >> 8, bit = 1u << lane;
	struct barrier *barrier = &barriers[id];

	if (id >= TALLY_CPU_BARRIERS)
		tally_cpu_fail(worker, TALLY_CPU_ILLEGAL, "barrier %u: there are %d", id,
			       TALLY_CPU_BARRIERS);
	if (!barrier->used) {
		barrier->used = true;
		barrier->count = thread->mask;
	}
	if ((thread->operation & 0xff) != TALLY_CPU_BARRIER_ARRIVE) {
		barrier->here[w] |= bit;
		return false;
	}
	if (worker->arrived[id][w] & bit)
		return false;
	worker->arrived[id][w] |= bit;
	worker->any_arrived = true;
	return true;
}

/* Collects all waiting lanes into `barriers`; returns whether some that only arrived go on. */
static bool collect(struct tally_cpu_worker *worker, unsigned warps, struct barrier *barriers)
{
	bool moved = false;

	for (unsigned w = 0; w < warps; w++) {
		struct tally_cpu_warp *warp = &worker->warps[w];

		for (uint32_t rest = warp->waiting; rest; rest &= rest - 1) {
			unsigned lane = (unsigned)__builtin_ctz(rest);

			if (!note(worker, barriers, w, lane))
				continue;
			warp->waiting &= ~(1u << lane);
			warp->run |= 1u << lane;
			moved = true;
		}
	}
	return moved;
}

/*
 * Whether `barrier` is complete, and with how many warps: with a count the first warps that make it
 * up are released, since the same barrier may serve another group of warps at the same time. Warps
 * that have exited count with `exited` only.
 */
static bool complete(const struct tally_cpu_worker *worker, unsigned id,
		     const struct barrier *barrier, unsigned warps, bool exited, unsigned *taken)
{
	uint32_t threads = 0;

	*taken = warps;
	for (unsigned w = 0; w < warps; w++) {
		uint32_t there = barrier->here[w] | worker->arrived[id][w];
		uint32_t live = worker->warps[w].live;

		if (!barrier->count) {
			if ((there & live) != live)
				return false;
			continue;
		}
		if (there || (exited && !live))
			threads += (there & live) == live ? TALLY_CPU_WARP
							  : (uint32_t)__builtin_popcount(there);
		if (threads >= barrier->count) {
			*taken = w + 1;
			return true;
		}
	}
	return !barrier->count;
}

static void release(struct tally_cpu_worker *worker, unsigned id, const struct barrier *barrier,
		    unsigned warps)
{
	uint32_t asked = 0, yes = 0;

	for (unsigned w = 0; w < warps; w++)
		for (uint32_t rest = barrier->here[w]; rest; rest &= rest - 1) {
			const struct tally_cpu_thread *t =
				&worker->threads[w * TALLY_CPU_WARP + __builtin_ctz(rest)];

			if ((t->operation & 0xff) == TALLY_CPU_BARRIER)
				continue;
			asked++;
			yes += (uint32_t)t->value & 1;
		}
	for (unsigned w = 0; w < warps; w++) {
		struct tally_cpu_warp *warp = &worker->warps[w];

		for (uint32_t rest = barrier->here[w]; rest; rest &= rest - 1) {
			struct tally_cpu_thread *t =
				&worker->threads[w * TALLY_CPU_WARP + __builtin_ctz(rest)];
			uint32_t kind = t->operation & 0xff;

			t->result = kind == TALLY_CPU_BARRIER_POPC  ? yes
				    : kind == TALLY_CPU_BARRIER_AND ? yes == asked
								    : yes != 0;
		}
		warp->run |= barrier->here[w];
		warp->waiting &= ~barrier->here[w];
		warp->plain = false;
		worker->arrived[id][w] = 0;
	}
}

bool tally_cpu_release_barriers(struct tally_cpu_worker *worker, unsigned warps, bool exited)
{
	struct barrier barriers[TALLY_CPU_BARRIERS];
	bool any = false;

	if (release_plain(worker, warps, &any))
		return any;
	for (unsigned id = 0; id < TALLY_CPU_BARRIERS; id++) {
		barriers[id].used = false;
		memset(barriers[id].here, 0, warps * sizeof barriers[id].here[0]);
	}
	any = collect(worker, warps, barriers);
	for (unsigned id = 0; id < TALLY_CPU_BARRIERS; id++) {
		unsigned taken;

		if (!barriers[id].used ||
		    !complete(worker, id, &barriers[id], warps, exited, &taken))
			continue;
		release(worker, id, &barriers[id], taken);
		any = true;
	}
	return any;
}
