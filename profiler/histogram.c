/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithmic buckets: see histogram.h. */
#include "profiler/histogram.h"

const struct tally_shape tally_coarse = {10, 28, 2};
const struct tally_shape tally_fine = {8, 34, 8};

static unsigned buckets(const struct tally_shape *s)
{
	return TALLY_BUCKETS(s->low, s->high, s->steps);
}

unsigned tally_bucket(const struct tally_shape *s, uint64_t ns)
{
	unsigned power;

	if (ns >> s->low == 0)
		return 0;
	if (ns >> s->high)
		return buckets(s) - 1;
	power = 63u - (unsigned)__builtin_clzll(ns);
	return (power - s->low) * s->steps + (unsigned)((ns - (1ull << power)) * s->steps >> power);
}

uint64_t tally_quantile(const struct tally_shape *s, const uint32_t *counts, double q)
{
	uint64_t total = 0, seen, rank, base;
	unsigned i;

	for (i = 0; i < buckets(s); i++)
		total += counts[i];
	if (!total)
		return 0;
	/* How many are not above it: at least one. */
	rank = (uint64_t)(q * (double)total);
	rank += (double)rank < q * (double)total;
	if (rank < 1)
		rank = 1;
	i = 0;
	for (seen = counts[0]; seen < rank && i < buckets(s) - 1; seen += counts[i])
		i++;
	base = 1ull << (s->low + i / s->steps);
	return base + base * (2 * (i % s->steps) + 1) / (2 * s->steps);
}
