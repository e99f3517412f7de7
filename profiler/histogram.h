/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Histograms of durations with logarithmic buckets: a few steps in each power of two, so that a
 * percentile is right to a known share of its value, whatever it is.
 */
#ifndef TALLY_PROFILER_HISTOGRAM_H
#define TALLY_PROFILER_HISTOGRAM_H

#include <stdint.h>

/* Durations outside [2^low, 2^high) ns count in the first or last bucket. */
struct tally_shape {
	uint8_t low, high, steps;
};

#define TALLY_BUCKETS(low, high, steps) (((high) - (low)) * (steps))

/* For each kernel and level: 1 us to 268 ms, right to 25 %. */
extern const struct tally_shape tally_coarse;
#define TALLY_COARSE TALLY_BUCKETS(10, 28, 2)

/* For a program: 256 ns to 17 s, right to 6 %. */
extern const struct tally_shape tally_fine;
#define TALLY_FINE TALLY_BUCKETS(8, 34, 8)

/* The bucket of a duration. Pure. */
unsigned tally_bucket(const struct tally_shape *shape, uint64_t ns);

/* The duration (ns) that a share `q` (0 to 1) of what was counted does not exceed: the middle of
 * its bucket; 0 when nothing was counted. `counts` has the shape's number of buckets. Pure. */
uint64_t tally_quantile(const struct tally_shape *shape, const uint32_t *counts, double q);

#endif
