/* SPDX-License-Identifier: Apache-2.0 */
/* The last few hundred values of something: their mean, and any quantile at no cost. */
#ifndef TALLY_SCHED_SLO_WINDOW_H
#define TALLY_SCHED_SLO_WINDOW_H

#define TALLY_SLO_WINDOW 512

/* Start zeroed. Not shared between threads. */
struct tally_slo_window {
	unsigned count, next; /* `next`: the oldest, once the window is full */
	double sum;
	float order_of_time[TALLY_SLO_WINDOW], order_of_size[TALLY_SLO_WINDOW];
};

/* Takes `value` in and, when the window is full, the oldest out: two moves of 2 KiB at most. */
void tally_slo_window_add(struct tally_slo_window *window, float value);

/* 0 for an empty window. */
double tally_slo_window_mean(const struct tally_slo_window *window);

/* The value that `thousandths` of the window do not exceed (990: its p99, the largest while it
 * holds fewer than 100); 0 for an empty window. */
double tally_slo_window_quantile(const struct tally_slo_window *window, unsigned thousandths);

#endif
