/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over what is known of a kernel: see row.h. */
#include "profiler/row.h"

void tally_stats_add(struct tally_stats *to, const struct tally_stats *from)
{
	to->launches += from->launches;
	to->samples += from->samples;
	to->ns += from->ns;
	to->blocks += from->blocks;
	if (from->ns_min && (!to->ns_min || from->ns_min < to->ns_min))
		to->ns_min = from->ns_min;
	to->stops += from->stops;
	to->drain_ns += from->drain_ns;
	for (unsigned i = 0; i < TALLY_COARSE; i++)
		to->stop[i] += from->stop[i];
}

uint64_t tally_row_launches(const struct tally_row *row)
{
	uint64_t launches = 0;

	for (unsigned i = 0; i < TALLY_LEVELS; i++)
		launches += row->level[i].launches;
	return launches;
}

/* A level that was never timed is taken to last as long as the others did. */
uint64_t tally_row_time(const struct tally_row *row)
{
	uint64_t blocks = tally_key_blocks(&row->key), ns = 0, sampled = 0, mean, total = 0;

	for (unsigned i = 0; i < TALLY_LEVELS; i++) {
		ns += row->level[i].ns;
		sampled += row->level[i].blocks;
	}
	for (unsigned i = 0; i < TALLY_LEVELS; i++) {
		mean = tally_stats_mean(&row->level[i], blocks);
		if (!mean)
			mean = tally_scale(ns, blocks, sampled);
		total += row->level[i].launches * mean;
	}
	return total;
}
