/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/grace.h"

#include <stdbool.h>

#define FIRST_NS   1024	      /* the first bucket's end */
#define EVERY	   64	      /* pauses between two decisions */
#define REMEMBERED 1024	      /* pauses: beyond, all counts are halved */
#define PART	   0.3	      /* of the idle time, at most */
#define WORTH	   (1 / 10.0) /* of others' time in the program's */

/* Where bucket `i` ends, ns: each is a quarter of an octave wider than the one before. */
static uint64_t end_of(unsigned i)
{
	static const uint16_t quarters[] = {1024, 1218, 1448, 1722}; /* 1024 * 2^(n/4) */

	return (uint64_t)quarters[i % 4] * FIRST_NS / 1024 << i / 4;
}

static unsigned bucket_of(uint64_t ns)
{
	unsigned i = 0;

	while (i < TALLY_GRACE_STEPS && ns > end_of(i))
		i++;
	return i;
}

static uint32_t get(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void halve(struct tally_grace *g)
{
	for (unsigned i = 0; i < TALLY_GRACE_STEPS; i++)
		atomic_store_explicit(&g->pauses[i], get(&g->pauses[i]) / 2, memory_order_relaxed);
	atomic_store_explicit(&g->longer, get(&g->longer) / 2, memory_order_relaxed);
	atomic_store_explicit(&g->idle_ns,
			      atomic_load_explicit(&g->idle_ns, memory_order_relaxed) / 2,
			      memory_order_relaxed);
}

static void decide(struct tally_grace *g)
{
	const double idle = (double)atomic_load_explicit(&g->idle_ns, memory_order_relaxed);
	double covered = 0, covered_ns = 0, total = get(&g->longer), best = 0;
	uint64_t ns = 0;

	for (unsigned i = 0; i < TALLY_GRACE_STEPS; i++)
		total += get(&g->pauses[i]);
	for (unsigned i = 0; i < TALLY_GRACE_STEPS; i++) {
		const double here = get(&g->pauses[i]);
		const double begin = i ? (double)end_of(i - 1) : 0, end = (double)end_of(i);

		covered += here;
		covered_ns += here * (begin + end) / 2;
		/* Others lose the pauses within the grace, and the grace of the longer ones. */
		const double taken = covered_ns + (total - covered) * end;
		const double gain = covered * TALLY_GRACE_STOP_NS - taken * WORTH;

		if (gain > best && taken <= idle * PART) {
			best = gain;
			ns = end_of(i);
		}
	}
	atomic_store_explicit(&g->ns, ns, memory_order_relaxed);
	if (total >= REMEMBERED)
		halve(g);
}

void tally_grace_pause(struct tally_grace *g, uint64_t ns)
{
	const unsigned i = bucket_of(ns);

	atomic_fetch_add_explicit(i < TALLY_GRACE_STEPS ? &g->pauses[i] : &g->longer, 1,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&g->idle_ns, ns, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&g->count, 1, memory_order_relaxed) + 1 < EVERY)
		return;
	atomic_store_explicit(&g->count, 0, memory_order_relaxed);
	decide(g);
}
