/* SPDX-License-Identifier: Apache-2.0 */
/* What is learnt from a program's pauses, in simulated time; and what it gains a server whose
 * requests queue. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/grace.h"

#define US 1000ull
#define MS 1000000ull

static uint64_t seed = 88172645463325252u;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)((seed >> 11) + 1) / 9007199254740993.0;
}

static uint64_t between(uint64_t low, uint64_t high)
{
	return low + (uint64_t)(uniform() * (double)(high - low));
}

static uint64_t exponential(double mean)
{
	return (uint64_t)(-log(uniform()) * mean);
}

static void test_nothing_is_decided_too_soon(void **state)
{
	struct tally_grace g = {0};

	for (unsigned i = 0; i < 63; i++)
		tally_grace_pause(&g, 10 * US);
	assert_int_equal(tally_grace_ns(&g), 0);
}

static void test_long_pauses_get_none(void **state)
{
	struct tally_grace g = {0};

	for (unsigned i = 0; i < 3000; i++) {
		tally_grace_pause(&g, 200 * US + exponential(3.0 * MS));
		assert_int_equal(tally_grace_ns(&g), 0);
	}
}

/* A queue: half of the pauses are over at once. */
static void queue(struct tally_grace *g, unsigned pauses)
{
	for (unsigned i = 0; i < pauses; i++)
		tally_grace_pause(g, i % 2 ? between(4 * US, 30 * US)
					   : 100 * US + exponential(2.5 * MS));
}

static void test_short_ones_are_covered_and_no_more(void **state)
{
	struct tally_grace g = {0};

	queue(&g, 64);
	assert_in_range(tally_grace_ns(&g), 25 * US, 40 * US);
	queue(&g, 100000); /* old ones are forgotten, nothing runs over */
	assert_in_range(tally_grace_ns(&g), 25 * US, 40 * US);
}

/* Tokens of an answer, 80 us apart; then the next request, some time. */
static void test_a_chain_of_bursts_is_one(void **state)
{
	struct tally_grace g = {0};

	for (unsigned i = 0; i < 2000; i++)
		tally_grace_pause(&g, i % 16 ? between(70 * US, 90 * US) : 15 * MS);
	assert_in_range(tally_grace_ns(&g), 88 * US, 130 * US);
}

/* What the program leaves is left: there it is nothing but short pauses. */
static void test_not_all_of_the_idle_time(void **state)
{
	struct tally_grace g = {0};

	for (unsigned i = 0; i < 2000; i++)
		tally_grace_pause(&g, between(90 * US, 150 * US));
	assert_int_equal(tally_grace_ns(&g), 0);
}

static void test_what_changes_is_learnt_again(void **state)
{
	struct tally_grace g = {0};

	queue(&g, 5000);
	assert_true(tally_grace_ns(&g) > 0);
	for (unsigned i = 0; i < 5000; i++)
		tally_grace_pause(&g, 500 * US + exponential(4.0 * MS));
	assert_int_equal(tally_grace_ns(&g), 0);
	queue(&g, 5000);
	assert_true(tally_grace_ns(&g) > 0);
}

static void test_odd_lengths(void **state)
{
	struct tally_grace g = {0};

	for (unsigned i = 0; i < 1000; i++)
		tally_grace_pause(&g, i % 3 ? 0 : UINT64_MAX / 4096);
	assert_true(tally_grace_ns(&g) <= 2 * US);
}

/*
 * Requests of 730 us at random, half of what the server can do; beside it one long kernel after the
 * other, which takes `stop` to give way and, once it runs, is in the way of whatever comes. `mean`:
 * of the requests' latency; returned: the share of the time in which the kernel ran.
 */
static double serve(bool with_grace, uint64_t stop, double *mean)
{
	const uint64_t service = 730 * US;
	struct tally_grace g = {0};
	uint64_t came = 0, ended = 0, ran = 0;
	const unsigned requests = 20000;
	double sum = 0;

	for (unsigned i = 0; i < requests; i++) {
		came += exponential(2.0 * (double)service);
		/* The server takes a moment to see the next one. */
		uint64_t begin = came > ended + 15 * US ? came : ended + 15 * US;
		uint64_t grace = with_grace ? tally_grace_ns(&g) : 0;

		tally_grace_pause(&g, begin - ended);
		if (begin > ended + grace) {
			ran += begin - ended - grace;
			begin += stop;
		}
		ended = begin + service;
		sum += (double)(ended - came);
	}
	*mean = sum / requests;
	return (double)ran / (double)ended;
}

static void test_a_queue_is_not_disturbed(void **state)
{
	double free_mean, without, with, ran_without, ran_with;

	serve(false, 0, &free_mean);
	ran_without = serve(false, 300 * US, &without);
	ran_with = serve(true, 300 * US, &with);
	print_message("mean latency over undisturbed: %.2f without a grace, %.2f with one; the "
		      "others run %.1f and %.1f %% of the time\n",
		      without / free_mean, with / free_mean, 100 * ran_without, 100 * ran_with);
	assert_true(with - free_mean < 0.6 * (without - free_mean));
	assert_true(ran_with > 0.9 * ran_without);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_decided_too_soon),
		cmocka_unit_test(test_long_pauses_get_none),
		cmocka_unit_test(test_short_ones_are_covered_and_no_more),
		cmocka_unit_test(test_a_chain_of_bursts_is_one),
		cmocka_unit_test(test_not_all_of_the_idle_time),
		cmocka_unit_test(test_what_changes_is_learnt_again),
		cmocka_unit_test(test_odd_lengths),
		cmocka_unit_test(test_a_queue_is_not_disturbed),
	};

	return cmocka_run_group_tests_name("grace", tests, NULL, NULL);
}
