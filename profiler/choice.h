/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel should run as: of the forms that can be had, the one with the best throughput whose
 * stop latency stays under the turnaround bound. Pure functions of what is known: no clock, no
 * state, so that tests run them in simulated time. Times are nanoseconds.
 */
#ifndef TALLY_PROFILER_CHOICE_H
#define TALLY_PROFILER_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/row.h"

/* Tally's paper (ASPLOS 2025) keeps turnaround under 0.0316 ms; TALLY_BOUND_US changes it. */
#define TALLY_BOUND_NS 31600

/* What is known of a level, from this run and from earlier ones. */
struct tally_level_known {
	uint64_t samples;
	uint64_t ns;	/* mean duration of a whole launch */
	uint64_t stops; /* stop latencies measured */
	uint64_t stop_p50_ns, stop_p90_ns, stop_p99_ns;
};

/* All that the choice looks at. */
struct tally_known {
	uint64_t blocks;
	uint32_t threads;  /* of a block */
	uint64_t wave;	   /* blocks that run at the same time; 0: unknown */
	uint64_t launches; /* so far, in this run */
	uint32_t allowed;  /* TALLY_LEVEL_BIT()s of the forms that can be had. GATE always can */
	enum tally_reason barred;    /* why there is none but GATE */
	struct tally_choice current; /* what it runs as now; reason NONE: nothing yet */
	struct tally_level_known level[TALLY_LEVELS];
};

struct tally_choice_options {
	uint64_t bound_ns; /* 0: TALLY_BOUND_NS */
	/* Costs of the device and the driver; 0: what an H200 was measured to take. */
	uint64_t skip_ps;   /* skipping one block, ps; 0: by the block's threads */
	uint64_t notice_ns; /* from the request until the device's blocks see it (20 us) */
	uint64_t launch_ns; /* one more launch in the stream (4.2 us) */
	/* What an unguarded launch costs beside its time: it waits for the guarded ones in front of
	 * it, so where a stream mixes both, say so. 0: nothing. */
	uint64_t fence_ns;
};

struct tally_decision {
	struct tally_choice choice;
	bool measure;	      /* this launch should be timed */
	uint64_t stop_ns;     /* stop latency to expect, p99 (p90 of less than 128); 0: unknown */
	bool stop_measured;   /* it was measured, not worked out */
	uint64_t duration_ns; /* of a whole launch in this form; 0: unknown */
};

/* Fills `known` from the live row and what earlier runs left (each may be NULL: nothing); `wave`,
 * `allowed` and `barred` are the caller's to set after it. */
struct tally_report_row;
void tally_known_gather(struct tally_known *known, const struct tally_report_row *live,
			const struct tally_row *stored);

/* Whether a launch was ever timed, at whatever level. */
bool tally_known_timed(const struct tally_known *known);

/* The decision for the next launch. */
struct tally_decision tally_choose(const struct tally_known *known,
				   const struct tally_choice_options *options);

/* Whether launch number `launches` (counted from 0) is one before which to choose anew: each of the
 * first, then every 64th. Between them the last choice stays, and nothing is timed. */
static inline bool tally_choice_due(uint64_t launches)
{
	return launches < 32 || launches % 64 == 0;
}

/* How long `blocks` blocks of the kernel will take at a level, for the depth limit; 0: unknown. */
uint64_t tally_predict(const struct tally_known *known, enum tally_level level, uint64_t blocks);

/* Whether all blocks of a grid may be on the device at the same time: such blocks may wait for each
 * other in any order. `wave`: blocks that run at the same time; 0: unknown, and a grid that some
 * GPU could hold counts. */
bool tally_one_wave(uint64_t blocks, uint64_t wave);

/* What skipping one block costs the device, ps, by the threads of a block. */
uint64_t tally_skip_ps(uint32_t threads);

#endif
