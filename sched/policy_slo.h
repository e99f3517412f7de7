/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closed loop on a latency budget. A program of high priority that has a budget (`tally run
 * --slo 1.05`) measures its own bursts of work and decides, burst by burst, whether programs of
 * lower priority have to give way to it or may run beside it: `overlap` in its slot, which the rule
 * of policy_strict.c reads. What others must do stays a function of the board alone.
 *
 * For a small share of bursts everybody else is held completely, from before the burst on: that is
 * how long such a burst takes alone. Bursts differ, so each is compared with its like, by a key.
 * The budget is an account. A burst longer than budget times the p99 of the bursts alone costs one
 * unit, and each burst earns 0.009 units; in a second account a burst costs its slowdown and earns
 * the budget. Others may run beside the program while both accounts are in credit, so that over a
 * long time fewer than 1 % of the bursts exceed the budget, whatever the contention does; when a
 * trial fails at once the next one is put off for twice as long.
 *
 * Time is an argument, there are no locks and no calls: tests/sched/slo_test.c runs it in simulated
 * time.
 */
#ifndef TALLY_SCHED_POLICY_SLO_H
#define TALLY_SCHED_POLICY_SLO_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/board.h"
#include "sched/slo_window.h"

#define TALLY_SLO_KEYS 48

/* Why others may or may not run beside the program now. On the board: the numbers stay. */
enum tally_slo_reason {
	TALLY_SLO_NONE,	       /* no budget */
	TALLY_SLO_LEARNING,    /* closed: too few bursts alone are known */
	TALLY_SLO_INSIDE,      /* open: both accounts are in credit */
	TALLY_SLO_TAIL_SPENT,  /* closed: too many bursts were longer than the budget */
	TALLY_SLO_MEAN_SPENT,  /* closed: the bursts were longer than the budget in the mean */
	TALLY_SLO_BACKING_OFF, /* closed: in credit, but the last trial failed at once */
	TALLY_SLO_UNMEASURED,  /* closed: the program hardly ever waits for the end of its work */
	TALLY_SLO_REASONS,
};

/* What is known of bursts of one kind that ran alone. */
struct tally_slo_kind {
	uint64_t key; /* 0: free */
	uint64_t used;
	double ns; /* their mean; outliers weigh little */
	unsigned count;
};

struct tally_slo {
	double budget;	 /* 1.05: 5 % longer than alone */
	uint64_t bursts; /* so far */
	uint64_t random;

	struct tally_slo_kind kinds[TALLY_SLO_KEYS];
	struct tally_slo_window alone, all; /* times over those of their kind alone */

	double tail, mean; /* the accounts; in units, in budgets */
	double measured;   /* share of the last bursts whose end was seen */
	bool wanted_open;
	unsigned failures;		  /* trials in a row that failed at once */
	uint64_t turned_burst, turned_ns; /* when it was opened or closed last */

	unsigned until_sample;	/* bursts; 1: the next leads in, 0: the next is the sample */
	uint64_t held_since_ns; /* 0: nobody is held for the next burst */

	/* The burst that goes on. */
	bool sample, rivals;
	bool opened; /* others may have run beside it, at its beginning at least */
	enum tally_overlap overlap;
	uint64_t began_ns;
};

/* How a burst went. */
struct tally_slo_burst {
	uint64_t key;	    /* what it was made of; never 0 */
	uint64_t rough_key; /* the same, coarser: serves while the key is not known; never 0 */
	uint64_t ns;	    /* from its first launch until its end was known */
	bool seen;	    /* the program itself waited for its end */
	bool disturbed;	    /* the program had to give way in it */
	bool rivals;	    /* somebody of lower priority has work on the device at its end */
};

/* "1.05" in thousandths, for options and variables, whatever the locale; 0 when `text` is not a
 * number from 1.001 to 100 with at most three decimals. */
unsigned tally_slo_budget(const char *text);

/* `budget` from 1 on; `seed` spreads the samples of several programs. */
void tally_slo_init(struct tally_slo *slo, double budget, uint64_t seed);

/* A burst begins: how others are to be treated in it. `rivals`: somebody of lower priority has work
 * on the device. */
enum tally_overlap tally_slo_begin(struct tally_slo *slo, uint64_t now_ns, bool rivals);

/* It goes on: true once if it has lasted so long that others are not to run beside the rest of it.
 */
bool tally_slo_runaway(struct tally_slo *slo, uint64_t now_ns);

/* It ended: how others are to be treated until the next one begins. */
enum tally_overlap tally_slo_end(struct tally_slo *slo, const struct tally_slo_burst *burst,
				 uint64_t now_ns);

/* No burst goes on: the same, asked now and then, for nobody is held for long in vain. */
enum tally_overlap tally_slo_idle(struct tally_slo *slo, uint64_t now_ns);

enum tally_slo_reason tally_slo_reason(const struct tally_slo *slo);

/* Slowdown of all bursts against those alone, in the mean and at p99; 0: not known yet. */
double tally_slo_mean(const struct tally_slo *slo);
double tally_slo_p99(const struct tally_slo *slo);

#endif
