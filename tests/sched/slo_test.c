/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The closed loop in simulated time: a program whose bursts have a length, a spread and a slowdown
 * while somebody runs beside it, and a best-effort program that always has work. What is compared
 * is what the simulation knows for certain: each burst over its true length alone.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/policy_slo.h"

#define MS	1000000ull
#define MARGIN	1.05 /* the long-run p99 is at most so much over the budget (docs/scheduler.md) */
#define HIGH	0
#define BEST	1
#define BURSTS	60000
#define WARM_UP 4000

/* Slowdown in a burst beside somebody, at time `t` in seconds; `u` is uniform in [0, 1). */
typedef double contention(double t, double u);

struct workload {
	const char *name;
	unsigned kinds; /* of bursts: the second takes twice as long as the first, and so on */
	double spread;	/* of the logarithm of a burst's length, alone too */
	double spikes;	/* share of bursts that take three times as long, alone too */
	double drift;	/* of all lengths, over the whole run */
	contention *beside;
	double budget;
	double least_open, most_open; /* of the bursts after the warm-up, those beside somebody */
	bool rivals;
	unsigned renewed; /* after so many bursts all kinds are new ones; 0: never */
};

struct outcome {
	double p99, mean;  /* over those alone */
	double open, held; /* shares */
	enum tally_slo_reason reason;
};

static uint64_t seed;

static double uniform(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double p99(double *values, size_t n)
{
	qsort(values, n, sizeof *values, by_size);
	return values[n * 99 / 100];
}

static double mean(const double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (double)n;
}

/* A length over that of its kind. */
static double length(const struct workload *w)
{
	return exp(w->spread * normal()) * (uniform() < w->spikes ? 3 : 1);
}

/* Whether the best-effort program may run, by the board alone. */
static bool best_effort_runs(const struct tally_board *board)
{
	return !tally_policy_strict_must_yield(board, BEST, tally_board_now());
}

static void simulate(const struct workload *w, struct outcome *outcome)
{
	static struct tally_board board;
	static double with[BURSTS], alone[BURSTS];
	struct tally_slo slo;
	uint64_t now = MS;
	size_t n = 0, opened = 0, held = 0;

	memset(&board, 0, sizeof board);
	board.slots_end = 2;
	for (unsigned i = 0; i < 2; i++)
		board.slots[i].generation = 1;
	board.slots[HIGH].priority = TALLY_PRIORITY_HIGH;
	board.slots[BEST].active = w->rivals;
	tally_slo_init(&slo, w->budget, 7);
	for (unsigned i = 0; i < BURSTS; i++) {
		unsigned kind = (unsigned)(uniform() * w->kinds);
		double base = 200e3 * (kind + 1) * (1 + w->drift * i / BURSTS), x = length(w);
		struct tally_slo_burst burst = {
			.key = 1 + kind, .rough_key = 100, .seen = true, .rivals = w->rivals};

		if (w->renewed)
			burst.key += (uint64_t)(i / w->renewed) * 100;
		board.slots[HIGH].overlap =
			tally_slo_begin(&slo, now, tally_policy_strict_rivals(&board, HIGH));
		board.slots[HIGH].active = 1;
		bool beside = w->rivals && best_effort_runs(&board);
		if (beside)
			x *= w->beside((double)now / 1e9, uniform());
		burst.ns = (uint64_t)(base * x);
		now += burst.ns;
		if (i >= WARM_UP) {
			opened += beside;
			with[n] = x;
			alone[n++] = length(w);
		}
		board.slots[HIGH].overlap = tally_slo_end(&slo, &burst, now);
		board.slots[HIGH].active = 0;
		held += !best_effort_runs(&board);
		now += (uint64_t)(-2e6 * log(1 - uniform()));
		board.slots[HIGH].overlap = tally_slo_idle(&slo, now);
	}
	*outcome = (struct outcome){.p99 = p99(with, n) / p99(alone, n),
				    .mean = mean(with, n) / mean(alone, n),
				    .open = (double)opened / (double)n,
				    .held = (double)held / BURSTS,
				    .reason = tally_slo_reason(&slo)};
}

static double none(double t, double u)
{
	return 1;
}

static double a_little(double t, double u)
{
	return 1 + 0.06 * u;
}

static double three_times(double t, double u)
{
	return 2 + 2 * u;
}

/* Costs nothing but in one of 25 bursts. */
static double seldom(double t, double u)
{
	return u < 0.04 ? 2.5 : 1;
}

/* Ten seconds free, ten seconds expensive. */
static double in_turns(double t, double u)
{
	return (long)(t / 10) % 2 ? 2 + u : 1;
}

/* Free for a minute, then expensive for good. */
static double from_a_minute_on(double t, double u)
{
	return t > 60 ? 3 : 1;
}

static double steady_tenth(double t, double u)
{
	return 1.10;
}

static const struct workload workloads[] = {
	{"free, hardly any spread", 1, 0.01, 0, 0, none, 1.05, 0.90, 1, true, 0},
	{"free, some spread", 1, 0.10, 0, 0, none, 1.05, 0.85, 1, true, 0},
	{"free, much spread", 1, 0.30, 0, 0, none, 1.05, 0.50, 1, true, 0},
	{"free, spikes", 1, 0.05, 0.03, 0, none, 1.05, 0.85, 1, true, 0},
	{"free, twelve kinds", 12, 0.10, 0, 0, none, 1.05, 0.85, 1, true, 0},
	{"free, all slows down by half", 1, 0.10, 0, 0.5, none, 1.05, 0.50, 1, true, 0},
	{"a little, little spread", 1, 0.10, 0, 0, a_little, 1.05, 0.60, 1, true, 0},
	{"a little, large budget", 4, 0.10, 0, 0, a_little, 1.20, 0.90, 1, true, 0},
	{"a tenth, some spread", 1, 0.10, 0, 0, steady_tenth, 1.05, 0.05, 0.70, true, 0},
	{"three times", 1, 0.10, 0, 0, three_times, 1.05, 0, 0.03, true, 0},
	{"three times, large budget", 1, 0.10, 0, 0, three_times, 1.5, 0, 0.05, true, 0},
	{"three times, twelve kinds, spikes", 12, 0.20, 0.005, 0, three_times, 1.05, 0, 0.03, true,
	 0},
	{"seldom", 1, 0.05, 0, 0, seldom, 1.05, 0.10, 0.60, true, 0},
	{"in turns", 3, 0.10, 0, 0, in_turns, 1.05, 0.30, 0.55, true, 0},
	{"expensive from a minute on", 3, 0.10, 0, 0, from_a_minute_on, 1.05, 0.25, 0.60, true, 0},
	{"free, new kinds now and then", 5, 0.10, 0, 0, none, 1.05, 0.65, 1, true, 5000},
	{"free, no two bursts alike", 1, 0.10, 0, 0, none, 1.05, 0.85, 1, true, 1},
	{"three times, new kinds", 5, 0.10, 0, 0, three_times, 1.05, 0, 0.03, true, 5000},
	{"nobody there", 3, 0.10, 0, 0, none, 1.05, 0, 0, false, 0},
};

static void test_workloads(void **state)
{
	bool failed = false;

	for (unsigned i = 0; i < sizeof workloads / sizeof *workloads; i++) {
		const struct workload *w = &workloads[i];
		for (unsigned s = 1; s <= 3; s++) {
			struct outcome o;

			seed = s;
			simulate(w, &o);
			bool bad = o.p99 > w->budget * MARGIN || o.mean > w->budget * 1.01 ||
				   o.open < w->least_open || o.open > w->most_open || o.held > 0.08;
			failed |= bad;
			print_message("%-34s %s p99 %.3f mean %.3f of %.2f, open %.3f, held %.3f, "
				      "reason %d\n",
				      w->name, bad ? "BAD" : "ok ", o.p99, o.mean, w->budget,
				      o.open, o.held, o.reason);
		}
	}
	assert_false(failed);
}

static const struct tally_slo_burst plain = {
	.key = 5, .rough_key = 6, .ns = MS, .seen = true, .rivals = true};

/* Bursts of one millisecond until the loop has opened. */
static uint64_t open_it(struct tally_slo *slo, uint64_t now)
{
	tally_slo_init(slo, 1.05, 1);
	for (unsigned i = 0; tally_slo_reason(slo) != TALLY_SLO_INSIDE; i++, now += 3 * MS) {
		assert_true(i < 200);
		tally_slo_begin(slo, now, true);
		now += MS;
		tally_slo_end(slo, &plain, now);
	}
	return now;
}

static void test_nobody_runs_beside_a_program_that_is_not_known(void **state)
{
	struct tally_slo slo;
	uint64_t now = MS;

	tally_slo_init(&slo, 1.05, 1);
	for (unsigned i = 0; i < 40; i++, now += 3 * MS) {
		assert_int_not_equal(tally_slo_begin(&slo, now, true), TALLY_OVERLAP_OPEN);
		assert_int_equal(tally_slo_reason(&slo), TALLY_SLO_LEARNING);
		now += MS;
		tally_slo_end(&slo, &plain, now);
	}
}

/* A program that nobody can measure holds nobody for that, and lets nobody run beside it. */
static void test_a_program_that_never_waits(void **state)
{
	struct tally_slo slo;
	struct tally_slo_burst burst = plain;
	uint64_t now = MS;
	unsigned held = 0;

	burst.seen = false;
	tally_slo_init(&slo, 1.05, 1);
	for (unsigned i = 0; i < 2000; i++, now += 3 * MS) {
		assert_int_not_equal(tally_slo_begin(&slo, now, true), TALLY_OVERLAP_OPEN);
		now += MS;
		held += tally_slo_end(&slo, &burst, now) == TALLY_OVERLAP_HELD;
	}
	assert_int_equal(tally_slo_reason(&slo), TALLY_SLO_UNMEASURED);
	assert_true(held < 150);
}

static void test_a_burst_that_runs_away_is_closed_once(void **state)
{
	struct tally_slo slo;
	uint64_t now = open_it(&slo, MS);

	while (tally_slo_begin(&slo, now, true) != TALLY_OVERLAP_OPEN)
		tally_slo_end(&slo, &plain, now += MS);
	assert_false(tally_slo_runaway(&slo, now + MS));
	assert_true(tally_slo_runaway(&slo, now + 2 * MS));
	assert_false(tally_slo_runaway(&slo, now + 3 * MS));
	/* With nobody beside it, it is as long as it is. */
	while (tally_slo_begin(&slo, now, false) != TALLY_OVERLAP_OPEN)
		tally_slo_end(&slo, &plain, now += MS);
	assert_false(tally_slo_runaway(&slo, now + 2 * MS));
}

static void test_nobody_is_held_for_a_burst_that_does_not_come(void **state)
{
	struct tally_slo slo;
	uint64_t now = MS;

	tally_slo_init(&slo, 1.05, 1);
	tally_slo_begin(&slo, now, true);
	assert_int_equal(tally_slo_end(&slo, &plain, now + MS), TALLY_OVERLAP_HELD);
	assert_int_equal(tally_slo_idle(&slo, now + 100 * MS), TALLY_OVERLAP_HELD);
	assert_int_equal(tally_slo_idle(&slo, now + 600 * MS), TALLY_OVERLAP_CLOSED);
	/* And what was not measured alone does not count as such. */
	tally_slo_begin(&slo, now + 700 * MS, true);
	tally_slo_end(&slo, &plain, now + 701 * MS);
	assert_int_equal(slo.kinds[0].count + slo.kinds[1].count, 0);
}

/* Having had to give way is not contention from below. */
static void test_disturbed_bursts_are_not_judged(void **state)
{
	struct tally_slo slo;
	struct tally_slo_burst burst = plain;
	uint64_t now = open_it(&slo, MS);

	burst.disturbed = true;
	burst.ns = 50 * MS;
	for (unsigned i = 0; i < 1000; i++, now += 60 * MS) {
		tally_slo_begin(&slo, now, true);
		tally_slo_end(&slo, &burst, now + 50 * MS);
	}
	assert_int_equal(tally_slo_reason(&slo), TALLY_SLO_INSIDE);
}

static void test_the_window_forgets(void **state)
{
	struct tally_slo_window w = {0};

	assert_true(tally_slo_window_mean(&w) == 0);
	assert_true(tally_slo_window_quantile(&w, 990) == 0);
	for (unsigned i = 0; i < 3 * TALLY_SLO_WINDOW; i++)
		tally_slo_window_add(&w, (float)(i * 7919 % TALLY_SLO_WINDOW));
	/* Each number below the window's size once, whatever their order. */
	assert_int_equal(w.count, TALLY_SLO_WINDOW);
	for (unsigned i = 0; i < TALLY_SLO_WINDOW; i++)
		assert_true(w.order_of_size[i] == (float)i);
	assert_true(fabs(tally_slo_window_mean(&w) - (TALLY_SLO_WINDOW - 1) / 2.0) < 1e-6);
	assert_true(tally_slo_window_quantile(&w, 990) == (double)(TALLY_SLO_WINDOW * 99 / 100));
}

static void test_budgets_are_read(void **state)
{
	static const struct {
		const char *text;
		unsigned thousandths;
	} rows[] = {
		{"1.05", 1050},
		{"1.5", 1500},
		{"2", 2000},
		{"2.", 2000},
		{"1.001", 1001},
		{"100", 100000},
		{"1", 0},
		{"1.0", 0},
		{"0.9", 0},
		{"100.001", 0},
		{"", 0},
		{".5", 0},
		{"-1.5", 0},
		{"1,05", 0},
		{"1.0501", 0},
		{"1.05x", 0},
		{"nan", 0},
		{" 1.05", 0},
		{"99999999999999999999", 0},
		{"1e2", 0},
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(tally_slo_budget(rows[i].text), rows[i].thousandths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_workloads),
		cmocka_unit_test(test_nobody_runs_beside_a_program_that_is_not_known),
		cmocka_unit_test(test_a_program_that_never_waits),
		cmocka_unit_test(test_a_burst_that_runs_away_is_closed_once),
		cmocka_unit_test(test_nobody_is_held_for_a_burst_that_does_not_come),
		cmocka_unit_test(test_disturbed_bursts_are_not_judged),
		cmocka_unit_test(test_the_window_forgets),
		cmocka_unit_test(test_budgets_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
