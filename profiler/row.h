/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known about one kernel in one launch configuration: the key, and the measurements of each
 * level. The plain form that readers, the store and the choice share; report.h has the form that a
 * program writes while others read.
 */
#ifndef TALLY_PROFILER_ROW_H
#define TALLY_PROFILER_ROW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "profiler/histogram.h"
#include "profiler/level.h"

#define TALLY_ROW_NAME 160 /* bytes with the NUL: longer names are cut */

/* No padding, so that it compares and hashes as bytes. */
struct tally_row_key {
	uint64_t image[2]; /* content hash of the image that the kernel came from; 0: unknown */
	uint64_t kernel;   /* tally_hash_64() of the kernel's whole name */
	uint32_t grid[3], block[3];
	uint32_t shared; /* dynamic shared memory, bytes */
	uint32_t zero;
};
_Static_assert(sizeof(struct tally_row_key) == 56, "no padding");

/* Counters of one level. All only grow, but for ns_min. */
struct tally_stats {
	uint64_t launches;
	uint64_t samples;	  /* timed pieces: whole launches, slices, what ran before a stop */
	uint64_t ns, blocks;	  /* their sums */
	uint64_t ns_min;	  /* the shortest whole launch, or a piece scaled to one; 0: none */
	uint64_t stops, drain_ns; /* drain: of the stops' latency, what skipping blocks took */
	uint32_t stop[TALLY_COARSE]; /* stop latencies, shape tally_coarse */
};

struct tally_row {
	struct tally_row_key key;
	char name[TALLY_ROW_NAME];
	struct tally_choice choice; /* as it is run now, or was run last */
	struct tally_stats level[TALLY_LEVELS];
};

static inline uint64_t tally_key_blocks(const struct tally_row_key *key)
{
	return (uint64_t)key->grid[0] * key->grid[1] * key->grid[2];
}

static inline uint32_t tally_key_threads(const struct tally_row_key *key)
{
	return key->block[0] * key->block[1] * key->block[2];
}

static inline bool tally_key_equal(const struct tally_row_key *a, const struct tally_row_key *b)
{
	return !memcmp(a, b, sizeof *a);
}

/* What `n` blocks take where `of` blocks take `ns`; 0 where `of` is 0. As large as it gets,
 * whatever a broken program counted. */
static inline uint64_t tally_scale(uint64_t ns, uint64_t n, uint64_t of)
{
	double scaled = of ? (double)ns * (double)n / (double)of : 0;

	return scaled < 0x1p63 ? (uint64_t)scaled : UINT64_MAX;
}

/* Mean duration of a whole launch of `blocks` blocks, ns; 0 when nothing was timed. */
static inline uint64_t tally_stats_mean(const struct tally_stats *s, uint64_t blocks)
{
	return tally_scale(s->ns, blocks, s->blocks);
}

/* Adds what `from` counted to `to`. */
void tally_stats_add(struct tally_stats *to, const struct tally_stats *from);

/* All launches, and all time on the device as far as it is known (launches x mean), ns. */
uint64_t tally_row_launches(const struct tally_row *row);
uint64_t tally_row_time(const struct tally_row *row);

/* A hash for tables of keys; well mixed in all bits. */
static inline uint64_t tally_key_hash(const struct tally_row_key *k)
{
	uint64_t word[7], h = 0;

	memcpy(word, k, sizeof word);
	for (unsigned i = 0; i < 7; i++) {
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

#endif
